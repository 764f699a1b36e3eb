r"""What a fit is judged by: effects with errors, intervals of hyper-parameters, WAIC, leave-one-out, Moran's I.

- Expected log predictive density by leaving one out: :math:`\sum_i \log \int p(y_i \mid v) p(v \mid y_{-i}) dv`, with
  the posterior without observation `i` in closed form at every value of the hyper-parameters.
- The same by importance sampling from draws of the posterior given all observations, the largest weights smoothed
  (PSIS; Vehtari, Simpson, Gelman, Yao and Gabry, 2024), which other programs report, with its diagnostic `k`.
- WAIC (Watanabe, 2010) from the same draws.
- Log evidence: hyper-parameters are integrated by Laplace's approximation around their mode.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse
from scipy.linalg import solve_triangular
from scipy.special import logsumexp

from graphmrf.caching import cached_property
from graphmrf.field.reading import Numbers, Observed
from graphmrf.field.space import NOISE
from graphmrf.field.terms import TERMS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from graphmrf._typing import Floats, Ints
    from graphmrf.field.outcome import FieldOutcome
    from graphmrf.field.posterior import Posterior
    from graphmrf.graph import Graph

_DRAWS = 1000  # draws of the posterior and of permutations: errors of some percent
_NODES = 400  # nodes over which linear effects are averaged


@dataclass(frozen=True, eq=False)
class Criteria:
    """Quantities by which a fitted field is judged."""

    outcome: FieldOutcome

    @cached_property
    def log_evidence(self) -> float:
        """Log density of the observations in their own units, hyper-parameters integrated out."""
        mode = self.outcome.fitted.mode
        return -mode.value - 0.5 * float(np.linalg.slogdet(mode.curvature)[1]) + self._change

    @property
    def _change(self) -> float:
        """Log density of numbers in their own units over that of standardised ones; 0 where they are all equal."""
        reading = self.outcome.reading
        return reading.scale.log_jacobian if isinstance(reading, Numbers) and not reading.scale.is_constant else 0.0

    @cached_property
    def hyperparameters(self) -> dict[str, Floats]:
        """Mode and ends of 95 % intervals of every hyper-parameter that was searched, shape (k, 3)."""
        mode, space = self.outcome.fitted.mode, self.outcome.fitted.field.space
        normal = np.random.default_rng(self.outcome.options.seed).standard_normal((mode.x.size, _DRAWS))
        factor = np.linalg.cholesky(mode.curvature)
        points = mode.x + solve_triangular(factor, normal, lower=True, trans="T").T
        drawn = [space.read(x) for x in points]
        central = space.read(mode.x)
        found: dict[str, Floats] = {}
        for name in dict.fromkeys(space.names):
            values = np.array([np.atleast_1d(h[name]) for h in drawn])
            found[name] = np.column_stack([np.atleast_1d(central[name]), *np.quantile(values, [0.025, 0.975], axis=0)])
        if "field" in central and NOISE in space.names:
            shares = np.array([h["field"] / (h["field"] + h[NOISE]) for h in drawn])
            share = central["field"] / (central["field"] + central[NOISE])
            found["phi"] = np.array([[share, *np.quantile(shares, [0.025, 0.975])]])
        return found

    @cached_property
    def effects(self) -> Floats:
        """Linear effects of own features per unit, and their standard errors, shape (p, 2); NaN of constant features.

        Slopes of all effects of features in a least-squares fit on own and neighbours' features.
        """
        outcome, design = self.outcome, self.outcome.fitted.field.design
        found = np.full((outcome.X.shape[1], 2), np.nan)
        if not design.p:
            return found
        n = outcome.y.size
        rng = np.random.default_rng(outcome.options.seed)
        nodes = np.sort(rng.permutation(n)[: max(_NODES, 6 * design.p)])
        names = [name for name in outcome.options.terms if TERMS[name].needs_features]
        slope = np.linalg.pinv(np.column_stack([design.both[nodes], np.ones(nodes.size)]))[: design.p]
        members, weights, varies = outcome.posterior.members, outcome.posterior.weights, design.scale.varies
        parts = [each.parts(nodes) for each in members]
        means = np.array([sum((slope @ part[name] for name in names if name in part), start=0.0) for part in parts])
        variances = np.array(
            [np.sum(slope.T * each.covariance_times(nodes, slope.T, names), axis=0) for each in members]
        )
        mean = weights @ means
        variance = weights @ (variances + (means - mean) ** 2)
        unit = outcome.reading.unit / (design.scale.unit * design.scale.std)[varies]
        found[varies] = np.column_stack([mean * unit, np.sqrt(np.maximum(variance, 0.0)) * unit])
        return found

    @cached_property
    def _log_likelihoods(self) -> Floats:
        """Log density of the observations of every labelled node at draws of the posterior, (draws, m)."""
        outcome, rng = self.outcome, np.random.default_rng(self.outcome.options.seed)
        posterior, reading = outcome.posterior, outcome.reading
        if isinstance(reading, Observed):
            values, members = posterior.draw_values(outcome.rows, _DRAWS, rng)
            return np.array(
                [_densities(outcome, v, posterior.members[k].h) for v, k in zip(values, members, strict=True)]
            )
        counts = rng.multinomial(_DRAWS, posterior.weights).tolist()
        pairs = zip(posterior.members, counts, strict=True)
        logs = [self._of_numbers(each, each.draw(outcome.rows, count, rng)) for each, count in pairs if count]
        return np.concatenate(logs) + self._change / outcome.rows.size

    def _of_numbers(self, member: Posterior, field: Floats) -> Floats:
        """Return the log density of numbers at draws (k, m) of the field."""
        given = member.field.normal
        shares, ratios = self.outcome.posterior.likelihood.components
        noise = member.h[NOISE]
        variances = [given.variance(noise)] if len(ratios) == 1 else noise * ratios[:, None]
        logs = [-0.5 * ((given.z - field) ** 2 / v + np.log(2.0 * np.pi * v)) for v in variances]
        return np.asarray(logsumexp(logs, axis=0, b=shares[:, None, None]))

    @cached_property
    def waic(self) -> tuple[float, float, float]:
        """Expected log predictive density by WAIC, its standard error, and the effective number of parameters."""
        logs = self._log_likelihoods
        spread = logs.var(axis=0, ddof=1)
        each = logsumexp(logs, axis=0) - np.log(len(logs)) - spread
        return float(each.sum()), float(each.std() * np.sqrt(each.size)), float(spread.sum())

    @cached_property
    def psis(self) -> tuple[float, float, Floats]:
        """Expected log predictive density by smoothed importance sampling, its standard error, and `k` of every node.

        Where `k` exceeds .7 the node's observation moves the posterior too far for its draws to be reweighted.
        """
        found = [smoothed_density(logs) for logs in self._log_likelihoods.T]
        each, k = np.array(found).T
        return float(each.sum()), float(each.std() * np.sqrt(each.size)), k

    @cached_property
    def leave_one_out(self) -> tuple[float, float]:
        """Expected log predictive density by leaving one labelled node out, and its standard error."""
        outcome, posterior, reading = self.outcome, self.outcome.posterior, self.outcome.reading
        if isinstance(reading, Observed):
            mixture = posterior.values_without_own()
            hs = [member.h for member in posterior.members]
            link = reading.link

            def density(k: int, eta: Floats) -> Floats:
                return np.array([np.exp(_densities(outcome, (each - link.origin) / link.unit, hs[k])) for each in eta])

            each = np.log(np.maximum(link.expectation(mixture, density), 1e-300))
        else:
            given = outcome.fitted.field.normal
            each = posterior.leave_one_out().log_density(given.z) + self._change / given.z.size
        return float(each.sum()), float(each.std() * np.sqrt(each.size))

    @cached_property
    def moran(self) -> tuple[float, float]:
        """Moran's I of standardised leave-one-out residuals, and its two-sided p-value from permutations."""
        mean, std = self.outcome.leave_one_out
        rows = self.outcome.rows
        residuals = (self.outcome.y[rows] - mean) / np.where(std > 0, std, 1.0)
        return morans_i(self.outcome.graph, rows, residuals, seed=self.outcome.options.seed)


def _densities(outcome: FieldOutcome, v: Floats, h: Mapping[str, object]) -> Floats:
    """Return the log density of all rows of every labelled node at latent values."""
    return outcome.fitted.field.observations.expand(v, h).log_density  # type: ignore[union-attr]  # responses


def smoothed_density(logs: Floats) -> tuple[float, float]:
    """Return the log density of an observation left out, and `k`, from its log densities at draws given all.

    Weights are the inverse densities; those of the tail become quantiles of the Pareto distribution fitted to them.
    """
    weights, count = -logs - (-logs).max(), logs.size
    size = min(count // 5, int(3.0 * np.sqrt(count)))
    order = np.argsort(weights)
    tail, below = order[-size:], weights[order[-size - 1]]
    excess = np.exp(weights[tail]) - np.exp(below)
    if not excess[0] > 0:
        return float(-logsumexp(-logs) + np.log(count)), 0.0
    k, scale = fit_pareto(excess)
    level = (np.arange(size) + 0.5) / size
    quantiles = np.expm1(-k * np.log1p(-level)) / k if k else -np.log1p(-level)
    weights[tail] = np.minimum(np.log(np.exp(below) + scale * quantiles), 0.0)
    return float(logsumexp(weights + logs) - logsumexp(weights)), k


def fit_pareto(values: Floats) -> tuple[float, float]:
    """Return shape `k` and scale of a generalised Pareto distribution from its sorted values (Zhang, Stephens, 2009).

    The posterior mean under a weak prior; the shape is drawn to .5 with the weight of ten values.

    Examples
    --------
    >>> level = (np.arange(1000) + 0.5) / 1000
    >>> [round(each, 2) for each in fit_pareto(3.0 * np.expm1(-0.4 * np.log1p(-level)) / 0.4)]
    [0.4, 3.0]
    """
    n = values.size
    points = np.arange(1, 31 + int(np.sqrt(n))) - 0.5
    b = 1.0 / values[-1] + (1.0 - np.sqrt(points.size / points)) / (3.0 * values[max(n // 4 - 1, 0)])
    k = np.log1p(-b[:, None] * values).mean(axis=1)
    logs = n * (np.log(-b / k) - k - 1.0)
    best = float(np.exp(logs - logsumexp(logs)) @ b)
    shape = float(np.log1p(-best * values).mean())
    return (n * shape + 5.0) / (n + 10.0), -shape / best


def morans_i(graph: Graph, nodes: Ints, values: Floats, *, seed: int = 0) -> tuple[float, float]:
    r"""Return Moran's I of values at some nodes, over the edges among them, and its p-value from permutations.

    .. math:: I = \frac{m}{\sum_{ij} W_{ij}} \frac{\sum_{ij} W_{ij} r_i r_j}{\sum_i r_i^2}

    with `r` the values about their mean; NaN where no edge connects two of the nodes, or all values are equal.

    Examples
    --------
    >>> from graphmrf.graph import Graph
    >>> ring = Graph.from_edges(np.arange(30), (np.arange(30) + 1) % 30)
    >>> statistic, p = morans_i(ring, np.arange(30), np.sin(np.arange(30) / 5.0))
    >>> round(statistic, 2), p < 0.01
    (0.98, True)
    """
    W = sparse.csr_array(graph.adjacency)[nodes][:, nodes]
    r = values - values.mean()
    scale = W.sum() * float(r @ r) / r.size
    if not scale > 0:
        return float("nan"), float("nan")
    rng = np.random.default_rng(seed)
    shuffled = np.array([rng.permutation(r) for _ in range(_DRAWS)]).T
    found, chance = float(r @ (W @ r)) / scale, np.einsum("ij,ij->j", shuffled, W @ shuffled) / scale
    centre = chance.mean()
    extreme = np.count_nonzero(np.abs(chance - centre) >= abs(found - centre))
    return float(found), float((extreme + 1.0) / (_DRAWS + 1.0))
