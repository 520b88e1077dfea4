"""Indexes: what a search finds, how rows change, and what an index is bound to."""

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import sememe
from recorded_notes import Notes
from sememe.errors import ArtifactError, InputError, OptionError
from sememe.search.index import Search
from sememe.search.passages import highlights, size_of, snippet, split
from sememe.search.ranking import nearest_by_bits, nearest_rows, packed_bits, quantized
from sememe.search.rows import Condition, conditions
from sememe.text.settings import TextSettings

WORDS = ["cat", "dog", "kitten", "puppy", "stock", "market", "share", "fell", "the", "a"]
TEXTS = [
    "The kitten sleeps.",
    "A dog and a puppy.",
    "The stock market fell.",
    "Unknown words only here.",
]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """Word vectors in which cat is near kitten, dog near puppy, stock near market."""
    rows = np.random.default_rng(1).normal(0, 0.1, (len(WORDS), 24)).astype("f4")
    for group, words in enumerate((("cat", "kitten"), ("dog", "puppy"), ("stock", "market"))):
        for word in words:
            rows[WORDS.index(word), group] += 3
    sememe.WordVectors(WORDS, rows).save(tmp_path / "model")
    return tmp_path / "model"


def ids(hits) -> list[str]:
    return [hit.id for hit in hits]


# ---- what is found ------------------------------------------------------------------------


def test_dense_search_finds_meaning_and_lexical_search_words(model: Path) -> None:
    index = Search.build(TEXTS, model)
    assert ids(index.search("cat", 1)) == ["0"]
    assert ids(index.search("cat", mode="lexical")) == []
    assert ids(index.search("only unknown", mode="lexical")) == ["3"]
    assert "3" not in ids(index.search("cat", mode="dense"))  # it has no vector
    assert {*ids(index.search("stock words", 3))} >= {"2", "3"}


def test_hybrid_search_is_the_fusion_of_both(model: Path) -> None:
    index = Search.build(TEXTS, model)
    query = "the dog fell"
    rankings = [ids(index.search(query, mode=mode)) for mode in ("lexical", "dense")]
    scores = {
        row: sum(1 / (61 + found.index(row)) for found in rankings if row in found)
        for row in {*rankings[0], *rankings[1]}
    }
    hits = index.search(query, mode="hybrid")
    assert ids(hits) == sorted(scores, key=lambda row: (-scores[row], row))
    np.testing.assert_allclose([hit.score for hit in hits], [scores[hit.id] for hit in hits])


def test_dense_scores_are_cosines_of_the_models_vectors(model: Path) -> None:
    index, own = Search.build(TEXTS, model), sememe.load(model)
    rows, query = own.embed(TEXTS), own.embed(["cat market"])[0]
    for hit in index.search("cat market", mode="dense"):
        row = rows[int(hit.id)]
        expected = row @ query / np.linalg.norm(row) / np.linalg.norm(query)
        assert hit.score == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("vectors", ["int8", "binary"])
def test_small_vectors_find_the_same(vectors, model: Path, tmp_path: Path) -> None:
    exact = Search.build(TEXTS, model)
    small = Search.build(TEXTS, model, vectors=vectors, folder=tmp_path / "small")
    small.add(["A puppy fell."])
    exact.add(["A puppy fell."])
    for query in ("cat", "dog", "the market"):
        found = small.search(query, mode="dense")
        assert ids(found) == ids(exact.search(query, mode="dense"))
    assert (small.folder / "vectors.npy").stat().st_size < 300


def test_small_vectors_of_many_rows_keep_most_neighbors() -> None:
    draw = np.random.default_rng(5)
    centers = draw.normal(size=(100, 64))
    rows = (centers[draw.integers(100, size=20_000)] + draw.normal(size=(20_000, 64))).astype("f4")
    queries = rows[:50] + 0.5 * draw.normal(size=(50, 64)).astype("f4")
    exact = nearest_rows(rows, queries, 10)
    codes = quantized(rows)
    by_code = nearest_rows(codes, queries, 10)
    by_bits = nearest_by_bits(packed_bits(rows), codes, queries, 10)

    def recall(found) -> float:
        pairs = zip(found, exact, strict=True)
        return float(np.mean([len({*a.tolist()} & {*b.tolist()}) / 10 for (a, _), (b, _) in pairs]))

    assert recall(by_code) > 0.95 and recall(by_bits) > 0.6
    # int8 codes are compared exactly, and so is what bits propose.
    plain = nearest_rows(codes.astype("f4"), queries, 10)
    for (one, _), (other, _) in zip(by_code, plain, strict=True):
        assert one.tolist() == other.tolist()


def test_bits_count_equal_signs() -> None:
    from sememe.vectors.kernels import equal_bits

    draw = np.random.default_rng(2)
    rows, query = draw.normal(size=(30, 70)), draw.normal(size=(1, 70))
    out = np.empty(30, np.int32)
    equal_bits(packed_bits(rows), packed_bits(query)[0], out)
    expected = ((rows > 0) == (query > 0)).sum(1) + (128 - 70)  # padding is always equal
    assert out.tolist() == expected.tolist()


def test_approximate_search_finds_the_same(model: Path, tmp_path: Path) -> None:
    pytest.importorskip("usearch")
    for vectors in ("float32", "int8"):
        index = Search.build(TEXTS, model, vectors=vectors, folder=tmp_path / vectors)
        for _ in range(2):  # the second time from the folder
            found = index.search("cat", mode="dense", approximate=True)
            assert ids(found) == ids(index.search("cat", mode="dense"))
            index = Search.load(index.folder)


def test_many_queries_at_once_rank_as_one_by_one(model: Path) -> None:
    index = Search.build(TEXTS, model)
    for mode in ("dense", "lexical", "hybrid"):
        ranked = index.rank(["cat", "the market"], 3, mode=mode)
        for query, (rows, scores) in zip(["cat", "the market"], ranked, strict=True):
            hits = index.search(query, 3, mode=mode)
            assert [str(row) for row in rows] == ids(hits)
            assert scores.tolist() == [hit.score for hit in hits]


# ---- rows ---------------------------------------------------------------------------------


def test_tables_keep_cells_and_conditions_choose_rows(tmp_path: Path) -> None:
    (tmp_path / "news.csv").write_text(
        "key,headline,year,label\nx,Match won,2019,sports\ny,Match lost,2021,sports\n"
        "z,Match of prices,2022,money\n",
        encoding="utf-8",
    )
    notes = Notes()
    index = Search.build(tmp_path / "news.csv", columns={"id": "key"}, progress=notes)
    assert "headline" in notes
    assert {*ids(index.search("match"))} == {"x", "y", "z"}
    for where, expected in (
        ("year>=2021", {"y", "z"}),
        (["year>=2021", "label=sports"], {"y"}),
        ({"label": "money"}, {"z"}),
        ("label!=sports", {"z"}),
        ("year<2019", set()),
    ):
        assert {*ids(index.search("match", where=where))} == expected
    (hit,) = index.search("prices", 1)
    assert hit.cells["year"] == "2022" and hit.cells["row"] == 3
    assert hit.cells["file"].endswith("news.csv")
    with pytest.raises(OptionError, match="colour"):
        index.search("match", where="colour=red")


def test_conditions_compare_numbers_as_numbers_and_others_as_text() -> None:
    assert conditions("year >= 2020") == [Condition("year", ">=", "2020")]
    assert Condition("n", ">", "9").holds("10") and not Condition("n", ">", "9").holds(2)
    assert Condition("day", "<", "2020-05-01").holds("2020-04-30")
    assert Condition("tags", "=", "b").holds(["a", "b"])
    assert Condition("is", "=", "true").holds(True)
    assert not Condition("n", "=", "1").holds(None) and Condition("n", "!=", "1").holds(None)
    with pytest.raises(OptionError, match="import os"):
        conditions("import os")


def test_text_files_are_cited_by_line(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("First words.\n\nSecond\nparagraph.\n\n\nThird one.\n")
    index = Search.build(tmp_path / "a.txt")
    assert [own.split(":")[-1] for own in index.ids] == ["1", "3", "7"]
    assert index.search("paragraph")[0].text == "Second\nparagraph."


def test_rows_without_text_are_left_out_and_counted(tmp_path: Path) -> None:
    notes = Notes()
    index = Search.build(["a word", "", "  ", "another word"], progress=notes)
    assert index.ids == ["0", "3"] and "Empty rows omitted: 2" in notes
    with pytest.raises(InputError, match="no text"):
        Search.build(iter(["", " \n"]))


def test_another_encoding_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "zh.txt").write_bytes(
        "我们今天去公园散步。\n明天有一场足球比赛。\n".encode("gb18030")
    )
    with pytest.raises(InputError, match="gb18030"):
        Search.build(tmp_path / "zh.txt")
    index = Search.build(tmp_path / "zh.txt", encoding="gb18030")
    assert index.search("足球")[0].text == "明天有一场足球比赛。"


def test_chinese_words_are_found_and_highlighted() -> None:
    notes = Notes()
    index = Search.build(
        ["我们在公园里散步。", "明天有一场足球比赛。", "股票市场下跌了。"], progress=notes
    )
    assert "Chinese" in notes
    (hit,) = index.search("足球比赛的结果", 1)
    assert hit.id == "1" and "【足球比赛】" in hit.snippet.marked("【", "】")
    assert "【比赛】" in index.search("比赛", 1)[0].snippet.marked("【", "】")


# ---- passages -----------------------------------------------------------------------------


@pytest.mark.parametrize("language", ["en", "zh"])
def test_passages_cover_the_text_and_overlap(language: str) -> None:
    sentence = "Word {} is here. " if language == "en" else "这里是第{}个句子。"
    text = "".join(sentence.format(number) for number in range(200))
    spans = split(text, 300, 60, TextSettings(language=language))
    assert all(0 < size_of(text[start:end]) <= 300 for start, end in spans)
    assert spans[0][0] == 0 and spans[-1][1] == len(text.rstrip())
    for (_, end), (start, _) in pairwise(spans):
        assert start < end and size_of(text[start:end]) <= 60
    assert all(text[end - 1] in ".。" for _, end in spans)


def test_a_long_word_is_cut_and_a_short_text_is_one_passage() -> None:
    settings = TextSettings()
    spans = split("x" * 1_000, 300, 50, settings)
    assert "".join("x" * (end - start) for start, end in spans) == "x" * 1_000
    assert split("  short \n", 300, 50, settings) == [(2, 7)]
    assert split("y " * 1_000, 0, 0, settings) == [(0, 1_999)]


def test_a_row_is_found_by_its_best_passage(model: Path) -> None:
    text = "The market fell. " * 30 + "A kitten sleeps. " + "The market fell. " * 30
    index = Search.build([text, "A dog."], model, passage=120, overlap=30)
    (hit, *_) = index.search("cat", mode="dense")
    assert hit.id == "0" and "kitten" in hit.text and hit.text == text[hit.start : hit.end]
    assert index.row("0").text == text


def test_snippets_show_the_words_of_the_query() -> None:
    text = "Nothing here. " * 40 + "The cat sat on the mat. " + "Nothing here. " * 40
    found = snippet(text, ["cat", "mat"])
    assert found.text.startswith("… ") and found.text.endswith(" …") and len(found.text) < 210
    assert [found.text[start:end] for start, end in found.highlights] == ["cat", "mat"]
    assert highlights("Cats and CAT", ["cat"]) == [(9, 12)]
    assert snippet("Short\ntext", []).text == "Short text"


# ---- changes ------------------------------------------------------------------------------


def test_rows_are_added_updated_and_deleted(model: Path, tmp_path: Path) -> None:
    index = Search.build(TEXTS, model, folder=tmp_path / "index")
    assert index.add(["A cat.", {"id": "own", "text": "More stock.", "year": 2020}]) == ["4", "own"]
    assert index.search("cat", 1, mode="lexical")[0].id == "4"
    assert ids(index.search("stock", where="year=2020")) == ["own"]
    index.update([{"id": "0", "text": "The share fell."}])
    assert ids(index.search("kitten", mode="lexical")) == []
    index.delete(["4", "2"])
    again = Search.load(tmp_path / "index")
    assert again.ids == index.ids == ["0", "1", "3", "own"]
    fresh = Search.build(["The share fell.", *TEXTS[1:2], TEXTS[3], "More stock."], model)
    for query in ("cat", "the stock", "share fell"):
        for mode in ("dense", "lexical", "hybrid"):
            found = again.search(query, mode=mode)
            expected = fresh.search(query, mode=mode)
            assert [(hit.text, hit.score) for hit in found] == [
                (hit.text, hit.score) for hit in expected
            ]
    for call, value in ((index.add, {"id": "own", "text": "x"}), (index.update, {"text": "x"})):
        with pytest.raises(InputError):
            call([value | {"id": value.get("id", "nowhere")}])
    with pytest.raises(InputError, match="nowhere"):
        index.delete("nowhere")
    assert again.ids == Search.load(tmp_path / "index").ids


def test_unchanged_rows_are_not_embedded_again(model: Path, tmp_path: Path, monkeypatch) -> None:
    texts = tmp_path / "texts.txt"
    texts.write_text("\n".join(TEXTS), encoding="utf-8")
    Search.reuse(texts, model, folder=tmp_path / "index")
    embedded: list[str] = []
    own = sememe.WordVectors.embed_role

    def embed_role(self, texts, role):
        embedded.extend(texts)
        return own(self, texts, role)

    monkeypatch.setattr(sememe.WordVectors, "embed_role", embed_role)
    notes = Notes()
    Search.reuse(texts, model, folder=tmp_path / "index", progress=notes)
    assert not embedded and "unchanged" in notes
    texts.write_text("\n".join([*TEXTS, "A new cat."]), encoding="utf-8")
    index = Search.reuse(texts, model, folder=tmp_path / "index", progress=notes)
    assert embedded == ["A new cat."] and len(index) == 5
    assert "changed" in notes


def test_an_index_can_be_saved_and_moved(model: Path, tmp_path: Path) -> None:
    index = Search.build(TEXTS, model)
    index.save(tmp_path / "one")
    (tmp_path / "one").rename(tmp_path / "two")
    model.rename(tmp_path / "elsewhere")
    again = Search.load(tmp_path / "two")
    assert ids(again.search("kitten", mode="lexical")) == ["0"]
    with pytest.raises(ArtifactError, match="no longer"):
        again.search("cat")
    assert ids(Search.load(tmp_path / "two", tmp_path / "elsewhere").search("cat", 1)) == ["0"]


def test_another_model_is_refused(model: Path, tmp_path: Path) -> None:
    index = Search.build(TEXTS, model, folder=tmp_path / "index")
    rows = np.random.default_rng(8).normal(size=(len(WORDS), 24)).astype("f4")
    sememe.WordVectors(WORDS, rows).save(tmp_path / "other")
    with pytest.raises(ArtifactError, match="another model"):
        Search.load(index.folder, tmp_path / "other").search("cat")
    with pytest.raises(OptionError, match="saved"):
        Search.build(TEXTS, sememe.WordVectors(WORDS, rows))
    lexical = Search.build(TEXTS, folder=tmp_path / "lexical")
    with pytest.raises(OptionError, match="no vectors"):
        lexical.search("cat", mode="dense")


def test_a_model_that_was_edited_is_another_one(model: Path, tmp_path: Path) -> None:
    index = Search.build(TEXTS, model, folder=tmp_path / "index")
    card = model / "README.md"
    card.write_text("Our vectors.", encoding="utf-8")
    assert ids(Search.load(index.folder, model).search("cat", 1)) == ["0"]
    manifest = model / "sememe.json"
    told = json.loads(manifest.read_text(encoding="utf-8")) | {"edited": True}
    manifest.write_text(json.dumps(told), encoding="utf-8")
    with pytest.raises(ArtifactError, match="another model"):
        Search.load(index.folder, model).search("cat")


def test_a_damaged_index_is_one_error(model: Path, tmp_path: Path) -> None:
    index = Search.build(TEXTS, model, folder=tmp_path / "index")
    vectors = index.folder / "vectors.npy"
    vectors.write_bytes(vectors.read_bytes()[:-4])
    with pytest.raises(ArtifactError):
        Search.load(index.folder)
    with pytest.raises(ArtifactError, match="search index"):
        sememe.load(index.folder)


def test_a_folder_of_something_else_is_kept(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("Dear all")
    with pytest.raises(sememe.SememeError, match="mine"):
        Search.build(TEXTS, folder=tmp_path / "mine")
    assert (tmp_path / "mine" / "letter.txt").read_text() == "Dear all"


def test_hits_are_json(model: Path) -> None:
    index = Search.build(TEXTS, model)
    told = json.loads(json.dumps([hit.to_dict() for hit in index.search("the kitten")]))
    assert told[0]["text"] == TEXTS[0] and told[0]["highlights"] == [[0, 3], [4, 10]]
    assert json.loads(json.dumps(index.describe()))["rows"] == 4


@pytest.mark.parametrize("name", ["sentence", "bert", "sentence-static", "word2vec-cbow-negative"])
def test_texts_longer_than_the_model_are_counted(name: str, golden: Path) -> None:
    pytest.importorskip("torch")
    own, notes = sememe.load(golden / name), Notes()
    texts = ["the cat sat " * 300, "the cat"]
    is_static = name in ("sentence-static", "word2vec-cbow-negative")
    assert own.num_longer(texts) == (0 if is_static else 1)
    index = Search.build(texts, own, passage=0, progress=notes)
    assert ("longer than the model reads at once: 1;" in notes) != is_static
    (first, second) = index.search("cat", mode="dense")
    expected = (
        own.embed_role([texts[int(first.id)]], "document") @ own.embed_role(["cat"], "query").T
    )
    assert first.score >= second.score and np.sign(first.score) == np.sign(expected)[0, 0]


def test_one_long_row_leaves_room_for_others(tmp_path):
    long = " ".join(f"The cat number {number} sleeps on the mat." for number in range(400))
    texts = [long, *(f"A cat and its owner, story {number}." for number in range(50))]
    found = Search.build(texts, folder=tmp_path / "index", passage=100, overlap=0)
    assert len(found.search("cat", 10)) == 10
    assert [len(rows) for rows, _ in found.rank(["cat"], 20)] == [20]


def test_two_writers_lose_nothing_and_a_reader_keeps_what_it_opened(tmp_path):
    Search.build(["alpha cat", "bravo dog", "charlie fish"], folder=tmp_path / "index")
    reader, one, other = (Search.load(tmp_path / "index") for _ in range(3))
    one.delete("0")
    other.add(["delta bird"])
    assert [hit.text for hit in Search.load(tmp_path / "index").search("dog")] == ["bravo dog"]
    assert len(other) == 3 and [hit.text for hit in other.search("bird")] == ["delta bird"]
    assert [hit.text for hit in reader.search("dog")] == ["bravo dog"]
    assert [hit.text for hit in reader.search("cat")] == ["alpha cat"]


def test_updates_that_would_lose_rows_are_refused(tmp_path):
    found = Search.build(["alpha cat", "bravo dog"], folder=tmp_path / "index")
    for data in (
        ["new text"],
        [{"id": "1", "text": " "}],
        [{"id": "1", "text": "one"}, {"id": "1", "text": "two"}],
        [{"id": "7", "text": "seven"}],
    ):
        with pytest.raises(InputError):
            found.update(data)
    assert [found.row(id).text for id in found.ids] == ["alpha cat", "bravo dog"]


def test_a_model_for_an_index_without_vectors_is_refused(tmp_path):
    Search.build(["alpha cat"], folder=tmp_path / "index")
    with pytest.raises(OptionError, match="no vectors"):
        Search.load(tmp_path / "index", "some-model")


def test_a_cell_that_is_no_number_is_not_more_than_one():
    (year,) = conditions("year>=2020")
    assert [year.holds(cell) for cell in (2021, "2019", "unknown", float("nan"), "")] == [
        True, False, False, False, False,
    ]  # fmt: skip
    (long,) = conditions("id=9007199254740993")
    assert long.holds("9007199254740993") and not long.holds(9007199254740992)
    assert conditions("b=True")[0].holds(True) and conditions({"b": None})[0].holds("")
    with pytest.raises(OptionError, match="one value"):
        conditions({"b": ["x", "y"]})


def test_no_passage_lies_inside_the_one_before():
    text = " ".join(["It is a short sentence of a text here."] * 20 + ["And one" + " more" * 190])
    spans = split(text, 800, 200, TextSettings())
    assert all(a[1] < b[1] and a[0] < b[0] for a, b in pairwise(spans))
    assert all(b[0] <= a[1] + 1 for a, b in pairwise(spans))
