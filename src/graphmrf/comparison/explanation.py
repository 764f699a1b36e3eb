"""What carries a prediction: shares of the variance, effects of features, dependence curves, and a learning curve."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from graphmrf._typing import Floats, Ints
from graphmrf.comparison.candidates import FittedMethod
from graphmrf.comparison.settings import offers
from graphmrf.errors import InvalidInputError
from graphmrf.estimators.inputs import Categories
from graphmrf.field import EFFECTS
from graphmrf.text import joined, number

ROUNDS_TO_NOTHING = 0.005  # shares below this round to 0 %: they are not named, and of nonlinear effects has no curves
SAME = 0.02  # A difference of R² below this is no difference: folds of small data vary by more
MOST_EXPLAINED = 2000  # predicted nodes up to which labels with most weight are found, which takes some seconds
BAND = 1.645  # standard errors of a band of 90 %


@dataclass(frozen=True, eq=False)
class Effects:
    """Linear coefficients by feature.

    Examples
    --------
    >>> Effects(("age", "rooms"), np.array([0.3, 1.0]), scales=np.array([10.0, 0.5])).standardised
    array([3. , 0.5])
    """

    names: Sequence[str]  # one name per feature
    values: Floats  # (p,): coefficients in the units of the outcome and the feature
    scales: Floats  # (p,): standard deviations of the features: times these, coefficients compare
    transform: str = ""  # the transform of the outcome whose units these are; empty for the outcome itself
    # constant term; of methods that smooth features, the prediction where all features are average
    intercept: float | None = None

    def __post_init__(self) -> None:
        wanted, found = (len(self.names),), (np.shape(self.values), np.shape(self.scales))
        if found != (wanted, wanted):
            raise InvalidInputError(
                f"effects need a value and a scale for each of {wanted[0]} names, got shapes {found}; pass coef_"
            )

    @property
    def standardised(self) -> Floats:
        """Coefficients for a change by one standard deviation."""
        return self.values * self.scales

    @property
    def order(self) -> Ints:
        """Positions of the features, the largest effect of a standard deviation first."""
        return np.argsort(-np.abs(self.standardised), kind="stable")


@dataclass(frozen=True, eq=False)
class Explanation:
    """What the predictions of a fitted model are based on, as far as the model reports it.

    Attributes
    ----------
    shares : mapping of str to float
        Share of the variance by kind of effect, noise included.
    effects : Effects or None
        Linear coefficients.
    dependence : DataFrame or None
        Mean prediction against one feature at a time: `feature`, `x`, `mean`.
    learning : DataFrame or None
        Expected accuracy with more labels: `n_labels`, `expected_r2`, `lower`, `upper`.
    loo : DataFrame or None
        Leave-one-out predictions: `node`, `label`, `prediction`, `std`.
    strongest : DataFrame or None
        Labels with the largest weights in the prediction of a node: `node`, `labelled`, `weight`.
    """

    shares: Mapping[str, float] = field(default_factory=dict)
    effects: Effects | None = None
    dependence: pd.DataFrame | None = None
    learning: pd.DataFrame | None = None
    loo: pd.DataFrame | None = None
    strongest: pd.DataFrame | None = None


def explain(model: Any, X: pd.DataFrame | None = None) -> Explanation:
    """Return shares, effects, dependence, learning curve and leave-one-out predictions; None for those not available.

    Parameters
    ----------
    model : estimator
        Any fitted estimator; what it offers is found by its methods, see `offers`.
    X : DataFrame of shape (n, p), or None
        The features of the fit; without them there are no effects of features.

    Raises
    ------
    InvalidInputError
        If `X` is no DataFrame.

    Examples
    --------
    >>> import graphmrf as gm
    >>> ring = gm.Graph.from_edges(np.arange(40), (np.arange(40) + 1) % 40)
    >>> X = pd.DataFrame({"age": np.cos(np.arange(40.0))})
    >>> y = pd.Series(2.0 * X["age"]).where(np.arange(40) % 3 > 0)
    >>> found = explain(gm.LinearRegression().fit(ring, X, y), X)
    >>> found.effects.values.round(6), found.shares, found.learning
    (array([2.]), {}, None)
    """
    if X is not None and not isinstance(X, pd.DataFrame):
        raise InvalidInputError(
            f"X must be a DataFrame of features, got {type(X).__name__}; for one node use model.explain(node)"
        )
    found = explain_model(model, X)
    learning = model.expected_learning_curve() if offers(model, "expected_learning_curve") else None
    dependence = None if X is None else dependence_curves(model, X, found.shares)
    return Explanation(found.shares, found.effects, dependence, learning, getattr(model, "loo_", None))


def explain_model(model: Any, X: pd.DataFrame | None) -> Explanation:
    """Return shares and effects only, which are cheap."""
    shares = getattr(model, "shares_", None)
    named = {} if shares is None else {str(name): float(share) for name, share in shares.items()}
    return Explanation(named, None if X is None else _effects(model, X))


def _effects(model: Any, X: pd.DataFrame) -> Effects | None:
    """Return the coefficients of a model, or of the base whose residuals it propagates."""
    linear = getattr(model, "base_", model)
    coef = getattr(linear, "coef_", None)
    if not isinstance(coef, pd.Series) or not len(coef):
        return None
    X = Categories.of(X).dummies(X)
    scales = np.array([float(np.nanstd(X[name].to_numpy(float))) for name in coef.index])
    values = coef.to_numpy(dtype=np.float64)
    intercept = getattr(linear, "intercept_", None)
    return Effects(tuple(map(str, coef.index)), values, scales, transform_name(model), intercept)


def strongest_labels(model: Any, nodes: Ints) -> pd.DataFrame | None:
    """Return the three labels with the largest weights in each prediction; None where they are not cheap or nodes many.

    They are cheap for a dense field of numbers.
    """
    able = offers(model, "strongest_labels") and model.keeps_labels and model.solver_ == "dense"
    found: pd.DataFrame | None = model.strongest_labels(nodes) if able and 0 < nodes.size <= MOST_EXPLAINED else None
    return found


def transform_name(model: Any) -> str:
    """Return the transform of the outcome that a model uses; empty for none."""
    power = getattr(getattr(model, "transform_", None), "power", None)
    if power is None:
        return ""
    if not power.signed and power.exponent == 0:
        return "log"
    return f"{'yeo-johnson' if power.signed else 'box-cox'} with exponent {number(power.exponent, 2)}"


def dependence_curves(
    model: Any, X: pd.DataFrame, shares: Mapping[str, float], *, most: int = 12, points: int = 15
) -> pd.DataFrame | None:
    """Return the mean prediction at some points of each numeric feature; None if all effects are linear."""
    bent = [shares[name] for name in ("nonlinear effects", "learned effects") if name in shares] or [1.0]
    if not offers(model, "partial_dependence") or sum(bent) < ROUNDS_TO_NOTHING:
        return None
    rows, categories = [], Categories.of(X).levels
    for name in [name for name in X.columns if name not in categories and X[name].nunique() > 2][:most]:
        low, high = np.nanquantile(X[name].to_numpy(float), [0.02, 0.98])
        x = np.linspace(low, high, points)
        rows.append(pd.DataFrame({"feature": str(name), "x": x, "mean": model.partial_dependence(name, x)}))
    return pd.concat(rows, ignore_index=True) if rows else None


def learning_curve(fit: FittedMethod) -> pd.DataFrame | None:
    """Return the score to expect with more labels, which starts at that measured on held-out labels; None without one.

    The model gives the factor by which more labels reduce the unexplained variance; its start is measured, so
    that there is one number for the accuracy now. The band is the model's, and no narrower than that of the R² now.

    Examples
    --------
    >>> class Model:
    ...     def expected_learning_curve(self):
    ...         return pd.DataFrame({"n_labels": [9, 18], "expected_r2": [0.6, 0.8], "lower": [0.5, 0.7], "upper": 0.9})
    >>> from graphmrf.estimators.methods import METHODS
    >>> learning_curve(FittedMethod(METHODS["field"], 0.5, 0.1, model=Model())).round(3)
       n_labels  expected_r2  lower  upper
    0         9         0.50  0.336  0.875
    1        18         0.75  0.625  0.875
    """
    if not offers(fit.model, "expected_learning_curve"):
        return None
    curve: pd.DataFrame = fit.model.expected_learning_curve()
    now = float(curve["expected_r2"].iloc[0])
    found = {name: anchored(curve[name].to_numpy(float), now, fit.score) for name in ("expected_r2", "lower", "upper")}
    r2, error = found["expected_r2"], BAND * np.nan_to_num(fit.error)
    own = error * (1.0 - r2) / (1.0 - r2[0]) if r2[0] < 1.0 else np.zeros(r2.size)
    lower, upper = np.minimum(found["lower"], r2 - own), np.minimum(np.maximum(found["upper"], r2 + own), 1.0)
    return curve.assign(expected_r2=r2, lower=lower, upper=upper)


def anchored(r2: Floats, now: float, measured: float) -> Floats:
    """Return expected R², its unexplained part scaled so that it is `measured` where it was expected to be `now`."""
    return 1.0 - (1.0 - r2) * (1.0 - measured) / (1.0 - now) if np.isfinite(measured) and now < 1.0 else r2


def suggested_labels(fit: FittedMethod, k: int) -> pd.DataFrame:
    """Return the nodes whose labels would help most, by position, with the R² to expect then; see `learning_curve`.

    Where there is none the table is empty, and ``attrs["reason"]`` gives the reason. ``attrs["now"]`` is the R² now, or
    the explained deviance, which ``attrs["score"]`` names.
    """
    found = fit.model.suggest(k).reset_index(drop=True)
    now = float(fit.model.expected_r2()) if len(found) else float("nan")
    r2 = anchored(found["expected_r2"].to_numpy(float), now, fit.score)
    attrs = {"reason": str(found.attrs.get("reason", "")), "now": fit.score if np.isfinite(fit.score) else now}
    attrs["score"] = fit.scoring.name
    found = pd.DataFrame({"node": found["node"], "std": found["std"], "expected_r2": r2})
    found.attrs.update(attrs)
    return found


def labels_needed(curve: pd.DataFrame, wanted: float) -> str:
    """Return how many labels an R² takes, with a range from the band of the curve.

    Examples
    --------
    >>> curve = pd.DataFrame({"n_labels": [100, 200, 400], "expected_r2": [0.6, 0.7, 0.8]})
    >>> labels_needed(curve.assign(lower=curve["expected_r2"] - 0.05, upper=curve["expected_r2"] + 0.05), 0.75)
    'R² 0.75 takes about 283 labels (200 to 400)'
    >>> labels_needed(curve.assign(lower=0.0, upper=0.8), 0.9)
    'R² 0.9 is not reached with 400 labels: expect 0.80'
    >>> labels_needed(curve.assign(lower=0.5, upper=1.0), 0.9)
    'R² 0.9 may be reached with 400 labels, but expect 0.80, between 0.50 and 1.00'
    """
    few, middle, many = (_crossing(curve, name, wanted) for name in ("upper", "expected_r2", "lower"))
    last = curve.iloc[-1]
    most, expected = int(last["n_labels"]), number(last["expected_r2"], 2)
    if middle is None and few is None:
        return f"R² {wanted:g} is not reached with {most} labels: expect {expected}"
    if middle is None:
        band = f"between {number(last['lower'], 2)} and {number(last['upper'], 2)}"
        return f"R² {wanted:g} may be reached with {most} labels, but expect {expected}, {band}"
    if middle <= curve["n_labels"].iloc[0]:
        return f"R² {wanted:g} is expected with the {int(curve['n_labels'].iloc[0])} labels there are"
    return f"R² {wanted:g} takes about {middle} labels ({few} to {f'more than {most}' if many is None else many})"


def _crossing(curve: pd.DataFrame, name: str, wanted: float) -> int | None:
    """Return the labels at which a column of the curve reaches a value, by interpolation of their logarithm."""
    r2, labels = np.maximum.accumulate(curve[name].to_numpy()), np.log(curve["n_labels"].to_numpy())
    if r2[-1] < wanted:
        return None
    k = int(np.argmax(r2 >= wanted))
    if not k:
        return int(curve["n_labels"].iloc[0])
    share = (wanted - r2[k - 1]) / (r2[k] - r2[k - 1])
    return round(float(np.exp(labels[k - 1] + share * (labels[k] - labels[k - 1]))))


def effect_name(key: str) -> str:
    """Name of a kind of effect in a sentence; an unknown key is its own name.

    Examples
    --------
    >>> effect_name("graph field"), effect_name("mine")
    ('the graph field', 'mine')
    """
    return EFFECTS.get(key, (key, ""))[0]


def what_carries(fits: Sequence[FittedMethod], chosen: FittedMethod, shares: Mapping[str, float]) -> str:
    """Return one sentence on what carries the prediction: outcomes of neighbours, features, or both."""
    if len(fits) == 1 and shares:
        return _shared(shares, "")
    if not any(fit.method.needs_features for fit in fits):
        return f"Without features only outcomes of neighbours can carry the prediction: R² {number(chosen.score, 2)}."
    if len({(fit.method.labels, fit.method.features) for fit in fits}) < 3:  # one was left out
        return _shared(shares, "") if shares else ""
    kinds = ((True, False), (False, True), (True, True))
    outcomes, features, both = (_accuracy(fits, chosen, labels=labels, features=X) for labels, X in kinds)
    if not shares:
        return _sentence(outcomes, features, both)
    alone = _alone(outcomes, features, linear="linear effects of ")
    return _shared(shares, f": {alone}, all together {number(both, 2)}")


def _accuracy(fits: Sequence[FittedMethod], chosen: FittedMethod, *, labels: bool, features: bool) -> float:
    """Return the R² of the most accurate method with these sources; that of the chosen one, if it has them."""
    same = [fit for fit in fits if (fit.method.labels, fit.method.features) == (labels, features)]
    return chosen.score if chosen in same else max(fit.score for fit in same)


def _alone(outcomes: float, features: float, *, linear: str = "") -> str:
    neighbours = f"outcomes of neighbours alone reach R² {number(outcomes, 2)}"
    return f"{neighbours}, {linear}features alone {number(features, 2)}"


def _shared(shares: Mapping[str, float], scores: str) -> str:
    """Return the sentence on the effects that predict, the largest first, with the scores of simpler methods."""
    named = ((share, name) for name, share in shares.items() if name != "noise" and share >= ROUNDS_TO_NOTHING)
    largest = sorted(named, reverse=True)
    if not largest:
        return f"Neither outcomes of neighbours nor features carry a prediction here{scores}."
    (share, first), *others = [(share, effect_name(name)) for share, name in largest]
    verb = "carries" if first == effect_name("graph field") else "carry"
    rest = [f"{name} ({100 * share:.0f} %)" for share, name in others]
    then = f", then {joined(rest)}" if rest else ""
    return f"{first[0].upper()}{first[1:]} {verb} the prediction ({100 * share:.0f} % of the variation){then}{scores}."


def _sentence(outcomes: float, features: float, both: float) -> str:
    alone = _alone(outcomes, features)
    scores = f"{alone}, both {number(both, 2)}"
    single = max(outcomes, features)
    if max(single, both) < SAME:
        return f"Neither outcomes of neighbours nor features carry a prediction here: {scores}."
    if both >= single + SAME:
        return f"Both carry the prediction: {alone}, together {number(both, 2)}."
    if abs(outcomes - features) < SAME:
        return f"Outcomes of neighbours and features contain the same information here; either is enough: {scores}."
    first, second = (
        ("Outcomes of neighbours", "features") if outcomes > features else ("Features", "outcomes of neighbours")
    )
    gain = "little" if round(both, 2) > round(single, 2) else "nothing"
    return f"{first} carry the prediction and {second} add {gain} to them: {scores}."
