"""The numbers printed in the paper (Jia & Benson, arXiv:2101.07730), transcribed from its tables."""

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def _tables() -> Mapping[str, Any]:
    text = files("graphmrf.experiments").joinpath("published.json").read_text(encoding="utf-8")
    return dict(json.loads(text))


def published(table: str, row: str, column: str, *, quantity: str = "value") -> float | None:
    """Return a printed number, None where the paper has none.

    Parameters
    ----------
    table : str
        Name of the experiment.
    row, column : str
        Names of row and column.
    quantity : {"value", "alpha", "layers"}
        The number itself, or the average smoothing level or number of layers in brackets behind it.

    Examples
    --------
    >>> published("real-accuracy", "us-2016/income", "LGC")
    0.66
    >>> published("real-accuracy", "us-2016/income", "LGC", quantity="alpha")
    0.46
    """
    cell = _tables().get(table, {}).get(row.replace("+log", ""), {}).get(column, {})
    value: float | None = cell.get(quantity)
    return value
