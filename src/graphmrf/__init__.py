"""Numbers on the nodes of a graph: fill the missing ones, with error bars, from one generative model."""

from graphmrf.estimators import LabelPropagation, LinearGraphConvolution, LinearRegression, ResidualPropagation
from graphmrf.graph import Graph

__all__ = ["Graph", "LabelPropagation", "LinearGraphConvolution", "LinearRegression", "ResidualPropagation"]
