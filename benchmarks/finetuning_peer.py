"""The peer of benchmarks/finetuning.py: a plain loop of `transformers`, as its examples teach it.

Rows come in, cut into sub-words by its own tokenizer; losses, speed and what it says of other rows
go out. Dynamic padding, rows grouped by length, SDPA, and bfloat16 by autocast on a GPU. It shares
with ours the rows and the hyper-parameters. B rows, T positions of the longest one.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import transformers
from finetuning_features import IGNORED, Feature, Reader
from torch import Tensor
from transformers.trainer_pt_utils import get_length_grouped_indices

transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()

NUM_BEST = 20  # starts and ends that are tried with each other, as in its example for answers
_CLASSES = {
    "classify": transformers.AutoModelForSequenceClassification,
    "pairs": transformers.AutoModelForSequenceClassification,
    "regress": transformers.AutoModelForSequenceClassification,
    "tag": transformers.AutoModelForTokenClassification,
    "answer": transformers.AutoModelForQuestionAnswering,
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Hyper:
    """The hyper-parameters that both sides share, by our names for them."""

    length: int
    batch_size: int
    learning_rate: float
    epochs: float = 3.0
    steps: int = 0  # instead of epochs
    warmup: float = 0.1
    weight_decay: float = 0.01
    beta2: float = 0.999
    epsilon: float = 1e-6
    clip: float = 1.0

    def num_steps(self, num_features: int) -> int:
        """Steps of a training."""
        return self.steps or math.ceil(self.epochs * -(-num_features // self.batch_size))

    def warm_steps(self, num_steps: int) -> int:
        """Steps before the clock runs."""
        return min(50, num_steps // 4)


class Trained(NamedTuple):
    """What a training gave."""

    losses: list[float]
    rows_per_s: float
    num_steps: int


# ---- the model --------------------------------------------------------------------------------


class Peer:
    """A model of `transformers` with the head of a task, and the loop that trains it."""

    def __init__(
        self, reader: Reader, folder: Path, hyper: Hyper, device: torch.device,
        *, seed: int = 1, is_exact: bool = False,
    ) -> None:  # fmt: skip
        """Open a folder; `is_exact` leaves dropout and bfloat16 out."""
        self.reader, self.hyper, self.device, self.seed = reader, hyper, device, seed
        self.is_half = device.type == "cuda" and not is_exact
        more: dict[str, Any] = {}
        if reader.labels:
            more["num_labels"] = len(reader.labels)
        elif reader.kind == "regress":
            more |= {"num_labels": 1, "problem_type": "regression"}
        if is_exact:
            more |= {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
        torch.manual_seed(seed)  # draws the head
        self.network = _CLASSES[reader.kind].from_pretrained(
            folder, attn_implementation="sdpa", dtype=torch.float32, **more
        )
        self.network.to(device)

    def batches(self, features: Sequence[Feature]) -> Iterator[list[int]]:
        """The batches of a training, each pass in an order of its own, like lengths together."""
        generator = torch.Generator().manual_seed(self.seed)
        lengths, size = [len(feature.ids) for feature in features], self.hyper.batch_size
        while True:
            order = get_length_grouped_indices(lengths, size, generator=generator)
            yield from (order[first : first + size] for first in range(0, len(order), size))

    def train(self, features: Sequence[Feature], batches: Iterable[Sequence[int]]) -> Trained:
        """Train on these batches until the steps are done."""
        hyper = self.hyper
        num_steps = hyper.num_steps(len(features))
        warm = hyper.warm_steps(num_steps)
        optimizer = self._optimizer()
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, _share(num_steps, hyper.warmup))
        self.network.train()
        losses: list[Tensor] = []
        num_rows, begun_s = 0, time.perf_counter()
        for step, batch in zip(range(num_steps), batches, strict=False):
            if step == warm:
                self._wait()
                num_rows, begun_s = 0, time.perf_counter()
            inputs = self._collated([features[index] for index in batch], has_targets=True)
            with self._precision():
                loss = self.network(**inputs).loss
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.network.parameters(), hyper.clip)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
            losses.append(loss.detach())
            num_rows += len(batch)
        self._wait()
        seconds = time.perf_counter() - begun_s
        return Trained(torch.stack(losses).tolist(), num_rows / seconds, num_steps)

    def _optimizer(self) -> torch.optim.Optimizer:
        """AdamW; biases and norms do not decay."""
        hyper = self.hyper
        kept: dict[bool, list[Any]] = {True: [], False: []}
        for name, parameter in self.network.named_parameters():
            kept["bias" not in name and "LayerNorm" not in name].append(parameter)
        return torch.optim.AdamW(
            [
                {"params": kept[True], "weight_decay": hyper.weight_decay},
                {"params": kept[False], "weight_decay": 0.0},
            ],
            lr=hyper.learning_rate, betas=(0.9, hyper.beta2), eps=hyper.epsilon, fused=True,
        )  # fmt: skip

    def _wait(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize()

    def _precision(self) -> Any:
        if not self.is_half:
            return nullcontext()
        return torch.autocast(self.device.type, torch.bfloat16)

    def _collated(self, features: Sequence[Feature], *, has_targets: bool) -> dict[str, Tensor]:
        """A batch padded to its longest row; by NumPy, which is faster than its own collator."""
        width = max(len(feature.ids) for feature in features)
        ids_BT, segments_BT, mask_BT = np.zeros((3, len(features), width), np.int64)
        for row, feature in enumerate(features):
            size = len(feature.ids)
            ids_BT[row, :size], segments_BT[row, :size] = feature.ids, feature.segments
            mask_BT[row, :size] = 1
        ids_BT[mask_BT == 0] = self.reader.tokenizer.pad_token_id
        arrays = {"input_ids": ids_BT, "token_type_ids": segments_BT, "attention_mask": mask_BT}
        if has_targets:
            arrays |= self._targets([feature.target for feature in features], width)
        return {name: self._moved(array) for name, array in arrays.items()}

    def _targets(self, targets: list[Any], width: int) -> dict[str, np.ndarray]:
        if self.reader.kind == "answer":
            pairs_B2 = np.array(targets)
            return {"start_positions": pairs_B2[:, 0], "end_positions": pairs_B2[:, 1]}
        if self.reader.kind == "tag":
            labels_BT = np.full((len(targets), width), IGNORED)
            for row, target in enumerate(targets):
                labels_BT[row, : len(target)] = target
            return {"labels": labels_BT}
        return {"labels": np.array(targets, np.float32 if self.reader.kind == "regress" else None)}

    def _moved(self, array: np.ndarray) -> Tensor:
        tensor = torch.from_numpy(array)
        if self.device.type == "cpu":
            return tensor
        return tensor.pin_memory().to(self.device, non_blocking=True)

    # ---- predictions ------------------------------------------------------------------------

    def predict(self, rows: Sequence[Any]) -> list[Any]:
        """What it says of each row: a label, a score, tags, or the text of an answer."""
        features = self.reader(rows)
        outputs = self._outputs(features)
        if self.reader.kind == "regress":
            return [float(output[0]) for output in outputs]
        if self.reader.kind == "tag":
            return [
                self._tags(rows[feature.row_index], feature, output)
                for feature, output in zip(features, outputs, strict=True)
            ]
        if self.reader.kind == "answer":
            return _answers(rows, features, outputs)
        return [self.reader.labels[int(output.argmax())] for output in outputs]

    @torch.no_grad()
    def _outputs(self, features: Sequence[Feature]) -> list[np.ndarray]:
        self.network.eval()
        order = sorted(range(len(features)), key=lambda index: len(features[index].ids))
        found: list[Any] = [None] * len(features)
        for first in range(0, len(order), 128):
            own = order[first : first + 128]
            with self._precision():
                said = self.network(**self._collated([features[i] for i in own], has_targets=False))
            if self.reader.kind == "answer":
                logits = torch.stack([said.start_logits, said.end_logits], -1)
            else:
                logits = said.logits
            for index, output in zip(own, logits.float().cpu().numpy(), strict=True):
                found[index] = output
        return found

    def _tags(self, row: Any, feature: Feature, output: np.ndarray) -> list[str]:
        tags = ["O"] * len(row.words)
        for word, place in feature.extra:
            tags[word] = self.reader.labels[int(output[place].argmax())]
        return tags


def _share(num_steps: int, warmup: float) -> Any:
    """Share of the rate at a step: a rise and a fall in straight lines.

    `get_linear_schedule_with_warmup` is one step behind in its rise: its first step has rate 0.
    """
    rising = round(warmup * num_steps)

    def share(step: int) -> float:
        if step < rising:
            return (step + 1) / rising
        return max(0.0, (num_steps - step) / max(1, num_steps - rising))

    return share


def _answers(
    rows: Sequence[Any], features: Sequence[Feature], outputs: Sequence[np.ndarray]
) -> list[str]:
    """The span with the highest score of start and end together, over all windows of a row."""
    best: list[tuple[float, str]] = [(-np.inf, "")] * len(rows)
    for feature, output in zip(features, outputs, strict=True):
        offset, start, end, places = feature.extra
        own = output[start + offset : end + offset]
        likely = np.argsort(-own, axis=0)[:NUM_BEST]
        for first in likely[:, 0]:
            for last in likely[:, 1]:
                score = own[first, 0] + own[last, 1]
                if first <= last < first + 30 and score > best[feature.row_index][0]:
                    begin, stop = places[start + first][0], places[start + last][1]
                    best[feature.row_index] = score, rows[feature.row_index].context[begin:stop]
    return [text for _, text in best]
