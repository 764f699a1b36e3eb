"""Figures of the reproduction with Matplotlib: panels in, PNG and SVG out, the same bytes every time."""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Protocol

import numpy as np

from graphmrf.errors import MissingExtraError
from graphmrf.report.reproduction_shapes import Atlas, outlined

COLOURS = {
    "LP": "#c2500b",
    "LR": "#b08900",
    "LGC": "#0a5fa5",
    "LGC/RP": "#15803d",
    "SGC": "#8a4fae",
    "GCN": "#b3265e",
    "GraphRegressor": "#15202b",
    "transductive": "#a9b8c6",
    "inductive": "#0a5fa5",
}
_STYLE: dict[Any, Any] = {
    "font.size": 9,
    "font.family": "DejaVu Sans",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#6b7885",
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "legend.frameon": False,
    "svg.hashsalt": "graphmrf",
    "svg.fonttype": "path",
}


class FigureRow(Protocol):
    """What is drawn."""

    @property
    def name(self) -> str:
        """Name of the files."""

    @property
    def caption(self) -> str:
        """What it shows."""

    @property
    def panels(self) -> Sequence[Any]:
        """Panels, each with its `kind`."""

    @property
    def columns(self) -> int:
        """Panels in a row."""


def check_figures() -> None:
    """Raise unless figures can be drawn."""
    if find_spec("matplotlib") is None:
        raise MissingExtraError(
            "figures need Matplotlib; install it with pip install 'graphmrf[figures]', or use --no-figures"
        )


@dataclass(frozen=True)
class Drawing:
    """A figure as PNG and as SVG, and how many pixels wide it is meant to be seen."""

    png: bytes
    svg: bytes
    width: int


def draw(figure: FigureRow, atlas: Atlas) -> Drawing:
    """Return the figure, drawn.

    Parameters
    ----------
    figure : FigureRow
        Its panels.
    atlas : Atlas
        Where nodes are on maps.
    """
    check_figures()
    import matplotlib as mpl
    from matplotlib.figure import Figure

    columns = min(figure.columns, len(figure.panels))
    rows = -(-len(figure.panels) // columns)
    width, height = _PANEL_SIZES.get(figure.panels[0].kind, (3.6, 3.0))
    with mpl.rc_context(_STYLE):
        canvas = Figure(figsize=(width * columns, height * rows), layout="constrained")
        axes = np.atleast_1d(canvas.subplots(rows, columns)).ravel()
        for panel, ax in zip(figure.panels, axes, strict=False):
            _PAINTERS[panel.kind](ax, panel, atlas)
        for ax in axes[len(figure.panels) :]:
            ax.set_axis_off()
        _legend(canvas, axes)
        return Drawing(_saved(canvas, "png"), _saved(canvas, "svg"), round(_PIXELS * width * columns))


def _legend(canvas: Any, axes: Any) -> None:
    """One legend below all panels for what they have in common; panels with a legend of their own keep it."""
    named: dict[str, Any] = {}
    for ax in axes:
        if ax.get_legend() is None:
            handles, labels = ax.get_legend_handles_labels()
            named |= dict(zip(labels, handles, strict=True))
    if 1 < len(named) <= _MOST_NAMES:
        canvas.legend(named.values(), named.keys(), loc="outside lower center", ncols=len(named))


def _saved(canvas: Any, kind: str) -> bytes:
    stream = io.BytesIO()
    undated = {"Date": None} if kind == "svg" else {"Software": None}
    canvas.savefig(stream, format=kind, dpi=150, metadata=undated)
    return stream.getvalue()


def _lines(ax: Any, panel: Any, _: Atlas) -> None:
    import matplotlib as mpl

    for line in panel.series:
        ramp = line.colour is not None
        colour = mpl.colormaps["coolwarm"](line.colour) if ramp else COLOURS.get(line.label)
        ax.plot(line.x, line.y, color=colour, marker="" if ramp else "o", markersize=3, label=line.label, linewidth=1.3)
        if len(line.spread):
            y, spread = np.asarray(line.y), np.asarray(line.spread)
            ax.fill_between(line.x, y - spread, y + spread, color=colour, alpha=0.12, linewidth=0)
    _name(ax, panel)


def _bars(ax: Any, panel: Any, _: Atlas) -> None:
    places = np.arange(len(panel.groups))
    wide = 0.8 / max(len(panel.series), 1)
    for k, series in enumerate(panel.series):
        at = places + (k - (len(panel.series) - 1) / 2) * wide
        spread = series.spread if len(series.spread) else None
        ax.bar(
            at,
            series.y,
            wide,
            yerr=spread,
            color=COLOURS.get(series.label),
            label=series.label,
            error_kw={"linewidth": 0.8},
        )
    ax.axhline(0, color="#6b7885", linewidth=0.8)
    ax.set_xticks(places, panel.groups, rotation=30, ha="right")
    ax.set_title(panel.title)
    ax.set_ylabel(panel.y_label)


def _points(ax: Any, panel: Any, _: Atlas) -> None:
    import matplotlib as mpl

    values = [value for each in panel.series for value in (*each.x, *each.y)]
    low, high = max(min([0.0, *values]), _LOWEST) - 0.03, max([1.0, *values]) + 0.03
    ax.plot([low, high], [low, high], color="#c9d0d7", linewidth=1, zorder=0)
    for each in panel.series:
        colour = mpl.colormaps["viridis"](0.9 * each.colour)
        style = {"color": colour, "markersize": 6, "markeredgecolor": "white", "markeredgewidth": 0.5, "clip_on": False}
        ax.plot(np.maximum(each.x, low), np.maximum(each.y, low), each.marker, **style)
    outcomes = {each.label.rpartition(", ")[0]: each.colour for each in panel.series}
    methods = {each.label.rpartition(", ")[2]: each.marker for each in panel.series}
    for name, colour in outcomes.items():
        ax.plot([], [], "s", color=mpl.colormaps["viridis"](0.9 * colour), markersize=5, label=name)
    for name, marker in methods.items():
        ax.plot([], [], marker, color="#6b7885", markerfacecolor="none", markersize=5, label=name)
    ax.set_xlim(low, high)
    ax.set_ylim(low, high)
    ax.set_aspect("equal")
    _name(ax, panel)
    above = sum(np.sum(np.greater(each.y, each.x)) - np.sum(np.less(each.y, each.x)) for each in panel.series)
    corner = "lower right" if above > 0 else "upper left"  # the side of the diagonal with fewer points
    ax.legend(fontsize=7, loc=corner, ncols=2, columnspacing=0.8, handletextpad=0.2)


def _heat(ax: Any, panel: Any, _: Atlas) -> None:
    from matplotlib.colors import FuncNorm

    if panel.signed:
        limit = float(np.nanmax(np.abs(panel.values)))
        roots = (lambda v: np.sign(v) * np.sqrt(np.abs(v)), lambda v: np.sign(v) * v**2)
        image = ax.imshow(panel.values, cmap="RdBu_r", norm=FuncNorm(roots, -limit, limit))
    else:
        low = float(np.nanmax(panel.values)) - 1.0 if np.nanmin(panel.values) < -1.0 else float(np.nanmin(panel.values))
        image = ax.imshow(panel.values, origin="lower", cmap="viridis", vmin=low)
        ax.plot([0, len(panel.values) - 1], [0, len(panel.values) - 1], color="#dfd82c", linewidth=0.8)
    for column, row in panel.marks:
        ax.plot(column, row, "o", color="#dfd82c", markersize=5, markeredgecolor="black", markeredgewidth=0.5)
    for axis, ticks in ((ax.xaxis, panel.x_ticks), (ax.yaxis, panel.y_ticks)):
        shown = [k for k, text in enumerate(ticks) if text]
        axis.set_ticks(shown, [ticks[k] for k in shown])
    ax.figure.colorbar(image, ax=ax, shrink=0.8)
    _name(ax, panel)


def _map(ax: Any, panel: Any, atlas: Atlas) -> None:
    from matplotlib.collections import PolyCollection

    low, high = panel.limits
    colours = {"cmap": "coolwarm" if low < 0 else "YlOrRd", "norm": _scale(low, high), "rasterized": True}
    if outlined(panel.ids, atlas.shapes):
        pairs = [
            (ring, value)
            for code, value in zip(panel.ids, panel.values, strict=True)
            for ring in atlas.shapes.get(code, ())
            if ring[:, 0].max() < -60 and ring[:, 0].min() > -130  # the contiguous states
        ]
        image = PolyCollection([ring for ring, _ in pairs], array=np.array([value for _, value in pairs]), **colours)
        image.set_edgecolor("face")
        image.set_linewidth(0.2)
        ax.add_collection(image)
        ax.autoscale_view()
        ax.set_aspect(1.28)
    else:
        x, y = atlas.points[panel.data].T
        image = ax.scatter(x, y, c=panel.values, s=2.5, linewidths=0, **colours)
        ax.set_aspect("equal")
    ax.set_axis_off()
    ax.set_title(panel.title)
    ax.figure.colorbar(image, ax=ax, shrink=0.6, extend="both")


def _scale(low: float, high: float) -> Any:
    from matplotlib.colors import Normalize

    return Normalize(low, high, clip=True)


def _name(ax: Any, panel: Any) -> None:
    ax.set_title(panel.title)
    ax.set_xlabel(panel.x_label)
    ax.set_ylabel(panel.y_label)


_PIXELS = 105  # to an inch
_MOST_NAMES = 9
_LOWEST = -0.25  # what lies lower is drawn at the edge
_PAINTERS = {"lines": _lines, "bars": _bars, "points": _points, "heat": _heat, "map": _map}
_PANEL_SIZES = {"heat": (3.8, 3.2), "points": (4.0, 4.2), "map": (4.4, 2.9), "lines": (3.6, 3.0)}
