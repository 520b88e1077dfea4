"""Where a BERT, a GPT or a model that translates looks, as a picture or as numbers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sememe.cli.opening import open_network
from sememe.cli.options import Json, Pictures, Quiet
from sememe.cli.screen import examples, print_json, remark
from sememe.errors import OptionError

if TYPE_CHECKING:
    import numpy as np

SENTENCE = "The animal didn't cross the street because it was too tired"

EXAMPLES = examples(
    f'sememe plot attention runs/bert "{SENTENCE}"',
    f'sememe plot attention runs/bert "{SENTENCE}" --layer 2 --head 1 --out it.png',
    'sememe plot attention runs/news "国王喜欢读书。" "他有很多书。" --out pair.svg',
    'sememe plot attention gpt2 "The cat sat on the mat" --layer 5 --head 2 --json',
    'sememe plot attention runs/de "A dog that he had seen ran away." --out order.png',
)


def attention(
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL",
            help="Folder of a BERT or GPT, ours or Hugging Face's, or of a model that translates.",
        ),
    ],
    text: Annotated[str, typer.Argument(metavar="TEXT", help="A sentence.")],
    text2: Annotated[
        str | None,
        typer.Argument(
            metavar="TEXT2", help="A second one, for BERT: a pair; or the translation to look at."
        ),
    ] = None,
    layer: Annotated[
        int | None, typer.Option(help="The block, from 1; left out: the last one.")
    ] = None,
    head: Annotated[
        int | None, typer.Option(help="The head, from 1; left out: the mean of all heads.")
    ] = None,
    out: Pictures = None,
    title: Annotated[str, typer.Option(help="A line above the picture.")] = "",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Show how much each token of a text, or of a pair of texts, looks at each other one.

    A row is the token that looks; the darker a cell of it, the more it looks at the token of that
    column. With --json the numbers are printed, and a picture is drawn only where --out says.
    For a model that translates, rows are the words of the translation, columns those of the text.
    """
    from sememe.storage.folder import kind_of_folder

    if kind_of_folder(model) in ("transformer", "seq2seq"):
        _translated(model, text, text2, layer, head, out, title, json, quiet)
        return
    opened = open_network(model, device="cpu")
    from sememe.networks.inspection import attention_maps

    maps = attention_maps(*opened, text, text2)
    num_layers, num_heads = maps.weights_LHTS.shape[:2]
    layer = _checked("layer", num_layers if layer is None else layer, num_layers)
    heads_HTS: np.ndarray = maps.weights_LHTS[layer - 1]
    if head is None:
        weights_TS, of = heads_HTS.mean(0), f"mean of {num_heads} heads"
    else:
        weights_TS, of = heads_HTS[_checked("head", head, num_heads) - 1], f"head {head}"
    paths = out or ([] if json else [Path("attention.png")])
    if paths:
        from sememe import plots

        plots.attention(
            maps.tokens, weights_TS, paths, segments=maps.segments,
            title=title or f"layer {layer}, {of}",
        )  # fmt: skip
    if json:
        print_json(
            {
                "tokens": maps.tokens, "segments": maps.segments, "layer": layer, "head": head,
                "weights": weights_TS.tolist(),
            }
        )  # fmt: skip
        return
    for path in paths:
        remark(f"Saved {path}", quiet)


def _translated(
    model: Path,
    text: str,
    text2: str | None,
    layer: int | None,
    head: int | None,
    out: list[Path] | None,
    title: str,
    as_json: bool,
    quiet: bool,
) -> None:
    """Show where the words of a translation look in their source."""
    from sememe.networks.installed import need_torch

    need_torch()
    from sememe.tasks.translation_folder import open_translator

    found = open_translator(model, device="cpu").attention(text, text2, layer=layer, head=head)
    paths = out or ([] if as_json else [Path("attention.png")])
    if paths:
        from sememe import plots

        of = f"head {head}" if head else f"mean of {found.num_heads} heads"
        one = found.num_layers == 1 and found.num_heads == 1
        plots.attention(
            found.target, found.weights_TS, paths, columns=found.source,
            title=title or ("" if one else f"layer {found.layer}, {of}"),
        )  # fmt: skip
    if as_json:
        print_json(
            {
                "source": found.source, "target": found.target, "layer": found.layer, "head": head,
                "translation": found.translation, "weights": found.weights_TS.tolist(),
            }
        )  # fmt: skip
        return
    for path in paths:
        remark(f"Saved {path}", quiet)


def _checked(name: str, number: int, most: int) -> int:
    if not 1 <= number <= most:
        raise OptionError(f"{name} must lie between 1 and {most} for this network, not {number}.")
    return number
