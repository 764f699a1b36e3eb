"""The table of classification: Elliptic where its files are, Twitch as a stand-in."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from graphmrf.experiments.classes import ALWAYS
from graphmrf.experiments.experiment import average, count_missing
from graphmrf.experiments.findings import Cell, Findings, Row, Table
from graphmrf.experiments.methods import PAPER, Method, method_of, methods_for, why_empty
from graphmrf.experiments.published import published
from graphmrf.experiments.runs import Results, Run, Settings

INDUCTIVE = ("LR", "LGC", "SGC", "GCN")


@dataclass(frozen=True)
class Setting:
    """A row: how its nodes are split, on which data, how often, and how long a run of a network takes."""

    label: str
    data: str
    setting: str
    printed: str = ""
    max_seeds: int = 1
    seconds: float = 60.0


@dataclass(frozen=True)
class Classification:
    """F1 of class 1 for every method."""

    name: str
    title: str
    place: str
    settings: tuple[Setting, ...]
    remarks: tuple[str, ...] = ()

    @property
    def data(self) -> tuple[str, ...]:
        """Data sets it needs."""
        return tuple(dict.fromkeys(name for each in self.settings for name in each.data.split(">")))

    def plan(self, settings: Settings) -> Iterable[Run]:
        """Return a run for every row, method and split."""
        return [
            run
            for each in self.settings
            for method in methods_for(_columns(each))
            for run in _runs(each, method, settings)
        ]

    def collect(self, results: Results, settings: Settings) -> Findings:
        """Return the table."""
        rows = tuple(
            Row(
                (each.label, each.setting),
                tuple(self._cell(results, settings, each, name) for name in (*PAPER, ALWAYS)),
            )
            for each in self.settings
        )
        caption = f"{self.title}: F1 of class 1 on the test nodes."
        table = Table(self.name, caption, ("data", "setting"), (*PAPER, ALWAYS), rows, ranked=True)
        return Findings((table,), (), (), self.remarks, count_missing(results, self.plan(settings)))

    def _cell(self, results: Results, settings: Settings, each: Setting, column: str) -> Cell:
        paper = published("classification", each.printed, column) if each.printed else None
        if column == ALWAYS:
            return average(results, _runs(each, methods_for(["LR"])[0], settings), ALWAYS)
        method = method_of(column)
        if column not in _columns(each) or method is None or method.unavailable:
            reason = why_empty(column) if column in _columns(each) else "not in this setting"
            return Cell(paper=paper, note=reason)
        return replace(average(results, _runs(each, method, settings), column), paper=paper)


def _columns(each: Setting) -> tuple[str, ...]:
    return INDUCTIVE if each.setting == "inductive" else PAPER


def _runs(each: Setting, method: Method, settings: Settings) -> list[Run]:
    options: dict[str, str | int | float] = {"data": each.data, "setting": each.setting, "method": method.name}
    effort: dict[str, str] = {"effort": settings.effort} if method.extra else {}
    seconds = each.seconds * ((0.3 if settings.quick else 1.0) if method.extra else 0.4)
    return [
        Run.of("classify", {**options, **effort, "seed": seed}, seconds=seconds)
        for seed in settings.seeds[: each.max_seeds]
    ]
