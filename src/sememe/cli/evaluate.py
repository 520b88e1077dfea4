"""Scores of models: question files for word vectors, perplexity of a text, meanings of a word;
and two fine-tuned models on the same rows.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from sememe.cli.options import (
    Column,
    Device,
    Json,
    LanguageModelPath,
    Limit,
    Model,
    Quiet,
    SkipBad,
    paths_of,
    reading_of,
)
from sememe.cli.program import (
    app as root,
    console,
    echo,
    examples,
    group,
    print_json,
    print_table,
    remark,
)
from sememe.errors import OptionError
from sememe.localization import say, translate, translations
from sememe.progress import Reporter, shown

if TYPE_CHECKING:
    from rich.table import Table

    from sememe.evaluation import WordsResult

app = group("evaluate", "Evaluate models on word sets, labelled data and benchmarks.")


@app.command(
    epilog=examples(
        "sememe evaluate words runs/ladder/models/skipgram",
        "sememe evaluate words runs/mine --data questions-words.txt --data wordsim353.tsv",
        "sememe evaluate words glove.txt --data word-sets/ --json",
    )
)
def words(
    model: Model,
    data: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATH",
            help="Question file or folder; repeatable; default: the built-in sets.",
        ),
    ] = None,
    restrict_vocab: Annotated[
        int,
        typer.Option(
            min=0,
            max=2**40,
            help="Restrict analogy answers to the N most frequent words; 0: all.",
        ),
    ] = 300_000,
    method: Annotated[
        Literal["add", "mul"], typer.Option(help="Analogy method: 3CosAdd or 3CosMul.")
    ] = "add",
    seed: Annotated[int, typer.Option(min=0, help="Random seed of the bootstrap.")] = 1,
    limit: Limit = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Evaluate word vectors on similarity, analogies and more.

    The kind of each file is detected from its content: similarity,
    analogies, odd ones out, groups or antonyms. 95 % intervals come from a
    bootstrap. Coverage is the fraction of questions whose words are all
    known.
    """
    from sememe.evaluation import evaluate_words
    from sememe.models.registry import load_words

    chosen: list[str | None] = [*data] if data else [None]
    vectors, reporter = load_words(model, limit), Reporter(quiet=quiet)
    results = [
        evaluate_words(
            vectors,
            path,
            restrict_vocab=restrict_vocab or None,
            method=method,
            seed=seed,
            reporter=reporter,
        )
        for path in chosen
    ]
    result = replace(
        results[0],
        scores=[score for one in results for score in one.scores],
        skipped=[name for one in results for name in one.skipped],
    )
    if json:
        print_json(result.to_dict())
    elif console().is_terminal:
        console().print(score_table(result))
    else:
        echo(str(result))
    unasked = [score.name for score in result.scores if not score.num_asked]
    if unasked and not data:
        reporter.note(
            f"The model knows the words of no question in the built-in {', '.join(unasked)}; give "
            "questions of your own with --data."
        )


def score_table(result: WordsResult, *, has_sections: bool = True) -> Table:
    """Lay the scores out for a terminal of 80 columns, on which every metric stays whole."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        caption="\n".join(map(translate, result.caption.splitlines())),
        caption_justify="left",
    )
    table.add_column(say("questions"))
    for heading in ("score", "95 % interval", "asked", "coverage"):
        table.add_column(say(heading), justify="right", no_wrap=True)
    for name, measure, *metrics in result.rows():
        is_section = not measure
        if not is_section or has_sections:
            label = translate(name) if name in ("  semantic", "  syntactic") else name
            if not is_section:
                label = say("{file}: {measure}", file=name, measure=translate(measure))
            table.add_row(Text(shown(label)), *metrics, style="dim" if is_section else "")
    return table


@app.command(
    epilog=examples(
        "sememe evaluate perplexity runs/ngram held-out.txt",
        "sememe evaluate perplexity model.arpa held-out.txt --json",
        "sememe evaluate perplexity runs/ulmfit held-out.txt",
        "sememe evaluate perplexity gpt2 held-out.txt",
    ),
)
def perplexity(
    model: LanguageModelPath,
    corpus: Annotated[
        list[str],
        typer.Argument(
            metavar="TEXT", help="Text files, folders or patterns; - for standard input."
        ),
    ],
    device: Device = "auto",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Measure the perplexity of a language model; lower is better.

    Sentence ends count as words, unknown words as <unk>. Only models with
    the same vocabulary can be compared. For ELMo it is the forward
    perplexity. GPT also predicts punctuation and capitals; its perplexity
    is per word.
    """
    from sememe.evaluation.perplexity import evaluate_perplexity

    found = evaluate_perplexity(model, corpus, device=device, progress=Reporter(quiet=quiet))
    metrics = {
        "perplexity": found.perplexity,
        "known_perplexity": found.known_perplexity,
        "words": found.num_words,
        "unknown_words": found.num_unknown,
        "log10": found.log10,
    }
    if json:
        print_json(metrics)
        return
    rows = [(name.replace("_", " "), value) for name, value in metrics.items()]
    print_table(("", ""), rows, names=translations(name for name, _ in rows))


@app.command(
    epilog=examples(
        "sememe evaluate senses runs/bert",
        "sememe evaluate senses runs/word2vec runs/elmo runs/bert --data english --layers last",
        "sememe evaluate senses bert-base-chinese --data chinese --json",
        "sememe evaluate senses runs/bert --data my-words.tsv",
    ),
)
def senses(
    models: Annotated[
        list[str],
        typer.Argument(
            metavar="MODEL",
            help="BERT, GPT or ELMo folders, or word vectors in any format.",
        ),
    ],
    data: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SET",
            help="english, chinese, python, docstrings or a file; repeatable; default: all four.",
        ),
    ] = None,
    layers: Annotated[
        list[str] | None,
        typer.Option(
            help="Layer: a number, last, sum-last-four …; repeatable; default: each layer."
        ),
    ] = None,
    language: Annotated[
        str, typer.Option(help="Word segmentation; default: the model's, otherwise detected.")
    ] = "",
    seed: Annotated[int, typer.Option(min=0, help="Random seed of the bootstrap.")] = 1,
    limit: Limit = None,
    device: Device = "auto",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Test whether a model separates word senses, layer by layer.

    For each sentence: does the nearest other sentence, by the cosine of
    the ambiguous word's vectors, use the word in the same sense? Static
    word vectors are at chance level. The mean of the other words in the
    sentence is shown as a baseline.
    """
    from sememe.evaluation.senses import evaluate_senses, sense_tables

    results = [
        evaluate_senses(
            model, data, layers=layers or "all", language=language, limit=limit, device=device,
            seed=seed, progress=Reporter(quiet=quiet),
        )
        for model in models
    ]  # fmt: skip
    if json:
        print_json({"models": [result.to_dict() for result in results]})
    else:
        echo("\n\n".join(map(str, sense_tables(results))))


@root.command(
    epilog=examples(
        "sememe compare runs/small runs/large --data test.tsv",
        "sememe compare runs/small runs/large --data eng.testb --json",
        "sememe compare runs/a/CoLA/dev.seed-1.jsonl runs/b/CoLA/dev.seed-1.jsonl "
        "--metric matthews",
    ),
)
def compare(
    first: Annotated[
        Path,
        typer.Argument(
            metavar="A",
            help="Fine-tuned model folder, or predictions (.jsonl) saved by evaluate --out.",
        ),
    ],
    second: Annotated[
        Path, typer.Argument(metavar="B", help="Second model folder or predictions.")
    ],
    data: Annotated[
        list[str] | None, typer.Option(help="Labelled rows for both models; repeatable.")
    ] = None,
    train: Annotated[
        list[str] | None,
        typer.Option(help="Training rows of both, for the scores of baselines; repeatable."),
    ] = None,
    metric: Annotated[
        str,
        typer.Option(
            help="Metric, such as accuracy, macro_f1 or squad_f1; default: the task's own.",
            show_default=False,
        ),
    ] = "",
    test: Annotated[
        Literal["bootstrap", "mcnemar"], typer.Option(help="Paired significance test.")
    ] = "bootstrap",
    positive: Annotated[str, typer.Option(help="Positive label for binary_f1.")] = "1",
    resamples: Annotated[
        int, typer.Option(min=1, max=10**6, help="Number of bootstrap resamples.")
    ] = 10_000,
    seed: Annotated[int, typer.Option(min=0, help="Random seed of the bootstrap.")] = 1,
    column: Column = None,
    skip_bad: SkipBad = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Test whether the difference between two models is significant.

    Uses a paired bootstrap over the rows, and McNemar's test where each
    row is either right or wrong.
    """
    from sememe.evaluation.comparing import compare_files, compare_tasks

    options = {"positive": positive, "test": test, "num_resamples": resamples, "seed": seed}
    if first.is_file() and second.is_file():
        if data or train:
            raise OptionError("Files of predictions know what is right: leave --data out.")
        found = compare_files(first, second, metric=metric, **options)
    elif not data:
        raise OptionError("--data must name the labelled rows that both models answer.")
    else:
        reading = reading_of(column, skip_bad)
        found = compare_tasks(
            first, second, paths_of(data), train=paths_of(train), metric=metric, reading=reading,
            on_note=Reporter(quiet=quiet).note, **options,
        )  # fmt: skip
    if json:
        print_json(found.to_dict())
        return
    low, high = found.bootstrap.interval
    echo(translate(f"{found.metric.replace('_', ' ')} on {found.num_rows:,} rows"))
    echo(str(found.table()))
    if not found.baselines:
        remark("No baselines: --train names the rows that they learn from.", quiet)
    lines = [
        f"  difference {100 * found.bootstrap.difference:+.2f}, 95 % interval "
        f"{100 * low:+.2f} to {100 * high:+.2f} (paired bootstrap, "
        f"{found.bootstrap.num_resamples:,} resamples, p = {found.bootstrap.p_value:.4f})"
    ]
    if found.mcnemar is not None:
        lines.append(
            f"  right alone: {found.first} {found.mcnemar.num_only_first:,}, {found.second} "
            f"{found.mcnemar.num_only_second:,} (McNemar, p = {found.mcnemar.p_value:.4f})"
        )
    echo("\n".join(map(translate, [*lines, found.verdict])))
