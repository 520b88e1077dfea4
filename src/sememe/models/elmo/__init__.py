"""ELMo: forward and backward LSTM language models whose layers become features."""
