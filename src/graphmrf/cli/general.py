"""The general field at the command line: where it runs, its intervals, and what is said of it."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from graphmrf._typing import Floats
from graphmrf.cli.comparison import Fit, passed_over, preferred
from graphmrf.cli.methods import FIELD, Method
from graphmrf.datasets.columns import FILLED
from graphmrf.estimators import GraphRegressor
from graphmrf.estimators.field_folds import COEFFICIENTS_KEPT, SEARCHED_AGAIN
from graphmrf.estimators.graph_regressor import MAX_LABELS, MAX_NODES

SLOW = 5000
"""Nodes beyond which a fit takes minutes."""


def interval(model: GraphRegressor, level: float, *, conformal: bool) -> tuple[Floats, Floats]:
    """Return the ends of the interval of every node."""
    return model.predict_interval(level, interval="conformal" if conformal else "field")


def transform_name(model: GraphRegressor) -> str:
    """Return the transform in use; empty for none."""
    power = model.transform_.power
    if power is None:
        return ""
    if not power.signed and power.exponent == 0:
        return "log"
    return f"{'yeo-johnson' if power.signed else 'box-cox'} with exponent {power.exponent:.2f}"


def filling(note: str, methods: Sequence[Method]) -> str:
    """Return a note on the features, which says of missing cells how every method fills them."""
    if not any(method.holes for method in methods):
        return note
    jointly = "filled missing cells with what the other features and the neighbours say"
    others = "" if all(method.holes for method in methods) else f" ({FIELD}; other methods: with the column mean)"
    return note.replace(FILLED, jointly + others, 1) if note.startswith(FILLED) else note


def warnings(methods: Sequence[Method], n_nodes: int, classes: Mapping[str, int]) -> Iterator[str]:
    """Warn of fits of the field that take minutes, and of more than two classes, each of which has its own."""
    if all(method.key != FIELD for method in methods):
        return
    if n_nodes > SLOW:
        yield f"{n_nodes:,} nodes: fitting {FIELD} takes minutes; --method lgc-rp is faster"
    for name, count in classes.items():
        if count > 2:
            yield f"{name}: {count} classes, so {FIELD} is fitted {count} times; --method lgc-rp is faster"


def notes(y: Floats, fits: Sequence[Fit], chosen: Fit, *, level: float, asked: Sequence[str]) -> Iterator[str]:
    """Say how the field was scored, what transform it chose, and whether another method took its place, or would have.

    Parameters
    ----------
    asked : sequence of str
        The options given that only the field can do.
    """
    model = next((fit.estimator for fit in fits if isinstance(fit.estimator, GraphRegressor)), None)
    if model is None:
        return
    yield from _scoring(model, _known(y))
    if model.transform == "auto":
        yield f"transform chosen by likelihood: {transform_name(model) or 'none'}"
    said = preferred(fits, chosen, asked=" and ".join(asked)) if asked else passed_over(fits, chosen)
    if said:
        yield said
    if "--conformal" in asked and not np.isfinite(interval(model, level, conformal=True)).all():
        yield f"too few known values for a conformal interval of {100 * level:g} %; lower and upper have no bound"


def _scoring(model: GraphRegressor, known: int) -> Iterator[str]:
    if model.solver_ == "sparse":
        yield f"{FIELD} is computed by its sparse solver, beyond {MAX_NODES} nodes or {MAX_LABELS} known values"
    elif known <= SEARCHED_AGAIN:
        return
    kept = "coefficients and hyper-parameters" if known > COEFFICIENTS_KEPT else "hyper-parameters"
    yield f"the R2 of {FIELD} is that of values held out of a field whose {kept} all {known} known values chose"


def _known(y: Floats) -> int:
    return int(np.count_nonzero(~np.isnan(y)))
