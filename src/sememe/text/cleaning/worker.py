"""What takes Python time per line or text: repairs and language identification, in any process.

The program of worker processes (`python -m`); a few lines are done in the calling process.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from typing import Any, Literal

from sememe.errors import OptionError
from sememe.text.cleaning.repair import repair
from sememe.text.worker_processes import WorkerProcesses, serve

Task = Literal["repair", "language"]

_FEW = 64  # lines or texts that are not worth a process
# Languages that the model distinguishes, but that a user may mean by one code or confuse.
_ALIKE = {
    "ar": {"ary", "arz"}, "no": {"nn"}, "zh": {"wuu", "yue"}, "id": {"ms"}, "ms": {"id"},
    "hr": {"bs", "sr"}, "sr": {"hr", "bs"}, "bs": {"hr", "sr"},
}  # fmt: skip
# Chosen on paragraphs of ten languages, cut to 25 … 1,000 characters: 99.7 % of the own language
# remain at 200 characters, and 0.05 % of the others.
_LEAST_PROBABILITY = 0.02
_LEAST_LETTERS = 12  # in bytes; a shorter text could be in any language
_LOOKED_AT = 400  # characters
_OTHER = re.compile(r"[\W\d_]+")


class Worker:
    """Repairs lines, and says which texts may be in one of some languages."""

    def __init__(self, languages: Sequence[str]) -> None:
        self._accepted = set(languages).union(*(_ALIKE.get(code, ()) for code in languages))

    @cached_property
    def identifier(self) -> Any:
        """The model of 140 languages."""
        from py3langid.langid import MODEL_FILE, LanguageIdentifier

        return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)

    def may_be_kept(self, text: str) -> bool:
        """Whether a text may be in one of the languages; one that is too short always may."""
        text = text[:_LOOKED_AT]
        if len(_OTHER.sub("", text).encode()) < _LEAST_LETTERS:
            return True
        ranked = self.identifier.rank(text)
        return sum(own for code, own in ranked if code in self._accepted) >= _LEAST_PROBABILITY

    def answer(self, request: tuple[Task, list[str]]) -> list[Any]:
        """Repair each line, or judge the language of each text."""
        task, texts = request
        return [repair(text) if task == "repair" else self.may_be_kept(text) for text in texts]


class Workers(AbstractContextManager["Workers"]):
    """The worker of this process for a few texts, and as many processes as threads have many."""

    def __init__(self, languages: Sequence[str], num_workers: int) -> None:
        self._own = Worker(languages)
        self._is_alone = num_workers == 1 or not sys.executable
        known = self._own.identifier.labels if languages else ()
        if unknown := [code for code in languages if code not in known]:
            raise OptionError(
                f"keep_language {unknown[0]!r} is not among {', '.join(sorted(known))}."
            )
        self._processes = WorkerProcesses(
            "sememe.text.cleaning.worker", "repairs and identifies text", list(languages)
        )

    def ask(self, task: Task, texts: list[str]) -> list[Any]:
        """The answer for each text."""
        if self._is_alone or len(texts) < _FEW:
            return self._own.answer((task, texts))
        answers: list[Any] = self._processes.ask((task, texts))
        return answers

    def __exit__(self, *details: Any) -> None:
        self._processes.__exit__(*details)


if __name__ == "__main__":
    serve(lambda languages: Worker(languages).answer)
