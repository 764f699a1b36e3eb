"""The smoothing level, given as alpha or as omega or chosen by cross-validation; and the strength of shrinkage."""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from graphmrf.errors import InvalidInputError
from graphmrf.selection import SHRINKAGE

if TYPE_CHECKING:
    from collections.abc import Callable

    from graphmrf._typing import Floats
    from graphmrf.selection import AlphaSearch

Level: TypeAlias = float | Literal["cv"]


def given_level(alpha: Level, omega: float | None) -> float | None:
    r"""Return the level alpha that the user gave, or None when it is to be chosen by cross-validation.

    The two scales are :math:`\alpha = \omega / (1 + \omega)` in [0, 1) and :math:`\omega = \alpha / (1 - \alpha) \ge
    0`.
    """
    if isinstance(alpha, str):
        if alpha != "cv":
            raise InvalidInputError(f"alpha must be 'cv' or a number in [0, 1), got {alpha!r}")
        return None if omega is None else _from_omega(omega)
    if omega is not None:
        raise InvalidInputError(
            f"give alpha or omega, got alpha={alpha!r} and omega={omega!r}; leave alpha at 'cv' to use omega"
        )
    if not _is_number(alpha) or not 0 <= alpha < 1:
        raise InvalidInputError(f"alpha must be 'cv' or a number in [0, 1), got {alpha!r}")
    return float(alpha)


def settle(level: float | None, search: Callable[[], AlphaSearch]) -> tuple[float, dict[str, Floats] | None]:
    """Return the level and the table of the search, which is run only if no level was given."""
    if level is not None:
        return level, None
    found = search()
    return found.alpha, found.table()


def given_shrinkage(shrinkage: float | None, level: float | None) -> float:
    """Return the strength of the prior on coefficients: as given, or by whether the level is searched."""
    if shrinkage is None:
        return SHRINKAGE if level is None else 0.0
    if not _is_number(shrinkage) or not np.isfinite(shrinkage) or shrinkage < 0:
        raise InvalidInputError(f"shrinkage must be None or a number >= 0, got {shrinkage!r}; 0 is least squares")
    return float(shrinkage)


def as_omega(alpha: float) -> float:
    """Return omega = alpha / (1 - alpha)."""
    return alpha / (1.0 - alpha)


def _from_omega(omega: float) -> float:
    if not _is_number(omega) or not np.isfinite(omega) or omega < 0 or omega / (1.0 + omega) >= 1.0:
        raise InvalidInputError(f"omega must be a number >= 0 with omega / (1 + omega) below 1, got {omega!r}")
    return float(omega / (1.0 + omega))


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)
