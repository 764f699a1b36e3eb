"""Columns of a table as the feature matrix X, with a line for whatever was done to them."""

from collections.abc import Callable, Collection
from dataclasses import dataclass

import numpy as np
import pandas as pd
from pandas.api import types

from graphmrf.datasets.files import listing
from graphmrf.datasets.tables import AttributedGraph
from graphmrf.errors import InvalidInputError
from graphmrf.text import did_you_mean

MAX_LEVELS = 50
RARE = 10
FILLED = "filled missing cells with the column mean"


@dataclass(frozen=True, eq=False)
class Features:
    """A feature matrix, without missing cells, and what was done to the columns it came from.

    Parameters
    ----------
    X : DataFrame of shape (n, p)
        All float64; `p` may be 0.
    notes : tuple of str
        One line for each kind of change.
    unfilled : DataFrame of shape (n, p)
        The same, NaN where a number was missing.
    """

    X: pd.DataFrame
    notes: tuple[str, ...]
    unfilled: pd.DataFrame


@dataclass(frozen=True, eq=False)
class _Prepared:
    """What one column gave: columns of X, and the group and text under which that is told."""

    columns: dict[str, pd.Series]
    fate: str = ""
    told: str = ""


def features(table: AttributedGraph, *, targets: Collection[str] = (), ignore: Collection[str] = ()) -> Features:
    """Return the features of every node: all columns but the id, the targets and those to ignore.

    Numbers stay, with missing cells filled by the mean of the column; true/false becomes 0/1; a text column becomes
    one 0/1 column per level but the first (``region=north``), missing being a level of its own and levels of fewer
    than 10 nodes (2 % of the nodes in small tables) pooled as `other`. Dropped are columns
    with a single value, columns that are neither numbers nor text, and text columns with more than 50 levels or fewer
    than two nodes per level, which name nodes rather than describe them. With several targets, none is a feature of
    another.

    Parameters
    ----------
    table : AttributedGraph
        Where the columns are.
    targets, ignore : collection of str
        Columns left out.

    Raises
    ------
    InvalidInputError
        A column to leave out that is not there, an infinite cell, or a word in a column of numbers.

    Examples
    --------
    >>> import pandas as pd
    >>> from graphmrf.graph import Graph
    >>> frame = pd.DataFrame({"id": [1, 2, 3, 4], "age": [30, None, 50, 40], "side": ["n", "s", "n", "s"]})
    >>> made = features(AttributedGraph(Graph.from_edges([0, 1, 2], [1, 2, 3]), frame, "id"))
    >>> made.X.to_dict("list")
    {'age': [30.0, 40.0, 50.0, 40.0], 'side=s': [0.0, 1.0, 0.0, 1.0]}
    >>> print(*made.notes, sep="; ")
    filled missing cells with the column mean: 'age' (1 cell); one-hot encoded: 'side' (2 levels)
    """
    _check_present(table, ignore)
    left_out = {table.id, *targets, *ignore}
    prepared = [_prepare(table, name) for name in table.frame.columns if name not in left_out]
    columns = {name: values for each in prepared for name, values in each.columns.items()}
    if len(columns) < sum(len(each.columns) for each in prepared):
        raise InvalidInputError("two features would have the same name after one-hot encoding; rename a column")
    unfilled = pd.DataFrame(columns, index=table.frame.index, dtype=np.float64)
    return Features(unfilled.fillna(unfilled.mean()), _told(prepared), unfilled)


def _check_present(table: AttributedGraph, ignore: Collection[str]) -> None:
    unknown = [name for name in ignore if name not in table.frame.columns]
    if unknown:
        near, known = did_you_mean(unknown[0], table.frame.columns), listing(table.frame.columns)
        raise InvalidInputError(
            f"no column {listing(unknown)} to ignore in {table.path or 'the table'}; {near}it has {known}"
        )


def _told(prepared: list[_Prepared]) -> tuple[str, ...]:
    fates = dict.fromkeys(each.fate for each in prepared if each.fate)
    return tuple(f"{fate}: {', '.join(each.told for each in prepared if each.fate == fate)}" for fate in fates)


def _prepare(table: AttributedGraph, name: str) -> _Prepared:
    series = table.frame[name]
    prepare = _preparation(series)
    if prepare is not _neither and series.nunique(dropna=False) <= 1:
        return _Prepared({}, "dropped columns with a single value", f"'{name}'")
    return prepare(table, name)


def _preparation(series: pd.Series) -> Callable[[AttributedGraph, str], _Prepared]:
    if types.is_bool_dtype(series) or types.is_numeric_dtype(series):
        return _numbers
    return _levels if types.is_string_dtype(series) or isinstance(series.dtype, pd.CategoricalDtype) else _neither


def _numbers(table: AttributedGraph, name: str) -> _Prepared:
    values = pd.Series(table.outcome(name), index=table.frame.index)
    missing = int(values.isna().sum())
    if not missing:
        return _Prepared({name: values})
    if values.nunique() == 1:
        return _Prepared({}, "dropped columns with a single value", f"'{name}'")
    cells = f"{missing} cell{'s' * (missing > 1)}"
    return _Prepared({name: values}, FILLED, f"'{name}' ({cells})")


def _levels(table: AttributedGraph, name: str) -> _Prepared:
    text = table.frame[name].astype(object).fillna("missing").astype(str)
    n_values = text.nunique()
    if n_values > min(MAX_LEVELS, len(text) / 2):
        _check_words(table, name)
        return _Prepared({}, "dropped text columns with too many different values", f"'{name}' ({n_values} values)")
    text = _pooled(text)
    levels = sorted(text.unique())
    columns = {f"{name}={level}": (text == level).astype(np.float64) for level in levels[1:]}
    return _Prepared(columns, "one-hot encoded", f"'{name}' ({len(levels)} levels)")


def _check_words(table: AttributedGraph, name: str) -> None:
    """Raise where most cells of a column of text are numbers: a stray word must not cost the whole column.

    Digits after a leading zero are a code (01004, 2A004), of which nobody expects numbers.
    """
    text = table.frame[name].dropna().astype(str)
    if pd.to_numeric(text, errors="coerce").notna().mean() <= 0.5 or text.str.match(r"0\d").any():
        return
    try:
        table.outcome(name)
    except InvalidInputError as error:
        raise InvalidInputError(f"{error}, or leave the column out with --ignore {name}") from error


def _pooled(text: pd.Series) -> pd.Series:
    """Return the levels, those of few nodes as one level `other`: convolution blows up what is fitted to so few."""
    size = text.map(text.value_counts())
    rare = size < min(RARE, len(text) // 50)
    return text.mask(rare, "other")


def _neither(table: AttributedGraph, name: str) -> _Prepared:
    return _Prepared({}, "dropped columns that are neither numbers nor text", f"'{name}' ({table.frame[name].dtype})")
