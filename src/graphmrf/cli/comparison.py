"""Methods side by side on the same folds: fitted, scored, the best of them, and what carries its prediction."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from graphmrf._typing import Floats, Ints
from graphmrf.cli.distances import HeldOut
from graphmrf.cli.options import AUTO
from graphmrf.datasets import Features
from graphmrf.datasets.columns import FILLED
from graphmrf.errors import ConvergenceError, InvalidInputError
from graphmrf.estimators.error_bars import interval_width
from graphmrf.estimators.inputs import read_outcome
from graphmrf.estimators.methods import METHODS, Method
from graphmrf.graph import Graph
from graphmrf.report.rows import effect_name
from graphmrf.selection import AlphaSearch, MatchedFolds
from graphmrf.text import joined, number

FIELD = "field"

CLEAR = 0.02
"""A difference of R² below this is no difference, by eye: folds of small data vary by more."""
MARGIN = 0.01
"""The least gain in R² (for classes: accuracy) for which the field is left, by eye: half of `CLEAR`, for the field also
reports shares and has intervals of its own."""
SURE = 2.0
"""Standard errors that a gain must be away from 0: by chance one rival in 40 has that, one of four at most in 10 cases.
A convention, not tuned. On small real areas (``python -m benchmarks auto``) no rival reaches it, so doubling changes
nothing there; halved, the field was left in 9 of 137 samples, 7 times for something worse."""
ENOUGH = 30
"""Labels below which the field is never left, a convention: the standard error is itself uncertain by 1 / sqrt(2 * 30),
an eighth, for normal errors and by far more for others. With `SURE` at 2 no sample of that benchmark depends on it."""
TOLD = 0.005
"""Shares below this are not spoken of: they round to 0 %."""


def choose(name: str, *, n_features: int) -> tuple[Method, ...]:
    """Return the methods to fit: the one named, or for ``auto`` the paper's own and the field, where the data allow.

    Examples
    --------
    >>> [method.key for method in choose("auto", n_features=0)]
    ['lp', 'field']
    """
    if name == AUTO:
        tried = [method for method in METHODS.values() if method.automatic]
        return tuple(method for method in tried if n_features or not method.needs_features)
    if name not in METHODS:
        raise InvalidInputError(f"--method must be one of {', '.join([*METHODS, AUTO])}, got '{name}'")
    if METHODS[name].needs_features and not n_features:
        raise InvalidInputError(f"method {name} needs features and no column is left for them; use --method lp")
    return (METHODS[name],)


@dataclass(frozen=True, eq=False)
class Fit:
    """One method fitted to one target.

    Parameters
    ----------
    method : Method
        The method.
    estimator : estimator
        Fitted.
    score : float
        Accuracy at held-out labels: R², or for classes the share of right ones.
    losses : array of shape (n_labelled,)
        Loss at each held-out label, whose mean is 1 - R²: squared errors in units of the variance; for classes 1 where
        the class is wrong, else 0. A smoothing level is chosen without the label's fold, so that having tried many is
        no advantage: 1 minus the mean is then a little below `score`.
    error : float
        Standard error of the score.
    alpha : float or None
        Smoothing level in use; None for a method without one, or with one for each class.
    scores : dict of arrays
        R² at every level tried, as in ``cv_results_``; empty for classes.
    note : str
        What there is to say about the fit.
    held_out : HeldOut or None
        Known values predicted without their fold; None for classes.
    regions : integer array of shape (n_labelled,), or None
        Region of each held-out label where folds are regions, whose losses are dependent; None for random folds.
    """

    method: Method
    estimator: Any
    score: float
    losses: Floats
    error: float
    alpha: float | None
    scores: dict[str, Floats]
    note: str = ""
    held_out: HeldOut | None = None
    regions: Ints | None = None

    def interval_width(self, level: float) -> float:
        """Return half the width of an interval in standard deviations; normal where degrees of freedom are not told."""
        return interval_width(level, getattr(self.estimator, "dof_", 0.0))

    @property
    def fold_r2(self) -> tuple[float, ...]:
        """R² of every fold at that level."""
        return tuple(float(score) for score in self.scores["fold_r2"][_row(self.scores, self.alpha)])

    @property
    def out_of_fold(self) -> Floats:
        """Prediction (n_labelled,) of every known number without its fold, at that level."""
        return np.asarray(self.scores["out_of_fold"][_row(self.scores, self.alpha)])

    @property
    def shares(self) -> dict[str, float]:
        """Share of the variance of every kind of effect, and of noise; empty for a method that does not tell."""
        shares = getattr(self.estimator, "shares_", None)
        return {} if shares is None else {str(name): float(share) for name, share in shares.items()}


def fit_all(
    methods: Sequence[Method], fit: Callable[[Method], Fit], advance: Callable[[], None]
) -> tuple[tuple[Fit, ...], tuple[str, ...]]:
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


def fit_numbers(method: Method, graph: Graph, made: Features, y: Floats, **options: Any) -> Fit:
    """Return a method fitted to numbers and scored; the same seed gives all methods the same folds."""
    estimator = method.make(**options)
    X, note = fit_estimator(estimator, method, graph, made, y)
    outcome = read_outcome(y, graph.n_nodes)
    matched = outcome.matched_folds(graph, options["cv"], options["random_state"])
    held_out = HeldOut(estimator, graph, X, outcome, matched)
    scores: dict[str, Floats] | None = getattr(estimator, "cv_results_", None)
    if not scores or "alpha" not in scores:
        scores = _cross_validated(held_out, options["alpha"])
    alpha = getattr(estimator, "alpha_", None)
    losses, error = _losses(scores["out_of_fold"], outcome.y[outcome.known], matched)
    score = float(scores["mean_r2"][_row(scores, alpha)])
    return Fit(method, estimator, score, losses, error, alpha, scores, note, held_out, matched.regions)


def fit_estimator(
    estimator: Any, method: Method, graph: Graph, made: Features, y: Any
) -> tuple[pd.DataFrame | None, str]:
    """Fit, and return the features that were used, with a line where missing cells are too many for the method."""
    if not method.features or not made.X.shape[1]:
        estimator.fit(graph, None, y)
        return None, ""
    features = made.unfilled if method.missing else made.X
    try:
        estimator.fit(graph, features, y)
    except InvalidInputError as error:
        if not features.isna().to_numpy().any():
            raise
        estimator.fit(graph, made.X, y)
        return made.X, f"{method.key} has missing cells filled with the column mean, too: {error}"
    return features, ""


def _cross_validated(held_out: HeldOut, alpha: Any) -> dict[str, Floats]:
    """Score an estimator that had no level to choose, on the folds that it would use for that."""
    outcome, matched = held_out.outcome, held_out.folds
    level = 0.0 if alpha == "cv" else alpha
    known = outcome.y[outcome.known]
    return AlphaSearch.score((level,), held_out.mean[None], known, matched.folds, matched.weights).table()


def _losses(predictions: Floats, known: Floats, matched: MatchedFolds) -> tuple[Floats, float]:
    """Return the losses at held-out labels from predictions (n_levels, n_labelled), and the standard error of R².

    Losses are weighted as their folds are, so that their mean is that at the distances of the nodes to predict.
    """
    weights = matched.weights
    squares = weights * (known - np.average(known, weights=weights)) ** 2
    losses = nested_choice(weights * (predictions - known) ** 2 / squares.mean(), matched.folds)
    differences = losses - losses.mean() * squares / squares.mean()
    return losses, standard_error(differences, matched.n_folds, matched.regions)


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


def standard_error(differences: Floats, n_folds: int, regions: Ints | None = None) -> float:
    r"""Return the standard error of the mean of cross-validated differences (n,), which share training data.

    It is the corrected resampled one of Nadeau and Bengio (2003): with a variance :math:`s^2` of the differences

    .. math:: \frac{s^2 K}{n} \left(\frac{1}{K} + \frac{1}{K - 1}\right).

    Where folds are regions, labels of a region count as one observation: :math:`s^2` is n times the variance of the
    mean by the sums over regions.

    Examples
    --------
    >>> round(standard_error(np.array([1.0, -1.0, 1.0, -1.0]), n_folds=2), 6)
    1.0
    """
    if differences.size < 2:
        return float("nan")
    n = differences.size
    regions = np.arange(n) if regions is None else regions
    sums = np.bincount(regions, weights=differences - differences.mean())
    variance = np.sum(sums**2) / n * sums.size / (sums.size - 1)
    return float(np.sqrt(variance * (1 + n_folds / (n_folds - 1)) / n))


def _row(scores: dict[str, Floats], alpha: float | None) -> int:
    """Return the position of the level in use among those tried."""
    return int(np.argmin(np.abs(scores["alpha"] - (alpha or 0.0))))


def best(fits: Sequence[Fit], *, folds: int, asked: bool = False) -> Fit:
    """Return the field, unless it was not asked for and another is surely more accurate.

    That is one whose `gain` over the field is above `MARGIN` and `SURE` standard errors, from `ENOUGH` labels; of
    several the one with the most standard errors. Without a field it is the most accurate, of equals the first, which
    is the simplest.

    Parameters
    ----------
    fits : sequence of Fit
        All on the same folds.
    folds : int
        Number of folds.
    asked : bool
        Whether the field is asked for.
    """
    leader = max(fits, key=_ranked)
    field = next((fit for fit in fits if fit.method.key == FIELD), None)
    if field is None or not np.isfinite(field.losses).all():
        return leader
    if asked or field.losses.size < ENOUGH:
        return field
    return max(fits, key=lambda fit: 0.0 if fit is field else _surely(*gain(fit, field, folds=folds)))


def gain(fit: Fit, field: Fit, *, folds: int) -> tuple[float, float]:
    """Return by how much R² of a fit is above that of the field at the same held-out labels, and its standard error."""
    difference = field.losses - fit.losses
    return float(difference.mean()), standard_error(difference, min(folds, difference.size), field.regions)


def _surely(difference: float, error: float) -> float:
    """Return a gain in standard errors if it is a sure one, else -1."""
    return difference / max(error, 1e-300) if difference > max(MARGIN, SURE * error) else -1.0


def passed_over(fits: Sequence[Fit], chosen: Fit, *, folds: int, score: str = "R²") -> str:
    """Return one line on a field that was fitted and not chosen; empty otherwise."""
    field = next((fit for fit in fits if fit.method.key == FIELD), chosen)
    return "" if field is chosen else f"{_ahead(chosen, field, folds, score)}, so {chosen.method.key} is used"


def preferred(fits: Sequence[Fit], chosen: Fit, *, folds: int, asked: str) -> str:
    """Return one line on a field that was chosen because an option asks for it, where another is surely better."""
    other = best(fits, folds=folds)
    return "" if other is chosen else f"{_ahead(other, chosen, folds, 'R²')}, which is used because {asked} asks for it"


def _ahead(fit: Fit, field: Fit, folds: int, score: str) -> str:
    difference, error = gain(fit, field, folds=folds)
    by = f"by {number(difference, 3)} ± {number(error, 3)} (standard error)"
    return f"at held-out values {fit.method.key} has a higher {score} than {FIELD}, {by}"


def _ranked(fit: Fit) -> float:
    return -np.inf if np.isnan(fit.score) else fit.score


def carrier(fits: Sequence[Fit], chosen: Fit) -> str:
    """Return one sentence on what carries the prediction: outcomes of neighbours, features, or both."""
    if len(fits) == 1 and chosen.shares:
        return _shared(chosen.shares, "")
    if not any(fit.method.needs_features for fit in fits):
        return f"Without features only outcomes of neighbours can carry the prediction: R² {number(chosen.score, 2)}."
    if len({(fit.method.labels, fit.method.features) for fit in fits}) < 3:  # one was left out
        return _shared(chosen.shares, "") if chosen.shares else ""
    kinds = ((True, False), (False, True), (True, True))
    outcomes, features, both = (_accuracy(fits, chosen, labels=labels, features=X) for labels, X in kinds)
    if not chosen.shares:
        return _sentence(outcomes, features, both)
    alone = _alone(outcomes, features, linear="linear effects of ")
    return _shared(chosen.shares, f": {alone}, all together {number(both, 2)}")


def _accuracy(fits: Sequence[Fit], chosen: Fit, *, labels: bool, features: bool) -> float:
    """Return the R² of the most accurate method with these sources; that of the chosen one, if it has them."""
    same = [fit for fit in fits if (fit.method.labels, fit.method.features) == (labels, features)]
    return chosen.score if chosen in same else max(fit.score for fit in same)


def _alone(outcomes: float, features: float, *, linear: str = "") -> str:
    neighbours = f"outcomes of neighbours alone reach R² {number(outcomes, 2)}"
    return f"{neighbours}, {linear}features alone {number(features, 2)}"


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
    scores = f"{alone}, both {number(both, 2)}"
    if max(outcomes, features, both) < CLEAR:
        return f"Neither outcomes of neighbours nor features carry a prediction here: {scores}."
    if both >= max(outcomes, features) + CLEAR:
        return f"Both carry the prediction: {alone}, together {number(both, 2)}."
    gain = "little" if round(both, 2) > round(max(outcomes, features), 2) else "nothing"
    if outcomes >= features + CLEAR:
        return f"Outcomes of neighbours carry the prediction and features add {gain} to them: {scores}."
    if features >= outcomes + CLEAR:
        return f"Features carry the prediction and outcomes of neighbours add {gain} to them: {scores}."
    return f"Outcomes of neighbours and features say the same here, either is enough: {scores}."


def imputation_note(note: str, methods: Sequence[Method]) -> str:
    """Return a note on the features, which says of missing cells how every method fills them."""
    if not note.startswith(FILLED) or not any(method.missing for method in methods):
        return note
    jointly = "filled missing cells with what the other features and the neighbours say"
    others = "" if all(method.missing for method in methods) else f" ({FIELD}; other methods: with the column mean)"
    return note.replace(FILLED, jointly + others, 1)
