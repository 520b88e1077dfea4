"""Labelled rows that need no labels from outside: four tasks made of the built-in corpus.

packages (classify): which package wrote this docstring? summaries (pairs): does this summary
belong to this body? parameters (tag): which words name parameters, and which their types?
types (answer): what type is this parameter?
"""

from sememe.examples.docstrings.rows import NAMES, docstring_rows, docstring_texts

__all__ = ["NAMES", "docstring_rows", "docstring_texts"]
