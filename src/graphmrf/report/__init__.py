"""One self-contained HTML page from rows and figures; no model runs here."""

from graphmrf.report.drawing import PredictionReport
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

__all__ = [
    "Content",
    "PredictionReport",
    "pack_content",
    "page_content",
    "render",
    "render_content",
    "unpack_content",
    "write_content",
    "write_report",
]
