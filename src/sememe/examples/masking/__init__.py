"""Masked-token examples: options, kernels with their reference, and batches."""
