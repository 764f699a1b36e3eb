"""The tables of a report as texts with sort keys, which the templates escape and lay out."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from scipy.sparse import csr_array
from scipy.stats import norm

from graphmrf._typing import Ints
from graphmrf.comparison import Effects, FittedMethod, Prediction
from graphmrf.comparison.explanation import effect_name
from graphmrf.field import EFFECTS
from graphmrf.graph import Graph
from graphmrf.report.charts import LISTED_COEFFICIENTS
from graphmrf.report.drawing import GraphDrawing, PredictionReport
from graphmrf.text import DASH, MINUS, decimals, number, smoothing_level

TextTable: TypeAlias = dict[str, Any]
"""Caption, heads and rows; a head that starts with # is over numbers. A row has cells, each a text and what it is
sorted by, and more about its first cell: the node and its place, whether it is chosen, a sentence, the width of a bar.
"""


def most_uncertain(target: Prediction, limit: int = 25) -> Ints:
    """Predicted nodes with the largest std, largest first; ties in node order. 25 rows are two screens."""
    if target.std is None:
        return np.empty(0, dtype=np.int64)
    hidden = np.flatnonzero(target.predicted)
    return hidden[np.argsort(-target.std[hidden], kind="stable")[:limit]]


def uncertain_nodes(report: PredictionReport, target: Prediction, drawn: GraphDrawing) -> TextTable | None:
    """The predicted nodes with the largest standard deviations; None without error bars."""
    nodes = most_uncertain(target)
    if target.std is None or not len(nodes):
        return None
    places = decimals(target.values)
    texts = [_numbers(column[nodes], places) for column in (target.value, target.std)]
    heads = ["Node", "#Prediction", "#Std"]
    if target.lower is not None and target.upper is not None:
        heads.append(f"#{100 * target.level:g} % interval")
        texts.append(_ranges(target.lower[nodes], target.upper[nodes], places))
    heads += ["#Neighbours", "#Observed among them"]
    rows = zip(_names(report, nodes), *texts, *_neighbours(report.graph, target, nodes), strict=True)
    return _table(f"Most uncertain predictions of {target.name}", heads, rows, _marks(drawn, nodes))


def surprising_nodes(
    report: PredictionReport, target: Prediction, drawn: GraphDrawing, *, surprising: float = 2.0, limit: int = 25
) -> TextTable | None:
    """The labels farthest from their out-of-fold prediction, in standard deviations; None where none was held out."""
    if target.held_out is None:
        return None
    residual = target.at_labels("residual")
    beyond = np.flatnonzero(np.abs(np.nan_to_num(residual)) >= surprising)
    nodes = beyond[np.argsort(-np.abs(residual[beyond]), kind="stable")[:limit]]
    places = decimals(target.values)
    rows = zip(
        _names(report, nodes),
        _numbers(target.y[nodes], places),
        _numbers(target.at_labels("out_of_fold")[nodes], places),
        _numbers(residual[nodes], 1),
        strict=True,
    )
    heads = ["Node", "#Observed", "#Out of fold", "#Residual in std"]
    expected = 2.0 * norm.sf(surprising) * len(target.held_out)
    which = f"{len(beyond):,} of {len(target.held_out):,} known values, where chance alone gives {expected:,.0f}"
    return _table(f"Surprising values of {target.name}", heads, rows, _marks(drawn, nodes)) | {"which": which}


def method_rows(target: Prediction) -> TextTable | None:
    """Accuracy, spread over folds (of classes log loss) and smoothing level of every method; None without rows."""
    if not target.methods:
        return None
    methods = sorted(target.methods, key=lambda row: -row.score if np.isfinite(row.score) else np.inf)
    classes = target.classes is not None
    rows = [
        (
            each.method.name,
            number(each.score),
            number(each.loss) if classes else _spread(each),
            smoothing_level(each.alpha),
        )
        for each in methods
    ]
    heads = ["Method", *(["#Right", "#Log loss"] if classes else [f"#{target.score_name}", "#Folds"]), "#α"]
    uses = (f"uses {each.method.uses}" if each.method.uses else "" for each in methods)
    chosen = (each.method.key == target.method for each in methods)
    marks = [{"chosen": each, "about": about} for each, about in zip(chosen, uses, strict=True)]
    return _table(f"Accuracy of each method for {target.name}", heads, rows, marks)


def _spread(row: FittedMethod) -> str:
    folds = [fold for fold in row.fold_scores if np.isfinite(fold)]
    return f"{number(min(folds), 2)} to {number(max(folds), 2)}" if folds else DASH


def effect_rows(effects: Effects | None, *, standardised: bool = False) -> TextTable | None:
    """Coefficients, the largest effects first; None where there are none."""
    if effects is None or not effects.values.any():
        return None
    values, n = effects.standardised if standardised else effects.values, len(effects.names)
    rows = [(str(effects.names[i]), _estimate(values[i])) for i in effects.order[:LISTED_COEFFICIENTS]]
    which = "Linear effects" if n <= LISTED_COEFFICIENTS else f"The {LISTED_COEFFICIENTS} largest of {n:,} features"
    per = "standard deviation" if standardised else "unit"
    return _table(f"Effects of one {per} of each feature", ["Feature", "#coefficient"], rows) | {"which": which}


def class_rows(target: Prediction) -> TextTable:
    """Nodes of every class, known and predicted, and how often it was found and right among held-out labels."""
    checked = target.is_checked
    truth, said, rows = target.codes[target.observed], target.tested, []
    for k, name in enumerate(target.classes):
        hits, is_k, said_k = int(np.sum((truth == k) & (said == k))), int(np.sum(truth == k)), int(np.sum(said == k))
        predicted = int(np.sum(target.codes[~target.observed] == k))
        shares = [_percent(hits, checked * whole) for whole in (is_k, said_k)]
        rows.append((name, f"{is_k:,}", f"{predicted:,}", *shares))
    heads = ["Class", "#Observed", "#Predicted", "#Recall", "#Precision"]
    return _table(f"Classes of {target.name}", heads, rows)


def _percent(part: float, whole: float = 1.0) -> str:
    return f"{100 * part / whole:.0f} %" if whole else DASH


def confusion_matrix(target: Prediction, *, most: int = 20) -> dict[str, Any] | None:
    """Counts of held-out labels by true and predicted class, with the share of the row that shades a cell.

    None with more classes than fit a screen.
    """
    k = len(target.classes)
    if k > most or not (len(target.tested) and target.is_checked):
        return None
    counts = np.zeros((k, k), dtype=np.int64)
    np.add.at(counts, (target.codes[target.observed], target.tested), 1)
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    cells = [
        [[f"{n:,}", round(float(p), 3)] for n, p in zip(*row, strict=True)] for row in zip(counts, shares, strict=True)
    ]
    return {"classes": list(target.classes), "rows": cells, "caption": f"Confusion matrix of {target.name}"}


def unsure_classes(
    report: PredictionReport, target: Prediction, drawn: GraphDrawing, *, limit: int = 25
) -> TextTable | None:
    """The predicted nodes whose class is least sure, with the runner-up."""
    hidden = np.flatnonzero(~target.observed)
    nodes = hidden[np.argsort(target.sure[hidden], kind="stable")[:limit]]
    if not len(nodes):
        return None
    others = target.probability[nodes].copy()
    np.put_along_axis(others, target.codes[nodes, None], -1.0, axis=1)
    rows = zip(
        _names(report, nodes),
        target.classes[target.codes[nodes]],
        map(_percent, target.sure[nodes]),
        target.classes[others.argmax(axis=1)],
        map(_percent, others.max(axis=1)),
        *_neighbours(report.graph, target, nodes),
        strict=True,
    )
    heads = ["Node", "Class", "#Probability", "Or else", "#Probability of that", "#Neighbours", "#Observed among them"]
    return _table(f"Least certain classes of {target.name}", heads, rows, _marks(drawn, nodes))


def share_rows(target: Prediction) -> TextTable | None:
    """Share of the variance of every kind of effect, as a number and a bar; None where shares are not known."""
    shares = target.explanation.shares
    if not shares:
        return None
    rows = [(effect_name(name)[0].upper() + effect_name(name)[1:], _percent(share)) for name, share in shares.items()]
    marks = [
        {"about": EFFECTS.get(name, ("", ""))[1], "width": f"{100 * share:.1f}", "quiet": name == "noise"}
        for name, share in shares.items()
    ]
    return _table(f"Share of the variation of {target.name} by kind of effect", ["Effect", "#Share", ""], rows, marks)


def further_tables(report: PredictionReport, target: Prediction) -> list[tuple[str, str, TextTable]]:
    """Tables that come after the others, each with a title and a sentence; only those that have rows."""
    found: list[tuple[str, str, Sequence[str], Iterable[Sequence[str]]]] = []
    if target.by_distance is not None and len(target.by_distance):
        cells = distance_cells(target.by_distance)
        found.append((DISTANCE_TITLE, _ABOUT_DISTANCES, distance_heads(target.level), cells))
    if target.by_spread is not None:
        found.append((SPREAD_TITLE, _ABOUT_SPREADS, *_spread_table(target.by_spread, target.level)))
    if target.groups is not None:
        about = (
            f"{group_words(target.groups).capitalize()} of {target.name}, known values included, with "
            f"{100 * target.level:g} % intervals from the joint distribution of all nodes."
        )
        found.append((f"By {target.groups.columns[0]}", about, *group_cells(target.groups)))
    learning = target.explanation.learning
    if learning is not None:
        about = f"The curve in numbers: expected {target.score_name} at the nodes without a label."
        heads = [head.replace("R²", target.score_name) for head in LEARNING_HEADS]
        found.append(("How many labels", about, heads, learning_cells(learning)))
    if target.suggested is not None:
        said = suggestion_line(target.suggested)
        table = suggestion_table(target.suggested, report.node_ids)
        found.append(("Label these next", f"{said[0].upper()}{said[1:]}.", *table))
    return [(title, about, _table(title, heads, rows)) for title, about, heads, rows in found]


_ABOUT_DISTANCES = (
    "Steps along edges from a node to the nearest known value; of a held-out value, to the nearest one that was "
    "not held out with it. The typical error is the root mean square of out-of-fold errors."
)
_ABOUT_SPREADS = (
    "Known values in three parts of equal size, by the standard deviation of their out-of-fold predictions. Where "
    "error bars are right, errors grow with it and every part has its share inside the intervals. A part well below "
    "it, and another well above, show noise that varies more than assumed: intervals are right on average only."
)
SPREAD_TITLE = "Intervals by predicted standard deviation"
DISTANCE_TITLE = "Accuracy by distance to the nearest known value"
LEARNING_HEADS = ("#Labels", "#Expected R²", "#90 % band")


def distance_heads(level: float) -> tuple[str, ...]:
    """Heads of the table of accuracy by distance; those over numbers start with #."""
    return ("steps", "#nodes to predict", "#held-out values", "#typical error", f"#inside {100 * level:g} % interval")


def distance_cells(rows: pd.DataFrame) -> list[tuple[str, ...]]:
    """Rows of accuracy by distance as text."""
    columns = rows[["steps", "to_predict", "held_out", "error", "covered"]].itertuples(index=False)
    return [
        (steps, f"{n:,}", f"{held_out:,}", number(error), _percent(share) if math.isfinite(share) else DASH)
        for steps, n, held_out, error, share in columns
    ]


def _spread_table(rows: pd.DataFrame, level: float) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return heads and rows of the coverage of intervals by thirds of the predicted standard deviation."""
    inside = f"#inside {100 * level:g} % interval"
    cells: list[tuple[str, ...]] = [
        (str(third), f"{n:,}", number(std), number(error), _percent(share))
        for third, n, std, error, share in rows.itertuples(index=False)
    ]
    return ("third", "#held-out values", "#mean standard deviation", "#typical error", inside), cells


def group_words(frame: pd.DataFrame) -> str:
    """Return what a table of groups shows."""
    return "mean and total" if "total" in frame else "weighted mean"


def group_cells(frame: pd.DataFrame) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Heads and rows of a table of groups as text; weighted means come without totals."""
    heads = (str(frame.columns[0]), "#Nodes", "#Observed", "#Mean", "#Interval", "#Total", "#Interval of total")
    counts = [[f"{n:,.0f}" for n in frame[name]] for name in ("n_nodes", "n_observed")]
    columns = [frame.iloc[:, 0].astype(str).tolist(), *counts, *_with_interval(frame, "prediction", "")]
    if "total" not in frame:
        return (*heads[:3], "#Weighted mean", "#Interval"), list(zip(*columns, strict=True))
    return heads, list(zip(*columns, *_with_interval(frame, "total", "total_"), strict=True))


def _with_interval(frame: pd.DataFrame, name: str, prefix: str) -> tuple[list[str], list[str]]:
    """Return a column of numbers and one of their intervals as text."""
    places = decimals(frame[name].to_numpy())
    return _numbers(frame[name], places), _ranges(frame[f"{prefix}lower"], frame[f"{prefix}upper"], places)


def learning_cells(curve: pd.DataFrame) -> list[tuple[str, ...]]:
    """Rows of a learning curve as text."""
    return [
        (f"{int(n):,}", number(r2), f"{number(low, 2)} to {number(high, 2)}")
        for n, r2, low, high in curve[["n_labels", "expected_r2", "lower", "upper"]].itertuples(index=False)
    ]


def suggestion_line(found: pd.DataFrame) -> str:
    """The expected gain of the suggested labels, or why there are none."""
    if found.empty:
        return str(found.attrs["reason"])
    if "probability" in found:
        return "labels that would help most, in this order"
    now, then = number(found.attrs["now"]), number(found["expected_r2"].iloc[-1])
    return (
        f"labels that would help most, in this order: expected {found.attrs.get('score', 'R²')} {now} now, {then} then"
    )


def suggestion_table(found: pd.DataFrame, ids: Sequence[object]) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
    """Heads and rows of suggested labels: the id, then standard deviation now and R² then, or class and probability."""
    if "probability" in found:
        rows = found[["node", "prediction", "probability"]].itertuples(index=False)
        cells = [(str(ids[int(node)]), str(name), number(sure)) for node, name, sure in rows]
        return ("Node", "Prediction now", "#Probability"), cells
    places = decimals(found["std"].to_numpy()) if len(found) else None
    rows = found[["node", "std", "expected_r2"]].itertuples(index=False)
    cells = [(str(ids[int(node)]), number(std, places), number(r2)) for node, std, r2 in rows]
    return ("Node", "#Standard deviation now", f"#Expected {found.attrs.get('score', 'R²')} then"), cells


def _table(
    caption: str,
    heads: Sequence[str],
    rows: Iterable[Sequence[object]],
    marks: Sequence[Mapping[str, Any]] | None = None,
) -> TextTable:
    """A table of texts, numbers sorted by what they begin with; `marks`: what goes with the first cell of each row."""
    body = [
        {
            "cells": [
                (str(text), _leading(str(text)) if head[:1] == "#" else str(text))
                for head, text in zip(heads, row, strict=False)
            ]
        }
        for row in rows
    ]
    if marks is not None:
        body = [{**row, **mark} for row, mark in zip(body, marks, strict=True)]
    return {"caption": caption, "heads": heads, "body": body}


def _leading(text: str) -> float:
    """The number a text begins with, as it is shown to people; without one it sorts before all others."""
    try:
        return float(text.split(" ")[0].replace(",", "").replace(MINUS, "-"))
    except ValueError:
        return float(np.finfo(np.float64).min)  # -inf is no number of JSON


def _estimate(value: float) -> str:
    """A coefficient to three digits, because every feature has units of its own."""
    return number(value, decimals([-value, value])) if value else DASH


def _names(report: PredictionReport, nodes: Ints) -> list[str]:
    return [str(report.node_ids[node]) for node in nodes]


def _marks(drawn: GraphDrawing, nodes: Ints) -> list[dict[str, int]]:
    """Nodes of some rows, and their places in the drawings."""
    return [{"node": int(node), "place": int(drawn.place[node])} for node in nodes]


def _numbers(values: Iterable[float], places: int | None) -> list[str]:
    return [number(value, places) for value in values]


def _ranges(lower: Iterable[float], upper: Iterable[float], places: int | None) -> list[str]:
    return [f"{number(low, places)} to {number(high, places)}" for low, high in zip(lower, upper, strict=True)]


def _neighbours(graph: Graph, target: Prediction, nodes: Ints) -> tuple[list[str], list[str]]:
    """The number of neighbours of some nodes, and of the observed ones among them."""
    pattern = csr_array((np.ones(len(graph.indices)), graph.indices, graph.indptr), shape=(graph.n_nodes,) * 2)
    degree, known = np.diff(graph.indptr)[nodes], (pattern @ target.observed)[nodes]
    return [f"{n:,}" for n in degree], [f"{int(n):,}" for n in known]
