"""Pre-training BERT: our training step beside transformers', and a whole pre-training on a GPU.

python benchmarks/pretraining.py cpu [TEXT] [--preset mini] [--length 128] [--rows 32] [--bf16]
python benchmarks/pretraining.py gpu STORE --tokenizer DIR [--preset base] [--length 128]
python benchmarks/pretraining.py train STORE --tokenizer DIR --out DIR [--budget 8m] [--network gpt]
python benchmarks/pretraining.py baseline STORE --tokenizer DIR [--network bert]
python benchmarks/pretraining.py store TEXT... --tokenizer DIR --out STORE [--vocab-size 16384]
python benchmarks/pretraining.py speed STORE --tokenizer DIR [--presets small medium base]
python benchmarks/pretraining.py ablation STORE --tokenizer DIR --tasks GLUE [--preset small]
python benchmarks/pretraining.py long STORE --tokenizer DIR --tasks GLUE [--preset medium]

cpu and gpu time forward, backward, clipping and AdamW on the same batches of real text (hidden
tokens and next sentences, dropout 0.1). transformers' model is given the same head: it too sends
only the hidden tokens through the vocabulary. Tokens that are padding are not counted. Both begin
with the same weights, and the losses are printed beside each other. On a CPU both take two threads
(--threads), each with PyTorch set up as it is there: ours as our training loop does it.
`store` turns text into ids once; `train` pre-trains on them, as `sememe train bert` does;
`baseline` says what counting alone scores on the text that such a training holds out.
`speed` measures the tokens per second of `sememe train bert` by its defaults, and of transformers.
`ablation` pre-trains the masked language model and each ingredient of the recipe `modern` for equal
minutes (or --steps) and fine-tunes them; `long` makes one pre-training by the recipe and scores it.
Both end in time (--stop-after) and go on when they are run again. On a CPU
`--preset tiny --steps 20 --rows 8 --max-train 100 --epochs 1 --sets RTE` shows that they run.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from contextlib import nullcontext
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pretraining_recipes import SETS, VARIANTS, ablation, long, settings_of
from pretraining_speed import speed

VOCAB_SIZE = 30_522
RATE, DECAY, CLIP = 1e-4, 0.01, 1.0
# Without a slow start the first steps of a deep network throw each run somewhere else.
WARMUP = 100


def batches_of(options: argparse.Namespace, num: int) -> tuple[list[Any], int]:
    """The first batches of a text, and the size of its vocabulary."""
    from sememe.examples.masking.batches import MaskedBatches
    from sememe.tokens.subwords.store import SubwordStore, open_or_build_subwords
    from sememe.tokens.subwords.tokenizer import SubwordTokenizer

    if options.tokenizer:
        tokenizer = SubwordTokenizer.load(options.tokenizer)
    else:
        tokenizer = SubwordTokenizer.train(options.text, vocab_size=VOCAB_SIZE)
    if options.task == "gpu":
        store = SubwordStore.open(options.store)
    else:
        store = open_or_build_subwords(options.text, tokenizer)
    source = MaskedBatches(store, tokenizer, length=options.length, batch_size=options.rows)
    return [source.batch(step) for step in range(num)], VOCAB_SIZE


class Ours:
    """Our network and the optimizer of our loop."""

    def __init__(self, config: Any, device: Any, is_compiled: bool, is_half: bool) -> None:
        import torch

        from sememe.models.bert.network import BERTNetwork
        from sememe.nn.blocks import compile_parts
        from sememe.training import TrainingConfig
        from sememe.training.optimizers import make_optimizer

        self.network = BERTNetwork(config).to(device).train()
        self.device, self.is_half, self.num_steps = device, is_half, 0
        if is_half:
            self.network.precision = torch.bfloat16
        if is_compiled:
            compile_parts(self.network)
        training = TrainingConfig(learning_rate=RATE, weight_decay=DECAY)
        self.optimizer = make_optimizer(self.network, training)

    def prepare(self, batch: Any) -> Any:
        """What the network takes."""
        from sememe.nn.rows import bert_inputs
        from sememe.training.device import to_device

        return to_device(bert_inputs(batch), self.device)

    def loss(self, prepared: Any) -> Any:
        """The loss of a batch."""
        return self.network.loss(prepared)[0]

    def settings(self) -> Any:
        """What our loop sets in PyTorch on a CPU."""
        import torch

        from sememe.training.device import reproducible

        if self.device.type != "cpu":
            return nullcontext()
        precision = "bf16" if self.is_half else "fp32"
        return reproducible(self.device, precision, torch.get_num_threads())


class Theirs:
    """transformers' BertForPreTraining with the vocabulary head on hidden tokens alone."""

    def __init__(self, config: Any, device: Any, is_compiled: bool, is_half: bool) -> None:
        import torch
        from transformers import BertConfig, BertForPreTraining

        own = BertConfig(
            vocab_size=config.vocab_size, hidden_size=config.width,
            num_hidden_layers=config.num_layers, num_attention_heads=config.num_heads,
            intermediate_size=config.inner_width, attn_implementation="sdpa",
        )  # fmt: skip
        self.network = BertForPreTraining(own).to(device).train()
        self.device, self.is_half, self.num_steps = device, is_half, 0
        self.forward = torch.compile(self._forward, dynamic=True) if is_compiled else self._forward
        groups = [[p for p in self.network.parameters() if (p.ndim > 1) == is_matrix]
                  for is_matrix in (True, False)]  # fmt: skip
        self.optimizer = torch.optim.AdamW(
            [{"params": groups[0], "weight_decay": DECAY}, {"params": groups[1]}],
            lr=RATE, weight_decay=0.0, betas=(0.9, 0.98), eps=1e-6, fused=True,
        )  # fmt: skip

    def prepare(self, batch: Any) -> Any:
        """Padded rows with their mask."""
        import numpy as np
        import torch

        is_token = np.arange(batch.ids_BT.shape[1]) < batch.lengths_B[:, None]
        arrays = (
            batch.ids_BT, is_token, batch.segments_BT, batch.hidden_N, batch.targets_N,
            np.where(batch.is_next_B < 0, -100, 1 - batch.is_next_B),
        )  # fmt: skip
        return [torch.from_numpy(array.astype(np.int64)).to(self.device) for array in arrays]

    def _forward(self, ids: Any, mask: Any, segments: Any, hidden: Any, targets: Any, nexts: Any):
        from torch.nn import functional

        body = self.network.bert(input_ids=ids, attention_mask=mask, token_type_ids=segments)
        chosen = body.last_hidden_state.flatten(0, 1).index_select(0, hidden)
        logits = self.network.cls.predictions(chosen)
        pairs = self.network.cls.seq_relationship(body.pooler_output)
        return functional.cross_entropy(logits.float(), targets) + functional.cross_entropy(
            pairs.float(), nexts
        )

    def loss(self, prepared: Any) -> Any:
        """The loss of a batch."""
        import torch

        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.is_half):
            return self.forward(*prepared)

    def settings(self) -> Any:
        """PyTorch as it is."""
        return nullcontext()


def step(side: Any, batch: Any) -> Any:
    """One training step, from the arrays of a batch on."""
    import torch

    side.num_steps += 1
    for group in side.optimizer.param_groups:
        group["lr"] = RATE * min(1.0, side.num_steps / WARMUP)
    loss = side.loss(side.prepare(batch))
    loss.backward()
    torch.nn.utils.clip_grad_norm_(side.network.parameters(), CLIP)
    side.optimizer.step()
    side.optimizer.zero_grad(set_to_none=True)
    return loss.detach()


def share_weights(ours: Ours, theirs: Theirs, folder: Path) -> None:
    """Give transformers' network the weights of ours."""
    from transformers import BertForPreTraining

    from sememe.models.huggingface.folder import write_network

    write_network(ours.network, folder)
    start = BertForPreTraining.from_pretrained(folder)
    theirs.network.load_state_dict(start.state_dict())


def timed(side: Any, batches: list[Any], wait: Callable[[], None]) -> tuple[float, list[Any]]:
    """Tokens in a second over some batches, and their losses."""
    with side.settings():
        wait()
        begun = time.perf_counter()
        losses = [step(side, batch) for batch in batches]
        wait()
        seconds = time.perf_counter() - begun
    return sum(batch.num_tokens for batch in batches) / seconds, losses


def compare(options: argparse.Namespace) -> None:
    """Time both, in turns, and print the speeds, their ratio and the losses."""
    import tempfile

    import torch

    from sememe.models.bert.config import BERT_PRESETS
    from sememe.options import changed

    is_gpu = options.task == "gpu"
    device = torch.device("cuda" if is_gpu else "cpu")
    wait = torch.cuda.synchronize if is_gpu else (lambda: None)
    if not is_gpu:
        torch.set_num_threads(options.threads)
    size = options.rounds * options.steps
    batches, vocab_size = batches_of(options, options.warm + size)
    config = changed(BERT_PRESETS[options.preset], "BERT", {"vocab_size": vocab_size})
    torch.manual_seed(1)
    is_half, is_compiled = is_gpu or options.bf16, is_gpu and not options.eager
    sides = {
        "sememe": Ours(config, device, is_compiled, is_half),
        "transformers": Theirs(config, device, is_compiled and not options.eager_peer, is_half),
    }
    with tempfile.TemporaryDirectory() as folder:
        share_weights(sides["sememe"], sides["transformers"], Path(folder))
    losses: dict[str, list[Any]] = {name: [] for name in sides}
    speeds: dict[str, list[float]] = {name: [] for name in sides}
    for name, side in sides.items():
        losses[name] += timed(side, batches[: options.warm], wait)[1]
    for index in range(options.rounds):
        own = batches[options.warm + index * options.steps :][: options.steps]
        # Whoever comes second may find the machine warm, or hot.
        for name, side in list(sides.items())[:: 1 if index % 2 else -1]:
            speed, found = timed(side, own, wait)
            speeds[name].append(speed)
            losses[name] += found
    means = {
        name: [
            statistics.mean(map(float, found[first : first + options.steps]))
            for first in range(options.warm, len(batches), options.steps)
        ]
        for name, found in losses.items()
    }
    for name in sides:
        print(
            f"{name:13} {statistics.median(speeds[name]):12,.0f} tokens/s "
            f"(runs {', '.join(f'{speed:,.0f}' for speed in speeds[name])}), "
            f"losses {', '.join(f'{mean:.4f}' for mean in means[name])}"
        )
    medians = {name: statistics.median(values) for name, values in speeds.items()}
    difference = means["sememe"][-1] / means["transformers"][-1] - 1
    ratios = [ours / theirs for ours, theirs in zip(*speeds.values(), strict=True)]
    print(
        f"ratio {medians['sememe'] / medians['transformers']:.2f} of the medians, "
        f"{statistics.median(ratios):.2f} in the median of the rounds; the last "
        f"{options.steps} of {len(batches)} losses differ by {difference:+.2%}"
    )


def build(options: argparse.Namespace) -> None:
    """Turn text into ids: a tokenizer and a store."""
    from sememe.progress import Reporter
    from sememe.tokens.subwords.store import open_or_build_subwords
    from sememe.tokens.subwords.tokenizer import SubwordTokenizer

    reporter = Reporter()
    if not options.tokenizer.exists():
        trained = SubwordTokenizer.train(
            options.text, vocab_size=options.vocab_size, progress=reporter
        )
        trained.save(options.tokenizer)
    tokenizer = SubwordTokenizer.load(options.tokenizer)
    print(open_or_build_subwords(options.text, tokenizer, path=options.out, progress=reporter))


def model_of(options: argparse.Namespace, **more: Any) -> Any:
    """An untrained model with the options of the command line."""
    import sememe

    more |= settings_of(options.set)
    kind = sememe.GPT if options.network == "gpt" else sememe.BERT
    return kind(options.preset, batch_size=options.rows, length=options.length, **more)


def baseline(options: argparse.Namespace) -> None:
    """What counts of tokens and their neighbors score on the text that `train` holds out."""
    from sememe.models.language.baselines import neighbor_metrics, token_counts, unigram_metrics
    from sememe.tokens.subwords.store import SubwordStore
    from sememe.tokens.subwords.tokenizer import SubwordTokenizer

    model = model_of(options)
    model.tokenizer = SubwordTokenizer.load(options.tokenizer)
    store = SubwordStore.open(options.store).check_tokenizer(model.tokenizer)
    store.validation_share = model.training.validation_share
    source, num = model.source(store, "validation"), model.training.evaluate_batches
    counts = token_counts(store, model.tokenizer.vocab_size)
    metrics = unigram_metrics(counts, source, num)
    metrics |= neighbor_metrics(store, source, model.tokenizer, counts, num)
    print(json.dumps({name: round(value, 4) for name, value in metrics.items()}))


def train(options: argparse.Namespace) -> None:
    """Pre-train on a store, as the command does; the last figures as JSON."""
    from sememe.progress import Reporter
    from sememe.tokens.subwords.store import SubwordStore

    model = model_of(options, budget=options.budget)
    if find_spec("matplotlib") is None:  # a machine for training may lack what draws
        model._draw = lambda path: None
    store = SubwordStore.open(options.store)
    reporter = Reporter(line_s=20)
    model.fit(
        store, tokenizer=options.tokenizer, out=options.out, overwrite=True, progress=reporter
    )
    for record in model.history:
        if "validation_loss" in record:
            print(json.dumps({name: round(value, 4) for name, value in record.items()}))
    print(json.dumps(model.history.last()))


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    tasks = parser.add_subparsers(dest="task", required=True)
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--tokenizer", type=Path)
    shared.add_argument("--length", type=int, default=128)
    shared.add_argument("--warm", type=int, default=3, help="steps before the clock runs")
    shared.add_argument("--rounds", type=int, default=5)
    shared.add_argument("--steps", type=int, default=6, help="steps of a round")
    shared.add_argument("--eager", action="store_true", help="gpu: compile neither side")
    shared.add_argument("--eager-peer", action="store_true", help="gpu: compile ours alone")
    cpu = tasks.add_parser("cpu", parents=[shared])
    cpu.add_argument("text", type=Path, nargs="?")
    cpu.add_argument("--preset", default="mini")
    cpu.add_argument("--rows", type=int, default=32)
    cpu.add_argument("--threads", type=int, default=2)
    cpu.add_argument("--bf16", action="store_true", help="both sides in bfloat16")
    gpu = tasks.add_parser("gpu", parents=[shared])
    gpu.add_argument("store", type=Path)
    gpu.add_argument("--preset", default="base")
    gpu.add_argument("--rows", type=int, default=512)
    store = tasks.add_parser("store")
    store.add_argument("text", nargs="+")
    store.add_argument("--tokenizer", type=Path, required=True)
    store.add_argument("--out", type=Path, required=True)
    store.add_argument("--vocab-size", type=int, default=16_384)
    model = argparse.ArgumentParser(add_help=False)
    model.add_argument("store", type=Path)
    model.add_argument("--tokenizer", type=Path, required=True)
    model.add_argument("--network", choices=("bert", "gpt"), default="bert")
    model.add_argument("--preset", default="medium")
    model.add_argument("--rows", type=int, default=512, help="rows of a step; 0: the preset's")
    model.add_argument("--length", type=int, default=128)
    model.add_argument("--set", nargs="*", default=[], help="further options: unit=word …")
    own = tasks.add_parser("train", parents=[model])
    own.add_argument("--out", type=Path, required=True)
    own.add_argument("--budget", default="8m")
    tasks.add_parser("baseline", parents=[model])
    recipes = argparse.ArgumentParser(add_help=False)
    recipes.add_argument("store", type=Path)
    recipes.add_argument("--tokenizer", type=Path, required=True)
    recipes.add_argument("--tasks", type=Path, required=True, help="folder of GLUE")
    recipes.add_argument("--preset", default="small")
    recipes.add_argument("--rows", type=int, default=0, help="rows of a step; 0: by the device")
    recipes.add_argument("--length", type=int, default=128)
    recipes.add_argument("--budget", default="3m")
    recipes.add_argument("--steps", type=int, default=0, help="instead of a budget")
    recipes.add_argument("--kept", type=Path, default=Path("kept"), help="folder of the models")
    recipes.add_argument("--out", type=Path, default=Path("results"))
    recipes.add_argument("--max-train", type=int, default=10_000)
    recipes.add_argument("--epochs", type=float, default=0.0, help="of fine-tuning; 0: the usual")
    recipes.add_argument("--task-seeds", type=int, default=1)
    recipes.add_argument("--stop-after", type=float, default=8.5, help="minutes of this command")
    recipes.add_argument("--device", default="auto")
    recipes.add_argument("--workers", type=int, default=0)
    recipes.add_argument("--set", nargs="*", default=[], help="further options: width=64 …")
    own = tasks.add_parser("speed")
    own.add_argument("store", type=Path)
    own.add_argument("--tokenizer", type=Path, required=True)
    own.add_argument("--presets", nargs="*", default=["small", "medium", "base"])
    own.add_argument("--lengths", nargs="*", type=int, default=[128, 512])
    own.add_argument("--compile", nargs="*", default=["auto"], help="our ways to compile")
    own.add_argument("--recipe", default="paper")
    own.add_argument("--steps", type=int, default=100)
    own.add_argument("--rows", type=int, default=0, help="rows of a step; 0: by the device")
    own.add_argument("--peak", type=float, default=790.0, help="TFLOP/s of the chip")
    own.add_argument("--alone", action="store_true", help="without transformers")
    own.add_argument("--device", default="auto")
    own.add_argument("--out", type=Path, default=Path("results"))
    own.add_argument("--stop-after", type=float, default=8.0, help="minutes, then no new line")
    own = tasks.add_parser("ablation", parents=[recipes])
    own.add_argument("--variants", nargs="*", choices=tuple(VARIANTS))
    own.add_argument("--seeds", type=int, default=1)
    own.add_argument("--sets", nargs="*", default=list(SETS))
    own = tasks.add_parser("long", parents=[recipes])
    own.add_argument("--variant", choices=tuple(VARIANTS), default="modern")
    own.add_argument("--seed", type=int, default=1)
    own.add_argument("--sets", nargs="*", default=[*SETS, "MRPC", "STS-B"])
    options = parser.parse_args()
    tasks_by_name: dict[str, Callable[[argparse.Namespace], None]] = {
        "cpu": compare, "gpu": compare, "store": build, "train": train, "baseline": baseline,
        "speed": speed, "ablation": ablation, "long": long,
    }  # fmt: skip
    tasks_by_name[options.task](options)


if __name__ == "__main__":
    main()
