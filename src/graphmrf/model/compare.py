"""Which of several graphs explains the same attributes best."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from graphmrf.model.mrf import GaussianMRF

if TYPE_CHECKING:
    from collections.abc import Mapping

    from graphmrf.graph import Graph


def compare_graphs(graphs: Mapping[str, Graph], A: Any, *, coupled: bool = False) -> pd.DataFrame:
    """Return one row per graph, best first: the likelihood of the attributes when the field is fitted on it.

    Fits with edges have the same number of parameters, so the difference of two log-likelihoods is evidence for one
    graph over the other; a few units are chance, and `error` says what the estimated spectrum of a large graph adds.

    Parameters
    ----------
    graphs : mapping of names to graphs
        Candidates over the same nodes; a graph without edges among them shows what edges are worth at all.
    A : array of shape (n, q) or DataFrame
        The attributes of the nodes; NaN is missing.
    coupled : bool
        Compare coupled fields.

    Returns
    -------
    DataFrame
        Columns `log_likelihood`, `error`, `aic`, `bic` and `behind`, the log-likelihood less that of the best graph.

    Examples
    --------
    >>> from graphmrf.graph import Graph
    >>> A = [3.0, 4.0, 4.5, 3.5, 2.0, 1.0, 0.5, 1.5]
    >>> ring, pairs = Graph.from_edges(range(8), [1, 2, 3, 4, 5, 6, 7, 0]), Graph.from_edges(range(4), range(4, 8))
    >>> compare_graphs({"pairs": pairs, "ring": ring}, A).behind.round(2)
    graph
    ring     0.00
    pairs   -2.64
    Name: behind, dtype: float64
    """
    rows = []
    for name, graph in graphs.items():
        d = GaussianMRF.fit(graph, A, coupled=coupled).diagnostics
        assert d is not None
        rows.append((name, d.log_likelihood, d.log_likelihood_error, d.aic, d.bic))
    table = pd.DataFrame(rows, columns=["graph", "log_likelihood", "error", "aic", "bic"]).set_index("graph")
    table["behind"] = table.log_likelihood - np.max(table.log_likelihood)
    return table.sort_values("log_likelihood", ascending=False)
