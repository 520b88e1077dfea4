"""One file a format: each reads the documents of an open source, a batch at a time."""
