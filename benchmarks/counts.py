"""Counts in areas: half of them hidden at random, predicted by Poisson and negative binomial fields and by peers.

Oral cancer in 544 German districts and respiratory admissions in 271 zones of Glasgow (2007 to 2011 one after the
other). Share of the Poisson deviance of the hidden counts that is explained, over that of one overall rate, and the
share of new counts that 90 % intervals contain. Peers: a normal field of log((y + 1/2) / E), and R's mgcv with linear
effects and a Markov random field, where ``Rscript`` is installed. "ahead of log rates" is the mean difference in
explained deviance and its standard error over draws, "over Poisson" by how much the log evidence of the negative
binomial exceeds that of the Poisson field, both without trees, and in how many draws; also for counts of all districts
simulated with the features and expected numbers of oral cancer, whose rates vary from one to the next by a gamma
distribution, by a log-normal one of the same variance, or not at all. Models were developed on draws 10 and above and
the years 2007 and 2009. ``python -m benchmarks.counts [--draws 10] [--years 2011] [--keep FILE]``.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from benchmarks.more_data import more_root
from benchmarks.pool import NO_DATA, resume
from benchmarks.show import show, timed
from graphmrf import Graph, GraphRegressor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from benchmarks.show import Row
    from graphmrf._typing import Floats

    Method = Callable[["Counts", Floats], tuple[Floats, Floats | None, Floats | None]]

LEVEL = 0.9
LOG_RATES = "field of log rates"
EVIDENCE = "evidence of negative binomial"
SIMULATED = "simulated, variation of rates: "
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


METHODS: dict[str, Method] = {
    "field, Poisson": _field("poisson"),
    "field, negative binomial": _field("negative-binomial"),
    LOG_RATES: _log_rate,
    "mgcv, Poisson": _mgcv("poisson"),
    "mgcv, negative binomial": _mgcv("nb"),
}


def run(*, quick: bool) -> list[Row]:
    """Run the newest year with ten draws; quick: with one."""
    return NO_DATA if more_root() is None else measure(1 if quick else 10, [2011], 1, None)


def measure(draws: int, years: list[int], jobs: int, keep: Path | None) -> list[Row]:
    """Return a row for every task and method, and for every task one on the evidence; see `pool.resume`."""
    methods = [name for name in METHODS if not name.startswith("mgcv") or shutil.which("Rscript")]
    runs = [(task.name, method) for task in tasks(years) for method in (*methods, EVIDENCE)]
    runs += [(f"{SIMULATED}{rates}", EVIDENCE) for rates in RATES]
    found = resume(one, [(*run, draw) for run in runs for draw in range(draws)], jobs, keep)
    scores = {run: [found[*run, draw] for draw in range(draws) if (*run, draw) in found] for run in runs}
    return [_row(*run, scores[run], scores.get((run[0], LOG_RATES), [])) for run in runs if scores[run]]


def one(work: tuple[str, str, int]) -> Row:
    """Return explained deviance, coverage and seconds of a method on a draw of a task, or a gain in evidence."""
    name, method, draw = work
    task = load(name)
    if name.startswith(SIMULATED):
        return {"gain": _gain(task, simulated(task, name.removeprefix(SIMULATED), draw))}
    hidden = np.random.default_rng(draw).permutation(task.y.size) < task.y.size // 2
    y = np.where(hidden, np.nan, task.y)
    if method == EVIDENCE:
        return {"gain": _gain(task, y)}
    seconds, (mean, low, high) = timed(lambda: METHODS[method](task, y))
    overall = task.exposure * task.y[~hidden].sum() / task.exposure[~hidden].sum()
    score = 1.0 - deviance(task.y[hidden], mean[hidden]) / deviance(task.y[hidden], overall[hidden])
    row: Row = {"explained": score, "seconds": seconds}
    if low is not None and high is not None:
        row["covered"] = float(np.mean(((low <= task.y) & (task.y <= high))[hidden]))
    return row


@cache
def load(name: str) -> Counts:
    """Return a task by name; simulated counts are of German districts."""
    years = [int(name[-4:])] if name.startswith("glasgow") else []
    *_, found = tasks(years)
    return found


def _gain(task: Counts, y: Floats) -> float:
    """Return by how much the log evidence of the negative binomial exceeds that of the Poisson field."""
    models = [GraphRegressor(likelihood=name, learner=None) for name in ("negative-binomial", "poisson")]
    found, other = (each.fit(task.graph, task.X, y, exposure=task.exposure).log_evidence_ for each in models)
    return float(found - other)


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


def _row(task: str, method: str, runs: list[Row], of_logs: list[Row]) -> Row:
    """Return the means over draws, given those of the field of log rates."""
    row: Row = {"task": task, "method": method}
    if method == EVIDENCE:
        gains = [run["gain"] for run in runs]
        return row | {
            "over Poisson": f"{np.mean(gains):.2f}, greater in {sum(g > 0 for g in gains)} of {len(gains)} draws"
        }
    scores = np.array([run["explained"] for run in runs])
    row |= {f"explained {draw}": round(float(score), 3) for draw, score in enumerate(scores)}
    row |= {
        "explained": round(float(scores.mean()), 3),
        "seconds": round(float(np.mean([r["seconds"] for r in runs])), 1),
    }
    if len(of_logs) == len(runs):
        ahead = scores - np.array([run["explained"] for run in of_logs])
        row["ahead of log rates"] = f"{ahead.mean():.4f} ± {ahead.std() / np.sqrt(max(scores.size - 1, 1)):.4f}"
    covered = [run["covered"] for run in runs if "covered" in run]
    return row | ({"90 % intervals contain": round(float(np.mean(covered)), 3)} if covered else {})


def main() -> None:
    """Print all tasks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--years", type=int, nargs="+", default=[2011])
    parser.add_argument("--jobs", type=int, default=1, help="processes; 0 prints what is in the file")
    parser.add_argument("--keep", type=Path, help="file of finished runs, which are not repeated")
    options = parser.parse_args()
    show("counts", __doc__, measure(options.draws, options.years, options.jobs, options.keep))


if __name__ == "__main__":
    main()
