import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphmrf.errors import InvalidInputError
from graphmrf.selection import assign_folds, split


@given(st.integers(1, 200), st.sampled_from([0.0, 0.07, 0.1, 0.3, 0.6, 1.0]), st.integers(0, 9))
def test_split_draws_the_ceiling_of_the_fraction(n: int, fraction: float, seed: int) -> None:
    drawn = split(n, fraction, random_state=seed)
    assert drawn.shape == (n,)
    assert drawn.sum() == np.ceil(np.round(fraction * n, 6))


def test_split_of_a_mask_stays_inside_it() -> None:
    mask = np.arange(50) % 2 == 0
    drawn = split(mask, 0.3, random_state=1)
    assert drawn.sum() == 8
    assert not drawn[~mask].any()


def test_split_is_a_function_of_the_seed() -> None:
    np.testing.assert_array_equal(split(40, 0.5, random_state=3), split(40, 0.5, random_state=3))
    assert (split(40, 0.5, random_state=3) != split(40, 0.5, random_state=4)).any()


@given(st.integers(2, 60), st.integers(2, 8), st.integers(0, 9))
def test_folds_are_balanced_and_never_empty(n_labelled: int, n_folds: int, seed: int) -> None:
    counts = np.bincount(assign_folds(n_labelled, n_folds, random_state=seed))
    assert counts.size == min(n_labelled, n_folds)
    assert np.ptp(counts) <= 1
    assert counts.sum() == n_labelled


@pytest.mark.parametrize("fraction", [-0.1, 1.1, np.nan])
def test_a_fraction_outside_the_unit_interval_is_refused(fraction: float) -> None:
    with pytest.raises(InvalidInputError, match="fraction must be in"):
        split(10, fraction)


def test_a_list_of_nodes_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="bool array"):
        split(np.array([0, 1, 2]), 0.5)


def test_cross_validation_of_one_node_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="at least 2 labelled nodes, got 1; label more, or give alpha a number"):
        assign_folds(1, 5)
    with pytest.raises(InvalidInputError, match="folds must be at least 2"):
        assign_folds(10, 1)
