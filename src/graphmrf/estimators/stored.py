"""Reading fitted models from files: only objects of classes of the modules listed here are ever made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from graphmrf.errors import InvalidInputError
from graphmrf.estimators import (
    calibration,
    components,
    error_bars,
    graph_classifier,
    graph_convolutional_network,
    graph_imputer,
    graph_regressor,
    inputs,
    label_propagation,
    label_spreading,
    linear_graph_convolution,
    linear_regression,
    observed,
    residual_propagation,
    scikit,
    simple_graph_convolution,
    storage,
    tables,
)
from graphmrf.field import criteria, fit, likelihoods, noise, observations, reading, search, transform
from graphmrf.field.outcome import FieldOutcome
from graphmrf.graph import Graph, product
from graphmrf.model import conditional, parameters
from graphmrf.networks import options
from graphmrf.selection import folds, least_squares

if TYPE_CHECKING:
    import os

_ESTIMATORS = (
    graph_classifier,
    graph_convolutional_network,
    graph_imputer,
    graph_regressor,
    label_propagation,
    label_spreading,
    linear_graph_convolution,
    linear_regression,
    observed,
    residual_propagation,
    scikit,
    simple_graph_convolution,
)
_PARTS = (calibration, components, error_bars, inputs, tables, folds, least_squares, options, product)
_FIELDS = (criteria, fit, likelihoods, noise, observations, reading, search, transform, conditional, parameters)

for _module in (*_ESTIMATORS, *_PARTS, *_FIELDS):
    storage.register_classes_of(_module)


def _stored_graph(graph: Graph) -> dict[str, Any]:
    if graph.is_elsewhere:
        raise InvalidInputError(
            "a model is saved with its graph, whose edges are with the workers of a cluster; save the predictions"
        )
    state = graph.__getstate__()
    return state | {"engine_name": state["engine_name"] if isinstance(state["engine_name"], str) else "auto"}


def _rebuilt_graph(**state: Any) -> Graph:
    graph = object.__new__(Graph)
    graph.__setstate__(state)
    return graph


storage.register_rebuilt(Graph, _stored_graph, _rebuilt_graph)
storage.register_rebuilt(FieldOutcome, FieldOutcome.stored, FieldOutcome.rebuilt)


def load(path: str | os.PathLike[str]) -> Any:
    """Return the fitted model in a file that `save` wrote.

    Nothing that the file names is executed, so that a file of a stranger is as safe as one of numbers. Predictions are
    those of the model that was saved, up to rounding.

    Raises
    ------
    InvalidInputError
        If the file is no model, damaged, or of a newer version of the format.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import graphmrf as gm
    >>> path = gm.Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 4])
    >>> model = gm.LabelPropagation(alpha=0.9).fit(path, None, np.array([1.0, 2.0, np.nan, 4.0, np.nan]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(f"{folder}/model.gmrf")
    ...     again = gm.load(f"{folder}/model.gmrf")
    >>> again.predict().round(2)
    array([1.  , 2.  , 2.93, 4.  , 3.39])
    """
    return storage.read_model(path)
