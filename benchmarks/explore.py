"""Speed of the explorer's page, measured in chromium without a GPU.

    python benchmarks/explore.py [--vectors glove.6B.50d.txt] [--rounds 5]

- first useful paint: from the start of the navigation until the neighbors of a word are listed, and
  until the map of 5,000 words has its colors
- neighbors among 400,000 words: from Enter in the word's field until the new list is on the screen
- frames per second of the map of 100,000 words, moved and zoomed in every frame
- attention of 512 tokens: from a new text until the matrix of one layer is drawn (BERT small)

Without --vectors, 400,000 random vectors of 50 dimensions with made-up words are used. BERT has
almost random weights (one step of training): speed does not depend on them. Needs playwright and
chromium.
"""

from __future__ import annotations

import argparse
import itertools
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

NUM_WORDS, DIM = 400_000, 50
COMMAND = [sys.executable, "-m", "sememe"]
# Notes when something first appears, after the frame that shows it.
SEEN = """
window.seen = (test) => new Promise((resolve) => {
  const tell = () => setTimeout(() => resolve(performance.now()));
  const look = () => requestAnimationFrame(test() ? tell : look);
  look();
});
"""
FRAMES = """
async (seconds) => {
  const canvas = document.querySelector(".plot canvas");
  const {width, height} = canvas.getBoundingClientRect();
  const send = (name, x, y, more = {}) => {
    const kind = name === "wheel" ? WheelEvent : PointerEvent;
    const box = canvas.getBoundingClientRect();
    canvas.dispatchEvent(new kind(name, {bubbles: true, cancelable: true, pointerId: 7,
      clientX: box.left + x, clientY: box.top + y, ...more}));
  };
  const times = [];
  const frame = () => new Promise(requestAnimationFrame);
  await frame();
  send("pointerdown", width / 2, height / 2);
  const start = performance.now();
  for (let turn = 0; performance.now() - start < 1000 * seconds; turn++) {
    const angle = turn / 12;
    send("pointermove", width / 2 + 80 * Math.cos(angle), height / 2 + 80 * Math.sin(angle));
    send("wheel", width / 2, height / 2, {deltaY: turn % 60 < 30 ? -30 : 30});
    times.push(await frame());
  }
  send("pointerup", width / 2, height / 2);
  const gaps = times.slice(1).map((time, index) => time - times[index]).sort((a, b) => a - b);
  const total = gaps.reduce((a, b) => a + b);
  return {fps: 1000 * gaps.length / total, slowest: gaps[Math.floor(0.95 * gaps.length)]};
}
"""


def made_up_words(num: int, seed: int) -> list[str]:
    """Different words of syllables."""
    draw = random.Random(seed)
    syllables = [a + b for a, b in itertools.product("bdfgklmnprstvz", "aeiou")]
    found: dict[str, None] = {}
    while len(found) < num:
        found["".join(draw.choices(syllables, k=draw.randint(2, 5)))] = None
    return list(found)


def write_vectors(path: Path) -> list[str]:
    """Random vectors in the text format of GloVe."""
    words = made_up_words(NUM_WORDS, 1)
    draw = np.random.default_rng(1)
    with path.open("w", encoding="utf-8") as file:
        for word in words:
            row = " ".join(f"{value:.4f}" for value in draw.standard_normal(DIM))
            file.write(f"{word} {row}\n")
    return words


def write_bert(folder: Path) -> list[str]:
    """BERT small after one step on made-up words, which it knows as whole tokens."""
    draw = random.Random(2)
    words = made_up_words(300, 2)
    text = folder / "text.txt"
    text.write_text("\n".join(" ".join(draw.choices(words, k=20)) for _ in range(3_000)), "utf-8")
    subprocess.run(
        [
            *COMMAND, "train", "bert", text, "--out", folder / "bert", "--preset", "small",
            "--vocab-size", "2000", "--steps", "1", "--batch-size", "2", "--device", "cpu",
            "--quiet",
        ],
        check=True,
    )  # fmt: skip
    return words


@contextmanager
def explored(paths: list[Path]) -> Iterator[str]:
    """The address of the page, served by the command."""
    with subprocess.Popen(
        [*COMMAND, "explore", *map(str, paths), "--no-browser", "--port", "0", "--device", "cpu"],
        stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        try:
            line = next(line for line in process.stdout or () if "http://" in line)
            yield "http://" + line.split("http://")[1].split()[0]
        finally:
            process.terminate()


@contextmanager
def browser() -> Iterator[Any]:
    """Chromium without a window and without a GPU."""
    from playwright.sync_api import sync_playwright

    path = shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        yield found
        found.close()


def first_paint(tabs: Any, address: str, place: str, test: str, rounds: int) -> list[float]:
    """Milliseconds from the navigation until `test` is true and drawn, each in a new profile."""
    times = []
    for _ in range(rounds):
        with tabs.new_context() as context:
            context.add_init_script(SEEN)
            page = context.new_page()
            page.goto(f"{address}#/{place}", wait_until="commit")
            times.append(page.evaluate(f"() => seen(() => {test})"))
    return times


def key_to_list(page: Any, words: list[str]) -> list[float]:
    """Milliseconds from Enter to the list of each word's neighbors."""
    ask = """async (word) => {
      const input = document.querySelector("input[type=text]");
      input.focus();
      input.value = word;
      const before = document.querySelector(".bars");
      const start = performance.now();
      input.dispatchEvent(new KeyboardEvent("keydown", {key: "Enter", bubbles: true}));
      const item = () => document.querySelector(".bars li");
      return await seen(() => item() && document.querySelector(".bars") !== before) - start;
    }"""
    return [page.evaluate(ask, word) for word in words]


def attention_times(page: Any, address: str, words: list[str], rounds: int) -> list[float]:
    """Milliseconds from a new text of 512 tokens to the matrix of one layer."""
    draw = random.Random(3)
    ask = """async (place) => {
      document.querySelector("main").replaceChildren();
      const start = performance.now();
      location.hash = place;
      return await seen(() => document.querySelector(".attention-cells, .attention-lines")) - start;
    }"""
    page.goto(f"{address}#/attention?models=bert")
    page.wait_for_selector(".attention-lines, .attention-cells")
    times = []
    for number in range(rounds):
        text = " ".join(draw.choices(words, k=510))
        times.append(
            page.evaluate(ask, f"#/attention?models=bert&at={number % 4 + 1}&text={quote(text)}")
        )
    return times


def told(name: str, times: list[float], limit: float) -> None:
    """Print the median and the worst beside the limit."""
    median, worst = statistics.median(times), max(times)
    print(f"{name:<44} {median:>7,.0f} ms  (worst {worst:,.0f}; goal {limit:,.0f})", flush=True)


def main() -> None:
    """Prepare the models, open the page and measure."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--vectors", type=Path, help="a file of 400,000 word vectors")
    options.add_argument("--bert", type=Path, help="folder with what an earlier run has --kept")
    options.add_argument("--keep", type=Path, help="write the models here and stop")
    options.add_argument("--rounds", type=int, default=5)
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = given.keep or given.bert or Path(name)
        folder.mkdir(exist_ok=True)
        if not (folder / "bert").exists():
            write_bert(folder)
        vectors = given.vectors or folder / "vectors.txt"
        if not vectors.exists():
            write_vectors(vectors)
        if not given.keep:
            measure(vectors, folder / "bert", given.rounds)


def measure(vectors: Path, bert: Path, rounds: int) -> None:
    """All figures, in the order of the docstring."""
    with vectors.open(encoding="utf-8") as file:
        words = [line.split(" ", 1)[0] for line in itertools.islice(file, 20_000)]
    chosen = [word for word in words if word.isalpha()][100::150][: 6 * rounds]
    known = made_up_words(300, 2)
    one = quote(vectors.name)
    with browser() as tabs, explored([vectors, bert]) as address:
        page = tabs.new_page(viewport={"width": 1280, "height": 900})
        page.add_init_script(SEEN)
        page.goto(f"{address}#/words?models={one}&word={quote(chosen[0])}")
        page.wait_for_selector(".bars li", timeout=120_000)  # the models are loaded
        key_to_list(page, chosen[1:3])
        near = key_to_list(page, chosen[3:])
        page.close()
        place = f"words?models={one}&word={quote(chosen[0])}"
        listed = 'document.querySelector(".bars li")'
        told(
            "first paint: neighbors of a word",
            first_paint(tabs, address, place, listed, rounds),
            1_500,
        )
        colored = 'document.querySelector(".legend .scale")'
        told(
            "first paint: map of 5,000 words",
            first_paint(tabs, address, f"map?models={one}", colored, rounds), 1_500,
        )  # fmt: skip
        told("neighbors among 400,000 words, key to list", near, 100)
        page = tabs.new_page(viewport={"width": 1280, "height": 900})
        page.add_init_script(SEEN)
        page.goto(f"{address}#/map?models={one}&num=100000")
        page.wait_for_selector(".legend .scale", timeout=60_000)
        for _ in range(2):
            frames = page.evaluate(FRAMES, 4)
            print(
                f"{'map of 100,000 words, moved and zoomed':<44} {frames['fps']:>7.1f} frames/s  "
                f"(95 % under {frames['slowest']:.0f} ms; goal 30 frames/s)", flush=True,
            )  # fmt: skip
        told(
            "attention of 512 tokens, one layer",
            attention_times(page, address, known, rounds), 1_000,
        )  # fmt: skip


if __name__ == "__main__":
    main()
