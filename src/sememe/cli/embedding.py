"""From texts to rows of vectors, whatever the model: what the command `embed` drives."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sememe.cli.opening import open_network
from sememe.errors import ArtifactError, OptionError

if TYPE_CHECKING:
    from sememe.networks.features import WordsInContext
    from sememe.text.settings import TextSettings


# Kinds that have no vectors to give, each with what to do instead.
_REFUSED = {
    "ngram": "n-grams are counted and have no vectors; train nnlm, word2vec or another model",
    "task": "it was fine-tuned over a model of words, whose own folder gives vectors",
    "tokenizer": "a tokenizer has no vectors; train bert or gpt with it",
    "fasttext-classifier": "a classifier tells labels; sememe predict asks it",
    "tokens": "it is a text as ids, and no model",
    "subwords": "it is a text as ids, and no model",
}


class Embedded(NamedTuple):
    """The rows of one text, the words they belong to, and whether the model knew none of it."""

    rows_ND: np.ndarray
    words: list[str]
    is_unknown: bool


class Embedder(NamedTuple):
    """Gives the rows of texts; `has_words` if each row belongs to a word."""

    embed: Callable[[Sequence[str]], Iterator[Embedded]]
    has_words: bool

    def __call__(self, texts: Sequence[str]) -> Iterator[Embedded]:
        """The rows of each text, in order."""
        return self.embed(texts)


def open_embedder(
    model: Path,
    *,
    layers: str,
    pool: Any,
    language: str,
    keep_case: bool,
    limit: int | None,
    device: str,
) -> Embedder:
    """Open a model of any kind for embedding."""
    from sememe.networks.interchange.layout import CONFIG, find_bilm
    from sememe.storage.folder import manifest_in

    manifest = manifest_in(model)
    settings, kind = _text_settings(manifest, language, keep_case), manifest.get("kind")
    choice = int(layers) if layers.lstrip("-").isdigit() else layers
    if (model / CONFIG).is_file():
        embed = _network_embedder(model, choice, pool, settings, device)
    elif kind == "elmo" or find_bilm(model):
        embed = _elmo_embedder(model, choice, pool, settings, device)
    elif kind == "ulmfit":
        embed = _ulmfit_embedder(model, choice, pool, settings, device)
    elif kind in _REFUSED:
        raise ArtifactError(f"{model} is of kind {kind}: {_REFUSED[kind]}.")
    elif kind in ("transformer", "seq2seq"):
        if layers != "last" or pool == "cls":
            raise OptionError(
                "An encoder of translations gives its last layer, and has no [CLS]: leave --layers "
                "out, and choose pool mean, max or words."
            )
        embed = _translator_embedder(model, pool, device)
    else:
        if layers != "last":
            raise OptionError("Word vectors have no layers: leave --layers out.")
        if pool == "cls":
            raise OptionError("Word vectors have no [CLS]; choose pool mean, max or words.")
        embed = _static_embedder(model, pool, settings, limit)
    return Embedder(embed, pool == "words")


def _text_settings(manifest: dict[str, Any], language: str, keep_case: bool) -> TextSettings:
    """How the model's own text was read, as far as it says, with what the user says instead."""
    from dataclasses import replace

    from sememe.text.settings import TextSettings

    kept = manifest.get("text")
    settings = TextSettings.from_dict(kept) if isinstance(kept, dict) else TextSettings()
    if language and language != settings.language:
        settings = replace(settings, language=language, dictionary="")
    return replace(settings, lowercase=False) if keep_case else settings


def _elmo_embedder(
    model: Path, layers: Any, pool: Any, settings: TextSettings, device: str
) -> Callable[[Sequence[str]], Iterator[Embedded]]:
    from sememe.networks.installed import need_torch

    need_torch()
    from sememe.networks.elmo_model import ELMo
    from sememe.networks.elmo_reading import embed_text_words
    from sememe.networks.interchange.layout import find_bilm
    from sememe.training.precision import choose_device

    if pool == "cls":
        raise OptionError("ELMo has no [CLS]; choose pool mean, max or words.")
    opened = ELMo.load(model).opened
    if not find_bilm(model):  # released weights say nothing of their text
        opened = opened._replace(text=settings)
    opened.network.to(choose_device(device))

    return lambda texts: _of_words(embed_text_words(opened, texts, layers), pool)


def _of_words(found: Sequence[WordsInContext], pool: Any) -> Iterator[Embedded]:
    """Words in context, or texts that are pooled from them."""
    from sememe.networks.word_reading import pooled

    for own in found:
        if pool == "words":
            yield Embedded(own.vectors_WD, own.words, not own.words)
        else:
            yield Embedded(pooled(own.vectors_WD, pool)[None], [], not own.words)


def _ulmfit_embedder(
    model: Path, layers: Any, pool: Any, settings: TextSettings, device: str
) -> Callable[[Sequence[str]], Iterator[Embedded]]:
    from sememe.networks.installed import need_torch

    need_torch()
    from sememe.networks.awd_model import ULMFiT
    from sememe.networks.awd_reading import embed_text_words
    from sememe.training.precision import choose_device

    if pool == "cls":
        raise OptionError("ULMFiT has no [CLS]; choose pool mean, max or words.")
    opened = ULMFiT.load(model)
    opened.text = settings
    opened.network.to(choose_device(device))
    return lambda texts: _of_words(embed_text_words(opened, texts, layers), pool)


def _translator_embedder(
    model: Path, pool: Any, device: str
) -> Callable[[Sequence[str]], Iterator[Embedded]]:
    from sememe.networks.installed import need_torch

    need_torch()
    from sememe.tasks.translation_features import encoded_words
    from sememe.tasks.translation_folder import open_translator

    opened = open_translator(model, device=device)

    def embedded(texts: Sequence[str]) -> Iterator[Embedded]:
        if pool == "words":
            for own in encoded_words(opened, texts):
                yield Embedded(own.vectors_WD, own.words, not own.words)
            return
        for text, row_D in zip(texts, opened.embed(texts, pool=pool), strict=True):
            yield Embedded(row_D[None], [], not text.strip())

    return embedded


def _network_embedder(
    model: Path, layers: Any, pool: Any, settings: TextSettings, device: str
) -> Callable[[Sequence[str]], Iterator[Embedded]]:
    opened = open_network(model, device=device)
    from sememe.networks.features import embed_texts, embed_words

    def texts_embedded(texts: Sequence[str]) -> Iterator[Embedded]:
        for row_D in embed_texts(*opened, texts, layers=layers, pool=pool):
            yield Embedded(row_D[None], [], False)

    def words_embedded(texts: Sequence[str]) -> Iterator[Embedded]:
        spans = None
        if settings.mode == "chinese":
            spans = _chinese_spans(texts, settings, opened[1])
        for own in embed_words(*opened, texts, spans=spans, layers=layers):
            words = [" ".join(word.split()) for word in own.words]
            yield Embedded(own.vectors_WD, words, False)

    return words_embedded if pool == "words" else texts_embedded


def _chinese_spans(
    texts: Sequence[str], settings: TextSettings, tokenizer: Any
) -> list[np.ndarray]:
    """Where rjieba's words lie in each text, (words, 2) in characters; those that hold tokens."""
    from dataclasses import replace

    from sememe.examples.running_words import places_in

    spans = []
    cut = places_in(texts, replace(settings, lowercase=False))
    for places, encoding in zip(cut, tokenizer.encode_batch(texts), strict=True):
        starts, ends = encoding.starts, encoding.ends
        kept = [place for place in places if ((starts < place[1]) & (ends > place[0])).any()]
        spans.append(np.array(kept, np.int64).reshape(-1, 2))
    return spans


def _static_embedder(
    model: Path, pool: Any, settings: TextSettings, limit: int | None
) -> Callable[[Sequence[str]], Iterator[Embedded]]:
    from sememe.vectors import load
    from sememe.vectors.texts import embed_words, known_words

    vectors = load(model, limit)

    def embedded(texts: Sequence[str]) -> Iterator[Embedded]:
        for words in _cut(texts, settings):
            known = known_words(vectors, words)
            if pool == "words":
                yield Embedded(vectors[known], known, not known)
            else:
                yield Embedded(embed_words(vectors, known, pool)[None], [], not known)

    return embedded


def _cut(texts: Sequence[str], settings: TextSettings) -> Iterator[list[str]]:
    """The words of each text; one by one, because a batch leaves out texts without a word."""
    from sememe.text.readers.batches import Batch
    from sememe.text.records import decode_documents
    from sememe.text.stream import segmenter

    with segmenter(settings, 1) as cut:
        for text in texts:
            data = text.encode("utf-8", "replace")
            records = cut(Batch(data, np.array([len(data)]), None))
            sentences = [s for document in decode_documents(records.data) for s in document]
            yield [word for sentence in sentences for word in sentence]
