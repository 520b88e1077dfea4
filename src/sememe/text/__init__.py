"""Reading text: files, folders, pipes or Python iterables in, sentences of words out.

The flow of data: `sources` finds and opens files, `documents` reads any format into batches of
UTF-8 documents, `words` and `chinese` tokenize them, `stream` does both on all cores, `library` is
the built-in corpus, `tables` reads csv, tsv, json and parquet. The result is `words.Records`.
"""
