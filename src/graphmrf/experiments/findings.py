"""What an experiment found: tables with the paper's numbers beside ours, panels of figures, goals and remarks."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from graphmrf._typing import Floats


@dataclass(frozen=True)
class Cell:
    """One number: ours, the paper's, and how ours spread over runs.

    Parameters
    ----------
    ours, paper : float or None
        None where there is no number.
    spread : float or None
        Standard deviation over runs.
    n_runs : int
        Number of runs behind ours.
    note : str
        Why there is no number, or what to know about it.

    Examples
    --------
    >>> round(Cell(0.66, 0.65).difference, 6), Cell(None, 0.65, note="needs the gnn extra").difference
    (0.01, None)
    """

    ours: float | None = None
    paper: float | None = None
    spread: float | None = None
    n_runs: int = 0
    note: str = ""

    @property
    def difference(self) -> float | None:
        """Ours less the paper's."""
        return None if self.ours is None or self.paper is None else self.ours - self.paper


@dataclass(frozen=True)
class Row:
    """A line of a table: labels, then one cell for each column."""

    labels: tuple[str, ...]
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Table:
    """A table of the paper.

    Parameters
    ----------
    name : str
        Name of its files.
    caption : str
        What it shows.
    heads : tuple of str
        Names of the label columns.
    columns : tuple of str
        Names of the columns of numbers.
    rows : tuple of Row
        The lines.
    decimals : int
        Decimals of ours.
    ranked : bool
        Whether the largest number of a row is the best.
    """

    name: str
    caption: str
    heads: tuple[str, ...]
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    decimals: int = 3
    ranked: bool = False

    def cells(self, columns: Sequence[str] | None = None) -> Iterator[Cell]:
        """Yield the cells of some columns, row by row."""
        wanted = [k for k, column in enumerate(self.columns) if columns is None or column in columns]
        for row in self.rows:
            yield from (row.cells[k] for k in wanted)

    def differences(self, columns: Sequence[str] | None = None) -> Floats:
        """Return ours less the paper's, wherever both have a number."""
        return np.array([cell.difference for cell in self.cells(columns) if cell.difference is not None])

    def best(self, row: Row) -> float | None:
        """Return the largest of our numbers in a row, None in a table that ranks nothing."""
        ours = [cell.ours for cell in row.cells if cell.ours is not None]
        return max(ours) if ours and self.ranked else None


@dataclass(frozen=True)
class Series:
    """A line, a group of bars or of points."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    spread: Sequence[float] = ()
    colour: float | None = None
    marker: str = ""


@dataclass(frozen=True)
class Lines:
    """Curves over one axis."""

    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    kind: ClassVar[str] = "lines"


@dataclass(frozen=True)
class Bars:
    """Groups of bars: every series has one value for each group."""

    title: str
    groups: tuple[str, ...]
    y_label: str
    series: tuple[Series, ...]
    kind: ClassVar[str] = "bars"


@dataclass(frozen=True)
class Points:
    """Points about the diagonal."""

    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    kind: ClassVar[str] = "points"


@dataclass(frozen=True, eq=False)
class Heat:
    """A matrix in colours; `marks` are (column, row) positions."""

    title: str
    x_label: str
    y_label: str
    values: Floats
    x_ticks: tuple[str, ...] = ()
    y_ticks: tuple[str, ...] = ()
    marks: tuple[tuple[int, int], ...] = ()
    signed: bool = False
    kind: ClassVar[str] = "heat"


@dataclass(frozen=True, eq=False)
class Map:
    """A value at every node of a data set, between limits; drawn on shapes when their ids are known."""

    title: str
    data: str
    ids: tuple[str, ...]
    values: Floats
    limits: tuple[float, float]
    kind: ClassVar[str] = "map"


@dataclass(frozen=True)
class Figure:
    """A figure of the paper: panels side by side.

    Parameters
    ----------
    name : str
        Name of its files.
    caption : str
        What it shows; also what a screen reader reads.
    panels : tuple
        `Lines`, `Bars`, `Points`, `Heat` or `Map`.
    columns : int
        Panels in a row.
    """

    name: str
    caption: str
    panels: tuple[Lines | Bars | Points | Heat | Map, ...]
    columns: int = 3


@dataclass(frozen=True)
class Goal:
    """A figure to reach: what was measured, what was wanted, and whether it is met."""

    what: str
    measured: str
    wanted: str
    met: bool | None = None


@dataclass(frozen=True)
class Findings:
    """All that an experiment found.

    Parameters
    ----------
    tables, figures, goals : tuples
        What to show.
    remarks : tuple of str
        What agrees, what differs, and why.
    missing : int
        Runs without a result.
    """

    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = ()
    goals: tuple[Goal, ...] = ()
    remarks: tuple[str, ...] = ()
    missing: int = 0
