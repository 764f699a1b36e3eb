"""Methods side by side on the same folds, and one sentence on what carries the prediction."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
import pandas as pd

from graphmrf._typing import Floats
from graphmrf.cli.methods import FIELD, Estimator, Method, Tuning
from graphmrf.datasets import Features
from graphmrf.errors import ConvergenceError, InvalidInputError
from graphmrf.estimators.inputs import read_outcome
from graphmrf.estimators.out_of_fold import out_of_fold
from graphmrf.graph import Graph
from graphmrf.report.rows import effect_name
from graphmrf.selection import AlphaSearch
from graphmrf.text import joined

CLEAR = 0.02
"""A difference of R2 below this is no difference."""
MARGIN = 0.01
"""The field is used unless another method is better by more than this."""
TOLD = 0.005
"""Shares below this are not spoken of."""


class Scored(Protocol):
    """A fit of numbers or of classes: a method, and how accurate it is where values are held out."""

    @property
    def method(self) -> Method:
        """The method."""

    @property
    def held_out_score(self) -> float:
        """R2, or the share of right classes."""


AnyFit = TypeVar("AnyFit", bound=Scored)


@dataclass(frozen=True, eq=False)
class Fit:
    """One method fitted to one target; `scores` has its cross-validated accuracy at every level tried."""

    method: Method
    estimator: Estimator
    scores: dict[str, Floats]
    note: str = ""

    @property
    def alpha(self) -> float | None:
        """Smoothing level in use; None for a method without one."""
        return getattr(self.estimator, "alpha_", None)

    @property
    def r2(self) -> float:
        """Pooled accuracy at that level."""
        return float(self.scores["mean_r2"][self._row])

    @property
    def held_out_score(self) -> float:
        """The same, by the name it has for classes, too."""
        return self.r2

    @property
    def fold_r2(self) -> tuple[float, ...]:
        """Accuracy of every fold at that level."""
        return tuple(float(score) for score in self.scores["fold_r2"][self._row])

    @property
    def shares(self) -> dict[str, float]:
        """Share of the variance of every kind of effect, and of noise; empty for a method that does not tell."""
        shares = getattr(self.estimator, "shares_", None)
        return {} if shares is None else {str(name): float(share) for name, share in shares.items()}

    @property
    def _row(self) -> int:
        return int(np.argmin(np.abs(self.scores["alpha"] - (self.alpha or 0.0))))


def fit_all(
    methods: Sequence[Method], graph: Graph, made: Features, y: Floats, *, tuning: Tuning, advance: Callable[[], None]
) -> tuple[tuple[Fit, ...], tuple[str, ...]]:
    """Return every method fitted and scored, and a line on those left out; the same seed gives them the same folds."""

    def fit(method: Method) -> Fit:
        estimator = method.make(tuning)
        features, note = fit_one(estimator, method, graph, made, y)
        searched: dict[str, Floats] | None = getattr(estimator, "cv_results_", None)
        scores = searched if searched and "alpha" in searched else _scores(estimator, graph, features, y, tuning)
        return Fit(method, estimator, scores, note)

    return attempt_all(methods, fit, advance)


def attempt_all(
    methods: Sequence[Method], fit: Callable[[Method], AnyFit], advance: Callable[[], None]
) -> tuple[tuple[AnyFit, ...], tuple[str, ...]]:
    """Return what `fit` makes of every method, and a line on each that does not converge; raise where none does."""
    fits, failures = [], {}
    for method in methods:
        try:
            fits.append(fit(method))
        except ConvergenceError as error:
            failures[method.key] = error
        advance()
    if not fits:
        raise next(iter(failures.values()))
    return tuple(fits), tuple(f"{key} is left out, as it did not converge: {why}" for key, why in failures.items())


def fit_one(estimator: Any, method: Method, graph: Graph, made: Features, y: Any) -> tuple[pd.DataFrame | None, str]:
    """Fit, and return the features that were used, with a line where missing cells are too many for the method."""
    features = method.takes(made)
    try:
        estimator.fit(graph, features, y)
    except InvalidInputError as error:
        if features is None or not features.isna().to_numpy().any():
            raise
        estimator.fit(graph, made.X, y)
        return made.X, f"{method.key} has missing cells filled with the column mean, too: {error}"
    return features, ""


def _scores(estimator: Estimator, graph: Graph, X: pd.DataFrame | None, y: Floats, tuning: Tuning) -> dict[str, Floats]:
    """Cross-validate where the estimator itself had no level to choose, on the folds it would use."""
    outcome = read_outcome(y, graph.n_nodes)
    folds = outcome.folds(tuning.folds, tuning.seed)
    predictions = out_of_fold(estimator, graph, X, y, folds)
    return AlphaSearch.score((tuning.alpha or 0.0,), predictions[None], outcome.y[outcome.known], folds).table()


def best(fits: Sequence[AnyFit], *, asked: bool = False) -> AnyFit:
    """Return the field, unless it was not asked for and another is clearly more accurate.

    Of other equals it is the first, which is the simplest.
    """
    leader = max(fits, key=_ranked)
    field = next((fit for fit in fits if fit.method.key == FIELD), leader)
    return leader if not asked and _ranked(leader) > _ranked(field) + MARGIN else field


def passed_over(fits: Sequence[AnyFit], chosen: AnyFit, *, score: str = "R2") -> str:
    """Return one line on a field that was fitted and not chosen; empty otherwise."""
    field = next((fit for fit in fits if fit.method.key == FIELD), chosen)
    if field is chosen:
        return ""
    return (
        f"{FIELD} reaches {score} {field.held_out_score:.3f} where values are held out, more than {MARGIN:g} below "
        f"{chosen.method.key} ({chosen.held_out_score:.3f}), so {chosen.method.key} is used"
    )


def preferred(fits: Sequence[AnyFit], chosen: AnyFit, *, asked: str) -> str:
    """Return one line on a field that was chosen because an option asks for it, where another is clearly better."""
    other = best(fits)
    if other is chosen:
        return ""
    return (
        f"{other.method.key} reaches R2 {other.held_out_score:.3f} where values are held out, more than {MARGIN:g} "
        f"above {chosen.method.key} ({chosen.held_out_score:.3f}), which is used because {asked} asks for it"
    )


def _ranked(fit: Scored) -> float:
    return -np.inf if np.isnan(fit.held_out_score) else fit.held_out_score


def carrier(fits: Sequence[Fit], chosen: Fit) -> str:
    """Return one sentence on what carries the prediction: outcomes of neighbours, features, or both."""
    if len(fits) == 1 and chosen.shares:
        return _shared(chosen.shares, "")
    if all(fit.method.featureless for fit in fits):
        return f"Without features only outcomes of neighbours can carry the prediction: R2 {chosen.r2:z.2f}."
    if len({(fit.method.outcomes, fit.method.features) for fit in fits}) < 3:  # one was left out
        return _shared(chosen.shares, "") if chosen.shares else ""
    outcomes = _accuracy(fits, outcomes=True, features=False)
    features = _accuracy(fits, outcomes=False, features=True)
    both = _accuracy(fits, outcomes=True, features=True)
    if not chosen.shares:
        return _sentence(outcomes, features, both)
    alone = _alone(outcomes, features, linear="linear effects of ")
    return _shared(chosen.shares, f": {alone}, all together {both:z.2f}")


def _accuracy(fits: Sequence[Fit], *, outcomes: bool, features: bool) -> float:
    scores = [fit.r2 for fit in fits if (fit.method.outcomes, fit.method.features) == (outcomes, features)]
    return max(scores)


def _alone(outcomes: float, features: float, *, linear: str = "") -> str:
    return f"outcomes of neighbours alone reach R2 {outcomes:z.2f}, {linear}features alone {features:z.2f}"


def _shared(shares: dict[str, float], scores: str) -> str:
    """Say which effects carry a prediction, the largest first, and how far one gets with less."""
    told = sorted(((share, name) for name, share in shares.items() if name != "noise" and share >= TOLD), reverse=True)
    if not told:
        return f"Neither outcomes of neighbours nor features carry a prediction here{scores}."
    (share, first), *others = [(share, effect_name(name)) for share, name in told]
    verb = "carries" if first == effect_name("graph field") else "carry"
    rest = [f"{name} ({100 * share:.0f} %)" for share, name in others]
    then = f", then {joined(rest)}" if rest else ""
    return f"{first[0].upper()}{first[1:]} {verb} the prediction ({100 * share:.0f} % of the variation){then}{scores}."


def _sentence(outcomes: float, features: float, both: float) -> str:
    alone = _alone(outcomes, features)
    scores = f"{alone}, both {both:z.2f}"
    if max(outcomes, features, both) < CLEAR:
        return f"Neither outcomes of neighbours nor features carry a prediction here: {scores}."
    if both >= max(outcomes, features) + CLEAR:
        return f"Both carry the prediction: {alone}, together {both:z.2f}."
    gain = "little" if round(both, 2) > round(max(outcomes, features), 2) else "nothing"
    if outcomes >= features + CLEAR:
        return f"Outcomes of neighbours carry the prediction and features add {gain} to them: {scores}."
    if features >= outcomes + CLEAR:
        return f"Features carry the prediction and outcomes of neighbours add {gain} to them: {scores}."
    return f"Outcomes of neighbours and features say the same here, either is enough: {scores}."
