"""Every saved folder has a model card: valid, true to its sememe.json, with code that runs."""

from __future__ import annotations

import json
import re
import runpy
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from typer.testing import CliRunner

import sememe
from sememe.card import card_of
from sememe.cli import app
from sememe.contract import KINDS
from sememe.models.registry import convert
from sememe.storage.folder import CARD, CHECKSUMS, OTHER_CARD, verify

pytest.importorskip("torch")
pytest.importorskip("tokenizers")

ENGLISH = "The old king and the young queen live in a small castle by the sea .\n" * 30
CHINESE = "国王和女王在宫殿里吃早饭，孩子们学习自然语言处理。\n" * 30
FIXTURES = (
    "onehot", "counts", "word2vec-chinese", "glove", "fasttext", "floret", "doc2vec",
    "vectors-folder", "classifier", "classifier-quantized", "ngram", "nnlm", "nnlm-ranking", "elmo",
    "ulmfit", "gpt", "bert", "bert-masks-only", "bert-mixed", "seq2seq", "transformer", "classify",
    "pairs", "regress", "choose", "tag", "tag-crf", "answer", "classify-ensemble", "classify-words",
    "classify-mixed-layers", "classify-gpt", "huggingface-bert", "huggingface-answer",
    "sentence-neighbors",
)  # fmt: skip


def front_of(card: str) -> dict[str, Any]:
    """The YAML between the first two lines of dashes, as Hugging Face reads it."""
    hub = pytest.importorskip("huggingface_hub")
    found: dict[str, Any] = hub.ModelCard(card).data.to_dict()
    return found


def run_code(folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Run each block of code of a card in its folder; return their first lines."""
    monkeypatch.chdir(folder)
    blocks = re.findall(r"```(\w+)\n(.*?)```", (folder / CARD).read_text("utf-8"), re.DOTALL)
    for language, code in blocks:
        if language == "python":
            (folder / "block.py").write_text(code, encoding="utf-8")
            runpy.run_path(str(folder / "block.py"))
        else:
            result = CliRunner().invoke(app, shlex.split(code)[1:])
            assert result.exit_code == 0, result.output
    return [code.strip().splitlines()[0] for _, code in blocks]


@pytest.mark.parametrize("name", FIXTURES)
def test_the_card_of_every_kind_is_valid_and_its_code_runs(
    name: str, golden: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own_cache: Path
) -> None:
    pytest.importorskip("gensim")
    pytest.importorskip("transformers")
    sememe.load(golden / name).save(tmp_path / "model")
    card = (tmp_path / "model" / CARD).read_text("utf-8")
    manifest = json.loads((tmp_path / "model" / "sememe.json").read_text("utf-8"))
    front = front_of(card)
    assert front["tags"][0] == "sememe" and front["pipeline_tag"]
    assert front["tags"][1] == (manifest["task"] if "task" in manifest else manifest["kind"])
    for part in ("Training data", "Scores", "Limits", "How to use it"):
        assert f"\n## {part}\n\n" in card, card
    first = run_code(tmp_path / "model", monkeypatch)
    opens = any("transformers" in line for line in first)
    assert opens == front["library_name"].endswith("transformers")
    files = {path.name for path in (tmp_path / "model").iterdir()}
    assert opens == ("config.json" in files and "head.safetensors" not in files)
    has_vectors = KINDS[sememe.load(tmp_path / "model").kind].has_mapped_words
    is_other = name.startswith(("doc2vec", "nnlm"))
    assert any("gensim" in line for line in first) == (has_vectors or is_other)


def test_a_tokenizer_has_a_card(
    place: Path, monkeypatch: pytest.MonkeyPatch, own_cache: Path
) -> None:
    (place / "a.txt").write_text(ENGLISH, encoding="utf-8")
    command = "train tokenizer a.txt --vocab-size 160 --out tokenizer --quiet"
    assert CliRunner().invoke(app, command.split()).exit_code == 0
    card = (place / "tokenizer" / CARD).read_text("utf-8")
    assert "`a.txt`" in card and "tokenizer with 1" in card and "## Scores" not in card
    pytest.importorskip("transformers")
    assert len(run_code(place / "tokenizer", monkeypatch)) == 2


def test_a_tokenizer_that_python_saves_has_a_card_too(tmp_path: Path) -> None:
    tokenizer = sememe.SubwordTokenizer.train([ENGLISH], vocab_size=160)
    tokenizer.save(tmp_path / "tokenizer")
    card = tmp_path / "tokenizer" / CARD
    assert f"tokenizer with {tokenizer.vocab_size} tokens" in card.read_text("utf-8")
    card.write_text("# Mine\n")
    tokenizer.save(tmp_path / "tokenizer")
    assert card.read_text() == "# Mine\n"
    # As a part of a model it has none.
    tokenizer.save(tmp_path / "model", max_length=64)
    assert not (tmp_path / "model" / CARD).exists()


def test_a_card_says_what_the_model_was_trained_on(place: Path) -> None:
    (place / "texts").mkdir()
    (place / "texts" / "国王.txt").write_text(CHINESE, encoding="utf-8")
    options: dict[str, Any] = {"dim": 8, "min_count": 2, "epochs": 1, "workers": 1}
    model = sememe.Word2Vec(**options).fit("texts/国王.txt", language="zh", out="model")
    card = (place / "model" / CARD).read_text("utf-8")
    assert front_of(card)["language"] == ["zh"]
    assert f"`国王.txt`, 30 documents, 30 sentences, {model.data['tokens']:,} tokens." in card
    assert str(place) not in card, "a card may be published: it names no folder of the machine"
    assert "occur fewer than 2 times" in card and "Small corpus" in card
    # The data goes with the vectors, and with what is fine-tuned on them.
    vectors = sememe.load("model")
    vectors.save("vectors")
    assert "`国王.txt`" in (place / "vectors" / CARD).read_text("utf-8")
    rows = [("国王 早饭", "a"), ("女王 宫殿", "b")] * 4
    sememe.Classify("model", epochs=1, length=16).fit(rows, dev=rows, out="task")
    card = (place / "task" / CARD).read_text("utf-8")
    assert "given in Python, 8 rows" in card.replace("`", "")
    assert "Base model: word2vec `model`, trained on `国王.txt`" in card
    assert "On 8 dev rows" in card and "The dev rows are the training rows" in card
    assert "`a`, `b`" in card


def test_the_built_in_corpus_is_named_as_technical_english(tmp_path: Path) -> None:
    manifest = {"kind": "word2vec", "data": {"train": [sememe.text.settings.BUILT_IN]}}
    assert "technical English" in card_of(tmp_path, manifest)


def test_a_resumed_run_ends_with_the_same_card(place: Path) -> None:
    (place / "a.txt").write_text(ENGLISH, encoding="utf-8")
    cards = []
    for workers in (1, 1):
        model = sememe.Word2Vec(dim=8, min_count=1, epochs=2, workers=workers, seed=3)
        model.fit("a.txt", out="model", overwrite=True)
        cards.append((place / "model" / CARD).read_bytes())
    assert cards[0] == cards[1], "nothing in a card depends on the time"
    sememe.Word2Vec(dim=8, min_count=1, epochs=2, workers=2, seed=3).fit(
        "a.txt", out="model", resume=True
    )
    assert (place / "model" / CARD).read_bytes() == cards[0]
    again = sememe.Word2Vec.load("model")
    again.save("copy")
    assert (place / "copy" / CARD).read_bytes() == cards[0]


@pytest.mark.parametrize("own", ["# My model\n", "edited", b"\xff\xfe not UTF-8"])
def test_a_readme_of_the_user_is_kept(own: str | bytes, place: Path) -> None:
    (place / "a.txt").write_text(ENGLISH, encoding="utf-8")
    model = sememe.Counts(dim=4, min_count=1).fit("a.txt", out="model")
    readme = place / "model" / CARD
    written = readme.read_bytes()
    mine = written.replace(b"# Co", b"# My co") if own == "edited" else own
    readme.write_bytes(mine if isinstance(mine, bytes) else mine.encode())
    kept = readme.read_bytes()
    assert kept != written
    for _ in range(2):
        model.save("model")
        assert readme.read_bytes() == kept
        assert (place / "model" / OTHER_CARD).read_bytes() == written
    assert verify(place / "model") == 3, "a card may be edited: it has no checksum"
    assert "README" not in (place / "model" / CHECKSUMS).read_text()
    readme.unlink()
    model.save("model")
    assert readme.read_bytes() == written and not (place / "model" / OTHER_CARD).exists()
    assert sememe.load("model").data == model.data


def test_an_old_folder_without_a_card_opens_and_gets_one(golden: Path, tmp_path: Path) -> None:
    assert not (golden / "counts" / CARD).exists()
    shutil.copytree(golden / "counts", tmp_path / "model")
    sememe.Counts.load(tmp_path / "model").save(tmp_path / "model")
    assert "Not recorded" in (tmp_path / "model" / CARD).read_text("utf-8")


def test_converting_keeps_the_card_of_another_program(golden: Path, tmp_path: Path) -> None:
    shutil.copytree(golden / "huggingface-bert", tmp_path / "theirs")
    (tmp_path / "theirs" / CARD).write_text("---\nlicense: mit\n---\n# Theirs\n")
    convert(tmp_path / "theirs", tmp_path / "ours")
    assert "license: mit" in (tmp_path / "ours" / CARD).read_text()
    assert "## Limits" in (tmp_path / "ours" / OTHER_CARD).read_text("utf-8")


def test_names_that_are_markup_stay_text(tmp_path: Path) -> None:
    name = "a|b`c\n# d <script>\x1b[2J.txt"
    manifest: dict[str, Any] = {
        "kind": "task", "task": "classify", "labels": [name, "ok"], "data": {"train": [name]},
        "options": {"metric": name, "seed": 1},
    }  # fmt: skip
    card = card_of(tmp_path, manifest)
    assert "\x1b" not in card and "\n# d" not in card
    assert "| `metric` | `a\\|b'c # d <script>\\u001b[2J.txt` |" in card
    assert front_of(card)["tags"] == ["sememe", "classify"]


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda own: st.lists(own, max_size=3) | st.dictionaries(st.text(), own, max_size=3),
    max_leaves=6,
)
_KEYS = (
    "task", "labels", "data", "text", "metrics", "scores", "trials", "config", "training",
    "options", "network", "plan", "provenance", "languages", "untrained", "words", "dim", "members",
    "parameters", "columns", "ngrams", "subwords", "seen_length",
)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from([*KINDS, "task", "tokenizer", "unknown"]),
    st.fixed_dictionaries({}, optional=dict.fromkeys(_KEYS, _VALUES)),
)
def test_no_manifest_keeps_a_model_from_being_saved(kind: str, manifest: dict[str, Any]) -> None:
    assert "## Limits" in card_of(Path("nowhere"), {**manifest, "kind": kind})
