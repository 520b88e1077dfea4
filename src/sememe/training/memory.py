"""Too little memory, said in the words of the options."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from sememe.errors import OptionError
from sememe.training.config import TrainingConfig

_CPU_WORDS = "can't allocate memory"  # PyTorch has no class of its own for the CPU's


@contextmanager
def explained_memory(config: TrainingConfig) -> Iterator[None]:
    """Turn PyTorch's refusal into a sentence that names the settings to lower."""
    try:
        yield
    except torch.OutOfMemoryError as error:
        raise OptionError(_sentence(config, "the GPU")) from error
    except RuntimeError as error:
        if _CPU_WORDS not in str(error):
            raise
        raise OptionError(_sentence(config, "this machine")) from error


def _sentence(config: TrainingConfig, place: str) -> str:
    rows = config.batch_size // config.accumulate
    return (
        f"The memory of {place} is too small for {rows:,} rows of {config.length:,} tokens at "
        f"once: raise accumulate (it is {config.accumulate}; {2 * config.accumulate} halves the "
        "rows and gives the same result), or lower batch_size, length or the preset."
    )
