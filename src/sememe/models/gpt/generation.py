"""Text generation with GPT: a prompt in, its continuation out, complete or token by token.

B rows, T tokens, V vocabulary. With the same seed, a prompt has the same continuation, whatever
other prompts are in the batch.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any, overload

import torch
from torch import Tensor

from sememe.contract import GenerationStep, NextToken, checked_finite
from sememe.errors import OptionError, TooLongError
from sememe.models.gpt.config import Sampling
from sememe.models.gpt.network import GPTNetwork
from sememe.nn.kv_cache import KVCache
from sememe.options import changed
from sememe.tokens.subwords.tokenizer import SubwordTokenizer


@overload
def generate(
    network: GPTNetwork, tokenizer: SubwordTokenizer, prompts: str, **options: Any
) -> str: ...
@overload
def generate(
    network: GPTNetwork, tokenizer: SubwordTokenizer, prompts: Sequence[str], **options: Any
) -> list[str]: ...
def generate(
    network: GPTNetwork, tokenizer: SubwordTokenizer, prompts: str | Sequence[str], **options: Any
) -> str | list[str]:
    """Continue a prompt, or several at once; return the new text without the prompt.

    The options are those of Sampling by name. A text ends early at the end-of-text token; beyond
    the network's maximum length, generation continues from the last half of the row.
    """
    texts = [prompts] if isinstance(prompts, str) else list(prompts)
    if not texts:
        return []
    rows: list[list[int]] = [[] for _ in texts]
    for new in continue_rows(network, tokenizer, texts, **options):
        for row, token_id in zip(rows, new, strict=True):
            if token_id is not None:
                row.append(token_id)
    written = [_Writer(tokenizer, text)(row) for text, row in zip(texts, rows, strict=True)]
    return written[0] if isinstance(prompts, str) else written


def stream(
    network: GPTNetwork, tokenizer: SubwordTokenizer, prompt: str, **options: Any
) -> Iterator[str]:
    """Continue a prompt and yield each part of the text as soon as it is known."""
    ids: list[int] = []
    shown, write = "", _Writer(tokenizer, prompt)
    for (token_id,) in continue_rows(network, tokenizer, [prompt], **options):
        if token_id is None:
            break
        ids.append(token_id)
        text = write(ids)
        # A multi-byte character may span several tokens; an incomplete one shows as U+FFFD.
        if not text.endswith("\ufffd") and text.startswith(shown):
            yield text[len(shown) :]
            shown = text
    rest = write(ids)
    if len(rest) > len(shown):
        yield rest[len(shown) :]


def continue_rows(
    network: GPTNetwork,
    tokenizer: SubwordTokenizer,
    prompts: Sequence[str],
    *,
    use_cache: bool = True,
    **options: Any,
) -> Iterator[list[int | None]]:
    """Yield the next token of every prompt, step by step; None for a text that has ended.

    Without `use_cache` everything is recomputed at each step: slow, with the same result.
    """
    sampling = changed(Sampling(), "generate", options)
    rows = [_prompt_ids(network, tokenizer, prompt) for prompt in prompts]
    device = network.embedding.tokens.weight.device
    choices = [_Choice(sampling, sampling.seed + index) for index in range(len(rows))]
    window = _Window(network, rows, device, use_cache)
    has_ended = [False] * len(rows)
    for _ in range(sampling.max_tokens):
        # A network may have more rows than its tokenizer has tokens: those represent no text.
        logits_BV = window.next_logits()[:, : tokenizer.vocab_size].float().cpu()
        checked_finite("GPT", logits_BV.numpy())
        new = [choose(logits_V) for choose, logits_V in zip(choices, logits_BV, strict=True)]
        for index, (row, token_id) in enumerate(zip(rows, new, strict=True)):
            row.append(token_id)
            has_ended[index] |= token_id == tokenizer.end_id
        if all(has_ended):
            return
        yield [None if ended else token for token, ended in zip(new, has_ended, strict=True)]


def generation_steps(
    network: GPTNetwork,
    tokenizer: SubwordTokenizer,
    prompt: str,
    *,
    ids: Sequence[int] = (),
    count: int = 10,
    **options: Any,
) -> Iterator[GenerationStep]:
    """Yield each step of `generate` with the `count` most likely tokens; the last may be the end.

    After `ids`, the first tokens of a generation, its other steps follow as if never interrupted.
    """
    sampling = changed(Sampling(), "generate_steps", options)
    if count < 1:
        raise OptionError(f"count must be at least 1, not {count}.")
    tokenizer.check_ids([ids])
    row = [*_prompt_ids(network, tokenizer, prompt), *ids]
    written, write = list(ids), _Writer(tokenizer, prompt)
    choose = _Choice(sampling, sampling.seed)
    choose.skip(len(ids), tokenizer.vocab_size)
    window = _Window(network, [row], network.embedding.tokens.weight.device, use_cache=True)
    for _ in range(sampling.max_tokens):
        logits_V = window.next_logits()[0, : tokenizer.vocab_size].float().cpu()
        checked_finite("GPT", logits_V.numpy())
        chosen = choose(logits_V)
        chances_V, drawn_V = logits_V.softmax(-1), choose.chances(logits_V)

        def token(
            token_id: int, chances_V: Tensor = chances_V, drawn_V: Tensor = drawn_V
        ) -> NextToken:
            text = write.added(written, token_id)
            return NextToken(token_id, text, float(chances_V[token_id]), float(drawn_V[token_id]))

        likely = chances_V.topk(min(count, len(chances_V))).indices.tolist()
        yield GenerationStep(token(chosen), [*map(token, likely)], int((drawn_V > 0).sum()))
        if chosen == tokenizer.end_id:
            return
        row.append(chosen)
        written.append(chosen)


class _Writer:
    """Turns the tokens after a prompt into text."""

    def __init__(self, tokenizer: SubwordTokenizer, prompt: str) -> None:
        self.tokenizer = tokenizer
        self.before: list[int] = []
        if tokenizer.kind != "bpe":
            # These decode words with spaces between: the last token before says what comes first.
            self.before = tokenizer.encode(prompt).ids[-1:].tolist()
        self.has_space = bool(self.before) and prompt[-1:].isspace()

    def __call__(self, ids: list[int]) -> str:
        """The text of all tokens after the prompt."""
        start = len(self.tokenizer.decode(self.before)) if self.before else 0
        text = self.tokenizer.decode([*self.before, *ids])[start:]
        return text.lstrip(" ") if self.has_space else text

    def added(self, ids: list[int], token_id: int) -> str:
        """What a token adds to the text of the tokens before it; "" for the end of the text."""
        if token_id == self.tokenizer.end_id:
            return ""
        before, after = self(ids), self([*ids, token_id])
        # A part of a character changes what was written before; it is shown as it is by itself.
        is_added = after.startswith(before)
        return after[len(before) :] if is_added else self.tokenizer.decode([token_id])


def _prompt_ids(network: GPTNetwork, tokenizer: SubwordTokenizer, prompt: str) -> list[int]:
    # An empty prompt starts like a new text: after the end of another.
    ids = [int(token_id) for token_id in tokenizer.encode(prompt).ids] or [tokenizer.end_id]
    if len(ids) >= network.config.max_length:
        raise TooLongError(
            f"The prompt has {len(ids):,} tokens, but this network sees no more than "
            f"{network.config.max_length:,} at once and needs room to write: shorten the prompt."
        )
    return ids


class _Choice:
    """Samples the tokens of one row, with its own random generator."""

    def __init__(self, sampling: Sampling, seed: int) -> None:
        self.sampling = sampling
        self.generator = torch.Generator().manual_seed(seed)

    def __call__(self, logits_V: Tensor) -> int:
        if not self.sampling.temperature:
            return int(logits_V.argmax())
        return int(torch.multinomial(self.chances(logits_V), 1, generator=self.generator))

    def chances(self, logits_V: Tensor) -> Tensor:
        """The probabilities by which a token is drawn, (V,)."""
        if not self.sampling.temperature:
            chances_V = torch.zeros_like(logits_V)
            chances_V[logits_V.argmax()] = 1.0
            return chances_V
        return narrowed(logits_V, self.sampling).softmax(-1)

    def skip(self, num: int, vocab_size: int) -> None:
        """Go on as after `num` tokens: a draw takes as many random numbers as there are tokens."""
        for _ in range(num if self.sampling.temperature else 0):
            torch.multinomial(torch.ones(vocab_size), 1, generator=self.generator)


def narrowed(logits_V: Tensor, sampling: Sampling) -> Tensor:
    """Scores after temperature, top-k and top-p, in this order; excluded ones get -inf."""
    if sampling.temperature <= 0:
        raise OptionError("A temperature of 0 leaves nothing to draw: take the largest score.")
    logits_V = logits_V / sampling.temperature
    if 0 < sampling.top_k < len(logits_V):
        limit = logits_V.topk(sampling.top_k).values[-1]
        logits_V = logits_V.masked_fill(logits_V < limit, -math.inf)
    if sampling.top_p < 1:
        sorted_V, order_V = logits_V.sort(descending=True, stable=True)
        before_V = sorted_V.softmax(-1).cumsum(-1) - sorted_V.softmax(-1)
        # The first token is always kept, so that there is a choice.
        is_out_V = before_V >= sampling.top_p
        is_out_V[0] = False
        logits_V = logits_V.masked_fill(is_out_V[order_V.argsort()], -math.inf)
    return logits_V


class _Window:
    """The part of growing rows that the network sees, and its cached keys and values."""

    def __init__(
        self, network: GPTNetwork, rows: list[list[int]], device: torch.device, use_cache: bool
    ) -> None:
        self.network, self.rows, self.device = network, rows, device
        self.use_cache = use_cache
        self.starts = [0] * len(rows)
        self.cache: KVCache | None = None

    @torch.no_grad()
    def next_logits(self) -> Tensor:
        """Score the next token of every row, (B, V)."""
        self._roll()
        lengths_B = torch.tensor(self._lengths(), device=self.device)
        if self.cache is None or not self.use_cache:
            hidden_BTD = self._first_pass(max(self._lengths()))
            last_BD = hidden_BTD[torch.arange(len(self.rows)), lengths_B - 1]
        else:
            ids_B1 = torch.tensor([[row[-1]] for row in self.rows], device=self.device)
            places_B1 = (lengths_B - 1)[:, None]
            self.cache.use(max(self._lengths()))
            last_BD = self.network.extend(ids_B1, places_B1, self.cache)[:, 0]
        return self.network.next_logits(last_BD)

    def _lengths(self) -> list[int]:
        return [len(row) - start for row, start in zip(self.rows, self.starts, strict=True)]

    def _roll(self) -> None:
        """Restart from the last half of a row that exceeds the training length."""
        limit = self.network.seen_length
        for index, row in enumerate(self.rows):
            if len(row) - self.starts[index] > limit:
                self.starts[index] = len(row) - limit // 2 - 1
                self.cache = None

    def _first_pass(self, num_tokens: int) -> Tensor:
        ids_BT = torch.zeros(len(self.rows), num_tokens, dtype=torch.int64, device=self.device)
        for index, (row, start) in enumerate(zip(self.rows, self.starts, strict=True)):
            ids_BT[index, : len(row) - start] = torch.tensor(row[start:])
        if not self.use_cache:
            return self.network(ids_BT)
        self.cache = KVCache(
            self.network.config, len(self.rows), self.network.config.max_length,
            device=self.device, dtype=self.network.precision,
        )  # fmt: skip
        self.cache.use(num_tokens)
        places_BT = torch.arange(num_tokens, device=self.device).expand_as(ids_BT)
        return self.network.extend(ids_BT, places_BT, self.cache)
