"""Small labelled texts whose labels can be learned in a second."""

from __future__ import annotations

import numpy as np

TOPICS = {
    "food": "noodles tea rice soup bread 面条 米饭 apple butter cook",
    "travel": "train ticket hotel beach map 火车 机票 luggage road plane",
    "weather": "rain snow wind cloud storm 下雨 晴天 sun cold degrees",
}
COMMON = ["the", "a", "of", "and", "to", "in", "is", "it", "was", "for"]


def rows(num: int, seed: int = 1) -> list[tuple[str, str]]:
    """Pairs (text, topic); every text has a few words of its topic among common ones."""
    draw = np.random.default_rng(seed)
    names = sorted(TOPICS)
    result = []
    for _ in range(num):
        topic = names[draw.integers(3)]
        words = [*draw.choice(TOPICS[topic].split(), 3), *draw.choice(COMMON, 5)]
        result.append((" ".join(draw.permutation(words)), topic))
    return result


def lines(num: int, seed: int = 1) -> str:
    """The same as a file of Facebook's program has it."""
    return "".join(f"__label__{topic} {text}\n" for text, topic in rows(num, seed))
