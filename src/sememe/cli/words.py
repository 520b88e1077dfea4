"""Questions to word vectors: neighbors, analogy, similarity, odd."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from sememe.cli.options import Json, Limit, Model, RestrictVocab, flag
from sememe.cli.screen import examples, print_json, print_table

if TYPE_CHECKING:
    from sememe.vectors import Neighbor

Num = Annotated[int, typer.Option("--num", "-n", help="How many words to show.")]


def neighbors(
    model: Model,
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="WORD",
            help="Words, each asked by itself, or a sum such as king - man + woman.",
        ),
    ] = None,
    positive: Annotated[
        list[str] | None,
        typer.Option(metavar="WORD", help="A word to add up in one question; may be repeated."),
    ] = None,
    negative: Annotated[
        list[str] | None, typer.Option(metavar="WORD", help="A word to subtract; may be repeated.")
    ] = None,
    num: Num = 10,
    restrict_vocab: RestrictVocab = None,
    limit: Limit = None,
    include_inputs: Annotated[
        bool, flag("--include-inputs", help="Let the words asked be answers too.")
    ] = False,
    approximate: Annotated[
        bool, flag("--approximate", help="Ask the index of the extra `index`.")
    ] = False,
    json: Json = False,
) -> None:
    """Show the words nearest to each word, or to a sum of words."""
    from sememe.errors import OptionError
    from sememe.vectors import load
    from sememe.vectors.sums import looks_like_sum, parse_sum

    words = words or []
    if not (words or positive or negative):
        raise OptionError("Give at least one word whose neighbors you want to see.")
    if looks_like_sum(" ".join(words)):
        terms = parse_sum(" ".join(words))
        words = []
        positive = [*(positive or []), *(word for sign, word in terms if sign > 0)]
        negative = [*(negative or []), *(word for sign, word in terms if sign < 0)]
    vectors = load(model, limit)
    options: dict[str, Any] = {
        "restrict_vocab": restrict_vocab,
        "include_inputs": include_inputs,
        "approximate": approximate,
    }
    if positive or negative:
        added = [*words, *(positive or [])]
        found = vectors.neighbors(positive=added, negative=negative, num=num, **options)
        sign = " - ".join(["", *(negative or [])])
        _show({" + ".join(added) + sign: found}, json)
        return
    many = vectors.neighbors_of_many(words, num, **options)
    _show(dict(zip(words, many, strict=True)), json)


def _show(found: dict[str, list[Neighbor]], as_json: bool) -> None:
    if as_json:
        print_json(
            {query: [answer._asdict() for answer in answers] for query, answers in found.items()}
        )
        return
    for index, (query, answers) in enumerate(found.items()):
        if len(found) > 1:
            typer.echo(("\n" if index else "") + query)
        print_table(("word", "cosine"), answers, title="" if len(found) > 1 else query)


def analogy(
    model: Model,
    a: Annotated[str, typer.Argument(metavar="A", help="A is to …")],
    b: Annotated[str, typer.Argument(metavar="B", help="… B as …")],
    c: Annotated[str, typer.Argument(metavar="C", help="… C is to?")],
    num: Num = 5,
    method: Annotated[
        Literal["add", "mul"], typer.Option(help="3CosAdd (a sum) or 3CosMul (a product).")
    ] = "add",
    restrict_vocab: RestrictVocab = None,
    limit: Limit = None,
    include_inputs: Annotated[
        bool, flag("--include-inputs", help="Let A, B and C be answers too.")
    ] = False,
    json: Json = False,
) -> None:
    """Answer "A is to B as C is to …"."""
    from sememe.vectors import load

    found = load(model, limit).analogy(
        a, b, c, num, method=method, restrict_vocab=restrict_vocab, include_inputs=include_inputs
    )
    if json:
        answers = [answer._asdict() for answer in found]
        print_json({"a": a, "b": b, "c": c, "method": method, "answers": answers})
    else:
        print_table(("word", "score"), found, title=f"{a} is to {b} as {c} is to …")


def similarity(
    model: Model,
    a: Annotated[str, typer.Argument(metavar="A", help="One word.")],
    b: Annotated[str, typer.Argument(metavar="B", help="The other word.")],
    limit: Limit = None,
    json: Json = False,
) -> None:
    """Give the cosine of two words: 1 for the same direction, 0 for unrelated ones."""
    from sememe.vectors import load

    score = load(model, limit).similarity(a, b)
    if json:
        print_json({"a": a, "b": b, "similarity": score})
    else:
        typer.echo(f"{score:.4f}")


def odd(
    model: Model,
    words: Annotated[list[str], typer.Argument(metavar="WORD", help="Three words or more.")],
    limit: Limit = None,
    json: Json = False,
) -> None:
    """Name the word that does not belong to the others."""
    from sememe.vectors import load

    found = load(model, limit).odd_one_out(words)
    if json:
        print_json({"words": words, "odd": found})
    else:
        typer.echo(found)


def register(app: typer.Typer) -> None:
    """Add these commands to the program."""
    app.command(
        epilog=examples(
            "sememe neighbors runs/ladder/models/skipgram array tensor",
            "sememe neighbors runs/ladder/models/skipgram matrix --num 3 --json",
            "sememe neighbors glove.txt king - man + woman",
            "sememe neighbors glove.txt --positive king --positive woman --negative man",
        )
    )(neighbors)
    app.command(
        epilog=examples(
            "sememe analogy runs/ladder/models/skipgram numpy array torch",
            "sememe analogy glove.txt man king woman --method mul",
        )
    )(analogy)
    app.command(epilog=examples("sememe similarity runs/ladder/models/skipgram row column"))(
        similarity
    )
    app.command(epilog=examples("sememe odd runs/ladder/models/skipgram red green blue matrix"))(
        odd
    )
