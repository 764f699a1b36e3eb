r"""The sparse solver: smoothness and strength of the field by expectation and maximisation, and the posterior.

Given the coefficients, the labels less their effects are a graph field with noise, and :math:`(\omega, \rho)` maximise

.. math:: -\tfrac m2 \log \hat s - \tfrac12 \log\det C, \qquad
          \hat s = \tfrac1m\, \mathrm E\,(z - F\beta)'C^{-1}(z - F\beta),

the expectation over a few posterior draws of the coefficients: some columns, whatever the number of coefficients. The
variances of the coefficients follow exactly (see `fit_variances`); the two steps alternate until nothing moves.
"""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.optimize import minimize

from graphmrf.field.components.features import FeatureGroup
from graphmrf.field.components.kernels import OMEGA, typical_distance
from graphmrf.field.covariance import Covariance, OtherGraph, unequal_variance_unseen
from graphmrf.field.design import Design
from graphmrf.field.exact import climbed, subset
from graphmrf.field.hyperparameters import Hyperparameters, Optimum, Parameter, family_wins
from graphmrf.field.matern import Eigen
from graphmrf.field.paper_model import NOISE, PaperSearch, smoothed_features
from graphmrf.field.posterior import Mixture, share_out
from graphmrf.field.sparse_system import EffectColumns, Equations, FieldSystem, fit_variances
from graphmrf.kept import cached_property
from graphmrf.linalg import marginal_variance
from graphmrf.linalg.dense import place

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from graphmrf._typing import Bools, Floats, Ints
    from graphmrf.field.covariance import Component
    from graphmrf.field.design import LabelledGraph
    from graphmrf.field.sparse_system import Coefficients, ProjectedColumns
    from graphmrf.graph import Graph

_PROGRESS = logging.getLogger("graphmrf.progress")

RHO = Parameter("rho", 0.0, math.log(1e-4), math.log(1e4), 3.0)
"""Variance of the field over that of the noise: a prior of its own, because a rough field is much like noise."""

COEFFICIENTS_KEPT = 20_000
"""Labels beyond which out-of-fold predictions keep the coefficients that all labels give: some hundred of them. Nor do
these need a field to be told from it, so that the search starts without solves."""

_OF_THE_GRAPH = ("smoothed", "local", "field")
"""Components that without edges are own features once more, or noise."""
_UNSUPPORTED = 1e-4
"""Variance below which local effects are dropped for good, to save the solves for their columns."""
_ROUGH = 64
"""Columns of a function in the first, rough field, which only has to separate effects from the field."""
_FEWER = {"nonlinear": 128, "local": 64}
"""Columns of functions in later rounds, which only tell omega and rho: twice as many solves change these little."""
_KERNEL_LABELS = 2000
"""Labels that decide what needs dense algebra; twice as many take eight times as long."""
_FOLDS = 5
"""Folds that part the field of others from the labels it is told by."""
_PAIRS = 4
"""Antithetic pairs of draws of the coefficients for the expectation, two columns each in every solve of the search;
opposite draws, so that the search does not depend on the sign of the outcome."""
_ROUND, _LOOSE, _TIGHT = 1e-3, 1e-4, 1e-6
"""Relative residuals of the solves for columns of which draws are made, of likelihoods, and of the last ones."""
_START_RHO = 3.0
"""Where the search of rho starts; chosen by eye."""
_RADII = ((1.0, 0.2), (0.4, 0.15), (0.2, 0.1))
"""First and last trust regions of log omega and log rho, round by round."""
_SETTLED = 0.25
"""Change of both below which no other round is needed."""
_MOST_EVALUATIONS = 20
"""Likelihoods of one round at most."""
_PATIENCE, _LEAST_GAIN = ((6, 5), (7, 2)), (0.5, 1e-5)
"""Fewest evaluations of a round, and those that must gain log evidence for it to go on, of few labels and of many: five
make the optimiser's first model. The gain, in all or a label, is what predictions do not show."""
_ROWS = 8192
"""Nodes whose columns are multiplied at once."""
_DRAWS_AT_ONCE = 16
"""Posterior draws solved for at once, as many as `sparse_system` solves for."""
_VARIANCE_PROBES = 64
"""Probes of the field's posterior variance: k of them err by sqrt(2 / k), of the field's part only."""
_FOLD_TOLERANCE = 1e-4
"""Relative residual of the solves without a fold."""


def features_alone(graph: Graph, design: Design, nodes: Ints, components: Sequence[Component]) -> Covariance:
    """Return the covariance of some nodes without their graph, in which a field would be one more noise."""
    part = Design(design.groups[:3, nodes], design.scales[:3], design.kept)
    no_edges = Eigen(np.zeros(nodes.size), place(graph.engine, np.eye(nodes.size)))
    alone = [component for component in components if component.name not in _OF_THE_GRAPH]
    return Covariance.of(part, no_edges, np.arange(nodes.size), alone)


def kernel_part(design: Design, rows: Ints, z: Floats, seed: int) -> Ints:
    """Return the places of the labels on which what needs dense algebra is decided."""
    return design.order_of_labels(rows, z)[subset(z.size, _KERNEL_LABELS, seed)]


@dataclass(frozen=True, eq=False)
class SparseSearch:
    r"""The search for the hyper-parameters of the sparse solver.

    Attributes
    ----------
    labelled : LabelledGraph
        Graph and labelled nodes.
    design : Design
        Features, with the group of `with_distant`.
    z : array of shape (m,)
        Standardised labels.
    alpha : float
        The level of smoothing of that group; the field's search starts there.
    components : tuple of Component
        The terms of the field.
    unshown : tuple of str
        Those of them that no label shows, whose columns are 0; see `unshown_effects`.
    """

    labelled: LabelledGraph
    design: Design
    z: Floats
    alpha: float
    components: tuple[Component, ...]
    unshown: tuple[str, ...] = ()

    def run(self) -> tuple[SparsePosterior, Optimum]:
        """Return the field at its most likely hyper-parameters; the family competes with the paper's own model."""
        columns, lengths, point, evaluations = self._family()
        family, log_evidence = self._posterior(columns, self._system(point, _TIGHT).project(columns.F, self.z), lengths)
        found = Optimum(point, log_evidence, log_evidence - self._penalty(point), evaluations)
        if not self.design.p or not self.z.any() or self.unshown:
            return family, found
        unit_variance = unequal_variance_unseen(self.labelled.variance(math.exp(OMEGA.start)), self.labelled.rows)
        labelled = replace(self.labelled, unit_variance=unit_variance)
        paper = PaperSearch(labelled, self.design, self.z, math.exp(self._start()[0]))
        if paper.is_hopeless(found.log_posterior):
            return family, found
        plain = paper.run()
        both = evaluations + plain.evaluations
        if family_wins(found.log_posterior, plain.log_posterior, self.z.size):
            return family, found._replace(evaluations=both)
        posterior, log_evidence = self._posterior(*paper.at(float(plain.point[0]), _TIGHT), lengths, NOISE)
        return posterior, plain._replace(log_evidence=log_evidence, evaluations=both)

    def _family(self) -> tuple[EffectColumns, Floats, Floats, int]:
        """Return columns, length scales, and best omega and rho.

        First a rough field is found, which tells length scales.
        """
        start, lengths = self._start(), np.full(2 * self.design.p, typical_distance(self.design.p))
        there = np.array([start[0], -np.inf]) if self._many else start
        rows = self.labelled.rows
        left, effects, _ = self._left(self._columns(lengths, _ROUGH).at(rows), there)
        point, evaluations = self._improved(start, left, _RADII[0])
        lengths = self._lengths(effects, point)
        columns = self._columns(lengths, np.iinfo(np.int64).max)
        for radii in _RADII[1:]:
            fewer = columns.at(rows).first(_FEWER["nonlinear"], "nonlinear").first(_FEWER["local"], "local")
            before, (left, _, by_component) = point, self._left(fewer, point)
            if by_component.get("local", 1.0) < _UNSUPPORTED:
                columns = columns.first(0, "local")
            point, count = self._improved(before, left, radii)
            evaluations += count
            if np.abs(point - before).max() < _SETTLED:
                break
        return columns, lengths, point, evaluations

    @property
    def _many(self) -> bool:
        """Whether the labels are so many that they determine coefficients whatever the field."""
        return self.z.size > COEFFICIENTS_KEPT

    def _columns(self, lengths: Floats, most: int) -> EffectColumns:
        """Return the columns of all components that have some."""
        present = [component for component in self.components if self.design.p or not component.of_features]
        found = [(c, c.columns(self.labelled, self.design, {"lengths": lengths}, most)) for c in present]
        blocks = {component.name: F for component, F in found if F is not None}
        blocks |= {name: np.zeros_like(blocks[name]) for name in blocks.keys() & set(self.unshown)}
        weights = {component.name: component.weight(F.shape[1]) for component, F in found if F is not None}
        return EffectColumns.of(self.labelled.graph.n_nodes, blocks, weights)

    def _posterior(
        self, columns: EffectColumns, projected: ProjectedColumns, lengths: Floats, least_noise: float | None = None
    ) -> tuple[SparsePosterior, float]:
        """Return what the labels say under a field, and their log evidence."""
        bound = {} if least_noise is None else {"least_noise": least_noise}
        by_component, beta = fit_variances(columns, projected.equations, **bound)
        system = projected.system
        absent = {component.name: 0.0 for component in self.components}
        shape = {
            "distant_omega": self.alpha / (1.0 - self.alpha),
            "field": system.rho * beta.noise,
            "omega": system.omega,
            "nu": 1.0,
            "unit_variance": system.labelled.unit_variance,
            "paper_model": least_noise is not None,
            "lengths": lengths,
            "noise": beta.noise,
        }
        h = Hyperparameters(absent | by_component | shape)
        return SparsePosterior(columns, projected, beta, h, self.design, self.components), beta.log_evidence

    def _start(self) -> Floats:
        omega = self.alpha / (1.0 - self.alpha)
        return np.log([np.clip(omega, 1.0, 100.0), _START_RHO])

    def _system(self, point: Floats, tolerance: float) -> FieldSystem:
        omega, rho = np.exp(point).tolist()
        return FieldSystem(self.labelled, omega, rho, tolerance)

    def _penalty(self, point: Floats) -> float:
        """Return the negative log prior of omega and rho."""
        pairs = zip(point.tolist(), (OMEGA, RHO), strict=True)
        return float(sum(0.5 * ((value - prior.start) / prior.spread) ** 2 for value, prior in pairs))

    def _left(self, columns: EffectColumns, point: Floats) -> tuple[Floats, Floats, dict[str, float]]:
        """Return what draws of the coefficients leave of the labels, expected effects, and their variances.

        The columns are those of the labelled nodes.
        """
        F = columns.F
        by_component, beta = fit_variances(columns, self._system(point, _ROUND).equations(F, self.z))
        draws = beta.draw(_PAIRS, np.random.default_rng(self.labelled.seed))
        both = np.hstack([draws, 2.0 * beta.mean[:, None] - draws])
        return self.z[:, None] - F @ both, F @ beta.mean, by_component

    def _improved(self, start: Floats, left: Floats, radii: tuple[float, float]) -> tuple[Floats, int]:
        """Return the best omega and rho for what is left of the labels."""
        m, values = self.z.size, list[float]()
        least_gain, (fewest, patience) = max(_LEAST_GAIN[0], _LEAST_GAIN[1] * m), _PATIENCE[self._many]

        def negative(point: Floats) -> float:
            _PROGRESS.info("field: evaluation %d", len(values) + 1)
            forms, log_determinant = self._system(point, _LOOSE).quadratic_forms(left)
            noise = max(float(forms.mean()) / m, 1e-12)
            values.append(0.5 * (m * float(np.log(noise)) + log_determinant) + self._penalty(point))
            return values[-1]

        def stop(xk: Floats) -> None:  # noqa: ARG001 - the name that SciPy calls it by
            if len(values) >= fewest and min(values[:-patience]) - min(values) < least_gain:
                raise StopIteration

        bounds = [(prior.lower, prior.upper) for prior in (OMEGA, RHO)]
        options: Any = {"initial_tr_radius": radii[0], "final_tr_radius": radii[1], "maxfev": _MOST_EVALUATIONS}
        found = minimize(negative, start, method="COBYQA", callback=stop, bounds=bounds, options=options)
        return np.asarray(found.x), int(found.nfev)

    def _lengths(self, effects: Floats, point: Floats) -> Floats:
        """Return the length scales of the nonlinear function, from a part of the labels less the field of others."""
        if not self.design.p:
            return np.zeros(0)
        part = kernel_part(self.design, self.labelled.rows, self.z, self.labelled.seed)
        _PROGRESS.info("length scales from %d labels", part.size)
        less = self.z[part] - self._field_of_others(effects, point, part)
        spread = float(less.std())
        alone = features_alone(self.labelled.graph, self.design, self.labelled.rows[part], self.components)
        return np.asarray(climbed(alone, less / spread if spread else less, seed=self.labelled.seed)["lengths"])

    def _field_of_others(self, effects: Floats, point: Floats, part: Ints) -> Floats:
        """Return the field at some labelled nodes that labels not of their own fold tell."""
        field, rows = np.empty(part.size), self.labelled.rows
        for k in range(_FOLDS):
            others = np.delete(np.arange(self.z.size), part[k::_FOLDS])
            system = replace(self._system(point, _LOOSE), labelled=replace(self.labelled, rows=rows[others]))
            own = rows[part[k::_FOLDS]]
            told = system.solve_from_labels((self.z - effects)[others, None], own)[:, 0]
            field[k::_FOLDS] = math.sqrt(system.rho) * system.g[own] * told
        return field


@dataclass(frozen=True, eq=False)
class SparsePosterior:
    """The outcome of all nodes given standardised labels, by the sparse solver; see `Posterior`.

    Attributes
    ----------
    columns : EffectColumns
        Effects of features as columns of all nodes.
    projected : ProjectedColumns
        The columns seen through the graph field.
    beta : Coefficients
        Their coefficients.
    h : Hyperparameters
        The hyper-parameters.
    design : Design
        The features.
    components : tuple of Component
        The terms of the field.
    """

    columns: EffectColumns
    projected: ProjectedColumns
    beta: Coefficients
    h: Hyperparameters
    design: Design
    components: tuple[Component, ...]

    refitted_up_to: ClassVar[int] = 0
    """A search without each fold would take as long as the fit itself, as many times as there are folds."""

    @property
    def z(self) -> Floats:
        """The standardised labels."""
        return self.projected.z

    @property
    def _system(self) -> FieldSystem:
        return self.projected.system

    @cached_property
    def _gain(self) -> Floats:
        """How much of what is carried to a node the field has there."""
        return np.asarray(np.sqrt(self._system.rho) * self._system.g)

    def _field(self, nodes: Ints) -> Floats:
        carried = self.projected.carried
        return np.asarray(self._gain[nodes] * (carried[nodes, 0] - carried[nodes, 1:] @ self.beta.mean))

    @property
    def noise(self) -> float:
        """Variance of the independent noise of a node."""
        return float(self.beta.noise)

    @property
    def origin(self) -> float:
        """What is expected of an outcome of which nothing is known: the mean of the labels."""
        return 0.0

    def relative_variance(self, graph: Graph | None = None) -> Floats:
        """Return the prior variance of the graph field at all nodes, over its mean at the labelled ones."""
        system = self._system
        here = system.prior
        there = here if graph is None else self._prior_elsewhere(graph)
        return np.asarray(there / here[system.labelled.rows].mean())

    @property
    def central(self) -> SparsePosterior:
        """Itself."""
        return self

    def moments(self, nodes: Ints) -> tuple[Floats, Floats]:
        """Return mean and variance of the outcome of unlabelled nodes, noise included."""
        mean, variance = np.empty(nodes.size), np.empty(nodes.size)
        for part in _parts(nodes.size):
            rows = nodes[part]
            mean[part] = self._mean(rows)
            F = self._unexplained(rows)
            variance[part] = np.einsum("ij,ij->i", F @ self.beta.covariance, F)
        return mean, variance + self._field_variance[nodes] + self.beta.noise

    def _mean(self, nodes: Ints) -> Floats:
        return np.asarray(self.projected.F[nodes] @ self.beta.mean + self._field(nodes))

    def _unexplained(self, nodes: Ints) -> Floats:
        """Return the columns of some nodes less what the field makes of those of the labels."""
        F = self.projected.F[nodes].astype(np.float64)
        return np.asarray(F - self._gain[nodes, None] * self.projected.carried[nodes, 1:])

    def times_covariance(self, nodes: Ints, Z: Floats) -> Floats:
        """Return the joint covariance of unlabelled nodes, noise left out, times columns `Z` (len(nodes), k)."""
        system, gain = self._system, self._gain[nodes, None]
        inner = sum(self._unexplained(nodes[part]).T @ Z[part] for part in _parts(nodes.size))
        spread = np.zeros((system.labelled.graph.n_nodes, Z.shape[1]))
        spread[nodes] = gain * Z
        for first in range(0, Z.shape[1], _DRAWS_AT_ONCE):
            some = slice(first, first + _DRAWS_AT_ONCE)
            spread[:, some] = system.solve(spread[:, some])
        image = self.beta.noise * gain * spread[nodes]
        for part in _parts(nodes.size):
            image[part] += self._unexplained(nodes[part]) @ (self.beta.covariance @ inner)
        return np.asarray(image)

    def variances_given(self, rows: Ints, nodes: Ints) -> Floats:
        """Return the variance of nodes, noise included, were the labels those of other nodes `rows`."""
        return self._conditioned(rows, np.zeros(rows.size)).moments(nodes)[1]

    def _conditioned(self, rows: Ints, z: Floats) -> SparsePosterior:
        """Return the field of the same hyper-parameters given other labels, which also determine the coefficients."""
        labelled = replace(self._system.labelled, rows=rows)
        seen = replace(self._system, labelled=labelled, tolerance=_FOLD_TOLERANCE).project(self.projected.F, z)
        products = seen.products
        equations = Equations(products[1:, 1:], products[1:, 0], float(products[0, 0]), rows.size, 0.0)
        return replace(self, projected=seen, beta=equations.given(self.beta.variances, self.beta.noise))

    def mixture(self, nodes: Ints) -> Mixture:
        """Return the distribution of the outcome of every node, a normal one."""
        return Mixture.of([self.moments(nodes)])

    @cached_property
    def _spread(self) -> Floats:
        """Diagonal of the inverse of the precision of the field given the labels."""
        _PROGRESS.info("variances of the field")
        return self._system.A.inverse_diagonal(probes=_VARIANCE_PROBES, seed=self._system.labelled.seed)

    @property
    def _field_variance(self) -> Floats:
        """Variance of the field at every node, given labels and coefficients; no more than before the labels."""
        return np.asarray(self.h.field * np.minimum(self._system.g**2 * self._spread, self._system.prior))

    def draw(self, nodes: Ints, count: int, rng: np.random.Generator) -> Floats:
        """Return joint draws of the outcomes of unlabelled nodes, noise included, shape (count, len(nodes))."""
        blocks = [self._draw(nodes, min(_DRAWS_AT_ONCE, count - k), rng) for k in range(0, count, _DRAWS_AT_ONCE)]
        return np.concatenate([np.zeros((0, nodes.size)), *blocks])

    def _draw(self, nodes: Ints, count: int, rng: np.random.Generator) -> Floats:
        """Draw coefficients, then the field given them, then noise."""
        system, F, s = self._system, self.projected.F, self.beta.noise
        beta = self.beta.draw(count, rng)
        rows, b = system.labelled.rows, system.A.noise(count, rng)
        b[rows] += system.G[:, None] * (self.z[:, None] - F[rows] @ beta) / np.sqrt(s)
        v = system.solve(b)
        draws = F[nodes] @ beta + np.sqrt(s) * (self._gain[nodes, None] * v[nodes])
        return np.asarray((draws + np.sqrt(s) * rng.standard_normal(draws.shape)).T)

    def _seen(self, part: slice) -> Floats:
        r"""Return rows of :math:`C^{-1} [z, F]`."""
        rows = self._system.labelled.rows[part]
        there = np.column_stack([self.z[part], self.projected.F[rows]])
        return np.asarray(there - self._system.G[part, None] * self.projected.carried[rows])

    @cached_property
    def _precision(self) -> tuple[Floats, Floats, dict[str, Floats]]:
        r"""Dual labels :math:`K^{-1} z`, diagonal of :math:`K^{-1}`, and of every component's covariance times it."""
        m, s, system = self.z.size, self.beta.noise, self._system
        rows, gain = system.labelled.rows, self.beta.covariance / s
        dual, known = np.empty(m), np.empty(m)
        diagonals: dict[str, Floats] = {name: np.empty(m) for name in self.columns.slices}
        for part in _parts(m):
            seen, F = self._seen(part), self.projected.F[rows[part]]
            dual[part] = (seen[:, 0] - seen[:, 1:] @ self.beta.mean) / s
            moved = seen[:, 1:] @ gain
            known[part] = np.einsum("ij,ij->i", moved, seen[:, 1:])
            for name, at in self.columns.slices.items():
                diagonals[name][part] = np.einsum("ij,ij->i", F[:, at], moved[:, at])
        prior = np.einsum("ij,j,ij->i", self.projected.F[rows], self.beta.variances, self.projected.F[rows])
        precision = (self._own_precision - known) / s
        return dual, np.maximum(precision, 1.0 / (prior + s * self._most)), diagonals

    @cached_property
    def _own_precision(self) -> Floats:
        """Diagonal of the inverse of `C`, within what it can be: probed values scatter."""
        system = self._system
        d, D = system.G**2, system.A.diagonal[system.labelled.rows]
        most = (D - d) / D
        beyond = d * (self._spread[system.labelled.rows] - 1.0 / D)
        return np.clip(most - beyond, 1.0 / self._most, most)

    @property
    def _most(self) -> Floats:
        """Diagonal of `C`."""
        return np.asarray(1.0 + self._system.rho * self._system.prior[self._system.labelled.rows])

    @cached_property
    def left_out(self) -> tuple[Floats, Floats]:
        r"""Residual and variance of every label given the others: :math:`a_i / P_{ii}` and :math:`1 / P_{ii}`."""
        dual, precision, _ = self._precision
        return dual / precision, 1.0 / precision

    def without(self, own: Bools) -> tuple[Floats, Floats]:
        """Return mean and variance of some labels given the others; the variance is that given all other labels.

        Up to `COEFFICIENTS_KEPT` labels, the others also determine the coefficients.
        """
        mean = self.kept(own) if self.z.size > COEFFICIENTS_KEPT else self._told_by_others(own)
        return mean, self.left_out[1][own]

    def kept(self, own: Bools) -> Floats:
        """Return the mean of some labels given the others, at the coefficients that all of them give."""
        rows = self._system.labelled.rows
        effects = self.projected.F[rows] @ self.beta.mean
        others = self._others(own, self._system.tolerance)
        told = others.solve_from_labels((self.z - effects)[~own, None], rows[own])
        return np.asarray(effects[own] + self._gain[rows[own]] * told[:, 0])

    def _others(self, own: Bools, tolerance: float) -> FieldSystem:
        labelled = self._system.labelled
        return replace(self._system, labelled=replace(labelled, rows=labelled.rows[~own]), tolerance=tolerance)

    def _told_by_others(self, own: Bools) -> Floats:
        """Return the mean of some labels given the others, which also determine the coefficients."""
        return self.fitted_without(own, self.z[~own], 0)._mean(self._system.labelled.rows[own])

    def held_out(self, own: Bools) -> tuple[Floats, Floats]:
        """Return residuals and joint covariance, noise included, of some labels given the others."""
        there = self._system.labelled.rows[own]
        others, unit = self.fitted_without(own, self.z[~own], 0), np.eye(there.size)
        return self.z[own] - others._mean(there), others.times_covariance(there, unit) + self.beta.noise * unit

    def fitted_without(self, own: Bools, z: Floats, seed: int) -> SparsePosterior:  # noqa: ARG002 - part of the contract
        """Return the field given the other labels; hyper-parameters are kept, see `refitted_up_to`."""
        return self._conditioned(self._system.labelled.rows[~own], z)

    def refitted(self, own: Bools, z: Floats, seed: int) -> tuple[Floats, Floats]:  # noqa: ARG002 - part of the contract
        """Return what `without` does: hyper-parameters are kept, see `refitted_up_to`."""
        return self.without(own)

    def by_features(self, own: Bools) -> tuple[Floats, Floats]:
        """Return mean and variance of some labels by their features alone, of whose effects the other labels tell.

        Beyond `COEFFICIENTS_KEPT` labels, all of them tell.
        """
        rows = self._system.labelled.rows
        kept = self.z.size > COEFFICIENTS_KEPT
        beta = self.beta if kept else self._conditioned(rows[~own], self.z[~own]).beta
        F = self.projected.F[rows[own]].astype(np.float64)
        variance = np.einsum("ij,ij->i", F @ beta.covariance, F)
        return F @ beta.mean, variance + self.h.field * self._system.prior[rows[own]] + beta.noise

    def elsewhere(self, graph: Graph, X: Floats) -> tuple[Floats, Floats]:
        """Return mean and variance of the outcome of all nodes of another graph, noise included."""
        F, unknown = self._features_elsewhere(graph, X)
        variance = unknown + np.einsum("ij,ij->i", F @ self.beta.covariance, F)
        return F @ self.beta.mean, variance + self.h.field * self._prior_elsewhere(graph) + self.beta.noise

    def effects(self, graph: Graph, X: Floats) -> Floats:
        """Return what features say of all nodes of a graph."""
        return np.asarray(self._features_elsewhere(graph, X)[0] @ self.beta.mean)

    def _features_elsewhere(self, graph: Graph, X: Floats) -> tuple[Floats, float]:
        """Return the columns of all nodes of another graph, 0 for those it has not, and the variance of these."""
        there, unknown = OtherGraph(graph, self.design.elsewhere(graph, X)), 0.0
        F = np.zeros((graph.n_nodes, self.beta.mean.size))
        F[:, 0] = 1.0
        for name, at in self.columns.slices.items():
            block = self._columns_elsewhere(name, at.stop - at.start, there)
            if block is None:
                unknown += float(np.mean(self.projected.F[:, at] ** 2, axis=0) @ self.beta.variances[at])
            else:
                F[:, at] = block
        return F, unknown

    def _columns_elsewhere(self, name: str, width: int, there: OtherGraph) -> Floats | None:
        if self.columns.smoothing is not None:
            alpha, scales, centres = self.columns.smoothing
            X, usual = smoothed_features(there.graph, there.design, alpha)
            return np.asarray(((usual if self._system.labelled.unit_variance else X) - centres) / scales)
        component = next(c for c in self.components if c.name == name)
        return component.columns_elsewhere(there, self.design, self.h, width, self._system.labelled.seed)

    def _prior_elsewhere(self, graph: Graph) -> Floats:
        """Return the variance of the graph field at the nodes of another graph, over its mean variance here."""
        if self._system.labelled.unit_variance:
            return np.ones(graph.n_nodes)
        omega, here = self._system.omega, self._system.labelled.quadrature
        return np.asarray(marginal_variance(graph, omega / (1.0 + omega)) / here.mean_variance(omega))

    @cached_property
    def shares(self) -> dict[str, float]:
        """The part of the variance of the labels that every component predicts, each label from the others."""
        residual, rows = self.left_out[0], self._system.labelled.rows
        _, precision, diagonals = self._precision
        names = [component.name for component in self.components if component.name != "noise"]
        said: dict[str, Floats] = dict.fromkeys(names, np.zeros(self.z.size))
        for name, at in self.columns.slices.items():
            said[name] = self.projected.F[rows, at] @ self.beta.mean[at] - diagonals[name] * residual
        rest = 1.0 - self.beta.noise * precision - np.sum([np.zeros(self.z.size), *diagonals.values()], axis=0)
        said["field"] = self._field(rows) - np.maximum(rest, 0.0) * residual
        return share_out(self.z, residual, said, itself=self._itself)

    @property
    def _itself(self) -> Floats:
        """What smoothed features say of the labels that comes from the nodes' own."""
        if self.columns.smoothing is None:
            return np.zeros(self.z.size)
        labelled, (_, scales, _) = self._system.labelled, self.columns.smoothing
        weights = self.beta.mean[self.columns.slices["smoothed"]] / scales
        diagonal = labelled.variance(self._system.omega)[labelled.rows]
        return np.asarray(diagonal * (self.design.groups[0][labelled.rows] @ weights))

    def own_effects(self, returning: float) -> Floats:
        """Return the mean change (p,) of a node's expected outcome per unit of its own feature, by linear effects.

        Of own features, and what comes back of those of second neighbours; nonlinear functions, and what comes back
        from three and more steps away, are left out.
        """
        own, second = (self.coefficients[title][0] for title in ("own", "second neighbours"))
        return np.asarray(own + returning * second)

    @cached_property
    def coefficients(self) -> dict[str, tuple[Floats, Floats]]:
        """Mean and standard deviation of linear coefficients per unit of the feature, by the effect's title.

        Those of smoothed features are told by distance.
        """
        std = np.sqrt(np.maximum(np.diag(self.beta.covariance), 0.0))
        found: dict[str, tuple[Floats, Floats]] = {}
        for c in self.components:
            if isinstance(c, FeatureGroup):
                at, unit = self._unit(c)
                found[c.title] = unit * self.beta.mean[at], unit * std[at]
        return found

    def _unit(self, group: FeatureGroup) -> tuple[slice, Floats]:
        """Return the columns a group of features acts by, and what makes their coefficients its own, per unit."""
        scales = self.design.scales[group.place]
        if self.columns.smoothing is None:
            return self.columns.slices.get(group.name, slice(0, 0)), 1.0 / scales
        alpha, divided, _ = self.columns.smoothing
        step = np.where(np.isfinite(scales), group.step(alpha), 0.0)
        return self.columns.slices["smoothed"], step / (divided * self.design.scales[0])


def _parts(count: int) -> Iterator[slice]:
    for first in range(0, count, _ROWS):
        yield slice(first, first + _ROWS)
