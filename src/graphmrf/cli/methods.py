"""The methods a user can ask for by name: a new one is one more row."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import pandas as pd

from graphmrf._typing import Floats
from graphmrf.datasets import Features
from graphmrf.errors import InvalidInputError
from graphmrf.estimators import (
    GraphConvolutionalNetwork,
    GraphRegressor,
    LabelPropagation,
    LinearGraphConvolution,
    LinearRegression,
    ResidualPropagation,
    SimpleGraphConvolution,
)
from graphmrf.graph import Graph

AUTO = "auto"
FIELD = "field"
WITHOUT_LEVEL = ("lr", FIELD, "sgc", "gcn")
TRANSFORMS = ("identity", "log", "box-cox", "yeo-johnson", "auto")


class Estimator(Protocol):
    """What the command line needs of an estimator; `alpha_`, `cv_results_` and `coef_` are shown where it has them."""

    def fit(self, graph: Graph, X: pd.DataFrame | None, y: Floats) -> Any:
        """Learn from the outcomes that are there."""

    def predict(self, graph: Graph | None = None, X: Any = None, *, return_std: bool = False) -> Any:
        """Predict all nodes."""


@dataclass(frozen=True)
class Tuning:
    """How the smoothing level is found: given, or (None) by cross-validation; and the transform of the outcome."""

    alpha: float | None = None
    folds: int = 5
    seed: int = 0
    transform: str = "identity"

    @property
    def level(self) -> float | Literal["cv"]:
        """The `alpha` of an estimator."""
        return "cv" if self.alpha is None else self.alpha


@dataclass(frozen=True)
class Method:
    """A method by name, what it looks at, whether ``auto`` tries it, and how it takes features.

    It may do without any (`featureless`), and with tables in which cells are missing (`holes`).
    """

    key: str
    outcomes: bool
    features: bool
    make: Callable[[Tuning], Estimator]
    automatic: bool = True
    featureless: bool = False
    holes: bool = False

    def takes(self, made: Features) -> pd.DataFrame | None:
        """Return the features as the method takes them."""
        if not self.features or not made.X.shape[1]:
            return None
        return made.unfilled if self.holes else made.X

    def works(self, n_features: int) -> bool:
        """Return whether there are enough features."""
        return n_features > 0 or self.featureless


def _lp(tuning: Tuning) -> Estimator:
    return LabelPropagation(alpha=tuning.level, folds=tuning.folds, seed=tuning.seed)


def _lr(_: Tuning) -> Estimator:
    return LinearRegression()


def _lgc(tuning: Tuning) -> Estimator:
    return LinearGraphConvolution(alpha=tuning.level, folds=tuning.folds, seed=tuning.seed)


def _lgc_rp(tuning: Tuning) -> Estimator:
    return ResidualPropagation(_lgc(tuning), alpha=tuning.level, folds=tuning.folds, seed=tuning.seed)


def _sgc(tuning: Tuning) -> Estimator:
    return SimpleGraphConvolution(folds=tuning.folds, seed=tuning.seed)


def _gcn(tuning: Tuning) -> Estimator:
    return GraphConvolutionalNetwork(folds=tuning.folds, seed=tuning.seed)


def _sgc_rp(tuning: Tuning) -> Estimator:
    return ResidualPropagation(_sgc(tuning), alpha=tuning.level, folds=tuning.folds, seed=tuning.seed)


def _gcn_rp(tuning: Tuning) -> Estimator:
    return ResidualPropagation(_gcn(tuning), alpha=tuning.level, folds=tuning.folds, seed=tuning.seed)


def _field(tuning: Tuning) -> Estimator:
    return GraphRegressor(transform=tuning.transform, seed=tuning.seed)


METHODS = {
    method.key: method
    for method in (
        Method("lp", outcomes=True, features=False, make=_lp, featureless=True),
        Method("lr", outcomes=False, features=True, make=_lr),
        Method("lgc", outcomes=False, features=True, make=_lgc),
        Method("lgc-rp", outcomes=True, features=True, make=_lgc_rp),
        Method(FIELD, outcomes=True, features=True, make=_field, featureless=True, holes=True),
        Method("sgc", outcomes=False, features=True, make=_sgc, automatic=False),
        Method("sgc-rp", outcomes=True, features=True, make=_sgc_rp, automatic=False),
        Method("gcn", outcomes=False, features=True, make=_gcn, automatic=False),
        Method("gcn-rp", outcomes=True, features=True, make=_gcn_rp, automatic=False),
    )
}


def choose(name: str, *, n_features: int) -> tuple[Method, ...]:
    """Return the methods to fit: the one named, or for ``auto`` the paper's own and the field, where the data allow.

    Examples
    --------
    >>> [method.key for method in choose("auto", n_features=0)]
    ['lp', 'field']
    """
    if name == AUTO:
        tried = [method for method in METHODS.values() if method.automatic]
        return tuple(method for method in tried if method.works(n_features))
    if name not in METHODS:
        raise InvalidInputError(f"--method must be one of {', '.join([*METHODS, AUTO])}, got '{name}'")
    if not METHODS[name].works(n_features):
        raise InvalidInputError(f"method {name} needs features and no column is left for them; use --method lp")
    return (METHODS[name],)
