"""The ladder asks models by the contract alone: what they can do, and nothing of their insides."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import toy_model
from ladder_texts import documents, write

from missing_libraries import without_libraries
from sememe.contract import KINDS, Kind, Model, WordsInContext
from sememe.ladder.config import LadderConfig
from sememe.ladder.context_questions import HiddenQuestion, PerplexityQuestion
from sememe.ladder.plan import make_plan, this_machine
from sememe.ladder.reading import Reader, RungModel, given
from sememe.ladder.results import Rung
from sememe.ladder.rungs import SPECS, choose, own_rung, registered
from sememe.ladder.running import Ladder
from sememe.ladder.text import LadderText, open_text
from sememe.text.settings import TextSettings

FEW = {"workers": 1, "rows": 24, "seeds": 1, "device": "cpu", "min_count": 1, "tokens": 5_000}


class Score(NamedTuple):
    accuracy: float
    unigram_accuracy: float
    num_tokens: int


class Pretender(Model):
    """Answers the calls of the contract, and has nothing behind them."""

    kind = "vectors"
    layer_widths = (2, 3, 3, 4)

    def __init__(self, *can: str, unknown: str = "") -> None:
        self.can, self.unknown, self.asked = frozenset(can), unknown, []

    @property
    def capabilities(self) -> frozenset[str]:
        return self.can

    def word_log_probs(self, documents: Any) -> list[np.ndarray]:
        found = []
        for text, spans in documents:
            words = [text[a:b].lower() for own in spans for a, b in own]
            found.append(np.array([math.nan if w == self.unknown else -math.log(8) for w in words]))
        return found

    def evaluate(self, data: Any, *args: Any, **options: Any) -> Score:
        self.asked.append((data, options))
        return Score(0.25, 0.06, 44)

    def embed_spans(
        self, texts: Sequence[str], spans: Any = None, *, layers: Any = "last"
    ) -> Iterator[WordsInContext]:
        self.asked.append(layers)
        width = sum(self.layer_widths[layer] for layer in layers)
        for text, own in zip(texts, spans, strict=True):
            words = [text[a:b] for a, b in own]
            rows = np.array([[len(word)] * width for word in words], np.float32)
            rows = rows.reshape(len(words), width)
            yield WordsInContext(words, own[:, 0], own[:, 1], rows, np.ones(len(words), bool))


@pytest.fixture(scope="module")
def text(tmp_path_factory) -> LadderText:
    return open_text(documents(60), TextSettings(), tmp_path_factory.mktemp("text"))


def rung_model(model: Model) -> RungModel:
    rung = Rung(name="it", title="it", family="contextual", state="done")
    found = RungModel(rung, Path("nowhere"), None)  # type: ignore[arg-type]
    found.model = model
    return found


def question(text: LadderText) -> PerplexityQuestion:
    plan = make_plan(LadderConfig(budget="2s", min_count=5), this_machine("cpu"))
    return PerplexityQuestion(text, plan, num_words=500)


def test_perplexity_is_over_the_known_words_alone(text):
    own = question(text)
    words = [word for document in own.documents for word in document.words]
    asked = [word for word in words if word in own.known]
    assert 0 < len(asked) < len(words)
    answer = own.evaluate(rung_model(Pretender("score")))
    assert answer.scores[0] == pytest.approx(8) and answer.num == len(asked)
    assert answer.interval == pytest.approx((8, 8))  # every word is as likely
    rare = next(word for word in words if word not in own.known)
    assert own.evaluate(rung_model(Pretender("score", unknown=rare))).scores


def test_a_model_that_lacks_asked_words_or_predicts_none_says_so(text):
    own = question(text)
    num = sum(document.words.count("the") for document in own.documents)
    answer = own.evaluate(rung_model(Pretender("score", unknown="the")))
    assert not answer.scores and f"{num:,} of the test words" in answer.why
    assert "hidden words" in own.evaluate(rung_model(Pretender("fill"))).why
    assert "no word probabilities" in own.evaluate(rung_model(Pretender("embed"))).why


def test_hidden_words_are_asked_of_whatever_fills_them_in(text):
    plan = make_plan(LadderConfig(budget="2s", seed=7), this_machine("cpu"))
    own, model = HiddenQuestion(text, plan, num_batches=5), Pretender("fill")
    answer = own.evaluate(rung_model(model))
    assert answer.scores == [25.0] and answer.details == {"most_frequent": 6.0} and answer.num == 44
    low, high = answer.interval
    assert 10 < low < 18 and 32 < high < 42  # 25 ± 2 · 100 √(0.25 · 0.75 ÷ 44)
    data, options = model.asked[0]
    assert data == text.heldout and (options["num_batches"], options["seed"]) == (5, 7)
    assert not own.evaluate(rung_model(Pretender("score"))).scores


def test_layers_stand_side_by_side_and_texts_without_words_have_no_rows():
    model = Pretender("embed_words")
    reader = Reader(model)
    texts = [given(own, TextSettings()) for own in (["a", "ship"], [], ["sails"])]
    rows = reader.read(texts)
    assert model.asked == [(0, 2, 3)] and rows.shape == (3, reader.dim) == (3, 2 + 3 + 4)
    assert reader.is_contextual and reader.last_dim == 4 and rows[:, 0].tolist() == [1, 4, 5]
    assert reader.read([]).shape == (0, reader.dim)


def test_a_new_kind_climbs_by_one_entry(tmp_path, monkeypatch):
    kind = Kind(capabilities=KINDS["vectors"].capabilities, **toy_model.entry())
    monkeypatch.setitem(KINDS, "letters", kind)
    monkeypatch.setitem(SPECS, "letters", registered("letters", kind))
    corpus = write(tmp_path / "text.jsonl", documents(60))
    results = Ladder(rungs="letters", **FEW).run(corpus, out=tmp_path / "out")
    rung = results.rung("letters")
    assert rung.state == "done" and "sememe train letters" in rung.command
    assert {cell.task for cell in results.cells if cell.mean is not None} >= {"next", "belonging"}


@pytest.mark.parametrize("name", SPECS)
def test_every_rung_is_of_a_registered_kind(name):
    assert SPECS[name].kind in KINDS and choose(name).names == [name]


def test_the_family_of_an_own_model_is_that_of_its_kind(tmp_path):
    (tmp_path / "mine.txt").write_text("2 2\na 1 0\nb 0 1\n")
    found = [own_rung(tmp_path / "mine.txt", taken) for taken in (set(), {"mine"})]
    assert [(own.name, own.family) for own in found] == [("mine", "static"), ("mine-2", "static")]


@pytest.mark.parametrize(
    ("kind", "family"),
    [("fasttext-classifier", "static"), ("ulmfit", "contextual"), ("seq2seq", "contextual")],
)
def test_what_the_line_lacks_is_contextual_if_words_have_a_context(kind, family, tmp_path):
    (tmp_path / "sememe.json").write_text(f'{{"kind": "{kind}"}}')
    assert own_rung(tmp_path, set()).family == family


WITHOUT = """
import sys, sememe
results = sememe.Ladder(rungs="onehot,counts,skipgram,bert", tokens=5000, rows=24, seeds=1,
                        workers=1, min_count=1).run(sys.argv[1], out=sys.argv[2])
for rung in results.rungs:
    print(rung.name, rung.state, rung.why)
    print(sum(cell.mean is not None for cell in results.cells if cell.rung == rung.name))
try:
    sememe.Ladder(rungs="skipgram", finetune=True)
except sememe.SememeError as error:
    print(error)
"""


def test_word_vectors_climb_without_pytorch(tmp_path):
    corpus = write(tmp_path / "text.jsonl", documents(60))
    command = [sys.executable, "-c", WITHOUT, str(corpus), str(tmp_path / "out")]
    env = without_libraries(tmp_path)
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0::2][:3] == ["onehot done ", "counts done ", "skipgram done "]
    assert lines[6].startswith("bert left out") and "sememe[neural]" in lines[6]
    assert all(int(num) > 0 for num in lines[1:6:2]) and lines[7] == "0"
    assert lines[8] == "finetune needs PyTorch: pip install 'sememe[neural]'."
