"""Predictors of a node's outcome, in scikit-learn's conventions: ``fit(graph, X, y)``, NaN in y is to be predicted.

Computation is in float64; answers are in float32 when what was given was, and then as accurate as that.

A new predictor is one file and one row of `methods.METHODS`: a class with ``fit`` and ``predict``, a better
``out_of_fold`` than plain refits if it knows one (see `out_of_fold`) and, if residuals may be propagated on top of it,
``fixed`` and ``n_coefficients_`` (see `NodeRegressor`).
"""

from graphmrf.estimators.graph_classifier import GraphClassifier
from graphmrf.estimators.graph_convolutional_network import GraphConvolutionalNetwork
from graphmrf.estimators.graph_imputer import GraphImputer
from graphmrf.estimators.graph_regressor import GraphRegressor
from graphmrf.estimators.linear import LinearGraphConvolution, LinearRegression, SimpleGraphConvolution
from graphmrf.estimators.out_of_fold import NodeRegressor
from graphmrf.estimators.propagation import LabelPropagation, LabelSpreading, ResidualPropagation
from graphmrf.estimators.rows import propose_likelihood
from graphmrf.estimators.scikit import GraphSmoother, NodeAdapter
from graphmrf.estimators.storage import load
from graphmrf.networks.options import Training

__all__ = [
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
    "NodeRegressor",
    "ResidualPropagation",
    "SimpleGraphConvolution",
    "Training",
    "load",
    "propose_likelihood",
]
