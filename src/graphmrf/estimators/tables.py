"""Tables in, tables out: rows are matched with nodes by their ids, answers carry them; arrays stay arrays.

The decorators stand on the methods of every estimator, whose bodies see arrays and tables in node order only.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import wraps
from html import escape
from importlib import import_module
from inspect import signature
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, cast

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, clone
from sklearn.metrics import r2_score
from sklearn.utils import estimator_html_repr

from graphmrf.errors import InvalidInputError, MissingExtraError, RefusesFormerNames
from graphmrf.estimators.components import Components, as_sparse, is_sparse
from graphmrf.estimators.inputs import check_fitted, check_graph, read_outcome
from graphmrf.estimators.storage import Storable
from graphmrf.estimators.summary import Summary
from graphmrf.estimators.targets import of_every_target, targets_of
from graphmrf.graph import Graph
from graphmrf.graph.ids import as_pandas, in_node_order
from graphmrf.kept import cached_property
from graphmrf.text import number

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from graphmrf._typing import Bools, Ints

_Method = TypeVar("_Method", bound="Callable[..., Any]")

Search: TypeAlias = Literal["near", "anew"]
"""Where the search of hyper-parameters begins when a model learns again."""


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
        """Return a table of some of these nodes under their ids where answers are tables."""
        return values if self.index is None else self.as_given(values.set_index(self.index[where]))

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


class NodeEstimator(RefusesFormerNames, Storable, BaseEstimator):
    """What all estimators share besides `fit` and `predict`: a score, a summary, the names of features.

    Attributes
    ----------
    targets_ : dict
        After a fit to several outcomes, the columns of `y`: the estimator of each, by its name or number.
    """

    _nodes: FittedNodes
    targets_: dict[Any, Self]

    def score(self, graph: Graph | None = None, X: Any = None, y: Any = None) -> float:
        """Return the coefficient of determination R2 of the predictions.

        `graph`, `X`: another graph, where the estimator predicts one; None for that of the fit, where nodes that were
        labelled in the fit are left out. `y` (n,): true outcomes; NaN is left out. Raises InvalidInputError if there is
        no `y`, or nothing is left to score. Without truth at other nodes, score the predictions of `out_of_fold`.
        """
        check_fitted(self, "_nodes")
        graph, X = located(self, graph, X)
        predicted = _values(self.predict(graph, X))
        if y is None:
            raise InvalidInputError("score needs the true outcomes y, got None; of labels alone score out_of_fold(...)")
        own = graph is None and X is None
        y = outcome_column(self._nodes.align(y, "y") if graph is None else check_graph(graph).align(y, "y"))
        truth = read_outcome(y, predicted.size)
        scored = truth.known & ~self._nodes.known if own else truth.known
        if not scored.any():
            raise InvalidInputError("y must be known at some node that was not labelled in the fit, got none")
        return float(r2_score(truth.y[scored], predicted[scored]))

    def update(self, y: Any, *, search: Search = "near") -> Self:
        """Learn from further labels of the same nodes.

        `y` (n,): the labels that are new or corrected, NaN elsewhere; on a graph with ids a Series of some nodes is
        enough. All other labels remain. `search` ({"near", "anew"}): "near": a sparse field's search of
        hyper-parameters begins at those found before; "anew", and of all else always: as `fit` does, with the same
        predictions as a new model.
        """
        check_fitted(self, "_nodes")
        nodes = self._nodes
        return self._again(nodes.graph, nodes.X, nodes.with_labels(y), search)

    def extend(self, graph: Any, X: Any = None, *, search: Search = "near") -> Self:
        """Learn from a larger graph: the nodes of the fit, with their labels, and others, which are to be predicted.

        `graph`: the larger graph. Nodes of the fit are found by id, and are the first ones where there are no ids. `X`:
        features of all its nodes. `search` ({"near", "anew"}): as in `update`. Raises InvalidInputError if the graph
        lacks nodes of the fit.
        """
        check_fitted(self, "_nodes")
        graph = check_graph(graph)
        X = as_pandas(X, graph.ids)
        return self._again(graph, X, self._nodes.y_in(graph, X), search)

    def _again(self, graph: Graph, X: Any, y: Any, search: Search, **known: Any) -> Self:
        """Return the estimator fitted again, with answers as before."""
        if search not in ("near", "anew"):
            raise InvalidInputError(f"search must be 'near' or 'anew', got {search!r}")
        before = self._nodes
        self._refit(graph, X, y, near=search == "near", **known)
        if before.polars and before.index is not None and self._nodes.index is not None:
            index = self._nodes.index.rename(before.index.name)
            self._nodes = replace(self._nodes, index=index, polars=True)
        return self

    def _refit(self, graph: Graph, X: Any, y: Any, *, near: bool) -> None:
        """Fit again; linear methods have nothing that a search could begin at."""
        del near
        self.fit(graph, X, y)

    @of_every_target
    def summary(self) -> str:
        """Return what was fitted, on what, and with which coefficients, as a table of text."""
        nodes = getattr(self, "_nodes", None)
        if nodes is None:
            return Summary(f"{type(self).__name__}: not fitted yet")
        graph, labelled = nodes.graph, int(np.count_nonzero(nodes.known))
        facts = {
            "nodes": f"{graph.n_nodes:,}",
            "edges": f"{graph.n_edges:,}",
            "labelled": f"{labelled:,}",
            "features": self.n_features_in_,
        }
        learned = {name: getattr(self, f"{name}_", None) for name in _LEARNED}
        facts |= {name: number(value) for name, value in learned.items() if isinstance(value, float | int)}
        width = max(12, *map(len, facts))
        lines = [type(self).__name__, *(f"  {name:<{width}} {value}" for name, value in facts.items())]
        lines += [*_listed(self, "shares_", "share"), *_listed(self, "coef_", "coefficient")]
        return Summary("\n".join(lines))

    def _repr_html_inner(self) -> str:
        """Return scikit-learn's own drawing of an estimator, and the summary of its fit."""
        return f"{estimator_html_repr(self)}<pre>{escape(self.summary())}</pre>"

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        """Return what a notebook shows."""
        return {"text/plain": repr(self), "text/html": self._repr_html_inner()}

    def plot(self, places: Any = None, *, ax: Any = None) -> Any:
        """Draw the predictions of the fit, with Matplotlib, and return the axes.

        `places` (n, 2), GeoSeries or GeoDataFrame: where the nodes are: a map, its colour the prediction, labelled
        nodes with a black rim. Without it, nodes in the order of their predictions, with two standard deviations where
        the estimator has them. `ax`: where to draw; a new figure by default. Raises MissingExtraError if Matplotlib is
        not installed. Raises InvalidInputError if predictions are words, or places do not match the nodes.
        """
        check_fitted(self, "_nodes")
        if ax is None:
            ax = _pyplot().subplots()[1]
        known, mean = self._nodes.known, _values(self.predict())
        if mean.dtype.kind not in "fiu":
            raise InvalidInputError("plot draws numbers, got classes; draw a column of predict_proba() instead")
        if places is None:
            return _draw_ranks(ax, known, mean, _deviations(self))
        places, rim = self._nodes.align(places, "places"), np.where(known, "black", "none")
        if hasattr(places, "geometry"):
            areas = places.geometry.to_frame("geometry").assign(mean=mean)
            return areas.plot("mean", ax=ax, edgecolor=rim, legend=True)
        x, y = np.asarray(places, dtype=np.float64).T
        ax.figure.colorbar(ax.scatter(x, y, c=mean, edgecolors=rim), ax=ax)
        return ax


# Learned numbers that a summary names where an estimator has them.
_LEARNED = ("alpha", "omega", "n_layers", "epochs", "intercept", "scale", "log_evidence", "cutoff", "held_out_score")


def _pyplot() -> Any:
    try:
        return import_module("matplotlib.pyplot")
    except ImportError as error:
        raise MissingExtraError("plot needs Matplotlib; install it with pip install 'graphmrf[figures]'") from error


def _deviations(estimator: Any) -> Any:
    """Return the standard deviations of predictions, 0 where the estimator has none."""
    if "return_std" in signature(estimator.predict).parameters:
        return np.nan_to_num(_values(estimator.predict(return_std=True)[1]))
    return 0.0


def _draw_ranks(ax: Any, known: Bools, mean: Any, std: Any) -> Any:
    order = np.argsort(mean, kind="stable")
    ranks, low, high = np.arange(order.size), (mean - 2 * std)[order], (mean + 2 * std)[order]
    ax.fill_between(ranks, low, high, alpha=0.3, linewidth=0)
    ax.plot(ranks, mean[order], label="predicted")
    ax.plot(ranks[known[order]], mean[order][known[order]], "k.", markersize=3, label="labelled")
    ax.set_xlabel("nodes, by prediction")
    ax.legend()
    return ax


def takes_tables(fit: _Method) -> _Method:
    """Decorate ``fit(self, graph, X, y, **options)``: any graph, tables with rows in any order, several targets."""

    @wraps(fit)
    def wrapped(self: Any, graph: Any, X: Any = None, y: Any = None, **options: Any) -> Any:
        graph = _checked_call(graph, X, y)
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


def _checked_call(graph: Any, X: Any, y: Any) -> Graph:
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
    """Remove what an earlier fit has learned."""
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


def predicts_tables(predict: _Method) -> _Method:
    """Decorate ``predict(self, graph=None, X=None, **options)``: Series where the outcome of the fit was one."""

    @wraps(predict)
    def wrapped(self: Any, graph: Any = None, X: Any = None, **options: Any) -> Any:
        graph, X = located(self, graph, X)
        answer = predict(self, graph, X, **options)
        nodes: FittedNodes = self._nodes
        if nodes.index is None:
            return answer
        index = nodes.index if graph is None and X is None else _index(graph, X, None)
        return nodes.answer(answer, index, getattr(self, "classes_", None))

    return of_every_target(cast("_Method", wrapped))


def answers_tables(method: _Method) -> _Method:
    """Decorate a method that answers for every node of the fit, or of its option ``graph`` with features ``X``.

    Answers are Series where the outcome of the fit was one.
    """

    @wraps(method)
    def wrapped(self: Any, *args: Any, **options: Any) -> Any:
        graph = options.get("graph")
        if graph is not None:
            graph, X = located(self, graph, options.get("X"))
            options |= {"graph": graph, "X": X}
        answer = method(self, *args, **options)
        nodes: FittedNodes = self._nodes
        if nodes.index is None:
            return answer
        index = nodes.index if graph is None else _index(graph, options["X"], None)
        return nodes.answer(answer, index)

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
    """Raise if one of two tables has its rows in another order than the graph, and the other does not say its own."""
    for table, other, names in ((X, y, "Xy"), (y, X, "yX")):
        if _reordered(table, graph) and not _names_rows(other):
            raise InvalidInputError(
                f"{names[0]} has its rows by id, in another order than the graph, and {names[1]} has no ids, so that "
                f"its order is unclear; give {names[1]} the ids, too, or pass {names[0]}.loc[graph.ids] if "
                f"{names[1]} is in the order of the graph"
            )


def _names_rows(table: Any) -> bool:
    return isinstance(table, pd.DataFrame | pd.Series) and not isinstance(table.index, pd.RangeIndex)


def _reordered(table: Any, graph: Graph) -> bool:
    return graph.ids is not None and _names_rows(table) and not table.index.equals(graph.ids)


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


def _values(answer: Any) -> Any:
    """Return the values of an answer, without the column of ids that a table of Polars has."""
    return np.asarray(answer[answer.columns[-1]] if hasattr(answer, "columns") else answer)


def outcome_column(y: Any) -> Any:
    """Return the one column beside the ids of a table as a Series; anything else as it is."""
    return y.iloc[:, 0] if isinstance(y, pd.DataFrame) and y.shape[1] == 1 else y


def _index(graph: Graph | None, X: Any, y: Any) -> pd.Index:
    """Return what names the rows: the ids of the graph, else the index of a table, else their numbers."""
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


def _listed(estimator: Any, attribute: str, title: str) -> list[str]:
    values = getattr(estimator, attribute, None)
    if values is None:
        return []
    named = values if isinstance(values, pd.Series) else pd.Series(np.ravel(values)).rename(lambda j: f"x{j}")
    return ["", f"  {title}", *(f"    {name!s:<30} {number(float(value), 4):>12}" for name, value in named.items())]
