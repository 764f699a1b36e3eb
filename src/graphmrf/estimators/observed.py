"""Counts, successes and measurements of nodes as an estimator of one number per node, for comparison with others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from graphmrf.estimators.graph_regressor import GraphRegressor
from graphmrf.estimators.inputs import check_fitted, read_outcome
from graphmrf.estimators.tables import NodeEstimator, predicts_tables, takes_folds, takes_tables

if TYPE_CHECKING:
    from typing import Self

    import pandas as pd

    from graphmrf._typing import Floats, Ints
    from graphmrf.field.reading import Of
    from graphmrf.graph import Graph


class ObservedRegressor(NodeEstimator):
    """A `GraphRegressor` with what is known of every observation: counts, successes, or values measured.

    Observed nodes keep what was counted, as plain numbers do; measurements with a standard error are predicted, too.

    Parameters
    ----------
    likelihood : str
        Distribution of an observation, as `GraphRegressor` has it.
    known : mapping of str to array of shape (n,), optional
        `exposure`, `trials`, `std` or `weight` of every node.
    random_state : int, default 0
        Seed of everything random.

    Attributes
    ----------
    regressor_ : GraphRegressor
        The fitted field.

    Examples
    --------
    >>> from graphmrf.graph import Graph
    >>> ring = Graph.from_edges(np.arange(12), (np.arange(12) + 1) % 12)
    >>> cases = np.array([2.0, 2, 1, 3, 2, np.nan, 2, 1, 3, 2, 2, 2])
    >>> model = ObservedRegressor("poisson", {"exposure": np.full(12, 100.0)}).fit(ring, None, cases)
    >>> model.predict()[4:7].round()
    array([2., 2., 2.])
    """

    def __init__(self, likelihood: str, known: Any = None, *, random_state: int = 0) -> None:
        self.likelihood = likelihood
        self.known = known
        self.random_state = random_state

    @property
    def keeps_labels(self) -> bool:
        """Whether observed nodes keep what was observed: all but measurements with an error."""
        return "std" not in (self.known or {})

    @takes_tables
    def fit(self, graph: Graph, X: Any, y: Any) -> Self:
        """Learn the hyper-parameters and condition the field on the observations."""
        self.regressor_ = GraphRegressor(likelihood=self.likelihood, random_state=self.random_state)
        self.regressor_.fit(graph, X, y, **(self.known or {}))
        self._outcome = read_outcome(y, graph.n_nodes)
        return self

    @property
    def _of(self) -> Of:
        return "observation" if self.keeps_labels else "latent"

    def _clamped(self, values: Any) -> Floats:
        return self._outcome.clamp(np.asarray(values)) if self.keeps_labels else np.asarray(values)

    @overload
    def predict(self, graph: None = None, X: None = None, *, return_std: Literal[False] = False) -> Floats: ...
    @overload
    def predict(self, graph: None = None, X: None = None, *, return_std: Literal[True]) -> tuple[Floats, Floats]: ...
    @predicts_tables
    def predict(
        self, graph: None = None, X: None = None, *, return_std: bool = False
    ) -> Floats | tuple[Floats, Floats]:
        """Return the expected observation of every node, and its standard deviation, 0 where it is kept."""
        check_fitted(self, "regressor_")
        mean, std = self.regressor_.predict(graph, X, of=self._of, return_std=True)
        mean, std = self._clamped(mean), np.where(self._outcome.known & self.keeps_labels, 0.0, np.asarray(std))
        return (mean, std) if return_std else mean

    def predict_interval(self, level: float = 0.9) -> tuple[Floats, Floats]:
        """Return the ends of intervals; of width 0 where observations are kept."""
        check_fitted(self, "regressor_")
        low, high = self.regressor_.predict_interval(level, of=self._of)
        return self._clamped(low), self._clamped(high)

    def predict_total(self, groups: Any, *, level: float = 0.9) -> pd.DataFrame:
        """Return sums over groups; see `GraphRegressor.predict_total`."""
        check_fitted(self, "regressor_")
        return self.regressor_.predict_total(groups, level=level)

    @takes_folds
    def out_of_fold(self, graph: Graph, X: Any, y: Any, folds: Ints, *, return_std: bool = False) -> Any:
        """Return the expected observation of each observed node by a field fitted without its fold."""
        check_fitted(self, "regressor_")
        return self.regressor_.out_of_fold(graph, X, y, folds, return_std=return_std)

    @property
    def shares_(self) -> pd.Series:
        """Share of the variance of latent values by kind of effect."""
        check_fitted(self, "regressor_")
        return self.regressor_.shares_
