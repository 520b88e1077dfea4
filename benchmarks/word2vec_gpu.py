"""Word vectors on a GPU: speed, quality, robustness and resuming, beside the CPU of the machine.

    python benchmarks/word2vec_gpu.py smoke                    (a minute: everything, small)
    python benchmarks/word2vec_gpu.py text part1.txt.xz        (then again with part2.txt.xz)
    python benchmarks/word2vec_gpu.py store
    python benchmarks/word2vec_gpu.py kernels|speed|robustness|resume|deterministic|tune|billion
    python benchmarks/word2vec_gpu.py quality --words DIR
    python benchmarks/word2vec_gpu.py table

`text` joins texts in KEPT/text.txt, `store` makes ids of it. The others do one job after the other
and write each result to OUT/NAME.json at once; they start no job after --minutes, and the same
command does what is missing. A job that fails is written to OUT/NAME.failed.json, and the next one
starts; --again tries it once more. `kernels` compares the Triton kernels with PyTorch's updates,
`tune` tries sizes of tiles, blocks and launches, `billion` trains one epoch on --num-words words of
raw text and gives the share of each stage. `--devices cpu` or `cuda` does one side of `speed`,
`quality` and `robustness`; results of several machines are put into one OUT.

Minutes to expect on an H200 with 16 cores, for 40 M words: store 1, kernels 1, speed 5,
deterministic 1, resume 3, robustness --limit 2000000 --devices cuda 3, quality --devices cuda 3,
billion 3, tune 4.

--emulate lets PyTorch on the CPU, or Triton's interpreter (with TRITON_INTERPRET=1), take the place
of the GPU, with small --limit. `smoke` does every stage on a text of its own:

    python benchmarks/word2vec_gpu.py smoke --emulate pytorch
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import lzma
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

import sememe
from sememe.errors import DivergedError, OptionError
from sememe.evaluation import evaluate_words
from sememe.models.static import gpu
from sememe.tokens.caching import open_or_build

MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "skip-gram": ("Word2Vec", {}),
    "CBOW": ("Word2Vec", {"architecture": "cbow"}),
    "fastText": ("FastText", {}),
    "GloVe": ("GloVe", {}),
    "counts": ("Counts", {}),
}
WITHOUT_EPOCHS = ("counts",)
Job = Callable[[], dict[str, Any]]


def run_jobs(asked: argparse.Namespace, name: str, jobs: Iterator[tuple[str, Job]]) -> None:
    """Do what OUT/NAME.json lacks, until the time is over."""
    path, failures = (asked.out / f"{name}{end}.json" for end in ("", ".failed"))
    path.parent.mkdir(parents=True, exist_ok=True)
    begun = float(os.environ.setdefault(_BEGUN, str(time.time())))
    done, failed = read_json(path), {} if asked.again else read_json(failures)
    for key, job in jobs:
        if key in done or key in failed:
            continue
        if time.time() - begun > 60 * asked.minutes:
            print(f"{name}: time is over, start it again", flush=True)
            return
        started = time.monotonic()
        try:
            done[key] = {**job(), "job_s": round(time.monotonic() - started, 2)}
        except Exception as error:  # the next job may have another fate
            traceback.print_exc()
            failed[key] = f"{type(error).__name__}: {error}"
            write_json(failures, failed)
            print(f"{name} {key}: FAILED, {failed[key]}", flush=True)
            if "CUDA error" in str(error) or "[CUDA]" in str(error):
                # Nothing works on the GPU in this process any more.
                arguments = [own for own in sys.argv if own != "--again"]
                os.execv(sys.executable, [sys.executable, *arguments])
            continue
        write_json(path, done)
        print(f"{name} {key}: {json.dumps(done[key])}", flush=True)
    print(f"{name}: complete, {len(failed)} failed", flush=True)


_BEGUN = "WORD2VEC_GPU_BEGUN"  # when this command started, also before it replaced its process


def read_json(path: Path) -> dict[str, Any]:
    """What a file of results has, if it is there."""
    return json.loads(path.read_text()) if path.exists() else {}


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write results, as a whole or not at all."""
    scratch = path.with_suffix(".new")
    scratch.write_text(json.dumps(content, indent=1))
    scratch.replace(path)


def emulate(way: str) -> None:
    """Let something else be the GPU."""
    if way:
        gpu.device_of = lambda name: torch.device("cpu")
    if way == "triton":
        gpu.runs_triton = lambda device: True


def corpus(asked: argparse.Namespace, limit: int = 0) -> Any:
    """The store of the text, or of its first words."""
    limit = limit or asked.limit
    settings = sememe.TextSettings()
    if not limit:
        return open_or_build(asked.kept / "text.txt", settings, min_count=5,
                             path=asked.kept / "store")  # fmt: skip
    part = asked.kept / f"first-{limit}.txt"
    if not part.exists():
        num_words, found = 0, []
        with (asked.kept / "text.txt").open(encoding="utf-8") as lines:
            for line in lines:
                found.append(line)
                num_words += len(line.split())
                if num_words >= limit:
                    break
        part.write_text("".join(found), "utf-8")
    return open_or_build(part, settings, min_count=5, path=asked.kept / f"store-{limit}")


def trained(store: Any, kind: str, **options: Any) -> tuple[Any, float]:
    """A model, and the seconds that its `fit` took."""
    begun = time.perf_counter()
    model = getattr(sememe, kind)(**options).fit(store)
    return model, time.perf_counter() - begun


def speeds(model: Any, seconds: float, store: Any, epochs: int) -> dict[str, Any]:
    """Words per second of the updates, of the training, and of `fit` as a whole."""
    last = model.history.last()
    found = {"fit_s": round(seconds, 3), "fit_words_per_s": store.num_tokens * epochs / seconds}
    kept = ("kernel_words_per_s", "words_per_s", "loss")
    return found | {name: last[name] for name in kept if name in last}


# ---- text ---------------------------------------------------------------------------------------


def join_text(asked: argparse.Namespace) -> None:
    """Append texts, packed or not, to KEPT/text.txt; one that is there is not added again."""
    asked.kept.mkdir(parents=True, exist_ok=True)
    listed = asked.kept / "texts.json"
    known = json.loads(listed.read_text()) if listed.exists() else []
    for path in asked.texts:
        if path.name in known:
            continue
        data = path.read_bytes()
        with (asked.kept / "text.txt").open("ab") as file:
            file.write(lzma.decompress(data) if path.suffix == ".xz" else data)
        listed.write_text(json.dumps([*known, path.name]))
        known.append(path.name)
    print(known, (asked.kept / "text.txt").stat().st_size)


def build_store(asked: argparse.Namespace) -> None:
    """Text to ids, with one worker and with all cores."""

    def jobs() -> Iterator[tuple[str, Job]]:
        for workers in dict.fromkeys((os.cpu_count() or 1, 1)):

            def build(workers: int = workers) -> dict[str, Any]:
                begun = time.perf_counter()
                path = asked.kept / f"store-timed-{workers}"
                store = open_or_build(
                    asked.kept / "text.txt", sememe.TextSettings(), min_count=5, workers=workers,
                    path=path,
                )  # fmt: skip
                seconds = time.perf_counter() - begun
                size = (asked.kept / "text.txt").stat().st_size
                return {"words": store.num_tokens, "s": seconds, "mb_per_s": size / 1e6 / seconds}

            yield f"{workers} workers", build

    corpus(asked)
    run_jobs(asked, "store", jobs())


# ---- speed and tuning ---------------------------------------------------------------------------


def speed(asked: argparse.Namespace) -> None:
    """Every model on the GPU and on the cores of the machine."""
    store = corpus(asked)

    def jobs() -> Iterator[tuple[str, Job]]:
        names = [f"skip-gram {dim}" for dim in asked.dims] + list(MODELS)[1:]
        sides = [one for one in ("cuda", "cpu") if one in asked.devices]
        # All models with few epochs first: the time may end before the rest.
        for epochs, name, device in itertools.product((2, 5), names, sides):
            base, _, dim = name.partition(" ")
            if base in WITHOUT_EPOCHS and epochs > 2:
                continue
            kind, options = MODELS[base]
            given = {**options, "dim": int(dim or asked.dims[0]), "device": device}
            if base not in WITHOUT_EPOCHS:
                given["epochs"] = epochs

            def job(
                kind: str = kind, given: dict[str, Any] = given, epochs: int = epochs
            ) -> dict[str, Any]:
                small = corpus(asked, asked.limit or 200_000)  # compiles
                trained(small, kind, **given | ({"epochs": 1} if "epochs" in given else {}))
                model, seconds = trained(store, kind, **given)
                return speeds(model, seconds, store, given.get("epochs", 1))

            yield f"{name}, {epochs} epochs, {device}", job

    run_jobs(asked, "speed", jobs())


# What `tune` tries: the module, the constant, its values; one at a time, skip-gram or GloVe.
TRIED: list[tuple[str, str, str, list[Any]]] = [
    ("skip-gram", "sememe.models.word2vec.tiles.plan", "MOST_STRETCHES", [66, 132, 264, 528]),
    ("skip-gram", "sememe.models.word2vec.tiles.plan", "LARGEST_POOL", [32, 64, 128]),
    ("skip-gram", "sememe.models.word2vec.tiles.plan", "TILES",
     [{"skipgram": 8, "cbow": 8}, {"skipgram": 16, "cbow": 8}, {"skipgram": 32, "cbow": 8}]),
    ("skip-gram", "sememe.models.word2vec.tiles.plan", "LARGEST_CHUNK",
     [1 << 20, 1 << 21, 1 << 23]),
    ("skip-gram", "sememe.models.word2vec.tiles.launching", "_WARP_FLOATS", [1_024, 2_048, 4_096]),
    ("CBOW", "sememe.models.word2vec.tiles.plan", "TILES",
     [{"skipgram": 16, "cbow": 8}, {"skipgram": 16, "cbow": 16}]),
    ("GloVe", "sememe.models.glove.strata.batches", "MOST_GROUPS", [512, 1_024, 2_048, 4_096]),
    ("GloVe", "sememe.models.glove.strata.batches", "CELLS_PER_BLOCK", [8, 32, 128]),
    ("GloVe", "sememe.models.glove.strata.kernels", "WARP_FLOATS", [64, 128, 256]),
]  # fmt: skip


def tune(asked: argparse.Namespace) -> None:
    """Change one constant at a time."""
    store = corpus(asked)

    def jobs() -> Iterator[tuple[str, Job]]:
        for name, module, constant, values in TRIED:
            if (
                "triton" not in (asked.emulate or "triton")
                and "kernels launching".find(module.rpartition(".")[2]) >= 0
            ):
                continue  # these need Triton
            for value in values:

                def job(
                    name: str = name, module: str = module, constant: str = constant,
                    value: Any = value,
                ) -> dict[str, Any]:  # fmt: skip
                    kind, options = MODELS[name]
                    own = __import__(module, fromlist=["x"])
                    old = getattr(own, constant)
                    setattr(own, constant, value)
                    try:
                        given = {**options, "dim": asked.dims[0], "device": "cuda", "epochs": 2}
                        trained(corpus(asked, asked.limit or 200_000), kind, **given)
                        model, seconds = trained(store, kind, **given)
                    finally:
                        setattr(own, constant, old)
                    result = speeds(model, seconds, store, 2)
                    if asked.words:
                        result["scores"] = scores_of(model, asked.words)
                    return result

                yield f"{name} {constant} {json.dumps(value)}", job

    run_jobs(asked, "tune", jobs())


# ---- quality ------------------------------------------------------------------------------------


def scores_of(model: Any, words: Path) -> dict[str, float]:
    """The score of every set of questions, times 100."""
    found = evaluate_words(model.vectors, words).scores
    return {Path(str(one.name)).stem: round(100 * one.value, 3) for one in found}


def by_decile(model: Any, words: Path) -> dict[str, list[float]]:
    """Analogies right (%) by the frequency of the answer, in ten equal groups; norms likewise."""
    vectors = model.vectors
    rows = np.asarray(vectors.vectors, np.float32)
    norms = np.linalg.norm(rows, axis=1)
    found = {"norms": [float(part.mean()) for part in np.array_split(norms, 50)]}
    places = {word: place for place, word in enumerate(vectors.vocabulary)}
    questions = [
        [places[word] for word in line.lower().split()]
        for line in (words / "google-analogies.txt").read_text("utf-8").splitlines()
        if not line.startswith(":") and all(word in places for word in line.lower().split())
    ]
    if len(questions) < 10:
        return found
    units = rows / np.maximum(norms[:, None], 1e-12)
    own_Q4 = np.array(questions)
    right = np.zeros(len(own_Q4), bool)
    for start in range(0, len(own_Q4), 512):
        part = own_Q4[start : start + 512]
        a, b, c, answer = part.T
        scores = (units[b] - units[a] + units[c]) @ units.T
        scores[np.arange(len(part))[:, None], part[:, :3]] = -np.inf
        right[start : start + 512] = scores.argmax(1) == answer
    order = np.argsort(own_Q4[:, 3], kind="stable")
    found["analogies"] = [float(100 * right[one].mean()) for one in np.array_split(order, 10)]
    return found


def quality(asked: argparse.Namespace) -> None:
    """Seeds on both devices, on the same store."""
    store = corpus(asked)

    def jobs() -> Iterator[tuple[str, Job]]:
        names = [name for name in MODELS if not asked.only or name in asked.only]
        sides = [one for one in ("cuda", "cpu") if one in asked.devices]
        for name, seed, device in itertools.product(names, range(1, asked.seeds + 1), sides):

            def job(name: str = name, seed: int = seed, device: str = device) -> dict[str, Any]:
                kind, options = MODELS[name]
                given = {**options, "dim": asked.dims[0], "seed": seed, "device": device}
                if name not in WITHOUT_EPOCHS:
                    given["epochs"] = asked.epochs
                model, seconds = trained(store, kind, **given)
                return {
                    "scores": scores_of(model, asked.words), **by_decile(model, asked.words),
                    "fit_s": round(seconds, 2), "loss": model.history.last()["loss"],
                }  # fmt: skip

            yield f"{name}, seed {seed}, {device}", job

    run_jobs(asked, "quality", jobs())
    plot_norms(asked.out)


def plot_norms(out: Path) -> None:
    """Norms by frequency of both devices."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    done = json.loads((out / "quality.json").read_text())
    names = list(dict.fromkeys(key.partition(",")[0] for key in done))
    _, axes = pyplot.subplots(1, len(names), figsize=(4 * len(names), 3), squeeze=False)
    for name, own in zip(names, axes[0], strict=True):
        for device, color in (("cuda", "C0"), ("cpu", "C1")):
            for key, row in done.items():
                if key.startswith(f"{name},") and key.endswith(device):
                    own.plot(row["norms"], color=color, alpha=0.6, linewidth=1)
        own.set(title=name, xlabel="words, frequent ones first (fiftieths)", ylabel="norm")
    pyplot.tight_layout()
    pyplot.savefig(out / "norms.png", dpi=120)


# ---- robustness ---------------------------------------------------------------------------------


def settings(num: int) -> Iterator[dict[str, Any]]:
    """The corners, then random settings; the same ones each time."""
    base: dict[str, Any] = {"learning_rate": 0.03, "sample": 1e-3, "max_words": 0, "window": 5,
                            "negatives": 5, "dim": 100, "architecture": "skipgram"}  # fmt: skip
    corners = [
        {"learning_rate": 0.1}, {"learning_rate": 0.1, "sample": 0.0}, {"sample": 0.0},
        {"learning_rate": 0.01}, {"max_words": 100}, {"max_words": 100, "sample": 0.0},
        {"max_words": 100, "sample": 0.0, "learning_rate": 0.1}, {"window": 1}, {"window": 15},
        {"window": 15, "negatives": 20, "sample": 0.0}, {"negatives": 2}, {"negatives": 20},
        {"dim": 16}, {"dim": 1_024}, {"dim": 16, "learning_rate": 0.1, "sample": 0.0},
    ]  # fmt: skip
    for corner, architecture in itertools.product(corners, ("skipgram", "cbow")):
        yield {**base, **corner, "architecture": architecture}
    random = np.random.default_rng(2023)
    for _ in range(num):
        yield {
            "learning_rate": float(round(10 ** random.uniform(-2, -1), 4)),
            "sample": float(random.choice([0, 1e-5, 1e-4, 1e-3])),
            "max_words": int(random.choice([100, 1_000, 10_000, 0])),
            "window": int(random.integers(1, 16)), "negatives": int(random.integers(2, 21)),
            "dim": int(random.choice([16, 50, 100, 200, 300, 512, 1_024])),
            "architecture": str(random.choice(["skipgram", "cbow"])),
        }  # fmt: skip


def loss_of(model: Any, store: Any, num_centres: int = 4_000) -> float:
    """The mean loss of a model on a part of the text, the same for both devices."""
    config, random = model.config, np.random.default_rng(1)
    ids, _ = next(iter(store.blocks(1 << 19)))
    num_words = len(model.vocabulary)
    ids = ids[ids < num_words].astype(np.int64)
    counts = np.asarray(model.vocabulary.counts, np.float64) ** config.noise_exponent
    input, output = (np.asarray(own, np.float64) for own in (model.input, model.output))
    window, total, num = config.window, 0.0, 0
    for c in random.integers(window, len(ids) - window, num_centres).tolist():
        reach = int(random.integers(1, window + 1))
        around = np.concatenate([ids[c - reach : c], ids[c + 1 : c + reach + 1]])
        noise = random.choice(num_words, 32, p=counts / counts.sum()) if num % 8 == 0 else noise  # noqa: F821
        if config.architecture == "skipgram":
            hidden, targets = input[ids[c]], around
        else:
            hidden, targets = input[around].mean(0), ids[c : c + 1]
        true, false = output[targets] @ hidden, output[noise] @ hidden
        total += np.logaddexp(0, -true).mean() + config.negatives * np.logaddexp(0, false).mean()
        num += 1
    return total / num


def robustness(asked: argparse.Namespace) -> None:
    """No setting that the CPU survives may diverge, and the loss is within 2 % of the CPU's."""
    store = corpus(asked)

    def jobs() -> Iterator[tuple[str, Job]]:
        chosen = itertools.islice(settings(asked.settings), asked.first_settings)
        for device, (number, own) in itertools.product(asked.devices, enumerate(chosen)):
            own = {**own, "dim": min(own["dim"], asked.most_dim)}

            def job(own: dict[str, Any] = own, device: str = device) -> dict[str, Any]:
                try:
                    model, seconds = trained(
                        store, "Word2Vec", **own, device=device, epochs=asked.epochs, seed=1
                    )
                except (DivergedError, OptionError) as error:
                    return {"refused": str(error)}
                return {"loss": loss_of(model, store), "fit_s": round(seconds, 2)}

            yield f"{number} {json.dumps(own)}, {device}", job

    run_jobs(asked, "robustness", jobs())


def excesses(done: dict[str, Any]) -> Iterator[tuple[str, str | float]]:
    """Each setting with how far (%) the loss on the GPU is above the CPU's, or what happened."""
    for key, cpu in done.items():
        setting, _, device = key.rpartition(", ")
        cuda = done.get(f"{setting}, cuda")
        if device != "cpu" or cuda is None:
            continue
        if "loss" not in cpu or "loss" not in cuda:
            told = (f"{name}: {one.get('refused', 'trains')}"
                    for name, one in (("cpu", cpu), ("cuda", cuda)))  # fmt: skip
            yield setting, "; ".join(told)
        else:
            yield setting, round(100 * (cuda["loss"] / cpu["loss"] - 1), 2)


# ---- resuming, the same bits --------------------------------------------------------------------


def digest(model: Any) -> str:
    """A checksum of all tensors."""
    names = sorted(model.tensors)
    return hashlib.sha256(b"".join(model.tensors[name].tobytes() for name in names)).hexdigest()


def deterministic(asked: argparse.Namespace) -> None:
    """Every model twice."""
    store = corpus(asked, asked.limit or 2_000_000)

    def jobs() -> Iterator[tuple[str, Job]]:
        for name, (kind, options) in MODELS.items():

            def job(name: str = name, kind: str = kind, options: Any = options) -> dict[str, Any]:
                given = {**options, "dim": asked.dims[0], "device": "cuda"}
                if name not in WITHOUT_EPOCHS:
                    given |= {"epochs": 2, "deterministic": True}
                found = [trained(store, kind, **given) for _ in range(2)]
                same = digest(found[0][0]) == digest(found[1][0])
                return {"same_bits": same, "fit_s": [round(seconds, 2) for _, seconds in found]}

            yield name, job

    run_jobs(asked, "deterministic", jobs())


def train_one(asked: argparse.Namespace) -> None:
    """The process that `resume` kills."""
    kind, options, out, is_resumed = json.loads(asked.job)
    model = getattr(sememe, kind)(**options)
    model.fit(corpus(asked, asked.limit or 2_000_000), out=out, resume=is_resumed, overwrite=True,
              checkpoint_minutes=0.0005)  # fmt: skip


def resume(asked: argparse.Namespace) -> None:
    """SIGKILL during the training, then --resume; the bits of a training without a stop."""

    def command(*job: Any) -> list[str]:
        parts = [sys.executable, __file__, "train-one", "--job", json.dumps(job)]
        parts += ["--kept", str(asked.kept), "--limit", str(asked.limit)]
        return parts + (["--emulate", asked.emulate] if asked.emulate else [])

    def jobs() -> Iterator[tuple[str, Job]]:
        for name in list(MODELS)[:4]:
            if asked.only and name not in asked.only:
                continue

            def job(name: str = name) -> dict[str, Any]:
                kind, options = MODELS[name]
                given = {**options, "dim": asked.dims[0], "device": "cuda", "epochs": 8,
                         "deterministic": True}  # fmt: skip
                whole, out = asked.kept / f"{name}-whole", asked.kept / f"{name}-stopped"
                for old in (whole, out, Path(f"{out}.checkpoints")):
                    shutil.rmtree(old, ignore_errors=True)
                subprocess.run(command(kind, given, str(whole), False), check=True)
                num_kills = 0
                process = subprocess.Popen(command(kind, given, str(out), False))
                while process.poll() is None:
                    if num_kills < 2 and Path(f"{out}.checkpoints").exists():
                        time.sleep(0.3)
                        process.send_signal(signal.SIGKILL)
                        process.wait()
                        num_kills += 1
                        process = subprocess.Popen(command(kind, given, str(out), True))
                    time.sleep(0.02)
                same = (whole / "model.safetensors").read_bytes() == (
                    out / "model.safetensors"
                ).read_bytes()
                return {"kills": num_kills, "same_bits": same, "rc": process.returncode}

            yield name, job

    corpus(asked, asked.limit or 2_000_000)
    run_jobs(asked, "resume", jobs())


# ---- a billion words ----------------------------------------------------------------------------


def billion(asked: argparse.Namespace) -> None:
    """One epoch from raw text to saved vectors, and the share of each stage."""

    def job() -> dict[str, Any]:
        text, source = asked.kept / "billion.txt", asked.kept / "text.txt"
        num = corpus(asked).num_tokens
        with text.open("wb") as file:
            for _ in range(max(1, round(asked.num_words / num))):
                file.write(source.read_bytes())
        trained(corpus(asked, 200_000), "Word2Vec", device="cuda", epochs=1)  # compiles
        times = [time.perf_counter()]
        store = open_or_build(text, sememe.TextSettings(), min_count=5,
                              path=asked.kept / "store-billion")  # fmt: skip
        times.append(time.perf_counter())
        model, _ = trained(store, "Word2Vec", device="cuda", epochs=1, dim=asked.dims[0])
        times.append(time.perf_counter())
        model.save(asked.kept / "billion-vectors")
        times.append(time.perf_counter())
        last = model.history.last()
        stages = dict(zip(("text", "training", "saving"), np.diff(times).tolist(), strict=True))
        updates = store.num_tokens / last["kernel_words_per_s"]
        return {
            "words": store.num_tokens, "s": times[-1] - times[0], "stages_s": stages,
            "updates_s": updates, "text_mb": text.stat().st_size / 1e6,
        }  # fmt: skip

    run_jobs(asked, "billion", iter([(f"{asked.num_words:.0f} words", job)]))


# ---- kernels beside PyTorch ---------------------------------------------------------------------


def kernels(asked: argparse.Namespace) -> None:
    """The largest difference of the Triton kernels from PyTorch, one stretch, on the device."""
    from sememe.models.word2vec.tiles import batches, launching

    device = gpu.device_of("cuda")

    def moved(*arrays: np.ndarray) -> list[torch.Tensor]:
        return [torch.from_numpy(own).to(device) for own in arrays]

    def jobs() -> Iterator[tuple[str, Job]]:
        shapes = [(16, 1, 16, 32), (100, 5, 16, 64), (300, 15, 8, 128), (1_024, 4, 4, 32)]
        for (dim, window, tile, pool), is_skipgram in itertools.product(shapes, (True, False)):

            def job(
                dim: int = dim, window: int = window, tile: int = tile, pool: int = pool,
                is_skipgram: bool = is_skipgram,
            ) -> dict[str, Any]:  # fmt: skip
                random, num, num_words = np.random.default_rng(1), 300, 500
                places = np.arange(num)
                words = batches.Words(
                    *moved(
                        random.integers(0, num_words, num).astype(np.int32),
                        np.maximum(0, places - window).astype(np.int32),
                        np.minimum(num, places + window + 1).astype(np.int32),
                    )
                )
                num_tiles = -(-num // tile)
                (noise,) = moved(random.integers(0, num_words, (num_tiles, pool)).astype(np.int32))
                width = -(-dim // 16) * 16
                rows = random.normal(0, 0.3, (2, num_words, width)).astype(np.float32)
                ones = np.ones((2, num_words), np.float32)
                own = batches.Settings(is_skipgram, True, window, tile, pool, 5)
                found = []
                for path in (batches, launching):
                    tables = batches.Tables(*moved(*rows.copy(), *ones))
                    stats = path.train_words(words, 1, noise, tables, own, (0.05, 0.01))
                    found.append((tables.input, tables.output, stats))
                far = [float((a - b).abs().max()) for a, b in zip(*found, strict=True)]
                return {"input": far[0], "output": far[1], "loss": far[2]}

            yield f"{'skip-gram' if is_skipgram else 'CBOW'} {dim} {window}", job

        def glove() -> dict[str, Any]:
            from sememe.models.glove.strata import batches as strata, kernels as compiled

            random, num_words, width, groups = np.random.default_rng(1), 400, 112, 32
            cells = np.unique(random.integers(0, num_words**2, 20_000))
            rows, columns = (one.astype(np.int32) for one in np.divmod(cells, num_words))
            logs = random.normal(1, 1, len(cells)).astype(np.float32)
            given = moved(columns, rows, logs, strata.groups_of(num_words, groups))
            own = strata.arrange(*given, groups, 3)
            start = random.uniform(-0.1, 0.1, (2, num_words, 2 * width)).astype(np.float32)
            start[:, :, width:] = 0
            found = []
            for path in (strata, compiled):
                options = np.full(2 * width, 0.05, np.float32), np.full(2 * width, 100, np.float32)
                tables = strata.Tables(*moved(*start.copy(), *options), 0.75, 4.6)
                stats = path.train_strata(own, strata.strata_order(groups, 1, 0), tables)
                found.append((tables.words, tables.contexts, stats))
            far = [float((a - b).abs().max()) for a, b in zip(*found, strict=True)]
            return {"words": far[0], "contexts": far[1], "loss": far[2]}

        yield "GloVe 110", glove

    run_jobs(asked, "kernels", jobs())


# ---- everything, small ------------------------------------------------------------------------


def smoke(asked: argparse.Namespace) -> None:
    """Every stage on a short text, to find what fails before the stages that take long."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        asked.kept, asked.out, asked.words = folder / "kept", folder / "out", folder / "words"
        asked.limit, asked.num_words, asked.minutes = 0, 30_000, 60
        asked.seeds, asked.epochs, asked.most_dim, asked.first_settings = 1, 1, 48, 4
        asked.dims = asked.dims[:1]
        asked.texts = [folder / "part.txt"]
        asked.words.mkdir()
        write_short_text(asked.texts[0], asked.words)
        stages = ["text", "store", "kernels", "speed", "deterministic", "quality", "robustness",
                  "resume", "tune", "billion", "table"]  # fmt: skip
        if asked.emulate == "pytorch":
            stages.remove("kernels")  # of Triton
        if asked.emulate == "triton":
            stages.remove("resume")  # in processes of their own
        for stage in stages:
            begun = time.monotonic()
            asked.only = ["skip-gram"] if stage == "resume" else []
            COMMANDS[stage](asked)
            print(f"-- {stage}: {time.monotonic() - begun:.1f} s", flush=True)
        failed = [path for path in asked.out.glob("*.failed.json") if read_json(path)]
        for path in failed:
            print(f"FAILED {path.name}: {path.read_text()}")
        sys.exit(bool(failed))


def write_short_text(path: Path, words: Path, num_lines: int = 1_000) -> None:
    """A text about some topics, and questions about its words."""
    random = np.random.default_rng(1)
    names = np.array([f"word{number}" for number in range(400)])
    frequency = 1 / np.arange(1, 401)
    lines = []
    for topic in random.integers(0, 8, num_lines).tolist():
        chances = frequency * (1 + 20 * (np.arange(400) % 8 == topic))
        lines.append(" ".join(random.choice(names, 15, p=chances / chances.sum())))
    path.write_text("\n".join(lines) + "\n", "utf-8")
    pairs = random.integers(0, 99, (60, 2)).tolist()
    told = "".join(f"{names[a]}\t{names[b]}\t{float(a % 8 == b % 8)}\n" for a, b in pairs)
    (words / "wordsim353.txt").write_text(told, "utf-8")
    questions = [" ".join(random.choice(names[:99], 4, replace=False)) for _ in range(50)]
    content = ": section\n" + "\n".join(questions) + "\n"
    (words / "google-analogies.txt").write_text(content, "utf-8")


# ---- table --------------------------------------------------------------------------------------


def table(asked: argparse.Namespace) -> None:
    """What OUT has, in short."""
    for path in sorted(asked.out.glob("*.json")):
        done = json.loads(path.read_text())
        print(f"\n{path.stem}")
        if path.stem == "quality":
            groups: dict[str, dict[str, list[float]]] = {}
            for key, row in done.items():
                name = f"{key.split(',')[0]} {key.rpartition(' ')[2]}"
                for test, value in row["scores"].items():
                    groups.setdefault(name, {}).setdefault(test, []).append(value)
            for name, tests in groups.items():
                cells = [f"{test} {statistics.mean(own):.2f} ± {statistics.pstdev(own):.2f}"
                         for test, own in tests.items()]  # fmt: skip
                print(f"  {name}: " + ", ".join(cells))
            continue
        if path.stem == "robustness":
            found = dict(excesses(done))
            known = [one for one in found.values() if isinstance(one, float)]
            print(f"  {len(found)} settings on both, {len(found) - len(known)} refused, "
                  f"{sum(one > 2 for one in known)} above 2 %, "
                  f"largest excess {max(known, default=0.0)} %")  # fmt: skip
            done = {key: {"excess_%": one} for key, one in found.items()}
        for key, row in done.items():
            print(f"  {key}: {json.dumps(row)}")


COMMANDS = {
    "text": join_text, "store": build_store, "kernels": kernels, "speed": speed,
    "quality": quality, "robustness": robustness, "resume": resume, "train-one": train_one,
    "deterministic": deterministic, "tune": tune, "billion": billion, "table": table,
    "smoke": smoke,
}  # fmt: skip


def main() -> None:
    """Do what is asked."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("command", choices=list(COMMANDS))
    parser.add_argument("texts", nargs="*", type=Path)
    parser.add_argument("--kept", type=Path, default=Path("runs/gpu"), help="large files")
    parser.add_argument("--out", type=Path, default=Path("runs/gpu-results"), help="results")
    parser.add_argument("--words", type=Path, help="a folder of analogies and word pairs")
    parser.add_argument("--minutes", type=float, default=7.0, help="no job starts later")
    parser.add_argument("--limit", type=int, default=0, help="the first words of the text only")
    parser.add_argument("--dims", type=int, nargs="+", default=[100, 300])
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--settings", type=int, default=60, help="random ones, of robustness")
    parser.add_argument("--first-settings", type=int, help="of robustness: no more than these")
    parser.add_argument("--most-dim", type=int, default=1_024, help="of robustness")
    parser.add_argument("--num-words", type=float, default=1e9, help="of billion")
    parser.add_argument("--only", nargs="+", default=[], choices=list(MODELS))
    parser.add_argument("--devices", nargs="+", default=["cpu", "cuda"], choices=["cpu", "cuda"])
    parser.add_argument("--again", action="store_true", help="try again what has failed")
    parser.add_argument("--emulate", choices=["pytorch", "triton"], default="")
    parser.add_argument("--job", default="", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.command == "quality" and asked.words is None:
        parser.error("quality needs --words")
    emulate(asked.emulate)
    COMMANDS[asked.command](asked)


if __name__ == "__main__":
    main()
