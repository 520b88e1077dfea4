"""Translation: recurrent and Transformer encoder-decoders."""
