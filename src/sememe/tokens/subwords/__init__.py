"""Sub-word tokenizers: WordPiece and byte-level BPE, their files, training and store."""
