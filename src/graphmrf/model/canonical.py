r"""The coupled field of maximum likelihood, in closed form but for one number per channel.

Attributes can be recombined so that both :math:`A'A` and :math:`A'NA` become diagonal, to n and :math:`n m_j`. The
likelihood then does not change when a channel changes its sign, and as it has one maximum, that is diagonal too: every
channel is fitted by itself. With :math:`C_j = \lambda_j H_j` the best :math:`H_j` is :math:`1 / (1 + \lambda_j m_j)`,
and :math:`\lambda_j` is the root of

.. math:: \frac{\lambda m}{1 + \lambda m} = \frac{1}{n} \sum_i \frac{\lambda l_i}{1 + \lambda l_i},

or 0 where a channel is no smoother along the edges than white noise, :math:`m_j \ge \mathrm{tr} N / n`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import brentq

from graphmrf.model.newton import Point

if TYPE_CHECKING:
    from graphmrf.linalg.spectrum import Spectrum
    from graphmrf.model.likelihood import Statistics


def maximise_coupled(data: Statistics, states: Spectrum) -> Point:
    """Return the maximum over positive definite H and positive semidefinite C."""
    m, V = eigh(data.M1 / data.n, data.M0 / data.n)
    found = [_strength(float(roughness), states) for roughness in m]
    strength = np.array([value for value, _ in found])
    H = (V / (1.0 + strength * m)) @ V.T
    C = (V * (strength / (1.0 + strength * m))) @ V.T
    return Point((H + H.T) / 2, (C + C.T) / 2, sum(steps for _, steps in found))


def _strength(m: float, states: Spectrum) -> tuple[float, int]:
    """Return the strength of a channel of roughness `m`, and the number of evaluations it took."""
    x, w = states.nodes, states.weights / states.n_nodes

    def excess(strength: float) -> float:
        """The difference of the two sides, over a positive factor that would make it vanish at 0."""
        return float(w @ ((m - x) / (1.0 + strength * x)))

    if excess(0.0) >= 0:
        return 0.0, 0
    low, high = -1.0, 1.0
    while excess(np.exp(low)) >= 0:
        low -= 2.0 * (1.0 - low)
    while excess(np.exp(high)) <= 0:
        high += 2.0
    t, result = brentq(lambda t: excess(np.exp(t)), low, high, xtol=1e-14, full_output=True)
    return float(np.exp(t)), int(result.function_calls)
