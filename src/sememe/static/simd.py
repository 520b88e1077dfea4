"""Sixteen floats at a time inside numba kernels.

numba leaves vectorising to LLVM's loop passes, which add alias checks and scalar remainders that
cost more than the short rows (100 to 300 numbers) they surround. These intrinsics emit vector
instructions directly; where a machine has narrower registers, LLVM splits them.
Arrays are flat float32; an offset counts floats.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic, models, register_model

LANES = 16
_FLOATS = ir.VectorType(ir.FloatType(), LANES)
_QUARTER = ir.VectorType(ir.FloatType(), 4)
_INT = ir.IntType(32)


class _Lanes(types.Type):
    def __init__(self) -> None:
        super().__init__(name="Lanes16f")


_lanes = _Lanes()


@register_model(_Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, frontend_type: Any) -> None:
        super().__init__(manager, frontend_type, _FLOATS)


def _address(context: Any, builder: Any, array_type: Any, array: Any, offset: Any, to: Any) -> Any:
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [offset]), to.as_pointer())


def _shuffle(builder: Any, low: Any, high: Any, lanes: list[int]) -> Any:
    mask = ir.Constant(ir.VectorType(_INT, len(lanes)), lanes)
    return builder.shuffle_vector(low, high, mask)


@intrinsic
def load(typing: Any, array: Any, offset: Any) -> Any:
    """Read the sixteen floats that start at `offset`."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        address = _address(context, builder, signature.args[0], args[0], args[1], _FLOATS)
        return builder.load(address, align=4)

    return _lanes(array, types.intp), emit


@intrinsic
def store(typing: Any, array: Any, offset: Any, lanes: Any) -> Any:
    """Write sixteen floats at `offset`."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        address = _address(context, builder, signature.args[0], args[0], args[1], _FLOATS)
        builder.store(args[2], address, align=4)
        return context.get_dummy_value()

    return types.void(array, types.intp, _lanes), emit


@intrinsic
def store_quarters(typing: Any, array: Any, offset: Any, stride: Any, lanes: Any) -> Any:
    """Write four floats each at `offset`, `offset + stride`, `+ 2 stride` and `+ 3 stride`."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        offset = args[1]
        for quarter in range(4):
            part = _shuffle(builder, args[3], args[3], list(range(4 * quarter, 4 * quarter + 4)))
            address = _address(context, builder, signature.args[0], args[0], offset, _QUARTER)
            builder.store(part, address, align=4)
            offset = builder.add(offset, args[2])
        return context.get_dummy_value()

    return types.void(array, types.intp, types.intp, _lanes), emit


@intrinsic
def spread(typing: Any, number: Any) -> Any:
    """Repeat one float in all sixteen lanes."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        undefined = ir.Constant(_FLOATS, ir.Undefined)
        first = builder.insert_element(undefined, args[0], ir.Constant(_INT, 0))
        return _shuffle(builder, first, undefined, [0] * LANES)

    return _lanes(types.float32), emit


@intrinsic
def multiply_add(typing: Any, total: Any, left: Any, right: Any) -> Any:
    """total + left · right, rounded once."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = ir.FunctionType(_FLOATS, [_FLOATS, _FLOATS, _FLOATS])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.fma.v16f32")
        return builder.call(function, [args[1], args[2], args[0]])

    return _lanes(_lanes, _lanes, _lanes), emit


@intrinsic
def add(typing: Any, left: Any, right: Any) -> Any:
    """Sum lane by lane."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.fadd(args[0], args[1])

    return _lanes(_lanes, _lanes), emit


def _lane_by_lane(operation: str, what: str) -> Callable[..., Any]:
    """Make the intrinsic of one of LLVM's instructions on two vectors."""

    @intrinsic
    def apply(typing: Any, left: Any, right: Any) -> Any:
        def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return getattr(builder, operation)(args[0], args[1])

        return _lanes(_lanes, _lanes), emit

    apply.__doc__ = what
    return apply


subtract = _lane_by_lane("fsub", "Difference lane by lane.")
multiply = _lane_by_lane("fmul", "Product lane by lane.")
divide = _lane_by_lane("fdiv", "Quotient lane by lane.")


def _by_function(name: str, num_args: int, what: str) -> Callable[..., Any]:
    """Make the intrinsic of one of LLVM's functions of one or two vectors."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = ir.FunctionType(_FLOATS, [_FLOATS] * num_args)
        function = cgutils.get_or_insert_function(builder.module, kind, f"llvm.{name}.v16f32")
        return builder.call(function, args)

    if num_args == 1:

        @intrinsic
        def apply(typing: Any, lanes: Any) -> Any:
            return _lanes(_lanes), emit

    else:

        @intrinsic
        def apply(typing: Any, left: Any, right: Any) -> Any:
            return _lanes(_lanes, _lanes), emit

    apply.__doc__ = what
    return apply


square_root = _by_function("sqrt", 1, "Square root of each lane.")
smaller = _by_function("minnum", 2, "The smaller number of each lane; one NaN gives the other.")
larger = _by_function("maxnum", 2, "The larger number of each lane; one NaN gives the other.")


def _fold(group_size: int) -> Callable[..., Any]:
    """Make the step of a summing tree that halves groups of `group_size` lanes.

    Two vectors of groups come in, one vector with the groups of both, half as wide, goes out;
    after the steps 16, 8, 4, 2 one vector holds the sums of sixteen.
    """
    starts = range(0, 2 * LANES, group_size)
    half = group_size // 2
    first = [lane for start in starts for lane in range(start, start + half)]
    second = [lane + half for lane in first]

    @intrinsic
    def fold(typing: Any, left: Any, right: Any) -> Any:
        def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            low = _shuffle(builder, args[0], args[1], first)
            return builder.fadd(low, _shuffle(builder, args[0], args[1], second))

        return _lanes(_lanes, _lanes), emit

    return fold


fold16, fold8, fold4, fold2 = _fold(16), _fold(8), _fold(4), _fold(2)


@intrinsic
def total(typing: Any, lanes: Any) -> Any:
    """Sum of the sixteen lanes."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = ir.FunctionType(ir.FloatType(), [ir.FloatType(), _FLOATS])
        name = "llvm.vector.reduce.fadd.v16f32"
        function = cgutils.get_or_insert_function(builder.module, kind, name)
        zero = ir.Constant(ir.FloatType(), -0.0)
        return builder.call(function, [zero, args[0]], fastmath=("reassoc",))

    return types.float32(_lanes), emit


@intrinsic
def prefetch(typing: Any, array: Any, offset: Any) -> Any:
    """Ask for the cache line at `offset`, which will soon be read and written."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        byte = ir.IntType(8)
        address = _address(context, builder, signature.args[0], args[0], args[1], byte)
        kind = ir.FunctionType(ir.VoidType(), [byte.as_pointer(), _INT, _INT, _INT])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        for_write, keep_near, is_data = (ir.Constant(_INT, value) for value in (1, 3, 1))
        builder.call(function, [address, for_write, keep_near, is_data])
        return context.get_dummy_value()

    return types.void(array, types.intp), emit
