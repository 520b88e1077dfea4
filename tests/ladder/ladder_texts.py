"""Small texts to climb on: documents of a few topics, in English and Chinese."""

from __future__ import annotations

import json
import random
from pathlib import Path

TOPICS = {
    "sea": "ship sailor harbor wave storm captain anchor island coast tide",
    "farm": "field farmer horse wheat barn plough harvest cattle meadow tractor",
    "court": "judge lawyer trial witness verdict jury crime prison appeal sentence",
    "kitchen": "cook oven bread butter flour recipe knife salt onion kettle",
}
CHINESE = {
    "海": "轮船 水手 港口 海浪 风暴 船长 海岛 海岸 潮水 灯塔",
    "农": "田野 农民 小麦 谷仓 收获 牛羊 草地 拖拉机 种子 果园",
    "法": "法官 律师 审判 证人 判决 犯罪 监狱 上诉 法院 证据",
}


def documents(num: int = 60, *, sentences: int = 14, seed: int = 1) -> list[str]:
    """Documents of one topic each."""
    draw = random.Random(seed)
    found = []
    for index in range(num):
        words = list(TOPICS.values())[index % len(TOPICS)].split()
        lines = []
        for _ in range(sentences):
            a, b, c, d = (draw.choice(words) for _ in range(4))
            lines.append(f"The {a} of the {b} was near the {c} when the old {d} came home.")
        found.append(" ".join([*lines, f"Nobody saw the {words[0]}{'aeiou'[index % 5]}x{index}."]))
    return found


def chinese_documents(num: int = 60, *, sentences: int = 14, seed: int = 1) -> list[str]:
    """The same in Chinese."""
    draw = random.Random(seed)
    found = []
    for index in range(num):
        words = list(CHINESE.values())[index % len(CHINESE)].split()
        lines = []
        for _ in range(sentences):
            a, b, c = (draw.choice(words) for _ in range(3))
            lines.append(f"{a}和{b}在{c}的旁边，大家都看见了。")
        found.append("".join(lines))
    return found


def write(path: Path, texts: list[str]) -> Path:
    """A file of documents, a JSON object a line."""
    lines = [json.dumps({"text": text}, ensure_ascii=False) for text in texts]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path
