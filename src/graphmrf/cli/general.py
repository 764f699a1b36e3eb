"""The general field at the command line: where it runs, its intervals, and what is said of it."""

from collections.abc import Iterator, Sequence

import numpy as np

from graphmrf._typing import Floats
from graphmrf.cli.comparison import Fit, passed_over
from graphmrf.cli.methods import AUTO, FIELD
from graphmrf.estimators import GraphRegressor
from graphmrf.estimators.graph_regressor import MAX_LABELS, MAX_NODES
from graphmrf.estimators.held_out import SEARCHED_AGAIN


def too_large(y: Floats) -> bool:
    """Return whether a target has more nodes or known values than the field takes."""
    return y.size > MAX_NODES or _known(y) > MAX_LABELS


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


def left_out(y: Floats, method: str) -> Iterator[str]:
    """Say why ``auto`` did not try the field, where it did not."""
    if method == AUTO and too_large(y):
        yield (
            f"{FIELD} is left out: it takes at most {MAX_NODES} nodes and {MAX_LABELS} known values, "
            f"and there are {y.size} and {_known(y)}"
        )


def notes(y: Floats, fits: Sequence[Fit], chosen: Fit, *, level: float, conformal: bool) -> Iterator[str]:
    """Say how the field was scored, what transform it chose, and whether another method took its place."""
    model = next((fit.estimator for fit in fits if isinstance(fit.estimator, GraphRegressor)), None)
    if model is None:
        return
    if _known(y) > SEARCHED_AGAIN:
        yield (
            f"the R2 of {FIELD} is that of values held out of a field whose hyper-parameters all {_known(y)} chose "
            f"(with up to {SEARCHED_AGAIN} they are searched again without each fold)"
        )
    if model.transform == "auto":
        yield f"transform chosen by likelihood: {transform_name(model) or 'none'}"
    said = passed_over(fits, chosen)
    if said:
        yield said + (", with intervals that are not conformal" if conformal else "")
    elif conformal and not np.isfinite(interval(model, level, conformal=True)).all():
        yield f"too few known values for a conformal interval of {100 * level:g} %; lower and upper have no bound"


def _known(y: Floats) -> int:
    return int(np.count_nonzero(~np.isnan(y)))
