"""Bring the word vectors of two languages into one space."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sememe.cli.evaluate import app as evaluate_app
from sememe.cli.options import Json, Quiet, flag
from sememe.cli.program import app, echo, examples, needed, print_json, remark
from sememe.errors import OptionError
from sememe.localization import say
from sememe.progress import Reporter


@app.command(
    epilog=examples(
        "sememe align runs/de runs/en --dictionary de-en.txt --out runs/de-in-en",
        "sememe align wiki.fr.vec wiki.en.vec --identical --out runs/fr-in-en",
        "sememe align runs/zh runs/en --dictionary zh-en.txt --rounds 0 --out runs/zh-in-en",
    )
)
def align(
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", help="Model or vector file to be mapped.")
    ],
    target: Annotated[
        str, typer.Argument(metavar="TARGET", help="Model or vector file that stays as it is.")
    ],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Output folder (required).")
    ] = None,
    dictionary: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Seed dictionary: a word and its translation per line.",
            show_default=False,
        ),
    ] = None,
    identical: Annotated[
        bool, flag("--identical", help="Take words that both sides spell alike as pairs.")
    ] = False,
    rounds: Annotated[
        int, typer.Option(min=0, max=100, help="Rounds of refinement at most; 0: none.")
    ] = 5,
    num_words: Annotated[
        int,
        typer.Option(min=2, max=2**40, help="Most frequent words for --identical and refinement."),
    ] = 10_000,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Map word vectors into the space of others, such as another language.

    Learns a rotation (orthogonal Procrustes) from the pairs of a seed
    dictionary or of identical strings. Refinement learns it again from
    words that are each other's nearest neighbors by CSLS, as long as this
    helps. The output folder holds the mapped vectors of SOURCE.
    """
    from sememe.models.registry import load_words
    from sememe.vectors.alignment import align as aligned

    out = needed(out)
    if (dictionary is None) != identical:
        raise OptionError("Give either --dictionary FILE or --identical.")
    found = aligned(
        load_words(source), load_words(target), dictionary=dictionary, identical=identical,
        rounds=rounds, num_words=num_words, names=(source, target),
        progress=Reporter(quiet=quiet),
    )  # fmt: skip
    found.save(out)
    if json:
        print_json({**found.to_dict(), "samples": found.samples, "out": str(out)})
        return
    pairs = found.pairs
    echo(
        say(
            "seed pairs: {used:,} of {given:,}; without a vector: {source:,} source words, "
            "{target:,} target words",
            used=len(pairs), given=pairs.num_given, source=pairs.num_unknown_source,
            target=pairs.num_unknown_target,
        )
    )  # fmt: skip
    shown = found.seeds[:: max(1, len(found.seeds) // 8)][:8]
    echo(say("for example: {pairs}", pairs=", ".join(" – ".join(pair) for pair in shown)))
    for index, own in enumerate(found.rounds):
        mark = " *" if index == found.taken else ""
        echo(
            say(
                "round {index}: {pairs:,} pairs, mean CSLS {score:.4f}",
                index=index, pairs=own.num_pairs or len(pairs), score=own.mean_csls,
            )
            + mark
        )  # fmt: skip
    for word, near in found.samples.items():
        echo(f"  {word} → {', '.join(near)}")
    remark(f"Saved in {out}. Score it: sememe evaluate induction {out} {target} --data FILE", quiet)


@evaluate_app.command(
    epilog=examples(
        "sememe evaluate induction runs/de-in-en runs/en --data de-en.test.txt",
        "sememe evaluate induction runs/fr-in-en wiki.en.vec --data fr-en.test.txt --json",
    )
)
def induction(
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", help="Aligned vectors: a folder of sememe align.")
    ],
    target: Annotated[
        str, typer.Argument(metavar="TARGET", help="The vectors to which they were aligned.")
    ],
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Test dictionary: a word and its translation per line (required).",
            show_default=False,
        ),
    ] = None,
    restrict_vocab: Annotated[
        int,
        typer.Option(min=10, max=2**40, help="Candidates: the N most frequent target words."),
    ] = 200_000,
    include_trained: Annotated[
        bool, flag("--include-trained", help="Also score words of the seed dictionary.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Random seed of the bootstrap.")] = 1,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Evaluate aligned vectors on the translation of words.

    P@1, P@5 and P@10 of the nearest target words, by CSLS and by cosine,
    with 95 % intervals over the words. Words of the seed dictionary are
    left out. The same spelling and chance are shown as baselines.
    """
    from sememe.evaluation.induction import evaluate_induction

    if data is None:
        raise OptionError("--data must name a dictionary: a word and its translation per line.")
    found = evaluate_induction(
        source, target, data, restrict_vocab=restrict_vocab, include_trained=include_trained,
        seed=seed,
    )  # fmt: skip
    if json:
        print_json(found.to_dict())
        return
    echo(str(found))
    if not quiet:
        for word, near in list(found.answers.items())[:5]:
            echo(f"  {word} → {', '.join(near)}")
