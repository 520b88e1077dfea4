"""Fine-tuning beside a plain loop of transformers: scores over seeds, and examples a second.

python benchmarks/finetuning.py score TASK MODEL TRAIN DEV [--seeds 3] [--epochs 3] [options]
python benchmarks/finetuning.py speed TASK MODEL TRAIN [--steps 300] [options]

TASK is classify, pairs, regress, choose, tag or answer; MODEL the folder of a BERT, TRAIN and DEV
files as `sememe finetune` takes them. Both sides get the same tokens and the same settings: AdamW
without decay of biases and norms, a rise over a tenth of the steps and a straight fall, gradients
of length 1 at most. The peer pads each batch to its longest row, sorts blocks of 50 batches by
length as its Trainer does, prepares batches in four processes, and on a GPU computes in bf16 with
PyTorch's fused attention and a fused optimizer; its predictions are scored by our scorer.
`speed` takes the time of --steps steps after some first ones; reading the rows does not count.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import torch

from sememe.tasks.folder import task_class
from sememe.tasks.items import Item
from sememe.training.precision import choose_device

PEERS = {
    "classify": "AutoModelForSequenceClassification",
    "pairs": "AutoModelForSequenceClassification",
    "regress": "AutoModelForSequenceClassification",
    "choose": "AutoModelForMultipleChoice",
    "tag": "AutoModelForTokenClassification",
    "answer": "AutoModelForQuestionAnswering",
}
WARM_STEPS = 30
MEGABATCH = 50


def new_task(options: argparse.Namespace, **more: Any) -> Any:
    """Our task with the options of the command line."""
    settings = {
        "batch_size": options.batch_size, "learning_rate": options.learning_rate,
        "length": options.length, "device": options.device, "compile": options.compile,
        "epsilon": 1e-8,
    }  # fmt: skip
    return task_class(options.task)(options.model, **settings | more)


class Collate:
    """Pads items to the longest of them, as `transformers` takes them."""

    def __init__(self, task: str) -> None:
        self.task = task

    def __call__(self, items: list[Item]) -> dict[str, torch.Tensor]:
        """The tensors of a batch."""
        sequences = [sequence for item in items for sequence in item.sequences]
        width = max(len(sequence.ids_T) for sequence in sequences)
        arrays = np.zeros((3, len(sequences), width), np.int64)
        for row, (ids_T, segments_T) in enumerate(sequences):
            arrays[0, row, : len(ids_T)] = ids_T
            arrays[1, row, : len(ids_T)] = segments_T
            arrays[2, row, : len(ids_T)] = 1
        names = ("input_ids", "token_type_ids", "attention_mask")
        batch = {name: torch.from_numpy(x) for name, x in zip(names, arrays, strict=True)}
        if self.task == "choose":
            batch = {name: x.view(len(items), -1, width) for name, x in batch.items()}
        return batch | self._targets(items, width)

    def _targets(self, items: list[Item], width: int) -> dict[str, torch.Tensor]:
        if any(item.target is None for item in items):
            return {}
        targets: list[Any] = [item.target for item in items]
        if self.task == "tag":
            rows = [np.pad(x, (0, width - len(x)), constant_values=-100) for x in targets]
            return {"labels": torch.from_numpy(np.stack(rows))}
        stacked = torch.from_numpy(np.stack(targets))
        if self.task == "answer":
            return {"start_positions": stacked[:, 0], "end_positions": stacked[:, 1]}
        return {"labels": stacked}


class ByLength:
    """The order of transformers' Trainer with group_by_length: sorted blocks of 50 batches."""

    def __init__(self, items: list[Item], batch_size: int, seed: int) -> None:
        self.lengths = np.array([item.num_tokens for item in items])
        self.batch_size, self.random = batch_size, np.random.default_rng(seed)

    def __len__(self) -> int:
        return -(-len(self.lengths) // self.batch_size)

    def __iter__(self) -> Iterator[list[int]]:
        order = self.random.permutation(len(self.lengths))
        size = MEGABATCH * self.batch_size
        for first in range(0, len(order), size):
            block = order[first : first + size]
            block = block[np.argsort(-self.lengths[block], kind="stable")]
            for start in range(0, len(block), self.batch_size):
                yield block[start : start + self.batch_size].tolist()


class Peer:
    """A model of `transformers` with the loop that its users write."""

    def __init__(self, options: argparse.Namespace, task: Any, seed: int) -> None:
        import transformers

        transformers.set_seed(seed)
        self.options, self.device = options, choose_device(options.device)
        number = {"regress": 1}.get(options.task, len(task.labels))
        more = {} if options.task in ("choose", "answer") else {"num_labels": number}
        cls = getattr(transformers, PEERS[options.task])
        model = cls.from_pretrained(options.model, attn_implementation="sdpa", **more)
        self.model = model.to(self.device).train()
        plain = ("bias", "LayerNorm.weight")
        groups: list[list[Any]] = [[], []]
        for name, parameter in model.named_parameters():
            groups[name.endswith(plain)].append(parameter)
        self.optimizer = torch.optim.AdamW(
            [{"params": groups[0], "weight_decay": 0.01}, {"params": groups[1], "weight_decay": 0}],
            lr=options.learning_rate, betas=(0.9, 0.999), eps=1e-8,
            fused=self.device.type == "cuda",
        )  # fmt: skip

    def _precision(self) -> Any:
        if self.device.type != "cuda":
            return nullcontext()
        return torch.autocast("cuda", torch.bfloat16)

    def _moved(self, batch: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        return {name: x.to(self.device, non_blocking=True) for name, x in batch.items()}

    def train(self, items: list[Item], num_steps: int, seed: int) -> tuple[float, int]:
        """Do so many steps; seconds and examples of those after the first ones."""
        from transformers import get_linear_schedule_with_warmup

        loader = torch.utils.data.DataLoader(
            items, batch_sampler=ByLength(items, self.options.batch_size, seed),
            collate_fn=Collate(self.options.task), num_workers=self.options.loaders,
            persistent_workers=self.options.loaders > 0, pin_memory=self.device.type == "cuda",
        )  # type: ignore[arg-type]  # fmt: skip
        schedule = get_linear_schedule_with_warmup(
            self.optimizer, round(0.1 * num_steps), num_steps
        )
        step, num_examples, begun_s = 0, 0, time.perf_counter()
        while step < num_steps:
            for batch in loader:
                if step == min(WARM_STEPS, num_steps // 2):
                    self._wait()
                    num_examples, begun_s = 0, time.perf_counter()
                with self._precision():
                    loss = self.model(**self._moved(batch)).loss
                loss.backward()
                torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
                self.optimizer.step()
                schedule.step()
                self.optimizer.zero_grad()
                num_examples += len(next(iter(batch.values())))
                step += 1
                if step == num_steps:
                    break
        self._wait()
        return time.perf_counter() - begun_s, num_examples

    def _wait(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize()

    @torch.no_grad()
    def outputs(self, items: list[Item]) -> list[np.ndarray]:
        """What the model says of each item, as our heads say it."""
        self.model.eval()
        collate, found = Collate(self.options.task), []
        for first in range(0, len(items), self.options.batch_size):
            own = items[first : first + self.options.batch_size]
            batch = self._moved(
                {n: x for n, x in collate(own).items() if "_mask" in n or "_ids" in n}
            )
            with self._precision():
                said = self.model(**batch)
            if self.options.task == "answer":
                logits = torch.stack([said.start_logits, said.end_logits], -1)
            else:
                logits = said.logits
            for item, output in zip(own, logits.float().cpu().numpy(), strict=True):
                is_by_token = self.options.task in ("tag", "answer")
                found.append(output[: item.num_tokens] if is_by_token else output)
        self.model.train()
        return found


def encoded(options: argparse.Namespace, seed: int) -> tuple[Any, list[Item]]:
    """A task that has seen one step, and the items that it makes of the training rows."""
    task = new_task(options, steps=1, seed=seed).fit(options.train, dev=False)
    return task, task.encode(task.read(options.train, labelled=True))


def score(options: argparse.Namespace) -> dict[str, Any]:
    """The dev figure of both over several seeds."""
    ours, theirs = [], []
    for seed in range(1, options.seeds + 1):
        task = new_task(options, epochs=options.epochs, keep_best=False, seed=seed)
        task.fit(options.train, dev=options.dev, progress=not options.quiet)
        ours.append(task.scores.value)
        items = task.encode(task.read(options.train, labelled=True))
        peer = Peer(options, task, seed)
        peer.train(items, int(np.ceil(options.epochs * -(-len(items) // options.batch_size))), seed)
        rows = task.read(options.dev, labelled=True)
        dev_items = task.encode(rows)
        outputs = [task.activate(output) for output in peer.outputs(dev_items)]
        theirs.append(task.scored(rows, task.decoded(rows, dev_items, outputs)).value)
        print(f"seed {seed}: ours {ours[-1]:.4f}, transformers {theirs[-1]:.4f}", flush=True)
    return {
        "metric": task.scores.main_metric, "ours": ours, "transformers": theirs,
        "means": [statistics.mean(ours), statistics.mean(theirs)],
        "deviations": [statistics.stdev(x) if len(x) > 1 else None for x in (ours, theirs)],
    }  # fmt: skip


def speed(options: argparse.Namespace) -> dict[str, Any]:
    """Examples a second of both; ours from the difference of a long and a short run."""
    task, items = encoded(options, 1)
    peer = Peer(options, task, 1)
    seconds, num_examples = peer.train(items, options.steps + WARM_STEPS, 1)
    theirs = num_examples / seconds
    del peer
    times = []
    for num_steps in (WARM_STEPS, options.steps + WARM_STEPS):
        begun_s = time.perf_counter()
        new_task(options, steps=num_steps, checkpoint_minutes=0).fit(options.train, dev=False)
        times.append(time.perf_counter() - begun_s)
    ours = options.steps * options.batch_size / (times[1] - times[0])
    return {"ours": ours, "transformers": theirs, "ratio": ours / theirs}


def main() -> None:
    """Read the command line and print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("score", "speed"))
    parser.add_argument("task", choices=tuple(PEERS))
    parser.add_argument("model", type=Path)
    parser.add_argument("train")
    parser.add_argument("dev", nargs="?")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=float, default=3.0)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--learning-rate", type=float, default=5e-5)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--compile", default="no", choices=("yes", "no"))
    parser.add_argument("--loaders", type=int, default=4)
    parser.add_argument("--quiet", action="store_true")
    options = parser.parse_args()
    if options.what == "score" and not options.dev:
        parser.error("score needs DEV")
    print(json.dumps(score(options) if options.what == "score" else speed(options), indent=2))


if __name__ == "__main__":
    main()
