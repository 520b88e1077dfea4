"""What a model sees: random draws, windows, noise words, Huffman codes."""
