"""How far the labels lie from what the others say of them, in standard deviations: what intervals are made of."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.stats import t as student

if TYPE_CHECKING:
    from graphmrf._typing import Floats

_FREEDOMS = (2.5, 200.0)
_PRIOR_LABELS = 10.0
_LARGEST = 5.0


@dataclass(frozen=True, eq=False)
class Calibration:
    """Standardised leave-one-out residuals of the labels, and the widths they ask for.

    Attributes
    ----------
    scores : array of shape (m,)
        Residual of each label given all others, over its standard deviation.

    Examples
    --------
    >>> calibration = Calibration(np.random.default_rng(0).standard_normal(500))
    >>> round(calibration.scale, 1), round(calibration.student(0.95), 1), round(calibration.conformal(0.95), 1)
    (1.0, 2.0, 2.0)
    """

    scores: Floats

    @cached_property
    def scale(self) -> float:
        """Factor for standard deviations: the root mean square of the scores, with ten scores of 1 added to them.

        Scores beyond 5 count as 5: a single label in a million times its deviation says nothing of other nodes.
        """
        scores = np.minimum(np.abs(self.scores), _LARGEST)
        return math.sqrt((float(scores @ scores) + _PRIOR_LABELS) / (scores.size + _PRIOR_LABELS))

    @cached_property
    def _tails(self) -> tuple[float, float]:
        """Degrees of freedom, no more than scores, and scale of the Student distribution that fits the scores best."""
        least, most = _FREEDOMS
        bounds = np.log([least, np.clip(self.scores.size, least + 0.5, most)])
        found = minimize_scalar(lambda f: self._misfit(float(np.exp(f)))[0], bounds=tuple(bounds), method="bounded")
        freedom = float(np.exp(found.x))
        return freedom, self._misfit(freedom)[1]

    def _misfit(self, freedom: float) -> tuple[float, float]:
        """Return the negative log likelihood of the scores at the best scale, and that scale."""
        squares = np.append(self.scores**2, np.ones(int(_PRIOR_LABELS)))
        scale2 = 1.0
        for _ in range(50):  # expectation-maximisation of the scale of a Student distribution
            scale2 = float(np.mean((freedom + 1.0) * squares / (freedom + squares / scale2)))
        scale = math.sqrt(scale2)
        return -float(student.logpdf(np.sqrt(squares), freedom, scale=scale).sum()), scale

    def student(self, level: float) -> float:
        """Return the half width of an interval, in standard deviations, from the Student distribution of the scores."""
        freedom, scale = self._tails
        return scale * float(student.ppf(0.5 + 0.5 * level, freedom))

    def conformal(self, level: float) -> float:
        r"""Return the half width that covers a further exchangeable score with at least the given probability.

        It is the :math:`\lceil (m + 1) \cdot level \rceil`-th smallest absolute score; infinite when m is too small.
        """
        rank = math.ceil((self.scores.size + 1) * level - 1e-9)
        ordered = np.sort(np.abs(self.scores))
        return float(ordered[rank - 1]) if 1 <= rank <= ordered.size else float("inf") if rank else 0.0
