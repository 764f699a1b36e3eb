"""Numbers to compare with: those printed in the paper, and those in its authors' own result files."""

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def _numbers(source: str) -> Mapping[str, Any]:
    text = files("graphmrf_paper").joinpath(f"{source}.json").read_text(encoding="utf-8")
    return dict(json.loads(text))


def _number(source: str, table: str, row: str, column: str, quantity: str) -> float | None:
    value: float | None = _numbers(source).get(table, {}).get(row, {}).get(column, {}).get(quantity)
    return value


def printed(table: str, row: str, column: str, quantity: str = "value") -> float | None:
    """Return a number printed in the paper (Jia & Benson, arXiv:2101.07730), None where it has none.

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
    >>> printed("real-accuracy", "us-2016/income", "LGC"), printed("real-accuracy", "us-2016/income", "LGC", "alpha")
    (0.66, 0.46)
    """
    return _number("published", table, row, column, quantity)


def authors(table: str, row: str, column: str, quantity: str = "value") -> float | None:
    """Return a number from the result files in the authors' repository, a mean over their runs; None without one.

    Parameters and names are those of `printed`. The files cover figures for which the paper prints no numbers. They are
    of later runs than the paper, see `commit_of`.

    Examples
    --------
    >>> authors("real-accuracy", "us-2016/income", "LGC"), authors("label-fraction", "twitch-ptbr/days/LGC", "10%")
    (0.6542, 0.5027)
    """
    return _number("authors", table, row, column, quantity)


def commit_of(table: str) -> str:
    """Return the commit of the authors' repository that has their numbers for an experiment; empty without any.

    Examples
    --------
    >>> commit_of("real-accuracy"), commit_of("data-statistics")
    ('46ed0fa', '')
    """
    return str(_numbers("authors").get(table, {}).get("commit", ""))
