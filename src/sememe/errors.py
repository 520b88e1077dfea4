"""The errors that a user can cause; each message says what is wrong, where, and what to do.

SememeError
├── InputError          text that is missing, unreadable, wrongly encoded or empty
├── OptionError         an option out of its range (also a ValueError)
├── ArtifactError       a model folder, token store or vector file that is broken or of another kind
├── WriteError          a result that could not be written (disk full, no permission)
├── UnknownWordError    a word outside the vocabulary (also a KeyError)
├── UnsupportedError    a method that a model does not support (also a TypeError, AttributeError)
├── DivergedError       a training that diverged
├── ClusterError        a cluster that could not be reached, or lost a task
├── ServiceError        a server that refused a request, failed, or could not be reached
└── MissingExtraError   an optional library that is not installed (also an ImportError)
"""

import re

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def visible(text: str) -> str:
    """Text with its control characters escaped, so that none reaches a terminal."""
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


class SememeError(Exception):
    """An error that the user can fix; the command line prints it and exits with code 2."""

    def __str__(self) -> str:  # KeyError would print the message in quotes
        return visible(str(self.args[0])) if self.args else ""


class InputError(SememeError):
    """Text that is missing, unreadable, wrongly encoded or empty."""


class TooLongError(InputError):
    """A text with more tokens than a model reads at once."""


class OptionError(SememeError, ValueError):
    """An option out of its range."""


class ArtifactError(SememeError):
    """A model folder, token store or vector file that is broken or of another kind."""


class WriteError(SememeError):
    """A result that could not be written."""


class UnknownWordError(SememeError, KeyError):
    """A word outside the vocabulary."""


class LookupNote(UserWarning):
    """A query that is not looked up as it was written."""


class UnsupportedError(SememeError, TypeError, AttributeError):
    """A method that this kind of model does not support; the message names the kinds that do."""


class DivergedError(SememeError):
    """A training that diverged."""


class ClusterError(SememeError):
    """A cluster that could not be reached, or lost a task."""


class ServiceError(SememeError):
    """A server that refused a request, failed, or could not be reached (then status is None)."""

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        code: str | None = None,
        param: str | None = None,
        request_id: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.code = code
        self.param = param
        self.request_id = request_id


class MissingExtraError(SememeError, ImportError):
    """An optional library that is not installed."""
