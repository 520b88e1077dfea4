"""word2vec: skip-gram and cbow with negative sampling, hierarchical or full softmax."""
