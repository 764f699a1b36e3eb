"""What a prediction leaves behind: the table, the rows of the page, the summary for scripts and that for people."""

import math
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from rich import box
from rich.console import Console
from rich.table import Table

from graphmrf._typing import Floats
from graphmrf.cli import terminal
from graphmrf.cli.comparison import Fit
from graphmrf.cli.prediction import ClassPrediction, Prediction, transform_name
from graphmrf.datasets import AttributedGraph
from graphmrf.datasets.table_files import listing
from graphmrf.errors import InvalidInputError
from graphmrf.estimators import GraphRegressor
from graphmrf.report import AlphaCurve, Effects, FeatureCoefficients, MethodRow, PredictionReport, TargetReport
from graphmrf.report.rows import effect_name
from graphmrf.text import above_zero, decimals, nothing_predicts, number, r2_in_words

Predictions: TypeAlias = Sequence[Prediction | ClassPrediction]

OUTPUT_COLUMNS = ("prediction", "std", "lower", "upper", "observed")
CLASS_COLUMNS = ("prediction", "probability", "observed")
_ERROR = " (standard error)"
_POSITIONS = (("x", "y"), ("lon", "lat"), ("lng", "lat"), ("longitude", "latitude"))
_PREVIEW = 8
"""Rows shown where nothing is saved, by eye: a screen has room for them and for the table of methods."""
_BAR = 30
"""Characters of a share of 100 %, by eye: the table stays within 80 columns; doubled, it does not."""


def result_table(table: AttributedGraph, predictions: Predictions, *, keep_columns: bool = False) -> pd.DataFrame:
    """Return one row per node: the id, prediction, std, lower, upper, observed (of each target); the input's columns.

    Raises
    ------
    InvalidInputError
        If a column to keep has the name of a result.
    """
    columns: dict[str, Any] = {table.id: table.frame[table.id]}
    for prediction in predictions:
        prefix = f"{prediction.name}_" if len(predictions) > 1 else ""
        columns |= {f"{prefix}{name}": values for name, values in _columns(prediction).items()}
    return pd.DataFrame(columns | (_kept(table, columns) if keep_columns else {}))


def _kept(table: AttributedGraph, results: dict[str, Any]) -> dict[str, Any]:
    """Return the columns of the input; raise where one has the name of a result."""
    others = {str(name): table.frame[name] for name in table.frame.columns if name != table.id}
    taken = [name for name in others if name in results]
    if taken:
        raise InvalidInputError(
            f"{table.path}: --keep-columns cannot keep {listing(taken)}, the name of a result; rename it"
        )
    return others


def _columns(prediction: Prediction | ClassPrediction) -> dict[str, Any]:
    """Return the columns of the result by name: the prediction, how sure it is, and whether it was given."""
    if isinstance(prediction, ClassPrediction):
        position = np.searchsorted(prediction.labels.classes, prediction.value)
        likely = prediction.probability[np.arange(position.size), position]
        return dict(zip(CLASS_COLUMNS, (prediction.value, likely, prediction.observed), strict=True))
    columns = (prediction.value, prediction.std, prediction.lower, prediction.upper, prediction.observed)
    return dict(zip(OUTPUT_COLUMNS, columns, strict=True))


def result_page(
    table: AttributedGraph, predictions: Predictions, *, notes: Sequence[str], command: str
) -> PredictionReport:
    """Return what the HTML page shows."""
    return PredictionReport(
        title=f"Predictions for {table.path.name if table.path else 'a graph'}",
        graph=table.graph,
        node_ids=table.frame[table.id].tolist(),
        targets=tuple(section for prediction in predictions for section in _sections(prediction)),
        coordinates=_coordinates(table),
        notes=notes,
        command=command,
        version=version("graphmrf"),
    )


def _sections(prediction: Prediction | ClassPrediction) -> Iterator[TargetReport]:
    """Yield the section of a target; of classes one for each, or for the later of two: its probability."""
    if isinstance(prediction, Prediction):
        yield _section(prediction)
        return
    labels, chosen = prediction.labels, prediction.chosen
    for code in [1] if labels.classes.size == 2 else range(labels.classes.size):
        yield TargetReport(
            name=f"probability of {prediction.name} = {labels.classes[code]}",
            y=labels.against_the_rest(code),
            prediction=prediction.probability[:, code],
            method=chosen.method.key,
            alpha=chosen.alpha,
            carries=_summed_up(prediction),
        )


def _section(prediction: Prediction) -> TargetReport:
    chosen = prediction.chosen
    columns = _columns(prediction) if prediction.has_error_bars else {}
    return TargetReport(
        name=prediction.name,
        y=prediction.y,
        prediction=prediction.value,
        method=chosen.method.key,
        alpha=chosen.alpha,
        std=columns.get("std"),
        lower=columns.get("lower"),
        upper=columns.get("upper"),
        level=prediction.interval,
        carries=prediction.carries,
        comparison=tuple(_method_row(fit) for fit in prediction.fits),
        curves=tuple(_curve(fit) for fit in prediction.fits if len(fit.scores["alpha"]) > 1),
        coefficients=_named_coefficients(chosen),
        effects=_effects(chosen),
        shares=chosen.shares,
    )


def _method_row(fit: Fit) -> MethodRow:
    return MethodRow(fit.method.key, fit.score, fit.fold_r2, fit.alpha, fit.error)


def _summed_up(found: ClassPrediction) -> str:
    """Say how accurate the classes are, how many nodes got each of them, and how the other methods fared."""
    counts = pd.Series(found.value[~found.observed]).value_counts()
    said = [f"Right for {100 * found.chosen.score:.0f} % of the labels that were held out."]
    said.append("Nodes by predicted class: " + ", ".join(f"{name} {n:,}" for name, n in counts.items()) + ".")
    others = [fit for fit in found.fits if fit is not found.chosen]
    if others:
        rates = (f"{fit.method.name.lower()} {100 * fit.score:.0f} %" for fit in others)
        said.append("Right by other methods: " + ", ".join(rates) + ".")
    return " ".join(said)


def _curve(fit: Fit) -> AlphaCurve:
    scores = fit.scores
    return AlphaCurve(fit.method.key, scores["alpha"], scores["mean_r2"], scores["fold_r2"], fit.alpha or 0.0)


def _linear(fit: Fit) -> Any:
    """Return the estimator that has the coefficients: the base, when residuals are propagated on top of it."""
    return getattr(fit.estimator, "base_", fit.estimator)


def _coefficients(fit: Fit) -> dict[str, float] | None:
    """Return the coefficients by feature; None for the field, whose effects may be anyone's: see `_effects`."""
    if isinstance(fit.estimator, GraphRegressor):
        return None
    coef = getattr(_linear(fit), "coef_", None)
    return {str(name): float(value) for name, value in coef.items()} if isinstance(coef, pd.Series) else None


def _named_coefficients(fit: Fit) -> FeatureCoefficients | None:
    named = _coefficients(fit)
    if named is None:
        return None
    return FeatureCoefficients(tuple(named), np.array(list(named.values())), getattr(_linear(fit), "intercept_", None))


def _effects(fit: Fit) -> Effects | None:
    """Return the linear effects of the field, with standard errors."""
    if not isinstance(fit.estimator, GraphRegressor) or fit.estimator.coefficients_.empty:
        return None
    frame, transform = fit.estimator.coefficients_, transform_name(fit.estimator)
    groups = [name for name in frame.columns if f"{name}{_ERROR}" in frame.columns]
    errors = frame[[f"{name}{_ERROR}" for name in groups]]
    names = tuple(str(name) for name in frame.index)
    return Effects(names, tuple(groups), frame[groups].to_numpy(), errors.to_numpy(), transform)


def _coordinates(table: AttributedGraph) -> Floats | None:
    known = {str(name).lower(): name for name in table.frame.columns}
    for x, y in _POSITIONS:
        if x in known and y in known:
            columns = table.frame[[known[x], known[y]]]
            numeric = all(kind.kind in "iuf" for kind in columns.dtypes)
            values = columns.to_numpy(dtype=np.float64) if numeric else np.full((1, 2), np.nan)
            return values if np.isfinite(values).all() else None
    return None


def result_summary(table: AttributedGraph, predictions: Predictions, *, notes: Sequence[str]) -> dict[str, Any]:
    """Return what a script may want to know, ready for JSON."""
    graph = table.graph
    return {
        "version": version("graphmrf"),
        "nodes": graph.n_nodes,
        "edges": graph.n_edges,
        "components": graph.n_components,
        "id": table.id,
        "targets": [_target_summary(prediction) for prediction in predictions],
        "notes": list(notes),
    }


def _target_summary(prediction: Prediction | ClassPrediction) -> dict[str, Any]:
    counts = {
        "target": prediction.name,
        "observed": int(prediction.observed.sum()),
        "predicted": int((~prediction.observed).sum()),
    }
    if isinstance(prediction, ClassPrediction):
        return counts | _class_summary(prediction)
    return counts | _number_summary(prediction)


def _number_summary(prediction: Prediction) -> dict[str, Any]:
    chosen = prediction.chosen
    return {
        "method": chosen.method.key,
        "alpha": chosen.alpha,
        "solver": getattr(chosen.estimator, "solver_", None),
        "r2": _finite(chosen.score),
        "r2_error": _finite(chosen.error),
        "interval": prediction.interval,
        "mean_std": _finite(float(prediction.std[~prediction.observed].mean())),
        "carries": prediction.carries,
        "comparison": [
            {
                "method": fit.method.key,
                "r2": _finite(fit.score),
                "r2_error": _finite(fit.error),
                "fold_r2": [_finite(score) for score in fit.fold_r2],
                "alpha": fit.alpha,
            }
            for fit in prediction.fits
        ],
        "coefficients": _coefficients(chosen),
        "effects": _effect_summary(chosen),
        "shares": chosen.shares or None,
    }


def _class_summary(prediction: ClassPrediction) -> dict[str, Any]:
    chosen = prediction.chosen
    return {
        "classes": prediction.labels.classes.tolist(),
        "method": chosen.method.key,
        "alpha": chosen.alpha,
        "cutoff": _finite(chosen.estimator.cutoff_),
        "accuracy": chosen.score,
        "comparison": [
            {"method": fit.method.key, "accuracy": fit.score, "alpha": fit.alpha} for fit in prediction.fits
        ],
    }


def _effect_summary(fit: Fit) -> dict[str, dict[str, dict[str, float]]] | None:
    rows = _effects(fit)
    if rows is None:
        return None
    return {
        group: {
            name: {"value": float(rows.values[i, k]), "error": float(rows.errors[i, k])}
            for i, name in enumerate(rows.names)
        }
        for k, group in enumerate(rows.groups)
    }


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def show_results(table: AttributedGraph, predictions: Predictions, *, saved: Sequence[Path]) -> None:
    """Print how every target was predicted, and where the results are or how to keep them."""
    for prediction in predictions:
        if isinstance(prediction, ClassPrediction):
            _show_classes(prediction)
        else:
            _show_numbers(prediction)
    if saved:
        terminal.say("Saved " + " and ".join(str(path) for path in saved))
    else:
        _preview(table, predictions)


def _show_numbers(prediction: Prediction) -> None:
    chosen = prediction.chosen
    accuracy = r2_in_words(chosen.score, chosen.error)
    terminal.say(f"{_counted(prediction, 'predicted', 'known values')}, cross-validated {accuracy}")
    if not above_zero(chosen.score, chosen.error):
        terminal.say(nothing_predicts(prediction.name, chosen.score, chosen.error))
    if len(prediction.fits) > 1:
        _print_methods(prediction, ("R²", "±", "alpha"))
    if prediction.chosen.shares:
        _print_shares(prediction.chosen.shares)
    if prediction.carries:
        terminal.say(prediction.carries)


def _show_classes(prediction: ClassPrediction) -> None:
    right = f"right for {100 * prediction.chosen.score:.0f} % of the labels held out"
    terminal.say(f"{_counted(prediction, 'classified', 'labels')}, {right}")
    if len(prediction.fits) > 1:
        _print_methods(prediction, ("accuracy",))


def _counted(prediction: Prediction | ClassPrediction, verb: str, known: str) -> str:
    """Return how many nodes were predicted, from how many others, by which method."""
    chosen, observed = prediction.chosen, prediction.observed
    smoothing = "" if chosen.alpha is None else f", alpha {chosen.alpha:g}"
    return (
        f"{prediction.name}: {int((~observed).sum())} of {observed.size} nodes {verb} from {int(observed.sum())} "
        f"{known} by {chosen.method.name.lower()} ({chosen.method.key}{smoothing})"
    )


def _print_methods(prediction: Prediction | ClassPrediction, numbers: Sequence[str]) -> None:
    """Print a row for every method: what it uses, its accuracy and, of numbers, standard error and smoothing level."""
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("method")
    table.add_column("uses")
    for name in numbers:
        table.add_column(name, justify="right")
    for fit in prediction.fits:
        star = " *" if fit is prediction.chosen else ""
        more = [number(fit.error), "" if fit.alpha is None else f"{fit.alpha:g}"] if fit.scores else []
        table.add_row(fit.method.key + star, fit.method.uses, number(fit.score), *more)
    terminal.print_rich(table)


def _print_shares(shares: dict[str, float]) -> None:
    """Print the share of the variance by kind of effect, with bars."""
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("what carries it")
    table.add_column("share", justify="right")
    table.add_column("")
    block = "█" if Console().encoding.startswith("utf") else "#"
    for name, share in shares.items():
        table.add_row(effect_name(name), f"{100 * share:.0f} %", block * round(_BAR * share))
    terminal.print_rich(table)


def _preview(table: AttributedGraph, predictions: Predictions) -> None:
    for prediction in predictions:
        columns: dict[str, Any] = {table.id: table.frame[table.id], **_columns(prediction)}
        frame = pd.DataFrame(columns)[~prediction.observed].drop(columns="observed")
        terminal.print_rich(_first(frame, title=prediction.name if len(predictions) > 1 else None))
        shown = min(_PREVIEW, len(frame))
        terminal.say(f"The first {shown} of {len(frame)} predicted nodes; save all with -o predictions.csv")


def _first(frame: pd.DataFrame, *, title: str | None) -> Table:
    """Return the first rows, all numbers with the decimals of the prediction."""
    table = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left")
    for name in frame.columns:
        table.add_column(str(name), justify="left" if name == frame.columns[0] else "right")
    places = _places(frame["prediction"]) if frame["prediction"].dtype.kind == "f" else 3
    for row in zip(*(_cells(frame[name].head(_PREVIEW), places) for name in frame.columns), strict=True):
        table.add_row(*row)
    return table


def _places(column: pd.Series) -> int | None:
    """Return the decimals that show the spread of a column, or the size of one that is constant but for rounding."""
    values = column.to_numpy()
    return decimals(values[:1] if np.ptp(values) <= 1e-9 * np.abs(values).max() else values)


def _cells(column: pd.Series, places: int | None) -> list[str]:
    return [number(cell, places) if column.dtype.kind == "f" else str(cell) for cell in column]
