"""Maximum likelihood: attributes and a graph in, parameters with diagnostics out; graphs compared by it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from graphmrf.errors import InvalidInputError
from graphmrf.linalg.spectrum import Spectrum, density_of_states
from graphmrf.model.attributes import as_attributes, check_independent, check_rough, standardise
from graphmrf.model.em import Incomplete, check_complete_rows, fit_incomplete, observed_log_likelihood
from graphmrf.model.likelihood import (
    coupled_standard_errors,
    derivatives,
    diagonal_standard_errors,
    log_likelihood,
    log_likelihood_error,
    statistics,
)
from graphmrf.model.maximise import FitProblem, has_edges, projected_gradient_norm

if TYPE_CHECKING:
    from collections.abc import Mapping

    from graphmrf._typing import Bools, Floats
    from graphmrf.graph import Graph
    from graphmrf.model.likelihood import Statistics
    from graphmrf.model.parameters import Parameters

_NEGLIGIBLE = 1e-9  # strength of a channel that is 0 up to rounding error


@dataclass(frozen=True)
class Diagnostics:
    r"""How a maximum-likelihood fit ended.

    Attributes
    ----------
    log_likelihood : float
        Of the attributes (of the observed ones, where some are missing), with its constant.
    log_likelihood_error : float
        Standard error of `log_likelihood` from the density of states; 0 when the eigenvalues are exact.
    gradient_norm : float
        Largest entry of the projected gradient of the negative log-likelihood per node, in standardised attributes.
    iterations : int
        Newton steps.
    n_nodes : int
        Nodes with at least one observed attribute.
    n_parameters : int
        Free entries of H, of h or C, and of the mean where it was estimated.
    H_std, C_std : arrays of shape (q, q), or None
        Standard errors from the Fisher information; NaN for what lies on the boundary, None where there are none.
    flags : tuple of str
        Warnings: boundary solutions, missing entries, a graph without edges.
    """

    log_likelihood: float
    log_likelihood_error: float
    gradient_norm: float
    iterations: int
    n_nodes: int
    n_parameters: int
    H_std: Floats | None = None
    C_std: Floats | None = None
    flags: tuple[str, ...] = ()

    @property
    def aic(self) -> float:
        """Akaike's criterion, ``2 n_parameters - 2 log_likelihood``."""
        return 2.0 * self.n_parameters - 2.0 * self.log_likelihood

    @property
    def bic(self) -> float:
        """Schwarz's criterion, ``n_parameters log(n_nodes) - 2 log_likelihood``."""
        return float(self.n_parameters * np.log(self.n_nodes) - 2.0 * self.log_likelihood)

    @property
    def h_std(self) -> Floats | None:
        """Standard errors of h, shape (q,)."""
        return None if self.C_std is None else np.diag(self.C_std).copy()


def fit_maximum_likelihood(
    graph: Graph, A: Floats, problem: FitProblem, *, centre: bool, exact_entries: int = Incomplete.exact_entries
) -> tuple[Parameters, Diagnostics]:
    """Return the maximum-likelihood parameters for attributes (n, q), NaN where missing, with diagnostics.

    `centre`: whether the mean is that of the observed entries (from which a free mean starts), or 0. `exact_entries`:
    missing entries up to which the E-step is exact.
    """
    B, mean, scale = standardise(A, problem.names, centre=centre)
    problem = replace(problem, start=standardised_start(problem.start, scale))
    if np.isnan(B).any():
        check_complete_rows(B, problem.names, centre=centre)
        found, diagnostics = _fit_incomplete(Incomplete(graph, B, exact_entries=exact_entries), problem)
    else:
        found, diagnostics = _fit_complete(graph, B, problem)
    n_parameters = diagnostics.n_parameters + (len(scale) if centre else 0)
    return found.scaled(scale, mean), replace(_in_units(diagnostics, scale, ~np.isnan(A)), n_parameters=n_parameters)


def fit_for_imputation(
    graph: Graph, A: Floats, *, prior: float = 1.0, change: float = 1e-3, exact_entries: int = Incomplete.exact_entries
) -> Parameters:
    """Return the coupled field for attributes with missing entries, to the accuracy that their imputation needs.

    It is that of ``GaussianMRF.fit(graph, A, coupled=True)`` under a prior: `prior` nodes of white noise count beside
    those of the graph. So there may be fewer nodes than attributes, and attributes may be combinations of others. The
    fit ends when another round changes the variances by less than `change`.
    """
    mean = np.nanmean(A, axis=0)
    scale = np.sqrt(np.nanmean((A - mean) ** 2, axis=0))
    n, q = A.shape
    states = density_of_states(graph, probes=None if n <= 1000 else 16)  # exact in half a second
    problem = FitProblem(states, tuple(map(str, range(q))), coupled=True, mean_is_free=False, prior=prior)
    few = Incomplete(graph, (A - mean) / scale, 8, 2, Incomplete.probed_entries // 3, exact_entries)
    found, _, _ = fit_incomplete(few, problem, change=change, tolerance=change / 10)
    return found.scaled(scale, mean)


def log_density(
    graph: Graph, A: Floats, parameters: Parameters, states: Spectrum, *, exact_entries: int = Incomplete.exact_entries
) -> float:
    """Return the log-likelihood of attributes, NaN where missing."""
    deviation, centred = A - parameters.mean, replace(parameters, mean=np.zeros(parameters.q))
    if np.isnan(deviation).any():
        incomplete = Incomplete(graph, deviation, exact_entries=exact_entries)
        return observed_log_likelihood(incomplete, centred, states)[0]
    return log_likelihood(parameters.channels, statistics(graph, deviation), states)


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


def compare_graphs(graphs: Mapping[str, Graph], A: Any, *, coupled: bool = False) -> pd.DataFrame:
    """Return one row per graph, best first: the likelihood of the attributes when the field is fitted on it.

    Fits with edges have the same number of parameters, so the difference of two log-likelihoods is evidence for one
    graph over the other; a few units are chance. `error` is the standard error from the estimated spectrum of a large
    graph.

    Parameters
    ----------
    graphs : mapping of names to graphs
        Candidates over the same nodes; a graph without edges shows the gain from edges.
    A : array of shape (n, q) or DataFrame
        The attributes of the nodes; NaN is missing.
    coupled : bool
        Compare coupled fields.

    Returns
    -------
    DataFrame
        Columns `log_likelihood`, `error`, `aic`, `bic` and `behind`, the log-likelihood less that of the best graph.

    Examples
    --------
    >>> from graphmrf.graph import Graph
    >>> A = [3.0, 4.0, 4.5, 3.5, 2.0, 1.0, 0.5, 1.5]
    >>> ring, pairs = Graph.from_edges(range(8), [1, 2, 3, 4, 5, 6, 7, 0]), Graph.from_edges(range(4), range(4, 8))
    >>> compare_graphs({"pairs": pairs, "ring": ring}, A).behind.round(2)
    graph
    ring     0.00
    pairs   -2.64
    Name: behind, dtype: float64
    """
    rows = []
    for name, graph in graphs.items():
        array, names = as_attributes(graph.align(A, "A"), graph.n_nodes)
        problem = FitProblem(density_of_states(graph), names, coupled, mean_is_free=False)
        _, d = fit_maximum_likelihood(graph, array, problem, centre=True)
        rows.append((name, d.log_likelihood, d.log_likelihood_error, d.aic, d.bic))
    table = pd.DataFrame(rows, columns=["graph", "log_likelihood", "error", "aic", "bic"]).set_index("graph")
    table["behind"] = table.log_likelihood - np.max(table.log_likelihood)
    return table.sort_values("log_likelihood", ascending=False)


def standardised_start(start: Parameters | None, scale: Floats) -> Parameters | None:
    """Return the start of a fit in units of the standardised attributes."""
    if start is not None and start.q != len(scale):
        raise InvalidInputError(f"start must be a model of {len(scale)} attributes, got one of {start.q}")
    return None if start is None else start.scaled(1.0 / scale)


def _fit_complete(graph: Graph, B: Floats, problem: FitProblem) -> tuple[Parameters, Diagnostics]:
    with_ones = statistics(graph, np.column_stack([B, np.ones(len(B))]))  # for the effect of another mean
    attributes = with_ones.centred(np.zeros(len(problem.names)))
    check_independent(attributes, problem.names)
    if has_edges(problem.states):
        check_rough(attributes, problem.names, coupled=problem.coupled)
    found, steps = problem.best(with_ones, problem.start)
    data = with_ones.centred(found.mean)
    likelihood = log_likelihood(found.channels, data, problem.states)
    error = log_likelihood_error(found.channels, problem.states)
    H_std, C_std = _standard_errors(found, data, problem)
    return found, replace(_diagnostics(found, data, problem, steps, (likelihood, error)), H_std=H_std, C_std=C_std)


def _fit_incomplete(incomplete: Incomplete, problem: FitProblem) -> tuple[Parameters, Diagnostics]:
    found, steps, expected = fit_incomplete(incomplete, problem)
    likelihood = observed_log_likelihood(incomplete, found, problem.states)
    diagnostics = _diagnostics(found, expected.centred(found.mean), problem, steps, likelihood)
    flags = [f"{incomplete.count} of {incomplete.B.size} entries were missing; there are no standard errors"]
    if not incomplete.is_exact:
        flags.append(f"covariances of the missing entries were estimated with {incomplete.probes} probes")
    return found, replace(diagnostics, flags=(*diagnostics.flags, *flags))


def _diagnostics(
    found: Parameters, data: Statistics, problem: FitProblem, steps: int, likelihood: tuple[float, float]
) -> Diagnostics:
    """Return diagnostics in standardised units, without a mean and standard errors."""
    gradient = projected_gradient_norm(data, problem.states, found, coupled=problem.coupled)
    triangle = found.q * (found.q + 1) // 2
    in_C = (triangle if problem.coupled else found.q) if has_edges(problem.states) else 0
    flags = _flags(found, problem, gradient)
    return Diagnostics(*likelihood, gradient, steps, data.n, triangle + in_C, flags=flags)


def _in_units(diagnostics: Diagnostics, scale: Floats, observed: Bools) -> Diagnostics:
    """Return the diagnostics of standardised attributes in the units of the data."""
    units = np.multiply.outer(scale, scale)
    return replace(
        diagnostics,
        log_likelihood=diagnostics.log_likelihood - float((observed @ np.log(scale)).sum()),
        n_nodes=int(observed.any(axis=1).sum()),
        H_std=None if diagnostics.H_std is None else diagnostics.H_std / units,
        C_std=None if diagnostics.C_std is None else diagnostics.C_std / units,
    )


def _standard_errors(found: Parameters, data: Statistics, problem: FitProblem) -> tuple[Floats | None, Floats | None]:
    parts, d = found.channels, derivatives(found.channels, data, problem.states)
    if not has_edges(problem.states):
        return diagonal_standard_errors(parts, d, np.zeros(found.q, dtype=bool))
    if not problem.coupled:
        return diagonal_standard_errors(parts, d, np.diag(found.C) > 0)
    return coupled_standard_errors(parts, d) if parts.strength[0] > _NEGLIGIBLE else (None, None)


def _flags(found: Parameters, problem: FitProblem, gradient: float, *, wanted: float = 1e-6) -> tuple[str, ...]:
    flags, strength = [], found.channels.strength
    if not has_edges(problem.states):
        flags.append("the graph has no edges, so smoothness cannot be estimated and was set to 0")
    elif problem.coupled and strength[0] <= _NEGLIGIBLE:
        rank = int(np.count_nonzero(strength > _NEGLIGIBLE))
        flags.append(f"C is at the boundary: it has rank {rank} of {found.q}; no standard errors")
    elif not problem.coupled:
        zero = [name for name, h in zip(problem.names, np.diag(found.C), strict=True) if h == 0]
        flags += [
            f"h of {name} is 0, the boundary: given the others, it is not smooth along the edges" for name in zero
        ]
    if not problem.states.is_exact:
        flags.append("the spectrum was estimated; log_likelihood_error is the standard error that comes from it")
    if gradient > wanted:
        flags.append(f"the gradient is {gradient:.1e} at the end; the attributes are nearly collinear")
    return tuple(flags)
