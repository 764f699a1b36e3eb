"""The Lanczos recurrence on a block of columns: the one Krylov space behind every solve, spectrum and trace."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import eigh_tridiagonal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from graphmrf._typing import Floats
    from graphmrf.engines import Block, Engine


def lanczos(engine: Engine, start: Block, mask: Block) -> Iterator[tuple[Block, Floats, Floats, Floats]]:
    r"""Yield the steps of the Lanczos recurrence for :math:`M (I - N) M`, with `M` the 0/1 mask, column by column.

    .. math:: S v_j = b_{j-1} v_{j-1} + a_j v_j + b_j v_{j+1}

    Columns do not see each other. A column whose Krylov space is exhausted goes on with zero vectors.

    Parameters
    ----------
    engine : Engine
        What multiplies by :math:`I - N`.
    start : block
        First vectors, zero where the mask is; it is overwritten.
    mask : block
        Result of ``engine.mask``.

    Yields
    ------
    vector, scale, a, b
        The unit vectors :math:`v_j` are ``vector * scale``; the block `vector` is overwritten two steps later.
    """
    current, previous, spare = start, start, engine.like(start)
    b = np.sqrt(squares(engine, start))
    scale, back = inverse(b), np.zeros_like(b)
    while True:
        a = engine.advance(current, scale, previous, back, mask, spare)
        b = np.sqrt(engine.subtract(spare, a * scale, current))
        yield current, scale, a, b
        reusable = engine.like(start) if previous is current else previous
        previous, current, spare = current, spare, reusable
        scale, back = inverse(b), b * scale


def squares(engine: Engine, V: Block) -> Floats:
    """Return the sum of squares of every column of a block, which is left as it is."""
    return engine.subtract(V, np.zeros(V.shape[1]), V)


def inverse(values: Floats) -> Floats:
    """Return ``1 / values``, and 0 where a value is 0."""
    return np.divide(1.0, values, out=np.zeros_like(values), where=values > 0)


def jacobi_eigen(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Return eigenvalues and eigenvectors of a Jacobi matrix with diagonal `a` and off-diagonal `b`.

    The quick method of LAPACK fails on clusters of equal eigenvalues in some versions of OpenBLAS; the slow one cannot.

    Examples
    --------
    >>> jacobi_eigen(np.array([0.0, 0.0]), np.array([1.0]))[0].tolist()
    [-1.0, 1.0]
    """
    try:
        values, vectors = eigh_tridiagonal(a, b)
    except np.linalg.LinAlgError:
        values, vectors = eigh_tridiagonal(a, b, lapack_driver="stev")
    return values, vectors


def gauss(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Return nodes and weights of the Gauss rule of a Jacobi matrix with diagonal `a` and off-diagonal `b`.

    Examples
    --------
    >>> nodes, weights = gauss(np.array([0.0, 0.0]), np.array([1.0]))
    >>> nodes.round(6).tolist(), weights.round(6).tolist()
    ([-1.0, 1.0], [0.5, 0.5])
    """
    values, vectors = jacobi_eigen(a, b)
    return values, vectors[0] ** 2
