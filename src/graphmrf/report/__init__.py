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
from graphmrf.report.rows import PredictionReport

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
