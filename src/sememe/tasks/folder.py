"""The folder of a task: that of its network, with the head, and what sememe.json says."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from sememe.errors import ArtifactError, OptionError
from sememe.networks.awd_encoder import AWDEncoder
from sememe.networks.heads import Head, ScoreHead
from sememe.networks.interchange.heads import peer_of
from sememe.networks.interchange.huggingface import (
    check_vocabulary,
    kind_of,
    load_network,
    manifest_of,
    write_network,
)  # fmt: skip
from sememe.networks.interchange.weights import Weights
from sememe.networks.words import WordEncoder
from sememe.progress import History
from sememe.storage.folder import (
    MANIFEST,
    check_format,
    check_replaceable,
    manifest_in,
    write_folder,
    write_json,
)
from sememe.storage.tensors import read_tensors, write_tensors
from sememe.tasks import ulmfit
from sememe.tasks.elmo import ELMO
from sememe.tasks.encoding import SubwordCoder
from sememe.tasks.objective import TaskObjective
from sememe.tasks.opening import new_encoder
from sememe.tasks.scores import Scores
from sememe.tasks.ulmfit import ULMFiTCoder
from sememe.tasks.word_folder import KIND as WORD_VECTORS
from sememe.tasks.word_folder import (
    described_words,
    load_coder,
    load_learned,
    write_learned,
    write_words,
)  # fmt: skip
from sememe.tasks.words import WordCoder
from sememe.tokens.subwords import SubwordTokenizer
from sememe.training.weights import take_weights, weights_of

if TYPE_CHECKING:
    from sememe.tasks.task import Task

FORMAT = 1
HISTORY, HEAD, MEMBER = "history.json", "head.safetensors", "member-{}"

# The tasks by the name that sememe.json has of them.
HOMES = {
    "classify": ("sememe.tasks.classify", "Classify"),
    "pairs": ("sememe.tasks.pairs", "Pairs"),
    "regress": ("sememe.tasks.regress", "Regress"),
    "choose": ("sememe.tasks.choose", "Choose"),
    "tag": ("sememe.tasks.tag", "Tag"),
    "answer": ("sememe.tasks.answer", "Answer"),
}


def task_class(name: str) -> type[Task]:
    """The class of a task by its name."""
    module, attribute = HOMES[name]
    return getattr(import_module(module), attribute)


def save(task: Task, folder: Path) -> None:
    """Write the folder of a task, atomically."""
    check_replaceable(folder, task.kind)
    if task.objective is None:
        raise OptionError("This task has nothing to save yet: call fit first.")
    with write_folder(folder) as scratch:
        write_task(task, scratch)


def write_task(task: Task, folder: Path) -> None:
    """Fill a folder that the caller makes atomic; further members of an ensemble lie inside."""
    assert task.objective is not None
    _write_objective(task, task.objective, folder)
    for number, objective in enumerate(task.others, 2):
        member = folder / MEMBER.format(number)
        member.mkdir()
        _write_objective(task, objective, member)
    if isinstance(task.coder, WordCoder):
        write_words(task, folder)
    elif isinstance(task.coder, ULMFiTCoder):
        ulmfit.write_words(task.coder, folder)
    else:
        coder = _subword_coder(task)
        coder.tokenizer.save(folder, max_length=task.objective.encoder.max_length)
    task.history.save(folder / HISTORY)
    write_json(folder / MANIFEST, _manifest(task))


def _write_objective(task: Task, objective: TaskObjective, folder: Path) -> None:
    encoder, head = objective.encoder, objective.head
    if isinstance(encoder, WordEncoder):
        write_learned(objective, folder)
        return
    if isinstance(encoder, AWDEncoder):
        ulmfit.write_weights(objective, folder)
        return
    peer = peer_of(encoder, head)
    config, tensors = _labels_config(task, head, _subword_coder(task)), {}
    if peer is not None:
        config["architectures"] = [peer.architecture]
        tensors = _linear(head, peer.prefix)
    else:
        extras = {name: x.float().cpu().numpy() for name, x in _extras(objective).items()}
        write_tensors(folder / HEAD, extras)
    write_network(
        encoder.network, folder, without=_untaught(objective), config=config, tensors=tensors
    )


def _untaught(objective: TaskObjective) -> list[str]:
    """The heads of a network that a task did not teach: in the way of those who open the folder."""
    if objective.head.takes == "tokens" or not objective.encoder.is_standard:
        return ["masked head", "next head", "pooler"]
    return ["masked head", "next head"]


def _subword_coder(task: Task) -> SubwordCoder:
    assert isinstance(task.coder, SubwordCoder)
    return task.coder


def _labels_config(task: Task, head: Head, coder: SubwordCoder) -> dict[str, Any]:
    """What `transformers` wants to know of the labels."""
    config: dict[str, Any] = {}
    if task.labels:
        config["id2label"] = {str(index): label for index, label in enumerate(task.labels)}
        config["label2id"] = {label: index for index, label in enumerate(task.labels)}
    elif isinstance(head, ScoreHead):
        config["id2label"], config["label2id"] = {"0": "score"}, {"score": 0}
    if isinstance(head, ScoreHead):
        config["problem_type"] = "regression"
    if coder.kind == "gpt":
        config["pad_token_id"] = coder.tokenizer.pad_id
    return config


def _linear(head: Head, prefix: str) -> dict[str, Tensor]:
    return {f"{prefix}.{name}": x.detach() for name, x in head.linear.named_parameters()}


def _extras(objective: TaskObjective) -> dict[str, Tensor]:
    """Every weight that is not the network's."""
    own = weights_of(objective)
    return {name: x for name, x in own.items() if not name.startswith("encoder.network.")}


def _manifest(task: Task) -> dict[str, Any]:
    return {
        **_described(task),
        "kind": task.kind,
        "format": FORMAT,
        "task": task.name,
        "labels": task.labels,
        "learned": task.learned,
        "members": len(task.others) + 1,
        "options": task.config.to_dict(),
        "precision": task.precision,
        "scores": None if task.scores is None else task.scores.to_dict(),
        "trials": task.trials,
        "figures": task.history.last(),
        "plan": task.plan,
    }


def _described(task: Task) -> dict[str, Any]:
    """What there is to say of the network under the head."""
    assert task.objective is not None
    if isinstance(task.coder, WordCoder):
        return described_words(task)
    if isinstance(task.coder, ULMFiTCoder):
        return ulmfit.described_ulmfit(task, task.coder)
    network = task.objective.encoder.network
    return {
        **manifest_of(network),
        "network": kind_of(network),
        "untrained": sorted({*network.untrained, *_untaught(task.objective)}),
    }


def load(folder: Path) -> Task:
    """Open the folder of a task of any kind."""
    manifest = read_manifest(folder)
    try:
        cls = task_class(manifest["task"])
        # Where it learned says nothing of where it will be asked.
        options = manifest["options"] | {"device": "auto", "precision": "auto", "workers": 0}
        task = cls(folder, labels=manifest["labels"] or None, **options)
        task.scores = Scores.from_dict(manifest["scores"]) if manifest["scores"] else None
        task.learned, task.trials = manifest["learned"], manifest["trials"]
        num_members = int(manifest["members"])
    except (KeyError, TypeError, ValueError, OptionError) as error:
        raise ArtifactError(f"{folder / MANIFEST} cannot be used: {error}.") from error
    places = [folder, *(folder / MEMBER.format(number) for number in range(2, num_members + 1))]
    if manifest.get("network") in (WORD_VECTORS, ELMO):
        _load_words(task, places, manifest)
    elif manifest.get("network") == ulmfit.KIND:
        ulmfit.load_ulmfit(task, places, manifest)
    else:
        _load_networks(task, places)
    task.history = History.load(folder / HISTORY)
    task.plan, task.precision = manifest.get("plan", {}), manifest.get("precision", "")
    return task


def _load_words(task: Task, places: list[Path], manifest: dict[str, Any]) -> None:
    coder = task.coder = load_coder(task, places[0], manifest)
    num_words = len(coder.lexicon)
    task.objective, *task.others = [
        load_learned(task, place, coder, num_words, manifest.get("reads")) for place in places
    ]


def _load_networks(task: Task, places: list[Path]) -> None:
    task.objective, *task.others = [_load_objective(task, place) for place in places]
    network = task.objective.encoder.network
    tokenizer = SubwordTokenizer.load(places[0])
    check_vocabulary(network.config, tokenizer, str(places[0]))
    task.coder = SubwordCoder(tokenizer, kind_of(network), task.config.length)


def _load_objective(task: Task, folder: Path) -> TaskObjective:
    network = load_network(folder)
    encoder = new_encoder(network, task.config)
    head = task.make_head(encoder.width, dropout=encoder.dropout, has_bias=encoder.has_bias)
    objective = TaskObjective(encoder, head, lm_weight=task.config.lm_weight).eval()
    _fill(objective, folder)
    return objective


@torch.no_grad()
def _fill(objective: TaskObjective, folder: Path) -> None:
    peer = peer_of(objective.encoder, objective.head)
    if peer is None:
        kept = {n: torch.from_numpy(np.array(x)) for n, x in read_tensors(folder / HEAD).items()}
        network = {n: x for n, x in weights_of(objective).items() if n not in _extras(objective)}
        take_weights(objective, {**network, **kept}, str(folder / HEAD))
        return
    weights = Weights(folder)
    for name, tensor in _linear(objective.head, peer.prefix).items():
        if name not in weights or weights[name].shape != tensor.shape:
            raise ArtifactError(f"{folder} lacks the head of its task: {name}.")
        tensor.copy_(weights[name])


def read_manifest(folder: Path) -> dict[str, Any]:
    """What sememe.json says of a task; a folder of another kind is refused."""
    if not folder.is_dir():
        raise ArtifactError(f"There is no task at {folder}.")
    manifest = manifest_in(folder)
    if manifest.get("kind") != "task":
        raise ArtifactError(f"{folder} is not a task that was fine-tuned here.")
    check_format(folder, manifest, FORMAT)
    if manifest.get("task") not in HOMES:
        raise ArtifactError(f"{folder} is a task of kind {manifest.get('task')!r}, unknown here.")
    return manifest
