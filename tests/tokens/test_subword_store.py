"""The sub-word store: the tokenizer's own ids, words, sentences; whole or refused."""

from __future__ import annotations

import gc
import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from recorded_notes import Notes

pytest.importorskip("tokenizers")
from subword_texts import bpe, hard_texts, wordpiece

from sememe.errors import ArtifactError, InputError, OptionError, WriteError
from sememe.text.documents import DocumentBatch
from sememe.text.reference import raw_sentences
from sememe.text.settings import TextSettings
from sememe.text.words import Records
from sememe.tokens.subwords import chunks
from sememe.tokens.subwords.chunks import ChunkLexicon, Pieces, cut_documents, cutter
from sememe.tokens.subwords.store import SubwordStore, open_or_build_subwords
from sememe.tokens.subwords.tokenizer import SubwordTokenizer

PIECES, BYTES = wordpiece(), bpe()
TEXT = "The strawberries. Flightless!\nHello 北京 the café.\n"
CONTROLS = dict.fromkeys([*range(9), 11, 12, *range(14, 32), 127])
BLANKS = " \t\n\v\f\r"

pytestmark = pytest.mark.usefixtures("stores")


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text(TEXT, encoding="utf-8")
    return path


def sentences_of(store: SubwordStore) -> list[list[list[int]]]:
    """The ids of each sentence of each document."""
    bounds = [0, *store.sentence_ends.tolist()]
    sentences = [store.ids[start:end].tolist() for start, end in pairwise(bounds)]
    return [sentences[start:end] for start, end in pairwise([0, *store.document_ends.tolist()])]


def marked(store: SubwordStore, tokenizer: SubwordTokenizer) -> str:
    """The tokens, a bar before each that starts a word."""
    pairs = zip(store.ids, store.word_starts, strict=True)
    return "".join(("|" if start else "") + tokenizer.token(number) for number, start in pairs)


def pieces_of(documents: list[str], tokenizer: SubwordTokenizer, own: TextSettings) -> Pieces:
    """Cut documents without writing a store."""
    texts = [text.encode() for text in documents]
    batch = DocumentBatch(b"".join(texts), np.cumsum([len(text) for text in texts]), None)
    with cutter(tokenizer, own, 1, 1 << 20) as cut:
        return cut(batch)


def split(pieces: Pieces) -> list[list[list[int]]]:
    """The ids of each sentence of each document."""
    ends = np.cumsum(pieces.sentence_sizes)[:-1]
    sentences = [part.tolist() for part in np.split(pieces.ids, ends)]
    bounds = np.cumsum(pieces.document_sizes, dtype=int).tolist()
    return [sentences[start:end] for start, end in pairwise([0, *bounds])]


@settings(deadline=None)
@given(
    documents=st.lists(hard_texts, min_size=1, max_size=6),
    language=st.sampled_from(["en", "zh", "none"]),
    sentences=st.booleans(),
)
def test_word_pieces_are_those_of_each_sentence(
    documents: list[str], language: str, sentences: bool
) -> None:
    own = TextSettings(language=language, lowercase=False, sentences=sentences)
    kept = [text for text in documents if text.translate(CONTROLS).strip(BLANKS)]
    encodings = [
        [PIECES.encode(part, specials=False) for part in raw_sentences(text, own)] for text in kept
    ]
    pieces = pieces_of(documents, PIECES, own)
    expected = [[one.ids.tolist() for one in part if len(one.ids)] for part in encodings]
    assert split(pieces) == expected
    if language != "zh":
        starts = [start for part in encodings for one in part for start in one.is_word_start]
        assert pieces.starts.tolist() == starts


@settings(deadline=None)
@given(st.lists(hard_texts, min_size=1, max_size=6), st.sampled_from(["en", "zh"]))
def test_bytes_are_those_of_each_document(documents: list[str], language: str) -> None:
    # The separators of records are written as spaces.
    plain = [text.translate(dict.fromkeys(range(28, 32), " ")).strip(BLANKS) for text in documents]
    encodings = [BYTES.encode(text, specials=False) for text in plain if text]
    pieces = pieces_of(documents, BYTES, TextSettings(language=language))
    found = [[number for part in parts for number in part] for parts in split(pieces)]
    assert found == [encoding.ids.tolist() for encoding in encodings]
    starts = [start for encoding in encodings for start in encoding.is_word_start]
    assert pieces.starts.tolist() == starts


def test_chinese_words_over_characters() -> None:
    store = open_or_build_subwords(
        iter(["北京大学在中国。我喜欢红色的苹果！", "Hello the 3.14 北京"]), PIECES,
        text=TextSettings(language="zh"),
    )  # fmt: skip
    assert marked(store, PIECES) == (
        "|北京大学|在|中国|。|我|喜欢|红色|的|苹果|！" + "|hello|the|3.1##4|北京"
    )
    assert [len(parts) for parts in sentences_of(store)] == [2, 1]
    assert store.language == "zh"


def test_words_never_reach_over_documents() -> None:
    store = open_or_build_subwords(iter(["北", "京"]), PIECES, text=TextSettings(language="zh"))
    assert marked(store, PIECES) == "|北|京"


def test_foreign_letters_that_the_segmenter_takes_apart_stay_one_word() -> None:
    store = open_or_build_subwords(iter(["在été中国"]), PIECES, text=TextSettings(language="zh"))
    assert marked(store, PIECES) == "|在|e##t##e|中国"


def test_names_of_special_tokens_are_text() -> None:
    store = open_or_build_subwords(iter(["the [MASK] [SEP]"]), PIECES)
    assert not PIECES.special_ids & set(store.ids.tolist())


def test_lists_of_words_are_joined() -> None:
    store = open_or_build_subwords([["the", "Hello"], ["straw", "\udc80"]], PIECES)
    assert sentences_of(store) == [[PIECES.encode("the hello").ids.tolist()],
                                   [PIECES.encode("straw ?").ids.tolist()]]  # fmt: skip


def test_labels_follow_their_documents(tmp_path: Path) -> None:
    rows = [("the", "a"), (" ", "b"), ("hello", "动物"), ("the", "a")]
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(json.dumps({"text": t, "kind": k}) for t, k in rows))
    store = open_or_build_subwords(path, PIECES, text=TextSettings(columns={"label": "kind"}))
    assert store.labels is not None and store.label_ids is not None
    assert [store.labels[label] for label in store.label_ids] == ["a", "动物", "a"]
    assert store.num_documents == 3


@pytest.mark.parametrize("tokenizer", [PIECES, BYTES], ids=lambda own: own.kind)
def test_threads_and_little_memory_change_nothing(
    tmp_path: Path, tokenizer: SubwordTokenizer
) -> None:
    words = [f"w{number * 7919 % 9_973}x the" for number in range(220_000)]
    lines = [" ".join(words[start : start + 40]) for start in range(0, len(words), 40)]
    path = tmp_path / "long.txt"
    path.write_text("\n".join(lines) + "\n")
    hashes = set()
    for workers, memory in ((1, 512 << 20), (3, 512 << 20), (2, 1 << 20)):
        store = open_or_build_subwords(
            path, tokenizer, path=tmp_path / f"{workers}-{memory}", workers=workers, memory=memory
        )
        hashes.add(json.dumps(store.manifest["files"], sort_keys=True))
        assert store.num_documents == len(lines)
    assert len(hashes) == 1


def test_a_full_lexicon_starts_again() -> None:
    words = [f"a{number}" for number in range(3_000)]
    data = ("\x1f".join(words) + "\x1f\x1e\x1d").encode()
    small, large = ChunkLexicon(PIECES, 1 << 12), ChunkLexicon(PIECES, 1 << 24)
    for _ in range(2):
        for one, other in zip(
            small.cut(Records(data, None)), large.cut(Records(data, None)), strict=True
        ):
            assert one is other is None or np.array_equal(one, other)


def test_the_same_text_is_read_once(text: Path, stores: Path) -> None:
    first = open_or_build_subwords(text, PIECES)
    stamp = (first.path / "sememe.json").stat().st_mtime_ns
    heard = Notes()
    # The tokenizer decides on case, not the settings.
    again = open_or_build_subwords(
        str(text), PIECES, text=TextSettings(lowercase=False), progress=heard
    )
    assert again.path == first.path and heard.lines == []
    assert (again.path / "sememe.json").stat().st_mtime_ns == stamp
    other = open_or_build_subwords(text, BYTES)
    assert other.path != first.path and len(list(stores.iterdir())) == 2
    assert open_or_build_subwords(first, PIECES) is first
    with pytest.raises(OptionError, match="another tokenizer"):
        open_or_build_subwords(first, BYTES)


def test_changes_are_noticed(text: Path, tmp_path: Path) -> None:
    place = tmp_path / "store"
    heard = Notes()
    open_or_build_subwords(text, PIECES, path=place, progress=heard)
    open_or_build_subwords(text, BYTES, path=place, progress=heard)
    text.write_text("another text", encoding="utf-8")
    store = open_or_build_subwords(text, BYTES, path=place, progress=heard)
    said = [note for note in heard.lines if note.startswith("Building")]
    assert "tokenizer changed" in said[0] and "files changed" in said[1] and len(said) == 2
    assert BYTES.decode(store.ids) == "another text"


def test_a_store_of_an_iterable_goes_with_it(stores: Path) -> None:
    store = open_or_build_subwords(iter(["the"]), PIECES)
    assert store.is_temporary and len(list(stores.iterdir())) == 1
    del store
    gc.collect()
    assert list(stores.iterdir()) == []


FILES = ["ids.bin", "word_starts.bin", "sentence_ends.bin", "document_ends.bin", "label_ids.bin",
         "labels.json", "sememe.json"]  # fmt: skip


@pytest.fixture
def labelled(tmp_path: Path) -> SubwordStore:
    path = tmp_path / "rows.csv"
    path.write_text("text,label\nthe hello,x\nthe,y\n")
    return open_or_build_subwords(
        path, PIECES, text=TextSettings(columns={"label": "label"}), path=tmp_path / "labelled"
    )


@pytest.mark.parametrize("name", FILES)
def test_every_missing_cut_or_changed_file_is_noticed(labelled: SubwordStore, name: str) -> None:
    assert sorted(FILES) == sorted(path.name for path in labelled.path.iterdir())
    path, place = labelled.path / name, labelled.path
    whole = path.read_bytes()
    for damaged in (None, whole[:-2], bytes([whole[0] ^ 1]) + whole[1:]):
        path.unlink() if damaged is None else path.write_bytes(damaged)
        with pytest.raises(ArtifactError):
            SubwordStore.open(place, verify=True)
        path.write_bytes(whole)
    assert SubwordStore.open(place, verify=True).num_tokens == 3


def test_a_damaged_store_is_built_again(text: Path, tmp_path: Path) -> None:
    place = tmp_path / "store"
    open_or_build_subwords(text, PIECES, path=place)
    ids = (place / "ids.bin").read_bytes()
    (place / "ids.bin").write_bytes(ids[::-1])
    heard = Notes()
    open_or_build_subwords(text, PIECES, path=place, progress=heard)
    assert "ids.bin was changed" in heard.lines[0]
    assert (place / "ids.bin").read_bytes() == ids


def test_other_kinds_of_stores_are_refused(text: Path, tmp_path: Path) -> None:
    from sememe.tokens.caching import open_or_build
    from sememe.tokens.store import TokenStore

    words = open_or_build(text, TextSettings(), min_count=1, path=tmp_path / "words")
    pieces = open_or_build_subwords(text, PIECES, path=tmp_path / "pieces")
    with pytest.raises(ArtifactError, match="not a sub-word store"):
        SubwordStore.open(words.path)
    with pytest.raises(ArtifactError, match="not a token store"):
        TokenStore.open(pieces.path)
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.txt").write_text("years of work")
    with pytest.raises(OptionError, match="something else"):
        open_or_build_subwords(text, PIECES, path=mine)
    assert [path.name for path in mine.iterdir()] == ["thesis.txt"]


@settings(deadline=None)
@given(
    documents=st.lists(hard_texts, min_size=1, max_size=6),
    language=st.sampled_from(["en", "zh", "none"]),
)
def test_whole_documents_are_cut_like_their_chunks(documents: list[str], language: str) -> None:
    own = TextSettings(language=language, lowercase=False)
    texts = [text.encode() for text in documents]
    batch = DocumentBatch(b"".join(texts), np.cumsum([len(text) for text in texts]), None)
    whole, parts = cut_documents(batch, PIECES, own), pieces_of(documents, PIECES, own)
    assert split(whole) == [document for document in split(parts) if document]
    if language != "zh":
        assert whole.starts.tolist() == parts.starts.tolist()


def test_other_tokenizers_cut_documents_themselves(monkeypatch) -> None:
    from tokenizers import pre_tokenizers

    prefixed = bpe()
    prefixed._engine.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    documents = [
        "Long ago. A king. " * 8 + "Long ago. A king.",
        "",
        "北京大学在中国。我喜欢红色的苹果！",
    ]
    whole = open_or_build_subwords(documents, prefixed)
    kept = [document for document in documents if document]
    wanted = [number for own in prefixed.encode_batch(kept) for number in own.ids.tolist()]
    assert whole.ids.tolist() == wanted
    assert [len(parts) for parts in sentences_of(whole)] == [18, 2]
    # Long documents are tokenized in stretches of whole sentences.
    monkeypatch.setattr(chunks, "_STRETCH", 25)
    parts = open_or_build_subwords([*documents, "short"], BYTES)
    monkeypatch.setattr(chunks, "cuts_in_chunks", lambda tokenizer: False)
    stretched = open_or_build_subwords(iter([*documents, "short"]), BYTES)
    assert len(sentences_of(stretched)) == len(sentences_of(parts)) == 3
    assert BYTES.decode(stretched.ids).strip() == BYTES.decode(parts.ids).strip()


def test_words_of_other_tokenizers_in_chinese(monkeypatch) -> None:
    monkeypatch.setattr(chunks, "cuts_in_chunks", lambda tokenizer: False)
    store = open_or_build_subwords(
        iter(["北京大学在中国。我喜欢红色的苹果！", "Hello the 3.14 北京"]), PIECES,
        text=TextSettings(language="zh"),
    )  # fmt: skip
    assert marked(store, PIECES) == (
        "|北京大学|在|中国|。|我|喜欢|红色|的|苹果|！" + "|hello|the|3.1##4|北京"
    )


@pytest.mark.parametrize("corpus", [[], [" \n", "\x00\u00ad"], iter(())])
def test_an_empty_corpus_is_refused(corpus: Iterable[str], stores: Path) -> None:
    with pytest.raises(InputError, match="no text"):
        open_or_build_subwords(corpus, PIECES)
    assert list(stores.iterdir()) == []


def test_a_full_disk_says_so_and_leaves_nothing(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sememe.tokens import building

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(building.NumberFile, "add", full)
    place = tmp_path / "new" / "store"
    with pytest.raises(WriteError, match="the disk is full"):
        open_or_build_subwords(text, PIECES, path=place)
    assert list(place.parent.iterdir()) == []


def test_what_a_killed_build_left_goes_at_the_next(tmp_path: Path) -> None:
    here, place = str(Path(__file__).parent), tmp_path / "store"
    script = (
        f"import sys, time\nsys.path.insert(0, {here!r})\n"
        "from subword_texts import wordpiece\n"
        "from sememe.tokens.subwords.store import open_or_build_subwords\n"
        "def texts():\n"
        "    for _ in range(400): yield 'the hello ' * 2000\n"
        "    print('here', flush=True)\n"
        "    time.sleep(60)\n"
        f"open_or_build_subwords(texts(), wordpiece(), path={str(place)!r})\n"
    )
    child = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    assert child.stdout is not None and child.stdout.readline() == b"here\n"
    child.send_signal(signal.SIGKILL)
    child.wait()
    assert not place.exists() and any(tmp_path.glob(".store.new-*"))
    store = open_or_build_subwords(iter(["the"]), PIECES, path=place)
    assert store.num_tokens == 1
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != "cache") == ["store"]


def test_validation_documents_are_chosen_by_hash(text: Path) -> None:
    store = open_or_build_subwords(text, PIECES)
    documents = np.arange(100_000)
    chosen = store.is_validation(documents)
    assert chosen.dtype == bool and abs(chosen.mean() - 0.01) < 0.002
    assert [store.is_validation(int(one)) for one in documents[:500]] == chosen[:500].tolist()
    store.validation_share = 0.2
    more = store.is_validation(documents)
    assert (more >= chosen).all() and abs(more.mean() - 0.2) < 0.01
    store.validation_seed = 1
    other = store.is_validation(documents)
    assert abs((other & more).mean() - 0.04) < 0.005
    # The choice is a promise to those who resume.
    store.validation_share, store.validation_seed = 0.01, 0
    assert np.flatnonzero(store.is_validation(np.arange(500))).tolist() == [
        47,
        233,
        250,
        286,
        362,
        453,
    ]
    store.validation_share = 1.5
    with pytest.raises(OptionError, match="validation_share"):
        store.is_validation(0)
    shutil.rmtree(store.path)
