"""The methods of the paper's tables, and ours beside them: a new one is one more row."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from graphmrf import estimators
from graphmrf._typing import Floats
from graphmrf.estimators import (
    GraphConvolutionalNetwork,
    LabelPropagation,
    LinearGraphConvolution,
    LinearRegression,
    ResidualPropagation,
    SimpleGraphConvolution,
)

PAPER = ("LP", "LR", "LGC", "SGC", "GCN", "LGC/RP", "SGC/RP", "GCN/RP")
LINEAR = ("LP", "LR", "LGC", "LGC/RP")
NETWORKS = ("SGC", "GCN", "SGC/RP", "GCN/RP")
OURS = ("SGC exact", "SGC exact/RP", "GraphRegressor")


@dataclass(frozen=True)
class Method:
    """What is fitted in one run, and the columns of a table that come of it.

    Parameters
    ----------
    name : str
        Its name in the keys of runs.
    make : callable
        Gives the estimator for a seed and an effort (``"full"`` or ``"quick"``).
    propagated : str
        Name of the column for residual propagation on top of it, from the same run; empty for none.
    needs : str
        Class of `graphmrf.estimators` that must be there.
    extra : str
        Extra that must be installed.
    seconds : float
        Expected time of a run on a graph of 3000 nodes, a thousand of them labelled.
    growth : str
        How the time depends on the data: ``"direct"``, ``"network"`` or ``"field"``.
    """

    name: str
    make: Callable[[int, str], Any]
    propagated: str = ""
    needs: str = "LinearRegression"
    extra: str = ""
    seconds: float = 0.1
    growth: str = "direct"

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns it fills."""
        return (self.name, self.propagated) if self.propagated else (self.name,)

    @property
    def unavailable(self) -> str:
        """Why it cannot be run here; empty when it can."""
        if not hasattr(estimators, self.needs):
            return "not in this version"
        if self.extra and find_spec("torch") is None:
            return f"needs the {self.extra} extra"
        return ""

    def fit(self, graph: Any, X: Any, y: Floats, *, seed: int, effort: str) -> dict[str, Any]:
        """Return the fitted estimator of every column."""
        base = self.make(seed, effort)
        if not self.propagated:
            return {self.name: base.fit(graph, X, y)}
        both = ResidualPropagation(base, seed=seed).fit(graph, X, y)
        return {self.name: both.base_, self.propagated: both}


def _lp(seed: int, _: str) -> Any:
    return LabelPropagation(seed=seed)


def _lr(_: int, __: str) -> Any:
    return LinearRegression()


def _lgc(seed: int, _: str) -> Any:
    return LinearGraphConvolution(seed=seed)


def _lgc_auto(seed: int, _: str) -> Any:
    return LinearGraphConvolution(seed=seed, fit_intercept="auto")


def _lgc_rp(seed: int, _: str) -> Any:
    return ResidualPropagation(LinearGraphConvolution(seed=seed), seed=seed)


def _sgc_exact(seed: int, _: str) -> Any:
    return SimpleGraphConvolution(seed=seed)


def _sgc(seed: int, effort: str) -> Any:
    return _network("identity", seed, effort)


def _gcn(seed: int, effort: str) -> Any:
    return _network("relu", seed, effort)


def _network(activation: Any, seed: int, effort: str) -> Any:
    """The paper's: the mean over at most 30 neighbours, batches of a tenth. On the CPU, so that all machines agree."""
    network = GraphConvolutionalNetwork(activation=activation, training="paper", device="cpu", seed=seed)
    return network if effort != "quick" else network.set_params(n_layers=2, epochs=100, folds=2, hidden=16)


def _best(seed: int, _: str) -> Any:
    # Looked up when it is asked for: a version without it leaves its column out.
    best = getattr(estimators, "GraphRegressor")()  # noqa: B009
    return best.set_params(seed=seed) if "seed" in best.get_params() else best


METHODS = {
    method.name: method
    for method in (
        Method("LP", _lp, seconds=0.02),
        Method("LR", _lr, seconds=0.01),
        Method("LGC", _lgc, seconds=0.1),
        Method("LGC/RP", _lgc_rp, seconds=0.2),  # a run of its own: its level is not that of LGC
        Method("LGC auto", _lgc_auto, seconds=0.2),
        Method("SGC exact", _sgc_exact, propagated="SGC exact/RP", seconds=0.05),
        Method("SGC", _sgc, propagated="SGC/RP", extra="gnn", seconds=1.2, growth="network"),
        Method("GCN", _gcn, propagated="GCN/RP", extra="gnn", seconds=2.6, growth="network"),
        Method("GraphRegressor", _best, needs="GraphRegressor", seconds=7.5, growth="field"),
    )
}


def method_of(column: str) -> Method | None:
    """Return the method that fills a column, None where nobody does."""
    return next((method for method in METHODS.values() if column in method.columns), None)


def methods_for(columns: Sequence[str]) -> tuple[Method, ...]:
    """Return the methods that fill these columns and can be run here, each once.

    Examples
    --------
    >>> [method.name for method in methods_for(["LP", "SGC exact", "SGC exact/RP"])]
    ['LP', 'SGC exact']
    """
    found = [method for column in columns if (method := method_of(column)) is not None]
    return tuple(dict.fromkeys(method for method in found if not method.unavailable))


def shown(columns: Sequence[str]) -> tuple[str, ...]:
    """Return the columns of the paper, and those of ours that this version has.

    Examples
    --------
    >>> shown(["LP", "GCN", "my own"])
    ('LP', 'GCN')
    """
    return tuple(column for column in columns if column in PAPER or not why_empty(column))


def why_empty(column: str) -> str:
    """Return why a column has no numbers; empty when it may have some.

    Examples
    --------
    >>> why_empty("LP"), why_empty("my own")
    ('', 'not in this version')
    """
    method = method_of(column)
    return "not in this version" if method is None else method.unavailable
