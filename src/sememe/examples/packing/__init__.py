"""Documents packed into rows of sentences, sentence pairs or running text."""
