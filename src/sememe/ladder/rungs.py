"""The rungs: every model of the line with the options that a plan gives it; own models by path."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from sememe.errors import OptionError
from sememe.ladder.plan import Plan, network_sizes
from sememe.ladder.results import Family, Rung


class Spec(NamedTuple):
    """One model of the line: what it is called, where its class is, what a plan makes of it."""

    name: str
    title: str
    family: Family
    home: str  # module and class
    command: str  # the word after `sememe train`
    options: Callable[[Plan], dict[str, Any]]
    preset: Callable[[Plan], str] | None = None  # of networks
    subwords: str = ""  # wordpiece or bpe, where it reads those
    is_optional: bool = False

    @property
    def is_network(self) -> bool:
        """Whether PyTorch trains it."""
        return self.preset is not None

    @property
    def model_class(self) -> Any:
        """The class, imported now."""
        module, _, name = self.home.rpartition(".")
        return getattr(import_module(module), name)

    def rung(self) -> Rung:
        """The rung before anything is done."""
        return Rung(name=self.name, title=self.title, family=self.family)


# Compiling takes about 40 s on a GPU, and steps are then up to twice as fast.
_COMPILED_S = 150
# Rows of a step on a GPU, whose steps take about as long with fewer.
_GPU_ROWS = {"tiny": 64, "mini": 256, "small": 512, "medium": 512}


def _words(plan: Plan, **more: Any) -> dict[str, Any]:
    return {"min_count": plan.min_count, "workers": plan.workers, **more}


def _vectors(plan: Plan, **more: Any) -> dict[str, Any]:
    return _words(plan, dim=plan.dim, seed=plan.seed, **more)


def _fasttext(plan: Plan) -> dict[str, Any]:
    # Two million rows, Facebook's number, would be 800 MB for the n-grams of a small text.
    return _vectors(plan, bucket=200_000 if plan.preset == "tiny" else 2_000_000)


def _ngram(plan: Plan) -> dict[str, Any]:
    return _words(plan, order=5, max_words=plan.predicted_words, validation_share=0.0)


def _network(plan: Plan, **more: Any) -> dict[str, Any]:
    # What is held out lies in a file of its own, so that nothing else needs to be.
    return {
        "validation_share": 0.0, "evaluate_batches": 0, "device": plan.device, "seed": plan.seed,
        "compile": "auto" if plan.budget_s >= _COMPILED_S else "no", "workers": plan.workers,
        **more,
    }  # fmt: skip


def _word_network(plan: Plan, **more: Any) -> dict[str, Any]:
    return _network(plan, max_words=plan.predicted_words, min_count=plan.min_count, **more)


def _nnlm(plan: Plan) -> dict[str, Any]:
    return _word_network(plan, **({"batch_size": 256} if plan.has_gpu else {}))


def _elmo(plan: Plan) -> dict[str, Any]:
    if plan.preset != "tiny":
        return _word_network(plan)
    # Two softmaxes over all words would take half of the time, and characters a third of the rest.
    # A first skip-gram finds in seconds which words are of a kind (planned: for how long).
    return _word_network(
        plan, softmax="sampled", num_samples=1_024, input="words", num_cells=128, width=100,
        batch_size=32, length=32, start_epochs=1,
    )  # fmt: skip


def _bert(plan: Plan) -> dict[str, Any]:
    more = _rows(plan, next_sentence=False)
    if plan.preset in ("small", "medium"):
        # In minutes little is seen often: dropout would only take. Smaller ones have none anyway.
        more |= {"dropout": 0.0, "attention_dropout": 0.0}
    return _network(plan, vocab_size=plan.vocab_size, **more)


def _rows(plan: Plan, **more: Any) -> dict[str, Any]:
    """Rows of a step; the smallest networks take more steps in their time by short rows."""
    found = {"length": 64, **more} if plan.preset == "tiny" else {}
    return {**found, "batch_size": _GPU_ROWS[plan.preset]} if plan.has_gpu else found


def _gpt(plan: Plan) -> dict[str, Any]:
    from sememe.networks.pretraining_config import BATCH_SIZES, RATES

    sizes = network_sizes(plan.preset)
    more: dict[str, Any] = {"vocab_size": plan.vocab_size}
    if plan.preset not in ("tiny", "mini"):
        more |= {
            "learning_rate": RATES[plan.preset],
            "batch_size": BATCH_SIZES.get(plan.preset, 128),
        }
    return _network(plan, **sizes, **(more | _rows(plan)))


def _preset(plan: Plan) -> str:
    return plan.preset


SPECS = {
    spec.name: spec
    for spec in (
        Spec("onehot", "one-hot", "counts", "sememe.static.onehot.model.OneHot", "onehot", _words),
        Spec(
            "counts", "counts (PPMI, SVD)", "counts", "sememe.static.counts.model.Counts", "counts",
            _vectors,
        ),
        Spec(
            "cbow", "word2vec, CBOW", "static", "sememe.static.word2vec.model.Word2Vec", "word2vec",
            lambda plan: _vectors(plan, architecture="cbow"),
        ),
        Spec(
            "skipgram", "word2vec, skip-gram", "static", "sememe.static.word2vec.model.Word2Vec",
            "word2vec", lambda plan: _vectors(plan, architecture="skipgram"),
        ),
        Spec("glove", "GloVe", "static", "sememe.static.glove.model.GloVe", "glove", _vectors),
        Spec(
            "fasttext", "fastText", "static", "sememe.static.fasttext.model.FastText", "fasttext",
            _fasttext,
        ),
        Spec(
            "ngram", "n-gram (Kneser–Ney)", "language model", "sememe.static.ngram.model.NGram",
            "ngram", _ngram,
        ),
        Spec(
            "nnlm", "NNLM", "language model", "sememe.networks.nnlm_model.NNLM", "nnlm",
            _nnlm, _preset,
        ),
        Spec(
            "elmo", "ELMo", "contextual", "sememe.networks.elmo_model.ELMo", "elmo", _elmo, _preset,
        ),
        Spec(
            "gpt", "GPT", "contextual", "sememe.networks.pretraining.GPT", "gpt", _gpt,
            lambda plan: plan.preset if plan.preset == "tiny" else "mini", "bpe",
        ),
        Spec(
            "bert", "BERT", "contextual", "sememe.networks.pretraining.BERT", "bert",
            _bert, _preset, "wordpiece",
        ),
        Spec(
            "untrained", "BERT, untrained", "contextual", "sememe.networks.pretraining.BERT",
            "bert", _bert, _preset, "wordpiece",
            is_optional=True,
        ),
    )
}  # fmt: skip

LINE = [name for name, spec in SPECS.items() if not spec.is_optional]


class Chosen(NamedTuple):
    """The rungs of a ladder: names of the line in its order, and own models by path."""

    names: list[str]
    paths: list[Path]


def choose(rungs: str | Sequence[str | Path]) -> Chosen:
    """Read a choice: names between commas, -name to leave one out of the line, own models."""
    if isinstance(rungs, str):
        parts = [part.strip() for part in rungs.split(",") if part.strip()]
    else:
        parts = [str(part).strip() for part in rungs]
    wanted, unwanted, paths = [], [], []
    for part in parts:
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
    names = wanted or list(LINE) if not (paths and not wanted and not unwanted) else list(LINE)
    names = [name for name in SPECS if name in names and name not in unwanted]
    if not names and not paths:
        raise OptionError("rungs leaves out every rung: nothing is left to climb.")
    return Chosen(names, paths)


def needs_torch(spec: Spec) -> str:
    """Why a rung cannot be trained here, or nothing."""
    if spec.is_network and find_spec("torch") is None:
        return "PyTorch is not installed: pip install sememe[neural]."
    if spec.subwords and find_spec("tokenizers") is None:
        return "tokenizers is not installed: pip install sememe[neural]."
    return ""
