"""Classification: fields with the likelihood of two, several or ordered classes, or a regression."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
from scipy.optimize import minimize_scalar
from scipy.special import expit, log_softmax, logit, softmax
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score

from graphmrf.errors import InvalidInputError
from graphmrf.estimators.base import NodeEstimator
from graphmrf.estimators.graph_regressor import (
    GraphRegressor,
    class_probabilities,
    class_probabilities_out_of_fold,
    fit_classes,
)
from graphmrf.estimators.inputs import check_classes, check_fitted, check_graph, check_seen, read_labels
from graphmrf.estimators.out_of_fold import out_of_fold
from graphmrf.estimators.summary import Summary
from graphmrf.estimators.tables import answers_tables, located, of_every_target, outcome_column, takes_tables
from graphmrf.field.learned import BOOSTED_TREES
from graphmrf.graph.checks import check_count
from graphmrf.selection import assign_strata, distance_matched_folds

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self

    from graphmrf._typing import Bools, Floats, Ints
    from graphmrf.estimators.inputs import Labels
    from graphmrf.graph import Graph


_LEAST = np.finfo(float).tiny  # probability whose logarithm is finite
LEVEL = 0.99  # smoothing level where one label of each class cannot choose it; that of Zhou et al. (2004)


@dataclass(eq=False, repr=False)
class GraphClassifier(NodeEstimator):
    r"""Classes of nodes from the field of `GraphRegressor` with their own likelihood, or from any regression.

    By default the labels of two classes are Bernoulli variables given a field, for the later class in sorted order.
    With more classes each has a field with the same hyper-parameters, and labels follow the softmax of their values,

    .. math:: p(y = k) = \frac{\exp f_k}{\sum_j \exp f_j} .

    The probability of a class is its posterior mean; those of all classes add up to 1.

    With a `regressor` the prediction of the indicator of a class is a score, and probabilities are Platt's sigmoid of
    the score, fitted to out-of-fold scores; of more than two classes their common power, fitted to the same scores,
    divided by its sum. (A
    `GraphRegressor` of up to 600 labels searches its hyper-parameters again without each fold; other regressors retain
    theirs.) If scores do not increase with the outcome, the probability of a class is its share. With one label of each
    class nothing can be held out: a smoothing level "cv" is .99 then, and scores, cut to [0, 1], are probabilities.

    The most probable class is predicted. With two classes and F1, it is the later class from the cut-off of the score
    with the best out-of-fold F1.

    Parameters
    ----------
    regressor : estimator, optional
        Any predictor of graphmrf, such as ``ResidualPropagation(LinearGraphConvolution())``. It is cloned. By default
        ``GraphRegressor(likelihood="binomial")``, which takes features or none, and missing cells in them; linear
        methods are faster.
    ordered : bool or sequence, default False
        Whether classes have an order: that of numbers, or the one given from the lowest class to the highest. They then
        share one field, divided by cuts, which is faster and more accurate than a field for each.
    learner : "auto" or None, default "auto"
        Without a regressor: whether boosted trees may be among the effects of the field, see `GraphRegressor`. They are
        for all classes or for none, see `notes_`.
    class_weight : "balanced" or dict, optional
        Weight of the labels of each class: "balanced" gives all classes the same total weight; a dict has weights by
        class, 1 for others. Probabilities are then those of a population with such shares. For the field, and
        regressors whose `fit` takes `weight`.
    metric : "accuracy" or "f1", default "accuracy"
        What `score` returns and the cut-off maximises: the share of right answers, or the F1 score of the later class
        (the mean over classes where there are more than two).
    cv : int, default 5
        Number of folds. They are regions where the nodes to predict lie in regions without labels (see
        `selection.distance_matched_folds`), otherwise random, every class with its share in each.
    random_state : int, default 0
        Seed of the folds.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The classes, sorted.
    cutoff_ : float or None
        The score from which a node is in the later of two classes; infinite when all are in the same. None with more
        than two classes.
    held_out_score_ : float
        The out-of-fold metric, with cut-off and sigmoids from the other folds. Labels that are the only one of their
        class are left out; NaN where all are.
    held_out_, held_out_proba_ : arrays of shape (n_labelled,) and (n_labelled, n_classes)
        Out-of-fold class and probabilities of each labelled node, in node order.
    regressors_ : list
        The fitted regressor of each class against the rest, of the later of two, or of ordered classes.
    notes_ : tuple of str
        Warnings and decisions, as in `GraphRegressor`, and whether the most probable class of held-out labels is right
        clearly more or less often than its probability suggests.

    Examples
    --------
    >>> from graphmrf import Graph, GraphClassifier, LabelPropagation
    >>> path = Graph.from_edges([0, 1, 2, 3, 4], [1, 2, 3, 4, 5])
    >>> colours = ["red", "red", None, None, "blue", "blue"]
    >>> GraphClassifier(cv=2).fit(path, None, colours).predict()
    array(['red', 'red', 'red', 'blue', 'blue', 'blue'], dtype='<U4')
    >>> GraphClassifier(LabelPropagation(alpha=0.9), cv=2).fit(path, None, colours).predict_proba()[:3].round(2)
    array([[0.  , 1.  ],
           [0.  , 1.  ],
           [0.38, 0.62]])
    """

    regressor: Any = None
    _: KW_ONLY
    ordered: bool | Sequence[Any] = False
    learner: Any = BOOSTED_TREES
    class_weight: Any = None
    metric: Literal["accuracy", "f1"] = "accuracy"
    cv: int = 5
    random_state: int = 0

    @takes_tables
    def fit(self, graph: Graph, X: Any = None, y: Any = None) -> Self:
        """Learn the classes.

        Parameters
        ----------
        graph : Graph, or a graph of SciPy (sparse), NetworkX or igraph
            The graph.
        X : array, DataFrame or sparse matrix of shape (n, p), or None
            Features of all nodes, as the regressor takes them.
        y : array, list or Series of shape (n,), or array or DataFrame with several columns
            Labels: text, numbers or booleans; None or NaN where they are to be predicted. Each of several columns has
            a fit of its own, see `targets_`.

        Raises
        ------
        InvalidInputError
            If the inputs break a rule: one class only, or, with a regressor, a class with fewer labelled nodes than
            folds (but for a class of one labelled node, which is held out once), or one label of each class and a
            choice by cross-validation other than that of smoothing levels.
        """
        regressor = self._checked()
        labels = read_labels(y, check_graph(graph).n_nodes)
        strata = assign_strata(labels.codes[labels.known], self.cv, random_state=self.random_state)
        single = bool(strata.size == labels.classes.size)
        check_classes(labels, 1 if self.regressor is None or single else self.cv)
        self._calibrated = self.regressor is not None and not single
        matched = distance_matched_folds(graph, labels.known, self.cv, random_state=self.random_state)
        folds = strata if matched.is_random else matched.folds
        folds = folds if np.ptp(folds) else np.arange(folds.size)
        self.classes_, self._codes = labels.classes, labels.codes
        self._ranks = self._order(labels.classes)
        weight = self._label_weights(labels, regressor)
        targets = range(1, 2) if labels.classes.size == 2 else range(labels.classes.size)
        outcomes = [labels.against_the_rest(code) for code in targets]
        if self.regressor is None:
            scores = self._fit_field(regressor, graph, X, outcomes, weight, folds)
        else:
            regressor = _at_default_level(regressor) if single else regressor
            options = {} if weight is None else {"weight": weight}
            self.regressors_ = [clone(regressor).fit(graph, X, y, **options) for y in outcomes]
            pairs = zip(self.regressors_, outcomes, strict=True)
            scores = np.column_stack([out_of_fold(fitted, graph, X, y, folds) for fitted, y in pairs])
        counts = matched.weights if weight is None else matched.weights * weight[labels.known]
        self._calibrate(scores, labels.codes[labels.known], matched.weights, folds, counts)
        return self

    def _fit_field(
        self,
        regressor: GraphRegressor,
        graph: Graph,
        X: Any,
        outcomes: list[Floats],
        weight: Floats | None,
        folds: Ints,
    ) -> Floats:
        """Set the field of the classes, and return their out-of-fold probabilities."""
        if self._ranks is not None:
            ranks = np.where(self._codes >= 0, self._ranks[self._codes], np.nan)
            regressor.set_params(likelihood="ordinal")
            self.regressors_ = [regressor.fit(graph, X, ranks, weight=weight)]
            return self._of_ranks(regressor.probability_out_of_fold(folds, above=range(self.classes_.size - 1)))
        if len(outcomes) == 1:
            self.regressors_ = [regressor.fit(graph, X, outcomes[0], weight=weight)]
            return np.asarray(regressor.out_of_fold(graph, X, outcomes[0], folds))[:, None]
        self.regressors_ = fit_classes(regressor, graph, X, outcomes, weight)
        return class_probabilities_out_of_fold(self.regressors_, folds)

    def _label_weights(self, labels: Labels, regressor: Any) -> Floats | None:
        """Return the weight (n,) of the label of every node; None if all are 1."""
        if self.class_weight is None:
            return None
        if "weight" not in inspect.signature(regressor.fit).parameters:
            raise InvalidInputError(
                f"class_weight needs a regressor whose fit takes weight, got {type(regressor).__name__}; leave the "
                "regressor out for the field, or class_weight, and choose a cut-off for a rare class by metric='f1'"
            )
        return _weights_of(self.class_weight, labels)

    def _calibrate(self, scores: Floats, codes: Ints, weights: Floats, folds: Ints, counts: Floats) -> None:
        """Set the sigmoids and the cut-off from out-of-fold scores; those reported for a fold come from other folds.

        `weights` are those of the folds, `counts` those with which labels count in sigmoids.
        """
        self._rule = self._rule_from(scores, codes, weights, counts)
        self.cutoff_ = self._rule.cutoff
        decided, self.held_out_proba_ = np.empty_like(codes), np.empty((codes.size, self.classes_.size))
        for fold in np.unique(folds):
            own = folds == fold
            others = self._rule_from(scores[~own], codes[~own], weights[~own], counts[~own])
            decided[own], self.held_out_proba_[own] = others.decide(scores[own]), others.probability(scores[own])
        self.held_out_, seen = self.classes_[decided], seen_elsewhere(codes)
        self.held_out_score_ = self._measure(codes[seen], decided[seen], weights[seen]) if seen.any() else float("nan")

    def _order(self, classes: Any) -> Ints | None:
        """Return the rank of every class; None where classes have no order or are two, which need none."""
        if self.ordered is False or classes.size == 2:
            return None
        if self.regressor is not None:
            raise InvalidInputError("ordered classes have a field of their own, got a regressor, too; leave one out")
        order = classes.tolist() if self.ordered is True else list(self.ordered)
        if len(order) != classes.size or set(order) != set(classes.tolist()):
            raise InvalidInputError(
                f"ordered must name every class of y once, from the lowest to the highest, got {order} for "
                f"{classes.tolist()}; drop classes without a label"
            )
        return np.array([order.index(each) for each in classes.tolist()])

    def _of_ranks(self, above: Floats) -> Floats:
        """Return the probability of every class from those of higher ranks than 0, 1, ..."""
        assert self._ranks is not None
        ends = np.ones((len(above), 1)), np.zeros((len(above), 1))
        return np.maximum(-np.diff(np.hstack([ends[0], above, ends[1]])), 0.0)[:, self._ranks]  # rounding

    def _rule_from(self, scores: Floats, codes: Ints, weights: Floats, counts: Floats) -> _Rule:
        """Return sigmoids and the cut-off of greatest likelihood, or of greatest F1, on some labels."""
        binary = scores.shape[1] == 1
        sides = [codes == code for code in ([1] if binary else range(scores.shape[1]))]
        sigmoids = None
        if self._calibrated:
            sigmoids = tuple(_sigmoid(s, side, counts) for s, side in zip(scores.T, sides, strict=True))
        if binary and self.metric == "f1":
            return _Rule(sigmoids, best_cutoff(scores[:, 0], sides[0], weights)[0])
        if binary:
            return _Rule(sigmoids, 0.5 if sigmoids is None else _even_odds(sigmoids[0]))
        each = _Rule(sigmoids, None)
        return each if sigmoids is None else replace(each, power=_power(each.probability(scores), codes, counts))

    @answers_tables
    def predict(self, graph: Graph | None = None, X: Any = None) -> Any:
        """Return the class of every node.

        Parameters
        ----------
        graph, X : Graph and array or DataFrame, optional
            Another graph and its features, where the regressor allows it. By default those of the fit; then labelled
            nodes keep their label if the regressor keeps outcomes (the field, label and residual propagation).

        Returns
        -------
        array of shape (n,)
            Of the type of the labels.
        """
        check_fitted(self, "_rule")
        return self.classes_[self._predict(graph, X)]

    @answers_tables
    def predict_proba(self, graph: Graph | None = None, X: Any = None) -> Floats:
        """Return the probability of every class at every node, shape (n, n_classes), columns as in `classes_`.

        The parameters are those of `predict`; a label that is kept has probability 1.
        """
        check_fitted(self, "_rule")
        probability = self._rule.probability(self._scores(graph, X))
        if self._keeps(graph, X):
            known = self._codes >= 0
            probability[known] = np.eye(self.classes_.size)[self._codes[known]]
        return probability

    def suggest(self, k: int = 1, *, draws: int = 500) -> pd.DataFrame:
        """Return the `k` unlabelled nodes whose labels would help most, best first, by the field.

        Each is the one whose label is expected to explain most of the classes of all other unlabelled nodes: squared
        covariances over its variance, in joint draws.

        Parameters
        ----------
        k, draws : int
            Number of nodes, and of draws.

        Returns
        -------
        DataFrame
            Position of the `node`, its `prediction` now, and the `probability` of that class.

        Raises
        ------
        InvalidInputError
            If classes are not those of the field, or fewer nodes are unlabelled.
        """
        check_fitted(self, "_rule")
        unknown = np.flatnonzero(self._codes < 0)
        if self.regressor is not None:
            raise InvalidInputError("suggestions are by the field, got another regressor; leave it out")
        if not isinstance(k, int | np.integer) or not 0 <= k <= unknown.size:
            raise InvalidInputError(f"k must be from 0 to the {unknown.size} unlabelled nodes, got {k}")
        if check_count(draws) < 2:
            raise InvalidInputError(f"covariances need at least 2 draws, got {draws}")
        outcomes = [
            np.asarray(each.sample(draws, of="observation", random_state=self.random_state))[:, unknown]
            for each in self.regressors_
        ]
        nodes = unknown[most_informative(outcomes, k, random_state=self.random_state)]
        sure, codes = np.asarray(self.predict_proba())[nodes], self._predict(None, None)[nodes]
        columns = {"node": nodes, "prediction": self.classes_[codes], "probability": sure[np.arange(nodes.size), codes]}
        labelled: pd.DataFrame = self._nodes.rows(pd.DataFrame(columns), nodes)
        return labelled

    def score(self, graph: Graph | None = None, X: Any = None, y: Any = None) -> float:
        """Return the metric of the predictions.

        Parameters
        ----------
        graph, X : Graph and features, or None and None
            Another graph; None for that of the fit, where labels that were used in the fit are left out.
        y : array, list or Series of shape (n,)
            True labels; None or NaN is left out.

        Raises
        ------
        InvalidInputError
            If a label is not a class of the fit, or nothing is left to score.
        """
        check_fitted(self, "_rule")
        graph, X = located(self, graph, X)
        y = outcome_column(self._nodes.align(y, "y") if graph is None else graph.align(y, "y"))
        predicted = self._predict(graph, X)
        truth = check_seen(read_labels(y, predicted.size), self.classes_)
        scored = (truth >= 0) & (self._codes < 0 if graph is None and X is None else True)
        if not scored.any():
            raise InvalidInputError("y must have a label at some node that was not labelled in the fit, got none")
        return self._measure(truth[scored], predicted[scored])

    @property
    def notes_(self) -> tuple[str, ...]:
        """Warnings on the data, decisions, and whether probabilities agree with held-out labels."""
        check_fitted(self, "_rule")
        found = dict.fromkeys(note for each in self.regressors_ for note in getattr(each, "notes_", ()))
        codes = self._codes[self._codes >= 0]
        seen = seen_elsewhere(codes)
        sure = sureness(self.held_out_proba_[seen], codes[seen]) if seen.any() else ""
        return (*found, sure) if sure else tuple(found)

    @of_every_target
    def summary(self) -> str:
        """Return what was fitted, its held-out score, and the summary of the field of every class, as a table of text.

        Fields of more than two classes without an order are summarised against the rest.
        """
        parts = [super().summary()]
        if "_rule" in vars(self) and self.regressor is None:
            one = len(self.regressors_) == 1
            titles = (
                ["classes in order" if self._ranks is not None else f"{self.classes_[-1]}"] if one else self.classes_
            )
            parts += [f"{title}: {each.summary()}" for title, each in zip(titles, self.regressors_, strict=True)]
        return Summary("\n\n".join(parts))

    def _scores(self, graph: Graph | None, X: Any) -> Floats:
        if self._ranks is not None:
            (fitted,), where = self.regressors_, {"graph": graph, "X": X, "of": "observation"}
            above = [fitted.probability(above=k, **where) for k in range(self.classes_.size - 1)]
            return self._of_ranks(np.column_stack(above).astype(np.float64))
        if self.regressor is None and self.classes_.size > 2:
            return class_probabilities(self.regressors_, graph, X)
        return np.column_stack([fitted.predict(graph, X) for fitted in self.regressors_]).astype(np.float64)

    def _predict(self, graph: Graph | None, X: Any) -> Ints:
        codes = self._rule.decide(self._scores(graph, X))
        return np.where(self._codes >= 0, self._codes, codes) if self._keeps(graph, X) else codes

    def _keeps(self, graph: Graph | None, X: Any) -> bool:
        own = self.regressor is None
        return graph is None and X is None and (own or getattr(self.regressors_[0], "keeps_labels", False))

    def _measure(self, truth: Ints, predicted: Ints, weights: Floats | None = None) -> float:
        if self.metric == "accuracy":
            return float(np.average(truth == predicted, weights=weights))
        codes = [1] if self.classes_.size == 2 else range(self.classes_.size)
        options = {"labels": list(codes), "average": "macro", "zero_division": 0.0}
        return float(f1_score(truth, predicted, sample_weight=weights, **options))

    def _checked(self) -> Any:
        """Return the regressor, if it is one."""
        if self.metric not in ("accuracy", "f1"):
            raise InvalidInputError(f"metric must be 'accuracy' or 'f1', got {self.metric!r}")
        if self.regressor is None:
            return GraphRegressor(likelihood="binomial", learner=self.learner, random_state=self.random_state)
        if self.learner != BOOSTED_TREES:
            raise InvalidInputError(
                f"learner is for the field, got another regressor, too; pass it to {type(self.regressor).__name__}, or "
                "leave the regressor out"
            )
        fit = getattr(self.regressor, "fit", None)
        if isinstance(self.regressor, type) or fit is None or "graph" not in inspect.signature(fit).parameters:
            raise InvalidInputError(
                f"regressor must be a predictor of graphmrf, got {self.regressor!r}; pass an instance, such as "
                "LinearGraphConvolution(), and a regressor of scikit-learn as ResidualPropagation(regressor)"
            )
        return self.regressor


@dataclass(frozen=True)
class ClassProbability:
    r"""Platt's sigmoid :math:`p = 1 / (1 + \exp(-(a s + b)))` of a score s."""

    slope: float
    offset: float

    @classmethod
    def fit(cls, scores: Floats, positive: Bools, weights: Floats | None = None) -> ClassProbability:
        r"""Return the sigmoid of greatest likelihood for out-of-fold scores.

        Outcomes are Platt's :math:`(n_+ + 1) / (n_+ + 2)` and :math:`1 / (n_- + 2)` instead of 1 and 0, so that classes
        which a score separates do not get probabilities 0 and 1.

        Examples
        --------
        >>> import numpy as np
        >>> probability = ClassProbability.fit(np.array([0.1, 0.2, 0.8, 0.9]), np.array([False, False, True, True]))
        >>> probability(np.array([0.5])).round(3)
        array([0.5])
        """
        weights = np.ones(scores.size) if weights is None else weights
        centre, spread = float(scores.mean()), float(scores.std()) or 1.0
        n_positive = np.count_nonzero(positive)
        n_negative = positive.size - n_positive
        target = np.where(positive, (n_positive + 1) / (n_positive + 2), 1 / (n_negative + 2))
        twice = np.tile((scores - centre) / spread, 2)[:, None]
        outcomes = np.repeat([1, 0], scores.size)
        model = LogisticRegression(C=1e6)  # next to no penalty, as Platt's targets keep the slope finite
        model.fit(twice, outcomes, sample_weight=np.concatenate([weights * target, weights * (1 - target)]))
        slope = float(model.coef_[0, 0]) / spread
        return cls(slope, float(model.intercept_[0]) - slope * centre)

    def __call__(self, scores: Floats) -> Floats:
        """Return the probabilities."""
        return np.asarray(expit(self.slope * scores + self.offset))


@dataclass(frozen=True)
class _Rule:
    """From scores to probabilities and classes."""

    sigmoids: tuple[ClassProbability, ...] | None  # of each regressor; None where scores are probabilities
    cutoff: float | None  # for two classes
    power: float = 1.0  # of the probabilities of each of several classes against the rest, before they add up to 1

    def probability(self, scores: Floats) -> Floats:
        """Return the probability of every class."""
        each = np.clip(scores, 0.0, 1.0)
        if self.sigmoids is not None:
            each = np.column_stack([sigmoid(s) for sigmoid, s in zip(self.sigmoids, scores.T, strict=True)])
        if each.shape[1] == 1:
            return np.hstack([1.0 - each, each])
        if self.sigmoids is None:
            return np.asarray(each / each.sum(axis=1, keepdims=True))
        return np.asarray(softmax(self.power * np.log(np.maximum(each, _LEAST)), axis=1))

    def decide(self, scores: Floats) -> Ints:
        """Return the code of the class of every row."""
        if self.cutoff is not None:
            return (scores[:, 0] >= self.cutoff).astype(np.int64)
        return np.asarray(np.argmax(self.probability(scores), axis=1))


def sureness(probability: Floats, codes: Ints, *, least: float = 0.02, errors: float = 3.0) -> str:
    """Return a sentence if held-out probabilities (m, k) differ from shares; else empty.

    By more than a least difference and some standard errors.

    Examples
    --------
    >>> sureness(np.tile([0.6, 0.4], (400, 1)), np.zeros(400, dtype=np.int64))
    'the most probable class has 60 % on average, and is right for 100 % of the held-out values: too cautious'
    """
    promised, right = float(probability.max(axis=1).mean()), float(np.mean(np.argmax(probability, axis=1) == codes))
    error = np.sqrt(promised * (1.0 - promised) / codes.size)
    if abs(promised - right) < max(least, errors * error):
        return ""
    return (
        f"the most probable class has {100 * promised:.0f} % on average, and is right for {100 * right:.0f} % of the "
        f"held-out values: too {'sure' if promised > right else 'cautious'}"
    )


def _at_default_level(regressor: Any) -> Any:
    """Return a regressor with its smoothing levels at the default; raise if something else is to be chosen."""
    options = regressor.get_params()
    levels = {name for name in options if name.rpartition("__")[2] == "alpha" and options[name] == "cv"}
    given = {name for name in levels if options[f"{name.removesuffix('alpha')}omega"] is not None}
    chosen = [name for name, value in options.items() if isinstance(value, str) and value == "cv"]
    if set(chosen) - levels:
        other = sorted(set(chosen) - levels)[0]
        raise InvalidInputError(f"one label of each class cannot choose {other} by cross-validation; give it a number")
    return clone(regressor).set_params(**dict.fromkeys(levels - given, LEVEL))


def _weights_of(class_weight: Any, labels: Labels) -> Floats:
    """Return the weight of the label of every node; 1 where it is to be predicted."""
    classes, counts = labels.classes.tolist(), np.bincount(labels.codes[labels.known])
    if isinstance(class_weight, str) and class_weight == "balanced":
        each = counts.sum() / (counts.size * counts)
    elif not isinstance(class_weight, Mapping) or set(class_weight) - set(classes):
        raise InvalidInputError(
            f"class_weight must be 'balanced' or name classes of y, {classes}, got {class_weight!r}; pass a dict"
        )
    else:
        each = np.array([class_weight.get(name, 1.0) for name in classes], dtype=np.float64)
    if not (np.isfinite(each) & (each > 0)).all():
        raise InvalidInputError(f"weights of classes must be positive numbers, got {class_weight!r}; drop other labels")
    return np.where(labels.known, each[labels.codes], 1.0)


def seen_elsewhere(codes: Ints) -> Bools:
    """Return which labels have another one of their class; no fit without them can predict the others."""
    return np.asarray(np.bincount(codes)[codes] > 1)


def most_informative(draws: Sequence[Floats], k: int, *, random_state: int = 0, most: int = 400) -> list[int]:
    """Return the columns that explain most of a random `most` others in sets of joint draws (n_draws, n), in turn.

    Examples
    --------
    >>> import numpy as np
    >>> hub, *others = np.random.default_rng(0).standard_normal((4, 50))
    >>> most_informative([np.column_stack([*(hub + other for other in others), hub])], 1)
    [3]
    """
    n = draws[0].shape[1]
    targets = np.random.default_rng(random_state).permutation(n)[:most]
    rest = [np.asarray(each, dtype=np.float64) - each.mean(axis=0) for each in draws]
    chosen: list[int] = []
    for _ in range(k):
        gain = np.zeros(n)
        for D in rest:
            variance = np.sum(D**2, axis=0)
            explained = np.sum((D.T @ D[:, targets]) ** 2, axis=1)
            explained[targets] -= variance[targets] ** 2
            gain += explained / np.maximum(variance, 1e-300)
        gain[chosen] = -np.inf
        chosen.append(int(np.argmax(gain)))
        own = [D[:, chosen[-1]] for D in rest]
        rest = [D - np.outer(d, d @ D / max(float(d @ d), 1e-300)) for D, d in zip(rest, own, strict=True)]
    return chosen


def best_cutoff(scores: Floats, positive: Bools, weights: Floats | None = None) -> tuple[float, float]:
    """Return the cut-off whose classes ``scores >= cutoff`` have the best F1, and that value.

    Cut-offs are midway between neighbouring scores, below the least and above the greatest. Of equally good ones the
    one nearest to 0.5 is taken.

    Examples
    --------
    >>> import numpy as np
    >>> best_cutoff(np.array([0.1, 0.4, 0.3, 0.9]), np.array([False, True, False, True]))
    (0.35, 1.0)
    """
    order = np.argsort(-scores, kind="stable")
    w = np.ones(scores.size) if weights is None else weights[order]
    s, hits = scores[order], np.concatenate([[0.0], np.cumsum(w * positive[order])])
    named = np.concatenate([[0.0], np.cumsum(w)])
    values = 2.0 * hits / (named + hits[-1] if hits[-1] else np.maximum(named, 1.0))
    margin = 0.5 * max(float(s[0] - s[-1]), 1e-6)
    cutoffs = np.concatenate([[s[0] + margin], (s[:-1] + s[1:]) / 2, [s[-1] - margin]])
    possible = np.concatenate([[True], s[:-1] > s[1:], [True]])
    best = np.flatnonzero(possible & (values >= values[possible].max() - 1e-12))
    chosen = best[np.argmin(np.abs(cutoffs[best] - 0.5))]
    return float(cutoffs[chosen]), float(values[chosen])


def _sigmoid(scores: Floats, side: Bools, weights: Floats) -> ClassProbability:
    """Return the sigmoid of a class; where it would not rise, the share of the class for any score."""
    found = ClassProbability.fit(scores, side, weights)
    share = np.clip(side.mean(), 1 / (side.size + 2), 1 - 1 / (side.size + 2))
    return found if found.slope > 0 else ClassProbability(0.0, float(logit(share)))


def _power(probability: Floats, codes: Ints, weights: Floats) -> float:
    r"""Return the power of probabilities (m, k) of greatest likelihood, by which they become surer or less sure.

    The outcome of a class is Platt's :math:`(m + 1) / (m + 2)` in place of 1, as in `ClassProbability`, and the rest
    is shared by the other classes, so that the power is finite where the most probable class is always right.
    """
    m, k = probability.shape
    target = np.full((m, k), 1.0 / ((m + 2.0) * (k - 1.0)))
    target[np.arange(m), codes] = (m + 1.0) / (m + 2.0)
    logs = np.log(np.maximum(probability, _LEAST))

    def loss(log_power: float) -> float:
        return -float(weights @ np.sum(target * log_softmax(np.exp(log_power) * logs, axis=1), axis=1))

    return float(np.exp(minimize_scalar(loss, bounds=(-5.0, 5.0), method="bounded").x))


def _even_odds(sigmoid: ClassProbability) -> float:
    """Return the score of probability one half."""
    if sigmoid.slope == 0:
        return -np.inf if sigmoid.offset >= 0 else np.inf
    return -sigmoid.offset / sigmoid.slope
