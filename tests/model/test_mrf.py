"""The model as an object: what it accepts, what it says of itself, and its precision against dense algebra."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracle
from cases import random_case
from graphmrf.errors import InvalidInputError
from graphmrf.graph import Graph
from graphmrf.model import GaussianMRF, density_of_states

H = np.array([[2.0, -1.0, 0.0], [-1.0, 3.0, 0.5], [0.0, 0.5, 1.0]])
h = np.array([1.0, 0.0, 4.0])
C = np.array([[2.0, 1.0, 0.0], [1.0, 2.0, 0.0], [0.0, 0.0, 0.0]])


@given(st.integers(0, 10**6), st.booleans())
def test_precision_acts_as_the_dense_matrix(seed: int, coupled: bool) -> None:
    case = random_case(seed, n=9)
    mrf = GaussianMRF(H, C=C) if coupled else GaussianMRF(H, h)
    A = np.random.default_rng(seed).normal(size=(9, 3))
    gamma = oracle.field_precision(case.W, H, C if coupled else np.diag(h))
    operator, expected = mrf.precision(case.graph), gamma @ A.T.ravel()
    np.testing.assert_allclose((operator @ A).T.ravel(), expected, atol=1e-12)
    np.testing.assert_allclose(operator.to_sparse().toarray(), gamma, atol=1e-12)
    np.testing.assert_allclose(operator.quadratic(A), A.T.ravel() @ expected)


def test_precision_refuses_another_shape() -> None:
    operator = GaussianMRF(H, h).precision(Graph.from_edges([0], [1]))
    with pytest.raises(InvalidInputError, match=r"shape \(2, 3\).*got shape \(2, 2\)"):
        operator @ np.zeros((2, 2))


def test_smoothing_and_coefficients_are_the_papers() -> None:
    mrf = GaussianMRF(H, h, names=["a", "b", "c"])
    assert mrf.omega("c") == mrf.omega(2) == mrf.omega() == 4.0
    assert mrf.alpha("c") == 0.8
    np.testing.assert_allclose(mrf.beta("b"), [1 / 3, -0.5 / 3])
    assert mrf.omega("b") == mrf.alpha("b") == 0.0


def test_h_is_the_diagonal_of_C() -> None:
    coupled = GaussianMRF(H, C=C)
    assert coupled.is_coupled
    assert not GaussianMRF(H, C=np.diag(h)).is_coupled
    np.testing.assert_array_equal(coupled.h, [2.0, 2.0, 0.0])
    np.testing.assert_array_equal(GaussianMRF(H, h).C, np.diag(h))


def test_model_does_not_share_arrays_with_the_caller() -> None:
    mine = H.copy()
    mrf = GaussianMRF(mine, h)
    mine[0, 0] = 99.0
    assert mrf.H[0, 0] == 2.0
    with pytest.raises(ValueError, match="read-only"):
        mrf.H[0, 0] = 1.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"H": [[1.0, 2.0], [2.0, 1.0]], "h": [1, 1]}, "positive definite, got a smallest eigenvalue of -1"),
        ({"H": [[1.0, 0.5], [0.0, 1.0]], "h": [1, 1]}, "H must be symmetric, got entries that differ by 0.5"),
        ({"H": [[1.0, 0.0]], "h": [1, 1]}, r"H must be a square matrix \(q, q\), got shape \(1, 2\)"),
        ({"H": [[1.0, np.nan], [np.nan, 1.0]], "h": [1, 1]}, "H must be finite, got nan"),
        ({"H": [["a"]], "h": [1]}, "H must be numeric"),
        ({"H": np.eye(2), "h": [1, -2]}, "h must be >= 0, got -2 at position 1"),
        ({"H": np.eye(2), "h": [1, 2, 3]}, r"h must have one entry per attribute, shape \(2,\), got shape \(3,\)"),
        ({"H": np.eye(2)}, "either h or C, got neither"),
        ({"H": np.eye(2), "h": [1, 1], "C": np.eye(2)}, "either h or C, got both"),
        (
            {"H": np.eye(2), "C": np.diag([1.0, -1.0])},
            "C must be positive semidefinite, got .* of -1",
        ),
        ({"H": np.eye(2), "C": -np.eye(2)}, "C must be positive semidefinite"),
        ({"H": np.eye(2), "C": np.eye(3)}, r"C must have the shape of H, \(2, 2\), got \(3, 3\)"),
        ({"H": np.eye(2), "h": [1, 1], "mean": [0.0]}, "mean must have one entry per attribute"),
        ({"H": np.eye(2), "h": [1, 1], "names": ["a"]}, "got 1 names for 2 attributes"),
        ({"H": np.eye(2), "h": [1, 1], "names": ["a", "a"]}, "got a more than once"),
    ],
)
def test_bad_parameters_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        GaussianMRF(**arguments)


def test_unknown_target_is_refused() -> None:
    mrf = GaussianMRF(H, h, names=["a", "b", "c"])
    with pytest.raises(InvalidInputError, match="one of a, b, c, got 'd'"):
        mrf.omega("d")
    with pytest.raises(InvalidInputError, match="position from -3 to 2, got 3"):
        mrf.alpha(3)


@given(st.integers(0, 10**6), st.booleans())
def test_log_likelihood_is_the_dense_density(seed: int, coupled: bool) -> None:
    case = random_case(seed, n=8)
    rng = np.random.default_rng(seed)
    mrf = GaussianMRF(H, C=C, mean=[1.0, 2.0, 3.0]) if coupled else GaussianMRF(H, h, mean=[1.0, 2.0, 3.0])
    A = rng.normal(size=(8, 3)) + mrf.mean
    A[rng.random(A.shape) < rng.choice([0.0, 0.4])] = np.nan
    expected = oracle.field_log_density(case.W, mrf.H, mrf.C, A - mrf.mean)
    np.testing.assert_allclose(mrf.log_likelihood(case.graph, A), expected, rtol=1e-9, atol=1e-9)


def test_table_is_matched_by_name() -> None:
    graph = Graph.from_edges([0, 1], [1, 2])
    mrf = GaussianMRF(np.diag([1.0, 2.0]), [0.5, 3.0], names=["x", "y"])
    table = pd.DataFrame({"y": [1.0, 2.0, 3.0], "x": [0.0, 1.0, 0.0], "other": ["a", "b", "c"]})
    assert mrf.log_likelihood(graph, table) == mrf.log_likelihood(graph, table[["x", "y"]].to_numpy())
    with pytest.raises(InvalidInputError, match="the table lacks y"):
        mrf.log_likelihood(graph, table[["x"]])
    with pytest.raises(InvalidInputError, match=r"2 attributes \(x, y\), got 1 columns"):
        mrf.log_likelihood(graph, np.zeros((3, 1)))
    with pytest.raises(InvalidInputError, match="2 rows for 3 nodes"):
        mrf.log_likelihood(graph, np.zeros((2, 2)))


def test_spectrum_of_another_graph_is_refused() -> None:
    mrf, small, large = GaussianMRF([[1.0]], [1.0]), Graph.from_edges([0], [1]), Graph.from_edges([0, 1], [1, 2])
    with pytest.raises(InvalidInputError, match=r"2 nodes\), got one of 3 nodes"):
        mrf.log_likelihood(small, [0.0, 1.0], spectrum=density_of_states(large))


def test_notebook_shows_names_parameters_and_flags_escaped() -> None:
    graph = Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 0])
    table = pd.DataFrame({"<b>": [1.0, 2.0, 0.5, 3.0]})
    page = GaussianMRF.fit(graph, table)._repr_html_()
    assert "&lt;b&gt;" in page
    assert "<b>:" not in page
    for word in ("log-likelihood", "AIC", "boundary", "ω"):
        assert word in page
    assert "<th>C</th>" in GaussianMRF(H, C=C)._repr_html_()
    assert repr(GaussianMRF(np.eye(9), np.ones(9))).endswith("a7=0.5, ...)")
