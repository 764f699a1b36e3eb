"""What commands leave behind: tables, pages, summaries for scripts, and what is printed."""

import json
import logging
import math
import re
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import typer
from rich.console import Console

from graphmrf import datasets, report
from graphmrf._typing import Floats
from graphmrf.cli import terminal
from graphmrf.comparison import FittedMethod, Prediction
from graphmrf.comparison.explanation import effect_name
from graphmrf.datasets import AttributedGraph
from graphmrf.datasets.table_files import listing
from graphmrf.errors import InvalidInputError
from graphmrf.estimators import GraphImputer
from graphmrf.report import Content, PredictionReport, pack_content, tables
from graphmrf.text import decimals, number, r2_in_words

OUTPUT_COLUMNS = ("prediction", "std", "lower", "upper", "observed", "left_out", "residual")
ABOVE = "probability_above"  # column where a value was asked about
SMOOTHED = ("smoothed", "smoothed_lower", "smoothed_upper")  # the rates of counts, the shares of successes
CLASS_COLUMNS = ("prediction", "probability", "observed", "left_out")


def write_all(
    table: AttributedGraph,
    predictions: Sequence[Prediction],
    content: Content | None,
    *,
    output: Path | None,
    keep_columns: bool,
    group: str | None,
    page: Path | None,
) -> None:
    """Write the table, the groups and the page, as far as they are asked for.

    Geographic files have the places of nodes, Parquet the content of the page.
    """
    if output is not None:
        frame = _result_table(table, predictions, keep_columns=keep_columns)
        packed = pack_content(content) if content is not None and datasets.keeps_page(output) else None
        datasets.write(frame, output, places=places_of(table, output), page=packed)
        groups = {each.name: each.groups for each in predictions if each.groups is not None}
        if groups and group is not None:
            datasets.write(_all_groups(groups), group_file(output, group))
    if page is not None and content is not None:
        report.write_content(page, content)


def _result_table(table: AttributedGraph, predictions: Sequence[Prediction], *, keep_columns: bool) -> pd.DataFrame:
    """Return one row per node: the id, prediction, std, lower, upper, observed (of each target); the input's columns.

    Raises InvalidInputError if a column to keep has the name of a result.
    """
    columns: dict[str, Any] = {name: table.frame[name] for name in table.keys}
    for prediction in predictions:
        prefix = f"{prediction.name}_" if len(predictions) > 1 else ""
        columns |= {f"{prefix}{name}": values for name, values in _columns(prediction).items()}
    return pd.DataFrame(columns | (_kept(table, columns) if keep_columns else {}))


def filled_table(table: AttributedGraph, imputer: GraphImputer) -> pd.DataFrame:
    """Return all columns of a table, filled, and how sure the filled ones are.

    Raises InvalidInputError if a column of the table has the name of one of these.
    """
    made = table.frame.copy()
    for name in imputer.methods_:
        classes = bool(imputer.probability_[name].notna().any())
        added = f"{name}_{'probability' if classes else 'std'}"
        if added in table.frame.columns:
            raise InvalidInputError(f"{table.path} has a column '{added}', the name of a result; rename it")
        made[name] = imputer.filled_[name].to_numpy()
        made[added] = (imputer.probability_ if classes else imputer.std_)[name].to_numpy()
    return made


def drawn_tables(table: AttributedGraph, draws: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return draws of a filled table one below the other, with their numbers from 1 in the column `draw`."""
    if "draw" in table.frame.columns:
        raise InvalidInputError(f"{table.path} has a column 'draw', the name of a result; rename it")
    made = [table.frame.assign(**each).assign(draw=k) for k, each in enumerate(draws, 1)]
    return pd.concat(made, ignore_index=True)[["draw", *table.frame.columns]]


def draws_file(output: Path) -> Path:
    """Return the file of draws, beside that of the table: without shapes, of which each would have all.

    Examples
    --------
    >>> draws_file(Path("filled.csv.gz")).name, draws_file(Path("filled.gpkg")).name
    ('filled-draws.csv.gz', 'filled-draws.csv')
    """
    beside = _beside(output, "draws")
    return beside.with_suffix(".csv") if datasets.is_geographic(output) else beside


def show_filled(frame: pd.DataFrame, imputer: GraphImputer) -> None:
    """Print one row for each filled column: how many cells, by what, and its R² on hidden cells."""
    rows = []
    for name, method in imputer.methods_.items():
        score = imputer.scores_.loc[name].max() if name in imputer.scores_.index else np.nan
        rows.append([str(name), str(int(frame[name].isna().sum())), method, "" if np.isnan(score) else f"{score:.3f}"])
    terminal.print_table(["column", "#cells", "filled by", "#R² on hidden cells"], rows)


def places_of(table: AttributedGraph, output: Path | None) -> list[Any] | None:
    """Return the places of the nodes for a geographic file, None for others; raise where they are not known."""
    return None if output is None or not datasets.is_geographic(output) else datasets.geometries(table)


def _kept(table: AttributedGraph, results: dict[str, Any]) -> dict[str, Any]:
    """Return the columns of the input; raise where one has the name of a result."""
    others = {str(name): table.frame[name] for name in table.frame.columns if name not in table.keys}
    taken = [name for name in others if name in results]
    if taken:
        raise InvalidInputError(
            f"{table.path}: --keep-columns cannot keep {listing(taken)}, the name of a result; rename it"
        )
    return others


def _columns(found: Prediction) -> dict[str, Any]:
    """Return the columns of the result by name: the prediction, how sure it is, and whether it was given."""
    known = found.observed
    if found.classes is not None:
        out_of_fold = np.full(known.size, None, dtype=object)
        out_of_fold[known] = found.classes[found.tested]
        columns = (found.classes[found.codes], found.sure, known, out_of_fold)
        each = zip(found.classes.tolist(), found.probability.T, strict=True)
        return dict(zip(CLASS_COLUMNS, columns, strict=True)) | {f"probability_{name}": p for name, p in each}
    unknown = np.where(known, 0.0, np.nan), *[np.where(known, found.values, np.nan)] * 2
    bars = unknown if found.std is None else (found.std, found.lower, found.upper)
    tested = found.at_labels("out_of_fold"), found.at_labels("residual")
    of_numbers = dict[str, Any](zip(OUTPUT_COLUMNS, (found.values, *bars, known, *tested), strict=True))
    of_numbers |= {} if found.smoothed is None else {name: found.smoothed[name].to_numpy() for name in SMOOTHED}
    return of_numbers | ({} if found.exceeding is None else {ABOVE: found.exceeding})


def page_of(
    table: AttributedGraph,
    predictions: Sequence[Prediction],
    notes: Sequence[str],
    context: typer.Context,
    *,
    features: Sequence[str] = (),
    title: str = "Predictions",
) -> PredictionReport:
    """Return what the HTML page shows."""
    logging.getLogger(terminal.LOGGER).info("writing")
    return PredictionReport(
        title=f"{title} for {table.path.name if table.path else 'a graph'}",
        graph=table.graph,
        node_ids=table.labels,
        targets=tuple(predictions),
        coordinates=_coordinates(table),
        shapes=None if table.shapes is None else [_rings(each) for each in _flat(table.shapes)],
        features=table.frame[list(features)],
        notes=notes,
        command=terminal.command_line(context),
        version=version("graphmrf"),
    )


def _coordinates(table: AttributedGraph) -> Floats | None:
    """Return where the nodes are drawn, by the columns that say so; None for no such columns."""
    if table.shapes is not None:
        inside = _flat(table.shapes).representative_point()
        return np.column_stack([inside.x, inside.y])
    known = {str(name).lower(): name for name in table.frame.columns}
    plane = [known[axis] for axis in ("x", "y") if axis in known]
    names = plane if len(plane) == 2 else [*(datasets.degrees(table.frame) or ())]
    values = table.frame[names].select_dtypes("number").to_numpy(dtype=np.float64)
    if values.shape[1] != 2 or not np.isfinite(values).all():
        return None
    return values if names == plane else values * [_shrunk(values[:, 1]), 1.0]


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


def _rings(area: Any) -> list[Floats]:
    parts = [part for part in getattr(area, "geoms", [area]) if part.geom_type == "Polygon"]
    lines = [ring for part in parts for ring in (part.exterior, *part.interiors)]
    return [np.asarray(ring.coords, dtype=float)[:-1, :2] for ring in lines]


def group_file(output: Path, column: str) -> Path:
    """Return the file of the groups, beside that of the nodes.

    Examples
    --------
    >>> group_file(Path("rents.2024.csv.gz"), "borough").name
    'rents.2024-by-borough.csv.gz'
    """
    safe = re.sub(r"[^\w-]", "_", column)
    return _beside(output, f"by-{safe}")


def _beside(output: Path, what: str) -> Path:
    suffix = "".join(output.suffixes[-2:]) if output.suffix == ".gz" else output.suffix
    return output.with_name(f"{output.name.removesuffix(suffix)}-{what}{suffix}")


def _all_groups(found: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Return the groups of every target in one table, columns named after it where there are several."""
    first = next(iter(found.values()))
    if len(found) == 1:
        return first
    kept = list(first.columns[:3])
    parts = [each.drop(columns=kept).add_prefix(f"{name}_") for name, each in found.items()]
    observed = [each["n_observed"].rename(f"{name}_n_observed") for name, each in found.items()]
    return pd.concat([first[kept[:2]], *observed, *parts], axis=1)


def result_summary(
    table: AttributedGraph, predictions: Sequence[Prediction], *, notes: Sequence[str]
) -> dict[str, Any]:
    """Return what a script may want to know, ready for JSON."""
    graph, keys = table.graph, table.frame[list(table.keys)]
    summary = {
        "version": version("graphmrf"),
        "nodes": graph.n_nodes,
        "edges": graph.n_edges,
        "components": graph.n_components,
        "id": table.id,
        "targets": [_target_summary(prediction) for prediction in predictions],
        "notes": list(notes),
    }
    groups = {each.name: _rows(each.groups) for each in predictions if each.groups is not None}
    suggested = {each.name: _suggestions(each.suggested, keys) for each in predictions if each.suggested is not None}
    return summary | ({"groups": groups} if groups else {}) | ({"suggest": suggested} if suggested else {})


def _suggestions(found: pd.DataFrame, keys: pd.DataFrame) -> dict[str, Any]:
    named = keys.iloc[found["node"]].reset_index(drop=True).join(found.drop(columns="node"))
    return {"nodes": _rows(named), "reason": str(found.attrs.get("reason", ""))}


def forecast_summary(table: AttributedGraph, found: Prediction, needed: str) -> dict[str, Any]:
    """Return an expected accuracy, ready for JSON."""
    curve, ids = found.explanation.learning, table.labels
    assert curve is not None
    assert found.chosen is not None
    suggested = [] if found.suggested is None else [str(ids[node]) for node in found.suggested["node"]]
    r2 = {found.method: {"r2": _finite(found.chosen.score), "error": _finite(found.chosen.error)}}
    summary = {"target": found.name, "labelled": int(found.observed.sum()), "r2": r2, "curve": _rows(curve)}
    return summary | {"target_r2": needed, "suggest": suggested}


def show_forecast(table: AttributedGraph, found: Prediction, needed: str) -> None:
    """Print the learning curve, the labels needed, and the nodes to label next."""
    show_curve(found)
    if needed:
        terminal.say(needed)
    show_suggestions(found, table)


def _rows(frame: pd.DataFrame) -> Any:
    """Return the rows of a table, ready for JSON."""
    return json.loads(frame.to_json(orient="records", double_precision=15, date_format="iso"))


def _target_summary(found: Prediction) -> dict[str, Any]:
    assert found.chosen is not None
    summary = {
        "target": found.name,
        "observed": int(found.observed.sum()),
        "predicted": int(found.predicted.sum()),
        "method": found.method,
        "alpha": found.alpha,
        "reason": found.reason,
        "held_out_regions": found.in_regions,
    }
    about = _number_summary if found.classes is None else _class_summary
    return summary | about(found, found.chosen) | {"comparison": [_row(each, found) for each in found.methods]}


def _number_summary(found: Prediction, chosen: FittedMethod) -> dict[str, Any]:
    effects = found.explanation.effects
    mean_std = None if found.std is None else _finite(float(found.std[found.predicted].mean()))
    return {
        "solver": getattr(chosen.model, "solver_", None),
        chosen.scoring.key: _finite(chosen.score),
        f"{chosen.scoring.key}_error": _finite(chosen.error),
        "interval": found.level,
        "mean_std": mean_std,
        "carries": found.carries,
        "coefficients": dict(zip(effects.names, effects.values.tolist(), strict=True)) if effects else None,
        "shares": dict(found.explanation.shares) or None,
    }


def _class_summary(found: Prediction, chosen: FittedMethod) -> dict[str, Any]:
    return {
        "classes": found.classes.tolist(),
        "cutoff": _finite(chosen.model.cutoff_),
        "accuracy": _finite(chosen.score),
        "log_loss": _finite(chosen.loss),
    }


def _row(fit: FittedMethod, found: Prediction) -> dict[str, Any]:
    about: dict[str, Any] = {"method": fit.method.key}
    if found.classes is not None:
        about |= {"accuracy": _finite(fit.score), "log_loss": _finite(fit.loss)}
    else:
        folds = [_finite(score) for score in fit.fold_scores]
        key = fit.scoring.key
        about |= {key: _finite(fit.score), f"{key}_error": _finite(fit.error), f"fold_{key}": folds}
    return about | {"alpha": fit.alpha}


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def show_results(table: AttributedGraph, predictions: Sequence[Prediction], *, saved: Sequence[Path]) -> None:
    """Print how every target was predicted, and where the results are or how to keep them."""
    for prediction in predictions:
        if prediction.classes is not None:
            _show_classes(prediction)
        else:
            _show_numbers(prediction)
    if saved:
        terminal.say("Saved " + " and ".join(str(path) for path in saved))
    else:
        _preview(table, predictions)
    for prediction in predictions:
        show_groups(prediction)
        show_suggestions(prediction, table)


def _show_numbers(found: Prediction) -> None:
    assert found.chosen is not None
    accuracy = r2_in_words(found.chosen.score, found.chosen.error, found.score_name)
    terminal.say(f"{_counted(found, 'predicted', 'known values')}, cross-validated {accuracy}")
    if found.predicts_nothing:
        terminal.say(found.predicts_nothing)
    if len(found.methods) > 1:
        _print_methods(found, (found.score_name, "±", "alpha"))
    if found.exceedance:
        terminal.say(f"{found.exceedance}.")
    if found.by_distance is not None and found.in_regions:
        terminal.say(f"{tables.DISTANCE_TITLE}:")
        terminal.print_table(tables.distance_heads(found.level), tables.distance_cells(found.by_distance))
    if found.explanation.shares:
        _print_shares(dict(found.explanation.shares))
    if found.carries:
        terminal.say(found.carries)


def _show_classes(found: Prediction) -> None:
    assert found.chosen is not None
    right = "not checked, as every label is the only one of its class"
    if np.isfinite(found.chosen.score):
        right = f"right for {100 * found.chosen.score:.0f} % of the labels held out"
    terminal.say(f"{_counted(found, 'classified', 'labels')}, {right}")
    if len(found.methods) > 1:
        _print_methods(found, ("accuracy", "log loss", "alpha"))


def _counted(found: Prediction, verb: str, known: str) -> str:
    """Return how many nodes were predicted, from how many others, by which method."""
    smoothing = "" if found.alpha is None else f", alpha {found.alpha:g}"
    return (
        f"{found.name}: {int(found.predicted.sum())} of {found.observed.size} nodes {verb} from "
        f"{int(found.observed.sum())} {known} by {found.method_name.lower()} ({found.method}{smoothing})"
    )


def _print_methods(found: Prediction, numbers: Sequence[str]) -> None:
    """Print a row for every method: what it uses, its accuracy, its error or loss, and its smoothing level."""
    rows = []
    for fit in found.methods:
        star = " *" if fit.method.key == found.method else ""
        second = fit.error if found.classes is None else fit.loss
        alpha = "" if fit.alpha is None else f"{fit.alpha:g}"
        rows.append([fit.method.key + star, fit.method.uses, number(fit.score), number(second), alpha])
    terminal.print_table(("method", "uses", *(f"#{name}" for name in numbers)), rows)


def _print_shares(shares: dict[str, float], *, width: int = 30) -> None:
    """Print the share of the variance by kind of effect, with bars."""
    block = "█" if Console().encoding.startswith("utf") else "#"
    rows = [[effect_name(name), f"{100 * share:.0f} %", block * round(width * share)] for name, share in shares.items()]
    terminal.print_table(("what carries it", "#share", ""), rows)


def show_groups(found: Prediction, *, most: int = 12) -> None:
    """Print the first groups, with the interval of their mean."""
    if found.groups is None:
        return
    column, n = found.groups.columns[0], len(found.groups)
    words = tables.group_words(found.groups)
    terminal.say(f"{found.name} by {column}, {words} with {100 * found.level:g} % intervals:")
    heads, rows = tables.group_cells(found.groups.head(most))
    terminal.print_table(_small(heads), rows)
    if n > most:
        terminal.say(f"The first {most} of {n} groups; save all with -o predictions.csv")


def show_suggestions(found: Prediction, table: AttributedGraph) -> None:
    """Print the nodes to label next."""
    if found.suggested is None:
        return
    terminal.say(f"{found.name}: {tables.suggestion_line(found.suggested)}")
    if len(found.suggested):
        heads, rows = tables.suggestion_table(found.suggested, table.labels)
        terminal.print_table((table.id, *_small(heads[1:])), rows)


def show_curve(found: Prediction) -> None:
    """Print what to expect with more labels: the curve with its band as bars."""
    curve = found.explanation.learning
    assert curve is not None
    first = curve.iloc[0]
    terminal.say(
        f"{found.name}: {int(first['n_labels'])} of {found.y.size} nodes are labelled; expect R² "
        f"{number(first['expected_r2'])} on the others ({number(first['lower'], 2)} to {number(first['upper'], 2)})"
    )
    shades = "█▓░" if Console().encoding.startswith("utf") else "#=-"
    bands = curve[["lower", "expected_r2", "upper"]].itertuples(index=False)
    rows = [(*cells, banded_bar(band, shades)) for cells, band in zip(tables.learning_cells(curve), bands, strict=True)]
    terminal.print_table((*_small(tables.LEARNING_HEADS), ""), rows)


def _small(heads: Sequence[str]) -> list[str]:
    """Return heads of the page as the terminal has them."""
    return [head.lower().replace("r²", "R²") for head in heads]


def banded_bar(band: Sequence[float], shades: str, *, width: int = 24) -> str:
    """Return a bar in three shades: up to the lower end of a band, to the value, and to the upper end."""
    ends = [round(width * float(np.clip(value, 0.0, 1.0))) for value in band]
    return "".join(shade * length for shade, length in zip(shades, np.diff([0, *ends]).tolist(), strict=True))


def _preview(table: AttributedGraph, predictions: Sequence[Prediction], *, most: int = 8) -> None:
    """Print the first predicted nodes, all numbers with the decimals of the prediction."""
    for prediction in predictions:
        columns: dict[str, Any] = {**table.frame[list(table.keys)], **_columns(prediction)}
        hidden = ("observed", "left_out", "residual")
        known_only = [name for name in columns if name in hidden or (name.startswith("probability_") and name != ABOVE)]
        frame = pd.DataFrame(columns)[prediction.predicted].drop(columns=known_only)
        places = _places(frame["prediction"]) if frame["prediction"].dtype.kind == "f" else 3
        rows = zip(*(_cells(frame[name].head(most), places) for name in frame.columns), strict=True)
        first, *others = map(str, frame.columns)
        title = prediction.name if len(predictions) > 1 else ""
        terminal.print_table([first, *(f"#{name}" for name in others)], list(rows), title=title)
        terminal.say(
            f"The first {min(most, len(frame))} of {len(frame)} predicted nodes; save all with -o predictions.csv"
        )


def _places(column: pd.Series) -> int | None:
    """Return the decimals that show the spread of a column, or the size of one that is constant but for rounding."""
    values = column.to_numpy()
    return decimals(values[:1] if np.ptp(values) <= 1e-9 * np.abs(values).max() else values)


def _cells(column: pd.Series, places: int | None) -> list[str]:
    return [number(cell, places) if column.dtype.kind == "f" else str(cell) for cell in column]
