"""The words of a report: names of methods and effects, the headline."""

import math

import numpy as np

from graphmrf.report.rows import TargetReport
from graphmrf.text import count, number

METHODS = {
    "lp": ("Label propagation", "outcomes of neighbours"),
    "lr": ("Linear regression", "own features"),
    "lgc": ("Linear graph convolution", "features of the neighbourhood"),
    "lgc-rp": ("Graph convolution + residual propagation", "features of the neighbourhood and outcomes of neighbours"),
    "lr-rp": ("Linear regression + residual propagation", "own features and outcomes of neighbours"),
    "field": ("Field regression", "features and outcomes, linear and nonlinear"),
    "sgc": ("Simple graph convolution", "features of the neighbourhood"),
    "gcn": ("Graph convolutional network", "features of the neighbourhood"),
    "sgc-rp": ("Simple convolution + residual propagation", "features of the neighbourhood and outcomes of neighbours"),
    "gcn-rp": ("Graph network + residual propagation", "features of the neighbourhood and outcomes of neighbours"),
}

EFFECTS = {
    "own features": ("own features", "linear effects of a node's own features"),
    "neighbours' features": ("neighbours' features", "linear effects of the features of the neighbourhood"),
    "nonlinear effects": ("nonlinear effects of features", "curves and interactions, own and neighbours'"),
    "local effects": ("local effects of features", "effects that change from one part of the graph to another"),
    "graph field": ("the graph field", "what neighbours have in common beyond their features"),
    "noise": ("noise", "what nothing here predicts"),
}


def effect_name(key: str) -> str:
    """Name of a kind of effect in a sentence; a key nobody knows is its own name.

    Examples
    --------
    >>> effect_name("graph field"), effect_name("mine")
    ('the graph field', 'mine')
    """
    return EFFECTS.get(key, (key, ""))[0]


def method_name(key: str) -> str:
    """Full name of a method; a key nobody knows is its own name.

    Examples
    --------
    >>> method_name("lp"), method_name("mine")
    ('Label propagation', 'mine')
    """
    return METHODS.get(key, (key, ""))[0]


def method_uses(key: str) -> str:
    """What a method looks at, empty when nobody knows.

    Examples
    --------
    >>> method_uses("lr")
    'own features'
    """
    return METHODS.get(key, (key, ""))[1]


def headline(target: TargetReport) -> str:
    """What was predicted, for how many nodes.

    Examples
    --------
    >>> y = np.array([1.0, np.nan])
    >>> headline(TargetReport("income", y, np.array([1.0, 2.0]), method="lp"))
    'Predicted income for 1 of 2 nodes.'
    """
    hidden = int(np.sum(~target.observed))
    return f"Predicted {target.name} for {hidden:,} of {count(len(target.y), 'node')}."


def accuracy(target: TargetReport) -> str:
    """What accuracy to expect, in words; empty when it was not measured.

    Examples
    --------
    >>> from graphmrf.report.parts import MethodRow
    >>> y = np.array([1.0, np.nan])
    >>> rows = (MethodRow("lp", 0.714, (0.7, 0.72)),)
    >>> accuracy(TargetReport("income", y, np.array([1.0, 2.0]), method="lp", comparison=rows))
    'Expect an R² of about 0.71: it explains 71 % of the variation at nodes it has not seen.'
    """
    row = target.chosen
    if row is None or not math.isfinite(row.r2):
        return ""
    if row.r2 <= 0:
        return f"Expect no accuracy (R² {number(row.r2, 2)}): the average of the observed values would do as well."
    return (
        f"Expect an R² of about {number(row.r2, 2)}: "
        f"it explains {100 * row.r2:.0f} % of the variation at nodes it has not seen."
    )


def check(target: TargetReport) -> str:
    """How the prediction fared against outcomes kept hidden; empty when there are none.

    Examples
    --------
    >>> from graphmrf.report.parts import Truth
    >>> y = np.array([1.0, np.nan])
    >>> check(TargetReport("income", y, np.array([1.0, 2.0]), method="lp", truth=Truth(0.7, 0.88, 700)))
    'Checked against 700 outcomes it never saw: R² 0.70; the 90 % intervals contain 88 % of them.'
    """
    truth = target.truth
    if truth is None:
        return ""
    inside = ""
    if truth.coverage is not None:
        inside = f"; the {100 * target.level:g} % intervals contain {100 * truth.coverage:.0f} % of them"
    return f"Checked against {count(truth.n_nodes, 'outcome')} it never saw: R² {number(truth.r2, 2)}{inside}."
