"""Numbers to compare with: those printed in the paper, and those in its authors' own result files."""

import json
from collections.abc import Mapping
from functools import cache, partial
from importlib.resources import files
from typing import Any


@cache
def _numbers(source: str) -> Mapping[str, Any]:
    text = files("graphmrf_paper").joinpath(f"{source}.json").read_text(encoding="utf-8")
    return dict(json.loads(text))


def _number(source: str, table: str, row: str, column: str, quantity: str = "value") -> float | None:
    value: float | None = _numbers(source).get(table, {}).get(row, {}).get(column, {}).get(quantity)
    return value


printed = partial(_number, "published")
"""From experiment, row, column and quantity ("value", "alpha" or "layers") to the number printed in the paper (Jia &
Benson, arXiv:2101.07730); None where it has none."""
authors = partial(_number, "authors")
"""The same from the result files in the authors' repository, means over their runs. The files cover figures for which
the paper prints no numbers, and are of later runs than the paper, see `commit_of`."""


def commit_of(table: str) -> str:
    """Return the commit of the authors' repository that has their numbers for an experiment; empty without any."""
    return str(_numbers("authors").get(table, {}).get("commit", ""))
