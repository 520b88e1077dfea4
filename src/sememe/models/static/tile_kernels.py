"""Several rows at once: their dot products with other rows, their sums, updates of both.

Matrices are as in `row_kernels`: flat float32 with rows of `width` floats, a multiple of 16; rows
are given by their offsets. The code is unrolled over the rows of a tile, so that all of them stay
in registers and each of the others is fetched once; no row is copied.
"""

from collections.abc import Callable
from copy import copy
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from sememe.models.static import simd
from sememe.models.static.simd import FLOATS, LANES

MOST_ROWS = 10  # each takes two of 32 registers
_NOTHING = ir.Constant(FLOATS, [0.0] * LANES)
_INDEX = ir.IntType(64)


class _Array:
    """An array argument of an intrinsic, as seen by the generated code."""

    def __init__(self, context: Any, builder: Any, array_type: Any, array: Any) -> None:
        self._builder = builder
        self.data = context.make_array(array_type)(context, builder, array).data

    def number(self, offset: Any) -> Any:
        return self._builder.load(self._builder.gep(self.data, [offset]))

    def lanes(self, offset: Any) -> Any:
        return self._builder.load(self._address(offset), align=4)

    def put(self, offset: Any, lanes: Any) -> None:
        self._builder.store(lanes, self._address(offset, lanes.type), align=4)

    def _address(self, offset: Any, kind: Any = FLOATS) -> Any:
        return self._builder.bitcast(self._builder.gep(self.data, [offset]), kind.as_pointer())


def _wrapped(context: Any, builder: Any, signature: Any, args: Any) -> list[Any]:
    """The arguments of an intrinsic, arrays as `_Array`."""
    return [
        _Array(context, builder, kind, arg) if isinstance(kind, types.Array) else arg
        for kind, arg in zip(signature.args, args, strict=True)
    ]


def _choose(builder: Any, k: Any, num_near: Any, near: _Array, far: _Array) -> _Array:
    """The array that the k-th of the many rows is in."""
    chosen = copy(far)
    chosen.data = builder.select(builder.icmp_signed("<", k, num_near), near.data, far.data)
    return chosen


def _index(number: int) -> Any:
    return ir.Constant(_INDEX, number)


def _add_product(builder: Any, total: Any, left: Any, right: Any) -> None:
    """*total += left · right, rounded once."""
    builder.store(simd.call(builder, "fma", [left, right, builder.load(total)]), total)


def _variables(builder: Any, num: int) -> list[Any]:
    """Create vectors that are zero whenever this place is reached."""
    made = [cgutils.alloca_once(builder, FLOATS) for _ in range(num)]
    for variable in made:
        builder.store(_NOTHING, variable)
    return made


def _strips(builder: Any, width: Any, num: int = 1, first: Any = _index(0)) -> Any:
    """Emit a loop over a row, `num` strips of sixteen floats at a time."""
    return cgutils.for_range_slice(builder, first, width, _index(num * LANES), _INDEX)


def _totals(builder: Any, variables: list[Any]) -> list[Any]:
    """Sum the lanes of each vector; sixteen sums form a vector, zeros fill the last one.

    A tree: in each round two vectors become one, whose groups of lanes are half as wide.
    """
    vectors = [builder.load(variable) for variable in variables]
    for size in (16, 8, 4, 2):
        vectors = vectors + [_NOTHING] * (len(vectors) % 2)
        starts = range(0, 2 * LANES, size)
        low = [lane for start in starts for lane in range(start, start + size // 2)]
        high = [lane + size // 2 for lane in low]
        vectors = [
            builder.fadd(*(simd.shuffle(builder, a, b, lanes) for lanes in (low, high)))
            for a, b in zip(vectors[::2], vectors[1::2], strict=True)
        ]
    return vectors


@intrinsic
def score_tile(
    typing: Any, left: Any, i: Any, right: Any, j: Any, width: Any, out: Any, to: Any, stride: Any
) -> Any:
    """out[a, b] = left row a · right row b for four rows of each, sixteen sums at once.

    i and j are the offsets of the first rows, `to` that of out[0, 0], `stride` out's row length.
    """

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        left, i, right, j, width, out, to, stride = _wrapped(context, builder, signature, args)

        def row(start: Any, index: int, d: Any) -> Any:
            return builder.add(builder.add(start, d), builder.mul(width, _index(index)))

        sums = _variables(builder, 16)
        with _strips(builder, width) as (d, _):
            rows = [left.lanes(row(i, a, d)) for a in range(4)]
            for b in range(4):
                other = right.lanes(row(j, b, d))
                for a in range(4):
                    _add_product(builder, sums[4 * a + b], rows[a], other)
        (total,) = _totals(builder, sums)
        for a in range(4):
            quarter = simd.shuffle(builder, total, total, [4 * a + b for b in range(4)])
            out.put(builder.add(to, builder.mul(stride, _index(a))), quarter)
        return context.get_dummy_value()

    size = types.intp
    return types.void(left, size, right, size, size, out, size, size), emit


@intrinsic
def dot_eight(
    typing: Any, left: Any, i: Any, right: Any, rows: Any, k: Any, width: Any, out: Any
) -> Any:
    """out[k + n] = row of `left` at i · row of `right` at rows[k + n], n from 0 to 7.

    Eight more places of `out` are overwritten with zeros.
    """

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        left, i, right, rows, k, width, out = _wrapped(context, builder, signature, args)
        others = [rows.number(builder.add(k, _index(n))) for n in range(8)]
        sums = _variables(builder, 8)
        with _strips(builder, width) as (d, _):
            row = left.lanes(builder.add(i, d))
            for total, other in zip(sums, others, strict=True):
                _add_product(builder, total, row, right.lanes(builder.add(other, d)))
        out.put(k, _totals(builder, sums)[0])
        return context.get_dummy_value()

    size = types.intp
    return types.void(left, size, right, rows, size, size, out), emit


@intrinsic
def sum_rows(
    typing: Any, scale: Any, source: Any, rows: Any, num: Any, target: Any, width: Any
) -> Any:
    """target = scale · Σ_k source row at rows[k], k below `num`."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        scale, source, rows, num, target, width = _wrapped(context, builder, signature, args)
        factor, begin = simd.repeat(builder, scale), _index(0)
        for num_strips in (4, 2, 1):
            end = builder.and_(width, _index(-num_strips * LANES))
            with _strips(builder, end, num_strips, begin) as (d, _):
                sums = _variables(builder, num_strips)
                places = [builder.add(d, _index(n * LANES)) for n in range(num_strips)]
                with cgutils.for_range(builder, num) as loop:
                    row = rows.number(loop.index)
                    for total, place in zip(sums, places, strict=True):
                        more = source.lanes(builder.add(row, place))
                        builder.store(builder.fadd(builder.load(total), more), total)
                for total, place in zip(sums, places, strict=True):
                    scaled = simd.call(builder, "fma", [builder.load(total), factor, _NOTHING])
                    target.put(place, scaled)
            begin = end
        return context.get_dummy_value()

    size = types.intp
    return types.void(types.float32, source, rows, size, target, size), emit


def _combine(num_rows: int) -> Callable[..., Any]:
    """Create the intrinsic that updates this many rows at once."""

    @intrinsic
    def combine(
        typing: Any, factors: Any, at: Any, row_step: Any, step: Any, num: Any, source: Any,
        i: Any, target: Any, rows: Any, first: Any, width: Any,
    ) -> Any:  # fmt: skip
        """target row rows[first + a] += Σ_s factors[a, s] · source row s, s below `num`.

        `at` is the offset of factors[0, 0]; `row_step` leads to the next a, `step` to the next s, i
        is the first source row. The target rows must differ, since all are held at once.
        """

        def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            given = _wrapped(context, builder, signature, args)
            factors, at, row_step, step, num, source, i, target, rows, first, width = given
            targets = [rows.number(builder.add(first, _index(a))) for a in range(num_rows)]
            starts = [builder.add(at, builder.mul(row_step, _index(a))) for a in range(num_rows)]
            begin = _index(0)
            for num_strips in (2, 1):
                end = builder.and_(width, _index(-num_strips * LANES))
                with _strips(builder, end, num_strips, begin) as (d, _):
                    places = [builder.add(d, _index(n * LANES)) for n in range(num_strips)]
                    held = [builder.add(row, place) for row in targets for place in places]
                    sums = _variables(builder, len(held))
                    for total, place in zip(sums, held, strict=True):
                        builder.store(target.lanes(place), total)
                    with cgutils.for_range(builder, num) as loop:
                        row = builder.add(i, builder.mul(loop.index, width))
                        others = [source.lanes(builder.add(row, place)) for place in places]
                        number = builder.mul(loop.index, step)
                        for a, start in enumerate(starts):
                            factor = factors.number(builder.add(start, number))
                            factor = simd.repeat(builder, factor)
                            for n, other in enumerate(others):
                                _add_product(builder, sums[a * num_strips + n], factor, other)
                    for total, place in zip(sums, held, strict=True):
                        target.put(place, builder.load(total))
                begin = end
            return context.get_dummy_value()

        size = types.intp
        return types.void(
            factors, size, size, size, size, source, size, target, rows, size, size
        ), emit

    return combine


combine_one, combine_four = _combine(1), _combine(4)


def _for_each_number(builder: Any, num: Any, write: Callable[[int], None]) -> None:
    """Generate code for 1 to MOST_ROWS rows, and a jump to the variant for `num`."""
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
        given = _wrapped(context, builder, signature, args)
        few, few_rows, num_few, near, num_near, far, many_rows, num_many, width, scores = given

        def write(num: int) -> None:
            rows = [few_rows.number(_index(j)) for j in range(num)]
            with cgutils.for_range_slice(builder, _index(0), num_many, _index(2), _INDEX) as (k, _):
                places = [builder.add(k, _index(n)) for n in range(2)]
                others = [many_rows.number(place) for place in places]
                many = [_choose(builder, place, num_near, near, far) for place in places]
                sums = _variables(builder, 2 * num)
                with _strips(builder, width) as (d, _):
                    right = [many[n].lanes(builder.add(others[n], d)) for n in range(2)]
                    for j, row in enumerate(rows):
                        left = few.lanes(builder.add(row, d))
                        _add_product(builder, sums[j], left, right[0])
                        _add_product(builder, sums[num + j], left, right[1])
                for n, vector in enumerate(_totals(builder, sums)):
                    to = builder.add(builder.mul(k, _index(num)), _index(n * LANES))
                    scores.put(to, vector)

        _for_each_number(builder, num_few, write)
        return context.get_dummy_value()

    size = types.intp
    given = (few, few_rows, size, near, size, far, many_rows, size, size, scores)
    return types.void(*given), emit


@intrinsic
def exchange_pairs(
    typing: Any, few: Any, few_rows: Any, num_few: Any, near: Any, num_near: Any, far: Any,
    many_rows: Any, num_many: Any, width: Any, factors: Any,
) -> Any:  # fmt: skip
    """Update both rows of each pair by factors[k · num_few + j] times the other's old value.

    Rows are given as for `score_pairs`; one of the few may occur twice, one of the many may not.
    """

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        given = _wrapped(context, builder, signature, args)
        few, few_rows, num_few, near, num_near, far, many_rows, num_many, width, factors = given

        def write(num: int) -> None:
            rows = [few_rows.number(_index(j)) for j in range(num)]
            with _strips(builder, width) as (d, _):
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
                        factor = simd.repeat(builder, factors.number(builder.add(at, _index(j))))
                        _add_product(builder, changes[j], factor, other)
                        _add_product(builder, moved, factor, old[j])
                    many.put(place, builder.load(moved))
                # Read again, not taken from `old`: the row may have been changed as its twin.
                for place, change in zip(places, changes, strict=True):
                    few.put(place, builder.fadd(few.lanes(place), builder.load(change)))

        _for_each_number(builder, num_few, write)
        return context.get_dummy_value()

    size = types.intp
    given = (few, few_rows, size, near, size, far, many_rows, size, size, factors)
    return types.void(*given), emit
