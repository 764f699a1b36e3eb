"""One self-contained HTML page from rows and figures; no model runs here."""

from graphmrf.report.page import (
    Content,
    pack_content,
    page_content,
    render,
    render_content,
    unpack_content,
    write_content,
    write_report,
)
from graphmrf.report.rows import (
    AlphaCurve,
    ClassReport,
    Effects,
    FurtherTable,
    MethodRow,
    PredictionReport,
    TargetReport,
)

__all__ = [
    "AlphaCurve",
    "ClassReport",
    "Content",
    "Effects",
    "FurtherTable",
    "MethodRow",
    "PredictionReport",
    "TargetReport",
    "pack_content",
    "page_content",
    "render",
    "render_content",
    "unpack_content",
    "write_content",
    "write_report",
]
