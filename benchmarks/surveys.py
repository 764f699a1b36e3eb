"""Surveys simulated on the paper's tasks: area means with known standard errors, 5 to 500 people asked in each area.

Every area has a mean of so many people, log-uniform, whose own outcomes spread twice as much as the area means. Mean
squared error of the true area means over that of the survey itself: the field with `std=`, the same field with equal
noise (`of="latent"`), and the estimator of Fay and Herriot (1979) with the same features, its variance by restricted
maximum likelihood. Every area has a survey; the cost of a dense field is the cube of their number, so above 1,000 areas
fields are sparse. ``python -m benchmarks.surveys [--data London] [--draws 3] [--keep FILE]``.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from scipy.optimize import minimize_scalar

from benchmarks.paper_data import SETS, root, tasks
from benchmarks.pool import NO_DATA, resume
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


def measure(data: str, draws: int, jobs: int = 1, keep: Path | None = None) -> list[Row]:
    """Return a row for every task."""
    names = [task.outcome for task in tasks({data: SETS[data]})]
    found = resume(one, [(data, name, draw) for name in names for draw in range(draws)], jobs, keep)
    runs = {name: [found[data, name, draw] for draw in range(draws) if (data, name, draw) in found] for name in names}
    return [runs[name][0] | _means(runs[name]) for name in names if runs[name]]


def _means(runs: list[Row]) -> Row:
    """Return the means over draws."""
    table = pd.DataFrame(runs).drop(columns=["data", "outcome", "areas", "solver"])
    return dict(table.mean().round(4))


def one(work: tuple[str, str, int]) -> Row:
    """Return the errors of all methods on a draw of a task."""
    data, outcome, draw = work
    task = next(task for task in tasks({data: SETS[data]}) if task.outcome == outcome)
    solver = "dense" if task.graph.n_nodes <= DENSE else "sparse"
    y, std = survey(task.y, draw)
    started = time.perf_counter()
    model = GraphRegressor(solver=solver).fit(task.graph, task.X, y, std=std)
    low, high = model.predict_interval(0.9)
    seconds = time.perf_counter() - started
    alike = GraphRegressor(likelihood="gaussian", solver=solver).fit(task.graph, task.X, y)
    found = {
        "known errors": model.predict(),
        "equal noise": alike.predict(of="latent"),
        "Fay-Herriot": fay_herriot(task.X, y, std),
    }
    row: Row = {"data": data, "outcome": outcome, "areas": task.graph.n_nodes, "solver": solver}
    row |= {name: float(np.mean((mean - task.y) ** 2) / np.mean((y - task.y) ** 2)) for name, mean in found.items()}
    covered = float(np.mean((low <= task.y) & (task.y <= high)))
    return row | {"90 % intervals contain": covered, "seconds": seconds}


def main() -> None:
    """Print all tasks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", choices=list(SETS), default="London")
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=1, help="processes; 0 prints what is in the file")
    parser.add_argument("--keep", type=Path, help="file of finished runs, which are not repeated")
    options = parser.parse_args()
    show("surveys", __doc__, measure(options.data, options.draws, options.jobs, options.keep))


if __name__ == "__main__":
    main()
