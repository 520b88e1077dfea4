"""From one format to another: vectors, and folders of networks."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Literal, get_args

import typer

from sememe.cli.classify import convert_classifier, is_classifier
from sememe.cli.options import Json, Limit, Quiet
from sememe.cli.screen import examples, print_json, remark
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
ENDINGS: dict[str, Format] = {
    ".txt": "word2vec", ".vec": "word2vec", ".w2v": "word2vec", ".bin": "word2vec-binary",
    ".ftz": "fasttext", ".floret": "floret", ".arpa": "arpa",
}  # fmt: skip
PACKINGS = (".gz", ".bz2", ".xz", ".zst")


def format_of(target: str) -> Format:
    """Guess the format that a name asks for by its ending; one without is a folder."""
    from sememe.errors import OptionError

    ending = _ending(target)
    if ending in ENDINGS:
        return ENDINGS[ending]
    is_packed = Path(target.lower()).suffix in PACKINGS
    # A number behind a dot belongs to a name, such as bert-1.2 or glove.6B.50d.
    is_folder = target.endswith(("/", os.sep)) or Path(target).is_dir()
    if is_folder or not (is_packed or ending[1:].isalpha()):
        return "folder"
    raise OptionError(
        f"The ending of {target} tells no format: take {', '.join(ENDINGS)}, leave it out to write "
        f"a folder, or give --format {'|'.join(get_args(Format))}."
    )


def _ending(name: str) -> str:
    """The ending of a name in small letters, that of what is packed where it is packed."""
    path = Path(name.lower())
    return (path.with_suffix("") if path.suffix in PACKINGS else path).suffix


def convert(
    source: Annotated[
        str, typer.Argument(metavar="FROM", help="A model folder or a vector file of any format.")
    ],
    target: Annotated[
        str,
        typer.Argument(
            metavar="TO", help="The file or folder to write; its ending tells the format."
        ),
    ],
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
    quiet: Quiet = False,
) -> None:
    """Write vectors of any format in another one.

    The ending of TO tells the format: .txt, .vec and .w2v are word2vec's text, .bin its binary
    file, .ftz fastText's, .floret floret's; a name without one is a folder of ours, which opens at
    once whatever its size. The others are for other tools.
    Facebook's fastText models (.bin, .ftz) need --format fasttext to be written: a
    name in .bin alone is a word2vec file. An ending .gz, .bz2, .xz or .zst packs the file.
    The folder of a BERT or GPT is written as one that sememe and transformers open: pickles
    become safetensors, shards one file, a bare vocabulary a whole tokenizer.
    An n-gram model and the ARPA file of one (.arpa, of KenLM, SRILM and others) become each other.
    """
    from sememe.errors import OptionError
    from sememe.storage.folder import kind_of_folder
    from sememe.vectors.formats import convert as convert_vectors

    chosen = format or format_of(target)
    if network_kind(source) or is_pickled(source):
        if chosen != "folder":
            raise OptionError(f"{source} is a network: it can become a folder, not {target}.")
        _convert_network(source, target, json, quiet)
        return
    if is_classifier(source):
        is_file = Path(target).suffix.lower() in (".bin", ".ftz")
        if format not in (None, "fasttext") if is_file else chosen != "folder":
            raise OptionError(
                f"{source} is a classifier: it can become a folder, or a .bin or .ftz file of "
                f"fastText, not {target}{f' of format {format}' if format else ''}."
            )
        convert_classifier(source, target, json, quiet)
        return
    if _ending(source) == ".arpa" or kind_of_folder(Path(source)) == "ngram":
        _convert_ngrams(source, target, chosen, json, quiet)
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
        remark(f"Wrote {len(vectors):,} words × {vectors.dim} to {target} ({chosen}).", quiet)


def _convert_ngrams(source: str, target: str, format: Format, json: bool, quiet: bool) -> None:
    from sememe.errors import OptionError
    from sememe.progress import Reporter
    from sememe.static.ngram.model import NGram

    if format not in ("arpa", "folder"):
        raise OptionError(f"{source} is an n-gram model: it can become an ARPA file or a folder.")
    model = NGram.load(source)
    if format == "arpa":
        model.write_arpa(target, progress=Reporter(quiet=quiet))
    else:
        model.save(target)
    if json:
        sizes = model.trie.sizes
        print_json({"path": str(Path(target)), "format": format, "ngrams": sizes})
    else:
        remark(f"Wrote {sum(model.trie.sizes):,} n-grams to {target} ({format}).", quiet)


def _convert_network(source: str, target: str, json: bool, quiet: bool) -> None:
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
        remark(f"Wrote {num_tensors:,} tensors to {target} (safetensors).", quiet)
