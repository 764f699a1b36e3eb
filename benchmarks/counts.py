"""Counts in areas: half of them hidden at random, predicted by Poisson and negative binomial fields and by peers.

Oral cancer in 544 German districts and respiratory admissions in 271 zones of Glasgow (2007 to 2011 one after the
other). Share of the Poisson deviance of the hidden counts that is explained, over that of one overall rate, and the
share of new counts that 90 % intervals contain. Peers: a normal field of log((y + 1/2) / E), and R's mgcv with linear
effects and a Markov random field, where ``Rscript`` is installed. "ahead of log rates" is the mean difference in
explained deviance and its standard error over draws, "over Poisson" by how much the log evidence of the negative
binomial exceeds that of the Poisson field, and in how many draws; also for counts of all districts simulated with
the features and expected numbers of oral cancer, whose rates vary from one to the next by a gamma distribution, by a
log-normal one of the same variance, or not at all. Models were developed on draws 10 and above and the years 2007 and
2009. ``python -m benchmarks.counts [--draws 10] [--years 2011]``.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from benchmarks.more_data import more_root
from benchmarks.pool import NO_DATA
from benchmarks.show import show
from graphmrf import Graph, GraphRegressor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from benchmarks.show import Row
    from graphmrf._typing import Bools, Floats

    Method = Callable[["Counts", Floats], tuple[Floats, Floats | None, Floats | None]]

LEVEL = 0.9
LOG_RATES = "field of log rates"
RATES = ("gamma", "log-normal", "none")
SPREAD = 1.0
"""Variance of the factor by which simulated rates vary."""

_MGCV = """
library(mgcv); args <- commandArgs(TRUE)
d <- read.csv(file.path(args[1], "nodes.csv")); e <- read.csv(file.path(args[1], "edges.csv"))
d$node <- factor(d$node); ids <- levels(d$node)
nb <- lapply(ids, function(i) as.character(c(e$v[e$u == i], e$u[e$v == i]))); names(nb) <- ids
x <- setdiff(names(d), c("node", "y", "E"))
rank <- min(200, sum(!is.na(d$y)) - length(x) - 2)
smooth <- paste0("s(node, bs = 'mrf', xt = list(nb = nb), k = ", rank, ")")
f <- as.formula(paste("y ~", paste(c(x, "offset(log(E))", smooth), collapse = " + ")))
family <- if (args[2] == "poisson") poisson() else nb()
b <- gam(f, family = family, data = d[!is.na(d$y), ], method = "REML", drop.unused.levels = FALSE)
p <- predict(b, d, type = "response", newdata.guaranteed = TRUE)
write.csv(data.frame(p = as.numeric(p)), file.path(args[1], "out.csv"), row.names = FALSE)
"""


@dataclass(frozen=True)
class Counts:
    """Counts (n,) of areas, what was expected or exposed, and features (n, p)."""

    name: str
    graph: Graph
    X: Floats
    y: Floats
    exposure: Floats


def tasks(years: list[int]) -> Iterator[Counts]:
    """Yield the tasks."""
    folder = more_root()
    if folder is None:
        return
    for name, suffixes in (("germany_oral_cancer", [""]), ("glasgow_respiratory", [f"_{year}" for year in years])):
        frame, edges = (pd.read_csv(folder / name / f"{part}.csv.gz") for part in ("nodes", "edges"))
        graph = Graph.from_edges(edges["u"], edges["v"], n_nodes=len(frame))
        for suffix in suffixes:
            columns = [f"{each}{suffix}" for each in ("pm10", "jsa", "price")] if suffix else ["x", "y"]
            y, exposure = (frame[f"{each}{suffix}"].to_numpy(dtype=np.float64) for each in ("observed", "expected"))
            X = frame[columns].to_numpy(dtype=np.float64)
            yield Counts(f"{name}{suffix}", graph, (X - X.mean(axis=0)) / X.std(axis=0), y, exposure)


def deviance(y: Floats, mean: Floats) -> float:
    """Return the Poisson deviance of counts."""
    logs = y * np.log(np.where(y > 0, y, 1.0) / np.where(y > 0, mean, 1.0))
    return float(2.0 * np.sum(logs - (y - mean)))


def _field(likelihood: str) -> Method:
    def predict(task: Counts, y: Floats) -> tuple[Floats, Floats | None, Floats | None]:
        model = GraphRegressor(likelihood=likelihood).fit(task.graph, task.X, y, exposure=task.exposure)
        return model.predict(of="observation"), *model.predict_interval(LEVEL, of="observation")

    return predict


def _log_rate(task: Counts, y: Floats) -> tuple[Floats, Floats, Floats]:
    model = GraphRegressor().fit(task.graph, task.X, np.log((y + 0.5) / task.exposure))
    mean, low, high = model.predict(), *model.predict_interval(LEVEL)
    low, high = (task.exposure * np.exp(end) - 0.5 for end in (low, high))
    return task.exposure * np.exp(mean), low, high


def _mgcv(family: str) -> Method:
    def predict(task: Counts, y: Floats) -> tuple[Floats, Floats | None, Floats | None]:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            frame = pd.DataFrame(task.X).add_prefix("x").assign(y=y, E=task.exposure)
            frame.rename_axis("node").to_csv(folder / "nodes.csv")
            u, v = np.nonzero(np.triu(task.graph.adjacency.toarray()))
            pd.DataFrame({"u": u, "v": v}).to_csv(folder / "edges.csv", index=False)
            (folder / "fit.R").write_text(_MGCV)
            command = ["Rscript", str(folder / "fit.R"), str(folder), family]
            subprocess.run(command, check=True, capture_output=True)
            return pd.read_csv(folder / "out.csv")["p"].to_numpy(), None, None

    return predict


def run(*, quick: bool) -> list[Row]:
    """Run the newest year with ten draws; quick: with one."""
    return NO_DATA if more_root() is None else measure(1 if quick else 10, [2011])


def measure(draws: int, years: list[int]) -> list[Row]:
    """Return a row for every task and method."""
    methods: dict[str, Method] = {
        "field, Poisson": _field("poisson"),
        "field, negative binomial": _field("negative-binomial"),
        LOG_RATES: _log_rate,
    }
    if shutil.which("Rscript"):
        methods |= {"mgcv, Poisson": _mgcv("poisson"), "mgcv, negative binomial": _mgcv("nb")}
    rows = [row for task in tasks(years) for row in _rows(task, methods, draws)]
    base = next(tasks([]))
    for rates in RATES:
        counts = [simulated(base, rates, draw) for draw in range(draws)]
        rows.append(_evidence(replace(base, name=f"simulated, variation of rates: {rates}"), counts))
    return rows


def _rows(task: Counts, methods: Mapping[str, Method], draws: int) -> Iterator[Row]:
    found = {name: _row(task, name, method, draws) for name, method in methods.items()}
    logs = [found[LOG_RATES][f"explained {draw}"] for draw in range(draws)]
    for row in found.values():
        ahead = np.array([row[f"explained {draw}"] for draw in range(draws)], dtype=float) - np.array(logs, dtype=float)
        error = float(ahead.std()) / np.sqrt(max(draws - 1, 1))
        yield row | {"ahead of log rates": f"{ahead.mean():.4f} ± {error:.4f}"}
    yield _evidence(task, [np.where(_hidden(task, draw), np.nan, task.y) for draw in range(draws)])


def _evidence(task: Counts, counts: list[Floats]) -> Row:
    """Return by how much the log evidence of the negative binomial exceeds that of the Poisson field."""
    gains = []
    for y in counts:
        models = [GraphRegressor(likelihood=name, learner=None) for name in ("negative-binomial", "poisson")]
        found, other = (each.fit(task.graph, task.X, y, exposure=task.exposure).log_evidence_ for each in models)
        gains.append(found - other)
    ahead = f"{np.mean(gains):.2f}, greater in {sum(gain > 0 for gain in gains)} of {len(counts)} draws"
    return {"task": task.name, "method": "evidence of negative binomial", "over Poisson": ahead}


def simulated(task: Counts, rates: str, seed: int) -> Floats:
    """Return counts whose rates follow the features and vary by `rates` with variance `SPREAD`, or not ("none")."""
    rng, n = np.random.default_rng(seed), task.y.size
    log_variance = np.log1p(SPREAD)
    own = {
        "gamma": rng.gamma(1.0 / SPREAD, SPREAD, n),
        "log-normal": np.exp(np.sqrt(log_variance) * rng.standard_normal(n) - log_variance / 2.0),
        "none": np.ones(n),
    }
    mean = task.exposure * np.exp(0.3 * task.X[:, 0]) * own[rates]
    return np.asarray(rng.poisson(mean), dtype=np.float64)


def _hidden(task: Counts, draw: int) -> Bools:
    return np.asarray(np.random.default_rng(draw).permutation(task.y.size) < task.y.size // 2)


def _row(task: Counts, name: str, method: Method, draws: int) -> Row:
    row: Row = {"task": task.name, "method": name}
    scores, covered, seconds = [], [], 0.0
    for draw in range(draws):
        hidden = _hidden(task, draw)
        started = time.perf_counter()
        mean, low, high = method(task, np.where(hidden, np.nan, task.y))
        seconds += time.perf_counter() - started
        overall = task.exposure * task.y[~hidden].sum() / task.exposure[~hidden].sum()
        score = 1.0 - deviance(task.y[hidden], mean[hidden]) / deviance(task.y[hidden], overall[hidden])
        row[f"explained {draw}"] = round(score, 3)
        scores.append(score)
        if low is not None and high is not None:
            covered.append(float(np.mean(((low <= task.y) & (task.y <= high))[hidden])))
    row |= {"explained": round(float(np.mean(scores)), 3), "seconds": round(seconds / draws, 1)}
    return row | ({"90 % intervals contain": round(float(np.mean(covered)), 3)} if covered else {})


def main() -> None:
    """Print all tasks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--years", type=int, nargs="+", default=[2011])
    options = parser.parse_args()
    show("counts", __doc__, measure(options.draws, options.years))


if __name__ == "__main__":
    main()
