"""Make the bundled example: the districts of an invented city, drawn from the model itself with a fixed seed.

The districts are the cells of a planar graph. Four attributes are one draw a ~ N(0, Gamma^-1) by dense algebra with
Gamma = H (x) I + diag(h) (x) N, brought to units people know. Rent is kept for 30 % of the districts; the others go to
`hidden.csv`, so that a demo can say how well it predicts.

The parameters were picked so that features and neighbours both help clearly, the seed is 0. The accuracy here says
nothing about other data.

    python examples/make_example.py [FOLDER]
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.linalg import solve_triangular
from scipy.spatial import Delaunay

import graphmrf as gm
from graphmrf._typing import Floats, Ints

SEED = 0
N_DISTRICTS = 1000
LABELLED = 0.3
FOLDER = Path(gm.datasets.__file__).parent / "example_files"

# Income (thousand per year), green space (% of the area), minutes to the centre, rent (per square metre and month).
ATTRIBUTES = ("income", "green", "minutes", "rent")
MEAN, SPREAD, DECIMALS = (48.0, 24.0, 28.0, 14.0), (9.0, 7.0, 8.0, 2.6), (1, 1, 1, 2)

# Rent follows income, green space and (against it) minutes, with precision 30; omega = 4, that is alpha = 0.8.
EFFECT = np.array([1.0, 0.5, -0.8, -1.0])
H = np.diag([0.1, 0.1, 0.1, 0.0]) + 30 * np.outer(EFFECT, EFFECT)
h = np.array([5.0, 2.5, 10.0, 4 * 30.0])


def points(rng: np.random.Generator) -> Floats:
    """Scattered positions in a disc, pushed apart so that the districts have similar sizes."""
    chosen = np.zeros((0, 2))
    while len(chosen) < N_DISTRICTS:
        radius, angle = 10 * np.sqrt(rng.random(50)), 2 * np.pi * rng.random(50)
        offers = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
        away = np.linalg.norm(offers[:, None] - chosen[None], axis=2).min(axis=1, initial=np.inf)
        chosen = np.vstack([chosen, offers[np.argmax(away)]])
    return chosen


def borders(xy: Floats) -> Ints:
    """Pairs of neighbouring districts: the Delaunay triangulation without its long edges along the rim."""
    corners = Delaunay(xy).simplices
    pairs = np.unique(np.sort(np.vstack([corners[:, [0, 1]], corners[:, [1, 2]], corners[:, [0, 2]]]), axis=1), axis=0)
    length = np.linalg.norm(xy[pairs[:, 0]] - xy[pairs[:, 1]], axis=1)
    short: Ints = pairs[length < 2.2 * np.median(length)]
    return short


def draw(graph: gm.Graph, rng: np.random.Generator) -> Floats:
    """One exact draw of the attributes, shape (n, 4): solve R' a = z with Gamma = R R'."""
    n = graph.n_nodes
    Gamma = np.kron(H, np.eye(n)) + np.kron(np.diag(h), graph.N.toarray())
    R = np.linalg.cholesky(Gamma)
    a = solve_triangular(R, rng.standard_normal(n * len(h)), lower=True, trans="T")
    return a.reshape(len(h), n).T


def main(folder: Path) -> None:
    """Write nodes.csv, edges.csv and hidden.csv."""
    rng = np.random.default_rng(SEED)
    xy = points(rng)
    pairs = borders(xy)
    A = draw(gm.Graph.from_edges(pairs[:, 0], pairs[:, 1], n_nodes=N_DISTRICTS), rng)
    values = np.array(MEAN) + np.array(SPREAD) * (A - A.mean(axis=0)) / A.std(axis=0)
    names = np.array([f"D{number:04d}" for number in range(1, N_DISTRICTS + 1)])
    nodes = pd.DataFrame({"district": names, "x": xy[:, 0].round(2), "y": xy[:, 1].round(2)})
    for name, column, decimals in zip(ATTRIBUTES, values.T, DECIMALS, strict=True):
        nodes[name] = column.round(decimals)
    hidden = rng.permutation(N_DISTRICTS) >= LABELLED * N_DISTRICTS
    gm.datasets.write(nodes.loc[hidden, ["district", "rent"]], folder / "hidden.csv")
    nodes.loc[hidden, "rent"] = np.nan
    gm.datasets.write(nodes, folder / "nodes.csv")
    gm.datasets.write(pd.DataFrame({"source": names[pairs[:, 0]], "target": names[pairs[:, 1]]}), folder / "edges.csv")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
