"""BERTs that were fine-tuned with `transformers`, opened as tasks: a folder in, a task out."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sememe.errors import ArtifactError
from sememe.networks.interchange.layout import CONFIG
from sememe.storage.folder import MANIFEST, read_json

if TYPE_CHECKING:
    from sememe.tasks.objective import TaskObjective
    from sememe.tasks.task import Task

_NAMES = {
    "BertForSequenceClassification": "classify",
    "BertForMultipleChoice": "choose",
    "BertForTokenClassification": "tag",
    "BertForQuestionAnswering": "answer",
}
# How models, their cards and their folders speak of SQuAD 2.0.
_SQUAD2 = re.compile(r"squad[-_ ]?v?2", re.IGNORECASE)
_CARD, _MOST_OF_CARD = "README.md", 20_000  # characters


def foreign_name(folder: str | Path) -> str:
    """The name of the task that a folder of `transformers` was fine-tuned for, or nothing."""
    if (Path(folder) / MANIFEST).exists():
        return ""
    try:
        content = json.loads((Path(folder) / CONFIG).read_text(encoding="utf-8"))
        name = _NAMES.get(content["architectures"][0], "")
    except (OSError, ValueError, TypeError, KeyError, IndexError):
        return ""
    kind, labels = content.get("problem_type"), content.get("id2label")
    # Theirs take a head with one number for a score, also where the file does not say so.
    is_single = kind is None and isinstance(labels, dict) and len(labels) == 1
    if name == "classify" and (is_single or kind == "regression"):
        return "regress"
    return name


def open_task(folder: str | Path, columns: Mapping[str, Any] | None = None) -> Task:
    """Open a task, ours or theirs, to be asked about rows whose columns were named so.

    Their files do not say whether a label is of one text or of two: a column for the second does.
    """
    from sememe.tasks.pairs import Pairs
    from sememe.tasks.task import Task

    is_of_two = foreign_name(folder) == "classify" and "second" in (columns or {})
    return (Pairs if is_of_two else Task).load(folder)


def load_foreign(cls: type[Task], folder: Path) -> Task:
    """Open such a folder as a task of that class, or of the one that fits where it is any."""
    from sememe.networks.interchange.huggingface import check_vocabulary, kind_of
    from sememe.tasks.encoding import SubwordCoder
    from sememe.tasks.folder import task_class
    from sememe.tokens.subwords import SubwordTokenizer

    own = task_class(foreign_name(folder))
    # Their files do not say whether a label is of one text or of two: the caller does.
    chosen = cls if issubclass(cls, own) else own
    if not issubclass(chosen, cls):
        raise ArtifactError(f"{folder} was fine-tuned for {own.name}, not {cls.name}.")
    content = read_json(folder / CONFIG)
    if content.get("problem_type") == "multi_label_classification":
        raise ArtifactError(
            f"{folder} gives a text several labels at once, which no task here does: only heads "
            "for one label a text can be opened."
        )
    longest = int(content.get("max_position_embeddings", 512))
    length = min(longest, max(chosen.config_class().length, 512))
    labels = _labels(content, folder) if chosen.has_labels else None
    task = chosen(folder, labels=labels, length=length)
    task.objective = _objective(task, folder)
    network = task.objective.encoder.network
    tokenizer = SubwordTokenizer.load(folder)
    check_vocabulary(network.config, tokenizer, str(folder))
    task.coder = SubwordCoder(tokenizer, kind_of(network), length)
    if chosen.name == "tag":
        is_spans = any(label.startswith("B-") for label in task.labels)
        task.learned = {"scheme": "iob2" if is_spans else "none", "by_character": False}
    elif chosen.name == "answer":
        task.learned = {"has_impossible": _knows_no_answer(content, folder), "threshold": 0.0}
    return task


def _knows_no_answer(content: dict[str, Any], folder: Path) -> bool:
    """Whether a model learned that questions may have no answer: its weights do not tell.

    Its name, the folder's or the card beside it does where it learned SQuAD 2.0.
    """
    told = f"{folder.resolve().name} {content.get('_name_or_path', '')}"
    if (card := folder / _CARD).is_file():
        told += card.read_text(encoding="utf-8", errors="replace")[:_MOST_OF_CARD]
    found = _SQUAD2.search(told)
    taken = (
        f"it is taken as one that does, for its name or card says {found[0]!r}"
        if found
        else "it is taken as one that does not, for neither its name nor its card names SQuAD 2.0"
    )
    warnings.warn(
        f"The files of {folder} do not say whether the model knows questions without an answer: "
        f"{taken}.",
        stacklevel=2,
    )
    return bool(found)


def _labels(content: dict[str, Any], folder: Path) -> list[str]:
    names = content.get("id2label") or {"0": "LABEL_0", "1": "LABEL_1"}  # what theirs are then
    try:
        return [names[number] for number in sorted(names, key=int)]
    except (TypeError, ValueError) as error:
        raise ArtifactError(f"{folder / CONFIG} names its labels in no order.") from error


def _objective(task: Task, folder: Path) -> TaskObjective:
    import torch

    from sememe.networks.interchange.heads import peer_of
    from sememe.networks.interchange.huggingface import load_network
    from sememe.networks.interchange.weights import Weights
    from sememe.tasks.objective import TaskObjective
    from sememe.tasks.opening import new_encoder

    network = load_network(folder)
    encoder = new_encoder(network, task.config)
    head = task.make_head(encoder.width, dropout=network.config.dropout, has_bias=True)
    peer, weights = peer_of(encoder, head), Weights(folder)
    assert peer is not None
    with torch.no_grad():
        for name, tensor in head.linear.named_parameters():
            theirs = f"{peer.prefix}.{name}"
            if theirs not in weights or weights[theirs].shape != tensor.shape:
                raise ArtifactError(
                    f"{folder} lacks the head that its config.json names: {theirs}."
                )
            tensor.copy_(weights[theirs])
    return TaskObjective(encoder, head).eval()
