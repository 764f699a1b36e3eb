"""Methods side by side on the same folds: fitted, scored on held-out labels, and the one to use."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from graphmrf._typing import Floats, Ints
from graphmrf.comparison.held_out import R2, HeldOut, Score, standard_error
from graphmrf.comparison.settings import AUTO, CAPABILITIES, Settings, offers
from graphmrf.errors import ConvergenceError, GraphMRFError, InvalidInputError, refuses_former_options
from graphmrf.estimators import GraphClassifier
from graphmrf.estimators.error_bars import interval_width
from graphmrf.estimators.graph_classifier import seen_elsewhere
from graphmrf.estimators.inputs import Categories, Labels, known_with_outcome, read_labels, read_outcome, reduced
from graphmrf.estimators.methods import METHODS, Method
from graphmrf.estimators.tables import in_rows
from graphmrf.graph import Graph
from graphmrf.selection import MatchedFolds, distance_matched_folds
from graphmrf.text import joined, number

DEFAULT = "field"  # the method for numbers that is used unless another is clearly better
ENOUGH = 30  # known values from which another method may take the place of the default

Values: TypeAlias = Floats | Labels
"""Numbers, NaN where they are to be predicted; or classes."""


@dataclass(frozen=True, eq=False)
class FittedMethod:
    """One method, fitted and scored on held-out labels.

    Examples
    --------
    >>> FittedMethod(METHODS["lp"], 0.6, alpha=0.9).method.name
    'Label propagation'
    """

    method: Method  # the method
    # R² of numbers, explained deviance of counts and shares, share of classes that are right; NaN where it could not be
    # measured
    score: float
    error: float = float("nan")  # standard error of the score
    alpha: float | None = None  # smoothing level in use; None for a method without one, or with one for each class
    # scores at every level tried, as in ``cv_results_``; empty for classes
    search: Mapping[str, Floats] = field(default_factory=dict)
    # (n_labelled,): loss at each held-out label: squared errors or deviances, over the mean of those of one value or
    # rate for all, so that their mean is 1 - score (a smoothing level being chosen without the label's fold, so that
    # having tried many is no advantage); for classes minus the logarithm of the probability of the true class, less
    # labels that are the only one of their class
    losses: Floats = field(default_factory=lambda: np.empty(0))
    model: Any = None  # fitted
    held_out: HeldOut | None = None  # known values predicted without their fold; None for classes
    folds: MatchedFolds | None = None  # the folds
    note: str = ""  # what is to be known about the fit
    scoring: Score = R2  # what `score` measures for numbers, counts and shares

    @property
    def regions(self) -> Ints | None:
        """Region of each held-out label where folds are regions, whose losses are dependent; None for random folds."""
        return None if self.folds is None else self.folds.regions

    @property
    def loss(self) -> float:
        """Mean loss; NaN where none was measured."""
        return float(self.losses.mean()) if self.losses.size else float("nan")

    @property
    def fold_scores(self) -> tuple[float, ...]:
        """Score in every fold at the level in use; none for classes."""
        return tuple(self._row("fold_r2").tolist()) if self.search else ()

    @property
    def out_of_fold(self) -> Floats:
        """Prediction (n_labelled,) of every known number without its fold, at the level in use."""
        return self._row("out_of_fold")

    def _row(self, name: str) -> Floats:
        return np.asarray(self.search[name][_row(self.search, self.alpha)], dtype=np.float64)

    def interval_width(self, level: float) -> float:
        """Return half the width of an interval in standard deviations; normal without degrees of freedom."""
        return interval_width(level, getattr(self.model, "dof_", 0.0))


@dataclass(frozen=True, eq=False)
class Comparison:
    """Methods fitted to one outcome, the one that is used, and why."""

    methods: tuple[FittedMethod, ...]  # in the order of `estimators.methods.METHODS`
    chosen: FittedMethod  # the one to use; its ``model`` is fitted to all labels
    reason: str = ""  # why it is used; empty if only one was fitted
    notes: tuple[str, ...] = ()  # what went otherwise than asked
    metric: str = "r2"  # "r2" of numbers, "explained_deviance" of counts and shares, "accuracy" of classes

    @property
    def model(self) -> Any:
        """The estimator to use, fitted to all labels."""
        return self.chosen.model

    @property
    def table(self) -> pd.DataFrame:
        """A row for each method: its score at held-out labels with a standard error, alpha, and whether it is used.

        For classes with the mean `log_loss`, by which methods are chosen.
        """
        rows = {
            each.method.key: {"uses": each.method.uses, self.metric: each.score, "error": each.error}
            | ({"log_loss": each.loss} if self.metric == "accuracy" else {})
            | {"alpha": each.alpha, "chosen": each is self.chosen}
            for each in self.methods
        }
        return pd.DataFrame.from_dict(rows, orient="index").rename_axis("method")

    def __repr__(self) -> str:
        return "\n".join([self.table.drop(columns="uses").round(3).to_string(), *filter(None, [self.reason])])

    def _repr_html_(self) -> str:
        return self.table.round(3).to_html() + f"<p>{escape(self.reason)}</p>"


@refuses_former_options
def compare(  # noqa: PLR0913 - data, and what is known of them
    graph: Any,
    X: Any,
    y: Any,
    *,
    methods: str | Sequence[str] = AUTO,
    likelihood: str = AUTO,
    known: Mapping[str, Any] | None = None,
    cv: int = 5,
    random_state: int = 0,
) -> Comparison:
    """Fit several methods and compare them at known values that are held out like the ones to predict.

    All methods have the same folds, which imitate the holes (see `selection.distance_matched_folds`). For numbers the
    field is used unless another method is clearly more accurate: by .01 in R² and by two standard errors of the
    difference, from 30 known values. For classes the lowest log loss decides.

    Parameters
    ----------
    graph : Graph, or a graph of SciPy (sparse), NetworkX or igraph
        The graph.
    X : array, DataFrame or sparse matrix of shape (n, p), or None
        Features; missing cells are filled with the mean of their column for methods that cannot take them. Columns
        of categories and text have an effect of every level; those with hardly any value at the nodes to predict, but
        known where the outcome is, are left out.
    y : array or Series of shape (n,)
        Numbers, or text and booleans for classes; NaN or None where it is to be predicted.
    methods : "auto" or sequence of str
        Names of `estimators.methods.METHODS`; "auto" takes those that suit the data.
    likelihood : {"auto", "gaussian", "student", "poisson", "negative-binomial", "binomial"}
        As of `GraphRegressor`; all but "auto", which is for numbers and classes, are for the field only. Counts and
        shares are scored by explained deviance: compare the likelihoods of counts by one call for each.
    known : mapping of str to array of shape (n,), optional
        What else is known of every node: `exposure`, `trials`, `std` or `weight`, as in `GraphRegressor.fit`.
    cv, random_state : int
        Number of folds, and their seed.

    Examples
    --------
    >>> import graphmrf as gm
    >>> ring = gm.Graph.from_edges(np.arange(60), (np.arange(60) + 1) % 60)
    >>> y = np.sin(np.arange(60) / 5.0)
    >>> y[1::2] = np.nan
    >>> found = compare(ring, None, y, methods=["lp", "field"])
    >>> found.chosen.method.key, found.table["r2"].round(1).to_dict()
    ('field', {'lp': 1.0, 'field': 1.0})
    """
    graph, X, y = in_rows(graph, X, y)
    outcome = as_outcome(y, graph.n_nodes)
    X, notes = (None, ()) if X is None else without_known_with_outcome(pd.DataFrame(reduced(X)), outcome)
    given = {name: np.asarray(graph.align(values, name), dtype=np.float64) for name, values in (known or {}).items()}
    names = (methods,) if isinstance(methods, str) else tuple(methods)
    names = (DEFAULT,) if names == (AUTO,) and (given or likelihood != AUTO) else names
    settings = Settings(names, cv=cv, random_state=random_state, likelihood=likelihood, known=given)
    found = compare_methods(graph, X, outcome, settings)
    return replace(found, notes=(*notes, *found.notes))


def without_known_with_outcome(X: pd.DataFrame, y: Values) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Return the columns with values at the nodes to predict, and notes on the others, see `known_with_outcome`."""
    known = y.known if isinstance(y, Labels) else ~np.isnan(y)
    left_out, notes = known_with_outcome(X.isna().to_numpy(), known, [f"column {name!r}" for name in X.columns])
    return X.loc[:, ~left_out], notes


def as_outcome(y: Any, n_nodes: int) -> Values:
    """Return numbers where all known values are numbers, else classes; booleans are classes.

    Examples
    --------
    >>> as_outcome([1, None, 2.5], 3)
    array([1. , nan, 2.5])
    >>> as_outcome(["red", None, "blue"], 3).classes.tolist()
    ['blue', 'red']
    """
    column = pd.Series(y).astype(object)
    known = column[column.notna()]
    words = [isinstance(value, str | bool | np.bool_) for value in known]
    return read_labels(column, n_nodes) if any(words) else read_outcome(column.astype(float), n_nodes).y


def compare_methods(
    graph: Graph,
    X: pd.DataFrame | None,
    y: Values,
    settings: Settings,
    advance: Callable[[str], None] = lambda _: None,
) -> Comparison:
    """Return methods fitted to one outcome; `advance` is called after each with its accuracy.

    Where settings are `stoppable`, Ctrl-C during the fit of the field leaves the field out.

    Raises
    ------
    ConvergenceError
        If no method converges.
    """
    n_features, numbers = 0 if X is None else X.shape[1], not isinstance(y, Labels)
    fits: list[FittedMethod] = []
    failures: dict[str, GraphMRFError] = {}
    lost: list[str] = []
    wanted = settings.wanted if numbers else ()
    for method in choose(settings.methods, n_features=n_features, wanted=wanted):
        try:
            fits.append(_fitted(method, graph, X, y, settings))
        except (ConvergenceError, InvalidInputError) as error:
            if isinstance(error, InvalidInputError) and (numbers or settings.methods != (AUTO,)):
                raise
            failures[method.key] = error
        except KeyboardInterrupt:
            if not (_can_stop(method, settings) and any(_offers(each.method, wanted) for each in fits)):
                raise
            lost.append(f"{method.key} is left out, as Ctrl-C stopped its fit; the best of the other methods is used")
        advance(_score_line(fits[-1], numbers=numbers) if fits and fits[-1].method is method else "")
    if not fits:
        raise next(iter(failures.values()))
    lost += [_left_out(key, error) for key, error in failures.items()]
    notes = (*lost, *(each.note for each in fits if each.note))
    if numbers:
        best = best_of(fits, settings.wanted)
        return Comparison(tuple(fits), best, _why(fits, best, settings.wanted), notes, best.scoring.key)
    best = min(fits, key=lambda each: (each.loss if np.isfinite(each.loss) else np.inf, each.method.key != DEFAULT))
    return Comparison(tuple(fits), best, _least_loss(fits, best), notes, "accuracy")


def _can_stop(method: Method, settings: Settings) -> bool:
    return settings.stoppable and method.key == DEFAULT


def _score_line(fit: FittedMethod, *, numbers: bool) -> str:
    """Return the accuracy of a method in words."""
    if not np.isfinite(fit.score):
        return f"{fit.method.key} is fitted"
    if not numbers:
        return f"{fit.method.key}: {fit.score:.0%} of held-out labels right"
    error = f" ± {number(fit.error)}" if np.isfinite(fit.error) else ""
    return f"{fit.method.key}: {fit.scoring.name} {number(fit.score)}{error} at held-out values"


def _left_out(key: str, error: GraphMRFError) -> str:
    why = "it did not converge" if isinstance(error, ConvergenceError) else "labels do not suffice for it"
    return f"{key} is left out, as {why}: {error}"


def choose(names: Sequence[str], *, n_features: int, wanted: Sequence[str] = ()) -> tuple[Method, ...]:
    """Return the methods to fit: those named, and for "auto" those that are tried and suit the data.

    Raises
    ------
    InvalidInputError
        If a name is unknown, or its method needs features that are not there or lacks what is wanted.

    Examples
    --------
    >>> [method.key for method in choose(["auto"], n_features=0)]
    ['lp', 'field']
    """
    chosen: dict[str, Method] = {}
    for name in names:
        tried = [each for each in METHODS.values() if each.automatic and (n_features or not each.needs_features)]
        for method in tried if name == AUTO else [_named(name, n_features)]:
            chosen[method.key] = method
    if not any(_offers(method, wanted) for method in chosen.values()):
        able = [each.key for each in METHODS.values() if _offers(each, wanted)]
        raise InvalidInputError(
            f"method {joined([*chosen])} does not offer {joined(wanted)}; use method {' or '.join(able)}"
        )
    return tuple(chosen.values())


def _named(name: str, n_features: int) -> Method:
    if name not in METHODS:
        raise InvalidInputError(f"method must be one of {', '.join([*METHODS, AUTO])}, got '{name}'")
    method = METHODS[name]
    if method.needs_features and not n_features:
        raise InvalidInputError(f"method {name} needs features and no column is left for them; use method lp")
    return method


def _offers(method: Method, wanted: Sequence[str]) -> bool:
    """Return whether the estimator of a method has all that is wanted, see `CAPABILITIES`."""
    return all(offers(method.make(), *CAPABILITIES[name]) for name in wanted)


def _fitted(method: Method, graph: Graph, X: pd.DataFrame | None, y: Values, settings: Settings) -> FittedMethod:
    fit = _fit_classes if isinstance(y, Labels) else _fit_numbers
    return fit(method, graph, X, y, settings)  # type: ignore[arg-type]  # chosen by the type of y


def _fit_numbers(method: Method, graph: Graph, X: pd.DataFrame | None, y: Floats, settings: Settings) -> FittedMethod:
    """Return a method fitted to numbers and scored; the same seed gives all methods the same folds."""
    model = settings.make(method)
    X, note = _fit(model, method, graph, X, y)
    outcome = read_outcome(y, graph.n_nodes)
    folds = outcome.matched_folds(graph, settings.cv, settings.random_state)
    held_out, known = HeldOut(model, graph, X, outcome, folds), outcome.y[outcome.known]
    scoring, search = settings.scoring(outcome.known), getattr(model, "cv_results_", None)
    if not search or "alpha" not in search:
        search = scoring.search(held_out.mean, known, folds, settings.alpha or 0.0)
    alpha = getattr(model, "alpha_", None)
    losses = nested_choice(scoring.losses(search["out_of_fold"], known, folds.weights), folds.folds)
    score, error = float(search["mean_r2"][_row(search, alpha)]), scoring.error(losses, known, folds)
    return FittedMethod(method, score, error, alpha, search, losses, model, held_out, folds, note, scoring)


def _fit_classes(
    method: Method, graph: Graph, X: pd.DataFrame | None, labels: Labels, settings: Settings
) -> FittedMethod:
    """Return a classifier by a method, scored by the log loss of held-out labels."""
    cv = folds_of_classes(labels, settings.cv)
    regressor = None if method.key == DEFAULT else settings.make(method, transform="identity")  # its own likelihood
    ordered = sorted(labels.classes, key=lambda each: settings.order.index(str(each))) if settings.order else False
    model = GraphClassifier(regressor, ordered=ordered, cv=cv, random_state=settings.random_state)
    y = np.where(labels.known, labels.classes.astype(object)[labels.codes], None)
    _, note = _fit(model, method, graph, X, y)
    levels = {getattr(each, "alpha_", None) for each in model.regressors_}
    folds, truth = class_folds(graph, labels, settings), labels.codes[labels.known]
    right = folds.weights * (np.searchsorted(labels.classes, model.held_out_) == truth)
    probability = model.held_out_proba_
    losses = -folds.weights * np.log(np.maximum(probability[np.arange(truth.size), truth], np.finfo(float).tiny))
    seen = seen_elsewhere(truth)
    error = standard_error(right[seen], folds.n_folds, None if folds.regions is None else folds.regions[seen])
    alpha = levels.pop() if len(levels) == 1 else None
    score = float(model.held_out_score_)
    return FittedMethod(method, score, error, alpha, losses=losses[seen], model=model, folds=folds, note=note)


def class_folds(graph: Graph, labels: Labels, settings: Settings) -> MatchedFolds:
    """Return the folds of a classifier, which imitate the holes."""
    cv = folds_of_classes(labels, settings.cv)
    return distance_matched_folds(graph, labels.known, cv, random_state=settings.random_state)


def folds_of_classes(labels: Labels, cv: int) -> int:
    """Return how many folds there can be so that each has a label of every class that has two; at least two."""
    counts = np.bincount(labels.codes[labels.known])
    return int(max(2, min([cv, *counts[counts > 1].tolist()])))


def _fit(model: Any, method: Method, graph: Graph, X: pd.DataFrame | None, y: Any) -> tuple[pd.DataFrame | None, str]:
    """Fit, and return the features that were used, with a line where missing cells are too many for the method.

    The field takes categories as such; for all others they become a column of 0 and 1 for each level.
    """
    if not method.features or X is None or not X.shape[1]:
        model.fit(graph, None, y)
        return None, ""
    X = X if method.key == DEFAULT else Categories.of(X).dummies(X)
    filled = X.fillna(X.mean(numeric_only=True)) if X.isna().to_numpy().any() else X
    try:
        features = X if method.missing else filled
        model.fit(graph, features, y)
    except InvalidInputError as error:
        if features is filled:
            raise
        model.fit(graph, filled, y)
        return filled, f"{method.key} has missing cells filled with the column mean, too: {error}"
    return features, ""


def nested_choice(losses: Floats, folds: Ints) -> Floats:
    """Return the loss (n_labelled,) of each label at the level best in other folds, from those of all levels (rows).

    Examples
    --------
    >>> nested_choice(np.array([[0.0, 0.0, 3.0, 3.0], [2.0, 2.0, 1.0, 1.0]]), np.array([0, 0, 1, 1]))
    array([2., 2., 3., 3.])
    """
    sums = np.stack([losses[:, folds == fold].sum(axis=1) for fold in range(int(folds.max()) + 1)], axis=1)
    level = np.argmin(sums.sum(axis=1, keepdims=True) - sums, axis=0)
    return np.asarray(losses[level[folds], np.arange(folds.size)])


def _row(search: Mapping[str, Floats], alpha: float | None) -> int:
    """Return the position of the level in use among those tried."""
    return int(np.argmin(np.abs(search["alpha"] - (alpha or 0.0))))


def best_of(fits: Sequence[FittedMethod], wanted: Sequence[str] = ()) -> FittedMethod:
    """Return the default method, unless it is not among those that offer what is wanted or another is clearly better.

    That is one whose gain in R² or explained deviance is above .01 and two standard errors, from 30 known values; of
    several the one with the most standard errors. Without the default it is the most accurate, of equals the first,
    which is the simplest.
    """
    able = [each for each in fits if _offers(each.method, wanted)]
    default = _default(able)
    if default is None:
        return max(able, key=lambda each: -np.inf if np.isnan(each.score) else each.score)
    if default.losses.size < ENOUGH:
        return default
    return max(able, key=lambda each: 0.0 if each is default else _surely(*gain(each, default)))


def _default(fits: Sequence[FittedMethod]) -> FittedMethod | None:
    """Return the fit of the default method, if there is one that can be scored."""
    return next((each for each in fits if each.method.key == DEFAULT and np.isfinite(each.losses).all()), None)


def gain(fit: FittedMethod, other: FittedMethod) -> tuple[float, float]:
    """Return by how much the score is above that of another fit at the same held-out labels, and its standard error."""
    difference = other.losses - fit.losses
    n_folds = 5 if other.folds is None else other.folds.n_folds
    return float(difference.mean()), standard_error(difference, min(n_folds, difference.size), other.regions)


def _surely(difference: float, error: float, *, least: float = 0.01, errors: float = 2.0) -> float:
    """Return a gain in standard errors if it is above some of them and a least one, else -1."""
    return difference / max(error, 1e-300) if difference > max(least, errors * error) else -1.0


def _why(fits: Sequence[FittedMethod], best: FittedMethod, wanted: Sequence[str]) -> str:
    """Return why a method for numbers is used; empty where it is the only one."""
    default, free = _default(fits), best_of(fits)
    if len(fits) < 2:
        return ""
    if free is not best:
        return f"{_ahead(free, best)}; {best.method.key} is used because it offers {joined(wanted)}"
    if best is default:
        return f"{best.method.key} is used: no other method is clearly more accurate at held-out values"
    if default is None:
        return f"{best.method.key} is used: it has the highest {best.scoring.name} at held-out values"
    return f"{_ahead(best, default)}, so {best.method.key} is used"


def _ahead(fit: FittedMethod, other: FittedMethod) -> str:
    difference, error = gain(fit, other)
    by = f"by {number(difference, 3)} ± {number(error, 3)} (standard error)"
    return f"at held-out values {fit.method.key} has a higher {fit.scoring.name} than {other.method.key}, {by}"


def _least_loss(fits: Sequence[FittedMethod], best: FittedMethod) -> str:
    if not np.isfinite(best.loss):
        return ""
    others = [f"{each.method.key} {number(each.loss, 3)}" for each in fits if each is not best]
    least = f"{best.method.key} is used: its log loss at held-out labels is the lowest, {number(best.loss, 3)}"
    return f"{least} ({', '.join(others)})" if others else ""


def few_of_a_class(labels: Labels, cv: int) -> Iterator[str]:
    """Yield notes on classes with so few labels that there are fewer folds, or no check at all."""
    used, counts = folds_of_classes(labels, cv), np.bincount(labels.codes[labels.known])
    if used < cv:
        rarest = labels.classes[np.where(counts > 1, counts, counts.max() + 1).argmin()]
        yield f"only {used} labels are {rarest}, so cross-validation uses {used} folds"
    single = labels.classes[counts == 1]
    if single.size:
        has = "has" if single.size == 1 else "have"
        yield f"{joined([str(each) for each in single])} {has} one label only, and cannot be checked"
