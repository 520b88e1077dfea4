"""Scores, pictures, conversions and descriptions of vectors, as commands."""

import json

import pytest

import sememe as package
from sememe.progress import History


def test_evaluate_on_files(sememe, vector_file, tmp_path):
    (tmp_path / "pairs.tsv").write_text("lunch\tdinner\t9\nking\tlunch\t1\nking\tqueen\t4\n")
    (tmp_path / "questions.txt").write_text(": royal\nman king woman queen\n")
    data = ("--data", tmp_path / "pairs.tsv", "--data", tmp_path / "questions.txt")
    result = sememe("evaluate", "words", vector_file, *data, "--json", "--quiet").json
    by_kind = {score["kind"]: score for score in result["scores"]}
    assert by_kind["pairs"]["num_asked"] == 3 and by_kind["pairs"]["coverage"] == 1
    assert by_kind["analogies"]["num_asked"] == 1
    assert result["version"] == package.__version__ and result["seed"] == 1
    plain = sememe("evaluate", "words", vector_file, *data, "--quiet").out
    assert "pairs" in plain and "questions" in plain and "coverage" in plain


def test_evaluate_on_the_built_in_sets_says_what_is_covered(sememe, vector_file, tmp_path):
    nothing = sememe("evaluate", "words", vector_file, fails=True)
    assert nothing.code == 2 and "None of the questions of the built-in" in nothing.err
    (tmp_path / "few.txt").write_text("hot 1 0\ncold 1 1\nred 0 1\ngreen 0 2\n")
    result = sememe("evaluate", "words", tmp_path / "few.txt", "--json", "--quiet").json
    assert {score["name"] for score in result["scores"]} >= {"analogies", "antonyms", "odd"}
    assert all(score["coverage"] < 0.5 for score in result["scores"])


def test_built_in_sets_that_do_not_fit_the_language_are_said(sememe, tmp_path):
    (tmp_path / "zh.txt").write_text("高 1 0\n低 0 1\n大 1 1\n小 1 2\n", encoding="utf-8")
    ran = sememe("evaluate", "words", tmp_path / "zh.txt")
    assert "gram-" not in ran.out and "单字" in ran.out  # sections of what was asked only
    assert "built-in Chinese questions" in ran.err
    assert "no question in the built-in analogies, groups, odd" in ran.err and "--data" in ran.err


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_pca_with_pairs_from_the_line_and_from_a_file(sememe, vector_file, tmp_path, ending):
    (tmp_path / "pairs.txt").write_text("# comment\nprince princess\n国王 女王\n", encoding="utf-8")
    out = tmp_path / f"map.{ending}"
    pairs = ("--pairs", "king:queen,man:woman", "--pairs", tmp_path / "pairs.txt")
    result = sememe("plot", "pca", vector_file, "lunch", *pairs, "--out", out)
    assert str(out) in result.out
    head = out.read_bytes()[:300]
    assert head.startswith(b"\x89PNG") if ending == "png" else b"<svg" in head or b"<?xml" in head


def test_two_pictures_at_once(sememe, vector_file, tmp_path):
    outs = ("--out", tmp_path / "a.png", "--out", tmp_path / "a.svg")
    sememe("plot", "heatmap", vector_file, "king", "queen", "king - man + woman", *outs)
    assert (tmp_path / "a.png").stat().st_size > 1_000 < (tmp_path / "a.svg").stat().st_size


def test_history(sememe, tmp_path):
    (tmp_path / "model").mkdir()
    History({"words": n * 1_000, "loss": 1 / n} for n in range(1, 9)).save(
        tmp_path / "model" / "history.json"
    )
    sememe("plot", "history", "model")
    assert (tmp_path / "history.png").exists()


@pytest.mark.parametrize(
    ("target", "format"),
    [
        ("out.bin", "word2vec-binary"),
        ("out.txt", "word2vec"),
        ("out.vec.gz", "word2vec"),
        ("folder", "folder"),
        ("bert-1.2", "folder"),
        ("my.vectors/", "folder"),
    ],
)
def test_convert_tells_the_format_by_the_name(sememe, vector_file, tmp_path, target, format):
    result = sememe("convert", vector_file, target, "--json").json
    assert result["format"] == format and result["words"] == 13
    before, after = package.load(vector_file), package.load(tmp_path / target)
    assert list(after) == list(before)
    assert after.similarity("king", "queen") == pytest.approx(before.similarity("king", "queen"))


@pytest.mark.parametrize("target", ["vectors.foo", "vectors.gz", "向量.foo.xz", "vectors.npy"])
def test_convert_refuses_an_ending_that_it_does_not_know(sememe, vector_file, tmp_path, target):
    refused = sememe("convert", vector_file, target, fails=True)
    assert refused.code == 2 and target in refused.err
    assert ".vec" in refused.err and "a folder" in refused.err and "|glove|" in refused.err
    assert not (tmp_path / target).exists()
    sememe("convert", vector_file, target, "--format", "folder")
    sememe("convert", vector_file, target, "--overwrite")  # a folder of that name is there now
    assert (tmp_path / target).is_dir()


def test_convert_to_a_named_format_with_a_limit(sememe, vector_file, tmp_path):
    sememe("convert", vector_file, "some.name", "--format", "glove", "--limit", 3)
    assert len((tmp_path / "some.name").read_text().splitlines()) == 3


@pytest.mark.parametrize("target", ["folder", "vectors.bin", "vectors.txt.gz"])
def test_convert_replaces_nothing_unless_told_to(sememe, vector_file, tmp_path, target):
    sememe("convert", vector_file, target, "--limit", 3)
    place = tmp_path / target
    own = place / "sememe.json" if place.is_dir() else place
    before = own.read_bytes()
    refused = sememe("convert", vector_file, target, fails=True)
    assert refused.code == 2 and target in refused.err and "--overwrite" in refused.err
    assert own.read_bytes() == before
    sememe("convert", vector_file, target, "--overwrite")
    assert sememe("info", target, "--json").json["words"] == 13


def test_the_words_beside_vectors_replace_no_other_file(sememe, vector_file, tmp_path):
    texts = tmp_path / "texts.tsv"
    texts.write_text("text\nking queen\nman\n")
    asked = ("embed", vector_file, texts, "--pool", "words", "--out")
    refused = sememe(*asked, "texts.npy", fails=True)
    assert refused.code == 2 and "texts.tsv" in refused.err
    assert texts.read_text() == "text\nking queen\nman\n" and not (tmp_path / "texts.npy").exists()
    sememe(*asked, "words.npy")
    assert "--overwrite" in sememe(*asked, "words.npy", fails=True).err
    for earlier in ("text\tword\n0\tking\n", ""):  # its own file of words is replaced
        (tmp_path / "words.tsv").write_text(earlier or "text\tword\tstart\tend\n")
        sememe(*asked, "words.npy", "--overwrite")
        assert (tmp_path / "words.tsv").read_text().splitlines()[-1] == "1\tman\t0\t3"


def test_a_picture_of_pairs_names_every_word_that_is_unknown(sememe, vector_file):
    ran = sememe(
        "plot", "pca", vector_file, "--pairs", "man:woman,kimg:queen,国玉:king", fails=True
    )
    assert (
        ran.code == 2 and "“kimg” (near: king), “国玉”" in ran.err and "leave them out" in ran.err
    )
    ran = sememe("plot", "pca", vector_file, "--pairs", "man:woman,kimg:queen", fails=True)
    assert "“kimg” is not among the 13 words. Near spellings: king." in ran.err


def test_info_of_a_file_and_a_folder(sememe, vector_file):
    told = sememe("info", vector_file, "--json").json
    assert (told["words"], told["dim"]) == (13, 8)
    sememe("convert", vector_file, "folder")
    told = sememe("info", "folder", "--json").json
    assert (told["kind"], told["words"], told["dim"]) == ("vectors", 13, 8)
    assert "words\t13" in sememe("info", "folder").out


def test_info_of_a_token_store(sememe, corpus):
    from sememe.text.settings import TextSettings
    from sememe.tokens.caching import open_or_build

    open_or_build(str(corpus), TextSettings(), min_count=1, path=corpus.with_name("store"))
    told = json.loads(sememe("info", "store", "--json").out)
    assert told["kind"] == "tokens" and told["documents"] == 160
