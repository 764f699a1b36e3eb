"""Random columns seeded by row: the same numbers however the rows are spread over blocks, threads or machines.

A counter-based generator (Philox) is keyed by the seed and the column, and its counter is the number of the row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    from graphmrf._typing import Floats, Ints

_BITS = 64
"""Columns of signs that share one 64-bit word a row."""


def random_columns(
    seed: int, n: int, k: int, kind: Literal["rademacher", "normal"] = "rademacher", *, first: int = 0
) -> Floats:
    """Return the rows ``first .. first + n - 1`` of `k` columns of random signs or of standard normal numbers.

    Parameters
    ----------
    seed : int
        Non-negative.
    n, k : int
        Rows and columns. Fewer columns are the first ones of more.
    kind : str
        "rademacher" for independent signs, "normal" for standard normal numbers.
    first : int
        Number of the first row.

    Examples
    --------
    >>> random_columns(0, 4, 2).tolist() == random_columns(0, 2, 2).tolist() + random_columns(0, 2, 2, first=2).tolist()
    True
    >>> bool(abs(random_columns(0, 100_000, 1, "normal").std() - 1.0) < 0.01)
    True
    """
    made = np.empty((n, k))
    if kind == "rademacher":
        for column in range(0, k, _BITS):
            words = _words(seed, column, first, n)
            for c in range(column, min(column + _BITS, k)):
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
