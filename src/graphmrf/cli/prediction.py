"""One target predicted at every node: the best of the methods, its values with intervals, and notes on them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from graphmrf._typing import Bools, Floats
from graphmrf.cli.comparison import (
    ENOUGH,
    FIELD,
    Fit,
    best,
    carrier,
    fit_all,
    fit_estimator,
    fit_numbers,
    passed_over,
    preferred,
    standard_error,
)
from graphmrf.cli.options import AUTO
from graphmrf.datasets import Features
from graphmrf.errors import InvalidInputError
from graphmrf.estimators import GraphClassifier, GraphRegressor
from graphmrf.estimators.base import CheckedEstimator
from graphmrf.estimators.inputs import Labels
from graphmrf.estimators.methods import METHODS, Method
from graphmrf.field.fit import REFITTED
from graphmrf.graph import Graph
from graphmrf.selection import MatchedFolds, distance_matched_folds
from graphmrf.text import joined, number

LARGEST_ALPHA = 1 - 1e-8
"""Largest level that is solved to a residual of 1e-8 in float64 on paths, grids, stars and graphs in pieces; with a
distance from 1 ten times smaller it is not."""
TRANSFORMS = ("identity", "log", "box-cox", "yeo-johnson", "auto")
_FIELD_TAKES = 30.0
"""Time of the field over that of another method, for the time left: as on the bundled example, the field being fitted
again without each fold."""
_SKEWED = 1.5
"""Skewness from which a transform is hinted at, by eye: that of a log-normal whose logarithms vary by .45, so that one
value in forty is twice the median."""
FEW = 10
"""With fewer known values than this beyond the coefficients, a warning: the standard deviation of the noise is then
uncertain by 1 / sqrt(2 * 10), a fifth and more."""


@dataclass(frozen=True)
class Bounds:
    """Bounds of the values: least and most, None for no bound, and whether they are whole numbers.

    Examples
    --------
    >>> Bounds(at_least=0).clipped(np.array([-1.0, 2.0]))
    array([0., 2.])
    >>> Bounds(whole=True).interval(np.array([2.4]), np.array([0.6]), np.array([4.2]))
    (array([2.]), array([1.]), array([4.]))
    """

    at_least: float | None = None
    at_most: float | None = None
    whole: bool = False

    def __post_init__(self) -> None:
        for option, bound in (("--at-least", self.at_least), ("--at-most", self.at_most)):
            if bound is not None and not np.isfinite(bound):
                raise InvalidInputError(f"{option} must be a finite number, got {bound}; leave it away for no bound")
        if self.at_least is not None and self.at_most is not None and self.at_least >= self.at_most:
            raise InvalidInputError(f"--at-least {self.at_least:g} must be below --at-most {self.at_most:g}")

    def clipped(self, values: Floats) -> Floats:
        """Return values within the bounds."""
        unbounded = self.at_least is None and self.at_most is None
        return values if unbounded else np.clip(values, self.at_least, self.at_most)

    def interval(self, value: Floats, lower: Floats, upper: Floats) -> tuple[Floats, Floats, Floats]:
        """Return predictions and the ends of their intervals within the bounds.

        Of whole values an interval has the same ones as before, its ends being the first and the last of them; where
        it has none, the prediction itself.
        """
        value, lower, upper = (self.clipped(each) for each in (value, lower, upper))
        if not self.whole:
            return value, lower, upper
        value = np.round(value)
        return value, np.minimum(np.ceil(lower), value), np.maximum(np.floor(upper), value)

    def problem(self, y: Floats) -> str:
        """Return what is wrong with known values, and the remedy; empty for nothing."""
        broken = y[~np.isnan(y) & (np.round(y) != y)] if self.whole else y[:0]
        if broken.size:
            return f"--whole is not met by a known value, {broken[0]:g}; round it, or drop the option"
        stray = y[~np.isnan(y) & (self.clipped(y) != y)]
        if not stray.size:
            return ""
        below = self.at_least is not None and stray[0] < self.at_least
        option = f"--at-least {self.at_least:g}" if below else f"--at-most {self.at_most:g}"
        return f"{option} is not met by a known value, {stray[0]:g}; correct the value or the option"


@dataclass(frozen=True)
class PredictionSettings:
    """Options of a prediction, checked; None for `alpha` means by cross-validation."""

    method: str = AUTO
    interval: float = 0.9
    conformal: bool = False
    alpha: float | None = None
    folds: int = 5
    seed: int = 0
    transform: str = "identity"
    group: str | None = None
    suggest: int = 0
    bounds: Bounds = Bounds()

    def __post_init__(self) -> None:
        if self.alpha is not None and not 0 <= self.alpha <= LARGEST_ALPHA:
            close = ", too close to 1 to compute with" if self.alpha < 1 else ""
            raise InvalidInputError(
                f"--alpha must be in [0, 1), got {self.alpha}{close}; 0 ignores the edges, 0.99 smooths strongly"
            )
        if not 0.5 < (1 + self.interval) / 2 < 1:  # the quantile of its upper end, rounded
            close = f", too close to {self.interval:.0f} to compute with" if 0 < self.interval < 1 else ""
            raise InvalidInputError(f"--interval must be between 0 and 1, got {self.interval}{close}; 0.9 means 90 %")
        if self.folds < 2:
            raise InvalidInputError(f"--folds must be at least 2, got {self.folds}")
        if self.alpha is not None and self.method in METHODS and not METHODS[self.method].has_level:
            raise InvalidInputError(f"--alpha has no effect on --method {self.method}; drop one of them")
        self._check_field()

    def _check_field(self) -> None:
        """Raise where an option of the field comes with another method."""
        given = self.for_numbers
        if self.transform not in TRANSFORMS:
            raise InvalidInputError(f"--transform must be one of {', '.join(TRANSFORMS)}, got '{self.transform}'")
        if given and self.method not in (AUTO, FIELD):
            raise InvalidInputError(f"{given[0]} is for --method {FIELD}, got --method {self.method}; drop one of them")

    @property
    def for_numbers(self) -> tuple[str, ...]:
        """The options given that are for the field, and for targets of numbers."""
        given = {"--transform": self.transform != "identity", "--conformal": self.conformal}
        given |= {"--group": self.group is not None, "--suggest": self.suggest > 0}
        return tuple(name for name, on in given.items() if on)

    @property
    def options(self) -> dict[str, Any]:
        """What an estimator is made with."""
        alpha = "cv" if self.alpha is None else self.alpha
        return {"alpha": alpha, "cv": self.folds, "random_state": self.seed, "transform": self.transform}


@dataclass(frozen=True, eq=False)
class Prediction:
    """One target of numbers at every node; observed nodes keep their value and have std 0."""

    name: str
    y: Floats
    value: Floats
    std: Floats
    lower: Floats
    upper: Floats
    interval: float
    chosen: Fit
    fits: tuple[Fit, ...]
    carries: str
    notes: tuple[str, ...]

    @property
    def observed(self) -> Bools:
        """Where the outcome was given."""
        return ~np.isnan(self.y)

    @property
    def has_error_bars(self) -> bool:
        """Whether there were enough known values to estimate the noise."""
        return not np.isnan(self.std).any()


@dataclass(frozen=True, eq=False)
class ClassPrediction:
    """One target of classes at every node; observed nodes keep their class, with probability 1."""

    name: str
    labels: Labels
    probability: Floats
    value: Any
    chosen: Fit
    fits: tuple[Fit, ...]
    notes: tuple[str, ...]

    @property
    def observed(self) -> Bools:
        """Where the class was given."""
        return self.labels.known


@dataclass(frozen=True, eq=False)
class Contest:
    """The methods that compete for every target of one graph: what they are given, and how they are tuned."""

    graph: Graph
    features: Features
    methods: tuple[Method, ...]
    settings: PredictionSettings

    @property
    def durations(self) -> Iterator[float]:
        """How long the methods take, beside each other, and at the end the error bars of the best."""
        yield from (_FIELD_TAKES if method.key == FIELD else 1.0 for method in self.methods)
        yield 1.0

    def predict(self, name: str, y: Floats | Labels, advance: Callable[[], None]) -> Prediction | ClassPrediction:
        """Return the prediction of one target by the best method; `advance` is called after every fit, and last."""
        return self._classes(name, y, advance) if isinstance(y, Labels) else self._numbers(name, y, advance)

    def _numbers(self, name: str, y: Floats, advance: Callable[[], None]) -> Prediction:
        settings = self.settings

        def fit(method: Method) -> Fit:
            return fit_numbers(method, self.graph, self.features, y, **settings.options)

        fits, left_out = fit_all(self.methods, fit, advance)
        chosen = best(fits, folds=settings.folds, asked=bool(settings.for_numbers))
        mean, std = chosen.estimator.predict(return_std=True)
        advance()
        observed = ~np.isnan(y)
        value, std = np.where(observed, y, mean), np.where(observed, 0.0, std)
        _check_skew(name, chosen, value, ~observed)
        outside = int(np.count_nonzero(settings.bounds.clipped(value) != value))
        value, lower, upper = settings.bounds.interval(value, *_interval(chosen, value, std, settings))
        notes = (
            *_reach(self.graph, observed, settings.folds),
            *_measured(chosen),
            *_two_valued(y[observed]),
            *_skewed(y[observed], settings),
            *([f"{outside} predictions beyond the bounds given were put on them"] if outside else []),
            *_roughness(int(observed.sum()), self.features.X.shape[1], chosen.method, std),
            *left_out,
            *(fit.note for fit in fits if fit.note),
            *_field_notes(int(observed.sum()), fits, chosen, settings),
        )
        return Prediction(
            name=name,
            y=y,
            value=value,
            std=std,
            lower=lower,
            upper=upper,
            interval=settings.interval,
            chosen=chosen,
            fits=fits,
            carries=carrier(fits, chosen) if settings.method in (AUTO, FIELD) else "",
            notes=tuple(f"{name}: {note}" for note in notes),
        )

    def _folds_of(self, labels: Labels) -> MatchedFolds:
        """Return the folds of a classifier, where they are regions."""
        folds, seed = folds_of_classes(labels, self.settings.folds), self.settings.seed
        return distance_matched_folds(self.graph, labels.known, folds, random_state=seed)

    def _classes(self, name: str, labels: Labels, advance: Callable[[], None]) -> ClassPrediction:
        settings = replace(self.settings, transform="identity")
        y = pd.Series(np.where(labels.known, labels.codes, np.nan))

        def fit(method: Method) -> Fit:
            folds = folds_of_classes(labels, settings.folds)
            model = GraphClassifier(method.make(**settings.options), cv=folds, random_state=settings.seed)
            _, note = fit_estimator(model, method, self.graph, self.features, y)
            levels = {getattr(regressor, "alpha_", None) for regressor in model.regressors_}
            alpha = levels.pop() if len(levels) == 1 else None
            matched = self._folds_of(labels)
            wrong = matched.weights * (model.held_out_ != labels.codes[labels.known])
            error = standard_error(wrong, settings.folds, matched.regions)
            score, regions = model.held_out_score_, matched.regions
            return Fit(method, model, score, wrong, error, alpha, scores={}, note=note, regions=regions)

        fits, left_out = fit_all(self.methods, fit, advance)
        chosen = best(fits, folds=settings.folds)
        probability = np.array(chosen.estimator.predict_proba(), dtype=np.float64)
        probability[labels.known] = np.eye(labels.classes.size)[labels.codes[labels.known]]
        codes = np.where(labels.known, labels.codes, np.asarray(chosen.estimator.predict()).astype(np.int64))
        advance()
        said = (
            *left_out,
            *(fit.note for fit in fits),
            passed_over(fits, chosen, folds=settings.folds, score="accuracy"),
        )
        ignored = (f"{option} is for numbers, not for classes" for option in self.settings.for_numbers)
        notes = (
            _class_note(labels),
            *self._folds_of(labels).notes,
            *_few_of_a_class(labels, settings.folds),
            *(line for line in said if line),
            *ignored,
        )
        told = tuple(f"{name}: {note}" for note in notes)
        return ClassPrediction(name, labels, probability, labels.classes[codes], chosen, fits, told)


def _measured(chosen: Fit) -> Iterator[str]:
    """Say how accuracy was measured where holes are regions, and what was found about the intervals."""
    if chosen.held_out is not None:
        yield from chosen.held_out.folds.notes
    if isinstance(chosen.estimator, CheckedEstimator):
        yield from chosen.estimator.notes_


def _interval(chosen: Fit, value: Floats, std: Floats, settings: PredictionSettings) -> tuple[Floats, Floats]:
    if isinstance(chosen.estimator, GraphRegressor):
        return _field_interval(chosen.estimator, settings.interval, conformal=settings.conformal)
    width = chosen.interval_width(settings.interval) * std
    return value - width, value + width


def _check_skew(name: str, chosen: Fit, mean: Floats, hidden: Bools) -> None:
    """Raise where the mean of a transformed outcome is above 95 % of what is likely: a few draws would carry it."""
    if not isinstance(chosen.estimator, GraphRegressor) or not transform_name(chosen.estimator):
        return
    lower, upper = chosen.estimator.predict_interval(0.9)
    beyond = int((hidden & ~((lower <= mean) & (mean <= upper))).sum())
    if beyond:
        raise InvalidInputError(
            f"{name}: so skewed that at {beyond} nodes its mean is beyond the 90 % interval around it, and says "
            "nothing; predict its logarithm, as a column of its own, without --transform"
        )


def _field_interval(model: GraphRegressor, level: float, *, conformal: bool) -> tuple[Floats, Floats]:
    return model.predict_interval(level, interval="conformal" if conformal else "field")


def _reach(graph: Graph, observed: Bools, folds: int) -> Iterator[str]:
    """Say which nodes no label reaches, and where labels are too few for folds."""
    unreached = ~np.isin(graph.components, graph.components[observed])
    if unreached.any():
        yield (
            f"{int(unreached.sum())} nodes have no path to a node with a known value; "
            "outcomes of neighbours say nothing about them"
        )
    if observed.sum() < folds:
        yield f"only {int(observed.sum())} known values, so cross-validation uses as many folds"


def _two_valued(known: Floats) -> Iterator[str]:
    values = [f"{value:g}" for value in np.unique(known)]
    if len(values) == 2:
        yield f"all known values are {' or '.join(values)}, and predicted as numbers; words would be classified"


def _skewed(known: Floats, settings: PredictionSettings) -> Iterator[str]:
    """Hint at a transform where the known values have a long tail."""
    if settings.transform != "identity" or settings.method not in (AUTO, FIELD) or known.size < ENOUGH:
        return
    z = (known - known.mean()) / known.std()
    if np.unique(known).size > 2 and abs(float(np.mean(z**3))) > _SKEWED:
        yield "its values have a long tail; --transform auto may be more accurate, and has fitting intervals"


def _roughness(known: int, n_features: int, method: Method, std: Floats) -> Iterator[str]:
    """Say that labels are few; other methods than the field count features against them, and may have no error bars."""
    bars = (
        "std, lower and upper are empty: none is left to tell the noise"
        if np.isnan(std).any()
        else "error bars are wide"
    )
    if method.key == FIELD:
        if known <= FEW:
            yield f"only {known} known values: R² is uncertain, and {bars}"
    elif known - 1 - n_features * method.features < FEW:
        features = f" for {n_features} feature{'s' * (n_features > 1)}" if n_features * method.features else ""
        yield f"only {known} known values{features}: R² is uncertain, and {bars}"


def _field_notes(known: int, fits: Sequence[Fit], chosen: Fit, settings: PredictionSettings) -> Iterator[str]:
    """Say how the field was scored, what transform it chose, and whether another method took its place, or would have.

    Options that only the field can do ask for it.
    """
    model = next((fit.estimator for fit in fits if isinstance(fit.estimator, GraphRegressor)), None)
    if model is None:
        return
    yield field_note(model.solver_, known)
    yield from model.notes_
    if model.transform == "auto":
        yield f"transform chosen by likelihood: {transform_name(model) or 'none'}"
    asked = settings.for_numbers
    folds = settings.folds
    if asked:
        said = preferred(fits, chosen, folds=folds, asked=" and ".join(asked))
    else:
        said = passed_over(fits, chosen, folds=folds)
    if said:
        yield said
    if settings.conformal and not np.isfinite(_field_interval(model, settings.interval, conformal=True)).all():
        percent = f"{100 * settings.interval:g} %"
        yield f"too few known values for a conformal interval of {percent}; lower and upper have no bound"


def field_note(solver: str, known: int) -> str:
    """Return how the field was computed, and where hyper-parameters of out-of-fold predictions are from.

    Examples
    --------
    >>> field_note("dense", 300)
    'field has a dense covariance; its hyper-parameters are searched again without each fold'
    """
    again = f"out-of-fold predictions have the hyper-parameters of all {known:,} known values"
    if known <= REFITTED:
        again = "its hyper-parameters are searched again without each fold"
    return f"{FIELD} has a {solver} covariance; {again}"


def transform_name(model: GraphRegressor) -> str:
    """Return the transform in use; empty for none."""
    power = model.transform_.power
    if power is None:
        return ""
    if not power.signed and power.exponent == 0:
        return "log"
    return f"{'yeo-johnson' if power.signed else 'box-cox'} with exponent {number(power.exponent, 2)}"


def folds_of_classes(labels: Labels, folds: int) -> int:
    """Return how many folds there can be so that each has a label of every class that has two; at least two."""
    counts = np.bincount(labels.codes[labels.known])
    return int(max(2, min([folds, *counts[counts > 1].tolist()])))


def _few_of_a_class(labels: Labels, folds: int) -> Iterator[str]:
    used, counts = folds_of_classes(labels, folds), np.bincount(labels.codes[labels.known])
    if used < folds:
        rarest = labels.classes[np.where(counts > 1, counts, counts.max() + 1).argmin()]
        yield f"only {used} labels are {rarest}, so cross-validation uses {used} folds"
    single = labels.classes[counts == 1]
    if single.size:
        yield f"only one label is {joined([str(each) for each in single])}: it can be predicted, but not checked"


def _class_note(labels: Labels) -> str:
    classes = [str(value) for value in labels.classes]
    shown = ", ".join(classes[:5]) + (f" and {len(classes) - 5} more" if len(classes) > 5 else "")
    return f"no numbers, so nodes are classified ({len(classes)} classes: {shown})"
