"""BERT: bidirectional Transformer encoder, masked tokens and next sentences."""
