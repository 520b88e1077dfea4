"""Vectors of texts or of their words, from any model, in a file or on the terminal."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from json import dumps, loads
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from sememe.cli.on_cluster import spread_inference
from sememe.cli.options import (
    Column,
    Device,
    InferenceCluster,
    Json,
    Limit,
    Quiet,
    ResumeParts,
    columns_of,
    flag,
)
from sememe.cli.program import app, echo, examples, is_ascii, print_json, remark
from sememe.cli.row_cells import RowCells, expected_rows
from sememe.errors import InputError
from sememe.localization import translate
from sememe.progress import Reporter
from sememe.text.settings import TextSettings

if TYPE_CHECKING:
    import numpy as np

    from sememe.contract import Model
    from sememe.models.inference import OnModel
    from sememe.storage.vector_files import PlacedWord
    from sememe.text.documents import TextRecord

_TEXTS_AT_ONCE = 256


@app.command(
    epilog=examples(
        "sememe embed runs/bert texts.txt --out vectors.npy",
        "sememe embed runs/bert 'a text' 'another text' --out vectors.csv",
        "sememe embed runs/bert reviews.csv --column text=review --out vectors.parquet",
        "sememe embed runs/bert texts.txt --layers sum-last-four --pool cls --out vectors.npy",
        "sememe embed bert-base-chinese news.jsonl --column text=body --pool words "
        "--language zh -o w.npy",
        "sememe embed runs/elmo texts.txt --layers 1 --pool words --out words.npy",
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
    inputs: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE|TEXT...",
            help="Files (one text per line, tables, -), or texts themselves.",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="Output .npy, .safetensors, .csv, .tsv, .jsonl or .parquet file.",
        ),
    ] = None,
    overwrite: Annotated[bool, flag("--overwrite", help="Replace an existing --out.")] = False,
    resume: ResumeParts = False,
    cluster: InferenceCluster = None,
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
    precision: Annotated[
        Literal["fp32", "bf16"], typer.Option(help="Precision of a BERT or GPT; bf16 is faster.")
    ] = "fp32",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write vectors of texts or words to a file, or print them.

    If files of the given names exist, they are read; otherwise the
    arguments are texts. A text longer than the network's maximum length
    is read in overlapping windows, not truncated. With word vectors, a
    text is the mean of its known words, or zeros if it has none. Tables
    have the columns of FILE, the vector and, with --pool words, each
    word with its start and end in the text; a .tsv file beside a .npy
    file has these. Without --out, vectors are printed.
    """
    from sememe.models.inference import ModelAt, OnModel
    from sememe.storage.vector_files import check_vector_file

    if out is not None:
        check_vector_file(out, overwrite=overwrite, has_words=pool == "words")
    reporter = Reporter(quiet=quiet)
    files, texts = _files_or_texts(inputs, reporter)
    at = ModelAt(str(model), limit, device, "", precision, language, keep_case)
    opened: Model = at.open()
    opened.require("embed_words" if pool == "words" else "embed")
    number = int(layers) if layers.lstrip("-").isdigit() else layers
    # Raises an error for a pool or layers that the model does not have.
    list(embedded(opened, pool, number, ["."]))
    settings = TextSettings(layout="line", columns=columns_of(column), encoding=encoding)
    with spread_inference(cluster, out, resume=resume, progress=reporter):
        work = OnModel(at, embedded_part, opened)
        options = (pool, number)
        with _opened(out, pool == "words", json) as file:
            metrics = _write(work, options, files, texts, settings, file, reporter)
    if out is not None and json:
        used = opened.own_pool if pool == "auto" else pool
        print_json({"path": str(out), "pool": used, **metrics})
    elif out is not None:
        remark(f"Wrote {metrics['rows']:,} rows × {metrics['dim']} to {out}", quiet)
    if metrics["unknown"] and not json:
        text = f"{metrics['unknown']:,} texts have no word of the vocabulary."
        echo(translate(text), err=True)


def _files_or_texts(inputs: list[str], reporter: Reporter) -> tuple[list[str], list[str]]:
    """The arguments that name files, or those that are texts; never both."""
    from sememe.text.sources import COMPRESSION_ENDINGS, ENDINGS, exists, names_files

    files = [one for one in inputs if names_files(one)]
    texts = [one for one in inputs if one not in files]
    for one in texts:
        is_name = one.lower().endswith((*ENDINGS, *COMPRESSION_ENDINGS)) or "/" in one
        if files:
            raise InputError(
                f"{files[0]} is a file, and there is no file {one}: give files or texts, not both."
            )
        if is_name and not any(map(str.isspace, one)):
            raise InputError(
                f"There is no file or folder {one}. To embed it as a text, pipe it in: "
                f"echo {one} | sememe embed MODEL -"
            )
    if texts:
        told = "a text" if len(texts) == 1 else f"{len(texts):,} texts"
        reporter.note(f"Embedding {told} of the command line: no file has such a name.")
    elif not all(exists(one) and "." in one for one in files):
        reporter.note(f"Reading {', '.join(files)}.")
    return files, texts


def _read(
    files: list[str], texts: list[str], settings: TextSettings
) -> tuple[Iterator[TextRecord], int | None, RowCells]:
    """The texts with their columns, about how many they are, and what numbers them."""
    from sememe.text.documents import TextRecord, read_records
    from sememe.text.sources import Source, find_sources

    if texts:
        records = (TextRecord({"text": text}, text, ("text",), "") for text in texts)
        return records, len(texts), RowCells([])
    sources = [Source(found.path) for found in find_sources(files)]
    return read_records(files, settings), expected_rows(sources), RowCells(sources)


def embedded(
    model: Model, pool: str, layers: str | int, texts: Sequence[str]
) -> Iterator[tuple[np.ndarray, list[PlacedWord]]]:
    """The rows of each text: one, or one for each word with a vector, and those words."""
    from sememe.storage.vector_files import PlacedWord

    if pool != "words":
        chosen = {} if pool == "auto" else {"pool": pool}
        yield from ((row_D[None], []) for row_D in model.embed(texts, layers=layers, **chosen))
        return
    for own in model.embed_spans(texts, layers=layers):
        has_row = own.is_known_W | own.vectors_WD.any(1)
        words = [
            PlacedWord(own.words[index], int(own.starts[index]), int(own.ends[index]))
            for index in has_row.nonzero()[0]
        ]
        yield own.vectors_WD[has_row], words


def embedded_part(model: Any, part: tuple[str, str | int, list[str]]) -> dict[str, np.ndarray]:
    """The rows of all texts of a part, how many each has, and their words as JSON."""
    import numpy as np

    found = [*embedded(model, *part)]
    words = dumps([word for _, own in found for word in own]).encode()
    return {
        "rows": np.concatenate([rows_ND for rows_ND, _ in found]),
        "counts": np.array([len(rows_ND) for rows_ND, _ in found]),
        "words": np.frombuffer(words, np.uint8),
    }


def _embedded_records(
    work: OnModel, options: tuple[str, str | int], records: Iterator[TextRecord]
) -> Iterator[tuple[list[TextRecord], dict[str, np.ndarray]]]:
    """Parts of the texts with their rows, in order."""
    from sememe.models.inference import computed

    waiting: deque[list[TextRecord]] = deque()

    def parts() -> Iterator[tuple[str, str | int, list[str]]]:
        while part := list(islice(records, _TEXTS_AT_ONCE)):
            if wrong := next((one.problem for one in part if one.problem), ""):
                raise InputError(f"{wrong}.")
            waiting.append(part)
            yield (*options, [one.text for one in part])

    for found in computed(work, parts()):
        yield waiting.popleft(), found


def _write(
    work: OnModel,
    options: tuple[str, str | int],
    files: list[str],
    texts: list[str],
    settings: TextSettings,
    file: Any,
    reporter: Reporter,
) -> dict[str, Any]:
    """Write the rows of all texts; return their number and what the command reports."""
    import numpy as np

    from sememe.storage.vector_files import PlacedWord

    records, total, numbering = _read(files, texts, settings)
    num_texts, num_unknown, has_text = 0, 0, False
    with reporter.task("embedding", total, "texts") as task:
        for part, found in _embedded_records(work, options, records):
            has_text = has_text or any(one.text.strip() for one in part)
            cells: list[dict[str, Any]] = []
            words = [PlacedWord(*word) for word in loads(found["words"].tobytes())]
            rows_ND = np.asarray(found["rows"])
            ends = np.cumsum(found["counts"])
            for record, num, end in zip(part, found["counts"].tolist(), ends.tolist(), strict=True):
                # A text is not repeated for each of its words.
                without = record.text_columns if words and num else ()
                cells += [numbering.of(record.cells, record.source, without)] * num
                num_unknown += not rows_ND[end - num : end].any()
            num_texts += len(part)
            task.update(num_texts)
            file.add(rows_ND, cells, words)
        if not has_text:
            raise InputError(f"{', '.join(files) or 'The command line'} has no text.")
    return {"texts": num_texts, "rows": file.num_rows, "dim": file.dim, "unknown": num_unknown}


@contextmanager
def _opened(out: Path | None, has_words: bool, as_json: bool) -> Iterator[Any]:
    """The file to write, or standard output."""
    from sememe.storage.vector_files import write_vectors

    if out is None:
        yield _Printed(as_json)
        return
    with write_vectors(out, has_words=has_words) as file:
        yield file


class _Printed:
    """Prints rows as `VectorFile` writes them: number, word with its place, vector."""

    num_rows, dim = 0, 0

    def __init__(self, as_json: bool) -> None:
        self._as_json = as_json

    def add(
        self, rows_ND: np.ndarray, cells: Sequence[dict[str, Any]], words: Sequence[PlacedWord]
    ) -> None:
        self.num_rows, self.dim = self.num_rows + len(rows_ND), rows_ND.shape[1]
        for index, digits in enumerate(rows_ND.astype("f4").astype(str).tolist()):
            word = words[index]._asdict() if words else {}
            if self._as_json:
                row = {**cells[index], **word, "vector": [*map(float, digits)]}
                echo(dumps(row, ensure_ascii=is_ascii(), default=str))
            else:
                parts = (cells[index]["row"], *word.values(), " ".join(digits))
                echo("\t".join(map(str, parts)))
