"""word2vec in tiles: the training of skip-gram and cbow that suits a GPU."""
