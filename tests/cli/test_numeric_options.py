"""Every numeric option of every command refuses what is out of its range, before any work.

The commands and their options are read from the program itself, so that a new option is tried
without a word here. Files that do not exist keep commands from beginning anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import typer

from sememe.cli import app

PROGRAM: Any = typer.main.get_command(app)
NUMBERS = ("'int'", "'float'", "int |", "float |", "[int]", "[float]")
NO_NUMBERS = ("nan", "inf", "")
LARGE = "1000000000000000000"
# What each of these may be; every other option must refuse it by its name. A seed is any number of
# 63 bits, counts of GloVe may be that large. A new option that takes 0 or less belongs here, with
# its command if others refuse it.
ACCEPTED = {
    LARGE: {"seed", "x_max"},
    "-1": {
        "components", "eigenvalue_weight", "noise_exponent", "predicate_column",
        "train classifier maxn", "train classifier minn",
    },
    "0": {
        "activation_penalty", "alpha", "average_after", "average_share", "batch_size",
        "batch_warmup", "beta2", "bleu_pairs", "bucket", "cell_clip", "change_penalty",
        "checkpoint_minutes", "clip", "clusters", "components", "cutoff", "deletion", "dev_share",
        "dim", "dropout", "dropout_factor", "early_stopping", "eigenvalue_weight", "epochs",
        "epsilon", "evaluate_batches", "evaluate_every", "final_rate", "hard_negatives",
        "hash_count", "last_rate", "layer", "layer_decay", "learning_rate", "lm_weight", "lora",
        "lora_alpha", "lora_dropout", "mask_share", "max_length", "max_train", "max_words", "maxn",
        "memory_limit", "min_count", "min_count_label", "min_learning_rate", "min_length", "minn",
        "noise_exponent", "noise_power", "num_highways", "num_topics", "num_workers", "output_clip",
        "overlap", "passage", "patience", "phrases", "port", "predicate_column", "random_share",
        "reader_width", "repeated_lines", "restrict_vocab", "rounds", "rows", "sample", "seed",
        "short_length", "shots", "smoothing", "start_epochs", "step", "steps", "temperature",
        "threads", "threshold", "tokens", "top_k", "top_p", "train_sentences", "unfreeze_every",
        "validation_share", "warmup", "weight_decay", "word_ngrams", "words", "workers",
        "relation_weight", "soft_weight",
    },
}  # fmt: skip


def commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command with its words."""
    parts = getattr(command, "commands", None)
    if not parts:
        yield path, command
    for name, part in (parts or {}).items():
        yield from commands(part, (*path, name))


def numeric(command: Any) -> list[Any]:
    """The options that take a number."""
    return [
        one
        for one in command.params
        if one.param_type_name == "option"
        and any(mark in str(one.type_descriptor.annotation) for mark in NUMBERS)
    ]


COMMANDS = [(path, command) for path, command in commands(PROGRAM) if numeric(command)]


def given(command: Any) -> list[str]:
    """Files that do not exist for all that the command needs to be given."""
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    words = []
    for one in command.params:
        if (one.required and one not in arguments) or "--train" in one.opts:
            words += [one.opts[0], "missing"]
        elif "--out" in one.opts and arguments:  # without it a command that needs no file stops
            is_picture = "Path]" in str(one.type_descriptor.annotation)
            words += ["--out", "out.png" if is_picture else "out"]
    # Those of search are files, and a query after them.
    nums = [len((one.metavar or "").split()) if one.nargs < 0 else one.nargs for one in arguments]
    return words + ["missing"] * sum(max(1, num) for num in nums)


def test_there_are_commands_with_numbers():
    assert len(COMMANDS) > 30 and sum(len(numeric(command)) for _, command in COMMANDS) > 500


@pytest.mark.parametrize(("path", "command"), COMMANDS, ids=lambda own: " ".join(own)
                         if isinstance(own, tuple) else "")  # fmt: skip
def test_numbers_out_of_range_are_refused(path, command, own_cache, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for option in numeric(command):
        flag = option.opts[0]
        for value in ("0", "-1", LARGE, *NO_NUMBERS):
            with pytest.raises(SystemExit) as ended:  # anything else is a traceback
                PROGRAM.main(args=[*path, f"{flag}={value}", *given(command)], prog_name="sememe")
            said = " ".join(capsys.readouterr().err.split())
            assert ended.value.code == 2, (flag, value, said)
            if not {option.name, f"{' '.join(path)} {option.name}"} & ACCEPTED.get(value, set()):
                names = flag.lstrip("-"), option.name
                assert any(name in said for name in names), (flag, value, said)
    assert list(tmp_path.iterdir()) == []


def test_adam_that_never_forgets_is_refused(own_cache, tmp_path, monkeypatch, capsys):
    """A beta2 of 1 divides by nought at the first step; every command that has it says so."""
    monkeypatch.chdir(tmp_path)
    with_beta2 = [
        (path, own) for path, own in COMMANDS if any(x.name == "beta2" for x in own.params)
    ]
    assert {("train", "bert"), ("finetune", "classify")} <= {path for path, _ in with_beta2}
    for path, command in with_beta2:
        with pytest.raises(SystemExit) as ended:
            PROGRAM.main(args=[*path, "--beta2=1", *given(command)], prog_name="sememe")
        said = capsys.readouterr().err
        assert ended.value.code == 2 and "beta2" in said and "0.999999" in said, (path, said)
