"""The latent-Gaussian field behind `GraphRegressor`: terms, likelihoods, two representations, one posterior.

A term is a class in `terms`; `dense` and `sparse` are the two representations; `search` finds hyper-parameters and
averages over them; `fit` puts them together. Everything derived from labels is a function of a `Posterior`.
"""

from typing import Any

from graphmrf.errors import missing_name
from graphmrf.field.accuracy import ExpectedAccuracy
from graphmrf.field.features import Design
from graphmrf.field.fit import FieldOptions, FittedField, fit_field
from graphmrf.field.imputation import MOST_PATTERNS, impute
from graphmrf.field.observations import Observations, Responses
from graphmrf.field.posterior import AveragedPosterior, Mixture, Posterior
from graphmrf.field.terms import EFFECTS, TERMS, Term
from graphmrf.field.transform import POSITIVE, Kind, Scale, choose_transform

__all__ = [
    "EFFECTS",
    "MOST_PATTERNS",
    "POSITIVE",
    "TERMS",
    "AveragedPosterior",
    "Design",
    "ExpectedAccuracy",
    "FieldOptions",
    "FittedField",
    "Kind",
    "Mixture",
    "Observations",
    "Posterior",
    "Responses",
    "Scale",
    "Term",
    "choose_transform",
    "fit_field",
    "impute",
]

_RENAMED = {
    "COMPONENTS": "TERMS",
    "Component": "Term",
    "Hyperparameters": "graphmrf.field.space.Space",
    "Parameter": "graphmrf.field.space.Shape",
} | dict.fromkeys(("SOLVERS", "fit_exact", "fit_sparse"), "fit_field, with FieldOptions(representation=)")


def __getattr__(name: str) -> Any:
    """Raise for a name that is not there, with the present one of a former name."""
    raise missing_name(__name__, name, _RENAMED)
