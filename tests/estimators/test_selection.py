"""Labels chosen by their outcome: a note where known values lie at one end of what is expected, and none at random."""

import numpy as np
import pytest

from graphmrf import Graph, GraphRegressor
from graphmrf._typing import Bools, Floats

K = 12
NODES = np.arange(K * K).reshape(K, K)
EDGES = [(NODES[:, :-1], NODES[:, 1:]), (NODES[:-1], NODES[1:])]
GRID = Graph.from_edges(*(np.concatenate([pair[end].ravel() for pair in EDGES]) for end in (0, 1)))


def draw(seed: int) -> tuple[Floats, Floats]:
    """A feature and an outcome that depends on it."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((K * K, 1))
    return X, 2 * X[:, 0] + rng.standard_normal(K * K)


def notes(seed: int, known: Bools) -> tuple[str, ...]:
    X, y = draw(seed)
    return GraphRegressor(learner=None).fit(GRID, X, np.where(known, y, np.nan)).notes_


def test_a_note_warns_where_the_highest_or_the_lowest_values_are_known() -> None:
    y = draw(0)[1]
    for known, end in ((y > np.quantile(y, 0.7), "high"), (y < np.quantile(y, 0.3), "low")):
        (note,) = notes(0, known)
        assert f"values are known mostly where {end} ones are expected" in note


@pytest.mark.slow
def test_no_note_warns_where_values_are_known_at_random() -> None:
    rng = np.random.default_rng(1)
    assert not any(notes(seed, rng.random(K * K) < rng.choice([0.1, 0.3, 0.6])) for seed in range(20))


def smooth(rng: np.random.Generator) -> Floats:
    """Values that are alike among neighbours."""
    eigenvalues, vectors = GRID.eigenpairs
    return np.asarray(vectors @ (rng.standard_normal(K * K) / (0.01 + eigenvalues)))


@pytest.mark.parametrize("seed", range(4))
def test_no_note_warns_where_holes_are_regions_chosen_without_regard_to_values(seed: int) -> None:
    rng = np.random.default_rng(seed)
    y, elsewhere = smooth(rng), smooth(rng)
    strips, half = NODES.ravel() // (3 * K) % 2 == 0, NODES.ravel() < K * K // 2
    for known in (strips, half, elsewhere > np.median(elsewhere)):
        assert GraphRegressor(learner=None, members=1).fit(GRID, None, np.where(known, y, np.nan)).notes_ == ()


def test_a_model_that_predicts_the_mean_everywhere_has_no_note() -> None:
    y = np.where(np.arange(K * K) % 7 == 0, np.exp(3 * np.random.default_rng(2).standard_normal(K * K)), np.nan)
    assert GraphRegressor(terms=["field"], learner=None).fit(GRID, None, y).notes_ == ()
