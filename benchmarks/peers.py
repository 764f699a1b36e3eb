"""Methods of node regression from other packages, and all of ours, behind one signature: for `benchmarks.everything`.

Each takes a task and its outcomes, NaN where hidden, and returns a `Forecast`. Trees see ``[X, SX, S²X]``; networks of
PyTorch Geometric see `X` (a constant where there are no features) and stop early on a fifth of the labels; nearest
neighbours and the Gaussian process need coordinates; mgcv fits smooth effects and a Markov random field. Where a task
has categories as such (`Task.table`), `GraphRegressor` sees these, all others a column of 0 and 1 for every level.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel
from sklearn.linear_model import RidgeCV
from sklearn.neighbors import KNeighborsRegressor

from benchmarks.holes import Forecast, boosting, neighbourhoods
from graphmrf import (
    GraphConvolutionalNetwork,
    GraphRegressor,
    LabelPropagation,
    LabelSpreading,
    LinearGraphConvolution,
    LinearRegression,
    ResidualPropagation,
    SimpleGraphConvolution,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.more_data import Task
    from graphmrf._typing import Floats, Ints

OURS = "GraphRegressor"
PLAIN = "GraphRegressor without trees"
HELD_OUT = 0.2
"""Part of the labels by which a network stops."""
EPOCHS, PATIENCE = 500, 50
HIDDEN_UNITS = 64
MOST_LABELS = 2500
"""Labels of a Gaussian process, and nodes of mgcv's Markov random field: both are cubic."""
RANK = 200
"""Most basis functions of mgcv's Markov random field."""


class NotApplicableError(Exception):
    """A method cannot be run on a task, with the reason."""


@dataclass(frozen=True)
class Method:
    """A method: what it belongs to, how it predicts, and the package or program it needs."""

    family: str
    predict: Callable[[Task, Floats], Forecast]
    needs: str | None = None

    @property
    def missing(self) -> str | None:
        """What it needs and is not installed."""
        found = self.needs is None or shutil.which(self.needs) or find_spec(self.needs)
        return None if found else self.needs


def _estimated(make: Callable[[], Any], features: Callable[[Task], Any], task: Task, y: Floats) -> Forecast:
    """Return what an estimator of ours predicts, with its error bars if it has them."""
    model = make().fit(task.graph, features(task), y)
    if "return_std" not in signature(model.predict).parameters:
        return Forecast(np.asarray(model.predict()), None, model, 0.0)
    mean, std = model.predict(return_std=True)
    return Forecast(mean, None if np.isnan(std).any() else std, model, 0.0)


def _own(task: Task) -> Any:
    return task.X


def _as_people_have_them(task: Task) -> Any:
    return task.X if task.table is None else task.table


def _propagated(make: Callable[[], Any]) -> Callable[[], Any]:
    return lambda: ResidualPropagation(make())


def _stacked(task: Task) -> Floats:
    return neighbourhoods(task.graph, task.X)


def _learned(make: Callable[[], Any], task: Task, y: Floats) -> Forecast:
    """Return what a regressor of scikit-learn predicts from neighbourhoods."""
    X, known = _stacked(task), np.isfinite(y)
    model = make().fit(X[known], y[known])
    return Forecast(np.asarray(model.predict(X)), None, None, 0.0)


def forest() -> RandomForestRegressor:
    """Return a random forest that averages leaves of three labels."""
    return RandomForestRegressor(300, min_samples_leaf=3, max_features=0.5, random_state=0, n_jobs=1)


def _coordinates(task: Task) -> Floats:
    if task.places is None:
        raise NotApplicableError("no coordinates")
    return np.asarray((task.places - task.places.mean(axis=0)) / task.places.std())


class Nearest:
    """The mean of the eight nearest labels, or of all where they are fewer, weighted by inverse distance."""

    def fit(self, places: Floats, y: Floats) -> Nearest:
        """Keep the labels."""
        self.model_ = KNeighborsRegressor(min(8, y.size), weights="distance").fit(places, y)
        return self

    def predict(self, places: Floats) -> Floats:
        """Return the mean at every place."""
        return np.asarray(self.model_.predict(places))


class Kriging:
    """A ridge regression on features and coordinates, the last two columns, and a Gaussian process of what it leaves.

    The process is one over coordinates.
    """

    def fit(self, X: Floats, y: Floats) -> Kriging:
        """Fit the ridge regression, then the process to its residuals."""
        if y.size > MOST_LABELS:
            raise NotApplicableError(f"more than {MOST_LABELS} labels")
        self.trend_ = RidgeCV(np.logspace(-3, 4, 15)).fit(X, y)
        kernel = ConstantKernel(1.0) * Matern(0.1, (1e-3, 10.0), nu=1.5) + WhiteKernel(0.3, (1e-4, 10.0))
        process = GaussianProcessRegressor(kernel, normalize_y=True)
        self.process_ = process.fit(X[:, -2:], y - self.trend_.predict(X))
        return self

    def predict(self, X: Floats) -> Floats:
        """Return the expected outcome of every row."""
        return self.moments(X)[0]

    def moments(self, X: Floats) -> tuple[Floats, Floats]:
        """Return mean and standard deviation of the outcome of every row."""
        rest, std = self.process_.predict(X[:, -2:], return_std=True)
        return np.asarray(self.trend_.predict(X) + rest), np.asarray(std)


def _nearest(task: Task, y: Floats) -> Forecast:
    places, known = _coordinates(task), np.isfinite(y)
    return Forecast(Nearest().fit(places[known], y[known]).predict(places), None, None, 0.0)


def _placed(task: Task) -> Floats:
    return np.column_stack([task.X, _coordinates(task)])


def _kriging(task: Task, y: Floats) -> Forecast:
    X, known = _placed(task), np.isfinite(y)
    return Forecast(*Kriging().fit(X[known], y[known]).moments(X), None, 0.0)


def _network(kind: str, task: Task, y: Floats) -> Forecast:
    """Return what a graph neural network of PyTorch Geometric predicts."""
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(0)
    X, edges = _tensors(task)
    centre, unit = np.nanmean(y), np.nanstd(y) or 1.0
    target = torch.tensor((y - centre) / unit, dtype=torch.float32)
    known = np.random.default_rng(0).permutation(np.flatnonzero(np.isfinite(y)))
    stop = max(1, round(HELD_OUT * known.size))
    best = _trained(_architecture(kind, X.shape[1]), X, edges, target, known[stop:], known[:stop])
    return Forecast(centre + unit * best, None, None, 0.0)


def _tensors(task: Task) -> tuple[Any, Any]:
    import torch

    X = task.X if task.X.shape[1] else np.ones((task.graph.n_nodes, 1))
    rows, columns = task.graph.adjacency.nonzero()
    return torch.tensor(X, dtype=torch.float32), torch.tensor(np.array([rows, columns]), dtype=torch.long)


def _architecture(kind: str, inputs: int) -> Any:
    from torch_geometric.nn import APPNP, GAT, GCN, MLP, GraphSAGE, Sequential

    if kind in ("APPNP", "MLP"):
        layers = [(MLP([inputs, HIDDEN_UNITS, 1], dropout=0.5), "x -> x"), (APPNP(10, 0.1), "x, edges -> x")]
        return Sequential("x, edges", layers if kind == "APPNP" else layers[:1])
    return {"GCN": GCN, "GAT": GAT, "GraphSAGE": GraphSAGE}[kind](inputs, HIDDEN_UNITS, 2, 1, dropout=0.5)


def _trained(model: Any, X: Any, edges: Any, target: Any, fitted: Ints, held_out: Ints) -> Floats:
    """Return the predictions of the epoch with the least error on held-out labels."""
    import torch

    optimiser = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    least, best, since = np.inf, np.zeros(len(X)), 0
    for _ in range(EPOCHS):
        model.train()
        optimiser.zero_grad()
        loss = ((model(X, edges)[fitted, 0] - target[fitted]) ** 2).mean()
        loss.backward()
        optimiser.step()
        model.eval()
        with torch.no_grad():
            found = model(X, edges)[:, 0]
        error, since = float(((found[held_out] - target[held_out]) ** 2).mean()), since + 1
        if error < least:
            least, best, since = error, found.double().numpy().copy(), 0
        if since > PATIENCE:
            break
    return best


def _correct_and_smooth(task: Task, y: Floats) -> Forecast:
    """Return Correct & Smooth around a perceptron; it clamps to [0, 1], so the labels are put there first."""
    import torch
    from torch_geometric.nn import CorrectAndSmooth

    first, edges = _network("MLP", task, y).mean, _tensors(task)[1]
    low, reach = np.nanmin(y), np.ptp(y[np.isfinite(y)]) or 1.0
    mask = torch.tensor(np.isfinite(y))
    base, truth = (torch.tensor((values - low) / reach, dtype=torch.float32)[:, None] for values in (first, y))
    model = CorrectAndSmooth(50, 0.8, 50, 0.8, autoscale=False)
    corrected = model.correct(base, truth[mask], mask, edges)
    smoothed = model.smooth(corrected, truth[mask], mask, edges)
    return Forecast(low + reach * smoothed[:, 0].double().numpy(), None, None, 0.0)


def _label_propagation(task: Task, y: Floats) -> Forecast:
    """Return PyTorch Geometric's label propagation of centred labels, without its clamp to [0, 1]."""
    import torch
    from torch_geometric.nn import LabelPropagation as Propagation

    centre, mask = np.nanmean(y), torch.tensor(np.isfinite(y))
    about = torch.tensor(np.nan_to_num(y - centre), dtype=torch.float32)[:, None]
    found = Propagation(50, 0.9)(about, _tensors(task)[1], mask, post_step=lambda values: values)
    return Forecast(centre + found[:, 0].double().numpy(), None, None, 0.0)


_MGCV = """
library(mgcv); folder <- commandArgs(TRUE)[1]
d <- read.csv(file.path(folder, "nodes.csv")); e <- read.csv(file.path(folder, "edges.csv"))
d$node <- factor(d$node); ids <- levels(d$node)
both <- split(as.character(c(e$v, e$u)), factor(c(e$u, e$v), levels = ids))
nb <- lapply(ids, function(i) both[[i]]); names(nb) <- ids
known <- d[!is.na(d$y), ]
x <- setdiff(names(d), c("node", "y"))
room <- nrow(known) - length(x) - 2
levels_of <- sapply(x, function(n) length(unique(known[[n]])))
curved <- levels_of > 9 & room > 6 * length(x)
effect <- ifelse(curved, paste0("s(", x, ", k = 5)"), x)
rank <- min(RANK, room - 4 * sum(curved))
smooth <- if (rank > 2) paste0("s(node, bs = 'mrf', xt = list(nb = nb), k = ", rank, ")")
f <- as.formula(paste("y ~", paste(c("1", effect[levels_of > 1], smooth), collapse = " + ")))
b <- gam(f, data = known, method = "REML", drop.unused.levels = FALSE)
p <- predict(b, d, se.fit = TRUE, newdata.guaranteed = TRUE)
out <- data.frame(mean = as.numeric(p$fit), std = sqrt(as.numeric(p$se.fit)^2 + b$sig2))
write.csv(out, file.path(folder, "out.csv"), row.names = FALSE)
"""


def _mgcv(task: Task, y: Floats) -> Forecast:
    """Return R's mgcv: smooth effects of features where labels allow them, and a Markov random field."""
    if task.graph.n_nodes > MOST_LABELS or task.graph.isolated.any():
        raise NotApplicableError(f"more than {MOST_LABELS} nodes, or isolated ones")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        frame = pd.DataFrame(task.X).add_prefix("x").assign(y=y)
        frame.rename_axis("node").to_csv(folder / "nodes.csv")
        u, v = np.nonzero(np.triu(task.graph.adjacency.toarray()))
        pd.DataFrame({"u": u, "v": v}).to_csv(folder / "edges.csv", index=False)
        (folder / "fit.R").write_text(_MGCV.replace("RANK", str(RANK)))
        ended = subprocess.run(["Rscript", str(folder / "fit.R"), name], check=False, capture_output=True, text=True)
        if ended.returncode:
            raise NotApplicableError(ended.stderr.strip().splitlines()[-1])
        found = pd.read_csv(folder / "out.csv")
    return Forecast(found["mean"].to_numpy(), found["std"].to_numpy(), None, 0.0)


def _ours(make: Callable[[], Any], features: Callable[[Task], Any] = _own) -> Method:
    return Method("ours", partial(_estimated, make, features))


def _trees(make: Callable[[], Any]) -> Method:
    return Method("scikit-learn", partial(_learned, make))


def _learner_propagated(make: Callable[[], Any], features: Callable[[Task], Any] = _stacked) -> Method:
    return Method("scikit-learn", partial(_estimated, _propagated(make), features))


def _networks(kind: str) -> Method:
    return Method("PyTorch Geometric", partial(_network, kind), "torch_geometric")


METHODS: dict[str, Method] = {
    OURS: _ours(GraphRegressor, _as_people_have_them),
    PLAIN: _ours(lambda: GraphRegressor(learner=None), _as_people_have_them),
    "LP": _ours(LabelPropagation),
    "label spreading": _ours(LabelSpreading),
    "LR": _ours(LinearRegression),
    "LR/RP": _ours(_propagated(LinearRegression)),
    "LGC": _ours(LinearGraphConvolution),
    "LGC/RP": _ours(_propagated(LinearGraphConvolution)),
    "SGC": _ours(SimpleGraphConvolution),
    "SGC/RP": _ours(_propagated(SimpleGraphConvolution)),
    "GCN (ours)": Method("ours", partial(_estimated, GraphConvolutionalNetwork, _own), "torch"),
    "GCN/RP (ours)": Method("ours", partial(_estimated, _propagated(GraphConvolutionalNetwork), _own), "torch"),
    "boosting": _trees(boosting),
    "boosting + RP": _learner_propagated(boosting),
    "forest": _trees(forest),
    "forest + RP": _learner_propagated(forest),
    "nearest neighbours": Method("scikit-learn", _nearest),
    "nearest neighbours + RP": _learner_propagated(Nearest, _coordinates),
    "kriging": Method("scikit-learn", _kriging),
    "kriging + RP": _learner_propagated(Kriging, _placed),
    "GCN": _networks("GCN"),
    "GAT": _networks("GAT"),
    "GraphSAGE": _networks("GraphSAGE"),
    "APPNP": _networks("APPNP"),
    "Correct & Smooth": Method("PyTorch Geometric", _correct_and_smooth, "torch_geometric"),
    "label propagation": Method("PyTorch Geometric", _label_propagation, "torch_geometric"),
    "mgcv": Method("R", _mgcv, "Rscript"),
}
"""All methods by name."""
