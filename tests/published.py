"""Comparison of what a loader gives with a cleaned reference table, cell by cell."""

from pathlib import Path

import pandas as pd

from graphmrf.datasets import Dataset


def same_table(actual: pd.DataFrame, expected: pd.DataFrame) -> None:
    """Assert equality of columns and of every cell, without a tolerance; whole numbers may be floats."""
    assert list(actual.columns) == list(expected.columns)
    pd.testing.assert_frame_equal(actual, expected, check_dtype=False, check_exact=True)


def same_as_reference(data: Dataset, folder: Path, nodes: str) -> None:
    """Assert that nodes and edges are those of the cleaned files in a folder."""
    same_table(data.table.frame, pd.read_csv(folder / f"{nodes}.csv.gz", dtype={"fips": "str"}))
    same_table(data.edges, pd.read_csv(folder / "edges.csv.gz"))
    assert (data.graph.n_nodes, data.graph.n_edges) == (data.info.n_nodes, data.info.n_edges)
    assert data.graph.n_components == 1
    assert set(data.info.columns) <= set(data.frame.columns)
