"""What there is to see of each rung: words on a plane, neighbors, an ambiguous word, attention."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from sememe.evaluation.files import BUILT_IN as QUESTION_FILES
from sememe.evaluation.files import read_groups
from sememe.evaluation.senses.files import Occurrence, SenseSet
from sememe.ladder.questions import Interview
from sememe.ladder.reading import Reader, cut
from sememe.ladder.results import (
    AttentionLook,
    ContextsLook,
    Looks,
    NearWord,
    Rung,
    Use,
    UsePoint,
    WordPoint,
    WordsLook,
)
from sememe.ladder.sentences import sentences_of
from sememe.ladder.text import LadderText
from sememe.plots.projection import project
from sememe.vectors import WordVectors
from sememe.vectors.search import unit_rows

_GROUPS = ("colors", "trigonometry", "statistics", "files", "networks", "containers", "training")
_WORDS = ("array", "matrix", "function", "error", "file", "gradient")
_CHINESE = ("中国", "大学", "音乐", "战争", "科学", "城市")
_ENGLISH = ("king", "city", "music", "war", "science", "river")
_AMBIGUOUS = ("key", "bank", "苹果")
_FEWEST_SHOWN, _MOST_SHOWN = 7, 14  # words of a sentence whose attention is drawn
_NUM_NEIGHBORS, _FREQUENT, _NUM_FREQUENT = 6, 150, 24
_SENTENCE = {
    "python": "the function returns the index of the first element of the array",
    "english": "the king of the country lived in the largest city near the river",
    "chinese": "中国最大的城市里有许多大学",
}


class Shown(NamedTuple):
    """What is looked at in every rung."""

    groups: dict[str, list[str]]
    neighbors: list[str]
    word: str
    uses: list[Occurrence]
    sentence: str

    @property
    def words(self) -> list[str]:
        """All single words."""
        return [*self.neighbors, *(word for own in self.groups.values() for word in own)]


def shown_of(text: LadderText, sets: Sequence[SenseSet], min_count: int) -> Shown:
    """Choose what to look at: words that the text holds often enough."""
    vocabulary = text.words.vocabulary

    def known(words: Iterable[str]) -> list[str]:
        ids = {word: vocabulary.find(word) for word in words}
        return [w for w, i in ids.items() if i >= 0 and vocabulary.counts[i] >= 4 * min_count]

    is_chinese = text.settings.mode == "chinese"
    first = min(_FREQUENT, len(vocabulary) // 10)
    frequent = [word for word in vocabulary[first : first + 400] if _is_shown(word)]
    groups = {}
    if text.is_built_in:
        content = read_groups(QUESTION_FILES / "groups.txt")
        own = {name: known(row) for name, row in zip(content.sections, content.rows, strict=True)}
        groups = {name: own[name] for name in _GROUPS if len(own.get(name, [])) >= 3}
    if not groups:
        groups = {"frequent words": known(frequent)[:_NUM_FREQUENT]}
    wanted = _WORDS if text.is_built_in else _CHINESE if is_chinese else _ENGLISH
    word = next((one for one in _AMBIGUOUS for own in sets if one in own.words), "")
    uses = [one for own in sets for one in own.occurrences if word and one.word == word]
    neighbors = known(wanted)[:_NUM_NEIGHBORS] or known(frequent)[:3]
    return Shown(groups, neighbors, word, uses, _sentence(text))


def _sentence(text: LadderText) -> str:
    """A sentence in the language of the text; in one that we wrote none in, of its own."""
    if text.is_built_in:
        return _SENTENCE["python"]
    if text.settings.mode == "chinese":
        return _SENTENCE["chinese"]
    if text.settings.language.lower().startswith("en"):
        return _SENTENCE["english"]
    found = _SENTENCE["english"]
    for document in text.heldout_documents():
        for own in cut(sentences_of(document[:10_000], text.settings), text.settings):
            if _FEWEST_SHOWN <= len(own.words) <= _MOST_SHOWN:
                return own.text.strip()
            found = " ".join(own.words[:_MOST_SHOWN]) or found
    return found


def _is_shown(word: str) -> bool:
    return word.isalpha() and (len(word) > 3 or (len(word) > 1 and word > "\u2e80"))


def look_at(interview: Interview, shown: Shown, text: LadderText) -> Looks:
    """What one rung shows."""
    looks, name = Looks(), interview.rung.name
    vectors = None if interview.is_one_hot else interview.word_vectors
    if vectors is not None:
        looks = _with_words(looks, name, vectors, shown)
        looks = _with_neighbors(looks, name, vectors, shown)
    if interview.opened.reader is not None and shown.uses and not interview.is_one_hot:
        looks = _with_contexts(looks, name, interview.opened.reader, shown, text)
    if interview.opened.kind == "bert" and interview.rung.name != "untrained":
        looks = replace(looks, attention=_attention(interview.rung, interview, shown.sentence))
    return looks


def _with_words(looks: Looks, name: str, vectors: WordVectors, shown: Shown) -> Looks:
    members = [(word, g) for g, own in shown.groups.items() for word in own if word in vectors]
    if len(members) < 3:
        return looks
    points_N2, _ = project(unit_rows(np.asarray(vectors[[word for word, _ in members]])))
    points = [
        WordPoint(word, group, _short(x), _short(y))
        for (word, group), (x, y) in zip(members, points_N2.tolist(), strict=True)
    ]
    look = looks.pca or WordsLook(groups=shown.groups, points={})
    return replace(looks, pca=replace(look, points={**look.points, name: points}))


def _with_neighbors(looks: Looks, name: str, vectors: WordVectors, shown: Shown) -> Looks:
    found = dict(looks.neighbors)
    for word in shown.neighbors:
        if word in vectors:
            near = vectors.neighbors(word, num=_NUM_NEIGHBORS)
            rows = [NearWord(str(one[0]), _short(float(one[1]))) for one in near]
            found[word] = {**found.get(word, {}), name: rows}
    return replace(looks, neighbors=found)


def _with_contexts(
    looks: Looks, name: str, reader: Reader, shown: Shown, text: LadderText
) -> Looks:
    rows: list[np.ndarray | None] = []
    texts = cut([one.sentence for one in shown.uses], text.settings)
    words_ND, first = np.asarray(reader.read(texts)), 0
    # Side by side stand several layers; the last one is what a network makes of the word.
    last = reader.dim // max(1, reader.num_layers)
    for one, own in zip(shown.uses, texts, strict=True):
        inside = np.flatnonzero((own.starts < one.end) & (own.ends > one.start))
        rows.append(words_ND[first + inside, -last:].mean(0) if len(inside) else None)
        first += len(own.words)
    kept = [(index, row) for index, row in enumerate(rows) if row is not None]
    if len(kept) < 3:
        return looks
    points_N2, _ = project(unit_rows(np.stack([row for _, row in kept])))
    points = [
        UsePoint(index, shown.uses[index].sense, _short(x), _short(y))
        for (index, _), (x, y) in zip(kept, points_N2.tolist(), strict=True)
    ]
    look = looks.contexts or ContextsLook(
        word=shown.word,
        sentences=[Use(one.sentence, one.sense, one.start, one.end) for one in shown.uses],
        points={},
    )
    return replace(looks, contexts=replace(look, points={**look.points, name: points}))


def _attention(rung: Rung, interview: Interview, sentence: str) -> AttentionLook:
    """The head that looks most at single tokens other than marks and itself."""
    from sememe.networks.inspection import attention_maps

    opened = interview.opened
    maps = attention_maps(opened.network, opened.tokenizer, sentence)
    weights_LHTS = np.asarray(maps.weights_LHTS, np.float64)
    inner = weights_LHTS[:, :, 1:-1, 1:-1] * (1 - np.eye(len(maps.tokens) - 2))
    sharpness_LH = inner.max(-1).mean(-1)
    layer, head = np.unravel_index(int(sharpness_LH.argmax()), sharpness_LH.shape)
    rows = weights_LHTS[layer, head]
    return AttentionLook(
        rung=rung.name, layer=int(layer) + 1, head=int(head) + 1, tokens=maps.tokens,
        weights=[[_short(x) for x in row] for row in rows.tolist()],
    )  # fmt: skip


def _short(value: float) -> float:
    return round(float(value), 4)
