"""The tasks that a text allows: built-in ones, the user's files, or generated from the text."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sememe.errors import InputError, OptionError
from sememe.evaluation.senses import SenseSet, find_sets
from sememe.examples.docstring_tasks import NAMES, docstring_rows
from sememe.examples.labelled.answers import read_answers
from sememe.examples.labelled.rows import TextRow
from sememe.examples.labelled.tags import read_tags
from sememe.examples.labelled.texts import read_texts
from sememe.ladder.context_questions import (
    HiddenQuestion,
    PerplexityQuestion,
    SenseQuestion,
    known_senses,
)
from sememe.ladder.plan import LadderPlan
from sememe.ladder.reading import Question, Uses
from sememe.ladder.retrieval_question import RetrievalQuestion, retrieval_pairs
from sememe.ladder.rungs import SPECS, Chosen
from sememe.ladder.sentence_questions import (
    AnswerQuestion,
    ClassifyQuestion,
    FinetunedQuestion,
    PairsQuestion,
    SentenceQuestion,
    TagQuestion,
)
from sememe.ladder.text import LadderText, sentences_of
from sememe.ladder.visuals import Shown, shown_of
from sememe.ladder.word_questions import BelongingQuestion, chinese_questions, file_questions
from sememe.progress import SILENT, Reporter

FOLLOWS, OTHER = "follows", "other"
_FEWEST_CHARACTERS = {"chinese": 8, "unicode": 25, "whitespace": 25}
_MOST_CHARACTERS = 300
_SENTENCES = 2  # of a passage
_MOST_DOCUMENTS = 20
_FEWEST_PASSAGES = 12
_TEST_SHARE = 0.3


def _documents(text: LadderText, most_characters: int = 20_000_000) -> Iterator[list[str]]:
    """The sentences of held-out documents that are long enough to be useful."""
    fewest, num = _FEWEST_CHARACTERS[text.settings.mode], 0
    for document in text.heldout_documents():
        num += len(document)
        sentences = (one.strip() for one in sentences_of(document[:100_000], text.settings))
        yield [one[:_MOST_CHARACTERS] for one in sentences if len(one) >= fewest]
        if num > most_characters:
            return


def next_sentence_rows(
    text: LadderText, num_train: int, num_test: int
) -> tuple[list[TextRow], list[TextRow]]:
    """Sentence pairs, half of them consecutive; rows of a document stay together."""
    rng = np.random.default_rng(text.settings.lowercase + 1)
    documents = [own for own in _documents(text, 4_000_000) if len(own) > 1]
    if len(documents) < 4:
        return [], []
    share = min(0.5, num_test / (num_train + num_test))
    num_held = max(2, round(share * len(documents)))
    train = _pairs(documents[num_held:], num_train, rng)
    return train, _pairs(documents[:num_held], num_test, rng)


def _pairs(documents: list[list[str]], num: int, rng: np.random.Generator) -> list[TextRow]:
    if len(documents) < 2:
        return []
    places = [(d, s) for d, own in enumerate(documents) for s in range(0, len(own) - 1, 2)]
    rows = []
    for index, place in enumerate(rng.permutation(len(places))[:num].tolist()):
        document, sentence = places[place]
        own = documents[document]
        if index % 2:
            second, label = own[sentence + 1], FOLLOWS
        else:
            other = int(rng.integers(len(documents) - 1))
            chosen = documents[other + (other >= document)]
            second, label = chosen[int(rng.integers(len(chosen)))], OTHER
        rows.append(TextRow(text=own[sentence], second=second, label=label))
    return rows


def origin_rows(
    text: LadderText, num_train: int, num_test: int
) -> tuple[list[TextRow], list[TextRow]]:
    """Passages of the longest held-out documents; the last ones of each are test rows."""
    documents = sorted(_documents(text), key=len, reverse=True)[:_MOST_DOCUMENTS]
    kept = [own for own in documents if len(own) >= _SENTENCES * _FEWEST_PASSAGES]
    if len(kept) < 2:
        return [], []
    train, test = [], []
    for number, sentences in enumerate(kept):
        passages = [
            " ".join(sentences[first : first + _SENTENCES])
            for first in range(0, len(sentences) - _SENTENCES + 1, _SENTENCES)
        ]
        num_asked = round(_TEST_SHARE * len(passages))
        rows = [TextRow(text=one, label=f"document {number + 1}") for one in passages]
        train += rows[: -num_asked or None]
        test += rows[len(rows) - num_asked :]
    rng = np.random.default_rng(1)
    train = [train[index] for index in rng.permutation(len(train))[:num_train]]
    test = [test[index] for index in rng.permutation(len(test))[:num_test]]
    return train, test


BUILT_IN = {
    "packages": "Which package is this docstring of? (Names are hidden.)",
    "summaries": "Does this summary belong to this text of the same package?",
    "parameters": "Which words name parameters, and which tell their types?",
    "types": "What type is this parameter? The answer is a run of words.",
}
KINDS: dict[str, type[SentenceQuestion]] = {
    own.kind: own for own in (ClassifyQuestion, PairsQuestion, TagQuestion, AnswerQuestion)
}
_POOL = 4 / 3  # rows to draw from, over those of one draw
_FEWEST_ROWS = 24
_MOST_PAIRS = 400  # of retrieval
_MOST_WORDS, _MOST_BATCHES = 80_000, 200  # of held-out text: more would not change the scores


class LadderQuestions(NamedTuple):
    """All tasks and visuals of the rungs."""

    questions: list[Question]
    uses: Uses
    shown: Shown


def make_questions(
    text: LadderText,
    plan: LadderPlan,
    rungs: Chosen,
    *,
    seeds: int,
    finetune: bool = False,
    words: Sequence[str | Path] | None = None,
    tasks: Mapping[str, tuple[str, str]] | None = None,
    senses: Sequence[str | Path] | None = None,
    reporter: Reporter = SILENT,
) -> LadderQuestions:
    """All tasks and visuals for this text, and the uses of the words in them."""
    num = plan.num_rows
    if words or text.is_built_in:
        files = file_questions(words or None)
    else:
        files = chinese_questions(text, plan.min_count) if text.settings.mode == "chinese" else []
    asked: list[Question] = [*files]
    for is_unseen in (True,) if files else (False, True):
        own = BelongingQuestion(
            text, is_unseen=is_unseen, num=max(100, min(400, 2 * num)), min_count=plan.min_count
        )
        asked += [own] if own.rows else []
    if tasks:
        in_sentences = user_questions(tasks, text, plan, seeds)
    elif text.is_built_in:
        in_sentences = _docstring_questions(text, plan, seeds, reporter)
    else:
        in_sentences = _selfmade_questions(text, plan, seeds)
    asked += [FinetunedQuestion(own, num) if finetune else own for own in in_sentences]
    if not tasks:
        heldout = [] if text.is_built_in else list(_documents(text, 2_000_000))
        pairs = retrieval_pairs(text, heldout, max(100, min(_MOST_PAIRS, num)))
        asked += [RetrievalQuestion(text, pairs)] if pairs else []
    sets = _senses(text, plan, senses)
    asked += [SenseQuestion(sets)] if sets else []
    # A column that no rung can answer is omitted; own models may be of any kind.
    specs = [SPECS[name] for name in rungs.names]
    if rungs.paths or any(spec.can("score") for spec in specs):
        asked.append(PerplexityQuestion(text, plan, num_words=min(_MOST_WORDS, 40 * num)))
    if rungs.paths or any(spec.can("fill") for spec in specs):
        asked.append(HiddenQuestion(text, plan, num_batches=max(4, min(_MOST_BATCHES, num // 15))))
    shown = shown_of(text, sets, plan.min_count)
    uses = Uses(  # of the words that need a vector of their own; those of texts are read alone
        text, sorted({*shown.words, *(word for own in files for word in own.words)}),
        num_each=max(2, min(8, num // 60)), num_frequent=min(1_500, 5 * num),
        min_count=plan.min_count,
    )  # fmt: skip
    _tell_apart(asked)
    return LadderQuestions(asked, uses, shown)


def _tell_apart(questions: Sequence[Question]) -> None:
    """Number column names that are not unique, such as files of two folders."""
    taken: dict[str, int] = {}
    for question in questions:
        own = question.task
        number = taken[own.name] = taken.get(own.name, 0) + 1
        if number > 1:
            question.task = replace(
                own, name=f"{own.name}-{number}", title=f"{own.title} ({number})"
            )


def _senses(
    text: LadderText, plan: LadderPlan, given: Sequence[str | Path] | None
) -> list[SenseSet]:
    """The ambiguous words that occur in the text; at least one of each of the user's files."""
    names = [str(own) for own in given] if given else _sense_sets(text)
    sets = find_sets(names) if names else []
    kept = [known_senses([own], text, plan.min_count) for own in sets]
    for name, own in zip(names, kept, strict=True):
        if given and not own:
            raise InputError(
                f"{name}: none of its ambiguous words occurs {plan.min_count} times in the corpus, "
                "so no model can learn them."
            )
    return [one for own in kept for one in own]


def _sense_sets(text: LadderText) -> list[str]:
    if text.settings.mode == "chinese":
        return ["chinese"]
    if text.is_built_in:
        return ["python", "docstrings", "english"]
    return ["english"] if text.settings.language.lower().startswith("en") else []


def _docstring_questions(
    text: LadderText, plan: LadderPlan, seeds: int, reporter: Reporter
) -> list[SentenceQuestion]:
    found = []
    for name, what in BUILT_IN.items():
        reporter.note(f"Building the rows of {name}.")
        rows = {
            split: docstring_rows(name, split, packages=text.packages)
            for split in ("train", "test")
        }
        found.append(_made(NAMES[name], name, name, what, rows, text, plan, seeds))
    return found


def _made(
    kind: str, name: str, title: str, what: str, rows: Mapping[str, Sequence[Any]],
    text: LadderText, plan: LadderPlan, seeds: int,
) -> SentenceQuestion:  # fmt: skip
    """A task with some of its rows, as many as suit the budget."""
    if kind == "answer":
        rows = {split: [row for row in own if row.answers] for split, own in rows.items()}
    train = _first(rows["train"], round(_POOL * plan.num_rows), plan.max_characters)
    test = _first(rows["test"], max(200, plan.num_rows), plan.max_characters)
    if len(train) < _FEWEST_ROWS // 2 or not test:
        raise InputError(
            f"{title}: {len(train)} training rows and {len(test)} test rows are too few."
        )
    return KINDS[kind](name, title, what, train, test, text, seeds=seeds)


def _first(rows: Sequence[Any], num: int, max_characters: int) -> list[Any]:
    """The first rows, fewer if they are long."""
    kept: list[Any] = []
    num_characters = 0
    for row in rows[:num]:
        text = getattr(row, "context", None) or getattr(row, "text", None) or ""
        num_characters += len(text) or sum(map(len, row.words))
        if kept and num_characters > max_characters:
            break
        kept.append(row)
    return kept


# ---- the user's files ---------------------------------------------------------------------------


def parse_tasks(given: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Parse KIND=TRAIN,TEST, such as classify=train.tsv,dev.tsv; a name may come first: news:…."""
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
    tasks: Mapping[str, tuple[str, str]], text: LadderText, plan: LadderPlan, seeds: int
) -> list[SentenceQuestion]:
    """The tasks of labelled files."""
    found: list[SentenceQuestion] = []
    for key, places in tasks.items():
        name, _, kind = key.rpartition(":")
        rows = {
            split: read_rows(kind, place)
            for split, place in zip(("train", "test"), places, strict=True)
        }
        if kind in ("classify", "pairs") and len({row.label for row in rows["train"]}) < 2:
            raise InputError(
                f"Every row of {places[0]} has the same label: --task needs two or more."
            )
        title = name or Path(places[0]).stem
        question = _made(kind, name or kind, title, _WHAT[kind], rows, text, plan, seeds)
        question.task = replace(question.task, is_named=True)
        found.append(question)
    return found


def read_rows(kind: str, place: str) -> list[Any]:
    """The labelled rows of a file, shuffled so that the first ones are a sample.

    Many files are sorted by label: their first rows have only one label.
    """
    readers: dict[str, Any] = {"tag": read_tags, "answer": read_answers}
    rows = readers.get(kind, partial(read_texts, kind=kind))([place])  # type: ignore[arg-type]
    return [rows[index] for index in np.random.default_rng(1).permutation(len(rows)).tolist()]


# ---- from the text itself -----------------------------------------------------------------------


def _selfmade_questions(text: LadderText, plan: LadderPlan, seeds: int) -> list[SentenceQuestion]:
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
    """What identifies the files under a path: its name, the size and time of every file."""
    folder = Path(path)
    files = sorted(folder.rglob("*")) if folder.is_dir() else [folder]
    stats = [file.stat() for file in files if file.is_file()]
    return [str(path), *([stat.st_size, stat.st_mtime_ns] for stat in stats)]
