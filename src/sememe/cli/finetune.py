"""The fine-tuning commands: a model and labelled rows in, a task out."""

from __future__ import annotations

import typer

from sememe.cli.finetuning import add_command
from sememe.cli.screen import examples
from sememe.tasks.config import AnswerConfig, FinetuneConfig, TagConfig

app = typer.Typer(help="Teach a model a task with your labelled rows.", no_args_is_help=True)


add_command(
    app, "classify", FinetuneConfig,
    text="""Learn to label texts, and print the table of confusions on the dev rows.

    The options carry the names of the Python call:
    sememe.Classify("runs/bert", epochs=3).fit("train.tsv", dev="dev.tsv").
    """,
    epilog=examples(
        "sememe finetune classify runs/bert --train train.tsv --dev dev.tsv --out runs/topics",
        "sememe finetune classify runs/bert --train 评论.csv --column text=评论 --out runs/reviews",
        "sememe finetune classify runs/bert --train train.tsv --seeds 5 --ensemble --out runs/five",
        "sememe finetune classify runs/bert --train train.tsv --sweep paper --out runs/best",
        "sememe finetune classify runs/vectors --train builtin:packages --out runs/packages",
    ),
)  # fmt: skip
add_command(
    app, "pairs", FinetuneConfig,
    text="""Learn to label pairs of texts: whether one follows from the other, says the same, fits.

    The options carry the names of the Python call:
    sememe.Pairs("runs/bert", epochs=3).fit("train.tsv", dev="dev.tsv").
    """,
    epilog=examples(
        "sememe finetune pairs runs/bert --train train.tsv --dev dev.tsv --out runs/follows",
        "sememe finetune pairs runs/gpt --train same.jsonl --both-orders yes --lm-weight 0.5 -o r",
    ),
)  # fmt: skip
add_command(
    app, "regress", FinetuneConfig,
    text="""Learn to score texts or pairs of texts, such as how similar they are.

    The options carry the names of the Python call:
    sememe.Regress("runs/bert", epochs=3).fit("train.tsv", dev="dev.tsv").
    """,
    epilog=examples(
        "sememe finetune regress runs/bert --train sts.tsv --dev dev.tsv --out runs/similar",
        "sememe finetune regress runs/bert --train sts.tsv --features mix --out runs/similar",
    ),
)  # fmt: skip
add_command(
    app, "choose", FinetuneConfig,
    text="""Learn to choose the right one of several endings or answers.

    The options carry the names of the Python call:
    sememe.Choose("runs/bert", epochs=3).fit("train.csv", dev="dev.csv").
    """,
    epilog=examples(
        "sememe finetune choose runs/bert --train swag.csv --dev val.csv --out runs/endings",
        "sememe finetune choose runs/bert --train race/train --length 256 --batch-size 8 --out r",
    ),
)  # fmt: skip
add_command(
    app, "tag", TagConfig,
    text="""Learn to tag words: names in a text, parts of speech.

    The options carry the names of the Python call:
    sememe.Tag("runs/bert", epochs=3).fit("eng.train", dev="eng.testa").
    """,
    epilog=examples(
        "sememe finetune tag runs/bert --train eng.train --dev eng.testa --out runs/names",
        "sememe finetune tag runs/bert --train eng.train --features concat-last-four "
        "--reader-width 768 --out runs/frozen",
    ),
)  # fmt: skip
add_command(
    app, "answer", AnswerConfig,
    text="""Learn to find the answer to a question as a span of a text.

    The options carry the names of the Python call:
    sememe.Answer("runs/bert", epochs=2).fit("train-v1.1.json", dev="dev-v1.1.json").
    """,
    epilog=examples(
        "sememe finetune answer runs/bert --train train.json --dev dev.json --out runs/spans",
    ),
)  # fmt: skip
