"""The general field behind `GraphRegressor`: a list of components, one search space, two solvers of one interface.

A term of the field is a class in `components`; `covariance` adds them up, `exact` and `sparse` are the solvers, and
`fit` returns the fitted field. Whatever follows from the labels is asked of a `Posterior`.
"""

from graphmrf.field.components import COMPONENTS, EFFECTS
from graphmrf.field.covariance import Component, Covariance, LinearComponent
from graphmrf.field.exact import REFITTED_UP_TO
from graphmrf.field.fit import (
    SOLVERS,
    FittedField,
    IntervalCalibration,
    choose_solver,
    exact_cost,
    fit_exact,
    fit_sparse,
    foreseen_time,
    most_bytes,
)
from graphmrf.field.hyperparameters import Hyperparameters, Parameter, Space
from graphmrf.field.posterior import Posterior
from graphmrf.field.sparse import COEFFICIENTS_KEPT
from graphmrf.field.transform import POSITIVE, Kind, Scale

__all__ = [
    "COEFFICIENTS_KEPT",
    "COMPONENTS",
    "EFFECTS",
    "POSITIVE",
    "REFITTED_UP_TO",
    "SOLVERS",
    "Component",
    "Covariance",
    "FittedField",
    "Hyperparameters",
    "IntervalCalibration",
    "Kind",
    "LinearComponent",
    "Parameter",
    "Posterior",
    "Scale",
    "Space",
    "choose_solver",
    "exact_cost",
    "fit_exact",
    "fit_sparse",
    "foreseen_time",
    "most_bytes",
]
