r"""Sparse representation: a precision on the graph for the field, and columns for all other terms.

.. math:: \eta = \sqrt v\, r \circ u + \Phi b, \quad u \sim N(0, Q^{-1}), \quad b \sim N(0, I), \quad
          Q = (\kappa^2 + N) (\tau + N)^{\nu - 1}

with :math:`r_i = (Q^{-1})_{ii}^{-1/2}` and :math:`\Phi` the columns of all other terms, scaled by their standard
deviations. With the noise :math:`D`, :math:`A = \sqrt v\,\mathrm{diag}(r)` at the observations and
:math:`M = Q + A'D^{-1}A`, the labels have the covariance :math:`\Sigma = C + \Phi\Phi'`, where

.. math:: C^{-1} = D^{-1} - D^{-1} A M^{-1} A' D^{-1}, \qquad \log\det C = \log\det M - \log\det Q + \log\det D.

The field has order :math:`\nu` near by, and order 1 over distances beyond its near range :math:`\tau`, where the many
labels close to each other would otherwise determine how far its correlations reach.

Nonlinear terms become columns by pivoted Cholesky decomposition of their covariance; what that leaves of the variance
of a node counts as noise of its own (the fully independent training conditional of Snelson and Ghahramani, 2006).
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from scipy import sparse
from scipy.linalg import cho_solve, cholesky, solve_triangular

from graphmrf.caching import cached_property
from graphmrf.field.dense import INTERCEPT
from graphmrf.field.observations import Observations
from graphmrf.field.posterior import CONSTANT, Dual
from graphmrf.field.precision import GraphPrecisions, JointPrecision, unit_probes
from graphmrf.field.space import NOISE, Shape, Space
from graphmrf.field.spectrum import range_prior
from graphmrf.field.terms import LinearTerm, Nonlinear, Smoothed, squared_distances

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from graphmrf._typing import Floats, Ints
    from graphmrf.field.features import Design
    from graphmrf.field.observations import DualAt, Responses, Working
    from graphmrf.field.precision import FieldPrecision
    from graphmrf.field.terms import Term

Columns: TypeAlias = "dict[str, tuple[Floats, Floats]]"

_MOST_COLUMNS = 256  # most columns of one term; memory and time grow with it
_CELLS = 1e7  # most cells of the columns of one term: 80 MB
_FREE = ("field.range", "field.order", "field.near")  # shapes that are searched
# largest variance, over that of the term, that columns may leave at a node when there could be more of them
_LEFT = 1e-2
_STEP = 1e-3  # step of the derivatives by the logarithms of shapes, by finite differences


def pivoted_columns(column: Callable[[int], Floats], among: Ints, n: int) -> tuple[Floats, Floats]:
    r"""Return columns (n, k) with :math:`\Phi\Phi' \approx K` for a covariance of variance 1, and what they leave.

    `column` returns one (n,) of `K`; the next pivot is the node of `among` of which the columns leave most.

    Examples
    --------
    >>> K = np.array([[1.0, 0.5], [0.5, 1.0]])
    >>> Phi, left = pivoted_columns(lambda i: K[i], np.arange(2), 2)
    >>> (Phi @ Phi.T).round(6), left.round(6)
    (array([[1. , 0.5],
           [0.5, 1. ]]), array([0., 0.]))
    """
    most = min(_MOST_COLUMNS, np.unique(among).size, max(int(_CELLS / n), 32))
    Phi, left = np.zeros((most, n)), np.ones(n)
    for k in range(most):
        pivot = int(among[np.argmax(left[among])])
        if left[pivot] < _LEFT:
            return np.ascontiguousarray(Phi[:k].T), left
        Phi[k] = (column(pivot) - Phi[:k, pivot] @ Phi[:k]) / math.sqrt(left[pivot])
        left = np.maximum(left - Phi[k] ** 2, 0.0)
        left[pivot] = 0.0
    return np.ascontiguousarray(Phi.T), left


def make_columns(design: Design, terms: tuple[Term, ...], rows: Ints, fixed: Mapping[str, Any]) -> Columns:
    """Return columns of unit variance of linear and nonlinear terms, and the variance that they leave at each node."""
    n, found = design.own.shape[0], {}
    for term in terms:
        if isinstance(term, Nonlinear):
            Z = term.arguments(design, fixed)
            inwards = rows[np.argsort(np.einsum("ij,ij->i", Z[rows], Z[rows]))]  # whatever the order of the nodes
            found[term.name] = pivoted_columns(partial(_kernel, Z), inwards, n)
        elif isinstance(term, LinearTerm) and not isinstance(term, Smoothed):
            columns = term.columns(design)
            found[term.name] = _leading(columns / math.sqrt(columns.shape[1]))
    return found


def _leading(columns: Floats) -> tuple[Floats, Floats]:
    """Return columns, or so many leading principal ones, and the variance that they leave at each node."""
    if columns.shape[1] <= _MOST_COLUMNS:
        return columns, np.zeros(len(columns))
    found = columns @ np.linalg.eigh(columns.T @ columns)[1][:, -_MOST_COLUMNS:]
    whole, within = (np.einsum("ij,ij->i", each, each) for each in (columns, found))
    return found, np.maximum(whole - within, 0.0)


@dataclass(frozen=True, eq=False)
class SparseField:
    """The field by a sparse precision and columns; an `Evidence` and a maker of posteriors."""

    design: Design  # features of all nodes
    terms: tuple[Term, ...]
    observations: Observations | Responses  # standardised labels
    precisions: GraphPrecisions  # precisions of the graph field
    # shapes that are not searched here: the length scales of nonlinear effects, and the order of 1 where no other has
    # a sparse factor
    fixed: Mapping[str, Any]
    # columns (n, q) of unit variance of every term that does not change with the range, and what they leave
    columns: Columns

    @classmethod
    def of(
        cls, design: Design, terms: tuple[Term, ...], observations: Observations | Responses, fixed: Mapping[str, Any]
    ) -> SparseField:
        """Return the field; its order is searched unless it is among the fixed shapes."""
        precisions = GraphPrecisions.of(design.graph)
        whole = ({"field.order": np.ones(1)} if precisions.degree == 1 else {}) | dict(fixed)
        return cls(
            design, terms, observations, precisions, whole, make_columns(design, terms, observations.nodes, fixed)
        )

    @property
    def rows(self) -> Ints:
        """Node of every observation."""
        return self.observations.nodes

    @property
    def has_field(self) -> bool:
        """Whether there is a graph field among the terms."""
        return any(term.name == "field" for term in self.terms)

    @property
    def normal(self) -> Observations:
        """The observations, where they are normal: those that a posterior is given always are."""
        assert isinstance(self.observations, Observations)
        return self.observations

    @cached_property
    def space(self) -> Space:
        """The variances, both ranges and the order; all other shapes are fixed."""
        graph, p = self.design.graph, self.design.p
        shapes: dict[str, Shape] = {s.name: s for t in self.terms for s in t.shapes(graph, p)}
        if self.has_field and "field.order" not in self.fixed:
            far, near = range_prior(graph, "field.range", -1.0), range_prior(graph, "field.near", 1.0)
            shapes |= {far.name: far, near.name: near}
        free = tuple(shapes[name] for name in _FREE if name in shapes and name not in self.fixed)
        scales, given, m = {term.name: term.scale for term in self.terms}, self.observations, self.rows.size
        return Space(tuple(scales), (*free, *given.shapes), self.fixed, m, given.has_own, given.spread, scales)

    @property
    def size(self) -> int:
        """Number of coordinates."""
        return self.space.size

    def value(self, x: Floats) -> float:
        """Return the negative log posterior of the hyper-parameters, infinite where a precision is singular."""
        try:
            system, working = self.working(self.space.read(x))
            return system.misfit + working.misfit + 0.5 * float(x @ x)
        except np.linalg.LinAlgError:
            return math.inf

    def working(self, h: Mapping[str, Any]) -> tuple[SparseSystem, Working]:
        """Return the equations at hyper-parameters, and the working observations in them."""
        system = SparseSystem(self, h)
        working = self.observations.working(h, system.dual_of)
        assert working is not None
        return system.given(working.observations), working

    def expand(self, x: Floats) -> tuple[float, Floats, Floats]:
        """Return the negative log posterior, its gradient, and average information plus that of the prior."""
        try:
            return self._expand(x)
        except np.linalg.LinAlgError:
            return math.inf, x, np.eye(x.size)

    def _expand(self, x: Floats) -> tuple[float, Floats, Floats]:
        h = self.space.read(x)
        system, working = self.working(h)
        free = [name for name in _FREE if name in self.space.names]
        moved = [system.at(*self._step(h, name)) for name in free]
        system.factored()
        with ThreadPoolExecutor(2) as pool:  # kernels release the interpreter; no thread computes what another does
            inverted, beside = pool.submit(system.inverted), pool.map(SparseSystem.prepared, moved)
            system.dual  # noqa: B018
            inverted.result()
            slopes, products = system.derivatives()
            moved = list(beside)
        for name, each in zip(free, moved, strict=True):
            at_most = self._is_largest(h, name)
            slopes[name], products[name] = (0.0, -_product(system, each)) if at_most else _derivative(system, each)
        if working.third is not None:
            precision = system.precision
            push = system.solve(working.skew(precision)[:, None])[:, 0]
            slopes, products = working.moved(slopes, products, push, precision, system.dual)
        J = self.space.jacobian(x)
        Y = self.space.stack(products, self.rows.size) @ J
        value = system.misfit + working.misfit + 0.5 * float(x @ x)
        return value, self.space.gather(slopes) @ J + x, 0.5 * system.inner(Y) + np.eye(x.size)

    def _is_largest(self, h: Mapping[str, Any], name: str) -> bool:
        """Return whether a shape is the order, and so large that a larger one changes nothing."""
        return name == "field.order" and float(h[name][0]) >= self.precisions.degree

    def _step(self, h: Mapping[str, Any], name: str) -> tuple[str, Floats]:
        """Return a shape and its value after a step; down from the largest order, towards where there is curvature."""
        if self._is_largest(h, name):
            return name, np.full(1, self.precisions.degree * math.exp(-_STEP))
        return name, h[name] * math.exp(_STEP)

    def observed(self, observations: Observations | Responses) -> SparseField:
        """Return the same field with other observations; the columns stay."""
        return replace(self, observations=observations)

    def on(self, design: Design) -> SparseField:
        """Return the same field on another design."""
        return SparseField.of(design, self.terms, self.observations, self.fixed)

    def dual_at(self, h: Mapping[str, Any]) -> DualAt:
        """Return what makes the inverse of the covariance of observations times them of normal observations."""
        return SparseSystem(self, h).dual_of

    def posterior(self, x: Floats) -> SparsePosterior:
        """Return the field given its observations at a point of the hyper-parameters."""
        return self.posterior_at(self.space.read(x))

    def posterior_at(self, h: Mapping[str, Any]) -> SparsePosterior:
        """Return the field given its observations at hyper-parameters."""
        system, working = self.working(h)
        if working.third is None:
            return SparsePosterior(system)
        given = working.at_means(system.precision, system.dual_of)
        return SparsePosterior(system.given(given))


def _kernel(Z: Floats, node: int) -> Floats:
    return np.asarray(np.exp(-0.5 * squared_distances(Z, Z[node : node + 1])[:, 0]))


def _product(system: SparseSystem, moved: SparseSystem) -> Floats:
    """Return the derivative of the covariance times `dual` by the logarithm of a shape."""
    a = system.dual[:, None]
    return np.asarray((moved.shaped_times(a) - system.shaped_times(a))[:, 0] / _STEP)


def _derivative(system: SparseSystem, moved: SparseSystem) -> tuple[float, Floats]:
    """Return the derivatives of the misfit and of the covariance times `dual` by the logarithm of a shape."""
    if system.joint is not None:
        B = np.column_stack([system.dual, system.probes])
        products = (moved.shaped_times(B) - system.shaped_times(B)) / _STEP
        trace = float(np.vdot(system.probed, products[:, 1:]))
        return 0.5 * (trace - float(system.dual @ products[:, 0])), products[:, 0]
    changes = moved.of_field(system.shaped) - system.of_shaped
    product = changes[:, 0]
    determinant = system.change(moved) - float(np.vdot(system.shaped[:, 1:], changes[:, 1:]))
    if system.smoothed is not None and moved.smoothed is not None:
        before, after = (each[system.field.rows] for each in (system.smoothed, moved.smoothed))
        product = product + after @ (after.T @ system.dual) - before @ (before.T @ system.dual)
        columns = (after - before) @ system.directions[system.slices["smoothed"]]
        determinant += 2.0 * float(np.vdot(columns, system.shaped[:, 1:]))
    return 0.5 * (determinant - float(system.dual @ product)) / _STEP, product / _STEP


# parts of the equations that do not depend on observations
_OF_THE_FIELD = ("left", "prior", "unit", "smoothed", "groups", "Phi", "slices")


@dataclass(frozen=True, eq=False)
class SparseSystem:
    """The equations of a sparse field at one value of the hyper-parameters."""

    field: SparseField
    h: Mapping[str, Any]

    @cached_property
    def noise(self) -> Floats:
        """Variance of the noise of every observation, with what columns leave of the terms."""
        return np.asarray(self.field.normal.variance(self.h[NOISE]) + self.left[self.field.rows])

    def given(self, observations: Observations) -> SparseSystem:
        """Return the equations with other normal observations of the same nodes; what is known of the field stays."""
        if observations is self.field.observations:
            return self
        found = SparseSystem(self.field.observed(observations), self.h)
        vars(found).update({name: getattr(self, name) for name in _OF_THE_FIELD})
        return found

    def dual_of(self, observations: Observations) -> Floats:
        r"""Return :math:`\Sigma^{-1} z` of other normal observations of the same nodes."""
        return self.given(observations).dual

    def at(self, name: str, value: Floats) -> SparseSystem:
        """Return the equations at another value of a shape."""
        return SparseSystem(self.field, {**self.h, name: value})

    def factored(self) -> None:
        """Compute the factors, if there are some."""
        if self.joint is None:
            self.log_determinant  # noqa: B018

    def inverted(self) -> None:
        """Compute the variances of the graph field given the observations from its factor, if there is one."""
        if self.joint is None:
            self._variance  # noqa: B018

    def prepared(self) -> SparseSystem:
        """Return the same equations at other shapes once what takes longest in them is computed."""
        if self.field.precisions.ordering is not None:
            self.unit, self.smoothed  # noqa: B018
        return self

    @cached_property
    def left(self) -> Floats:
        """Variance (n,) that the columns leave of the terms."""
        return self.left_by(None)

    def left_by(self, terms: Collection[str] | None) -> Floats:
        """Return the variance (n,) that the columns leave of some terms, or of all."""
        columns = self.field.columns.items()
        parts = (self.h[name] * left for name, (_, left) in columns if terms is None or name in terms)
        return sum(parts, start=np.zeros(self.field.design.own.shape[0]))

    @cached_property
    def prior(self) -> FieldPrecision:
        """Precision of the graph field."""
        return self.field.precisions.at(*self._shapes)

    @property
    def _shapes(self) -> tuple[float, float, float]:
        far, order = self.h["field.range"], self.h["field.order"]
        return float(far[0]), float(order[0]), float(self.h.get("field.near", far)[0])

    @cached_property
    def unit(self) -> Floats:
        """What makes the graph field have its variance at every node, shape (n,)."""
        if not self.field.has_field:
            return np.zeros(self.field.design.own.shape[0])
        return np.asarray(np.sqrt(self.h["field"] / self.prior.inverse_diagonal))

    @cached_property
    def held(self) -> FieldPrecision:
        """Precision of the graph field given the observations, all other terms aside."""
        d = np.zeros(self.unit.size)
        np.add.at(d, self.field.rows, self.unit[self.field.rows] ** 2 / self.noise)
        return self.field.precisions.at(*self._shapes, d)

    @cached_property
    def groups(self) -> dict[str, Floats]:
        """Columns (n, q) of every term, scaled by its standard deviation, and of the constant."""
        found = {name: math.sqrt(self.h[name]) * Phi for name, (Phi, _) in self.field.columns.items()}
        if self.smoothed is not None:
            found["smoothed"] = self.smoothed
        return found | {CONSTANT: np.full((self.unit.size, 1), math.sqrt(INTERCEPT))}

    @cached_property
    def smoothed(self) -> Floats | None:
        """Columns of the smoothed term, if there is one; 0 at isolated nodes, which have no neighbours."""
        if not any(isinstance(term, Smoothed) for term in self.field.terms):
            return None
        scale = math.sqrt(self.h["smoothed"] / self.field.design.p) / self.prior.inverse_diagonal.mean()
        found = scale * self.prior.solve(self.field.design.own)
        return np.where(self.field.design.graph.isolated[:, None], 0.0, found)

    @cached_property
    def Phi(self) -> Floats:
        """All columns side by side."""
        return np.hstack(list(self.groups.values()))

    @cached_property
    def slices(self) -> dict[str, slice]:
        """Place of the columns of every term."""
        ends = np.cumsum([columns.shape[1] for columns in self.groups.values()])
        starts = [0, *ends[:-1]]
        return {name: slice(int(a), int(b)) for name, a, b in zip(self.groups, starts, ends, strict=True)}

    def _spread(self, B: Floats) -> Floats:
        """Return :math:`A' B` at all nodes from columns at the observations."""
        rows, m = self.field.rows, self.field.rows.size
        incidence = sparse.csr_array((self.unit[rows], (rows, np.arange(m))), shape=(self.unit.size, m))
        return np.asarray(incidence @ B)

    def _field_given(self, B: Floats) -> Floats:
        """Return :math:`C^{-1} B`."""
        return self._given(B, self._half(B))

    def _half(self, B: Floats) -> Floats:
        """Return :math:`M^{-1} A' D^{-1} B`, from which `_propagated` takes what it needs."""
        if not self.field.has_field:
            return np.zeros((self.unit.size, B.shape[1]))
        return self.held.half(self._spread(B / self.noise[:, None]))

    def _propagated(self, half: Floats, nodes: Ints) -> Floats:
        """Return :math:`A M^{-1} A' D^{-1} B` at some nodes: the graph field's part in columns at the observations."""
        if not self.field.has_field:
            return np.zeros((nodes.size, half.shape[1]))
        return np.asarray(self.unit[nodes, None] * self.held.at(half, nodes))

    def _given(self, B: Floats, half: Floats) -> Floats:
        return np.asarray((B - self._propagated(half, self.field.rows)) / self.noise[:, None])

    @cached_property
    def joint(self) -> JointPrecision | None:
        """Field and columns together given the observations, where the field has no sparse factor."""
        if not self.field.has_field or self.field.precisions.ordering is not None:
            return None
        rows, scale = self.field.rows, 1.0 / np.sqrt(self.noise)
        R = sparse.csr_array((self.unit[rows] * scale, (np.arange(rows.size), rows)), shape=(rows.size, self.unit.size))
        return JointPrecision(self.field.design.graph, self._shapes[0], R, self.Phi[rows] * scale[:, None])

    @cached_property
    def probes(self) -> Floats:
        """Probes (m, k) of the observations."""
        return unit_probes(self.field.rows.size)

    @cached_property
    def probed(self) -> Floats:
        r""":math:`\Sigma^{-1}` times the probes."""
        return self.solve(self.probes)

    @cached_property
    def _columns(self) -> Floats:
        """Columns and labels at the observations, shape (m, q + 1)."""
        return np.column_stack([self.Phi[self.field.rows], self.field.normal.z])

    @property
    def _labelled(self) -> Floats:
        """Columns at the observations, shape (m, q), without a copy; of use where there is no `joint`."""
        return self._columns[:, :-1]

    @cached_property
    def _halves(self) -> Floats:
        return self._half(self._columns)

    @cached_property
    def _taken(self) -> Floats:
        """What the graph field takes of columns and labels, shape (n, q + 1)."""
        return self._propagated(self._halves, np.arange(self.unit.size))

    @cached_property
    def _solved(self) -> tuple[Floats, Floats]:
        """:math:`C^{-1}` times columns and labels."""
        found = self._given(self._columns, self._halves)
        return found[:, :-1], found[:, -1]

    @cached_property
    def _inner(self) -> Floats:
        r"""Lower factor of :math:`I + \Phi' C^{-1} \Phi`."""
        F = self._labelled.T @ self._solved[0]
        return np.asarray(cholesky(0.5 * (F + F.T) + np.eye(F.shape[0]), lower=True))

    @cached_property
    def coefficients(self) -> Floats:
        """Posterior mean of the coefficients of the columns."""
        if self.joint is not None:
            return np.asarray(self.Phi[self.field.rows].T @ self.dual)
        return np.asarray(cho_solve((self._inner, True), self._labelled.T @ self._solved[1]))

    @cached_property
    def dual(self) -> Floats:
        r""":math:`\Sigma^{-1} z`."""
        if self._split is not None:
            return np.asarray(self._split[0][:, 0] / np.sqrt(self.noise))
        return np.asarray(self._solved[1] - self._solved[0] @ self.coefficients)

    @cached_property
    def _split(self) -> tuple[Floats, Floats] | None:
        """Both parts of the labels in `joint`, if there is one."""
        if self.joint is None:
            return None
        return self.joint.split((self.field.normal.z / np.sqrt(self.noise))[:, None])

    def inner(self, B: Floats) -> Floats:
        r"""Return :math:`B'\Sigma^{-1} B`, positive semidefinite however it is solved."""
        if self.joint is None:
            return np.asarray(B.T @ self.solve(B))
        return self.joint.energy(*self.joint.split(B / np.sqrt(self.noise)[:, None]))

    def solve(self, B: Floats) -> Floats:
        r"""Return :math:`\Sigma^{-1} B`."""
        if self.joint is not None:
            scale = 1.0 / np.sqrt(self.noise)[:, None]
            return np.asarray(scale * self.joint.solve(scale * B))
        found = self._field_given(B)
        return np.asarray(found - self._solved[0] @ cho_solve((self._inner, True), self._labelled.T @ found))

    @cached_property
    def misfit(self) -> float:
        """Negative log likelihood."""
        z, log_det = self.field.normal.z, float(np.log(self.noise).sum())
        if self.joint is not None and self._split is not None:
            log_det += self.joint.log_determinant - self.prior.log_determinant
            square = float(self.joint.energy(*self._split)[0, 0])
        else:
            log_det += 2.0 * float(np.log(np.diag(self._inner)).sum()) + self.log_determinant
            square = float(z @ self.dual)
        return 0.5 * (square + log_det + z.size * math.log(2.0 * math.pi))

    @cached_property
    def log_determinant(self) -> float:
        r""":math:`\log\det C - \log\det D`."""
        return self.held.log_determinant - self.prior.log_determinant if self.field.has_field else 0.0

    def change(self, moved: SparseSystem) -> float:
        r"""Return the first-order change of :math:`\log\det C` at other shapes."""
        if not self.field.has_field:
            return 0.0
        return self.held.change(moved.held) - self.prior.change(moved.prior)

    @cached_property
    def shaped(self) -> Floats:
        r"""Columns (m, 1 + k): `dual`, and :math:`C^{-1} \Phi` times `directions`.

        With `L` the factor of :math:`I + \Phi' C^{-1} \Phi` here, the derivative of :math:`\log\det\Sigma` is that of
        :math:`\log\det C + \mathrm{tr}(L^{-1} (I + \Phi' C^{-1} \Phi) L^{-\top})`; for more than a few columns the
        trace is that of random probes.
        """
        return np.column_stack([self.dual, self._solved[0] @ self.directions])

    @cached_property
    def of_shaped(self) -> Floats:
        """Covariance of the graph field at the observations times these columns."""
        return self.of_field(self.shaped)

    @cached_property
    def directions(self) -> Floats:
        """Probes of the coefficients (q, k) whose mean square is their posterior covariance.

        Their signs are those of the largest entries of columns, so that nothing depends on the sign of a feature.
        """
        columns = self._labelled
        largest = columns[np.abs(columns).argmax(axis=0), np.arange(columns.shape[1])]
        probes = np.where(largest < 0.0, -1.0, 1.0)[:, None] * unit_probes(largest.size)
        return np.asarray(solve_triangular(self._inner, probes, lower=True, trans="T"))

    def of_field(self, B: Floats) -> Floats:
        """Return the covariance of the graph field at the observations times columns."""
        if not self.field.has_field:
            return np.zeros(B.shape)
        rows = self.field.rows
        return np.asarray(self.unit[rows, None] * self.prior.at(self.prior.half(self._spread(B)), rows))

    def shaped_times(self, B: Floats) -> Floats:
        """Return the covariance at the observations of the terms that have a range and an order, times columns."""
        found = self.of_field(B)
        if self.smoothed is not None:
            F = self.smoothed[self.field.rows]
            found += F @ (F.T @ B)
        return found

    def whitened(self, terms: Collection[str] | None = None) -> Floats:
        """Return columns (n, q) whose products are the covariance of the errors of coefficients, of some or all."""
        if terms is None:
            return self._whitened
        columns = -self._taken[:, :-1] if "field" in terms else np.zeros(self.Phi.shape)
        for place in (place for name, place in self.slices.items() if name in terms):
            columns[:, place] += self.Phi[:, place]
        return np.asarray(solve_triangular(self._inner, columns.T, lower=True).T)

    @cached_property
    def _whitened(self) -> Floats:
        return np.asarray(solve_triangular(self._inner, (self.Phi - self._taken[:, :-1]).T, lower=True).T)

    @cached_property
    def _variance(self) -> Floats:
        return self.unit**2 * self.held.inverse_diagonal if self.field.has_field else np.zeros(self.unit.size)

    @cached_property
    def moments(self) -> tuple[Floats, Floats]:
        """Posterior mean and variance of the latent field at all nodes, what columns leave included."""
        H = self._whitened
        return self.mean, self._variance + np.einsum("ij,ij->i", H, H) + self.left

    @cached_property
    def mean(self) -> Floats:
        """Posterior mean of the latent field at all nodes."""
        return np.asarray(self.Phi @ self.coefficients + self.graph_field)

    @cached_property
    def graph_field(self) -> Floats:
        """Posterior mean of the graph field at all nodes."""
        if self._split is not None:
            return self.unit * self._split[1][:, 0]
        return np.asarray(self._taken[:, -1] - self._taken[:, :-1] @ self.coefficients)

    @cached_property
    def precision(self) -> Floats:
        r"""Diagonal of :math:`\Sigma^{-1}`."""
        G = solve_triangular(self._inner, self._solved[0].T, lower=True)
        return np.asarray(1.0 / self.noise - self._variance[self.field.rows] / self.noise**2 - (G**2).sum(axis=0))

    @property
    def _shares(self) -> Floats:
        """What the observations determine of every coefficient: one less its posterior variance."""
        variances = (solve_triangular(self._inner, np.eye(self.Phi.shape[1]), lower=True) ** 2).sum(axis=0)
        return np.asarray(1.0 - variances)

    @property
    def _probed_shares(self) -> Floats:
        F = self.Phi[self.field.rows]
        return np.asarray(np.einsum("ij,ij->i", F.T @ self.probes, F.T @ self.probed))

    def derivatives(self) -> tuple[dict[str, Any], dict[str, Floats]]:
        """Return derivatives of the misfit by logarithms of the variances, and those of the covariance times `dual`."""
        rows, a, m = self.field.rows, self.dual, self.field.rows.size
        F_whole, exact = self.Phi[rows], self.joint is None
        diagonal = self.precision if exact else np.einsum("ij,ij->i", self.probes, self.probed)
        own = self.h[NOISE] / self.field.observations.weights
        shares = self._shares if exact else self._probed_shares
        slopes: dict[str, Any] = {NOISE: 0.5 * float(own @ (diagonal - a**2))}
        products: dict[str, Floats] = {NOISE: own * a}
        trace, explained = float(self.noise @ diagonal), self.noise * a
        for name, place in self.slices.items():
            F, share = F_whole[:, place], float(shares[place].sum())
            product = F @ (F.T @ a)
            trace, explained = trace + share, explained + product
            if name == CONSTANT:
                continue
            slope = 0.5 * (share - float(a @ product))
            if name in self.field.columns:
                left = self.h[name] * self.field.columns[name][1][rows]
                slope, product = slope + 0.5 * float(left @ (diagonal - a**2)), product + left * a
            slopes[name], products[name] = slope, product
        if self.field.has_field:
            product = self.field.normal.z - explained
            slopes["field"], products["field"] = 0.5 * (m - trace - float(a @ product)), product
        return slopes, products


@dataclass(frozen=True, eq=False)
class SparsePosterior:
    """The latent field given observations, at one value of the hyper-parameters; see `Posterior`."""

    system: SparseSystem

    @property
    def field(self) -> SparseField:
        """The field, with working observations."""
        return self.system.field

    @property
    def h(self) -> Mapping[str, Any]:
        """The hyper-parameters."""
        return self.system.h

    def moments(self, nodes: Ints) -> tuple[Floats, Floats]:
        """Return mean and variance of the latent field."""
        return np.asarray(self.system.mean[nodes]), np.asarray(self.system.moments[1][nodes])

    def parts(self, nodes: Ints) -> dict[str, Floats]:
        """Return the posterior means of the constant and of every term."""
        system = self.system
        found = {name: system.Phi[nodes, at] @ system.coefficients[at] for name, at in system.slices.items()}
        return found | ({"field": system.graph_field[nodes]} if system.field.has_field else {})

    def covariance_times(self, nodes: Ints, Z: Floats, terms: Collection[str] | None = None) -> Floats:
        """Return the joint posterior covariance at some nodes, or of some terms there, times columns."""
        system, everywhere = self.system, np.zeros((self.system.unit.size, Z.shape[1]))
        np.add.at(everywhere, nodes, Z)
        H = system.whitened(terms)
        found = H @ (H.T @ everywhere) + system.left_by(terms)[:, None] * everywhere
        if system.field.has_field and (terms is None or "field" in terms):
            found += system.unit[:, None] * system.held.solve(system.unit[:, None] * everywhere)
        return np.asarray(found[nodes])

    def draw(self, nodes: Ints, count: int, rng: np.random.Generator) -> Floats:
        """Return joint draws of the latent field, shape (count, len(nodes))."""
        system = self.system
        H = system.whitened()
        found = system.mean[:, None] + H @ rng.standard_normal((H.shape[1], count))
        found += np.sqrt(system.left)[:, None] * rng.standard_normal(found.shape)
        if system.field.has_field:
            found += system.unit[:, None] * system.held.draw(count, rng)
        return np.asarray(found[nodes].T)

    def dual(self) -> Dual:
        """Return what the inverse covariance of the observations says of each.

        With latent variances `V` and noise `s` at the observations the diagonal is :math:`1 / s - V / s^2`.
        """
        rows, noise = self.system.field.rows, self.system.noise
        V = np.minimum((self.system.moments[1] - self.system.left)[rows], noise * (1.0 - 1e-10))
        return Dual(self.system.dual, (noise - V) / noise**2, noise)

    def given(self, observations: Observations) -> SparsePosterior:
        """Return the posterior given other observations, at the same hyper-parameters."""
        return SparsePosterior(SparseSystem(self.system.field.observed(observations), self.h))
