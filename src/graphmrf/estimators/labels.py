"""Classes of nodes: read from any labels, checked, and turned into outcomes 0 and 1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from graphmrf.errors import InvalidInputError

if TYPE_CHECKING:
    from graphmrf._typing import Bools, Floats, Ints


@dataclass(frozen=True)
class Labels:
    """The class of every node: `codes` (n,) are positions in `classes`, -1 where it is to be predicted."""

    codes: Ints
    classes: Any

    @property
    def known(self) -> Bools:
        """Where there is a label."""
        return self.codes >= 0

    def against_the_rest(self, code: int) -> Floats:
        """Return the outcome 1 in a class, 0 in any other, NaN where it is to be predicted."""
        return np.where(self.known, (self.codes == code).astype(np.float64), np.nan)


def read_labels(y: Any, n: int) -> Labels:
    """Return the classes of `n` nodes: numbers, text or booleans; NaN, None or an empty cell is to be predicted.

    Examples
    --------
    >>> labels = read_labels(["no", None, "yes"], 3)
    >>> labels.codes, labels.classes.tolist()
    (array([ 0, -1,  1]), ['no', 'yes'])
    """
    values = _values(y, n)
    known = np.flatnonzero(~pd.isna(values))
    if not known.size:
        raise InvalidInputError(f"y must have at least one known label, got none at all {n} nodes; label some nodes")
    try:
        classes = np.array(sorted(set(values[known].tolist())))
    except TypeError as error:
        kinds = sorted({type(value).__name__ for value in values[known].tolist()})
        raise InvalidInputError(
            f"y must hold labels of one kind, got {' and '.join(kinds)}; convert them, for example with str"
        ) from error
    codes = np.full(n, -1)
    codes[known] = np.searchsorted(classes, np.array(values[known].tolist()))
    return Labels(codes, classes)


def check_classes(labels: Labels, n_folds: int) -> None:
    """Raise unless there are at least two classes, each with a member for every fold."""
    classes, counts = labels.classes, np.bincount(labels.codes[labels.known])
    if classes.size < 2:
        raise InvalidInputError(
            f"y must have at least two classes, got only {_quoted(classes[0])}; label nodes of another class too"
        )
    rare = np.flatnonzero(counts < n_folds)
    if rare.size:
        found = ", ".join(f"{_quoted(classes[code])} with {counts[code]}" for code in rare[:5])
        more = f" and {rare.size - 5} more" if rare.size > 5 else ""
        raise InvalidInputError(
            f"every class must have a labelled node for each of the {n_folds} folds, got {found}{more}; "
            "label more of them, merge classes, or lower folds"
        )


def check_seen(truth: Labels, classes: Any) -> Ints:
    """Return the codes of labels among the classes of the fit, -1 where unknown; raise if some are not among them."""
    unseen = [value for value in truth.classes.tolist() if value not in classes.tolist()]
    if unseen:
        raise InvalidInputError(
            f"y must hold classes of the fit, {_listed(classes.tolist())}, got {_listed(unseen)}; "
            "fit with labels of those classes too, or put NaN there"
        )
    position = np.array([classes.tolist().index(value) for value in truth.classes.tolist()])
    return np.where(truth.known, position[truth.codes], -1)


def _values(y: Any, n: int) -> Any:
    if isinstance(y, np.ma.MaskedArray):
        hidden, y = np.ma.getmaskarray(y), np.ma.getdata(y).astype(object)
        y[hidden] = None
    values = np.asarray(y.astype(object) if isinstance(y, pd.Series) else y, dtype=object)
    if values.shape != (n,):
        raise InvalidInputError(
            f"y must have one label for each of the {n} nodes, got shape {values.shape}; put None where it is unknown"
        )
    return values


def _listed(values: list[Any]) -> str:
    shown = ", ".join(_quoted(value) for value in values[:5])
    return shown if len(values) <= 5 else f"{shown} and {len(values) - 5} more"


def _quoted(value: Any) -> str:
    return repr(value.item() if isinstance(value, np.generic) else value)
