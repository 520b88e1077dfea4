"""Every model, a folder each: options, training, and the class that users open."""
