"""Search over texts: rows in an index, queries in, ranked rows out."""
