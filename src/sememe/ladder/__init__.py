"""The ladder: every model of the line on the same text with the same budget, and one report."""
