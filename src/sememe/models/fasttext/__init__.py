"""fastText: word vectors from character n-grams, and a classifier of texts."""
