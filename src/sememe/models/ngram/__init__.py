"""NGram: the classical language model, modified Kneser–Ney smoothing over counted n-grams."""
