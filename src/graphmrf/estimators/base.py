"""Code shared by estimators: tables in and out, scores, summaries, error bars, sums over groups, and further labels.

An estimator of the paper has its options as the fields of a data class, its formula in ``_learn``, which sets
``_fitted``, the predictions (n,) of the fit, and its standard deviations in ``model_std_``. One that predicts other
graphs too has ``_on_other_graph``.
"""

from __future__ import annotations

from dataclasses import replace
from html import escape
from importlib import import_module
from inspect import signature
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, overload

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, clone
from sklearn.metrics import r2_score
from sklearn.utils import estimator_html_repr

from graphmrf.errors import InvalidInputError, MissingExtraError, RefusesFormerNames, refuses_former_options
from graphmrf.estimators.error_bars import ResidualField, interval_width, student_std
from graphmrf.estimators.inputs import (
    as_given,
    check_fitted,
    check_graph,
    check_level,
    match_features,
    read_features,
    read_groups,
    read_outcome,
    read_weights,
    refuse_other_graph,
)
from graphmrf.estimators.out_of_fold import IntervalCheck, refit_folds
from graphmrf.estimators.storage import Storable
from graphmrf.estimators.summary import Summary, table_of
from graphmrf.estimators.tables import (
    answers_tables,
    located,
    of_every_target,
    outcome_column,
    takes_folds,
    takes_tables,
    values_of,
)
from graphmrf.graph.checks import as_pandas, check_count
from graphmrf.selection import own_fold
from graphmrf.text import minus_signs

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Self

    from graphmrf._typing import Bools, Floats, Ints
    from graphmrf.estimators.inputs import FeatureColumns, Outcome, Table
    from graphmrf.estimators.tables import FittedNodes
    from graphmrf.graph import Graph
    from graphmrf.selection import LeastSquares, Whitened

Search: TypeAlias = Literal["near", "anew"]
"""Where the search of hyper-parameters begins when a model learns again."""

_SUMS = ("prediction", "std", "lower", "upper")  # columns of a sum or mean of a group
PROBABILITIES = (0.05, 0.2, 0.8, 0.95)  # ends of the classes of a map of probabilities
_DRAWS, _BATCH = 1000, 50  # joint draws for sums, and how many of them are made at a time

# Learned numbers that a summary names where an estimator has them.
_LEARNED = ("alpha", "omega", "n_layers", "epochs", "intercept", "scale", "log_evidence", "cutoff", "held_out_score")


class NodeEstimator(RefusesFormerNames, Storable, BaseEstimator):
    """What all estimators share besides `fit` and `predict`: a score, a summary, further labels and nodes.

    Attributes
    ----------
    targets_ : dict
        After a fit to several outcomes, the columns of `y`: the estimator of each, by its name or number.
    """

    _nodes: FittedNodes
    targets_: dict[Any, Self]

    def score(self, graph: Graph | None = None, X: Any = None, y: Any = None) -> float:
        """Return the coefficient of determination R2 of the predictions.

        `graph`, `X`: another graph, where the estimator predicts one; None for that of the fit, without the nodes that
        were labelled. `y` (n,): true outcomes; NaN is left out. Raises InvalidInputError if there is no `y`, or nothing
        to score. Without truth at other nodes, score the predictions of `out_of_fold`.
        """
        check_fitted(self, "_nodes")
        graph, X = located(self, graph, X)
        predicted = values_of(self.predict(graph, X))
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

        `y` (n,): the labels that are new or corrected, NaN otherwise; on a graph with ids a Series of some nodes is
        enough. All other labels remain. `search` ({"near", "anew"}): "near": a sparse field's search of
        hyper-parameters begins at those found before; "anew", and always for other models: as `fit` does, with the
        predictions of a new model.
        """
        check_fitted(self, "_nodes")
        nodes = self._nodes
        return self._again(nodes.graph, nodes.X, nodes.with_labels(y), search)

    def extend(self, graph: Any, X: Any = None, *, search: Search = "near") -> Self:
        """Learn from a larger graph: the nodes of the fit with their labels, and new nodes to predict.

        `graph`: the larger graph. Nodes of the fit are found by id; without ids they come first. `X`: features of all
        its nodes. `search`: as in `update`. Raises InvalidInputError if the graph lacks nodes of the fit.
        """
        check_fitted(self, "_nodes")
        graph = check_graph(graph)
        X = as_pandas(X, graph.ids)
        return self._again(graph, X, self._nodes.y_in(graph, X), search)

    def _again(self, graph: Graph, X: Any, y: Any, search: Search, **known: Any) -> Self:
        """Refit the estimator; answers keep their format."""
        if search not in ("near", "anew"):
            raise InvalidInputError(f"search must be 'near' or 'anew', got {search!r}")
        before = self._nodes
        self._refit(graph, X, y, near=search == "near", **known)
        if before.polars and before.index is not None and self._nodes.index is not None:
            index = self._nodes.index.rename(before.index.name)
            self._nodes = replace(self._nodes, index=index, polars=True)
        return self

    def _refit(self, graph: Graph, X: Any, y: Any, *, near: bool) -> None:
        """Fit again; linear methods have no search that could begin near the last one."""
        del near
        self.fit(graph, X, y)

    @of_every_target
    def summary(self) -> str:
        """Return a text summary of the fit: data, options and coefficients."""
        nodes = getattr(self, "_nodes", None)
        if nodes is None:
            return Summary(f"{type(self).__name__}: not fitted yet")
        labelled = int(np.count_nonzero(nodes.known))
        facts = {"nodes": nodes.graph.n_nodes, "edges": nodes.graph.n_edges, "labelled": labelled}
        shown = {name: f"{each:,}" for name, each in facts.items()} | {"features": str(self.n_features_in_)}
        learned = {name: getattr(self, f"{name}_", None) for name in _LEARNED}
        shown |= {name: minus_signs(f"{each:z,.6g}") for name, each in learned.items() if isinstance(each, float | int)}
        width = max(12, *map(len, shown))
        lines = [type(self).__name__, *(f"  {name:<{width}} {value}" for name, value in shown.items())]
        lines += table_of("share", getattr(self, "shares_", None))
        for title, name in (("coefficient", "coef_"), ("standard error", "coef_std_")):
            lines += table_of(title, getattr(self, name, None), ",.4g")
        return Summary("\n".join(lines))

    def _repr_html_inner(self) -> str:
        """Return scikit-learn's own drawing of an estimator, and the summary of its fit."""
        return f"{estimator_html_repr(self)}<pre>{escape(self.summary())}</pre>"

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        """Return what a notebook shows."""
        return {"text/plain": repr(self), "text/html": self._repr_html_inner()}

    def plot(self, places: Any = None, *, ax: Any = None, above: float | None = None) -> Any:
        """Draw the predictions of the fit, or the probabilities that they exceed a value, and return Matplotlib's axes.

        `places` (n, 2), GeoSeries or GeoDataFrame: locations of the nodes, for a map coloured by prediction with black
        rims at labelled nodes. Without it, nodes in the order of their predictions, with two standard deviations where
        the estimator has them. `ax`: where to draw; a new figure by default. `above`: draw the probability of more than
        this value, see `GraphRegressor.probability`, on a map in the classes of `PROBABILITIES`. Raises
        MissingExtraError without Matplotlib, and InvalidInputError if predictions are classes, places do not match the
        nodes, or the estimator has no such probabilities.
        """
        check_fitted(self, "_nodes")
        if ax is None:
            ax = _pyplot().subplots()[1]
        known, mean = self._nodes.known, values_of(self.predict() if above is None else self._exceeding(above))
        if mean.dtype.kind not in "fiu":
            raise InvalidInputError("plot draws numbers, got classes; draw a column of predict_proba() instead")
        if places is None:
            return _draw_ranks(ax, known, mean, _deviations(self) if above is None else 0.0)
        places, rim = self._nodes.align(places, "places"), np.where(known, "black", "none")
        colours = {} if above is None else _classes_of_probability()
        if hasattr(places, "geometry"):
            areas = places.geometry.to_frame("geometry").assign(mean=mean)
            return areas.plot("mean", ax=ax, edgecolor=rim, legend=True, **colours)
        x, y = np.asarray(places, dtype=np.float64).T
        ax.figure.colorbar(ax.scatter(x, y, c=mean, edgecolors=rim, **colours), ax=ax)
        return ax

    def _exceeding(self, above: float) -> Any:
        model: Any = self
        if not hasattr(model, "probability"):
            raise InvalidInputError(
                f"{type(self).__name__} has no probability of exceeding a value; leave above out, or use GraphRegressor"
            )
        return model.probability(above=above)


def _classes_of_probability() -> dict[str, Any]:
    """Return the colours of Matplotlib for classes of probability."""
    map_ = import_module("matplotlib").colormaps["RdBu_r"]
    return {"cmap": map_, "norm": import_module("matplotlib.colors").BoundaryNorm([0.0, *PROBABILITIES, 1.0], map_.N)}


def _pyplot() -> Any:
    try:
        return import_module("matplotlib.pyplot")
    except ImportError as error:
        raise MissingExtraError("plot needs Matplotlib; install it with pip install 'graphmrf[figures]'") from error


def _deviations(estimator: Any) -> Any:
    """Return the standard deviations of predictions, 0 where the estimator has none."""
    if "return_std" in signature(estimator.predict).parameters:
        return np.nan_to_num(values_of(estimator.predict(return_std=True)[1]))
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


class JointEstimator(NodeEstimator):
    """An estimator with a joint distribution of its errors, so that sums over groups have error bars."""

    @of_every_target
    def predict_total(self, groups: Any, *, level: float = 0.9) -> pd.DataFrame:
        """Return the sum of the outcome over every group of nodes, with error bars from joint draws.

        Labelled nodes count with their label, except for measurements with an error. For counts and shares it is the
        sum of cases or successes, given the exposure or trials of every node.

        Parameters
        ----------
        groups : array or Series of shape (n,)
            Group of every node; None or NaN for no group.
        level : float in (0, 1)
            Probability that an interval contains the sum.

        Returns
        -------
        DataFrame
            By group, sorted: `prediction`, `std`, `lower`, `upper`, `n_nodes`, `n_observed`.
        """
        totals: pd.DataFrame = self._nodes_of_fit.as_given(self._totals(groups, level, None)[0])
        return totals

    @of_every_target
    def predict_mean(self, groups: Any, *, level: float = 0.9, weight: Any = None) -> pd.DataFrame:
        """Return the mean of the outcome over every group of nodes; see `predict_total`.

        For counts and shares it is the total over the exposure or trials of the group.

        Parameters
        ----------
        groups, level
            As in `predict_total`.
        weight : array or Series of shape (n,), optional
            Weight of every node in the mean, such as its population if outcomes are rates; 1 by default.
        """
        nodes = self._nodes_of_fit
        own = None if weight is None else read_weights(nodes.align(weight, "weight"), nodes.graph.n_nodes)
        totals, members = self._totals(groups, level, own)
        divisor = _sums(self._sizes if own is None else own, members)
        if not (divisor > 0).all():
            raise InvalidInputError("weights must be positive at some node of every group, got a group of weight 0")
        means: pd.DataFrame = nodes.as_given(totals.assign(**{name: totals[name] / divisor for name in _SUMS}))
        return means

    @property
    def _nodes_of_fit(self) -> FittedNodes:
        check_fitted(self, "_nodes")
        return self._nodes

    def _totals(self, groups: Any, level: float, weight: Floats | None) -> tuple[pd.DataFrame, list[Ints]]:
        """Return the sums of groups as a table, and the nodes of each group."""
        check_level(level)
        nodes = self._nodes_of_fit
        names, members = read_groups(nodes.align(groups, "groups"), nodes.graph.n_nodes)
        sums = pd.DataFrame(self._group_sums(members, level, weight).T, columns=_SUMS, index=names)
        observed = np.array([nodes.known[places].sum() for places in members], dtype=np.int64)
        return sums.assign(n_nodes=np.array([*map(len, members)], dtype=np.int64), n_observed=observed), members

    def _group_sums(self, members: Sequence[Ints], level: float, weight: Floats | None) -> Floats:
        """Return prediction, standard deviation and ends of an interval (4, groups) of sums of weight times outcome."""
        raise NotImplementedError

    @property
    def _sizes(self) -> Floats:
        """Weights (n,) of the nodes in a mean, where none are given."""
        return np.ones(self._nodes.graph.n_nodes)


def _sums(values: Floats, members: Sequence[Ints]) -> Floats:
    return np.array([values[nodes].sum(axis=0) for nodes in members])


class CheckedEstimator(JointEstimator):
    """An estimator whose intervals are checked on held-out labels, and widened where they are too narrow.

    Attributes
    ----------
    interval_check_ : IntervalCheck
        The check, computed when standard deviations are first asked for.
    notes_ : tuple of str
        What it found.
    """

    keeps_labels: ClassVar[bool] = False
    """Whether `predict` returns the label of a labelled node, and not the prediction of the model."""

    interval_check_: IntervalCheck
    dof_: float
    _fitted: Floats
    _single: bool

    @property
    def notes_(self) -> tuple[str, ...]:
        """Notes from the check of interval coverage; empty if the holes are random or coverage is nominal."""
        check_fitted(self, "interval_check_")
        return self.interval_check_.notes

    @takes_tables
    def fit(self, graph: Graph, X: Any = None, y: Any = None) -> Self:
        """Learn from the labelled nodes.

        Parameters
        ----------
        graph : Graph, or a graph of SciPy (sparse), NetworkX or igraph
            The graph.
        X : array, DataFrame or sparse matrix of shape (n, p), or None
            Features of all nodes, finite; label propagation ignores them. More than 50 columns of a sparse matrix are
            reduced to 50, see `Components`.
        y : array or Series of shape (n,), or with several columns
            Outcomes, NaN where they are to be predicted. Each of several columns has a fit of its own, see `targets_`.

        Raises
        ------
        InvalidInputError
            If the inputs break a rule, or a cross-validation is asked for and there are fewer than 2 labels.
        ConvergenceError
            If an iteration does not reach its tolerance, or the training of a network diverges.
        """
        outcome = read_outcome(y, graph.n_nodes)
        self._single = outcome.single
        self._learn(graph, X, outcome)
        self.interval_check_ = IntervalCheck(self, graph, X, outcome)
        return self

    @overload
    def predict(self, graph: Graph | None = None, X: Any = None, *, return_std: Literal[False] = False) -> Floats: ...
    @overload
    def predict(
        self, graph: Graph | None = None, X: Any = None, *, return_std: Literal[True]
    ) -> tuple[Floats, Floats]: ...
    @answers_tables
    def predict(
        self, graph: Graph | None = None, X: Any = None, *, return_std: bool = False
    ) -> Floats | tuple[Floats, Floats]:
        """Return the outcome of every node.

        Where residuals or labels are propagated, labelled nodes keep their label; otherwise they are predicted as well.

        Parameters
        ----------
        graph, X : Graph and array or DataFrame, optional
            Another graph and the features of its nodes, the same columns; they are centred on the means of the fit.
            By default those of the fit. Propagation predicts the graph of its labels only.
        return_std : bool, default False
            Also return the standard deviation of outcome less prediction, 0 where labels are returned. It includes the
            uncertainty of the coefficients and of the noise scale (see `ResidualField` and `student_std`), and the
            widening by held-out labels (see `out_of_fold`).

        Returns
        -------
        array of shape (n,), or two of them
            In float32 when X and y were.
        """
        check_fitted(self, "interval_check_")
        if graph is None and X is None:
            mean, std = self._fitted, self._checked_std
        else:
            mean, std = self._on_other_graph(graph, X)
        answer = as_given(mean, single=self._single)
        return (answer, as_given(std(), single=self._single)) if return_std else answer

    @answers_tables
    def predict_interval(self, level: float = 0.9) -> tuple[Floats, Floats]:
        """Return the ends of an interval for the outcome of every node, by Student's distribution.

        Where labels are returned it has width 0.

        Parameters
        ----------
        level : float in (0, 1)
            Probability that the interval contains the outcome.
        """
        check_fitted(self, "interval_check_")
        check_level(level)
        mean, std = (as_given(each, single=self._single) for each in (self._fitted, self._checked_std()))
        width = interval_width(level, self.dof_) * std
        return mean - width, mean + width

    @refuses_former_options
    def sample(self, n_samples: int = 1, *, random_state: int = 0) -> Floats:
        """Return joint draws of the outcome of all nodes, shape (n_samples, n), with labels where `predict` has them.

        All nodes share the errors of the coefficients. When y was a Series the answer is a DataFrame with a column for
        every node.
        """
        check_fitted(self, "interval_check_")
        errors = self._errors(check_count(n_samples), np.random.default_rng(random_state))
        draws: Floats = self._nodes.draws(self._fitted + errors.T)
        return draws

    @property
    def model_std_(self) -> Floats:
        """Standard deviations (n,) of the model, before intervals are checked."""
        raise NotImplementedError

    def _checked_std(self) -> Floats:
        return self.model_std_ * self.interval_check_.factors

    def _errors(self, count: int, rng: np.random.Generator) -> Floats:
        return self._model_errors(count, rng) * self.interval_check_.factors[:, None]

    def _model_errors(self, count: int, rng: np.random.Generator) -> Floats:
        """Return joint draws (n, count) of outcomes less predictions, by default independent of each other."""
        return self.model_std_[:, None] * rng.standard_normal((self._fitted.size, count))

    def _group_sums(self, members: Sequence[Ints], level: float, weight: Floats | None) -> Floats:
        """Return sums of groups with error bars from joint draws; labels count as they are."""
        outcome, rng = self.interval_check_.outcome, np.random.default_rng(0)
        own = np.ones(outcome.known.size) if weight is None else weight
        total = _sums(own * outcome.clamp(self._fitted), members)
        unknown = np.where(outcome.known, 0.0, own)[:, None]
        drawn = [
            _sums(unknown * self._errors(_BATCH, rng), members).reshape(len(members), _BATCH)
            for _ in range(_DRAWS // _BATCH)
        ]
        std = np.sqrt(np.mean(np.square(np.hstack(drawn)), axis=1))
        width = interval_width(level, self.dof_) * std
        return np.array([total, std, total - width, total + width])

    @takes_folds
    def out_of_fold(self, graph: Graph, X: Any, y: Any, folds: Ints) -> Floats:
        """Return the prediction (n_labelled,) of each labelled node by a fit without its fold.

        Hyper-parameters remain those that the fit chose.

        Parameters
        ----------
        graph, X, y : Graph, features, array of shape (n,)
            What the fit was given.
        folds : integer array of shape (n_labelled,)
            Fold of every labelled node, in node order.
        """
        check_fitted(self, "interval_check_")
        return self._out_of_fold(graph, X, read_outcome(y, graph.n_nodes), folds)

    def fixed(self) -> Self:
        """Return an unfitted copy with the hyper-parameters that were chosen."""
        check_fitted(self, "interval_check_")
        copy: Self = clone(self).set_params(**self._choices())
        return copy

    def _learn(self, graph: Graph, X: Any, outcome: Outcome) -> None:
        """Set what the fit learns, and `_fitted`."""
        raise NotImplementedError

    def _choices(self) -> dict[str, Any]:
        """Return the options that the fit chose."""
        raise NotImplementedError

    def _on_other_graph(self, graph: Graph | None, X: Any) -> tuple[Floats, Callable[[], Floats]]:
        """Return the predictions at other nodes, and a function that computes their standard deviations."""
        refuse_other_graph(graph, X, type(self).__name__)
        raise AssertionError

    def _out_of_fold(self, graph: Graph, X: Any, outcome: Outcome, folds: Ints) -> Floats:
        return own_fold(refit_folds(self, graph, X, outcome, folds), folds)


class FeatureEstimator(CheckedEstimator):
    """An estimator that predicts from features, on other graphs too."""

    _columns: FeatureColumns

    def _learn(self, graph: Graph, X: Any, outcome: Outcome) -> None:
        table = read_features(X, graph.n_nodes, type(self).__name__)
        self._columns, self._single = table.columns, table.single and outcome.single
        self._learn_features(graph, table, outcome)

    def _learn_features(self, graph: Graph, table: Table, outcome: Outcome) -> None:
        """Set what the fit learns from checked features."""
        raise NotImplementedError

    def _other_features(self, graph: Graph | None, X: Any) -> tuple[Graph, Floats]:
        """Return another graph and its features, checked."""
        if graph is None:
            raise InvalidInputError(
                f"{type(self).__name__} predicts other nodes on their graph, got X alone; pass both"
            )
        graph = check_graph(graph)
        return graph, match_features(X, graph.n_nodes, self._columns, type(self).__name__)


class PropagatingEstimator(CheckedEstimator):
    """An estimator that propagates residuals from the labels, which it keeps."""

    keeps_labels = True
    alpha_: float
    dof_: float
    _residuals: ResidualField

    def _propagate(self, base: Floats, residuals: ResidualField, outcome: Outcome) -> None:
        """Set the predictions: those of a base, plus its residuals, propagated."""
        self._residuals, self.dof_ = residuals, residuals.dof
        self._fitted = outcome.clamp(base + residuals.propagated)

    @property
    def model_std_(self) -> Floats:
        """Standard deviations (n,) of the model, before intervals are checked; 0 at the labelled nodes."""
        check_fitted(self, "_residuals")
        return self._residuals.conditional_std

    def _model_errors(self, count: int, rng: np.random.Generator) -> Floats:
        return self._residuals.conditional_errors(count, rng)

    @property
    def scale_(self) -> float:
        """Noise scale; computed when first asked for."""
        check_fitted(self, "_residuals")
        return self._residuals.conditional_scale

    def _choices(self) -> dict[str, Any]:
        return {"alpha": self.alpha_, "omega": None}


class LeastSquaresEstimator(FeatureEstimator):
    """An estimator that is a least-squares fit on features or averaged features."""

    scale_: float
    _features: Whitened
    _fit: LeastSquares

    def _design(self) -> Floats:
        """Return the uncorrelated features (n, k) of the fit, averaged or not."""
        raise NotImplementedError

    def _std(self, Z: Floats) -> Floats:
        r"""Return :math:`s \sqrt{1 + z'(Z'Z)^{-1} z}` for rows z, times the factor of `student_std`."""
        return student_std(self.scale_, 1.0 + self._fit.leverage(Z), self.dof_)

    @property
    def model_std_(self) -> Floats:
        """Standard deviations (n,) of the model, before intervals are checked."""
        check_fitted(self, "_fit")
        return self._std(self._design())

    def _model_errors(self, count: int, rng: np.random.Generator) -> Floats:
        noise, G = rng.standard_normal((self._fitted.size, count)), self.directions_
        drawn = noise + G @ rng.standard_normal((G.shape[1], count))
        return float(student_std(self.scale_, np.ones(1), self.dof_)[0]) * drawn

    @property
    def coef_std_(self) -> Any:
        r"""Standard errors :math:`s \sqrt{\mathrm{diag}\,(Z'Z)^{-1}}` of `coef_`, for independent residuals."""
        check_fitted(self, "_fit")
        root = self._features.T @ self._fit.root[int(self._features.centred) :]
        return self._columns.named(self.scale_ * np.linalg.norm(root, axis=1))

    @property
    def directions_(self) -> Floats:
        """Columns (n, k) that span the fit, see `NodeRegressor`."""
        return self._fit.directions(self._design())
