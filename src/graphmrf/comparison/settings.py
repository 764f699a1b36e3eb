"""How methods are tuned, what they can be asked for, and between which bounds values lie."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from inspect import signature
from typing import Any

import numpy as np

from graphmrf._typing import Bools, Floats
from graphmrf.comparison.held_out import R2, Score
from graphmrf.errors import InvalidInputError
from graphmrf.estimators.methods import METHODS, Method, ObservedRegressor
from graphmrf.estimators.rows import COUNTED, NUMBERS, LongTable
from graphmrf.field.likelihoods import LIKELIHOODS

SUGGESTIONS = "suggested labels"  # which classes have, too
EXCEEDANCE = "the probability of exceeding a value"

CAPABILITIES = {
    "a transform of the outcome": ("__init__", "transform"),
    "conformal intervals": ("predict_interval", "interval"),
    "totals of groups": ("predict_total", ""),
    "a learning curve": ("expected_learning_curve", ""),
    EXCEEDANCE: ("probability", "above"),
    SUGGESTIONS: ("suggest", ""),
}
"""What may be asked of a method for numbers: the method that its estimator must have, and a parameter of that."""


def offers(model: Any, method: str, parameter: str = "") -> bool:
    """Return whether an estimator has a method, with a parameter if one is named.

    Examples
    --------
    >>> from graphmrf.estimators import LabelPropagation
    >>> offers(LabelPropagation(), "suggest"), offers(LabelPropagation(), "predict", "return_std")
    (False, True)
    """
    found = getattr(model, method, None)
    return found is not None and (not parameter or parameter in signature(found).parameters)


def is_conformal(model: Any) -> bool:
    """Return whether an estimator has conformal intervals."""
    return offers(model, *CAPABILITIES["conformal intervals"])


AUTO = "auto"  # the method that is several, of which one is chosen
TRANSFORMS = ("identity", "log", "box-cox", "yeo-johnson", "auto")
_FIELD = "field"
LARGEST_ALPHA = 1 - 1e-8  # largest level that is solved to a residual of 1e-8 in float64 on all kinds of graphs


@dataclass(frozen=True)
class Bounds:
    """Bounds of the values: least and most, None for no bound, and whether they are whole numbers.

    Examples
    --------
    >>> Bounds(at_least=0).clipped(np.array([-1.0, 2.0]))
    array([0., 2.])
    >>> Bounds(integer=True).interval(np.array([2.4]), np.array([0.6]), np.array([4.2]))
    (array([2.]), array([1.]), array([4.]))
    """

    at_least: float | None = None
    at_most: float | None = None
    integer: bool = False

    def __post_init__(self) -> None:
        for name, bound in (("at_least", self.at_least), ("at_most", self.at_most)):
            if bound is not None and not np.isfinite(bound):
                raise InvalidInputError(f"{name} must be a finite number, got {bound}; leave it out for no bound")
        if self.at_least is not None and self.at_most is not None and self.at_least >= self.at_most:
            raise InvalidInputError(f"at_least {self.at_least:g} must be below at_most {self.at_most:g}")

    def clipped(self, values: Floats) -> Floats:
        """Return values within the bounds."""
        unbounded = self.at_least is None and self.at_most is None
        return values if unbounded else np.clip(values, self.at_least, self.at_most)

    def interval(self, value: Floats, lower: Floats, upper: Floats) -> tuple[Floats, Floats, Floats]:
        """Return predictions and the ends of their intervals within the bounds.

        Of whole numbers an interval has the same ones as before, its ends being the first and the last of them; where
        it has none, the prediction itself.
        """
        value, lower, upper = (self.clipped(each) for each in (value, lower, upper))
        if not self.integer:
            return value, lower, upper
        value = np.round(value)
        return value, np.minimum(np.ceil(lower), value), np.maximum(np.floor(upper), value)

    def problem(self, y: Floats) -> str:
        """Return what is wrong with known values, and the remedy; empty for nothing."""
        broken = y[~np.isnan(y) & (np.round(y) != y)] if self.integer else y[:0]
        if broken.size:
            return f"integer is not met by a known value, {broken[0]:g}; round it, or leave the option out"
        stray = y[~np.isnan(y) & (self.clipped(y) != y)]
        if not stray.size:
            return ""
        below = self.at_least is not None and stray[0] < self.at_least
        broken_bound = f"at_least {self.at_least:g}" if below else f"at_most {self.at_most:g}"
        return f"{broken_bound} is not met by a known value, {stray[0]:g}; correct the value or the bound"


@dataclass(frozen=True)
class Settings:
    """How methods are tuned, and what is asked of them.

    Examples
    --------
    >>> Settings(transform="log").wanted
    ('a transform of the outcome',)
    """

    # names of `estimators.methods.METHODS`, or "auto" for those that suit the data
    methods: tuple[str, ...] = (AUTO,)
    alpha: float | None = None  # smoothing level; None is by cross-validation
    # cv, random_state: folds of the cross-validation, and the seed of these and of random probes
    cv: int = 5
    random_state: int = 0
    transform: str = "identity"  # transform of the outcome
    conformal: bool = False  # whether intervals are conformal
    # further capabilities, of `CAPABILITIES`, without which a method is not used
    needs: tuple[str, ...] = ()
    level: float = 0.9  # probability of the intervals
    bounds: Bounds = Bounds()  # bounds of the values
    # distribution of an observation for the field, of `estimators.rows.NUMBERS` or `COUNTED`
    likelihood: str = "auto"
    # (n,): `exposure`, `trials`, `std` or `weight` of every node, see `GraphRegressor.fit`
    known: Mapping[str, Floats] = field(default_factory=dict, compare=False)
    # all observations where nodes have several; see `ObservedRegressor`
    rows: LongTable | None = field(default=None, compare=False)
    # names of the classes from the lowest to the highest, for the field; empty where they have no order
    order: tuple[str, ...] = ()
    # whether Ctrl-C during the fit of the field goes on with the methods that are fitted, if there are any
    stoppable: bool = False

    def __post_init__(self) -> None:
        names = (*NUMBERS, *COUNTED)
        if self.likelihood not in names:
            raise InvalidInputError(f"likelihood must be one of {', '.join(names)}, got '{self.likelihood}'")
        if self.likelihood != AUTO and self.methods != (_FIELD,):
            raise InvalidInputError(
                f"likelihood {self.likelihood} is for method {_FIELD}, got {', '.join(self.methods)}; drop one of them"
            )
        self._check_bounds()
        if not 0.5 < (1 + self.level) / 2 < 1:  # the quantile of its upper end, rounded
            close = f", too close to {self.level:.0f} to compute with" if 0 < self.level < 1 else ""
            raise InvalidInputError(f"interval must be between 0 and 1, got {self.level}{close}; 0.9 means 90 %")
        if self.cv < 2:
            raise InvalidInputError(f"cv must be at least 2, got {self.cv}")
        if self.transform not in TRANSFORMS:
            raise InvalidInputError(f"transform must be one of {', '.join(TRANSFORMS)}, got '{self.transform}'")
        option = "transform" if self.transform != "identity" else "conformal" if self.conformal else ""
        if option and not self.plain:
            raise InvalidInputError(
                f"{option} is for numbers, not counts or shares, without standard errors or weights, "
                f"got {', '.join(self.known) or ('repeated' if self.rows else self.likelihood)}; drop one of them"
            )
        if self.alpha is not None:
            self._check_alpha(self.alpha)

    def _check_bounds(self) -> None:
        """Raise where a likelihood of counts or successes implies the bounds of the values."""
        asked = next(
            (name for name, bound in vars(self.bounds).items() if bound is not None and bound is not False), None
        )
        if asked and self.likelihood in COUNTED:
            upper = " and at most the trials" if self.likelihood == "binomial" else ""
            raise InvalidInputError(
                f"{asked} is implied by likelihood {self.likelihood}, whose observations are whole numbers, at least 0"
                f"{upper}; leave it out"
            )

    def _check_alpha(self, alpha: float) -> None:
        if not 0 <= alpha <= LARGEST_ALPHA:
            close = ", too close to 1 to compute with" if alpha < 1 else ""
            raise InvalidInputError(
                f"alpha must be in [0, 1), got {alpha}{close}; 0 ignores the edges, 0.99 smooths strongly"
            )
        (name, *others) = self.methods
        if not others and name in METHODS and not METHODS[name].has_level:
            raise InvalidInputError(f"alpha has no effect on method {name}; drop one of them")

    @property
    def plain(self) -> bool:
        """Whether values are numbers of which nothing further is known, neither counts nor measured with errors."""
        return self.likelihood in NUMBERS and not self.known and self.rows is None

    @property
    def wanted(self) -> tuple[str, ...]:
        """All capabilities that a method for numbers must have."""
        own = {"a transform of the outcome": self.transform != "identity", "conformal intervals": self.conformal}
        return (*(name for name, on in own.items() if on), *self.needs)

    @property
    def unsuited_to_classes(self) -> tuple[str, ...]:
        """What was asked for that classes have not."""
        wanted = (each for each in self.wanted if each != SUGGESTIONS)
        return (*wanted, *((f"likelihoods such as {self.likelihood}",) if self.likelihood != AUTO else ()))

    @property
    def keeps_observations(self) -> bool:
        """Whether a known value is what is predicted there: not where it has an error, or a node has several."""
        return "std" not in self.known and self.rows is None

    def scoring(self, observed: Bools) -> Score:
        """Return how predictions of known values are scored."""
        if self.likelihood in NUMBERS:
            return R2
        size = self.known.get("exposure", self.known.get("trials", np.ones(observed.size)))
        return Score("explained deviance", LIKELIHOODS[self.likelihood], size[observed])

    def make(self, method: Method, *, transform: str | None = None) -> Any:
        """Return a new estimator of a method."""
        if not self.plain:
            return ObservedRegressor(self.likelihood, self.known, rows=self.rows, random_state=self.random_state)
        options = {"cv": self.cv, "random_state": self.random_state, "transform": transform or self.transform}
        options |= {"likelihood": self.likelihood}
        return method.make(alpha="cv" if self.alpha is None else self.alpha, **options)  # type: ignore[arg-type]
