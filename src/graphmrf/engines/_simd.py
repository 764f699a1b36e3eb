"""Two steps of a product in LLVM vector form: add up the rows that a node's edges point at, then finish the row.

numba assumes that arrays may overlap, and vectorises only rows much longer than ours, so its own code for
these steps is scalar and two to four times slower. Everything else is left to numba.
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


def finish(width: int) -> Any:
    """Return the intrinsic that turns the sum over neighbours into a row of the result.

    ``finish_row(arrays, numbers, row, mask_row, chunk, column)``, with ``arrays = (out, V, previous, scale, back, mask,
    dots)`` and ``numbers = (inverse, loop, degree)``, sets, for the `width` columns from `column` on,
    ``out[row] = ((inverse out[row] + loop V[row]) scale - previous[row] back) mask[mask_row]`` and adds
    ``degree out[row] V[row]`` to ``dots[chunk]``.
    """

    @intrinsic
    def finish_row(_: Any, arrays: Any, numbers: Any, row: Any, mask_row: Any, chunk: Any, column: Any) -> Any:
        signature = types.void(arrays, numbers, row, mask_row, chunk, column)
        return signature, lambda *parts: _generate_finish(width, *parts)

    return finish_row


def _generate_finish(width: int, context: Any, builder: Any, signature: Any, args: Any) -> Any:
    kinds, (row, mask_row, chunk, column) = signature.args[0].types, args[2:]
    packed = cgutils.unpack_tuple(builder, args[0])
    arrays = [cgutils.create_struct_proxy(kind)(context, builder, one) for kind, one in zip(kinds, packed, strict=True)]
    out, V, previous, scale, back, mask, dots = (array.data for array in arrays)
    vector = ir.VectorType(context.get_value_type(kinds[0].dtype), width)
    double = ir.VectorType(ir.DoubleType(), width)
    place, first = (cgutils.unpack_tuple(builder, arrays[1].shape)[1], column), ir.Constant(_I64, 0)

    def load(data: Any, which: Any, kind: Any = vector) -> Any:
        return builder.load(_columns(builder, data, which, place, kind), align=_size(kind.element))

    inverse, loop, degree = cgutils.unpack_tuple(builder, args[1])
    own, flags = load(V, row), {"flags": ["contract"]}
    summed = builder.fmul(_splat(builder, inverse, vector), load(out, row), **flags)
    product = builder.fadd(summed, builder.fmul(_splat(builder, loop, vector), own, **flags), **flags)
    behind = builder.fmul(load(previous, row), load(back, first), **flags)
    value = builder.fsub(builder.fmul(product, load(scale, first), **flags), behind, **flags)
    let_through = builder.uitofp(load(mask, mask_row, ir.VectorType(ir.IntType(8), width)), vector)
    value = builder.fmul(value, let_through, **flags)
    builder.store(value, _columns(builder, out, row, place, vector), align=_size(vector.element))
    pair = [one if vector.element == double.element else builder.fpext(one, double) for one in (value, own)]
    weighted = builder.fmul(builder.fmul(*pair, **flags), _splat(builder, degree, double), **flags)
    total = builder.fadd(load(dots, chunk, double), weighted, **flags)
    builder.store(total, _columns(builder, dots, chunk, place, double), align=8)
    return context.get_dummy_value()


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
    _prefetch(builder, arrays, edge, place, vector)
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
    there = _columns(builder, arrays[4].data, _node(builder, arrays, edge), place, vector)
    values = builder.load(there, align=_size(vector.element))
    if 3 not in arrays:
        return values
    weight = builder.load(builder.gep(arrays[3].data, [edge]))
    return builder.fmul(_splat(builder, weight, vector), values, flags=["contract"])


def _node(builder: Any, arrays: Any, edge: Any) -> Any:
    """Load the number of the node an edge points at."""
    node = builder.load(builder.gep(arrays[0].data, [edge]))
    return builder.zext(node, _I64) if node.type.width < 64 else node


def _prefetch(  # noqa: PLR0913, PLR0917 - what `_generate` has
    builder: Any, arrays: Any, edge: Any, place: Any, vector: Any, ahead_by: int = 32, memory_line: int = 64
) -> None:
    """Ask for the columns of the node that the 32nd edge from here points at, of this row or a next one.

    With 16 columns these are 4 kB, an eighth of the first cache; on a graph of a million nodes products take half the
    time or less (`benchmarks/smoothing.py`). Memory sends lines of 64 bytes.
    """
    last = builder.sub(arrays[0].nitems, ir.Constant(_I64, 1))
    ahead = builder.add(edge, ir.Constant(_I64, ahead_by))
    ahead = builder.select(builder.icmp_signed("<", ahead, last), ahead, last)
    byte = ir.IntType(8).as_pointer()
    there = _columns(builder, arrays[4].data, _node(builder, arrays, ahead), place, vector)
    start = builder.bitcast(there, byte)
    kind = ir.FunctionType(ir.VoidType(), [byte, _I32, _I32, _I32])
    prefetch = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
    for line in range(0, vector.count * _size(vector.element), memory_line):
        where = builder.gep(start, [ir.Constant(_I64, line)])
        builder.call(prefetch, [where, ir.Constant(_I32, 0), ir.Constant(_I32, 3), ir.Constant(_I32, 1)])


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
    """Return the size in bytes of an LLVM type: rows are aligned to no more than that."""
    if isinstance(real, ir.IntType):
        return int(real.width) // 8
    return 8 if isinstance(real, ir.DoubleType) else 4
