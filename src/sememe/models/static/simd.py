"""Sixteen floats at a time inside numba kernels.

numba leaves vectorising to LLVM's loop passes, which add alias checks and scalar remainders that
cost more than the short rows (100 to 300 dimensions) they surround. These intrinsics emit vector
instructions directly; where a machine has narrower registers, LLVM splits them. Arrays are flat
float32; an offset counts floats.
"""

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic, models, register_model

LANES = 16
FLOATS = ir.VectorType(ir.FloatType(), LANES)
INT = ir.IntType(32)


class _Lanes(types.Type):
    def __init__(self) -> None:
        super().__init__(name="Lanes16f")


_lanes = _Lanes()


@register_model(_Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, frontend_type: Any) -> None:
        super().__init__(manager, frontend_type, FLOATS)


def _address(context: Any, builder: Any, array_type: Any, array: Any, offset: Any, to: Any) -> Any:
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [offset]), to.as_pointer())


def shuffle(builder: Any, low: Any, high: Any, lanes: list[int]) -> Any:
    """Emit a vector with these lanes of two concatenated vectors."""
    return builder.shuffle_vector(low, high, ir.Constant(ir.VectorType(INT, len(lanes)), lanes))


@intrinsic
def load(typing: Any, array: Any, offset: Any) -> Any:
    """Read the sixteen floats that start at `offset`."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        address = _address(context, builder, signature.args[0], args[0], args[1], FLOATS)
        return builder.load(address, align=4)

    return _lanes(array, types.intp), emit


@intrinsic
def store(typing: Any, array: Any, offset: Any, lanes: Any) -> Any:
    """Write sixteen floats at `offset`."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        address = _address(context, builder, signature.args[0], args[0], args[1], FLOATS)
        builder.store(args[2], address, align=4)
        return context.get_dummy_value()

    return types.void(array, types.intp, _lanes), emit


def repeat(builder: Any, number: Any) -> Any:
    """Emit a vector of sixteen equal floats."""
    undefined = ir.Constant(FLOATS, ir.Undefined)
    first = builder.insert_element(undefined, number, ir.Constant(INT, 0))
    return shuffle(builder, first, undefined, [0] * LANES)


@intrinsic
def spread(typing: Any, number: Any) -> Any:
    """Repeat one float in all sixteen lanes."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return repeat(builder, args[0])

    return _lanes(types.float32), emit


def call(builder: Any, name: str, args: Any) -> Any:
    """Emit the call of an LLVM vector function."""
    kind = ir.FunctionType(FLOATS, [FLOATS] * len(args))
    function = cgutils.get_or_insert_function(builder.module, kind, f"llvm.{name}.v16f32")
    return builder.call(function, args)


@intrinsic
def multiply_add(typing: Any, total: Any, left: Any, right: Any) -> Any:
    """total + left · right, rounded once."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return call(builder, "fma", [args[1], args[2], args[0]])

    return _lanes(_lanes, _lanes, _lanes), emit


@intrinsic
def square_root(typing: Any, lanes: Any) -> Any:
    """Square root of each lane."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return call(builder, "sqrt", args)

    return _lanes(_lanes), emit


def _lane_by_lane(operation: str, what: str) -> Callable[..., Any]:
    """Create the intrinsic for an LLVM instruction, or function, of two vectors."""

    @intrinsic
    def apply(typing: Any, left: Any, right: Any) -> Any:
        def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            instruction = getattr(builder, operation, None)
            return instruction(*args) if instruction else call(builder, operation, args)

        return _lanes(_lanes, _lanes), emit

    apply.__doc__ = what
    return apply


add = _lane_by_lane("fadd", "Sum lane by lane.")
subtract = _lane_by_lane("fsub", "Difference lane by lane.")
multiply = _lane_by_lane("fmul", "Product lane by lane.")
divide = _lane_by_lane("fdiv", "Quotient lane by lane.")
smaller = _lane_by_lane("minnum", "The smaller number of each lane; one NaN gives the other.")
larger = _lane_by_lane("maxnum", "The larger number of each lane; one NaN gives the other.")


@intrinsic
def total(typing: Any, lanes: Any) -> Any:
    """Sum of the sixteen lanes."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = ir.FunctionType(ir.FloatType(), [ir.FloatType(), FLOATS])
        name = "llvm.vector.reduce.fadd.v16f32"
        function = cgutils.get_or_insert_function(builder.module, kind, name)
        zero = ir.Constant(ir.FloatType(), -0.0)
        return builder.call(function, [zero, args[0]], fastmath=("reassoc",))

    return types.float32(_lanes), emit


@intrinsic
def prefetch(typing: Any, array: Any, offset: Any) -> Any:
    """Prefetch the cache line at `offset`, which will soon be read and written."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        byte = ir.IntType(8)
        address = _address(context, builder, signature.args[0], args[0], args[1], byte)
        kind = ir.FunctionType(ir.VoidType(), [byte.as_pointer(), INT, INT, INT])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        for_write, keep_near, is_data = (ir.Constant(INT, value) for value in (1, 3, 1))
        builder.call(function, [address, for_write, keep_near, is_data])
        return context.get_dummy_value()

    return types.void(array, types.intp), emit
