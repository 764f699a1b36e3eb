"""Columns of a table as the attributes A of the generative model: numbers, missing cells kept missing."""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import pandas as pd

from graphmrf.datasets.files import listing
from graphmrf.datasets.tables import AttributedGraph
from graphmrf.errors import InvalidInputError


@dataclass(frozen=True, eq=False)
class Attributes:
    """Attributes of every node, NaN where missing, and a line for what was left out.

    Parameters
    ----------
    A : DataFrame of shape (n, q)
        All float64.
    notes : tuple of str
        One line for each kind of column left out.
    """

    A: pd.DataFrame
    notes: tuple[str, ...]


def attributes(table: AttributedGraph, *, named: Collection[str] = (), ignore: Collection[str] = ()) -> Attributes:
    """Return the columns named, or else all numeric columns that vary, but for the id and those to ignore.

    Raises
    ------
    InvalidInputError
        If a column does not exist or, being named, is not numeric; or if nothing is left.

    Examples
    --------
    >>> import pandas as pd
    >>> from graphmrf.graph import Graph
    >>> frame = pd.DataFrame({"id": ["a", "b"], "rent": [9.5, None], "name": ["x", "y"], "age": [30, 40]})
    >>> found = attributes(AttributedGraph(Graph.from_edges([0], [1]), frame, "id"), ignore=["rent"])
    >>> list(found.A.columns), found.notes
    (['age'], ("left out 'name': not numbers",))
    """
    for name in ignore:
        table.require(name)
    if named:
        wanted = [name for name in dict.fromkeys(named) if name not in set(ignore)]
        return Attributes(_frame(table, wanted), ())
    candidates = [name for name in table.frame.columns[1:] if name not in set(ignore)]
    numeric = [name for name in candidates if pd.api.types.is_numeric_dtype(table.frame[name])]
    varying = [name for name in numeric if table.frame[name].nunique() > 1]
    if not varying:
        raise InvalidInputError(f"{table.path or 'the table'} has no numeric column that varies; the model needs one")
    text, constant = set(candidates) - set(numeric), set(numeric) - set(varying)
    told = (("not numbers", text), ("one value only", constant))
    notes = tuple(f"left out {listing([c for c in candidates if c in group])}: {why}" for why, group in told if group)
    return Attributes(_frame(table, varying), notes)


def _frame(table: AttributedGraph, names: list[str]) -> pd.DataFrame:
    columns = {name: table.outcome(name) for name in names}
    return pd.DataFrame(columns, index=np.arange(table.graph.n_nodes))
