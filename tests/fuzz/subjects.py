"""What is damaged: models of every kind, texts, tables, question files, runs and caches.

A `Subject` is a folder or file that is whole, and the questions that are asked of a damaged copy.
`prepare` writes all of them below one folder; `subjects` lists them.
"""

from __future__ import annotations

import bz2
import csv
import gzip
import importlib.util
import io
import json
import lzma
import os
import random
import sys
import tarfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import date
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import zstandard

TESTS = Path(__file__).parents[1]
GOLDEN = TESTS / "golden"
sys.path[:0] = [str(TESTS), str(GOLDEN), str(TESTS / "ladder")]

import sample_texts
from questions import plain

import sememe
from sememe.models import registry
from sememe.tokens.store import MappedStore, TokenStore
from sememe.tokens.subwords.store import SubwordStore, open_or_build_subwords
from stopping import killed_at

TEXTS = ["The old king sees a cat.", "A dog."]


class Subject(NamedTuple):
    """One thing to damage. `ask(place, questions)` gives answers by question."""

    name: str
    place: Path
    ask: Callable[[Path, Sequence[str]], dict[str, Any]]
    questions: tuple[str, ...] = ("content",)
    is_checked: bool = False  # what is read of it is compared with a checksum: right, or refused
    is_stream: bool = False  # may come through a pipe, which is waited for and has no end


# ---- models --------------------------------------------------------------------------------

_ROWS: dict[str, list[Any]] = {
    "pairs": [("The cat sat.", "A dog ran.")],
    "choose": [{"context": "The cat", "choices": ["sat.", "ran."]}],
    "tag": [["The", "cat"]],
    "answer": [{"question": "Who sat?", "context": "The cat sat."}],
}


def _words(model: Any) -> Any:
    vectors = model.words
    known = list(vectors)[:3]
    neighbors = vectors.neighbors(known[0], num=2) if known else []
    return {"known": known, "vectors": vectors[known or ["cat"]], "neighbors": neighbors}


def _generate(model: Any) -> Any:
    option = {"max_words": 4} if model.kind == "ngram" else {"max_tokens": 3}
    return model.generate("the old", **option)


def _attention(model: Any) -> Any:
    other = "die alte Katze" if "translate" in model.capabilities else None
    return model.attention("The old king sees.", other)


def _encoder(model: Any) -> Any:
    from sememe.tasks.config import FinetuneConfig

    model.encoder("texts", FinetuneConfig(length=16))


CALLS: dict[str, Callable[[Any], Any]] = {
    "embed": lambda model: model.embed(TEXTS),
    "words": _words,
    "embed_words": lambda model: model.embed_words([["the", "king"], ["cat"]]),
    "embed_expected": lambda model: model.embed_expected(TEXTS, [(4, 7), (2, 5)]),
    "fill": lambda model: model.fill("The [MASK] sees.", top=2),
    "follows": lambda model: model.follows(*TEXTS),
    "generate": _generate,
    "next_words": lambda model: model.next_words("the ", count=2),
    "score": lambda model: model.score("the old king"),
    "attention": _attention,
    "positions": lambda model: model.positions,
    "translate": lambda model: model.translate("the old dog", beam=2, max_extra=3),
    "predict": lambda model: model.predict(_ROWS.get(model.kind, TEXTS)),
    "score_pairs": lambda model: model.score_pairs([("The cat sat.", "A dog ran.")]),
    "encoder": _encoder,
}


def ask_model(place: Path, questions: Sequence[str]) -> dict[str, Any]:
    """Describe what lies at a path, open it, and ask what is to be asked."""
    json.dumps(registry.describe(place), allow_nan=False)
    model = sememe.load(place)
    json.dumps(model.describe(), allow_nan=False)
    return {name: CALLS[name](model) for name in questions if name in model.capabilities}


def ask_tokenizer(place: Path, questions: Sequence[str]) -> dict[str, Any]:
    """Open a tokenizer; write a text as ids and read it again."""
    json.dumps(registry.describe(place), allow_nan=False)
    tokenizer = sememe.SubwordTokenizer.load(place)
    ids = [int(one) for one in tokenizer.encode("The old giraffe likes 苹果.").ids]
    return {"content": {"ids": ids, "text": tokenizer.decode(ids), "size": len(tokenizer)}}


# ---- texts and tables ----------------------------------------------------------------------


def ask_corpus(place: Path, questions: Sequence[str]) -> dict[str, Any]:
    """Read a corpus as words."""
    from sememe.text.stream import segment

    found = [records.data for records in segment(place, sememe.TextSettings(), workers=1)]
    return {"content": [len(found), random.Random(b"".join(found)).random()]}


def ask_clean(place: Path, questions: Sequence[str]) -> dict[str, Any]:
    """Clean a corpus with every rule, and write what remains."""
    out = place.with_name(f"{place.name}.cleaned.jsonl")
    try:
        report = sememe.clean(place, out, overwrite=True, keep_language="en,zh", skip_bad=True)
        return {"content": [report.to_dict()["kept"], len(out.read_bytes())]}
    finally:
        out.unlink(missing_ok=True)


def ask_tables(place: Path, questions: Sequence[str]) -> dict[str, Any]:
    """Write the texts of a corpus with their columns to tables of every format, and read these."""
    from sememe.storage.tables import FORMATS, write_table
    from sememe.text.documents import read_records
    from sememe.text.sources import Source
    from sememe.text.tables import open_table

    rows = [{"n": n, "text": one.text} for n, one in enumerate(read_records(place, TABLE_SETTINGS))]
    for ending in FORMATS if rows else ():
        out = place.with_name(f"{place.name}.written{ending}")
        try:
            with write_table(out) as table:
                table.add(rows)
            records = open_table(Source(out), TABLE_SETTINGS, lambda *_: True).records
            back = [record.cells["text"] for record in records]
        finally:
            out.unlink(missing_ok=True)
        assert back == [row["text"] for row in rows], f"{ending} changes texts"
    return {"content": [row["text"] for row in rows]}


TABLE_SETTINGS = sememe.TextSettings(layout="line")


def ask_labels(place: Path, questions: Sequence[str]) -> dict[str, Any]:
    """Read rows with any number of labels, and train a classifier with them."""
    from sememe.examples.labelled.texts import read_texts

    rows = read_texts(place, kind="classify", label_separator="auto", skip_bad=True)
    options = {"dim": 2, "epochs": 1, "bucket": 100, "workers": 1, "loss": "ova"}
    model = sememe.FastTextClassifier(**options, preset="fasttext", class_weights="balanced").fit(
        place
    )
    return {"content": [[row.label_set for row in rows], list(model.labels)]}


def ask_saved(place: Path, questions: Sequence[str]) -> dict[str, Any]:
    """Save a model again: the card is written from what its manifest says."""
    out = place.with_name("saved")
    sememe.load(place).save(out)
    card = (out / "README.md").read_text("utf-8")
    assert card.startswith("---") and "\0" not in card
    json.dumps(registry.describe(out), allow_nan=False)
    return {"content": card.partition("\n## ")[0]}  # below it are scores, also of the history


@cache
def _opened(path: Path) -> Any:
    return sememe.load(path)


def ask_rows(model: Path, place: Path, questions: Sequence[str]) -> dict[str, Any]:
    """Score and predict the rows of a file with a whole model."""
    opened = _opened(model)
    json.dumps(opened.evaluate(place).to_dict())
    rows = opened.predict_stream(place, has_cells=True)
    return {
        "content": [
            row.prediction and opened.prediction_line(row.prediction, has_chances=True)
            for row in rows
        ]
    }


def ask_pairs(place: Path, questions: Sequence[str]) -> dict[str, Any]:
    """Read parallel text."""
    from sememe.examples.parallel import read_pairs

    return {"content": [[pair.source, pair.target] for pair in read_pairs(place)]}


def ask_dictionary(place: Path, questions: Sequence[str]) -> dict[str, Any]:
    """Segment Chinese with a user's dictionary."""
    from sememe.text.stream import cut_texts

    settings = sememe.TextSettings(language="zh", dictionary=str(place))
    return {"content": list(cut_texts(["医生用青霉素治疗肺炎链球菌。"], settings))}


def ask_words(model: Path, place: Path, questions: Sequence[str]) -> dict[str, Any]:
    """Ask whole word vectors the questions of a file."""
    result = sememe.evaluate_words(_opened(model), place)
    json.dumps(result.to_dict(), allow_nan=False)
    return {"content": [[score.name, score.value] for score in result.scores]}


def ask_senses(model: Path, place: Path, questions: Sequence[str]) -> dict[str, Any]:
    """Ask whole word vectors for the meanings of a file."""
    result = sememe.evaluate_senses(_opened(model), place, layers="last", device="cpu")
    json.dumps(result.to_dict(), allow_nan=False)
    return {"content": str(result.to_dict())}


def ask_beir(model: Path, place: Path, questions: Sequence[str]) -> dict[str, Any]:
    """Search the documents of a folder with whole word vectors."""
    result = sememe.evaluate_retrieval(_opened(model), place)
    json.dumps(result.to_dict(), allow_nan=False)
    return {"content": [system.value() for system in result.systems]}


def ask_store(kind: type[MappedStore], place: Path, questions: Sequence[str]) -> dict[str, Any]:
    """Open a text as ids, every byte of it compared."""
    json.dumps(registry.describe(place), allow_nan=False)
    store = kind.open(place, verify=True)
    blocks = [[int(ids.sum()), int(ends.sum())] for ids, ends in store.blocks()]
    return {"content": [blocks, store.num_tokens]}


def ask_index(model: Path, place: Path, questions: Sequence[str]) -> dict[str, Any]:
    """Search an index by words, by vectors and by both."""
    json.dumps(registry.describe(place), allow_nan=False)
    index = sememe.Search.load(place, model)
    found = [
        [hit.id, hit.score, hit.text, hit.snippet.text]
        for mode in ("lexical", "dense", "hybrid")
        for hit in index.search("the old king", 3, mode=mode, where="number>=1")
    ]
    return {"content": found}


def _make_index(root: Path, place: Path) -> None:
    texts = sample_texts.english(4).split("\n\n")
    rows = [{"id": f"r{n}", "text": text, "number": n} for n, text in enumerate(texts)]
    model = root / "models" / "word2vec-skipgram-negative"
    sememe.Search.build(rows, model, folder=place, passage=120, overlap=20, vectors="binary")


def _make_onnx(root: Path, place: Path) -> None:
    from sememe.models.huggingface import onnx

    with mock.patch.object(onnx, "sample_texts", lambda: TEXTS):  # not the whole built-in corpus
        registry.convert(root / "models" / "sentence", place, "onnx", int8=True)


def ask_ladder(place: Path, questions: Sequence[str]) -> dict[str, Any]:
    """Draw the report of a ladder from its results."""
    from sememe.ladder.report import write_report
    from sememe.ladder.results import Results

    results = Results.load(place)
    write_report(results, place)
    return {"content": [[rung.name, rung.title, rung.state] for rung in results.rungs]}


def ask_ladder_text(corpus: Path, place: Path, questions: Sequence[str]) -> dict[str, Any]:
    """Open the text of a stopped ladder again."""
    from sememe.ladder.text import open_text

    text = open_text(corpus, sememe.TextSettings(), place)
    found = "".join(text.heldout_documents())
    return {"content": [text.words.num_tokens, random.Random(found).random()]}


# ---- runs and caches -----------------------------------------------------------------------

_SENTENCES = sample_texts.english(12).split("\n")
_STEPS = {
    "steps": 6, "batch_size": 4, "length": 8, "min_count": 1, "workers": 1, "device": "cpu",
    "window": 2, "dim": 4, "num_hidden": 4, "seed": 3, "evaluate_batches": 1, "precision": "fp32",
}  # fmt: skip


def _fit_nnlm(out: Path, **more: Any) -> Any:
    return sememe.NNLM(**_STEPS).fit([line for line in _SENTENCES if line], out=out, **more)


def _fit_word2vec(out: Path, **more: Any) -> Any:
    model = sememe.Word2Vec(dim=4, epochs=4, min_count=1, workers=1, seed=3)
    corpus = [line for line in _SENTENCES if line]
    return model.fit(corpus, out=out, **more)


class _CtrlC:
    """Stops a training of vectors in its midst, which leaves a checkpoint."""

    every_words = 700

    def __call__(self, model: Any, record: Any) -> None:
        raise KeyboardInterrupt


def ask_resume(fit: Callable[..., Any], place: Path, questions: Sequence[str]) -> dict[str, Any]:
    """Go on with a stopped training; what it learns."""
    model = fit(place / "model", resume=True)
    words = model.words
    return {"content": [list(words)[:5], words[list(words)[:5]]]}


_KERNEL = '''"""A kernel whose machine code is damaged."""


def doubled(number):
    """Twice a number."""
    return 2 * number + 1
'''


def ask_kernels(source: Path, place: Path, questions: Sequence[str]) -> dict[str, Any]:
    """Call a kernel whose machine code is in a cache."""
    from sememe import machine

    before = os.environ["SEMEME_CACHE"]
    os.environ["SEMEME_CACHE"] = str(place)
    try:
        # numba finds the function again by the name of its module.
        spec = importlib.util.spec_from_file_location(source.stem, source)
        sys.modules[source.stem] = module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return {"content": machine.kernel(module.doubled)(20)}
    finally:
        os.environ["SEMEME_CACHE"] = before


# ---- writing them --------------------------------------------------------------------------


def _csv(rows: Sequence[Sequence[Any]], delimiter: str = ",") -> str:
    file = io.StringIO()
    csv.writer(file, delimiter=delimiter).writerows(rows)
    return file.getvalue()


def _jsonl(rows: Sequence[Any]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def _write_parquet(path: Path, columns: dict[str, Any]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table(columns)
    for name in ("label", "kind"):  # as pandas stores categories
        if name in table.column_names:
            place = table.column_names.index(name)
            table = table.set_column(place, name, table[name].dictionary_encode())
    pq.write_table(table, path, row_group_size=7, compression="zstd")


def _corpora() -> dict[str, bytes]:
    text = sample_texts.english(4) + "“Quoted”, he said: 3.5 % of naïve cafés… 苹果 国王。\n"
    documents = text.split("\n\n")
    rows = [{"text": one, "label": str(index % 2)} for index, one in enumerate(documents)]
    table = [["text", "label"], *([one, str(index % 2)] for index, one in enumerate(documents))]
    plain_text = text.encode()
    return {
        "corpus.txt": plain_text,
        "corpus.jsonl": _jsonl(rows).encode(),
        "corpus.csv": _csv(table).encode(),
        "corpus.tsv": _csv(table, "\t").encode(),
        "corpus.txt.gz": gzip.compress(plain_text, mtime=0),
        "corpus.txt.bz2": bz2.compress(plain_text),
        "corpus.jsonl.xz": lzma.compress(_jsonl(rows).encode()),
        "corpus.csv.zst": zstandard.ZstdCompressor().compress(_csv(table).encode()),
    }


def _label_sets() -> dict[str, Any]:
    """Texts with any number of labels, and columns of other types."""
    sentences = [line for line in sample_texts.english(3).split("\n") if line][:24]
    kinds = ("animal", "人物", "place")
    sets = [[kind for place, kind in enumerate(kinds) if n >> place & 1] for n in range(24)]
    return {
        "text": sentences, "labels": sets[: len(sentences)],
        "kind": [kinds[n % 3] for n in range(len(sentences))],
        "meta": [{"by": "王", "n": n, "tags": ["a"]} for n in range(len(sentences))],
        "none": [None] * len(sentences),
        "day": [date(2024, 1, 1 + n) for n in range(len(sentences))],
    }  # fmt: skip


_WORD_QUESTIONS = {
    "pairs.tsv": "word1\tword2\tscore\nking\tqueen\t8.5\ncat\tdog\t7.25\ncat\triver\t1\n"
    "fox\tmouse\t6\ngarden\tforest\t5.5\nold\tyoung\t4\n",
    "pairs.csv": "king,queen,8.5\ncat,dog,7.25\ncat,river,1\nfox,mouse,6\n",
    "analogies.txt": ": animals\nking queen farmer teacher\ncat dog fox mouse\n: places\n"
    "garden palace river market\n",
    "odd.txt": "king queen farmer | river\ncat dog fox | garden\n",
    "groups.txt": "animals: cat dog fox\npeople: king queen farmer\n",
    "antonyms.txt": "old young\nhappy tired\n",
}
_SENSES = "".join(
    f"cat\t{sense}\tthe {quality} [[cat]] {end}\n"
    for sense, end in (("animal", "sees a bird"), ("machine", "walks in winter"))
    for quality in sample_texts.QUALITIES[:3]
)
_SQUAD = {
    "version": "v2.0",
    "data": [
        {
            "title": "t",
            "paragraphs": [
                {
                    "context": f"the {person} walks and the {animal} sleeps in the {place}",
                    "qas": [
                        {
                            "id": f"q-{animal}",
                            "question": f"where is the {animal}",
                            "answers": [
                                {
                                    "text": f"the {person}",
                                    "answer_start": 0,
                                }
                            ],
                            "is_impossible": False,
                        }
                    ],
                }
            ],
        }
        for animal, person, place in zip(
            sample_texts.ANIMALS, sample_texts.PEOPLE, sample_texts.PLACES, strict=True
        )
    ],
}
# Files of rows, with the model that reads them and the text they are made of.
_TABLES: dict[str, tuple[str, str]] = {
    "opinions.tsv": ("classify-words", "opinions.tsv"),
    "opinions.csv": ("classify-words", "opinions.tsv"),
    "opinions.jsonl": ("classify-words", "opinions.tsv"),
    "labelled.txt": ("classifier", "labelled.txt"),
    "sentences.tsv": ("pairs", "pairs.tsv"),
    "scores.csv": ("regress", "scores.tsv"),
    "choices.jsonl": ("choose", "choices.tsv"),
    "tags.txt": ("tag-words", "tags.txt"),
    "tags.csv": ("tag-words", "tags.txt"),
    "entities.jsonl": ("tag-words", "tags.txt"),
    "mentions.jsonl": ("tag-words", "tags.txt"),
    "questions.jsonl": ("answer-words", "questions.jsonl"),
    "squad.json": ("answer-words", ""),
}


def _tagged_text(name: str, text: str) -> str:
    """Tagged words as a table with a word per row, or texts with entities in either form."""
    sentences = [
        [line.split() for line in sentence.splitlines()] for sentence in text.strip().split("\n\n")
    ]
    if name.endswith(".csv"):
        rows = [[n, *cells] for n, own in enumerate(sentences) for cells in own]
        return _csv([["sentence", "word", "tag"], *rows])
    found = []
    for own in sentences:
        words, spans = " ".join(word for word, _ in own), []
        for word, tag in own:
            if tag != "O":
                start = words.index(word)
                spans.append((tag[2:], word, start, start + len(word)))
        listed = [{"start": start, "end": end, "label": kind} for kind, _, start, end in spans]
        nested = {kind: {word: [[start, end - 1]]} for kind, word, start, end in spans}
        is_nested = name.startswith("mentions")
        found.append({"text": words, **({"label": nested} if is_nested else {"entities": listed})})
    return _jsonl(found)


def _table_text(name: str, source: str) -> str:
    text = json.dumps(_SQUAD) if not source else sample_texts.texts()[source]
    if source == "tags.txt" and name != source:
        return _tagged_text(name, text)
    if Path(source).suffix != ".tsv" or name.endswith(".tsv"):
        return text
    header, *rows = [line.split("\t") for line in text.splitlines()]
    rows = rows[:12]
    if name.endswith(".csv"):
        return _csv([header, *rows])
    if "choice1" in header:
        header = ["context", "choice1", "choice2", "label"]
    return _jsonl([dict(zip(header, row, strict=True)) for row in rows])


_FAMILIES: dict[str, dict[str, Any]] = {
    "roberta": {"num_segments": 1, "first_position": 2},
    "xlm-roberta": {"num_segments": 1, "first_position": 2},
    "distilbert": {"num_segments": 0},
    "electra": {"embedding_size": 6},
    "albert": {"embedding_size": 6, "num_groups": 1},
    "modernbert": {"num_segments": 0, "positions": "rotary", "window": 2, "global_every": 2},
}


def _write_families(models: Path) -> None:
    """Folders of the encoders that descend from BERT, one of them with unigrams as tokens."""
    from tokenizers import Tokenizer
    from tokenizers.models import Unigram
    from tokenizers.pre_tokenizers import Metaspace

    from sememe.models.bert.families import FamilyConfig
    from sememe.models.bert.network import BERTNetwork

    pieces = [
        "<s>",
        "<pad>",
        "</s>",
        "<unk>",
        "▁the",
        "▁king",
        "▁cat",
        *"▁abcdefghijklmnopqrstuvwxyz.TA",
        "<mask>",
    ]
    engine = Tokenizer(Unigram([(piece, -float(n)) for n, piece in enumerate(pieces)], unk_id=3))
    engine.pre_tokenizer = Metaspace()
    engine.add_special_tokens([*pieces[:4], pieces[-1]])
    unigrams = sememe.SubwordTokenizer(engine, names=("<pad>", "<unk>", "<s>", "</s>", "<mask>"))
    wordpiece = sememe.SubwordTokenizer.load(models / "bert")
    for family, own in _FAMILIES.items():
        tokenizer = unigrams if family == "xlm-roberta" else wordpiece
        config = FamilyConfig(
            family=family, vocab_size=tokenizer.vocab_size, num_layers=2, width=8, num_heads=2,
            max_length=32, **own,
        )  # fmt: skip
        model = sememe.BERT.around(BERTNetwork(config).eval(), tokenizer)
        model.save(models / f"family-{family}")


def prepare(root: Path) -> None:
    """Write everything that is damaged below `root`."""
    with tarfile.open(GOLDEN / "fixtures.tar.xz") as archive:
        archive.extractall(root / "models", filter="data")
    _write_families(root / "models")
    for name in ("texts", "tables", "labels", "files", "questions", "runs", "kernels"):
        (root / name).mkdir()
    for name, data in _corpora().items():
        (root / "texts" / name).write_bytes(data)
    documents = sample_texts.english(4).split("\n\n")
    given = {"text": documents, "label": ["a"] * len(documents)}
    _write_parquet(root / "texts" / "corpus.parquet", given)
    sets = _label_sets()
    _write_parquet(root / "labels" / "labels.parquet", sets)
    pairs_of = [*zip(sets["text"], sets["labels"], strict=True)]
    several = [[text, "；".join(own)] for text, own in pairs_of]
    flags = [[text, *(int(one in own) for one in ("animal", "人物"))] for text, own in pairs_of]
    for name, text in {
        "labels.csv": _csv([["text", "labels"], *several]),
        "labels.tsv": _csv([["text", "labels"], *several], "\t"),
        "flags.csv": _csv([["text", "label", "人物"], *flags]),
        "labels.jsonl": _jsonl([{"text": text, "labels": own} for text, own in pairs_of]),
        "labels.txt": "".join(
            " ".join([*(f"__label__{one}" for one in own), text]) + "\n" for text, own in pairs_of
        ),
    }.items():
        (root / "labels" / name).write_text(text, encoding="utf-8")
    folder = root / "texts" / "corpus"
    folder.mkdir()
    for name in ("corpus.txt", "corpus.jsonl", "corpus.csv.zst"):
        (folder / name).write_bytes((root / "texts" / name).read_bytes())
    (folder / "gb18030.txt").write_bytes(sample_texts.english(2).encode("gb18030"))
    for name, (_, source) in _TABLES.items():
        (root / "tables" / name).write_text(_table_text(name, source), encoding="utf-8")
    pairs = "".join("\t".join(pair) + "\n" for pair in sample_texts.translations())
    named = [["nr", "Satz", "Übersetzung"]]
    named += [[str(n), *pair] for n, pair in enumerate(sample_texts.translations(), 10)]
    files = {
        "translations.tsv": pairs, "translations.csv": _csv(named, ";"),
        "dictionary.txt": "青霉素 100 n\n肺炎链球菌\n治疗 5\n",
    }  # fmt: skip
    for name, text in files.items():
        (root / "files" / name).write_text(text, encoding="utf-8")
    for name, text in {**_WORD_QUESTIONS, "senses.tsv": _SENSES}.items():
        (root / "questions" / name).write_text(text, encoding="utf-8")
    texts = [{"_id": f"d{n}", "title": "", "text": text} for n, text in enumerate(documents)]
    queries = [{"_id": f"q{n}", "text": text[:30]} for n, text in enumerate(documents)]
    judged = "".join(f"q{n}\td{n}\t1\n" for n in range(len(documents)))
    (root / "beir" / "qrels").mkdir(parents=True)
    for name, text in {
        "corpus.jsonl": _jsonl(texts), "queries.jsonl": _jsonl(queries),
        "qrels/test.tsv": f"query-id\tcorpus-id\tscore\n{judged}",
    }.items():  # fmt: skip
        (root / "beir" / name).write_text(text, encoding="utf-8")


def _make_pieces(root: Path, place: Path) -> None:
    tokenizer = sememe.SubwordTokenizer.load(root / "models" / "tokenizer-wordpiece")
    open_or_build_subwords(root / "texts" / "corpus.txt", tokenizer, path=place, workers=1)


def _make_ladder(root: Path, place: Path) -> None:
    from sample_results import sample_results

    place.mkdir()
    sample_results().save(place)


def _make_stopped_nnlm(root: Path, place: Path) -> None:
    with killed_at(4):
        _fit_nnlm(place / "model")


def _make_stopped_word2vec(root: Path, place: Path) -> None:
    with suppress(KeyboardInterrupt):
        _fit_word2vec(place / "model", callbacks=[_CtrlC()])


def _make_kernels(root: Path, place: Path) -> None:
    (root / "kernels" / "fuzzed_kernel.py").write_text(_KERNEL)
    place.mkdir()
    ask_kernels(root / "kernels" / "fuzzed_kernel.py", place, ())


# What takes a while is made when it is first asked for.
MAKERS: dict[str, Callable[[Path, Path], Any]] = {
    "token-store": lambda root, place: sememe.OneHot(min_count=1).fit(
        root / "texts" / "corpus.txt", store=place
    ),
    "sub-word-store": _make_pieces,
    "ladder": _make_ladder,
    "ladder-text": lambda root, place: ask_ladder_text(root / "texts" / "corpus.txt", place, ()),
    "stopped-nnlm": _make_stopped_nnlm,
    "stopped-word2vec": _make_stopped_word2vec,
    "kernel-cache": _make_kernels,
    "search-index": _make_index,
    "sentence-onnx": _make_onnx,
}


def subjects(root: Path) -> dict[str, Subject]:
    """All that `prepare` wrote, by name."""
    models, found = root / "models", []
    for place in sorted(models.iterdir()):
        if place.name.startswith("tokenizer-"):
            found.append(Subject(place.name, place, ask_tokenizer))
        else:
            found.append(Subject(place.name, place, ask_model, tuple(CALLS)))
    found += [
        Subject(f"{name}{place.name}", place, ask, is_stream=True)
        for name, ask in (("", ask_corpus), ("clean-", ask_clean), ("tables-", ask_tables))
        for place in sorted((root / "texts").iterdir())
    ]
    for name, (model, _) in _TABLES.items():
        ask = partial(ask_rows, models / model)
        found.append(Subject(f"rows-{name}", root / "tables" / name, ask, is_stream=True))
    found += [
        Subject(f"sets-{place.name}", place, ask_labels, is_stream=True)
        for place in sorted((root / "labels").iterdir())
    ]
    readers = {
        "translations.tsv": ask_pairs, "translations.csv": ask_pairs,
        "dictionary.txt": ask_dictionary,
    }  # fmt: skip
    found += [
        Subject(name, root / "files" / name, ask, is_stream="translations" in name)
        for name, ask in readers.items()
    ]
    for name in ("word2vec-skipgram-negative", "classifier", "classify-words", "ngram"):
        found.append(Subject(f"card-{name}", models / name, ask_saved))
    for name in _WORD_QUESTIONS:
        ask = partial(ask_words, models / "word2vec-skipgram-negative")
        found.append(Subject(f"questions-{name}", root / "questions" / name, ask))
    ask = partial(ask_senses, models / "word2vec-skipgram-negative")
    found.append(Subject("questions-senses.tsv", root / "questions" / "senses.tsv", ask))
    ask = partial(ask_beir, models / "word2vec-skipgram-negative")
    found.append(Subject("beir", root / "beir", ask))
    runs = root / "runs"
    checked = {
        "token-store": (runs / "store", partial(ask_store, TokenStore)),
        "sub-word-store": (runs / "pieces", partial(ask_store, SubwordStore)),
        "ladder-text": (
            runs / "ladder-text",
            partial(ask_ladder_text, root / "texts" / "corpus.txt"),
        ),
        "stopped-nnlm": (runs / "nnlm", partial(ask_resume, _fit_nnlm)),
        "stopped-word2vec": (runs / "word2vec", partial(ask_resume, _fit_word2vec)),
        "kernel-cache": (
            root / "kernels" / "cache",
            partial(ask_kernels, root / "kernels" / "fuzzed_kernel.py"),
        ),
    }
    found += [Subject(name, *own, is_checked=True) for name, own in checked.items()]
    found.append(Subject("ladder", runs / "ladder", ask_ladder))
    ask = partial(ask_index, models / "word2vec-skipgram-negative")
    found.append(Subject("search-index", runs / "index", ask))
    if importlib.util.find_spec("onnxruntime"):
        found.append(Subject("sentence-onnx", runs / "onnx", ask_model, ("embed", "words")))
    return {subject.name: subject for subject in found}


def answers(subject: Subject, place: Path, questions: Sequence[str]) -> dict[str, Any]:
    """What a copy of a subject answers, in JSON's values."""
    return {name: plain(own) for name, own in subject.ask(place, questions).items()}


def is_finite(value: Any) -> bool:
    """Whether there is no nan and no infinity in an answer."""
    if isinstance(value, dict):
        return all(map(is_finite, value.values()))
    if isinstance(value, list):
        return all(map(is_finite, value))
    return not isinstance(value, float) or bool(np.isfinite(value))
