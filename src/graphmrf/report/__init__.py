"""One self-contained HTML page from rows and figures; no model runs here."""

from graphmrf.report.page import render, write_report
from graphmrf.report.rows import (
    AlphaCurve,
    Effects,
    FeatureCoefficients,
    FurtherTable,
    MethodRow,
    PredictionReport,
    TargetReport,
    Truth,
)

__all__ = [
    "AlphaCurve",
    "Effects",
    "FeatureCoefficients",
    "FurtherTable",
    "MethodRow",
    "PredictionReport",
    "TargetReport",
    "Truth",
    "render",
    "write_report",
]
