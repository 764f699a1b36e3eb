"""A finished prediction of one outcome: values with error bars, how they were made, and how accurate they are."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import pandas as pd

from graphmrf._typing import Bools, Floats, Ints
from graphmrf.comparison.candidates import (
    DEFAULT,
    Comparison,
    FittedMethod,
    Values,
    class_folds,
    compare_methods,
    few_of_a_class,
    without_known_with_outcome,
)
from graphmrf.comparison.explanation import (
    Explanation,
    dependence_curves,
    explain_model,
    learning_curve,
    strongest_labels,
    suggested_labels,
    transform_name,
    what_carries,
)
from graphmrf.comparison.settings import CAPABILITIES, EXCEEDANCE, Settings, is_conformal, offers
from graphmrf.errors import InvalidInputError
from graphmrf.estimators.base import PROBABILITIES
from graphmrf.estimators.graph_classifier import sureness
from graphmrf.estimators.inputs import Labels
from graphmrf.estimators.methods import Method
from graphmrf.graph import Graph
from graphmrf.text import above_zero, count, nothing_predicts

FEW = 10  # known values beyond the coefficients below which the noise is uncertain by a fifth and more
_SUMS = ("prediction", "std", "lower", "upper")
# Columns of the table of groups, beside their own.
GROUP_COLUMNS = ("n_nodes", "n_observed", *_SUMS, "total", *(f"total_{name}" for name in _SUMS[1:]))


@dataclass(frozen=True, eq=False)
class Prediction:
    """One outcome at every node, how it was predicted, and how accurately: values only, which run no model.

    Raises
    ------
    InvalidInputError
        If lengths differ, a prediction is missing, a std is negative or `level` is no probability.

    Examples
    --------
    >>> found = Prediction("income", np.array([1.0, np.nan]), np.array([1.0, 2.0]), method="lp")
    >>> found.observed
    array([ True, False])
    """

    name: str  # name of the outcome
    y: Floats  # (n,): known numbers, NaN where they were predicted; for classes positions in `classes`
    value: Floats  # (n,): predictions, and known values where there are any; finite wherever `y` is NaN
    method: str  # name of the method that made them; its row of `methods` has its accuracy
    methods: Sequence[FittedMethod] = ()  # all methods compared
    # std, lower, upper: (n,): standard deviation and interval; None for classes and for methods without error bars
    std: Floats | None = None
    lower: Floats | None = None
    upper: Floats | None = None
    level: float = 0.9  # probability inside the interval
    classes: Any = None  # the k classes; None for numbers
    probability: Floats = field(default_factory=lambda: np.empty((0, 0)))  # (n, k): probability of every class
    # a row for each known value: `node`, `out_of_fold` prediction and, of numbers, its standardised `residual`
    held_out: pd.DataFrame | None = None
    # (m, k): probabilities of the classes at known values, out of fold
    held_out_probability: Floats = field(default_factory=lambda: np.empty((0, 0)))
    explanation: Explanation = field(default_factory=Explanation)  # shares, effects, and what else a model offers
    # carries, reason: a sentence on what carries the prediction, and one on why this method was used
    carries: str = ""
    reason: str = ""
    # coverage, by_distance, by_spread: see the methods of `HeldOut` of these names
    coverage: pd.DataFrame | None = None
    by_distance: pd.DataFrame | None = None
    by_spread: pd.DataFrame | None = None
    # above, exceeding: a value, and (n,): the probability of more at every node, see `with_probability`
    above: float | None = None
    exceeding: Floats | None = None
    smoothed: pd.DataFrame | None = None  # of counts and shares the rate or share of every node and its interval
    groups: pd.DataFrame | None = None  # means and totals of groups, see `with_groups`
    suggested: pd.DataFrame | None = None  # nodes to label next, see `suggested_labels`
    # measured, notes: lines on how accuracy was measured, and on everything else
    measured: Sequence[str] = ()
    notes: Sequence[str] = ()
    in_regions: bool = False  # whether known values were held out in regions; otherwise in random folds

    def __post_init__(self) -> None:
        _check_lengths(self)
        _check_values(self)

    @property
    def observed(self) -> Bools:
        """True where the outcome was given."""
        return ~np.isnan(self.y)

    @property
    def predicted(self) -> Bools:
        """True where there is a prediction: where no outcome was given, or where outcomes have errors."""
        return ~self.observed if self.std is None else ~self.observed | (self.std > 0)

    @property
    def values(self) -> Floats:
        """Known outcomes, and predictions where there are some."""
        return np.where(self.predicted, self.value, self.y)

    @property
    def codes(self) -> Ints:
        """Position of the class of every node."""
        return self.values.astype(np.int64)

    @property
    def sure(self) -> Floats:
        """Probability of the class of every node."""
        return np.asarray(self.probability[np.arange(self.codes.size), self.codes])

    @property
    def chosen(self) -> FittedMethod | None:
        """The row of `methods` for the method in use."""
        return next((row for row in self.methods if row.method.key == self.method), None)

    @property
    def method_name(self) -> str:
        """Full name of the method in use; its key where it has no row."""
        return self.chosen.method.name if self.chosen else self.method

    @property
    def alpha(self) -> float | None:
        """Smoothing level of the method in use."""
        return self.chosen.alpha if self.chosen else None

    @property
    def score_name(self) -> str:
        """What the score of every method measures: R² of numbers, explained deviance of counts and shares."""
        return self.chosen.scoring.name if self.chosen else "R²"

    @property
    def tested(self) -> Ints:
        """Class (n_labelled,) of each label out of fold, as its position."""
        return np.empty(0, dtype=np.int64) if self.held_out is None else self.held_out["out_of_fold"].to_numpy(np.int64)

    @property
    def is_checked(self) -> bool:
        """Whether held-out labels could be scored: not where each is the only one of its class."""
        return self.chosen is None or bool(np.isfinite(self.chosen.score))

    @property
    def predicts_nothing(self) -> str:
        """Sentence on an outcome that no method predicts at held-out values; empty where one does."""
        if self.chosen is None or not np.isfinite(self.chosen.score) or self.classes is not None:
            return ""
        if any(above_zero(each.score, each.error) for each in self.methods):
            return ""
        return nothing_predicts(self.name, self.chosen.score, self.chosen.error, self.score_name)

    def at_labels(self, column: str) -> Floats:
        """A column of `held_out` at every node, NaN where there is no label."""
        found = np.full(len(self.y), np.nan)
        if self.held_out is not None:
            found[self.held_out["node"].to_numpy()] = self.held_out[column].to_numpy()
        return found

    def with_details(self, X: pd.DataFrame | None) -> Self:
        """Return the same with what only a report page shows: curves, coverage, accuracy by distance and by spread."""
        if self.chosen is None or self.chosen.held_out is None:
            return self
        fit, held_out = self.chosen, self.chosen.held_out
        curves = None if X is None else dependence_curves(fit.model, X, self.explanation.shares)
        learning = learning_curve(fit) if np.sum(~self.observed) > 1 else None  # as an R² needs
        strongest = strongest_labels(fit.model, np.flatnonzero(~self.observed))
        explanation = replace(self.explanation, dependence=curves, learning=learning, strongest=strongest)
        coverage = held_out.coverage(self.level) if self.std is not None else None
        by_distance = held_out.by_distance(fit.out_of_fold, self.level)
        by_spread = held_out.by_spread(fit.out_of_fold, self.level) if self.std is not None else None
        shown = replace(self, explanation=explanation, coverage=coverage)
        return replace(shown, by_distance=by_distance, by_spread=by_spread)

    def with_groups(self, groups: pd.Series, weight: Floats | None = None) -> Self:
        """Return the same with one row per group: nodes, those observed, the mean with error bars, and the total.

        With weights there is no total, as outcomes are rates. Unchanged where the model has no joint distribution.
        """
        model: Any = self.chosen.model if self.chosen else None
        if not offers(model, "predict_total"):
            return self
        if weight is not None:
            found = _weighted(model, groups.to_numpy(), weight, self.level)
        else:
            total = model.predict_total(groups.to_numpy(), level=self.level)
            found = total.assign(**{name: total[name] / total["n_nodes"] for name in _SUMS})
            totals = {"total" if name == "prediction" else f"total_{name}": total[name] for name in _SUMS}
            found = found.assign(**totals)
        columns = [name for name in GROUP_COLUMNS if name in found]
        return replace(self, groups=found[columns].rename_axis(index=str(groups.name)).reset_index())

    def with_probability(self, above: float) -> Self:
        """Return the same with the probability of more than a value at every node; unchanged where no model has one.

        For counts and shares it is that of the rate or share, since known counts have noise; a known number exceeds the
        value or does not.
        """
        model: Any = self.chosen.model if self.chosen else None
        if not offers(model, *CAPABILITIES[EXCEEDANCE]):
            return self
        return replace(self, above=above, exceeding=np.asarray(model.probability(above=above), dtype=np.float64))

    @property
    def exceedance(self) -> str:
        """Sentence on how many nodes exceed the value asked about; empty where there is none."""
        if self.exceeding is None or self.above is None:
            return ""
        least, *_, most = PROBABILITIES
        surely, hardly = int(np.sum(self.exceeding > most)), int(np.sum(self.exceeding < least))
        return (
            f"{count(surely, 'node')} of {self.exceeding.size:,} exceed {self.above:g} with a probability above "
            f"{100 * most:g} %, and {hardly:,} with one below {100 * least:g} %"
        )

    def with_suggestions(self, k: int) -> Self:
        """Return the same with the nodes whose labels would help most; unchanged where no model suggests any.

        For classes the field suggests them, whichever method predicts.
        """
        if self.classes is not None:
            field = next((each.model for each in self.methods if each.method.key == DEFAULT), None)
            if field is None:
                note = f"{self.name}: nodes to label next are suggested by method {DEFAULT}, which was not fitted"
                return replace(self, notes=(*self.notes, note))
            return replace(self, suggested=field.suggest(k).reset_index(drop=True))
        if self.chosen is None or not offers(self.chosen.model, "suggest"):
            return self
        return replace(self, suggested=suggested_labels(self.chosen, k))


def predict_outcome(
    graph: Graph,
    X: pd.DataFrame | None,
    y: Values,
    settings: Settings,
    *,
    name: str = "y",
    advance: Callable[[str], None] = lambda _: None,
) -> Prediction:
    """Return the prediction of one outcome by the best of some methods.

    Parameters
    ----------
    graph, X, y : Graph, DataFrame or None, array of numbers or Labels
        The graph, its features in node order, NaN where missing, and the outcome; see `as_outcome`.
    settings : Settings
        The methods, how they are tuned, and what is wanted.
    name : str
        Name of the outcome, with which notes begin.
    advance : callable
        Called after every fit with the accuracy of the method in words, and with nothing when error bars are done.

    Examples
    --------
    >>> path = Graph.from_edges([0, 1, 2, 3, 4], [1, 2, 3, 4, 5])
    >>> y = np.array([1.0, np.nan, 2.0, 3.0, np.nan, 4.0])
    >>> predict_outcome(path, None, y, Settings(("lp",), alpha=0.9)).value.round(1)
    array([1. , 1.3, 2. , 3. , 3.7, 4. ])
    """
    X, left_out = (None, ()) if X is None else without_known_with_outcome(X, y)
    found = compare_methods(graph, X, y, settings, lambda found: advance(found and f"{name}: {found}"))
    found = replace(found, notes=(*left_out, *found.notes))
    if isinstance(y, Labels):
        prediction = _classes(graph, y, found, settings, name)
    else:
        prediction = _numbers(found, X, y, settings, name)
        few = _few(int(prediction.observed.sum()), 0 if X is None else X.shape[1], found.chosen.method, prediction)
        prediction = replace(prediction, notes=(*_unreached(graph, ~np.isnan(y), settings.cv), *prediction.notes, *few))
    advance("")
    return replace(prediction, notes=tuple(f"{name}: {note}" for note in prediction.notes))


def _numbers(found: Comparison, X: pd.DataFrame | None, y: Floats, settings: Settings, name: str) -> Prediction:
    chosen, bounds = found.chosen, settings.bounds
    known, (mean, std) = ~np.isnan(y), _moments(chosen.model)
    kept = known & settings.keeps_observations
    value, std = np.where(kept, y, mean), np.where(kept, 0.0, std)
    outside = int(np.count_nonzero(bounds.clipped(value) != value))
    ends = (np.where(kept, value, end) for end in _interval(chosen, value, std, settings))
    value, lower, upper = bounds.interval(value, *ends)
    bars: dict[str, Any] = {} if np.isnan(std).any() else {"std": std, "lower": lower, "upper": upper}
    assert chosen.held_out is not None
    measured, brief, in_regions = (
        chosen.held_out.folds.notes,
        explain_model(chosen.model, X),
        chosen.regions is not None,
    )
    errors = [] if settings.keeps_observations else [_on_errors(settings)]
    beyond = [f"{outside} predictions outside the given bounds were set to them"] if outside else []
    model_notes = getattr(chosen.model, "notes_", ())
    return Prediction(
        name=name,
        y=y,
        value=value,
        method=chosen.method.key,
        methods=found.methods,
        **bars,
        level=settings.level,
        smoothed=chosen.model.smoothed(settings.level) if offers(chosen.model, "smoothed") else None,
        held_out=_tested(chosen, known),
        explanation=brief,
        carries=what_carries(found.methods, chosen, brief.shares) if len(found.methods) > 1 or brief.shares else "",
        reason=found.reason,
        by_distance=chosen.held_out.by_distance(chosen.out_of_fold, settings.level) if in_regions else None,
        measured=measured,
        notes=(
            *measured,
            *model_notes,
            *errors,
            *beyond,
            *found.notes,
            *_on_choice(found, settings),
        ),
        in_regions=in_regions,
    )


def _on_errors(settings: Settings) -> str:
    """Return why nodes with known values are predicted, too."""
    if settings.rows is None:
        return "known values have errors, so they are predicted, too"
    nodes = settings.rows.nodes[settings.rows.observed]
    return (
        f"{count(nodes.size, 'observation')} of {count(np.unique(nodes).size, 'node')}: known values are means, and "
        "these nodes are predicted, too"
    )


def _weighted(model: Any, groups: Any, weight: Floats, level: float) -> pd.DataFrame:
    """Return weighted means of groups."""
    if not hasattr(model, "predict_mean"):
        raise InvalidInputError("means of counts are weighted by their exposure already; drop --group-weight")
    found: pd.DataFrame = model.predict_mean(groups, level=level, weight=weight)
    return found


def _tested(chosen: FittedMethod, known: Bools) -> pd.DataFrame:
    """Return out-of-fold predictions of known values, and their standardised residuals."""
    assert chosen.held_out is not None
    out_of_fold = chosen.out_of_fold
    columns = {"out_of_fold": out_of_fold, "residual": chosen.held_out.standardised(out_of_fold)}
    return pd.DataFrame({"node": np.flatnonzero(known)} | columns)


def _moments(model: Any) -> tuple[Floats, Floats]:
    """Return means and standard deviations; NaN for a model without the latter."""
    if offers(model, "predict", "return_std"):
        mean, std = model.predict(return_std=True)
        return np.asarray(mean, dtype=np.float64), np.asarray(std, dtype=np.float64)
    mean = np.asarray(model.predict(), dtype=np.float64)
    return mean, np.full(mean.shape, np.nan)


def _interval(chosen: FittedMethod, value: Floats, std: Floats, settings: Settings) -> tuple[Floats, Floats]:
    model, level = chosen.model, settings.level
    if not offers(model, "predict_interval"):
        width = chosen.interval_width(level) * std
        return value - width, value + width
    kind = {"interval": "conformal"} if settings.conformal and is_conformal(model) else {}
    lower, upper = model.predict_interval(level, **kind)
    return np.asarray(lower, dtype=np.float64), np.asarray(upper, dtype=np.float64)


def _unreached(graph: Graph, observed: Bools, cv: int) -> Iterator[str]:
    """Yield notes on nodes without a path to a label, and on fewer labels than folds."""
    unreached = ~np.isin(graph.components, graph.components[observed])
    if unreached.any():
        yield (
            f"{int(unreached.sum())} nodes have no path to a node with a known value; "
            "outcomes of neighbours cannot help there"
        )
    if observed.sum() < cv:
        yield f"only {int(observed.sum())} known values, so cross-validation uses as many folds"


def _few(known: int, n_features: int, method: Method, prediction: Prediction) -> Iterator[str]:
    """Yield a note if labels are few; features count against them unless the method shrinks their effects."""
    spent = n_features * (method.features and method.needs_features)
    if known - 1 - spent >= FEW:
        return
    bars = "error bars are wide" if prediction.std is not None else "std, lower and upper are empty"
    features = f" for {n_features} feature{'s' * (n_features > 1)}" if spent else ""
    yield f"only {known} known values{features}: {prediction.score_name} is uncertain, and {bars}"


def _on_choice(found: Comparison, settings: Settings) -> Iterator[str]:
    """Yield notes on a method other than the default, the transform, and intervals without bounds."""
    model = found.model
    if f"has a higher {found.chosen.scoring.name}" in found.reason:
        yield found.reason
    if settings.transform == "auto" and hasattr(model, "transform_"):
        yield f"transform chosen by likelihood: {transform_name(model) or 'none'}"
    if settings.conformal and is_conformal(model) and not _is_bounded(model, settings.level):
        percent = f"{100 * settings.level:g} %"
        yield f"too few known values for a conformal interval of {percent}; lower and upper have no bound"


def _is_bounded(model: Any, level: float) -> bool:
    return all(np.isfinite(each).all() for each in model.predict_interval(level, interval="conformal"))


def _classes(graph: Graph, labels: Labels, found: Comparison, settings: Settings, name: str) -> Prediction:
    model, known, k = found.model, labels.known, labels.classes.size
    probability = np.array(model.predict_proba(), dtype=np.float64)
    probability[known] = np.eye(k)[labels.codes[known]]
    predicted, tested = (np.searchsorted(labels.classes, each) for each in (model.predict(), model.held_out_))
    value = np.where(known, labels.codes, predicted).astype(np.float64)
    folds = class_folds(graph, labels, settings)
    sure = sureness(np.asarray(model.held_out_proba_), labels.codes[known])
    notes = (_class_note(labels), *folds.notes, *few_of_a_class(labels, settings.cv), *found.notes, sure, found.reason)
    ignored = (f"{each} are for numbers, not for classes" for each in settings.unsuited_to_classes)
    return Prediction(
        name=name,
        y=np.where(known, labels.codes, np.nan),
        value=value,
        method=found.chosen.method.key,
        methods=found.methods,
        classes=labels.classes,
        probability=probability,
        held_out=pd.DataFrame({"node": np.flatnonzero(known), "out_of_fold": tested}),
        held_out_probability=np.asarray(model.held_out_proba_),
        reason=found.reason,
        measured=folds.notes,
        notes=tuple(each for each in (*notes, *ignored) if each),
        in_regions=folds.regions is not None,
    )


def _class_note(labels: Labels) -> str:
    classes = [str(value) for value in labels.classes]
    shown = ", ".join(classes[:5]) + (f" and {len(classes) - 5} more" if len(classes) > 5 else "")
    return f"nodes are classified ({len(classes)} classes: {shown})"


def _check_lengths(found: Prediction) -> None:
    shape = np.shape(found.y)
    for name in ("value", "std", "lower", "upper"):
        column = getattr(found, name)
        if column is not None and np.shape(column) != shape:
            raise InvalidInputError(
                f"{name} of {found.name!r} must have the shape of y, {shape}, got {np.shape(column)}; "
                "pass one value for each node"
            )
    if found.classes is not None:
        n, k, m = shape[0], len(found.classes), int(np.sum(found.observed))
        shapes = np.shape(found.probability), np.shape(found.held_out_probability)
        if shapes != ((n, k), (m, k)):
            raise InvalidInputError(
                f"classes of {found.name!r} need probabilities of shapes {((n, k), (m, k))}, got {shapes}"
            )


def _check_values(found: Prediction) -> None:
    hidden = ~found.observed
    missing = int(np.sum(~np.isfinite(found.value[hidden])))
    if missing:
        raise InvalidInputError(f"value of {found.name!r} must be finite where y is NaN, got {missing} that are not")
    negative = 0 if found.std is None else int(np.sum(~(found.std[hidden] >= 0)))
    if negative:
        raise InvalidInputError(
            f"std of {found.name!r} must be >= 0 where y is NaN, got {negative} others; use None for no std"
        )
    if (found.lower is None) != (found.upper is None):
        raise InvalidInputError(f"lower and upper of {found.name!r} come together; pass both or neither")
    if not 0.5 < (1 + found.level) / 2 < 1:  # the quantile of its upper end, rounded
        raise InvalidInputError(f"level must lie strictly between 0 and 1, got {found.level}; 0.9 means 90 %")
