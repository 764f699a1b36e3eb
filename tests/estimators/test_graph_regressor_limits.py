"""GraphRegressor at the limits of its numbers: units, ranges, ties and few labels, with both solvers."""

from functools import cache
from typing import Any

import numpy as np
import pytest

from cases import random_case
from graphmrf.estimators.graph_regressor import GraphRegressor

CASE = random_case(11, n=60, p=3, labelled=40)
GRAPH, U = CASE.graph, ~CASE.known
LINEAR = np.where(U, np.nan, CASE.X @ [1.0, 2.0, 3.0])
SOLVERS = ("exact", "sparse")

both = pytest.mark.parametrize("solver", SOLVERS)


def fitted(y: Any, solver: str, *, X: Any = CASE.X, transform: str = "identity") -> GraphRegressor:
    return GraphRegressor(solver=solver, transform=transform).fit(GRAPH, X, y)


@cache
def model(solver: str) -> GraphRegressor:
    return fitted(CASE.y, solver)


@both
def test_the_shares_of_all_effects_add_up(solver: str) -> None:
    smoothed = GRAPH.N @ CASE.X
    for y in (CASE.y, LINEAR, np.where(U, np.nan, CASE.X[:, 0] - smoothed[:, 0])):
        assert fitted(y, solver).shares_.sum() == pytest.approx(1.0)


def test_every_solver_names_its_own_effects() -> None:
    names = {solver: set(model(solver).coefficients_) for solver in SOLVERS}
    assert "smoothed (standard error)" in names["exact"]
    assert "distant (standard error)" in names["sparse"]


@both
def test_draws_scatter_as_the_error_bars_say(solver: str) -> None:
    for y in (CASE.y, LINEAR):  # noise between what is assumed and less than the least
        field = fitted(y, solver)
        draws, std = field.sample(2000, seed=1), field.predict(return_std=True)[1]
        assert np.median(draws.std(axis=0)[U] / std[U]) == pytest.approx(1.0, abs=0.03)
