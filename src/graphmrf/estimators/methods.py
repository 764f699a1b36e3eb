"""The registry of methods: the only list of them, with the words people read. A new method is its file and one row."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from graphmrf.estimators.graph_convolutional_network import GraphConvolutionalNetwork
from graphmrf.estimators.graph_regressor import GraphRegressor
from graphmrf.estimators.label_propagation import LabelPropagation
from graphmrf.estimators.linear_graph_convolution import LinearGraphConvolution
from graphmrf.estimators.linear_regression import LinearRegression
from graphmrf.estimators.residual_propagation import ResidualPropagation
from graphmrf.estimators.simple_graph_convolution import SimpleGraphConvolution

if TYPE_CHECKING:
    from graphmrf.estimators.choices import Level


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

    def make(self, *, alpha: Level = "cv", cv: int = 5, random_state: int = 0, transform: str = "identity") -> Any:
        """Return a new estimator with those of the options that it has.

        `alpha`: smoothing level. `cv`, `random_state`: folds of the cross-validation, and their seed. `transform`:
        transform of the outcome.

        Examples
        --------
        >>> METHODS["lgc-rp"].make(alpha=0.5, transform="log")
        ResidualPropagation(alpha=0.5, base=LinearGraphConvolution(alpha=0.5))
        """
        options = {"alpha": alpha, "cv": cv, "random_state": random_state, "transform": transform}
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

METHODS = {
    method.key: method
    for method in (
        Method(
            "lp",
            LabelPropagation,
            "Label propagation",
            "outcomes of neighbours",
            labels=True,
            features=False,
            needs_features=False,
            automatic=True,
        ),
        Method("lr", LinearRegression, "Linear regression", "own features", automatic=True),
        Method("lgc", LinearGraphConvolution, "Linear graph convolution", _AROUND, smooths=True, automatic=True),
        Method(
            "lr-rp",
            LinearRegression,
            "Linear regression + residual propagation",
            "own features and outcomes of neighbours",
            residuals=True,
            labels=True,
            automatic=True,
        ),
        Method(
            "lgc-rp",
            LinearGraphConvolution,
            "Graph convolution + residual propagation",
            _BOTH,
            residuals=True,
            labels=True,
            smooths=True,
            automatic=True,
        ),
        Method(
            "field",
            GraphRegressor,
            "Field regression",
            "features and outcomes, linear and nonlinear",
            labels=True,
            needs_features=False,
            missing=True,
            automatic=True,
        ),
        Method("sgc", SimpleGraphConvolution, "Simple graph convolution", _AROUND, smooths=True),
        Method(
            "sgc-rp",
            SimpleGraphConvolution,
            "Simple convolution + residual propagation",
            _BOTH,
            residuals=True,
            labels=True,
            smooths=True,
        ),
        Method("gcn", GraphConvolutionalNetwork, "Graph convolutional network", _AROUND),
        Method(
            "gcn-rp",
            GraphConvolutionalNetwork,
            "Graph network + residual propagation",
            _BOTH,
            residuals=True,
            labels=True,
        ),
    )
}
"""Every method by the key users type; a plain dict, so that a row can be added at run time."""
