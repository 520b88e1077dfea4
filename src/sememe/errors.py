"""Every failure a user can cause is one of these; its message says what, where, and what to do.

SememeError
├── InputError          text that is missing, unreadable, wrongly encoded or empty
├── OptionError         an option out of its range (also a ValueError)
├── ArtifactError       a model folder, token store or vector file that is broken or of another kind
├── WriteError          a result that could not be written (disk full, no permission)
├── UnknownWordError    a word outside the vocabulary (also a KeyError)
├── DivergedError       a training whose numbers ran away to infinity
└── MissingExtraError   an optional library that is not installed (also an ImportError)
"""

from __future__ import annotations


class SememeError(Exception):
    """A failure with a cause the user can mend; the command line prints it and exits with 2."""

    def __str__(self) -> str:  # KeyError would print the message in quotes
        return str(self.args[0]) if self.args else ""


class InputError(SememeError):
    """Text that is missing, unreadable, wrongly encoded or empty."""


class OptionError(SememeError, ValueError):
    """An option out of its range."""


class ArtifactError(SememeError):
    """A model folder, token store or vector file that is broken or of another kind."""


class WriteError(SememeError):
    """A result that could not be written."""


class UnknownWordError(SememeError, KeyError):
    """A word outside the vocabulary."""


class DivergedError(SememeError):
    """A training whose numbers ran away to infinity."""


class MissingExtraError(SememeError, ImportError):
    """An optional library that is not installed."""
