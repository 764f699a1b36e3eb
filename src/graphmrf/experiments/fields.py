"""Runs on the generative model itself: recover omega, fit the parameters, sample maps."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from graphmrf._typing import Floats
from graphmrf.estimators import LabelPropagation, LinearGraphConvolution, ResidualPropagation
from graphmrf.experiments.data import Source, attributes, raw
from graphmrf.experiments.runs import TRAINING, Options, Result
from graphmrf.metrics import r2
from graphmrf.model import GaussianMRF
from graphmrf.selection import split

OMEGAS = tuple(float(10.0 ** (-1 + step / 4)) for step in range(13))
"""The grid of the paper: 0.1 to 100, four to a decade."""
MAPPED = ("unemployment", "election")
N_SAMPLES = 2
_CORRELATED = ((1.0, -0.99), (-0.99, 1.0))


@lru_cache(maxsize=2)
def fitted_field(source: Source, data: str) -> GaussianMRF:
    """Return the model of maximum likelihood, mean 0 as in the paper."""
    known = attributes(source, data)
    return GaussianMRF.fit(known.graph, known.frame, center=False)


def omega(source: Source, o: Options) -> Result:
    """R2 of predictors with every omega of the grid on one sample drawn with ``OMEGAS[step]``.

    Without features only label propagation predicts; with one, linear graph convolution with and without residual
    propagation.
    """
    graph, true = raw(source, o["data"]).graph, OMEGAS[o["step"]]
    mrf = GaussianMRF(_CORRELATED, [true, true]) if o["features"] else GaussianMRF([[1.0]], [true])
    A = mrf.sample(graph, 1, seed=o["seed"])[0]
    labelled = split(graph.n_nodes, TRAINING, seed=o["seed"])
    y, X = A[:, -1], A[:, :-1] if o["features"] else None
    hidden = np.where(labelled, y, np.nan)

    def scores(make: Callable[[float], Any]) -> list[float]:
        predictions = [make(guess).fit(graph, X, hidden).predict() for guess in OMEGAS]
        return [float(r2(y[~labelled], prediction[~labelled])) for prediction in predictions]

    if not o["features"]:
        return {"LP": scores(lambda guess: LabelPropagation(omega=guess))}
    return {
        "LGC": scores(lambda guess: LinearGraphConvolution(omega=guess)),
        "LGC/RP": scores(lambda guess: ResidualPropagation(LinearGraphConvolution(omega=guess), omega=guess)),
    }


def parameters(source: Source, o: Options) -> Result:
    """The maximum-likelihood parameters of a synthetic sample beside those it was drawn with."""
    known, true = attributes(source, o["data"]), raw(source, o["data"]).extra["parameters"].to_numpy()
    h, H = true[:, 0], true[:, 1:]
    mrf, A = fitted_field(source, o["data"]), known.frame.to_numpy()
    constant = 0.5 * len(h) * np.log(2 * np.pi)  # left out by the paper
    true_nll, nll = (-each.log_likelihood(known.graph, A) / len(A) - constant for each in (GaussianMRF(H, h), mrf))
    return {
        "H": mrf.H.tolist(),
        "h": mrf.h.tolist(),
        "true H": H.tolist(),
        "true h": h.tolist(),
        "error H": float(np.linalg.norm(mrf.H - H) / np.linalg.norm(H)),
        "error h": float(np.linalg.norm(mrf.h - h) / np.linalg.norm(h)),
        "true nll": float(true_nll),
        "nll": float(nll),
    }


def maps(source: Source, o: Options) -> Result:
    """Unemployment and election drawn given all other attributes, in their own units, beside what was observed."""
    known, units = attributes(source, o["data"]), raw(source, o["data"]).frame
    names, hidden = list(MAPPED), known.frame.copy()
    hidden[names] = np.nan
    drawn = fitted_field(source, o["data"]).condition(known.graph, hidden).sample(N_SAMPLES, seed=o["seed"])
    places = [list(known.frame.columns).index(name) for name in names]
    layers = [known.frame[names].to_numpy(), *drawn.take(places, axis=2)]
    center, spread = units[names].mean().to_numpy(), units[names].std().to_numpy()
    S = known.graph.S
    return {
        "ids": units["fips"].tolist() if "fips" in units else [],
        "layers": [dict(zip(names, map(_short, (layer * spread + center).T), strict=True)) for layer in layers],
        "smoothness": [[_along_edges(S, column) for column in layer.T] for layer in layers],
        "correlation": [float(np.corrcoef(layer.T)[0, 1]) for layer in layers],
    }


def _along_edges(S: Any, values: Floats) -> float:
    """Correlation of the ends of edges, each weighted by the degrees: 1 for a field that does not vary along edges."""
    centred = values - values.mean()
    return float(centred @ (S @ centred) / (centred @ centred))


def _short(values: Floats) -> list[float]:
    return [float(f"{value:.5g}") for value in values]
