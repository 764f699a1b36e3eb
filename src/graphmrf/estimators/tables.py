"""Tables in, tables out: rows are matched with nodes by id, and answers have the ids as index; arrays stay arrays.

The decorators wrap the methods of every estimator, whose bodies see only arrays and tables in node order. A fit to
several outcomes is a copy of the estimator for each, with answers side by side.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import wraps
from importlib import import_module
from inspect import signature
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
import pandas as pd
from sklearn.base import clone

from graphmrf.caching import cached_property
from graphmrf.errors import InvalidInputError
from graphmrf.estimators.inputs import Components, as_sparse, check_graph, is_sparse
from graphmrf.graph import Graph
from graphmrf.graph.checks import as_pandas, in_node_order

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from graphmrf._typing import Bools, Ints

_Method = TypeVar("_Method", bound="Callable[..., Any]")


@dataclass(frozen=True)
class FittedNodes:
    """The nodes of a fit: their ids, which of them were labelled, and how answers about them are labelled."""

    graph: Graph
    X: Any  # features, in the order of nodes
    y: Any  # outcomes, in the order of nodes
    index: pd.Index | None  # index of answers, None when they are arrays
    name: Any  # name of the outcome
    polars: bool = False  # whether answers are tables of Polars, which have a column of ids where `index` has a name

    @cached_property
    def known(self) -> Bools:
        """Nodes with a label (n,)."""
        return _known(self.y)

    def new_labels(self, y: Any) -> Any:
        """Return outcomes in the order of nodes; of a Series of some of them NaN at the others."""
        new = outcome_column(as_pandas(y, self.graph.ids))
        some = isinstance(new, pd.Series) and self.graph.ids is not None and new.index.is_unique
        return new.reindex(self.graph.ids) if some and new.index.isin(self.graph.ids).all() else self.align(new, "y")

    def with_labels(self, y: Any) -> Any:
        """Return the outcomes with further ones: those that are known there take the place of those of the fit."""
        new = self.new_labels(y)
        known = _known(new)
        if known.shape != self.known.shape:
            raise InvalidInputError(
                f"y must have one value for each of the {self.known.size} nodes, NaN where there is nothing new, got "
                f"{known.size}; on a graph with ids a Series of some of them is enough"
            )
        merged = np.where(known, _unmasked(new), np.asarray(self.y))
        return pd.Series(merged, index=self.index, name=self.name) if isinstance(self.y, pd.Series) else merged

    def places_in(self, graph: Graph) -> Ints:
        """Return the positions of these nodes in a graph that has them and others; without ids they come first.

        Raises InvalidInputError if some of them are missing there.
        """
        n, ids = self.graph.n_nodes, self.graph.ids
        if (ids is None) != (graph.ids is None):
            raise InvalidInputError("the larger graph must have ids where that of the fit has; use graph.with_ids(...)")
        places = np.arange(n) if ids is None else np.asarray(graph.ids.get_indexer(ids))  # type: ignore[union-attr]
        gone = int(np.sum((places < 0) | (places >= graph.n_nodes)))
        if gone:
            raise InvalidInputError(
                f"the larger graph must have all nodes of the fit, got one without {gone} of them; fit a model to it"
            )
        return places

    def y_in(self, graph: Graph, X: Any) -> Any:
        """Return the outcomes at the nodes of a graph that has these nodes and others, which are unknown."""
        y = np.asarray(self.y)
        found = np.full(graph.n_nodes, np.nan if y.dtype.kind in "iufb" else None, dtype=np.result_type(y, np.float32))
        found[self.places_in(graph)] = y
        return (
            pd.Series(found, index=_index(graph, X, None), name=self.name) if isinstance(self.y, pd.Series) else found
        )

    def align(self, table: Any, name: str) -> Any:
        """Return a table in the order of these nodes."""
        return self.graph.align(table, name)

    def are_those_of(self, graph: Graph | None, X: Any) -> bool:
        """Whether a graph and the features of its nodes are those of the fit, for which nothing needs to be given."""
        return X is None if graph is None else graph == self.graph and _same(X, self.X)

    def draws(self, values: Any) -> Any:
        """Return draws (k, n), in a table with a column for every node where answers are tables."""
        return values if self.index is None else self.as_given(pd.DataFrame(values, columns=self.index))

    def rows(self, values: Any, where: Any) -> Any:
        """Return a table of some of these nodes under their ids where answers are tables.

        Ids with the name of one of its columns, such as "node", are called "node_id".
        """
        if self.index is None:
            return values
        index = self.index[where]
        index = index.rename(f"{index.name}_id") if index.name in values.columns else index
        return self.as_given(values.set_index(index))

    def answer(self, values: Any, index: pd.Index, columns: Any = None) -> Any:
        """Return values (n,) or (n, k), or several of them, as Series or tables with an index."""
        if isinstance(values, tuple):
            return tuple(self.answer(each, index, columns) for each in values)
        index = index if self.index is None or not self.polars else index.rename(self.index.name)
        if np.ndim(values) == 2:
            return self.as_given(pd.DataFrame(values, index=index, columns=columns))
        return self.as_given(pd.Series(values, index=index, name=self.name))

    def as_given(self, table: Any) -> Any:
        """Return a table of pandas as one of Polars where the outcome was, its index as a column if it has a name."""
        return _in_polars(table) if self.polars else table


def targets_of(y: Any) -> dict[Any, Any]:
    """Return the columns of outcomes (n, q) by name, or by number in an array; none of a single outcome."""
    if not isinstance(y, pd.DataFrame | np.ndarray) or np.ndim(y) != 2 or np.shape(y)[1] < 2:
        return {}
    if not isinstance(y, pd.DataFrame):
        return {k: y[:, k] for k in range(y.shape[1])}
    if not y.columns.is_unique:
        repeated = y.columns[y.columns.duplicated()][0]
        raise InvalidInputError(f"targets must have different names, got {repeated!r} twice; rename a column")
    return dict(y.items())


def side_by_side(answers: Mapping[Any, Any]) -> Any:
    """Return answers (n,) about several targets as columns, texts one below the other, and others as a list."""
    first, *_ = found = list(answers.values())
    if isinstance(first, tuple):
        return tuple(side_by_side(dict(zip(answers, each, strict=True))) for each in zip(*found, strict=True))
    if isinstance(first, pd.Series | pd.DataFrame):
        return pd.concat(found, axis=1, keys=list(answers))
    if isinstance(first, str):
        return type(first)("\n\n".join(f"{name}\n{text}" for name, text in answers.items()))
    return np.column_stack(found) if np.ndim(first) == 1 else found


def of_every_target(method: _Method) -> _Method:
    """Decorate a method: after a fit to several targets it returns the answers of all of them."""

    @wraps(method)
    def wrapped(self: Any, *args: Any, **options: Any) -> Any:
        fits = vars(self).get("targets_")
        if fits is None:
            return method(self, *args, **options)
        return side_by_side({name: wrapped(each, *args, **options) for name, each in fits.items()})

    return cast("_Method", wrapped)


def takes_tables(fit: _Method) -> _Method:
    """Decorate ``fit(self, graph, X, y, **options)``: any graph, tables with rows in any order, several targets."""

    @wraps(fit)
    def wrapped(self: Any, graph: Any, X: Any = None, y: Any = None, **options: Any) -> Any:
        graph = checked_call(graph, X, y)
        columns = targets_of(as_pandas(y, graph.ids))
        if columns:
            fits = {name: wrapped(clone(self), graph, X, each, **options) for name, each in columns.items()}
            _forget(self)
            self.targets_ = fits
            return self
        polars, id_name = _of_polars(y, graph)
        graph, X, y = in_rows(graph, X, y)
        for learned in ("targets_", "feature_names_in_", "components_"):
            vars(self).pop(learned, None)
        if is_sparse(X):
            self.components_ = Components.of(X)
        fitted = fit(self, graph, _reduced(self, X), y, **options)
        _keep_feature_names(self, X)
        index = _index(graph, X, y) if isinstance(y, pd.Series) else None
        index = index.rename(id_name) if polars and index is not None else index
        name = y.name if isinstance(y, pd.Series) else None
        self._nodes = FittedNodes(graph, X, y if isinstance(y, pd.Series) else _unmasked(y), index, name, polars)
        return fitted

    return cast("_Method", wrapped)


def checked_call(graph: Any, X: Any, y: Any) -> Graph:
    """Return the graph, if there is one and an outcome."""
    if y is None and X is not None and not isinstance(graph, Graph) and np.ndim(graph) == 2 and np.ndim(X) == 1:
        raise InvalidInputError(
            "fit needs the graph first, got features and an outcome only; call fit(graph, X, y) with a graph such as "
            "Graph.from_edges(u, v), or Graph.from_knn(places) of the nearest places"
        )
    if y is None:
        raise InvalidInputError("fit needs an outcome y, got None; call fit(graph, X, y), X=None without features")
    return check_graph(graph)


def _forget(estimator: Any) -> None:
    """Remove the attributes of an earlier fit."""
    for name in vars(estimator).keys() - estimator.get_params(deep=False).keys():
        delattr(estimator, name)


def located(estimator: Any, graph: Any, X: Any) -> tuple[Graph | None, Any]:
    """Return a graph and the table of its nodes, rows in node order; None and None where they are those of the fit."""
    if graph is None:
        return None, _reduced(estimator, as_sparse(as_pandas(X, None)))
    graph = check_graph(graph)
    X, nodes = graph.align(as_sparse(X), "X"), vars(estimator).get("_nodes")
    own = nodes is not None and nodes.are_those_of(graph, X)
    return (None, None) if own else (graph, _reduced(estimator, X))


def _reduced(estimator: Any, X: Any) -> Any:
    """Return features as the model of an estimator sees them: those of a sparse fit reduced."""
    components = vars(estimator).get("components_")
    return X if components is None or X is None else components(X)


def _same(X: Any, other: Any) -> bool:
    """Whether two tables have the same columns and cells."""
    if X is other or X is None or other is None:
        return X is other
    if isinstance(X, pd.DataFrame) and isinstance(other, pd.DataFrame):
        return X.equals(other)
    if is_sparse(X) or is_sparse(other):
        return is_sparse(X) and is_sparse(other) and X.shape == other.shape and bool((other != X).nnz == 0)
    return np.shape(X) == np.shape(other) and bool(pd.DataFrame(X).equals(pd.DataFrame(other)))


def answers_tables(method: _Method) -> _Method:
    """Decorate a method that answers for every node of the fit, or of another ``graph`` with features ``X``.

    Answers are Series, or tables with a column for each class, where the outcome of the fit was a Series.
    """
    own = signature(method)

    @wraps(method)
    def wrapped(self: Any, *args: Any, **options: Any) -> Any:
        call = own.bind(self, *args, **options)
        graph, X = located(self, call.arguments.get("graph"), call.arguments.get("X"))
        call.arguments |= {"graph": graph, "X": X} if "graph" in own.parameters else {}
        answer = method(*call.args, **call.kwargs)
        nodes: FittedNodes = self._nodes
        if nodes.index is None:
            return answer
        index = nodes.index if graph is None and X is None else _index(graph, X, None)
        return nodes.answer(answer, index, getattr(self, "classes_", None))

    return of_every_target(cast("_Method", wrapped))


def takes_folds(out_of_fold: _Method) -> _Method:
    """Decorate ``out_of_fold(self, graph, X, y, folds, **options)``: tables in, Series of the labelled nodes out.

    Folds in a Series are matched by id, too; those in an array are in node order. Several answers are a tuple.
    """

    @wraps(out_of_fold)
    def wrapped(self: Any, graph: Any, X: Any, y: Any, folds: Any, **options: Any) -> Any:
        graph = check_graph(graph)
        polars, id_name = _of_polars(y, graph)
        graph, X, y = in_rows(graph, X, y)
        X = _reduced(self, X)
        if not isinstance(y, pd.Series):
            return out_of_fold(self, graph, X, y, np.asarray(folds), **options)
        labelled = _index(graph, X, y)[_known(y)]
        if isinstance(folds, pd.Series):
            folds = in_node_order(folds, labelled, len(labelled), "folds")

        def as_series(values: Any) -> Any:
            if isinstance(values, tuple):
                return tuple(as_series(each) for each in values)
            series = pd.Series(values, index=labelled, name=y.name)
            return _in_polars(series.rename_axis(id_name)) if polars else series

        return as_series(out_of_fold(self, graph, X, y, np.asarray(folds), **options))

    return cast("_Method", wrapped)


def in_rows(graph: Any, X: Any, y: Any) -> tuple[Graph, Any, Any]:
    """Return a graph and the tables of its nodes, rows in node order.

    Raises InvalidInputError if a table does not match the ids of the graph, or does so in another order while the other
    names no rows; or, on a graph without ids, if both name rows, but not alike.
    """
    graph = check_graph(graph)
    given = as_pandas(as_sparse(X), graph.ids), as_pandas(y, graph.ids)
    X, y = graph.align(given[0], "X"), outcome_column(graph.align(given[1], "y"))
    if X is not None:
        _refuse_half_named(graph, *given)
    indices = [table.index for table in (X, y) if isinstance(table, pd.DataFrame | pd.Series)]
    named = [index for index in indices if not isinstance(index, pd.RangeIndex)]
    if graph.ids is None and len(named) == 2 and not named[0].equals(named[1]):
        raise InvalidInputError(
            "X and y must have their rows in the same order, got another index, and the graph has no ids to put them "
            "right; pass y.loc[X.index], or give the graph its ids"
        )
    return graph, X, y


def _refuse_half_named(graph: Graph, X: Any, y: Any) -> None:
    """Raise if one of two tables has its rows in another order than the graph, and the other has no ids."""
    for table, other, names in ((X, y, "Xy"), (y, X, "yX")):
        reordered = graph.ids is not None and _names_rows(table) and not table.index.equals(graph.ids)
        if reordered and not _names_rows(other):
            raise InvalidInputError(
                f"{names[0]} has its rows by id, in another order than the graph, and {names[1]} has no ids, so that "
                f"its order is unclear; give {names[1]} the ids, too, or pass {names[0]}.loc[graph.ids] if "
                f"{names[1]} is in the order of the graph"
            )


def _names_rows(table: Any) -> bool:
    return isinstance(table, pd.DataFrame | pd.Series) and not isinstance(table.index, pd.RangeIndex)


def _of_polars(table: Any, graph: Graph) -> tuple[bool, Any]:
    """Whether a table is one of Polars, and the name of its column of ids, if it has one."""
    found = type(table).__module__.partition(".")[0] == "polars"
    frame = as_pandas(table, graph.ids) if found else None
    return found, frame.index.name if isinstance(frame, pd.DataFrame) else None


def _in_polars(table: Any) -> Any:
    """Return a table of pandas as one of Polars, its index as a column if it has a name."""
    table = table if table.index.name is None else table.reset_index()
    table = table if isinstance(table, pd.Series) else table.rename(columns=str)
    return import_module("polars").from_pandas(table)


def values_of(answer: Any) -> Any:
    """Return the values of an answer, without the column of ids that a table of Polars has."""
    return np.asarray(answer[answer.columns[-1]] if hasattr(answer, "columns") else answer)


def outcome_column(y: Any) -> Any:
    """Return the one column beside the ids of a table as a Series; anything else as it is."""
    return y.iloc[:, 0] if isinstance(y, pd.DataFrame) and y.shape[1] == 1 else y


def _index(graph: Graph | None, X: Any, y: Any) -> pd.Index:
    """Return the names of the rows: the ids of the graph, else the index of a table, else their numbers."""
    if graph is not None and graph.ids is not None:
        return graph.ids
    tables = [table for table in (y, X) if isinstance(table, pd.DataFrame | pd.Series)]
    named = [table.index for table in tables if not isinstance(table.index, pd.RangeIndex)]
    if named or tables:
        return named[0] if named else tables[0].index
    n = len(X) if graph is None else graph.n_nodes
    return pd.RangeIndex(n)


def _keep_feature_names(estimator: Any, X: Any) -> None:
    """Set scikit-learn's ``n_features_in_``, and ``feature_names_in_`` where columns are named by text."""
    estimator.n_features_in_ = int(np.shape(X)[1]) if np.ndim(X) == 2 else 0
    if isinstance(X, pd.DataFrame) and all(isinstance(name, str) for name in X.columns):
        estimator.feature_names_in_ = np.asarray(X.columns, dtype=object)


def _unmasked(y: Any) -> Any:
    """Return outcomes as an array, None where they are masked."""
    return np.ma.filled(y.astype(object), None) if isinstance(y, np.ma.MaskedArray) else np.asarray(y)


def _known(y: Any) -> Bools:
    if isinstance(y, np.ma.MaskedArray):
        return np.asarray(~np.ma.getmaskarray(y) & ~pd.isna(np.ma.getdata(y)))
    return np.asarray(~pd.isna(y if isinstance(y, np.ndarray | pd.Series) else np.asarray(y, dtype=object)))
