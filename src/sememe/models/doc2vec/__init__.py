"""Doc2Vec (PV-DBOW): document vectors that predict words."""
