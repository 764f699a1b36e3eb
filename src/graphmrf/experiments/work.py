"""What a run does: from its options and the data to a result that fits one line of JSON."""

from collections.abc import Callable
from typing import Any

import numpy as np

from graphmrf._typing import Bools, Floats
from graphmrf.experiments import classes, fields, foresight
from graphmrf.experiments.data import Source, attributes
from graphmrf.experiments.methods import METHODS
from graphmrf.experiments.runs import TRAINING, Options, Result, Run
from graphmrf.metrics import r2
from graphmrf.selection import split


def perform(run: Run, source: Source) -> Result:
    """Return the result of a run."""
    return KINDS[run.kind](source, dict(run.options))


def accuracy(source: Source, o: Options) -> Result:
    """Transductive: labels at a random part of the nodes, R2 at the others; one entry for every column."""
    known = attributes(source, o["data"])
    labelled = split(known.graph.n_nodes, o["fraction"], seed=o["seed"])
    X, y = known.task(o["outcome"])
    method, hidden = METHODS[o["method"]], np.where(labelled, y, np.nan)
    fitted = method.fit(known.graph, X, hidden, seed=o["seed"], effort=o.get("effort", ""))
    return {column: _scored(each, each.predict(), y, ~labelled) for column, each in fitted.items()}


def inductive(source: Source, o: Options) -> Result:
    """Inductive: learn from labels of one graph, predict another, R2 at the nodes that were not in the training set."""
    old, new = attributes(source, o["train"]), attributes(source, o["test"])
    labelled = split(old.graph.n_nodes, TRAINING, seed=o["seed"])
    X, y = old.task(o["outcome"])
    X_new, y_new = new.task(o["outcome"])
    estimator = METHODS[o["method"]].make(o["seed"], o.get("effort", ""))
    fitted = estimator.fit(old.graph, X, np.where(labelled, y, np.nan))
    return {o["method"]: _scored(fitted, fitted.predict(new.graph, X_new), y_new, ~labelled)}


def coefficients(source: Source, o: Options) -> Result:
    """Coefficients of linear graph convolution for standardised, smoothed features."""
    known = attributes(source, o["data"])
    labelled = split(known.graph.n_nodes, TRAINING, seed=o["seed"])
    X, y = known.task(o["outcome"])
    fitted = METHODS["LGC"].make(o["seed"], "").fit(known.graph, X, np.where(labelled, y, np.nan))
    return {"alpha": fitted.alpha_, "coefficients": {str(name): float(b) for name, b in fitted.coef_.items()}}


def statistics(source: Source, o: Options) -> Result:
    """Counts of a data set; attributes as the experiments use them."""
    known = attributes(source, o["data"])
    return {"vertices": known.graph.n_nodes, "edges": known.graph.n_edges, "attributes": known.frame.shape[1]}


def _scored(fitted: Any, prediction: Floats, y: Floats, test: Bools) -> dict[str, float]:
    score = {"value": float(r2(y[test], prediction[test]))}
    for name, attribute in (("alpha", "alpha_"), ("layers", "n_layers_")):
        if (chosen := getattr(fitted, attribute, None)) is not None:
            score[name] = float(chosen)
    return score


KINDS: dict[str, Callable[[Source, Options], Result]] = {
    "accuracy": accuracy,
    "classify": classes.classify,
    "coefficients": coefficients,
    "foreseen": foresight.foreseen,
    "inductive": inductive,
    "maps": fields.maps,
    "omega": fields.omega,
    "parameters": fields.parameters,
    "statistics": statistics,
}
