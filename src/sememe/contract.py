"""The contract of every model: one set of methods, and the table of model kinds.

`sememe.load(path)` returns a `Model` for anything at `path`. Commands, evaluation, the ladder and
the service use the methods below and check `capabilities`; none of them needs a model's class. To
register a model, add its folder, one entry in `KINDS` and one entry in `tests/contracts`.
"""

from __future__ import annotations

import functools
import math
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from sememe.errors import ArtifactError, InputError, OptionError, UnsupportedError
from sememe.estimator import Estimator, only_with, unless_pretrained
from sememe.frames import texts_of
from sememe.machine import imported
from sememe.notebook import html_table

if TYPE_CHECKING:
    import numpy as np

    from sememe.text.settings import TextSettings
    from sememe.vectors import WordVectors

# Each capability, with the words of the error when a model lacks it.
CAPABILITIES = {
    "embed": "give one vector for a text",
    "words": "give one vector for a word",
    "embed_words": "give a vector for each word of a sentence",
    "embed_expected": "give a vector of what it expects in a word's place",
    "fill": "fill in [MASK]",
    "follows": "predict whether one text follows another",
    "generate": "continue a text",
    "next_words": "suggest the next word",
    "score": "score how likely a text is",
    "attention": "show its attention",
    "positions": "show the vectors of its positions",
    "translate": "translate",
    "predict": "predict labels",
    "score_pairs": "score pairs of texts",
    "encoder": "be fine-tuned",
}

_TRANSFORMER = "sememe.models.language.encoder:TransformerBackbone"
_VECTORS = ("embed", "words", "embed_words", "encoder")
_READER = (*_VECTORS, "next_words", "score")
_IN_CONTEXT = (*_READER, "embed_expected")
_TASK = ("predict", "encoder", "embed", "words", "embed_words", "attention")


class Kind(NamedTuple):
    """One kind of model: the path of its class, and its capabilities."""

    title: str
    home: str  # module:Class, imported when it is first used
    capabilities: tuple[str, ...]
    has_mapped_words: bool = False  # its folder opens as memory-mapped WordVectors
    table: str = "rows"  # what it maps: a row per word, ngrams, or onehot, which has no rows
    # module:Class of its options, from which the command `sememe train KIND` is generated; the
    # older kinds have hand-written commands with further options.
    options: str = ""
    # module:Class that fine-tuning builds on; word vectors if a kind has nothing better
    backbone: str = "sememe.models.static.encoder:WordBackbone"
    family: str = ""  # its family on the ladder; the older kinds are planned one by one
    # For its card: the task as Hugging Face names it, and the rows that `predict` takes, if they
    # do not follow from its capabilities.
    pipeline: str = ""
    example: str = ""

    def cls(self) -> Any:
        """The class of this kind."""
        return imported(*self.home.split(":"))

    def options_class(self) -> Any:
        """The dataclass of its options."""
        return imported(*self.options.split(":"))

    def backbone_class(self) -> Any:
        """The class of what fine-tuning builds on, a `sememe.nn.encoders.Backbone`."""
        return imported(*self.backbone.split(":"))


KINDS: dict[str, Kind] = {
    "onehot": Kind(
        "one-hot vectors", "sememe.models.onehot.model:OneHot", _VECTORS, True, "onehot"
    ),
    "counts": Kind("co-occurrence counts", "sememe.models.counts.model:Counts", _VECTORS, True),
    "word2vec": Kind("word2vec", "sememe.models.word2vec.model:Word2Vec", _VECTORS, True),
    "glove": Kind("GloVe", "sememe.models.glove.model:GloVe", _VECTORS, True),
    "fasttext": Kind("fastText", "sememe.models.fasttext.model:FastText", _VECTORS, True, "ngrams"),
    "doc2vec": Kind(
        "Doc2Vec",
        "sememe.models.doc2vec.model:Doc2Vec",
        _VECTORS,
        options="sememe.models.doc2vec.config:Doc2VecConfig",
        family="static",
    ),
    "sif": Kind("SIF", "sememe.models.sif.model:SIF", _VECTORS, True),
    "vectors": Kind("word vectors", "sememe.vectors.wordvectors:WordVectors", _VECTORS, True),
    "fasttext-classifier": Kind(
        "fastText classifier",
        "sememe.models.fasttext.classifier.model:FastTextClassifier",
        ("predict", "embed", "words", "embed_words"),
    ),
    "ngram": Kind(
        "n-gram model", "sememe.models.ngram.model:NGram", ("next_words", "score", "generate")
    ),
    "nnlm": Kind("NNLM", "sememe.models.nnlm.model:NNLM", _READER),
    "elmo": Kind(
        "ELMo",
        "sememe.models.elmo.model:ELMo",
        _IN_CONTEXT,
        backbone="sememe.models.elmo.encoder:ELMoBackbone",
    ),
    "ulmfit": Kind(
        "ULMFiT",
        "sememe.models.ulmfit.model:ULMFiT",
        _IN_CONTEXT,
        backbone="sememe.models.ulmfit.encoder:ULMFiTBackbone",
    ),
    "gpt": Kind(
        "GPT",
        "sememe.models.gpt.model:GPT",
        (*_IN_CONTEXT, "generate", "attention", "positions"),
        backbone=_TRANSFORMER,
    ),
    "bert": Kind(
        "BERT",
        "sememe.models.bert.model:BERT",
        (*_VECTORS, "embed_expected", "fill", "follows", "attention", "positions"),
        backbone=_TRANSFORMER,
    ),
    "seq2seq": Kind(
        "sequence-to-sequence translator",
        "sememe.models.translation.model:Seq2Seq",
        ("embed", "embed_words", "translate", "attention"),
    ),
    "transformer": Kind(
        "Transformer translator",
        "sememe.models.translation.model:Transformer",
        ("embed", "embed_words", "translate", "attention", "positions"),
    ),
    "sentence": Kind(
        "sentence encoder",
        "sememe.models.sentence.model:SentenceModel",
        (*_VECTORS, "attention"),
        pipeline="sentence-similarity",
    ),
    "classify": Kind("classifier", "sememe.tasks.classify:Classify", _TASK),
    "pairs": Kind(
        "classifier of pairs",
        "sememe.tasks.classify:Pairs",
        (*_TASK, "score_pairs"),
        example='[("A text.", "Another text.")]',
    ),
    "regress": Kind("regression", "sememe.tasks.texts:Regress", (*_TASK, "score_pairs")),
    "choose": Kind(
        "multiple choice",
        "sememe.tasks.texts:Choose",
        _TASK,
        pipeline="multiple-choice",
        example='[{"text": "A text.", "choice1": "One end.", "choice2": "Another end."}]',
    ),
    "tag": Kind("tagger", "sememe.tasks.tag:Tag", _TASK, pipeline="token-classification"),
    "answer": Kind(
        "extractive answers",
        "sememe.tasks.answer:Answer",
        _TASK,
        pipeline="question-answering",
        example='[("A question?", "A text that holds the answer.")]',
    ),
}


def kinds_that(capability: str) -> list[str]:
    """The kinds that have a capability."""
    return [name for name, kind in KINDS.items() if capability in kind.capabilities]


def unsupported(kind: str, capability: str, reason: str = "") -> UnsupportedError:
    """The error for a method that a kind of model does not support; it names the kinds that do."""
    others = ", ".join(kinds_that(capability))
    why = f" ({reason})" if reason else ""
    return UnsupportedError(
        f"This {KINDS[kind].title} cannot {CAPABILITIES[capability]}{why}; kinds that can: "
        f"{others}."
    )


class PredictedRow(NamedTuple):
    """A row of data, and what a model predicts for it."""

    cells: Mapping[str, Any]  # the row's own columns, if they were requested
    prediction: Any  # None for an empty row, or a bad one that was skipped
    source: str = ""  # the name of its file


class Truncation(NamedTuple):
    """The tokens of a row and those that the model reads of them; special tokens not counted."""

    tokens: int
    kept: int


class Token(NamedTuple):
    """A word or sub-word token of a text: its id, and its place in the text in characters."""

    id: int  # -1 for a word outside the vocabulary
    text: str
    start: int
    end: int


class NextToken(NamedTuple):
    """A token that may come next, with its probability before and after narrowing."""

    id: int
    text: str  # as it is added to the text; "" where the text ends
    probability: float  # by the model
    drawn: float  # after temperature, top-k and top-p; 0 for a token that they exclude


class GenerationStep(NamedTuple):
    """One step of a generation: the chosen token among the most likely ones."""

    chosen: NextToken
    tokens: list[NextToken]  # most likely first, whether or not they can be drawn
    num_kept: int  # how many tokens temperature, top-k and top-p leave to draw from


class WordsInContext(NamedTuple):
    """The words, or the tokens, of one text with their vectors. W words, D dimensions."""

    words: list[str]  # as written in the text
    starts: np.ndarray  # (W,) start and end of each in the text, in characters
    ends: np.ndarray
    vectors_WD: np.ndarray
    is_known_W: np.ndarray  # False for a word that the model does not know; its row may be zeros


class Attention(NamedTuple):
    """Attention weights of each target token over the source tokens; each row sums to 1.

    In self-attention both are the same text. L layers, H heads, T target tokens, S source tokens.
    """

    target: list[str]
    source: list[str]
    weights_LHTS: np.ndarray
    segments: Sequence[int] = ()  # the index in a pair of the text that each token belongs to
    translation: str | None = None  # the target text, if it differs from the source

    @property
    def tokens(self) -> list[str]:
        """The tokens of a text in self-attention."""
        return self.target

    def of(self, layer: int | None = None, head: int | None = None) -> np.ndarray:
        """The weights of a layer (default: the last) and of a head (default: the mean), (T, S)."""
        num_layers, num_heads = self.weights_LHTS.shape[:2]
        heads_HTS = self.weights_LHTS[_index("layer", layer, num_layers)]
        weights_TS: np.ndarray = (
            heads_HTS.mean(0) if head is None else heads_HTS[_index("head", head, num_heads)]
        )
        return weights_TS

    def mean(self) -> np.ndarray:
        """The mean weights over all layers and heads, (T, S)."""
        mean_TS: np.ndarray = self.weights_LHTS.mean((0, 1))
        return mean_TS

    def rollout(self) -> np.ndarray:
        """How much of each input token reaches each position of the last layer, (T, T).

        The product of all layers, each the mean over its heads plus the identity, which stands for
        the residual connection (Abnar & Zuidema 2020, "Quantifying Attention Flow").
        """
        import numpy as np

        if self.translation is not None or len(self.target) != len(self.source):
            raise OptionError(
                "Rollout follows self-attention through the layers; a translation has none here."
            )
        identity_TT = np.eye(len(self.target))
        rolled_TT = identity_TT
        for heads_HTT in self.weights_LHTS:
            mixed_TT = heads_HTT.mean(0, dtype=np.float64) + identity_TT
            rolled_TT = mixed_TT / mixed_TT.sum(1, keepdims=True) @ rolled_TT
        return rolled_TT.astype(np.float32)


def _index(name: str, number: int | None, most: int) -> int:
    """The index of a layer or head counted from 1; the last if none is given."""
    if number is not None and not 1 <= number <= most:
        raise OptionError(f"{name} must be between 1 and {most} for this model, not {number}.")
    return (most if number is None else number) - 1


def is_finite(value: Any) -> bool:
    """Whether a result, or everything a container holds, is free of NaN and infinity."""
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, dict):
        return all(map(is_finite, value.values()))
    if isinstance(value, list | tuple):
        return all(map(is_finite, value))
    if getattr(value, "dtype", None) is None or value.dtype.kind != "f":
        return True
    import numpy as np

    return bool(np.isfinite(value).all())


def checked_finite(title: str, value: Any) -> Any:
    """Return a model's result; raise an error if damaged weights made it NaN."""
    if is_finite(value):
        return value
    raise not_finite(title)


def not_finite(title: str) -> ArtifactError:
    """The error for a model whose results are NaN or infinite."""
    return ArtifactError(
        f"This {title} gives numbers that are not finite: its weights are damaged, or its training "
        "diverged. Take another copy, or train it again."
    )


_MOST_COLUMNS = 16_000  # of probabilities; spreadsheets have 16,384


def label_columns(labels: Sequence[str], k: int, *, has_sets: bool = False) -> dict[str, Any]:
    """The columns of predicted labels: the `k` most likely ones, or (-1) one column per label.

    With sets of labels the prediction is a list (k = 0: with the list of its probabilities).
    """
    if k < 0 and len(labels) > _MOST_COLUMNS:
        raise OptionError(f"{len(labels):,} labels are too many for columns; choose a positive k.")
    if k < 0:
        chances = {f"p({label})": float for label in labels}
        own = {"prediction": list[str]} if has_sets else {"prediction": str, "probability": float}
        return own | chances
    if not k:
        return {"prediction": list[str], "probability": list[float]}
    return numbered_columns({"prediction": str, "probability": float}, min(k, len(labels)))


def numbered_columns(columns: Mapping[str, Any], times: int) -> dict[str, Any]:
    """The columns of several predictions: prediction, prediction_2, …"""
    endings = ["", *(f"_{number}" for number in range(2, times + 1))]
    return {f"{name}{ending}": own for ending in endings for name, own in columns.items()}


def label_cells(
    ranked: Sequence[tuple[str, float]],
    chances: Sequence[float | None],
    labels: Sequence[str],
    k: int,
    *,
    has_sets: bool = False,
) -> list[Any]:
    """The cells of `label_columns`: predicted labels with their probabilities, and all of them."""
    names = [name for name, _ in ranked]
    if k < 0:
        return [*([names] if has_sets else ranked[0] if ranked else (None, None)), *chances]
    if not k:
        return [names, [chance for _, chance in ranked]]
    size = min(k, len(labels))
    return padded([cell for pair in ranked[:size] for cell in pair], 2 * size)


def padded(cells: list[Any], size: int) -> list[Any]:
    """The cells, with empty ones up to a number of columns."""
    return cells + [None] * (size - len(cells))


def _checked(call: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a method so that `is_finite` checks its result, item by item if it streams."""

    @functools.wraps(call)
    def answer(self: Model, *args: Any, **options: Any) -> Any:
        found, title = call(self, *args, **options), KINDS[self.kind].title
        if isinstance(found, Iterator):
            return (checked_finite(title, item) for item in found)
        return checked_finite(title, found)

    return answer


def _noting_path(save: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap `save` so that the model knows its folder."""

    @functools.wraps(save)
    def noting(self: Model, folder: Any, *args: Any, **options: Any) -> Any:
        found = save(self, folder, *args, **options)
        self.path = Path(folder)
        return found

    return noting


def _forgetting_path(train: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a training, from whose start on the model is not what its folder holds."""

    @functools.wraps(train)
    def forgetting(self: Model, *args: Any, **options: Any) -> Any:
        self.path = None
        return train(self, *args, **options)

    return forgetting


def _reads_frames(call: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap `embed` so that its texts may be a Series, or a DataFrame with `columns`."""

    @functools.wraps(call)
    def answer(self: Model, texts: Any, *args: Any, columns: Any = None, **options: Any) -> Any:
        return call(self, texts_of(texts, columns), *args, **options)

    return answer


# Methods that return floats. `predict` checks its scores before it turns them into labels.
_NUMERIC = (
    "embed", "embed_token_ids", "embed_words", "embed_spans", "embed_tokens", "embed_expected",
    "fill", "follows", "generate_steps", "next_words", "distribution", "score", "evaluate",
    "continuation_scores", "attention", "positions",
)  # fmt: skip


class Model(Estimator):
    """The base of every model. A method that a kind does not support raises UnsupportedError."""

    kind: str  # its key in KINDS
    text: TextSettings  # how texts are split into words; a caller may set another language
    path: Path | None = None  # where it was opened or saved last, and has not changed since
    opened_with: Mapping[str, Any] = {}  # options of `load`, and the precision if it is not fp32
    # What it was trained on, names and sizes in JSON values; empty if that is not known.
    data: Mapping[str, Any] = {}
    forecast: Mapping[str, Any] = {}  # what a plan expected of the training, and what it took

    def told_forecast(self) -> dict[str, Any]:
        """The forecast for sememe.json, with the validation loss; empty without a plan."""
        if not self.forecast:
            return {}
        last = self.history.last()  # type: ignore[attr-defined]
        loss = {"validation_loss": last["validation_loss"]} if "validation_loss" in last else {}
        return {"forecast": {**self.forecast, "actual": {**self.forecast["actual"], **loss}}}

    def __init_subclass__(cls, **more: Any) -> None:
        """Wrap the methods of a subclass: none returns NaN, and pretrained weights are kept."""
        super().__init_subclass__(**more)
        for name in {"fit", "continue_fit"} & set(vars(cls)):
            setattr(cls, name, _forgetting_path(vars(cls)[name]))
        for name in {"fit"} & set(vars(cls)):
            setattr(cls, name, unless_pretrained(vars(cls)[name]))
        if "save" in vars(cls):
            setattr(cls, "save", _noting_path(vars(cls)["save"]))  # noqa: B010
        for name in set(_NUMERIC) & set(vars(cls)):
            own = vars(cls)[name]
            if name == "embed":
                own = _reads_frames(own)
            is_property = isinstance(own, property)
            setattr(cls, name, property(_checked(own.fget)) if is_property else _checked(own))

    @property
    def capabilities(self) -> frozenset[str]:
        """The methods that this model supports."""
        return frozenset(KINDS[self.kind].capabilities).difference(self.lacking())

    def lacking(self) -> dict[str, str]:
        """The methods of its kind that this one model does not support, each with the reason."""
        return {}

    def describe(self) -> dict[str, Any]:
        """Describe the model in JSON values, for `sememe info`, the service and the explorer."""
        return {
            "kind": self.kind,
            "title": KINDS[self.kind].title,
            "capabilities": sorted(self.capabilities),
        }

    def _repr_html_(self) -> str:
        """What a notebook shows: the description as a table."""
        return html_table((), list(self.describe().items()))

    def require(self, capability: str) -> None:
        """Raise UnsupportedError unless the model has a capability."""
        if capability not in self.capabilities:
            raise self.unsupported(capability)

    def unsupported(self, capability: str) -> UnsupportedError:
        """The error for a method that this model does not support; it names the kinds that do."""
        return unsupported(self.kind, capability, self.lacking().get(capability, ""))

    def answering(self, capability: str) -> Model:
        """The object whose vectors of texts and words are used: the word vectors by default."""
        self.require(capability)
        return self.words

    @staticmethod
    def check_list(texts: Any, of: Any = str) -> None:
        """Refuse one string where a list of texts is expected, and items that are not texts."""
        if isinstance(texts, str):
            raise InputError(f"A list of texts was expected, not the one string {texts[:40]!r}.")
        for index, one in enumerate(texts if isinstance(texts, Collection) else ()):
            if not isinstance(one, of):
                raise InputError(
                    f"Text {index} is of type {type(one).__name__}; texts must be str."
                )

    def to(self, device: str) -> Any:
        """Move the model to a device (cpu, cuda, auto) and return it; word vectors stay put."""
        return self

    def in_precision(self, name: str) -> Any:
        """Compute vectors in fp32 or, on a network, in bf16; return the model."""
        if name != "fp32":
            title = KINDS[self.kind].title
            raise OptionError(f"A {title} computes in fp32: leave out precision {name}.")
        return self

    is_matryoshka = False  # whether the first dimensions of its vectors are vectors, too
    own_pool = "mean"  # how `embed` makes one vector of many, unless `pool` says otherwise

    def prompt(self, role: str = "") -> str:
        """What must be written before a text of this role (query, document) to embed it."""
        return ""

    def embed_role(self, texts: Sequence[str], role: str) -> np.ndarray:
        """One vector for each text in a role (query, document), after the prompt of that role."""
        before = self.prompt(role)
        return self.embed([before + text for text in texts])

    @property
    def max_tokens(self) -> int:
        """The maximum number of tokens of a text that is read at once; 0 if there is no limit."""
        return 0

    def tokenize(self, texts: Sequence[str]) -> list[list[Token]]:
        """The tokens of each text as `embed` reads them, without special tokens."""
        reader = self.answering("embed")
        if reader is self:
            raise self.unsupported("embed_words")
        return reader.tokenize(texts)

    def token_ids(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of these tokens."""
        return [[token.id for token in own] for own in self.tokenize(texts)]

    @property
    def embeds_ids(self) -> bool:
        """Whether `embed_token_ids` takes the ids of `token_ids`."""
        return False

    def embed_token_ids(self, ids: Sequence[Sequence[int]]) -> np.ndarray:
        """One vector for each text given as ids; equal to `embed` of the text."""
        raise self.unsupported("embed")

    def num_longer(self, texts: Sequence[str]) -> int:
        """How many texts are longer than the model reads at once; those are read in windows."""
        return 0

    @_reads_frames
    def embed(
        self, texts: Sequence[str], *, pool: str = "mean", layers: Any = "last"
    ) -> np.ndarray:
        """One vector for each text, (texts, D).

        Texts are a list, a Series, or a DataFrame with the column that columns={"text": …} names.
        """
        return self.answering("embed").embed(texts, pool=pool, layers=layers)

    @property
    def words(self) -> WordVectors:
        """One vector for each word of the vocabulary."""
        raise self.unsupported("words")

    def embed_words(
        self, sentences: Sequence[Sequence[str]] | Sequence[str], *, layers: Any = "last"
    ) -> list[np.ndarray]:
        """One vector for each word of each sentence, a (words, D) array per sentence.

        A sentence is a list of words, or a text, which is tokenized like the training corpus.
        `layers` is a layer's number (0: the input vectors), first, last, second-to-last, sum-all,
        sum-last-four, concat-last-four, or a tuple of numbers, whose layers are concatenated.
        """
        return self.answering("embed_words").embed_words(sentences, layers=layers)

    @property
    def layer_widths(self) -> tuple[int, ...]:
        """The width of each layer that `layers` can name; several if vectors depend on context."""
        return self.answering("embed_words").layer_widths

    def embed_spans(
        self,
        texts: Sequence[str],
        spans: Sequence[np.ndarray] | None = None,
        *,
        layers: Any = "last",
    ) -> Iterator[WordsInContext]:
        """The words of each text with their positions and vectors.

        `spans` selects the words: (words, 2) starts and ends in characters for each text. Without
        it, the words are those of `embed_words`.
        """
        return self.answering("embed_words").embed_spans(texts, spans, layers=layers)

    def embed_tokens(
        self, texts: Sequence[str], *, layers: Any = "last"
    ) -> Iterator[WordsInContext]:
        """Like `embed_spans`, for the units that the model reads: words or sub-word tokens."""
        return self.embed_spans(texts, layers=layers)

    def embed_expected(self, texts: Sequence[str], spans: Sequence[tuple[int, int]]) -> np.ndarray:
        """The vector from which the model predicts the word in one span of each text, (texts, D).

        The word itself is hidden from the model; without context the vector is zero.
        """
        raise self.unsupported("embed_expected")

    def fill(self, text: str, *, top: int = 5) -> list[list[Any]]:
        """The most likely tokens for each [MASK] of a text."""
        raise self.unsupported("fill")

    def follows(self, first: str, second: str) -> float:
        """The probability that the second text follows the first."""
        raise self.unsupported("follows")

    def generate(self, prompts: Any, *args: Any, **options: Any) -> Any:
        """The continuation of a prompt, or of each of several."""
        raise self.unsupported("generate")

    def stream(self, prompt: str, **options: Any) -> Iterator[str]:
        """The continuation of a prompt, part by part as it is generated."""
        raise self.unsupported("generate")

    def generate_steps(
        self, prompt: str, *, ids: Sequence[int] = (), count: int = 10, **options: Any
    ) -> Iterator[GenerationStep]:
        """The steps of `generate` with the `count` most likely tokens at each of them.

        `ids` are tokens of an earlier generation after the prompt, to continue from. The options
        are those of `stream`; with the same ones the chosen tokens are those of `generate`.
        """
        raise self.unsupported("generate")

    def next_words(self, text: str, *, count: int = 5) -> list[Any]:
        """The most likely words after a text, each with its probability."""
        raise self.unsupported("next_words")

    @only_with("score")
    def score(self, text: str) -> float:
        """The log10 probability of a text."""
        raise self.unsupported("score")

    def continuation_scores(
        self, prompts: Sequence[str], continuations: Sequence[str]
    ) -> np.ndarray:
        """The natural log probability of each continuation after each prompt, (prompts, texts).

        A row may lack a constant: by default whole texts are scored, with the prompt in them.
        """
        import numpy as np

        rows = [[self.score(prompt + text) for text in continuations] for prompt in prompts]
        return math.log(10) * np.array(rows).reshape(len(prompts), len(continuations))

    def word_log_probs(
        self, documents: Sequence[tuple[str, Sequence[np.ndarray]]]
    ) -> list[np.ndarray]:
        """The natural log probability of each word of some documents, given the words before it.

        A document is its text and the words of each of its sentences, (words, 2) in characters.
        Word models see the sentence so far, sub-word models the document so far. Unknown words get
        NaN.
        """
        raise self.unsupported("score")

    def evaluate(self, data: Any, *args: Any, **options: Any) -> Any:
        """The scores on data: a TextScore of a corpus, or the Scores of labelled rows."""
        raise self.unsupported("predict" if "predict" in self.capabilities else "score")

    def attention(
        self, text: str, other: str | None = None, *args: Any, **options: Any
    ) -> Attention:
        """The attention over a text, or between a text and another."""
        raise self.unsupported("attention")

    @property
    def positions(self) -> np.ndarray:
        """The position vectors, (positions, D)."""
        raise self.unsupported("positions")

    def translate(self, texts: Any, *args: Any, **options: Any) -> Any:
        """The translation of a text, or of each of several."""
        raise self.unsupported("translate")

    @only_with("predict")
    def predict(self, data: Any, *args: Any, **options: Any) -> Any:
        """The labels, scores or answers for rows."""
        raise self.unsupported("predict")

    def predict_stream(
        self,
        data: Any,
        *,
        k: int = 1,
        threshold: float = 0.0,
        has_cells: bool = False,
        **reading: Any,
    ) -> Iterator[PredictedRow]:
        """Every row of data, one after the other, with its prediction, in bounded memory.

        `k` is the number of labels that will be used (-1: all; 0: those that reach the model's
        thresholds; see `own_k`); `has_cells` requests the cells of each row. `reading` says how
        rows are read: columns, skip_bad, encoding, on_note.
        """
        raise self.unsupported("predict")

    def score_pairs(self, pairs: Sequence[tuple[str, str]], *, label: str = "") -> np.ndarray:
        """A score for each pair of texts, such as a query and a passage; higher fits better.

        It is the probability of `label` (default: yes, 1, entailment or the like), or the score of
        a regression.
        """
        raise self.unsupported("score_pairs")

    def truncations(self, rows: Sequence[Any]) -> list[Truncation | None]:
        """What `predict` cuts from each row; None for a row that is read as a whole."""
        return [None] * len(rows)

    def pair_truncations(self, pairs: Sequence[tuple[str, str]]) -> list[Truncation | None]:
        """What `score_pairs` cuts from each pair; None for a pair that is read as a whole."""
        return [None] * len(pairs)

    @property
    def own_k(self) -> int:
        """The `k` that suits the model: 1, or 0 if a row may have any number of labels."""
        return 1

    def with_label_prefix(self, prefix: str) -> Any:
        """The model whose labels have a prefix in its file; others have none."""
        return self

    def prediction_line(self, prediction: Any, *, k: int = 1, has_chances: bool = False) -> str:
        """A prediction as printed: its `k` most likely values, perhaps with probabilities."""
        raise self.unsupported("predict")

    def predict_json(self, rows: Sequence[Any]) -> list[Any]:
        """The predictions for a list of rows as JSON values; None for an empty row."""
        found = self.predict(deque(rows))  # a list of str may name files
        return [None if own is None else self.prediction_json(own) for own in found]

    def predict_scores(self, rows: Sequence[Any]) -> list[Any]:
        """The predictions for a list of rows with the scores of all labels; None for an empty row.

        They are what `prediction_cells` with k = -1 takes. Rows are texts in memory, never paths.
        """
        return list(self.predict(deque(rows)))

    def prediction_json(self, prediction: Any) -> Any:
        """A prediction as JSON values."""
        raise self.unsupported("predict")

    def prediction_columns(self, k: int = 1) -> dict[str, Any]:
        """The columns of predictions in a table, with their Python types."""
        raise self.unsupported("predict")

    def prediction_cells(self, prediction: Any, k: int = 1) -> list[Any]:
        """A prediction as the cells of these columns."""
        raise self.unsupported("predict")

    def encoder(self, reads: Any, config: Any) -> Any:
        """The `sememe.nn.encoders.Backbone` that fine-tuning builds on; the model is not changed.

        `reads` is what the head needs (text, texts, words, roles, question), `config` a
        FinetuneConfig.
        """
        self.require("encoder")
        return KINDS[self.kind].backbone_class().of(self, reads, config)
