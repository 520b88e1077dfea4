"""The command that trains a sentence encoder: a model and texts in, a model folder out."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Annotated, Any, Literal

import typer

from sememe.cli import training
from sememe.cli.options import (
    Column,
    Json,
    Model,
    Quiet,
    SkipBad,
    columns_of,
    expand,
    is_typed,
    paths_of,
)
from sememe.cli.program import app, echo, examples, needed, print_json, remark
from sememe.localization import translate
from sememe.models.sentence.config import DistillConfig, SentenceConfig
from sememe.progress import Reporter
from sememe.text.settings import TextSettings

_OF_FILES = ("layout", "columns", "encoding", "errors")


@dataclass(frozen=True, kw_only=True)
class SentenceOptions(training.NetworkSaving):
    """What a sentence encoder learns from."""

    corpus: Annotated[
        list[str] | None,
        typer.Option(
            "--corpus",
            help="Text files, folders or patterns; repeatable; default: built-in corpus.",
        ),
    ] = None
    pairs: Annotated[
        list[str] | None,
        typer.Option(
            "--pairs", help="Table of two texts, perhaps with a score or inference label."
        ),
    ] = None
    triplets: Annotated[
        list[str] | None,
        typer.Option("--triplets", help="Table of a text, a similar one, and another."),
    ] = None
    dev: Annotated[
        str | None,
        typer.Option(help="Table to validate with; default: a fraction held out."),
    ] = None
    column: Column = None
    skip_bad: SkipBad = False
    encoding: Annotated[str, typer.Option(help="Encoding of the input files.")] = "utf-8"
    language: Annotated[str, typer.Option(help="Language of the corpus; default: the model's.")] = (
        ""
    )
    layout: Annotated[
        Literal["auto", "line", "paragraph", "file"],
        typer.Option(help="Document unit in text files; auto: detected."),
    ] = "auto"

    def text(self) -> dict[str, Any]:
        """How a corpus is read, if not as for the model."""
        return {"layout": self.layout} | ({"language": self.language} if self.language else {})


@training.app.command(
    epilog=examples(
        "sememe train sentence runs/bert --out runs/sentences --budget 5m",
        "sememe train sentence runs/bert --corpus my-texts/ --objective simcse -o runs/sentences",
        "sememe train sentence runs/bert --pairs questions.tsv --hard-negatives 1 -o runs/search",
        "sememe train sentence runs/bert --pairs snli.tsv --dev sts.tsv -o runs/nli",
        "sememe train sentence all-MiniLM-L6-v2 --triplets mine.csv --query-prompt 'query: ' "
        "-o runs/mine",
    )
)
@expand(asked=None, config="Training")
def sentence(
    *,
    model: Model,
    asked: SentenceOptions,
    config: SentenceConfig,
) -> None:
    """Train a sentence encoder on any model that can be fine-tuned.

    From a corpus it learns from titles and bodies, neighboring sentences,
    dropout (SimCSE) or deleted words (TSDAE); from a table, from what its
    columns hold.

    In Python:
    sememe.SentenceModel("runs/bert", budget="5m").fit("text.txt").
    """
    from sememe.models.sentence.model import SentenceModel

    out = needed(asked.out)
    own = SentenceModel(model, **config.to_dict())
    with training.fitted_where(asked) as fit:
        fit(
            own, paths_of(asked.corpus), pairs=paths_of(asked.pairs),
            triplets=paths_of(asked.triplets), dev=asked.dev,
            columns=columns_of(asked.column) or None, skip_bad=asked.skip_bad,
            encoding=asked.encoding, out=out, resume=asked.resume, overwrite=asked.overwrite,
            progress=Reporter(quiet=asked.quiet), **asked.text(),
        )  # fmt: skip
    metrics = own.history.last()
    if asked.json:
        print_json({"path": str(out), "objective": own.config.objective, "metrics": metrics})
        return
    remark(f"Saved a sentence encoder of {own.dim} dimensions to {out}", asked.quiet)
    if (found := metrics.get("validation_spearman")) is not None:
        echo(translate(f"dev pairs: Spearman {100 * found:.1f}"))
    elif (found := metrics.get("validation_ranking_accuracy")) is not None:
        echo(translate(f"held-out examples: {found:.1%} of the right texts are the nearest"))


@app.command(
    epilog=examples(
        "sememe distill runs/sentences --out runs/static",
        "sememe distill all-MiniLM-L6-v2 my-texts/ --words 20000 --out runs/static",
        "sememe distill bge-small-zh news.jsonl --language zh --dim 128 --out runs/static-zh",
    )
)
@expand(config="Distillation", text="Text")
def distill(
    context: typer.Context,
    model: Model,
    corpus: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="CORPUS",
            help="Text files, folders or patterns to train on; default: no training.",
            show_default=False,
        ),
    ] = None,
    out: training.Out = None,
    overwrite: training.Overwrite = False,
    json: Json = False,
    quiet: Quiet = False,
    *,
    config: DistillConfig,
    text: TextSettings,
) -> None:
    """Distill a sentence encoder into token vectors that embed much faster.

    Each token gets the vector that the encoder gives for it alone. With a
    corpus, the vectors are then trained to agree with the encoder on its
    sentences. sentence-transformers and model2vec open the result.

    In Python: sememe.distill("runs/sentences", "text.txt").
    """
    from sememe import distill as distilled

    out = needed(out)
    # The teacher says what its words are, unless the user does; the files are those of this corpus.
    told = {
        field.name: getattr(text, field.name)
        for field in fields(text)
        if field.name in _OF_FILES or is_typed(context, field.name)
    }
    student = distilled(
        model, paths_of(corpus), out=out, overwrite=overwrite, config=config,
        progress=Reporter(quiet=quiet), **told,
    )  # fmt: skip
    if json:
        print_json({"path": str(out), "dim": student.dim, **student.distilled})
        return
    remark(f"Saved a sentence encoder of {student.dim} dimensions to {out}", quiet)
