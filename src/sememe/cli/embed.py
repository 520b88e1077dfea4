"""Vectors of texts or of their words, from any model, in a NumPy file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from io import StringIO
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TextIO

import typer

from sememe.cli.options import Column, Device, Json, Limit, Quiet, columns_of, flag
from sememe.cli.program import app, echo, examples, print_json, remark
from sememe.errors import InputError, OptionError, WriteError
from sememe.localization import translate
from sememe.progress import Reporter
from sememe.storage.folder import write_file
from sememe.text.settings import TextSettings

if TYPE_CHECKING:
    import numpy as np

    from sememe.contract import Model

_TEXTS_AT_ONCE = 1_024
_HEADING = "text\tword\n"  # of the file of words beside the vectors


@app.command(
    epilog=examples(
        "sememe embed runs/bert texts.txt --out vectors.npy",
        "sememe embed runs/bert texts.txt --layers sum-last-four --pool cls --out vectors.npy",
        "sememe embed bert-base-chinese news.jsonl --column text=body --pool words "
        "--language zh -o w.npy",
        "sememe embed runs/elmo texts.txt --layers 1 --pool words --out words.npy",
        "sememe embed runs/word2vec texts.txt --out vectors.npy",
    ),
)
def embed(
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL",
            help="BERT, GPT, ELMo, ULMFiT or translation model folder, or word vectors.",
        ),
    ],
    file: Annotated[
        str,
        typer.Argument(metavar="FILE", help="One text per line, or a table; - for standard input."),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="Output .npy file (required).")],
    layers: Annotated[
        str,
        typer.Option(
            help="first, last, second-to-last, sum-all, sum-last-four, concat-last-four or a "
            "layer number."
        ),
    ] = "last",
    pool: Annotated[
        Literal["auto", "cls", "mean", "max", "words"],
        typer.Option(help=r"Pooling: a row per text (auto: the model's) or per word."),
    ] = "auto",
    language: Annotated[
        str, typer.Option(help="Word segmentation (en, zh …); default: the model's, otherwise en.")
    ] = "",
    keep_case: Annotated[
        bool, flag("--keep-case", help="Vector files: keep upper case when looking up words.")
    ] = False,
    column: Column = None,
    encoding: Annotated[str, typer.Option(help="Encoding of the input file.")] = "utf-8",
    limit: Limit = None,
    device: Device = "auto",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write text or word vectors to a NumPy file.

    A text longer than the network's maximum length is read in overlapping
    windows, not truncated. With word vectors, a text is the mean of its
    known words, or zeros if it has none. With --pool words, a .tsv file
    beside the .npy maps each row to its word and text.
    """
    from sememe.models.registry import load

    if out.suffix != ".npy":
        raise OptionError(f"--out must end in .npy, not “{out.name}”.")
    opened: Model = load(model, limit, device=device)
    opened.require("embed_words" if pool == "words" else "embed")
    if language and language != opened.text.language:
        opened.text = replace(opened.text, language=language, dictionary="")
    if keep_case:
        opened.text = replace(opened.text, lowercase=False)
    number = int(layers) if layers.lstrip("-").isdigit() else layers
    embedder = partial(embedded, opened, pool, number)
    list(embedder(["."]))  # raises an error for a pool or layers that the model does not have
    texts = read_texts(file, columns_of(column), encoding)
    with _words_file(out, pool == "words") as words:
        metrics = _write(embedder, texts, file, out, words, Reporter(quiet=quiet))
    if json:
        used = opened.own_pool if pool == "auto" else pool
        print_json({"path": str(out), "pool": used, **metrics})
        return
    remark(f"Wrote {metrics['rows']:,} rows × {metrics['dim']} to {out}", quiet)
    if metrics["unknown"]:
        text = f"{metrics['unknown']:,} texts have no word of the vocabulary."
        echo(translate(text), err=True)


def embedded(
    model: Model, pool: str, layers: str | int, texts: Sequence[str]
) -> Iterator[tuple[np.ndarray, list[str]]]:
    """The rows of each text: one, or one for each word with a vector, and those words."""
    if pool != "words":
        chosen = {} if pool == "auto" else {"pool": pool}
        yield from ((row_D[None], []) for row_D in model.embed(texts, layers=layers, **chosen))
        return
    for own in model.embed_spans(texts, layers=layers):
        has_row = own.is_known_W | own.vectors_WD.any(1)
        words = [" ".join(own.words[index].split()) for index in has_row.nonzero()[0]]
        yield own.vectors_WD[has_row], words


def read_texts(file: str, columns: dict[str, str], encoding: str) -> Iterator[str]:
    """The texts of a file in order; an empty line is an empty text."""
    from sememe.text.stream import read

    for batch in read(file, TextSettings(layout="line", columns=columns, encoding=encoding)):
        start = 0
        for end in batch.ends.tolist():
            yield batch.text[start:end].decode("utf-8").rstrip("\r\n")
            start = end


def _write(
    embedder: Callable[[list[str]], Iterator[tuple[np.ndarray, list[str]]]],
    texts: Iterator[str],
    file: str,
    out: Path,
    words: TextIO,
    reporter: Reporter,
) -> dict[str, Any]:
    """Write rows, and words if rows belong to words; both files appear, or none."""
    from sememe.storage.tensors import write_rows

    num_texts, num_unknown, has_text = 0, 0, False
    with write_rows(out) as rows, reporter.task("embedding", None, "texts") as task:
        while part := list(islice(texts, _TEXTS_AT_ONCE)):
            has_text = has_text or any(text.strip() for text in part)
            for own_ND, own_words in embedder(part):
                rows.add(own_ND)
                words.writelines(f"{num_texts}\t{word}\n" for word in own_words)
                num_unknown += not own_ND.any()
                num_texts += 1
            task.update(num_texts)
        if not has_text:
            raise InputError(f"{file} has no text.")
    return {"texts": num_texts, "rows": rows.num_rows, "dim": rows.dim, "unknown": num_unknown}


@contextmanager
def _words_file(out: Path, is_wanted: bool) -> Iterator[TextIO]:

    if not is_wanted:
        yield StringIO()
        return
    beside = out.with_suffix(".tsv")
    # A name of our own choice: what another program wrote there, perhaps FILE itself, must stay.
    with suppress(FileNotFoundError), beside.open("rb") as there:
        if there.read(len(_HEADING)) != _HEADING.encode():
            raise WriteError(f"{beside} exists and is not of this command: choose another --out.")
    with (
        write_file(beside) as scratch,
        scratch.open("w", encoding="utf-8", newline="") as file,
    ):
        file.write(_HEADING)
        yield file
