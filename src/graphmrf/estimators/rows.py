"""Observations besides their values: exposure, trials, standard errors, weights, and several rows of one node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from graphmrf.errors import InvalidInputError
from graphmrf.field.likelihoods import LIKELIHOODS, Likelihood, Measured, Ordinal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from graphmrf._typing import Bools, Floats, Ints
    from graphmrf.graph import Graph

NUMBERS = ("auto", "gaussian", "student")  # likelihoods of numbers with noise; "auto" has more noise for outliers
COUNTED = tuple(name for name, each in LIKELIHOODS.items() if each.takes)  # likelihoods of counts and successes
CLASSES = ("binomial", "ordinal")  # likelihoods whose rows may count several times
NAMES = (*NUMBERS, *COUNTED, "ordinal")  # all likelihoods that a user can name

# Likelihoods that use each option, what its values are called, and the remedy for those that are not positive.
_OPTIONS = {
    "exposure": (
        tuple(name for name in COUNTED if LIKELIHOODS[name].takes == "exposure"),
        "exposures",
        "use the population, the time or the expected number of cases",
    ),
    "trials": (
        tuple(name for name in COUNTED if LIKELIHOODS[name].takes == "trials"),
        "trials",
        "leave out rows without trials",
    ),
    "std": (
        ("auto", "gaussian"),
        "standard errors",
        "empty the observation where its standard error is unknown; if none has an error, leave std out",
    ),
    "weight": (("auto", "gaussian", *CLASSES), "weights", "leave out rows of weight 0"),
}

# What observations count, and what to pass, by the size of a row.
_COUNTS = {
    "exposure": ("cases", "counts with exposure="),
    "trials": ("successes", "counts with trials="),
    "": ("classes", "their numbers from 0"),
}


TAKERS = {option: names for option, (names, *_) in _OPTIONS.items()}  # likelihoods that use each option


class RowError(InvalidInputError):
    """Some rows break a rule; `option` is the option of `fit` that holds them, or "y" for the observation itself."""

    def __init__(self, rule: str, found: str, rows: Ints, remedy: str, *, option: str) -> None:
        self.row, self.option = int(rows[0]), option
        self._before, self._after = f"{rule}, got {found}", f" ({rows.size} such rows in all); {remedy}"
        self.at = f"{self._before}{self._after}"
        super().__init__(f"{self._before} in row {self.row}{self._after}")

    def named(self, graph: Graph, nodes: Any, columns: Mapping[str, Any]) -> InvalidInputError:
        """Return the error with the id of the node and the name of the column, where they have one.

        `nodes`: node of every row of a long table, or None. `columns`: what `fit` was given, by option.
        """
        column, place = getattr(columns[self.option], "name", None), f"in row {self.row}"
        if nodes is not None:
            place = f"at node {np.asarray(nodes).tolist()[self.row]!r} {place}"
        elif graph.ids is not None:
            place = f"at node {graph.ids[self.row]!r}"
        place += "" if column is None else f", column {column!r}"
        return InvalidInputError(f"{self._before} {place}{self._after}")


@dataclass(frozen=True, eq=False)
class Rows:
    """Observations of nodes, each a row."""

    nodes: Ints  # (k,): node of every row
    y: Floats  # (k,): its value
    # distribution of a row given its node; None for numbers with the same noise, one of a node
    likelihood: Likelihood | None
    size: Floats  # (k,): exposure, trials, or standard error of every row
    everywhere: Floats  # (n,): the same of a new observation at every node, NaN where unknown
    weight: Floats | None  # (k,): precision of every row over that of a usual one, or how many times a row counts


@dataclass(frozen=True, eq=False)
class Known:
    """Known properties of observations: `exposure`, `trials`, `std` and `weight`, one number or one of each row."""

    given: Mapping[str, Any]
    rows: tuple[Ints, Floats] | None = None  # node and value of every row of a long table

    def aligned(self, graph: Graph) -> Known:
        """Return them in the order of nodes, without a long table."""
        return self if self.rows else Known({name: graph.align(each, name) for name, each in self.given.items()})

    def merged(self, new: Known, fresh: Bools) -> Known:
        """Return them with new ones at nodes with new labels, and where there were none."""
        return Known({name: _merged(old, new.given[name], fresh) for name, old in self.given.items()})

    def moved(self, places: Ints, n: int) -> Known:
        """Return them at the places of their nodes among `n`."""
        if self.rows is not None:
            return Known(self.given, (places[self.rows[0]], self.rows[1]))
        return Known({name: _moved(each, places, n) for name, each in self.given.items()})


@dataclass(frozen=True, eq=False)
class LongTable:
    """Observations of nodes, of which some have several; `y` is NaN where unknown.

    Examples
    --------
    >>> table = LongTable(np.array([0, 0, 1]), np.array([2.0, 4.0, np.nan]), {"exposure": np.array([10.0, 30.0, 5.0])})
    >>> table.means(2)
    (array([ 3., nan]), {'exposure': array([20.,  5.])})
    """

    nodes: Ints  # (k,): node of every row
    y: Floats  # (k,): its value
    known: Mapping[str, Floats]  # (k,): `exposure` and so on of every row

    @property
    def observed(self) -> Bools:
        """The rows with a value."""
        return ~np.isnan(self.y)

    @property
    def repeats(self) -> bool:
        """Whether a node has several values."""
        return bool(np.bincount(self.nodes[self.observed]).max(initial=0) > 1)

    def counts(self, n: int) -> Floats:
        """Return how many values each of n nodes has."""
        return np.bincount(self.nodes[self.observed], minlength=n).astype(np.float64)

    def means(self, n: int) -> tuple[Floats, dict[str, Floats]]:
        """Return the mean value of each of n nodes, by precision, and what is known of it.

        It has the mean exposure or trials of its rows; a node without values has those of all its rows.
        """
        seen, counts = self.observed, self.counts(n)
        precision = self.known["std"] ** -2.0 if "std" in self.known else self.known.get("weight", np.ones(self.y.size))

        def sums(values: Floats, rows: Any = seen) -> Floats:
            return np.bincount(self.nodes[rows], values[rows], n).astype(np.float64)

        with np.errstate(invalid="ignore", divide="ignore"):
            total = sums(precision)
            size = {"std": total**-0.5} if "std" in self.known else {"weight": total}
            found = {
                option: np.where(counts > 0, sums(each) / counts, sums(each, ...) / sums(np.ones(seen.size), ...))
                for option, each in self.known.items()
            }
            return sums(precision * self.y) / total, found | {name: size[name] for name in found if name in size}


def _moved(values: Any, places: Ints, n: int) -> Any:
    if values is None or np.ndim(values) == 0:
        return values
    moved = np.full(n, np.nan)
    moved[places] = values
    return moved


def _merged(old: Any, new: Any, fresh: Bools) -> Any:
    if new is None:
        return old
    before = np.full(fresh.size, np.nan) if old is None else np.broadcast_to(np.asarray(old, np.float64), fresh.shape)
    after = np.broadcast_to(np.asarray(new, dtype=np.float64), fresh.shape)
    return np.where((fresh | np.isnan(before)) & ~np.isnan(after), after, before)


def long_outcome(graph: Graph, y: Any, nodes: Any) -> tuple[Any, tuple[Ints, Floats]]:
    """Return the mean of the rows of every node of a long table, and node and value of every row."""
    values = np.asarray(y, dtype=np.float64)
    if np.shape(nodes) != values.shape or values.ndim != 1:
        raise InvalidInputError(
            f"nodes must name the node of every row of y, got shapes {np.shape(nodes)} and {values.shape}; "
            "pass two columns of the same table"
        )
    places = _places(graph, nodes)
    known = ~np.isnan(values)
    counts = np.bincount(places[known], minlength=graph.n_nodes)
    sums = np.bincount(places[known], values[known], graph.n_nodes)
    means = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
    named = graph.ids is not None or isinstance(y, pd.Series)
    name, index = getattr(y, "name", None), pd.RangeIndex(graph.n_nodes) if graph.ids is None else graph.ids
    return pd.Series(means, index=index, name=name) if named else means, (places, values)


def _places(graph: Graph, nodes: Any) -> Ints:
    ids = pd.RangeIndex(graph.n_nodes) if graph.ids is None else graph.ids
    places = ids.get_indexer(pd.Index(np.asarray(nodes)))
    missing = np.flatnonzero(places < 0)
    if missing.size:
        raise InvalidInputError(
            f"nodes must be of the graph, got {np.asarray(nodes)[missing[0]]} in row {missing[0]} "
            f"({missing.size} such rows in all); drop these rows, or add the nodes to the graph"
        )
    return np.asarray(places)


def read_rows(name: str, graph: Graph, nodes: Ints, y: Floats, given: Mapping[str, Any]) -> Rows:
    """Return checked rows: node and value (k,) of each, NaN where it is to be predicted, and `exposure` and so on."""
    options = {option: _column(option, values, y.size) for option, values in given.items() if values is not None}
    for option in options:
        if name not in TAKERS[option]:
            takers = " or ".join(repr(each) for each in TAKERS[option] if each != "auto")
            raise InvalidInputError(f"{option} is for likelihood {takers}, got {name!r}; leave it out or change one")
    if "std" in options and "weight" in options:
        raise InvalidInputError("std and weight both state the precision of a row, got both; pass one of them")
    known = ~np.isnan(y)
    for option, values in options.items():
        _check_positive(option, values, known)
    if name not in NUMBERS:
        _check_counts(name, y, known, options.get("trials"))
    repeated = bool(np.bincount(nodes[known]).max(initial=0) > 1)
    likelihood, size = _likelihood(name, y, nodes, known, options, repeated=repeated)
    weight = options.get("weight")
    return Rows(
        nodes[known],
        y[known],
        likelihood,
        size[known],
        _everywhere(graph.n_nodes, nodes, size),
        None if weight is None else weight[known],
    )


def _likelihood(
    name: str, y: Floats, nodes: Ints, known: Bools, options: Mapping[str, Floats], *, repeated: bool
) -> tuple[Likelihood | None, Floats]:
    """Return the likelihood, and exposure, trials or standard error of every row."""
    plain = np.ones(y.size)
    if name in NUMBERS:
        if "std" in options:
            return LIKELIHOODS["measured"], options["std"]
        if not repeated:
            return None, plain
        if name == "student":
            raise InvalidInputError("likelihood 'student' takes one value of a node, got several; use 'gaussian'")
        return Measured("repeated", _within(nodes[known], y[known])), options.get("weight", plain) ** -0.5
    if name == "ordinal":
        if repeated:
            raise InvalidInputError("likelihood 'ordinal' takes one class of a node, got several; choose one")
        return Ordinal.of(y[known], options.get("weight", plain)[known]), plain
    if name == "binomial":
        trials = options.get("trials", plain)
        single = not repeated and bool((trials[known] == 1).all())
        return LIKELIHOODS["bernoulli" if single else "binomial"], trials
    return LIKELIHOODS[name], options.get("exposure", plain)


def _within(nodes: Ints, y: Floats) -> float:
    """Return the standard deviation of values about the mean of their node; a tenth of all where they agree."""
    _, place, counts = np.unique(nodes, return_inverse=True, return_counts=True)
    about = y - (np.bincount(place, y) / counts)[place]
    return float(np.sqrt((about**2).sum() / max(y.size - counts.size, 1)) or 0.1 * (y.std() or 1.0))


def _everywhere(n: int, nodes: Ints, size: Floats) -> Floats:
    """Return the size of a new observation at every node: the mean of its rows, or that of all where they are alike."""
    stated = ~np.isnan(size)
    same = size[stated].min() if stated.all() and np.ptp(size) == 0 else np.nan
    counts = np.bincount(nodes[stated], minlength=n)
    sums = np.bincount(nodes[stated], size[stated], n)
    return np.where(counts > 0, sums / np.maximum(counts, 1), same)


def _column(option: str, values: Any, count: int) -> Floats:
    try:
        found = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"{option} must be numeric, got {error}; convert it first") from error
    if found.ndim and found.shape != (count,):
        raise InvalidInputError(
            f"{option} must be one number, or one for each of the {count} rows of y, got shape {found.shape}"
        )
    return np.broadcast_to(found, (count,))


def _check_positive(option: str, values: Floats, known: Bools) -> None:
    bad = np.flatnonzero(known & ~(np.isfinite(values) & (values > 0)))
    if bad.size:
        found = "none" if np.isnan(values[bad[0]]) else f"{values[bad[0]]:g}"
        _, word, remedy = _OPTIONS[option]
        raise RowError(f"{word} of observed rows must be positive", found, bad, remedy, option=option)


def _check_counts(name: str, y: Floats, known: Bools, trials: Floats | None) -> None:
    """Raise unless observations are whole numbers from 0, and successes at most their trials."""
    bad = np.flatnonzero(known & ((y < 0) | (y != np.round(y))))
    if bad.size:
        what, option = _COUNTS[LIKELIHOODS[name].takes if name in COUNTED else ""]
        remedy = f"pass {option}, or likelihood='gaussian' for other numbers"
        raise RowError(
            f"likelihood {name!r} needs whole numbers of {what}, 0 or more", f"{y[bad[0]]:g}", bad, remedy, option="y"
        )
    if name not in TAKERS["trials"]:
        return
    most = np.ones(y.size) if trials is None else trials
    broken = np.flatnonzero(known & (np.round(most) != most))
    if broken.size:
        raise RowError("trials must be whole numbers", f"{most[broken[0]]:g}", broken, "round them", option="trials")
    bad = np.flatnonzero(known & (y > most))
    if bad.size:
        remedy = "pass trials=" if trials is None else "exchange the two columns if they are mixed up"
        found = f"{y[bad[0]]:g} of {most[bad[0]]:g}"
        raise RowError("successes must be at most their trials", found, bad, remedy, option="y")


def propose_likelihood(y: Any, *, exposure: Any = None, trials: Any = None, std: Any = None) -> tuple[str, str]:
    """Return the likelihood that a column suggests, and why; `GraphRegressor` never changes one by itself.

    Parameters
    ----------
    y : array of shape (n,)
        The outcome, NaN where unknown.
    exposure, trials, std : array of shape (n,), optional
        What is known of every observation.

    Examples
    --------
    >>> import graphmrf as gm
    >>> gm.propose_likelihood([0.0, 3.0, 12.0, float("nan")], exposure=[10, 20, 30, 5])
    ('negative-binomial', 'whole numbers with an exposure; their variance may exceed their mean')
    >>> gm.propose_likelihood([0.2, 3.1])[0]
    'gaussian'
    """
    values = np.asarray(y, dtype=np.float64)
    known = values[~np.isnan(values)]
    whole = bool(known.size and (known >= 0).all() and (known == np.round(known)).all())
    if std is not None:
        return "gaussian", "numbers with known standard errors"
    if whole and trials is not None:
        return "binomial", "whole numbers with trials"
    if whole and exposure is not None:
        return "negative-binomial", "whole numbers with an exposure; their variance may exceed their mean"
    if whole and set(known.tolist()) == {0.0, 1.0}:
        return "binomial", "only 0 and 1"
    return "gaussian", "whole numbers without exposure or trials" if whole else "numbers"
