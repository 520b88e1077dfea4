"""Questions to word vectors: neighbors, analogy, similarity, odd."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from sememe.cli.options import Json, Limit, Model, RestrictVocab, flag
from sememe.cli.program import app, echo, examples, print_json, print_result, print_table
from sememe.errors import OptionError
from sememe.localization import say

if TYPE_CHECKING:
    from sememe.vectors import Neighbor

Num = Annotated[int, typer.Option("--num", "-n", min=1, max=10**9, help="Number of words to show.")]


@app.command(
    epilog=examples(
        "sememe neighbors runs/ladder/models/skipgram array tensor",
        "sememe neighbors runs/ladder/models/skipgram matrix --num 3 --json",
        "sememe neighbors glove.txt king - man + woman",
        "sememe neighbors glove.txt --positive king --positive woman --negative man",
    )
)
def neighbors(
    model: Model,
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="WORD",
            help="Words, or one sum such as king - man + woman.",
        ),
    ] = None,
    positive: Annotated[
        list[str] | None,
        typer.Option(metavar="WORD", help="Word to add to the sum; repeatable."),
    ] = None,
    negative: Annotated[
        list[str] | None,
        typer.Option(metavar="WORD", help="Word to subtract from the sum; repeatable."),
    ] = None,
    num: Num = 10,
    restrict_vocab: RestrictVocab = None,
    limit: Limit = None,
    include_inputs: Annotated[
        bool, flag("--include-inputs", help="Allow the given words as answers.")
    ] = False,
    approximate: Annotated[
        bool, flag("--approximate", help="Approximate search with an index (pip extra `index`).")
    ] = False,
    json: Json = False,
) -> None:
    """Show the nearest words to a word, or to a sum of words."""
    from sememe.models.registry import load_words
    from sememe.vectors.search import looks_like_sum, parse_sum

    words = words or []
    if not (words or positive or negative):
        raise OptionError("Give at least one word whose neighbors you want to see.")
    if looks_like_sum(" ".join(words)):
        terms = parse_sum(" ".join(words))
        words = []
        positive = [*(positive or []), *(word for sign, word in terms if sign > 0)]
        negative = [*(negative or []), *(word for sign, word in terms if sign < 0)]
    vectors = load_words(model, limit)
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
            echo(("\n" if index else "") + query)
        print_table(("word", "cosine"), answers, title="" if len(found) > 1 else query)


@app.command(
    epilog=examples(
        "sememe analogy runs/ladder/models/skipgram numpy array torch",
        "sememe analogy glove.txt man king woman --method mul",
    )
)
def analogy(
    model: Model,
    a: Annotated[str, typer.Argument(metavar="A", help="First word of the known pair.")],
    b: Annotated[str, typer.Argument(metavar="B", help="Second word of the known pair.")],
    c: Annotated[str, typer.Argument(metavar="C", help="First word of the incomplete pair.")],
    num: Num = 5,
    method: Annotated[
        Literal["add", "mul"], typer.Option(help="3CosAdd (a sum) or 3CosMul (a product).")
    ] = "add",
    restrict_vocab: RestrictVocab = None,
    limit: Limit = None,
    include_inputs: Annotated[
        bool, flag("--include-inputs", help="Allow A, B and C as answers.")
    ] = False,
    json: Json = False,
) -> None:
    """Solve "A is to B as C is to …"."""
    from sememe.models.registry import load_words

    found = load_words(model, limit).analogy(
        a, b, c, num, method=method, restrict_vocab=restrict_vocab, include_inputs=include_inputs
    )
    if json:
        answers = [answer._asdict() for answer in found]
        print_json({"a": a, "b": b, "c": c, "method": method, "answers": answers})
    else:
        title = say("{a} is to {b} as {c} is to …", a=a, b=b, c=c)
        print_table(("word", "score"), found, title=title)


@app.command(
    epilog=examples(
        "sememe similarity runs/ladder/models/skipgram row column",
        "sememe similarity runs/ladder/models/skipgram row column array tensor --matrix",
    )
)
def similarity(
    model: Model,
    words: Annotated[
        list[str], typer.Argument(metavar="WORD", help="Two words; with --matrix, two or more.")
    ],
    matrix: Annotated[
        bool, flag("--matrix", help="Print the similarity of every pair as a matrix.")
    ] = False,
    limit: Limit = None,
    json: Json = False,
) -> None:
    """Print the cosine similarity of two words."""
    from sememe.models.registry import load_words

    if len(words) < 2 or (len(words) > 2 and not matrix):
        raise OptionError("Give two words; with --matrix, two or more.")
    vectors = load_words(model, limit)
    if not matrix:
        a, b = words
        score = vectors.similarity(a, b)
        print_result({"a": a, "b": b, "similarity": score}, f"{score:.4f}", json)
        return
    rows = [vectors.similarities(word, words).tolist() for word in words]
    if json:
        print_json({"words": words, "similarities": rows})
    else:
        table = [[word, *row] for word, row in zip(words, rows, strict=True)]
        print_table(["", *words], table, always_headed=True, labels=words)


@app.command(epilog=examples("sememe odd runs/ladder/models/skipgram red green blue matrix"))
def odd(
    model: Model,
    words: Annotated[list[str], typer.Argument(metavar="WORD", help="Three or more words.")],
    limit: Limit = None,
    json: Json = False,
) -> None:
    """Find the word that does not fit with the others."""
    from sememe.models.registry import load_words

    found = load_words(model, limit).odd_one_out(words)
    print_result({"words": words, "odd": found}, found, json)
