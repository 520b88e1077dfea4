"""Language models on the command line: counting, suggestions, perplexity, ARPA files."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest


def test_from_text_to_suggestions(sememe, corpus):
    ran = sememe("train", "ngram", corpus, "--order", 3, "--out", "model")
    assert "Try: sememe suggest model" in ran.out
    found = sememe("suggest", "model", "the red ", "-k", 2, "--json").json
    assert found["suggestions"][0]["text"] == "cat"
    assert len(found["suggestions"]) == 2
    assert sememe("suggest", "model", "the old m", "-k", 1).out.startswith("ma")
    assert sememe("info", "model", "--json").json["kind"] == "ngram"
    none = sememe("suggest", "model", "zzz")
    assert not none.out and "vocabulary" in none.err


def test_perplexity_of_a_folder_and_of_its_arpa_file(sememe, corpus):
    options = "--language", "none", "--validation-share", 0, "--quiet", "--json"
    sememe("train", "ngram", corpus, "--out", "model", *options)
    sememe("convert", "model", "model.arpa.gz", "--json")
    sememe("convert", "model.arpa.gz", "again", "--json")
    of_folder = sememe("evaluate", "perplexity", "model", corpus, "--json", "-q").json
    assert of_folder["words"] == 4 * 40 + len(corpus.read_text().split())
    # The file keeps case and takes words as they stand, the folder lowers them first.
    lowered = corpus.with_name("lower.txt")
    lowered.write_text(corpus.read_text().lower())
    for model in ("model.arpa.gz", "again"):
        found = sememe("evaluate", "perplexity", model, lowered, "--json", "-q").json
        assert abs(found["perplexity"] / of_folder["perplexity"] - 1) < 1e-4


def test_chinese_text(sememe, chinese_corpus):
    sememe("train", "ngram", chinese_corpus, "--language", "zh", "--out", "model", "--quiet")
    found = sememe("suggest", "model", "他们", "-k", 3, "--json").json["suggestions"]
    assert found[0]["text"] == "喜欢"


def test_refusals(sememe, corpus):
    assert "nowhere" in sememe("suggest", "nowhere", "a", fails=True).err
    sememe("train", "onehot", corpus, "--out", "onehot", "--quiet")
    ran = sememe("suggest", "onehot", "a", fails=True)
    assert ran.code == 2 and "kinds that can: ngram" in ran.err
    sememe("train", "ngram", corpus, "--out", "model", "--quiet")
    assert "Give a prompt" in sememe("suggest", "model", fails=True).err
    assert "ARPA file or a folder" in sememe("convert", "model", "x.txt", fails=True).err
    assert "cannot become an ARPA" in sememe("convert", "onehot", "x.arpa", fails=True).err
    assert "kinds that can: onehot" in sememe("neighbors", "model", "a", fails=True).err
    ran = sememe("train", "ngram", corpus, "--order", 9, "--out", "m", fails=True)
    assert ran.code == 2 and "order" in ran.err


def test_counted_words_go_on_with_a_text(sememe, corpus):
    sememe("train", "ngram", corpus, "--out", "model", "--quiet")
    told = sememe("generate", "model", "The red", "--max-tokens", 5).out
    assert told.startswith("The red ") and len(told.split()) <= 7
    assert sememe("generate", "model", "The red", "--max-tokens", 5).out == told
    ran = sememe("generate", "model", "The red", "--top-k", 3, fails=True)
    assert ran.code == 2 and "top_k" in ran.err


@pytest.mark.skipif(os.name == "nt", reason="needs a pseudo-terminal")
def test_lines_are_asked_for_on_a_terminal(sememe, corpus, tmp_path):
    import pty

    sememe("train", "ngram", corpus, "--out", "model", "--quiet")
    ours, theirs = pty.openpty()
    os.write(ours, b"the red \nthe old m\n\x04")
    command = [sys.executable, "-m", "sememe.cli", "suggest", "model", "-k", "1"]
    ran = subprocess.run(command, stdin=theirs, capture_output=True, timeout=1_200, cwd=tmp_path)
    os.close(ours)
    os.close(theirs)
    assert ran.returncode == 0, ran.stderr
    assert b"cat\t" in ran.stdout and b"ma" in ran.stdout
    assert b"Ctrl-D" in ran.stderr


def test_nnlm_from_text_to_suggestions_and_neighbors(sememe, corpus):
    quick = "--steps", 20, "--batch-size", 4, "--length", 16, "--dim", 8
    ran = sememe("train", "nnlm", corpus, *quick, "--direct", "--out", "model")
    assert "Saved NNLM tiny" in ran.out and "Try: sememe neighbors model" in ran.out
    assert len(sememe("suggest", "model", "the red ", "-k", 4, "--json").json["suggestions"]) == 4
    assert len(sememe("neighbors", "model", "cat", "--num", 3, "--json").json["cat"]) == 3
    told = sememe("info", "model", "--json").json
    assert told["training"]["learning_rate"] > 0 and "learning_rate" not in told["metrics"]
    found = sememe("evaluate", "perplexity", "model", corpus, "--json", "-q").json
    assert found["perplexity"] > 1 and found["unknown_words"] == 0
    info = sememe("info", "model", "--json").json
    assert info["kind"] == "nnlm" and info["dim"] == 8
    ranked = sememe("train", "nnlm", corpus, *quick, "--ranking", "--json", "--out", "ranking").json
    assert "ranking_accuracy" in ranked["metrics"]
    assert "predicts no word" in sememe("suggest", "ranking", "the ", fails=True).err
