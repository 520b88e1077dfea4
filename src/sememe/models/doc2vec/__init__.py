"""Doc2Vec: vectors of documents, and of words (PV-DBOW, PV-DM)."""
