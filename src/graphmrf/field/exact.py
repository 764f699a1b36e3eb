r"""The exact solver, by dense algebra on the labelled nodes: marginal likelihood, its maximum, and the posterior.

.. math:: -\log p(z) = \tfrac12 z'K^{-1}z + \tfrac12 \log\det K + \tfrac n2 \log 2\pi, \qquad
          \frac{\partial}{\partial K} = \tfrac12 (K^{-1} - aa'), \quad a = K^{-1} z

One factorisation serves the value and the whole gradient.
"""

from __future__ import annotations

import logging
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular

from graphmrf.errors import ConvergenceError
from graphmrf.field.correlations import Correlations
from graphmrf.field.covariance import Covariance, LinearComponent, OtherGraph
from graphmrf.field.hyperparameters import PAPER, Optimum, Space, family_wins, trust_region_newton
from graphmrf.field.posterior import Mixture, share_out
from graphmrf.kept import cached_property
from graphmrf.linalg import marginal_variance
from graphmrf.linalg.dense import Factor, array, one_blas_thread

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from graphmrf._typing import Bools, Floats, Ints
    from graphmrf.field.hyperparameters import Expansion, Hyperparameters
    from graphmrf.graph import Graph

_PROGRESS = logging.getLogger("graphmrf.progress")

REFITTED_UP_TO = 400
"""Labels up to which out-of-fold predictions refit the hyper-parameters, which remember the labels when these are few;
beyond they are kept. A refit of 400 labels takes seconds, of twice as many eight times as long."""

PART = 300
"""Labels on which a search begins when there are many more: near its end point at a fraction of the cost."""
_PARTS = {PART: 60, 1200: 40}
"""Labels of the parts on which it goes on, and the steps there; doubling them doubles that part of the time."""
_STEPS = (100, 40, 20)
"""Most steps on all labels, by the number of parts before: each costs a factorisation of all labels."""
_UNSHARED = 1500
"""Labels up to which BLAS gets one thread: more gain little, and lose much where cores are busy."""
_IMPOSSIBLE = 1e10
"""Value of a point whose covariance is singular; the line search steps back from anything as large."""
_LEAST_GAIN = (0.05, 1e-4)
"""Gain in log posterior below which a search ends, and the same for each label where that is more: models are compared
by differences of 1 and more, and predictions from many labels hardly feel that. Threefold, a search from its start ends
before it has found a function of 2 of 24 features."""
_NEAR_GAIN = 3e-4
"""The same for each label where fewer labels led near the optimum. The 9 tasks of U.S. counties take 108 evaluations on
all 932 labels, and end .1 lower than with a third of it, which takes 123; with nearly twice 98, and .3 lower."""
_CLEAR = 3.0
"""A gain on a part of the labels, in logarithms of their number, that settles it: the paper's model is dropped."""
_JOINT = 10_000
"""Nodes up to which joint draws are made of a factor of their covariance: 800 MB and half a minute. Doubled, eight
times as long; beyond, of polynomials of the graph."""
_AT_ONCE = 16
"""Columns that polynomials of the graph multiply at once; more leave the cache."""
_BLOCK = 1024
"""Nodes predicted at once: 25 MB of covariance with 3000 labels."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """The negative log posterior of the hyper-parameters given standardised labels `z`.

    With ``paper=True`` they are those of the paper's own model, in which features act through the field only and labels
    have no noise; its field has unit variance only where no label shows how unequal it is.
    """

    covariance: Covariance
    z: Floats
    paper: bool = False

    def part(self, places: Ints) -> Evidence:
        """Return the same for some of the labels."""
        return Evidence(self.covariance.part(places), self.z[places], self.paper)

    @cached_property
    def space(self) -> Space:
        """Where the hyper-parameters live."""
        components, p = self.covariance.components, self.covariance.design.p
        return Space(components, p, PAPER, self.covariance.unit_variance) if self.paper else self.covariance.space

    def __call__(self, theta: Floats) -> tuple[float, Floats]:
        """Return the negative log posterior, up to a constant, and its gradient."""
        value, derivatives = self.expanded(theta)
        return value, derivatives()[0]

    def expanded(self, theta: Floats) -> tuple[float, Expansion]:
        r"""Return the negative log posterior, up to a constant, and what computes gradient and average information.

        That is the mean of observed and expected information where K is linear in the coordinates (Gilmour, Thompson
        and Cullis, 1995), :math:`\tfrac12 a'K_i K^{-1} K_j a` with derivatives :math:`K_i`: no matrix product.
        """
        space, triangle = self.space, self.covariance.triangle
        K, vjp, jvp = self.covariance.among(space.read(theta))
        factor = Factor.of(triangle, K)
        if factor is None:  # the search steps back
            return _IMPOSSIBLE, lambda: (np.zeros(theta.size), np.zeros((theta.size,) * 2))
        a = factor.solve(self.z)
        penalty, slope, curvature = space.penalty(theta)
        value = 0.5 * (float(self.z @ a) + factor.log_determinant) + penalty
        if self.z.size > _UNSHARED:
            _PROGRESS.info("field: searching on %d labels, log posterior %.1f", self.z.size, -value)

        def derivatives() -> tuple[Floats, Floats]:
            U, G = space.stack(jvp(a)), factor.inverse(triangle)
            G -= triangle.outer(a)
            G *= 0.5
            return space.gather(vjp(G)) + slope, 0.5 * (U.T @ factor.solve(U)) + np.diag(curvature)

        return value, derivatives

    def log_evidence(self, theta: Floats) -> float:
        """Return the log marginal likelihood, without the prior."""
        return self.space.penalty(theta)[0] - self.expanded(theta)[0] - self._constant

    @property
    def _constant(self) -> float:
        return 0.5 * self.z.size * float(np.log(2.0 * np.pi))

    def climb(self, start: Floats, steps: int, *, each: float = _LEAST_GAIN[1]) -> Optimum:
        """Return the optimum found from a start in at most so many steps; they end where `each` label gains less."""
        _PROGRESS.info("field: searching hyper-parameters on %d labels", self.z.size)
        with one_blas_thread() if self.z.size <= _UNSHARED else nullcontext():
            theta, value, evaluations = trust_region_newton(
                self.expanded,
                start,
                self.space.bounds,
                steps=steps,
                least_gain=max(_LEAST_GAIN[0], each * self.z.size),
                softening=self.space.softening,
            )
        log_evidence = self.space.penalty(theta)[0] - value - self._constant
        return Optimum(theta, log_evidence, -value - self._constant, evaluations)

    def climb_on(self, theta: Floats, steps: int) -> Optimum:
        """Return the optimum from where fewer labels led, or from the start where that has lost a function."""
        end = self.climb(theta, steps, each=_NEAR_GAIN)
        if not self.space.has_lost(end.point):
            return end
        ends = [end, self.climb(self.space.start, steps)]
        best = max(ends, key=lambda end: end.log_posterior)
        return best._replace(evaluations=sum(end.evaluations for end in ends))


def maximise(
    covariance: Covariance, z: Floats, *, seed: int = 0, ends: tuple[Floats, Floats] | None = None
) -> tuple[Hyperparameters, Optimum]:
    """Return the hyper-parameters of maximum posterior density, and where the search ended.

    The whole family competes with the paper's own model (see `family_wins`), unless no label shows effects that tell
    the two apart. With many labels the search begins on a random part of them.

    Parameters
    ----------
    covariance : Covariance
        The covariance of the labelled nodes.
    z : array of shape (m,)
        Their outcomes, standardised.
    seed : int
        Seed of the part.
    ends : pair of array, optional
        `Optimum.ends` of a search on more labels, from which this one goes on.
    """
    whole, paper = Evidence(covariance, z), Evidence(covariance, z, paper=True)
    if covariance.unshown:
        found = _climb_parts(whole, seed)
        return whole.space.settled(found.point), found
    if ends is not None:
        found = whole.climb(ends[0], _STEPS[0])
        return _winner(whole, found, paper, paper.climb(ends[1], _STEPS[0]))
    parts = _parts(covariance, z, seed)
    steps = _STEPS[len(parts)]
    if not parts:
        found, plain = _compete(whole, paper, steps)
        return _winner(whole, found, paper, plain)
    small, labels = covariance.part(parts[0]), z[parts[0]]
    first, plain = _compete(Evidence(small, labels), Evidence(small, labels, paper=True), _PARTS[PART])
    settled = first.log_posterior - plain.log_posterior > _CLEAR * np.log(PART)
    theta = first.point
    for part in parts[1:]:
        theta = whole.part(part).climb_on(theta, _PARTS[part.size]).point
    found = whole.climb_on(theta, steps)
    if settled:
        return whole.space.settled(found.point), found._replace(ends=(found.point, plain.point))
    return _winner(whole, found, paper, paper.climb(plain.point, steps))


def climbed(covariance: Covariance, z: Floats, *, seed: int = 0) -> Hyperparameters:
    """Return the hyper-parameters of maximum posterior density of the family alone, part by part."""
    whole = Evidence(covariance, z)
    return whole.space.settled(_climb_parts(whole, seed).point)


def _climb_parts(whole: Evidence, seed: int) -> Optimum:
    """Return the optimum of the family, from where ever larger parts of the labels led."""
    theta = whole.space.start
    for part in _parts(whole.covariance, whole.z, seed):
        theta = whole.part(part).climb_on(theta, _STEPS[0]).point
    return whole.climb_on(theta, _STEPS[0])


def _parts(covariance: Covariance, z: Floats, seed: int) -> list[Ints]:
    """Return the places of random parts of the labels on which a search begins; none where labels are few."""
    sizes = [size for size in _PARTS if 3 * z.size > 4 * size]
    order = covariance.design.order_of_labels(covariance.rows, z) if sizes else np.arange(z.size)
    return [order[subset(z.size, size, seed)] for size in sizes]


def _compete(whole: Evidence, paper: Evidence, steps: int) -> tuple[Optimum, Optimum]:
    """Return the best point of the family, from its start and from the paper's model, and that of the paper's model."""
    plain = paper.climb(paper.space.start, steps)
    grown = whole.space.grown(paper.space.read(plain.point), PAPER)
    ends = [whole.climb(start, steps) for start in (whole.space.start, grown)]
    return max(ends, key=lambda end: end.log_posterior), plain


def _winner(whole: Evidence, found: Optimum, paper: Evidence, plain: Optimum) -> tuple[Hyperparameters, Optimum]:
    ends = found.point, plain.point
    if family_wins(found.log_posterior, plain.log_posterior, whole.z.size):
        return whole.space.settled(found.point), found._replace(ends=ends)
    return paper.space.read(plain.point), plain._replace(ends=ends)


def subset(count: int, size: int, seed: int) -> Ints:
    """Return the places of a random part of the labels, in order; a smaller part is contained in a larger one."""
    return np.sort(np.random.default_rng(seed).permutation(count)[:size])


@dataclass(frozen=True, eq=False)
class ExactPosterior:
    """The outcome of all nodes given standardised labels, exactly; see `Posterior`.

    Attributes
    ----------
    covariance : Covariance
        The covariance of the labelled nodes.
    h : Hyperparameters
        The hyper-parameters.
    z : array of shape (m,)
        The standardised labels.
    offset : array of shape (n,), optional
        Effects of smoothed features that are known beforehand: the prior mean of all nodes.
    beta : array of shape (p,), optional
        Their coefficients, of the standardised smoothed features.
    ends : pair of array, optional
        `Optimum.ends` of the search for `h`: searches without some of the labels go on from there.
    """

    covariance: Covariance
    h: Hyperparameters
    z: Floats
    offset: Floats | None = None
    beta: Floats | None = None
    ends: tuple[Floats, Floats] | None = None

    refitted_up_to: ClassVar[int] = REFITTED_UP_TO

    @cached_property
    def factor(self) -> Factor:
        """Factor of the covariance of the labels."""
        factor = Factor.of(self.covariance.triangle, self.covariance.among(self.h)[0])
        if factor is None:
            raise ConvergenceError("the covariance of the labels is singular; check for columns of extreme values")
        return factor

    @cached_property
    def dual(self) -> Floats:
        """The labels times the inverse of their covariance."""
        return self.factor.solve(self.z - self._mean(self.covariance.rows))

    def _mean(self, nodes: Ints) -> Floats:
        return np.zeros(nodes.size) if self.offset is None else self.offset[nodes]

    @property
    def log_likelihood(self) -> float:
        """Log density of the standardised labels."""
        misfit = float(self.dual @ (self.z - self._mean(self.covariance.rows)))
        return -0.5 * (misfit + self.factor.log_determinant + self.z.size * float(np.log(2.0 * np.pi)))

    @property
    def noise(self) -> float:
        """Variance of the independent noise of a node."""
        return float(self.h["noise"])

    @property
    def central(self) -> ExactPosterior:
        """Itself."""
        return self

    def moments(self, nodes: Ints) -> tuple[Floats, Floats]:
        """Return mean and variance of the outcome of unlabelled nodes, noise included."""
        parts = [self._moments(block) for block in blocks(nodes)]
        means, variances = zip(*parts, strict=True) if parts else ((), ())
        return np.concatenate([np.zeros(0), *means]), np.concatenate([np.zeros(0), *variances])

    def mixture(self, nodes: Ints) -> Mixture:
        """Return the distribution of the outcome of every node, a normal one."""
        return Mixture.of([self.moments(nodes)])

    def _moments(self, nodes: Ints) -> tuple[Floats, Floats]:
        mean, variance = self._known(self._across(nodes), self.covariance.variances(self.h, nodes))
        return self._mean(nodes) + mean, variance

    def _across(self, nodes: Ints) -> Floats:
        blocks = self.covariance.across(self.h, nodes).values()
        constant = self.covariance.triangle.place(np.full((nodes.size, 1), self.h["constant"]))
        return array(sum(blocks, start=constant + np.zeros((1, self.covariance.rows.size))))

    def _prior(self, others: Ints) -> Callable[[Ints], Floats]:
        """Return what gives the covariance between any nodes and others before the labels, noise left out."""
        whole = self.covariance
        there = Covariance(whole.design, Correlations(whole.eigen, others), whole.components)

        def between(nodes: Ints) -> Floats:
            blocks = there.across(self.h, nodes).values()
            return np.full((nodes.size, others.size), self.h["constant"]) + sum(blocks)

        return between

    def draw(self, nodes: Ints, count: int, rng: np.random.Generator) -> Floats:
        """Return joint draws of the outcomes of unlabelled nodes, noise included, shape (count, len(nodes)).

        Of many nodes they are draws from before the labels, set right by what these say (Matheron's rule).
        """
        if nodes.size > _JOINT:
            return self._set_right(nodes, self._prior_draw(count, rng), rng)
        prior, across = self._prior(nodes)(nodes), self._across(nodes)
        whitened = self.factor.whiten(across.T)
        spread = np.asarray(prior - whitened.T @ whitened)
        spread[np.diag_indices_from(spread)] += self.h["noise"]
        E = rng.standard_normal((count, nodes.size))
        return np.asarray(self._mean(nodes) + across @ self.dual + E @ cholesky(spread, check_finite=False))

    def _set_right(self, nodes: Ints, draws: Floats, rng: np.random.Generator) -> Floats:
        """Return draws (n, count) from before the labels as draws given these, at some nodes, with noise."""
        field, count = self.covariance, draws.shape[1]
        s = self.h["noise"] ** 0.5
        said = draws[field.rows] + s * np.sqrt(self.h.get("ratios", 1.0) * np.ones(self.z.size))[:, None] * (
            rng.standard_normal((self.z.size, count))
        )
        wrong = self.factor.solve((self.z - self._mean(field.rows))[:, None] - said)
        moved = np.concatenate([self._across(block) @ wrong for block in blocks(nodes)])
        noise = s * rng.standard_normal((nodes.size, count))
        return np.asarray((self._mean(nodes)[:, None] + draws[nodes] + moved + noise).T)

    def _prior_draw(self, count: int, rng: np.random.Generator) -> Floats:
        """Return draws of all nodes from before the labels, noise left out, shape (n, count)."""
        eigen, (factors, left) = self.covariance.eigen, self.covariance.factors(self.h)
        total = np.sqrt(self.h["constant"]) * rng.standard_normal(count) + np.sqrt(left)[:, None] * (
            rng.standard_normal((left.size, count))
        )
        for columns, at in factors:
            if at is None:
                total += columns @ rng.standard_normal((columns.shape[1], count))
                continue
            root = np.sqrt(eigen.matern(*at))[:, None]
            for some in _together(columns, count):
                fields = eigen.apply(root, rng.standard_normal((left.size, some.shape[1] * count)))[0]
                total += np.einsum("ns,nsk->nk", some, fields.reshape(left.size, -1, count))
        return np.asarray(total)

    def _prior_times(self, Z: Floats) -> Floats:
        """Return the covariance of all nodes before the labels, noise left out, times columns (n, k)."""
        eigen, (factors, left) = self.covariance.eigen, self.covariance.factors(self.h)
        total = self.h["constant"] * Z.sum(axis=0) + left[:, None] * Z
        for columns, at in factors:
            if at is None:
                total += columns @ (columns.T @ Z)
                continue
            spectrum = eigen.matern(*at)[:, None]
            for some in _together(columns, Z.shape[1]):
                scaled = (some[:, :, None] * Z[:, None]).reshape(left.size, -1)
                image = eigen.apply(spectrum, scaled)[0].reshape(left.size, *some.shape[1:], -1)
                total += np.einsum("ns,nsk->nk", some, image)
        return np.asarray(total)

    def times_covariance(self, nodes: Ints, Z: Floats) -> Floats:
        """Return the joint covariance of unlabelled nodes, noise left out, times columns `Z` (len(nodes), k)."""
        used, across = Z.any(axis=1), self._across(nodes)  # a few unit columns need no more of the matrix
        if np.count_nonzero(used) > _JOINT:
            spread = np.zeros((len(self.covariance.design.Z), Z.shape[1]))
            spread[nodes] = Z
            before = self._prior_times(spread)[nodes]
        else:
            prior = self._prior(nodes[used])
            before = np.concatenate([np.zeros((0, Z.shape[1])), *(prior(block) @ Z[used] for block in blocks(nodes))])
        return np.asarray(before - across @ self.factor.solve(across.T @ Z))

    def variances_given(self, rows: Ints, nodes: Ints) -> Floats:
        """Return the variance of nodes, noise included, were the labels those of other nodes `rows`."""
        prior = self._prior(rows)
        among = prior(rows)
        among[np.diag_indices_from(among)] += self.h["noise"]
        R, found = cholesky(among, check_finite=False), [np.zeros(0)]
        for block in blocks(nodes):
            whitened = solve_triangular(R, prior(block).T, trans="T", check_finite=False)
            variance = self.covariance.variances(self.h, block) - np.einsum("ij,ij->j", whitened, whitened)
            found.append(np.maximum(variance, self.h["noise"]))
        return np.concatenate(found)

    @cached_property
    def _inverse(self) -> Floats:
        return self.factor.inverse(self.covariance.triangle)

    @cached_property
    def left_out(self) -> tuple[Floats, Floats]:
        r"""Residual and variance of every label given the others: :math:`a_i / P_{ii}` and :math:`1 / P_{ii}`."""
        precision = np.asarray(self._inverse[self.covariance.triangle.diagonal])
        return self.dual / precision, 1.0 / precision

    def without(self, own: Bools) -> tuple[Floats, Floats]:
        r"""Return mean :math:`z_B - P_{BB}^{-1} (P z)_B` and variance of some labels given the others."""
        spread = self._spread(own)
        return self.z[own] - spread @ self.dual[own], np.diag(spread)

    def _spread(self, own: Bools) -> Floats:
        """Return the joint covariance of some labels given the others, noise included."""
        triangle, places = self.covariance.triangle, np.flatnonzero(own)
        return np.asarray(np.linalg.inv(self._inverse[triangle.places(places[:, None], places)]))

    def held_out(self, own: Bools) -> tuple[Floats, Floats]:
        """Return residuals and joint covariance, noise included, of some labels given the others."""
        spread = self._spread(own)
        return spread @ self.dual[own], spread

    def log_density(self, own: Bools) -> float:
        """Return the log density of some labels given the others."""
        P = np.linalg.inv(self._spread(own))
        misfit = float(self.dual[own] @ np.linalg.solve(P, self.dual[own]))
        return 0.5 * (float(np.linalg.slogdet(P)[1]) - misfit - np.count_nonzero(own) * float(np.log(2.0 * np.pi)))

    def refitted(self, own: Bools, z: Floats, seed: int) -> tuple[Floats, Floats]:
        """Return mean and variance of some labels by a field fitted to the others, whose values are `z`."""
        return self.fitted_without(own, z, seed).moments(self.covariance.rows[own])

    def fitted_without(self, own: Bools, z: Floats, seed: int) -> ExactPosterior:
        """Return the field with hyper-parameters of the other labels alone."""
        others = self.covariance.part(~own)
        return ExactPosterior(others, maximise(others, z, seed=seed, ends=self.ends)[0], z)

    def elsewhere(self, graph: Graph, X: Floats) -> tuple[Floats, Floats]:
        """Return mean and variance of the outcome of all nodes of another graph, of which only features are known."""
        field, nodes = self.covariance, np.arange(graph.n_nodes)
        there = OtherGraph(graph, field.design.elsewhere(graph, X))
        known = [self._known(*field.elsewhere(self.h, there, block)) for block in blocks(nodes)]
        means, variances = zip(*known, strict=True) if known else ((), ())
        mean, variance = (np.concatenate([np.zeros(0), *found]) for found in (means, variances))
        if self.offset is None or self.beta is None:
            return mean, variance
        more, spread = self._smoothed_elsewhere(there)
        return mean + self.origin + more, variance + spread

    def _smoothed_elsewhere(self, there: OtherGraph) -> tuple[Floats, Floats]:
        r"""Return effects of smoothed features that are known beforehand, and their variance, for another graph.

        An effect `e` of variance `v` counts :math:`e^2 / (e^2 + v)` of it, its mean where effects of its size are
        expected: the level of features, which smoothing spares, is one number of every graph, and may multiply
        coefficients that the labels hardly told.
        """
        assert self.beta is not None
        field, omega, nu = self.covariance, self.h["omega"], self.h["nu"]
        columns = np.vstack([self._uncentred, np.eye(field.design.p)]) / field.eigen.mean(omega, nu)
        smoothed = there.smoothed(omega, nu) @ columns
        effect, variance = smoothed @ self.beta, np.einsum("ij,jk,ik->i", smoothed, self._beta_covariance, smoothed)
        size = np.maximum(effect**2 + variance, np.finfo(np.float64).tiny)
        return effect**3 / size, variance

    def _known(self, across: Floats, prior: Floats) -> tuple[Floats, Floats]:
        """Return mean and variance of outcomes from their covariance with the labels and their prior variance."""
        whitened = self.factor.whiten(across.T)
        variance = prior - np.asarray(np.einsum("ij,ij->j", whitened, whitened))
        return np.asarray(across @ self.dual), np.maximum(variance, self.h["noise"])

    @cached_property
    def origin(self) -> float:
        """What is expected of an outcome of which nothing is known: 0, or as the paper's own model has it."""
        if self.offset is None or self.beta is None:
            return 0.0
        return float(np.mean(self._mean(self.covariance.rows) - self._smoothed @ self.beta))

    def relative_variance(self, graph: Graph | None = None) -> Floats:
        """Return the prior variance of the graph field at all nodes, over its mean at the labelled ones."""
        field, omega, nu = self.covariance, self.h["omega"], self.h["nu"]
        if self.h["unit_variance"]:
            return np.ones(len(field.design.Z) if graph is None else graph.n_nodes)
        here = field.eigen.variances(omega, nu)
        there = here if graph is None else marginal_variance(graph, omega / (1.0 + omega)) / field.eigen.mean(omega, nu)
        return np.asarray(there / here[field.rows].mean())

    @property
    def _uncentred(self) -> Floats:
        """Means of the features, which the paper's own model does not subtract, in their standard deviations."""
        return np.asarray(self.covariance.design.means / self.covariance.design.scales[0])

    @cached_property
    def _smoothed(self) -> Floats:
        """The smoothed features of the labelled nodes, not centred, of which `beta` are the coefficients."""
        field, omega, nu = self.covariance, self.h["omega"], self.h["nu"]
        ones, spectrum = np.ones((len(field.design.Z), 1)), field.eigen.matern(omega, nu)
        one = field.eigen.apply(spectrum[:, None], ones, field.rows)[0]
        return np.asarray(field.smoothings.among(omega, nu) + one * self._uncentred)

    @cached_property
    def _beta_covariance(self) -> Floats:
        """Covariance of the errors of `beta`, as if the labels alone had told them."""
        return np.asarray(np.linalg.pinv(self._smoothed.T @ self.factor.solve(self._smoothed), hermitian=True))

    def by_features(self, own: Bools) -> tuple[Floats, Floats]:
        r"""Return mean and variance of some labels by their features alone, of whose effects the other labels tell.

        With the covariance `F` that features make, and weights :math:`W = K_{AA}^{-1} F_{AB}` of the other labels `A`,
        the error of :math:`W'z_A` has variance :math:`K_{BB} - 2 K_{BA} W + F_{BA} W`. On another graph nothing but
        features is in common, and :math:`K_{BA}` is F; here neighbouring regions err alike, and therefore less.
        """
        K, features, prior = self._feature_part
        factor = cholesky(K[np.ix_(~own, ~own)], check_finite=False)
        W = cho_solve((factor, False), features[np.ix_(~own, own)], check_finite=False)
        less = 2.0 * K[np.ix_(~own, own)] - features[np.ix_(~own, own)]
        before = self._mean(self.covariance.rows)
        mean = before[own] + W.T @ (self.z - before)[~own]
        return mean, np.maximum(prior[own] - np.einsum("ij,ij->j", less, W), self.h["noise"])

    @cached_property
    def _feature_part(self) -> tuple[Floats, Floats, Floats]:
        """The covariance of the labels, that part of it which features alone make, and their prior variances.

        Effects that are known beforehand have a unit-information prior here: the labels tell them again.
        """
        field, carried = self.covariance, {c.name for c in self.covariance.components if c.transfers}
        blocks = field.across(self.h, field.rows)
        features = sum(
            [blocks[name] for name in blocks if name in carried], np.full((self.z.size,) * 2, self.h["constant"])
        )
        known = np.zeros_like(features)
        if self.offset is not None:
            known = self.z.size * self._smoothed @ self._beta_covariance @ self._smoothed.T
        K, prior = field.triangle.square(field.among(self.h)[0]), field.variances(self.h, field.rows)
        prior = prior if field.imputed is None else prior + field.imputed
        return K + known, np.asarray(features + known), prior + np.diag(known)

    @cached_property
    def shares(self) -> dict[str, float]:
        """The part of the variance of the labels that every component predicts, each label from the others."""
        residual, rows = self.left_out[0], self.covariance.rows
        inverse = self.covariance.triangle.square(self._inverse)
        names = [component.name for component in self.covariance.components if component.name != "noise"]
        said: dict[str, Floats] = dict.fromkeys(names, np.zeros(rows.size))
        for name, block in self.covariance.across(self.h, rows).items():
            said[name] = np.asarray(block @ self.dual - np.einsum("ij,ij->i", block, inverse) * residual)
        if self.offset is not None:
            said["smoothed"] = self.offset[rows]
        return share_out(self.z, residual, said, itself=self._itself)

    @property
    def _itself(self) -> Floats:
        """What smoothed features say of the labels that comes from the nodes' own."""
        field, rows = self.covariance, self.covariance.rows
        if "smoothed" not in self._linear:
            return np.zeros(rows.size)
        spectrum = field.eigen.matern(self.h["omega"], self.h["nu"])
        diagonal = field.correlations.diagonals @ (spectrum @ field.eigen.basis)
        own, coefficients = diagonal[:, None] * field.design.groups[0][rows], self._linear["smoothed"][0]
        return np.asarray(field.with_isolated(self.h, field.design, rows, own[None])[0] @ coefficients)

    @cached_property
    def _linear(self) -> dict[str, tuple[Floats, Floats]]:
        """Mean and standard deviation of the coefficients of the standardised columns of linear components."""
        field, found = self.covariance, {}
        for c in field.components if field.design.p else ():
            if isinstance(c, LinearComponent):
                F = c.labelled(field, self.h)[0]
                found[c.name] = self._coefficients(F, self.h[c.name] * c.weight(F.shape[1]))
        if self.beta is not None:
            smooth = field.smoothings.among(self.h["omega"], self.h["nu"])
            # as if the labels alone had told them
            found["smoothed"] = self.beta, np.sqrt(np.diag(np.linalg.inv(smooth.T @ self.factor.solve(smooth))))
        return found

    def own_effects(self, returning: float) -> Floats:
        r"""Return the mean change (p,) of a node's expected outcome per unit of its own feature, by all effects.

        That is the coefficient of own features; of those of second neighbours times the mean diagonal of :math:`S^2`,
        and of smoothed ones times that of :math:`(I + \omega N)^{-\nu}`; and the mean slope, over the labelled nodes,
        of the nonlinear and local functions :math:`f(x) = \sum_i k(x, x_i) a_i`.
        """
        field, found = self.covariance, self.coefficients
        smoothed = field.eigen.mean(self.h["omega"], self.h["nu"])
        shares = {"own": 1.0, "second neighbours": returning, "smoothed": smoothed}
        linear = [share * found[title][0] for title, share in shares.items() if title in found]
        return np.asarray(np.sum([self._slopes(), *linear], axis=0))

    def _slopes(self) -> Floats:
        """Mean slope of the functions of features in a node's own, per unit, over the labelled nodes."""
        field, p = self.covariance, self.covariance.design.p
        lengths = {"nonlinear": self.h["lengths"][:p], "local": np.full(p, self.h["local_length"])}
        Z, slopes = field.design.groups[0][field.rows], np.zeros(p)
        blocks = field.across(self.h, field.rows) if p else {}
        for name, length in lengths.items():
            if name in blocks:
                pulled = blocks[name] @ (self.dual[:, None] * Z) - (blocks[name] @ self.dual)[:, None] * Z
                slopes += pulled.mean(axis=0) / length**2
        return np.asarray(slopes / field.design.scales[0])

    def _coefficients(self, F: Floats, variance: float) -> tuple[Floats, Floats]:
        known = np.einsum("ij,ij->j", F, self.factor.solve(F))
        return variance * (F.T @ self.dual), np.sqrt(np.maximum(variance - variance**2 * known, 0.0))

    @cached_property
    def coefficients(self) -> dict[str, tuple[Floats, Floats]]:
        """Mean and standard deviation of linear coefficients per unit of the feature, by the effect's title."""
        found: dict[str, tuple[Floats, Floats]] = {}
        for c in self.covariance.components:
            scales = c.scales(self.covariance, self.h) if isinstance(c, LinearComponent) else None
            if isinstance(c, LinearComponent) and scales is not None:
                mean, std = self._linear.get(c.name, (np.zeros(0), np.zeros(0)))
                found[c.title] = mean / scales, std / scales
        return found


def _together(columns: Floats, count: int) -> Iterator[Floats]:
    """Yield some columns at a time, so many that their products with `count` others are multiplied at once."""
    step = max(_AT_ONCE // count, 1)
    for first in range(0, columns.shape[1], step):
        yield columns[:, first : first + step]


def blocks(nodes: Ints) -> Iterator[Ints]:
    """Yield the nodes in blocks whose covariances fit in memory."""
    for first in range(0, nodes.size, _BLOCK):
        yield nodes[first : first + _BLOCK]
