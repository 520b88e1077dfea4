"""The rungs: every model with the options for a plan; the user's own models by path."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

from sememe.contract import KINDS, Kind
from sememe.errors import ArtifactError, OptionError
from sememe.ladder.plan import LadderPlan
from sememe.ladder.results import Family, Rung
from sememe.models.bert.config import BERT_PRESETS
from sememe.models.registry import recognise
from sememe.training.config import BATCH_SIZES, RATES


class Spec(NamedTuple):
    """One rung: its title, its kind of model, and its options for a plan."""

    name: str
    title: str
    family: Family
    kind: str  # of contract.KINDS: the word after `sememe train`
    options: Callable[[LadderPlan], dict[str, Any]]
    preset: Callable[[LadderPlan], str] | None = None  # of networks
    subwords: Literal["", "wordpiece", "bpe"] = ""  # where it reads those
    has_epochs: bool = False  # whether epochs fill the budget
    counts_first: bool = False  # before its first pass, in the time of its budget
    is_trained: bool = True  # False: it keeps its initial weights, as a control
    in_line: bool = True  # False: run only if requested by name
    # Options of a very short training that compiles all its kernels.
    warming: tuple[dict[str, Any], ...] = ()

    @property
    def is_network(self) -> bool:
        """Whether PyTorch trains it."""
        return self.preset is not None

    @property
    def model_class(self) -> Any:
        """The class, imported now."""
        return KINDS[self.kind].cls()

    def can(self, capability: str) -> bool:
        """Whether its kind of model has a capability."""
        return capability in KINDS[self.kind].capabilities

    def rung(self) -> Rung:
        """The rung before it is trained."""
        return Rung(name=self.name, title=self.title, family=self.family)


# Compiling takes about 40 s on a GPU, and makes steps up to twice as fast.
_COMPILED_S = 150
# Batch size on a GPU, where smaller batches take about as long.
_GPU_ROWS = {"tiny": 64, "mini": 256, "small": 512, "medium": 512}


def _words(plan: LadderPlan, **more: Any) -> dict[str, Any]:
    return {"min_count": plan.min_count, "workers": plan.workers, **more}


def _vectors(plan: LadderPlan, **more: Any) -> dict[str, Any]:
    # Word vectors take a GPU only on request: by default they train beside the networks.
    device = {"device": "cuda"} if plan.device == "cuda" else {}
    return _words(plan, dim=plan.dim, seed=plan.seed, **device, **more)


def _network(plan: LadderPlan, **more: Any) -> dict[str, Any]:
    # Held-out text is in a separate file, so nothing else is held out.
    return {
        "validation_share": 0.0, "evaluate_batches": 0, "device": plan.device, "seed": plan.seed,
        "compile": "auto" if plan.budget_s >= _COMPILED_S else "no", "workers": plan.workers,
        **more,
    }  # fmt: skip


def _word_network(plan: LadderPlan, **more: Any) -> dict[str, Any]:
    return _network(plan, max_words=plan.predicted_words, min_count=plan.min_count, **more)


def _elmo(plan: LadderPlan) -> dict[str, Any]:
    if plan.preset != "tiny":
        return _word_network(plan)
    # Two softmaxes over all words would take half of the time, and characters a third of the rest.
    # An initial skip-gram learns in seconds which words are similar (planned: for how long).
    return _word_network(
        plan, softmax="sampled", num_samples=1_024, input="words", num_cells=128, width=100,
        batch_size=32, length=32, start_epochs=1,
    )  # fmt: skip


def _bert(plan: LadderPlan) -> dict[str, Any]:
    more = _rows(plan, next_sentence=False)
    if plan.preset in ("small", "medium"):
        # In minutes few tokens repeat often: dropout would only slow training. Smaller ones have
        # none.
        more |= {"dropout": 0.0, "attention_dropout": 0.0}
    return _network(plan, vocab_size=plan.vocab_size, **more)


def _rows(plan: LadderPlan, **more: Any) -> dict[str, Any]:
    """Batch size; the smallest networks do more steps with short batches."""
    found = {"length": 64, **more} if plan.preset == "tiny" else {}
    return {**found, "batch_size": _GPU_ROWS[plan.preset]} if plan.has_gpu else found


def _gpt(plan: LadderPlan) -> dict[str, Any]:
    own = BERT_PRESETS[plan.preset]  # neither is the larger
    sizes = {"num_layers": own.num_layers, "width": own.width, "num_heads": own.num_heads}
    more: dict[str, Any] = {"vocab_size": plan.vocab_size}
    if plan.preset not in ("tiny", "mini"):
        more |= {
            "learning_rate": RATES[plan.preset],
            "batch_size": BATCH_SIZES.get(plan.preset, 128),
        }
    return _network(plan, **sizes, **(more | _rows(plan)))


def _preset(plan: LadderPlan) -> str:
    return plan.preset


_KNESER_NEY = {"order": 5, "validation_share": 0.0}
_SMALL = {"dim": 4, "epochs": 1}
_STEP: dict[str, Any] = {
    "steps": 1, "batch_size": 2, "evaluate_batches": 0, "validation_share": 0.0, "device": "cpu",
}  # fmt: skip
_BLOCK = {"num_layers": 1, "width": 8, "num_heads": 1, "vocab_size": 300, "length": 16, **_STEP}

SPECS = {
    spec.name: spec
    for spec in (
        Spec("onehot", "one-hot", "counts", "onehot", _words, warming=({},)),
        Spec(
            "counts", "counts (PPMI, SVD)", "counts", "counts", _vectors, warming=({"dim": 4},)
        ),
        Spec(
            "cbow", "word2vec, CBOW", "static", "word2vec",
            lambda plan: _vectors(plan, architecture="cbow"),
            has_epochs=True, warming=({**_SMALL, "architecture": "cbow"},),
        ),
        Spec(
            "skipgram", "word2vec, skip-gram", "static", "word2vec",
            lambda plan: _vectors(plan, architecture="skipgram"),
            has_epochs=True, warming=(_SMALL,),
        ),
        Spec(
            "glove", "GloVe", "static", "glove", _vectors,
            has_epochs=True, counts_first=True, warming=(_SMALL,),
        ),
        Spec(
            "fasttext", "fastText", "static", "fasttext",
            # Two million rows, Facebook's default, would be 800 MB for the n-grams of a small text.
            lambda plan: _vectors(plan, bucket=200_000 if plan.preset == "tiny" else 2_000_000),
            has_epochs=True, warming=({**_SMALL, "bucket": 100},),
        ),
        Spec(
            "ngram", "n-gram (Kneser–Ney)", "language model", "ngram",
            lambda plan: _words(plan, max_words=plan.predicted_words, **_KNESER_NEY),
            warming=(_KNESER_NEY,),
        ),
        Spec(
            "nnlm", "NNLM", "language model", "nnlm",
            lambda plan: _word_network(plan, **({"batch_size": 256} if plan.has_gpu else {})),
            _preset, warming=(_STEP,),
        ),
        Spec(
            "elmo", "ELMo", "contextual", "elmo", _elmo, _preset,
            warming=({"num_cells": 8, "width": 8, "input": "words", "length": 8, **_STEP},),
        ),
        Spec(
            "gpt", "GPT", "contextual", "gpt", _gpt,
            lambda plan: plan.preset if plan.preset == "tiny" else "mini", "bpe",
            warming=(_BLOCK,),
        ),
        Spec(
            "bert", "BERT", "contextual", "bert", _bert, _preset, "wordpiece",
            # The smallest BERT of a ladder trains on running text, a larger one on sentence pairs.
            warming=({**_BLOCK, "next_sentence": False}, {**_BLOCK, "next_sentence": True}),
        ),
        Spec(
            "untrained", "BERT, untrained", "contextual", "bert", _bert, _preset, "wordpiece",
            is_trained=False, warming=({**_BLOCK, "next_sentence": False},),
        ),
    )
}  # fmt: skip


def registered(name: str, kind: Kind) -> Spec:
    """The rung of a kind that its registration alone describes."""
    own = {option.name for option in fields(kind.options_class())}

    def known(options: dict[str, Any]) -> dict[str, Any]:
        return {option: value for option, value in options.items() if option in own}

    return Spec(
        name, kind.title, cast(Family, kind.family), name, lambda plan: known(_vectors(plan)),
        has_epochs="epochs" in own, in_line=False, warming=(known(_SMALL),),
    )  # fmt: skip


SPECS |= {name: registered(name, kind) for name, kind in KINDS.items() if kind.family}

LINE = [name for name, spec in SPECS.items() if spec.is_trained and spec.in_line]


class Chosen(NamedTuple):
    """The rungs of a ladder: names in order, and the user's own models by path."""

    names: list[str]
    paths: list[Path]


def choose(rungs: str) -> Chosen:
    """Parse a choice: names separated by commas, -name to exclude one, paths of own models."""
    wanted, unwanted, paths = [], [], []
    for part in filter(None, map(str.strip, rungs.split(","))):
        name = part.removeprefix("-")
        if part in SPECS:
            wanted.append(part)
        elif part.startswith("-") and name in SPECS:
            unwanted.append(name)
        elif Path(part).exists():
            paths.append(Path(part))
        else:
            raise OptionError(
                f"rungs: {part!r} is neither a rung nor an existing model. The rungs are "
                f"{', '.join(SPECS)}; -name leaves one out."
            )
    names = [name for name in SPECS if name in (wanted or LINE) and name not in unwanted]
    if not names and not paths:
        raise OptionError("rungs leaves out every rung: nothing is left to climb.")
    return Chosen(names, paths)


# ---- own models ---------------------------------------------------------------------------------

_FAMILIES: dict[str, Family] = {spec.kind: spec.family for spec in SPECS.values()}


def own_rung(path: Path, taken: set[str]) -> Rung:
    """A rung that needs no training, named after its folder or file."""
    kind = ""
    with suppress(ArtifactError):  # its cells will say what is wrong with it
        kind = recognise(path).kind
    # A kind without a rung of its own: word vectors, or a contextual model.
    capabilities = KINDS[kind].capabilities if kind in KINDS else ()
    has_context = "attention" in capabilities or "embed_expected" in capabilities
    name, number = (path.stem if path.is_file() else path.name) or "own", 2
    while name in taken:
        name, number = f"{path.stem or 'own'}-{number}", number + 1
    return Rung(
        name=name,
        title=f"{name} (own)",
        family=_FAMILIES.get(kind, "contextual" if has_context else "static"),
        state="done",
        path=str(path),
        megabytes=round(folder_size(path) / 1e6, 2),
    )


def folder_size(folder: Path) -> int:
    """The bytes of a model's folder or file."""
    if folder.is_file():
        return folder.stat().st_size
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
