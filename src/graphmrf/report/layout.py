"""Where to draw the nodes of a graph without coordinates: spectral core, multilevel forces, components packed."""

from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from scipy.fft import irfft2, rfft2
from scipy.sparse import csr_array, diags_array

from graphmrf._typing import Floats, Ints

Matrix: TypeAlias = "csr_array[Any, tuple[int, int]]"

CORE_NODES = 100  # nodes up to which eigenvectors and all pairs of forces are dense: milliseconds
# Length of an edge at rest and margin between components; a unit of the drawing, which is scaled to its frame.
EDGE_LENGTH = 4.0


def positions(adjacency: Matrix, components: Ints, *, seed: int = 0, relaxed: int = 200) -> Floats:
    """Coordinates (n, 2) that place neighbours near each other; the same graph and seed always give the same drawing.

    Every connected component is coarsened until few nodes are left, drawn there by the two smoothest eigenvectors of
    its normalised Laplacian, and refined level by level with a bounded number of force-directed steps whose repulsion
    lives on a mesh (the `relaxed` largest components; smaller ones keep their eigenvectors). Time and memory are linear
    in nodes and edges. `adjacency` (n, n): no self loops; only the pattern matters. `components` (n,): their labels.
    """
    _, label, size = np.unique(components, return_inverse=True, return_counts=True)
    order = np.lexsort((label, -size[label]))
    pattern = csr_array(adjacency[order][:, order])
    bounds = np.concatenate([[0], np.cumsum(np.sort(size)[::-1])])
    blocks = [_block(pattern, start, stop) for start, stop in pairwise(bounds)]
    rng = np.random.default_rng(seed)
    large, small = blocks[:relaxed], blocks[relaxed:]
    xy = np.empty((len(components), 2))
    xy[order] = _pack([_upright(_place(W, rng)) for W in large] + [_upright(_spectral(W, rng)) for W in small])
    return xy


def _block(pattern: Matrix, start: int, stop: int) -> Matrix:
    """Pattern of the nodes start:stop, which have no edge to others."""
    indptr = pattern.indptr[start : stop + 1]
    indices = pattern.indices[indptr[0] : indptr[-1]] - start
    return csr_array((np.ones(len(indices)), indices, indptr - indptr[0]), shape=(stop - start, stop - start))


def _upright(xy: Floats) -> Floats:
    """Centred, and turned so that the drawing is widest across."""
    centred = xy - xy.mean(axis=0)
    turned: Floats = centred @ np.linalg.eigh(centred.T @ centred)[1][:, ::-1]
    return turned


def _place(W: Matrix, rng: np.random.Generator) -> Floats:
    n = W.shape[0]
    if n <= CORE_NODES:
        return _relax(W, _spectral(W, rng), heat=1.0)
    P = _merge(W, rng)
    coarse = csr_array(P.T @ W @ P)
    coarse.setdiag(0)
    coarse.eliminate_zeros()
    coarse.data = np.sqrt(coarse.data)
    xy = P @ _place(coarse, rng) * np.sqrt(n / P.shape[1])
    return _relax(W, xy + rng.uniform(-0.5, 0.5, xy.shape), heat=0.3)


def _spectral(W: Matrix, rng: np.random.Generator) -> Floats:
    """The second and third smoothest eigenvectors of N = I - S; a little noise parts nodes that they put together."""
    n = W.shape[0]
    if n <= 2:
        return np.array([[EDGE_LENGTH * i, 0.0] for i in range(n)])
    scale = 1 / np.sqrt(W.sum(axis=1))
    S = scale[:, None] * W.toarray() * scale
    xy = np.linalg.eigh(S)[1][:, [-2, -3]] * scale[:, None]
    xy *= np.sign(xy[np.abs(xy).argmax(axis=0), [0, 1]])
    scaled: Floats = xy / np.abs(xy).max(axis=0) * np.sqrt(n) * EDGE_LENGTH / 2
    return scaled + rng.uniform(-0.3, 0.3, scaled.shape)


def _merge(W: Matrix, rng: np.random.Generator) -> Matrix:
    """Clusters of a coarser graph, as indicators: every node joins its best neighbour among independent roots."""
    n = W.shape[0]
    priority = np.empty(n)
    priority[np.lexsort((rng.random(n), np.diff(W.indptr)))] = np.arange(1, n + 1)
    root, waiting = np.zeros(n, dtype=bool), priority.copy()
    while waiting.any():
        new = waiting > _highest(W, waiting)
        root |= new
        waiting[new | _highest(W, new)] = 0
    leader = np.where(root, priority, _highest(W, root * priority))
    roots, cluster = np.unique(leader, return_inverse=True)
    return csr_array((np.ones(n), (np.arange(n), cluster)), shape=(n, len(roots)))


def _highest(W: Matrix, values: Any) -> Any:
    return np.maximum.reduceat(values[W.indices], W.indptr[:-1])


def _relax(W: Matrix, xy: Floats, *, heat: float, most: int = 60, budget: int = 1_000_000) -> Floats:
    """Fruchterman-Reingold steps: edges pull with d^2, nodes push with 1 / d, moves shrink to nothing.

    The drawing hardly moves after `most` steps; `budget`, nodes times steps, bounds the time to seconds.
    """
    n = W.shape[0]
    if n <= 2:
        return xy
    push = repulsion if n <= CORE_NODES else mesh_repulsion
    steps = int(np.clip(budget / n, 10, most))
    width = np.sqrt(n)
    rows = np.repeat(np.arange(n), np.diff(W.indptr))
    for step in range(steps):
        gap = xy[W.indices] - xy[rows]
        pull = diags_array(np.hypot(*gap.T) * W.data) @ gap
        force = np.add.reduceat(pull, W.indptr[:-1]) + push(xy)
        size = np.hypot(*force.T)[:, None]
        limit = heat * width * 0.2 * (1 - step / steps) ** 2
        xy = xy + force * np.minimum(limit / np.maximum(size, 1e-12), 0.1)
    return xy


def repulsion(xy: Floats) -> Floats:
    """Sum over all other nodes of (x_i - x_j) / |x_i - x_j|^2."""
    gap = xy[:, None] - xy
    push: Floats = np.sum(gap / np.maximum(np.sum(gap**2, axis=2), 1e-3)[:, :, None], axis=1)
    return push


def mesh_repulsion(xy: Floats, cells: int = 128) -> Floats:
    """The same sum smoothed over the cells of a mesh, where it is a convolution: within 5 % of that over pairs."""
    low = xy.min(axis=0)
    cell = max(float(np.ptp(xy, axis=0).max()), 1e-9) / (cells - 2)
    B = _cloud((xy - low) / cell, cells)
    mass = (B.T @ np.ones(len(xy))).reshape(cells, cells)
    axis = np.fft.fftfreq(2 * cells, 0.5 / cells)
    dx, dy = np.meshgrid(axis, axis, indexing="ij")
    square = np.maximum(dx**2 + dy**2, 1.0)
    spectrum = rfft2(mass, s=dx.shape)
    fields = [irfft2(spectrum * rfft2(d / square))[:cells, :cells].ravel() for d in (dx, dy)]
    push: Floats = B @ np.stack(fields, axis=1) / cell
    return push


def _cloud(at: Floats, cells: int) -> Matrix:
    """Bilinear weights of points on the mesh, one row a point."""
    corner = np.floor(at).astype(np.int64)
    part = at - corner
    flat = corner[:, 0] * cells + corner[:, 1]
    columns = flat[:, None] + np.array([0, 1, cells, cells + 1])
    u, v = part.T
    weights = np.stack([(1 - u) * (1 - v), (1 - u) * v, u * (1 - v), u * v], axis=1)
    indptr = np.arange(0, 4 * len(at) + 1, 4)
    return csr_array((weights.ravel(), columns.ravel(), indptr), shape=(len(at), cells**2))


def _pack(drawings: list[Floats]) -> Floats:
    """Components side by side in shelves, largest first, with a margin."""
    boxes = [np.ptp(xy, axis=0) + EDGE_LENGTH for xy in drawings]
    width = max(boxes[0][0], np.sqrt(1.3 * sum(np.prod(box) for box in boxes)))
    x = y = shelf = 0.0
    placed = []
    for xy, box in zip(drawings, boxes, strict=True):
        if x > 0 and x + box[0] > width:
            x, y, shelf = 0.0, y - shelf, 0.0
        placed.append(xy - [xy[:, 0].min(), xy[:, 1].max()] + [x, y])
        x, shelf = x + box[0], max(shelf, float(box[1]))
    return np.concatenate(placed)
