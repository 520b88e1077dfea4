"""Requests per second and latency of `sememe serve` on loopback, beside plain FastAPI services.

    python benchmarks/serving.py encoder MODEL [--threads 2] [--rounds 3] [--seconds 3]
    python benchmarks/serving.py encoder MODEL --infinity OTHER_ENVIRONMENT/bin/infinity_emb
    python benchmarks/serving.py static VECTORS [--clients 1 4 16 64]

`encoder` serves MODEL, a sentence-transformers folder (all-MiniLM-L6-v2, for example), and compares
POST /v1/embeddings with sentence-transformers behind FastAPI, written the two usual ways: a `def`
route, which FastAPI runs in a pool of threads, and an `async def` route, which encodes one request
after the other; and with infinity, if an environment of its own has it. Each round also measures
`sememe.load(MODEL).embed` without HTTP.
`static` serves word vectors and compares with a FastAPI route that validates the same body and
returns ready bytes: the most that this framework can answer.

There are two kinds of load. First `--clients` connections each send their next request when the
last one is answered; this shows the highest rate. Then requests are sent at equal rates, at random
times (a Poisson process) whether or not earlier ones are answered; their latency counts from the
time at which they were due. The rates are shares (`--shares`) of what the slowest server answered,
or `--rates`.

`--encoding base64` asks for vectors in base64, as the client of OpenAI does by default.

The whole takes a quarter of an hour. Parts of it: `--kinds short --clients 16 --shares` measures 16
clients with short texts and no equal rates, `--kinds short --clients --rates 100 200` only these.

All servers run at the same time and have the same number of threads; one is loaded at a time, once
the others have finished what their clients left.
Rounds alternate between them, and the medians of the rounds are printed. The first client is wrk
where it is installed, otherwise httpx in a process of its own. It shares the CPU with the servers:
a star marks rows in which it was busy for more than 90% of the time, so that it limits the rate.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import contextlib
import itertools
import json
import os
import random
import resource
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import httpx
import numpy as np
from fastapi import FastAPI, Response
from pydantic import BaseModel

ROUTE = "/v1/embeddings"
START_SECONDS, IDLE_SECONDS = 180, 300
BUSY = 0.9
NUM_BODIES = 500
KINDS = ["short", "mixed", "bulk"]  # of requests: one short text, one of mixed length, 32 of these
BULK = 32
FREQUENT = (
    "the of and to in a is that for it as was with be by on not he his but at are this have from "
    "or had an they which one you were all her she there would their we him been has when who will "
    "no more if out so up said what its about than into them can only other time new some could "
    "these two may first then do any like my now over such our man me even most made after also "
    "well must before back years where much your way down should because long each just state "
    "people those too mister good how make world still own see work here old life both between"
)
WORDS = FREQUENT.split()
SERVERS: dict[str, int] = {}  # the process of each address
# One line of JSON, as the httpx client prints it. Errors are answers other than 2xx and 3xx,
# broken connections and timeouts.
LUA = """
local bodies = {}
for line in io.lines("@BODIES@") do bodies[#bodies + 1] = line end
local next_body = 0
local headers = { ["Content-Type"] = "application/json" }
request = function()
  next_body = next_body % #bodies + 1
  return wrk.format("POST", nil, headers, bodies[next_body])
end
done = function(summary, latency, requests)
  local e = summary.errors
  io.write(string.format(
    '\\n{"rate": %f, "p50": %f, "p99": %f, "errors": %d}\\n',
    summary.requests / summary.duration * 1e6, latency:percentile(50) / 1e3,
    latency:percentile(99) / 1e3, e.status + e.connect + e.read + e.write + e.timeout))
end
"""


class Body(BaseModel):
    """What a peer accepts: the part of OpenAI's request that the clients send."""

    model: str | None = None
    input: str | list[str]
    encoding_format: Literal["float", "base64"] = "float"


@dataclass
class Measured:
    """One load of one server: requests per second, milliseconds, busy share of the client."""

    rate: float
    p50: float
    p99: float
    errors: int
    busy: float
    times: tuple[float, ...] = ()  # of all requests, where the client tells them


def ready() -> dict[str, str]:
    """The answer of /ready of a peer."""
    return {"status": "ready"}


def in_base64(vector_D: np.ndarray) -> str:
    """A vector as the client of OpenAI asks for it by default."""
    return base64.b64encode(vector_D.astype("<f4").tobytes()).decode()


def encoder_app(model: str, threads: int, *, is_async: bool) -> FastAPI:
    """sentence-transformers behind plain FastAPI."""
    import torch
    from sentence_transformers import SentenceTransformer

    torch.set_num_threads(threads)
    opened = SentenceTransformer(model, device="cpu")
    app = FastAPI()

    def answer(body: Body) -> dict[str, Any]:
        texts = [body.input] if isinstance(body.input, str) else body.input
        vectors_ND = opened.encode(texts, show_progress_bar=False)
        rows = (
            vectors_ND.tolist() if body.encoding_format == "float" else map(in_base64, vectors_ND)
        )
        data = [{"index": index, "embedding": row} for index, row in enumerate(rows)]
        return {"object": "list", "data": data, "model": body.model}

    async def answer_alone(body: Body) -> dict[str, Any]:
        return answer(body)

    app.post(ROUTE)(answer_alone if is_async else answer)
    app.get("/ready")(ready)
    return app


def ready_app(folder: str) -> FastAPI:
    """A validated body in, ready bytes out: one reply for each number of inputs."""
    replies = {int(path.stem): path.read_bytes() for path in Path(folder).glob("*.json")}
    app = FastAPI()

    async def answer(body: Body) -> Response:
        num = 1 if isinstance(body.input, str) else len(body.input)
        return Response(replies[num], media_type="application/json")

    app.post(ROUTE)(answer)
    app.get("/ready")(ready)
    return app


def run_peer(kind: str, source: str, threads: int, port: int) -> None:
    """Serve one of the peers by uvicorn, without its access log."""
    import uvicorn

    if kind == "ready":
        app = ready_app(source)
    else:
        app = encoder_app(source, threads, is_async=kind == "async")
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning")


def environment(threads: int) -> dict[str, str]:
    """The same number of threads for every library of a child, and no API key."""
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
    kept = {name: value for name, value in os.environ.items() if name != "SEMEME_API_KEY"}
    return {
        **kept, **dict.fromkeys(names, str(threads)), "TOKENIZERS_PARALLELISM": "false",
        "HF_HUB_OFFLINE": "1", "DO_NOT_TRACK": "1", "INFINITY_ANONYMOUS_USAGE_STATS": "0",
        # OpenMP's default. On a machine that was busy, sememe would choose another.
        "GOMP_SPINCOUNT": "300000",
    }  # fmt: skip


def free_port() -> int:
    """A port of loopback that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_until_ready(child: subprocess.Popen[bytes], url: str, log: Path) -> None:
    """Poll a URL; a server that ends or takes too long stops the benchmark."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and child.poll() is None:
        with contextlib.suppress(httpx.TransportError):
            if httpx.get(url, trust_env=False).status_code == 200:
                return
        time.sleep(0.2)
    sys.exit(f"{' '.join(map(str, child.args))} did not start:\n{log.read_text()[-2_000:]}")


def cpu_s(process_id: int) -> float:
    """The CPU time of a process so far."""
    fields = Path(f"/proc/{process_id}/stat").read_text().rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def wait_until_idle(process_ids: Iterable[int]) -> None:
    """Wait for servers that still compute answers whose clients have gone.

    A `def` route finishes them all: after 64 clients that takes half a minute, in which every other
    server would have to share the cores.
    """
    deadline = time.monotonic() + IDLE_SECONDS
    while time.monotonic() < deadline:
        before = sum(map(cpu_s, process_ids))
        time.sleep(0.5)
        if sum(map(cpu_s, process_ids)) - before < 0.05:
            return
    sys.exit(f"A server was still busy after {IDLE_SECONDS} seconds without requests.")


@contextlib.contextmanager
def serving(
    command: Callable[[int], list[str]], threads: int, ready_path: str = "/ready"
) -> Iterator[str]:
    """Run a server on a free port; gives its address."""
    port = free_port()
    base = f"http://127.0.0.1:{port}"
    log = Path(tempfile.mkdtemp(), "log.txt")
    with log.open("wb") as output:
        child = subprocess.Popen(
            command(port), env=environment(threads), stdout=output, stderr=subprocess.STDOUT
        )
        try:
            wait_until_ready(child, base + ready_path, log)
            SERVERS[base] = child.pid
            yield base
        finally:
            SERVERS.pop(base, None)
            child.terminate()
            try:
                child.wait(20)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()


def sememe_command(model: str, threads: int) -> Callable[[int], list[str]]:
    """`sememe serve`, the model named `bench`."""
    return lambda port: [
        sys.executable, "-m", "sememe.cli", "serve", f"bench={model}", "--port", str(port),
        "--threads", str(threads), "--device", "cpu",
    ]  # fmt: skip


def peer_command(kind: str, source: str, threads: int) -> Callable[[int], list[str]]:
    """This file as a peer."""
    return lambda port: [
        sys.executable, __file__, "peer", kind, source, "--threads", str(threads),
        "--port", str(port),
    ]  # fmt: skip


def infinity_command(program: str, model: str) -> Callable[[int], list[str]]:
    """infinity in float32 on the CPU, without its cache of vectors."""
    return lambda port: [
        program, "v2", "--model-id", model, "--served-model-name", "bench", "--url-prefix", "/v1",
        "--host", "127.0.0.1", "--port", str(port), "--engine", "torch", "--device", "cpu",
        "--dtype", "float32", "--no-vector-disk-cache", "--no-trust-remote-code",
        "--no-bettertransformer", "--log-level", "warning",
    ]  # fmt: skip


def body_of(given: str | list[str], encoding: str = "float") -> str:
    """One request as a line of JSON."""
    return json.dumps({"model": "bench", "input": given, "encoding_format": encoding})


def post(base: str, given: str | list[str], encoding: str = "float") -> bytes:
    """One request, outside the measured time."""
    headers = {"Content-Type": "application/json"}
    found = httpx.post(
        base + ROUTE,
        content=body_of(given, encoding),
        headers=headers,
        timeout=60,
        trust_env=False,
    )
    found.raise_for_status()
    return found.content


async def load(url: str, bodies: list[str], clients: int, seconds: float) -> dict[str, float]:
    """`clients` connections, each sending its next request when the last is answered."""
    times: list[float] = []
    errors = 0
    headers = {"Content-Type": "application/json"}
    limits = httpx.Limits(max_connections=clients, max_keepalive_connections=clients)
    async with httpx.AsyncClient(limits=limits, timeout=30, trust_env=False) as client:
        start, cpu = time.perf_counter(), time.process_time()

        async def one(first: int) -> None:
            nonlocal errors
            turn = first
            while time.perf_counter() < start + seconds:
                began = time.perf_counter()
                try:
                    found = await client.post(
                        url, content=bodies[turn % len(bodies)], headers=headers
                    )
                    errors += found.status_code >= 400
                except httpx.TransportError:
                    errors += 1
                times.append(time.perf_counter() - began)
                turn += clients

        await asyncio.gather(*(one(first) for first in range(clients)))
        wall, used = time.perf_counter() - start, time.process_time() - cpu
    p50, p99 = np.percentile(times, [50, 99]) * 1e3
    return {"rate": len(times) / wall, "p50": p50, "p99": p99, "errors": errors,
            "busy": used / wall}  # fmt: skip


class Connection:
    """One connection that sends a ready request and reads its answer, as wrk does."""

    def __init__(self, host: str, port: int) -> None:
        self._address = host, port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def send(self, request: bytes) -> int:
        """Send a request; gives the status of the answer, 0 if there is none."""
        try:
            self._streams = self._streams or await asyncio.open_connection(*self._address)
            reader, writer = self._streams
            writer.write(request)
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            length = head.split(b"content-length:")[1].split(b"\r\n")[0]
            await reader.readexactly(int(length))
        except (OSError, EOFError, IndexError):
            self._streams = None
            return 0
        return int(head.split()[1])


async def pace(url: str, bodies: list[str], rate: float, seconds: float) -> dict[str, Any]:
    """Send requests at random times with a mean rate, however long the answers take."""
    address = httpx.URL(url)
    head = (
        f"POST {address.path} HTTP/1.1\r\nHost: {address.host}:{address.port}\r\n"
        "Content-Type: application/json\r\nContent-Length: "
    )
    requests = [f"{head}{len(body.encode())}\r\n\r\n{body}".encode() for body in bodies]
    source = random.Random(11)
    gaps = (source.expovariate(rate) for _ in itertools.count())
    due = list(itertools.takewhile(lambda at: at < seconds, itertools.accumulate(gaps)))
    free: list[Connection] = []
    times: list[float] = []
    errors = 0
    start, cpu = time.perf_counter(), time.process_time()

    async def one(number: int, at: float) -> None:
        nonlocal errors
        await asyncio.sleep(start + at - time.perf_counter())
        own = free.pop() if free else Connection(address.host, address.port or 80)
        errors += await own.send(requests[number % len(requests)]) != 200
        times.append(time.perf_counter() - start - at)
        free.append(own)

    await asyncio.gather(*(one(number, at) for number, at in enumerate(due)))
    wall, used = time.perf_counter() - start, time.process_time() - cpu
    p50, p99 = np.percentile(times, [50, 99]) * 1e3
    return {"rate": len(times) / wall, "p50": p50, "p99": p99, "errors": errors,
            "busy": used / wall, "times": [round(1e3 * own, 2) for own in times]}  # fmt: skip


def measure_paced(base: str, bodies: Path, rate: float, seconds: float) -> Measured:
    """Send requests at a rate, from another process."""
    command = [sys.executable, __file__, "client", base + ROUTE, str(bodies), "--rate", str(rate),
               "--seconds", str(seconds)]  # fmt: skip
    ran = subprocess.run(command, capture_output=True, text=True, check=True, timeout=seconds + 300)
    return Measured(**json.loads(ran.stdout.strip().splitlines()[-1]))


def measure(base: str, bodies: Path, clients: int, seconds: float) -> Measured:
    """Load a server with wrk or, without it, with httpx in another process."""
    if wrk := shutil.which("wrk"):
        script = bodies.with_suffix(".lua")
        script.write_text(LUA.replace("@BODIES@", str(bodies)), encoding="utf-8")
        command = [wrk, "-t", "1", "-c", str(clients), "-d", f"{max(1, round(seconds))}s",
                   "--timeout", "30s", "-s", str(script), base + ROUTE]  # fmt: skip
    else:
        command = [sys.executable, __file__, "client", base + ROUTE, str(bodies),
                   "--clients", str(clients), "--seconds", str(seconds)]  # fmt: skip
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    ran = subprocess.run(command, capture_output=True, text=True, check=True, timeout=seconds + 120)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    found = json.loads(ran.stdout.strip().splitlines()[-1])
    return Measured(**{"busy": used / wall, **found})


def some_texts(kind: str, num: int) -> list[str]:
    """Sentences of frequent words: 4 to 12 of them, or mixed lengths up to 180."""
    source = random.Random(7)
    ranges = [(4, 12)] if kind == "short" else [(5, 15)] * 6 + [(20, 60)] * 3 + [(100, 180)]
    lengths = [source.randint(*source.choice(ranges)) for _ in range(num)]
    return [" ".join(source.choices(WORDS, k=length)) + "." for length in lengths]


def some_inputs(kind: str, num: int) -> list[str] | list[list[str]]:
    """The inputs of requests: one text each, or several."""
    texts = some_texts(kind, num)
    if kind != "bulk":
        return texts
    starts = range(0, num - BULK, 7)  # no request is like another
    return [texts[start : start + BULK] for start in starts]


def run_offline(model: str, threads: int, seconds: float, kinds: list[str]) -> None:
    """Print texts per second of `embed` on the texts of the clients, all at once."""
    import torch

    import sememe

    torch.set_num_threads(threads)
    opened = sememe.load(model)
    rates = {}
    for kind in kinds:
        texts = some_texts(kind, NUM_BODIES)
        opened.embed(texts[:64])  # warms up
        start, num = time.perf_counter(), 0
        while time.perf_counter() < start + seconds:
            opened.embed(texts)
            num += len(texts)
        rates[kind] = num / (time.perf_counter() - start)
    print(json.dumps(rates))


def offline_rates(asked: argparse.Namespace) -> dict[str, float]:
    """The rates of `run_offline`, which has a process of its own."""
    command = [sys.executable, __file__, "offline", asked.model, "--threads", str(asked.threads),
               "--seconds", str(asked.seconds), "--kinds", *asked.kinds]  # fmt: skip
    ran = subprocess.run(
        command, env=environment(asked.threads), stdout=subprocess.PIPE, text=True, check=True
    )
    rates: dict[str, float] = json.loads(ran.stdout.strip().splitlines()[-1])
    return rates


def vectors_of(base: str, texts: list[str]) -> np.ndarray:
    """Vectors of length one, as a server returns them."""
    rows = json.loads(post(base, texts))["data"]
    vectors_ND = np.array([row["embedding"] for row in rows])
    return vectors_ND / np.linalg.norm(vectors_ND, axis=1, keepdims=True)


def median_of(found: list[Measured]) -> Measured:
    """The median of each column; errors are added up."""
    rate, p50, p99, busy = (
        statistics.median(getattr(one, name) for one in found)
        for name in ("rate", "p50", "p99", "busy")
    )
    return Measured(rate, p50, p99, sum(one.errors for one in found), busy)


def in_turn(names: list[str], turn: int) -> list[str]:
    """The names; another one is the first in each round."""
    return names[turn % len(names) :] + names[: turn % len(names)]


def compare(
    servers: dict[str, str],
    loads: dict[str, Path],
    asked: argparse.Namespace,
    before_round: Callable[[], None] = lambda: None,
) -> dict[tuple[str, int, str], Measured]:
    """Load the servers in turn and print the table; gives its rows."""
    found: dict[tuple[str, int, str], list[Measured]] = {}
    names = list(servers)
    for turn in range(asked.rounds):
        wait_until_idle(SERVERS.values())
        before_round()
        for kind, bodies in loads.items():
            for clients in asked.clients:
                for name in in_turn(names, turn):
                    wait_until_idle(SERVERS.values())
                    one = measure(servers[name], bodies, clients, asked.seconds)
                    found.setdefault((kind, clients, name), []).append(one)
    medians = {key: median_of(several) for key, several in found.items()}
    client = "wrk" if shutil.which("wrk") else "httpx, as wrk is not installed"
    print(
        f"client: {client}; {asked.threads} threads, {asked.seconds:g} s per load, "
        f"medians of {asked.rounds} rounds"
    )
    for kind in loads:
        print(
            f"\n{kind}\n{'clients':>7}  {'server':30} {'requests/s':>11} {'p50 ms':>9} "
            f"{'p99 ms':>9} {'errors':>7} {'sememe ÷ it':>12}"
        )
        for clients in asked.clients:
            ours = medians[kind, clients, "sememe"].rate
            for name in names:
                one = medians[kind, clients, name]
                star = "*" if one.busy > BUSY else " "
                print(
                    f"{clients:7}  {name:30} {one.rate:10.0f}{star} {one.p50:9.1f} {one.p99:9.1f} "
                    f"{one.errors:7} {ours / max(one.rate, 1e-9):12.2f}"
                )
    return medians


def compare_paced(
    servers: dict[str, str],
    loads: dict[str, Path],
    rates: dict[str, list[float]],
    asked: argparse.Namespace,
) -> None:
    """Send the servers the same requests at the same rates, and print their latencies.

    A p99 means something with 30 slower requests or more: 3,000 requests over all rounds.
    """
    found: dict[tuple[str, float, str], list[Measured]] = {}
    names = list(servers)
    for turn in range(asked.rounds):
        for kind, bodies in loads.items():
            for rate in rates[kind]:
                for name in in_turn(names, turn):
                    wait_until_idle(SERVERS.values())
                    one = measure_paced(servers[name], bodies, rate, 3 * asked.seconds)
                    found.setdefault((kind, rate, name), []).append(one)
    print("\nequal rates, latency of all rounds from the time a request was due")
    for kind in loads:
        print(
            f"\n{kind}\n{'sent/s':>7}  {'server':30} {'p50 ms':>9} {'p99 ms':>9} "
            f"{'p99 of each round':>30} {'errors':>7}"
        )
        for rate in rates[kind]:
            for name in names:
                several = found[kind, rate, name]
                p50, p99 = np.percentile([ms for own in several for ms in own.times], [50, 99])
                num_errors = sum(own.errors for own in several)
                rounds = " ".join(f"{own.p99:.0f}" for own in several)
                print(f"{rate:7.0f}  {name:30} {p50:9.1f} {p99:9.1f} {rounds:>30} {num_errors:7}")


def write_bodies(
    folder: Path, name: str, inputs: list[str] | list[list[str]], encoding: str
) -> Path:
    """One request per line."""
    path = folder / f"{name}.bodies"
    lines = (body_of(own, encoding) for own in inputs)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def compare_encoder(asked: argparse.Namespace) -> None:
    """`sememe serve` beside sentence-transformers in FastAPI, and `embed` without HTTP."""
    folder = Path(tempfile.mkdtemp())
    loads = {
        kind: write_bodies(folder, kind, some_inputs(kind, NUM_BODIES), asked.encoding)
        for kind in asked.kinds
    }
    commands = {
        "sememe": sememe_command(asked.model, asked.threads),
        "sentence-transformers, def": peer_command("def", asked.model, asked.threads),
        "sentence-transformers, async": peer_command("async", asked.model, asked.threads),
    }
    if asked.infinity:
        commands["infinity"] = infinity_command(asked.infinity, asked.model)
    offline: list[dict[str, float]] = []
    with contextlib.ExitStack() as stack:
        servers = {
            name: stack.enter_context(
                serving(command, asked.threads, "/health" if name == "infinity" else "/ready")
            )
            for name, command in commands.items()
        }
        texts = some_texts("mixed", 30)  # warms up as well
        expected_ND = vectors_of(servers["sememe"], texts)
        for name in list(servers)[1:]:
            difference = np.abs(vectors_of(servers[name], texts) - expected_ND).max()
            print(f"{name}: largest difference {difference:.1e}", flush=True)
        rates = dict.fromkeys(loads, asked.rates)
        if asked.clients:
            found = compare(servers, loads, asked, lambda: offline.append(offline_rates(asked)))
            print_shares(found, offline, asked)
            slowest = {
                kind: min(
                    max(found[kind, clients, name].rate for clients in asked.clients)
                    for name in servers
                )
                for kind in loads
            }
            if not asked.rates:
                rates = {
                    kind: [share * most for share in asked.shares] for kind, most in slowest.items()
                }
        if any(rates.values()):
            compare_paced(servers, loads, rates, asked)


def print_shares(
    found: dict[tuple[str, int, str], Measured],
    offline: list[dict[str, float]],
    asked: argparse.Namespace,
) -> None:
    """Print the rate without HTTP, and the part of it that each number of clients got."""
    print("\nsememe.load(MODEL).embed, without HTTP, median of the rounds")
    for kind in asked.kinds:
        rate = statistics.median(one[kind] for one in offline)
        per_request = BULK if kind == "bulk" else 1
        shares = ", ".join(
            f"{clients} clients {per_request * found[kind, clients, 'sememe'].rate / rate:.0%}"
            for clients in asked.clients
        )
        print(f"{kind:7} {rate:8.0f} texts/s; of it got {shares}", flush=True)


def compare_static(asked: argparse.Namespace) -> None:
    """Word vectors beside a FastAPI route that returns ready bytes of the same length."""
    import sememe

    folder = Path(tempfile.mkdtemp())
    words = [str(word) for word in sememe.load(asked.model)][:NUM_BODIES]
    lists = [words[first : first + 32] for first in range(len(words) - 31)]
    loads = {
        "one word": write_bodies(folder, "one", [[word] for word in words], asked.encoding),
        "32 words": write_bodies(folder, "many", lists, asked.encoding),
    }
    with contextlib.ExitStack() as stack:
        ours = stack.enter_context(
            serving(sememe_command(asked.model, asked.threads), asked.threads)
        )
        for inputs in (words[:1], lists[0]):
            (folder / f"{len(inputs)}.json").write_bytes(post(ours, inputs, asked.encoding))
        peer = peer_command("ready", str(folder), asked.threads)
        theirs = stack.enter_context(serving(peer, asked.threads))
        compare({"sememe": ours, "FastAPI, ready bytes": theirs}, loads, asked)


def parse() -> argparse.Namespace:
    """The arguments; `peer`, `client` and `offline` are what this file starts itself."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    modes = parser.add_subparsers(dest="mode", required=True, metavar="{encoder,static}")
    for name in ("encoder", "static"):
        mode = modes.add_parser(name)
        mode.add_argument("model", metavar="MODEL" if name == "encoder" else "VECTORS")
        mode.add_argument("--threads", type=int, default=2)
        mode.add_argument("--rounds", type=int, default=3)
        mode.add_argument("--seconds", type=float, default=3, help="length of one load")
        mode.add_argument(
            "--encoding", choices=("float", "base64"), default="float",
            help="of vectors; the client of OpenAI asks for base64",
        )  # fmt: skip
        mode.add_argument("--clients", type=int, nargs="*", default=[1, 4, 16, 64])
        if name == "encoder":
            mode.add_argument("--infinity", default="", help="the program infinity_emb")
            mode.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
            mode.add_argument(
                "--shares", type=float, nargs="*", default=[0.5, 0.8],
                help="equal rates, as shares of what the slowest server answers",
            )  # fmt: skip
            mode.add_argument(
                "--rates", type=float, nargs="*", default=[],
                help="equal rates in requests per second, instead of --shares",
            )  # fmt: skip
    peer = modes.add_parser("peer")
    peer.add_argument("kind", choices=("def", "async", "ready"))
    peer.add_argument("source")
    peer.add_argument("--threads", type=int, default=2)
    peer.add_argument("--port", type=int, required=True)
    client = modes.add_parser("client")
    client.add_argument("url")
    client.add_argument("bodies", type=Path)
    client.add_argument("--clients", type=int, default=1)
    client.add_argument("--rate", type=float, default=0, help="requests per second; 0: by clients")
    client.add_argument("--seconds", type=float, default=3)
    offline = modes.add_parser("offline")
    offline.add_argument("model")
    offline.add_argument("--threads", type=int, default=2)
    offline.add_argument("--seconds", type=float, default=3)
    offline.add_argument("--kinds", nargs="+", default=KINDS)
    return parser.parse_args()


def main() -> None:
    """Run the mode that the arguments name."""
    asked = parse()
    if asked.mode == "encoder":
        compare_encoder(asked)
    elif asked.mode == "static":
        compare_static(asked)
    elif asked.mode == "peer":
        run_peer(asked.kind, asked.source, asked.threads, asked.port)
    elif asked.mode == "offline":
        run_offline(asked.model, asked.threads, asked.seconds, asked.kinds)
    else:
        bodies = asked.bodies.read_text(encoding="utf-8").splitlines()
        sent = (
            pace(asked.url, bodies, asked.rate, asked.seconds)
            if asked.rate
            else load(asked.url, bodies, asked.clients, asked.seconds)
        )
        print(json.dumps(asyncio.run(sent)))


if __name__ == "__main__":
    main()
