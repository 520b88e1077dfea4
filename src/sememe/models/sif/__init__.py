"""SIF: sentence vectors, weighted means of word vectors."""
