"""What a model sees: windows, noise words, Huffman codes, pairs of words, masked and packed rows."""
