"""The HTTP service: any number of models of any kind behind one API."""
