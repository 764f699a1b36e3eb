"""What an estimator may be able to do besides `fit` and `predict`, each as a protocol that it meets by having methods.

Nothing here names an estimator: one that has the method is asked, in the command line and on the report page too.
Standard deviations are a parameter ``return_std`` of `predict`; a transform of the outcome and conformal intervals are
parameters, too.
"""

from collections.abc import Callable
from inspect import signature
from typing import Any, Protocol, runtime_checkable

import pandas as pd

from graphmrf._typing import Floats


@runtime_checkable
class PredictsIntervals(Protocol):
    """Has intervals of its own, which need not be symmetric; otherwise they come from standard deviations."""

    def predict_interval(self, level: float = 0.9) -> tuple[Floats, Floats]:
        """Return the ends of an interval for the outcome of every node."""
        ...


@runtime_checkable
class PredictsTotals(Protocol):
    """Has the joint distribution of nodes, so that sums over groups have error bars."""

    def predict_total(self, groups: Any, *, level: float = 0.9) -> pd.DataFrame:
        """Return `prediction`, `std`, `lower`, `upper`, `n_nodes` and `n_observed` of every group."""
        ...


@runtime_checkable
class SuggestsLabels(Protocol):
    """Knows which labels would help most."""

    def suggest(self, k: int = 1) -> pd.DataFrame:
        """Return `node`, `std` and `expected_r2` of the nodes to label next; where empty, ``attrs["reason"]``."""
        ...

    def expected_r2(self) -> float:
        """Return the R² to expect with the labels there are."""
        ...


@runtime_checkable
class ForecastsAccuracy(Protocol):
    """Knows how accurate predictions will be with more labels."""

    def expected_learning_curve(self) -> pd.DataFrame:
        """Return `n_labels`, `expected_r2`, `lower` and `upper`, the labels there are first."""
        ...


@runtime_checkable
class ShowsDependence(Protocol):
    """Can predict with one feature changed at every node."""

    def partial_dependence(self, feature: Any, values: Any) -> Floats:
        """Return the mean prediction at each value of a feature."""
        ...


@runtime_checkable
class ChecksIntervals(Protocol):
    """Checks its intervals on held-out labels; see `estimators.out_of_fold.IntervalCheck`."""

    interval_check_: Any


def takes(method: Any, parameter: str) -> bool:
    """Return whether a method has a parameter, such as `return_std` of `predict`.

    Examples
    --------
    >>> takes(pd.DataFrame.head, "n"), takes(pd.DataFrame.head, "return_std")
    (True, False)
    """
    return parameter in signature(method).parameters


def is_conformal(model: Any) -> bool:
    """Return whether an estimator has conformal intervals."""
    return isinstance(model, PredictsIntervals) and takes(model.predict_interval, "interval")


def is_transformed(model: Any) -> bool:
    """Return whether an estimator can transform the outcome."""
    return hasattr(model, "transform") and takes(type(model), "transform")


SUGGESTIONS = "suggested labels"  # which classes have, too

CAPABILITIES: dict[str, Callable[[Any], bool]] = {
    "a transform of the outcome": is_transformed,
    "conformal intervals": is_conformal,
    "totals of groups": lambda model: isinstance(model, PredictsTotals),
    "a learning curve": lambda model: isinstance(model, ForecastsAccuracy),
    SUGGESTIONS: lambda model: isinstance(model, SuggestsLabels),
}
"""What may be asked of a method for numbers, and the test of an estimator that tells whether it can."""
