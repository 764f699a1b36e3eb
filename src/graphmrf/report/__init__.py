"""One self-contained HTML page from rows and figures; no model runs here."""

from graphmrf.report.page import render, write_report
from graphmrf.report.parts import AlphaCurve, Coefficients, Effects, MethodRow, Truth
from graphmrf.report.rows import PredictionReport, TargetReport

__all__ = [
    "AlphaCurve",
    "Coefficients",
    "Effects",
    "MethodRow",
    "PredictionReport",
    "TargetReport",
    "Truth",
    "render",
    "write_report",
]
