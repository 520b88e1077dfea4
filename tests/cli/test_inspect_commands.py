"""`sememe inspect`: every command prints what the Python call gives that the page makes, too."""

import csv
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from sememe import load
from sememe.errors import InputError
from sememe.explore.prediction_results import TaskRow, prediction_of, steered_steps
from sememe.explore.rows import OwnRows
from sememe.explore.word_contexts import word_contexts
from sememe.models.word2vec.steps import training_step
from sememe.plots.vocabulary import cluster_points
from sememe.tasks.importance import word_importance
from sememe.vectors.comparison import Comparison

TEXT = "the quick brown fox jumps over the lazy dog"
OWN = "A mouse sees the king."


@pytest.fixture
def uses(tmp_path):
    path = tmp_path / "uses.txt"
    lines = [f"The {who} sees a mouse near the river {when}." for who in ("king", "queen", "child")
             for when in ("at night", "in winter", "today")]  # fmt: skip
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


def table(path):
    with Path(path).open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("name", ["bert", "elmo", "word2vec-skipgram-negative"])
def test_context_is_that_of_python(sememe, golden, uses, name):
    pytest.importorskip("torch")
    model = golden / name
    more = ["--text", uses, "--sentence", OWN, "--layer", 0, "--num", 8]
    told = sememe("inspect", "context", model, "mouse", *more, "--json").json
    found = word_contexts(load(model), "mouse", uses, num=8, sentence=OWN)
    assert told["uses"] == found.rows(0) and told["mean_cosine"] == found.mean_cosines[0]
    assert len(told["uses"]) == 8 and told["clusters"] == found.clusters
    sememe("inspect", "context", model, "mouse", *more[:-4], "--out", "uses.csv")
    rows, wanted = table("uses.csv"), word_contexts(load(model), "mouse", uses, sentence=OWN).rows()
    assert [row["sentence"] for row in rows] == [row["sentence"] for row in wanted]
    assert [float(row["cosine"]) for row in rows] == pytest.approx([r["cosine"] for r in wanted])
    lines = sememe("inspect", "context", model, "mouse", *more).out.splitlines()
    shown = [float(line.split("\t")[0]) for line in lines if "\t" in line]
    assert shown == sorted(shown, reverse=True) and len(shown) == 8


def test_known_senses_have_groups(sememe, golden):
    pytest.importorskip("torch")
    told = sememe("inspect", "context", golden / "bert", "bank", "--set", "english", "--json").json
    assert len({use["group"] for use in told["uses"]}) > 1


def test_changes_are_those_of_python(sememe, golden):
    first, second = golden / "word2vec-skipgram-negative", golden / "glove"
    told = sememe("inspect", "changes", first, second, "--neighbors", 5, "-n", 7, "--json").json
    comparison = Comparison(load(first).words, load(second).words)
    assert told["mean"] == pytest.approx(comparison.overlaps(5).mean())
    wanted = comparison.most_changed(7, 5)
    assert [own["word"] for own in told["changes"]] == [own.word for own in wanted]
    assert [own["gained"] for own in told["changes"]] == [own.gained for own in wanted]
    word = comparison.words[3]
    ran = sememe("inspect", "changes", first, second, "--word", word, "--neighbors", 5)
    own = comparison.change(word, 5)
    assert ran.out.splitlines()[1].split("\t")[1:3] == [f"{own.overlap:.4f}", ", ".join(own.lost)]


def test_a_step_is_that_of_python(sememe):
    told = sememe("inspect", "step", TEXT, "--step", 70, "--dim", 4, "--json").json
    wanted = training_step(TEXT, 70, dim=4)
    assert told["decisions"] == [asdict(own) for own in wanted.decisions]
    assert told["loss"] == wanted.loss and told["input"] == asdict(wanted.input)
    assert (
        f"loss {wanted.loss:.4f}" in sememe("inspect", "step", TEXT, "--step", 70, "--dim", 4).out
    )
    assert sememe("inspect", "step", "国王喜欢音乐", "--json").json["words"] == [
        "国王",
        "喜欢",
        "音乐",
    ]


def test_a_film_is_that_of_python(sememe, uses):
    options = ["--epochs", 2, "--dim", 5, "--num-words", 6, "--num-snapshots", 3]
    uses.write_text(uses.read_text("utf-8") * 3, "utf-8")
    sememe("inspect", "film", uses, "--out", "film.csv", *options)
    from sememe.models.word2vec.snapshots import train_film

    film = train_film(uses, epochs=2, dim=5, num_words=6, num_snapshots=3)
    rows = table("film.csv")
    assert [row["word"] for row in rows[: len(film.words)]] == film.words
    places = np.array([[float(row["x"]), float(row["y"])] for row in rows])
    assert np.allclose(places, film.positions_SN2.reshape(-1, 2), atol=1e-6)
    refused = sememe("inspect", "film", uses, fails=True)
    assert refused.code == 2 and "--out" in refused.err


def test_masks_are_those_of_python(sememe, golden):
    pytest.importorskip("torch")
    from sememe.models.bert.mask_draws import draw_masks

    model, text = golden / "bert", "the old king sees a river"
    more = ["--rate", 0.3, "--num", 50, "--seed", 2, "--draw", 4]
    told = sememe("inspect", "masks", model, text, *more, "--json").json
    wanted = draw_masks(load(model), text, num=50, seed=2, rate=0.3)
    assert told["seen"] == wanted.seen(3) and told["counts"] == wanted.counts()
    assert told["predicted"] == pytest.approx((wanted.fates_NT > 0).mean(axis=0).tolist())
    assert sememe("inspect", "masks", model, text, *more).out.startswith(" ".join(wanted.seen(3)))
    refused = sememe("inspect", "masks", model, text, "--num", 3, "--draw", 4, fails=True)
    assert refused.code == 2 and "--draw" in refused.err


@pytest.mark.parametrize("name", ["gpt", "ngram"])
def test_a_generation_goes_on_from_a_chosen_token(sememe, golden, name):
    if name == "gpt":
        pytest.importorskip("torch")
    model, prompt = load(golden / name), "the king"
    free = list(steered_steps(model, prompt, max_tokens=5, count=4))
    other = next(own for own in free[1].tokens if own.id != free[1].chosen.id and own.text)
    more = ["--max-tokens", 5, "--count", 4, "--choose", f"2={other.id}", "--json"]
    told = sememe("inspect", "generation", golden / name, prompt, *more).json["steps"]
    wanted = list(steered_steps(model, prompt, {1: other.id}, max_tokens=5, count=4))
    assert [own["chosen"] for own in told] == [own.chosen._asdict() for own in wanted]
    assert told[1]["chosen"]["id"] == other.id and told[0]["chosen"] == free[0].chosen._asdict()
    refused = sememe("inspect", "generation", golden / name, "--choose", "2=x", fails=True)
    assert refused.code == 2 and "2=x" in refused.err


def test_a_prediction_is_that_of_python(sememe, golden):
    pytest.importorskip("torch")
    text = "the lovely film about the garden"
    told = sememe("inspect", "prediction", golden / "classify", text, "--importance", "--json").json
    model = load(golden / "classify")
    assert told["items"] == [list(own) for own in prediction_of(model, TaskRow(text))["items"]]
    drops = [own.drop for own in word_importance(model, text).words]
    assert [own["drop"] for own in told["importance"]["words"]] == pytest.approx(drops)
    refused = sememe("inspect", "prediction", golden / "pairs", text, fails=True)
    assert refused.code == 2 and "second" in refused.err


def test_a_map_of_rows_is_that_of_python(sememe, golden, tmp_path):
    pytest.importorskip("torch")
    path = tmp_path / "rows.csv"
    texts = ["the king walks", "a dog runs", "the queen sleeps", "the cat eats", "", "=SUM(1)"]
    path.write_text("text,kind\n" + "".join(f'"{text}",{i % 2}\n' for i, text in enumerate(texts)))
    sememe("plot", "map", golden / "sentence", "--rows", path, "--clusters", 2,
           "--out", "map.csv", "--out", "map.svg")  # fmt: skip
    from sememe.plots.projection import project

    points = OwnRows(str(path)).points_by(load(golden / "sentence"))
    rows = table("map.csv")
    assert [row["row"] for row in rows] == points.labels
    places = np.array([[float(row["x"]), float(row["y"])] for row in rows])
    assert np.allclose(places, project(points.units_ND)[0], atol=1e-5)
    numbers_N, _ = cluster_points(points.units_ND, points.labels, 2)
    assert [int(row["cluster"]) for row in rows] == numbers_N.tolist()
    assert "rows" in Path("map.svg").read_text("utf-8")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("context", "bert", "mouse", "--layer", 99), "0 to"),
        (("context", "bert", "zzz"), "zzz"),
        (("context", "glove", "king", "--out", "x.pdf"), "must end in"),
        (("step", "one"), "two different words"),
        (("masks", "gpt", "the king"), "BERT"),
    ],
)
def test_what_cannot_be_shown_is_told(sememe, golden, uses, arguments, told):
    pytest.importorskip("torch")
    kind, first, *rest = arguments
    model = first if kind == "step" else golden / first
    more = ["--text", uses] if kind == "context" else []
    refused = sememe("inspect", kind, model, *rest, *more, fails=True)
    assert refused.code == 2 and told in refused.err and "Traceback" not in refused.err


def test_too_few_uses_are_told(golden, uses):
    with pytest.raises(InputError, match="too few"):
        word_contexts(load(golden / "glove"), "absent", uses)
