"""Results of the field beyond single nodes: sums by group, nodes to label next, and accuracy with more labels."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
import typer
from rich import box
from rich.console import Console
from rich.table import Table

from graphmrf.cli import terminal
from graphmrf.cli.comparison import FIELD, fit_estimator, imputation_note
from graphmrf.cli.prediction import ClassPrediction, Prediction, PredictionSettings
from graphmrf.datasets import AttributedGraph, features
from graphmrf.datasets import write as write_table
from graphmrf.errors import InvalidInputError
from graphmrf.estimators import GraphRegressor
from graphmrf.estimators.methods import METHODS
from graphmrf.files import check_apart, check_place
from graphmrf.report import FurtherTable, PredictionReport, TargetReport
from graphmrf.text import decimals, number

_SHOWN_GROUPS = 12
"""Groups shown in the terminal, by eye: half a screen; all of them are in the file and the page."""
_BAR = 24
"""Characters of an R² of 1, by eye: the table stays within 80 columns."""
_SUMS = ("prediction", "std", "lower", "upper")
GROUP_COLUMNS = ("n_nodes", "n_observed", *_SUMS, "total", *(f"total_{name}" for name in _SUMS[1:]))
"""Columns of the table of groups, beside their own."""


@dataclass(frozen=True, eq=False)
class BeyondNodes:
    """Results beyond the predictions of nodes: groups and suggestions, by target."""

    groups: dict[str, pd.DataFrame]
    suggested: dict[str, tuple[pd.DataFrame, str]]
    settings: PredictionSettings

    @classmethod
    def of(
        cls,
        table: AttributedGraph,
        groups: pd.Series | None,
        predictions: Sequence[Prediction | ClassPrediction],
        settings: PredictionSettings,
    ) -> Self:
        """Return groups and suggestions of every target that the field predicts."""
        by_field = [
            each
            for each in predictions
            if isinstance(each, Prediction) and isinstance(each.chosen.estimator, GraphRegressor)
        ]
        for each in by_field:
            _check_suggest(settings.suggest, int((~each.observed).sum()))
        models = {each.name: each.chosen.estimator for each in by_field}
        by, level = {}, settings.interval
        if groups is not None:
            by = {name: group_table(model, groups, level) for name, model in models.items()}
        k = settings.suggest
        suggested = {name: suggestion_table(table, model, k) for name, model in models.items()} if k else {}
        return cls(by, suggested, settings)

    def write(self, output: Path) -> None:
        """Write the groups beside the predictions of nodes."""
        if self.groups and self.settings.group is not None:
            write_table(all_groups(self.groups), group_file(output, self.settings.group))

    def on_page(self, page: PredictionReport) -> PredictionReport:
        """Return the page with the tables."""
        return replace(
            page,
            targets=tuple(replace(each, further=(*each.further, *self._tables(each.name))) for each in page.targets),
        )

    def _tables(self, name: str) -> tuple[FurtherTable, ...]:
        groups = [group_report(self.groups[name], name, self.settings.interval)] if name in self.groups else []
        suggested = [suggestion_report(*self.suggested[name])] if name in self.suggested else []
        return (*groups, *suggested)

    def in_summary(self, summary: dict[str, Any]) -> dict[str, Any]:
        """Return the summary with the tables, for JSON; unchanged where nothing was asked for."""
        if self.groups:
            summary = summary | {"groups": {name: rows_for_json(each) for name, each in self.groups.items()}}
        if self.suggested:
            said = {
                name: {"nodes": rows_for_json(frame), "reason": "" if len(frame) else why}
                for name, (frame, why) in self.suggested.items()
            }
            summary = summary | {"suggest": said}
        return summary

    def show(self) -> None:
        """Print the tables."""
        for name, frame in self.groups.items():
            show_groups(name, frame, self.settings.interval)
        for name, (frame, said) in self.suggested.items():
            show_suggestions(name, frame, said)


@dataclass(frozen=True, eq=False)
class FieldForecast:
    """Expected accuracy of a target by the field, now and with more labels."""

    table: AttributedGraph
    target: str
    model: GraphRegressor
    curve: pd.DataFrame
    said: tuple[str, ...]
    suggested: tuple[pd.DataFrame, str] | None
    notes: tuple[str, ...]

    @classmethod
    def of(
        cls, table: AttributedGraph, target: str, *, ignore: Sequence[str], reach: float | None, suggest: int
    ) -> Self:
        """Fit the field to a column and estimate its accuracy; raise where there is nothing to predict or to learn."""
        if reach is not None and not 0 < reach < 1:
            raise InvalidInputError(f"--reach must be between 0 and 1, got {reach:g}; 0.8 means R² 0.8")
        table.require(target, option="--target")
        y = table.outcome(target)
        left, known = int(np.isnan(y).sum()), y[~np.isnan(y)]
        if left < 2 or known.size < 2 or np.ptp(known) == 0:
            raise InvalidInputError(
                f"{table.path}, column {target}: {known.size} known and {left} empty cells; give at least two "
                "different values, and leave at least two cells to predict empty"
            )
        _check_suggest(suggest, left)
        made, model = features(table, targets=(target,), ignore=ignore), GraphRegressor()
        _, note = fit_estimator(model, METHODS[FIELD], table.graph, made, y)
        curve = model.expected_learning_curve()
        said = () if reach is None else (labels_needed(curve, reach),)
        suggested = suggestion_table(table, model, suggest) if suggest else None
        about = [imputation_note(each, [METHODS[FIELD]]) for each in made.notes]
        notes = (*about, *([note] if note else []), *model.notes_)
        return cls(table, target, model, curve, said, suggested, notes)

    @property
    def summary(self) -> dict[str, Any]:
        """Summary for scripts, ready for JSON."""
        r2, error = self.model.expected_r2(return_std=True)
        known = int(self.curve["n_labels"].iloc[0])
        found = {"target": self.target, "labelled": known, "r2": {"field": {"r2": r2, "error": error}}}
        found |= {"curve": rows_for_json(self.curve), "reach": " ".join(self.said)}
        frame = self.suggested[0] if self.suggested else pd.DataFrame()
        return found | {"suggest": [str(value) for value in frame.iloc[:, 0]] if len(frame) else []}

    def show(self) -> None:
        """Print the curve, and the nodes to ask."""
        show_curve(self.target, self.curve, self.table.graph.n_nodes)
        for line in self.said:
            typer.echo(line)
        if self.suggested:
            show_suggestions(self.target, *self.suggested)

    def page(self, command: str) -> PredictionReport:
        """Return the page: the predictions of the field, the curve, and the nodes to ask."""
        (mean, std), (low, high) = self.model.predict(return_std=True), self.model.predict_interval(0.9)
        further = [curve_report(self.curve, [f"{line}." for line in self.said])]
        further += [suggestion_report(*self.suggested)] if self.suggested else []
        y = self.table.outcome(self.target)
        section = TargetReport(
            name=self.target,
            y=y,
            prediction=mean,
            method=FIELD,
            std=std,
            lower=low,
            upper=high,
            shares=dict(self.model.shares_),
            learning=self.curve.assign(upper=self.curve["upper"].clip(upper=1.0)) if len(self.curve) > 1 else None,
            further=further,
        )
        return PredictionReport(
            title=f"Expected accuracy for {self.table.path.name if self.table.path else 'a graph'}",
            graph=self.table.graph,
            node_ids=self.table.labels,
            targets=(section,),
            notes=(*self.table.notes, *self.notes),
            command=command,
        )


def check_page(report: Path, *inputs: Path) -> None:
    """Raise unless a page can be written there without harming an input."""
    if report.suffix.lower() not in (".html", ".htm"):
        raise InvalidInputError(f"a report is a page of HTML, got {report}; name the file something.html")
    check_place(report)
    check_apart((report,), inputs)


def read_groups(table: AttributedGraph, column: str | None) -> pd.Series | None:
    """Return the group of every node, an empty cell being in none; None where no column is named."""
    if column is None:
        return None
    table.require(column, option="--group")
    groups = table.frame[column].reset_index(drop=True)
    if groups.isna().all():
        raise InvalidInputError(f"{table.path}, column {column}: every cell is empty, so there is no group; fill some")
    if column in GROUP_COLUMNS:
        raise InvalidInputError(f"the column of groups '{column}' has the name of a result; rename it in {table.path}")
    return groups


def group_notes(groups: pd.Series | None) -> list[str]:
    """Return that some nodes are in no group, so that totals of groups do not add up to that of all nodes.

    Examples
    --------
    >>> group_notes(pd.Series(["north", None], name="zone"))
    ['1 node is in no group: its cell of zone is empty']
    """
    outside = 0 if groups is None else int(groups.isna().sum())
    if groups is None or not outside:
        return []
    told = "node is in no group: its cell" if outside == 1 else "nodes are in no group: their cells"
    return [f"{outside} {told} of {groups.name} {'is' if outside == 1 else 'are'} empty"]


def group_file(output: Path, column: str) -> Path:
    """Return the file of the groups, beside that of the nodes.

    Examples
    --------
    >>> group_file(Path("rents.2024.csv.gz"), "borough").name
    'rents.2024-by-borough.csv.gz'
    """
    packed = output.suffix if output.suffix in (".gz", ".zst", ".bz2", ".xz") else ""
    name = output.name.removesuffix(packed)
    stem, dot, rest = name.rpartition(".") if "." in name else (name, "", "")
    safe = "".join(letter if letter.isalnum() or letter in "-_" else "_" for letter in column)
    return output.with_name(f"{stem}-by-{safe}{dot}{rest}{packed}")


def group_table(model: GraphRegressor, groups: pd.Series, level: float) -> pd.DataFrame:
    """Return one row per group: nodes, those observed, the mean with its error bars, and the total with its own."""
    total = model.predict_total(groups.to_numpy(), level=level)
    counts, found = total["n_nodes"].to_numpy(), {name: total[name].to_numpy() for name in ("n_nodes", "n_observed")}
    found |= {name: total[name].to_numpy() / counts for name in _SUMS}
    found |= {"total" if name == "prediction" else f"total_{name}": total[name].to_numpy() for name in _SUMS}
    return pd.DataFrame(found | {}, index=pd.Index(total.index, name=groups.name)).reset_index()


def all_groups(found: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return the groups of every target in one table, columns named after it where there are several."""
    if len(found) == 1:
        return next(iter(found.values()))
    first = next(iter(found.values()))
    kept = list(first.columns[:3])
    parts = [each.drop(columns=kept).add_prefix(f"{name}_") for name, each in found.items()]
    counts = first[kept[:2]]
    observed = [each["n_observed"].rename(f"{name}_n_observed") for name, each in found.items()]
    return pd.concat([counts, *observed, *parts], axis=1)


def group_report(frame: pd.DataFrame, target: str, level: float) -> FurtherTable:
    """Return the groups as a table of the page."""
    about = (
        f"Mean and total of {target}, known values included, with {100 * level:g} % intervals from the joint "
        "distribution of all nodes."
    )
    places, sums = decimals(frame["prediction"].to_numpy()), decimals(frame["total"].to_numpy())
    body = [
        (
            str(name),
            f"{row['n_nodes']:,.0f}",
            f"{row['n_observed']:,.0f}",
            number(row["prediction"], places),
            f"{number(row['lower'], places)} to {number(row['upper'], places)}",
            number(row["total"], sums),
            f"{number(row['total_lower'], sums)} to {number(row['total_upper'], sums)}",
        )
        for name, (_, row) in zip(frame.iloc[:, 0], frame.iterrows(), strict=True)
    ]
    heads = (str(frame.columns[0]), "#Nodes", "#Observed", "#Mean", "#Interval", "#Total", "#Interval of total")
    return FurtherTable(f"By {frame.columns[0]}", about, heads, body)


def _check_suggest(k: int, unlabelled: int) -> None:
    if k > unlabelled:
        raise InvalidInputError(f"--suggest must be at most {unlabelled}, the number of nodes without a label, got {k}")


def suggestion_table(table: AttributedGraph, model: GraphRegressor, k: int) -> tuple[pd.DataFrame, str]:
    """Return the nodes to ask next by id, and a line for people: what they bring, or why there are none."""
    found = model.suggest(k).reset_index(drop=True)
    keys = table.frame[list(table.keys)].iloc[found["node"]].reset_index(drop=True)
    frame = pd.DataFrame({**keys, "std": found["std"], "expected_r2": found["expected_r2"]})
    if frame.empty:
        return frame, str(found.attrs["reason"])
    now, then = model.expected_r2(), float(frame["expected_r2"].iloc[-1])
    return (
        frame,
        f"labels that would help most, in this order: expected R² {number(now, 3)} now, {number(then, 3)} then",
    )


def suggestion_report(frame: pd.DataFrame, said: str) -> FurtherTable:
    """Return the nodes to ask next as a table of the page."""
    places = decimals(frame["std"].to_numpy()) if len(frame) else None
    body = [(str(node), number(std, places), number(r2, 3)) for node, std, r2 in frame.itertuples(index=False)]
    return FurtherTable(
        "Ask these next",
        f"{said[0].upper()}{said[1:]}.",
        (str(frame.columns[0]), "#Standard deviation now", "#Expected R² then"),
        body,
    )


def show_suggestions(target: str, frame: pd.DataFrame, said: str) -> None:
    """Print the nodes to ask next."""
    typer.echo(f"{target}: {said}")
    if len(frame):
        rows = [[str(node), number(r2, 3)] for node, _, r2 in frame.itertuples(index=False)]
        terminal.print_table([str(frame.columns[0]), "expected R² then"], rows)


def show_groups(target: str, frame: pd.DataFrame, level: float) -> None:
    """Print the first groups, with the interval of their mean."""
    typer.echo(f"{target} by {frame.columns[0]}, mean and total with {100 * level:g} % intervals:")
    report = group_report(frame.head(_SHOWN_GROUPS), target, level)
    terminal.print_table([head.removeprefix("#").lower() for head in report.heads], report.body)
    if len(frame) > _SHOWN_GROUPS:
        typer.echo(f"The first {_SHOWN_GROUPS} of {len(frame)} groups; save all with -o predictions.csv")


def labels_needed(curve: pd.DataFrame, wanted: float) -> str:
    """Return how many labels an R² takes, with a range from the band of the curve.

    Examples
    --------
    >>> curve = pd.DataFrame({"n_labels": [100, 200, 400], "expected_r2": [0.6, 0.7, 0.8]})
    >>> labels_needed(curve.assign(lower=curve["expected_r2"] - 0.05, upper=curve["expected_r2"] + 0.05), 0.75)
    'R² 0.75 takes about 283 labels (200 to 400)'
    >>> labels_needed(curve.assign(lower=0.0, upper=0.8), 0.9)
    'R² 0.9 is not reached with 400 labels: expect 0.80'
    >>> labels_needed(curve.assign(lower=0.5, upper=1.0), 0.9)
    'R² 0.9 may be reached with 400 labels, but is not to be expected: 0.80, between 0.50 and 1.00'
    """
    few, middle, many = (_crossing(curve, name, wanted) for name in ("upper", "expected_r2", "lower"))
    if middle is None:
        last = curve.iloc[-1]
        labels, expected = int(last["n_labels"]), number(last["expected_r2"], 2)
        if few is None:
            return f"R² {wanted:g} is not reached with {labels} labels: expect {expected}"
        band = f"between {number(last['lower'], 2)} and {number(min(last['upper'], 1.0), 2)}"
        return f"R² {wanted:g} may be reached with {labels} labels, but is not to be expected: {expected}, {band}"
    if middle <= curve["n_labels"].iloc[0]:
        return f"R² {wanted:g} is to be expected with the {int(curve['n_labels'].iloc[0])} labels there are"
    most = "more than " + str(int(curve["n_labels"].iloc[-1])) if many is None else str(many)
    return f"R² {wanted:g} takes about {middle} labels ({few} to {most})"


def _crossing(curve: pd.DataFrame, name: str, wanted: float) -> int | None:
    """Return the labels at which a column of the curve reaches a value, by interpolation of their logarithm."""
    r2, labels = np.maximum.accumulate(curve[name].to_numpy()), np.log(curve["n_labels"].to_numpy())
    if r2[-1] < wanted:
        return None
    k = int(np.argmax(r2 >= wanted))
    if not k:
        return int(curve["n_labels"].iloc[0])
    share = (wanted - r2[k - 1]) / (r2[k] - r2[k - 1])
    return round(float(np.exp(labels[k - 1] + share * (labels[k] - labels[k - 1]))))


def show_curve(target: str, curve: pd.DataFrame, n_nodes: int) -> None:
    """Print what to expect with more labels: the curve with its band as bars."""
    first = curve.iloc[0]
    typer.echo(
        f"{target}: {int(first['n_labels'])} of {n_nodes} nodes are labelled; expect R² "
        f"{number(first['expected_r2'])} on the others ({number(first['lower'], 2)} to {number(first['upper'], 2)})"
    )
    table = Table(box=box.SIMPLE_HEAD)
    for name in ("labels", "expected R²", "90 % band"):
        table.add_column(name, justify="right")
    table.add_column("")
    shades = "█▓░" if Console().encoding.startswith("utf") else "#=-"
    for _, row in curve.iterrows():
        bar = banded_bar(row["lower"], row["expected_r2"], row["upper"], shades)
        band = f"{number(row['lower'], 2)} to {number(row['upper'], 2)}"
        table.add_row(f"{int(row['n_labels'])}", number(row["expected_r2"]), band, bar)
    terminal.print_rich(table)


def banded_bar(lower: float, middle: float, upper: float, shades: str) -> str:
    """Return a bar in three shades: up to the lower end of a band, to the value, and to the upper end.

    Examples
    --------
    >>> banded_bar(0.5, 0.75, 1.2, "#=-")
    '############======------'
    """
    ends = [round(_BAR * float(np.clip(value, 0.0, 1.0))) for value in (lower, middle, upper)]
    return "".join(shade * length for shade, length in zip(shades, np.diff([0, *ends]).tolist(), strict=True))


def curve_report(curve: pd.DataFrame, said: Sequence[str]) -> FurtherTable:
    """Return the learning curve as a table of the page."""
    about = " ".join(["The curve in numbers: R² to be expected on the nodes without a label.", *said])
    body = [
        (
            f"{int(row['n_labels']):,}",
            number(row["expected_r2"], 3),
            f"{number(row['lower'], 2)} to {number(row['upper'], 2)}",
        )
        for _, row in curve.iterrows()
    ]
    return FurtherTable("How many labels", about, ("#Labels", "#Expected R²", "#90 % band"), body)


def rows_for_json(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a table, ready for JSON."""
    plain = frame.astype(dict.fromkeys(frame.columns, object))
    return [{str(name): _plain(value) for name, value in row.items()} for row in plain.to_dict(orient="records")]


def _plain(value: Any) -> Any:
    if isinstance(value, float | np.floating):
        return float(value) if np.isfinite(value) else None
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return int(value)
    return str(value)
