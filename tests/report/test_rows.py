from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from graphmrf.comparison import Effects, Prediction
from graphmrf.errors import InvalidInputError

Maker = Callable[..., Any]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"value": np.zeros(3)}, "value of 'income' must have the shape of y"),
        ({"value": np.full(40, np.nan)}, "must be finite where y is NaN, got 20"),
        ({"std": np.full(40, -1.0)}, "std of 'income' must be >= 0 where y is NaN, got 20"),
        ({"std": np.full(40, np.nan)}, "use None for no std"),
        ({"upper": None}, "come together"),
        ({"level": 90}, r"strictly between 0 and 1, got 90; 0\.9 means 90 %"),
    ],
)
def test_a_target_rejects_what_cannot_be_shown(make_report: Maker, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        replace(make_report().targets[0], **changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"targets": ()}, "at least one target"),
        ({"node_ids": ["a"]}, "must name all 40 nodes, got 1"),
        ({"coordinates": np.zeros((40, 3))}, r"shape \(40, 2\), got \(40, 3\)"),
        ({"coordinates": np.full((40, 2), np.inf)}, "must be finite, got 40 nodes without"),
        ({"shapes": [[]]}, "shapes must be of all 40 nodes, got 1"),
        ({"features": pd.DataFrame({"age": [1.0]})}, "features must be of all 40 nodes, got 1"),
    ],
)
def test_a_report_rejects_what_does_not_fit(make_report: Maker, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        make_report(**changes)


def test_a_report_rejects_a_target_of_another_graph(make_report: Maker) -> None:
    with pytest.raises(InvalidInputError, match="must cover all 30 nodes, got shape"):
        replace(make_report(30), targets=make_report(40).targets)


def test_coefficients_and_classes_reject_ragged_rows() -> None:
    with pytest.raises(InvalidInputError, match="a value and a scale for each of 2 names"):
        Effects(("a", "b"), np.zeros(2), scales=np.ones((2, 1)))
    with pytest.raises(InvalidInputError, match="classes of 'land' need probabilities of shapes"):
        Prediction("land", np.zeros(3), np.zeros(3), "lp", classes=np.array(["a"]), probability=np.ones((2, 1)))


def test_observed_nodes_may_lack_std_and_prediction(make_report: Maker) -> None:
    target = make_report().targets[0]
    bare = np.where(target.observed, np.nan, 1.0)
    kept = replace(target, std=bare, value=bare)
    np.testing.assert_array_equal(kept.values, np.where(target.observed, target.y, 1.0))
