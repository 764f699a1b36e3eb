"""Tasks for development and tasks for validation, named before any run.

Whatever is chosen in the code may be chosen by the development tasks. The validation tasks are run when a choice is
made, and no choice is made by them. `land:temperature` was a validation task until the second, far range of the sparse
field was chosen by its error; since then it is one for development, and its own error does not validate that range.
The maps among the validation tasks confirm it, in the sparse form and with holes in blocks.
"""

from __future__ import annotations

from functools import cache

from benchmarks.more_data import Task, connected_part
from benchmarks.more_data import load as load_more
from benchmarks.paper_data import SETS, tasks

DEVELOPMENT = (
    "U.S.:income",
    "U.S.:unemployment",
    "CDC:airT",
    "CDC:precipitation",
    "London:income",
    "London:election",
    "Twitch:days",
    "king_county:log_price:6000",
    "nyc:unemp_rate",
    "montevideo:log_boardings",
    "land:temperature",
)
"""A number at the end is the size of a connected part, which is the whole task here."""

VALIDATION = (
    "U.S.:education",
    "U.S.:election",
    "CDC:landT",
    "CDC:sunlight",
    "CDC:pm2.5",
    "London:edu",
    "London:age",
    "chameleon:log_traffic",
    "fb100:class_year",
    "nyc:median_income",
    "glasgow:log_admissions",
    "germany:log_mortality",
)

NAMED = {"development": DEVELOPMENT, "validation": VALIDATION, "all": DEVELOPMENT + VALIDATION}

PAPER = tuple(name for name in NAMED["all"] if name.split(":")[0] in SETS)
"""The paper's 14 tasks."""


@cache
def load(name: str) -> Task:
    """Return a task by its name; one of the paper's has standardised features and outcome."""
    data, outcome, *size = name.split(":")
    if data in SETS:
        return _paper(data)[name]
    whole = load_more(f"{data}:{outcome}")
    return connected_part(whole, int(size[0])) if size else whole


@cache
def _paper(data: str) -> dict[str, Task]:
    found = [(f"{data}:{task.outcome}", task) for task in tasks({data: SETS[data]})]
    kind = {"U.S.": "friends", "Twitch": "friends"}.get(data, "map")
    return {name: Task(name, task.graph, task.X, task.y, kind) for name, task in found}
