r"""The density of states of N: everything a likelihood needs to know about a graph, as a few thousand numbers.

Small graphs get their eigenvalues. Large ones get stochastic Lanczos quadrature: for a Rademacher probe `z`
:math:`z' f(N) z` has the mean :math:`\mathrm{tr} f(N)`, and the Lanczos recurrence from `z` gives it as a Gauss rule,
a sum of `f` over a few nodes with positive weights, for every `f` at once. Known quantities are used exactly: the
eigenvalue 0 of every component is taken out of the probes, and the weights are calibrated to the traces of
:math:`I`, :math:`N` and :math:`N^2`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse
from threadpoolctl import threadpool_limits

from graphmrf.engines.probes import random_columns
from graphmrf.linalg.limits import LIMITS, Limits
from graphmrf.linalg.multishift import gauss, jacobi_eigen, lanczos, squares

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from graphmrf._typing import Bools, Floats
    from graphmrf.engines import Engine
    from graphmrf.graph import Graph

_BLOCK = LIMITS.columns  # probes at once


@dataclass(frozen=True)
class LanczosQuadrature:
    """Stochastic Lanczos quadrature: rules over the spectrum of `N` from single probes, and errors of their mean."""

    # nodes, weights (probes, steps): Gauss rules; the weights of a probe add up to its squared norm
    nodes: Floats
    weights: Floats
    # radau_nodes, radau_weights (probes, steps + 1): Gauss-Radau rules with a node at 0: for functions like ``log(1 + c
    # l)`` the truth lies between the two
    radau_nodes: Floats
    radau_weights: Floats

    def noise(self, f: Callable[[Floats], Floats]) -> float:
        """Return the standard error over probes of the sum of a function, less what calibration takes out of it.

        The calibrated weights reproduce parabolas exactly, so only the spread of what a parabola leaves counts.
        """
        values, powers = f(self.nodes), _powers(self.nodes)
        root = np.sqrt(self.weights.ravel())
        columns, column = root[:, None] * powers.reshape(-1, powers.shape[-1]), root * values.ravel()
        fitted = np.linalg.lstsq(columns, column, rcond=1e-10)[0]
        residuals = (self.weights * (values - powers @ fitted)).sum(axis=1)
        return float(residuals.std(ddof=powers.shape[-1]) / np.sqrt(len(residuals)))

    def truncation(self, f: Callable[[Floats], Floats]) -> float:
        """Return the distance between Gauss and Radau rules: what is left to more Lanczos steps."""
        mean = (self.weights * f(self.nodes)).sum(axis=1)
        radau = (self.radau_weights * f(self.radau_nodes)).sum(axis=1)
        return abs(float((radau - mean).mean()))


@dataclass(frozen=True)
class Spectrum:
    r"""Nodes and weights with :math:`\sum_i f(l_i) \approx \sum_k w_k f(x_k)` over the eigenvalues `l` of N."""

    # (k,): in [0, 2], the first one 0; when `rules` is None, the others are the eigenvalues that are not 0
    nodes: Floats
    weights: Floats  # (k,): they add up to the number of graph nodes
    # the rules of single probes where the spectrum is estimated, None where it is exact
    rules: LanczosQuadrature | None = None

    @property
    def is_exact(self) -> bool:
        """Whether the nodes are the eigenvalues."""
        return self.rules is None

    @property
    def n_nodes(self) -> float:
        """Number of nodes of the graph, the sum of the weights."""
        return float(self.weights.sum())

    def sum(self, f: Callable[[Floats], Floats]) -> float:
        """Return the sum of a function over the spectrum."""
        return float(self.weights @ f(self.nodes))

    def error(self, f: Callable[[Floats], Floats]) -> float:
        """Return the standard error of `sum`: noise of the probes, and truncation of the rules; 0 when it is exact."""
        return 0.0 if self.rules is None else float(np.hypot(self.rules.noise(f), self.rules.truncation(f)))


def density_of_states(
    graph: Graph, *, probes: int | None = None, steps: int | None = None, random_state: int = 0, limits: Limits = LIMITS
) -> Spectrum:
    """Return the density of states of the normalised Laplacian.

    `probes`: ask for Lanczos quadrature with this many probes, at least 4. By default the eigenvalues are exact for up
    to `limits.dense_spectrum` nodes with edges; larger graphs get between 16 and 128 probes. `steps`: Lanczos steps per
    probe; by default, up to 100, until truncation is small beside the noise of 16 probes.
    """
    product = graph.product if probes is None else None
    if product is not None and product.is_separable and product.space.n_nodes <= limits.dense_spectrum:
        return _from_values(graph, product.eigenvalues())
    if probes is None and np.count_nonzero(~graph.isolated) <= limits.dense_spectrum:
        return _exact(graph)
    count = probe_count(graph.n_nodes) if probes is None else max(probes, 4)
    rules = _probe(graph, count, steps, random_state)
    nodes, weights = rules.nodes.ravel(), _calibrated(graph, rules)
    return Spectrum(np.append(0.0, nodes), np.append(float(graph.n_components), weights), rules)


def probe_count(n_nodes: int) -> int:
    """Number of probes for a graph: the error falls with the number of nodes as it does with that of probes."""
    return int(np.clip(4_000_000 // max(n_nodes, 1), 16, 128))


def _exact(graph: Graph) -> Spectrum:
    """Return the eigenvalues, those that are 0 (one for each component) as one node."""
    joined = np.flatnonzero(~graph.isolated)
    N = graph.N[joined][:, joined].toarray()
    with threadpool_limits(1, "blas"):  # more threads hardly help up to this size and hurt on busy cores
        values = np.linalg.eigvalsh(N) if joined.size else np.zeros(0)
    return _from_values(graph, np.append(np.zeros(np.count_nonzero(graph.isolated)), values))


def _from_values(graph: Graph, values: Floats) -> Spectrum:
    """Return the spectrum of all eigenvalues, ascending: as many are 0 as the graph has components."""
    positive = np.clip(values[graph.n_components :], 0.0, 2.0)
    return Spectrum(np.append(0.0, positive), np.append(float(graph.n_components), np.ones(positive.size)))


def _probe(graph: Graph, probes: int, steps: int | None, random_state: int) -> LanczosQuadrature:
    seeds = {
        f: np.random.SeedSequence([random_state, f]).generate_state(1, np.uint64)[0] for f in range(0, probes, _BLOCK)
    }
    blocks = [random_columns(int(own), graph.n_nodes, min(_BLOCK, probes - first)) for first, own in seeds.items()]
    Z, null = np.hstack(blocks), null_vectors(graph)
    return quadrature(graph.engine, Z - null @ (null.T @ Z), steps=steps)


def null_vectors(graph: Graph) -> sparse.csr_array:
    """Return the unit eigenvectors of `N` for eigenvalue 0, a column per component: square roots of masses."""
    total = np.bincount(graph.components, graph.mass)
    entries = (np.sqrt(graph.mass / total[graph.components]), (np.arange(graph.n_nodes), graph.components))
    return sparse.csr_array(entries, shape=(graph.n_nodes, graph.n_components))


def quadrature(
    engine: Engine, Z: Floats, allowed: Bools | None = None, *, steps: int | None = None
) -> LanczosQuadrature:
    """Return the rules of the probes `Z` (n, k) for :math:`M (I - N) M`, by their nodes in 1 less it.

    `allowed` (n, k) is the mask `M`. `steps` is by default as many as it takes for the first block of probes.
    """
    blocks = [slice(first, first + _BLOCK) for first in range(0, Z.shape[1], _BLOCK)]
    alone = 1 if steps is None else 0

    def rules(some: list[slice], steps: int | None) -> Iterator[tuple[Floats, ...]]:
        parts = ((Z[:, block], None if allowed is None else allowed[:, block], steps) for block in some)
        return engine.map_columns(_block_rules, parts)

    found = list(rules(blocks[:alone], steps))
    found += rules(blocks[alone:], found[0][0].shape[1] if found else steps)
    return LanczosQuadrature(*(np.concatenate(arrays) for arrays in zip(*found, strict=True)))


def _block_rules(
    engine: Engine, Z: Floats, allowed: Bools | None, steps: int | None, *, most: int = 100, check: int = 20
) -> tuple[Floats, ...]:
    """Return the rules of one block of probes, the arrays of a `LanczosQuadrature`.

    Without a number of steps, the rules are checked after every `check` steps and end at `most`, where truncation is
    below the noise of 16 probes on every graph in `benchmarks/spectrum.py`.
    """
    start = engine.load(Z)
    a, b, norms = [], [], squares(engine, start)[: Z.shape[1]]
    for count, (_, _, *step) in enumerate(lanczos(engine, start, engine.mask(allowed, start.shape[1])), start=1):
        a.append(step[0][: norms.size])
        b.append(step[1][: norms.size])
        if count == steps or (steps is None and count % check == 0):
            columns = zip(np.array(a).T, np.array(b).T, norms, strict=True)
            rules = tuple(np.array(part) for part in zip(*(_rules(*column) for column in columns), strict=True))
            if count in (steps, most) or has_converged(LanczosQuadrature(*rules)):
                break
    return rules


def has_converged(rules: LanczosQuadrature) -> bool:
    """Whether truncation is small beside the noise of the probes, or beside rounding."""

    def strong(x: Floats) -> Floats:
        return np.asarray(np.log1p(1000.0 * x))

    return rules.truncation(strong) <= 0.1 * rules.noise(strong) + 1e-12 * float(rules.weights[0].sum())


def _rules(a: Floats, b: Floats, norm: float) -> tuple[Floats, Floats, Floats, Floats]:
    """Return the Gauss rule of a Jacobi matrix of I - N, and the Gauss-Radau rule with a node at l = 0."""
    values, vectors = jacobi_eigen(a, b[:-1])
    # The last entry that makes 1 an eigenvalue (Golub 1973); rounding may have brought a copy of 1 back already.
    last = 1.0 - b[-1] ** 2 * float((vectors[-1] ** 2 / np.maximum(1.0 - values, 1e-12)).sum())
    fixed, fixed_weights = gauss(np.append(a, last), b)
    nodes, fixed_nodes = np.clip(1.0 - values, 0.0, 2.0), np.clip(1.0 - fixed, 0.0, 2.0)
    return nodes, norm * vectors[0] ** 2, fixed_nodes, norm * fixed_weights


def _calibrated(graph: Graph, rules: LanczosQuadrature) -> Floats:
    """Return the mean weights, changed as little as possible so that the traces of I, N and N^2 come out exactly."""
    nodes, weights = rules.nodes.ravel(), rules.weights.ravel() / len(rules.nodes)
    powers = _powers(nodes)
    gap = _traces(graph) - weights @ powers
    change = powers @ np.linalg.lstsq((weights * powers.T) @ powers, gap, rcond=1e-10)[0]
    return np.asarray(weights * np.maximum(1.0 + change, 0.0))


def _powers(nodes: Floats) -> Floats:
    """Return powers 0 to 2, of I, N and N^2, whose traces are known; a probe's noise is the rest."""
    return np.stack([np.ones_like(nodes), nodes, nodes**2], axis=-1)


def _traces(graph: Graph) -> Floats:
    """Return the traces of I (less the eigenvalues 0), N and N^2."""
    squared = graph.adjacency
    if graph.weights is not None:
        squared.data = squared.data**2
    own, weight = 1.0 - graph.loops, 1.0 / graph.mass
    return np.array([graph.n_nodes - graph.n_components, own.sum(), own @ own + weight @ (squared @ weight)])
