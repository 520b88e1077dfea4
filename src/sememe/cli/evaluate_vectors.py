"""Scores of the vectors of whole texts: retrieval beside BM25, and similarity of pairs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sememe.cli.evaluate import app
from sememe.cli.on_cluster import on_cluster
from sememe.cli.options import (
    Column,
    Device,
    InferenceCluster,
    Json,
    Quiet,
    SkipBad,
    columns_of,
)
from sememe.cli.program import echo, examples, print_json
from sememe.errors import OptionError
from sememe.progress import Reporter

Models = Annotated[
    list[str],
    typer.Argument(metavar="MODEL", help="Model folders or vector files."),
]
Seed = Annotated[int, typer.Option(min=0, help="Random seed of the bootstrap.")]


@app.command(
    epilog=examples(
        "sememe evaluate retrieval runs/mine",
        "sememe evaluate retrieval runs/word2vec runs/sentence --data scifact --json",
        "sememe evaluate retrieval all-MiniLM-L6-v2 --data nfcorpus --split dev",
        "sememe evaluate retrieval runs/zh --data chinese-questions --language zh",
    )
)
def retrieval(
    models: Annotated[
        list[str] | None,
        typer.Argument(metavar="MODEL", help="Model folders or vector files; none: BM25 alone."),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="BEIR folder: corpus.jsonl, queries.jsonl, qrels; default: the built-in set.",
            show_default=False,
        ),
    ] = None,
    split: Annotated[str, typer.Option(help="Judgments: qrels/SPLIT.tsv.")] = "test",
    language: Annotated[
        str,
        typer.Option(help="Language of BM25's words; default: detected.", show_default=False),
    ] = "",
    seed: Seed = 1,
    device: Device = "auto",
    cluster: InferenceCluster = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Evaluate how well models find documents, beside BM25.

    Each model is scored by the cosines of its vectors, and again together
    with BM25 (reciprocal rank fusion): nDCG@10, Recall@100, MRR@10 and
    MAP, with 95 % intervals and paired tests over the queries. The
    built-in set searches the bodies of docstrings by their summaries; its
    modules are not in docstring_pairs("train").
    """
    from sememe.evaluation.retrieval import evaluate_retrieval

    with on_cluster(cluster, Reporter(quiet=quiet)):
        result = evaluate_retrieval(
            models or [], data, split=split, language=language, device=device, seed=seed,
            progress=Reporter(quiet=quiet),
        )  # fmt: skip
    if json:
        print_json(result.to_dict())
    else:
        echo(str(result))


@app.command(
    epilog=examples(
        "sememe evaluate sts runs/mine --data STS-B/dev.tsv",
        "sememe evaluate sts runs/word2vec runs/sentence --data LCQMC/test.tsv --json",
        "sememe evaluate sts runs/mine --data pairs.csv --column text=a --column second=b "
        "--column score=similarity",
    )
)
def sts(
    models: Models,
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Pairs of texts with scores (required).", show_default=False
        ),
    ] = None,
    column: Column = None,
    skip_bad: SkipBad = False,
    seed: Seed = 1,
    device: Device = "auto",
    cluster: InferenceCluster = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Evaluate the similarity of texts against people's scores.

    Correlates the cosines of a model's vectors with the scores of pairs:
    Spearman and Pearson, with 95 % intervals and paired tests. Files are
    STS-B's tsv, or csv, tsv and jsonl with two texts and a score; labels
    0 and 1 (LCQMC) also give AUC and average precision.
    """
    from sememe.evaluation.sts import evaluate_sts

    if data is None:
        raise OptionError("--data must name a file of pairs with scores.")
    with on_cluster(cluster, Reporter(quiet=quiet)):
        result = evaluate_sts(
            models, data, columns=columns_of(column) or None, skip_bad=skip_bad, device=device,
            seed=seed, progress=Reporter(quiet=quiet),
        )  # fmt: skip
    if json:
        print_json(result.to_dict())
    else:
        echo(str(result))
