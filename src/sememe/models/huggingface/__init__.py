"""Files of other programs: Hugging Face folders, and the pickles among them."""
