"""Attributes as users pass them, checked once; attributes standardised for a fit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from graphmrf.errors import InvalidInputError
from graphmrf.graph.checks import check_magnitude

if TYPE_CHECKING:
    from collections.abc import Sequence

    from graphmrf._typing import Floats
    from graphmrf.model.likelihood import Statistics


def as_attributes(A: Any, n_nodes: int, names: Sequence[str] | None = None) -> tuple[Floats, tuple[str, ...]]:
    """Return attributes as a float64 array of shape (n, q) and their names.

    `A` (n, q) or (n,), or DataFrame: one row per node; NaN is missing. `n_nodes`: number of nodes of the graph.
    `names`: names of the columns; by default those of the table, or ``a0, a1, ...``.
    """
    if names is None and isinstance(A, pd.DataFrame | pd.Series):
        names = [str(c) for c in A.columns] if isinstance(A, pd.DataFrame) else [str(A.name or "a0")]
    array = _numbers(A)
    if array.shape[0] != n_nodes:
        raise InvalidInputError(
            f"attributes must have one row per node, got {array.shape[0]} rows for {n_nodes} nodes; "
            "give a row of NaN to nodes without values"
        )
    chosen = check_names(names, array.shape[1])
    check_magnitude(array, "attributes", chosen)
    return array, chosen


def aligned(A: Any, n_nodes: int, names: tuple[str, ...]) -> Floats:
    """Return attributes as an array with the columns of a model: a table is matched by name, an array by position."""
    if isinstance(A, pd.DataFrame):
        absent = [name for name in names if name not in A.columns]
        if absent:
            raise InvalidInputError(
                f"the model has attributes {', '.join(names)}; the table lacks {', '.join(absent)}; "
                "add the columns (all NaN if unknown) or pass an array in the model's order"
            )
        A = A[list(names)]
    array, _ = as_attributes(A, n_nodes)
    if array.shape[1] != len(names):
        raise InvalidInputError(
            f"the model has {len(names)} attributes ({', '.join(names)}), got {array.shape[1]} columns; "
            "pass one column per attribute, NaN where unknown"
        )
    return array


def check_names(names: Sequence[str] | None, q: int) -> tuple[str, ...]:
    """Return `q` distinct names, ``a0, a1, ...`` when there are none."""
    if names is None:
        return tuple(f"a{j}" for j in range(q))
    chosen = tuple(str(name) for name in names)
    if len(chosen) != q:
        raise InvalidInputError(f"names must have one entry per attribute, got {len(chosen)} names for {q} attributes")
    twice = sorted({name for name in chosen if chosen.count(name) > 1})
    if twice:
        raise InvalidInputError(f"names must differ from each other, got {', '.join(twice)} more than once; rename one")
    return chosen


def index_of(target: int | str, names: tuple[str, ...]) -> int:
    """Return the position of a target given by name or by (possibly negative) position."""
    if isinstance(target, str):
        if target not in names:
            raise InvalidInputError(f"target must be one of {', '.join(names)}, got {target!r}")
        return names.index(target)
    q = len(names)
    if not -q <= target < q:
        raise InvalidInputError(f"target must be a name or a position from {-q} to {q - 1}, got {target}")
    return int(target) % q


def standardise(A: Floats, names: tuple[str, ...], *, centre: bool) -> tuple[Floats, Floats, Floats]:
    """Return ``B = (A - mean) / scale``, the mean (over observed entries, or 0) and the scale of every attribute.

    Raises InvalidInputError if there are too few nodes, or a column is empty or constant.
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
    largest = np.nanmax(np.abs(A), axis=0)
    spread = np.nanmax(A, axis=0) - np.nanmin(A, axis=0) if centre else largest
    flat = spread <= 16 * np.spacing(largest)  # constant up to rounding
    if flat.any():
        which = ", ".join(np.array(names)[flat])
        what = "vary" if centre else "have a value other than 0"
        raise InvalidInputError(f"every attribute must {what}, got the same everywhere for {which}; drop it")
    return (A - mean) / scale, mean, scale


def check_independent(data: Statistics, names: tuple[str, ...], *, collinear: float = 1e-10) -> None:
    """Raise InvalidInputError if some attributes are linear combinations of others, and name them.

    `collinear` is the share of an attribute's variance that the others must leave: A'A squares the condition of A, so
    that 10 of 16 digits are certain.
    """
    values, vectors = np.linalg.eigh(data.M0 / data.n)
    if values[0] > collinear * len(names):
        return
    share = np.abs(vectors[:, 0])
    involved = [name for name, part in zip(names, share, strict=True) if part > 1e-3 * share.max()]
    raise InvalidInputError(
        f"attributes must not be linear combinations of each other, but {', '.join(involved)} are; drop one of them"
    )


def check_rough(
    data: Statistics, names: tuple[str, ...], *, coupled: bool, flat: float = 1e-14, collinear: float = 1e-10
) -> None:
    """Raise InvalidInputError if an attribute does not change along any edge: then no smoothness is the best.

    Roughness over variance up to `flat`, some hundred roundings of a sum of squares, counts as 0.
    """
    constant = np.diag(data.M1) <= flat * np.diag(data.M0)
    if constant.any():
        raise InvalidInputError(
            f"every attribute must change along some edge, got none for {', '.join(np.array(names)[constant])} "
            "(measured as value over the square root of the degree): the likelihood has no maximum; drop the attribute"
        )
    if coupled and np.linalg.eigvalsh(data.M1 / np.sqrt(np.outer(np.diag(data.M1), np.diag(data.M1))))[0] < collinear:
        raise InvalidInputError(
            "no combination of attributes may be constant along all edges in a coupled fit: the likelihood has no "
            "maximum; use coupled=False or drop an attribute"
        )


def _numbers(A: Any) -> Floats:
    try:
        array = np.array(A, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            f"attributes must be numbers, NaN where missing ({error}); encode texts first"
        ) from None
    array = array[:, None] if array.ndim == 1 else array
    if array.ndim != 2 or array.shape[1] == 0:
        raise InvalidInputError(f"attributes must be a matrix (n, q) with q >= 1, got shape {array.shape}")
    infinite = np.argwhere(np.isinf(array))
    if len(infinite):
        node, column = infinite[0]
        raise InvalidInputError(
            f"attributes must be finite or NaN, got {array[node, column]} at node {node}, column {column}; "
            "use NaN for unknown values"
        )
    return array
