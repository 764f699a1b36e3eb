"""Maximum likelihood: attributes and a graph in, parameters with diagnostics out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from graphmrf.errors import InvalidInputError
from graphmrf.linalg.spectrum import Spectrum, density_of_states
from graphmrf.model.diagnostics import Diagnostics
from graphmrf.model.holes import Holes
from graphmrf.model.information import coupled_errors, diagonal_errors
from graphmrf.model.likelihood import derivatives, log_likelihood, log_likelihood_error, statistics
from graphmrf.model.missing import fit_missing, observed_log_likelihood
from graphmrf.model.newton import Point
from graphmrf.model.optimum import Fitted, Plan, has_edges, projected_gradient
from graphmrf.model.screening import Standardised, check_independent, check_rough, standardise

if TYPE_CHECKING:
    from graphmrf._typing import Floats
    from graphmrf.graph import Graph

_WANTED_GRADIENT = 1e-6
NEGLIGIBLE = 1e-9
"""Strength of a channel that is 0 but for rounding."""


@dataclass(frozen=True)
class Options:
    """How to fit; see `GaussianMRF.fit`."""

    center: bool | Literal["fitted"] = True
    coupled: bool = False
    start: tuple[Floats, Floats] | None = None
    spectrum: Spectrum | None = None


@dataclass(frozen=True)
class Estimate:
    """Parameters in the units of the data."""

    H: Floats
    C: Floats
    mean: Floats
    diagnostics: Diagnostics


def fit(graph: Graph, A: Floats, names: tuple[str, ...], options: Options) -> Estimate:
    """Return the maximum-likelihood parameters for attributes (n, q), NaN where missing."""
    if options.center not in (True, False, "fitted"):
        raise InvalidInputError(f"center must be True, False or 'fitted', got {options.center!r}")
    table = standardise(A, names, centre=bool(options.center))
    plan = Plan(
        states_of(graph, options.spectrum),
        names,
        options.coupled,
        mean_is_free=options.center == "fitted",
        start=_standardised_start(options.start, table),
    )
    fitted = fit_missing(graph, table, plan) if np.isnan(A).any() else _fit_complete(graph, table, plan)
    return _estimate(fitted, table, plan, n_means=len(names) if options.center else 0)


def log_density(graph: Graph, deviation: Floats, point: Point, states: Spectrum) -> float:
    """Return the log-likelihood of attributes less their mean, NaN where missing."""
    if np.isnan(deviation).any():
        return observed_log_likelihood(Holes(graph, deviation), point, np.zeros(len(point.H)), states)[0]
    return log_likelihood(point.parts, statistics(graph, deviation), states)


def states_of(graph: Graph, given: Spectrum | None) -> Spectrum:
    """Return the density of states of a graph, unless it is given."""
    if given is None:
        return density_of_states(graph)
    if round(given.n_nodes) != graph.n_nodes:
        raise InvalidInputError(
            f"spectrum must be that of the graph ({graph.n_nodes} nodes), got one of {given.n_nodes:.0f} nodes; "
            "compute it with density_of_states(graph)"
        )
    return given


def _standardised_start(start: tuple[Floats, Floats] | None, table: Standardised) -> Point | None:
    if start is None:
        return None
    H, C = start
    q = len(table.scale)
    if H.shape != (q, q):
        raise InvalidInputError(f"start must be a model of {q} attributes, got one of {len(H)}")
    units = np.multiply.outer(table.scale, table.scale)
    return Point(H * units, C * units)


def _fit_complete(graph: Graph, table: Standardised, plan: Plan) -> Fitted:
    data, states = statistics(graph, table.with_ones()), plan.states
    attributes = data.centred(np.zeros(len(plan.names)))
    check_independent(attributes, plan.names)
    if has_edges(states):
        check_rough(attributes, plan.names, coupled=plan.coupled)
    point, shift = plan.best(data, plan.start)
    final = data.centred(shift)
    value = log_likelihood(point.parts, final, states)
    error = log_likelihood_error(point.parts, states)
    return Fitted(point, shift, final, value, error, np.ones(table.B.shape, dtype=bool))


def _estimate(fitted: Fitted, table: Standardised, plan: Plan, *, n_means: int) -> Estimate:
    point, q = fitted.point, len(plan.names)
    units = np.multiply.outer(table.scale, table.scale)
    H_std, C_std = _standard_errors(fitted, plan)
    gradient = projected_gradient(fitted.data, plan.states, point, coupled=plan.coupled).norm
    in_C = (q * (q + 1) // 2 if plan.coupled else q) if has_edges(plan.states) else 0
    diagnostics = Diagnostics(
        log_likelihood=fitted.log_likelihood - float((fitted.observed @ np.log(table.scale)).sum()),
        log_likelihood_error=fitted.error,
        gradient_norm=gradient,
        iterations=point.steps,
        n_nodes=int(fitted.observed.any(axis=1).sum()),
        n_parameters=q * (q + 1) // 2 + in_C + n_means,
        H_std=None if H_std is None else H_std / units,
        C_std=None if C_std is None else C_std / units,
        flags=(*_flags(point, plan, gradient), *fitted.flags),
    )
    return Estimate(point.H / units, point.C / units, table.mean + fitted.shift * table.scale, diagnostics)


def _standard_errors(fitted: Fitted, plan: Plan) -> tuple[Floats | None, Floats | None]:
    if not fitted.observed.all():
        return None, None
    parts = fitted.point.parts
    d = derivatives(parts, fitted.data, plan.states)
    if not has_edges(plan.states):
        return diagonal_errors(parts, d, np.zeros(len(plan.names), dtype=bool))
    if not plan.coupled:
        return diagonal_errors(parts, d, np.diag(fitted.point.C) > 0)
    return coupled_errors(parts, d) if parts.strength[0] > NEGLIGIBLE else (None, None)


def _flags(point: Point, plan: Plan, gradient: float) -> tuple[str, ...]:
    flags = []
    if not has_edges(plan.states):
        flags.append("the graph has no edges, so nothing is known about smoothness: it was set to 0")
    elif plan.coupled and point.parts.strength[0] <= NEGLIGIBLE:
        rank = int(np.count_nonzero(point.parts.strength > NEGLIGIBLE))
        flags.append(f"C is at the boundary: it has rank {rank} of {len(plan.names)}; no standard errors")
    elif not plan.coupled:
        zero = [name for name, h in zip(plan.names, np.diag(point.C), strict=True) if h == 0]
        flags += [f"h of {name} is 0, the boundary: it does not follow the edges beyond the others" for name in zero]
    if not plan.states.is_exact:
        flags.append("the spectrum was estimated; log_likelihood_error is the standard error that comes from it")
    if gradient > _WANTED_GRADIENT:
        flags.append(f"the gradient stayed at {gradient:.1e}; the attributes are close to linear combinations")
    return tuple(flags)
