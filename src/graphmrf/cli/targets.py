"""The columns to predict: those named, else the only one it can be; read and checked."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from pandas.api import types

from graphmrf._typing import Floats
from graphmrf.cli.classes import is_category, read_classes, share_of_numbers
from graphmrf.datasets import AttributedGraph
from graphmrf.errors import InvalidInputError
from graphmrf.estimators.inputs import Labels
from graphmrf.field import POSITIVE
from graphmrf.text import inner_percent

_SHOWN = 8


def only_target(table: AttributedGraph, ignore: Sequence[str]) -> str:
    """Return the only numeric column with empty cells; raise where there is none, or more than one to choose from.

    Examples
    --------
    >>> from graphmrf.graph import Graph
    >>> frame = pd.DataFrame({"id": ["a", "b"], "rent": [9.5, None], "rooms": [3, 4]})
    >>> only_target(AttributedGraph(Graph.from_edges([0], [1]), frame, "id"), ())
    'rent'
    """
    frame = table.frame.drop(columns=[table.id, *(name for name in ignore if name in table.frame)])
    empty = frame.loc[:, frame.isna().any() & frame.notna().any()]
    found = empty.loc[:, [_means_numbers(column) for _, column in empty.items()]]
    if found.shape[1] == 1:
        return str(found.columns[0])
    if found.shape[1] > 1:
        raise InvalidInputError(_which(table, found))
    for name, column in frame.items():
        if types.is_string_dtype(column) and _means_numbers(column):
            table.outcome(str(name))
    words = [name for name, column in empty.items() if is_category(column)]
    remedy = f"classify a column of text with --target {words[0]}" if words else "name their column with --target"
    raise InvalidInputError(
        f"nothing to predict: no numeric column of {table.path} has an empty cell; empty the cells to predict, "
        f"{'or' if words else 'and'} {remedy}"
    )


def _which(table: AttributedGraph, found: pd.DataFrame) -> str:
    """Ask which of several columns to predict, the emptiest first."""
    shares = found.isna().mean().sort_values(ascending=False, kind="stable")
    listed = [f"'{name}' ({inner_percent(share)} empty)" for name, share in shares.items()]
    more = f" and {len(listed) - _SHOWN} more" if len(listed) > _SHOWN else ""
    return (
        f"{table.path}: {len(listed)} numeric columns have empty cells, {', '.join(listed[:_SHOWN])}{more}; "
        f"name what to predict, such as --target {shares.index[0]} (repeatable): "
        "the others are features then, and their empty cells are filled"
    )


def _means_numbers(column: pd.Series) -> bool:
    """Return whether a column has numbers, or mostly numbers: a stray word in it is then an error, not a category."""
    if types.is_numeric_dtype(column) or not types.is_string_dtype(column):
        return types.is_numeric_dtype(column)
    return 0.5 < share_of_numbers(column) < 1


def read_target(table: AttributedGraph, name: str, *, transform: str, folds: int) -> Floats | Labels:
    """Return the numbers of a column, or the classes of one of words; or say what is wrong with them and where."""
    table.require(name, option="--target")
    if is_category(table.frame[name]):
        return read_classes(table, name, folds)
    return _numbers(table, name, transform)


def _numbers(table: AttributedGraph, name: str, transform: str) -> Floats:
    y = table.outcome(name)
    known = y[~np.isnan(y)]
    problem = ""
    if known.size == y.size:
        problem = "nothing to predict, every node has a value; leave the cells to predict empty"
    elif known.size == 0:
        problem = "no labelled node, every cell is empty; give the values that are known"
    elif known.size == 1:
        problem = "a single labelled node is not enough to learn from; give at least two values"
    elif np.ptp(known) == 0:
        problem = f"constant, all {known.size} known values are {known[0]:g}; there is nothing to learn"
    elif transform in POSITIVE and known.min() <= 0:
        problem = f"--transform {transform} needs positive values, got {known.min():g}; use --transform yeo-johnson"
    if problem:
        raise InvalidInputError(f"{table.path}, column {name}: {problem}")
    return y
