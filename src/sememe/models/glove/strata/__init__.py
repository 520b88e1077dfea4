"""GloVe in strata: AdaGrad of many cells at a time without conflicts, which suits a GPU."""
