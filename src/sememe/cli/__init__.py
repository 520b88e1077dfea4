"""The command line: thin wrappers; a command and its Python call use the same names.

Each module adds its commands to the program, and imports what they need when they run.
"""

from sememe.cli import (  # noqa: F401
    align,
    artifacts,
    clean,
    cluster,
    embed,
    evaluate,
    evaluate_benchmarks,
    evaluate_vectors,
    explore,
    finetune,
    grouping,
    inspection,
    ladder,
    language_models,
    plan,
    plot,
    predict,
    prompt,
    search,
    serve,
    study,
    train_classifier,
    train_networks,
    train_sentence,
    train_translation,
    train_words,
    words,
)
from sememe.cli.program import app, main

__all__ = ["app", "main"]
