"""The view Words: completions, neighbors, analogies and words on a plane, as in Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from sememe.plots.heatmaps import combine
from sememe.plots.projection import project
from sememe.vectors.search import unit_rows

STATIC = "word2vec-skipgram-negative"
# Static vectors, sub-words, networks, a fine-tuned one, and Chinese.
WITH_WORDS = (STATIC, "fasttext", "elmo", "gpt", "bert", "classify", "word2vec-chinese")
HOSTILE = "<img src=x onerror=alert(1)>\u202e"
Ask = Callable[..., dict[str, Any]]


@pytest.mark.parametrize("name", ["bert", "bert-chinese"])
def test_free_ids_of_a_network_are_no_words(opened: Any, name: str) -> None:
    assert opened(name).tokenizer.token(1) == "[unused1]"
    assert not [word for word in opened(name).words.vocabulary if "unused" in word]


@pytest.fixture
def ask(client: Any) -> Ask:
    """Ask a route of this view about a model."""

    def call(name: str, model: str = STATIC, **given: Any) -> dict[str, Any]:
        answer = client.post(f"/explore/api/words/{name}", json={"model": model, **given})
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    return call


@pytest.fixture
def refused(client: Any) -> Callable[..., str]:
    """The sentence by which a route refuses a question."""

    def call(name: str, model: str = STATIC, **given: Any) -> str:
        answer = client.post(f"/explore/api/words/{name}", json={"model": model, **given})
        assert answer.status_code in (400, 404, 422), answer.text
        message = answer.json()["error"]["message"]
        assert "Traceback" not in message and "\n" not in message
        return str(message)

    return call


def some_words(model: Any, num: int) -> list[str]:
    """Words of letters that a model has, without special tokens."""
    return [word for word in model.words if word.isalpha()][:num]


def complete(client: Any, start: str, model: str = STATIC, **more: Any) -> list[str]:
    answer = client.get("/explore/api/complete", params={"model": model, "start": start, **more})
    assert answer.status_code == 200, answer.text
    return answer.json()["words"]


def test_completions_begin_alike_most_frequent_first(client: Any, opened: Any) -> None:
    words = list(opened(STATIC).words)
    start = words[20][:1]
    wanted = [word for word in words if word.startswith(start)]
    assert complete(client, start, num=100) == wanted[:100] and len(wanted) > 1
    assert complete(client, start, num=2) == wanted[:2]


def test_completions_in_other_case_and_in_chinese(client: Any, opened: Any) -> None:
    word = next(own for own in opened(STATIC).words if own.isalpha() and own.islower())
    assert word in complete(client, word.upper())
    chinese = next(own for own in opened("word2vec-chinese").words if len(own) > 1)
    assert chinese in complete(client, chinese[0], "word2vec-chinese", num=100)


@pytest.mark.parametrize("start", ["", "\u202e<script>", "\x00", "%", "x" * 1_000])
def test_unknown_beginnings_have_no_completions(client: Any, start: str) -> None:
    assert complete(client, start) == []


def test_bad_completions_are_refused(client: Any) -> None:
    path = "/explore/api/complete"
    for params in (
        {},
        {"start": "a", "num": 0},
        {"start": "x" * 1_001},
        {"start": "a", "num": 101},
    ):
        assert client.get(path, params={"model": STATIC, **params}).status_code in (400, 422)
    refused = client.get(path, params={"model": "ngram", "start": "a"})
    assert refused.status_code in (400, 422) and "word" in refused.json()["error"]["message"]


@pytest.mark.parametrize("name", WITH_WORDS)
def test_neighbors_are_those_of_python(ask: Ask, opened: Any, name: str) -> None:
    model = opened(name)
    for word in some_words(model, 3):
        found = ask("neighbors", name, word=word, num=7)
        wanted = model.words.neighbors(word, num=7)
        assert [own["word"] for own in found["neighbors"]] == [own.word for own in wanted]
        assert [own["score"] for own in found["neighbors"]] == pytest.approx(
            [own.score for own in wanted], abs=1e-6
        )
        assert found["is_known"] and not found["is_unseen"] and not found["notes"]


def test_neighbors_while_typing_are_only_those_of_known_words(ask: Ask) -> None:
    assert ask("neighbors", word="king", known_only=True)["neighbors"]
    found = ask("neighbors", "fasttext", word="kinglike", known_only=True)
    assert found == {"is_known": False, "neighbors": None}


def test_unseen_words_are_answered_from_subwords(ask: Ask, opened: Any, refused: Any) -> None:
    found = ask("neighbors", "fasttext", word="kinglike", num=3)
    wanted = opened("fasttext").words.neighbors("kinglike", num=3)
    assert found["is_unseen"] and not found["is_known"]
    assert [own["score"] for own in found["neighbors"]] == pytest.approx(
        [own.score for own in wanted], abs=1e-6
    )
    assert "kinglike" in refused("neighbors", word="kinglike")


@pytest.mark.filterwarnings("ignore::sememe.errors.LookupNote")
def test_what_was_looked_up_instead_is_told(ask: Ask) -> None:
    [note] = ask("neighbors", word="KING")["notes"]
    assert note == {"query": "KING", "words": ["king"]}


@pytest.mark.parametrize("method", ["add", "mul"])
@pytest.mark.parametrize("name", WITH_WORDS)
def test_analogies_and_their_arithmetic(ask: Ask, opened: Any, name: str, method: str) -> None:
    words = opened(name).words
    a, b, c = some_words(opened(name), 3)
    found = ask("analogy", name, a=a, b=b, c=c, method=method)
    wanted = words.analogy(a, b, c, 5, method=method)
    assert [own["word"] for own in found["answers"]] == [own.word for own in wanted]
    for own, answer in zip(found["answers"], wanted, strict=True):
        assert own["score"] == pytest.approx(answer.score, abs=1e-6)
        to_a, to_b, to_c = own["cosines"]
        assert to_b == pytest.approx(words.similarity(answer.word, b), abs=1e-5)
        # The shown numbers make up the score.
        if method == "add":
            made = (to_b - to_a + to_c) / found["length"]
        else:
            made = (1 + to_b) / 2 * ((1 + to_c) / 2) / ((1 + to_a) / 2)
        assert made == pytest.approx(own["score"], abs=1e-4)


def test_parallelogram_of_an_analogy_closes(ask: Ask) -> None:
    plane = ask("analogy", a="dog", b="king", c="cat", width=400)["plane"]
    a, b, c = np.array(plane["points"][:3])
    assert plane["labels"][-1] == "b − a + c" and plane["width"] == 400
    assert np.array(plane["points"][-1]) == pytest.approx(b - a + c, abs=0.3)  # pixels
    assert all(0 <= x <= 400 and 0 <= y <= plane["height"] for x, y in plane["points"][:3])


@pytest.mark.parametrize("name", WITH_WORDS)
def test_similarities_and_the_odd_one(ask: Ask, opened: Any, name: str) -> None:
    model = opened(name)
    given = some_words(model, 5)
    found = ask("similarities", name, words=given)
    wanted = np.array([[model.words.similarity(a, b) for b in given] for a in given])
    assert np.array(found["cosines"]) == pytest.approx(wanted, abs=1e-6)
    assert found["odd"] == model.words.odd_one_out(given)
    means = (wanted.sum(axis=1) - wanted.diagonal()) / 4
    assert found["means"] == pytest.approx(means.tolist(), abs=1e-6)
    assert given[int(means.argmin())] == found["odd"]


def test_unknown_words_do_not_stop_the_others(ask: Ask, refused: Any) -> None:
    found = ask("similarities", words=["king", "dog", "zzqx", HOSTILE])
    assert found["words"] == ["king", "dog"] and found["odd"] is None
    assert [own["word"] for own in found["unknown"]] == ["zzqx", HOSTILE]
    assert "two known words" in refused("similarities", words=["king", "zzqx"])


def test_pairs_are_on_the_plane_of_the_plot(ask: Ask, opened: Any) -> None:
    pairs = [("king", "queen"), ("horse", "fox"), ("king", "zzqx"), ("dog", "cat")]
    found = ask("plane", pairs=pairs, width=900)
    words = ["king", "queen", "horse", "fox", "dog", "cat"]
    assert found["words"] == words and found["plane"]["lines"] == [[0, 1], [2, 3], [4, 5]]
    points, shares = project(unit_rows(opened(STATIC).words.query_vectors(words)))
    assert np.array(found["coordinates"]) == pytest.approx(points, abs=1e-6)
    assert found["plane"]["shares"] == pytest.approx(shares.tolist(), abs=1e-6)
    assert found["plane"]["width"] == 900


@pytest.mark.parametrize("name", WITH_WORDS)
def test_values_of_vectors_and_sums(ask: Ask, opened: Any, name: str) -> None:
    a, b, c = some_words(opened(name), 3)
    texts = [a, f"{b} - {a} + {c}"]
    found = ask("vectors", name, words=texts)
    wanted = [combine(opened(name).words, text) for text in texts]
    assert found["words"] == texts
    assert np.array(found["values"]) == pytest.approx(np.stack(wanted), abs=1e-6)
    assert found["limit"] > 0


def test_examples_are_known_to_the_first_model(client: Any, opened: Any) -> None:
    for names in ([STATIC, "fasttext"], ["word2vec-chinese"], ["bert"], ["gpt", STATIC]):
        params = {"models": ",".join(names)}
        found = client.get("/explore/api/words/examples", params=params).json()
        words = opened(names[0]).words
        for key in ("words", "analogies", "lists", "odd"):
            assert found[key], key
        rows = found["analogies"] + found["lists"] + [found["words"]]
        assert all(word in words for row in rows for word in row)
        assert all(
            word in words for rows in found["pairs"].values() for row in rows for word in row
        )
        if "fasttext" in names:
            assert found["unseen"] not in words


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("neighbors", {"word": ""}),
        ("neighbors", {"word": "king", "num": 0}),
        ("neighbors", {"word": "x" * 100_000}),
        ("neighbors", {"word": HOSTILE}),
        ("neighbors", {"word": "king", "other": 1}),
        ("analogy", {"a": "king", "b": "queen"}),
        ("analogy", {"a": "king", "b": "queen", "c": "zzqx"}),
        ("analogy", {"a": "king", "b": "queen", "c": "boy", "method": "div"}),
        ("analogy", {"a": "king", "b": "queen", "c": "boy", "width": 1e9}),
        ("similarities", {"words": []}),
        ("similarities", {"words": ["king"] * 41}),
        ("plane", {"pairs": [["king", "queen", "boy"]]}),
        ("plane", {"pairs": [["zzqx", "queen"]]}),
        ("plane", {"pairs": [["king", "queen"]] * 61}),
        ("vectors", {"words": ["zzqx"]}),
        ("vectors", {"words": ["king - "]}),
    ],
)
def test_bad_questions_are_refused_in_a_sentence(refused: Any, name: str, given: Any) -> None:
    assert 0 < len(refused(name, **given)) < 1_000


def test_models_without_words_are_refused(refused: Any) -> None:
    assert "word" in refused("neighbors", "ngram", word="king")
    assert refused("neighbors", "no-such-model", word="king")
