"""Vectors of texts or of their words, from any model, in a NumPy file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TextIO

import typer

from sememe.cli.opening import Device
from sememe.cli.options import Json, Limit, Quiet, flag
from sememe.cli.screen import examples, print_json, remark
from sememe.errors import InputError, OptionError

if TYPE_CHECKING:
    from sememe.cli.embedding import Embedder

EXAMPLES = examples(
    "sememe embed runs/bert texts.txt --out vectors.npy",
    "sememe embed runs/bert texts.txt --layers sum-last-four --pool cls --out vectors.npy",
    "sememe embed bert-base-chinese news.jsonl --field body --pool words --language zh -o w.npy",
    "sememe embed runs/elmo texts.txt --layers 1 --pool words --out words.npy",
    "sememe embed runs/word2vec texts.txt --out vectors.npy",
)

_TEXTS_AT_ONCE = 1_024


def embed(
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL",
            help="Folder of a BERT, GPT, ELMo, ULMFiT or translator, or any word vectors.",
        ),
    ],
    file: Annotated[
        str,
        typer.Argument(metavar="FILE", help="Texts: a line each, or rows; - for standard input."),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The .npy file to write.")],
    layers: Annotated[
        str,
        typer.Option(
            help="Layers of a network to take: first, last, second-to-last, sum-all, "
            "sum-last-four, concat-last-four, or a number (0 is the embedding)."
        ),
    ] = "last",
    pool: Annotated[
        Literal["cls", "mean", "max", "words"],
        typer.Option(help=r"A row for each text (\[CLS], mean, maximum), or for each word."),
    ] = "mean",
    language: Annotated[
        str, typer.Option(help="How words are cut; left out: as the model says, else en.")
    ] = "",
    keep_case: Annotated[
        bool, flag("--keep-case", help="Look words up as they are written, in a vector file.")
    ] = False,
    field: Annotated[
        str, typer.Option(help="Column of jsonl, csv, tsv and parquet files that holds the text.")
    ] = "text",
    encoding: Annotated[str, typer.Option(help="Encoding of the texts.")] = "utf-8",
    limit: Limit = None,
    device: Device = "auto",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write a vector for each text of a file, or for each word of each text, as a NumPy file.

    A text that is too long for a network is read in overlapping windows, never cut. Word vectors
    give the mean over the words that they know, zeros where they know none. With --pool words a
    .tsv beside the .npy says which row is which word of which text.
    """
    from sememe.cli.embedding import open_embedder
    from sememe.progress import Reporter

    if out.suffix != ".npy":
        raise OptionError(f"--out must end in .npy, not “{out.name}”.")
    embedder = open_embedder(
        model, layers=layers, pool=pool, language=language, keep_case=keep_case, limit=limit,
        device=device,
    )  # fmt: skip
    texts = read_texts(file, field, encoding)
    figures = _write(embedder, texts, file, out, Reporter(quiet=quiet))
    if json:
        print_json({"path": str(out), "pool": pool, **figures})
        return
    remark(f"Wrote {figures['rows']:,} rows × {figures['dim']} to {out}", quiet)
    if figures["unknown"]:
        typer.echo(f"{figures['unknown']:,} texts hold no word that the model knows.", err=True)


def read_texts(file: str, field: str, encoding: str) -> Iterator[str]:
    """The texts of a file in its own order, an empty line being an empty text."""
    from sememe.text.settings import TextSettings
    from sememe.text.stream import read

    for batch in read(file, TextSettings(layout="line", field=field, encoding=encoding)):
        start = 0
        for end in batch.ends.tolist():
            yield batch.text[start:end].decode("utf-8").rstrip("\r\n")
            start = end


def _write(
    embedder: Embedder, texts: Iterator[str], file: str, out: Path, reporter: Any
) -> dict[str, Any]:
    """Write rows, and words where rows belong to words; both files appear, or none."""
    from sememe.storage.arrays import write_rows

    num_texts, num_unknown, has_text = 0, 0, False
    with (
        _words_beside(out, embedder.has_words) as words,
        write_rows(out) as rows,
        reporter.task("embedding", None, "texts") as task,
    ):
        while part := list(islice(texts, _TEXTS_AT_ONCE)):
            has_text = has_text or any(text.strip() for text in part)
            for own in embedder(part):
                rows.add(own.rows_ND)
                words.writelines(f"{num_texts}\t{word}\n" for word in own.words)
                num_unknown += own.is_unknown
                num_texts += 1
            task.update(num_texts)
        if not has_text:
            raise InputError(f"{file} has no text.")
    return {"texts": num_texts, "rows": rows.num_rows, "dim": rows.dim, "unknown": num_unknown}


@contextmanager
def _words_beside(out: Path, is_wanted: bool) -> Iterator[TextIO]:
    from sememe.storage.folder import write_file

    if not is_wanted:
        yield StringIO()
        return
    with (
        write_file(out.with_suffix(".tsv")) as scratch,
        scratch.open("w", encoding="utf-8", newline="") as file,
    ):
        file.write("text\tword\n")
        yield file
