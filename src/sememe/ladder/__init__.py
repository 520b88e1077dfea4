"""The ladder: every model trained on the same text with the same budget, and one report."""
