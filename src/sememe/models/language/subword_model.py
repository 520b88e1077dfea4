"""What the language models over sub-words, BERT and GPT, share: text in, a tokenizer out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch

from sememe.contract import Attention, Token, WordsInContext
from sememe.errors import ArtifactError, OptionError
from sememe.examples.batches import Preview, Split, preview
from sememe.examples.masking.config import MaskingConfig
from sememe.examples.running_words import places_in
from sememe.models.fitting import Request, fit
from sememe.models.huggingface.folder import kind_of, load_folder, manifest_of, write_network
from sememe.models.huggingface.layout import CONFIG
from sememe.models.language.features import (
    attention_maps,
    device_of,
    embed_texts,
    embed_words,
    known_tokens,
    pooled_ids,
    room,
    token_vectors,
    tokens_in,
)
from sememe.models.language.model import LanguageModel
from sememe.models.language.texts import Metrics, Texts, open_texts, with_perplexity
from sememe.nn.layers import keep_cast
from sememe.options import changed
from sememe.progress import Reporter, as_reporter
from sememe.storage.folder import manifest_in, reads_artifact
from sememe.text import characters as ch
from sememe.text.settings import TextSettings
from sememe.tokens.subwords.tokenizer import SubwordTokenizer
from sememe.training.config import PretrainingConfig
from sememe.training.device import multiplies_bf16
from sememe.training.distributed import joined
from sememe.vectors import WordVectors


class SubwordModel(LanguageModel):
    """A Transformer over the sub-word tokens of a text, or of one text per language."""

    tokenizer_kind: ClassVar[Any]
    training_class = PretrainingConfig
    masking = MaskingConfig()
    learned = (*LanguageModel.learned, "tokenizer", "languages")

    def __init__(self, preset: str = "tiny", **options: Any) -> None:
        """Take a preset by name, and options of the network, the training and the examples."""
        super().__init__(preset, **options)
        self.languages: dict[str, float] = {}  # the sampling probability of each language
        self.tokenizer: Any = None

    def fit(
        self,
        corpus: Any = None,
        y: Any = None,
        *,
        tokenizer: Any = None,
        text: TextSettings | None = None,
        store: str | Path | None = None,
        out: str | Path | None = None,
        resume: bool = False,
        overwrite: bool = False,
        progress: Reporter | bool | None = None,
        **text_options: Any,
    ) -> Self:
        """Train on `corpus`: paths, documents or a SubwordStore; None: the built-in one.

        A mapping such as {"en": corpus, "zh": corpus} trains a multilingual model: each text is
        read by the rules of its language, and rows are sampled by its size to the power
        `smoothing`. `tokenizer` is a tokenizer or its folder; without it, one is trained on the
        corpus first. text or its fields by name (language="zh") say how text is read; `store` is
        the path of the token store. With `out` the model is saved there, with checkpoints next to
        it during training; `resume` continues from the last one; `overwrite` allows replacing an
        existing model.
        """
        self.text = changed(text or TextSettings(), "fit", text_options)
        with joined() as processes:
            request = Request(
                tokenizer=tokenizer, store=store, out=out, resume=resume,
                overwrite=overwrite,
                reporter=as_reporter(progress), processes=processes,
            )  # fmt: skip
            return fit(self, corpus, request)

    def preview(
        self,
        corpus: Any = None,
        *,
        tokenizer: Any = None,
        text: TextSettings | None = None,
        store: str | Path | None = None,
        num_rows: int = 3,
        progress: Reporter | bool | None = None,
        **text_options: Any,
    ) -> list[Preview]:
        """The first examples that `fit` would train on; trains at most a tokenizer."""
        self.text = changed(text or TextSettings(), "preview", text_options)
        reporter = as_reporter(progress)
        texts = open_texts(self, corpus, tokenizer=tokenizer, store=store, reporter=reporter)
        source = texts.source(self, "train")
        reporter.note(texts.described(source))
        return preview(source, self.tokenizer, num_rows=num_rows)

    # ---- use ------------------------------------------------------------------------------------

    words_are = "input table: the tokens that are whole words"

    @property
    def layer_widths(self) -> tuple[int, ...]:
        """The width of the embedding and of the output of each block."""
        return (self.config.width,) * (self.config.num_layers + 1)

    def embed(
        self, texts: Sequence[str], *, pool: str = "mean", layers: Any = "last"
    ) -> np.ndarray:
        """One vector per text: the mean or maximum over its tokens, or BERT's [CLS].

        Mean and maximum include the special tokens, as in sentence-transformers.
        """
        self.check_list(texts)
        return embed_texts(self.trained(), self.tokenizer, texts, layers=layers, pool=pool)

    def in_precision(self, name: str) -> Self:
        """Compute vectors in fp32 or bf16, if the device multiplies bfloat16 numbers."""
        network = self.trained()
        if name not in ("fp32", "bf16"):
            raise OptionError(f"precision must be fp32 or bf16, not {name!r}.")
        is_cpu = device_of(network).type == "cpu"
        if name == "bf16" and network.engine is not None:
            raise OptionError("An ONNX graph has its own precision: leave out precision bf16.")
        if name == "bf16" and is_cpu and not multiplies_bf16():
            raise OptionError("This CPU does not multiply bfloat16 numbers: take precision fp32.")
        network.precision = torch.bfloat16 if name == "bf16" else torch.float32
        keep_cast(network, network.precision)
        return self

    @property
    def max_tokens(self) -> int:
        """The maximum number of tokens of a text in one row, besides the special tokens."""
        return room(self.trained())

    def tokenize(self, texts: Sequence[str]) -> list[list[Token]]:
        """The sub-word tokens of each text."""
        return tokens_of(self.tokenizer, texts)

    def token_ids(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of the sub-word tokens of each text."""
        self.check_list(texts)
        return self.tokenizer.ids_batch(texts)

    embeds_ids = True

    def embed_token_ids(self, ids: Sequence[Sequence[int]], *, pool: str = "mean") -> np.ndarray:
        """One vector per text given as token ids, pooled by mean or cls."""
        network = self.trained()
        self.tokenizer.check_ids(ids)
        if not len(ids):
            return np.empty((0, self.config.width), np.float32)
        return pooled_ids(network, self.tokenizer, ids, pool=pool)

    def num_longer(self, texts: Sequence[str]) -> int:
        """How many texts have more tokens than the network reads at once."""
        size = room(self.trained())
        long = [text for text in texts if len(text) > size]  # a token has a character or more
        return sum(len(own.ids) > size for own in self.tokenizer.encode_batch(long))

    def embed_spans(
        self,
        texts: Sequence[str],
        spans: Sequence[np.ndarray] | None = None,
        *,
        layers: Any = "last",
    ) -> Iterator[WordsInContext]:
        """The words of each text, each the mean over its tokens; `spans` selects the words.

        Without spans words are those of the tokenizer, or rjieba's if the text is Chinese.
        """
        if spans is None and self.text.mode == "chinese":
            spans = chinese_spans(texts, self.text, self.tokenizer)
        return embed_words(self.trained(), self.tokenizer, texts, spans=spans, layers=layers)

    def embed_tokens(
        self, texts: Sequence[str], *, layers: Any = "last"
    ) -> Iterator[WordsInContext]:
        """The tokens of each text with their positions and vectors, without special tokens."""
        for text, own in zip(
            texts, token_vectors(self.trained(), self.tokenizer, texts, layers=layers), strict=True
        ):
            encoding = own.encoding
            words = [text[a:b] for a, b in zip(encoding.starts, encoding.ends, strict=True)]
            is_known_T = known_tokens(encoding, self.tokenizer)
            yield WordsInContext(words, encoding.starts, encoding.ends, own.vectors_TD, is_known_T)

    def attention(self, text: str, other: str | None = None) -> Attention:
        """The attention of every layer and head over a text, or over a pair of texts."""
        return attention_maps(self.trained(), self.tokenizer, text, other)

    def describe(self) -> dict[str, Any]:
        """What the model is: sizes, tokenizer, text, languages and training."""
        found = super().describe()
        if self.tokenizer is not None:
            found["tokenizer"] = {"kind": self.tokenizer.kind, "tokens": len(self.tokenizer)}
        return found | {"languages": self.languages}

    def _word_table(self) -> WordVectors:
        words = whole_words(self.tokenizer)
        table_VD = self.network.embedding.tokens.weight[list(words.values())]
        return WordVectors(list(words), table_VD.detach().float().cpu().numpy())

    def manifest(self) -> dict[str, Any]:
        """What sememe.json says about the network and its training."""

        if not self.preset:  # trained elsewhere, without a record
            return manifest_of(self.network) | {"text": self.text.to_dict()}
        languages = {"languages": self.languages} if self.languages else {}
        return manifest_of(self.network) | super().manifest() | languages

    def _check(self) -> None:
        if self.training.length > self.config.max_length:
            raise OptionError(
                f"length ({self.training.length}) must not exceed max_length "
                f"({self.config.max_length}), the maximum sequence length of the network."
            )

    def open_text(self, corpus: Any, request: Request) -> Texts:
        """Tokenize every text with a tokenizer, which becomes the model's."""

        return open_texts(
            self, corpus, tokenizer=request.tokenizer, store=request.store,
            reporter=request.reporter,
        )  # fmt: skip

    def plan_of(self, text: Texts) -> dict[str, Any]:
        """What identifies a run: the options that affect the result, its text and its tokenizer."""
        plan = super().plan_of(text) | {"masking": asdict(self.masking)}
        plan["content"]["tokenizer"] = self.tokenizer.fingerprint
        return plan

    def begin(self, text: Texts, source: Any, reporter: Reporter) -> Any:
        """Return the new network with its objective."""
        self.languages = text.shares(source)
        self.network.stack.recompute = self.training.recompute
        if self.config.positions == "learned":
            self.network.seen_length = self.training.length
        return self.objective()

    def add_metrics(self, text: Texts, validation: Any) -> Callable[[Metrics], Metrics]:
        """A function that adds perplexity and the counting baselines to the metrics."""

        return with_perplexity(self, text, validation)

    def _write(self, folder: Path) -> None:
        """Write files that `transformers` opens too."""

        write_network(self.network, folder)
        self.tokenizer.save(folder, max_length=self.config.max_length)

    def _take_up(self, manifest: dict[str, Any]) -> None:
        self.languages = manifest.get("languages", {})

    def _read(self, folder: Path) -> None:
        self.network, self.tokenizer = load_folder(folder)
        self.config = self.network.config

    @classmethod
    @reads_artifact
    def load(cls, folder: str | Path) -> Self:
        """Open a model saved by `fit` or `save`, or a Hugging Face folder."""
        folder = Path(folder)
        manifest = manifest_in(folder)
        is_own = "training" in manifest and manifest.get("kind") == cls.kind
        if is_own or not (folder / CONFIG).is_file():
            return super().load(folder)
        network, tokenizer = load_folder(folder)
        if kind_of(network) != cls.kind:
            raise ArtifactError(f"{folder} is of kind {kind_of(network)}, not {cls.kind}.")
        model = cls.around(network, tokenizer)
        if isinstance(kept := manifest.get("text"), dict):
            model.text = TextSettings.from_dict(kept)
        return model

    @classmethod
    def around(cls, network: Any, tokenizer: SubwordTokenizer) -> Self:
        """A model around a network trained elsewhere, and its tokenizer."""
        model = cls()
        model.preset, model.network, model.tokenizer = "", network, tokenizer
        model.config = network.config
        model.training = replace(model.training, length=network.config.max_length)
        return model

    def objective(self) -> Any:
        """The network with its objective."""
        raise NotImplementedError

    def source(self, store: Any, split: Split) -> Any:
        """The batches of a split of a text."""
        raise NotImplementedError


def chinese_spans(
    texts: Sequence[str], settings: TextSettings, tokenizer: SubwordTokenizer
) -> list[np.ndarray]:
    """The spans of rjieba's words in each text that contain tokens, (words, 2) in characters."""
    spans = []
    cut = places_in(texts, replace(settings, lowercase=False))
    for places, encoding in zip(cut, tokenizer.encode_batch(texts), strict=True):
        places_W2 = np.array(places, np.int64).reshape(-1, 2)
        firsts_W, lasts_W = tokens_in(encoding, places_W2)
        spans.append(places_W2[firsts_W < lasts_W])
    return spans


def tokens_of(tokenizer: SubwordTokenizer, texts: Sequence[str]) -> list[list[Token]]:
    """The tokens of each text with their places."""
    return [
        [
            Token(token_id, tokenizer.token(token_id), start, end)
            for token_id, start, end in zip(
                own.ids.tolist(), own.starts.tolist(), own.ends.tolist(), strict=True
            )
        ]
        for own in tokenizer.encode_batch(texts)
    ]


def whole_words(tokenizer: SubwordTokenizer) -> dict[str, int]:
    """The tokens that are entire words, as written, with their ids.

    In a BPE vocabulary these are the ones after a space, and words of scripts without spaces.
    """
    found: dict[str, int] = {}
    is_part_V = tokenizer.is_continuation
    for token_id in range(tokenizer.vocab_size):
        if token_id in tokenizer.special_ids or is_part_V[token_id]:
            continue
        text = tokenizer.decode([token_id])
        is_ideograph = text[:1] and ch.classify(text[0]) & ch.CLASS_MASK == ch.IDEOGRAPH
        if tokenizer.kind == "wordpiece" or text.startswith(" ") or is_ideograph:
            word = text.strip()
            if any(map(str.isalnum, word)) and "\ufffd" not in word:
                found.setdefault(word, token_id)
    return found
