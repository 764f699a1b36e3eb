"""What a report shows, as frozen rows: filled by the caller, checked here, drawn elsewhere."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from graphmrf._typing import Bools, Floats
from graphmrf.graph import Graph
from graphmrf.report.parts import AlphaCurve, Coefficients, Effects, MethodRow, Truth, reject


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
    comparison, curves, coefficients, effects, truth
        Further rows; a section without rows is left out.

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
    coefficients: Coefficients | None = None
    effects: Effects | None = None
    shares: Mapping[str, float] = field(default_factory=dict)
    truth: Truth | None = None

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
    targets : sequence of TargetReport
        At least one; each gets its own section.
    coordinates : array of shape (n, 2) or None
        Where to draw the nodes; computed from the graph when None.
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
    targets: Sequence[TargetReport]
    coordinates: Floats | None = None
    notes: Sequence[str] = ()
    command: str = ""
    version: str = ""

    def __post_init__(self) -> None:
        n = self.graph.n_nodes
        reject(not self.targets, "a report needs at least one target, got none; add a TargetReport")
        found = len(self.node_ids)
        reject(found != n, f"node_ids must name all {n} nodes, got {found}; pass one id for each node")
        for target in self.targets:
            shape = np.shape(target.y)
            reject(
                shape != (n,),
                f"target {target.name!r} must cover all {n} nodes, got shape {shape}; use NaN for unknown outcomes",
            )
        if self.coordinates is not None:
            _check_coordinates(self.coordinates, n)


def _check_lengths(target: TargetReport) -> None:
    shape = np.shape(target.y)
    for name in ("prediction", "std", "lower", "upper"):
        column = getattr(target, name)
        reject(
            column is not None and np.shape(column) != shape,
            f"{name} of {target.name!r} must have the shape of y, {shape}, got {np.shape(column)}; "
            "pass one value for each node",
        )


def _check_values(target: TargetReport) -> None:
    hidden = ~target.observed
    missing = int(np.sum(~np.isfinite(target.prediction[hidden])))
    reject(missing, f"prediction of {target.name!r} must be finite where y is NaN, got {missing} that are not")
    negative = 0 if target.std is None else int(np.sum(~(target.std[hidden] >= 0)))
    reject(negative, f"std of {target.name!r} must be >= 0 where y is NaN, got {negative} others; use None for no std")
    reject(
        (target.lower is None) != (target.upper is None),
        f"lower and upper of {target.name!r} come together, got one of them; pass both or neither",
    )
    reject(not 0 < target.level < 1, f"level must lie strictly between 0 and 1, got {target.level}; 0.9 means 90 %")


def _check_coordinates(coordinates: Floats, n: int) -> None:
    shape = np.shape(coordinates)
    reject(shape != (n, 2), f"coordinates must have shape ({n}, 2), got {shape}; pass x and y of every node")
    bad = int(np.sum(~np.isfinite(coordinates).all(axis=1)))
    reject(bad, f"coordinates must be finite, got {bad} nodes without; leave them out to have a layout computed")
