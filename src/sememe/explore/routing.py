"""What routes share: a router that other sites cannot write to, and arrays as binary columns.

A binary answer is a little-endian uint32 (the size of a JSON header), the header, and the columns
one after the other. Header and columns start at multiples of 8 bytes. `api.js` reads it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import orjson
from fastapi import APIRouter, Request, Response

from sememe.contract import checked_finite
from sememe.serve.json_route import json_route


def explore_router(path: str = "") -> APIRouter:
    """A router of the page's own routes."""
    return APIRouter(
        prefix=f"/explore/api{path}", tags=["explore"], route_class=json_route(_anybody)
    )


async def _anybody(request: Request) -> None:
    """Let everybody in: the page is for this machine only, and the gate has checked the host."""


_ALIGNED = 8
_KINDS = {
    "float32": "<f4", "uint8": "|u1", "uint16": "<u2", "uint32": "<u4", "int32": "<i4"
}  # fmt: skip


def _padding(size: int) -> bytes:
    return bytes(-size % _ALIGNED)


def pack(meta: Mapping[str, Any], columns: Mapping[str, np.ndarray]) -> bytes:
    """The header and the columns as bytes; NaN is an error."""
    checked_finite("model", dict(columns))
    arrays = {
        name: np.ascontiguousarray(own, _KINDS[str(own.dtype)]) for name, own in columns.items()
    }
    table = [
        {"name": name, "type": str(own.dtype.name), "shape": own.shape}
        for name, own in arrays.items()
    ]
    header = orjson.dumps({"meta": meta, "columns": table}, option=orjson.OPT_SERIALIZE_NUMPY)
    header += b" " * (-(len(header) + 4) % _ALIGNED)
    parts = [len(header).to_bytes(4, "little"), header]
    for own in arrays.values():
        parts += [own.tobytes(), _padding(own.nbytes)]
    return b"".join(parts)


def columns_response(meta: Mapping[str, Any], **columns: np.ndarray) -> Response:
    """Columns of float32, uint8, uint16, uint32 or int32, with some JSON."""
    return Response(pack(meta, columns), media_type="application/octet-stream")
