"""The general latent-Gaussian field: linear, nonlinear and graph effects at once, tuned by their own likelihood."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
import pandas as pd
from scipy import sparse

from graphmrf.errors import InvalidInputError
from graphmrf.estimators.inputs import (
    Categories,
    as_given,
    check_fitted,
    check_graph,
    match_features,
    read_features,
    read_outcome,
)
from graphmrf.estimators.joint import check_level, group_table, read_groups, weighted_means
from graphmrf.estimators.node_explanation import NodeExplanation
from graphmrf.estimators.rows import NAMES, NUMBERS, long_outcome, read_rows
from graphmrf.estimators.scikit import node_positions
from graphmrf.estimators.summary import Summary, summarise
from graphmrf.estimators.tables import (
    NodeEstimator,
    answers_tables,
    located,
    predicts_tables,
    takes_folds,
    takes_tables,
)
from graphmrf.estimators.targets import of_every_target
from graphmrf.field import MOST_PATTERNS, POSITIVE, TERMS, FieldOptions, Observations, Responses
from graphmrf.field.criteria import Criteria
from graphmrf.field.learned import AUTO
from graphmrf.field.outcome import FieldOutcome
from graphmrf.graph.checks import check_count
from graphmrf.selection import steps_to_label

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Self

    from graphmrf._typing import Bools, Floats, Ints
    from graphmrf.estimators.inputs import Table
    from graphmrf.estimators.rows import Rows
    from graphmrf.estimators.tables import Search
    from graphmrf.field import Kind
    from graphmrf.field.fit import Found
    from graphmrf.field.outcome import OtherGraph
    from graphmrf.field.reading import Of
    from graphmrf.graph import Graph

_PROGRESS = logging.getLogger("graphmrf.progress")

_CURVE = (1.0, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0)
"""Numbers of labels of a learning curve, over those there are."""
_BAND = 1.645
"""Standard errors of a band of 90 %."""
_TOGETHER = 0.9
"""Share of the unlabelled nodes without, and of the labelled ones with a value, beyond which a column seems to follow
from the outcome."""

_UNLIKELY = 3.0
"""Standard errors of Moran's I below 0 from which neighbours differ."""

_KINDS = ("identity", "log", "box-cox", "yeo-johnson")
_REPRESENTATIONS = ("auto", "dense", "sparse")


class GraphRegressor(NodeEstimator):
    r"""A latent-Gaussian field with linear, nonlinear and graph effects; nothing to tune.

    The outcome is a sum of independent Gaussian terms and noise: linear effects of a node's own features `X`, of its
    neighbours' means `M` and of smoothed features `TX`, a smooth nonlinear function of :math:`Z = [X, M]`, the same
    varying over the graph, and a field that is smooth over the graph,

    .. math:: \mathrm{Cov}(y) = \sigma_0^2 + \tfrac{\sigma_1^2}{p} XX' + \tfrac{\sigma_2^2}{p} MM'
              + \tfrac{\sigma_3^2}{p} TX(TX)' + \sigma_4^2 k(Z, Z') + \sigma_5^2 k(Z, Z') \circ R' + \sigma_6^2 R
              + \sigma_7^2 I

    with squared-exponential `k` and `R` the correlations of :math:`(\kappa^2 + N)^{-\nu}`. Priors let terms vanish that
    the labels do not ask for. Predictions are averaged over the posterior of all hyper-parameters; see `docs/field.md`.
    Linear regression, label propagation and linear graph convolution with residual propagation are special cases.

    On up to 3,500 nodes the covariance among the labels is dense and exact. On larger graphs the graph field has a
    sparse precision, with exact factors on maps, roads and trees and iterative solves of order 1 elsewhere,
    nonlinear effects become columns, and there are no local effects. What a long fit is doing is logged to
    ``graphmrf.progress``.

    Missing cells of the features are imputed by the coupled Gaussian field of all features (see `GaussianMRF`), and
    predictions are averaged over 24 draws of them. A labelled node keeps its label in `predict`.

    Parameters
    ----------
    likelihood : {"auto", "gaussian", "student", "poisson", "negative-binomial", "binomial", "ordinal"}, default "auto"
        Distribution of an observation about the field. Of numbers: normal, or Student's t with as many degrees of
        freedom as the labels suggest; "auto" is normal, with more noise for labels beyond Tukey's outer fences (three
        interquartile ranges outside the quartiles), so that no wild label carries a prediction. Of counts: Poisson,
        with a part of each node's own in the rate, or negative binomial, both with a logarithmic link and `exposure`.
        Of shares and of yes and no: binomial with a logistic link and `trials`. Of ordered classes 0, 1, ...: ordinal,
        whose latent value exceeds more or fewer cuts (see `GraphClassifier` for words). These are fitted by Laplace's
        approximation around the most probable latent values.
    transform : {"identity", "log", "box-cox", "yeo-johnson", "auto"}, default "identity"
        Monotone transform of the outcome, under which it is Gaussian; exponents by likelihood. "auto" takes the
        most likely of those that apply ("log" and "box-cox" need positive labels). Predictions are in the units of
        the outcome: means, standard deviations and intervals of the transformed-back distribution.
    terms : sequence of str, optional
        Names of the terms, of `graphmrf.field.TERMS`; by default all.
    priors : dict of str to float, optional
        Scales of the standard deviations of some terms a priori, over those of all others, which have 1: of
        ``{"field": 3.0}`` the graph field is expected to carry three times as much as any other term, with .1 a tenth.
    solver : {"auto", "dense", "sparse"}, default "auto"
        Representation of the field.
    learner : "auto", None, or regressor of scikit-learn, default "auto"
        Its predictions become one more term: an effect learned from own features, means over neighbours and second
        neighbours, and degrees. They are out of fold, on folds that imitate the holes, and the evidence decides how
        much they count. "auto" are boosted trees, from 56 labels on, which are left out unless they reduce the squared
        error of held-out labels by more than its standard error; `notes_` has the decision. Their loss is that of the
        likelihood; other regressors are for numbers only.
    random_state : int, default 0
        Seed of everything random.

    Attributes
    ----------
    hyperparameters_ : dict
        Most probable variances (in shares of the variance of the labels), ranges, orders and length scales.
    log_evidence_ : float
        Log density of the observations, hyper-parameters integrated by Laplace's approximation: greater of the better
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
        What deserves a look in the data, such as a feature that is known only where the outcome is.

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

    def __init__(  # noqa: PLR0913 - terms, and what is believed of them, are two options
        self,
        *,
        likelihood: str = "auto",
        transform: str = "identity",
        terms: Any = None,
        priors: Mapping[str, float] | None = None,
        solver: str = "auto",
        learner: Any = AUTO,
        random_state: int = 0,
    ) -> None:
        self.likelihood = likelihood
        self.transform = transform
        self.terms = terms
        self.priors = priors
        self.solver = solver
        self.learner = learner
        self.random_state = random_state

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
            Outcomes, NaN where they are to be predicted; of numbers at least 2 known. Each of several columns is fitted
            for itself, see `targets_`. With `nodes` of any length: a long table, in which a node has none, one or
            several rows.
        exposure : number or array of the shape of y, optional
            Exposure of counts: population, time, or expected number; 1 by default.
        trials : number or array of the shape of y, optional
            Trials of which y are the successes; 1 by default.
        std : number or array of the shape of y, optional
            Known standard errors of numbers. The outcome is then the value that is measured, at labelled nodes too.
        weight : number or array of the shape of y, optional
            Precisions of numbers over that of a usual one, such as numbers of people asked.
        nodes : array of the shape of y, optional
            Node of every row of a long table: its id, or its position where the graph has no ids. Rows of a node are
            independent given its value; of numbers without `std` their standard error is estimated.

        Raises
        ------
        InvalidInputError
            If the inputs break a rule.
        ConvergenceError
            If a solve of the sparse representation misses its tolerance.
        """
        given = {"exposure": exposure, "trials": trials, "std": std, "weight": weight}
        if nodes is None:
            return self._fit(graph, X, y, given=given, long=None)
        graph = check_graph(graph)
        y, places, values = long_outcome(graph, y, nodes)
        return self._fit(graph, X, y, given=given, long=(places, values))

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
            The labels that are new or corrected, NaN elsewhere; on a graph with ids a Series of some nodes is enough.
            All other labels remain.
        exposure, trials, std, weight : number or array of shape (n,), optional
            As in `fit`, of the nodes with new labels, and of nodes for which they were unknown.
        search : {"near", "anew"}
            "near": the search of hyper-parameters of a sparse field begins at those found before, whose order of
            smoothness remains. "anew", and of a dense field always: as `fit` does, with the same predictions as a new
            model.
        """
        check_fitted(self, "_field")
        given, long = self._given
        if long is not None:
            raise InvalidInputError("update is for one value of a node, got a fit of a long table; fit the longer one")
        nodes = self._nodes
        labels = nodes.with_labels(y)
        new = {"exposure": exposure, "trials": trials, "std": std, "weight": weight}
        fresh = ~np.isnan(read_outcome(nodes.new_labels(y), nodes.graph.n_nodes).y)
        given = {name: _merged(given[name], nodes.align(new[name], name), fresh) for name in given}
        return self._again(nodes.graph, nodes.X, labels, search, given=given)

    def _refit(self, graph: Graph, X: Any, y: Any, *, near: bool, given: dict[str, Any] | None = None) -> None:
        """Fit again, what is known of observations moved with their nodes."""
        found, start = self._field.fitted.found, None
        if near and found.fixed is not None:
            shapes = {name: shape for name, shape in found.fixed.items() if name != "nonlinear.lengths"}
            start = replace(found, fixed=shapes)
        places, (old, long) = self._nodes.places_in(graph), self._given
        given = {name: _moved(values, places, graph.n_nodes) for name, values in (given or old).items()}
        if long is not None:
            given, long = old, (places[long[0]], long[1])
        self._fit(graph, X, y, given=given, long=long, start=start)

    @takes_tables
    def _fit(
        self,
        graph: Graph,
        X: Any,
        y: Any,
        *,
        given: dict[str, Any],
        long: tuple[Ints, Floats] | None,
        start: Found | None = None,
    ) -> Self:
        n = graph.n_nodes
        outcome, options = read_outcome(y, n), replace(self._options(graph), start=start)
        if long is None:
            given = {name: graph.align(values, name) for name, values in given.items()}
        self._given = given, long
        places, values = long or (np.arange(n), outcome.y)
        rows = read_rows(self.likelihood, graph, places, values, given)
        self._categories = Categories.of(X)
        X = np.zeros((n, 0)) if X is None else self._categories.dummies(X)
        table = read_features(X, n, "GraphRegressor", holes=True)
        if outcome.n_labelled < 2 and rows.likelihood is None:
            raise InvalidInputError(
                f"GraphRegressor needs at least 2 labelled nodes, got {outcome.n_labelled}; label more"
            )
        _check_missing(table)
        features, notes = _without_useless(table, outcome.known)
        self._field = self._fitted(graph, features, outcome.y, rows, options)
        trial = self._field.fitted.trial
        learned = () if trial is None else (trial.note,)
        self.notes_ = (*notes, *_differing_neighbours(graph, outcome.y), *learned)
        self._columns = table.columns
        self._single = outcome.single and (table.single or not table.columns.count)
        self.solver_ = "dense" if self._field.fitted.found.fixed is None else "sparse"
        self.hyperparameters_ = dict(self._field.posterior.h)
        self.transform_: Any = self._field.scale if self.keeps_labels else None
        self._criteria = Criteria(self._field)
        self.log_evidence_ = self._criteria.log_evidence
        return self

    def _fitted(self, graph: Graph, X: Floats, y: Floats, rows: Rows, options: FieldOptions) -> FieldOutcome:
        """Return the field fitted to numbers, one of a node, or to other observations."""
        if rows.likelihood is None:
            kinds = _kinds(self.transform, y[~np.isnan(y)])
            weight = None if rows.weight is None else np.zeros(y.size)
            if weight is not None:
                weight[rows.nodes] = rows.weight
            return FieldOutcome.fit(graph, X, y, weight=weight, kinds=kinds, options=options)
        if self.transform != "identity":
            raise InvalidInputError(
                f"transform is for numbers without known errors, one of a node, got {self.transform!r}; leave it out"
            )
        labels = Responses.of(rows.likelihood, rows.nodes, rows.y, rows.size)
        return FieldOutcome.fit_responses(graph, X, labels, rows.everywhere, options=options)

    @property
    def keeps_labels(self) -> bool:
        """Whether `predict` returns the label of a labelled node: of numbers without known errors, one of a node."""
        fitted = vars(self).get("_field")
        return self.likelihood in NUMBERS and (fitted is None or isinstance(fitted.labels, Observations))

    def _options(self, graph: Graph) -> FieldOptions:
        """Return the options of the field, checked."""
        _check_choice("likelihood", self.likelihood, NAMES)
        _check_choice("solver", self.solver, _REPRESENTATIONS)
        terms = tuple(TERMS) if self.terms is None else tuple(self.terms)
        absent = {"learned": self.learner is None, "time": graph.product is None}
        terms = tuple(name for name in terms if not absent.get(name))
        for name in terms:
            _check_choice("terms", name, tuple(TERMS))
        if self.learner not in (None, AUTO) and self.likelihood not in NUMBERS:
            raise InvalidInputError(
                f"a learner other than 'auto' is for numbers, got likelihood {self.likelihood!r}; leave it out"
            )
        priors = _read_priors(self.priors)
        return FieldOptions(
            terms, self.likelihood, self.solver, learner=self.learner, seed=self.random_state, priors=priors
        )

    @overload
    def predict(
        self, graph: Graph | None = None, X: Any = None, *, return_std: Literal[False] = False, of: Of | None = None
    ) -> Floats: ...
    @overload
    def predict(
        self, graph: Graph | None = None, X: Any = None, *, return_std: Literal[True], of: Of | None = None
    ) -> tuple[Floats, Floats]: ...
    @predicts_tables
    def predict(
        self, graph: Graph | None = None, X: Any = None, *, return_std: bool = False, of: Of | None = None
    ) -> Floats | tuple[Floats, Floats]:
        """Return the outcome of every node: numbers, rates of counts, shares of trials.

        Labelled nodes keep a number that has no known error. Everywhere else the outcome is estimated from the node's
        own observations and all others.

        Of counts the prediction is the median of the rate (times the exposure), and the standard deviation half the
        width of its central 68 %: where few nodes are observed the mean of a rate is carried by its most extreme
        values, or is infinite. `predict_total`, `predict_mean` and `loo_` have the same convention.

        For another graph a field of the effects of features alone is fitted to the labels; what the graph field and
        local effects explained on the fitted graph is uncertainty there.

        Parameters
        ----------
        graph, X : Graph and array or DataFrame, optional
            Another graph and the features of its nodes, the same columns (of a DataFrame in any order); NaN where
            missing, which is imputed by the joint field of the features of the fit, and predictions are averaged over
            24 draws. By default the graph and features of the fit.
        return_std : bool, default False
            Also return the standard deviation of the outcome about its prediction, uncertainty of hyper-parameters and
            coefficients included; 0 where labels are kept.
        of : {"latent", "observation"}, optional
            "observation", the default for numbers: a new observation, noise included; of counts the number of cases
            given the exposure of the node, of shares the successes given its trials. "latent", the default otherwise:
            what lies behind observations, that is the rate, the share, the value that is measured, or the field of
            numbers without noise.

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
            _check_choice("of", of, ("latent", "observation"))
        return of or self._field.reading.default

    def _where(self, graph: Any, X: Any) -> FieldOutcome | OtherGraph:
        """Return the field of the fit, or that on another graph."""
        if graph is None and X is None:
            return self._field
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
            "field": quantiles of the posterior, hyper-parameters averaged. "conformal": as many standard deviations as
            the empirical quantile of leave-one-out residuals, of which no shape is assumed; infinite when labels are
            too few for the level. Only for numbers.
        of : {"latent", "observation"}, optional
            As in `predict`: an interval for the rate, share or value, or one for a new observation.
        graph, X : Graph and array or DataFrame, optional
            Another graph and the features of its nodes, as in `predict`.
        """
        check_fitted(self, "_field")
        check_level(level)
        _check_choice("interval", interval, ("field", "conformal"))
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

    def _check_numbers(self, what: str) -> None:
        if not self.keeps_labels:
            raise InvalidInputError(
                f"{what} need numbers with the same noise, one of a node; for other observations use predict, "
                "predict_interval and loo_"
            )

    @answers_tables
    def probability(self, *, above: float, of: Of | None = None, graph: Graph | None = None, X: Any = None) -> Floats:
        """Return the probability that the outcome of every node exceeds a value.

        Parameters
        ----------
        above : float
            The value, in the units of `predict` with the same `of`.
        of : {"latent", "observation"}, optional
            As in `predict`.
        graph, X : Graph and array or DataFrame, optional
            Another graph and the features of its nodes, as in `predict`.
        """
        check_fitted(self, "_field")
        found = self._where(graph, X).above(float(above), self._of(of))
        return as_given(found, single=self._single)

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

        Where `predict` keeps labels draws do, too; `of` is as there.

        When y was a Series they are a DataFrame with a column for every node. With another graph and the features of
        its nodes, matched by id as in `predict`, they are joint draws of its outcomes, an array in the order of its
        nodes.
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

    @overload
    def expected_r2(self, labelled: Any = None, *, return_std: Literal[False] = False) -> float: ...
    @overload
    def expected_r2(self, labelled: Any = None, *, return_std: Literal[True]) -> tuple[float, float]: ...
    def expected_r2(self, labelled: Any = None, *, return_std: bool = False) -> float | tuple[float, float]:
        r"""Return the R2 to expect on the unlabelled nodes, with the labels there are or with others.

        .. math:: 1 - \mathrm{tr}\,\Sigma_{UU} / \mathrm E \textstyle\sum_U (y_i - \bar y)^2

        with the posterior covariance, noise included, which does not depend on the values of labels.

        Parameters
        ----------
        labelled : bool array of shape (n,), optional
            True at the nodes that would have a label; by default those that have one.
        return_std : bool, default False
            Also return the standard error.
        """
        check_fitted(self, "_field")
        self._check_numbers("expected R2")
        mask = (
            None
            if labelled is None
            else _read_mask(self._nodes.align(labelled, "labelled"), self._field.y.size, "labelled")
        )
        found = self._field.accuracy.expected_r2(mask)
        return found if return_std else found[0]

    def expected_learning_curve(self, n_labels: Any = None, *, draws: int = 3) -> pd.DataFrame:
        """Return the R2 to expect with more labels, at nodes drawn at random.

        Parameters
        ----------
        n_labels : sequence of int, optional
            Numbers of labels, those there are included; by default up to twenty times as many as there are.
        draws : int
            Random orders of the further labels to average over.

        Returns
        -------
        DataFrame
            `n_labels`, `expected_r2`, and a band of 90 %, `lower` and `upper`.
        """
        check_fitted(self, "_field")
        self._check_numbers("learning curves")
        m, n = self._field.rows.size, self._field.y.size
        times = [round(m * factor) for factor in _CURVE]
        sizes = [size for size in times if size <= n - 2] if n_labels is None else [int(size) for size in n_labels]
        if not all(m <= size <= n - 2 for size in sizes):
            raise InvalidInputError(f"n_labels must be from the {m} labels there are to {n - 2}, got {sizes}")
        r2, error = self._field.accuracy.learning_curve(sizes, check_count(draws))
        band = _BAND * error
        return pd.DataFrame({"n_labels": sizes, "expected_r2": r2, "lower": r2 - band, "upper": r2 + band})

    def suggest(self, k: int = 1, *, among: Any = None) -> pd.DataFrame:
        """Return the `k` unlabelled nodes whose labels would help most, best first.

        They are chosen one after the other by how much their labels reduce the variance of all other unlabelled nodes.
        Where no label helps other nodes the table is empty, and ``attrs["reason"]`` says so.

        Parameters
        ----------
        k : int
            Number of nodes.
        among : bool array of shape (n,), optional
            True at the nodes that can be asked; by default all.

        Returns
        -------
        DataFrame
            Position of the `node`, `std` of its prediction, and the `expected_r2` with this label and those above it,
            on all nodes that are unlabelled now.
        """
        check_fitted(self, "_field")
        self._check_numbers("suggestions")
        n = self._field.y.size
        mask = None if among is None else _read_mask(self._nodes.align(among, "among"), n, "among")
        candidates = int(np.sum(np.isnan(self._field.y) & (True if mask is None else mask)))
        if isinstance(k, bool) or not isinstance(k, int | np.integer) or not 0 <= k <= candidates:
            raise InvalidInputError(f"k must be a whole number from 0 to the {candidates} nodes to ask, got {k!r}")
        nodes, r2, reason = self._field.accuracy.suggest(int(k), mask)
        found = pd.DataFrame({"node": nodes, "std": self._field.predictions[1][nodes], "expected_r2": r2})
        found.attrs["reason"] = reason
        labelled: pd.DataFrame = self._nodes.rows(found, nodes)
        return labelled

    @of_every_target
    def predict_total(self, groups: Any, *, level: float = 0.9) -> pd.DataFrame:
        """Return the sum of the outcome over every group of nodes, with error bars from joint draws.

        Of counts and shares the sum of cases or successes, given the exposure or trials of every node. Observed nodes
        count with their label, but for measurements with an error.

        Parameters
        ----------
        groups : array or Series of shape (n,)
            Group of every node; None or NaN: in none.
        level : float in (0, 1)
            Probability that an interval contains the sum.

        Returns
        -------
        DataFrame
            By group, sorted: `prediction`, `std`, `lower`, `upper`, `n_nodes`, `n_observed`.
        """
        totals: pd.DataFrame = self._nodes.as_given(self._totals(groups, level))
        return totals

    def _totals(self, groups: Any, level: float, weight: Floats | None = None) -> pd.DataFrame:
        check_fitted(self, "_field")
        check_level(level)
        names, members = read_groups(self._nodes.align(groups, "groups"), self._field.y.size)
        return group_table(self._field.sums(members, level, weight), names, members, ~np.isnan(self._field.y))

    @of_every_target
    def predict_mean(self, groups: Any, *, level: float = 0.9, weight: Any = None) -> pd.DataFrame:
        """Return the mean of the outcome over every group of nodes; see `predict_total`.

        Of counts and shares the total over the exposure or trials of the group.

        Parameters
        ----------
        groups, level
            As in `predict_total`.
        weight : array or Series of shape (n,), optional
            Weight of every node in the mean, such as its population where outcomes are rates; 1 by default.
        """
        check_fitted(self, "_field")
        means: pd.DataFrame = self._nodes.as_given(weighted_means(self, groups, level, weight, self._field.sizes))
        return means

    @takes_folds
    def out_of_fold(self, graph: Graph, X: Any, y: Any, folds: Ints, *, return_std: bool = False) -> Any:  # noqa: ARG002  (as in every estimator)
        """Return the prediction (n_labelled,) of each labelled node by a field fitted without its fold.

        Of up to 600 labels the hyper-parameters are searched again without each fold; more labels determine them.

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
        """Return the probability that the observation of each labelled node exceeds some values, without its fold.

        Parameters
        ----------
        folds : integer array of shape (n_labelled,)
            Fold of every labelled node, in node order.
        above : sequence of k numbers
            The values.

        Returns
        -------
        array of shape (n_labelled, k)
        """
        check_fitted(self, "_field")
        return self._field.above_out_of_fold(above, folds)

    @of_every_target
    def summary(self) -> str:
        """Return effects, hyper-parameters and what the fit is judged by, as a table of text.

        Linear effects with standard errors and 95 % intervals: of a feature of the node itself, all others and those of
        its neighbours held fixed, on the scale of the link (of counts the logarithm, of shares the logit). Log
        evidence, expected log predictive density (elpd) by leaving one node out, the same by Pareto-smoothed importance
        sampling (PSIS) with its largest diagnostic `k`, and by WAIC. Moran's I of leave-one-out residuals over the
        edges among labelled nodes with its p-value, and `phi`, the share of the graph field in it and the part that is
        each node's own.
        """
        if "_field" not in vars(self):
            return Summary("GraphRegressor: not fitted yet")
        n, m = self._nodes.graph.n_nodes, self._nodes.graph.n_edges
        names = range(self._columns.count) if self._columns.names is None else self._columns.names
        labels = self._field.labels
        likelihood = labels.likelihood.name if isinstance(labels, Responses) else self.likelihood
        facts = {"likelihood": likelihood, "nodes": f"{n:,}", "edges": f"{m:,}", "labelled": f"{labels.nodes.size:,}"}
        return summarise(facts, self._field.shares, [str(name) for name in names], self._criteria)

    @property
    def shares_(self) -> pd.Series:
        """Share of the variance by kind of effect."""
        check_fitted(self, "_field")
        return pd.Series(self._field.shares, name="share")

    @property
    def explanation_(self) -> str:
        """What carries the prediction, in one sentence."""
        shares = self.shares_.drop("noise").sort_values(ascending=False)
        shown = [(str(name), round(100 * float(share))) for name, share in shares.items() if share >= 0.005]
        if not shown:
            return "Neither features nor neighbours explain the outcome."
        first, *others = shown
        rest = "".join(f", {name} {percent} %" for name, percent in others)
        return f"{first[0].capitalize()} explain{'s' * (first[0] == 'graph field')} {first[1]} % of the variance{rest}."

    @property
    def coef_(self) -> Floats | pd.Series:
        """Mean change of a node's expected outcome per unit of its own feature."""
        check_fitted(self, "_field")
        return self._columns.named(self._field.own_effects)

    def explain(self, node: Any) -> NodeExplanation:
        """Return what made the prediction of a node: the weight of every label, and what each kind of effect adds.

        Parameters
        ----------
        node : hashable
            Id of the node, or its position where the graph has no ids.

        Raises
        ------
        InvalidInputError
            If the node is unknown or labelled, or the outcome is not a sum: transformed, counts or shares.
        """
        check_fitted(self, "_field")
        self._check_numbers("explanations")
        if self._field.scale.power is not None:
            raise InvalidInputError("contributions add up without a transform only; fit with transform='identity'")
        (place,) = node_positions(self._nodes.graph, np.asarray([node])).tolist()
        field, rows = self._field, self._field.rows
        if not np.isnan(field.y[place]):
            raise InvalidInputError(f"explain is for predictions, got {node!r}, whose value is known; see loo_")
        weights, unit, mean = field.label_weights(place), field.scale.unit, float(field.scale.back(np.zeros(1))[0])
        steps = steps_to_label(self._nodes.graph, np.arange(field.y.size) == place)[rows]
        table = pd.DataFrame({"node": rows, "label": field.y[rows], "steps": steps, "weight": weights}, index=rows)
        table["contribution"] = unit * weights * field.scale.z
        table = table.iloc[np.argsort(-np.abs(table["contribution"].to_numpy()), kind="stable")]
        effects = pd.Series({name: unit * part for name, part in field.effects_at(place).items()}, name="effect")
        labelled = self._nodes.rows(table, table["node"].to_numpy())
        return NodeExplanation(node, float(field.predictions[0][place]), mean, labelled, effects)

    def partial_dependence(self, feature: Any, values: Any) -> Floats:
        """Return the mean prediction were a feature of every node to have each of some values.

        Over a sample of 200 nodes whose other features, and those of their neighbours, stay as they are; by the effects
        of features alone.

        Parameters
        ----------
        feature : hashable
            Name of the feature, or its position where features have no names.
        values : array of shape (k,)
            Values of the feature.
        """
        check_fitted(self, "_field")
        names = list(range(self._columns.count)) if self._columns.names is None else list(self._columns.names)
        if feature not in names:
            raise InvalidInputError(f"feature must be one of {', '.join(map(str, names))}, got {feature!r}")
        return self._field.dependence(names.index(feature), np.asarray(values, dtype=np.float64))

    @property
    def loo_(self) -> pd.DataFrame:
        """Prediction of every label from all others."""
        check_fitted(self, "_field")
        (mean, std), rows = self._field.leave_one_out, self._field.rows
        table = pd.DataFrame({"node": rows, "label": self._field.y[rows], "prediction": mean, "std": std})
        labelled: pd.DataFrame = self._nodes.rows(table, rows)
        return labelled


def _moved(values: Any, places: Ints, n: int) -> Any:
    """Return what is known of observations at the places of their nodes among others; one number stays one."""
    if values is None or np.ndim(values) == 0:
        return values
    moved = np.full(n, np.nan)
    moved[places] = values
    return moved


def _merged(old: Any, new: Any, fresh: Bools) -> Any:
    """Return what is known of observations: the new values at nodes with new labels, and where there were none."""
    if new is None:
        return old
    before = np.full(fresh.size, np.nan) if old is None else np.broadcast_to(np.asarray(old, np.float64), fresh.shape)
    after = np.broadcast_to(np.asarray(new, dtype=np.float64), fresh.shape)
    return np.where((fresh | np.isnan(before)) & ~np.isnan(after), after, before)


def _check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise InvalidInputError(f"{name} must be one of {', '.join(choices)}, got {value!r}")


def _read_priors(priors: Any) -> dict[str, float]:
    """Return the scales of terms, checked."""
    found = {} if priors is None else dict(priors)
    for name, scale in found.items():
        _check_choice("priors", name, tuple(TERMS))
        if isinstance(scale, str) or not np.isfinite(scale) or scale <= 0:
            raise InvalidInputError(
                f"priors must be positive scales, 1 for that of other terms, got {scale!r} for {name}; to leave a term "
                "out use terms="
            )
    return {name: float(scale) for name, scale in found.items()}


def _read_mask(mask: Any, n: int, name: str) -> Bools:
    """Return a mask of the nodes, checked."""
    found = np.asarray(mask)
    if found.dtype != np.bool_ or found.shape != (n,):
        raise InvalidInputError(
            f"{name} must be True or False for each of the {n} nodes, got {found.dtype} of shape {found.shape}; "
            "for a list of nodes use np.isin(np.arange(n), nodes)"
        )
    return found


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


def _without_useless(table: Table, known: Bools) -> tuple[Floats, Iterator[str]]:
    """Return the features, columns without a value at any node to predict as 0, and sentences on those."""
    missing, names = np.isnan(table.X), table.columns.names
    if known.all():
        return table.X, iter(())
    least = np.minimum(missing[~known].mean(axis=0), 1.0 - missing[known].mean(axis=0))
    useless = np.asarray(missing[~known].all(axis=0))

    def notes() -> Iterator[str]:
        for column in np.flatnonzero(useless | (least > _TOGETHER)).tolist():
            name = f"column {column}" if names is None else f"column {names[column]!r}"
            if useless[column]:
                yield f"{name} is left out: it has no value at the nodes to predict"
            else:
                yield (
                    f"{name} is known where the outcome is, and missing elsewhere, so it says little of the nodes to "
                    "predict; drop it if it follows from the outcome"
                )

    return np.where(useless, 0.0, table.X), notes()


def _differing_neighbours(graph: Graph, y: Floats) -> Iterator[str]:
    """Say where labelled neighbours differ, by Moran's I and its standard error were they independent."""
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


def _check_missing(table: Table) -> None:
    """Raise unless missing cells can be imputed: a known cell in every column, and not too many patterns of them."""
    missing = np.isnan(table.X)
    for column in np.flatnonzero(missing.all(axis=0))[:1]:
        names = table.columns.names
        place = f"column {names[column]!r}" if names is not None else f"column {column}"
        raise InvalidInputError(f"every column of X must have a known cell, got none in {place}; drop it")
    patterns = len(np.unique(np.packbits(missing, axis=1), axis=0)) if missing.any() else 0
    if patterns * missing.shape[1] ** 2 > MOST_PATTERNS:
        raise InvalidInputError(
            f"missing cells of X are filled by a joint field of its columns, got {missing.shape[1]} columns and "
            f"{patterns} patterns of missing cells, more than it can take; fill them first, or drop columns"
        )
