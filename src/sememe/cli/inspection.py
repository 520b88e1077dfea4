"""What the views of `explore` show, on the terminal: `inspect`.

Every command prints the result of the Python call that the server of the page makes, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

import sememe
from sememe.cli.options import Device, Json, Limit, Model, Quiet, expand, named
from sememe.cli.program import echo, examples, group, print_json, print_table, remark
from sememe.errors import OptionError
from sememe.localization import say
from sememe.machine import imported
from sememe.models.gpt.config import Sampling

app = group("inspect", "Print what the views of explore show.")

Network = Annotated[Path, typer.Argument(metavar="MODEL", help="Model folder.")]
Seed = Annotated[int, typer.Option(min=0, max=2**31, help="Random seed.")]
Out = Annotated[
    Path | None,
    typer.Option("--out", "-o", help="Output table: .csv, .tsv, .jsonl or .parquet."),
]


def _table_of(path: Path | None) -> Path | None:
    """The table to write; another ending is refused before anything is computed."""
    from sememe.storage.tables import table_format

    if path is not None:
        table_format(path)
    return path


def _write(rows: Iterable[Mapping[str, Any]], path: Path, quiet: bool) -> None:
    from sememe.storage.tables import write_table

    with write_table(path) as table:
        table.add([dict(row) for row in rows])
    remark(f"Saved {path}", quiet)


@app.command(
    epilog=examples(
        "sememe inspect context runs/bert bank --text my-texts/ --out uses.csv",
        'sememe inspect context runs/elmo bank --sentence "The bank of the river is wet."',
        "sememe inspect context runs/bert spring --set english --layer 0 --json",
    )
)
def context(
    model: Network,
    word: Annotated[str, typer.Argument(metavar="WORD", help="Word whose uses are compared.")],
    text: Annotated[
        Path | None, typer.Option(help="Text to search; default: built-in corpus.")
    ] = None,
    set: Annotated[
        str, typer.Option(help="Set of sentences with known senses: english or chinese.")
    ] = "",
    sentence: Annotated[
        str, typer.Option(help="Sentence of your own: its nearest uses come first.")
    ] = "",
    layer: Annotated[
        int | None, typer.Option(min=0, max=10**4, help="Layer; 0: input vectors; default: last.")
    ] = None,
    num: Annotated[int, typer.Option("--num", "-n", min=2, max=500, help="Number of uses.")] = 150,
    clusters: Annotated[
        int, typer.Option(min=0, max=6, help="Number of clusters; 0: those that separate best.")
    ] = 0,
    out: Out = None,
    device: Device = "auto",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compare the uses of one word: points, clusters, nearest uses.

    Points are on the first two principal components of a layer. The table
    of --out has one row per use, in the order of the text.
    """
    from sememe.explore.word_contexts import word_contexts

    path = _table_of(out)
    opened = sememe.load(model, device=device, able="embed_words")
    found = word_contexts(
        opened, word, text, set=set, num=num, clusters=clusters, sentence=sentence
    )
    at = len(found.places_LN2) - 1 if layer is None else layer
    rows = found.rows(at)
    if path is not None:
        _write(rows, path, quiet)
    if json:
        told = {"layer": at, "mean_cosine": found.mean_cosines[at], "clusters": found.clusters}
        print_json(told | {"uses": rows})
    elif path is None:
        if sentence:
            rows.sort(key=lambda row: -row["cosine"])
        columns = [*(["cosine"] if sentence else []), "cluster", "x", "y", "sentence"]
        print_table(columns, [[row[name] for name in columns] for row in rows])
        if not quiet:
            cosine = f"{found.mean_cosines[at]:.4f}"
            echo(say("Layer {layer}: mean cosine of two uses {cosine}", layer=at, cosine=cosine))


@app.command(
    epilog=examples(
        "sememe inspect changes runs/word2vec runs/glove",
        "sememe inspect changes runs/2020 runs/2025 --word virus --num 5",
    )
)
def changes(
    model: Model,
    other: Annotated[
        str, typer.Argument(metavar="OTHER", help="Model folder or vector file to compare with.")
    ],
    word: Annotated[
        list[str] | None, typer.Option(help="Show this word; repeatable; default: most changed.")
    ] = None,
    words: Annotated[
        int, typer.Option(min=10, max=20_000, help="Most frequent words of both to compare.")
    ] = 5_000,
    neighbors: Annotated[
        int, typer.Option(min=1, max=100, help="Nearest words of each word.")
    ] = 10,
    num: Annotated[int, typer.Option("--num", "-n", min=1, max=500, help="Words to show.")] = 20,
    limit: Limit = None,
    json: Json = False,
) -> None:
    """Show which words have other neighbors in another model.

    Neighbors are looked for among the words that both models have.
    """
    from sememe.models.registry import load_words
    from sememe.vectors.comparison import Comparison

    comparison = Comparison(load_words(model, limit), load_words(other, limit), words)
    if word:
        found = [comparison.change(one, neighbors) for one in word]
    else:
        found = comparison.most_changed(num, neighbors)
    mean = float(comparison.overlaps(neighbors).mean())
    if json:
        told = [one._asdict() | {"lost": one.lost, "gained": one.gained} for one in found]
        print_json({"num_words": len(comparison.words), "mean": mean, "changes": told})
        return
    rows = [(one.word, one.overlap, ", ".join(one.lost), ", ".join(one.gained)) for one in found]
    print_table(
        ("word", "in common", model, other), rows, always_headed=True, labels=(model, other)
    )
    echo(say("In common on average: {share}", share=f"{mean:.1%}"))


@app.command(
    epilog=examples(
        'sememe inspect step "the quick brown fox jumps over the lazy dog"',
        'sememe inspect step "the quick brown fox jumps over the lazy dog" --step 70 --dim 4',
        "sememe inspect step 国王喜欢音乐 --json",
    )
)
def step(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="Sentence to train on.")],
    step: Annotated[int, typer.Option(min=0, max=4_999, help="Number of the step, from 0.")] = 0,
    dim: Annotated[int, typer.Option(min=1, max=64, help="Dimensions of the vectors.")] = 8,
    window: Annotated[
        int, typer.Option(min=1, max=10, help="Words on each side of the centre.")
    ] = 2,
    negatives: Annotated[int, typer.Option(min=1, max=20, help="Noise words per pair.")] = 3,
    learning_rate: Annotated[
        float, typer.Option(min=0.0001, max=5, help="Learning rate, the same at every step.")
    ] = 0.2,
    seed: Seed = 1,
    json: Json = False,
) -> None:
    """Train word2vec on one sentence and explain one step.

    A pair of words, its dot products and sigmoids, the loss, and the
    vectors before and after the update.
    """
    found = imported("sememe.models.word2vec.steps", "training_step")(
        text, step, dim=dim, window=window,
        negatives=negatives, learning_rate=learning_rate, seed=seed,
    )  # fmt: skip
    if json:
        told = asdict(found)
        del told["input_VD"], told["output_VD"]
        print_json(told | {"pair": found.pair._asdict()})
        return
    center, target = (found.sentence[place] for place in found.pair)
    echo(say("{center} → {target}, pair {number} of {num}", center=center, target=target,
             number=step % found.num_pairs + 1, num=found.num_pairs))  # fmt: skip
    columns = ("word", "label", "dot product", "sigmoid", "error × rate")
    rows = [(one.name, one.label, one.score, one.probability, one.step) for one in found.decisions]
    print_table(columns, rows, always_headed=True)
    echo(say("loss {loss}", loss=f"{found.loss:.4f}"))
    vectors = [("v", found.input), *(("u", one) for one in found.outputs)]
    print_table(("vector", "before", "after"), [
        (f"{letter}({one.name})", *(" ".join(f"{value:.4f}" for value in values)
                                    for values in (one.before, one.after)))
        for letter, one in vectors
    ], always_headed=True)  # fmt: skip


@app.command(
    epilog=examples(
        "sememe inspect film my-texts/ --out film.csv",
        "sememe inspect film --epochs 5 --num-words 50 --out film.csv",
    )
)
def film(
    corpus: Annotated[
        Path | None,
        typer.Argument(metavar="CORPUS", help="Text file or folder; default: built-in corpus."),
    ] = None,
    out: Out = None,
    num_words: Annotated[
        int, typer.Option(min=3, max=2_000, help="Frequent words to follow.")
    ] = 200,
    num_snapshots: Annotated[int, typer.Option(min=2, max=100, help="Moments to keep.")] = 30,
    epochs: Annotated[int, typer.Option(min=1, max=100, help="Passes over the text.")] = 20,
    dim: Annotated[int, typer.Option(min=2, max=300, help="Dimensions of the vectors.")] = 50,
    window: Annotated[int, typer.Option(min=1, max=20, help="Words on each side.")] = 5,
    negatives: Annotated[int, typer.Option(min=1, max=20, help="Noise words per pair.")] = 5,
    seed: Seed = 1,
    quiet: Quiet = False,
) -> None:
    """Train word2vec for a short time and write where its words move.

    All snapshots are on the principal components of the last one. Only
    the first two million characters of the corpus are read.
    """
    if out is None:
        raise OptionError("--out must name a table, such as film.csv.")
    _table_of(out)
    found = imported("sememe.models.word2vec.snapshots", "train_film")(
        corpus, num_words=num_words, num_snapshots=num_snapshots,
        epochs=epochs, dim=dim, window=window, negatives=negatives, seed=seed,
    )  # fmt: skip
    rows = (
        {"snapshot": number, "words of text": end, "loss": loss, "word": word, "count": count,
         "x": float(x), "y": float(y)}
        for number, (end, loss) in enumerate(zip(found.num_words_S, found.losses_S, strict=True))
        for word, count, (x, y) in zip(
            found.words, found.counts, found.positions_SN2[number], strict=True
        )
    )  # fmt: skip
    _write(rows, out, quiet)


@app.command(
    epilog=examples(
        'sememe inspect masks runs/bert "The quick brown fox jumps over the lazy dog."',
        "sememe inspect masks runs/bert 国王喜欢音乐 --rate 0.4 --unit word --draw 7",
    )
)
def masks(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="BERT folder.")],
    text: Annotated[str, typer.Argument(metavar="TEXT", help="Text to mask.")],
    draw: Annotated[
        int, typer.Option(min=1, max=2_000, help="Number of the draw to show, from 1.")
    ] = 1,
    num: Annotated[int, typer.Option("--num", "-n", min=1, max=2_000, help="Draws.")] = 1_000,
    rate: Annotated[
        float, typer.Option(min=0.001, max=1, help="Fraction of tokens to predict.")
    ] = 0.15,
    unit: Annotated[
        Literal["token", "word"], typer.Option(help="Masking unit: single tokens or whole words.")
    ] = "token",
    seed: Seed = 1,
    json: Json = False,
) -> None:
    """Mask a text many times as BERT's training does.

    One draw is shown, and how many of the tokens to predict became
    [MASK], became a random token, or stayed, in all draws.
    """
    opened = sememe.load(model, able="embed_words")
    draw_masks = imported("sememe.models.bert.mask_draws", "draw_masks")
    if draw > num:
        raise OptionError(f"--draw is at most --num ({num:,}), not {draw:,}.")
    found = draw_masks(opened, text, num=num, seed=seed, rate=rate, unit=unit)
    seen, counts, shares = found.seen(draw - 1), found.counts(), found.shares()
    if json:
        often = (found.fates_NT > 0).mean(axis=0).tolist()
        told = {"tokens": found.tokens, "seen": seen, "counts": counts, "shares": shares}
        print_json(told | {"predicted": often})
        return
    echo(" ".join(seen))
    print_table(
        ("fate", "tokens", "share"), [(name, counts[name], shares[name]) for name in counts]
    )


@app.command(
    epilog=examples(
        'sememe inspect generation runs/gpt "Once upon a" --max-tokens 10',
        'sememe inspect generation runs/gpt "Once upon a" --choose 3=417 --count 5 --json',
    )
)
@expand(sampling="Choice of tokens")
def generation(
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL", help="GPT folder (sememe or Hugging Face), or n-gram model."
        ),
    ],
    prompt: Annotated[
        str, typer.Argument(metavar="PROMPT", help="Start of the text; default: empty.")
    ] = "",
    choose: Annotated[
        list[str] | None,
        typer.Option(metavar="NUMBER=ID", help="Token chosen by hand, from 1; repeatable."),
    ] = None,
    count: Annotated[
        int, typer.Option("--count", "-k", min=1, max=50, help="Alternatives of each token.")
    ] = 10,
    device: Device = "auto",
    json: Json = False,
    *,
    sampling: Sampling,
) -> None:
    """Generate a text and show the alternatives of each token.

    A token chosen by hand must be among the alternatives; the rest of the
    text follows from it.
    """
    from sememe.explore.prediction_results import steered_steps

    opened = sememe.load(model, device=device, able="generate")
    steps = list(steered_steps(opened, prompt, _choices(choose), count=count, **asdict(sampling)))
    if json:
        told = [
            {"chosen": one.chosen._asdict(), "tokens": [own._asdict() for own in one.tokens]}
            for one in steps
        ]
        print_json({"prompt": prompt, "steps": told})
        return
    rows = [
        (number, "→" if own.id == one.chosen.id else "", own.id, own.text, own.probability)
        for number, one in enumerate(steps, start=1)
        for own in dict.fromkeys([*one.tokens, one.chosen])
    ]
    print_table(("token", "", "id", "text", "probability"), rows, always_headed=True)


def _choices(given: list[str] | None) -> dict[int, int]:
    """The tokens chosen by hand, by step from 0."""
    pairs = list(named(given, "--choose", "3=417"))
    if bad := [f"{number}={own}" for number, own in pairs if not (number + own).isdecimal()]:
        raise OptionError(f"--choose takes two numbers, such as 3=417, not {bad[0]!r}.")
    return {int(number) - 1: int(own) for number, own in pairs}


@app.command(
    epilog=examples(
        'sememe inspect prediction runs/reviews "The film is a joy." --importance',
        'sememe inspect prediction runs/answer "The tower was built in 1889." '
        '--question "How old is the tower?"',
        'sememe inspect prediction runs/pairs "A man sleeps." --second "Nobody sleeps." --json',
    )
)
def prediction(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Fine-tuned model folder.")],
    text: Annotated[str, typer.Argument(metavar="TEXT", help="Text, or text with the answer.")],
    second: Annotated[str, typer.Option(help="Second text of a pair.")] = "",
    question: Annotated[str, typer.Option(help="Question that the text answers.")] = "",
    choice: Annotated[list[str] | None, typer.Option(help="Possible answer; repeatable.")] = None,
    importance: Annotated[
        bool,
        typer.Option("--importance", metavar="", help="Hide each word: how far does it drop?"),
    ] = False,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Predict one row with all its scores, and show which words matter."""
    from sememe.explore.prediction_results import TaskRow, prediction_of, row_of
    from sememe.tasks.importance import word_importance

    opened = sememe.load(model, device=device, able="predict")
    given = TaskRow(text, second, question, choice or ())
    found = prediction_of(opened, given)
    why = word_importance(opened, row_of(opened, given)) if importance else None
    if json:
        told = {name: found[name] for name in ("prediction", "items", "spans")}
        if why is not None:
            told["importance"] = why._asdict() | {"words": [own._asdict() for own in why.words]}
        print_json(told)
        return
    if found["items"]:
        print_table(("label", "score"), [own[:2] for own in found["items"]])
    if found["spans"]:
        rows = [(own["text"], own["type"], own["probability"]) for own in found["spans"]]
        print_table(("text", "type", "probability"), rows)
    if why is not None:
        print_table(("word", "drop"), [(own.word, own.drop) for own in why.words])
