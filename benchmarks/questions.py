"""The paper's questions: which outcomes, which labels, which other graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import svds

from benchmarks.company import Question
from benchmarks.paper_data import london_as_printed, root, samples, tasks
from graphmrf import datasets
from graphmrf.selection import assign_folds, assign_strata, split

if TYPE_CHECKING:
    from collections.abc import Iterator

    from graphmrf._typing import Bools, Floats, Ints
    from graphmrf.graph import Graph

H0 = (1, 10, 100)
COUNTY = ("income", "education", "unemployment", "election")
FAMILIES = {"WattsStrogatzOriginal": "", "WattsStrogatz": "watts-strogatz-"}
"""Published graphs as they stand in the names of data sets."""
MATURE = ("PTBR", "DE", "ENGB")


def missing() -> str:
    """Return what has to be set before these questions can be asked; empty if nothing."""
    return "" if root() else "set GRAPHMRF_DATA to the folder of the raw data sets"


def synthetic(graph: str, h0: int, n_splits: int) -> Iterator[Question]:
    """Yield the first sample of the field, each of its five attributes in turn the outcome."""
    for k, (G, X, y) in enumerate(_samples(graph, h0)):
        yield _ask(f"{graph}-h{h0}-{k + 1}", G, X[0], y[0], n_splits)


def transferred(graph: str, h0: int, n_splits: int) -> Iterator[tuple[Question, Floats]]:
    """Yield the second sample with the first as the other graph, and the outcomes of the first."""
    for k, (G, X, y) in enumerate(_samples(graph, h0)):
        yield _ask(f"{graph}-h{h0}-{k + 1}-inductive", G, X[1], y[1], n_splits, other=(G, X[0])), y[0]


def real(n_splits: int, *, quick: bool) -> Iterator[tuple[str, str, Question]]:
    """Yield the 14 real tasks, and the four of London as they were printed; quick: one of each set."""
    seen = set()
    for task in (*tasks(), *london_as_printed()):
        if not (quick and task.data in seen):
            name = f"{task.data.replace(', ', '-')}-{task.outcome}"
            yield task.data, task.outcome, _ask(name, task.graph, task.X, task.y, n_splits)
        seen.add(task.data)


def counties(n_splits: int) -> Iterator[tuple[str, Question, Floats]]:
    """Yield the four county outcomes of 2012, with 2016 as the other graph, and the outcomes of 2016."""
    before, after = datasets.load("us-2012"), datasets.load("us-2016")
    past, present = datasets.paper(before), datasets.paper(after)
    for outcome in COUNTY:
        X, y = past.drop(columns=outcome).to_numpy(), past[outcome].to_numpy()
        other = (after.graph, present.drop(columns=outcome).to_numpy())
        yield outcome, _ask(f"county-{outcome}", before.graph, X, y, n_splits, other=other), present[outcome].to_numpy()


def mature(code: str, n_splits: int, *, other: str | None = None) -> tuple[Question, Floats | None]:
    """Return the question which Twitch channels use explicit language, and the answer for the other language.

    Features are the 64 strongest components of the first language's binary features and the root of the degree; each
    graph has its own means subtracted, as the paper does with the counties of two years.
    """
    graph, binary, y = _twitch(code)
    _, _, Vt = svds(binary, k=64, random_state=0)
    X = _components(graph, binary, Vt)
    there, truth = None, None
    if other is not None:
        other_graph, other_binary, truth = _twitch(other)
        there = (other_graph, _components(other_graph, other_binary, Vt))
    labelled = np.stack([split(y.size, 0.3, random_state=seed) for seed in range(n_splits)])
    pairs = zip(labelled, range(n_splits), strict=True)
    folds = np.stack([assign_strata(y[mask].astype(np.int64), 5, random_state=seed) for mask, seed in pairs])
    return Question(f"mature-{code}{f'-{other}' if other else ''}", graph, X, y, labelled, folds, there), truth


def _samples(graph: str, h0: int) -> Iterator[tuple[Graph, Floats, Floats]]:
    """Yield the graph, features (10, n, 4) and outcomes (10, n) for each attribute."""
    G, A, _ = samples(h0, FAMILIES[graph])
    for k in range(A.shape[2]):
        yield G, np.delete(A, k, axis=2), A[:, :, k]


def _ask(
    name: str, graph: Graph, X: Floats, y: Floats, n_splits: int, other: tuple[Graph, Floats] | None = None
) -> Question:
    labelled, folds = _hide(y.size, n_splits)
    return Question(name, graph, X, y, labelled, folds, other)


def _hide(n: int, n_splits: int) -> tuple[Bools, Ints]:
    """30 % labelled, 5 folds of them, one seed for each split."""
    labelled = np.stack([split(n, 0.3, random_state=seed) for seed in range(n_splits)])
    folds = np.stack([assign_folds(int(labelled[0].sum()), 5, random_state=seed) for seed in range(n_splits)])
    return labelled, folds


def _twitch(code: str) -> tuple[Graph, sparse.csr_array, Floats]:
    data = datasets.load(f"twitch-{code.lower()}")
    ones, n = data.extra["features"], data.graph.n_nodes
    binary = sparse.csr_array((np.ones(len(ones)), (ones["node"], ones["feature"])), shape=(n, 3170))
    return data.graph, binary, data.frame["mature"].to_numpy(dtype=np.float64)


def _components(graph: Graph, binary: sparse.csr_array, Vt: Floats) -> Floats:
    """Return centred scores, and the standardised root of the degree."""
    scores, root = np.asarray(binary @ Vt.T), np.sqrt(graph.degrees)
    return np.column_stack([scores - scores.mean(axis=0), (root - root.mean()) / root.std(ddof=1)])
