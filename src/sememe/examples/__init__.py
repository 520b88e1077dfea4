"""What a model sees: windows, noise words, Huffman codes, word pairs, masked and packed rows."""
