"""Training examples: windows, noise words, Huffman codes, word pairs, masked and packed rows."""
