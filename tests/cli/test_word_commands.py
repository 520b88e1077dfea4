"""Questions to vectors, as commands."""

import pytest


def test_neighbors_as_lines_and_as_json(sememe, vector_file):
    plain = sememe("neighbors", vector_file, "breakfast", "--num", 2)
    words = [line.split("\t")[0] for line in plain.out.splitlines()]
    assert sorted(words) == ["dinner", "lunch"]
    found = sememe("neighbors", vector_file, "breakfast", "--num", 2, "--json").json
    assert [row["word"] for row in found["breakfast"]] == words
    assert found["breakfast"][0]["score"] == pytest.approx(1, abs=0.02)


def test_neighbors_of_several_words(sememe, vector_file):
    found = sememe("neighbors", vector_file, "king", "lunch", "国王", "--json").json
    assert list(found) == ["king", "lunch", "国王"]
    assert found["国王"][0]["word"] == "king"
    plain = sememe("neighbors", vector_file, "king", "lunch", "--num", 1).out.splitlines()
    assert plain[0] == "king" and plain[3] == "lunch"


def test_a_sum_is_written_as_one_speaks_of_it(sememe, vector_file):
    by_options = ("--positive", "king", "--positive", "woman", "--negative", "man")
    asked = sememe("neighbors", vector_file, *by_options, "--json").json
    assert list(asked) == ["king + woman - man"]
    for words in (("king", "-", "man", "+", "woman"), ("king - man + woman",)):
        assert sememe("neighbors", vector_file, *words, "--json").json == asked
    wrong = sememe("neighbors", vector_file, "king", "-", "-", fails=True)
    assert "is not a sum of words" in wrong.err


def test_neighbors_of_a_sum(sememe, vector_file):
    options = ("--positive", "king", "--positive", "woman", "--negative", "man", "--num", 2)
    found = sememe("neighbors", vector_file, *options, "--json").json
    assert "queen" in [row["word"] for row in found["king + woman - man"]]
    mixed = sememe("neighbors", vector_file, "king", "--negative", "man", "--json").json
    assert list(mixed) == ["king - man"]


def test_neighbors_among_the_most_frequent_only(sememe, vector_file):
    found = sememe("neighbors", vector_file, "king", "--restrict-vocab", 4, "--json").json
    assert {row["word"] for row in found["king"]} == {"queen", "man", "woman"}
    found = sememe("neighbors", vector_file, "king", "--limit", 4, "--json").json
    assert {row["word"] for row in found["king"]} == {"queen", "man", "woman"}


@pytest.mark.parametrize("method", ["add", "mul"])
def test_analogy(sememe, vector_file, method):
    options = ("--limit", 11, "--method", method)
    found = sememe("analogy", vector_file, "man", "king", "woman", *options, "--json").json
    assert found["answers"][0]["word"] == "queen"
    plain = sememe("analogy", vector_file, "man", "king", "woman", *options, "--num", 1)
    assert plain.out.startswith("queen\t")


def test_similarity_of_every_pair(sememe, vector_file):
    words = ["lunch", "dinner", "国王"]
    told = sememe("similarity", vector_file, *words, "--matrix", "--json").json
    assert told["words"] == words
    pairs = [
        [sememe("similarity", vector_file, a, b, "--json").json["similarity"] for b in words]
        for a in words
    ]
    for own, wanted in zip(told["similarities"], pairs, strict=True):
        assert own == pytest.approx(wanted, abs=1e-6)
    head, *lines = sememe("similarity", vector_file, *words, "--matrix").out.splitlines()
    assert head.split("\t") == ["", *words]
    assert [line.split("\t")[0] for line in lines] == words
    assert lines[0].split("\t")[2] == f"{told['similarities'][0][1]:.4f}"
    for wrong in (words, ["lunch"], ["lunch", "--matrix"]):
        result = sememe("similarity", vector_file, *wrong, fails=True)
        assert result.code == 2 and "with --matrix, two or more" in result.err


def test_similarity(sememe, vector_file):
    score = sememe("similarity", vector_file, "lunch", "dinner", "--json").json["similarity"]
    assert score > 0.9
    assert sememe("similarity", vector_file, "lunch", "dinner").out.strip() == f"{score:.4f}"


def test_odd(sememe, vector_file):
    assert sememe("odd", vector_file, "lunch", "dinner", "king").out == "king\n"
    assert sememe("odd", vector_file, "lunch", "国王", "dinner", "--json").json["odd"] == "国王"


def test_an_unknown_word_names_near_spellings(sememe, vector_file):
    result = sememe("neighbors", vector_file, "quen", fails=True)
    assert result.code == 2
    assert result.err.count("\n") == 1 and "queen" in result.err


def test_neighbors_without_a_word(sememe, vector_file):
    result = sememe("neighbors", vector_file, fails=True)
    assert result.code == 2 and "at least one word" in result.err


def test_a_corpus_of_one_word_is_told_of(sememe, tmp_path):
    (tmp_path / "one.txt").write_text("cat cat cat cat cat dog\n")
    quick = ("--dim", 4, "--workers", 1, "--out", "one", "--quiet")
    for _ in range(2):  # also where the text was read before
        told = sememe("train", "word2vec", "one.txt", *quick, "--overwrite")
        assert "“cat”" in told.err and "--min-count" in told.err
    told = sememe("train", "word2vec", "one.txt", *quick, "--overwrite", "--min-count", 1)
    assert "“cat”" not in told.err


def test_a_query_is_looked_up_as_the_corpus_was_prepared(sememe, corpus, chinese_corpus, tmp_path):
    options = ("--dim", "4", "--epochs", "1", "--min-count", "1", "--workers", "1")
    sememe("train", "word2vec", corpus, "--out", "en", *options)
    sememe("train", "word2vec", chinese_corpus, "--language", "zh", "--out", "zh", *options)
    cased = "“{0}” is looked up as “{1}”."
    commands = (
        "neighbors en CAT", "similarity en CAT dog", "analogy en cat CAT dog",
        "odd en CAT dog man", "plot pca en CAT dog man", "plot heatmap en CAT",
    )  # fmt: skip
    for command in commands:
        ran = sememe(*command.split())
        assert ran.err.splitlines() == [cased.format("CAT", "cat")], command
        exact = sememe(*command.replace("CAT", "cat").split())
        assert exact.err == ""
        if command.split()[0] in ("neighbors", "similarity"):
            assert ran.out == exact.out
    ran = sememe("neighbors", "zh", "红色的苹果", "-n", "100")
    assert (
        ran.err == "“红色的苹果” is not in the vocabulary: the mean of 红色 + 的 + 苹果 is used.\n"
    )
    assert not {"红色", "的", "苹果"} & {line.split("\t")[0] for line in ran.out.splitlines()}
    ran = sememe("neighbors", "zh", "红色龘", fails=True)
    assert ran.code == 2 and "红色 + 龘, and 龘 is unknown" in ran.err
