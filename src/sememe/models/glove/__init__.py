"""GloVe: vectors whose dot products approximate the logarithms of co-occurrence counts."""
