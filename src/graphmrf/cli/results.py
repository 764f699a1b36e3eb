"""A prediction as a table, as a JSON summary and as the rows of a report."""

import math
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np
import pandas as pd

from graphmrf._typing import Floats
from graphmrf.cli.classes import Classification
from graphmrf.cli.comparison import Fit
from graphmrf.cli.general import transform_name
from graphmrf.cli.job import OUTPUT_COLUMNS, Prediction
from graphmrf.datasets import AttributedGraph
from graphmrf.estimators import GraphRegressor
from graphmrf.report import AlphaCurve, Coefficients, Effects, MethodRow, PredictionReport, TargetReport

_ERROR = " (standard error)"
_POSITIONS = (("x", "y"), ("lon", "lat"), ("lng", "lat"), ("longitude", "latitude"))


@dataclass(frozen=True, eq=False)
class Results:
    """The predictions of one run and what they belong to."""

    table: AttributedGraph
    predictions: tuple[Prediction | Classification, ...]
    data_notes: tuple[str, ...]

    @property
    def notes(self) -> tuple[str, ...]:
        """Everything that was assumed or changed, one line each."""
        return (*self.data_notes, *(note for prediction in self.predictions for note in prediction.notes))

    def frame(self) -> pd.DataFrame:
        """Return one row per node: the id, then prediction, std, lower, upper, observed (of each target)."""
        columns: dict[str, Any] = {self.table.id: self.table.frame[self.table.id]}
        for prediction in self.predictions:
            prefix = f"{prediction.name}_" if len(self.predictions) > 1 else ""
            columns |= {f"{prefix}{name}": values for name, values in columns_of(prediction).items()}
        return pd.DataFrame(columns)

    def summary(self) -> dict[str, Any]:
        """Return what a script may want to know, ready for JSON."""
        graph = self.table.graph
        return {
            "version": version("graphmrf"),
            "nodes": graph.n_nodes,
            "edges": graph.n_edges,
            "components": graph.n_components,
            "id": self.table.id,
            "targets": [_target(prediction) for prediction in self.predictions],
            "notes": list(self.notes),
        }

    def report(self, command: str) -> PredictionReport:
        """Return what the HTML page shows."""
        return PredictionReport(
            title=f"Predictions for {self.table.path.name if self.table.path else 'a graph'}",
            graph=self.table.graph,
            node_ids=self.table.frame[self.table.id].tolist(),
            targets=tuple(section for prediction in self.predictions for section in _sections(prediction)),
            coordinates=_coordinates(self.table),
            notes=self.notes,
            command=command,
            version=version("graphmrf"),
        )


def columns_of(prediction: Prediction | Classification) -> dict[str, Any]:
    """Return the columns of the result by name: the prediction, how sure it is, and whether it was given."""
    if isinstance(prediction, Classification):
        return prediction.columns()
    columns = (prediction.value, prediction.std, prediction.lower, prediction.upper, prediction.observed)
    return dict(zip(OUTPUT_COLUMNS, columns, strict=True))


def _target(prediction: Prediction | Classification) -> dict[str, Any]:
    if isinstance(prediction, Classification):
        return prediction.summary()
    hidden = ~prediction.observed
    return {
        "target": prediction.name,
        "observed": int(prediction.observed.sum()),
        "predicted": int(hidden.sum()),
        "method": prediction.chosen.method.key,
        "alpha": prediction.chosen.alpha,
        "solver": getattr(prediction.chosen.estimator, "solver_", None),
        "r2": _finite(prediction.chosen.r2),
        "interval": prediction.interval,
        "mean_std": _finite(float(prediction.std[hidden].mean())),
        "carries": prediction.carries,
        "comparison": [_row(fit) for fit in prediction.fits],
        "coefficients": _coefficients(prediction.chosen),
        "effects": _effect_table(prediction.chosen),
        "shares": prediction.chosen.shares or None,
    }


def _row(fit: Fit) -> dict[str, Any]:
    folds = [_finite(score) for score in fit.fold_r2]
    return {"method": fit.method.key, "r2": _finite(fit.r2), "fold_r2": folds, "alpha": fit.alpha}


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _linear(fit: Fit) -> Any:
    """Return the estimator that has the coefficients: the base, when residuals are propagated on top of it."""
    return getattr(fit.estimator, "base_", fit.estimator)


def _coefficients(fit: Fit) -> dict[str, float] | None:
    """Return the coefficients by feature; None for the field, whose effects may be anyone's: see `_effects`."""
    if isinstance(fit.estimator, GraphRegressor):
        return None
    coef = getattr(_linear(fit), "coef_", None)
    return {str(name): float(value) for name, value in coef.items()} if isinstance(coef, pd.Series) else None


def _sections(prediction: Prediction | Classification) -> tuple[TargetReport, ...]:
    return prediction.sections() if isinstance(prediction, Classification) else (_section(prediction),)


def _section(prediction: Prediction) -> TargetReport:
    chosen = prediction.chosen
    columns = columns_of(prediction) if prediction.has_error_bars else {}
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
        comparison=tuple(MethodRow(fit.method.key, fit.r2, fit.fold_r2, fit.alpha) for fit in prediction.fits),
        curves=tuple(_curve(fit) for fit in prediction.fits if len(fit.scores["alpha"]) > 1),
        coefficients=_named_coefficients(chosen),
        effects=_effects(chosen),
        shares=chosen.shares,
    )


def _named_coefficients(fit: Fit) -> Coefficients | None:
    named = _coefficients(fit)
    if named is None:
        return None
    return Coefficients(tuple(named), np.array(list(named.values())), getattr(_linear(fit), "intercept_", None))


def _effects(fit: Fit) -> Effects | None:
    """Return the linear effects of the field, with standard errors."""
    if not isinstance(fit.estimator, GraphRegressor) or fit.estimator.coefficients_.empty:
        return None
    frame, transform = fit.estimator.coefficients_, transform_name(fit.estimator)
    groups = [name for name in frame.columns if f"{name}{_ERROR}" in frame.columns]
    errors = frame[[f"{name}{_ERROR}" for name in groups]]
    names = tuple(str(name) for name in frame.index)
    return Effects(names, tuple(groups), frame[groups].to_numpy(), errors.to_numpy(), transform)


def _effect_table(fit: Fit) -> dict[str, dict[str, dict[str, float]]] | None:
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


def _curve(fit: Fit) -> AlphaCurve:
    scores = fit.scores
    return AlphaCurve(fit.method.key, scores["alpha"], scores["mean_r2"], scores["fold_r2"], fit.alpha or 0.0)


def _coordinates(table: AttributedGraph) -> Floats | None:
    known = {str(name).lower(): name for name in table.frame.columns}
    for x, y in _POSITIONS:
        if x in known and y in known:
            columns = table.frame[[known[x], known[y]]]
            numeric = all(kind.kind in "iuf" for kind in columns.dtypes)
            values = columns.to_numpy(dtype=np.float64) if numeric else np.full((1, 2), np.nan)
            return values if np.isfinite(values).all() else None
    return None
