"""The supervised half of fastText: labels of texts, learned from labelled lines."""
