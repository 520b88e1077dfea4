"""Hold out a fraction of labelled rows, read one after the other: of every label its share."""

from collections import Counter
from collections.abc import Sequence
from hashlib import blake2b

from sememe.errors import InputError

LEAST_ROWS = 10  # held out: fewer say little about probabilities


class HoldOut:
    """Decides for each row whether it is held out, always in the same way.

    The rarest label of a row so far decides (after Sechidis et al. 2011), at random places of its
    rows. The first row of each label stays.
    """

    def __init__(self, share: float) -> None:
        self.share = share
        self.num_rows = 0
        self._num_seen, self._num_held = Counter[str](), Counter[str]()

    def takes(self, labels: Sequence[str]) -> bool:
        """Whether the next row, which has these labels, is held out."""
        own = labels or ("",)
        self.num_rows += 1
        self._num_seen.update(own)
        rarest = min(own, key=lambda label: (self._num_seen[label], label))
        num_seen, num_held = self._num_seen[rarest], self._num_held[rarest]
        is_held = num_seen > 1 and self.share * num_seen - num_held >= _draw(rarest, num_held)
        if is_held:
            self._num_held.update(own)
        return is_held

    def check(self, num_held: int) -> None:
        """Raise an error if too few rows were held out."""
        if num_held < LEAST_ROWS:
            raise InputError(
                f"{num_held:,} of {self.num_rows:,} training rows are too few to calibrate on or "
                f"to choose thresholds by; {LEAST_ROWS} are needed: raise --calibration-share."
            )


def _draw(label: str, number: int) -> float:
    """A number between 0 and 1 that depends on nothing else."""
    digest = blake2b(f"{label}\0{number}".encode("utf-8", "surrogatepass"), digest_size=7)
    return int.from_bytes(digest.digest(), "little") / 2**56
