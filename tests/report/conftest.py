from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from graphmrf._typing import Floats
from graphmrf.comparison import Effects, Explanation, FittedMethod, Prediction
from graphmrf.estimators.methods import METHODS
from graphmrf.graph import Graph
from graphmrf.report import PredictionReport

ALPHAS = np.array([0.0, 0.5, 0.9])


def ring(n: int) -> Graph:
    return Graph.from_edges(np.arange(n), (np.arange(n) + 1) % n, n_nodes=n)


def lp(scores: Floats, folds: Floats, alpha: float = 0.5, method: str = "lp") -> FittedMethod:
    """Label propagation with these scores at three levels."""
    search = {"alpha": ALPHAS, "mean_r2": scores, "fold_r2": folds}
    return FittedMethod(METHODS[method], float(scores[alpha == ALPHAS][0]), alpha=alpha, search=search)


def target(n: int, name: str = "income") -> Prediction:
    rng = np.random.default_rng(3)
    y = rng.normal(size=n)
    y[::2] = np.nan
    prediction, std = rng.normal(size=n), rng.uniform(0.5, 2.0, n) * np.isnan(y)
    left_out = y[1::2] + rng.normal(size=n // 2)
    tested = {"node": np.arange(1, n, 2), "out_of_fold": left_out}
    held_out = pd.DataFrame(tested | {"residual": np.linspace(-2.5, 1.9, n // 2)})
    return Prediction(
        name=name,
        y=y,
        value=prediction,
        method="lp",
        std=std,
        lower=prediction - 1.64 * std,
        upper=prediction + 1.64 * std,
        carries="Neighbours carry the prediction.",
        methods=(lp(np.array([0.1, 0.62, 0.5]), rng.uniform(0, 0.7, (3, 2))), FittedMethod(METHODS["lr"], 0.31)),
        explanation=Explanation(
            shares={"own features": 0.25, "graph field": 0.45, "noise": 0.3},
            effects=Effects(("age", "rooms"), np.array([0.3, -1.2]), scales=np.array([2.0, 1.0]), intercept=2.0),
            dependence=pd.DataFrame({"feature": ["age"] * 3, "x": [1.0, 2.0, 3.0], "mean": [0.0, 1.0, 0.5]}),
            learning=pd.DataFrame(
                {"n_labels": [20, 30], "expected_r2": [0.6, 0.65], "lower": [0.5, 0.6], "upper": [0.7, 0.7]}
            ),
        ),
        held_out=held_out,
        coverage=pd.DataFrame({"level": [0.5, 0.9], "inside": [0.55, 0.88]}),
    )


@pytest.fixture(scope="session")
def make_report() -> Callable[..., PredictionReport]:
    """A report on a ring of n nodes; fields can be overridden, `names` gives the targets."""

    def build(n: int = 40, names: tuple[str, ...] = ("income",), **changes: object) -> PredictionReport:
        report = PredictionReport(
            title="Wards of a town",
            graph=ring(n),
            node_ids=[f"ward-{i}" for i in range(n)],
            targets=tuple(target(n, name) for name in names),
            notes=("dropped constant column 'zone'",),
            command="graphmrf predict nodes.csv edges.csv --target income",
            version="0.1.0",
        )
        return replace(report, **changes)  # type: ignore[arg-type]  # each field has its own type

    return build
