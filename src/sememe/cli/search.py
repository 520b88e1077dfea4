"""Search texts by meaning and by words (`search`)."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from sememe.cli.on_cluster import spread_inference
from sememe.cli.options import InferenceCluster, Json, Quiet, expand, flag
from sememe.cli.program import app, console, echo, examples, print_json, print_table
from sememe.errors import OptionError
from sememe.localization import say
from sememe.progress import Reporter, shown
from sememe.search.config import SearchConfig

if TYPE_CHECKING:
    from sememe.search.index import Hit

_IN_ID, _MOST_CELLS = ("file", "line", "row"), 4


@app.command(
    epilog=examples(
        "sememe search reviews.csv 'too loud at night' --model runs/encoder",
        "sememe search docs/ 'how do I install it?' --model runs/encoder --index runs/docs",
        "sememe search runs/docs 'resume a training' --top 3 --json",
        "sememe search news.jsonl 'football' --where 'year>=2020' --where label=sports",
        "sememe search reviews.csv 'too loud' --model runs/encoder --rerank runs/pairs",
    ),
)
@expand(config="Index")
def search(
    inputs: Annotated[
        list[str],
        typer.Argument(
            metavar="[TEXT...] QUERY",
            help="Files, folders or one index; the last argument is the query.",
        ),
    ],
    config: SearchConfig,
    model: Annotated[
        str, typer.Option(help="Model folder or vector file; without: words only (BM25).")
    ] = "",
    top: Annotated[
        int, typer.Option("--top", "-n", min=1, max=10_000, help="Number of rows to show.")
    ] = 10,
    mode: Annotated[
        Literal["auto", "dense", "lexical", "hybrid"],
        typer.Option(help="By vectors, by words or both; auto: both with a model."),
    ] = "auto",
    where: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CONDITION", help="Only rows such as year>=2020, label=sports; repeatable."
        ),
    ] = None,
    rerank: Annotated[
        str, typer.Option(help="Fine-tuned pairs or regress model that reorders the first rows.")
    ] = "",
    approximate: Annotated[
        bool, flag("--approximate", help="Approximate search with an index (pip extra `index`).")
    ] = False,
    index: Annotated[
        Path | None, typer.Option(help="Index folder; default: in the user's cache.")
    ] = None,
    resume: Annotated[
        bool, flag("--resume", help="Keep vectors in INDEX.parts, and continue from them.")
    ] = False,
    cluster: InferenceCluster = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Find the rows of texts that fit a query, by meaning and by words.

    The first search builds an index; later ones reuse it until a file,
    the model or an option changes, and then only embed what is new. It is
    kept in --index, or in the user's cache. An index folder can be
    searched alone. Without TEXT, the built-in corpus is searched.
    """
    from sememe.search.index import Search, is_index

    *texts, query = inputs
    if not query.strip():
        raise OptionError("The query is empty: give some words to search for.")
    reporter = Reporter(quiet=quiet)
    if len(texts) == 1 and is_index(texts[0]):
        if index is not None:
            raise OptionError(f"{texts[0]} is an index already: leave out --index.")
        if cluster is not None or resume:
            raise OptionError(f"{texts[0]} is an index already: leave out --cluster and --resume.")
        found = Search.load(texts[0], model or None)
        if config not in (SearchConfig(), found.config):
            raise OptionError(
                f"{texts[0]} is an index already: leave out the options with which it was built."
            )
    else:
        if index is None and (resume or cluster):
            raise OptionError("--cluster and --resume need --index, the folder to write.")
        with spread_inference(cluster, index, resume=resume, progress=reporter):
            found = Search.reuse(
                texts or None, model or None, folder=index, progress=reporter, **asdict(config)
            )
        if not model:
            reporter.note("Searching by words only (BM25); --model adds the search by meaning.")
    hits = found.search(
        query, top, where=where, mode=mode, rerank=rerank or None, approximate=approximate
    )
    if json:
        print_json(
            {"query": query, "index": str(found.folder), "hits": [hit.to_dict() for hit in hits]}
        )
        return
    if not hits:
        echo(say("No row fits the query."), err=True)
    elif sys.stdout.isatty():
        _print_hits(hits)
    else:
        rows = [(rank, hit.score, hit.id, hit.snippet.text) for rank, hit in enumerate(hits, 1)]
        print_table(("rank", "score", "id", "snippet"), rows)


def _print_hits(hits: list[Hit]) -> None:
    from rich.text import Text

    for rank, hit in enumerate(hits, 1):
        snippet = hit.snippet
        head = Text(f"{rank:>3}  {hit.score:.4f}  ")
        head.append(shown(hit.id), style="cyan")
        cells = [f"{name} {cell}" for name, cell in hit.cells.items() if name not in _IN_ID]
        head.append(shown("  " + " · ".join(cells[:_MOST_CELLS])), style="dim")
        body = Text("     ")
        end = 0
        for first, last in snippet.highlights:
            body.append(shown(snippet.text[end:first]))
            body.append(shown(snippet.text[first:last]), style="bold")
            end = last
        body.append(shown(snippet.text[end:]))
        console().print(head)
        console().print(body, soft_wrap=True)
