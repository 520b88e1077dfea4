"""Networks: attention, the Transformer block, BERT and GPT, and their files."""
