"""A few rows and many others, every one with every one: their scores, then the move of both.

Matrices are as in `rows`: flat float32 with rows of `width` floats, a multiple of 16. The code is
written out for each number of rows up to MOST_ROWS, so that all of them stay in registers and each
of the many is fetched once; no row is copied.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

LANES = 16
MOST_ROWS = 10  # each takes two of 32 registers
_FLOATS = ir.VectorType(ir.FloatType(), LANES)
_NOTHING = ir.Constant(_FLOATS, [0.0] * LANES)
_INT, _INDEX = ir.IntType(32), ir.IntType(64)


class _Array:
    """One of the arrays of an intrinsic, seen by the code that it becomes."""

    def __init__(self, context: Any, builder: Any, array_type: Any, array: Any) -> None:
        self._builder = builder
        self.data = context.make_array(array_type)(context, builder, array).data

    def number(self, offset: Any) -> Any:
        return self._builder.load(self._builder.gep(self.data, [offset]))

    def lanes(self, offset: Any) -> Any:
        return self._builder.load(self._address(offset), align=4)

    def put(self, offset: Any, lanes: Any) -> None:
        self._builder.store(lanes, self._address(offset), align=4)

    def _address(self, offset: Any) -> Any:
        return self._builder.bitcast(self._builder.gep(self.data, [offset]), _FLOATS.as_pointer())


def _choose(builder: Any, k: Any, num_near: Any, near: _Array, far: _Array) -> _Array:
    """The array of the k-th of many rows."""
    chosen = copy(far)
    chosen.data = builder.select(builder.icmp_signed("<", k, num_near), near.data, far.data)
    return chosen


def _index(number: int) -> Any:
    return ir.Constant(_INDEX, number)


def _spread(builder: Any, number: Any) -> Any:
    undefined = ir.Constant(_FLOATS, ir.Undefined)
    first = builder.insert_element(undefined, number, ir.Constant(_INT, 0))
    mask = ir.Constant(ir.VectorType(_INT, LANES), [0] * LANES)
    return builder.shuffle_vector(first, undefined, mask)


def _add_product(builder: Any, total: Any, left: Any, right: Any) -> None:
    """*total += left · right, rounded once."""
    kind = ir.FunctionType(_FLOATS, [_FLOATS] * 3)
    function = cgutils.get_or_insert_function(builder.module, kind, "llvm.fma.v16f32")
    builder.store(builder.call(function, [left, right, builder.load(total)]), total)


def _variables(builder: Any, num: int) -> list[Any]:
    """Make vectors that start at zero each time this place is reached."""
    made = [cgutils.alloca_once(builder, _FLOATS) for _ in range(num)]
    for variable in made:
        builder.store(_NOTHING, variable)
    return made


def _totals(builder: Any, vectors: list[Any]) -> list[Any]:
    """Sum the lanes of each vector; sixteen sums make a vector, zeros fill the last one.

    A tree: in each round two vectors become one, whose groups of lanes are half as wide.
    """
    for size in (16, 8, 4, 2):
        vectors = vectors + [_NOTHING] * (len(vectors) % 2)
        starts = range(0, 2 * LANES, size)
        low = [lane for start in starts for lane in range(start, start + size // 2)]
        masks = [ir.Constant(ir.VectorType(_INT, LANES), [lane + half for lane in low])
                 for half in (0, size // 2)]  # fmt: skip
        pairs = zip(vectors[::2], vectors[1::2], strict=True)
        vectors = [builder.fadd(*(builder.shuffle_vector(a, b, mask) for mask in masks))
                   for a, b in pairs]  # fmt: skip
    return vectors


def _for_each_number(builder: Any, num: Any, write: Callable[[int], None]) -> None:
    """Write the code for 1 to MOST_ROWS rows, and a jump to the one that `num` asks for."""
    end = builder.append_basic_block("end")
    jump = builder.switch(num, end)
    for case in range(1, MOST_ROWS + 1):
        block = builder.append_basic_block(f"rows{case}")
        jump.add_case(_index(case), block)
        builder.position_at_end(block)
        write(case)
        builder.branch(end)
    builder.position_at_end(end)


@intrinsic
def score_pairs(
    typing: Any, few: Any, few_rows: Any, num_few: Any, near: Any, num_near: Any, far: Any,
    many_rows: Any, num_many: Any, width: Any, scores: Any,
) -> Any:  # fmt: skip
    """scores[k · num_few + j] = the few's row few_rows[j] · the many's row many_rows[k].

    The rows are given by their offsets, num_few is at most MOST_ROWS. The first num_near of the
    many are rows of `near`, the others of `far`. Two are taken at a time, so `many_rows` has one
    valid offset more, and 32 more places of `scores` are written.
    """

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        few, few_rows, near, far, many_rows, scores = (
            _Array(context, builder, signature.args[n], args[n]) for n in (0, 1, 3, 5, 6, 9)
        )
        num_near, num_many, width = args[4], args[7], args[8]

        def write(num: int) -> None:
            rows = [few_rows.number(_index(j)) for j in range(num)]
            with cgutils.for_range_slice(builder, _index(0), num_many, _index(2), _INDEX) as (k, _):
                places = [builder.add(k, _index(n)) for n in range(2)]
                others = [many_rows.number(place) for place in places]
                many = [_choose(builder, place, num_near, near, far) for place in places]
                sums = _variables(builder, 2 * num)
                strips = cgutils.for_range_slice(builder, _index(0), width, _index(LANES), _INDEX)
                with strips as (d, _):
                    right = [many[n].lanes(builder.add(others[n], d)) for n in range(2)]
                    for j, row in enumerate(rows):
                        left = few.lanes(builder.add(row, d))
                        _add_product(builder, sums[j], left, right[0])
                        _add_product(builder, sums[num + j], left, right[1])
                totals = _totals(builder, [builder.load(vector) for vector in sums])
                for n, vector in enumerate(totals):
                    to = builder.add(builder.mul(k, _index(num)), _index(n * LANES))
                    scores.put(to, vector)

        _for_each_number(builder, args[2], write)
        return context.get_dummy_value()

    size = types.intp
    given = (few, few_rows, size, near, size, far, many_rows, size, size, scores)
    return types.void(*given), emit


@intrinsic
def exchange_pairs(
    typing: Any, few: Any, few_rows: Any, num_few: Any, near: Any, num_near: Any, far: Any,
    many_rows: Any, num_many: Any, width: Any, factors: Any,
) -> Any:  # fmt: skip
    """Move both rows of each pair by factors[k · num_few + j] times what the other was before.

    Rows are given as for `score_pairs`; one of the few may occur twice, one of the many not.
    """

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        few, few_rows, near, far, many_rows, factors = (
            _Array(context, builder, signature.args[n], args[n]) for n in (0, 1, 3, 5, 6, 9)
        )
        num_near, num_many, width = args[4], args[7], args[8]

        def write(num: int) -> None:
            rows = [few_rows.number(_index(j)) for j in range(num)]
            strips = cgutils.for_range_slice(builder, _index(0), width, _index(LANES), _INDEX)
            with strips as (d, _):
                places = [builder.add(row, d) for row in rows]
                old = [few.lanes(place) for place in places]
                changes = _variables(builder, num)
                with cgutils.for_range(builder, num_many) as loop:
                    many = _choose(builder, loop.index, num_near, near, far)
                    place = builder.add(many_rows.number(loop.index), d)
                    other = many.lanes(place)
                    moved = _variables(builder, 1)[0]
                    builder.store(other, moved)
                    at = builder.mul(loop.index, _index(num))
                    for j in range(num):
                        factor = factors.number(builder.add(at, _index(j)))
                        factor = _spread(builder, factor)
                        _add_product(builder, changes[j], factor, other)
                        _add_product(builder, moved, factor, old[j])
                    many.put(place, builder.load(moved))
                # Read again, not taken from `old`: the row may have been changed as its twin.
                for place, change in zip(places, changes, strict=True):
                    few.put(place, builder.fadd(few.lanes(place), builder.load(change)))

        _for_each_number(builder, args[2], write)
        return context.get_dummy_value()

    size = types.intp
    given = (few, few_rows, size, near, size, far, many_rows, size, size, factors)
    return types.void(*given), emit
