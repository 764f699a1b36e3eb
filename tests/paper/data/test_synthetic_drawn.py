"""Synthetic sets by name: the graph and parameters they say, and samples that fit them."""

import numpy as np
import pytest

from graphmrf.datasets import load, names, paper
from graphmrf.model import Precision
from graphmrf_paper import synthetic

pytestmark = pytest.mark.slow

KINDS = list(synthetic.KINDS)


def test_every_kind_at_every_level_has_a_name() -> None:
    assert {f"synthetic-{kind}-h{level}" for kind in KINDS for level in (1, 10, 100)} <= set(names())


@pytest.mark.parametrize("kind", KINDS)
def test_samples_fit_the_precision_they_were_drawn_with(kind: str) -> None:
    """vec(A)' Gamma vec(A) is chi-square with n q degrees of freedom; ten samples give 50,000."""
    data = load(f"synthetic-{kind}-h10")
    H = data.extra["parameters"].loc[:, "H1":].to_numpy()
    h = data.extra["parameters"]["h"].to_numpy()
    Gamma = Precision(data.graph, H, np.diag(h))
    A = data.extra["samples"].loc[:, "a1":].to_numpy().reshape(synthetic.N_SAMPLES, 1000, 5)
    freedom = A.size
    squares = sum(float(np.sum(each * (Gamma @ each))) for each in A)
    assert abs(squares - freedom) < 5 * np.sqrt(2 * freedom)
    np.testing.assert_array_equal(data.frame.loc[:, "a1":], A[0])
    assert data.notes == ()


def test_it_is_the_same_every_time_and_as_sampled() -> None:
    first, again = (load("synthetic-watts-strogatz-h100") for _ in range(2))
    assert first.frame.equals(again.frame)
    assert first.edges.equals(again.edges)
    np.testing.assert_array_equal(first.graph.degrees, synthetic.watts_strogatz().degrees)
    np.testing.assert_array_equal(first.extra["parameters"]["h"], synthetic.parameters(100.0)[1])
    assert paper(first).equals(first.frame.drop(columns="node"))
