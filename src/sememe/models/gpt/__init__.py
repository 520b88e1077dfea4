"""GPT: Transformer decoder that predicts the next token."""
