"""One-hot vectors: the baseline that knows words but no similarity."""
