"""The explorer: a web page that looks inside models, served next to their API."""
