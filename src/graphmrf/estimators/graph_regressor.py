"""The general latent-Gaussian field: linear, nonlinear and graph effects at once, tuned by their own likelihood."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, replace
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
from scipy import sparse
from sklearn.base import is_classifier

from graphmrf.errors import InvalidInputError, refuses_former_options
from graphmrf.estimators.analysis import AnalysedField, LabelSelection
from graphmrf.estimators.inputs import (
    Categories,
    as_given,
    check_choice,
    check_fitted,
    check_graph,
    check_level,
    known_with_outcome,
    match_features,
    read_features,
    read_outcome,
)
from graphmrf.estimators.rows import CLASSES, NAMES, NUMBERS, Known, RowError, long_outcome, read_rows
from graphmrf.estimators.tables import answers_tables, checked_call, located, takes_folds, takes_tables
from graphmrf.field import MOST_PATTERNS, POSITIVE, TERMS, FieldOptions, Observations, Responses
from graphmrf.field.criteria import Criteria
from graphmrf.field.learned import BOOSTED_TREES
from graphmrf.field.outcome import FieldOutcome, Softmax
from graphmrf.field.search import MEMBERS
from graphmrf.graph.checks import check_count

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Self

    from graphmrf._typing import Floats, Ints
    from graphmrf.estimators.base import Search
    from graphmrf.estimators.inputs import Table
    from graphmrf.estimators.rows import Rows
    from graphmrf.field import Kind
    from graphmrf.field.fit import Found
    from graphmrf.field.outcome import OtherGraph
    from graphmrf.field.reading import Of
    from graphmrf.graph import Graph

_UNLIKELY = 3.0  # standard errors from which notes report that neighbours differ, and that copies are known together

_KINDS = ("identity", "log", "box-cox", "yeo-johnson")
_REPRESENTATIONS = ("auto", "dense", "sparse")


@dataclass(eq=False, repr=False, kw_only=True)
class GraphRegressor(AnalysedField):
    r"""A latent-Gaussian field with linear, nonlinear and graph effects; nothing to tune.

    The outcome is a sum of independent Gaussian terms and noise: linear effects of a node's own features `X`, of its
    neighbours' means `M` and of smoothed features `TX`, a smooth nonlinear function of :math:`Z = [X, M]`, the same
    varying over the graph, and a field that is smooth over the graph,

    .. math:: \mathrm{Cov}(y) = \sigma_0^2 + \tfrac{\sigma_1^2}{p} XX' + \tfrac{\sigma_2^2}{p} MM'
              + \tfrac{\sigma_3^2}{p} TX(TX)' + \sigma_4^2 k(Z, Z') + \sigma_5^2 k(Z, Z') \circ R' + \sigma_6^2 R
              + \sigma_7^2 I

    with squared-exponential `k` and `R` the correlations of :math:`(\kappa^2 + N)^{-\nu}`. Priors let terms vanish that
    the labels do not support. Predictions are averaged over the posterior of all hyper-parameters; see `docs/field.md`.
    Linear regression, label propagation and linear graph convolution with residual propagation are special cases.

    On up to 3,500 nodes the covariance among the labels is dense and exact. On larger graphs the graph field has a
    sparse precision, with exact factors on maps, roads and trees and iterative solves of order 1 otherwise, nonlinear
    effects become columns, and there are no local effects. Progress is logged to ``graphmrf.progress``.

    Missing cells of the features are imputed by the coupled Gaussian field of all features (see `GaussianMRF`), and
    predictions are averaged over 24 draws of them. A labelled node keeps its label in `predict`.

    Parameters
    ----------
    likelihood : {"auto", "gaussian", "student", "poisson", "negative-binomial", "binomial", "ordinal"}, default "auto"
        Distribution of an observation about the field. Numbers: normal, or Student's t with degrees of freedom by
        likelihood; "auto" is normal, with more noise for labels beyond Tukey's outer fences (three interquartile ranges
        outside the quartiles), so that no outlier determines a prediction. Counts: Poisson, with independent variation
        of each node's rate, or negative binomial, both with a logarithmic link and `exposure`. Shares, yes and no:
        binomial with a logistic link and `trials`. Ordered classes 0, 1, ...: ordinal, a latent value that exceeds more
        or fewer cuts (see `GraphClassifier` for words). All but numbers are fitted by Laplace's approximation.
    transform : {"identity", "log", "box-cox", "yeo-johnson", "auto"}, default "identity"
        Monotone transform of the outcome, under which it is Gaussian; exponents by likelihood. "auto" takes the
        most likely of those that apply ("log" and "box-cox" need positive labels). Predictions are in the units of
        the outcome: means, standard deviations and intervals of the transformed-back distribution.
    terms : sequence of str, optional
        Names of the terms, of `graphmrf.field.TERMS`; by default all.
    priors : dict of str to float, optional
        Prior scales of the standard deviations of some terms, relative to all others, which have 1: with
        ``{"field": 3.0}`` the graph field is expected to vary three times as much as any other term.
    solver : {"auto", "dense", "sparse"}, default "auto"
        Representation of the field.
    learner : "auto", None, or regressor of scikit-learn, default "auto"
        Its predictions become one more term: an effect learned from own features, means over neighbours and second
        neighbours, degrees, and labels of neighbours. They are out of fold, on folds that imitate the holes, and the
        evidence weighs them.
        "auto" is boosted trees with the loss of the likelihood, from 56 labels on, left out unless they reduce the
        squared error of held-out labels by more than its standard error (see `notes_`). Another regressor is fitted
        to latent values, such as smoothed logarithms of rates.
    random_state : int, default 0
        Seed of everything random.
    members : int, default 24
        Most members of the average over hyper-parameters; 1 for the most probable ones alone, which is faster and
        leaves intervals with few labels too narrow.

    Attributes
    ----------
    hyperparameters_ : dict
        Most probable variances (in shares of the variance of the labels), ranges, orders and length scales.
    log_evidence_ : float
        Log density of the observations, hyper-parameters integrated by Laplace's approximation: greater for the better
        of two models of the same observations.
    shares_ : Series
        Share of the variance at unlabelled nodes that each kind of effect predicts, and noise; they add up to 1.
    coef_ : array of shape (p,), or Series
        Mean change of a node's expected outcome per unit of its own feature: the slope of the effects of features in
        a least-squares fit on own and neighbours' features; with a transform, of the transformed outcome.
    explanation_ : str
        One sentence: what carries the prediction.
    loo_ : DataFrame
        For every labelled node its position (`node`), `label`, `prediction` from all other labels, and `std`; indexed
        by id when y was a Series.
    transform_ : Scale or None
        The transform of numbers in use.
    solver_ : str
        "dense" or "sparse".
    notes_ : tuple of str
        What to look at in the data, such as a feature that is known only where the outcome is, or labels that seem to
        be chosen by their outcome.

    Examples
    --------
    >>> import numpy as np
    >>> from graphmrf import Graph
    >>> from graphmrf.estimators.graph_regressor import GraphRegressor
    >>> ring = Graph.from_edges(np.arange(40), (np.arange(40) + 1) % 40)
    >>> X = np.cos(np.arange(40.0))[:, None]
    >>> y = 3.0 * X[:, 0] + 1.0
    >>> y[::4] = np.nan
    >>> model = GraphRegressor().fit(ring, X, y)
    >>> model.predict()[:2].round(1)
    array([4. , 2.6])
    """

    likelihood: str = "auto"
    transform: str = "identity"
    terms: Any = None
    priors: Mapping[str, float] | None = None
    solver: str = "auto"
    learner: Any = BOOSTED_TREES
    random_state: int = 0
    members: int = MEMBERS

    def fit(  # noqa: PLR0913 - what people know of an observation has five names
        self,
        graph: Graph,
        X: Any = None,
        y: Any = None,
        *,
        exposure: Any = None,
        trials: Any = None,
        std: Any = None,
        weight: Any = None,
        nodes: Any = None,
    ) -> Self:
        """Learn the hyper-parameters and condition the field on the labels.

        Parameters
        ----------
        graph : Graph, or a graph of SciPy (sparse), NetworkX or igraph
            The graph.
        X : array, DataFrame or sparse matrix of shape (n, p), or None
            Features of all nodes, NaN where missing; None for the graph alone. Columns of categories and text have an
            effect of every level. More than 50 columns of a sparse matrix are reduced to 50, see `Components`.
        y : array or Series of shape (n,), or with several columns
            Outcomes, NaN where they are to be predicted; at least 2 known numbers. Each of several columns has a fit of
            its own, see `targets_`. With `nodes`, of any length: a long table with any number of rows for each node.
        exposure, trials : number or array of the shape of y, optional
            Exposure of counts (population, time or expected number), and trials of which y are the successes; 1 by
            default.
        std : number or array of the shape of y, optional
            Known standard errors of numbers. The outcome is then the value behind the measurement, also at labelled
            nodes.
        weight : number or array of the shape of y, optional
            Relative precisions of numbers, such as numbers of people asked. For likelihoods "binomial" and "ordinal"
            the number of times that an observation counts.
        nodes : array of the shape of y, optional
            Node of every row of a long table: its id, or its position where the graph has no ids. Rows of a node are
            independent given its value; the standard error of numbers without `std` is estimated.

        Raises
        ------
        InvalidInputError
            If the inputs break a rule.
        ConvergenceError
            If a solve of the sparse representation misses its tolerance.
        """
        given, graph = {"exposure": exposure, "trials": trials, "std": std, "weight": weight}, checked_call(graph, X, y)
        columns, long = given | {"y": y}, () if nodes is None else long_outcome(graph, y, nodes)
        try:
            return self._fit(graph, X, long[0] if long else y, known=Known(given, *long[1:]))
        except RowError as error:
            raise error.named(graph, nodes, columns) from None

    def update(
        self,
        y: Any,
        *,
        exposure: Any = None,
        trials: Any = None,
        std: Any = None,
        weight: Any = None,
        search: Search = "near",
    ) -> Self:
        """Learn from further labels of the same nodes.

        Parameters
        ----------
        y : array or Series of shape (n,)
            The labels that are new or corrected, NaN at all other nodes; on a graph with ids a Series of some nodes is
            enough. All other labels remain.
        exposure, trials, std, weight : number or array of shape (n,), optional
            As in `fit`, of the nodes with new labels, and of nodes for which they were unknown.
        search : {"near", "anew"}
            "near": the search of hyper-parameters of a sparse field begins at those found before, with their order of
            smoothness. "anew", and always for a dense field: as `fit` does, with the predictions of a new model.
        """
        check_fitted(self, "_field")
        if self._known.rows is not None:
            raise InvalidInputError("update is for one value of a node, got a fit of a long table; fit the longer one")
        nodes, labels = self._nodes, self._nodes.with_labels(y)
        new = {"exposure": exposure, "trials": trials, "std": std, "weight": weight}
        fresh = read_outcome(nodes.new_labels(y), nodes.graph.n_nodes).known
        known = self._known.merged(Known(new).aligned(nodes.graph), fresh)
        return self._again(nodes.graph, nodes.X, labels, search, known=known)

    def _refit(self, graph: Graph, X: Any, y: Any, *, near: bool, known: Known | None = None) -> None:
        """Fit again, with what is known of observations moved along with their nodes."""
        found, start = self._field.fitted.found, None
        if near and found.fixed is not None:
            shapes = {name: shape for name, shape in found.fixed.items() if name != "nonlinear.lengths"}
            start = replace(found, fixed=shapes)
        known = (known or self._known).moved(self._nodes.places_in(graph), graph.n_nodes)
        self._fit(graph, X, y, known=known, start=start)

    @takes_tables
    def _fit(
        self,
        graph: Graph,
        X: Any,
        y: Any,
        *,
        known: Known,
        start: Found | None = None,
        others: tuple[Floats, ...] = (),
    ) -> Self:
        n = graph.n_nodes
        outcome, options = read_outcome(y, n), replace(self._options(graph), start=start)
        self._known = known.aligned(graph)
        places, values = known.rows or (np.arange(n), outcome.y)
        rows = read_rows(self.likelihood, graph, places, values, self._known.given)
        self._categories = Categories.of(X)
        X = np.zeros((n, 0)) if X is None else self._categories.dummies(X)
        table = read_features(X, n, "GraphRegressor", holes=True)
        if outcome.n_labelled < 2 and rows.likelihood is None:
            raise InvalidInputError(
                f"GraphRegressor needs at least 2 labelled nodes, got {outcome.n_labelled}; label more"
            )
        _check_missing(table)
        if self.learner not in (None, BOOSTED_TREES) and not table.columns.count:
            raise InvalidInputError(f"{type(self.learner).__name__} needs features X, got none; leave out learner")
        titles = [table.columns.title(column) for column in range(table.columns.count)]
        left_out, notes = known_with_outcome(np.isnan(table.X), outcome.known, titles)
        features = np.where(left_out, 0.0, table.X)
        owners = zip(self._categories.owners(table.columns.labels), table.columns.labels, strict=True)
        options = replace(options, groups=tuple("" if owner == column else str(owner) for owner, column in owners))
        self._notes = (*notes, *_differing_neighbours(graph, outcome.y), *_copies(graph, outcome.y))
        self._columns = table.columns
        self._single = outcome.single and (table.single or not table.columns.count)
        field, *rest = self._fitted(graph, features, outcome.y, rows, options, others)
        self._softmax = Softmax((field, *rest)) if rest else None
        trial = field.fitted.trial
        self._notes += () if trial is None else (trial.note,)
        self._take(field)
        return self

    def _take(self, field: FieldOutcome) -> None:
        """Set what is learned by a fitted field."""
        self._field, self._selection, self._criteria = field, LabelSelection(field), Criteria(field)
        self.solver_ = "dense" if field.fitted.found.fixed is None else "sparse"
        self.hyperparameters_ = dict(field.posterior.h)
        self.transform_: Any = field.scale if self.keeps_labels else None
        self.log_evidence_ = self._criteria.log_evidence

    def _fitted(
        self, graph: Graph, X: Floats, y: Floats, rows: Rows, options: FieldOptions, others: tuple[Floats, ...]
    ) -> list[FieldOutcome]:
        """Return the field fitted to numbers, one of a node, or to other observations, and those of other classes."""
        if rows.likelihood is None:
            kinds = _kinds(self.transform, y[~np.isnan(y)])
            weight = None if rows.weight is None else np.zeros(y.size)
            if weight is not None:
                weight[rows.nodes] = rows.weight
            return [FieldOutcome.fit(graph, X, y, weight=weight, kinds=kinds, options=options)]
        if self.transform != "identity":
            raise InvalidInputError(
                f"transform is for numbers without known errors, one of a node, got {self.transform!r}; leave it out"
            )
        counts = rows.weight if self.likelihood in CLASSES else None  # elsewhere weights are in the size of rows
        values = (rows.y, *(each[rows.nodes] for each in others))
        labels = [Responses.of(rows.likelihood, rows.nodes, each, rows.size, counts) for each in values]
        return FieldOutcome.fit_responses(graph, X, labels, rows.everywhere, options=options)

    @property
    def keeps_labels(self) -> bool:
        """Whether `predict` returns the label of a labelled node: of numbers without known errors, one of a node."""
        fitted = vars(self).get("_field")
        return self.likelihood in NUMBERS and (fitted is None or isinstance(fitted.labels, Observations))

    def _options(self, graph: Graph) -> FieldOptions:
        """Return the options of the field, checked."""
        check_choice("likelihood", self.likelihood, NAMES)
        check_choice("solver", self.solver, _REPRESENTATIONS)
        _check_learner(self.learner)
        terms = tuple(TERMS) if self.terms is None else tuple(self.terms)
        absent = {"learned": self.learner is None, "time": graph.product is None}
        terms = tuple(name for name in terms if not absent.get(name))
        for name in terms:
            check_choice("terms", name, tuple(TERMS))
        if isinstance(self.members, bool) or not isinstance(self.members, int | np.integer) or self.members < 1:
            raise InvalidInputError(f"members must be a whole number >= 1, got {self.members!r}; 1 averages nothing")
        given = {"learner": self.learner, "seed": self.random_state, "priors": _read_priors(self.priors)}
        return FieldOptions(terms, self.likelihood, self.solver, self.members, **given)

    @overload
    def predict(
        self, graph: Graph | None = None, X: Any = None, *, return_std: Literal[False] = False, of: Of | None = None
    ) -> Floats: ...
    @overload
    def predict(
        self, graph: Graph | None = None, X: Any = None, *, return_std: Literal[True], of: Of | None = None
    ) -> tuple[Floats, Floats]: ...
    @answers_tables
    def predict(
        self, graph: Graph | None = None, X: Any = None, *, return_std: bool = False, of: Of | None = None
    ) -> Floats | tuple[Floats, Floats]:
        """Return the outcome of every node: numbers, rates of counts, shares of trials.

        Labelled nodes keep a number that has no known error. At all others the outcome is estimated from the node's own
        observations and all others.

        The prediction of counts is the median of the rate (times the exposure), and the standard deviation half the
        width of its central 68 %: where few nodes are observed, the most extreme values dominate the mean of a rate, or
        it is infinite. `predict_total`, `predict_mean` and `loo_` have the same convention.

        For another graph a field of the effects of features alone is fitted to the labels; what the graph field and
        local effects explained on the fitted graph counts as noise there.

        Parameters
        ----------
        graph, X : Graph and array or DataFrame, optional
            Another graph and the features of its nodes, the same columns (of a DataFrame in any order). Missing cells
            are imputed by the joint field of the features of the fit. By default the graph and features of the fit.
        return_std : bool, default False
            Also return the standard deviation of the outcome about its prediction, uncertainty of hyper-parameters and
            coefficients included; 0 where labels are kept.
        of : {"latent", "observation"}, optional
            "observation", the default for numbers: a new observation, noise included; for counts the number of cases
            given the exposure of the node, for shares the successes given its trials. "latent", the default otherwise:
            the rate, the share, the value that is measured, or the field of numbers without noise.

        Returns
        -------
        array of shape (n,), or two of them
            In float32 when X and y were.

        Raises
        ------
        InvalidInputError
            If another graph comes without its features, features without a graph, or columns differ from the fit's.
        """
        check_fitted(self, "_field")
        found = self._where(graph, X).moments(self._of(of))
        mean, std = (as_given(values, single=self._single) for values in found)
        return (mean, std) if return_std else mean

    def _of(self, of: Of | None) -> Of:
        """Return what is asked of a node."""
        if of is not None:
            check_choice("of", of, ("latent", "observation"))
        return of or self._field.reading.default

    def _where(self, graph: Any, X: Any) -> FieldOutcome | OtherGraph:
        """Return the field of the fit, or that on another graph."""
        return self._field if graph is None and X is None else self._field_on(graph, X)

    def _field_on(self, graph: Any, X: Any) -> OtherGraph:
        """Return the field on another graph."""
        if graph is None:
            raise InvalidInputError("GraphRegressor predicts other nodes on their graph, got X alone; pass both")
        graph = check_graph(graph)
        n, X = graph.n_nodes, graph.align(X, "X")
        if X is None and self._columns.count:
            wanted = self._columns.count if self._columns.names is None else list(self._columns.names)
            raise InvalidInputError(
                f"GraphRegressor needs the features of the other graph, got None; pass X of {wanted}"
            )
        table = np.zeros((n, 0)) if X is None else self._categories.dummies(X)
        return self._field.on(graph, match_features(table, n, self._columns, "GraphRegressor", holes=True))

    @answers_tables
    def predict_interval(
        self,
        level: float = 0.9,
        *,
        interval: Literal["field", "conformal"] = "field",
        of: Of | None = None,
        graph: Graph | None = None,
        X: Any = None,
    ) -> tuple[Floats, Floats]:
        """Return the ends of an interval for the outcome of every node; where labels are kept it has width 0.

        Parameters
        ----------
        level : float in (0, 1)
            Probability that the interval contains the outcome.
        interval : {"field", "conformal"}
            "field": quantiles of the posterior, hyper-parameters averaged. "conformal", for numbers only: the same,
            widened where needed to the empirical quantile of standardised out-of-fold residuals, on folds that imitate
            the holes; this assumes no distribution. Infinite if there are too few labels for the level.
        of, graph, X
            As in `predict`: an interval for the rate, share or value, or for a new observation.
        """
        check_fitted(self, "_field")
        check_level(level)
        check_choice("interval", interval, ("field", "conformal"))
        if interval == "conformal" and (graph is not None or X is not None):
            raise InvalidInputError(
                "conformal intervals need labels on the graph they are for, got another graph; use interval='field'"
            )
        if interval == "conformal":
            self._check_numbers("conformal intervals")
            low, high = self._field.conformal(level)
        else:
            low, high = self._where(graph, X).interval(level, self._of(of))
        return as_given(low, single=self._single), as_given(high, single=self._single)

    @answers_tables
    def probability(self, *, above: float, of: Of | None = None, graph: Graph | None = None, X: Any = None) -> Floats:
        """Return the probability that the outcome of every node exceeds a value.

        Parameters
        ----------
        above : float
            The value, in the units of `predict` with the same `of`.
        of, graph, X
            As in `predict`.
        """
        check_fitted(self, "_field")
        if not isinstance(above, Real) or not np.isfinite(float(above)):
            raise InvalidInputError(f"above must be a finite number, got {above!r}")
        found = self._where(graph, X).above(float(above), self._of(of))
        return as_given(found, single=self._single)

    @refuses_former_options
    def sample(
        self,
        n_samples: int = 1,
        *,
        random_state: int = 0,
        of: Of | None = None,
        graph: Graph | None = None,
        X: Any = None,
    ) -> Floats:
        """Return joint draws of the outcome of all nodes given the observations, shape (n_samples, n).

        Where `predict` keeps labels, draws do, too; `of`, `graph` and `X` are as there. When y was a Series draws are a
        DataFrame with a column for every node; those for another graph are an array in the order of its nodes.
        """
        check_fitted(self, "_field")
        graph, X = located(self, graph, X)
        found = as_given(
            self._where(graph, X).draw(check_count(n_samples), random_state, self._of(of)), single=self._single
        )
        if graph is not None or X is not None:
            return found
        draws: Floats = self._nodes.draws(found)
        return draws

    @takes_folds
    def out_of_fold(self, graph: Graph, X: Any, y: Any, folds: Ints, *, return_std: bool = False) -> Any:  # noqa: ARG002  (as in every estimator)
        """Return the out-of-fold prediction (n_labelled,) of each labelled node, and its standard deviation if asked.

        With up to 600 labels the hyper-parameters are searched again without each fold; more labels determine them.

        Parameters
        ----------
        graph, X, y : Graph, features, array of shape (n,)
            What the fit was given; they are not read again.
        folds : integer array of shape (n_labelled,)
            Fold of every labelled node, in node order.
        return_std : bool, default False
            Also return standard deviations.
        """
        check_fitted(self, "_field")
        found = self._field.out_of_fold(folds)
        return found if return_std else found[0]

    def probability_out_of_fold(self, folds: Ints, *, above: Sequence[float]) -> Floats:
        """Return the out-of-fold probability (n_labelled, k) that labelled nodes exceed each of `k` values.

        `folds` (n_labelled,): fold of every labelled node, in node order. `above`: the values.
        """
        check_fitted(self, "_field")
        return self._field.above_out_of_fold(above, folds)


def fit_classes(
    regressor: GraphRegressor, graph: Graph, X: Any, sides: Sequence[Floats], weight: Floats | None = None
) -> list[GraphRegressor]:
    """Return a fit to the labels of every class, all with the same hyper-parameters.

    Parameters
    ----------
    regressor : GraphRegressor
        Fitted to the first class.
    graph, X : Graph, features
        As in `GraphRegressor.fit`.
    sides : sequence of array of shape (n,)
        Of every class 1 at nodes in it, 0 at nodes in others, NaN where it is to be predicted.
    weight : array of shape (n,), optional
        How many times every label counts.
    """
    regressor._fit(graph, X, sides[0], known=Known({"weight": weight}), others=tuple(sides[1:]))
    assert regressor._softmax is not None
    found = [regressor, *(copy.copy(regressor) for _ in sides[1:])]
    for each, y, field in zip(found[1:], sides[1:], regressor._softmax.each[1:], strict=True):
        each._nodes = replace(regressor._nodes, y=y)
        each._take(field)
    return found


def class_probabilities(fits: Sequence[GraphRegressor], graph: Graph | None = None, X: Any = None) -> Floats:
    """Return the probability (n, classes) of every class from what `fit_classes` returned, labels aside."""
    softmax = fits[0]._softmax
    assert softmax is not None
    if graph is None and X is None:
        return softmax.here
    return softmax.on([each._field_on(graph, X) for each in fits])


def class_probabilities_out_of_fold(fits: Sequence[GraphRegressor], folds: Ints) -> Floats:
    """Return the out-of-fold probability (n_labelled, classes) of every class from what `fit_classes` returned."""
    softmax = fits[0]._softmax
    assert softmax is not None
    return softmax.out_of_fold(folds)


def _read_priors(priors: Any) -> dict[str, float]:
    """Return the scales of terms, checked."""
    if not isinstance(priors, Mapping | None):
        raise InvalidInputError(f"priors must be a dict of scales by the names of terms, got {priors!r}")
    found = dict(priors or {})
    for name, scale in found.items():
        check_choice("priors", name, tuple(TERMS))
        if not isinstance(scale, Real) or not np.isfinite(float(scale)) or scale <= 0:
            raise InvalidInputError(
                f"priors must be positive scales, 1 for that of other terms, got {scale!r} for {name}; to leave a term "
                "out use terms="
            )
    return {name: float(scale) for name, scale in found.items()}


def _check_learner(learner: Any) -> None:
    """Raise unless a learner is "auto", None, or the instance of a regressor."""
    is_regressor = hasattr(learner, "fit") and hasattr(learner, "predict") and not isinstance(learner, type)
    named = isinstance(learner, str) and learner == BOOSTED_TREES
    if not (learner is None or named or (is_regressor and not is_classifier(learner))):
        raise InvalidInputError(
            f"learner must be 'auto', None or a regressor of scikit-learn, got {learner!r}; pass an instance, such as "
            "RandomForestRegressor()"
        )


def _kinds(transform: str, labels: Floats) -> tuple[Kind, ...]:
    """Return the transforms to compare."""
    if transform not in (*_KINDS, "auto"):
        raise InvalidInputError(f"transform must be one of {', '.join(_KINDS)} or auto, got {transform!r}")
    lowest, constant = float(labels.min()), bool(np.ptp(labels) == 0)
    if transform in POSITIVE and lowest <= 0:
        raise InvalidInputError(f"transform {transform!r} needs positive labels, got {lowest}; use 'yeo-johnson'")
    if constant:
        return ("identity",)
    wanted = _KINDS if transform == "auto" else (transform,)
    return tuple(kind for kind in wanted if lowest > 0 or kind not in POSITIVE)  # type: ignore[misc]  # checked above


def _differing_neighbours(graph: Graph, y: Floats) -> Iterator[str]:
    """Yield a note where labelled neighbours differ: Moran's I is far below 0, by its standard error if independent."""
    known = np.flatnonzero(~np.isnan(y))
    W = sparse.csr_array(graph.adjacency)[known][:, known]
    about = y[known] - y[known].mean()
    total, variance = float(W.sum()), float(about @ about) / max(known.size, 1)
    if total > 0 and variance > 0:
        moran = float(about @ (W @ about)) / (total * variance)
        if moran < -_UNLIKELY * np.sqrt(2.0 * float((W.data**2).sum())) / total:
            yield (
                f"neighbours differ: Moran's I of the outcome is {moran:.2f}, so a smooth graph field adds nothing; "
                "roles of nodes may, see graph_features"
            )


def _copies(graph: Graph, y: Floats) -> Iterator[str]:
    """Yield a note where known nodes are copies of each other, in neighbours and outcome, and unknown nodes of none.

    More of them than by chance; of copies of each other only one counts as an observation.
    """
    known = ~np.isnan(y)
    if known.all() or not known.any():
        return
    neighbours = graph.adjacency @ np.random.default_rng(0).random(y.size)  # a number for each set of neighbours
    neighbours[graph.isolated] = -1.0 - np.flatnonzero(graph.isolated)
    twin = np.unique(neighbours, return_inverse=True)[1]
    copy = np.unique(np.column_stack([twin, y])[known], axis=0, return_inverse=True)[1].reshape(-1)
    copied, wanted = np.bincount(copy)[copy] > 1, np.isin(twin[~known], twin[known])
    share, independent = np.append(copied, wanted).mean(), 1.0 / (copy.max() + 1) + 1.0 / np.unique(twin[~known]).size
    if copied.mean() - wanted.mean() > _UNLIKELY * np.sqrt(share * (1.0 - share) * independent):
        yield (
            f"{copied.mean():.0%} of the known nodes are copies of each other, with the same neighbours and outcome, "
            f"but {wanted.mean():.0%} of the others have the neighbours of a known one: intervals there are too narrow"
        )


def _check_missing(table: Table) -> None:
    """Raise unless missing cells can be imputed: a known cell in every column, and not too many patterns of them."""
    missing = np.isnan(table.X)
    for column in np.flatnonzero(missing.all(axis=0))[:1]:
        place = table.columns.title(column)
        raise InvalidInputError(f"every column of X must have a known cell, got none in {place}; drop it")
    patterns = len(np.unique(np.packbits(missing, axis=1), axis=0)) if missing.any() else 0
    if patterns * missing.shape[1] ** 2 > MOST_PATTERNS:
        raise InvalidInputError(
            f"missing cells of X are filled by a joint field of its columns, got {missing.shape[1]} columns and "
            f"{patterns} patterns of missing cells, too many for it; fill them first, or drop columns"
        )
