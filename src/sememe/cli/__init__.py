"""The command line: thin wrappers; a command and its Python call use the same names.

Each module adds its commands to the program, and imports what they need when they run.
"""

from sememe.cli import (  # noqa: F401
    artifacts,
    clean,
    embed,
    evaluate,
    evaluate_benchmarks,
    evaluate_vectors,
    finetune,
    grouping,
    ladder,
    language_models,
    plot,
    predict,
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
