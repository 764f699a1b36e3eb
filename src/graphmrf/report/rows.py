"""What a report shows, as frozen rows with the words for their keys: filled by the caller, checked here."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from graphmrf._typing import Bools, Floats, Ints
from graphmrf.errors import InvalidInputError
from graphmrf.estimators.methods import METHODS
from graphmrf.field import EFFECTS
from graphmrf.graph import Graph


def effect_name(key: str) -> str:
    """Name of a kind of effect in a sentence; an unknown key is its own name.

    Examples
    --------
    >>> effect_name("graph field"), effect_name("mine")
    ('the graph field', 'mine')
    """
    return EFFECTS.get(key, (key, ""))[0]


def method_name(key: str) -> str:
    """Full name of a method; an unknown key is its own name.

    Examples
    --------
    >>> method_name("lp"), method_name("mine")
    ('Label propagation', 'mine')
    """
    return METHODS[key].name if key in METHODS else key


def method_uses(key: str) -> str:
    """What a method predicts from, empty for an unknown key.

    Examples
    --------
    >>> method_uses("lr")
    'own features'
    """
    return METHODS[key].uses if key in METHODS else ""


def _reject(violations: int, message: str) -> None:
    """Raise an error with this message, if there is anything to reject."""
    if violations:
        raise InvalidInputError(message)


@dataclass(frozen=True)
class MethodRow:
    """Cross-validated accuracy of one method.

    Parameters
    ----------
    method : str
        Key of the method (``"lp"``, ``"lr"``, ``"lgc"``, ``"lgc-rp"``) or any other name.
    r2 : float
        Accuracy over all folds, for classes the share of right ones; NaN when it could not be computed.
    fold_r2 : sequence of float
        Accuracy in every fold.
    alpha : float or None
        Smoothing level; None for a method without one.
    error : float
        Standard error of the accuracy; NaN when nobody knows.

    Examples
    --------
    >>> MethodRow("lp", r2=0.6, fold_r2=(0.5, 0.7), alpha=0.9).alpha
    0.9
    """

    method: str
    r2: float
    fold_r2: Sequence[float] = ()
    alpha: float | None = None
    error: float = float("nan")


@dataclass(frozen=True)
class AlphaCurve:
    """Cross-validated accuracy of one method against the smoothing level.

    Parameters
    ----------
    method : str
        Key of the method.
    alphas, mean_r2 : arrays of shape (m,)
        Levels that were tried, and the accuracy at each.
    fold_r2 : array of shape (m, n_folds)
        Accuracy of every fold.
    chosen : float
        The level that was kept.

    Examples
    --------
    >>> AlphaCurve("lp", np.array([0.0, 0.5]), np.array([0.1, 0.4]), np.array([[0.1], [0.4]]), 0.5).chosen
    0.5
    """

    method: str
    alphas: Floats
    mean_r2: Floats
    fold_r2: Floats
    chosen: float

    def __post_init__(self) -> None:
        levels, means, folds = np.shape(self.alphas), np.shape(self.mean_r2), np.shape(self.fold_r2)
        _reject(
            len(levels) != 1 or means != levels or len(folds) != 2 or folds[:1] != levels,
            f"the curve of {self.method!r} must have one row for each level, got {levels} levels, {means} means and "
            f"{folds} folds; pass the arrays of cv_results_",
        )


@dataclass(frozen=True)
class Effects:
    """Linear coefficients by feature.

    Parameters
    ----------
    names : sequence of str
        One name per feature.
    values : array of shape (p,)
        Coefficients in the units of the outcome and the feature.
    scales : array of shape (p,)
        Standard deviations of the features: times these, coefficients compare.
    transform : str
        The transform of the outcome whose units these are; empty for the outcome itself.
    intercept : float or None
        Constant term; of methods that smooth features, the prediction where all features are average.

    Examples
    --------
    >>> Effects(("age", "rooms"), np.array([0.3, 1.0]), scales=np.array([10.0, 0.5])).standardised
    array([3. , 0.5])
    """

    names: Sequence[str]
    values: Floats
    scales: Floats
    transform: str = ""
    intercept: float | None = None

    def __post_init__(self) -> None:
        wanted, found = (len(self.names),), (np.shape(self.values), np.shape(self.scales))
        _reject(
            found != (wanted, wanted),
            f"effects need a value and a scale for each of {wanted[0]} names, got shapes {found}; pass coef_",
        )

    @property
    def standardised(self) -> Floats:
        """Coefficients for a change by one standard deviation."""
        return self.values * self.scales

    @property
    def order(self) -> Ints:
        """Positions of the features, the largest effect of a standard deviation first."""
        return np.argsort(-np.abs(self.standardised), kind="stable")


@dataclass(frozen=True)
class FurtherTable:
    """A table of texts with a title and a sentence, as of groups of nodes, of nodes to ask, or of a learning curve.

    Parameters
    ----------
    title, about : str
        Title, and what the table says.
    heads : sequence of str
        Heads of the columns; one that starts with # is over numbers.
    body : sequence of sequences of str
        The cells of every row.

    Examples
    --------
    >>> FurtherTable("By borough", "Means.", ("borough", "#Mean"), [("Camden", "1.5")]).title
    'By borough'
    """

    title: str
    about: str
    heads: Sequence[str]
    body: Sequence[Sequence[str]]


@dataclass(frozen=True)
class TargetReport:
    """One predicted column and how it was predicted.

    Parameters
    ----------
    name : str
        Name of the column.
    y : array of shape (n,)
        Observed outcomes; NaN marks the nodes that were predicted.
    prediction : array of shape (n,)
        Predicted values; finite wherever `y` is NaN.
    method : str
        The method that made them; its accuracy is the row of `comparison` with this key.
    alpha : float or None
        Its smoothing level.
    std, lower, upper : arrays of shape (n,) or None
        Standard deviation and interval; None when the method has no error bars.
    level : float
        Probability inside the interval, between 0 and 1.
    carries : str
        One sentence saying what carries the prediction.
    shares : mapping of str to float
        Share of the variance by kind of effect, noise included.
    comparison, curves, effects, further
        Further rows; a section without rows is left out.
    held_out : DataFrame or None
        A row for each label: `node`, `out_of_fold` prediction, and its standardised `residual`.
    coverage : DataFrame or None
        Share of the labels `inside` out-of-fold intervals of each `level`.
    dependence : DataFrame or None
        Mean prediction against one feature at a time: `feature`, `x`, `mean`.
    learning : DataFrame or None
        What more labels would bring: `n_labels`, `expected_r2`, `lower`, `upper`.
    measured : sequence of str
        Sentences on how accuracy was measured, without capital and full stop.
    in_regions : bool
        Whether labels were held out in regions; otherwise in random folds.

    Raises
    ------
    InvalidInputError
        If lengths differ, a prediction is missing, a std is negative or `level` is not a probability.

    Examples
    --------
    >>> target = TargetReport("income", np.array([1.0, np.nan]), np.array([1.0, 2.0]), method="lp", alpha=0.9)
    >>> target.observed
    array([ True, False])
    """

    name: str
    y: Floats
    prediction: Floats
    method: str
    alpha: float | None = None
    std: Floats | None = None
    lower: Floats | None = None
    upper: Floats | None = None
    level: float = 0.9
    carries: str = ""
    comparison: Sequence[MethodRow] = ()
    curves: Sequence[AlphaCurve] = ()
    effects: Effects | None = None
    shares: Mapping[str, float] = field(default_factory=dict)
    further: Sequence[FurtherTable] = ()
    held_out: pd.DataFrame | None = None
    coverage: pd.DataFrame | None = None
    dependence: pd.DataFrame | None = None
    learning: pd.DataFrame | None = None
    measured: Sequence[str] = ()
    in_regions: bool = False

    def __post_init__(self) -> None:
        _check_lengths(self)
        _check_values(self)

    @property
    def observed(self) -> Bools:
        """True where the outcome was given."""
        return ~np.isnan(self.y)

    @property
    def values(self) -> Floats:
        """Observed outcomes, and predictions where there are none."""
        return np.where(self.observed, self.y, self.prediction)

    @property
    def chosen(self) -> MethodRow | None:
        """The row of `comparison` for the method in use."""
        return next((row for row in self.comparison if row.method == self.method), None)

    def at_labels(self, column: str) -> Floats:
        """A column of `held_out` at every node, NaN where there is no label."""
        found = np.full(len(self.y), np.nan)
        if self.held_out is not None:
            found[self.held_out["node"].to_numpy()] = self.held_out[column].to_numpy()
        return found


@dataclass(frozen=True)
class ClassReport:
    """One column of predicted classes, and how they were predicted.

    Parameters
    ----------
    name : str
        Name of the column.
    classes : sequence of str
        The k classes, in words.
    codes : array of shape (n,)
        Position of the class of every node, given or predicted.
    observed : array of shape (n,)
        True where the class was given.
    probability : array of shape (n, k)
        Probability of every class.
    method : str
        The method that made them; its accuracy is the row of `comparison` with this key, as a share of right ones.
    alpha : float or None
        Its smoothing level.
    comparison, further
        Further rows; a section without rows is left out.
    left_out : array of shape (m,)
        Class of each observed node, in node order, by a fit without its fold.
    left_out_probability : array of shape (m, k)
        Probabilities of the classes there.

    Raises
    ------
    InvalidInputError
        If lengths differ.

    Examples
    --------
    >>> observed, halves = np.array([True, False]), np.full((2, 2), 0.5)
    >>> one = ClassReport("land", ["sea", "wood"], np.array([0, 1]), observed, halves, "lp", None, [0], halves[:1])
    >>> one.sure
    array([0.5, 0.5])
    """

    name: str
    classes: Sequence[str]
    codes: Ints
    observed: Bools
    probability: Floats
    method: str
    alpha: float | None
    left_out: Ints
    left_out_probability: Floats
    comparison: Sequence[MethodRow] = ()
    further: Sequence[FurtherTable] = ()

    def __post_init__(self) -> None:
        n, k, m = len(self.codes), len(self.classes), int(np.sum(self.observed))
        found = (np.shape(self.probability), np.shape(self.left_out), np.shape(self.left_out_probability))
        wanted = ((n, k), (m,), (m, k))
        _reject(found != wanted, f"classes of {self.name!r} need arrays of shapes {wanted}, got {found}")

    @property
    def sure(self) -> Floats:
        """Probability of the class in use."""
        return np.asarray(self.probability[np.arange(len(self.codes)), self.codes])

    @property
    def chosen(self) -> MethodRow | None:
        """The row of `comparison` for the method in use."""
        return next((row for row in self.comparison if row.method == self.method), None)


@dataclass(frozen=True)
class PredictionReport:
    """Everything on one page.

    Parameters
    ----------
    title : str
        Headline of the page.
    graph : Graph
        The graph with n nodes.
    node_ids : sequence of length n
        Identifiers, in node order.
    targets : sequence of TargetReport and ClassReport
        At least one; each gets its own section.
    coordinates : array of shape (n, 2) or None
        Where to draw the nodes; computed from the graph when None.
    shapes : sequence of length n, or None
        Outlines of the nodes, each some rings of shape (k, 2); nodes are then drawn as areas.
    features : DataFrame of n rows, or None
        Columns to show beside a node.
    notes : sequence of str
        Lines about what was done to the data.
    command, version : str
        How the page was made; left out when empty.

    Raises
    ------
    InvalidInputError
        If there is no target, lengths differ from n or coordinates are not finite.

    Examples
    --------
    >>> graph = Graph(np.array([[0, 1], [1, 0]]))
    >>> target = TargetReport("income", np.array([1.0, np.nan]), np.array([1.0, 2.0]), method="lp")
    >>> PredictionReport("Two wards", graph, ["a", "b"], (target,)).targets[0].name
    'income'
    """

    title: str
    graph: Graph
    node_ids: Sequence[object]
    targets: Sequence[TargetReport | ClassReport]
    coordinates: Floats | None = None
    shapes: Sequence[Sequence[Floats]] | None = None
    features: pd.DataFrame | None = None
    notes: Sequence[str] = ()
    command: str = ""
    version: str = ""

    def __post_init__(self) -> None:
        n = self.graph.n_nodes
        _reject(not self.targets, "a report needs at least one target, got none; add a TargetReport")
        found = len(self.node_ids)
        _reject(found != n, f"node_ids must name all {n} nodes, got {found}; pass one id for each node")
        for target in self.targets:
            shape = np.shape(target.observed)
            _reject(
                shape != (n,),
                f"target {target.name!r} must cover all {n} nodes, got shape {shape}; use NaN for unknown outcomes",
            )
        for rows, given in (("shapes", self.shapes), ("features", self.features)):
            length = n if given is None else len(given)
            _reject(length != n, f"{rows} must be of all {n} nodes, got {length}")
        if self.coordinates is not None:
            _check_coordinates(self.coordinates, n)


def _check_lengths(target: TargetReport) -> None:
    shape = np.shape(target.y)
    for name in ("prediction", "std", "lower", "upper"):
        column = getattr(target, name)
        _reject(
            column is not None and np.shape(column) != shape,
            f"{name} of {target.name!r} must have the shape of y, {shape}, got {np.shape(column)}; "
            "pass one value for each node",
        )


def _check_values(target: TargetReport) -> None:
    hidden = ~target.observed
    missing = int(np.sum(~np.isfinite(target.prediction[hidden])))
    _reject(missing, f"prediction of {target.name!r} must be finite where y is NaN, got {missing} that are not")
    negative = 0 if target.std is None else int(np.sum(~(target.std[hidden] >= 0)))
    _reject(negative, f"std of {target.name!r} must be >= 0 where y is NaN, got {negative} others; use None for no std")
    _reject(
        (target.lower is None) != (target.upper is None),
        f"lower and upper of {target.name!r} come together, got one of them; pass both or neither",
    )
    _reject(not 0 < target.level < 1, f"level must lie strictly between 0 and 1, got {target.level}; 0.9 means 90 %")


def _check_coordinates(coordinates: Floats, n: int) -> None:
    shape = np.shape(coordinates)
    _reject(shape != (n, 2), f"coordinates must have shape ({n}, 2), got {shape}; pass x and y of every node")
    bad = int(np.sum(~np.isfinite(coordinates).all(axis=1)))
    _reject(bad, f"coordinates must be finite, got {bad} nodes without; leave them out to have a layout computed")
