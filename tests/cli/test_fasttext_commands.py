"""Commands on Facebook's fastText models: asked, converted and described."""

from __future__ import annotations

from pathlib import Path

from fasttext_models import DATA

MODEL, PRUNED = DATA / "skipgram.bin", DATA / "cut.ftz"


def test_info_shows_the_options(sememe) -> None:
    content = sememe("info", MODEL, "--json").json
    assert content["kind"] == "fastText model"
    assert content["options"]["model"] == "skipgram" and content["options"]["maxn"] == 6
    quantized = sememe("info", PRUNED, "--json").json
    assert quantized["quantized"] and quantized["labels"] == 3 and quantized["kept_ngrams"] == 145
    assert "supervised" in sememe("info", PRUNED).out


def test_questions_with_unknown_words(sememe) -> None:
    found = sememe("neighbors", MODEL, "snowstorm", "天气预报", "--num", 3, "--json").json
    assert [len(answers) for answers in found.values()] == [3, 3]
    assert -1 <= sememe("similarity", MODEL, "天气预报", "天气", "--json").json["similarity"] <= 1
    assert sememe("analogy", MODEL, "snow", "snowstorm", "雷", "--num", 1).out.strip()


def test_there_and_back(sememe, tmp_path: Path) -> None:
    sememe("convert", MODEL, "folder")
    kept = sememe("info", "folder", "--json").json["subwords"]
    assert kept == {"minn": 3, "maxn": 6, "bucket": 150}
    sememe("convert", "folder", "again.bin", "--format", "fasttext")
    asked = [sememe("neighbors", path, "snowstorm", "--json").out
             for path in (MODEL, "folder", "again.bin")]  # fmt: skip
    assert len(set(asked)) == 1
    sememe("convert", MODEL, "v.vec", "--limit", 5)
    assert (tmp_path / "v.vec").read_text("utf-8").startswith("5 8\n</s> ")
    sememe("convert", PRUNED, "same.ftz")
    assert (tmp_path / "same.ftz").read_bytes() == PRUNED.read_bytes()


def test_a_compact_table(sememe, tmp_path: Path) -> None:
    sememe("convert", DATA / "floret.floret", "folder")
    sememe("convert", "folder", "t.floret")
    assert (tmp_path / "t.floret").read_text().startswith("60 6 2 3 2 2166136261 < >\n")
    assert sememe("info", "t.floret", "--json").json["words"] == 0
    assert sememe("similarity", "t.floret", "雪", "雪山").out.strip()


def test_a_damaged_model_is_one_sentence(sememe, tmp_path: Path) -> None:
    (tmp_path / "m.bin").write_bytes(MODEL.read_bytes()[:1000])
    for command, *rest in (("info",), ("neighbors", "word"), ("convert", "out")):
        result = sememe(command, "m.bin", *rest, fails=True)
        assert result.code == 2
        assert result.err.startswith("Error: m.bin is ") and result.err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["m.bin"]
