"""Turn a reading set into a BEIR folder: which paragraph answers this question?

    python benchmarks/retrieval_sets.py squad/dev-v1.1.json runs/squad
    python benchmarks/retrieval_sets.py cmrc2018/cmrc2018_dev.json runs/cmrc
    sememe evaluate retrieval runs/mine --data runs/squad

Takes every format of `sememe finetune answer`: SQuAD, CMRC 2018, DRCD. A paragraph is a document, a
question is relevant to its own paragraph alone, although others may answer it too.
"""

import argparse
import json
from pathlib import Path

from sememe.examples.labelled.answers import read_answers
from sememe.storage.folder import write_folder


def main() -> None:
    """Read the questions, write corpus.jsonl, queries.jsonl and qrels/test.tsv."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", help="A file of questions about paragraphs.")
    parser.add_argument("folder", type=Path, help="The BEIR folder to write.")
    given = parser.parse_args()
    # Where an answer is does not matter here, so rows with a wrong place can stay out.
    rows = read_answers(given.source, skip_bad=True, on_note=print)
    documents: dict[str, str] = {}
    for row in rows:
        documents.setdefault(row.context, f"d{len(documents)}")
    with write_folder(given.folder, checksums=False) as folder:
        (folder / "qrels").mkdir()
        files = {
            "corpus.jsonl": [{"_id": own, "text": text} for text, own in documents.items()],
            "queries.jsonl": [{"_id": row.id, "text": row.question} for row in rows],
        }
        for name, content in files.items():
            lines = "".join(json.dumps(own, ensure_ascii=False) + "\n" for own in content)
            (folder / name).write_text(lines, encoding="utf-8")
        judged = [f"{row.id}\t{documents[row.context]}\t1\n" for row in rows]
        head = "query-id\tcorpus-id\tscore\n"
        (folder / "qrels" / "test.tsv").write_text(head + "".join(judged), encoding="utf-8")
    print(f"{len(documents):,} paragraphs, {len(rows):,} questions in {given.folder}")


if __name__ == "__main__":
    main()
