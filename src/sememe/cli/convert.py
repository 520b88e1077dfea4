"""From one format to another: vectors, and folders of networks."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from sememe.cli.classify import convert_classifier, is_classifier
from sememe.cli.options import Json, Limit
from sememe.cli.screen import examples, print_json
from sememe.networks.interchange.layout import is_pickled, network_kind

EXAMPLES = examples(
    "sememe convert runs/ladder/models/skipgram vectors.bin",
    "sememe convert glove.6B.50d.txt glove-folder --limit 100000",
    "sememe convert vectors.bin vectors.txt.gz --format glove",
    "sememe convert runs/subwords model.bin --format fasttext",
    "sememe convert downloads/bert-base-chinese bert-zh",
    "sememe convert runs/ngram model.arpa.gz",
    "sememe convert model.arpa runs/ngram",
)

Format = Literal["word2vec", "word2vec-binary", "glove", "fasttext", "floret", "arpa", "folder"]


def format_of(target: str) -> Format:
    """Guess the format that a name asks for by its ending; one without is a folder."""
    name = target.lower()
    for packing in (".gz", ".bz2", ".xz", ".zst"):
        name = name.removesuffix(packing)
    if name.endswith(".bin"):
        return "word2vec-binary"
    if name.endswith(".ftz"):
        return "fasttext"
    if name.endswith(".floret"):
        return "floret"
    if name.endswith(".arpa"):
        return "arpa"
    return "word2vec" if name.endswith((".txt", ".vec", ".w2v")) else "folder"


def convert(
    source: Annotated[
        str, typer.Argument(metavar="FROM", help="A model folder or a vector file of any format.")
    ],
    target: Annotated[str, typer.Argument(metavar="TO", help="The file or folder to write.")],
    format: Annotated[
        Format | None,
        typer.Option("--format", help="What to write; told by the name of TO when left out."),
    ] = None,
    errors: Annotated[
        Literal["strict", "replace"],
        typer.Option(help="Stop at damage in the file, or read what can be read and warn."),
    ] = "strict",
    limit: Limit = None,
    space: Annotated[
        str | None, typer.Option(help='Write this for spaces inside words, such as "_".')
    ] = None,
    json: Json = False,
) -> None:
    """Write vectors of any format in another one.

    Our folder opens at once whatever its size; the others are for other tools.
    Facebook's fastText models (.bin, .ftz) need --format fasttext to be written: a
    name in .bin alone is a word2vec file. An ending .gz, .bz2, .xz or .zst packs the file.
    The folder of a BERT or GPT is written as one that sememe and transformers open: pickles
    become safetensors, shards one file, a bare vocabulary a whole tokenizer.
    An n-gram model and the ARPA file of one (.arpa, of KenLM, SRILM and others) become each other.
    """
    from sememe.errors import OptionError
    from sememe.storage.folder import kind_of_folder
    from sememe.vectors.formats import convert as convert_vectors

    if network_kind(source) or is_pickled(source):
        if format not in (None, "folder"):
            raise OptionError(f"{source} is a network; it has no file of format {format}.")
        _convert_network(source, target, json)
        return
    if is_classifier(source):
        is_file = Path(target).suffix.lower() in (".bin", ".ftz")
        has_place = is_file or format_of(target) == "folder"
        if not has_place or format not in (None, "fasttext" if is_file else "folder"):
            raise OptionError(
                f"{source} is a classifier: it can become a folder, or a .bin or .ftz file of "
                f"fastText, not {target}{f' of format {format}' if format else ''}."
            )
        convert_classifier(source, target, json)
        return
    chosen = format or format_of(target)
    if format_of(source) == "arpa" or kind_of_folder(Path(source)) == "ngram":
        _convert_ngrams(source, target, chosen, json)
        return
    if chosen == "arpa":
        raise OptionError(f"{source} is no n-gram model: it cannot become an ARPA file.")
    vectors = convert_vectors(source, target, chosen, limit=limit, errors=errors, space=space)
    figures = {
        "path": str(Path(target)),
        "format": chosen,
        "words": len(vectors),
        "dim": vectors.dim,
    }
    if json:
        print_json(figures)
    else:
        typer.echo(f"Wrote {len(vectors):,} words × {vectors.dim} to {target} ({chosen}).")


def _convert_ngrams(source: str, target: str, format: Format, json: bool) -> None:
    from sememe.errors import OptionError
    from sememe.progress import Reporter
    from sememe.static.ngram.model import NGram

    if format not in ("arpa", "folder"):
        raise OptionError(f"{source} is an n-gram model: it can become an ARPA file or a folder.")
    model = NGram.load(source)
    if format == "arpa":
        model.write_arpa(target, progress=Reporter(quiet=json))
    else:
        model.save(target)
    if json:
        sizes = model.trie.sizes
        print_json({"path": str(Path(target)), "format": format, "ngrams": sizes})
    else:
        typer.echo(f"Wrote {sum(model.trie.sizes):,} n-grams to {target} ({format}).")


def _convert_network(source: str, target: str, json: bool) -> None:
    from sememe.networks.installed import need_torch

    need_torch()
    if is_pickled(source):
        from sememe.networks.interchange.pickles import convert_pickles

        num_tensors = convert_pickles(source, target)
    else:
        from sememe.networks.interchange.huggingface import load_folder, save_folder
        from sememe.networks.interchange.layout import TENSORS
        from sememe.storage.tensors import tensor_shapes

        save_folder(*load_folder(source), target)
        num_tensors = len(tensor_shapes(Path(target) / TENSORS))
    if json:
        print_json({"path": str(Path(target)), "format": "folder", "tensors": num_tensors})
    else:
        typer.echo(f"Wrote {num_tensors:,} tensors to {target} (safetensors).")
