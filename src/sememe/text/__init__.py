"""Reading text: files, folders, pipes or Python iterables in, sentences of words out.

The way of the data: `documents` reads any format into batches of UTF-8 documents, `words`,
`sentences` and `chinese` cut them, `stream` joins both over every core, `library` is the corpus
that everybody has. What leaves the room is `records.Records`.
"""
