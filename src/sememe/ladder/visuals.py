"""Visuals of each rung: projected words, neighbors, an ambiguous word, attention."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from sememe.contract import Model
from sememe.evaluation.question_files import BUILT_IN as QUESTION_FILES, read_questions
from sememe.evaluation.senses import Occurrence, SenseSet
from sememe.ladder.reading import Reader, RungModel, cut
from sememe.ladder.results import (
    AttentionVisual,
    ContextsVisual,
    NearWord,
    Use,
    UsePoint,
    Visuals,
    WordPoint,
    WordsVisual,
)
from sememe.ladder.rungs import SPECS
from sememe.ladder.text import LadderText, sentences_of
from sememe.plots.projection import project
from sememe.vectors.search import unit_rows

_GROUPS = {
    "english": (
        "colors", "trigonometry", "statistics", "files", "networks", "containers", "training",
    ),
    "chinese": ("国家", "动物", "颜色", "行星", "乐器", "疾病", "宗教"),
}  # fmt: skip
_WORDS = ("array", "matrix", "function", "error", "file", "gradient")
_CHINESE = ("中国", "大学", "音乐", "战争", "科学", "城市")
_ENGLISH = ("king", "city", "music", "war", "science", "river")
_AMBIGUOUS = ("key", "bank", "苹果")
_FEWEST_SHOWN, _MOST_SHOWN = 7, 14  # words of a sentence whose attention is drawn
_NUM_NEIGHBORS, _FREQUENT, _NUM_FREQUENT, _MOST_MEMBERS = 6, 150, 24, 6
_SENTENCE = {
    "python": "the function returns the index of the first element of the array",
    "english": "the king of the country lived in the largest city near the river",
    "chinese": "中国最大的城市里有许多大学",
}


class Shown(NamedTuple):
    """What is shown for every rung."""

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
    """Choose what to show: words that occur often enough in the text."""
    vocabulary = text.words.vocabulary

    def known(words: Iterable[str]) -> list[str]:
        ids = {word: vocabulary.find(word) for word in words}
        return [w for w, i in ids.items() if i >= 0 and vocabulary.counts[i] >= 4 * min_count]

    first = min(_FREQUENT, len(vocabulary) // 10)
    frequent = [
        word
        for word in vocabulary[first : first + 400]
        if word.isalpha() and (len(word) > 3 or (len(word) > 1 and word > "\u2e80"))
    ]
    groups, is_chinese = {}, text.settings.mode == "chinese"
    if text.is_built_in or is_chinese:
        language = "chinese" if is_chinese else "english"
        content = read_questions(QUESTION_FILES / language / "groups.txt", "groups")
        own = {name: known(row) for name, row in zip(content.sections, content.rows, strict=True)}
        found = {name: own.get(name, [])[:_MOST_MEMBERS] for name in _GROUPS[language]}
        groups = {name: words for name, words in found.items() if len(words) >= 3}
    if not groups:
        groups = {"frequent words": known(frequent)[:_NUM_FREQUENT]}
    wanted = _WORDS if text.is_built_in else _CHINESE if is_chinese else _ENGLISH
    word = next((one for one in _AMBIGUOUS for own in sets if one in own.words), "")
    uses = [one for own in sets for one in own.occurrences if word and one.word == word]
    neighbors = known(wanted)[:_NUM_NEIGHBORS] or known(frequent)[:3]
    return Shown(groups, neighbors, word, uses, _sentence(text))


def _sentence(text: LadderText) -> str:
    """A sentence in the language of the text; if we have none, one from the text."""
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


def collect_visuals(rung_model: RungModel, shown: Shown, text: LadderText) -> Visuals:
    """Collect the visuals of one rung."""
    name, spec = rung_model.rung.name, SPECS.get(rung_model.rung.name)
    pca = contexts = attention = None
    neighbors: dict[str, dict[str, list[NearWord]]] = {}
    vectors = None if rung_model.is_one_hot else rung_model.word_vectors
    if vectors is not None:
        members = [(word, g) for g, own in shown.groups.items() for word in own if word in vectors]
        points = _on_plane([vectors[word] for word, _ in members])
        if points:
            found = [WordPoint(*own, *place) for own, place in zip(members, points, strict=True)]
            pca = WordsVisual(groups=shown.groups, points={name: found})
        for word in shown.neighbors:
            if word in vectors:
                near = vectors.neighbors(word, num=_NUM_NEIGHBORS)
                neighbors[word] = {name: [NearWord(str(one[0]), _short(one[1])) for one in near]}
    if rung_model.reader is not None and shown.uses and not rung_model.is_one_hot:
        contexts = _contexts(name, rung_model.reader, shown, text)
    # For models that see both sides; an untrained one has nothing to show.
    if rung_model.can("attention") and rung_model.can("fill") and (not spec or spec.is_trained):
        attention = _attention(name, rung_model.model, shown.sentence)
    return Visuals(pca=pca, neighbors=neighbors, contexts=contexts, attention=attention)


def _on_plane(rows: list[np.ndarray]) -> list[tuple[float, float]]:
    """Project vectors by their principal components; needs at least three."""
    if len(rows) < 3:
        return []
    points_N2, _ = project(unit_rows(np.stack(rows)))
    return [(_short(x), _short(y)) for x, y in points_N2.tolist()]


def _contexts(name: str, reader: Reader, shown: Shown, text: LadderText) -> ContextsVisual | None:
    texts = cut([one.sentence for one in shown.uses], text.settings)
    words_ND, first = np.asarray(reader.read(texts)), 0
    rows = {}
    for index, (one, own) in enumerate(zip(shown.uses, texts, strict=True)):
        inside = np.flatnonzero((own.starts < one.end) & (own.ends > one.start))
        if len(inside):  # the last layer, which is what a network makes of the word
            rows[index] = words_ND[first + inside, -reader.last_dim :].mean(0)
        first += len(own.words)
    places = _on_plane(list(rows.values()))
    if not places:
        return None
    points = [
        UsePoint(index, shown.uses[index].sense, *place)
        for index, place in zip(rows, places, strict=True)
    ]
    sentences = [Use(one.sentence, one.sense, one.start, one.end) for one in shown.uses]
    return ContextsVisual(word=shown.word, sentences=sentences, points={name: points})


def _attention(name: str, model: Model, sentence: str) -> AttentionVisual:
    """The head whose tokens have the most weight on one other token, special ones aside."""
    maps = model.attention(sentence)
    weights_LHTS = np.asarray(maps.weights_LHTS, np.float64)
    inner = weights_LHTS[:, :, 1:-1, 1:-1] * (1 - np.eye(len(maps.tokens) - 2))
    sharpness_LH = inner.max(-1).mean(-1)
    layer, head = np.unravel_index(int(sharpness_LH.argmax()), sharpness_LH.shape)
    return AttentionVisual(
        rung=name, layer=int(layer) + 1, head=int(head) + 1, tokens=maps.tokens,
        weights=[[_short(x) for x in row] for row in weights_LHTS[layer, head].tolist()],
        num_heads=sharpness_LH.size, share=_short(sharpness_LH.max()),
    )  # fmt: skip


def _short(value: float) -> float:
    return round(float(value), 4)
