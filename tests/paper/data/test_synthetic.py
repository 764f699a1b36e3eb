"""Synthetic graphs: sizes, degrees and seeds; the paper's parameters."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from graphmrf.datasets import load
from graphmrf.errors import InvalidInputError
from graphmrf.graph import Graph
from graphmrf_paper import synthetic

pytestmark = pytest.mark.slow

GRAPHS: dict[str, Callable[[int], Graph]] = {
    "watts_strogatz": lambda seed: synthetic.watts_strogatz(300, 6, 0.1, random_state=seed),
    "erdos_renyi": lambda seed: synthetic.erdos_renyi(300, 6.0, random_state=seed),
    "barabasi_albert": lambda seed: synthetic.barabasi_albert(300, 3, random_state=seed),
    "block_model": lambda seed: synthetic.block_model([100, 200], [[0.05, 0.01], [0.01, 0.03]], random_state=seed),
    "degree_corrected": lambda seed: synthetic.degree_corrected_block_model(
        [100, 200], [[0.05, 0.01], [0.01, 0.03]], random_state=seed
    ),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_same_seed_same_simple_graph(name: str) -> None:
    first, again, other = (GRAPHS[name](seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.indices, again.indices)
    assert first.indices.size != other.indices.size or not np.array_equal(first.indices, other.indices)
    assert first.n_nodes == 300
    assert not first.is_weighted
    assert not first.adjacency.diagonal().any()


def test_a_ring_is_regular_with_a_known_spectrum() -> None:
    ring = synthetic.ring(30, 4)
    assert set(ring.degrees) == {4.0}
    angle = 2 * np.pi * np.arange(30) / 30
    expected = 1 - (np.cos(angle) + np.cos(2 * angle)) / 2
    np.testing.assert_allclose(np.linalg.eigvalsh(ring.N.toarray()), np.sort(expected), atol=1e-12)


def test_watts_strogatz_keeps_all_edges_and_is_connected() -> None:
    for seed in range(5):
        graph = synthetic.watts_strogatz(random_state=seed)
        assert (graph.n_nodes, graph.n_edges, graph.n_components) == (1000, 3000, 1)
        kept = synthetic.ring(1000, 6).adjacency.multiply(graph.adjacency).sum() / 2
        assert 2930 < kept < 2995
    np.testing.assert_array_equal(synthetic.watts_strogatz(50, 4, 0.0).indices, synthetic.ring(50, 4).indices)


def test_erdos_renyi_joins_every_pair_alike() -> None:
    n = 12
    total = np.sum([synthetic.erdos_renyi(n, 4.0, random_state=s).adjacency.toarray() for s in range(2000)], axis=0)
    share = total[np.triu_indices(n, 1)] / 2000
    p = 4.0 / (n - 1)
    assert np.abs(share - p).max() < 4.5 * np.sqrt(p * (1 - p) / 2000)
    assert synthetic.erdos_renyi(20, 19.0).n_edges == 190
    assert synthetic.erdos_renyi(20, 0.0).n_edges == 0


def test_erdos_renyi_is_right_at_the_last_pairs_of_a_large_graph() -> None:
    graph = synthetic.erdos_renyi(200_000, 2.0, random_state=3)
    assert abs(graph.n_edges - 200_000) < 5 * np.sqrt(200_000)
    assert graph.indices.max() > 199_900


def test_barabasi_albert_is_connected_with_a_heavy_tail() -> None:
    graph = synthetic.barabasi_albert(5000, 2, random_state=0)
    assert graph.n_components == 1
    assert 2 * 5000 * 0.98 < graph.n_edges <= 2 * 5000
    assert graph.degrees.max() > 100
    tail = np.sort(graph.degrees)[::-1][[50, 500]]
    slope = np.log(500 / 50) / np.log(tail[0] / tail[1])
    assert 1.5 < slope < 2.6
    assert synthetic.barabasi_albert(1, 2).n_edges == 0


def test_block_models_have_the_expected_edges_between_groups() -> None:
    P = np.array([[0.2, 0.02, 0.0], [0.02, 0.1, 0.05], [0.0, 0.05, 0.3]])
    sizes = np.array([60, 80, 40])
    member = np.repeat(np.eye(3), sizes, axis=0)
    pairs = np.outer(sizes, sizes) - np.diag(sizes)
    for make in (synthetic.block_model, synthetic.degree_corrected_block_model):
        edges = sum(member.T @ make(sizes, P, random_state=s).adjacency.toarray() @ member for s in range(30)) / 30
        assert edges[0, 2] == 0
        lost = 0.0 if make is synthetic.block_model else 0.25  # edges drawn twice, most where groups are dense
        assert (edges <= 1.08 * P * pairs).all()
        assert (edges >= (0.92 - lost) * P * pairs).all()


def test_degree_correction_spreads_degrees() -> None:
    args = ([500, 500], [[0.02, 0.005], [0.005, 0.02]])
    plain, corrected = synthetic.block_model(*args), synthetic.degree_corrected_block_model(*args)
    assert corrected.degrees.var() > 4 * plain.degrees.var()


def test_parameters_share_H_and_exponents_between_strengths() -> None:
    (H, h), (other_H, other_h) = synthetic.parameters(1.0), synthetic.parameters(100.0)
    np.testing.assert_array_equal(H, other_H)
    np.testing.assert_allclose(other_h, 100 * h)
    assert (np.abs(np.log10(h)) < 0.5).all()
    assert np.linalg.eigvalsh(np.linalg.inv(H))[0] > 0.01
    assert H.shape == (5, 5)


def test_parameters_of_the_published_files_are_of_this_kind(raw_data: Path, cache: Path) -> None:
    weak, strong = (
        load(f"synthetic-paper-h{h0}", data_dir=raw_data, cache_dir=cache).extra["parameters"] for h0 in (1, 100)
    )
    np.testing.assert_allclose(strong["h"], 100 * weak["h"], rtol=1e-6)
    covariance = np.linalg.inv(weak.loc[:, "H1":].to_numpy()) - 0.01 * np.eye(5)
    assert np.linalg.eigvalsh(covariance)[0] > 0
    assert (np.abs(np.log10(weak["h"])) < 0.5).all()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: synthetic.ring(10, 3), "neighbours must be even and below 10, got 3"),
        (lambda: synthetic.ring(4, 4), "below 4, got 4"),
        (lambda: synthetic.watts_strogatz(10, 2, 1.5), "probability, got 1.5"),
        (lambda: synthetic.watts_strogatz(10, 0), "no connected graph in 100 draws"),
        (lambda: synthetic.erdos_renyi(10, 20), "between 0 and 9, got 20"),
        (lambda: synthetic.erdos_renyi(1, 0), "at least 2, got 1"),
        (lambda: synthetic.barabasi_albert(10, 0), "at least 1, got 10 and 0"),
        (lambda: synthetic.block_model([5, 5], [[0.1]]), r"must be \(2, 2\), got shape \(1, 1\)"),
        (lambda: synthetic.block_model([5, 5], [[0.1, 0.2], [0.3, 0.1]]), "symmetric"),
        (lambda: synthetic.block_model([5], [[2.0]]), "at most 1, got 2.0"),
        (lambda: synthetic.block_model([], [[]]), "sizes must be > 0"),
        (lambda: synthetic.parameters(-1.0), "h0 must be > 0, got -1.0"),
    ],
)
def test_bad_arguments_are_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        make()
