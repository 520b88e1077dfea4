"""AdamW as the papers use it: weights decay, biases and the gains of norms do not."""

from __future__ import annotations

from torch import nn, optim

from sememe.training.config import TrainingConfig


def parameter_groups(module: nn.Module, weight_decay: float) -> list[dict[str, object]]:
    """The trainable parameters in two groups, matrices with decay and vectors without."""
    # Biases and gains are the parameters of one axis (Devlin et al. 2018 name them by hand).
    trainable = [parameter for parameter in module.parameters() if parameter.requires_grad]
    return [
        {"params": [p for p in trainable if p.ndim >= 2], "weight_decay": weight_decay},
        {"params": [p for p in trainable if p.ndim < 2], "weight_decay": 0.0},
    ]


def make_optimizer(module: nn.Module, config: TrainingConfig) -> optim.AdamW:
    """AdamW (Loshchilov & Hutter 2019) in one fused pass over the parameters."""
    return optim.AdamW(
        parameter_groups(module, config.weight_decay),
        lr=config.learning_rate,
        betas=(0.9, config.beta2),
        eps=1e-6,  # as in the released BERT
        fused=True,
    )
