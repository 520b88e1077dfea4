"""The options of BERT: sizes, presets and pre-training, for commands, calls and sememe.json."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from sememe.errors import OptionError
from sememe.options import Config, option
from sememe.training.config import (
    PretrainingConfig,
    TransformerConfig,
    pretrained_with,
    size_of_preset,
)

Start = Literal["paper", "quick"]
Architecture = Literal["paper", "modern"]
Objective = Literal["masked", "rtd"]  # rtd: replaced-token detection


@dataclass(frozen=True, kw_only=True)
class BERTConfig(TransformerConfig):
    """The sizes of BERT (Devlin et al. 2019); the defaults are those of BERT base."""

    num_segments: int = option(
        2, "Number of segment embeddings (sentence A and sentence B).", 1, 1_000
    )
    start: Start = option(
        "paper", "Initialisation: the paper's, or one that trains small networks faster."
    )

    # What other families have otherwise; families.py.
    family = "bert"
    first_position = 0
    num_groups = 0

    @property
    def is_modern(self) -> bool:
        """Whether blocks are ModernBERT's."""
        return False

    @property
    def has_projection(self) -> bool:
        """Whether embeddings are projected to the width."""
        return False

    @property
    def has_next_head(self) -> bool:
        """Whether the family predicts if one text follows another."""
        return True

    @property
    def has_replaced_head(self) -> bool:
        """Whether the family has a head that detects replaced tokens."""
        return False

    @property
    def embedding_width(self) -> int:
        """Dimensions of the embeddings."""
        return self.width

    @property
    def head_activation(self) -> str:
        """The activation of the masked head."""
        return self.activation

    @property
    def order(self) -> list[int]:
        """The index of the block that computes each layer."""
        return [*range(self.num_layers)]


# Heads of 64 dimensions everywhere. tiny to medium: Turc et al. 2019.
BERT_PRESETS = {
    "tiny": BERTConfig(**size_of_preset(2, 128, 2)),
    "mini": BERTConfig(**size_of_preset(4, 256, 4)),
    "small": BERTConfig(**size_of_preset(4, 512, 8)),
    "medium": BERTConfig(**size_of_preset(8, 512, 8)),
    "base": BERTConfig(**size_of_preset(12, 768, 12)),
    "large": BERTConfig(**size_of_preset(24, 1024, 16)),
}


@dataclass(frozen=True, kw_only=True)
class BERTTrainingConfig(PretrainingConfig):
    """How BERT is pre-trained: masked tokens, and sentence pairs, half of them consecutive."""

    next_sentence: bool = option(True, "Train next-sentence prediction as well.")
    objective: Objective = option(
        "masked", "Predict masked tokens, or detect tokens that a generator replaced (ELECTRA)."
    )
    architecture: Architecture = option(
        "paper", "Blocks: BERT's, or pre-norm with rotary positions, GeGLU and no biases."
    )
    compile: Literal["auto", "yes", "no", "step"] = option(  # type: ignore[assignment]
        "auto", "Compile the network, or the whole step; auto: on a GPU."
    )
    last_rate: float = option(0.0, "Masking rate at the end of the training; 0: the same.", 0, 1)
    short_length: int = option(
        0, "Row length of the first steps, with as many tokens; 0: off.", 0, 2**20
    )
    short_share: float = option(0.8, "Fraction of the steps with the short length.", 0.01, 0.99)
    batch_warmup: float = option(
        0.0, "Fraction of the steps over which the rows grow from an eighth.", 0, 0.9
    )
    generator_share: float = option(
        0.25, "Width of the generator, as a fraction of the network's.", 0.01, 1
    )
    replaced_weight: float = option(
        50.0, "Weight of the loss of replaced tokens; of masked ones 1.", 0, 10_000
    )
    optimizer: Literal["adamw", "muon"] = option(  # type: ignore[misc]
        "adamw", "Optimizer: AdamW, or Muon for the matrices of the blocks."
    )
    average_share: float = option(  # type: ignore[misc]
        0.0, "Average the weights over this last fraction of the run; 0: no.", 0, 0.9
    )

    def __post_init__(self) -> None:
        """Raise OptionError for options that nothing would read."""
        super().__post_init__()
        usual = type(self).__dataclass_fields__
        if self.short_length and not self.short_length < self.length:
            raise OptionError(
                f"short_length ({self.short_length}) must be below length ({self.length})."
            )
        if not self.short_length and self.short_share != usual["short_share"].default:
            raise OptionError("short_share belongs to short_length, which is missing.")
        if self.compile == "step" and self.objective != "masked":
            raise OptionError(
                f"compile step is for masked tokens, not the objective {self.objective}."
            )
        for name in ("last_rate", "batch_warmup"):
            if self.compile == "step" and getattr(self, name):
                raise OptionError(
                    f"compile step is for batches of one size, and {name} changes it: leave one of "
                    "them out."
                )
        if self.objective != "rtd":
            for name in ("generator_share", "replaced_weight"):
                if getattr(self, name) != usual[name].default:
                    raise OptionError(
                        f"{name} belongs to replaced-token detection: set objective to rtd."
                    )


# The papers' initial weights leave narrow networks on a plateau.
PRESETS = pretrained_with(BERT_PRESETS, {key: {"start": "quick"} for key in ("tiny", "mini")})


# Tokens of a step on a GPU, where smaller ones leave it waiting for launches: on an H200 a medium
# one trained twice as fast with 131,000 as with 28,000.
_GPU_TOKENS = {"tiny": 1 << 16, "mini": 1 << 16}
_MORE_GPU_TOKENS = 1 << 17


def gpu_rows(preset: str, length: int, num_parts: int = 1) -> int:
    """The rows of a step on a GPU, if no option says otherwise: a multiple of its parts."""
    rows = _GPU_TOKENS.get(preset, _MORE_GPU_TOKENS) // length
    return max(1, rows // num_parts) * num_parts


# What a recipe sets, as far as no option says otherwise.
RECIPES: dict[str, dict[str, Any]] = {
    "paper": {},
    "modern": {
        "objective": "rtd", "architecture": "modern", "optimizer": "muon", "rate": 0.3,
        "last_rate": 0.15, "average_share": 0.2,
    },
}  # fmt: skip
# Longer rows begin with short ones.
SHORT_LENGTH = 128
# Names of the options that some recipe sets.
OF_RECIPES = {"short_length", *(name for own in RECIPES.values() for name in own)}


def recipe_options(recipe: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a recipe besides those given; a continued model keeps what it is."""
    if recipe not in RECIPES:
        raise OptionError(f"recipe must be one of {', '.join(RECIPES)}, not {recipe!r}.")
    found = dict(RECIPES[recipe])
    if recipe == "modern" and given.get("length", SHORT_LENGTH) > SHORT_LENGTH:
        found["short_length"] = SHORT_LENGTH
    if given.get("pretrained") is not None:
        found = {name: own for name, own in found.items()
                 if name not in ("objective", "architecture")}  # fmt: skip
    return {name: own for name, own in found.items() if name not in given}


@dataclass(frozen=True, kw_only=True)
class StudyConfig(BERTTrainingConfig):
    """How each model of a study is trained; the budget is per masking rate."""

    budget: str = option("", "Training time per masking rate, such as 20m; default: 2m.")
    validation_share: float = option(0.1, "Fraction of documents held out for validation.")
    next_sentence: bool = option(False, "Train next-sentence prediction as well.")

    def __post_init__(self) -> None:
        """Raise OptionError for an objective without a masking rate of its own."""
        super().__post_init__()
        if self.objective != "masked":
            raise OptionError(
                f"A study of masking rates trains masked tokens, not {self.objective}."
            )
        if self.last_rate:
            raise OptionError("A study of masking rates has fixed ones: leave last_rate out.")


@dataclass(frozen=True, kw_only=True)
class DomainConfig(Config):
    """What is added to a model that is continued on the text of a domain."""

    add_words: str = option("", "New tokens for a continued model: number or file of words.")
    replay: str = option("", "Old text to repeat, so that a continued model remembers it.")
    replay_share: float = option(0.25, "Fraction of the rows that are old text.", 0.01, 0.99)

    def __post_init__(self) -> None:
        """Raise OptionError for an option that nothing would read."""
        super().__post_init__()
        _check_unread(self, "replay_share", needs="replay")


@dataclass(frozen=True, kw_only=True)
class DistillationConfig(Config):
    """What a student learns from a teacher, beside its own objectives."""

    teacher: str = option("", "Teacher BERT folder to learn from, with its tokenizer.")
    soft_weight: float = option(0.5, "Share of the teacher's predictions in the masked loss.", 0, 1)
    temperature: float = option(2.0, "Temperature of the teacher's predictions.", 0.1, 100)
    relation_weight: float = option(
        1.0, "Weight of the teacher's relations between tokens.", 0, 1_000
    )

    def __post_init__(self) -> None:
        """Raise OptionError for options that nothing would read."""
        super().__post_init__()
        _check_unread(self, "soft_weight", "temperature", "relation_weight", needs="teacher")


def _check_unread(config: Any, *names: str, needs: str) -> None:
    """Refuse options that are read only together with another one."""
    for name in names:
        usual = type(config).__dataclass_fields__[name].default
        if not getattr(config, needs) and getattr(config, name) != usual:
            raise OptionError(f"{name} belongs to {needs}, which is missing.")
