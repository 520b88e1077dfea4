"""Too little memory, said in the words of the options."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from sememe.errors import OptionError
from sememe.training.config import TrainingConfig

# PyTorch has no class of its own for the CPU's; the second is what Windows says.
_CPU_WORDS = ("can't allocate memory", "not enough memory")


@contextmanager
def explained_memory(config: TrainingConfig) -> Iterator[None]:
    """Turn PyTorch's refusal into a sentence that names the settings to lower."""
    try:
        yield
    except torch.OutOfMemoryError as error:
        raise OptionError(_sentence(config, "the GPU")) from error
    except MemoryError as error:
        raise OptionError(_sentence(config, "this machine")) from error
    except RuntimeError as error:
        if not any(words in str(error) for words in _CPU_WORDS):
            raise
        raise OptionError(_sentence(config, "this machine")) from error


def _sentence(config: TrainingConfig, place: str) -> str:
    rows = config.batch_size // config.accumulate
    can_recompute = getattr(config, "recompute", True) is False
    return (
        f"The memory of {place} is too small for {rows:,} rows of {config.length:,} tokens at "
        f"once: raise accumulate (it is {config.accumulate}; {2 * config.accumulate} halves the "
        f"rows and gives the same result), {'switch recompute on, ' if can_recompute else ''}or "
        "lower batch_size, length or the preset."
    )
