r"""Smoothness and strength of the scalable field, by expectation and maximisation.

Given the coefficients, the labels less their effects are a graph field with noise, and :math:`(\omega, \rho)` maximise

.. math:: -\tfrac m2 \log \hat s - \tfrac12 \log\det C, \qquad
          \hat s = \tfrac1m\, \mathrm E\,(z - F\beta)'C^{-1}(z - F\beta),

the expectation over a few posterior draws of the coefficients: some columns, whatever the number of coefficients. The
variances of the coefficients follow exactly (see `sparse_weights`); the two steps alternate until nothing moves.
"""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.optimize import minimize

from graphmrf.field.evidence import maximise
from graphmrf.field.sparse_columns import Columns, features_alone, no_basis, nonlinear_basis
from graphmrf.field.sparse_local import local_columns
from graphmrf.field.sparse_posterior import SparseHyperparameters, SparsePosterior
from graphmrf.field.sparse_simple import PaperModel
from graphmrf.field.sparse_system import Ground, System
from graphmrf.field.sparse_weights import fit_weights

if TYPE_CHECKING:
    from graphmrf._typing import Floats, Ints
    from graphmrf.field.design import Design
    from graphmrf.field.sparse_system import Projection

_PROGRESS = logging.getLogger("graphmrf.progress")

NONLINEAR = (256, 1000)
"""Fewest and most columns of the nonlinear function."""

OMEGAS = (0.05, 3e4)
"""Range of omega."""

RHOS = (1e-4, 1e4)
"""Range of the variance of the field over that of the noise."""

LOCAL = (0, 400)
"""Fewest and most columns of the function that drifts over the graph."""

_CELLS = 10_000_000
_WORTHWHILE = 64
_UNSUPPORTED = 1e-4
_ROUGH = 64
_KERNEL_LABELS = 2000
_FOLDS = 5
_DRAWS = 8
_LOOSE, _TIGHT = 1e-4, 1e-6
_START_RHO = 3.0
_PRIORS = ((20.0, 2.0), (1.0, 3.0))
"""Centre, and spread of the logarithm, of omega and of rho; the latter because a rough field is much like noise."""
_RADII = ((1.0, 0.2), (0.4, 0.15), (0.2, 0.1))
_SETTLED = 0.25
_MOST_EVALUATIONS = 20
_PATIENCE = 5
_LEAST_GAIN = 0.5
"""Gain in log evidence below which a few more evaluations end a search."""


@dataclass(frozen=True)
class SparseOptimum:
    """Where the search ended.

    Attributes
    ----------
    posterior : SparsePosterior
        The field given the labels.
    log_evidence : float
        Log marginal likelihood of the standardised labels.
    evaluations : int
        Likelihoods computed.
    """

    posterior: SparsePosterior
    log_evidence: float
    evaluations: int


class _Left(NamedTuple):
    """What draws of the coefficients leave of the labels, one column each, expected effects, and their variances."""

    draws: Floats
    effects: Floats
    by_group: dict[str, float]


@dataclass(frozen=True, eq=False)
class SparseSearch:
    r"""The search for the hyper-parameters of the scalable field.

    Attributes
    ----------
    ground : Ground
        Graph and labelled nodes.
    design : Design
        Features, with the group of `with_distant`.
    z : array of shape (m,)
        Standardised labels.
    alpha : float
        The level of smoothing of that group; the field's search starts there.
    """

    ground: Ground
    design: Design
    z: Floats
    alpha: float

    def run(self) -> SparseOptimum:
        """Return the field at its most likely hyper-parameters.

        Against the paper's own model it must gain more than the logarithm of the number of labels, as `maximise` says.
        """
        whole = self._whole()
        if not self.design.p or not self.z.any():
            return whole
        paper = PaperModel.of(self.ground, self.design, self.z, math.exp(self._start()[0]))
        if paper.is_hopeless(whole.log_evidence):
            return whole
        simple = paper.best()
        evaluations = whole.evaluations + simple.evaluations
        if whole.log_evidence - simple.log_evidence > math.log(self.z.size):
            return replace(whole, evaluations=evaluations)
        columns, projection = simple.search.at(simple.omega, _TIGHT)
        return self._optimum(columns, projection, evaluations)

    def _whole(self) -> SparseOptimum:
        """Return the best of the whole family: first a rough field, by which length scales are told from the rest."""
        start = self._start()
        rough = self._columns(no_basis(self.design).lengths, _ROUGH)
        left, effects, _ = self._left(rough, start)
        point, evaluations = self._improved(start, left, _RADII[0])
        columns = self._columns(self._lengths(effects, point), self._size(NONLINEAR))
        columns = replace(columns, local=self._local())
        for radii in _RADII[1:]:
            before, (left, _, by_group) = point, self._left(columns.first(NONLINEAR[0]), point)
            if by_group["local"] < _UNSUPPORTED:
                columns = replace(columns, local=None)
            point, count = self._improved(before, left, radii)
            evaluations += count
            if np.abs(point - before).max() < _SETTLED:
                break
        return self._optimum(columns, self._system(point, _TIGHT).project(columns.F, self.z), evaluations)

    def _columns(self, lengths: Floats, size: int) -> Columns:
        return Columns(self.design, nonlinear_basis(self.design, lengths, size, self.ground.seed))

    def _local(self) -> Floats | None:
        size = self._size(LOCAL)
        if not self.design.p or size < _WORTHWHILE:
            return None
        _PROGRESS.info("columns of local effects")
        return local_columns(self.ground.graph, self.design, size, self.ground.seed)

    def _size(self, limits: tuple[int, int]) -> int:
        """Return a number of columns: more where graph and labels are small."""
        least, most = limits
        return int(np.clip(min(_CELLS // self.ground.graph.n_nodes, self.z.size // 2), least, most))

    def _optimum(self, columns: Columns, projection: Projection, evaluations: int) -> SparseOptimum:
        """Return what the labels say under a field."""
        by_group, beta = fit_weights(columns, projection.equations)
        system = projection.system
        h = SparseHyperparameters(
            **by_group,
            distant_omega=self.alpha / (1.0 - self.alpha),
            field=system.rho * beta.noise,
            omega=system.omega,
            nu=1.0,
            even=system.ground.even,
            lengths=columns.basis.lengths,
            noise=beta.noise,
        )
        return SparseOptimum(SparsePosterior(columns, projection, beta, h), beta.log_evidence, evaluations)

    def _start(self) -> Floats:
        omega = self.alpha / (1.0 - self.alpha)
        return np.log([np.clip(omega, 1.0, 100.0), _START_RHO])

    def _system(self, point: Floats, tolerance: float) -> System:
        omega, rho = np.exp(point).tolist()
        return System(self.ground, omega, rho, tolerance)

    def _left(self, columns: Columns, point: Floats) -> _Left:
        projection = self._system(point, _LOOSE).project(columns.F, self.z)
        by_group, beta = fit_weights(columns, projection.equations)
        draws, F = beta.draw(_DRAWS, np.random.default_rng(self.ground.seed)), columns.F[self.ground.rows]
        return _Left(self.z[:, None] - F @ draws, F @ beta.mean, by_group)

    def _improved(self, start: Floats, left: Floats, radii: tuple[float, float]) -> tuple[Floats, int]:
        """Return the best omega and rho for what is left of the labels."""
        m, (centres, spreads) = self.z.size, np.array(_PRIORS).T

        values: list[float] = []

        def negative(point: Floats) -> float:
            _PROGRESS.info("field: evaluation %d", len(values) + 1)
            forms, log_determinant = self._system(point, _LOOSE).forms(left)
            noise = max(float(forms.mean()) / m, 1e-12)
            prior = 0.5 * float((((point - np.log(centres)) / spreads) ** 2).sum())
            values.append(0.5 * (m * float(np.log(noise)) + log_determinant) + prior)
            return values[-1]

        def stop(xk: Floats) -> None:  # noqa: ARG001 - the name that SciPy calls it by
            if len(values) > _PATIENCE and min(values[:-_PATIENCE]) - min(values) < _LEAST_GAIN:
                raise StopIteration

        found = minimize(
            negative,
            start,
            method="COBYQA",
            callback=stop,
            bounds=[(math.log(low), math.log(high)) for low, high in (OMEGAS, RHOS)],
            options={
                "initial_tr_radius": radii[0],
                "final_tr_radius": radii[1],
                "maxfev": _MOST_EVALUATIONS,
            },
        )
        return np.asarray(found.x), int(found.nfev)

    def _lengths(self, effects: Floats, point: Floats) -> Floats:
        """Return the length scales of the nonlinear function, from a part of the labels less the field of others."""
        if not self.design.p:
            return np.zeros(0)
        part = kernel_part(self.z.size, self.ground.seed)
        _PROGRESS.info("length scales from %d labels", part.size)
        less = self.z[part] - self._field_of_others(effects, point, part)
        spread = float(less.std())
        alone = features_alone(self.design, self.ground.rows[part])
        return maximise(alone, less / spread if spread else less, seed=self.ground.seed).h.lengths

    def _field_of_others(self, effects: Floats, point: Floats, part: Ints) -> Floats:
        """Return the field at some labelled nodes that labels not of their own fold tell."""
        field = np.empty(part.size)
        for k in range(_FOLDS):
            others = np.delete(np.arange(self.z.size), part[k::_FOLDS])
            system = replace(self, ground=replace(self.ground, rows=self.ground.rows[others]))._system(point, _LOOSE)
            own = self.ground.rows[part[k::_FOLDS]]
            carried = system.carry((self.z - effects)[others, None])[own, 0]
            field[k::_FOLDS] = math.sqrt(system.rho) * system.g[own] * carried
        return field


def kernel_part(count: int, seed: int) -> Ints:
    """Return the places of the labels on which what needs dense algebra is decided, in order."""
    return np.sort(np.random.default_rng(seed).permutation(count)[:_KERNEL_LABELS])
