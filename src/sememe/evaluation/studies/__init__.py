"""Studies: the same model trained several times, with one thing changed."""
