"""The registry of methods: the only list of them, with the words people read. A new method is its file and one row."""

from __future__ import annotations

import inspect
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from graphmrf.estimators.base import NodeEstimator
from graphmrf.estimators.graph_convolutional_network import GraphConvolutionalNetwork
from graphmrf.estimators.graph_regressor import GraphRegressor
from graphmrf.estimators.inputs import check_fitted, read_outcome
from graphmrf.estimators.linear import LinearGraphConvolution, LinearRegression, SimpleGraphConvolution
from graphmrf.estimators.propagation import LabelPropagation, ResidualPropagation
from graphmrf.estimators.rows import COUNTED
from graphmrf.estimators.tables import answers_tables, takes_folds, takes_tables

if TYPE_CHECKING:
    from typing import Self

    from graphmrf._typing import Floats, Ints
    from graphmrf.estimators.linear import Level
    from graphmrf.estimators.rows import LongTable
    from graphmrf.field.reading import Of
    from graphmrf.graph import Graph


@dataclass(eq=False, repr=False)
class ObservedRegressor(NodeEstimator):
    """A `GraphRegressor` with what is known of every observation: counts, successes, or values measured.

    Observed nodes keep what was counted, as plain numbers do; measurements with a standard error are predicted, too.

    `likelihood`: as of `GraphRegressor`. `known`: `exposure`, `trials`, `std` or `weight` (n,) of the nodes, by name.
    `rows`: all observations where nodes have several; every node is predicted then.
    """

    likelihood: str
    known: Any = None
    _: KW_ONLY
    rows: LongTable | None = None
    random_state: int = 0

    @property
    def keeps_labels(self) -> bool:
        """Whether observed nodes keep what was observed: all but measurements with an error or several of a node."""
        return "std" not in (self.known or {}) and self.rows is None

    @takes_tables
    def fit(self, graph: Graph, X: Any, y: Any) -> Self:
        """Learn the hyper-parameters and condition the field on the observations."""
        self.regressor_ = GraphRegressor(likelihood=self.likelihood, random_state=self.random_state)
        self._outcome = read_outcome(y, graph.n_nodes)
        if self.rows is None:
            self.regressor_.fit(graph, X, y, **(self.known or {}))
            return self
        nodes = self.rows.nodes if graph.ids is None else graph.ids[self.rows.nodes]
        self.regressor_.fit(graph, X, self.rows.y, nodes=nodes, **self.rows.known)
        return self

    @property
    def _of(self) -> Of:
        return "observation" if self.keeps_labels or self.likelihood in COUNTED else "latent"

    def _clamped(self, values: Any) -> Floats:
        return self._outcome.clamp(np.asarray(values)) if self.keeps_labels else np.asarray(values)

    @answers_tables
    def predict(self, graph: None = None, X: None = None, *, return_std: bool = False) -> Any:
        """Return the observation of every node and its standard deviation, 0 where the observation is returned.

        Of counts the median of the rate times the exposure, and half the width of its central 68 %, as in
        `GraphRegressor.predict`; of successes their mean, and of measurements the value that is measured.
        """
        check_fitted(self, "regressor_")
        mean, std = self.regressor_.predict(graph, X, of=self._of, return_std=True)
        mean, std = self._clamped(mean), np.where(self._outcome.known & self.keeps_labels, 0.0, np.asarray(std))
        return (mean, std) if return_std else mean

    def predict_interval(self, level: float = 0.9) -> tuple[Floats, Floats]:
        """Return the ends of intervals; of width 0 where observations are returned."""
        check_fitted(self, "regressor_")
        low, high = self.regressor_.predict_interval(level, of=self._of)
        return self._clamped(low), self._clamped(high)

    def smoothed(self, level: float = 0.9) -> pd.DataFrame | None:
        """Return the rate or share of every node, observed ones, too, and its interval; None for measurements."""
        check_fitted(self, "regressor_")
        if self.likelihood not in COUNTED:
            return None
        low, high = self.regressor_.predict_interval(level, of="latent")
        found = {"smoothed": self.regressor_.predict(of="latent"), "smoothed_lower": low, "smoothed_upper": high}
        return pd.DataFrame({name: np.asarray(values) for name, values in found.items()})

    def predict_total(self, groups: Any, *, level: float = 0.9) -> pd.DataFrame:
        """Return sums over groups; see `GraphRegressor.predict_total`."""
        check_fitted(self, "regressor_")
        return self.regressor_.predict_total(groups, level=level)

    def probability(self, *, above: float) -> Floats:
        """Return the probability that the rate, the share or the value of every node exceeds one."""
        check_fitted(self, "regressor_")
        return np.asarray(self.regressor_.probability(above=above))

    def suggest(self, k: int = 1) -> pd.DataFrame:
        """Return the nodes whose observations would help most; see `GraphRegressor.suggest`."""
        check_fitted(self, "regressor_")
        return self.regressor_.suggest(k)

    def expected_r2(self) -> float:
        """Return the explained deviance to expect; see `GraphRegressor.expected_r2`."""
        check_fitted(self, "regressor_")
        return self.regressor_.expected_r2()

    def expected_learning_curve(self) -> pd.DataFrame:
        """Return the explained deviance to expect with more observations."""
        check_fitted(self, "regressor_")
        return self.regressor_.expected_learning_curve()

    @takes_folds
    def out_of_fold(self, graph: Graph, X: Any, y: Any, folds: Ints, *, return_std: bool = False) -> Any:
        """Return what `predict` does of each observed node by a field fitted without its fold."""
        check_fitted(self, "regressor_")
        found = self.regressor_.out_of_fold(graph, X, y, folds, return_std=True)
        mean, std = (np.asarray(each) / self._counts_summed for each in found)
        return (mean, std) if return_std else mean

    @property
    def _counts_summed(self) -> Any:
        """How many counts of each labelled node are predicted together; of other values it is their mean."""
        if self.rows is None or self.likelihood not in COUNTED:
            return 1.0
        return self.rows.counts(self._outcome.y.size)[self._outcome.known]

    @property
    def shares_(self) -> pd.Series:
        """Share of the variance of latent values by kind of effect."""
        check_fitted(self, "regressor_")
        return self.regressor_.shares_


@dataclass(frozen=True)
class Method:
    """One row of the registry: an estimator, what it is called, and which data it takes."""

    key: str  # what users type for it
    estimator: Any  # class of the estimator, or of the base whose residuals are propagated
    # name, uses: full name, and the information it predicts from, in the words of a sentence
    name: str
    uses: str
    residuals: bool = False  # whether residuals are propagated on top of the estimator
    labels: bool = False  # whether a prediction uses the outcomes of neighbours
    features: bool = True  # whether a prediction uses features
    needs_features: bool = True  # whether it cannot do without features
    # whether coefficients are of features smoothed over the neighbourhood of a node, not of its own
    smooths: bool = False
    missing: bool = False  # whether features may have missing cells
    automatic: bool = False  # whether ``auto`` tries it

    def make(
        self,
        *,
        alpha: Level = "cv",
        cv: int = 5,
        random_state: int = 0,
        transform: str = "identity",
        likelihood: str = "auto",
    ) -> Any:
        """Return a new estimator with those of the options that it has."""
        options = {"alpha": alpha, "cv": cv, "random_state": random_state, "transform": transform}
        options |= {"likelihood": likelihood}
        estimator = self.estimator(**_known(self.estimator, options))
        return ResidualPropagation(estimator, **_known(ResidualPropagation, options)) if self.residuals else estimator

    @property
    def has_level(self) -> bool:
        """Whether there is a smoothing level alpha to choose."""
        return self.residuals or "alpha" in _known(self.estimator, {"alpha": None})


def _known(estimator: Any, options: dict[str, Any]) -> dict[str, Any]:
    parameters = inspect.signature(estimator).parameters
    return {name: value for name, value in options.items() if name in parameters}


_AROUND, _BOTH = "features of the neighbourhood", "features of the neighbourhood and outcomes of neighbours"
_OWN, _ALL = "own features and outcomes of neighbours", "features and outcomes, linear and nonlinear"
_CRP = "convolution + residual propagation"
_ALONE: dict[str, Any] = {"labels": True, "features": False, "needs_features": False}
_FIELD: dict[str, Any] = {"labels": True, "needs_features": False, "missing": True}
_RP: dict[str, Any] = {"residuals": True, "labels": True}

METHODS = {
    method.key: method
    for method in (
        Method("lp", LabelPropagation, "Label propagation", "outcomes of neighbours", **_ALONE, automatic=True),
        Method("lr", LinearRegression, "Linear regression", "own features", automatic=True),
        Method("lgc", LinearGraphConvolution, "Linear graph convolution", _AROUND, smooths=True, automatic=True),
        Method("lr-rp", LinearRegression, "Linear regression + residual propagation", _OWN, **_RP, automatic=True),
        Method("lgc-rp", LinearGraphConvolution, f"Graph {_CRP}", _BOTH, **_RP, smooths=True, automatic=True),
        Method("field", GraphRegressor, "Field regression", _ALL, **_FIELD, automatic=True),
        Method("sgc", SimpleGraphConvolution, "Simple graph convolution", _AROUND, smooths=True),
        Method("sgc-rp", SimpleGraphConvolution, f"Simple {_CRP}", _BOTH, **_RP, smooths=True),
        Method("gcn", GraphConvolutionalNetwork, "Graph convolutional network", _AROUND),
        Method("gcn-rp", GraphConvolutionalNetwork, "Graph network + residual propagation", _BOTH, **_RP),
    )
}
"""Every method by the key users type; a plain dict, so that a row can be added at run time."""
