"""The same work on many machines, through Ray."""
