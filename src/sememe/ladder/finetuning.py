"""Questions about sentences, learned whole: networks fine-tuned, vectors under a BiLSTM."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sememe.ladder.plan import EPOCHS
from sememe.ladder.questions import NO_VECTORS, Answer, Interview
from sememe.ladder.sentence_questions import SentenceQuestion

HOW = (
    "networks fine-tuned whole, ELMo's layers mixed under a BiLSTM, word vectors under a BiLSTM "
    "(texts and pairs: their mean)"
)
# Readers of word vectors begin with nothing and take large steps (docs/results.md).
_READER_RATE = 3e-3
_LENGTHS = {"classify": 128, "pairs": 128, "tag": 128, "answer": 256}


class FinetunedQuestion:
    """A question about sentences that rungs learn with the heads of sememe.tasks."""

    def __init__(self, question: SentenceQuestion, num_rows: int) -> None:
        self.question, self._train = question, question.train[:num_rows]
        self.task = replace(question.task, how=HOW, num_train=len(self._train))

    def ask(self, rung: Interview) -> Answer:
        """Teach the rung the rows, once a seed, and score the test rows."""
        from sememe.tasks.folder import task_class

        if rung.opened.reader is None:
            return Answer(why=NO_VECTORS)
        own = self.question
        scores = []
        for seed in range(1, own.seeds + 1):
            task = task_class(own.kind)(rung.path, seed=seed, **self._options(rung))
            task.fit(self._train, dev=False, progress=rung.reporter)
            scores.append(100 * float(task.evaluate(own.test).value))
        return Answer(scores)

    def _options(self, rung: Interview) -> dict[str, Any]:
        options: dict[str, Any] = {
            "epochs": EPOCHS, "length": _LENGTHS[self.question.kind], "device": rung.device,
        }  # fmt: skip
        if not rung.opened.reader or not rung.opened.reader.is_contextual:
            options |= {"learning_rate": _READER_RATE}
        if rung.device == "cpu":
            # Batches of small readers are so short that threads would wait for each other.
            options |= {"workers": 1}
        return options
