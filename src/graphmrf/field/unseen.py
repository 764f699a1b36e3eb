"""What the field says of labels that had no part in its hyper-parameters, either."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphmrf.field.covariance import Covariance
from graphmrf.field.evidence import maximise
from graphmrf.field.mixture import MixedPosterior
from graphmrf.field.posterior import FieldPosterior

if TYPE_CHECKING:
    from graphmrf._typing import Floats, Ints


def unseen(posterior: FieldPosterior | MixedPosterior, folds: Ints, *, seed: int = 0) -> tuple[Floats, Floats]:
    """Return residual and variance of every standardised label by a field fitted without its fold.

    A few labels determine the hyper-parameters so loosely that these remember each of them: what the field says of a
    label given all others (`FieldPosterior.left_out`) is then too good. Here the hyper-parameters are searched again
    without each fold, at the expected features where these are uncertain.

    Parameters
    ----------
    posterior : FieldPosterior or MixedPosterior
        The field given all its labels.
    folds : integer array of shape (m,)
        Fold of every label.
    seed : int
        Seed of the searches.
    """
    whole, z = posterior.covariance, posterior.z
    residual, variance = np.empty(z.size), np.empty(z.size)
    for fold in range(int(folds.max()) + 1):
        own = folds == fold
        others = Covariance(whole.design, whole.eigen, whole.rows[~own])
        field = FieldPosterior(others, maximise(others, z[~own], seed=seed).h, z[~own])
        told = MixedPosterior(field, posterior.designs) if isinstance(posterior, MixedPosterior) else field
        mean, variance[own] = told.moments(whole.rows[own])
        residual[own] = z[own] - mean
    return residual, variance
