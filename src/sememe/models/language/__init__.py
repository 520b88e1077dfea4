"""What the neural language models share: fitting, token stores, features, folders."""
