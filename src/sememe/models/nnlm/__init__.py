"""NNLM: the feed-forward neural language model over a window of words."""
