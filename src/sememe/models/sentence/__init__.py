"""Sentence encoders: a network or token vectors, pooled and normalized into one vector per text."""
