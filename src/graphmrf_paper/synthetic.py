"""Random graphs and parameters of the model as in the paper, and the synthetic data sets made with them.

Graphs are drawn with array operations, so a million nodes take seconds; the same seed gives the same graph.
"""

import json
from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from graphmrf._typing import Floats, Ints
from graphmrf.errors import InvalidInputError
from graphmrf.graph import Graph
from graphmrf.model import GaussianMRF
from graphmrf_paper.dataset import Attribute, Files, Info, Recipe, Tables, number_nodes, published_files, simple_edges

_ATTEMPTS = 100  # draws until a graph is given up as never connected; the paper's needs one

__all__ = [
    "barabasi_albert",
    "block_model",
    "degree_corrected_block_model",
    "erdos_renyi",
    "parameters",
    "ring",
    "watts_strogatz",
]


def parameters(h0: float = 1.0, *, q: int = 5, random_state: int = 0) -> tuple[Floats, Floats]:
    r"""Return H (q, q) and h (q,) of a Gaussian MRF, drawn as in the paper.

    :math:`H = (Z'Z + 0.01\,I)^{-1}` with a standard normal `Z`, and :math:`h_j = h_0\,10^{u_j - 1/2}` with `u` uniform
    between 0 and 1. The same seed gives the same H and the same exponents at every `h0`.

    Parameters
    ----------
    h0 : float
        Middle of the strengths; 1, 10 and 100 in the paper.
    q : int
        Number of attributes.
    random_state : int
        Seed.

    Examples
    --------
    >>> from graphmrf.model import GaussianMRF
    >>> GaussianMRF(*parameters(10.0)).q
    5
    """
    _check(h0 > 0, f"h0 must be > 0, got {h0}")
    rng = np.random.default_rng(random_state)
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


def watts_strogatz(n: int = 1000, neighbours: int = 6, rewired: float = 0.01, *, random_state: int = 0) -> Graph:
    """Return a Watts-Strogatz graph: a ring lattice, each edge rewired with some probability, redrawn until connected.

    Examples
    --------
    >>> watts_strogatz(), watts_strogatz().n_components
    (Graph(n_nodes=1000, n_edges=3000, unweighted), 1)
    """
    _check(0 <= rewired <= 1, f"rewired must be a probability, got {rewired}")
    rng = np.random.default_rng(random_state)
    for _ in range(_ATTEMPTS):
        graph = Graph.from_edges(*_rewire(rng, *_lattice(n, neighbours), n, rewired), n_nodes=n)
        if graph.n_components == 1:
            return graph
    raise InvalidInputError(f"no connected graph in {_ATTEMPTS} draws; raise neighbours above {neighbours}")


def erdos_renyi(n: int, mean_degree: float, *, random_state: int = 0) -> Graph:
    """Return an Erdos-Renyi graph: any two nodes are joined with the same probability, ``mean_degree / (n - 1)``.

    Examples
    --------
    >>> 2800 < erdos_renyi(1000, 6.0).n_edges < 3200
    True
    """
    _check(n >= 2, f"n must be at least 2, got {n}")
    _check(0 <= mean_degree <= n - 1, f"mean_degree must be between 0 and {n - 1}, got {mean_degree}")
    pairs = _chosen(np.random.default_rng(random_state), n * (n - 1) // 2, mean_degree / (n - 1))
    return Graph.from_edges(*_triangle(pairs), n_nodes=n)


def barabasi_albert(n: int, edges_per_node: int, *, random_state: int = 0) -> Graph:
    """Return a Barabasi-Albert graph: connected, grown by preferential attachment.

    Every node draws `edges_per_node` ends among the ends of all earlier edges (the first node counts as if it had
    `edges_per_node` edges to itself); ends that are drawn twice count once, so there are a few edges less.

    Examples
    --------
    >>> 2900 < barabasi_albert(1000, 3).n_edges < 3000
    True
    """
    _check(n >= 1 and edges_per_node >= 1, f"n and edges_per_node must be at least 1, got {n} and {edges_per_node}")
    rng, m = np.random.default_rng(random_state), edges_per_node
    source = np.repeat(np.arange(n), m)
    # Position 2e holds the source of edge e, position 2e + 1 its drawn end, which is what some earlier position holds.
    holder = np.arange(2 * n * m)
    holder[1::2] = rng.integers(0, np.maximum(2 * m * source, 1))
    while (holder % 2).any():
        holder = holder[holder]
    target = source[holder[1::2] // 2]
    return Graph.from_edges(source[m:], target[m:], n_nodes=n)


def block_model(sizes: ArrayLike, probabilities: ArrayLike, *, random_state: int = 0) -> Graph:
    """Return a stochastic block model: nodes of groups i and j are joined with ``probabilities[i, j]``.

    Parameters
    ----------
    sizes : integer array of shape (k,)
        Nodes of every group, which are numbered group after group.
    probabilities : array of shape (k, k)
        Symmetric.
    random_state : int
        Seed.

    Examples
    --------
    >>> 2500 < block_model([500, 500], [[0.01, 0.001], [0.001, 0.01]]).n_edges < 3000
    True
    """
    counts, P = _blocks(sizes, probabilities)
    _check(bool((P <= 1).all()), f"probabilities must be at most 1, got {P.max()}")
    rng, first = np.random.default_rng(random_state), np.append(0, np.cumsum(counts))
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
    sizes: ArrayLike, probabilities: ArrayLike, *, exponent: float = 2.5, random_state: int = 0
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
    rng, first = np.random.default_rng(random_state), np.append(0, np.cumsum(counts))
    shares = [_propensities(rng, int(count), exponent) for count in counts]
    ends = []
    for i in range(counts.size):
        for j in range(i, counts.size):
            pairs = counts[i] * (counts[i] - 1) / 2 if i == j else counts[i] * counts[j]
            number = int(rng.poisson(P[i, j] * pairs))
            ends.append((_drawn(rng, shares[i], number) + first[i], _drawn(rng, shares[j], number) + first[j]))
    u, v = (np.concatenate(side) for side in zip(*ends, strict=True))
    return Graph.from_edges(u[u != v], v[u != v], n_nodes=int(first[-1]))


def _lattice(n: int, neighbours: int) -> tuple[Ints, Ints]:
    _check(neighbours % 2 == 0 and 0 <= neighbours < n, f"neighbours must be even and below {n}, got {neighbours}")
    u = np.tile(np.arange(n), neighbours // 2)
    return u, (u + np.repeat(np.arange(1, neighbours // 2 + 1), n)) % n


def _rewire(rng: np.random.Generator, u: Ints, v: Ints, n: int, share: float) -> tuple[Ints, Ints]:
    """Return edges with some ends rewired at random, without loops or duplicates."""
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
    """Return the positions of successes among `total` independent trials."""
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
    """Return cumulative shares of power-law propensities, truncated at the square root of n."""
    _check(exponent > 2, f"exponent must be above 2, got {exponent}")
    drawn = np.minimum((1.0 - rng.random(n)) ** (-1.0 / (exponent - 1.0)), np.sqrt(n))
    shares: Floats = np.cumsum(drawn) / drawn.sum()
    return shares


def _drawn(rng: np.random.Generator, shares: Floats, count: int) -> Ints:
    return np.minimum(np.searchsorted(shares, rng.random(count), side="right"), shares.size - 1)


def _check(holds: bool, message: str) -> None:  # noqa: FBT001 - reads like an assertion
    if not holds:
        raise InvalidInputError(message)


SHIFTS = {1: "+0.0", 10: "+1.0", 100: "+2.0"}
# Folder, title, edges; None where they follow neither from the kind of graph nor from a count.
_GRAPHS: dict[str, tuple[str, str, int | None]] = {
    "": ("WattsStrogatzOriginal", "The paper's own samples", 3000),
    "watts-strogatz-": ("WattsStrogatz", "Published samples on a second Watts-Strogatz graph", 3000),
    "ring-": ("Ring", "Published samples on a ring", 3000),
    "erdos-renyi-": ("ErdosRenyi", "Published samples on an Erdos-Renyi graph", 3000),
    "barabasi-albert-": ("BarabasiAlbert", "Published samples on a Barabasi-Albert graph", None),
    "block-model-": ("StochasticBlockModel", "Published samples on a block model", None),
    "degree-corrected-block-model-": (
        "DegreeCorrectedStochasticBlockModel",
        "Published samples on a degree-corrected block model",
        None,
    ),
}
_OWN = ("the three levels share their white noise: compare them as pairs, not as independent draws",)
_OTHERS = (
    "the six graphs beside the paper's own share their white noise at all levels: compare them as pairs",
    "published with the paper, which does not use it",
)


def clean_samples(files: Files, *, path: str) -> Tables:
    """Return nodes (the first sample), edges, all samples, and the parameters they were drawn with.

    The file has the samples `Y`, the dense adjacency matrix `A`, and the parameters in one vector `ξ0`.
    """
    content = json.loads(files[path].read_text(encoding="utf-8"))
    A = np.asarray(content["Y"], dtype=np.float64)
    H, h = _unpack(np.asarray(content["ξ0"], dtype=np.float64), A.shape[2])
    return sample_tables(simple_edges(*np.nonzero(content["A"])), A, H, h)


def sample_tables(edges: pd.DataFrame, A: Floats, H: Floats, h: Floats) -> Tables:
    """Return samples A (samples, n, q) of the Gaussian MRF with parameters H (q, q) and h (q,) as tables."""
    n_samples, n_nodes, q = A.shape
    names = attribute_names(q)
    samples = pd.DataFrame(A.reshape(n_samples * n_nodes, q), columns=names)
    samples.insert(0, "node", np.tile(np.arange(n_nodes), n_samples))
    samples.insert(0, "sample", np.repeat(np.arange(n_samples), n_nodes))
    return {
        "nodes": number_nodes(dict(zip(names, A[0].T, strict=True))),
        "edges": edges,
        "samples": samples,
        "parameters": pd.DataFrame({"h": h, **{f"H{k + 1}": H[:, k] for k in range(q)}}),
    }


def attribute_names(q: int) -> list[str]:
    """Return a1, a2, ..."""
    return [f"a{k + 1}" for k in range(q)]


def _unpack(xi: Floats, q: int) -> tuple[Floats, Floats]:
    """Return H and h from one vector: h, the diagonal of H, then its upper triangle row by row."""
    upper = np.zeros((q, q))
    upper[np.triu_indices(q, 1)] = xi[2 * q :]
    return upper + upper.T + np.diag(xi[q : 2 * q]), xi[:q]


def describe(
    name: str, title: str, n_edges: int | None, *, source: str, licence: str, remarks: tuple[str, ...]
) -> Info:
    """Return the description of a data set of ten samples of five attributes on 1000 nodes."""
    names = attribute_names(5)
    attributes = tuple(Attribute(each, "", "drawn from the Gaussian MRF") for each in names)
    where = "the table has sample 0; all ten are in extra['samples'], H and h in extra['parameters']"
    return Info(name, title, 1000, n_edges, attributes, tuple(names), source, licence, (where, *remarks))


def _published_recipe(prefix: str, level: int) -> Recipe:
    folder, title, n_edges = _GRAPHS[prefix]
    info = describe(
        f"synthetic-paper-{prefix}h{level}",
        f"{title}, h0 = {level}",
        n_edges,
        source="Reference implementation of Jia & Benson, A Unifying Generative Model for Graph Learning Algorithms.",
        licence="Generated data; the repository has no licence file.",
        remarks=_OTHERS if prefix else _OWN,
    )
    path = f"synthetic/{folder}/shift_{SHIFTS[level]}.json"
    return Recipe(info, published_files(path), partial(clean_samples, path=path))


PUBLISHED_RECIPES = tuple(_published_recipe(prefix, level) for prefix in _GRAPHS for level in SHIFTS)


# Sizes and degrees are those of the published files: blocks of 100 nodes, mean degree 20 inside, 0.01 to each other.
N_SAMPLES = 10
_N = 1000
_SIZES = np.full(10, 100)
_MIXING = np.where(np.eye(10) == 1, 20 / 99, 0.01 / 100)
# How the graph is drawn, the edges it then has, words.
KINDS: dict[str, tuple[Callable[[], Graph], int, str]] = {
    "ring": (lambda: ring(_N, 6), 3000, "a ring"),
    "watts-strogatz": (lambda: watts_strogatz(_N, 6, 0.01), 3000, "a Watts-Strogatz graph"),
    "erdos-renyi": (lambda: erdos_renyi(_N, 6.0), 3068, "an Erdos-Renyi graph"),
    "barabasi-albert": (lambda: barabasi_albert(_N, 10), 9551, "a Barabasi-Albert graph"),
    "block-model": (lambda: block_model(_SIZES, _MIXING), 10065, "a block model"),
    "degree-corrected-block-model": (
        lambda: degree_corrected_block_model(_SIZES, _MIXING),
        7987,
        "a degree-corrected block model",
    ),
}


def draw_samples(_: Files, *, kind: str, level: int) -> Tables:
    """Return ten samples on a graph of the kind; needs no file."""
    graph = KINDS[kind][0]()
    H, h = parameters(float(level))
    A = GaussianMRF(H, h).sample(graph, n_samples=N_SAMPLES, random_state=0)
    W = graph.adjacency.tocoo()
    return sample_tables(simple_edges(W.row, W.col), A, H, h)


def _drawn_recipe(kind: str, level: int) -> Recipe:
    _, n_edges, words = KINDS[kind]
    info = describe(
        f"synthetic-{kind}-h{level}",
        f"Samples on {words}, h0 = {level}",
        n_edges,
        source="Drawn when it is loaded, always with the same seed, from the model and with the recipe of the paper.",
        licence="None needed.",
        remarks=(
            "the three levels share graph, H and seed: compare them as pairs, not as independent draws",
            "not the numbers of the paper, which are in synthetic-paper-h1, -h10 and -h100",
        ),
    )
    return Recipe(info, {}, partial(draw_samples, kind=kind, level=level))


DRAWN_RECIPES = tuple(_drawn_recipe(kind, level) for kind in KINDS for level in SHIFTS)
