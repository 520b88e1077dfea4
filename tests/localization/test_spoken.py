"""Commands as a Chinese user runs them on a terminal: no English sentence is left in the output.

`test_coverage` reads the source, and so does not see the parts from which messages are composed.
"""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from unittest import mock

import pytest

pytest.importorskip("torch")
pytest.importorskip("tokenizers")
pytest.importorskip("sacrebleu")

sys.path.append(str(Path(__file__).parents[1] / "golden"))
import program
import sample_texts

from sememe.localization import catalogue

_NETWORK = "--workers 1 --device cpu --steps 2 --batch-size 4 --length 16 --evaluate-batches 1"
_SMALL = (
    f"--num-layers 1 --width 16 --num-heads 2 --max-length 32 --validation-share 0.2 {_NETWORK}"
)
_TASK = "--epochs 1 --batch-size 8 --length 24 --workers 1 --device cpu"
_WORDS = "--min-count 1 --dim 8 --workers 1"
# What comes after `sememe`; {out} is a new place.
COMMANDS = (
    "info word2vec-chinese",
    "info bert-chinese",
    "info classify",
    "info ngram",
    "info seq2seq",
    "info vectors.bin.gz",
    "neighbors word2vec-chinese 国王 苹果",
    "analogy word2vec-chinese 国王 苹果 医生",
    "fill bert-chinese 国王喜欢[MASK]。",
    "evaluate words word2vec-chinese",
    "evaluate senses word2vec-chinese bert-chinese --data chinese",
    "evaluate perplexity ngram-chinese texts/chinese.txt",
    "evaluate labels classify texts/opinions.tsv",
    "evaluate labels classifier texts/labelled.txt",
    "evaluate labels tag texts/tags.txt",
    "evaluate labels regress texts/scores.tsv",
    "evaluate labels answer texts/questions.jsonl",
    "compare classify classify-gpt --data texts/opinions.tsv",
    "convert word2vec-chinese {out}.bin",
    "embed word2vec-chinese 国王喜欢读书 --out {out}.npy",
    "predict classify texts/opinions.tsv --out {out}.csv",
    "clean texts/chinese.txt texts/chinese.txt --out {out}.txt",
    "suggest ngram-chinese 国王",
    "translate transformer texts/pairs.en --reference texts/pairs.de",
    "plot history bert-chinese --out {out}.svg",
    "plot heatmap word2vec-chinese 国王 苹果 --out {out}.svg",
    "plot attention bert-chinese 国王喜欢读书 --out {out}.svg",
    "plot attention bert-chinese 国王喜欢读书 --over rollout --out {out}.svg",
    "plot map word2vec-chinese --method umap --words 20 --out {out}.svg",
    "inspect masks bert-chinese 国王喜欢读书",
    "inspect context bert-chinese 苹果 --set chinese --num 6",
    "inspect changes word2vec-chinese word2vec-chinese --num 3",
    "inspect step 国王喜欢音乐",
    "similarity word2vec-chinese 国王 苹果 医生 --matrix",
    "train word2vec texts/chinese.txt --language zh --preview --min-count 1",
    f"train word2vec texts/chinese.txt --language zh {_WORDS} --out {{out}}",
    f"train doc2vec texts/chinese.txt --language zh {_WORDS} --out {{out}}",
    "train ngram texts/chinese.txt --language zh --min-count 1 --workers 1 --out {out}",
    f"train classifier texts/labelled.txt {_WORDS} --out {{out}}",
    "train tokenizer texts/chinese.txt --language zh --vocab-size 200 --out {out}",
    "train nnlm texts/chinese.txt --language zh --dim 8 --num-hidden 8 --min-count 1 "
    f"--validation-share 0.2 {_NETWORK} --out {{out}}",
    "train elmo texts/chinese.txt --language zh --num-layers 1 --num-cells 8 --width 8 "
    f"--min-count 1 --validation-share 0.2 {_NETWORK} --out {{out}}",
    "train bert texts/chinese.txt --language zh --preview --vocab-size 200",
    f"train bert texts/chinese.txt --language zh --vocab-size 200 {_SMALL} --out {{out}}",
    f"train gpt texts/chinese.txt --language zh --vocab-size 300 {_SMALL} --out {{out}}",
    "train seq2seq texts/pairs.en texts/pairs.de --vocab-size 300 --num-layers 1 --width 16 "
    "--embedding-size 8 --steps 2 --workers 1 --device cpu --out {out}",
    f"finetune classify bert --train texts/opinions.tsv --seeds 2 {_TASK} --out {{out}}",
    f"finetune classify vectors.bin.gz --train texts/opinions.tsv {_TASK} --out {{out}}",
    f"finetune tag bert --train texts/tags.txt --dev texts/tags.txt {_TASK} --out {{out}}",
    f"finetune answer bert --train texts/questions.jsonl {_TASK} --out {{out}}",
    pytest.param(
        "study reversal --steps 2 --num-tests 4 --workers 1 --device cpu --out {out}",
        marks=pytest.mark.slow,
    ),
)
# The user's own text is quoted; options, columns, files, commands and names are no sentences.
_OWN = re.compile(r"“[^”]*”|'[^']*'|\w+ = |sememe( [a-z]+)+|\S*[-_./=]\S*|\S*\d\S*")
_PHRASE = re.compile(r"\b[a-z]{2,}(?: [a-z]{2,})+\b")
_WORD = re.compile(r"(?<![A-Za-z：])[A-Za-z][a-z]{2,}(?![A-Za-z])")
# Values of options, functions, and names of built-in files.
_NAMES = {"skipgram", "negative", "softmax", "sigmoid", "analogies", "antonyms", "groups", "odd"}


class Terminal(StringIO):
    """A terminal of 100 columns, to which rich draws."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


@pytest.fixture(scope="module")
def fixtures(golden: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fixtures")
    sample_texts.write(folder / "texts")
    for path in golden.iterdir():
        (folder / path.name).symlink_to(path)
    return folder


@pytest.fixture
def workplace(
    fixtures: Path, own_cache: Path, fresh_commands: None, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("TERM", "dumb")
    with program.working_in(fixtures):
        yield fixtures


def spoken(arguments: list[str]) -> str:
    """What a command prints on a terminal, progress in plain lines."""
    from sememe.cli import main

    out, err = Terminal(), StringIO()
    words = ["sememe", "--lang", "zh", *arguments]
    with mock.patch.object(sys, "argv", words), redirect_stdout(out), redirect_stderr(err):
        try:
            main()
        except SystemExit as left:
            assert not left.code, err.getvalue()
    return err.getvalue() + out.getvalue()


def english_in(text: str, own: set[str]) -> list[str]:
    """English phrases, and English words for which the catalogue has Chinese."""
    known = {key for key in catalogue("zh", "templates", "messages") if key.isalpha()}
    found = []
    for line in text.splitlines():
        rest = _OWN.sub(" , ", line)
        words = {word for word in _WORD.findall(rest) if word in known}
        found += [
            f"{english}: {line.strip()}"
            for english in [*_PHRASE.findall(rest), *sorted(words)]
            if not {*english.split()} <= own
        ]
    return found


@pytest.mark.parametrize("command", COMMANDS)
def test_no_english_is_left(command, workplace, tmp_path):
    arguments = shlex.split(command.format(out=tmp_path / "out"))
    text = spoken(arguments)
    assert text.strip()
    for plot in tmp_path.glob("*.svg"):  # its text alternative
        text += "\n" + "".join(re.findall("<title>.*</title>", plot.read_text("utf-8")))
    if arguments[0] == "info":  # values are as they were given
        text = "\n".join(re.findall(r"^ {1,2}(\S+(?: \S+)*)", text, re.MULTILINE))
    own = _NAMES | {word for argument in arguments for word in re.findall(r"\w+", argument)}
    assert english_in(text, own) == []


def test_english_is_found():
    assert english_in("已把 22 words × 8 写入 a.bin。", set()) == [
        "words: 已把 22 words × 8 写入 a.bin。"
    ]
    assert english_in("每个方向 4 hidden units", set())
    assert not english_in("已把“macro average” 写入 runs/words/loss.txt（--loss）。", set())
