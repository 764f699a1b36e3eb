"""From scores to decisions: the cut-off between two classes, and probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

if TYPE_CHECKING:
    from graphmrf._typing import Bools, Floats


@dataclass(frozen=True)
class Calibration:
    r"""Platt's sigmoid :math:`p = 1 / (1 + \exp(-(a s + b)))` of a score s."""

    slope: float
    offset: float

    @classmethod
    def fit(cls, scores: Floats, positive: Bools) -> Calibration:
        r"""Return the sigmoid of greatest likelihood, for scores of nodes that the regressor had not seen.

        Outcomes are :math:`(n_+ + 1) / (n_+ + 2)` and :math:`1 / (n_- + 2)` instead of 1 and 0, as Platt has them: so
        that classes which a score separates do not get probabilities 0 and 1.

        Examples
        --------
        >>> import numpy as np
        >>> calibration = Calibration.fit(np.array([0.1, 0.2, 0.8, 0.9]), np.array([False, False, True, True]))
        >>> calibration(np.array([0.5])).round(3)
        array([0.5])
        """
        centre, spread = float(scores.mean()), float(scores.std()) or 1.0
        n_positive = np.count_nonzero(positive)
        n_negative = positive.size - n_positive
        target = np.where(positive, (n_positive + 1) / (n_positive + 2), 1 / (n_negative + 2))
        twice = np.tile((scores - centre) / spread, 2)[:, None]
        outcomes = np.repeat([1, 0], scores.size)
        model = LogisticRegression(C=1e6, max_iter=1000)
        model.fit(twice, outcomes, sample_weight=np.concatenate([target, 1 - target]))
        slope = float(model.coef_[0, 0]) / spread
        return cls(slope, float(model.intercept_[0]) - slope * centre)

    def __call__(self, scores: Floats) -> Floats:
        """Return the probabilities."""
        return np.asarray(expit(self.slope * scores + self.offset))


def best_cutoff(scores: Floats, positive: Bools, metric: str) -> tuple[float, float]:
    """Return the cut-off whose classes ``scores >= cutoff`` have the best F1 or accuracy, and that value.

    All cut-offs are compared: midway between neighbouring scores, below the least and above the greatest. Of equals
    the one nearest to 0.5 wins.

    Examples
    --------
    >>> import numpy as np
    >>> best_cutoff(np.array([0.1, 0.4, 0.3, 0.9]), np.array([False, True, False, True]), "f1")
    (0.35, 1.0)
    """
    order = np.argsort(-scores, kind="stable")
    s, hits = scores[order], np.concatenate([[0], np.cumsum(positive[order])])
    named, n_positive = np.arange(scores.size + 1), np.count_nonzero(positive)
    if metric == "f1":
        values = 2.0 * hits / np.maximum(named + n_positive, 1)
    else:
        values = (2.0 * hits - named + positive.size - n_positive) / positive.size
    margin = 0.5 * max(float(s[0] - s[-1]), 1e-6)
    cutoffs = np.concatenate([[s[0] + margin], (s[:-1] + s[1:]) / 2, [s[-1] - margin]])
    possible = np.concatenate([[True], s[:-1] > s[1:], [True]])
    best = np.flatnonzero(possible & (values >= values[possible].max() - 1e-12))
    chosen = best[np.argmin(np.abs(cutoffs[best] - 0.5))]
    return float(cutoffs[chosen]), float(values[chosen])
