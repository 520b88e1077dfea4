"""Parts of networks: attention, the Transformer block, LSTMs, heads and encoders."""
