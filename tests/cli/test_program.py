"""The program as a whole: help, exit codes, pipes, terminals that know little, interruption."""

import fcntl
import os
import re
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from sememe.cli import app
from sememe.cli.program import PANELS
from sememe.contract import KINDS

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "docs" / "hooks"), str(ROOT / "benchmarks")]

import prose
from commands import write_manual

COMMANDS = [
    ("ladder",),
    ("train", "word2vec"),
    ("train", "counts"),
    ("train", "onehot"),
    ("train", "fasttext"),
    ("train", "classifier"),
    ("train", "glove"),
    ("train", "elmo"),
    ("train", "ulmfit"),
    ("train", "ngram"),
    ("train", "nnlm"),
    ("train", "tokenizer"),
    ("train", "bert"),
    ("train", "gpt"),
    ("train", "seq2seq"),
    ("train", "transformer"),
    ("train", "sif"),
    ("train", "sentence"),
    *(("train", name) for name, kind in KINDS.items() if kind.options),
    ("plan",),
    ("distill",),
    ("clean",),
    ("search",),
    ("duplicates",),
    ("topics",),
    ("neighbors",),
    ("analogy",),
    ("similarity",),
    ("odd",),
    ("align",),
    ("fill",),
    ("next",),
    ("generate",),
    ("suggest",),
    ("prompt",),
    ("translate",),
    ("finetune", "classify"),
    ("finetune", "pairs"),
    ("finetune", "regress"),
    ("finetune", "choose"),
    ("finetune", "tag"),
    ("finetune", "answer"),
    ("predict",),
    ("evaluate", "words"),
    ("evaluate", "labels"),
    ("evaluate", "glue"),
    ("evaluate", "squad"),
    ("evaluate", "ner"),
    ("evaluate", "texts"),
    ("evaluate", "features"),
    ("evaluate", "perplexity"),
    ("evaluate", "senses"),
    ("evaluate", "retrieval"),
    ("evaluate", "sts"),
    ("evaluate", "induction"),
    ("compare",),
    ("study", "masking"),
    ("study", "rates"),
    ("study", "reversal"),
    ("explore",),
    ("inspect", "context"),
    ("inspect", "changes"),
    ("inspect", "prediction"),
    ("inspect", "generation"),
    ("inspect", "step"),
    ("inspect", "film"),
    ("inspect", "masks"),
    ("plot", "pca"),
    ("plot", "map"),
    ("plot", "heatmap"),
    ("plot", "positions"),
    ("plot", "history"),
    ("plot", "attention"),
    ("info",),
    ("embed",),
    ("convert",),
    ("serve",),
    ("cluster", "status"),
]


def shell(*arguments: object, **more) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "sememe.cli", *map(str, arguments)], capture_output=True, **more
    )


def test_every_command_is_listed_here():
    found = [command[0] for command in COMMANDS]
    assert list(dict.fromkeys(found)) == [name for names in PANELS.values() for name in names]
    assert write_manual().count("\n## sememe ") == len(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_help_has_examples(sememe, command):
    text = sememe(*command, "--help").out
    assert "Examples" in text and f"sememe {' '.join(command)}" in text


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_wrong_option_is_a_usage_error(sememe, command):
    result = sememe(*command, "--no-such-option", fails=True)
    assert result.code == 2 and "no-such-option" in result.err


def command_of(names):
    command = typer.main.get_command(app)
    for name in names:
        command = command.commands[name]
    return command


def test_help_groups_the_commands_by_purpose(sememe):
    text = sememe("--help").out
    places = [text.index(f"─ {panel} ─") for panel in PANELS]
    assert places == sorted(places)
    assert "─ Commands ─" not in text


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_an_option_is_explained_in_twelve_plain_words(command):
    dialect = prose.read_dialect()
    for param in command_of(command).params:
        help_text = param.help or ""
        assert 1 <= len(help_text.split()) <= 12, param.name
        passage = prose.Passage("help", "", 0, help_text)
        assert not list(prose.dialect_in(passage, dialect)), help_text
        is_shown = getattr(param, "show_default", True) and param.default not in (None, "", [])
        assert not (is_shown and "default:" in help_text), f"{param.name}: the default twice"


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_command_is_described_in_one_short_line(command):
    first, *rest = (command_of(command).help or "").strip().splitlines()
    assert len(first) <= 70 and first.endswith(".")
    assert not rest or not rest[0].strip(), "an empty line separates the rest"


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_the_page_names_each_option_of_a_command_or_of_its_groups(command):
    page = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    sections = dict(re.findall(r"^##+ ([^\n]+)\n(.*?)(?=^##|\Z)", page, flags=re.M | re.S))

    def options_in(title):
        lines = re.findall(r"^- (`-.*(?:\n  .*)*)", sections[title], flags=re.M)
        names = (re.match(r"(`-[^`]+`,?\s*)+", line)[0] for line in lines)
        own = {name for line in names for name in re.findall(r"`(--[\w-]+|-k)", line)}
        links = re.findall(r"\[([\w\s-]+) options\]\(#", sections[title])
        groups = [" ".join(link.split()).capitalize() + " options" for link in links]
        return own.union(*map(options_in, groups))

    found = options_in(f"sememe {' '.join(command)}")
    known = {param.opts[0] for param in command_of(command).params if param.opts[0][0] == "-"}
    assert found == known - {"--help", "-h"}


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("sememe tra", ["train", "translate"]),
        ("sememe train word2vec --neg", ["--negatives"]),
        ("sememe plot positions --nothing", []),
    ],
)
def test_the_shell_completes_commands_and_options(typed, offered):
    code = "import sys; sys.argv = ['sememe']; from sememe.cli import main; main()"
    environment = {
        **os.environ,
        "_SEMEME_COMPLETE": "complete_bash",
        "COMP_WORDS": typed,
        "COMP_CWORD": str(typed.count(" ")),
    }
    ran = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert ran.stdout.split() == offered


def test_the_page_of_commands_repeats_little():
    lines = re.findall(r"^- `-.*(?:\n  .*)*", write_manual(), flags=re.M)
    assert len(lines) < 1.2 * len(set(lines))


def test_the_page_of_commands_is_up_to_date():
    page = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    assert page == write_manual(), "run `make docs`"


def test_version(sememe):
    import sememe as package

    assert sememe("--version").out == f"sememe {package.__version__}\n"


def test_the_installed_command_answers(vector_file):
    ran = shell("similarity", vector_file, "king", "king")
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"1.0000\n", b"")


def test_a_failure_is_one_sentence_and_debug_shows_the_traceback(tmp_path):
    ran = shell("info", tmp_path / "nothing")
    assert ran.returncode == 2 and ran.stdout == b""
    assert ran.stderr.startswith(b"Error: ") and ran.stderr.count(b"\n") == 1
    for ran in (
        shell("--debug", "info", tmp_path / "nothing"),
        shell("info", tmp_path / "nothing", env={**os.environ, "SEMEME_DEBUG": "1"}),
    ):
        assert ran.returncode != 0 and b"Traceback" in ran.stderr


def test_a_terminal_without_unicode_does_not_fail(vector_file):
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "LC_ALL": "C", "PYTHONUTF8": "0"}
    ran = shell("neighbors", vector_file, "国王", "--num", 20, env=environment)
    assert ran.returncode == 0 and b"king\t" in ran.stdout
    ran = shell("neighbors", vector_file, "king", "--json", "--num", 20, env=environment)
    assert ran.returncode == 0 and b"\\u5973\\u738b" in ran.stdout
    ran = shell("neighbors", vector_file, "王后", env=environment)
    assert ran.returncode == 2 and ran.stderr.startswith(b"Error: ")
    assert shell("--help", env=environment).returncode == 0


def test_a_reader_that_goes_away_is_no_failure(vector_file):
    # `head -1` closes the pipe after the first line; the listing is longer than a pipe holds.
    words = " ".join(["king"] * 9_000)
    command = f"{sys.executable} -m sememe.cli neighbors {vector_file} {words} | head -1"
    ran = subprocess.run(["bash", "-c", command], capture_output=True, check=True)
    assert ran.stdout and ran.stderr == b""


@pytest.mark.parametrize(
    ("raised", "code", "says"),
    [
        (KeyboardInterrupt(), 130, "Stopped."),
        (MemoryError("Unable to allocate 3 PiB"), 2, "allocate 3 PiB"),
        (PermissionError(13, "Permission denied", "/a/file"), 2, "/a/file: Permission denied."),
        (BrokenPipeError(), 141, ""),
    ],
)
def test_other_ends_of_a_command(monkeypatch, raised, code, says):
    def fail(*_, **__):
        raise raised

    monkeypatch.setattr("sememe.models.registry.describe", fail)
    monkeypatch.setattr("sememe.cli.program.drop_output", lambda: None)
    result = CliRunner().invoke(app, ["info", "anything"])
    assert result.exit_code == code
    assert says in result.stderr and "Traceback" not in result.stderr


def test_warnings_are_one_line(sememe, tmp_path):
    (tmp_path / "cut.txt").write_text("9 2\na 1 2\nb 3 4\n")
    result = sememe("convert", "cut.txt", "folder", "--errors", "replace")
    assert result.err.startswith("Warning: ") and ".py" not in result.err


def test_options_come_from_the_dataclasses():
    from dataclasses import fields

    from sememe.models.word2vec.config import Word2VecConfig
    from sememe.text.settings import TextSettings

    command = typer.main.get_command(app).commands["train"].commands["word2vec"]
    by_name = {param.name: param for param in command.params}
    for field in (*fields(Word2VecConfig), *fields(TextSettings)):
        if field.name != "columns":
            assert by_name[field.name].default == field.default
    assert by_name["columns"].opts == ["--column"]


@pytest.mark.parametrize("has_checkpoint", [True, False])
@pytest.mark.parametrize("command", ["word2vec", "onehot", "tokenizer", "bert"])
def test_an_interrupt_speaks_of_resuming_only_where_that_is_possible(
    sememe, corpus, monkeypatch, command, has_checkpoint
):
    from sememe.storage.checkpoints import Checkpoints

    def interrupt(*_, **__):
        if has_checkpoint:
            with Checkpoints("model.checkpoints").write(1) as folder:
                (folder / "state").write_text("")
        raise KeyboardInterrupt

    monkeypatch.setattr("sememe.text.stream.read", interrupt)
    monkeypatch.setattr("sememe.text.stream.segment", interrupt)
    result = sememe("train", command, corpus, "--out", "model", fails=True)
    assert result.code == 130 and "Stopped." in result.err
    assert ("--resume" in result.err) is has_checkpoint


def test_an_interrupt_of_a_command_that_trains_nothing(sememe, tmp_path, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("sememe.models.registry.describe", interrupt)
    (tmp_path / "model").mkdir()
    result = sememe("info", "model", fails=True)
    assert result.code == 130 and "Stopped." in result.err and "--resume" not in result.err


def test_a_switch_that_is_on_can_be_turned_off():
    def switches(command):
        for own in getattr(command, "commands", {}).values():
            yield from switches(own)
        yield from ((command.name, one) for one in command.params if getattr(one, "is_flag", False))

    stuck = [
        (name, one.name)
        for name, one in switches(typer.main.get_command(app))
        if one.default is True and not one.secondary_opts
    ]
    assert not stuck


@pytest.mark.parametrize("command", [("train", "word2vec", "-", "--out", "w"), ("clean", "-")])
def test_ctrl_c_while_a_pipe_stays_open(command, own_cache, tmp_path):
    options = {
        "cwd": tmp_path, "env": {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        "stdin": subprocess.PIPE, "stderr": subprocess.PIPE,
    }  # fmt: skip
    with subprocess.Popen([sys.executable, "-m", "sememe.cli", *command], **options) as process:
        process.stdin.write(b"a fine film\n" * 3)
        process.stdin.flush()
        unread, begun = b"x", time.monotonic()
        while any(unread) and time.monotonic() - begun < 600:
            unread = fcntl.ioctl(process.stdin, termios.FIONREAD, bytes(4))
            time.sleep(0.05)
        time.sleep(0.5)  # the reader waits for more
        process.send_signal(signal.SIGINT)
        code = process.wait(600)
        errors = process.stderr.read().decode()
    assert code == 130 and "Stopped." in errors and "Fatal" not in errors
    assert not list(tmp_path.iterdir())


def test_the_module_is_the_command() -> None:
    own = subprocess.run(
        [sys.executable, "-m", "sememe", "info", "missing"], capture_output=True, text=True
    )
    assert own.returncode == 2 and "missing" in own.stderr
