"""Accuracy foreseen from the fitted model, for many splits at once."""

from functools import lru_cache

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from graphmrf._typing import Bools, Floats
from graphmrf.experiments.data import Source, attributes
from graphmrf.experiments.fields import fitted_field
from graphmrf.experiments.runs import TRAINING, Options, Result
from graphmrf.model import GaussianMRF
from graphmrf.selection import split

LEVEL = ", level fitted"
FORESEEN = ("LP", "LGC", "LGC/RP")


def foreseen(source: Source, o: Options) -> Result:
    r"""R2 foreseen for LP, LGC and LGC/RP at every split: as in the paper, and when the level is fitted, too.

    The formula of `graphmrf.model.foresee.estimate_r2`,

    .. math:: 1 - \frac{\mathrm{tr}\,\Sigma}{\mathrm{tr}\,\Sigma_0 - 1'\Sigma_0 1 / |U|},

    with one decomposition of N for all splits: :math:`\Sigma_0`, the covariance of the outcome given nothing, and that
    given the features are functions of N. Predictors that fit an intercept do not pay for an unknown level; their
    numerator is :math:`\mathrm{tr}\,\Sigma - 1'\Sigma 1 / |U|`.
    """
    known = attributes(source, o["data"])
    prior, given_features = _covariances(source, o["data"], o["outcome"])
    found: dict[str, list[float]] = {name + suffix: [] for name in FORESEEN for suffix in ("", LEVEL)}
    for seed in range(o["seed"], o["seed"] + o["splits"]):
        U = ~split(known.graph.n_nodes, TRAINING, seed=seed)
        left = (_given_labels(prior, U), _given_nothing(given_features, U), _given_labels(given_features, U))
        trace, level = _given_nothing(prior, U)
        for name, (variance, common) in zip(FORESEEN, left, strict=True):
            found[name].append(1.0 - variance / (trace - level))
            found[name + LEVEL].append(1.0 - (variance - common) / (trace - level))
    return found


def _covariances(source: Source, data: str, outcome: str) -> tuple[Floats, Floats]:
    """Return the covariance of an outcome given nothing, and given the features, at all nodes."""
    mrf = fitted_field(source, data)
    eigenvalues, V = _decomposed(source, data)
    t = mrf.index(outcome)
    given_features = (V / (mrf.H[t, t] + mrf.C[t, t] * eigenvalues)) @ V.T
    return (V * _response(mrf, t, eigenvalues)) @ V.T, given_features


def _response(mrf: GaussianMRF, t: int, eigenvalues: Floats) -> Floats:
    """Return the variance of an attribute along every eigenvector of N: a sum over the channels of the field."""
    parts = mrf.channels
    return np.asarray(parts.inverse[:, t] ** 2 @ (1.0 / (1.0 + parts.strength[:, None] * eigenvalues)))


def _given_nothing(K: Floats, U: Bools) -> tuple[float, float]:
    """Return the trace of a covariance on U, and the part of it that all nodes share: 1'K1 / |U|."""
    return float(np.diag(K)[U].sum()), float(K[np.ix_(U, U)].sum() / U.sum())


def _given_labels(K: Floats, U: Bools) -> tuple[float, float]:
    """Return the same of the covariance on U given the outcome elsewhere."""
    R = cholesky(K[np.ix_(~U, ~U)], lower=True)
    explained = solve_triangular(R, K[np.ix_(~U, U)], lower=True)
    trace, level = _given_nothing(K, U)
    return trace - float(np.sum(explained**2)), level - float(np.sum(explained.sum(axis=1) ** 2) / U.sum())


@lru_cache(maxsize=1)
def _decomposed(source: Source, data: str) -> tuple[Floats, Floats]:
    eigenvalues, V = np.linalg.eigh(attributes(source, data).graph.N.toarray())
    return eigenvalues, V
