"""Cleaning a corpus: rows of any format in; the rows worth training on, and a report, out.

The flow of data: `rows` reads files in batches, `lines` judges and repairs lines, `language` judges
rows, `fingerprints` hashes them, `duplicates` finds the repeated ones, `running` does all of it in
order and writes the result, `report` shows what was removed.
"""
