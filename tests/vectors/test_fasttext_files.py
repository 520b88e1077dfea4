"""Model files of Facebook's program: written as they were read, and damage noticed."""

from __future__ import annotations

import gzip
import struct
import tracemalloc
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import sememe
from fasttext_models import DATA, MODELS
from sememe.errors import ArtifactError, OptionError, SememeError
from sememe.tokens.vocabulary import Vocabulary
from sememe.vectors import SubwordVectors
from sememe.vectors.formats import read_vectors
from sememe.vectors.formats.fasttext import (
    FastTextArgs,
    FastTextFile,
    is_fasttext,
    read_model,
    write_model,
)
from sememe.vectors.subwords import QuantizedMatrix

# Where fields lie: magic, version, twelve options, t, then the sizes of the dictionary.
VERSION, DIM, LOSS, MODEL, BUCKET, MINN, MAXN = 4, 8, 32, 36, 40, 44, 48
SIZE, NUM_WORDS, NUM_LABELS, NUM_TOKENS, NUM_PRUNED, ENTRIES = 64, 68, 72, 76, 84, 92


def with_int(data: bytes, place: int, value: int, code: str = "<i") -> bytes:
    field = struct.pack(code, value)
    return data[:place] + field + data[place + len(field) :]


def opened(tmp_path: Path, data: bytes) -> FastTextFile:
    (tmp_path / "m.bin").write_bytes(data)
    return read_model(tmp_path / "m.bin")


def matrix_place(data: bytes, model: FastTextFile) -> int:
    """Where the mark of a quantised input lies."""
    words, _ = model.words.to_arrays()
    labels, _ = model.labels.to_arrays()
    num_pruned = 0 if model.pruned is None else len(model.pruned)
    num_entries = len(model.words) + len(model.labels)
    return ENTRIES + len(words) + len(labels) + 10 * num_entries + 8 * num_pruned


@pytest.mark.parametrize("name", MODELS)
def test_read_and_written_again_a_file_is_the_same(name: str, tmp_path: Path) -> None:
    write_model(tmp_path / "again.bin", read_model(DATA / name))
    assert (tmp_path / "again.bin").read_bytes() == (DATA / name).read_bytes()


def test_what_a_file_holds() -> None:
    model = read_model(DATA / "softmax.bin")
    assert (model.args.model, model.args.loss, model.args.word_ngrams) == (
        "supervised", "softmax", 2
    )  # fmt: skip
    assert set(model.labels) == {"__label__food", "__label__weather", "__label__travel"}
    assert {"苹果", "café", "☕"} <= set(model.words)
    assert model.words.counts.sum() + model.labels.counts.sum() == model.num_tokens
    assert model.input.shape == (len(model.words) + 150, 6)
    assert model.output.shape == (3, 6)
    assert read_model(DATA / "cbow.bin").args.model == "cbow"
    assert read_model(DATA / "words-only.bin").args.bucket == 0


def test_matrices_stay_in_the_file() -> None:
    for matrix in (read_model(DATA / "skipgram.bin").input, read_model(DATA / "cut.ftz").input):
        rows = matrix.codes if isinstance(matrix, QuantizedMatrix) else matrix
        assert not rows.flags.owndata
        assert not rows.flags.writeable


def test_quantised_rows_are_centroids_times_lengths() -> None:
    matrix = read_model(DATA / "retrained.ftz").input
    assert isinstance(matrix, QuantizedMatrix)
    assert (matrix.quantizer.num_parts, matrix.quantizer.last_part_size) == (2, 2)
    assert matrix.norm_codes is not None and matrix.norm_quantizer is not None
    code = matrix.codes[7]
    pieces = [matrix.quantizer.part(part)[code[part]] for part in range(2)]
    length = matrix.norm_quantizer.centroids[matrix.norm_codes[7]]
    expected = np.concatenate(pieces) * length
    assert matrix.rows([7])[0].tolist() == expected.tolist()
    np.testing.assert_allclose(matrix.sum([7, 9]), matrix.rows([7, 9]).sum(axis=0), rtol=1e-6)
    plain = read_model(DATA / "plain.ftz").input
    dense = read_model(DATA / "softmax.bin").input
    assert isinstance(plain, QuantizedMatrix) and isinstance(dense, np.ndarray)
    error = np.linalg.norm(plain.rows(range(len(dense))) - dense) / np.linalg.norm(dense)
    assert error < 0.2


def test_version_11_has_no_ngrams_when_supervised(tmp_path: Path) -> None:
    old = with_int((DATA / "softmax.bin").read_bytes(), VERSION, 11)
    assert opened(tmp_path, old).args.maxn == 0
    vectors = sememe.load(tmp_path / "m.bin").words
    assert isinstance(vectors, SubwordVectors)
    assert vectors["bread"].tolist() == vectors.table[vectors.vocabulary.id("bread")].tolist()
    old = with_int((DATA / "skipgram.bin").read_bytes(), VERSION, 11)
    assert opened(tmp_path, old).args.maxn == 6


def test_word2vec_binary_is_told_apart_by_content(tmp_path: Path, toy_vectors) -> None:
    from sememe.vectors.formats import write_vectors

    write_vectors(toy_vectors, tmp_path / "v.bin", "word2vec-binary")
    assert not is_fasttext(tmp_path / "v.bin")
    assert not isinstance(sememe.load(tmp_path / "v.bin"), SubwordVectors)
    assert isinstance(read_vectors(DATA / "cut.ftz"), SubwordVectors)
    with pytest.raises(ArtifactError, match="not a fastText model"):
        read_vectors(tmp_path / "v.bin", format="fasttext")


def test_a_packed_model_asks_to_be_unpacked(tmp_path: Path) -> None:
    (tmp_path / "m.bin.gz").write_bytes(gzip.compress((DATA / "cbow.bin").read_bytes()))
    with pytest.raises(ArtifactError, match="unpack it first"):
        sememe.load(tmp_path / "m.bin.gz")


def test_words_that_are_not_utf8_keep_their_ngrams(tmp_path: Path) -> None:
    data = (DATA / "skipgram.bin").read_bytes()
    place = data.index("café".encode() + b"\0")
    broken = data[: place + 4] + b"\xff" + data[place + 5 :]  # caf, then half an é and 0xff
    with pytest.warns(UserWarning, match="1 words are not UTF-8"):
        model = opened(tmp_path, broken)
        vectors = sememe.load(tmp_path / "m.bin")
    write_model(tmp_path / "again.bin", model)
    assert (tmp_path / "again.bin").read_bytes() == broken
    word = next(word for word in vectors if "�" in word)
    assert word.startswith("caf")
    alone = vectors[word]
    assert alone.tolist() == vectors.vectors[vectors.vocabulary.id(word)].tolist()
    vectors.save(tmp_path / "folder")
    assert sememe.load(tmp_path / "folder")[word].tolist() == alone.tolist()


@settings(max_examples=50)
@given(
    words=st.lists(st.text("aéß子", max_size=4), min_size=1, max_size=6, unique=True),
    counts=st.lists(st.integers(0, 2**59), min_size=6, max_size=6),
)
def test_any_dictionary_is_read_as_it_was_written(
    tmp_path: Path, words: list[str], counts: list[int]
) -> None:
    rows, zeros = np.ones((len(words), 2), np.float32), np.zeros((len(words), 2), np.float32)
    vocabulary = Vocabulary.from_words(words, counts[: len(words)])
    args = FastTextArgs(dim=2, bucket=0, minn=0, maxn=0)
    model = FastTextFile(
        args=args, words=vocabulary, labels=Vocabulary.from_words([]), num_tokens=7, pruned=None,
        input=rows, output=zeros,
    )  # fmt: skip
    write_model(tmp_path / "m.bin", model)
    found = read_model(tmp_path / "m.bin")
    assert list(found.words) == words
    assert found.words.counts.tolist() == counts[: len(words)]


# --- damage ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["cbow.bin", "cut.ftz"])
def test_a_file_cut_off_anywhere_is_an_error(name: str, tmp_path: Path) -> None:
    data = (DATA / name).read_bytes()
    path = tmp_path / "m.bin"
    for size in {*range(400), *range(0, len(data), 37), *range(len(data) - 60, len(data))}:
        path.write_bytes(data[:size])
        with pytest.raises(ArtifactError, match=r"m\.bin"):
            read_model(path)


@pytest.mark.parametrize(
    ("place", "code", "values", "message"),
    [
        (0, "<i", (0, 793712315), "not a fastText model"),
        (VERSION, "<i", (-1, 0, 10, 13, 2**31 - 1), "version"),
        (DIM, "<i", (-1, 0, 9, 2**31 - 1), "dimensions|sizes"),
        (LOSS, "<i", (-1, 0, 5), "loss"),
        (MODEL, "<i", (-1, 0, 4), "kind of model"),
        (BUCKET, "<i", (-1, 0, 2**31 - 1), "buckets|sizes"),
        (MINN, "<i", (-1,), "n-grams"),
        (MAXN, "<i", (-1, 2**31 - 1), "n-grams"),
        (SIZE, "<i", (-1, 0, 45, 2**31 - 1), "entries"),
        (NUM_WORDS, "<i", (-1, 0, 2**31 - 1), "entries"),
        (NUM_LABELS, "<i", (-1, 1, 2**31 - 1), "entries"),
        (NUM_TOKENS, "<q", (-1,), "tokens"),
        (NUM_PRUNED, "<q", (-2, 5, 2**62), "kept|truncated|pruned"),
    ],
)
def test_absurd_fields_are_errors(
    place: int, code: str, values: tuple[int, ...], message: str, tmp_path: Path
) -> None:
    data = (DATA / "cbow.bin").read_bytes()
    for value in values:
        with pytest.raises(ArtifactError, match=message):
            opened(tmp_path, with_int(data, place, value, code))


def test_more_words_than_the_file_holds(tmp_path: Path) -> None:
    data = (DATA / "cbow.bin").read_bytes()
    huge = with_int(with_int(data, SIZE, 2**31 - 1), NUM_WORDS, 2**31 - 1)
    tracemalloc.start()
    with pytest.raises(ArtifactError, match="more than the file can hold"):
        opened(tmp_path, huge)
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()


def test_a_word_without_an_end(tmp_path: Path) -> None:
    model = read_model(DATA / "cbow.bin")
    data = (DATA / "cbow.bin").read_bytes()
    with pytest.raises(ArtifactError, match="no end"):
        opened(tmp_path, data[:ENTRIES] + b"x" * 70_000 + data[ENTRIES:])
    end = matrix_place(data, model)
    with pytest.raises(ArtifactError, match="no end"):
        opened(tmp_path, data[:ENTRIES] + b"x" * (end - ENTRIES))


@pytest.mark.parametrize("name", ["cbow.bin", "plain.ftz", "cut.ftz", "qout.ftz"])
def test_sizes_of_matrices_must_fit(name: str, tmp_path: Path) -> None:
    data = (DATA / name).read_bytes()
    place = matrix_place(data, read_model(DATA / name))
    is_quantized = name.endswith(".ftz")
    with pytest.raises(ArtifactError, match="must be 0 or 1"):
        opened(tmp_path, data[:place] + b"\2" + data[place + 1 :])
    first = place + 1 + is_quantized
    for at in (first, first + 8):
        for value in (-1, 0, 1, 2**40, 2**63 - 1):
            with pytest.raises(ArtifactError, match="sizes"):
                opened(tmp_path, with_int(data, at, value, "<q"))
    if is_quantized:
        for value in (-1, 0, 7, 2**31 - 1):
            with pytest.raises(ArtifactError, match="codes"):
                opened(tmp_path, with_int(data, first + 16, value))
        codes = struct.unpack_from("<i", data, first + 16)[0]
        for field in range(4):
            for value in (-1, 0, 99, 2**31 - 1):
                with pytest.raises(ArtifactError, match="quantiser"):
                    opened(tmp_path, with_int(data, first + 20 + codes + 4 * field, value))


def test_numbers_must_be_finite(tmp_path: Path) -> None:
    for name in ("cbow.bin", "cut.ftz"):
        data = (DATA / name).read_bytes()
        with pytest.raises(ArtifactError, match="not finite"):
            opened(tmp_path, data[:-4] + struct.pack("<f", np.nan))


def test_a_large_matrix_is_checked_in_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sememe.vectors.formats.fasttext._CHECKED_SIZE", 0)
    data = (DATA / "cbow.bin").read_bytes()
    place = matrix_place(data, read_model(DATA / "cbow.bin")) + 17
    (tmp_path / "m.bin").write_bytes(data[:place] + struct.pack("<f", np.inf) + data[place + 4 :])
    vectors = sememe.load(tmp_path / "m.bin")
    with pytest.raises(ArtifactError, match="“</s>” has a number that is not finite"):
        vectors["</s>"]
    with pytest.raises(ArtifactError, match="not finite"):
        vectors.neighbors("the")


def test_bytes_after_the_end_and_wrong_order(tmp_path: Path) -> None:
    data = (DATA / "softmax.bin").read_bytes()
    with pytest.raises(ArtifactError, match="follow the end"):
        opened(tmp_path, data + b"\0")
    place = data.index(b"\0", ENTRIES) + 9
    with pytest.raises(ArtifactError, match="before its labels"):
        opened(tmp_path, data[:place] + b"\1" + data[place + 1 :])
    with pytest.raises(ArtifactError, match="negative"):
        opened(tmp_path, with_int(data, place - 8, -1, "<q"))


@settings(max_examples=150)
@given(
    name=st.sampled_from(["cbow.bin", "ns.bin", "cut.ftz", "qout.ftz"]),
    changes=st.lists(
        st.tuples(st.floats(0, 1), st.binary(min_size=1, max_size=8)), min_size=1, max_size=4
    ),
    in_head=st.booleans(),
    kept=st.floats(0.3, 1),
)
def test_mutations_give_our_errors_and_little_memory(
    name: str, changes: list, in_head: bool, kept: float, tmp_path: Path
) -> None:
    data = bytearray((DATA / name).read_bytes())
    for where, new in changes:
        # Half of the changes hit the fields before the words, where most of the sense lies.
        place = int(where * (130 if in_head else len(data) - 9))
        data[place : place + len(new)] = new
    path = tmp_path / "m.bin"
    path.write_bytes(data if kept > 0.5 else data[: int(kept * 2 * len(data))])
    tracemalloc.start()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            vectors = sememe.load(path).words
            assert np.isfinite(vectors.vectors).all()
            vectors["天气预报"]
            write_model(tmp_path / "again.bin", read_model(path))
    except SememeError as error:
        assert str(error)
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 64 << 20


# --- writing --------------------------------------------------------------------------------


def test_what_the_program_could_not_open_is_not_written(tmp_path: Path) -> None:
    model = read_model(DATA / "cbow.bin")
    assert isinstance(model.input, np.ndarray)
    words = [*list(model.words)[:-1], "two words"]
    quantized = read_model(DATA / "cut.ftz")
    for wrong, message in (
        (replace(model, input=model.input[1:]), "input matrix"),
        (replace(model, output=model.input), "output matrix"),
        (replace(model, words=Vocabulary.from_words(words)), "two words"),
        (replace(quantized, input=quantized.input.rows(range(300))), "quantised"),  # type: ignore[union-attr]
    ):
        with pytest.raises(OptionError, match=message):
            write_model(tmp_path / "m.bin", wrong)
    with pytest.raises(OptionError, match="folder"):
        write_model(tmp_path, model)
    assert list(tmp_path.iterdir()) == []
