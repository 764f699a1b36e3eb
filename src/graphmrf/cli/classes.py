"""A target of words: classified, with the probability of the class instead of an interval."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from pandas.api import types

from graphmrf._typing import Bools, Floats
from graphmrf.cli.comparison import attempt_all, best, fit_one, passed_over
from graphmrf.cli.methods import Method, Tuning
from graphmrf.datasets import AttributedGraph, Features
from graphmrf.errors import InvalidInputError
from graphmrf.estimators import GraphClassifier
from graphmrf.estimators.inputs import Labels, check_classes, read_labels
from graphmrf.report import TargetReport
from graphmrf.report.rows import method_name

_DRESSED = r"[^\w.,+-]*[+-]?\d[\d.,'\s]*[^\w.,+-]*"
CLASS_COLUMNS = ("prediction", "probability", "observed")


@dataclass(frozen=True, eq=False)
class ClassFit:
    """One method fitted to the classes of one target."""

    method: Method
    model: GraphClassifier
    note: str = ""

    @property
    def held_out_score(self) -> float:
        """Share of right answers among labels that were held out."""
        return self.model.held_out_score_

    @property
    def alpha(self) -> float | None:
        """Smoothing level in use; None for a method without one, or with one for each class."""
        levels = {getattr(regressor, "alpha_", None) for regressor in self.model.regressors_}
        return levels.pop() if len(levels) == 1 else None


@dataclass(frozen=True, eq=False)
class Classification:
    """One target at every node; observed nodes keep their class, with probability 1."""

    name: str
    labels: Labels
    probability: Floats
    value: Any
    chosen: ClassFit
    fits: tuple[ClassFit, ...]
    notes: tuple[str, ...]

    @property
    def observed(self) -> Bools:
        """Where the class was given."""
        return self.labels.known

    def columns(self) -> dict[str, Any]:
        """Return the columns of the result: the class, its probability, and whether it was given."""
        position = np.searchsorted(self.labels.classes, self.value)
        likely = self.probability[np.arange(position.size), position]
        return dict(zip(CLASS_COLUMNS, (self.value, likely, self.observed), strict=True))

    def summary(self) -> dict[str, Any]:
        """Return what a script may want to know, ready for JSON."""
        return {
            "target": self.name,
            "observed": int(self.observed.sum()),
            "predicted": int((~self.observed).sum()),
            "classes": self.labels.classes.tolist(),
            "method": self.chosen.method.key,
            "alpha": self.chosen.alpha,
            "cutoff": _finite(self.chosen.model.cutoff_),
            "accuracy": self.chosen.held_out_score,
            "comparison": [
                {"method": fit.method.key, "accuracy": fit.held_out_score, "alpha": fit.alpha} for fit in self.fits
            ],
        }

    def sections(self) -> tuple[TargetReport, ...]:
        """Return one section of the report for every class, or for the later of two: its probability."""
        codes = [1] if self.labels.classes.size == 2 else range(self.labels.classes.size)
        return tuple(
            TargetReport(
                name=f"probability of {self.name} = {self.labels.classes[code]}",
                y=self.labels.against_the_rest(code),
                prediction=self.probability[:, code],
                method=self.chosen.method.key,
                alpha=self.chosen.alpha,
                carries=self._summed_up(),
            )
            for code in codes
        )

    def _summed_up(self) -> str:
        """Say how accurate the classes are, how many nodes got each of them, and how the other methods fared."""
        found = pd.Series(self.value[~self.observed]).value_counts()
        said = [f"Right for {100 * self.chosen.held_out_score:.0f} % of the labels that were held out."]
        said.append("Nodes by predicted class: " + ", ".join(f"{name} {n:,}" for name, n in found.items()) + ".")
        others = [fit for fit in self.fits if fit is not self.chosen]
        if others:
            rates = (f"{method_name(fit.method.key).lower()} {100 * fit.held_out_score:.0f} %" for fit in others)
            said.append("Right by other methods: " + ", ".join(rates) + ".")
        return " ".join(said)


def is_category(column: pd.Series) -> bool:
    """Return whether a column holds classes: true and false, or words, most of which are no numbers.

    A word counts once, however often it is there: many a ``?`` among numbers is no class, but a cell to be emptied.

    Examples
    --------
    >>> is_category(pd.Series(["red", None, "blue"])), is_category(pd.Series(["1.5", "2", "?", "?", "?"]))
    (True, False)
    """
    kind = types.infer_dtype(column, skipna=True)
    return kind in ("boolean", "categorical") or (kind == "string" and share_of_numbers(column) <= 0.5)


def share_of_numbers(column: pd.Series) -> float:
    """Return the share of numbers among the different cells of a column of text."""
    return float(pd.to_numeric(column.dropna().drop_duplicates(), errors="coerce").notna().mean())


def read_classes(table: AttributedGraph, name: str, n_folds: int) -> Labels:
    """Return the classes of a column, or say what is wrong with them and where."""
    try:
        labels = read_labels(table.frame[name], len(table.frame))
        check_classes(labels, n_folds)
    except InvalidInputError as error:
        raise InvalidInputError(f"{table.path}, column {name}: {_dressed(table.frame[name]) or error}") from error
    if labels.known.all():
        raise InvalidInputError(
            f"{table.path}, column {name}: nothing to predict, every node has a class; leave the cells to predict empty"
        )
    return labels


def _dressed(column: pd.Series) -> str:
    """Return what to do about numbers that are written as people write them; nothing where cells are words.

    Examples
    --------
    >>> print(_dressed(pd.Series(["1.080,50", "990,00"])))
    cells such as '1.080,50' are no plain numbers; write 1080.5, with no other separator or sign, or words for classes
    >>> _dressed(pd.Series(["10-20", "20-30"]))
    ''
    """
    text = column.dropna().astype(str).drop_duplicates()
    if text.str.fullmatch(_DRESSED).mean() <= 0.5:
        return ""
    return (
        f"cells such as '{text.iloc[0]}' are no plain numbers; write 1080.5, with no other separator or sign, "
        "or words for classes"
    )


def classify(
    methods: Sequence[Method], table: AttributedGraph, made: Features, tuning: Tuning, advance: Callable[[], None]
) -> Callable[[str, Labels], Classification]:
    """Return what classifies one target by the best of the methods; `advance` is called after every fit."""

    def work(name: str, labels: Labels) -> Classification:
        y = pd.Series(np.where(labels.known, labels.codes, np.nan))

        def fit(method: Method) -> ClassFit:
            model = GraphClassifier(method.make(tuning), folds=tuning.folds, seed=tuning.seed)
            _, note = fit_one(model, method, table.graph, made, y)
            return ClassFit(method, model, note)

        fits, left_out = attempt_all(methods, fit, advance)
        chosen = best(fits)
        probability = chosen.model.predict_proba()
        probability[labels.known] = np.eye(labels.classes.size)[labels.codes[labels.known]]
        codes = np.where(labels.known, labels.codes, chosen.model.predict().astype(np.int64))
        said = (*left_out, *(fit.note for fit in fits), passed_over(fits, chosen, score="accuracy"))
        notes = (_said(name, labels), *(f"{name}: {line}" for line in said if line))
        return Classification(name, labels, probability, labels.classes[codes], chosen, fits, notes)

    return work


def _said(name: str, labels: Labels) -> str:
    classes = [str(value) for value in labels.classes]
    shown = ", ".join(classes[:5]) + (f" and {len(classes) - 5} more" if len(classes) > 5 else "")
    return f"{name}: no numbers, so nodes are classified ({len(classes)} classes: {shown})"


def _finite(cutoff: float | None) -> float | None:
    return cutoff if cutoff is not None and math.isfinite(cutoff) else None
