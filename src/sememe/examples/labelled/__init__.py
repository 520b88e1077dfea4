"""Labelled rows: files of any format or Python lists in, rows of texts, tags or answers out."""
