"""Damage to files, from a seed: a folder or file and a random generator in, what was done out.

Every kind of file is damaged as bytes; JSON, safetensors, HDF5, text and compressed files are
also taken apart, changed in one place and put together again, so that the damage passes the check
of the format and reaches what stands behind it. A few changes mean nothing (white space, a link in
place of a file, a field that nobody asked for): what is read must then be what it was.
"""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import os
import shutil
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np
import zstandard

LARGE_INTS = (2**31 - 1, 2**31, 2**32, 2**53, 2**63 - 1, 2**63, 2**64, 10**9, 10**18)
DEPTH, NUM_DIGITS = 100_000, 5_000
SPARSE_SIZE = 3 << 29  # bytes of a file that takes no room on the disk


class Damage(NamedTuple):
    """What was done to a case, and whether the model must still be what it was."""

    told: str
    is_neutral: bool = False


# ---- what stands in the place of a file ----------------------------------------------------


def _missing(path: Path) -> None:
    path.unlink()


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _link_to(target: str) -> Callable[[Path], None]:
    def link(path: Path) -> None:
        path.unlink()
        path.symlink_to(target.format(name=path.name))

    return link


def _sparse(path: Path) -> None:
    with path.open("ab") as file:
        file.truncate(SPARSE_SIZE)


PLACES: dict[str, Callable[[Path], None]] = {
    "missing": _missing,
    "a folder": _folder,
    "a FIFO": _fifo,
    "a link to /dev/zero": _link_to("/dev/zero"),
    "a link to /dev/null": _link_to("/dev/null"),
    "a link to itself": _link_to("{name}"),
    "a dangling link": _link_to("nowhere/{name}"),
    "gigabytes of zeros behind it": _sparse,
}


ENDLESS = ("a FIFO", "a link to /dev/zero", "gigabytes of zeros behind it")


def _replace_place(path: Path, rng: Random, is_stream: bool) -> str:
    # Texts may come through a pipe, as long as they like.
    name = rng.choice([name for name in PLACES if not (is_stream and name in ENDLESS)])
    PLACES[name](path)
    return name


# ---- bytes ---------------------------------------------------------------------------------


def _spot(data: bytes, rng: Random) -> int:
    """A place in the data; the first bytes, where headers are, come up more often."""
    limit = rng.choice((16, 256, len(data)))
    return rng.randrange(max(1, min(limit, len(data))))


def _flip(data: bytes, rng: Random) -> bytes:
    changed = bytearray(data or b"\0")
    for _ in range(rng.choice((1, 1, 1, 4, 32))):
        changed[_spot(changed, rng)] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _cut_off(data: bytes, rng: Random) -> bytes:
    return data[: rng.choice((_spot(data, rng), len(data) - 1, len(data) // 2))]


def _emptied(data: bytes, rng: Random) -> bytes:
    return b""


def _insert(data: bytes, rng: Random) -> bytes:
    at = _spot(data, rng)
    return data[:at] + rng.randbytes(rng.choice((1, 4, 64))) + data[at:]


def _remove(data: bytes, rng: Random) -> bytes:
    at = _spot(data, rng)
    return data[:at] + data[at + rng.choice((1, 8, 100)) :]


def _repeat(data: bytes, rng: Random) -> bytes:
    at, size = _spot(data, rng), rng.choice((1, 8, 1_000))
    return data[: at + size] + data[at:]


def _blank(data: bytes, rng: Random) -> bytes:
    at, size = _spot(data, rng), rng.choice((1, 4, 8, 512))
    return data[:at] + rng.choice((b"\0", b"\xff", b" "))[:1] * size + data[at + size :]


def _append(data: bytes, rng: Random) -> bytes:
    return data + rng.choice((b"\0", b"\n", b"}", rng.randbytes(1_000)))


def _number(data: bytes, rng: Random) -> bytes:
    """Another whole number of four or eight bytes, as headers of binary files have them."""
    at, code = _spot(data, rng) & ~3, rng.choice(("<i", "<q"))
    value = rng.choice((0, 1, -1, 2, 255, 65_536, 10**6, 2**30, 2**31 - 1, -(2**31)))
    if code == "<q":
        value = rng.choice((value, 2**33, 2**40, 2**62, 2**63 - 1))
    packed = struct.pack(code, value)
    return data[:at] + packed + data[at + len(packed) :]


def _float(data: bytes, rng: Random) -> bytes:
    at = _spot(data, rng) & ~3
    value = struct.pack("<f", rng.choice((float("nan"), float("inf"), -float("inf"), 3e38, 1e-40)))
    return data[:at] + value + data[at + 4 :]


def _shuffled_blocks(data: bytes, rng: Random) -> bytes:
    size = rng.choice((4, 64, 1_024))
    blocks = [data[at : at + size] for at in range(0, len(data), size)]
    first, second = rng.randrange(len(blocks) or 1), rng.randrange(len(blocks) or 1)
    if blocks:
        blocks[first], blocks[second] = blocks[second], blocks[first]
    return b"".join(blocks)


BYTES = (
    _flip, _flip, _cut_off, _emptied, _insert, _remove, _repeat, _blank, _append, _number, _number,
    _float, _shuffled_blocks,
)  # fmt: skip


# ---- JSON ----------------------------------------------------------------------------------

# JSON's text where Python's value would not do; a string of this form is replaced by it.
RAW = {
    "@deep@": "[" * DEPTH + "]" * DEPTH,
    "@deep object@": '{"a":' * DEPTH + "1" + "}" * DEPTH,
    "@digits@": "9" * NUM_DIGITS,
    "@negative digits@": "-" + "9" * NUM_DIGITS,
    "@exponent@": "1e999999",
    "@nan@": "NaN",
    "@infinity@": "-Infinity",
    "@surrogate@": '"\\ud800"',
    "@unclosed@": "[",
}
STRINGS = (
    "", " ", "\0", "\x1b[31m", "a\nb", "nan", "-1", "0", "../..", "/dev/zero", "/", "x" * 10_000,
    "é", "国", "[UNK]", "F32", "cpu", "bert", "%s{}", "__proto__",
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, True, False, [], {}, [[]], [None], {"": None}, 0, 1, -1, 2, 3, 0.5, -0.0, 1e308, -1e-308,
    *LARGE_INTS, *(-value for value in LARGE_INTS), *STRINGS, *RAW, *RAW,
)  # fmt: skip


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Every container with every key of it."""
    found, waiting = [], [value]
    while waiting:
        one = waiting.pop()
        keys: Any = list(one) if isinstance(one, dict) else range(len(one))
        found += [(one, key) for key in keys]
        waiting += [one[key] for key in keys if isinstance(one[key], (dict, list))]
    return found


def _slightly_other(value: Any, rng: Random) -> Any:
    if isinstance(value, bool) or value is None:
        return not value
    if isinstance(value, int):
        return rng.choice((value + 1, value - 1, -value, value * 2, value // 2, float(value), 0))
    if isinstance(value, float):
        return rng.choice((-value, value * 1e6, value + 1, int(value) if value == value else 0))
    if isinstance(value, str):
        return rng.choice((value[:-1], value + "x", value.upper(), value[::-1], value * 2, "\0"))
    if isinstance(value, list):
        return rng.choice((value[:-1], value + value, value[::-1], {"0": value}, value[:1]))
    return rng.choice((list(value), list(value.values()), {**value, "x": 1}, {}))


def _change_json(content: Any, rng: Random) -> tuple[Any, str]:
    places = _places(content) if isinstance(content, (dict, list)) else []
    if not places or rng.random() < 0.05:
        return rng.choice(VALUES), "another document"
    # The outermost fields come up as often as all that lies below them.
    if rng.random() < 0.5:
        places = [(holder, key) for holder, key in places if holder is content]
    holder, key = rng.choice(places)
    own = holder[key]
    match rng.choice(("value", "value", "value", "slight", "slight", "remove", "wrap", "swap")):
        case "value":
            holder[key] = value = rng.choice(VALUES)
            return content, f"{key!r} is {value!r:.40}"
        case "slight":
            holder[key] = value = _slightly_other(own, rng)
            return content, f"{key!r} is {value!r:.40}"
        case "remove":
            del holder[key]
            return content, f"without {key!r}"
        case "wrap":
            holder[key] = value = rng.choice(([own], {"value": own}, json.dumps(own)))
            return content, f"{key!r} is {value!r:.40}"
    other, its_key = rng.choice(places)
    holder[key], other[its_key] = other[its_key], holder[key]
    return content, f"{key!r} and {its_key!r} change places"


def _written(content: Any, **options: Any) -> bytes:
    text = json.dumps(content, **options)
    for mark, raw in RAW.items():
        text = text.replace(json.dumps(mark), raw)
    return text.encode("utf-8", "surrogatepass")


_REPLACE = {"type": "Replace", "pattern": {"String": "a"}, "content": "aaaaaaaaaaaaaaaa"}
_SPLIT = {"type": "Split", "behavior": "Isolated", "invert": False}


def _tokenizer_bomb(content: Any, rng: Random) -> tuple[Any, str]:
    """Contents of tokenizer.json that the Rust library believes."""
    vocabulary = content.get("model", {}).get("vocab")
    match rng.randrange(6):
        case 0:
            steps = [{**_REPLACE, "content": "a" * rng.choice((4, 16))} for _ in range(12)]
            content["normalizer"] = {"type": "Sequence", "normalizers": steps}
            return content, "chained Replace normalizers"
        case 1 if isinstance(vocabulary, dict) and vocabulary:
            vocabulary[rng.choice(list(vocabulary))] = value = rng.choice((10**9, 2**31, 2**32 - 1))
            return content, f"an id of {value}"
        case 2:
            regex = rng.choice(
                ("(?:a?){40}a{40}", "(a+)+$", "(", "\\", "(?<!a+)b", "a{1,99999}{9}")
            )
            content["pre_tokenizer"] = {**_SPLIT, "pattern": {"Regex": regex}}
            return content, f"a pre-tokenizer of {regex!r}"
        case 3:
            content["added_tokens"] = rng.choice(
                ([{"id": 10**9, "content": "[UNK]", "special": True}], [{}], [1], None,
                 [{"id": 1, "content": "", "special": False, "single_word": False,
                   "lstrip": True, "rstrip": True, "normalized": True}])
            )  # fmt: skip
            return content, "other added tokens"
        case 4:
            content["truncation"] = {
                "direction": "Right", "max_length": rng.choice((0, 1, 2**63)),
                "strategy": "LongestFirst", "stride": rng.choice((0, 5, 2**63)),
            }  # fmt: skip
            return content, "truncation"
    size = rng.choice((1, 10**6, 10**9))
    content["padding"] = {
        "strategy": {"Fixed": size}, "direction": "Right", "pad_to_multiple_of": None,
        "pad_id": 0, "pad_type_id": 0, "pad_token": "[PAD]",
    }  # fmt: skip
    return content, f"padding to {size}"


def _json(data: bytes, rng: Random, name: str) -> tuple[bytes, Damage]:
    content = json.loads(data)
    how = rng.random()
    if how < 0.05:
        other = json.dumps(
            content, indent=rng.choice((None, 0, 3)), ensure_ascii=rng.random() < 0.5
        )
        return other.encode(), Damage("the same JSON otherwise written", True)
    if how < 0.1:
        encoded = json.dumps(content, ensure_ascii=False)
        encoding = rng.choice(("utf-8-sig", "utf-16", "utf-32", "latin-1"))
        return encoded.encode(encoding, "replace"), Damage(f"JSON in {encoding}")
    if how < 0.15 and isinstance(content, dict):
        key = rng.choice(list(content) or ["kind"])
        twice = data.rstrip()[:-1] + b"," + json.dumps(key).encode() + b":null}"
        return twice, Damage(f"{key!r} twice")
    if name == "tokenizer.json" and how < 0.4:
        content, told = _tokenizer_bomb(content, rng)
    else:
        for _ in range(rng.choice((1, 1, 1, 3))):
            content, told = _change_json(content, rng)
    return _written(content), Damage(told)


# ---- tensors -------------------------------------------------------------------------------

_DTYPES = {
    "F64": "f8", "F32": "f4", "F16": "f2", "BF16": "u2", "BOOL": "?", "I64": "i8", "I32": "i4",
    "I16": "i2", "I8": "i1", "U64": "u8", "U32": "u4", "U16": "u2", "U8": "u1",
}  # fmt: skip
_NAMES = {np.dtype(f"<{code}"): name for name, code in _DTYPES.items() if name != "BF16"}


def _unpacked(data: bytes) -> tuple[dict[str, Any], bytes]:
    size = int.from_bytes(data[:8], "little")
    return json.loads(data[8 : 8 + size]), data[8 + size :]


def _packed(header: Any, body: bytes) -> bytes:
    text = _written(header)
    return len(text).to_bytes(8, "little") + text + body


def _tensors_of(header: dict[str, Any], body: bytes) -> dict[str, np.ndarray]:
    tensors = {}
    for name, entry in header.items():
        if name != "__metadata__":
            start, end = entry["data_offsets"]
            dtype = np.dtype(f"<{_DTYPES[entry['dtype']]}")
            tensors[name] = np.frombuffer(body[start:end], dtype).reshape(entry["shape"]).copy()
    return tensors


def _file_of(tensors: dict[str, np.ndarray], metadata: Any) -> bytes:
    header: dict[str, Any] = {"__metadata__": metadata} if metadata else {}
    parts, end = [], 0
    for name, tensor in tensors.items():
        start, end = end, end + tensor.nbytes
        dtype = _NAMES[tensor.dtype.newbyteorder("<")]
        header[name] = {"dtype": dtype, "shape": list(tensor.shape), "data_offsets": [start, end]}
        parts.append(np.ascontiguousarray(tensor).tobytes())
    return _packed(header, b"".join(parts))


def _other_values(tensor: np.ndarray, rng: Random) -> tuple[np.ndarray, str]:
    """The same shape and type with other numbers."""
    changed, flat = tensor.copy(), None
    flat = changed.reshape(-1)
    if not flat.size:
        return changed, "nothing"
    whole = tensor.dtype.kind in "iub"
    limits = np.iinfo(tensor.dtype) if tensor.dtype.kind in "iu" else None
    many = rng.random() < 0.3
    index: Any = slice(None) if many else rng.randrange(flat.size)
    match rng.randrange(5):
        case 0:
            value = limits.max if limits else 1 if whole else float("nan")
        case 1:
            value = limits.min if limits else 0 if whole else float("inf")
        case 2:
            value = 0
        case 3:
            rng_order = np.random.default_rng(rng.randrange(2**32))
            return rng_order.permutation(flat).reshape(tensor.shape), "shuffled numbers"
        case _:
            value = rng.choice((1, 2, 5, 100)) if whole else rng.choice((1e30, -3e38, 1e-45))
    flat[index] = value
    return changed, f"{value} in {'all places' if many else 'one place'}"


def _other_shape(tensor: np.ndarray, rng: Random) -> tuple[np.ndarray, str]:
    """Another shape or type, with data that fit it."""
    match rng.randrange(8):
        case 0:
            return tensor[: len(tensor) // 2] if tensor.ndim else tensor[None], "half the rows"
        case 1:
            return np.concatenate([tensor, tensor]) if tensor.ndim else tensor, "twice the rows"
        case 2:
            return tensor.T, "transposed"
        case 3:
            return tensor.reshape(-1), "flat"
        case 4:
            return tensor[None], "one more dimension"
        case 5:
            return tensor[..., :-1] if tensor.ndim else tensor, "one column less"
        case 6:
            return tensor[:0] if tensor.ndim else tensor, "no rows"
    dtype = np.dtype(f"<{rng.choice([*_NAMES.values()])}") if False else rng.choice([*_NAMES])
    with np.errstate(all="ignore"):
        return tensor.astype(dtype), f"as {dtype}"


def _safetensors(data: bytes, rng: Random, name: str) -> tuple[bytes, Damage]:
    header, body = _unpacked(data)
    names = [own for own in header if own != "__metadata__"]
    how = rng.random()
    if how < 0.05:
        padded = _written(header, indent=rng.choice((None, 1))) + b" " * rng.randrange(64)
        told = "the same header otherwise written"
        return len(padded).to_bytes(8, "little") + padded + body, Damage(told, True)
    if how < 0.3:
        header, told = _change_json(header, rng)
        return _packed(header, body), Damage(f"header: {told}")
    tensors, metadata = _tensors_of(header, body), header.get("__metadata__")
    own = rng.choice(names)
    if how < 0.35:
        order = sorted(tensors, key=lambda _: rng.random())
        told, neutral = "tensors in another order", True
        return _file_of({key: tensors[key] for key in order}, metadata), Damage(told, neutral)
    if how < 0.65:
        tensors[own], told = _other_values(tensors[own], rng)
    elif how < 0.85:
        tensors[own], told = _other_shape(tensors[own], rng)
    elif how < 0.92:
        del tensors[own]
        told = "removed"
    else:
        other = rng.choice(names)
        tensors[own], tensors[other] = tensors[other], tensors[own]
        told = f"changes places with {other}"
    return _file_of(tensors, metadata), Damage(f"{own}: {told}")


def _hdf5(path: Path, rng: Random) -> Damage:
    import h5py

    with h5py.File(path, "r+") as file:
        names: list[str] = []
        file.visititems(lambda name, one: names.append(name) if hasattr(one, "shape") else None)
        own = rng.choice(names)
        tensor = file[own][()]
        del file[own]
        if rng.random() < 0.1:
            return Damage(f"{own}: removed")
        change = _other_values if rng.random() < 0.5 else _other_shape
        file[own], told = change(tensor, rng)
    return Damage(f"{own}: {told}")


# ---- text ----------------------------------------------------------------------------------

_CELLS = (
    b"", b"nan", b"inf", b"-inf", b"1e999", b"-1", b"0", b"1", b"x", b"1e", b"0x1", b"1,5", b"\xff",
    b"\xc3\x28", b"\xed\xa0\x80", b"\0", b'"', b"'", b"\t", b"\xef\xbb\xbf", b"\xe2\x80\xa8",
    b"9" * 400, b"9" * 5_000, b"1000000000000000000000", b"4294967296", b"-2147483649", b"\\end\\",
    b"\\2-grams:",
    b"<unk>", b"</s>", b"__label__", b"[[", b"|", b":", b"#",
)  # fmt: skip


def _cells(line: bytes) -> tuple[list[bytes], bytes]:
    mark = next((mark for mark in (b"\t", b",", b" ") if mark in line), b" ")
    return line.split(mark), mark


def _text(data: bytes, rng: Random, name: str) -> tuple[bytes, Damage]:
    lines = data.split(b"\n")
    at = rng.choice((0, rng.randrange(len(lines)), rng.randrange(len(lines))))
    match rng.randrange(14):
        case 0:
            del lines[at : at + rng.choice((1, 1, 3, 100))]
            told = f"without line {at + 1}"
        case 1:
            lines[at:at] = lines[at : at + 1] * rng.choice((1, 2, 100))
            told = f"line {at + 1} repeated"
        case 2:
            other = rng.randrange(len(lines))
            lines[at], lines[other] = lines[other], lines[at]
            told = f"lines {at + 1} and {other + 1} change places"
        case 3 | 4 | 5 | 6:
            cells, mark = _cells(lines[at])
            column = rng.randrange(len(cells))
            cells[column] = value = rng.choice(_CELLS)
            lines[at] = mark.join(cells)
            told = f"line {at + 1}: a cell is {value!r:.30}"
        case 7:
            cells, mark = _cells(lines[at])
            del cells[rng.randrange(len(cells))]
            lines[at] = mark.join(cells)
            told = f"line {at + 1}: a cell less"
        case 8:
            lines[at] += rng.choice((b" 1", b"\tx", b",x", b' "', b"\r", b"\\"))
            told = f"line {at + 1}: a cell more"
        case 9:
            lines[at] = rng.choice((b"a", b"a ", b"\xe5\x9b\xbd", b"1 ", b'"')) * 300_000
            told = f"line {at + 1} is very long"
        case 10:
            lines.insert(at, rng.choice(_CELLS))
            told = f"another line {at + 1}"
        case 11:
            return data.replace(b"\n", b"\r\n"), Damage("CRLF")
        case 12:
            encoding = rng.choice(("utf-8-sig", "utf-16", "utf-32", "gb18030", "latin-1"))
            return data.decode("utf-8", "replace").encode(encoding, "replace"), Damage(encoding)
        case _:
            kept = [line for line in lines if rng.random() < 0.5]
            return b"\n".join(kept), Damage("half the lines")
    return b"\n".join(lines), Damage(told)


# ---- parquet -------------------------------------------------------------------------------

_FOOTER_SIZE = 4  # bytes of the length at the end, before the mark


def _as_text(column: Any, data: bytes) -> Any:
    """An array of strings whose bytes are replaced, unchecked."""
    import pyarrow as pa

    whole = column.combine_chunks().cast(pa.string())
    return pa.Array.from_buffers(
        pa.string(), len(whole), [None, whole.buffers()[1], pa.py_buffer(data)]
    )


def _parquet(data: bytes, rng: Random, name: str) -> tuple[bytes, Damage]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    if rng.random() < 0.5:  # the footer has the schema, the counts and the places
        size = int.from_bytes(data[-8:-_FOOTER_SIZE], "little") + 8
        head, footer = data[:-size], bytearray(data[-size:])
        if rng.random() < 0.3:
            footer = bytearray(
                bytes(footer).replace(b"text", rng.choice((b"te\xfft", b"\0ext", b"t.xt")))
            )
            return head + footer, Damage("the name of a column")
        for _ in range(rng.choice((1, 1, 2, 8))):
            footer[rng.randrange(size)] = rng.choice((0, 0x7F, 0x80, 0xFF, rng.randrange(256)))
        return head + bytes(footer), Damage("its footer")
    table = pq.read_table(pa.BufferReader(data))
    place = rng.randrange(table.num_columns)
    field, column = table.schema.field(place), table.column(place)
    match rng.randrange(6):
        case 0 if pa.types.is_string(field.type):
            given = column.combine_chunks().buffers()[2].to_pybytes()
            changed = bytearray(given)
            for _ in range(3):
                changed[rng.randrange(len(changed))] = rng.choice((0xFF, 0xC3, 0xE5, 0x80))
            new, told = _as_text(column, bytes(changed)), "strings that are not UTF-8"
        case 1:
            new, told = pa.array([[one] for one in column.to_pylist()]), "lists"
        case 2:
            new, told = pa.array([{"a": {"b": one}} for one in column.to_pylist()]), "objects"
        case 3:
            new, told = pa.nulls(len(column)), "nothing"
        case 4:
            numbers = pa.array(range(len(column)))  # nested columns have no dictionary
            own = numbers if pa.types.is_nested(field.type) else column.combine_chunks()
            new = rng.choice((own, numbers))
            new, told = new.dictionary_encode(), "a dictionary"
        case _:
            kinds = (pa.binary(), pa.large_string(), pa.int64(), pa.float32(), pa.bool_())
            new = pa.array([None] * len(column), rng.choice(kinds))
            told = f"{new.type}"
    own = rng.choice((field.name, "text", "a.b", "", "名", "n" * 10_000))
    changed_table = table.set_column(place, own, new)
    sink = pa.BufferOutputStream()
    codec = rng.choice(("none", "snappy", "gzip", "zstd"))
    pq.write_table(changed_table, sink, compression=codec, row_group_size=rng.choice((1, 5, 1_000)))
    return sink.getvalue().to_pybytes(), Damage(f"column {field.name} holds {told}")


# ---- compressed files ----------------------------------------------------------------------

_COMPRESSIONS: dict[str, tuple[Callable[[bytes], bytes], Callable[[bytes], bytes]]] = {
    ".gz": (gzip.decompress, lambda data: gzip.compress(data, 1)),
    ".bz2": (bz2.decompress, bz2.compress),
    ".xz": (lzma.decompress, lambda data: lzma.compress(data, preset=0)),
    ".zst": (
        lambda data: zstandard.ZstdDecompressor().decompressobj().decompress(data),
        lambda data: zstandard.ZstdCompressor(1).compress(data),
    ),
}


def _compressed(path: Path, rng: Random) -> Damage:
    opened, closed = _COMPRESSIONS[path.suffix]
    inner = path.with_suffix("")
    how = rng.random()
    if how < 0.1:
        compress = rng.choice([pair[1] for pair in _COMPRESSIONS.values()])
        path.write_bytes(compress(opened(path.read_bytes())))
        return Damage("compressed in some way")
    if how < 0.15:
        path.write_bytes(closed(path.read_bytes()))
        return Damage("compressed twice")
    content = opened(path.read_bytes())
    if how < 0.25:
        half = len(content) // 2
        path.write_bytes(closed(content[:half]) + closed(content[half:]))
        return Damage("compressed in two members")
    changed, damage = changed_content(content, rng, inner.name)
    path.write_bytes(closed(changed))
    return damage._replace(told=f"within: {damage.told}")


# ---- one file, one folder ------------------------------------------------------------------

Change = Callable[[bytes, Random, str], tuple[bytes, Damage]]
STRUCTURED: dict[str, Change] = {
    ".json": _json, ".safetensors": _safetensors, ".parquet": _parquet,
}  # fmt: skip
_TEXT_ENDINGS = {
    ".txt", ".vec", ".glove", ".arpa", ".floret", ".csv", ".tsv", ".jsonl", ".conll", ".md",
}  # fmt: skip


def changed_content(data: bytes, rng: Random, name: str) -> tuple[bytes, Damage]:
    """Other bytes in place of a file's own, by what the name says they are."""
    ending = Path(name).suffix
    change = STRUCTURED.get(ending) or (_text if ending in _TEXT_ENDINGS else None)
    if change is not None and rng.random() < 0.8:
        try:
            return change(data, rng, name)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, IndexError):
            pass  # damaged before, by the first of two changes: it is bytes now
    how = rng.choice(BYTES)
    return how(data, rng), Damage(how.__name__.strip("_"))


def change_file(path: Path, rng: Random, others: Sequence[Path], is_stream: bool = False) -> Damage:
    """Damage one file; `others` are files of other models, which may take its place."""
    how = rng.random()
    if how < 0.06:
        return Damage(_replace_place(path, rng, is_stream))
    if how < 0.08:
        kept = path.with_name(f".{path.name}.kept")
        path.rename(kept)
        path.symlink_to(kept.name)
        return Damage("a link to itself elsewhere", True)
    namesakes = [other for other in others if other.suffix == path.suffix]
    if how < 0.13 and namesakes:
        other = rng.choice(namesakes)
        shutil.copyfile(other, path)
        return Damage(f"that of {other.parent.name}/{other.name}")
    if path.suffix == ".hdf5" and how < 0.6:
        try:
            return _hdf5(path, rng)
        except Exception as error:  # h5py knows many: damaged by the first of two changes
            return Damage(f"as it was: {type(error).__name__}")
    if path.suffix in _COMPRESSIONS and how < 0.7:
        try:
            return _compressed(path, rng)
        except Exception as error:
            return Damage(f"as it was: {type(error).__name__}")
    data, damage = changed_content(path.read_bytes(), rng, path.name)
    path.write_bytes(data)
    return damage


UNREAD = ("history.json",)  # beside a model, for people


def _add_file(folder: Path, rng: Random) -> str:
    name = rng.choice(("notes.txt", ".DS_Store", "model.safetensors.bak", "é.json", "README.md"))
    (folder / name).write_bytes(rng.randbytes(100))
    return f"{name}: one more file"


def damage(place: Path, rng: Random, others: Sequence[Path], is_stream: bool = False) -> Damage:
    """Damage a file, or one or two files of a folder."""
    if place.is_file():
        done = change_file(place, rng, others, is_stream)
        return done._replace(told=f"{place.name}: {done.told}")
    if rng.random() < 0.02:
        return Damage(_add_file(place, rng), True)
    files = sorted(path for path in place.rglob("*") if path.is_file())
    if rng.random() < 0.03 and len(files) > 1:
        first, second = rng.sample(files, 2)
        content = first.read_bytes()
        first.write_bytes(second.read_bytes())
        second.write_bytes(content)
        return Damage(f"{first.name} and {second.name} change places")
    # What is read matters more than what is kept for people.
    weights = [0.2 if path.name in UNREAD else 1.0 for path in files]
    chosen = dict.fromkeys(rng.choices(files, weights, k=rng.choice((1, 1, 1, 2))))
    done = [(path, change_file(path, rng, others, is_stream)) for path in chosen]
    told = "; ".join(f"{path.relative_to(place)}: {one.told}" for path, one in done)
    neutral = all(one.is_neutral or path.name in UNREAD for path, one in done)
    return Damage(told, neutral)
