"""Artifacts on disk: atomic writes, manifests, tensors that are memory-mapped."""
