"""Which questions a text allows: built-in ones, the user's files, or ones made from the text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sememe.errors import InputError, OptionError
from sememe.evaluation.senses.files import SenseSet, find_sets
from sememe.examples.labelled import TextRow, read_answers, read_tags, read_texts
from sememe.ladder.answer_question import AnswerQuestion
from sememe.ladder.context_questions import (
    HiddenQuestion,
    PerplexityQuestion,
    SenseQuestion,
    known_senses,
)
from sememe.ladder.finetuning import FinetunedQuestion
from sememe.ladder.looks import Shown, shown_of
from sememe.ladder.plan import Plan
from sememe.ladder.questions import Question
from sememe.ladder.rungs import Chosen
from sememe.ladder.selfmade import next_sentence_rows, origin_rows
from sememe.ladder.sentence_questions import (
    ClassifyQuestion,
    PairsQuestion,
    SentenceQuestion,
    TagQuestion,
)
from sememe.ladder.text import LadderText
from sememe.ladder.uses import Uses
from sememe.ladder.word_questions import BelongingQuestion, FileQuestion, file_questions
from sememe.progress import SILENT, Reporter

BUILT_IN = {
    "packages": ("packages", "Which package is this docstring of? (Names are hidden.)"),
    "summaries": ("summaries", "Does this summary belong to this text of the same package?"),
    "parameters": ("parameters", "Which words name parameters, and which tell their types?"),
    "types": ("types", "What type is this parameter? The answer is a run of words."),
}
KINDS: dict[str, type[SentenceQuestion]] = {
    own.kind: own for own in (ClassifyQuestion, PairsQuestion, TagQuestion, AnswerQuestion)
}
_FORETELLING = {"ngram", "nnlm", "elmo", "gpt"}
_FINDING = {"bert", "untrained"}
_POOL = 4 / 3  # rows to draw from, over those of one draw
_FEWEST_ROWS = 24
_MOST_WORDS, _MOST_BATCHES = 80_000, 200  # of held-out text: more would not change the figures


class Questions(NamedTuple):
    """All that rungs are asked and looked at for."""

    questions: list[Question]
    uses: Uses
    shown: Shown


def make_questions(
    text: LadderText,
    plan: Plan,
    rungs: Chosen,
    *,
    seeds: int,
    finetune: bool = False,
    words: Sequence[str | Path] | None = None,
    tasks: Mapping[str, tuple[str, str]] | None = None,
    senses: Sequence[str | Path] | None = None,
    reporter: Reporter = SILENT,
) -> Questions:
    """Every question for this text, what is looked at, and the uses of the words in all that."""
    num = plan.num_rows
    asked: list[Question] = []
    in_words: list[FileQuestion | BelongingQuestion] = []
    if words or text.is_built_in:
        in_words += file_questions(list(words) if words else None)
    else:
        in_words.append(_belonging(text, plan, is_unseen=False))
    in_words.append(_belonging(text, plan, is_unseen=True))
    kept = [own for own in in_words if not isinstance(own, BelongingQuestion) or own.rows]
    asked += kept
    if tasks:
        in_sentences = user_questions(tasks, text, plan, seeds)
    elif text.is_built_in:
        in_sentences = _docstring_questions(text, plan, seeds, reporter)
    else:
        in_sentences = _selfmade_questions(text, plan, seeds)
    asked += [FinetunedQuestion(own, num) if finetune else own for own in in_sentences]
    sets = _senses(text, plan, senses)
    if sets:
        asked.append(SenseQuestion(sets))
    # A column that no rung can answer is left out; own models may be of any kind.
    if rungs.paths or _FORETELLING & set(rungs.names):
        asked.append(PerplexityQuestion(text, plan, num_words=min(_MOST_WORDS, 40 * num)))
    if rungs.paths or _FINDING & set(rungs.names):
        asked.append(HiddenQuestion(text, plan, num_batches=max(4, min(_MOST_BATCHES, num // 15))))
    shown = shown_of(text, sets, plan.min_count)
    uses = Uses(
        text, sorted(_in_files(kept) | set(shown.words)),
        num_each=max(2, min(8, num // 60)), num_frequent=min(1_500, 5 * num),
        min_count=plan.min_count,
    )  # fmt: skip
    _tell_apart(asked)
    return Questions(asked, uses, shown)


def _tell_apart(questions: Sequence[Question]) -> None:
    """Number the names of columns that others have too, such as of files in two folders."""
    taken: dict[str, int] = {}
    for question in questions:
        own = question.task
        number = taken[own.name] = taken.get(own.name, 0) + 1
        if number > 1:
            question.task = replace(
                own, name=f"{own.name}-{number}", title=f"{own.title} ({number})"
            )


def _in_files(questions: Sequence[FileQuestion | BelongingQuestion]) -> set[str]:
    """The words that need a vector of their own; those of texts are read by themselves."""
    files = [own for own in questions if isinstance(own, FileQuestion)]
    return {word for own in files for word in own.words}


def _belonging(text: LadderText, plan: Plan, *, is_unseen: bool) -> BelongingQuestion:
    num = max(100, min(400, 2 * plan.num_rows))
    return BelongingQuestion(text, is_unseen=is_unseen, num=num, min_count=plan.min_count)


def _senses(text: LadderText, plan: Plan, given: Sequence[str | Path] | None) -> list[SenseSet]:
    """The ambiguous words that the text has; of each file that the user names, one at least."""
    names = [str(own) for own in given] if given else _sense_sets(text)
    sets = find_sets(names) if names else []
    kept = [known_senses([own], text, plan.min_count) for own in sets]
    for name, own in zip(names, kept, strict=True):
        if given and not own:
            raise InputError(
                f"{name}: none of its ambiguous words is in the text {plan.min_count} times or "
                "more, so that no model can know them."
            )
    return [one for own in kept for one in own]


def _sense_sets(text: LadderText) -> list[str]:
    if text.settings.mode == "chinese":
        return ["chinese"]
    if text.is_built_in:
        return ["python", "docstrings", "english"]
    return ["english"] if text.settings.language.lower().startswith("en") else []


def _docstring_questions(
    text: LadderText, plan: Plan, seeds: int, reporter: Reporter
) -> list[SentenceQuestion]:
    from sememe.examples.docstrings import NAMES, docstring_rows

    found: list[SentenceQuestion] = []
    for name, (title, what) in BUILT_IN.items():
        reporter.note(f"Making the rows of {title}.")
        rows = {
            split: docstring_rows(name, split, packages=text.packages).rows
            for split in ("train", "test")
        }
        found.append(_made(NAMES[name], name, title, what, rows, text, plan, seeds))
    return found


def _made(
    kind: str, name: str, title: str, what: str, rows: Mapping[str, Sequence[Any]],
    text: LadderText, plan: Plan, seeds: int,
) -> SentenceQuestion:  # fmt: skip
    """A question of some of its rows, as many as suit the budget."""
    more: dict[str, Any] = {}
    if kind == "answer":
        rows = {split: [row for row in own if row.answers] for split, own in rows.items()}
        vocabulary = text.words.vocabulary
        more["counts"] = _Counts(vocabulary)
    own: type[SentenceQuestion] = AnswerQuestion if kind == "answer" else KINDS[kind]
    train = _first(rows["train"], round(_POOL * plan.num_rows), plan.max_characters)
    test = _first(rows["test"], max(200, plan.num_rows), plan.max_characters)
    if len(train) < _FEWEST_ROWS // 2 or not test:
        raise InputError(f"{title}: {len(train)} rows to learn from and {len(test)} to ask.")
    return own(name, title, what, train, test, text.settings, seeds=seeds, **more)


def _first(rows: Sequence[Any], num: int, max_characters: int) -> list[Any]:
    """The first rows, fewer where they are long."""
    kept: list[Any] = []
    num_characters = 0
    for row in rows[:num]:
        text = getattr(row, "context", None) or getattr(row, "text", None) or ""
        num_characters += len(text) or sum(map(len, row.words))
        if kept and num_characters > max_characters:
            break
        kept.append(row)
    return kept


class _Counts:
    """How often words were read, as a dict would tell it."""

    def __init__(self, vocabulary: Any) -> None:
        self._vocabulary = vocabulary

    def get(self, word: str, default: int = 0) -> int:
        """The count of a word."""
        found = self._vocabulary.find(word)
        return int(self._vocabulary.counts[found]) if found >= 0 else default


# ---- the user's files ---------------------------------------------------------------------------


def parse_tasks(given: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Read KIND=TRAIN,TEST, such as classify=train.tsv,dev.tsv; a name may stand before: news:…."""
    found: dict[str, tuple[str, str]] = {}
    for item in given:
        kind, mark, places = item.partition("=")
        train, comma, test = places.partition(",")
        if not (mark and comma and train and test) or kind.split(":")[-1] not in KINDS:
            raise OptionError(
                f"--task must be a kind and two files, such as classify=train.tsv,dev.tsv, "
                f"not {item!r}; the kinds are {', '.join(KINDS)}."
            )
        if kind in found:
            raise OptionError(
                f"--task {kind} is given twice: put a name before it, such as news:{kind}=…."
            )
        found[kind] = (train.strip(), test.strip())
    return found


_WHAT = {
    "classify": "Which label has this text?",
    "pairs": "Which label has this pair of texts?",
    "tag": "Which words are names, and of what kind?",
    "answer": "Where in the passage is the answer?",
}


def user_questions(
    tasks: Mapping[str, tuple[str, str]], text: LadderText, plan: Plan, seeds: int
) -> list[SentenceQuestion]:
    """The questions of labelled files."""
    found: list[SentenceQuestion] = []
    for key, places in tasks.items():
        name, _, kind = key.rpartition(":")
        rows = {
            split: read_rows(kind, place)
            for split, place in zip(("train", "test"), places, strict=True)
        }
        title = name or Path(places[0]).stem
        question = _made(kind, name or kind, title, _WHAT[kind], rows, text, plan, seeds)
        question.task = replace(question.task, is_named=True)
        found.append(question)
    return found


def read_rows(kind: str, place: str) -> list[Any]:
    """The labelled rows of a file, in an order that makes the first ones a sample.

    Many files are sorted by label: their first rows have one label only.
    """
    if kind == "tag":
        rows: list[Any] = read_tags([place]).rows
    elif kind == "answer":
        rows = read_answers([place]).rows
    else:
        rows = read_texts([place], kind=kind).rows  # type: ignore[arg-type]
    return [rows[index] for index in np.random.default_rng(1).permutation(len(rows)).tolist()]


# ---- from the text itself -----------------------------------------------------------------------


def _selfmade_questions(text: LadderText, plan: Plan, seeds: int) -> list[SentenceQuestion]:
    num = round(_POOL * plan.num_rows), max(200, plan.num_rows)
    found: list[SentenceQuestion] = []
    makers = (
        ("pairs", "next", "next sentence", next_sentence_rows,
         "Does this sentence follow that one, or is it from another document?"),
        ("classify", "origin", "document of origin", origin_rows,
         "Which of some held-out documents is this passage from?"),
    )  # fmt: skip
    for kind, name, title, make, what in makers:
        train, test = make(text, *num)
        if len(train) >= _FEWEST_ROWS and len(test) >= _FEWEST_ROWS // 2:
            rows: dict[str, list[TextRow]] = {"train": train, "test": test}
            found.append(_made(kind, name, title, what, rows, text, plan, seeds))
    return found


def stamped(path: str | Path) -> list[Any]:
    """What identifies the questions under a path: its name, the size and time of every file."""
    folder = Path(path)
    files = sorted(folder.rglob("*")) if folder.is_dir() else [folder]
    stats = [file.stat() for file in files if file.is_file()]
    return [str(path), *([stat.st_size, stat.st_mtime_ns] for stat in stats)]
