"""The columns of the paper's tables: which method of the registry fills them, and how long a run may take."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

import numpy as np

from graphmrf.estimators import ResidualPropagation
from graphmrf.estimators.methods import METHODS
from graphmrf.graph import Graph
from graphmrf_paper.attributes import family
from graphmrf_paper.runs import Entry, Run, Scalar, Task

PAPER_COLUMNS = ("LP", "LR", "LGC", "SGC", "GCN", "LGC/RP", "SGC/RP", "GCN/RP")
BERNOULLI = "LGC/RP logit"
LINEAR_COLUMNS = ("LP", "LR", "LGC", "LGC/RP")
HYBRIDS = ("LGC/RP", "SGC/RP", "GCN/RP")
NETWORK_COLUMNS = ("SGC", "GCN", "SGC/RP", "GCN/RP")
SMOOTHED = "SGC smoothed"
"""SGC by least squares with at least one step, as in the paper; 'SGC exact' may choose none."""
OUR_COLUMNS = (SMOOTHED, "SGC exact", "SGC exact/RP")

# CPU time of a run relative to one on the U.S. counties, by the growth of the method, estimated from full
# reproductions. They only weigh the progress bar and the expected time.
_SIZES = {
    "synthetic": {"direct": 0.3, "network": 0.2},
    "london": {"direct": 0.25, "network": 0.15},
    "us": {"direct": 1.0, "network": 1.0},
    "cdc": {"direct": 0.9, "network": 0.45},
    "twitch": {"direct": 1.6, "network": 1.1},
}
_QUICK = 0.06  # share of the time of a full network that a small one takes, estimated like _SIZES
_QUICK_NETWORK = {"n_layers": 2, "epochs": 100, "cv": 2, "hidden": 16}  # by eye: each task in seconds, still learns
# The paper's: the mean over at most 30 neighbours, batches of a tenth. On the CPU, so that all machines agree.
_PAPER_TRAINING = {"training": "paper", "device": "cpu"}


@dataclass(frozen=True)
class TableMethod:
    """What is fitted in one run, and the columns of a table it fills.

    Parameters
    ----------
    name, key : str
        Its column, also its name in the keys of runs, and its row in `graphmrf.estimators.methods.METHODS`.
    options : mapping
        Parameters of the estimator that are not the defaults.
    propagated : str
        Name of the column for residual propagation on top of it, from the same run; empty for none.
    seconds, growth : float, {"direct", "network"}
        Expected CPU time on a graph of 3000 nodes, a thousand of them labelled, and how it depends on the data.
    """

    name: str
    key: str
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)
    propagated: str = ""
    seconds: float = 0.1
    growth: str = "direct"

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns it fills."""
        return (self.name, self.propagated) if self.propagated else (self.name,)

    @property
    def is_network(self) -> bool:
        """Whether it is a network, trained by PyTorch."""
        return self.growth == "network"

    @property
    def unavailable(self) -> str:
        """Why it cannot be run here; empty when it can."""
        return "needs the gnn extra" if self.is_network and find_spec("torch") is None else ""

    def make(self, seed: int, effort: str) -> Any:
        """Return a new estimator for a seed and an effort (``"full"`` or ``"quick"``, of networks only)."""
        small = _QUICK_NETWORK if self.is_network and effort == "quick" else {}
        return METHODS[self.key].make(random_state=seed).set_params(**self.options, **small)

    def fit(self, graph: Graph, X: Any, y: Any, *, seed: int, effort: str) -> dict[str, Any]:
        """Return the fitted estimator of every column."""
        base = self.make(seed, effort)
        if self.name == SMOOTHED:
            scores = base.fit(graph, X, y).cv_results_["mean_r2"]
            base.set_params(n_layers=1 + int(np.argmax(scores[1:])))
        if not self.propagated:
            return {self.name: base.fit(graph, X, y)}
        both = ResidualPropagation(base, random_state=seed).fit(graph, X, y)
        return {self.name: both.base_, self.propagated: both}


TABLE_METHODS = {
    method.name: method
    for method in (
        TableMethod("LP", "lp", seconds=0.02),
        TableMethod("LR", "lr", seconds=0.01),
        TableMethod("LGC", "lgc", {"shrinkage": 0.0}, seconds=0.1),
        TableMethod(
            "LGC/RP", "lgc-rp", {"base__shrinkage": 0.0}, seconds=0.2
        ),  # a run of its own: its level is not that of LGC
        TableMethod("LGC auto", "lgc", {"fit_intercept": "auto", "shrinkage": 0.0}, seconds=0.2),
        # With the shrinkage that the library has by default for LGC; nothing of the kind is in the paper's text.
        TableMethod("LGC shrunk", "lgc", seconds=0.1),
        TableMethod("LGC/RP shrunk", "lgc-rp", {"base__shrinkage": 4.0}, seconds=0.2),
        TableMethod("SGC exact", "sgc", propagated="SGC exact/RP", seconds=0.05),
        TableMethod(SMOOTHED, "sgc", seconds=0.05),
        TableMethod(
            "SGC", "gcn", {"activation": "identity", **_PAPER_TRAINING}, "SGC/RP", seconds=1.2, growth="network"
        ),
        TableMethod("GCN", "gcn", {"activation": "relu", **_PAPER_TRAINING}, "GCN/RP", seconds=2.6, growth="network"),
        # The terms of the paper's model, and classes instead of regression on 0 and 1.
        TableMethod(BERNOULLI, "field", {"likelihood": "binomial", "terms": ("smoothed", "field")}),
    )
}
"""The methods of the tables by name; their seconds are estimates like `_SIZES`."""


def method_of(column: str) -> TableMethod:
    """Return the method that fills a column."""
    return next(method for method in TABLE_METHODS.values() if column in method.columns)


def method_entry(column: str, runs: Callable[[TableMethod], list[Run]], quantity: str = "value") -> Entry:
    """Return the entry of a column, from the runs of its method; without runs where the method needs an extra."""
    method = method_of(column)
    return Entry(note=method.unavailable) if method.unavailable else Entry(runs(method), (column, quantity))


def method_run(task: Task, options: dict[str, Scalar], method: TableMethod, effort: str) -> Run:
    """Return a run of a method; networks have their effort in the key."""
    where = str(options.get("data") or options["train"])
    seconds = method.seconds * _SIZES[family(where)][method.growth]
    if not method.is_network:
        return Run.of(task, {**options, "method": method.name}, seconds=seconds)
    seconds *= _QUICK if effort == "quick" else 1.0
    return Run.of(task, {**options, "method": method.name, "effort": effort}, seconds=seconds)
