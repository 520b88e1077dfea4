"""The text and the labelled rows that golden models learn from: a small grammar, no randomness."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

ANIMALS = ("cat", "dog", "horse", "bird", "fox", "mouse")
PEOPLE = ("king", "queen", "farmer", "teacher", "child", "doctor")
QUALITIES = ("old", "young", "clever", "tired", "happy", "quiet")
ACTIONS = ("sees", "follows", "likes", "paints", "feeds", "remembers")
PLACES = ("garden", "palace", "river", "market", "school", "forest")
TIMES = ("in the morning", "at night", "after lunch", "every day", "in winter")
GOOD, BAD = ("good", "great", "lovely", "fine"), ("bad", "poor", "awful", "dull")
THINGS = ("film", "story", "song", "book")

CHINESE_PEOPLE = ("国王", "老师", "孩子", "医生", "农民")
CHINESE_ACTIONS = ("喜欢", "看见", "记得", "画", "寻找")
CHINESE_THINGS = ("苹果", "小猫", "花园", "学校", "音乐", "自然语言")
CHINESE_TIMES = ("早上", "晚上", "冬天", "每天")

GERMAN = {
    "cat": "Katze", "dog": "Hund", "bird": "Vogel", "king": "König", "child": "Kind",
    "sees": "sieht", "likes": "mag", "follows": "verfolgt", "the": "das", "old": "alte",
}  # fmt: skip


def numbers() -> Callable[[Sequence[str]], str]:
    """A choice among words that differs from call to call and is the same in every run."""
    state = 7

    def choose(words: Sequence[str]) -> str:
        nonlocal state
        state = (state * 1_103_515_245 + 12_345) % 2**31
        return words[(state >> 12) % len(words)]

    return choose


def english(num_paragraphs: int = 90) -> str:
    """Paragraphs of four or five sentences, each about one person and one animal."""
    one, paragraphs = numbers(), []
    for index in range(num_paragraphs):
        person, animal = one(PEOPLE), one(ANIMALS)
        lines = [
            f"The {one(QUALITIES)} {person} {one(ACTIONS)} a {animal} {one(TIMES)}.",
            f"A {animal} {one(ACTIONS)} the {one(QUALITIES)} {one(ANIMALS)} "
            f"near the {one(PLACES)}.",
            f"The {person} and the {one(PEOPLE)} walk to the {one(PLACES)} {one(TIMES)}.",
            f"It is a {one(GOOD)} {one(THINGS)} about the {animal} and the {one(PLACES)}.",
        ]
        if index % 9 == 0:  # rare and always together: a phrase
            lines.append(f"Nobody in New York {one(ACTIONS)} the {one(ANIMALS)}.")
        paragraphs.append("\n".join(lines))
    return "\n\n".join(paragraphs) + "\n"


def held_out() -> str:
    """Sentences that no model has learned, one word of them unknown."""
    return "The clever dog follows a king at night.\nA giraffe likes the quiet river.\n"


def chinese(num_lines: int = 60) -> str:
    """Sentences about people and things, one a line."""
    one = numbers()
    lines = [
        f"{one(CHINESE_TIMES)}{one(CHINESE_PEOPLE)}{one(CHINESE_ACTIONS)}{one(CHINESE_THINGS)},"
        f"{one(CHINESE_PEOPLE)}也{one(CHINESE_ACTIONS)}{one(CHINESE_THINGS)}。"
        for _ in range(num_lines)
    ]
    return "\n".join(lines) + "\n"


def opinions() -> list[tuple[str, str]]:
    """Texts with labels: one word decides."""
    return [
        (f"the {word} {thing} about the {place}", label)
        for label, words in (("good", GOOD), ("bad", BAD))
        for word in words
        for thing, place in zip(THINGS, PLACES, strict=False)
    ]


def translations() -> list[tuple[str, str]]:
    """English sentences with German words in their places."""
    return [
        (" ".join(words), " ".join(GERMAN[word] for word in words))
        for subject in ("cat", "dog", "bird")
        for action in ("sees", "likes", "follows")
        for thing in ("king", "child", "bird")
        for words in [("the", "old", subject, action, "the", thing)]
    ]


def _table(*columns: str, rows: Sequence[Sequence[object]]) -> str:
    lines = ["\t".join(map(str, row)) for row in (columns, *rows)]
    return "\n".join(lines) + "\n"


def _tagged() -> str:
    sentences = []
    for animal, person, place in zip(ANIMALS * 2, PEOPLE * 2, PLACES * 2, strict=True):
        tags = (("the", "O"), (person, "B-PERSON"), ("sees", "O"), ("a", "O"), (animal, "B-ANIMAL"))
        more = (("near", "O"), ("the", "O"), (place, "B-PLACE"))
        sentences.append("".join(f"{word} {tag}\n" for word, tag in (*tags, *more)))
    return "\n".join(sentences) + "\n"


def _questions() -> str:
    rows = [
        {
            "question": f"where is the {animal}",
            "context": f"the {person} walks and the {animal} sleeps in the {place}",
            "answer": f"in the {place}",
        }
        for animal, person, place in zip(ANIMALS, PEOPLE, PLACES, strict=True)
    ]
    return "".join(json.dumps(row) + "\n" for row in rows * 2)


def texts() -> dict[str, str]:
    """Every file by name."""
    pairs = [
        (f"the {animal} sleeps", f"the {other} sleeps", "same" if animal == other else "other")
        for animal in ANIMALS[:4]
        for other in (animal, ANIMALS[(ANIMALS.index(animal) + 1) % 4])
    ] * 2
    scores = [("a review", text, 5.0 if label == "good" else 1.5)
              for text, label in opinions()]  # fmt: skip
    choices = [
        (f"the {animal} of the {person} sleeps", f"a {animal}", f"a {place}", 0)
        for animal, person, place in zip(ANIMALS, PEOPLE, PLACES, strict=True)
    ] + [(f"the way to the {place}", f"a {animal}", f"a {place}", 1)
         for animal, place in zip(ANIMALS, PLACES, strict=True)]  # fmt: skip
    return {
        "english.txt": english(),
        "held-out.txt": held_out(),
        "chinese.txt": chinese(),
        "opinions.tsv": _table("text", "label", rows=opinions()),
        "labelled.txt": "".join(f"__label__{label} {text}\n" for text, label in opinions()),
        "plain.txt": "the great film about the river\nan awful song about a king\n",
        "pairs.tsv": _table("text", "second", "label", rows=pairs),
        "scores.tsv": _table("text", "second", "score", rows=scores),
        "choices.tsv": _table("text", "choice1", "choice2", "label", rows=choices),
        "tags.txt": _tagged(),
        "questions.jsonl": _questions(),
        "pairs.en": "".join(f"{source}\n" for source, _ in translations()),
        "pairs.de": "".join(f"{target}\n" for _, target in translations()),
    }


def write(folder: Path) -> None:
    """Write every file into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts().items():
        (folder / name).write_text(text, encoding="utf-8")
