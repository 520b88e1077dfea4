"""Artifacts: describe one (`info`), and convert between formats (`convert`)."""

import shlex
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from sememe.cli.options import Json, Limit, Quiet, flag
from sememe.cli.program import app, examples, print_json, print_table, remark
from sememe.localization import say, translate
from sememe.progress import Reporter, format_count


@app.command(
    epilog=examples(
        "sememe info runs/ladder/models/skipgram",
        "sememe info GoogleNews-vectors.bin.gz",
        "sememe info bert-base-uncased",
        "sememe info runs/ladder/models/skipgram --json",
        "sememe info runs/ladder --verify",
    )
)
def info(
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL",
            help="Model folder (sememe or Hugging Face), token store or vector file.",
        ),
    ],
    verify: Annotated[
        bool, typer.Option("--verify", help="Verify the checksums of its files first.")
    ] = False,
    json: Json = False,
) -> None:
    """Describe a model folder, token store or vector file.

    Prints its kind, its size and how it was made.
    """
    from sememe.models.registry import compare_checksums, describe

    compared = {"verified_files": compare_checksums(model)} if verify else {}
    content = describe(model) | compared
    if json:
        print_json(content)
    else:
        rows = _flatten(content)
        print_table(("", ""), rows, names={key: _label(key) for key, _ in rows})


# How a terminal names what `describe` gives. Options keep the names by which they are given.
_OPTIONS = ("config", "text", "training", "masking", "network", "options", "provenance.versions")
_SCORES = ("metrics", "scores", "scores.metrics")
_LABELS = {"words": "number of words", "tokens": "number of tokens", "trials": "runs",
           "precision": "numeric precision"}  # fmt: skip


def _label(key: str) -> str:
    group, _, name = key.rpartition(".")
    if group in _OPTIONS:
        return say(f"{group}.{{name}}", name=name)
    if group in _SCORES:
        return say(f"{group}.{{name}}", name=translate(name.replace("_", " ")))
    return translate(_LABELS.get(key, key))


def _flatten(content: dict[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    rows: list[tuple[str, str]] = []
    for name, value in content.items():
        label = f"{prefix}{name}"
        if isinstance(value, dict):
            rows += _flatten(value, f"{label}.")
        elif name == "size":
            rows.append((label, format_count(value, "B")))
        elif isinstance(value, list):
            texts = [*map(str, value)]
            rows.append((label, shlex.join(texts) if name == "command" else ", ".join(texts)))
        else:
            is_number = isinstance(value, int) and not isinstance(value, bool)
            rows.append((label, f"{value:,}" if is_number else str(value)))
    return rows


@app.command(
    "convert",
    epilog=examples(
        "sememe convert runs/ladder/models/skipgram vectors.bin",
        "sememe convert glove.6B.50d.txt glove-folder --limit 100000",
        "sememe convert vectors.bin vectors.txt.gz --format glove",
        "sememe convert runs/subwords model.bin --format fasttext",
        "sememe convert downloads/bert-base-chinese bert-zh",
        "sememe convert runs/ngram model.arpa.gz",
        "sememe convert model.arpa runs/ngram",
        "sememe convert all-MiniLM-L6-v2 minilm-int8 --format onnx --int8",
        "sememe convert runs/sentences model.onnx",
    ),
)
def convert_artifact(
    source: Annotated[
        str, typer.Argument(metavar="FROM", help="Model folder, or vector file in any format.")
    ],
    target: Annotated[
        str,
        typer.Argument(
            metavar="TO", help="Output file or folder; the extension selects the format."
        ),
    ],
    format: Annotated[
        Literal[
            "word2vec", "word2vec-binary", "glove", "fasttext", "floret", "arpa", "onnx", "folder"
        ]
        | None,
        typer.Option("--format", help="Output format; default: from the extension of TO."),
    ] = None,
    errors: Annotated[
        Literal["strict", "replace"],
        typer.Option(help="Damaged input: stop, or read what is readable and warn."),
    ] = "strict",
    limit: Limit = None,
    space: Annotated[
        str | None, typer.Option(help='Replace spaces inside words by this, such as "_".')
    ] = None,
    int8: Annotated[bool, flag("--int8", help="Quantize the weights of an ONNX graph.")] = False,
    overwrite: Annotated[bool, flag("--overwrite", help="Replace an existing TO.")] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Convert models and vectors between file formats.

    The extension of TO selects the format: .txt, .vec and .w2v are
    word2vec text, .bin word2vec binary, .ftz fastText, .floret floret,
    .arpa an n-gram model. Without an extension TO is a sememe folder,
    which opens instantly at any size.

    fastText .bin files need --format fasttext, because .bin alone means
    word2vec. Add .gz, .bz2, .xz or .zst to compress the file.

    A BERT or GPT folder becomes one that sememe and transformers open:
    pickled weights become safetensors, shards are merged, and a bare
    vocabulary becomes a complete tokenizer.

    A BERT, a sentence encoder or a fine-tuned BERT becomes ONNX: with
    --format onnx a folder that sememe opens and computes with onnxruntime,
    with a name in .onnx the graph alone. --int8 prints what it costs.
    """
    from sememe.models.registry import convert

    written = convert(
        source, target, format, limit=limit, errors=errors, space=space,
        int8=int8, overwrite=overwrite, progress=Reporter(quiet=quiet),
    )  # fmt: skip
    if json:
        print_json({"path": str(Path(target)), "format": written.format, **written.sizes})
    else:
        remark(f"Wrote {written.told} to {target} ({written.format}).", quiet)
