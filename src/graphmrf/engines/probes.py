"""Random columns seeded by row: the same numbers however the rows are spread over blocks, threads or machines.

A counter-based generator (Philox) is keyed by the seed and the column, and its counter is the number of the row.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Literal

import numpy as np
from scipy import sparse

if TYPE_CHECKING:
    from graphmrf._typing import Floats, Ints

WORD_BITS = np.iinfo(np.uint64).bits  # columns of Rademacher probes that share one word a row
EDGE_MIX = tuple(
    np.uint64(each)
    for each in (0x9E3779B97F4A7C15, 0xD1B54A32D192ED03, 30, 0xBF58476D1CE4E5B9, 27, 0x94D049BB133111EB, 31)
)
"""Odd multipliers of the two ends of an edge, then shifts and multipliers of the finaliser of SplitMix64, by which
words of neighbouring counters are independent."""


def random_columns(
    seed: int, n: int, k: int, kind: Literal["rademacher", "normal"] = "rademacher", *, first: int = 0
) -> Floats:
    """Return `n` rows, from row `first` on, of `k` columns of random signs or of standard normal numbers.

    Fewer columns are the first ones of more.
    """
    made = np.empty((n, k))
    if kind == "rademacher":
        for column in range(0, k, WORD_BITS):
            words = _words(seed, column, first, n)
            for c in range(column, min(column + WORD_BITS, k)):
                made[:, c] = (words >> np.uint64(c - column)) & np.uint64(1)
        made *= 2.0
        made -= 1.0
        return made
    for c in range(0, k, 2):  # Box and Muller: two uniform columns make two normal ones
        radius = np.sqrt(-2.0 * np.log(_uniform(_words(seed, c, first, n))))
        angle = 2.0 * np.pi * _uniform(_words(seed, c + 1, first, n))
        made[:, c] = radius * np.cos(angle)
        if c + 1 < k:
            made[:, c + 1] = radius * np.sin(angle)
    return made


def _uniform(words: Ints) -> Floats:
    """Return numbers in (0, 1) from the 53 high bits of words."""
    return np.asarray(((words >> np.uint64(11)) + 0.5) * 2.0**-53)


def _words(seed: int, column: int, first: int, n: int) -> Ints:
    """Return one 64-bit word for every row; the counter of the generator moves on after every fourth."""
    generator = np.random.Philox(key=np.array([seed, column], dtype=np.uint64))
    generator.advance(first // 4)
    words: Ints = generator.random_raw(first % 4 + n)[first % 4 :]
    return words


def edge_words(key: Ints, low: Ints, high: Ints) -> Ints:
    """Return one 64-bit word for every edge; it depends on the key and the edge's ends, the lower first, alone."""
    a, b, first, c, second, d, third = EDGE_MIX
    word = key + low.astype(np.uint64) * a + high.astype(np.uint64) * b
    word = (word ^ (word >> first)) * c
    word = (word ^ (word >> second)) * d
    return np.asarray(word ^ (word >> third))


def rademacher_from_bits(words: Ints, k: int) -> Floats:
    """Return `k` Rademacher variables in float32, lowest bit first, of every row of words (n,) or (n, k / 64)."""
    rows = np.ascontiguousarray(words[:, None] if words.ndim == 1 else words, dtype="<u8")
    signs = np.unpackbits(rows.view(np.uint8), axis=1, count=k, bitorder="little").astype(np.float32)
    signs *= 2.0
    signs -= 1.0
    return signs


def edge_sums(rows: tuple[Ints, Ints, Floats], first: int, key: Ints, k: int, *, compiled: bool) -> Floats:
    """Return sums of `k` <= 64 Rademacher variables over the edges of every row, in float32, shape (n_rows, k).

    `rows`: row pointers, columns and roots of weights (none: all 1); `first`: the node of the first row. A variable is
    times the root of its edge's weight, and has the opposite sign at the edge's higher end.
    `compiled`: by numba, on all cores; loading it takes longer than the work on a small graph.
    """
    indptr, indices, roots = rows
    n_rows = indptr.size - 1
    if compiled:
        sums, chunks = np.empty((n_rows, k), dtype=np.float32), np.linspace(0, n_rows, n_rows // 4096 + 2)
        import_module("graphmrf.engines.kernels").sum_edges(rows, first, key, sums, chunks.astype(np.int64))
        return sums
    u = np.repeat(np.arange(first, first + n_rows), np.diff(indptr))
    variables = rademacher_from_bits(edge_words(key, np.minimum(u, indices), np.maximum(u, indices)), k)
    data = np.where(indices > u, 1.0, -1.0) * (roots if roots.size else 1.0)
    matrix = sparse.csr_array((data.astype(np.float32), np.arange(u.size), indptr), shape=(n_rows, u.size))
    return np.asarray(matrix @ variables)
