"""Compile the Triton kernels for a Hopper GPU, which need not be there: a program of its own.

The interpreter runs kernels that no GPU would take: other types in a loop, sizes that are no powers
of two, more shared memory than there is.
"""

from __future__ import annotations

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from sememe.models.glove.strata import kernels as strata
from sememe.models.word2vec.tiles import kernels as tiles, launching
from sememe.models.word2vec.tiles.batches import LOSS_EVERY

MOST_SHARED = 227 << 10  # bytes of a program
TILE_TYPES = (
    *["*fp32"] * 4, "{starts}", *["*i32"] * 5, "*fp64", *["i32"] * 6, *["fp32"] * 3,
)  # fmt: skip
CELL_TYPES = (
    "*fp32", "*fp32", "*i32", "*i32", "*fp32", "*i64", "*fp32", "*fp32", "*fp64", "i32", "i32",
    "fp32", "fp32", "i32",
)  # fmt: skip


def compiled(kernel: object, types: tuple[str, ...], constants: dict[str, object], warps: int):
    """The kernel for arguments of these types, which come before the constants."""
    names = kernel.arg_names
    assert len(types) + len(constants) == len(names), (types, constants, names)
    signature = dict(zip(names, types, strict=False)) | dict.fromkeys(constants, "constexpr")
    source = ASTSource(
        kernel, signature, constexprs={(names.index(key),): own for key, own in constants.items()}
    )
    return triton.compile(
        source, target=GPUTarget("cuda", 90, 32), options={"num_warps": warps, "num_stages": 1}
    )


def tile(kernel: object, width: int, tile_size: int, pool: int, *, is_composed: bool):
    """A kernel of word2vec as `launching.train_words` launches it, window 5."""
    around = launching.power_of_two(tile_size + 10)
    is_whole = width <= launching.LARGEST_SLICE
    columns = launching.power_of_two(width) if is_whole else launching.SLICE
    constants = {
        "CENTRES": launching.power_of_two(tile_size), "AROUND": around, "POOL": pool,
        "SLICE": columns, "IS_WHOLE": is_whole, "IS_MEAN": True, "SUBWORDS": is_composed,
        "PRECISION": launching.PRECISION, "LOSS_EVERY": LOSS_EVERY,
    }  # fmt: skip
    starts = "*i64" if is_composed else "*i32"
    types = tuple(own.format(starts=starts) for own in TILE_TYPES)
    return compiled(kernel, types, constants, launching.num_warps(max(around, pool), columns))


def main() -> None:
    """Compile what trainings with default options need."""
    found = {
        "skip-gram": tile(tiles.skipgram_tiles, 112, 16, 64, is_composed=False),
        "skip-gram 300": tile(tiles.skipgram_tiles, 304, 16, 64, is_composed=False),
        "CBOW": tile(tiles.cbow_tiles, 112, 8, 32, is_composed=False),
        "fastText": tile(tiles.skipgram_tiles, 112, 16, 64, is_composed=True),
        "GloVe": compiled(strata.train_blocks, CELL_TYPES, {"WIDTH": 128}, 1),
    }
    for name, kernel in found.items():
        assert kernel.metadata.shared <= MOST_SHARED, (name, kernel.metadata.shared)
        print(name, kernel.metadata.shared, len(kernel.asm["cubin"]))


if __name__ == "__main__":
    main()
