from itertools import islice

import numpy as np
import pytest
from sklearn.metrics import r2_score

from graphmrf import LabelPropagation
from graphmrf._typing import Floats, Ints
from graphmrf.graph import Graph
from graphmrf.selection import ALPHAS
from graphmrf_paper.attributes import load_task
from graphmrf_paper.published import authors
from graphmrf_paper.splits import authors_parts, authors_split, julia_bits, julia_permutation

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("seed", "expected"),
    [
        (0, [0.8236475079774124, 0.9103565379264364, 0.16456579813368521]),
        (1234, [0.5908446386657102, 0.7667970365022592, 0.5662374165061859]),
    ],
)
def test_numbers_are_those_of_julia(seed: int, expected: list[float]) -> None:
    bits = np.array(list(islice(julia_bits(seed), 3)), dtype=np.uint64)
    assert (bits.view(np.float64) - 1.0).tolist() == expected


def test_permutations_are_uniform() -> None:
    first = [int(julia_permutation(5, seed)[0]) for seed in range(2000)]
    assert np.abs(np.bincount(first) - 400).max() < 5 * np.sqrt(400)


@pytest.mark.parametrize(("n", "share", "size"), [(3106, 0.3, 932), (608, 0.1, 61), (10, 0.3, 3)])
def test_the_labelled_share_is_rounded_up(n: int, share: float, size: int) -> None:
    assert authors_split(n, share, 1).sum() == size


def propagated(graph: Graph, y: Floats, train: Ints, test: Ints, alpha: float) -> float:
    hidden = np.full(y.size, np.nan)
    hidden[train] = y[train]
    return float(r2_score(y[test], LabelPropagation(alpha=alpha).fit(graph, None, hidden).predict()[test]))


def test_label_propagation_on_their_splits_and_folds_has_their_accuracy_to_four_decimals(real_data: str) -> None:
    graph, _, y = load_task(real_data, "london-2016", "income")
    found = []
    for seed in range(1, 11):
        train, test = authors_parts(np.arange(y.size), (0.3, 0.7), seed)
        folds = authors_parts(train, [0.2] * 5, seed)
        scores = [
            sum(propagated(graph, y, np.setdiff1d(train, fold), fold, alpha) for fold in folds) for alpha in ALPHAS
        ]
        alpha = ALPHAS[int(np.argmax(scores))]
        found.append((propagated(graph, y, train, test, alpha), alpha))
    value, level = np.mean(found, axis=0)
    assert value == pytest.approx(authors("real-accuracy", "london-2016/income", "LP"), abs=1e-4)
    assert level == pytest.approx(authors("real-accuracy", "london-2016/income", "LP", quantity="alpha"), abs=1e-4)
