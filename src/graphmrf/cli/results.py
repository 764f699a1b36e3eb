"""What a prediction leaves behind: the table, the rows of the page, the summary for scripts and that for people."""

import math
import shlex
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from rich import box
from rich.console import Console
from rich.table import Table

from graphmrf import datasets
from graphmrf._typing import Floats, Ints
from graphmrf.cli import distances, terminal
from graphmrf.cli.comparison import Fit
from graphmrf.cli.prediction import ClassPrediction, Prediction, transform_name
from graphmrf.datasets import AttributedGraph, Features
from graphmrf.datasets.table_files import listing
from graphmrf.errors import InvalidInputError
from graphmrf.estimators import GraphRegressor
from graphmrf.report import (
    AlphaCurve,
    ClassReport,
    Content,
    Effects,
    FurtherTable,
    MethodRow,
    PredictionReport,
    TargetReport,
    pack_content,
)
from graphmrf.report.rows import effect_name
from graphmrf.text import above_zero, decimals, nothing_predicts, number, r2_in_words

Predictions: TypeAlias = Sequence[Prediction | ClassPrediction]

OUTPUT_COLUMNS = ("prediction", "std", "lower", "upper", "observed", "left_out", "residual")
CLASS_COLUMNS = ("prediction", "probability", "observed", "left_out")
_LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
"""Levels of the intervals whose coverage is shown, by eye: a line through them is smooth."""
_BENT = 0.005
"""Share of nonlinear effects from which dependence is drawn: less rounds to 0 %, and lines are straight."""
_CURVES, _STEPS = 12, 15
"""Features that are tried, and points of a curve."""
_POSITIONS = (("x", "y"), ("lon", "lat"), ("lng", "lat"), ("longitude", "latitude"))
_PREVIEW = 8
"""Rows shown where nothing is saved, by eye: a screen has room for them and for the table of methods."""
_BAR = 30
"""Characters of a share of 100 %, by eye: the table stays within 80 columns."""


def result_table(table: AttributedGraph, predictions: Predictions, *, keep_columns: bool = False) -> pd.DataFrame:
    """Return one row per node: the id, prediction, std, lower, upper, observed (of each target); the input's columns.

    Raises
    ------
    InvalidInputError
        If a column to keep has the name of a result.
    """
    columns: dict[str, Any] = {name: table.frame[name] for name in table.keys}
    for prediction in predictions:
        prefix = f"{prediction.name}_" if len(predictions) > 1 else ""
        columns |= {f"{prefix}{name}": values for name, values in _columns(prediction).items()}
    return pd.DataFrame(columns | (_kept(table, columns) if keep_columns else {}))


def write_results(
    table: AttributedGraph,
    predictions: Predictions,
    output: Path,
    *,
    keep_columns: bool = False,
    content: Content | None = None,
) -> None:
    """Write the table of results; GeoJSON with the places of the nodes, Parquet with the content of the page."""
    frame = result_table(table, predictions, keep_columns=keep_columns)
    places = places_of(table, output)
    kept = pack_content(content) if content is not None and datasets.keeps_page(output) else None
    datasets.write(frame, output, places=places, page=kept)


def places_of(table: AttributedGraph, output: Path | None) -> list[Any] | None:
    """Return the places of the nodes for a file of GeoJSON, None for others; raise where nobody says what they are."""
    return None if output is None or not datasets.is_geojson(output) else datasets.geometries(table)


def _kept(table: AttributedGraph, results: dict[str, Any]) -> dict[str, Any]:
    """Return the columns of the input; raise where one has the name of a result."""
    others = {str(name): table.frame[name] for name in table.frame.columns if name not in table.keys}
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
        said = np.full(position.size, None, dtype=object)
        said[prediction.observed] = prediction.labels.classes[_held_out_codes(prediction.chosen)]
        return dict(zip(CLASS_COLUMNS, (prediction.value, likely, prediction.observed, said), strict=True))
    known, (left_out, residual) = prediction.observed, held_out(prediction)
    whole = [np.full(known.size, np.nan) for _ in range(2)]
    whole[0][known], whole[1][known] = left_out, residual
    columns = (prediction.value, prediction.std, prediction.lower, prediction.upper, prediction.observed, *whole)
    return dict(zip(OUTPUT_COLUMNS, columns, strict=True))


def held_out(prediction: Prediction) -> tuple[Floats, Floats]:
    """Return the out-of-fold prediction (m,) of every known value, and its standardised residual.

    The field has a standard deviation for each; residuals of other methods are over the root mean square of all.
    """
    fit, known = prediction.chosen, prediction.y[prediction.observed]
    left_out = fit.out_of_fold
    std = np.full(known.size, np.sqrt(np.mean((known - left_out) ** 2)))
    if fit.held_out is not None and isinstance(fit.estimator, GraphRegressor):
        std = fit.held_out.predictions[1]
    with np.errstate(invalid="ignore", divide="ignore"):
        residual = (known - left_out) / std
    return left_out, np.where(np.isfinite(residual), residual, np.nan)


def _held_out_codes(fit: Fit) -> Ints:
    """Return the class, as its position, of every label by a fit without its fold."""
    return np.asarray(fit.estimator.held_out_).astype(np.int64)


def result_page(
    table: AttributedGraph, predictions: Predictions, features: Features, *, notes: Sequence[str], command: str
) -> PredictionReport:
    """Return what the HTML page shows."""
    return PredictionReport(
        title=f"Predictions for {table.path.name if table.path else 'a graph'}",
        graph=table.graph,
        node_ids=table.labels,
        targets=tuple(
            _section(each, features.unfilled) if isinstance(each, Prediction) else _class_section(each)
            for each in predictions
        ),
        coordinates=_coordinates(table),
        shapes=_outlines(table.shapes),
        features=table.frame[list(features.names)],
        notes=notes,
        command=command,
        version=version("graphmrf"),
    )


def _class_section(prediction: ClassPrediction) -> ClassReport:
    chosen, labels = prediction.chosen, prediction.labels
    return ClassReport(
        name=prediction.name,
        classes=[str(each) for each in labels.classes],
        codes=np.searchsorted(labels.classes, prediction.value),
        observed=prediction.observed,
        probability=prediction.probability,
        method=chosen.method.key,
        alpha=chosen.alpha,
        left_out=_held_out_codes(chosen),
        left_out_probability=chosen.estimator.held_out_proba_,
        comparison=tuple(MethodRow(fit.method.key, fit.score, (), fit.alpha, fit.error) for fit in prediction.fits),
    )


def _section(prediction: Prediction, features: pd.DataFrame) -> TargetReport:
    chosen = prediction.chosen
    bars = prediction.has_error_bars
    out_of_fold, residual = held_out(prediction)
    tested = {"node": np.flatnonzero(prediction.observed), "out_of_fold": out_of_fold, "residual": residual}
    return TargetReport(
        name=prediction.name,
        y=prediction.y,
        prediction=prediction.value,
        method=chosen.method.key,
        alpha=chosen.alpha,
        std=prediction.std if bars else None,
        lower=prediction.lower if bars else None,
        upper=prediction.upper if bars else None,
        level=prediction.interval,
        carries=prediction.carries,
        comparison=tuple(_method_row(fit) for fit in prediction.fits),
        curves=tuple(_curve(fit) for fit in prediction.fits if len(fit.scores["alpha"]) > 1),
        effects=effects_of(chosen, features),
        shares=chosen.shares,
        held_out=pd.DataFrame(tested),
        coverage=coverage_table(chosen, prediction.interval) if bars else None,
        dependence=dependence_table(chosen, features),
        learning=learning_curve(chosen),
        further=(*_by_distance(prediction), *without_learning(chosen, prediction.name)),
        measured=() if chosen.held_out is None else chosen.held_out.folds.notes,
        in_regions=chosen.regions is not None,
    )


def _by_distance(prediction: Prediction) -> tuple[FurtherTable, ...]:
    """Return the table of accuracy by distance; none where distances are not known."""
    rows = _distance_rows(prediction)
    return () if rows.empty else (distances.page_table(rows, prediction.interval),)


def _distance_rows(prediction: Prediction) -> pd.DataFrame:
    held_out = prediction.chosen.held_out
    if held_out is None:
        return pd.DataFrame()
    return held_out.by_distance(prediction.chosen.out_of_fold, prediction.interval)


def learning_curve(fit: Fit) -> pd.DataFrame | None:
    """Return the accuracy to expect of the field with more labels; None for others, and where few nodes are left."""
    if not isinstance(fit.estimator, GraphRegressor):
        return None
    curve = fit.estimator.expected_learning_curve()
    return curve.assign(upper=curve["upper"].clip(upper=1.0)) if len(curve) > 1 else None


def without_learning(fit: Fit, target: str) -> tuple[FurtherTable, ...]:
    """Return the section of the page that stands for the learning curve where the field was not used."""
    if isinstance(fit.estimator, GraphRegressor):
        return ()
    about = (
        "Only field regression estimates this before they are known. Use: graphmrf foresee NODES EDGES --target "
        f"{shlex.quote(target)}"
    )
    return (FurtherTable("What more known values would bring", about, (), ()),)


def dependence_table(fit: Fit, features: pd.DataFrame) -> pd.DataFrame | None:
    """Return the mean prediction against each feature; None without nonlinear effects."""
    model = fit.estimator
    if not isinstance(model, GraphRegressor) or fit.shares.get("nonlinear effects", 0.0) < _BENT:
        return None
    rows = []
    for name in [name for name in features.columns if features[name].nunique() > 2][:_CURVES]:
        low, high = np.nanquantile(features[name].to_numpy(float), [0.02, 0.98])
        x = np.linspace(low, high, _STEPS)
        rows.append(pd.DataFrame({"feature": str(name), "x": x, "mean": model.partial_dependence(name, x)}))
    return pd.concat(rows, ignore_index=True) if rows else None


def coverage_table(fit: Fit, level: float) -> pd.DataFrame | None:
    """Return the share of known values inside their out-of-fold intervals of several levels."""
    if fit.held_out is None or not fit.held_out.has_error_bars:
        return None
    levels, weights = np.unique([*_LEVELS, level]), fit.held_out.folds.weights
    inside = [float(np.average(fit.held_out.covered(each), weights=weights)) for each in levels]
    return pd.DataFrame({"level": levels, "inside": inside})


def _method_row(fit: Fit) -> MethodRow:
    return MethodRow(fit.method.key, fit.score, fit.fold_r2, fit.alpha, fit.error)


def _curve(fit: Fit) -> AlphaCurve:
    scores = fit.scores
    return AlphaCurve(fit.method.key, scores["alpha"], scores["mean_r2"], scores["fold_r2"], fit.alpha or 0.0)


def _linear(fit: Fit) -> Any:
    """Return the estimator that has the coefficients: the base, when residuals are propagated on top of it."""
    return getattr(fit.estimator, "base_", fit.estimator)


def _coefficients(fit: Fit) -> dict[str, float] | None:
    """Return the coefficients by feature; None for methods without."""
    coef = getattr(_linear(fit), "coef_", None)
    return {str(name): float(value) for name, value in coef.items()} if isinstance(coef, pd.Series) else None


def effects_of(fit: Fit, features: pd.DataFrame) -> Effects | None:
    """Return the coefficients of the method in use, with the standard deviations of the features."""
    named = _coefficients(fit)
    if not named:
        return None
    scales = np.array([float(np.nanstd(features[name].to_numpy(float))) for name in named])
    transform = transform_name(fit.estimator) if isinstance(fit.estimator, GraphRegressor) else ""
    intercept = getattr(_linear(fit), "intercept_", None)
    return Effects(tuple(named), np.array(list(named.values())), scales, transform, intercept)


def _coordinates(table: AttributedGraph) -> Floats | None:
    """Return where the nodes are drawn, by the columns that say so; None for no such columns."""
    if table.shapes is not None:
        inside = _flat(table.shapes).representative_point()
        return np.column_stack([inside.x, inside.y])
    known = {str(name).lower(): name for name in table.frame.columns}
    for x, y in _POSITIONS:
        if x in known and y in known:
            columns = table.frame[[known[x], known[y]]]
            numeric = all(kind.kind in "iuf" for kind in columns.dtypes)
            values = columns.to_numpy(dtype=np.float64) if numeric else np.full((1, 2), np.nan)
            if not np.isfinite(values).all():
                return None
            return values if x == "x" else values * [_shrunk(values[:, 1]), 1.0]
    return None


def _shrunk(latitude: Floats) -> float:
    """Return how long a degree of longitude is in degrees of latitude, in the middle of some places."""
    middle = 0.5 * float(latitude.min() + latitude.max())
    return max(math.cos(math.radians(middle)), 0.1) if abs(middle) <= 90 else 1.0


def _flat(shapes: Any) -> Any:
    """Return areas in a plane: those in degrees with longitudes as long as they are in the middle."""
    if shapes.crs is not None and not shapes.crs.is_geographic:
        return shapes
    bounds = shapes.total_bounds
    degrees = shapes.crs is not None or (np.abs(bounds) <= [180, 90, 180, 90]).all()
    return shapes.scale(_shrunk(bounds[[1, 3]]), 1.0, origin=(0, 0)) if degrees else shapes


def _outlines(shapes: Any) -> list[list[Floats]] | None:
    """Return the rings of every area; None where there are none."""
    if shapes is None:
        return None
    return [_rings(each) for each in _flat(shapes)]


def _rings(area: Any) -> list[Floats]:
    parts = [part for part in getattr(area, "geoms", [area]) if part.geom_type == "Polygon"]
    lines = [ring for part in parts for ring in (part.exterior, *part.interiors)]
    return [np.asarray(ring.coords, dtype=float)[:-1, :2] for ring in lines]


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
        "shares": chosen.shares or None,
        "held_out_regions": chosen.regions is not None,
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
    if chosen.regions is not None:
        _print_distances(prediction)
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


def _print_distances(prediction: Prediction) -> None:
    """Print accuracy and coverage by distance to the nearest known value."""
    table = Table(box=box.SIMPLE_HEAD, title=distances.TITLE, title_justify="left")
    for name in distances.heads(prediction.interval):
        table.add_column(name, justify="right")
    for row in distances.cells(_distance_rows(prediction)):
        table.add_row(*row)
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
        columns: dict[str, Any] = {**table.frame[list(table.keys)], **_columns(prediction)}
        known_only = [name for name in ("observed", "left_out", "residual") if name in columns]
        frame = pd.DataFrame(columns)[~prediction.observed].drop(columns=known_only)
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
