"""Panels: gaps at random and the last time hidden, by one model of all times and by what people do instead.

Respiratory admissions in Glasgow, 2007 to 2011 (log of observed over expected), passengers at bus stops of Montevideo
in the first 14 days of October 2020 (log of one plus boardings), and PM2.5 in U.S. counties, 2003 to 2008. R2 and the
share of hidden values that 90 % intervals cover. "each time alone" is `GraphRegressor` on the graph of one time,
"last value" the latest known value of the node (the mean of known values where there is none), "boosting" has
features, their neighbours' means, the time, and the latest and the mean known value of the node and of its neighbours.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sklearn.metrics import r2_score

from benchmarks.holes import boosting
from benchmarks.more_data import more_root
from benchmarks.pool import NO_DATA, sweep, swept
from benchmarks.show import timed
from graphmrf import GraphRegressor, LinearGraphConvolution, ResidualPropagation, datasets, search_time_weight
from graphmrf.graph import Graph

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from benchmarks.show import Row
    from graphmrf._typing import Bools, Floats

SETS = ("Glasgow", "Montevideo", "CDC")
HOLES = ("random", "last")
SHARE = 0.3
YEARS = range(2003, 2009)
DAYS = range(1, 15)


@dataclass(frozen=True)
class Panel:
    """A graph, its times, features (n, T, p) and outcome (n, T)."""

    graph: Graph
    times: tuple[int, ...]
    X: Floats
    y: Floats

    @property
    def known(self) -> Bools:
        """Where there is an outcome."""
        return ~np.isnan(self.y)


def one(work: tuple[str, str, str]) -> Row:
    """Return accuracy, coverage, seconds and seconds of one core of a method on a panel with a kind of holes."""
    name, hole, method = work
    panel = load(name)
    hidden = panel.known & (
        np.random.default_rng(0).random(panel.y.shape) < SHARE
        if hole == "random"
        else np.arange(len(panel.times)) == len(panel.times) - 1
    )
    y = np.where(hidden, np.nan, panel.y)
    before = time.process_time()
    seconds, (mean, std) = timed(lambda: METHODS[method](panel, y))
    own = time.process_time() - before
    row: Row = {"R2": r2_score(panel.y[hidden], mean[hidden])}
    if std is not None:
        row["90 %"] = float((np.abs(panel.y - mean) <= 1.6449 * std)[hidden].mean())
    return row | {"s": seconds, "CPU s": own}


def _together(estimator: Any) -> Callable[[Panel, Floats], tuple[Floats, Floats]]:
    def predict(panel: Panel, y: Floats) -> tuple[Floats, Floats]:
        X = panel.X.reshape(y.size, -1)
        graph = search_time_weight(panel.graph.over_time(panel.times), X, y.ravel())
        mean, std = estimator().fit(graph, X, y.ravel()).predict(return_std=True)
        return mean.reshape(y.shape), std.reshape(y.shape)

    return predict


def _alone(panel: Panel, y: Floats) -> tuple[Floats, Floats]:
    mean, std = np.full(y.shape, np.nanmean(y)), np.full(y.shape, np.nanstd(y))
    for t in range(y.shape[1]):
        if not np.isnan(y[:, t]).all():
            model = GraphRegressor().fit(panel.graph, panel.X[:, t], y[:, t])
            mean[:, t], std[:, t] = model.predict(return_std=True)
    return mean, std


def _last(_: Panel, y: Floats) -> tuple[Floats, None]:
    return _latest(y), None


def _latest(y: Floats) -> Floats:
    """Return the last known value of the node before each time, else its first, else the mean."""
    before = pd.DataFrame(y).ffill(axis=1).shift(axis=1)
    return np.asarray(before.fillna(pd.DataFrame(y).bfill(axis=1)).fillna(np.nanmean(y)))


def _boosting(panel: Panel, y: Floats) -> tuple[Floats, None]:
    n, T = y.shape
    S = panel.graph.S
    own = np.array([np.where(np.arange(T) == t, np.nan, y) for t in range(T)])  # the time itself is left out
    with np.errstate(all="ignore"):
        means = np.nan_to_num(np.array([pd.DataFrame(each).mean(axis=1) for each in own]).T, nan=float(np.nanmean(y)))
    present = ~np.isnan(y)
    around = (S @ np.where(present, y, 0.0)) / np.maximum(S @ present.astype(np.float64), 1e-9)
    around[S @ present.astype(np.float64) == 0] = np.nan
    columns = [_latest(y), means, S @ means, around, np.tile(np.arange(T, dtype=np.float64), (n, 1))]
    neighbours = np.stack([S @ panel.X[:, t] for t in range(T)], axis=1)
    Z = np.concatenate([np.stack(columns, axis=2), panel.X, neighbours], axis=2).reshape(n * T, -1)
    known = present.ravel()
    return boosting().fit(Z[known], y.ravel()[known]).predict(Z).reshape(y.shape), None


METHODS: dict[str, Callable[[Panel, Floats], tuple[Floats, Floats | None]]] = {
    "GraphRegressor": _together(GraphRegressor),
    "LGC/RP": _together(lambda: ResidualPropagation(LinearGraphConvolution())),
    "each time alone": _alone,
    "last value": _last,
    "boosting": _boosting,
}


@cache
def load(name: str) -> Panel:
    """Return a panel by name."""
    return {"Glasgow": _admissions, "Montevideo": _boardings, "CDC": _climate}[name]()


def _folder(name: str) -> Path:
    root = more_root()
    assert root is not None
    return root / name


def _admissions() -> Panel:
    folder = _folder("glasgow_respiratory")
    edges = pd.read_csv(folder / "edges.csv.gz")
    long = pd.read_csv(folder / "panel.csv.gz").sort_values(["id", "year"])
    times = tuple(sorted(long["year"].unique().tolist()))
    X = long[["pm10", "jsa", "price"]].to_numpy().reshape(-1, len(times), 3)
    y = np.asarray(np.log((long["observed"] + 0.5) / long["expected"])).reshape(-1, len(times))
    return Panel(Graph.from_edges(edges["u"].to_numpy(), edges["v"].to_numpy(), n_nodes=len(y)), times, X, y)


def _boardings() -> Panel:
    folder = _folder("montevideo_bus")
    nodes, edges = pd.read_csv(folder / "nodes.csv.gz").set_index("id"), pd.read_csv(folder / "edges.csv.gz")
    graph = Graph.from_edges(edges["u"], edges["v"], 1.0 / edges["weight"].clip(lower=1.0), ids=nodes.index)
    y = np.log1p(np.asarray(nodes[[f"boardings_day{day:02}" for day in DAYS]], dtype=np.float64))
    place = np.asarray(nodes[["x_utm", "y_utm", "in_degree"]], dtype=np.float64)
    place = (place - place.mean(axis=0)) / place.std(axis=0)
    weekend = np.array([[(day + 2) % 7 >= 5] for day in DAYS], dtype=np.float64)  # 1 October 2020 was a Thursday
    X = np.concatenate([np.repeat(place[:, None], len(DAYS), axis=1), np.repeat(weekend[None], len(y), axis=0)], axis=2)
    return Panel(graph.with_ids(None), tuple(DAYS), X, y)


def _climate() -> Panel:
    years = [datasets.load(f"cdc-{year}") for year in YEARS]
    values = np.stack([each.frame[list(each.info.outcomes)].to_numpy(np.float64) for each in years], axis=1)
    assert all(each.graph == years[0].graph for each in years)
    outcome = list(years[0].info.outcomes).index("pm2.5")
    X = np.delete(values, outcome, axis=2)
    X = (X - np.nanmean(X, axis=(0, 1))) / np.nanstd(X, axis=(0, 1))
    return Panel(years[0].graph.with_ids(None), tuple(YEARS), np.nan_to_num(X), values[:, :, outcome])


CHOICES = {"panel": SETS, "hidden": HOLES, "method": tuple(METHODS)}


def run(*, quick: bool) -> list[Row]:
    """Run everything on this machine's cores; quick: two methods on one of them."""
    chosen = (
        {"panel": ["Glasgow"], "hidden": ["random"], "method": ["GraphRegressor", "last value"]} if quick else CHOICES
    )
    return NO_DATA if more_root() is None else swept(one, chosen, os.cpu_count() or 1, None)


if __name__ == "__main__":
    sweep("panels", __doc__, one, CHOICES)
