"""Counts: co-occurrences, their pointwise mutual information, and its truncated SVD."""
