"""The tables of a report as texts with sort keys, which the templates escape and lay out."""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NotRequired, TypeAlias, TypedDict

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

# Where a missing number sorts: before all others, and still a number for JavaScript, which -inf in HTML is not.
_MISSING = float(np.finfo(np.float64).min)
TextCell: TypeAlias = tuple[str, float | str]  # a text, and what it is sorted by: a number for a cell of numbers


class TextRow(TypedDict):
    """One row: its cells, and what goes with the first of them."""

    cells: Sequence[TextCell]
    node: NotRequired[int]
    place: NotRequired[int]
    chosen: NotRequired[bool]
    about: NotRequired[str]
    width: NotRequired[str]
    quiet: NotRequired[bool]


class TextTable(TypedDict):
    """A table; a head that starts with # is over numbers, and `which` names the listed part of the rows."""

    caption: str
    heads: Sequence[str]
    body: Sequence[TextRow]
    which: NotRequired[str]


def most_uncertain(target: Prediction, limit: int = 25) -> Ints:
    """Predicted nodes with the largest std, largest first; ties in node order. 25 rows are two screens."""
    if target.std is None:
        return np.empty(0, dtype=np.int64)
    hidden = np.flatnonzero(~target.observed)
    return hidden[np.argsort(-target.std[hidden], kind="stable")[:limit]]


def uncertain_nodes(report: PredictionReport, target: Prediction, drawn: GraphDrawing) -> TextTable | None:
    """The predicted nodes with the largest standard deviations; None without error bars."""
    nodes = most_uncertain(target)
    if not len(nodes):
        return None
    interval = [] if target.lower is None else [f"#{100 * target.level:g} % interval"]
    heads = ["Node", "#Prediction", "#Std", *interval, "#Neighbours", "#Observed among them"]
    around, places = _neighbours(report.graph, target), decimals(target.values)
    body = [_node_row(report, drawn, node, *_moments(target, node, places), *around(node)) for node in nodes]
    return {"caption": f"Most uncertain predictions of {target.name}", "heads": heads, "body": body}


def surprising_nodes(
    report: PredictionReport, target: Prediction, drawn: GraphDrawing, *, surprising: float = 2.0, limit: int = 25
) -> TextTable | None:
    """The labels farthest from their out-of-fold prediction, in standard deviations; None where none was held out."""
    residual = target.at_labels("residual")
    beyond = np.flatnonzero(np.abs(np.nan_to_num(residual)) >= surprising)
    if target.held_out is None:
        return None
    nodes = beyond[np.argsort(-np.abs(residual[beyond]), kind="stable")[:limit]]
    said, places = target.at_labels("out_of_fold"), decimals(target.values)
    body = [
        _node_row(
            report,
            drawn,
            node,
            _numeric(target.y[node], places),
            _numeric(said[node], places),
            _numeric(residual[node], 1),
        )
        for node in nodes
    ]
    heads = ["Node", "#Observed", "#Out of fold", "#Residual in std"]
    found: TextTable = {"caption": f"Surprising values of {target.name}", "heads": heads, "body": body}
    expected = 2.0 * norm.sf(surprising) * len(target.held_out)
    found["which"] = (
        f"{len(beyond):,} of {len(target.held_out):,} known values, where chance alone gives {expected:,.0f}"
    )
    return found


def _node_row(report: PredictionReport, drawn: GraphDrawing, node: int, *cells: TextCell) -> TextRow:
    """The row of a node, with its place in the drawings."""
    name = str(report.node_ids[node])
    return {"cells": [(name, name), *cells], "node": int(node), "place": int(drawn.place[node])}


def method_rows(target: Prediction) -> TextTable | None:
    """Accuracy, spread over folds and smoothing level of every method, best first; None without rows."""
    if not target.methods:
        return None
    rows = sorted(target.methods, key=lambda row: -row.score if np.isfinite(row.score) else np.inf)
    body = [_method_row(row, chosen=row.method.key == target.method) for row in rows]
    caption = f"Accuracy of each method for {target.name}"
    if target.classes is not None:
        for text, row in zip(body, rows, strict=True):
            name, right, _, alpha = text["cells"]
            text["cells"] = [name, right, _numeric(row.loss, 3), alpha]
        return {"caption": caption, "heads": ["Method", "#Right", "#Log loss", "#α"], "body": body}
    return {"caption": caption, "heads": ["Method", f"#{target.score_name}", "#Folds", "#α"], "body": body}


def effect_rows(rows: Effects | None, *, standardised: bool = False) -> TextTable | None:
    """Coefficients, the largest effects first; None where there are none."""
    if rows is None or not rows.values.any():
        return None
    values = rows.standardised if standardised else rows.values
    body: list[TextRow] = []
    for i in rows.order[:LISTED_COEFFICIENTS]:
        name = str(rows.names[i])
        body.append({"cells": [(name, name), _estimate(values[i])]})
    which = _which(len(rows.names), "largest", "features") or "Linear effects"
    per = "standard deviation" if standardised else "unit"
    caption = f"Effects of one {per} of each feature"
    return {"caption": caption, "heads": ["Feature", "#coefficient"], "body": body, "which": which}


def class_rows(target: Prediction) -> TextTable:
    """Nodes of every class, known and predicted, and how often it was found and right among held-out labels."""
    truth, said = target.codes[target.observed], target.tested
    body: list[TextRow] = []
    for k, name in enumerate(target.classes):
        hits, is_k, said_k = int(np.sum((truth == k) & (said == k))), int(np.sum(truth == k)), int(np.sum(said == k))
        counts = [(f"{n:,}", float(n)) for n in (is_k, int(np.sum(target.codes[~target.observed] == k)))]
        body.append({"cells": [(name, name), *counts, _share(hits, is_k), _share(hits, said_k)]})
    heads = ["Class", "#Observed", "#Predicted", "#Recall", "#Precision"]
    return {"caption": f"Classes of {target.name}", "heads": heads, "body": body}


def _share(part: int, whole: int) -> TextCell:
    return (f"{100 * part / whole:.0f} %", part / whole) if whole else (DASH, _MISSING)


def confusion_matrix(target: Prediction, *, most: int = 20) -> dict[str, Any] | None:
    """Counts of held-out labels by true and predicted class, with the share of the row that shades a cell.

    None with more classes than fit a screen.
    """
    k = len(target.classes)
    if k > most or not len(target.tested):
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
    around, body = _neighbours(report.graph, target), []
    for node in nodes:
        others = target.probability[node].copy()
        others[target.codes[node]] = -1.0
        second = int(others.argmax())
        chosen, other = (str(target.classes[code]) for code in (target.codes[node], second))
        p, q = ((f"{100 * each:.0f} %", float(each)) for each in (target.sure[node], others[second]))
        body.append(_node_row(report, drawn, node, (chosen, chosen), p, (other, other), q, *around(node)))
    heads = ["Node", "Class", "#Probability", "Or else", "#Probability of that", "#Neighbours", "#Observed among them"]
    return {"caption": f"Least certain classes of {target.name}", "heads": heads, "body": body}


def share_rows(target: Prediction) -> TextTable | None:
    """Share of the variance of every kind of effect, as a number and a bar; None where shares are not known."""
    if not target.explanation.shares:
        return None
    body: list[TextRow] = []
    for name, share in target.explanation.shares.items():
        label = effect_name(name)
        cells: list[TextCell] = [(label[0].upper() + label[1:], label), (f"{100 * share:.0f} %", float(share))]
        about, width = EFFECTS.get(name, ("", ""))[1], f"{100 * share:.1f}"
        body.append({"cells": cells, "about": about, "width": width, "quiet": name == "noise"})
    caption = f"Share of the variation of {target.name} by kind of effect"
    return {"caption": caption, "heads": ["Effect", "#Share", ""], "body": body}


def further_tables(report: PredictionReport, target: Prediction) -> list[tuple[str, str, TextTable]]:
    """Tables that come after the others, each with a title and a sentence; only those that have rows."""
    found: list[tuple[str, str, TextTable]] = []
    if target.by_distance is not None and len(target.by_distance):
        rows = distance_cells(target.by_distance)
        found.append(
            (DISTANCE_TITLE, _ABOUT_DISTANCES, _text_table(DISTANCE_TITLE, distance_heads(target.level), rows))
        )
    if target.by_spread is not None:
        heads, rows = _spread_table(target.by_spread, target.level)
        found.append((SPREAD_TITLE, _ABOUT_SPREADS, _text_table(SPREAD_TITLE, heads, rows)))
    if target.groups is not None:
        title = f"By {target.groups.columns[0]}"
        about = (
            f"{group_words(target.groups).capitalize()} of {target.name}, known values included, with "
            f"{100 * target.level:g} % intervals from the joint distribution of all nodes."
        )
        found.append((title, about, _text_table(title, *group_cells(target.groups))))
    learning = target.explanation.learning
    if learning is not None:
        title, heads = "How many labels", [head.replace("R²", target.score_name) for head in LEARNING_HEADS]
        about = f"The curve in numbers: expected {target.score_name} on the nodes without a label."
        found.append((title, about, _text_table(title, heads, learning_cells(learning))))
    if target.suggested is not None:
        title, said = "Label these next", suggestion_line(target.suggested)
        table = _text_table(title, *suggestion_table(target.suggested, report.node_ids))
        found.append((title, f"{said[0].upper()}{said[1:]}.", table))
    return found


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
    """Rows of accuracy by distance as text.

    Examples
    --------
    >>> distance_cells(pd.DataFrame({"steps": ["1"], "to_predict": 1200, "held_out": 30, "error": 0.5, "covered": 0.9}))
    [('1', '1,200', '30', '0.500', '90 %')]
    """
    numbers = [[f"{n:,}" for n in rows[name].tolist()] for name in ("to_predict", "held_out")]
    errors = map(number, rows["error"].tolist())
    shares = (f"{100 * share:.0f} %" if math.isfinite(share) else DASH for share in rows["covered"].tolist())
    return list(zip(rows["steps"].tolist(), *numbers, errors, shares, strict=True))


def _spread_table(rows: pd.DataFrame, level: float) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return heads and rows of the coverage of intervals by thirds of the predicted standard deviation."""
    inside = f"#inside {100 * level:g} % interval"
    cells: list[tuple[str, ...]] = [
        (str(third), f"{n:,}", number(std), number(error), f"{100 * share:.0f} %")
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
    ends = zip(frame[f"{prefix}lower"], frame[f"{prefix}upper"], strict=True)
    return [number(each, places) for each in frame[name]], [
        f"{number(low, places)} to {number(high, places)}" for low, high in ends
    ]


def learning_cells(curve: pd.DataFrame) -> list[tuple[str, ...]]:
    """Rows of a learning curve as text.

    Examples
    --------
    >>> learning_cells(pd.DataFrame({"n_labels": [1200], "expected_r2": [0.5], "lower": [0.4], "upper": [0.6]}))
    [('1,200', '0.500', '0.40 to 0.60')]
    """
    return [
        (f"{int(n):,}", number(r2, 3), f"{number(low, 2)} to {number(high, 2)}")
        for n, r2, low, high in curve[["n_labels", "expected_r2", "lower", "upper"]].itertuples(index=False)
    ]


def suggestion_line(found: pd.DataFrame) -> str:
    """The expected gain of the suggested labels, or why there are none."""
    if found.empty:
        return str(found.attrs["reason"])
    if "probability" in found:
        return "labels that would help most, in this order"
    now, then = number(found.attrs["now"], 3), number(found["expected_r2"].iloc[-1], 3)
    score = found.attrs.get("score", "R²")
    return f"labels that would help most, in this order: expected {score} {now} now, {then} then"


def suggestion_table(found: pd.DataFrame, ids: Sequence[object]) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
    """Heads and rows of suggested labels: the id, then standard deviation now and R² then, or class and probability."""
    if "probability" in found:
        rows = found[["node", "prediction", "probability"]].itertuples(index=False)
        cells = [(str(ids[int(node)]), str(name), number(sure, 3)) for node, name, sure in rows]
        return ("Node", "Prediction now", "#Probability"), cells
    places = decimals(found["std"].to_numpy()) if len(found) else None
    rows = found[["node", "std", "expected_r2"]].itertuples(index=False)
    cells = [(str(ids[int(node)]), number(std, places), number(r2, 3)) for node, std, r2 in rows]
    return ("Node", "#Standard deviation now", f"#Expected {found.attrs.get('score', 'R²')} then"), cells


def _text_table(caption: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> TextTable:
    """A table of texts, sorted by the numbers they begin with."""
    body: list[TextRow] = []
    for texts in rows:
        pairs = zip(heads, texts, strict=True)
        body.append({"cells": [(text, _leading(text) if head.startswith("#") else text) for head, text in pairs]})
    return {"caption": caption, "heads": heads, "body": body}


def _leading(text: str) -> float:
    """The number a text begins with, as it is shown to people."""
    try:
        return float(text.split(" ")[0].replace(",", "").replace(MINUS, "-"))
    except ValueError:
        return _MISSING


def _which(total: int, order: str, noun: str) -> str:
    """Say how many of the rows are listed; nothing where all are."""
    return f"The {LISTED_COEFFICIENTS} {order} of {total:,} {noun}" if total > LISTED_COEFFICIENTS else ""


def _estimate(value: float) -> TextCell:
    """A coefficient to three digits, because every feature has units of its own."""
    return _numeric(value, decimals([-value, value])) if value else (DASH, 0.0)


def _moments(target: Prediction, node: int, places: int | None) -> Iterator[TextCell]:
    """Prediction, standard deviation and, where there is one, the interval of a node."""
    assert target.std is not None
    yield _numeric(target.value[node], places)
    yield _numeric(target.std[node], places)
    if target.lower is not None and target.upper is not None:
        low, high = float(target.lower[node]), float(target.upper[node])
        yield f"{number(low, places)} to {number(high, places)}", _sortable(high - low)


def _method_row(row: FittedMethod, *, chosen: bool) -> TextRow:
    folds = [fold for fold in row.fold_scores if np.isfinite(fold)]
    spread = f"{number(min(folds), 2)} to {number(max(folds), 2)}" if folds else DASH
    cells: list[TextCell] = [
        (row.method.name, row.method.key),
        _numeric(row.score, 3),
        (spread, max(folds) - min(folds) if folds else -1.0),
        (smoothing_level(row.alpha), -1.0 if row.alpha is None else row.alpha),
    ]
    return {"cells": cells, "chosen": chosen, "about": f"uses {row.method.uses}" if row.method.uses else ""}


def _numeric(value: float, places: int | None) -> TextCell:
    return number(value, places), _sortable(value)


def _sortable(value: float) -> float:
    return float(value) if math.isfinite(value) else _MISSING


def _neighbours(graph: Graph, target: Prediction) -> Callable[[int], list[TextCell]]:
    """The cells that count the neighbours of a node, and the observed ones among them."""
    pattern = csr_array((np.ones(len(graph.indices)), graph.indices, graph.indptr), shape=(graph.n_nodes,) * 2)
    degree, known = np.diff(graph.indptr), pattern @ target.observed
    return lambda node: [(f"{n:,}", float(n)) for n in (int(degree[node]), int(known[node]))]
