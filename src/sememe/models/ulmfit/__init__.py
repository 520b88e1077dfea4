"""ULMFiT: the AWD-LSTM language model that is fine-tuned in three steps."""
