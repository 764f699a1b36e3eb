"""Surveys simulated on the paper's tasks: area means with known standard errors, 5 to 500 people asked in each area.

Every area has a mean of so many people, log-uniform, whose own outcomes spread twice as much as the area means. Mean
squared error of the true area means over that of the survey itself: the field with `std=`, the same field with equal
noise (`of="latent"`), and the estimator of Fay and Herriot (1979) with the same features, its variance by restricted
maximum likelihood. Every area has a survey; the cost of a dense field is the cube of their number, so above 1,000 areas
fields are sparse. ``python -m benchmarks.surveys [--data London] [--draws 3]``.
"""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import minimize_scalar

from benchmarks.paper_data import SETS, Task, root, tasks
from benchmarks.pool import NO_DATA
from benchmarks.show import Row, show
from graphmrf import GraphRegressor

if TYPE_CHECKING:
    from graphmrf._typing import Floats


SPREAD = 2.0
"""Standard deviation of people within an area over that of the area means."""

DENSE = 1000
"""Areas up to which fields are dense."""


def survey(y: Floats, seed: int) -> tuple[Floats, Floats]:
    """Return survey means and their standard errors."""
    rng = np.random.default_rng(seed)
    std = SPREAD * y.std() / np.sqrt(np.exp(rng.uniform(np.log(5.0), np.log(500.0), y.size)))
    return y + std * rng.standard_normal(y.size), std


def fay_herriot(X: Floats, y: Floats, std: Floats) -> Floats:
    """Return the empirical best linear unbiased predictor of the area means."""
    F = np.column_stack([np.ones(y.size), X])

    def fitted(variance: float) -> tuple[Floats, Floats]:
        w = 1.0 / (variance + std**2)
        return w, F @ np.linalg.lstsq(F * np.sqrt(w)[:, None], y * np.sqrt(w), rcond=None)[0]

    def cost(log_variance: float) -> float:
        w, mean = fitted(np.exp(log_variance))
        return float(-np.log(w).sum() + w @ (y - mean) ** 2 + np.linalg.slogdet((F.T * w) @ F)[1])

    scale = 2.0 * np.log(y.std())
    variance = float(np.exp(minimize_scalar(cost, bounds=(scale - 12.0, scale + 2.0), method="bounded").x))
    w, mean = fitted(variance)
    return mean + variance * w * (y - mean)


def run(*, quick: bool) -> list[Row]:
    """Run London's outcomes with two draws; quick: with one."""
    return NO_DATA if root() is None else measure("London", 1 if quick else 2)


def measure(data: str, draws: int) -> list[Row]:
    """Return a row for every task."""
    return [_row(task, draws) for task in tasks({data: SETS[data]})]


def _row(task: Task, draws: int) -> Row:
    found: dict[str, list[float]] = {"known errors": [], "equal noise": [], "Fay-Herriot": []}
    covered, started = [], time.perf_counter()
    solver = "dense" if task.graph.n_nodes <= DENSE else "sparse"
    for draw in range(draws):
        y, std = survey(task.y, draw)
        model = GraphRegressor(solver=solver).fit(task.graph, task.X, y, std=std)
        low, high = model.predict_interval(0.9)
        covered.append(float(np.mean((low <= task.y) & (task.y <= high))))
        alike = GraphRegressor(likelihood="gaussian", solver=solver).fit(task.graph, task.X, y)
        each = (model.predict(), alike.predict(of="latent"), fay_herriot(task.X, y, std))
        for errors, mean in zip(found.values(), each, strict=True):
            errors.append(float(np.mean((mean - task.y) ** 2) / np.mean((y - task.y) ** 2)))
    row: Row = {"data": task.data, "outcome": task.outcome, "areas": task.graph.n_nodes, "solver": solver}
    row |= {name: round(float(np.mean(errors)), 4) for name, errors in found.items()}
    seconds = (time.perf_counter() - started) / draws
    return row | {"90 % intervals contain": round(float(np.mean(covered)), 3), "seconds": round(seconds, 1)}


def main() -> None:
    """Print all tasks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", choices=list(SETS), default="London")
    parser.add_argument("--draws", type=int, default=3)
    options = parser.parse_args()
    show("surveys", __doc__, measure(options.data, options.draws))


if __name__ == "__main__":
    main()
