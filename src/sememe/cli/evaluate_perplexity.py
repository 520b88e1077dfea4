"""How well a language model foretells a text."""

from __future__ import annotations

from typing import Annotated

import typer

from sememe.cli.opening import Device, LanguageModelPath
from sememe.cli.options import Json, Quiet
from sememe.cli.screen import examples, print_json, print_table

EXAMPLES = examples(
    "sememe evaluate perplexity runs/ngram held-out.txt",
    "sememe evaluate perplexity model.arpa held-out.txt --json",
    "sememe evaluate perplexity runs/ulmfit held-out.txt",
    "sememe evaluate perplexity gpt2 held-out.txt",
)


def perplexity(
    model: LanguageModelPath,
    corpus: Annotated[
        list[str],
        typer.Argument(metavar="TEXT", help="Files, folders or patterns of text, or -."),
    ],
    device: Device = "auto",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Measure a language model on a text that it has not seen: lower is better.

    The end of each sentence counts as a word. Texts are cut into words as the model's own text was,
    and words that it does not know as <unk>; only models with the same words can be compared. An
    ELMo reads forwards. A GPT foretells all that is written, punctuation and capitals too, and its
    figure is told for each word.
    """
    from sememe.evaluation.perplexity import evaluate_perplexity
    from sememe.progress import Reporter

    found = evaluate_perplexity(model, corpus, device=device, progress=Reporter(quiet=quiet))
    figures = {
        "perplexity": found.perplexity,
        "known_perplexity": found.known_perplexity,
        "words": found.num_words,
        "unknown_words": found.num_unknown,
        "log10": found.log10,
    }
    if json:
        print_json(figures)
        return
    rows = [(name.replace("_", " "), value) for name, value in figures.items()]
    print_table(("", ""), rows)
