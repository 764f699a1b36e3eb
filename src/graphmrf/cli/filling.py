"""What graphmrf fill computes: the columns that can be filled, the filled table, and what it prints."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from graphmrf import datasets
from graphmrf.cli import terminal
from graphmrf.cli.inputs import is_category
from graphmrf.datasets import AttributedGraph
from graphmrf.datasets.table_files import listing
from graphmrf.errors import InvalidInputError
from graphmrf.estimators import GraphImputer
from graphmrf.estimators.graph_imputer import JOINT_METHODS


def columns_to_fill(table: AttributedGraph, ignore: Sequence[str]) -> tuple[pd.DataFrame, list[str]]:
    """Return the columns that have missing cells or help to fill them, in node order, and notes about others.

    Raises InvalidInputError if none of them has a missing cell.
    """
    names = datasets.features(table, ignore=ignore).names
    columns = {name: _cells(table, name) for name in names}
    frame = pd.DataFrame(columns, index=table.frame.index)
    if not frame.isna().any().any():
        raise InvalidInputError(
            f"{table.path}: nothing to fill, {listing(names) or 'no column'} "
            f"{'has' if len(names) < 2 else 'have'} a value in every row; leave the cells to fill empty"
        )
    left = [name for name in table.frame.columns if name not in (*names, *table.keys)]
    notes = [f"left as they are: {listing(left)}"] if left else []
    return frame.set_axis(pd.Index(range(len(frame))) if table.graph.ids is None else table.graph.ids), notes


def _cells(table: AttributedGraph, name: str) -> Any:
    cells = table.frame[name]
    if is_category(cells):
        return cells.astype(object).where(cells.notna(), None).to_numpy()
    return table.outcome(name)


def filled_by(frame: pd.DataFrame, table: AttributedGraph, method: str, folds: int, seed: int) -> GraphImputer:
    """Return the imputer fitted to columns of a table."""
    if method not in JOINT_METHODS:
        raise InvalidInputError(f"--method must be one of {', '.join(JOINT_METHODS)}, got '{method}'")
    return GraphImputer(table.graph, method=method, cv=folds, random_state=seed).fit(frame)


def filled_table(table: AttributedGraph, imputer: GraphImputer) -> pd.DataFrame:
    """Return all columns of the table, filled, and how sure the filled ones are.

    Raises InvalidInputError if a column of the table has the name of one of these.
    """
    made = table.frame.copy()
    for name in imputer.methods_:
        classes = bool(imputer.probability_[name].notna().any())
        added = f"{name}_{'probability' if classes else 'std'}"
        if added in table.frame.columns:
            raise InvalidInputError(f"{table.path} has a column '{added}', the name of a result; rename it")
        made[name] = imputer.filled_[name].to_numpy()
        made[added] = (imputer.probability_ if classes else imputer.std_)[name].to_numpy()
    return made


def show_filled(frame: pd.DataFrame, imputer: GraphImputer) -> None:
    """Print one row for each filled column: how many cells, by what, and its R2 on hidden cells."""
    rows = []
    for name, method in imputer.methods_.items():
        score = imputer.scores_.loc[name].max() if name in imputer.scores_.index else np.nan
        rows.append([str(name), str(int(frame[name].isna().sum())), method, "" if np.isnan(score) else f"{score:.3f}"])
    terminal.print_table(["column", "cells", "filled by", "R² on hidden cells"], rows)
