"""Commands that use a BERT or GPT: what they print and write, in English and Chinese; bad input."""

import json
from pathlib import Path

import numpy as np
import pytest
from untrained import write_bert

torch = pytest.importorskip("torch")
pytest.importorskip("tokenizers")

from sememe.models.bert.model import BERT
from sememe.models.gpt.generation import generate
from sememe.models.huggingface.folder import load_folder, save_folder
from sememe.models.language.features import (
    attention_maps,
    embed_words,
)
from sememe.models.language.pooling import embed_texts

TEXTS = [
    "The animal didn't cross the street because it was too tired.",
    "The cat sat on the mat; the dog ran across the street again and again.",
    "国王和女王在宫殿里吃早饭。老人给孩子们讲国王的故事。",
] * 3
TIRED = "The animal didn't cross the street because it was too tired"


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    """The folder of a small BERT that has learned nothing."""
    return write_bert(
        tmp_path_factory.mktemp("networks") / "bert", TEXTS, vocab_size=260, max_length=32,
        width=32, num_layers=4, initial_std=0.3,
    )  # fmt: skip


@pytest.fixture(scope="module")
def gpt(tmp_path_factory):
    """The folder of a small GPT that has learned nothing."""
    from presets import gpt_config
    from sememe.models.gpt.network import GPTNetwork
    from sememe.tokens.subwords.tokenizer import SubwordTokenizer

    pieces = SubwordTokenizer.train(TEXTS, kind="bpe", vocab_size=330, min_frequency=1)
    sizes = {"vocab_size": pieces.vocab_size, "max_length": 32, "width": 32}
    network = GPTNetwork(gpt_config("tiny", **sizes, initial_std=0.3))
    folder = tmp_path_factory.mktemp("networks") / "gpt"
    save_folder(network, pieces, folder)
    return folder


@pytest.fixture(scope="module")
def foreign_bert(bert, tmp_path_factory):
    """The same BERT as others keep it: without sememe.json, the words in vocab.txt alone."""
    folder = tmp_path_factory.mktemp("foreign") / "bert"
    folder.mkdir()
    for name in ("config.json", "model.safetensors", "vocab.txt", "tokenizer_config.json"):
        (folder / name).write_bytes((bert / name).read_bytes())
    return folder


@pytest.fixture
def texts(tmp_path):
    lines = ["The cat sat on the mat.", "", "国王和女王在宫殿里吃早饭。", TIRED * 3]
    path = tmp_path / "texts.txt"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def lines_of(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").split("\n")[:-1]


def test_fill_prints_the_likeliest_tokens(sememe, bert):
    text = "The [MASK] sat on the mat."
    (expected,) = BERT.around(*load_folder(bert)).fill(text, top=3)
    rows = [line.split("\t") for line in sememe("fill", bert, text, "-n", 3).out.splitlines()]
    assert rows == [[guess.token, f"{guess.probability:.4f}"] for guess in expected]


def test_fill_several_masks_and_chinese(sememe, bert, foreign_bert):
    shown = sememe("fill", bert, "国[MASK]和女[MASK]。", "--num", 2).out.splitlines()
    assert [shown[0], shown[3], shown[4]] == ["[MASK] 1", "", "[MASK] 2"] and len(shown) == 7
    told = sememe("fill", foreign_bert, "国[MASK]和女[MASK]。", "--num", 2, "--json").json
    assert told["text"] == "国[MASK]和女[MASK]。"
    tokens = [guess["token"] for own in told["masks"] for guess in own]
    assert tokens == [shown[line].split("\t")[0] for line in (1, 2, 5, 6)]
    assert all(0 < guess["probability"] < 1 for own in told["masks"] for guess in own)


def test_next_gives_a_probability(sememe, bert):
    for a, b in (("The cat sat.", "The dog ran."), ("国王吃早饭。", "女王在宫殿里。")):
        expected = BERT.around(*load_folder(bert)).follows(a, b)
        assert sememe("next", bert, a, b).out == f"{expected:.4f}\n"
        told = sememe("next", bert, a, b, "--json").json
        assert told["probability"] == pytest.approx(expected) and (told["a"], told["b"]) == (a, b)


@pytest.mark.parametrize("prompt", ["The cat", "国王", ""])
def test_generate_is_what_python_gives(sememe, gpt, prompt):
    expected = generate(*load_folder(gpt), prompt, max_tokens=12, seed=3, top_k=20)
    options = ("--max-tokens", 12, "--seed", 3, "--top-k", 20)
    assert sememe("generate", gpt, prompt, *options).out == f"{prompt}{expected}\n"
    told = sememe("generate", gpt, prompt, *options, "--json").json
    assert told["texts"] == [expected] and told["prompt"] == prompt and told["top_k"] == 20


def test_generate_several_and_greedily(sememe, gpt):
    options = ("--max-tokens", 8, "--temperature", 2.0, "--top-p", 0.9)
    told = sememe("generate", gpt, "The", "--num", 3, *options, "--seed", 5, "--json").json
    assert len(set(told["texts"])) > 1
    third = sememe("generate", gpt, "The", *options, "--seed", 7, "--json").json
    assert third["texts"] == told["texts"][2:]
    greedy = [
        sememe("generate", gpt, "The", "--max-tokens", 8, *more).out
        for more in (("--greedy",), ("--temperature", 0), ("--greedy", "--seed", 9))
    ]
    assert len(set(greedy)) == 1


def test_generate_compares_ways_to_choose_tokens(sememe, gpt):
    options = ("--max-tokens", 8, "--seed", 5)
    told = sememe("generate", gpt, "The", "--compare", "--num", 2, *options, "--json").json
    found = {(own["strategy"], own["seed"]): own["text"] for own in told["texts"]}
    alone = {
        "greedy": ("--greedy",), "all tokens": (), "temperature 0.7": ("--temperature", 0.7),
        "top-k 40": ("--top-k", 40), "nucleus 0.9": ("--top-p", 0.9),
    }  # fmt: skip
    assert list(found) == [(name, seed) for name in alone for seed in (5, 6)]
    for name, more in alone.items():
        texts = sememe("generate", gpt, "The", "--num", 2, *options, *more, "--json").json["texts"]
        assert texts == [found[name, 5], found[name, 6]]
    assert len(set(found.values())) > 4
    rows = sememe("generate", gpt, "The", "--compare", "--top-k", 3, *options).out.splitlines()
    assert [row.split("\t")[:2] for row in rows][3] == ["top-k 3", "5"] and len(rows) == 5
    ran = sememe("generate", gpt, "The", "--compare", "--greedy", fails=True)
    assert ran.code == 2 and "--greedy" in ran.err
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SEMEME_LANG", "zh")
        assert "贪心" in sememe("generate", gpt, "国王", "--compare", *options).out


def test_generate_shows_each_piece_as_it_comes(sememe, gpt, monkeypatch):
    shown = []
    monkeypatch.setattr("typer.echo", lambda text="", nl=True, **_: shown.append((text, nl)))
    sememe("generate", gpt, "The", "--max-tokens", 6, "--seed", 2)
    assert shown[0] == ("The", False) and shown[-1] == ("", True) and len(shown) > 3


@pytest.mark.parametrize("layers", ["last", "second-to-last", "sum-last-four", "2"])
@pytest.mark.parametrize("pool", ["cls", "mean", "max"])
def test_embed_texts(sememe, bert, texts, layers, pool):
    result = sememe("embed", bert, texts, "--layers", layers, "--pool", pool, "--out", "v.npy")
    assert result.out == "Wrote 4 rows × 32 to v.npy\n" and "embedding" in result.err
    choice = int(layers) if layers.isdigit() else layers
    expected = embed_texts(*load_folder(bert), lines_of(texts), layers=choice, pool=pool)
    vectors = np.load("v.npy")
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, expected, atol=1e-5)


def test_embed_with_gpt_rows_and_json(sememe, gpt):
    rows = [json.dumps({"body": text}) for text in ("The cat", "国王")]
    Path("rows.jsonl").write_text("\n".join(rows), encoding="utf-8")
    options = ("--column", "text=body", "--layers", "first", "--json", "--quiet", "--out", "v.npy")
    result = sememe("embed", gpt, "rows.jsonl", *options)
    assert result.err == "" and result.json["rows"] == 2 and result.json["dim"] == 32
    expected = embed_texts(*load_folder(gpt), ["The cat", "国王"], layers="first")
    np.testing.assert_allclose(np.load("v.npy"), expected, atol=1e-5)


def test_embed_words(sememe, bert, texts):
    sememe("embed", bert, texts, "--pool", "words", "--out", "w.npy")
    table = [line.split("\t") for line in lines_of(Path("w.tsv"))]
    own = list(embed_words(*load_folder(bert), lines_of(texts)))
    assert table[0] == ["text", "word", "start", "end"]
    assert [row[:2] for row in table[1:]] == [
        [str(i), word] for i, text in enumerate(own) for word in text.words
    ]
    given = lines_of(texts)
    assert all(given[int(i)][int(start) : int(end)] == word for i, word, start, end in table[1:])
    expected = np.concatenate([text.vectors_WD for text in own])
    np.testing.assert_allclose(np.load("w.npy"), expected, atol=1e-5)


def test_embed_chinese_words(sememe, bert, gpt):
    Path("zh.txt").write_text("国王和女王在宫殿里 吃早饭。\n王\n\n", encoding="utf-8")
    for model in (bert, gpt):
        options = ("--pool", "words", "--language", "zh", "--out", "w.npy", "--overwrite")
        sememe("embed", model, "zh.txt", *options)
        words = [line.split("\t")[1] for line in lines_of(Path("w.tsv"))[1:]]
        assert {"国王", "女王", "宫殿", "吃早饭"} & set(words) >= {"国王", "女王", "宫殿"}
        assert words[-1] == "王" and len(np.load("w.npy")) == len(words)
        assert all(words)  # a blank is none


def test_embed_with_word_vectors(sememe, vector_file, toy_vectors):
    Path("texts.txt").write_text("The king and the QUEEN .\n\nnothing here\n国王\n", "utf-8")
    result = sememe("embed", vector_file, "texts.txt", "--out", "v.npy")
    assert "3 texts" in result.err  # 国 and 王 in English
    vectors = np.load("v.npy")
    expected = (toy_vectors["king"] + toy_vectors["queen"]) / 2
    np.testing.assert_allclose(vectors[0], expected, atol=1e-5)
    assert not vectors[1].any() and not vectors[2].any()
    options = ("--keep-case", "--language", "zh", "--out", "v.npy", "--overwrite")
    sememe("embed", vector_file, "texts.txt", *options)
    np.testing.assert_allclose(np.load("v.npy")[[0, 3]], toy_vectors[["king", "国王"]], atol=1e-5)
    sememe("embed", vector_file, "texts.txt", "--pool", "words", "--out", "w.npy")
    np.testing.assert_allclose(np.load("w.npy")[:2], toy_vectors[["king", "queen"]], atol=1e-5)
    assert lines_of(Path("w.tsv"))[1:3] == ["0\tking\t4\t8", "0\tqueen\t17\t22"]


def test_attention_picture_and_numbers(sememe, bert):
    expected = attention_maps(*load_folder(bert), TIRED)
    assert sememe("plot", "attention", bert, TIRED).out == "Saved attention.png\n"
    assert Path("attention.png").read_bytes().startswith(b"\x89PNG")
    told = sememe("plot", "attention", bert, TIRED, "--layer", 2, "--head", 1, "--json").json
    assert told["tokens"] == expected.tokens and (told["layer"], told["head"]) == (2, 1)
    np.testing.assert_allclose(told["weights"], expected.weights_LHTS[1, 0], atol=1e-6)
    assert sorted(path.name for path in Path().iterdir()) == ["attention.png"]
    mean = sememe("plot", "attention", bert, TIRED, "--json").json
    np.testing.assert_allclose(mean["weights"], expected.weights_LHTS[-1].mean(0), atol=1e-6)


def test_attention_over_all_layers(sememe, bert):
    expected = attention_maps(*load_folder(bert), TIRED)
    for over, wanted in (("mean", expected.mean()), ("rollout", expected.rollout())):
        told = sememe("plot", "attention", bert, TIRED, "--over", over, "--json").json
        assert (told["over"], told["layer"], told["head"]) == (over, None, None)
        np.testing.assert_allclose(told["weights"], wanted, atol=1e-6)
    sememe("plot", "attention", bert, TIRED, "--over", "rollout", "--out", "rollout.svg")
    assert "<svg" in Path("rollout.svg").read_text(encoding="utf-8")
    wrong = sememe("plot", "attention", bert, TIRED, "--over", "mean", "--head", 1, fails=True)
    assert wrong.code == 2 and "omit --layer and --head" in wrong.err


def test_attention_of_a_pair_and_of_a_gpt(sememe, bert, gpt):
    arguments = ("国王吃早饭。", "The cat sat.", "--out", "pair.svg", "--json")
    told = sememe("plot", "attention", bert, *arguments).json
    assert told["segments"] == sorted(told["segments"]) and set(told["segments"]) == {0, 1}
    assert "<svg" in Path("pair.svg").read_text(encoding="utf-8")
    told = sememe("plot", "attention", gpt, "The cat 国王", "--json").json
    assert "".join(told["tokens"]).startswith("The cat")
    assert not np.triu(told["weights"], 1).any()


def test_info_without_and_with_a_manifest(sememe, bert, foreign_bert, gpt):
    network = load_folder(bert)[0]
    for folder in (bert, foreign_bert):
        told = sememe("info", folder, "--json").json
        assert told["kind"] == "bert" and told["config"]["num_layers"] == 4
        assert 0.9 < told["parameters"] / sum(p.numel() for p in network.parameters()) <= 1
    assert "provenance" in sememe("info", bert, "--json").json
    shown = sememe("info", gpt).out
    assert "kind\tgpt" in shown and "config.width\t32" in shown


def test_convert_makes_a_whole_folder(sememe, foreign_bert):
    assert "tensors to whole" in sememe("convert", foreign_bert, "whole").out
    assert {"tokenizer.json", "sememe.json"} <= {path.name for path in Path("whole").iterdir()}
    text = "The [MASK] sat."
    assert BERT.around(*load_folder("whole")).fill(text) == BERT.around(
        *load_folder(foreign_bert)
    ).fill(text)
    for asked in (("b.txt", "--format", "word2vec"), ("b.bin",)):
        result = sememe("convert", foreign_bert, *asked, fails=True)
        assert result.code == 2 and "is a network" in result.err


BAD = [
    (("fill", "{bert}", "No mask here."), "holds no [MASK]"),
    (("fill", "{bert}", "A [MASK].", "--num", 0), "--num"),
    (("fill", "{gpt}", "A [MASK]."), "kinds that can: bert"),
    (("fill", "{vectors}", "A [MASK]."), "kinds that can: bert"),
    (("fill", "nowhere", "A [MASK]."), "nowhere"),
    (("fill", "{empty}", "A [MASK]."), "empty"),
    (("next", "{bert}", "The cat.", " "), "B is empty"),
    (("next", "{bert}", "cat " * 20, "dog " * 20), "sees no more than 32"),
    (("next", "{gpt}", "The cat.", "The dog."), "kinds that can: bert"),
    (("generate", "{bert}", "The"), "kinds that can: ngram, gpt"),
    (("generate", "{gpt}", "The", "--top-p", 2), "top_p must"),
    (("generate", "{gpt}", "cat " * 90), "shorten the prompt"),
    (("embed", "{bert}", "{nothing}", "--out", "v.npy"), "has no text"),
    (("embed", "{bert}", "missing.txt", "--out", "v.npy"), "There is no file"),
    (("embed", "{bert}", "{text}", "--out", "v.txt"), "must end in .npy"),
    (("embed", "{bert}", "{text}", "--layers", "middle", "--out", "v.npy"), "one of first"),
    (("embed", "{bert}", "{text}", "--layers", 7, "--out", "v.npy"), "between 0 and 4"),
    (("embed", "{gpt}", "{text}", "--pool", "cls", "--out", "v.npy"), "CLS"),
    (("embed", "{vectors}", "{text}", "--pool", "cls", "--out", "v.npy"), "cls"),
    (("embed", "{vectors}", "{text}", "--layers", "first", "--out", "v.npy"), "layers"),
    (("embed", "{bert}", "{text}", "The cat"), "not both"),
    (("plot", "attention", "{bert}", "The cat", "--layer", 5), "layer must be between 1 and 4"),
    (("plot", "attention", "{bert}", "The cat", "--head", 0), "--head"),
    (("plot", "attention", "{bert}", "cat " * 90), "shorten it"),
    (("plot", "attention", "{gpt}", "The", "cat"), "one text, not a pair"),
    (("plot", "attention", "{vectors}", "The cat"), "kinds that can: gpt, bert"),
    (("plot", "attention", "{bert}", "The cat", "--out", "a.pdf"), ".png or .svg"),
]


@pytest.mark.parametrize(("arguments", "says"), BAD, ids=lambda value: str(value)[:40])
def test_bad_input_is_one_sentence(sememe, bert, gpt, toy_vectors, tmp_path, arguments, says):
    toy_vectors.save(tmp_path / "vectors")
    (tmp_path / "empty").mkdir()
    (tmp_path / "nothing.txt").write_text("\n \n")
    (tmp_path / "text.txt").write_text("The cat sat.\n")
    places = {
        "{bert}": bert, "{gpt}": gpt, "{vectors}": "vectors", "{empty}": "empty",
        "{nothing}": "nothing.txt", "{text}": "text.txt",
    }  # fmt: skip
    before = sorted(tmp_path.rglob("*"))
    result = sememe(*(places.get(item, item) for item in arguments), fails=True)
    assert result.code == 2 and says in result.err and "Traceback" not in result.err
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("command", "more"),
    [("fill", ["A [MASK]."]), ("next", ["A", "B"]), ("generate", ["A"]), ("plot attention", ["A"])],
)
def test_without_torch_it_says_what_to_install(sememe, bert, gpt, monkeypatch, command, more):
    def missing(name):
        raise ModuleNotFoundError(name="torch")

    monkeypatch.setattr("sememe.machine.import_module", missing)
    folder = gpt if command == "generate" else bert
    result = sememe(*command.split(), folder, *more, fails=True)
    assert result.code == 2 and "pip install 'sememe[neural]'" in result.err


def test_a_model_of_another_type_is_named(sememe, tmp_path):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "config.json").write_text('{"model_type": "llama"}')
    result = sememe("fill", "other", "A [MASK].", fails=True)
    assert result.code == 2 and "'llama'" in result.err
