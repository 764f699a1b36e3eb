"""Draws have the moments of the model, whichever way they are made."""

import numpy as np
import pytest
from hypothesis import strategies as st
from scipy.stats import norm

import oracle
from cases import random_case
from fields import Field, covariance_gap, parameters, random_field
from graphmrf._typing import Floats
from graphmrf.errors import InvalidInputError
from graphmrf.graph import Graph
from graphmrf.model import GaussianMRF
from graphmrf.model.conditional import sample_field

seeds = st.integers(0, 10**6)


def thirty_nodes(seed: int) -> Field:
    rng = np.random.default_rng(seed)
    W = random_case(seed, n=30).W
    H, C = parameters(rng, 3)
    return Field(W, GaussianMRF(H, C=C, mean=rng.normal(size=3)), np.zeros((30, 3)), np.ones((30, 3), dtype=bool))


def stacked(draws: Floats) -> Floats:
    return draws.transpose(0, 2, 1).reshape(len(draws), -1)


def largest_gap(size: int) -> float:
    """What the largest of all entries of a symmetric matrix passes once in a million times."""
    return float(norm.isf(1e-6 / (size * (size + 1))))


@pytest.mark.parametrize("seed", range(4))
def test_covariance_of_20_000_draws_is_the_inverse_of_the_precision(seed: int) -> None:
    field = thirty_nodes(seed)
    draws = stacked(field.mrf.sample(field.graph, 20_000, seed) - field.mrf.mean)
    covariance = np.linalg.inv(oracle.field_precision(field.W, field.mrf.H, field.mrf.C))
    assert covariance_gap(draws, covariance) < largest_gap(90)
    assert np.abs(draws.mean(axis=0) / np.sqrt(np.diag(covariance) / 20_000)).max() < norm.isf(1e-6 / 180)


@pytest.mark.parametrize("seed", range(4))
def test_covariance_of_perturbed_and_solved_draws(seed: int) -> None:
    field = thirty_nodes(seed)
    draws = stacked(sample_field(field.mrf.parameters, field.graph, 2_000, seed, dense_nodes=0) - field.mrf.mean)
    covariance = np.linalg.inv(oracle.field_precision(field.W, field.mrf.H, field.mrf.C))
    assert covariance_gap(draws, covariance) < largest_gap(90)


def test_the_seed_decides_the_draws() -> None:
    field = random_field(1)
    first, again, other = (field.mrf.sample(field.graph, 2, seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - other).max() > 0.01


@pytest.mark.parametrize("n_samples", [-1, 1.5, True])
def test_number_of_samples_is_checked(n_samples: int) -> None:
    field = random_field(1)
    with pytest.raises(InvalidInputError, match="n_samples must be"):
        field.mrf.sample(field.graph, n_samples)


def test_no_sample_and_no_edge() -> None:
    mrf = GaussianMRF(np.diag([4.0, 1.0]), [1.0, 1.0])
    assert mrf.sample(Graph.from_edges([0], [1]), 0).shape == (0, 2, 2)
    draws = mrf.sample(Graph.from_edges([], [], n_nodes=3), 20_000)
    assert covariance_gap(stacked(draws), np.diag([0.25] * 3 + [1.0] * 3)) < largest_gap(6)
