"""Pictures: words on a plane, vectors side by side, positions, attention, training curves."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

import sememe
from sememe.cli.options import Json, Limit, Model, Pictures, Quiet
from sememe.cli.program import examples, group, print_json, remark
from sememe.errors import InputError, OptionError
from sememe.machine import imported
from sememe.progress import History, Reporter
from sememe.text.sources import read_utf8

if TYPE_CHECKING:
    import numpy as np

    from sememe.plots.vocabulary import Points

app = group("plot", "Plot vectors, attention and training curves.")

Title = Annotated[str, typer.Option(help="Title of the plot.")]


def read_pairs(given: list[str]) -> list[tuple[str, str]]:
    """Read pairs written as `france:paris,italy:rome`, or from files of two words per line."""

    pairs = []
    for text in given:
        for line in _lines(text):
            words = line.replace(":", " ").split()
            if len(words) != 2:
                raise OptionError(
                    f"“{line}” is not a pair; write france:paris, or give a file with two words "
                    "per line."
                )
            pairs.append((words[0], words[1]))
    return pairs


def _lines(text: str) -> list[str]:
    path = Path(text)
    if ":" in text and not path.exists():
        return text.split(",")
    try:
        lines = read_utf8(path).splitlines()
    except InputError as error:
        raise InputError(
            f"{str(error).rstrip('.')}; write france:paris, or give a file."
        ) from error
    return [line for line in map(str.strip, lines) if line and line[0] not in "#:"]


def _tell(paths: list[Path], quiet: bool) -> None:
    for path in paths:
        remark(f"Saved {path}", quiet)


@app.command(
    epilog=examples(
        "sememe plot pca runs/ladder/models/skipgram row column minimum maximum --out words.png",
        'sememe plot pca glove.txt --pairs "france:paris,italy:rome,japan:tokyo" --out map.svg',
        "sememe plot pca runs/mine --pairs capitals.txt --out map.png --out map.svg",
    )
)
def pca(
    model: Model,
    words: Annotated[
        list[str] | None, typer.Argument(metavar="WORD", help="Words to plot.")
    ] = None,
    pairs: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PAIRS",
            help="Pairs to connect: france:paris,italy:rome, or a file of pairs; repeatable.",
        ),
    ] = None,
    out: Pictures = None,
    title: Title = "",
    limit: Limit = None,
    quiet: Quiet = False,
) -> None:
    """Plot words in two dimensions by principal components.

    Needs at least three words, single or in pairs. Parallel lines between
    pairs show that their words differ in the same way.
    """
    from sememe import plots
    from sememe.models.registry import load_words

    paths = out or [Path("pca.png")]
    items: list[str | tuple[str, str]] = [*read_pairs(pairs or []), *(words or [])]
    plots.pca(load_words(model, limit), items, paths, title=title)
    _tell(paths, quiet)


@app.command(
    "map",
    epilog=examples(
        "sememe plot map glove.txt --method umap --out map.png --out map.csv",
        "sememe plot map runs/ladder/models/skipgram --words 1000",
    ),
)
def vocabulary_map(
    model: Model,
    method: Annotated[
        Literal["pca", "umap", "tsne"],
        typer.Option(help="Principal components, UMAP or t-SNE (pip extra `explore`)."),
    ] = "pca",
    words: Annotated[
        int, typer.Option(min=10, max=100_000, help="Number of most frequent words.")
    ] = 5_000,
    rows: Annotated[
        str | None, typer.Option(help="Table or text whose rows are the points, instead of words.")
    ] = None,
    clusters: Annotated[
        int | None,
        typer.Option(min=2, max=20, help="Color the points by this number of clusters."),
    ] = None,
    neighbors: Annotated[
        int | None,
        typer.Option(min=2, max=200, help="Neighbors of UMAP; perplexity of t-SNE; default: 15."),
    ] = None,
    seed: Annotated[
        int, typer.Option(min=0, max=2**31 - 1, help="Random seed of UMAP and t-SNE.")
    ] = 1,
    out: Annotated[
        list[Path] | None,
        typer.Option(
            "--out",
            "-o",
            help="Picture (.png, .svg) or table (.csv); repeatable; default: map.png.",
        ),
    ] = None,
    title: Title = "",
    limit: Limit = None,
    quiet: Quiet = False,
) -> None:
    """Plot frequent words of a model, or rows of a table, as points.

    The places are those of the view Map of sememe explore. Tables (.csv,
    .tsv, .jsonl, .parquet) have the columns word or row, x and y, and
    cluster with --clusters.
    """
    from sememe.models.registry import load_words
    from sememe.plots.manifold import Manifold, lay_out_beside
    from sememe.plots.projection import project
    from sememe.plots.style import FORMATS
    from sememe.plots.vocabulary import cluster_points, draw_vocabulary, word_points
    from sememe.storage.tables import table_format, write_table

    if method == "pca" and neighbors:
        raise OptionError("--neighbors is for --method umap and tsne.")
    if rows is not None and limit:
        raise OptionError("--limit is for words, not for --rows.")
    paths = out or [Path("map.png")]
    pictures = [path for path in paths if table_format(path, FORMATS)[0] in FORMATS]
    points = word_points(load_words(model, limit), words) if rows is None else _rows(model, rows)
    if method == "pca":
        places_N2, _ = project(points.units_ND)
    else:
        Reporter(quiet=quiet).note(f"Placing {len(points.labels):,} points; many take minutes.")
        manifold = Manifold(method, neighbors or 15, seed)
        places_N2 = lay_out_beside(points.units_ND, manifold)
    numbers_N: np.ndarray | None = None
    names: list[list[str]] = []
    if clusters:
        numbers_N, names = cluster_points(points.units_ND, points.labels, clusters)
    for path in paths:
        if path not in pictures:
            kind = "word" if rows is None else "row"
            found: list[dict[str, Any]] = [
                {kind: label, "x": x, "y": y}
                for label, (x, y) in zip(points.labels, places_N2.tolist(), strict=True)
            ]
            if numbers_N is not None:
                found = [own | {"cluster": int(n)} for own, n in zip(found, numbers_N, strict=True)]
            with write_table(path) as table:
                table.add(found)
    if pictures:
        draw_vocabulary(
            points.labels, places_N2, pictures, title=title, groups_N=numbers_N,
            names=[", ".join(near) for near in names], what="words" if rows is None else "rows",
        )  # fmt: skip
    _tell(paths, quiet)


def _rows(model: str, path: str) -> Points:
    """The rows of a table as points; those without a vector are left out."""
    from sememe.explore.rows import OwnRows

    own = OwnRows(path)
    for note in own.notes:
        Reporter(quiet=False).note(note)
    return own.points_by(sememe.load(model, able="embed"))


@app.command(
    epilog=examples(
        'sememe plot heatmap glove.txt king queen man woman "king - man + woman" --out strips.png',
        "sememe plot heatmap runs/ladder/models/skipgram array matrix error --scale 1",
    )
)
def heatmap(
    model: Model,
    expressions: Annotated[
        list[str],
        typer.Argument(metavar="EXPRESSION", help='Words, or sums such as "king - man + woman".'),
    ],
    out: Pictures = None,
    scale: Annotated[
        float | None,
        typer.Option(
            min=1e-9, max=1e9, help="Colors run from -SCALE to +SCALE; default: from the values."
        ),
    ] = None,
    title: Title = "",
    limit: Limit = None,
    quiet: Quiet = False,
) -> None:
    """Plot vectors as colour strips: blue negative, red positive."""
    from sememe import plots
    from sememe.models.registry import load_words

    paths = out or [Path("heatmap.png")]
    vectors = load_words(model, limit)
    notes: list[str] = []
    plots.heatmap(vectors, expressions, paths, limit=scale, title=title, on_note=notes.append)
    _tell(paths, quiet)
    more = [] if scale else ["--scale sets another range."]
    remark(" ".join([*notes, *more]), quiet)


@app.command(
    epilog=examples(
        "sememe plot positions --out waves.png",
        "sememe plot positions --length 50 --width 128 --out waves.svg",
        "sememe plot positions runs/bert --out learned.png",
    )
)
def positions(
    model: Annotated[
        Path | None,
        typer.Argument(
            metavar="MODEL",
            help="BERT, GPT or transformer folder; default: sinusoidal positions.",
        ),
    ] = None,
    length: Annotated[
        int | None, typer.Option(min=1, max=100_000, help="Number of positions; sinusoidal: 100.")
    ] = None,
    width: Annotated[
        int, typer.Option(min=2, max=100_000, help="Dimensions of the sinusoidal positions.")
    ] = 512,
    out: Pictures = None,
    title: Title = "",
    quiet: Quiet = False,
) -> None:
    """Plot position embeddings: sinusoidal, or those of a model."""
    from sememe import plots

    paths = out or [Path("positions.png")]
    if model is None:
        sine_waves = imported("sememe.nn.layers", "sinusoidal_table")
        table = sine_waves(length or 100, width).numpy()
    else:
        table = sememe.load(model, able="positions").positions[:length]
    plots.positions(table, paths, title=title)
    _tell(paths, quiet)


@app.command(
    epilog=examples(
        "sememe plot history runs/ladder/models/skipgram",
        "sememe plot history runs/mine --metric words_per_s",
    )
)
def history(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Model folder.")],
    out: Pictures = None,
    metric: Annotated[str, typer.Option(help="Metric of the training history to plot.")] = "loss",
    title: Title = "",
    quiet: Quiet = False,
) -> None:
    """Plot a training curve: the loss or another metric."""
    from sememe import plots

    paths = out or [Path("history.png")]
    plots.history(History.load(model / "history.json"), paths, metric=metric, title=title)
    _tell(paths, quiet)


SENTENCE = "The animal didn't cross the street because it was too tired"


@app.command(
    epilog=examples(
        f'sememe plot attention runs/bert "{SENTENCE}"',
        f'sememe plot attention runs/bert "{SENTENCE}" --layer 2 --head 1 --out it.png',
        f'sememe plot attention runs/bert "{SENTENCE}" --over rollout',
        'sememe plot attention runs/news "国王喜欢读书。" "他有很多书。" --out pair.svg',
        'sememe plot attention gpt2 "The cat sat on the mat" --layer 5 --head 2 --json',
        'sememe plot attention runs/de "A dog that he had seen ran away." --out order.png',
    ),
)
def attention(
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL",
            help="BERT or GPT folder (sememe or Hugging Face), or translation model.",
        ),
    ],
    text: Annotated[str, typer.Argument(metavar="TEXT", help="Sentence.")],
    text2: Annotated[
        str | None,
        typer.Argument(
            metavar="TEXT2", help="Second sentence of a pair (BERT), or the translation."
        ),
    ] = None,
    layer: Annotated[
        int | None,
        typer.Option(min=1, max=10**4, help="Layer, from 1; default: the last."),
    ] = None,
    head: Annotated[
        int | None,
        typer.Option(min=1, max=10**4, help="Attention head, from 1; default: mean of all heads."),
    ] = None,
    over: Annotated[
        Literal["mean", "rollout"] | None,
        typer.Option(help="All layers and heads: their mean, or attention rollout."),
    ] = None,
    out: Pictures = None,
    title: Annotated[str, typer.Option(help="Title of the plot.")] = "",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Plot attention weights between the tokens of a text or pair.

    Rows are queries, columns are keys; darker cells have more weight. For
    a translation model, rows are target tokens and columns source tokens.
    With --json the weights are printed, and a plot is written only with
    --out.
    """
    from sememe import plots
    from sememe.plots.style import spoken

    if over and (layer or head):
        raise OptionError("--over takes all layers and heads; omit --layer and --head.")
    found = sememe.load(model, able="attention").attention(text, text2)
    num_layers, num_heads = found.weights_LHTS.shape[:2]
    if over:
        weights_TS = found.mean() if over == "mean" else found.rollout()
        name = "mean of all layers and heads" if over == "mean" else "attention rollout"
    else:
        weights_TS = found.of(layer, head)
        layer = layer or num_layers
        name = f"layer {layer}, " + (f"head {head}" if head else f"mean of {num_heads} heads")
    is_one = num_layers == num_heads == 1
    paths = out or ([] if json else [Path("attention.png")])
    if paths:
        sides = {"segments": found.segments} if found.segments else {"columns": found.source}
        plots.attention(
            found.target, weights_TS, paths, **sides,
            title=title or ("" if is_one else spoken(name)),
        )  # fmt: skip
    if not json:
        _tell(paths, quiet)
        return
    told: dict[str, Any] = {"layer": layer, "head": head, "over": over}
    told["weights"] = weights_TS.tolist()
    if found.translation is None:
        told |= {"tokens": found.tokens, "segments": found.segments}
    else:
        told |= {
            "source": found.source, "target": found.target, "translation": found.translation
        }  # fmt: skip
    print_json(told)
