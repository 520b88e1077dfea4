"""Pages as a newcomer follows them: their code blocks in order, in a folder with small texts."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

SENTENCES = (
    "The old king and the old queen had breakfast in the palace with every man and woman .",
    "A man gave the king his sword before lunch , and a woman gave the queen her ring .",
    "After lunch the young queen read a book , and after dinner the young king read a letter .",
    "Every man and every woman in New York likes a warm breakfast and a late lunch .",
    "The prince is a boy , the princess is a girl ; they had dinner in New York .",
)
CHINESE = (
    "国王和女王在宫殿里吃早饭。",
    "国王喜欢读书，女王喜欢音乐。",
    "老人给孩子们讲国王的故事。",
    "他们吃完午饭以后去学习自然语言处理。",
    "一个男人和一个女人在城里工作。",
    "女王有朋友，国王有敌人，战争之后是和平。",
    "中国的首都是北京，法国的首都是巴黎，孩子们爱吃苹果。",
)


PAIRS = (
    ("The king reads a book.", "Der König liest ein Buch."),
    ("The queen likes music.", "Die Königin mag Musik."),
    ("The man has a sword.", "Der Mann hat ein Schwert."),
    ("The woman reads a letter.", "Die Frau liest einen Brief."),
)


def write_texts(folder: Path) -> None:
    """Write the files that the pages name: small texts and questions of our own."""
    for name, side in (("en", 0), ("de", 1)):
        lines = [pair[side] for pair in PAIRS * 10]
        (folder / f"train.{name}").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "my-texts").mkdir()
    for name, step in (("story.txt", 1), ("tale.txt", -1)):
        text = "\n".join(SENTENCES[::step] * 12) + "\n"
        (folder / "my-texts" / name).write_text(text, encoding="utf-8")
    rows = [f'{{"text": "{sentence}"}}' for sentence in SENTENCES * 5]
    (folder / "news.jsonl").write_text("\n".join(rows) + "\n", encoding="utf-8")
    (folder / "news-zh.txt").write_text("\n".join(CHINESE * 20) + "\n", encoding="utf-8")
    (folder / "words-zh.txt").write_text("自然语言处理 1000 n\n", encoding="utf-8")
    (folder / "questions").mkdir()
    questions = {
        "analogies.txt": ": royal\nman king woman queen\nboy prince girl princess\n",
        "pairs.txt": "king queen 8\nking lunch 1\nbreakfast lunch 7\nman woman 8\n",
        "pairs-zh.txt": "国王 女王 8\n国王 早饭 1\n早饭 午饭 7\n男人 女人 8\n",
    }
    for name, text in questions.items():
        (folder / "questions" / name).write_text(text, encoding="utf-8")
    labels = ("good", "bad")
    reviews = [f"{text}\t{labels[index % 2]}" for index, text in enumerate(SENTENCES * 4)]
    table = "\n".join(["text\tlabel", *reviews]) + "\n"
    (folder / "reviews.tsv").write_text(table, encoding="utf-8")
    chinese = [
        f"{text}\t{'好评' if index % 2 else '差评'}" for index, text in enumerate(CHINESE * 4)
    ]
    (folder / "reviews-zh.tsv").write_text("\n".join(chinese) + "\n", encoding="utf-8")
    write_benchmarks(folder)


def write_benchmarks(folder: Path) -> None:
    """Write a little of CoLA, RTE and CoNLL-2003 in their official formats, of our own words."""
    texts = SENTENCES * 2
    cola = [f"xx01\t{index % 2}\t\t{text}" for index, text in enumerate(texts)]
    labels = ("entailment", "not_entailment")
    rte = [f"{i}\t{text}\t{SENTENCES[0]}\t{labels[i % 2]}" for i, text in enumerate(texts)]
    names = ["Paul NNP I-NP I-PER", "likes VBZ I-VP O", "Paris NNP I-NP I-LOC", ". . O O", ""]
    files = {
        "glue_data/CoLA": ("train.tsv dev.tsv", cola),
        "glue_data/RTE": ("train.tsv dev.tsv", ["index\tsentence1\tsentence2\tlabel", *rte]),
        "conll2003": ("eng.train eng.testa eng.testb", names * 4),
    }
    for place, (stems, lines) in files.items():
        for name in stems.split():
            path = folder / place / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def blocks(page: Path) -> list[tuple[str, str]]:
    """The code blocks of a page: language and content."""
    return re.findall(r"^```(\w+)\n(.*?)^```$", page.read_text("utf-8"), re.DOTALL | re.MULTILINE)


def shortened(line: str) -> str:
    """The command with a training of seconds where a reader would wait for minutes."""
    line = re.sub(r"--budget \d+[mh]\b", "--budget 2s", line)
    line = re.sub(r"--steps \d{3,}", "--steps 20", line)
    return re.sub(r"--tokens \d{6,}", "--tokens 100000", line)


def run_command(line: str, folder: Path) -> str:
    """Run one line of a page in a shell, with `sememe` being the one under test."""
    line = shortened(line)
    python = shlex.quote(sys.executable)
    line = re.sub(r"\bsememe (?=[a-z-])", f"{python} -m sememe.cli ", line)
    line = re.sub(r"^torchrun ", f"{python} -m torch.distributed.run ", line)
    ran = subprocess.run(
        ["bash", "-o", "pipefail", "-c", line],
        cwd=folder,
        env={**os.environ, "PYTHONUTF8": "1"},
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        encoding="utf-8",
    )
    assert ran.returncode == 0, f"{line}\n{ran.stderr}"
    return ran.stdout


def told_commands(page: Path) -> list[str]:
    """The commands of a page that no test runs: in plain or indented blocks and within lines."""
    text = re.sub(r"^```console\n.*?^```$", "", page.read_text("utf-8"), flags=re.S | re.M)
    alone = re.findall(r"^(?:    |\$ )?sememe (?=[a-z])([^`\n]+)$", text, re.MULTILINE)
    within = re.findall(r"`sememe (?=[a-z])([^`\n]+)`", text)
    return [re.sub(r"\s+#.*", "", line) for line in (*alone, *within)]


def options_of(line: str) -> tuple[set[str], set[str]]:
    """The options that the command of a line has, and those that the line names."""
    import typer

    from sememe.cli import app

    words = [word for word in shlex.split(line) if word != "…"]
    known: set[str] = set()
    # A plan reads the options of the training, too.
    starts = [[*words], ["train", *words[1:]]] if words[0] == "plan" else [words]
    for left in starts:
        command = typer.main.get_command(app)
        while left and left[0] in getattr(command, "commands", {}):
            command = command.commands[left.pop(0)]  # type: ignore[attr-defined]
        assert not (left and getattr(command, "commands", {})), f"no command {line}"
        for param in command.params:
            known |= {*param.opts, *param.secondary_opts}
    named = {word for word in words if word.startswith("--")}
    return known | {"--help"}, {word.split("=")[0] for word in named}


def follow(page: Path, folder: Path) -> list[tuple[str, str]]:
    """Run every block of the page; gives the commands that ran, with what they printed."""
    ran: list[tuple[str, str]] = []
    names: dict[str, object] = {}
    for language, content in blocks(page):
        if language == "python":
            exec(compile(content, str(page), "exec"), names)
        elif language == "console":
            lines = [line.removeprefix("$ ") for line in content.splitlines()]
            # Setting up (`make`, `pip`) is what brought this test here.
            commands = [line for line in lines if not line.startswith(("make ", "pip "))]
            ran += [(line, run_command(line, folder)) for line in commands]
    return ran
