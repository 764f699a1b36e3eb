"""Triton kernels of the CUDA engine; each passes over its arrays once and leaves float64 sums by program.

Rows of a product come in an order of similar length, so that the rows a program takes together end together. A row of
very many edges is cut: its segments are summed first, and then it is a row whose edges are its segments.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

_EDGES = 4  # edges of a row that are fetched together
_TILE = 256  # values a program of one warp fetches at once: 8 a thread
_PASS = 2048  # values that a pass without edges takes at once, by four warps; memory bounds it
_COLUMNS = (
    64  # columns of one program; wider blocks are cut into tiles of this width, each of which reads the edges again
)
# Tiles of rows a program takes one after the other: it leaves one row of partial sums for all of them. Four times
# as many double the time of a graph with hubs, whose longest rows a single program then takes.
_GROUPS = 16


@triton.jit
def _sum_rows(  # type: ignore[no-untyped-def]  # noqa: PLR0913, PLR0917 - a kernel takes every array it touches
    G, indices, weights, first, last, places, c, n_rows,
    WIDTH: tl.constexpr, WEIGHTED: tl.constexpr, LISTED: tl.constexpr,
    ROWS: tl.constexpr, EDGES: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Return the sums (ROWS, COLUMNS) of the rows of G along the edges of some rows, and how many edges they have."""
    start = tl.load(first + places, mask=places < n_rows, other=0).to(tl.int64)
    stop = tl.load(last + places, mask=places < n_rows, other=0).to(tl.int64)
    sums = tl.zeros((ROWS, EDGES, COLUMNS), G.dtype.element_ty)
    for step in range(0, tl.max(stop - start), EDGES):
        e = start[:, None] + step + tl.arange(0, EDGES)[None, :]
        there = e < stop[:, None]
        j = tl.load(indices + e, mask=there, other=0).to(tl.int64) if LISTED else e
        inside = there[:, :, None] & (c < WIDTH)[None, None, :]
        values = tl.load(G + j[:, :, None] * WIDTH + c[None, None, :], mask=inside, other=0.0)
        if WEIGHTED:
            values *= tl.load(weights + e, mask=there, other=0.0)[:, :, None]
        sums += values
    return tl.sum(sums, axis=1), stop - start


@triton.jit
def _segments(  # type: ignore[no-untyped-def]  # noqa: PLR0913, PLR0917 - a kernel takes every array it touches
    G, indices, weights, first, last, out, n_rows,
    WIDTH: tl.constexpr, WEIGHTED: tl.constexpr, LISTED: tl.constexpr,
    ROWS: tl.constexpr, EDGES: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Set row r of `out` to the sum of the rows of G along the edges ``first[r] .. last[r] - 1``."""
    places = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    c = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    sums, _ = _sum_rows(
        G, indices, weights, first, last, places, c, n_rows, WIDTH, WEIGHTED, LISTED, ROWS, EDGES, COLUMNS
    )
    at = places.to(tl.int64)[:, None] * WIDTH + c[None, :]
    tl.store(out + at, sums, mask=(places < n_rows)[:, None] & (c < WIDTH)[None, :])


@triton.jit
def _advance(  # type: ignore[no-untyped-def]  # noqa: PLR0913, PLR0917 - a kernel takes every array it touches
    G, indices, weights, first, last, order, degrees, V, scale, previous, back, mask, out, dots, n_rows,
    WIDTH: tl.constexpr, WEIGHTED: tl.constexpr, LISTED: tl.constexpr, MASKED: tl.constexpr,
    ROWS: tl.constexpr, EDGES: tl.constexpr, COLUMNS: tl.constexpr, GROUPS: tl.constexpr,
):  # fmt: skip
    """Set ``out = mask * ((I - N) V scale - previous back)`` on some rows; leave the inner products with V scale.

    G is V, or the sums of the segments of these rows.
    """
    c = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    s = tl.load(scale + c, mask=c < WIDTH, other=0.0)
    b = tl.load(back + c, mask=c < WIDTH, other=0.0)
    total = tl.zeros((COLUMNS,), tl.float64)
    for group in range(GROUPS):
        places = (tl.program_id(0) * GROUPS + group) * ROWS + tl.arange(0, ROWS)
        real = places < n_rows
        sums, count = _sum_rows(
            G, indices, weights, first, last, places, c, n_rows, WIDTH, WEIGHTED, LISTED, ROWS, EDGES, COLUMNS
        )
        i = tl.load(order + places, mask=real, other=0).to(tl.int64)
        degree = tl.load(degrees + i, mask=real, other=1.0)
        at, inside = i[:, None] * WIDTH + c[None, :], real[:, None] & (c < WIDTH)[None, :]
        own = tl.load(V + at, mask=inside, other=0.0)
        around = sums * (1.0 / degree).to(sums.dtype)[:, None]
        around = tl.where((count == 0)[:, None], own, around)
        value = around * s[None, :] - tl.load(previous + at, mask=inside, other=0.0) * b[None, :]
        if MASKED:
            value = tl.where(tl.load(mask + at, mask=inside, other=0) != 0, value, 0.0)
        tl.store(out + at, value, mask=inside)
        product = own.to(tl.float64) * value.to(tl.float64) * degree[:, None]
        total += tl.sum(tl.where(inside, product, 0.0), axis=0)
    tl.store(dots + tl.program_id(0).to(tl.int64) * WIDTH + c, total * s.to(tl.float64), mask=c < WIDTH)


@triton.jit
def _subtract(  # type: ignore[no-untyped-def]  # noqa: PLR0913, PLR0917 - a kernel takes every array it touches
    out, coefficient, V, degrees, squares, n_rows,
    WIDTH: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, GROUPS: tl.constexpr,
):  # fmt: skip
    """Set ``out -= V coefficient``; leave the sums of squares of the result."""
    c = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    factor = tl.load(coefficient + c, mask=c < WIDTH, other=0.0)
    total = tl.zeros((COLUMNS,), tl.float64)
    for group in range(GROUPS):
        i = (tl.program_id(0) * GROUPS + group).to(tl.int64) * ROWS + tl.arange(0, ROWS)
        at, inside = i[:, None] * WIDTH + c[None, :], (i < n_rows)[:, None] & (c < WIDTH)[None, :]
        value = tl.load(out + at, mask=inside, other=0.0)
        value -= tl.load(V + at, mask=inside, other=0.0) * factor[None, :]
        tl.store(out + at, value, mask=inside)
        exact = value.to(tl.float64)
        total += tl.sum(exact * exact * tl.load(degrees + i, mask=i < n_rows, other=0.0)[:, None], axis=0)
    tl.store(squares + tl.program_id(0).to(tl.int64) * WIDTH + c, total, mask=c < WIDTH)


def segments(edges: tuple[Any, Any, Any, Any], V: Any) -> Any:
    """Return the sums of the rows of `V` along stretches of edges: (indices, weights, first, last)."""
    indices, weights, first, last = edges
    out = torch.empty((len(first), V.shape[1]), dtype=V.dtype, device=V.device)
    rows, columns = _tile(V.shape[1])
    flags = V.shape[1], weights is not None, True, rows, _EDGES, columns
    grid = triton.cdiv(len(first), rows), triton.cdiv(V.shape[1], columns)
    _segments[grid](V, indices, V if weights is None else weights, first, last, out, len(first), *flags, num_warps=1)
    return out


def advance_rows(edges: tuple[Any, Any, Any, Any], order: Any, G: Any, arrays: tuple[Any, ...]) -> Any:
    """Compute the rows `order` of a step of the recurrence; return the sums by program, (n_programs, width).

    `edges`: indices (None: an edge is its own place), weights or None, and where the edges of every row begin and end.
    `order` (n_rows,). `G`: what is summed along the edges. `arrays`: degrees, V, scale, previous, back, mask (one row:
    everything passes), out.
    """
    (indices, weights, first, last), (degrees, V, scale, previous, back, mask, out) = edges, arrays
    width, (rows, columns) = V.shape[1], _tile(V.shape[1])
    grid = triton.cdiv(len(order), rows * _GROUPS), triton.cdiv(width, columns)
    dots = torch.empty((grid[0], width), dtype=torch.float64, device=V.device)
    listed, weighted, masked = indices is not None, weights is not None, len(mask) != 1 or len(V) == 1
    _advance[grid](
        G, indices if listed else V, weights if weighted else V, first, last, order, degrees, V, scale, previous, back,
        mask, out, dots, len(order),
        width, weighted, listed, masked, rows, _EDGES, columns, _GROUPS, num_warps=1,
    )  # fmt: skip
    return dots


def subtract_block(out: Any, coefficient: Any, V: Any, degrees: Any) -> Any:
    """Compute ``out -= V coefficient``; return the sums of squares of the result by program."""
    width, columns = V.shape[1], _tile(V.shape[1])[1]
    rows = _PASS // columns
    grid = triton.cdiv(len(V), rows * _GROUPS), triton.cdiv(width, columns)
    squares = torch.empty((grid[0], width), dtype=torch.float64, device=V.device)
    _subtract[grid](out, coefficient, V, degrees, squares, len(V), width, rows, columns, _GROUPS)
    return squares


def _tile(width: int) -> tuple[int, int]:
    """Return the rows and columns a program of a product takes together, powers of two."""
    columns = min(triton.next_power_of_2(width), _COLUMNS)
    return max(_TILE // (_EDGES * columns), 1), columns
