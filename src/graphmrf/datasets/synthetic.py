"""Random graphs (Watts-Strogatz, Erdos-Renyi, block models, ...) and parameters of the model, as in the paper.

Every graph is made from whole arrays of edges, so a million nodes take seconds; the same seed gives the same graph.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphmrf.errors import InvalidInputError
from graphmrf.graph import Graph

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from graphmrf._typing import Floats, Ints

_ATTEMPTS = 100
"""Draws until a graph is given up as never connected. By eye: the paper's needs one; doubled, so is the wait."""

__all__ = [
    "barabasi_albert",
    "block_model",
    "degree_corrected_block_model",
    "erdos_renyi",
    "parameters",
    "power_law",
    "ring",
    "torus",
    "watts_strogatz",
]


def parameters(h0: float = 1.0, *, q: int = 5, seed: int = 0) -> tuple[Floats, Floats]:
    r"""Return H (q, q) and h (q,) of a Gaussian MRF, drawn as in the paper.

    :math:`H = (Z'Z + 0.01\,I)^{-1}` with a standard normal `Z`, and :math:`h_j = h_0\,10^{u_j - 1/2}` with `u` uniform
    between 0 and 1. The same seed gives the same H and the same exponents at every `h0`.

    Parameters
    ----------
    h0 : float
        Middle of the strengths; 1, 10 and 100 in the paper.
    q : int
        Number of attributes.
    seed : int
        Seed.

    Examples
    --------
    >>> from graphmrf.model import GaussianMRF
    >>> GaussianMRF(*parameters(10.0)).q
    5
    """
    _check(h0 > 0, f"h0 must be > 0, got {h0}")
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((q, q))
    return np.linalg.inv(Z.T @ Z + 0.01 * np.eye(q)), h0 * 10.0 ** (rng.random(q) - 0.5)


def ring(n: int, neighbours: int = 2) -> Graph:
    """Return a ring lattice: `n` nodes in a circle, each joined to its `neighbours` nearest (an even number).

    Examples
    --------
    >>> ring(1000, 6)
    Graph(n_nodes=1000, n_edges=3000, unweighted)
    """
    u, v = _lattice(n, neighbours)
    return Graph.from_edges(u, v, n_nodes=n)


def watts_strogatz(n: int = 1000, neighbours: int = 6, rewired: float = 0.01, *, seed: int = 0) -> Graph:
    """Return a Watts-Strogatz graph: a ring lattice, each edge rewired with some probability, redrawn until connected.

    Examples
    --------
    >>> watts_strogatz(), watts_strogatz().n_components
    (Graph(n_nodes=1000, n_edges=3000, unweighted), 1)
    """
    _check(0 <= rewired <= 1, f"rewired must be a probability, got {rewired}")
    rng = np.random.default_rng(seed)
    for _ in range(_ATTEMPTS):
        graph = Graph.from_edges(*_rewire(rng, *_lattice(n, neighbours), n, rewired), n_nodes=n)
        if graph.n_components == 1:
            return graph
    raise InvalidInputError(f"no connected graph in {_ATTEMPTS} draws; raise neighbours above {neighbours}")


def erdos_renyi(n: int, mean_degree: float, *, seed: int = 0) -> Graph:
    """Return an Erdos-Renyi graph: any two nodes are joined with the same probability, ``mean_degree / (n - 1)``.

    Examples
    --------
    >>> 2800 < erdos_renyi(1000, 6.0).n_edges < 3200
    True
    """
    _check(n >= 2, f"n must be at least 2, got {n}")
    _check(0 <= mean_degree <= n - 1, f"mean_degree must be between 0 and {n - 1}, got {mean_degree}")
    pairs = _chosen(np.random.default_rng(seed), n * (n - 1) // 2, mean_degree / (n - 1))
    return Graph.from_edges(*_triangle(pairs), n_nodes=n)


def barabasi_albert(n: int, edges_per_node: int, *, seed: int = 0) -> Graph:
    """Return a Barabasi-Albert graph: connected, grown by preferential attachment.

    Every node draws `edges_per_node` ends among the ends of all earlier edges (the first node counts as if it had
    `edges_per_node` edges to itself); ends that are drawn twice count once, so there are a few edges less.

    Examples
    --------
    >>> 2900 < barabasi_albert(1000, 3).n_edges < 3000
    True
    """
    _check(n >= 1 and edges_per_node >= 1, f"n and edges_per_node must be at least 1, got {n} and {edges_per_node}")
    rng, m = np.random.default_rng(seed), edges_per_node
    source = np.repeat(np.arange(n), m)
    # Position 2e holds the source of edge e, position 2e + 1 its drawn end, which is what some earlier position holds.
    holder = np.arange(2 * n * m)
    holder[1::2] = rng.integers(0, np.maximum(2 * m * source, 1))
    while (holder % 2).any():
        holder = holder[holder]
    target = source[holder[1::2] // 2]
    return Graph.from_edges(source[m:], target[m:], n_nodes=n)


def block_model(sizes: ArrayLike, probabilities: ArrayLike, *, seed: int = 0) -> Graph:
    """Return a stochastic block model: nodes of groups i and j are joined with ``probabilities[i, j]``.

    Parameters
    ----------
    sizes : integer array of shape (k,)
        Nodes of every group, which are numbered group after group.
    probabilities : array of shape (k, k)
        Symmetric.
    seed : int
        Seed.

    Examples
    --------
    >>> 2500 < block_model([500, 500], [[0.01, 0.001], [0.001, 0.01]]).n_edges < 3000
    True
    """
    counts, P = _blocks(sizes, probabilities)
    _check(bool((P <= 1).all()), f"probabilities must be at most 1, got {P.max()}")
    rng, first = np.random.default_rng(seed), np.append(0, np.cumsum(counts))
    ends = []
    for i in range(counts.size):
        u, v = _triangle(_chosen(rng, int(counts[i] * (counts[i] - 1) // 2), P[i, i]))
        ends.append((u + first[i], v + first[i]))
        for j in range(i + 1, counts.size):
            u, v = np.divmod(_chosen(rng, int(counts[i] * counts[j]), P[i, j]), counts[j])
            ends.append((u + first[i], v + first[j]))
    u, v = (np.concatenate(side) for side in zip(*ends, strict=True))
    return Graph.from_edges(u, v, n_nodes=int(first[-1]))


def degree_corrected_block_model(
    sizes: ArrayLike, probabilities: ArrayLike, *, exponent: float = 2.5, seed: int = 0
) -> Graph:
    """Return a degree-corrected stochastic block model: degrees inside a group follow a power law.

    The number of edges between two groups is that of `block_model` on average; their ends are drawn with propensities
    of density ``t ** -exponent``. Edges that are drawn twice count once.

    Examples
    --------
    >>> graph = degree_corrected_block_model([500, 500], [[0.01, 0.001], [0.001, 0.01]])
    >>> 2400 < graph.n_edges < 3000, int(graph.degrees.max()) > 30
    (True, True)
    """
    counts, P = _blocks(sizes, probabilities)
    rng, first = np.random.default_rng(seed), np.append(0, np.cumsum(counts))
    shares = [_propensities(rng, int(count), exponent) for count in counts]
    ends = []
    for i in range(counts.size):
        for j in range(i, counts.size):
            pairs = counts[i] * (counts[i] - 1) / 2 if i == j else counts[i] * counts[j]
            number = int(rng.poisson(P[i, j] * pairs))
            ends.append((_drawn(rng, shares[i], number) + first[i], _drawn(rng, shares[j], number) + first[j]))
    u, v = (np.concatenate(side) for side in zip(*ends, strict=True))
    return Graph.from_edges(u[u != v], v[u != v], n_nodes=int(first[-1]))


def power_law(n: int, n_edges: int, *, exponent: float = 2.5, seed: int = 0) -> Graph:
    """Return a Chung-Lu graph of about `n_edges` edges: degrees follow a power law, repeated edges count once.

    Examples
    --------
    >>> 2700 < power_law(1000, 3000).n_edges < 3000
    True
    """
    rng = np.random.default_rng(seed)
    shares = _propensities(rng, n, exponent)
    u, v = _drawn(rng, shares, n_edges), _drawn(rng, shares, n_edges)
    return Graph.from_edges(u[u != v], v[u != v], n_nodes=n)


def torus(rows: int, columns: int) -> Graph:
    """Return a torus: a grid whose opposite sides are joined.

    Examples
    --------
    >>> torus(20, 50)
    Graph(n_nodes=1000, n_edges=2000, unweighted)
    """
    _check(rows >= 3 and columns >= 3, f"rows and columns must be at least 3, got {rows} and {columns}")
    i, j = np.divmod(np.arange(rows * columns), columns)
    ends = np.concatenate([(i + 1) % rows * columns + j, i * columns + (j + 1) % columns])
    return Graph.from_edges(np.tile(np.arange(i.size), 2), ends)


def _lattice(n: int, neighbours: int) -> tuple[Ints, Ints]:
    _check(neighbours % 2 == 0 and 0 <= neighbours < n, f"neighbours must be even and below {n}, got {neighbours}")
    u = np.tile(np.arange(n), neighbours // 2)
    return u, (u + np.repeat(np.arange(1, neighbours // 2 + 1), n)) % n


def _rewire(rng: np.random.Generator, u: Ints, v: Ints, n: int, share: float) -> tuple[Ints, Ints]:
    """Return edges of which some got another second end, such that none is a loop or there already."""
    moved = np.flatnonzero(rng.random(u.size) < share)
    v = v.copy()
    open_ends = moved
    while open_ends.size:
        v[open_ends] = rng.integers(0, n, open_ends.size)
        keys = np.minimum(u, v) * n + np.maximum(u, v)
        _, first, count = np.unique(keys, return_index=True, return_counts=True)
        repeated = np.isin(keys, keys[first[count > 1]])
        open_ends = moved[repeated[moved] | (u[moved] == v[moved])]
    return u, v


def _chosen(rng: np.random.Generator, total: int, probability: float) -> Ints:
    """Return which of `total` things happened, each with the same probability."""
    count = int(rng.binomial(total, probability))
    return rng.choice(total, size=count, replace=False, shuffle=False) if count else np.zeros(0, dtype=np.int64)


def _triangle(position: Ints) -> tuple[Ints, Ints]:
    """Return (i, j) with j < i for positions in the lower triangle, row by row."""
    i = ((1.0 + np.sqrt(1.0 + 8.0 * position)) / 2.0).astype(np.int64)
    i -= i * (i - 1) // 2 > position
    i += (i + 1) * i // 2 <= position
    return i, position - i * (i - 1) // 2


def _blocks(sizes: ArrayLike, probabilities: ArrayLike) -> tuple[Ints, Floats]:
    counts, P = np.asarray(sizes, dtype=np.int64), np.asarray(probabilities, dtype=np.float64)
    _check(counts.ndim == 1 and counts.size > 0 and bool((counts > 0).all()), f"sizes must be > 0, got {counts}")
    _check(P.shape == (counts.size, counts.size), f"probabilities must be {(counts.size,) * 2}, got shape {P.shape}")
    _check(bool((P == P.T).all() and (P >= 0).all()), "probabilities must be symmetric and >= 0; use (P + P.T) / 2")
    return counts, P


def _propensities(rng: np.random.Generator, n: int, exponent: float) -> Floats:
    """Return cumulative shares of power-law propensities, bounded so that no node takes more than its part of edges."""
    _check(exponent > 2, f"exponent must be above 2, got {exponent}")
    drawn = np.minimum((1.0 - rng.random(n)) ** (-1.0 / (exponent - 1.0)), np.sqrt(n))
    shares: Floats = np.cumsum(drawn) / drawn.sum()
    return shares


def _drawn(rng: np.random.Generator, shares: Floats, count: int) -> Ints:
    return np.minimum(np.searchsorted(shares, rng.random(count), side="right"), shares.size - 1)


def _check(holds: bool, message: str) -> None:  # noqa: FBT001 - reads like an assertion
    if not holds:
        raise InvalidInputError(message)
