"""Examples for BERT and GPT: how many tokens are prepared in a second, beside transformers.

python benchmarks/examples.py [TEXT] [--language zh] [--vocab-size 16384]

Without TEXT the built-in corpus is taken. Each line says how fast batches are made by one thread,
cutting, shuffling and masking included; the text has been turned into ids before. transformers'
collator is given rows that are cut already, and masks and pads them.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from typing import Any

BATCHES = 300
SIZES = ((128, 256), (512, 64))


def measure(make: Callable[[int], int], num: int = BATCHES) -> float:
    """Tokens in a second; the first batches compile and plan, and are not counted."""
    make(0), make(1)
    begun, tokens = time.perf_counter(), 0
    for step in range(2, num):
        tokens += make(step)
    return tokens / (time.perf_counter() - begun)


def ours(store: Any, tokenizer: Any) -> Iterator[tuple[str, float]]:
    """Every kind of batch of ours with its speed."""
    from sememe.examples.masking.batches import MaskedBatches
    from sememe.examples.masking.config import MaskingConfig
    from sememe.examples.packing.rows import PackedBatches

    for length, batch_size in SIZES:
        sizes = {"length": length, "batch_size": batch_size}
        for rows, next_sentence in (("pairs", True), ("full sentences", False)):
            for unit in ("token", "word", "phrase"):
                source = MaskedBatches(
                    store, tokenizer, MaskingConfig(unit=unit), next_sentence=next_sentence, **sizes
                )
                speed = measure(lambda step, source=source: source.batch(step).num_tokens)
                yield f"{rows} of {length}, {unit} masks", speed
                if unit == "token" and next_sentence:
                    print(f"  left out by cutting: {source.num_trimmed / source.num_tokens:.1%}")
        packed = PackedBatches(store, tokenizer, **sizes)
        speed = measure(lambda step, packed=packed: packed.batch(step).num_tokens)
        yield f"running text of {length}", speed


def theirs(store: Any, tokenizer: Any, folder: str) -> Iterator[tuple[str, float]]:
    """Collators of transformers on rows that we cut."""
    from transformers import AutoTokenizer, DataCollatorForLanguageModeling

    from sememe.examples.masking.batches import MaskedBatches

    tokenizer.save(folder)
    collator = DataCollatorForLanguageModeling(AutoTokenizer.from_pretrained(folder))
    for length, batch_size in SIZES:
        source = MaskedBatches(store, tokenizer, length=length, batch_size=batch_size)
        batches = []
        for step in range(40):
            batch = source.batch(step)
            rows = zip(batch.ids_BT.tolist(), batch.lengths_B.tolist(), strict=True)
            batches.append([{"input_ids": ids[:length]} for ids, length in rows])

        def collate(step: int, batches: Any = batches) -> int:
            collator(batches[step])
            return sum(len(row["input_ids"]) for row in batches[step])

        yield f"transformers, pairs of {length}, token masks", measure(collate, len(batches))


def main() -> None:
    """Print the speeds."""
    import tempfile

    from sememe.text.settings import TextSettings
    from sememe.tokens.subwords.store import open_or_build_subwords
    from sememe.tokens.subwords.tokenizer import SubwordTokenizer

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("text", nargs="?")
    parser.add_argument("--language", default="en")
    parser.add_argument("--vocab-size", type=int, default=16_384)
    asked = parser.parse_args()
    text = TextSettings(language=asked.language)
    tokenizer = SubwordTokenizer.train(asked.text, vocab_size=asked.vocab_size, text=text)
    store = open_or_build_subwords(asked.text, tokenizer, text=text)
    print(store)
    with tempfile.TemporaryDirectory() as folder:
        for found in (ours(store, tokenizer), theirs(store, tokenizer, folder)):
            for name, speed in found:
                print(f"{name:45} {speed / 1e6:7.1f} M tokens/s")


if __name__ == "__main__":
    main()
