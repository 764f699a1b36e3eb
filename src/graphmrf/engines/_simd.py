"""One loop in LLVM vector form: add up the rows of a block that a node's edges point at.

numba cannot be told that the arrays of this loop do not overlap, so its own code for it is scalar and
two to four times slower. Everything else is left to numba.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils as untyped_cgutils
from numba.extending import intrinsic

cgutils: Any = untyped_cgutils
_I32 = ir.IntType(32)
_I64 = ir.IntType(64)


def gather(width: int) -> Any:
    """Return the intrinsic for blocks of `width` columns.

    ``add_rows(indices, start, stop, weights, V, column, out, row)`` sets, for the `width` columns from `column` on,
    ``out[row] = sum(weights[e] * V[indices[e]] for e in range(start, stop))``; `weights` may be None.
    """

    @intrinsic
    def add_rows(  # noqa: PLR0913, PLR0917 - numba reads the signature
        _: Any, indices: Any, start: Any, stop: Any, weights: Any, V: Any, column: Any, out: Any, row: Any
    ) -> Any:
        signature = types.void(indices, start, stop, weights, V, column, out, row)
        return signature, lambda *parts: _generate(width, *parts)

    return add_rows


def _generate(width: int, context: Any, builder: Any, signature: Any, args: Any) -> Any:
    which = [k for k in (0, 3, 4, 6) if not isinstance(signature.args[k], types.NoneType)]
    arrays = {k: cgutils.create_struct_proxy(signature.args[k])(context, builder, args[k]) for k in which}
    vector = ir.VectorType(context.get_value_type(signature.args[4].dtype), width)
    place = cgutils.unpack_tuple(builder, arrays[4].shape)[1], args[5]
    start, stop, row = args[1], args[2], args[7]
    entry, loop, end = builder.block, builder.append_basic_block("edge"), builder.append_basic_block("done")
    zero = ir.Constant(vector, [0.0] * width)
    builder.cbranch(builder.icmp_signed("<", start, stop), loop, end)

    builder.position_at_end(loop)
    edge, total = builder.phi(_I64), builder.phi(vector)
    new_total = builder.fadd(_neighbour(builder, arrays, edge, place, vector), total, flags=["contract"])
    next_edge = builder.add(edge, ir.Constant(_I64, 1))
    for phi, first, later in ((edge, start, next_edge), (total, zero, new_total)):
        phi.add_incoming(first, entry)
        phi.add_incoming(later, loop)
    builder.cbranch(builder.icmp_signed("<", next_edge, stop), loop, end)

    builder.position_at_end(end)
    result = builder.phi(vector)
    result.add_incoming(zero, entry)
    result.add_incoming(new_total, loop)
    builder.store(result, _columns(builder, arrays[6].data, row, place, vector), align=_size(vector.element))
    return context.get_dummy_value()


def _neighbour(builder: Any, arrays: Any, edge: Any, place: Any, vector: Any) -> Any:
    """Load the columns of the node an edge points at, times the weight of the edge where there are weights."""
    node = builder.load(builder.gep(arrays[0].data, [edge]))
    if node.type.width < 64:
        node = builder.zext(node, _I64)
    values = builder.load(_columns(builder, arrays[4].data, node, place, vector), align=_size(vector.element))
    if 3 not in arrays:
        return values
    weight = builder.load(builder.gep(arrays[3].data, [edge]))
    return builder.fmul(_splat(builder, weight, vector), values, flags=["contract"])


def _columns(builder: Any, data: Any, row: Any, place: Any, vector: Any) -> Any:
    """Point at the columns of a row; `place` is the length of rows and the first of the columns."""
    stride, column = place
    return builder.bitcast(builder.gep(data, [builder.add(builder.mul(row, stride), column)]), vector.as_pointer())


def _splat(builder: Any, scalar: Any, vector: Any) -> Any:
    undefined = ir.Constant(vector, ir.Undefined)
    first = builder.insert_element(undefined, scalar, ir.Constant(_I32, 0))
    lanes = ir.Constant(ir.VectorType(_I32, vector.count), [0] * vector.count)
    return builder.shuffle_vector(first, undefined, lanes)


def _size(real: Any) -> int:
    """Return the size in bytes of an LLVM floating-point type: rows are aligned to no more than that."""
    return 8 if isinstance(real, ir.DoubleType) else 4
