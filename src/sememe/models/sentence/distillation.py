"""Distill a sentence encoder into token vectors: a teacher and a corpus in, a static model out.

As model2vec: the teacher embeds each token by itself, the principal components of what it gives
are kept, and frequent tokens weigh less (SIF; without a corpus by Zipf's law, from a token's rank).
With a corpus, the table is then trained so that the mean over the tokens of a sentence points where
the teacher's vector does (as Tokenlearn), and its frequent words can become tokens of their own.

V tokens, S sentences, D dimensions of the student, E of the teacher.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sememe.errors import OptionError
from sememe.examples.sentence_rows import corpus_rows
from sememe.models.sentence.config import DistillConfig
from sememe.models.sentence.model import SentenceModel
from sememe.models.sentence.token_vectors import TokenVectors
from sememe.models.sif.model import frequencies
from sememe.options import changed, sorted_options
from sememe.progress import History, Reporter, as_reporter
from sememe.storage.folder import check_replaceable
from sememe.text.characters import is_han
from sememe.text.settings import TextSettings
from sememe.tokens.caching import open_or_build
from sememe.tokens.subwords.tokenizer import SubwordTokenizer

_HELD_OUT = 20  # one sentence of 20 is not trained on
_LONGEST_RUN = 10_000  # characters of Chinese without a space that become tokens


def distill(
    model: Any,
    corpus: Any = None,
    *,
    out: str | Path | None = None,
    overwrite: bool = False,
    text: TextSettings | None = None,
    config: DistillConfig | None = None,
    progress: Reporter | bool | None = None,
    **options: Any,
) -> SentenceModel:
    """Distill a sentence encoder or a BERT into token vectors, and save them to `out`.

    `corpus` is any text that sememe reads; without it nothing is trained. `text` says how it is
    read; `options` are those of DistillConfig, and of the text by name (language="zh").
    """
    given = sorted_options("distill", options, {"config": DistillConfig, "text": TextSettings})
    config = changed(config or DistillConfig(), "distill", given["config"])
    reporter = as_reporter(progress)
    if out is not None:
        check_replaceable(Path(out), SentenceModel.kind, overwrite=overwrite)
    teacher = SentenceModel(model)
    network = getattr(teacher.base, "network", None)
    if network is None or getattr(teacher.base.tokenizer, "kind", "") != "wordpiece":
        raise OptionError("Only a BERT, or a sentence encoder on one, can be distilled.")
    if corpus is None and config.words:
        raise OptionError("words are taken from a corpus: give one.")
    if config.words and isinstance(corpus, Iterator):
        corpus = list(corpus)  # it is read twice
    text = changed(text or teacher.text, "distill", given["text"])
    tokenizer, ids_V = _vocabulary(teacher.base.tokenizer, corpus, text, config, reporter)
    sentences = []
    if corpus is not None:
        most = config.train_sentences or DistillConfig.train_sentences
        found, _ = corpus_rows(corpus, "simcse", text, seed=config.seed, most=most)
        sentences = [row.texts[0] for row in found.rows]
    table_VE = _token_table(teacher, ids_V, reporter)
    # Special and unknown tokens say nothing: they are skipped here as they are in embedding.
    special = tokenizer.special_ids
    known = [
        [one for one in own if one not in special]
        for own in (tokenizer.ids_batch(sentences) if sentences else [])
    ]
    weights_V = _weights(known, tokenizer, config.a)
    targets_SE = np.empty((0, table_VE.shape[1]), np.float32)
    if sentences and config.train_sentences:
        with reporter.task("teacher", len(sentences), "sentences") as task:
            parts = []
            for first in range(0, len(sentences), 1_024):
                parts.append(teacher.embed(sentences[first : first + 1_024]))
                task.update(first + len(parts[-1]))
        # What all sentences share says nothing about any of them.
        targets_SE = np.concatenate(parts) - np.mean(np.concatenate(parts), axis=0)
    dim = min(config.dim or table_VE.shape[1], table_VE.shape[1])
    basis_ED = _components(targets_SE if len(targets_SE) > dim else table_VE, dim)
    table_VD = ((table_VE - table_VE.mean(0)) @ basis_ED * weights_V[:, None]).astype(np.float32)
    table_VD[sorted(special)] = 0  # programs that do not skip them get the same vectors
    history = History()
    if len(targets_SE):
        table_VD = _trained(table_VD, known, targets_SE @ basis_ED, config, history, reporter)
    student = SentenceModel(TokenVectors(tokenizer, table_VD, tokenizer.unk_id), normalize=True)
    student.text, student.is_pretrained = text, True
    student.distilled = {
        "teacher": teacher.parent, "sentences": len(targets_SE), "config": config.to_dict(),
        "metrics": {**history.last(), "start_cosine": history[0]["validation_cosine"]}
        if history else {},
    }  # fmt: skip
    if out is not None:
        student.save(out)
    return student


# ---- the vocabulary -----------------------------------------------------------------------------


def _vocabulary(
    tokenizer: SubwordTokenizer,
    corpus: Any,
    text: TextSettings,
    config: DistillConfig,
    reporter: Reporter,
) -> tuple[SubwordTokenizer, list[list[int]]]:
    """The student's tokenizer, and the teacher's ids of each of its tokens."""
    ids_V = [[index] for index in range(tokenizer.vocab_size)]
    if not config.words:
        return tokenizer, ids_V
    store = open_or_build(corpus, text, min_count=2, progress=reporter)
    content = json.loads(tokenizer.to_json())
    vocabulary = content["model"]["vocab"]

    def add(word: str, ids: Sequence[int]) -> None:
        if word not in vocabulary:
            vocabulary[word] = len(ids_V)
            ids_V.append(list(ids))

    is_chinese = text.mode == "chinese"
    if is_chinese:
        # Characters are no longer split: the longest words match, at the start and inside of a run
        # of known characters. One unknown character would make all of a run unknown.
        known = [word for word in vocabulary if len(word) == 1 and is_han(word)]
        content["normalizer"]["handle_chinese_chars"] = False
        content["model"]["max_input_chars_per_word"] = _LONGEST_RUN
        runs = {"type": "Split", "pattern": {"Regex": f"[{''.join(known)}]+"},
                "behavior": "Isolated", "invert": False}  # fmt: skip
        content["pre_tokenizer"] = {
            "type": "Sequence", "pretokenizers": [runs, content["pre_tokenizer"]]
        }  # fmt: skip
        for word in known:
            add(f"##{word}", [vocabulary[word]])
    num_before = len(ids_V)
    for word in store.vocabulary[: 2 * config.words]:
        if len(ids_V) - num_before >= config.words * (2 if is_chinese else 1):
            break
        ids = tokenizer.ids_batch([word])[0]
        if tokenizer.unk_id in ids or (not is_chinese and tokenizer.words_of(word) != [word]):
            continue
        add(word, ids)
        if is_chinese and all(map(is_han, word)):
            add(f"##{word}", ids)
    reporter.note(f"{len(ids_V) - num_before:,} words of the corpus become tokens.")
    return SubwordTokenizer.from_json(json.dumps(content)), ids_V


def _token_table(teacher: SentenceModel, ids_V: list[list[int]], reporter: Reporter) -> np.ndarray:
    """What the teacher gives for each token alone, (V, E)."""
    parts = []
    with reporter.task("tokens", len(ids_V), "tokens") as task:
        for first in range(0, len(ids_V), 4_096):
            parts.append(teacher.embed_ids(ids_V[first : first + 4_096]))
            task.update(first + len(parts[-1]))
    return np.concatenate(parts)


def _weights(known: list[list[int]], tokenizer: SubwordTokenizer, a: float) -> np.ndarray:
    """SIF's weight of each token; by Zipf's law from its rank without sentences."""
    counts_V = np.zeros(tokenizer.vocab_size)
    if known:
        flat = np.array([one for own in known for one in own], np.int64)
        counts_V = np.bincount(flat, minlength=tokenizer.vocab_size).astype(np.float64)
    return a / (a + frequencies(counts_V))


def _components(rows_NE: np.ndarray, dim: int) -> np.ndarray:
    """The first principal directions of rows, (E, D)."""
    exact_NE = rows_NE.astype(np.float64)
    turned_EE = np.linalg.eigh(exact_NE.T @ exact_NE)[1]
    return turned_EE[:, ::-1][:, :dim].astype(np.float32)


# ---- training -----------------------------------------------------------------------------------


def _trained(
    table_VD: np.ndarray,
    known: list[list[int]],
    targets_SD: np.ndarray,
    config: DistillConfig,
    history: History,
    reporter: Reporter,
) -> np.ndarray:
    """Move the token vectors until the means of sentences point where the teacher's do."""
    import torch

    torch.manual_seed(config.seed)
    kept = [index for index, own in enumerate(known) if own]
    held = [index for index in kept if index % _HELD_OUT == 0]
    kept = [index for index in kept if index % _HELD_OUT]
    targets_SD = targets_SD / np.maximum(np.linalg.norm(targets_SD, axis=1, keepdims=True), 1e-12)
    bag = torch.nn.EmbeddingBag.from_pretrained(
        torch.from_numpy(table_VD.copy()), freeze=False, mode="mean"
    )
    adam = torch.optim.Adam(bag.parameters(), config.learning_rate)
    shuffled = np.random.default_rng(config.seed)

    def cosines(rows: Sequence[int]) -> Any:
        flat = torch.tensor([one for index in rows for one in known[index]])
        starts = np.cumsum([0, *(len(known[index]) for index in rows[:-1])])
        wanted = torch.from_numpy(np.ascontiguousarray(targets_SD[rows], np.float32))
        return torch.nn.functional.cosine_similarity(bag(flat, torch.from_numpy(starts)), wanted)

    def measured() -> float:
        with torch.no_grad():
            return float(cosines(held).mean()) if held else float("nan")

    history.append({"epoch": 0, "validation_cosine": measured()})
    num_steps = max(1, -(-len(kept) // config.batch_size))
    with reporter.task("training", config.epochs * num_steps, "steps") as task:
        for epoch in range(config.epochs):
            order = shuffled.permutation(kept)
            total = 0.0
            for step in range(num_steps):
                done = epoch * num_steps + step
                for group in adam.param_groups:  # linear decay
                    group["lr"] = config.learning_rate * (1 - done / (config.epochs * num_steps))
                rows = order[step * config.batch_size : (step + 1) * config.batch_size].tolist()
                if rows:
                    loss = (1 - cosines(rows)).mean()
                    adam.zero_grad()
                    loss.backward()
                    adam.step()
                    total += float(loss.detach())
                task.update(done + 1)
            history.append(
                {"epoch": epoch + 1, "loss": total / num_steps, "validation_cosine": measured()}
            )
    before, after = (record["validation_cosine"] for record in (history[0], history[-1]))
    reporter.note(f"Cosine to the teacher on held-out sentences: {before:.3f}, then {after:.3f}.")
    return np.asarray(bag.weight.detach().numpy(), np.float32)
