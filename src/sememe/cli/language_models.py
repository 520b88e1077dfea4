"""Language models and translators: `fill`, `next`, `generate`, `suggest`, `translate`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import asdict, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import sememe
from sememe.cli.options import Device, Json, LanguageModelPath, Quiet, expand, flag
from sememe.cli.program import app, echo, examples, print_json, print_result, print_table
from sememe.cli.train_translation import score_line
from sememe.errors import InputError, OptionError
from sememe.localization import say, translate as translated
from sememe.models.gpt.config import Sampling
from sememe.models.translation.config import SearchConfig
from sememe.progress import SILENT, Reporter
from sememe.storage.folder import write_text
from sememe.text.settings import TextSettings

if TYPE_CHECKING:
    from sememe.tokens.prompts import Suggestion

BERTFolder = Annotated[
    Path, typer.Argument(metavar="MODEL", help="BERT folder, sememe or Hugging Face.")
]
_TEXTS_AT_ONCE = 2_048  # translated together


@app.command(
    epilog=examples(
        'sememe fill runs/bert "The [MASK] returns a new array."',
        'sememe fill bert-base-uncased "[MASK] is the capital of [MASK]." --num 3',
        'sememe fill runs/news "国[MASK]喜欢读书。" --json',
    ),
)
def fill(
    model: BERTFolder,
    text: Annotated[
        str, typer.Argument(metavar="TEXT", help="Text with [MASK] in place of one or more tokens.")
    ],
    num: Annotated[
        int,
        typer.Option("--num", "-n", min=1, max=10**6, help=r"Predictions per \[MASK]."),
    ] = 5,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Predict the tokens for each [MASK] in a text.

    Several masks are predicted independently of each other.
    """

    guesses = sememe.load(model, device=device, able="fill").fill(text, top=num)
    if json:
        masks = [[guess._asdict() for guess in own] for own in guesses]
        print_json({"text": text, "masks": masks})
        return
    for index, own in enumerate(guesses):
        if len(guesses) > 1:
            echo(("\n" if index else "") + f"[MASK] {index + 1}")
        rows = [(guess.token, guess.probability) for guess in own]
        print_table(("token", "probability"), rows, title="" if len(guesses) > 1 else text)


@app.command(
    "next",
    epilog=examples(
        'sememe next runs/bert "The king went to the palace." "He had breakfast there."',
        'sememe next runs/news "国王喜欢读书。" "女王喜欢音乐。" --json',
    ),
)
def next_sentence(
    model: BERTFolder,
    a: Annotated[str, typer.Argument(metavar="A", help="First text.")],
    b: Annotated[str, typer.Argument(metavar="B", help="Text that may follow it.")],
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Print the probability that text B follows text A."""

    for name, text in (("A", a), ("B", b)):
        if not text.strip():
            raise InputError(f"{name} is empty: give two texts.")
    probability = sememe.load(model, device=device, able="follows").follows(a, b)
    print_result({"a": a, "b": b, "probability": probability}, f"{probability:.4f}", json)


@app.command(
    epilog=examples(
        'sememe generate runs/gpt "Returns the"',
        'sememe generate gpt2 "Once upon a time" --max-tokens 100 --temperature 0.8 --top-p 0.95',
        'sememe generate runs/gpt "The array" --greedy',
        'sememe generate runs/gpt "The array" --compare --top-k 10 --seed 3',
        'sememe generate runs/news "国王" --num 3 --seed 7 --json',
    ),
)
@expand(sampling="Choice of tokens")
def generate(
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL", help="GPT folder (sememe or Hugging Face), or n-gram model."
        ),
    ],
    prompt: Annotated[
        str, typer.Argument(metavar="PROMPT", help="Start of the text; default: empty.")
    ] = "",
    num: Annotated[
        int, typer.Option("--num", "-n", min=1, max=10**4, help="Number of texts to generate.")
    ] = 1,
    greedy: Annotated[
        bool, flag("--greedy", help="Greedy decoding, the same as --temperature 0.")
    ] = False,
    compare: Annotated[
        bool,
        flag("--compare", help="Compare greedy, temperature, top-k and nucleus, same seed."),
    ] = False,
    device: Device = "auto",
    json: Json = False,
    *,
    sampling: Sampling,
) -> None:
    """Generate text from a prompt.

    Tokens are printed as they are generated. The same seed gives the same
    text. With --num, each further text uses the next seed. --compare takes
    the values of --temperature, --top-k and --top-p, or 0.7, 40 and 0.9.
    """

    if greedy and compare:
        raise OptionError("--compare includes greedy decoding: leave out --greedy.")
    opened = sememe.load(model, device=device, able="generate")
    if compare:
        _compare_strategies(opened, prompt, num, sampling, json)
        return
    if greedy:
        sampling = replace(sampling, temperature=0.0)
    texts = []
    for index in range(num):
        options = asdict(replace(sampling, seed=sampling.seed + index))
        pieces = opened.stream(prompt, **options)
        if json:
            texts.append("".join(pieces))
            continue
        if index:
            echo()
        echo(prompt, nl=False)
        for piece in pieces:
            echo(piece, nl=False)
        echo()
    if json:
        print_json({"prompt": prompt, "texts": texts, **asdict(sampling)})


def _compare_strategies(
    model: Any, prompt: str, num: int, sampling: Sampling, as_json: bool
) -> None:
    """Print the texts of each way to choose tokens; the same seeds for each."""
    found = [
        (name, replace(own, seed=own.seed + index))
        for name, own in sampling.strategies().items()
        for index in range(num)
    ]
    rows = ((name, own, "".join(model.stream(prompt, **asdict(own)))) for name, own in found)
    if as_json:
        texts = [{"strategy": name, "text": text, **asdict(own)} for name, own, text in rows]
        print_json({"prompt": prompt, "texts": texts})
        return
    table = [(translated(name), own.seed, text) for name, own, text in rows]
    print_table(("strategy", "seed", ""), table, title=prompt)


@app.command(
    epilog=examples(
        'sememe suggest runs/ngram "the most "',
        'sememe suggest runs/ngram "the weath" -k 3',
        'sememe suggest runs/news "今天" --json',
        'sememe suggest gpt2 "Once upon a "',
        "sememe suggest runs/ngram",
    ),
)
def suggest(
    model: LanguageModelPath,
    prompt: Annotated[
        str | None,
        typer.Argument(
            metavar="PROMPT", help="Text so far; default: read from the terminal, line by line."
        ),
    ] = None,
    count: Annotated[
        int, typer.Option("--count", "-k", min=1, max=10**4, help="Number of words to suggest.")
    ] = 5,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Suggest the next word, or complete the current one.

    After a space the next word is suggested, inside a word its
    completion. Chinese needs no space: both are suggested.
    """

    next_words = sememe.load(model, device=device, able="next_words").next_words
    for line in [prompt] if prompt is not None else _typed_lines():
        _show(line, next_words(line, count=count), json)


def _typed_lines() -> Iterator[str]:
    """The lines that a user types, until the input ends."""
    if not sys.stdin.isatty():
        raise OptionError("Give a prompt; interactive mode needs a terminal.")
    echo(say("Type the start of a sentence; Ctrl-D ends."), err=True)
    while True:
        try:
            yield input("> ")
        except EOFError:
            return


def _show(prompt: str, found: list[Suggestion], as_json: bool) -> None:
    if as_json:
        print_json({"prompt": prompt, "suggestions": [one._asdict() for one in found]})
    elif not found:
        echo(say("No word of the vocabulary starts like this."), err=True)
    else:
        print_table(("word", "probability"), [one[:2] for one in found])


@app.command(
    epilog=examples(
        'sememe translate runs/de "A dog runs through the snow."',
        "sememe translate runs/de test.en --out test.hyp",
        "sememe translate runs/de test.en --reference test.de --json",
        'sememe translate runs/zh "Where is he?" --beam 10 --n-best 3',
        "cat test.en | sememe translate runs/de - --beam 1",
    ),
)
@expand(search="Search")
def translate(
    model: Annotated[
        Path,
        typer.Argument(metavar="MODEL", help="Folder of a transformer or seq2seq model."),
    ],
    text: Annotated[
        str,
        typer.Argument(
            metavar="FILE|TEXT", help="Text, or file with one per line; - for standard input."
        ),
    ] = "-",
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Output file, one translation per line.")
    ] = None,
    reference: Annotated[
        Path | None, typer.Option(help="Reference translations, one per line, for BLEU and chrF.")
    ] = None,
    encoding: Annotated[str, typer.Option(help="Encoding of the input file.")] = "utf-8",
    device: Device = "auto",
    json: Json = False,
    quiet: Quiet = False,
    *,
    search: SearchConfig,
) -> None:
    """Translate a text or a file, one line per text.

    With --n-best, each line holds the text, the score and a translation,
    separated by tabs. The score is the length-normalised log-probability.
    """

    opened = sememe.load(model, device=device, able="translate")
    references = None if reference is None else list(_lines(str(reference), encoding))
    texts = _texts(text, encoding)
    if references is not None:
        from sememe.metrics.translation import bleu

        texts = iter(given := list(texts))
        bleu(given, references)  # says before hours of work what would be missing after them
    rows = _translated(opened, texts, search, Reporter(quiet=quiet))
    found = list(rows) if json or out or references is not None else rows
    scores = {}
    if references is not None:
        written = [row["translations"][0]["text"] for row in found]
        counted = {"pairs": len(written), "beam": search.beam}
        scores = opened.score_translations(written, references) | counted
    if json:
        print_json({"translations": list(found), **scores, **asdict(search)})
    elif out is not None:
        lines = (f"{line}\n" for row in found for line in _shown(row, search))
        write_text(out, "".join(lines))
    elif not scores:
        for row in found:
            for line in _shown(row, search):
                echo(line)
    if scores and not json:
        echo(score_line(scores))


def _texts(text: str, encoding: str) -> Iterator[str]:
    """The lines of a file or of standard input; a text that is not a file name is used itself."""
    from sememe.text.sources import exists

    if text == "-" or (exists(text) and Path(text).is_file()):
        return _lines(text, encoding)
    if not any(char.isspace() for char in text) and Path(text).suffix:
        raise InputError(f"There is no file {text}; a text to translate has words.")
    return iter([text])


def _lines(place: str, encoding: str) -> Iterator[str]:
    from sememe.text.sources import Source, find_sources
    from sememe.text.tables import numbered_lines

    for found in find_sources(place):
        lines = numbered_lines(Source(found.path), TextSettings(encoding=encoding))
        yield from (line for _, line in lines)


def _translated(
    model: Any, texts: Iterator[str], search: SearchConfig, reporter: Any
) -> Iterator[dict[str, Any]]:
    """One row per text, some thousand at a time."""

    first = 1
    while part := list(islice(texts, _TEXTS_AT_ONCE)):
        # Progress bars would mix with the lines of a terminal.
        progress = SILENT if len(part) == 1 or sys.stdout.isatty() else reporter
        found = model.search(part, first=first, progress=progress, **asdict(search))
        for text, own in zip(part, found, strict=True):
            yield {"text": text, "translations": [asdict(one) for one in own]}
        first += len(part)


def _shown(row: dict[str, Any], search: SearchConfig) -> list[str]:
    if search.n_best == 1:
        return [row["translations"][0]["text"]]
    return [f"{row['text']}\t{one['score']:.4f}\t{one['text']}" for one in row["translations"]]
