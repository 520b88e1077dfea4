"""The options of LoRA, which every command that can train low-rank updates takes."""

from dataclasses import dataclass
from typing import Literal

from sememe.options import Config, option

Targets = Literal["all", "attention", "query-value"]


@dataclass(frozen=True, kw_only=True)
class LoRAOptions(Config):
    """How low-rank updates of a network's matrices are trained instead of its weights."""

    lora: int = option(
        0, "LoRA rank: train low-rank updates instead of all weights; 0: off.", 0, 4_096
    )
    lora_alpha: float = option(
        0.0, "LoRA scale, which the rank divides; 0: twice the rank.", 0, 10**6
    )
    lora_dropout: float = option(0.05, "Dropout before LoRA's updates.", 0, 0.99)
    lora_targets: Targets = option("all", "Matrices that LoRA updates in every block.")

    @property
    def lora_scale(self) -> float:
        """What the product of an update's two matrices is multiplied by."""
        return (self.lora_alpha or 2 * self.lora) / self.lora
