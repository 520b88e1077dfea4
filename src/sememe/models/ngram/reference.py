"""Modified Kneser–Ney smoothing in dicts, simple and slow: what the arrays must equal."""

from collections import Counter, defaultdict
from collections.abc import Sequence

from sememe.models.ngram.trie import FALLBACK, closed_form

BEGIN, END, UNKNOWN = "<s>", "</s>", "<unk>"

Words = tuple[str, ...]


class ReferenceModel:
    """Interpolated modified Kneser–Ney; `probability(word, context)` queries it."""

    def __init__(
        self, sentences: Sequence[Sequence[str]], order: int, *, words: Sequence[str],
        cuts: Sequence[int] = (),
    ) -> None:  # fmt: skip
        """Train on sentences; words that are not in `words` count as <unk>."""
        self.order, self.words = order, [*words, UNKNOWN, END]
        known = set(words)
        self.plain: Counter[Words] = Counter()
        for sentence in sentences:
            line = [BEGIN, *(word if word in known else UNKNOWN for word in sentence), END]
            for length in range(1, order + 1):
                for start in range(len(line) - length + 1):
                    self.plain[tuple(line[start : start + length])] += 1
        cuts = [*cuts, *[0] * order][:order]
        self.kept = {ngram for ngram, count in self.plain.items() if count > cuts[len(ngram) - 1]}
        self.kept |= {(word,) for word in self.words}
        self.adjusted = self._adjusted()
        self.discounts = [self._discounts(length) for length in range(1, order + 1)]
        self.children: dict[Words, list[Words]] = defaultdict(list)
        for ngram in self.adjusted:
            self.children[ngram[:-1]].append(ngram)

    def _adjusted(self) -> dict[Words, int]:
        """Plain counts of the longest n-grams and those behind <s>; otherwise words before."""
        before: dict[Words, set[str]] = defaultdict(set)
        for ngram in self.plain:
            before[ngram[1:]].add(ngram[0])
        adjusted = {}
        for ngram, count in self.plain.items():
            is_plain = len(ngram) == self.order or ngram[0] == BEGIN
            adjusted[ngram] = count if is_plain else len(before[ngram])
        adjusted.pop((BEGIN,), None)
        return adjusted

    def _discounts(self, length: int) -> list[float]:
        tally = [0] * 5
        for ngram, count in self.adjusted.items():
            if len(ngram) == length and count <= 4:
                tally[count] += 1
        return [0.0, *(closed_form(tally) or FALLBACK)]

    def _discount(self, ngram: Words) -> float:
        return self.discounts[len(ngram) - 1][min(self.adjusted[ngram], 3)]

    def probability(self, word: str, context: Words) -> float:
        """p(word | context), for a context of any length."""
        context = context[max(0, len(context) - self.order + 1) :]
        return self._probability((*context, word))

    def _probability(self, ngram: Words) -> float:
        if not ngram:
            return 1 / len(self.words)
        lower = self._probability(ngram[1:])
        total = sum(self.adjusted[child] for child in self.children[ngram[:-1]])
        if not total:
            return lower
        own = 0.0
        if ngram in self.kept and ngram in self.adjusted:
            own = self.adjusted[ngram] - self._discount(ngram)
        return own / total + self.backoff(ngram[:-1]) * lower

    def backoff(self, context: Words) -> float:
        """The weight of the shorter context's probability."""
        children = self.children[context]
        total = sum(self.adjusted[child] for child in children)
        taken = sum(
            self._discount(child) if child in self.kept else self.adjusted[child]
            for child in children
        )
        return taken / total if total else 1.0
