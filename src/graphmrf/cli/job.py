"""The work behind `graphmrf predict`: which columns, which method, and the values with their intervals."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from statistics import NormalDist

import numpy as np

from graphmrf._typing import Bools, Floats
from graphmrf.cli import general
from graphmrf.cli.classes import CLASS_COLUMNS, Classification, classify
from graphmrf.cli.comparison import Fit, best, carrier, fit_all
from graphmrf.cli.methods import AUTO, FIELD, TRANSFORMS, WITHOUT_LEVEL, Method, Tuning, choose
from graphmrf.cli.targets import only_target, read_target
from graphmrf.datasets import AttributedGraph, Features, features
from graphmrf.errors import InvalidInputError
from graphmrf.estimators import GraphRegressor
from graphmrf.estimators.inputs import Labels
from graphmrf.graph import Graph

FEW = 10
"""With fewer known values than this beyond the coefficients, the noise is hardly known."""
OUTPUT_COLUMNS = ("prediction", "std", "lower", "upper", "observed")


@dataclass(frozen=True)
class Settings:
    """Options of a prediction, checked."""

    method: str = AUTO
    interval: float = 0.9
    tuning: Tuning = field(default_factory=Tuning)
    conformal: bool = False

    def __post_init__(self) -> None:
        alpha, folds = self.tuning.alpha, self.tuning.folds
        if alpha is not None and not 0 <= alpha < 1:
            raise InvalidInputError(
                f"--alpha must be in [0, 1), got {alpha}; 0 ignores the edges, 0.99 smooths strongly"
            )
        if not 0 < self.interval < 1:
            raise InvalidInputError(f"--interval must be between 0 and 1, got {self.interval}; 0.9 means 90 %")
        if folds < 2:
            raise InvalidInputError(f"--folds must be at least 2, got {folds}")
        if self.tuning.alpha is not None and self.method in WITHOUT_LEVEL:
            raise InvalidInputError(f"--alpha has no effect on --method {self.method}; drop one of them")
        self._check_field()

    def _check_field(self) -> None:
        """Raise where an option of the field comes with another method."""
        transform, given = self.tuning.transform, self.for_numbers
        if transform not in TRANSFORMS:
            raise InvalidInputError(f"--transform must be one of {', '.join(TRANSFORMS)}, got '{transform}'")
        if given and self.method not in (AUTO, FIELD):
            raise InvalidInputError(f"{given[0]} is for --method {FIELD}, got --method {self.method}; drop one of them")

    @property
    def for_numbers(self) -> tuple[str, ...]:
        """The options given that are for the field, and for targets of numbers."""
        given = {"--transform": self.tuning.transform != "identity", "--conformal": self.conformal}
        return tuple(name for name, on in given.items() if on)


@dataclass(frozen=True, eq=False)
class Prediction:
    """One target at every node; observed nodes keep their value and have std 0."""

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
class Job:
    """Everything read and checked: what to predict from what, and how."""

    table: AttributedGraph
    features: Features
    targets: dict[str, Floats | Labels]
    methods: tuple[Method, ...]
    settings: Settings
    notes: tuple[str, ...]

    @classmethod
    def prepare(
        cls, table: AttributedGraph, named: Sequence[str], *, ignore: Sequence[str], settings: Settings
    ) -> "Job":
        """Return the job for the targets named, else for the only numeric column with empty cells."""
        names = tuple(dict.fromkeys(named)) or (only_target(table, ignore),)
        tuning = settings.tuning
        targets = {name: read_target(table, name, transform=tuning.transform, folds=tuning.folds) for name in names}
        if table.id in (*OUTPUT_COLUMNS, *CLASS_COLUMNS):
            raise InvalidInputError(f"the id column '{table.id}' has the name of a result; rename it in {table.path}")
        made = features(table, targets=names, ignore=ignore)
        methods = choose(settings.method, n_features=made.X.shape[1])
        told = [] if named else [f"{names[0]}: predicted, as the only numeric column with empty cells"]
        told += [general.filling(note, methods) for note in made.notes if any(method.features for method in methods)]
        if len(names) > 1 and any(method.features for method in methods):
            told.append(f"{', '.join(names)}: targets, so none is a feature of another")
        return cls(table, made, targets, methods, settings, (*table.notes, *told))

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to say before the run."""
        classes = {name: y.classes.size for name, y in self.targets.items() if isinstance(y, Labels)}
        return tuple(general.warnings(self.methods, self.table.graph.n_nodes, classes))

    @property
    def n_fits(self) -> int:
        """Number of steps of the run."""
        return len(self.methods) * len(self.targets)

    def run(self, advance: Callable[[], None]) -> tuple[Prediction | Classification, ...]:
        """Return the prediction of every target; `advance` is called after every fit."""
        return tuple(
            self._classify(name, y, advance) if isinstance(y, Labels) else self._predict(name, y, advance)
            for name, y in self.targets.items()
        )

    def _classify(self, name: str, labels: Labels, advance: Callable[[], None]) -> Classification:
        tuning = replace(self.settings.tuning, transform="identity")
        found = classify(self.methods, self.table, self.features, tuning, advance)(name, labels)
        ignored = (f"{name}: {option} is for numbers, not for classes" for option in self.settings.for_numbers)
        return replace(found, notes=(*found.notes, *ignored))

    def _predict(self, name: str, y: Floats, advance: Callable[[], None]) -> Prediction:
        settings = self.settings
        fits, left_out = fit_all(
            self.methods, self.table.graph, self.features, y, tuning=settings.tuning, advance=advance
        )
        chosen = best(fits, asked=bool(settings.for_numbers))
        mean, std = chosen.estimator.predict(return_std=True)
        observed = ~np.isnan(y)
        value, std = np.where(observed, y, mean), np.where(observed, 0.0, std)
        lower, upper = _interval(chosen, value, std, settings)
        notes = (
            *_notes(self.table.graph, observed, std, settings.tuning.folds),
            *_two_valued(y[observed]),
            *_roughness(observed, self.features.X.shape[1] if chosen.method.features else 0),
            *left_out,
            *(fit.note for fit in fits if fit.note),
            *general.notes(y, fits, chosen, level=settings.interval, asked=settings.for_numbers),
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


def _interval(chosen: Fit, value: Floats, std: Floats, settings: Settings) -> tuple[Floats, Floats]:
    if isinstance(chosen.estimator, GraphRegressor):
        return general.interval(chosen.estimator, settings.interval, conformal=settings.conformal)
    width = NormalDist().inv_cdf((1 + settings.interval) / 2) * std
    return value - width, value + width


def _two_valued(known: Floats) -> Iterator[str]:
    values = [f"{value:g}" for value in np.unique(known)]
    if len(values) == 2:
        yield f"all known values are {' or '.join(values)}, and predicted as numbers; words would be classified"


def _roughness(observed: Bools, n_features: int) -> Iterator[str]:
    known = int(observed.sum())
    if 0 < known - 1 - n_features < FEW:
        features = f" for {n_features} feature{'s' * (n_features > 1)}" if n_features else ""
        yield f"only {known} known values{features}: R2 is uncertain, and error bars are likely too narrow"


def _notes(graph: Graph, observed: Bools, std: Floats, folds: int) -> Iterator[str]:
    unreached = ~np.isin(graph.components, graph.components[observed])
    if unreached.any():
        yield (
            f"{int(unreached.sum())} nodes have no path to a node with a known value; "
            "outcomes of neighbours say nothing about them"
        )
    if observed.sum() < folds:
        yield f"only {int(observed.sum())} known values, so cross-validation uses as many folds"
    if np.isnan(std).any():
        yield "too few known values to estimate the noise; std, lower and upper are empty"
