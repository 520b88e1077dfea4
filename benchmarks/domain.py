"""Continued pre-training on a domain, and distillation: equal steps, with and without each option.

    python benchmarks/domain.py continue OLD_TEXT DOMAIN_TEXT --out OUT [--steps 500]
    python benchmarks/domain.py distil TEXT --out OUT [--steps 500] [--teacher FOLDER]

continue: a BERT on OLD_TEXT (or --model FOLDER), continued on DOMAIN_TEXT as it is, with new words,
with replayed old text, and with both. The score is the perplexity per masked word of documents that
no training saw, which vocabularies of any size share. distil: a student with and without a teacher.
Each text is one file with blank lines between documents; its last tenth is held out. Finished
parts are not computed again; all sizes are options, so that the same command serves a GPU.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from result_lines import append, read

import sememe
from sememe.progress import Reporter


def split(path: Path, out: Path, most: int) -> tuple[Path, Path]:
    """The first nine tenths and the last tenth of a text, as files."""
    parts = out / f"{path.stem}.train.txt", out / f"{path.stem}.held.txt"
    if not parts[1].exists():
        text = path.read_text(encoding="utf-8")[: most or None]
        documents = [own for own in text.split("\n\n") if own.strip()]
        at = len(documents) * 9 // 10
        for own, chosen in zip(parts, (documents[:at], documents[at:]), strict=True):
            own.write_text("\n\n".join(chosen) + "\n", encoding="utf-8")
    return parts


def trained(name: str, corpus: Path, asked: argparse.Namespace, steps: int, **own: Any) -> Any:
    """The folder of a training, opened; a stopped training continues."""
    folder = asked.out / name
    if not (folder / "sememe.json").exists():
        options = {
            "steps": steps, "batch_size": asked.batch_size, "length": asked.length,
            "device": asked.device, "next_sentence": False, "seed": asked.seed,
            "precision": asked.precision, "workers": asked.threads,
        } | own  # fmt: skip
        model = sememe.BERT(**options)
        model.fit(corpus, out=folder, resume=True, language=asked.language, progress=Reporter())
    return sememe.BERT.load(folder)


def measured(name: str, model: Any, texts: dict[str, Path], asked: argparse.Namespace) -> None:
    """Add a line with the perplexity per word of each held-out text."""
    lines = asked.out / "results.jsonl"
    if any(one["model"] == name for one in read(lines)):
        return
    found: dict[str, Any] = {"model": name, "tokens": len(model.tokenizer)}
    for key, path in texts.items():
        score = model.word_perplexity(path, num_words=asked.num_words)
        found[key] = score._asdict()
    append(lines, found)


def continued(asked: argparse.Namespace) -> None:
    """Continue a BERT in four ways."""
    old, domain = (split(path, asked.out, asked.most) for path in (asked.old, asked.domain))
    held = {"old": old[1], "domain": domain[1]}
    if asked.model is None:
        trained("base", old[0], asked, asked.base_steps, **sizes(asked))
    base = asked.model or asked.out / "base"
    measured("before", sememe.BERT.load(base), held, asked)
    words, replay = {"add_words": str(asked.words)}, {"replay": str(old[0])}
    ways = {"domain": {}, "+ words": words, "+ replay": replay, "+ words + replay": words | replay}
    for name, own in ways.items():
        model = trained(name, domain[0], asked, asked.steps, pretrained=base, **own)
        measured(name, model, held, asked)
    table(asked, held)


def distilled(asked: argparse.Namespace) -> None:
    """Train a student with and without a teacher."""
    train, held = split(asked.text, asked.out, asked.most)
    if asked.teacher is None:
        trained("teacher", train, asked, asked.base_steps, **sizes(asked))
    place = asked.teacher or asked.out / "teacher"
    teacher = sememe.BERT.load(place)
    measured("teacher", teacher, {"text": held}, asked)
    config = teacher.config
    small = {
        "num_layers": asked.student_layers, "width": config.width, "num_heads": config.num_heads,
        "inner_size": config.inner_width,
    }  # fmt: skip
    ways = {
        "predictions and relations": {"teacher": str(place)},
        "predictions": {"teacher": str(place), "relation_weight": 0.0},
        "blocks alone": {"teacher": str(place), "relation_weight": 1e-9, "soft_weight": 0.0},
    }
    folder = asked.out / "alone"
    if not (folder / "sememe.json").exists():
        model = sememe.BERT(
            steps=asked.steps, batch_size=asked.batch_size, length=asked.length, seed=asked.seed,
            device=asked.device, next_sentence=False, precision=asked.precision,
            workers=asked.threads, **small,
        )  # fmt: skip
        model.fit(train, tokenizer=teacher.tokenizer, out=folder, language=asked.language)
    measured("alone", sememe.BERT.load(folder), {"text": held}, asked)
    for name, own in ways.items():
        model = trained(name, train, asked, asked.steps, **small, **own)
        measured(name, model, {"text": held}, asked)
    table(asked, {"text": held})


def sizes(asked: argparse.Namespace) -> dict[str, Any]:
    """The size of a BERT that is trained from the start."""
    return {"preset": asked.preset, "vocab_size": asked.vocab_size}


def table(asked: argparse.Namespace, texts: dict[str, Path]) -> None:
    """Print the perplexities as Markdown."""
    print(f"| | tokens | {' | '.join(texts)} |\n| --- | --- | {'--- | ' * len(texts)}")
    for one in read(asked.out / "results.jsonl"):
        cells = [f"{one[key]['perplexity']:.1f}" for key in texts]
        print(f"| {one['model']} | {one['tokens']:,} | {' | '.join(cells)} |")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--out", type=Path, required=True)
    shared.add_argument("--steps", type=int, default=500)
    shared.add_argument("--base-steps", type=int, default=1000, help="of the model to start from")
    shared.add_argument("--preset", default="tiny")
    shared.add_argument("--vocab-size", type=int, default=4096)
    shared.add_argument("--batch-size", type=int, default=16)
    shared.add_argument("--length", type=int, default=128)
    shared.add_argument("--language", default="en")
    shared.add_argument("--most", type=int, default=0, help="characters of each text; 0: all")
    shared.add_argument("--num-words", type=int, default=20_000, help="of each held-out text")
    shared.add_argument("--device", default="auto")
    shared.add_argument("--precision", default="auto")
    shared.add_argument("--threads", type=int, default=0)
    shared.add_argument("--seed", type=int, default=1)
    own = commands.add_parser("continue", parents=[shared])
    own.add_argument("old", type=Path)
    own.add_argument("domain", type=Path)
    own.add_argument("--model", type=Path, help="a BERT with a masked head")
    own.add_argument("--words", type=int, default=300)
    own = commands.add_parser("distil", parents=[shared])
    own.add_argument("text", type=Path)
    own.add_argument("--teacher", type=Path)
    own.add_argument("--student-layers", type=int, default=1)
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    {"continue": continued, "distil": distilled}[asked.command](asked)


if __name__ == "__main__":
    main()
