"""Networks of several languages, and from standard input, by command."""

import json
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("tokenizers")

TINY = (
    "--num-layers", 1, "--width", 32, "--num-heads", 2, "--max-length", 32, "--length", 32,
    "--batch-size", 8, "--workers", 1, "--steps", 4, "--evaluate-batches", 2,
    "--validation-share", 0.1, "--device", "cpu", "--quiet",
)  # fmt: skip


def test_two_languages_by_command(sememe, corpus, chinese_corpus, tmp_path):
    for path in (corpus, chinese_corpus):  # documents of several sentences
        lines = path.read_text("utf-8").splitlines()
        parts = ("\n".join(lines[first : first + 5]) for first in range(0, len(lines), 5))
        path.write_text("\n\n".join(parts) + "\n", "utf-8")
    mix = ("--mix", f"en={corpus}", "--mix", f"zh={chinese_corpus}", "--smoothing", 0.5)
    told = sememe("train", "bert", *mix, "--vocab-size", 260, "--out", "both", *TINY).out
    lines = [line.split(":")[0] for line in told.splitlines()]
    assert lines == [
        "hidden tokens", "next sentences", "en", "en", "zh", "zh",
    ]  # fmt: skip
    metrics = json.loads((tmp_path / "both" / "sememe.json").read_text())
    assert metrics["training"]["smoothing"] == 0.5
    shown = sememe("fill", "both", "红色的[MASK]果。", "--json").json
    assert len(shown["masks"]) == 1
    rows = sememe("train", "bert", *mix, "--vocab-size", 260, "--preview", *TINY[:-1]).out
    assert "[CLS]" in rows


def test_a_tokenizer_of_two_languages(sememe, corpus, chinese_corpus):
    mix = ("--mix", f"en={corpus}", "--mix", f"zh={chinese_corpus}")
    sememe("train", "tokenizer", *mix, "--vocab-size", 260, "--out", "pieces", "--quiet")
    told = sememe("train", "gpt", *mix, "--tokenizer", "pieces", "--out", "gpt", *TINY).out
    assert "zh: next tokens" in told


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--mix", "zh"), "zh=news/"),
        (("--mix", "=text.txt"), "zh=news/"),
        (("text.txt", "--mix", "en=text.txt"), "not both"),
        (("--mix", "en=nowhere.txt"), "nowhere.txt"),
        (("--mix", "english text=text.txt"), "language must be a code"),
        (("--mix", "en=text.txt", "--smoothing", 2), "smoothing must be between 0 and 1"),
    ],
)
def test_what_is_wrong_with_a_mix(sememe, corpus, options, says):
    result = sememe("train", "bert", *options, "--out", "model", *TINY, fails=True)
    assert result.code == 2 and says in result.err and result.err.count("\n") == 1


@pytest.mark.parametrize("command", ["bert", "gpt"])
def test_standard_input_serves_tokenizer_and_network(sememe, corpus, command):
    size = ("--vocab-size", 300)
    sememe("train", command, corpus, "--layout", "line", "--out", "file", *size, *TINY)
    text = corpus.read_text()
    sememe("train", command, "-", "--layout", "line", "--out", "piped", *size, *TINY, stdin=text)
    weights = [Path(name, "model.safetensors").read_bytes() for name in ("file", "piped")]
    assert weights[0] == weights[1]


@pytest.mark.parametrize(("num_sentences", "is_warned"), [(1, True), (6, False)])
def test_documents_of_one_sentence_make_no_next_sentences(
    sememe, tmp_path, num_sentences, is_warned
):
    rows = [
        json.dumps({"text": " ".join(f"Cat {row} sat on mat {n}." for n in range(num_sentences))})
        for row in range(120)
    ]
    (tmp_path / "rows.jsonl").write_text("\n".join(rows))
    ran = sememe("train", "bert", "rows.jsonl", "--vocab-size", 150, "--out", "b", *TINY[:-1])
    assert ("--no-next-sentence" in ran.err) == is_warned
    assert ("exactly half of the others are true" in ran.err) != is_warned
    assert ("next sentences: " in ran.out) != is_warned
    follows = ("next", "b", "Cat sat.", "On mat.")
    assert ("next head" in sememe(*follows, fails=is_warned).err) == is_warned
    alone = ("--no-next-sentence", "--vocab-size", 150, "--out", "m", *TINY[:-1])
    assert "next-sentence" not in sememe("train", "bert", "rows.jsonl", *alone).err
