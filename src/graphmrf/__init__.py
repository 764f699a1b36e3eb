"""Numbers on the nodes of a graph: fill the missing ones, with error bars, from one generative model."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from graphmrf import comparison, datasets, selection
    from graphmrf.comparison import compare, explain
    from graphmrf.datasets import AttributedGraph, read
    from graphmrf.engines.dask import cluster
    from graphmrf.estimators import (
        GraphClassifier,
        GraphConvolutionalNetwork,
        GraphImputer,
        GraphRegressor,
        GraphSmoother,
        LabelPropagation,
        LabelSpreading,
        LinearGraphConvolution,
        LinearRegression,
        NodeAdapter,
        ResidualPropagation,
        SimpleGraphConvolution,
        load,
        propose_likelihood,
    )
    from graphmrf.field.features import graph_features
    from graphmrf.graph import Graph
    from graphmrf.model import GaussianMRF
    from graphmrf.selection import search_time_weight

    __version__: str

__all__ = [
    "AttributedGraph",
    "GaussianMRF",
    "Graph",
    "GraphClassifier",
    "GraphConvolutionalNetwork",
    "GraphImputer",
    "GraphRegressor",
    "GraphSmoother",
    "LabelPropagation",
    "LabelSpreading",
    "LinearGraphConvolution",
    "LinearRegression",
    "NodeAdapter",
    "ResidualPropagation",
    "SimpleGraphConvolution",
    "__version__",
    "cluster",
    "compare",
    "comparison",
    "datasets",
    "explain",
    "graph_features",
    "load",
    "propose_likelihood",
    "read",
    "search_time_weight",
    "selection",
]

_RENAMED = {"experiments": "graphmrf_paper"}

# Where public names are: modules by themselves, estimators in their package, and the others here.
_MODULES = ("comparison", "datasets", "selection")
_HOMES = {
    "AttributedGraph": "datasets",
    "GaussianMRF": "model",
    "Graph": "graph",
    "cluster": "engines.dask",
    "compare": "comparison",
    "explain": "comparison",
    "graph_features": "field.features",
    "read": "datasets",
    "search_time_weight": "selection",
}


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used, so that a command or an engine loads only what it needs."""
    if name == "__version__":
        return import_module("importlib.metadata").version("graphmrf")
    if name not in __all__:
        raise import_module("graphmrf.errors").missing_name(__name__, name, _RENAMED)
    if name in _MODULES:
        return import_module(f"graphmrf.{name}")
    return getattr(import_module(f"graphmrf.{_HOMES.get(name, 'estimators')}"), name)


def __dir__() -> list[str]:
    return __all__
