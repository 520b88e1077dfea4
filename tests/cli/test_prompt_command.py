"""`prompt` as a command, with a GPT that has learned nothing."""

import pytest

pytest.importorskip("torch")
pytest.importorskip("tokenizers")

ROWS = [f"a {word} film\t{label}" for word, label in (("fine", 1), ("dull", 0)) for _ in range(6)]


@pytest.fixture
def folder(tmp_path):
    from presets import gpt_config
    from sememe.models.gpt.network import GPTNetwork
    from sememe.models.huggingface.folder import save_folder
    from sememe.tokens.subwords.tokenizer import SubwordTokenizer

    texts = ["a fine film good", "a dull film bad", "一部好电影"] * 3
    tokenizer = SubwordTokenizer.train(texts, kind="bpe", vocab_size=300, min_frequency=1)
    config = gpt_config("tiny", vocab_size=tokenizer.vocab_size, max_length=256, width=32)
    save_folder(GPTNetwork(config), tokenizer, tmp_path / "gpt")
    (tmp_path / "rows.tsv").write_text("text\tlabel\n" + "\n".join(ROWS) + "\n")
    return tmp_path


def test_prompts_are_scored(sememe, folder):
    asked = ("prompt", "gpt", "--train", "rows.tsv", "--data", "rows.tsv", "--seeds", 2,
             "--shots", 0, "--shots", 1)  # fmt: skip
    words = ("--words", "1=good", "--words", "0=bad")
    found = sememe(*asked, *words, "--json").json
    names = [score["system"] for score in found["scores"]]
    baselines = ["chance", "majority", "TF-IDF + logistic regression"]
    assert names == [*baselines, "0-shot", "0-shot, calibrated", "1-shot", "1-shot, calibrated"]
    assert found["num_rows"] == 12 and found["words"] == {"0": "bad", "1": "good"}
    assert len(found["scores"][5]["accuracies"]) == 2
    shown = sememe(*asked, *words, "--instruction", "Judge the film.").out
    assert "Judge the film.\n\nText: a " in shown and "1-shot, calibrated" in shown


def test_commands_refuse(sememe, folder):
    rows = ("--train", "rows.tsv", "--data", "rows.tsv")
    assert "--train and --data" in sememe("prompt", "gpt", fails=True).err
    number = sememe("prompt", "gpt", *rows, fails=True)
    assert number.code == 2 and "--words 0=WORD" in number.err
    wrong = sememe("prompt", "gpt", *rows, "--words", "good", fails=True)
    assert "--words takes" in wrong.err
    open_ended = sememe("prompt", "gpt", *rows, "--template", "{text}:", fails=True)
    assert "{label}" in open_ended.err
