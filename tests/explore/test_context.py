"""The view Context: uses of a word in a text, their points layer by layer, as in Python."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from explorer_pages import HOSTILE

from sememe.errors import InputError
from sememe.explore import uses
from sememe.explore.app import Explorer
from sememe.explore.clusters import clustered, typical_words
from sememe.explore.uses import Use, UsesText, locate
from sememe.explore.word_contexts import aligned, mean_cosine, plane
from sememe.plots.projection import project

STATIC = "word2vec-skipgram-negative"
OWN = "Every day a mouse follows the clever king."


def ask(client: Any, path: str, **body: Any) -> dict[str, Any]:
    answer = client.post(f"/explore/api/context/{path}", json=body)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def points(client: Any, **body: Any) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    answer = client.post("/explore/api/context/points", json=body)
    assert answer.status_code == 200, answer.text
    data = answer.content
    size = int.from_bytes(data[:4], "little")
    header = json.loads(data[4 : 4 + size])
    found, start = {}, 4 + size
    for told in header["columns"]:
        num = int(np.prod(told["shape"]))
        column = np.frombuffer(data, told["type"], num, start).reshape(told["shape"])
        found[told["name"]] = column
        start += -(-column.nbytes // 8) * 8
    return header["meta"], found


def refusal(client: Any, path: str, **body: Any) -> str:
    answer = client.post(f"/explore/api/context/{path}", json=body)
    assert answer.status_code in (400, 422), answer.text
    found: str = answer.json()["error"]["message"]
    return found


# ---- uses ---------------------------------------------------------------------------------------


def test_every_use_is_found_in_its_sentence(client: Any) -> None:
    found = ask(client, "uses", word="mouse", num=500)
    assert found["num_found"] == len(found["uses"]) == 49 and found["is_whole"]
    assert found["num_hits"] == found["num_checked"] == 51  # with Dormouse and mouses
    assert found["sets"] == {"english": 12}
    for own in found["uses"]:
        assert own["sentence"][own["start"] : own["end"]].lower() == "mouse"
    first = found["uses"][0]
    assert first["sentence"] == "The king sees a mouse near the garden in the morning."
    assert first["after"] == "It is tired."


def test_a_word_with_a_capital_is_found_as_written(client: Any) -> None:
    found = ask(client, "uses", word="Mouse")["uses"]
    assert [own["sentence"] for own in found] == [f"A Mouse {HOSTILE} 𠮷 is here."]


def test_uses_are_spread_over_the_text(client: Any) -> None:
    found = ask(client, "uses", word="mouse", num=5)
    assert len(found["uses"]) == 5 and found["num_found"] == 49
    documents = [own["document"] for own in found["uses"]]
    assert documents[0] == 0 and documents[-1] > 40 and documents == sorted(documents)


def test_chinese_words_are_segmented(client: Any) -> None:
    found = ask(client, "uses", word="苹果")
    assert found["num_found"] == 8 and not found["is_part"]
    # Only inside 苹果.
    part = ask(client, "uses", word="果")
    assert part["is_part"] and len(part["uses"]) == 8


def test_a_word_that_is_not_there_has_no_use(client: Any) -> None:
    for word in ("zebra", "\u202e", "%00", "[", "x" * 1_000):
        assert ask(client, "uses", word=word)["uses"] == []


def test_search_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "long.txt"
    path.write_text("The bank is here.\n" * 5_000, "utf-8")
    monkeypatch.setattr(uses, "MOST_BYTES", 10_000)
    text = UsesText(path)
    found = text.find("the", 50, 100)
    assert not text.is_whole and text.num_bytes < path.stat().st_size + 1
    assert found.num_checked == 100 < found.num_hits


def test_a_folder_names_its_files_as_documents(tmp_path: Path) -> None:
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text(f"A bank in {name[0]}.", "utf-8")
    assert [own.group for own in UsesText(tmp_path).find("bank", 9).uses] == ["a.txt", "b.txt"]


def test_rows_of_a_table_are_read(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({"text": "We sat on the bank."}) + "\n", "utf-8")
    assert UsesText(path).find("bank", 9).uses[0].sentence == "We sat on the bank."


def test_a_text_that_is_not_there_is_refused_at_the_start(golden: Path) -> None:
    from sememe.explore.config import ExploreConfig

    with pytest.raises(InputError, match=r"nothing\.txt"):
        Explorer([golden / STATIC], ExploreConfig(text="nothing.txt"))


def test_long_sentences_are_cut_around_the_word() -> None:
    window = (("so " * 300) + "bank" + (" so" * 300)).encode()
    own = uses._use(window, window.index(b"bank"), 4, [], 0, "")
    assert len(own.sentence) < 420 and own.sentence[own.start : own.end] == "bank"
    assert own.sentence[0] == own.sentence[-1] == "…"


# ---- points -------------------------------------------------------------------------------------


def vectors(model: Any, use: dict[str, Any], layer: Any) -> np.ndarray:
    """The vector of a use, by words of its sentence as `embed_words` takes them."""
    before, after = use["sentence"][: use["start"]].split(), use["sentence"][use["end"] :]
    # Models of whole words do not read full stops.
    stop = ["."] if model.kind == "bert" else []
    word = use["sentence"][use["start"] : use["end"]]
    words = [*before, word, *after.removesuffix(".").split(), *stop]
    found: np.ndarray = model.embed_words([words], layers=layer)[0][len(before)]
    return found / np.linalg.norm(found)


@pytest.mark.parametrize("name", ["bert", "elmo", STATIC])
def test_cosines_equal_those_of_embed_words(client: Any, opened: Any, name: str) -> None:
    asked = {"word": "mouse", "num": 20}
    model, found = opened(name), ask(client, "uses", **asked)["uses"]
    meta, columns = points(client, model=name, sentence=OWN, **asked)
    layers = ["last"] if name == STATIC else range(len(model.layer_widths))
    assert meta["num_layers"] == len(layers) == len(columns["cosines"])
    own = {"sentence": OWN, "start": OWN.index("mouse"), "end": OWN.index("mouse") + 5}
    assert meta["place"]["start"] == own["start"]
    for row, layer in enumerate(layers):
        wanted = [vectors(model, use, layer) @ vectors(model, own, layer) for use in found[:5]]
        assert np.allclose(columns["cosines"][row, :5], wanted, atol=2e-5)


def test_points_are_principal_components_of_unit_vectors(client: Any, opened: Any) -> None:
    found = ask(client, "uses", word="mouse", num=30)["uses"]
    _, columns = points(client, model="bert", word="mouse", num=30)
    for layer in range(3):
        units_ND = np.stack([vectors(opened("bert"), use, layer) for use in found[:-1]])
        own_N2 = np.stack([columns["x"][layer], columns["y"][layer]], 1)[:-1]
        wanted_N2, _ = project(units_ND)
        # Turned and mirrored, but with the same distances; one use more moves them a little.
        own, wanted = (
            np.linalg.norm(rows[:, None] - rows[None], axis=2) for rows in (own_N2, wanted_N2)
        )
        assert np.corrcoef(own.ravel(), wanted.ravel())[0, 1] > 0.98


def test_uses_of_a_static_model_fall_on_one_point(client: Any) -> None:
    meta, columns = points(client, model=STATIC, word="mouse")
    assert meta["is_one_point"] and not columns["x"].any() and not columns["y"].any()
    assert meta["mean_cosines"][0] == pytest.approx(1) and len(meta["clusters"]) == 1


def test_a_word_that_a_model_does_not_know_has_no_point(client: Any) -> None:
    told = refusal(client, "points", model=STATIC, word="苹果")
    assert STATIC in told and "苹果" in told


def test_known_senses_are_scored(client: Any, opened: Any) -> None:
    from sememe.evaluation.senses import evaluate_senses, find_sets

    meta, columns = points(client, model="bert-chinese", word="苹果", set="chinese")
    assert columns["x"].shape[1] == 10
    (own,) = find_sets("chinese")
    result = evaluate_senses(opened("bert-chinese"), own)
    for layer, found in enumerate(meta["same_sense"]):
        (score,) = (one for one in result.scores if one.name == f"layer {layer}")
        wanted = {one.word: one for one in score.words}["苹果"]
        assert found == pytest.approx(wanted.nearest) and meta["chance"] == pytest.approx(
            wanted.chance
        )


def test_the_last_sentence_does_not_move_the_points(client: Any) -> None:
    asked = {"model": "bert", "word": "mouse", "num": 20}
    _, without = points(client, **asked)
    _, with_own = points(client, sentence=OWN, **asked)
    assert np.array_equal(without["x"], with_own["x"]) and with_own["own"].shape == (3, 2)


def test_a_sentence_without_the_word_is_told(client: Any) -> None:
    meta, columns = points(client, model="bert", word="mouse", sentence=f"No such {HOSTILE}.")
    assert "mouse" in meta["problem"] and "cosines" not in columns


def test_bad_questions_get_one_sentence(client: Any) -> None:
    asked = {"model": "bert", "word": "mouse"}
    assert "too few" in refusal(client, "points", **asked | {"word": "zebra"})
    assert "english" in refusal(client, "points", **asked, set="nonsense")
    assert "bank" in refusal(client, "uses", word="bank", set="chinese")
    assert "6" in refusal(client, "points", **asked, clusters=7)
    assert refusal(client, "points", **asked | {"model": "ngram"})
    unknown = client.post("/explore/api/context/points", json=asked | {"model": "<script>"})
    assert unknown.status_code == 404 and "<script>" in unknown.json()["error"]["message"]
    for bad in ({"num": 2}, {"num": 501}, {"word": ""}, {"sentence": "x" * 2_001}, {"nonsense": 1}):
        assert refusal(client, "points", **asked | bad)


def test_examples_occur_in_the_text_or_have_known_senses(client: Any) -> None:
    for name in ("bert", "bert-chinese"):
        answer = client.get("/explore/api/context/examples", params={"model": name})
        found = answer.json()["words"]
        assert found
        for own in found:
            assert len(ask(client, "uses", word=own["word"], set=own["set"])["uses"]) > 9
    assert any(unicodedata.name(own["word"][0]).startswith("CJK") for own in found)


# ---- parts --------------------------------------------------------------------------------------


def test_planes_of_neighboring_layers_are_aligned() -> None:
    random = np.random.default_rng(1)
    first_ND = random.normal(size=(40, 16))
    rotation_DD = np.linalg.qr(random.normal(size=(16, 16)))[0]
    one, two = aligned([plane(first_ND), plane(first_ND @ rotation_DD)])
    assert np.allclose(one.points_N2, two.points_N2, atol=1e-6)
    assert np.allclose(one.place(first_ND[3]), one.points_N2[3], atol=1e-5)


def test_planes_of_two_uses_and_of_one_place() -> None:
    assert plane(np.array([[1.0, 0], [0, 1]])).points_N2[:, 1] == pytest.approx([0, 0])
    assert plane(np.ones((5, 3))).is_one_point


def test_mean_cosine_is_the_mean_over_pairs() -> None:
    units_ND = np.random.default_rng(1).normal(size=(6, 4))
    units_ND /= np.linalg.norm(units_ND, axis=1, keepdims=True)
    cosines = (units_ND @ units_ND.T)[np.triu_indices(6, 1)]
    assert mean_cosine(units_ND) == pytest.approx(cosines.mean())


def test_clusters_are_found_and_named() -> None:
    money = [Use(f"My bank lends money to {name}.", 3, 7, 0) for name in "abcdef"]
    river = [Use(f"The river has a bank and water {name}.", 16, 20, 0) for name in "abcd"]
    units_ND = np.eye(3)[[0] * 6 + [1] * 4] + 0.01 * np.random.default_rng(1).normal(size=(10, 3))
    for num in (0, 2):
        numbers, names = clustered(units_ND, money + river, "bank", num)
        assert numbers.tolist() == [0] * 6 + [1] * 4
        assert names == [["lends", "money"], ["river", "water"]]
    assert typical_words([Use("。", 0, 1, 0)], np.array([0]), "。") == [[]]


def test_own_sentences_are_read_as_they_are_typed() -> None:
    assert locate("bank", "  A  BANK, a bank ")[1:3] == (2, 6)
    assert locate("打", "我打算打他")[1:3] == (3, 4)  # the word, not a part of 打算
    assert locate("𠮷", "𠮷 是𠮷")[1:3] == (0, 1)
    with pytest.raises(InputError):
        locate("bank", "A river.")
