"""What the language models over sub-words, BERT and GPT, share: text in, a tokenizer out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from sememe.contract import Attention, Token, WordsInContext
from sememe.errors import ArtifactError, OptionError
from sememe.examples.batches import Preview, Split, preview
from sememe.examples.masking.config import MaskingConfig
from sememe.examples.running_words import places_in
from sememe.examples.scheduled import Schedule
from sememe.models.fitting import Request, fit
from sememe.models.huggingface.adapters import begin, check_base, finish, summary
from sememe.models.huggingface.folder import (
    kind_of,
    load_folder,
    manifest_of,
    token_fields,
    write_network,
)
from sememe.models.huggingface.layout import CONFIG, is_adapter
from sememe.models.language.features import (
    attention_maps,
    device_of,
    embed_words,
    known_tokens,
    room,
    token_vectors,
    tokens_in,
)
from sememe.models.language.model import LanguageModel
from sememe.models.language.pooling import embed_texts, pooled_ids
from sememe.models.language.texts import Metrics, Texts, open_texts, with_perplexity
from sememe.nn.layers import keep_cast
from sememe.options import changed
from sememe.progress import Reporter, as_reporter
from sememe.storage.folder import manifest_in, reads_artifact
from sememe.text import characters as ch
from sememe.text.settings import TextSettings
from sememe.tokens.subwords.tokenizer import UNUSED, SubwordTokenizer
from sememe.training.config import PretrainingConfig
from sememe.training.device import TYPES, choose_precision, multiplies_bf16
from sememe.training.distributed import joined
from sememe.training.lora import LoRAOptions
from sememe.training.weights import weights_hash
from sememe.vectors import WordVectors

# Sizes that may differ from those of the model whose training is continued.
_FREE_SIZES = ("dropout", "attention_dropout")


class SubwordModel(LanguageModel):
    """A Transformer over the sub-word tokens of a text, or of one text per language."""

    tokenizer_kind: ClassVar[Any]
    training_class = PretrainingConfig
    more_options: ClassVar[dict[str, type]] = {"lora": LoRAOptions}
    masking = MaskingConfig()
    lora: LoRAOptions
    learned = (*LanguageModel.learned, "tokenizer", "languages")

    def __init__(
        self, preset: str = "tiny", *, pretrained: str | Path | Self | None = None, **options: Any
    ) -> None:
        """Take a preset by name, and options of the network, the training and the examples.

        With `pretrained`, a model or its folder, `fit` continues its training: the size and the
        tokenizer are its own, and the preset is the one nearest in width, which chooses the
        learning rate and the batch size.
        """
        self.pretrained = None if pretrained is None else self._opened(pretrained)
        # Its folder, which LoRA's adapter names.
        self._base = (
            getattr(pretrained, "path", None) if self.pretrained is pretrained else pretrained
        )
        if self.pretrained is not None:
            width = self.pretrained.config.width
            preset = min(self.presets, key=lambda own: abs(self.presets[own].network.width - width))
        super().__init__(preset, **options)
        if self.pretrained is not None:
            self.preset = self.pretrained.preset
            self._given["pretrained"] = pretrained
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
        self.text = changed(text or self._usual_text(), "fit", text_options)
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
        self.text = changed(text or self._usual_text(), "preview", text_options)
        reporter = as_reporter(progress)
        request = Request(tokenizer=tokenizer, store=store, reporter=reporter)
        texts = self.open_text(corpus, request)
        source = texts.source(self, "train")
        reporter.note(texts.described(source))
        return preview(source, self.tokenizer, num_rows=num_rows)

    predicted_share = 1.0  # of the tokens

    def _flops_per_token(self) -> float:
        """Also of every position with the others, and the scores of predicted tokens."""
        config = self.config
        scores = 4.0 * config.num_layers * config.width * self.training.length
        vocabulary = 2.0 * config.padded_vocab_size * config.width
        return super()._flops_per_token() + scores + self.predicted_share * vocabulary

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
        """Compute vectors in fp32, bf16 or, on a GPU, fp16, if the device has it."""
        network = self.trained()
        if name not in TYPES:
            raise OptionError(f"precision must be fp32, bf16 or fp16, not {name!r}.")
        choose_precision(name, device := device_of(network))
        if name != "fp32" and network.engine is not None:
            raise OptionError(f"An ONNX graph has its own precision: leave out precision {name}.")
        if name == "bf16" and device.type == "cpu" and not multiplies_bf16():
            raise OptionError("This CPU does not multiply bfloat16 numbers: take precision fp32.")
        network.precision = TYPES[name]
        keep_cast(network, network.precision)
        self.opened_with = {**self.opened_with, "precision": name}
        return self

    def to(self, device: str) -> Self:
        """Move the network to a device: cpu, cuda, mps, or auto."""
        super().to(device)
        keep_cast(self.network, self.network.precision)  # on the same device
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

        if not self.preset and not self.plan:  # trained elsewhere, without a record
            return manifest_of(self.network) | {"text": self.text.to_dict()}
        languages = {"languages": self.languages} if self.languages else {}
        own = {"lora": self.lora.to_dict()} if self.lora.lora else {}
        return manifest_of(self.network) | super().manifest() | languages | own

    def _check(self) -> None:
        if self.lora.lora:
            self._check_lora()
        if self.training.length > self.config.max_length:
            raise OptionError(
                f"length ({self.training.length}) must not exceed max_length "
                f"({self.config.max_length}), the maximum sequence length of the network."
            )

    def _check_lora(self) -> None:
        if self.pretrained is None:
            raise OptionError("lora updates a trained model: name it with --from (pretrained).")
        check_base(self._base)
        if "masked head" in self.pretrained.network.untrained:
            raise OptionError(
                f"{self.pretrained!r} has no masked head, and LoRA does not train one: "
                "continue its training without lora."
            )

    def merge(self) -> Self:
        """Save the whole network from now on, not an adapter to the model that LoRA began with."""
        self.trained().adapter = None
        return self

    def learn(self, text: Any, plan: dict[str, Any], request: Request) -> None:
        """Train a network on a text; LoRA's updates are merged into its weights."""
        super().learn(text, plan, request)
        finish(self.network)

    def open_text(self, corpus: Any, request: Request) -> Texts:
        """Tokenize every text with a tokenizer, which becomes the model's."""
        given = request.tokenizer
        if self.pretrained is not None:
            if given is not None:
                raise OptionError("The tokenizer is that of the model to continue: leave it out.")
            given = self.pretrained.tokenizer
        return open_texts(
            self, corpus, tokenizer=given, store=request.store, reporter=request.reporter
        )

    def plan_of(self, text: Texts) -> dict[str, Any]:
        """What identifies a run: the options that affect the result, its text and its tokenizer."""
        plan = super().plan_of(text) | {"masking": asdict(self.masking)}
        if self.lora.lora:
            plan["lora"] = self.lora.to_dict()
        plan["content"]["tokenizer"] = self.tokenizer.fingerprint
        if self.pretrained is not None:
            plan["content"]["pretrained"] = weights_hash(self.pretrained.network)
        return plan

    def new_network(self) -> Any:
        """A network of the model's sizes: untrained, or with the weights of the one to continue."""
        network = super().new_network()
        if self.pretrained is not None:
            before = self.pretrained.network
            network.load_state_dict(before.state_dict())
            network.untrained, network.seen_length = before.untrained, before.seen_length
        return network

    def begin(self, text: Texts, source: Any, reporter: Reporter) -> Any:
        """Return the new network with its objective."""
        self.languages = text.shares(source)
        self.network.stack.recompute = self.training.recompute
        if self.config.positions == "learned" and not self.lora.lora:
            before = 0 if self.pretrained is None else self.network.seen_length
            self.network.seen_length = max(before, self.training.length)
        if self.pretrained is not None:
            reporter.note(f"Continuing from {self.pretrained!r}.")
        objective = self.objective()
        if self.lora.lora:
            base = check_base(self._base)
            begin(self.network, base, self.lora, self.training.seed, self.config.vocab_size)
            reporter.note(summary(self.network))
        return objective

    def add_metrics(self, text: Texts, validation: Any) -> Callable[[Metrics], Metrics]:
        """A function that adds perplexity and the counting baselines to the metrics."""

        return with_perplexity(self, text, validation)

    def _write(self, folder: Path) -> None:
        """Write files that `transformers` opens too."""

        config = token_fields(self.network, self.tokenizer)
        write_network(self.network, folder, config=config, as_adapter=True)
        self.tokenizer.save(
            folder, max_length=self.config.max_length, has_segments=self.kind != "gpt"
        )

    @classmethod
    def _made(cls, manifest: dict[str, Any]) -> Self:
        model = super()._made({**manifest, "preset": manifest["preset"] or "tiny"})
        model.preset = manifest["preset"]  # none, if its training continued that of another size
        return model

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
        if is_own or not ((folder / CONFIG).is_file() or is_adapter(folder)):
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

    @classmethod
    def _opened(cls, pretrained: str | Path | Self) -> Self:
        """The model whose training is continued."""
        model = pretrained if isinstance(pretrained, cls) else cls.load(pretrained)  # type: ignore
        model.trained()
        return model

    def _usual_text(self) -> TextSettings:
        return TextSettings() if self.pretrained is None else self.pretrained.text

    def _sizes(self, preset: str, options: dict[str, Any]) -> Any:
        if self.pretrained is None:
            return super()._sizes(preset, options)
        config = self.pretrained.config
        for name, value in options.items():
            if name not in _FREE_SIZES and value != getattr(config, name):
                raise OptionError(f"{name} is that of the model to continue: leave it out.")
        return changed(config, type(self).__name__, options)

    def objective(self) -> Any:
        """The network with its objective."""
        raise NotImplementedError

    def source(self, store: Any, split: Split, length: int = 0) -> Any:
        """The batches of a split of a text; `length` replaces that of the options."""
        raise NotImplementedError

    short_length = 0  # of the rows that a schedule starts with

    def schedule(self) -> Schedule | None:
        """How batches change over a run, if they do."""
        return None

    def rows_of(self, length: int) -> int:
        """The rows per batch whose tokens are as many as those of full length."""
        training = self.training
        return max(1, training.batch_size * training.length // length)


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
        is_whole = tokenizer.kind == "wordpiece" or text.startswith(" ")
        if tokenizer.kind == "unigram":
            is_whole = tokenizer.token(token_id).startswith("▁")
        if is_whole or is_ideograph:
            word = text.strip()
            is_word = any(map(str.isalnum, word)) and "\ufffd" not in word
            if is_word and not UNUSED.fullmatch(word):
                found.setdefault(word, token_id)
    return found
