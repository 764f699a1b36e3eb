"""Attributes made ready for a fit: checked, centred and brought to unit scale."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from graphmrf.errors import InvalidInputError

if TYPE_CHECKING:
    from graphmrf._typing import Floats
    from graphmrf.model.likelihood import Statistics

_SINGULAR = 1e-10
"""Share of an attribute's variance below which it counts as a combination of the others."""


@dataclass(frozen=True)
class Standardised:
    """Attributes as ``B = (A - mean) / scale``, NaN where missing."""

    B: Floats
    mean: Floats
    scale: Floats
    is_centred: bool

    def with_ones(self) -> Floats:
        """Return `B` with a column of ones, whose statistics tell what another mean would change."""
        return np.column_stack([self.B, np.ones(len(self.B))])


def standardise(A: Floats, names: tuple[str, ...], *, centre: bool) -> Standardised:
    """Return attributes at unit scale, around their means (over what is observed) or around zero.

    Raises
    ------
    InvalidInputError
        If there are too few nodes, or a column is empty or constant.
    """
    n, q = A.shape
    if n < q + centre:
        raise InvalidInputError(
            f"a fit needs at least {q + centre} nodes for {q} attributes, got {n}; drop attributes or join graphs"
        )
    empty = [name for name, column in zip(names, A.T, strict=True) if np.isnan(column).all()]
    if empty:
        raise InvalidInputError(f"every attribute needs an observed value, got none for {', '.join(empty)}; drop it")
    mean = np.nanmean(A, axis=0) if centre else np.zeros(q)
    scale = np.sqrt(np.nanmean((A - mean) ** 2, axis=0))
    flat = scale <= 1e-12 * np.nanmax(np.abs(A), axis=0)
    if flat.any():
        which = ", ".join(np.array(names)[flat])
        what = "vary" if centre else "have a value other than 0"
        raise InvalidInputError(f"every attribute must {what}, got the same everywhere for {which}; drop it")
    return Standardised((A - mean) / scale, mean, scale, centre)


def check_independent(data: Statistics, names: tuple[str, ...]) -> None:
    """Raise InvalidInputError if some attributes are linear combinations of others, and say which."""
    values, vectors = np.linalg.eigh(data.M0 / data.n)
    if values[0] > _SINGULAR * len(names):
        return
    share = np.abs(vectors[:, 0])
    involved = [name for name, part in zip(names, share, strict=True) if part > 1e-3 * share.max()]
    raise InvalidInputError(
        f"attributes must not be linear combinations of each other, but {', '.join(involved)} are; drop one of them"
    )


def check_rough(data: Statistics, names: tuple[str, ...], *, coupled: bool) -> None:
    """Raise InvalidInputError if an attribute does not change along any edge: then no smoothness is the best."""
    flat = np.diag(data.M1) <= 1e-14 * np.diag(data.M0)
    if flat.any():
        raise InvalidInputError(
            f"every attribute must change along some edge, got none for {', '.join(np.array(names)[flat])} "
            "(measured as value over the square root of the degree): the likelihood has no maximum; drop the attribute"
        )
    if coupled and np.linalg.eigvalsh(data.M1 / np.sqrt(np.outer(np.diag(data.M1), np.diag(data.M1))))[0] < _SINGULAR:
        raise InvalidInputError(
            "no combination of attributes may be constant along all edges in a coupled fit: the likelihood has no "
            "maximum; use coupled=False or drop an attribute"
        )
