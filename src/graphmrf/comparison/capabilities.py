"""What an estimator may be able to do besides `fit` and `predict`, found by its methods and their parameters."""

from inspect import signature
from typing import Any

SUGGESTIONS = "suggested labels"  # which classes have, too
EXCEEDANCE = "the probability of exceeding a value"

CAPABILITIES = {
    "a transform of the outcome": ("__init__", "transform"),
    "conformal intervals": ("predict_interval", "interval"),
    "totals of groups": ("predict_total", ""),
    "a learning curve": ("expected_learning_curve", ""),
    EXCEEDANCE: ("probability", "above"),
    SUGGESTIONS: ("suggest", ""),
}
"""What may be asked of a method for numbers: the method that its estimator must have, and a parameter of that."""


def offers(model: Any, method: str, parameter: str = "") -> bool:
    """Return whether an estimator has a method, with a parameter if one is named.

    Examples
    --------
    >>> from graphmrf.estimators import LabelPropagation
    >>> offers(LabelPropagation(), "suggest"), offers(LabelPropagation(), "predict", "return_std")
    (False, True)
    """
    found = getattr(model, method, None)
    return found is not None and (not parameter or parameter in signature(found).parameters)


def is_conformal(model: Any) -> bool:
    """Return whether an estimator has conformal intervals."""
    return offers(model, *CAPABILITIES["conformal intervals"])
