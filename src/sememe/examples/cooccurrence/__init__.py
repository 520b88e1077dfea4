"""Co-occurrence counts of a token store: options, kernels with their reference, counting."""
