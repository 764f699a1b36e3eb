"""Scores that scikit-learn lacks: coverage of intervals and the Gaussian log score."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphmrf.errors import InvalidInputError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from graphmrf._typing import Floats


def coverage(y: ArrayLike, lower: ArrayLike, upper: ArrayLike) -> float:
    """Fraction of outcomes inside their interval, ends included.

    Parameters
    ----------
    y : array of shape (n,)
        True outcomes, finite.
    lower, upper : arrays of shape (n,)
        Ends of the intervals, ``lower <= upper``.

    Raises
    ------
    InvalidInputError
        If there is nothing to evaluate, lengths differ, a value is not finite, or an interval is turned around.

    Examples
    --------
    >>> coverage([1.0, 2.0], [0.0, 0.0], [1.5, 1.5])
    0.5
    """
    truth, low, high = _columns(y=y, lower=lower, upper=upper)
    turned = np.flatnonzero(low > high)
    if turned.size:
        raise InvalidInputError(
            f"lower must not exceed upper, got {turned.size} turned intervals; the first is {turned[0]}"
        )
    return float(np.mean((low <= truth) & (truth <= high)))


def log_score(y: ArrayLike, mean: ArrayLike, std: ArrayLike) -> float:
    r"""Mean Gaussian log density :math:`\overline{\log N(y_i; \mu_i, \sigma_i^2)}` of the outcomes; larger is better.

    Parameters
    ----------
    y : array of shape (n,)
        True outcomes, finite.
    mean, std : arrays of shape (n,)
        Predicted means and standard deviations, ``std > 0``.

    Raises
    ------
    InvalidInputError
        If there is nothing to evaluate, lengths differ, a value is not finite, or a std is not positive.

    Examples
    --------
    >>> round(log_score([0.0], [0.0], [1.0]), 4)
    -0.9189
    """
    truth, centre, spread = _columns(y=y, mean=mean, std=std)
    flat = np.flatnonzero(spread <= 0)
    if flat.size:
        raise InvalidInputError(
            f"std must be positive, got {spread[flat[0]]} at position {flat[0]}; leave observed nodes out"
        )
    standardised = (truth - centre) / spread
    return float(np.mean(-0.5 * standardised**2 - np.log(spread) - 0.5 * np.log(2.0 * np.pi)))


def _columns(**values: ArrayLike) -> list[Floats]:
    columns = {name: np.asarray(value, dtype=np.float64) for name, value in values.items()}
    shapes = {column.shape for column in columns.values()}
    found = ", ".join(f"{name} {column.shape}" for name, column in columns.items())
    if len(shapes) > 1 or len(next(iter(shapes))) != 1:
        raise InvalidInputError(f"arrays must be one-dimensional and of one length, got {found}")
    if (0,) in shapes:
        raise InvalidInputError("there must be at least one node to evaluate, got none")
    for name, column in columns.items():
        bad = np.flatnonzero(~np.isfinite(column))
        if bad.size:
            raise InvalidInputError(
                f"{name} must be finite, got {column[bad[0]]} at position {bad[0]}; evaluate on nodes that have a value"
            )
    return list(columns.values())
