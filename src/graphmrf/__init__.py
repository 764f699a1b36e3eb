"""Numbers on the nodes of a graph: fill the missing ones, with error bars, from one generative model."""

from graphmrf import datasets
from graphmrf.datasets import AttributedGraph, read
from graphmrf.estimators import LabelPropagation, LinearGraphConvolution, LinearRegression, ResidualPropagation
from graphmrf.graph import Graph

__all__ = [
    "AttributedGraph",
    "Graph",
    "LabelPropagation",
    "LinearGraphConvolution",
    "LinearRegression",
    "ResidualPropagation",
    "datasets",
    "read",
]
