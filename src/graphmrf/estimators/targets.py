"""Several outcomes in one fit: a copy of the estimator for each, and their answers side by side."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
import pandas as pd

from graphmrf.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_Method = TypeVar("_Method", bound="Callable[..., Any]")


def targets_of(y: Any) -> dict[Any, Any]:
    """Return the columns of outcomes (n, q) by name, or by number in an array; none of a single outcome."""
    if not isinstance(y, pd.DataFrame | np.ndarray) or np.ndim(y) != 2 or np.shape(y)[1] < 2:
        return {}
    if not isinstance(y, pd.DataFrame):
        return {k: y[:, k] for k in range(y.shape[1])}
    if not y.columns.is_unique:
        repeated = y.columns[y.columns.duplicated()][0]
        raise InvalidInputError(f"targets must have different names, got {repeated!r} twice; rename a column")
    return dict(y.items())


def side_by_side(answers: Mapping[Any, Any]) -> Any:
    """Return answers (n,) about several targets as columns, texts one below the other, and others as a list.

    Examples
    --------
    >>> side_by_side({"rent": np.array([1.0, 2.0]), "area": np.array([3.0, 4.0])}).tolist()
    [[1.0, 3.0], [2.0, 4.0]]
    """
    first, *_ = found = list(answers.values())
    if isinstance(first, tuple):
        return tuple(side_by_side(dict(zip(answers, each, strict=True))) for each in zip(*found, strict=True))
    if isinstance(first, pd.Series | pd.DataFrame):
        return pd.concat(found, axis=1, keys=list(answers))
    if isinstance(first, str):
        return type(first)("\n\n".join(f"{name}\n{text}" for name, text in answers.items()))
    return np.column_stack(found) if np.ndim(first) == 1 else found


def of_every_target(method: _Method) -> _Method:
    """Decorate a method: after a fit to several targets it returns the answers of all of them."""

    @wraps(method)
    def wrapped(self: Any, *args: Any, **options: Any) -> Any:
        fits = vars(self).get("targets_")
        if fits is None:
            return method(self, *args, **options)
        return side_by_side({name: wrapped(each, *args, **options) for name, each in fits.items()})

    return cast("_Method", wrapped)
