import pytest

from graphmrf_paper.reproduction import find_experiments
from graphmrf_paper.runner import Record, spoken, timing_table, timings
from graphmrf_paper.runs import Experiment, Run, RunSettings

pytestmark = pytest.mark.slow


def experiments() -> tuple[Experiment, ...]:
    return find_experiments(["real-accuracy", "label-fraction", "frequency-response"])


def records(runs: set[Run]) -> dict[str, Record]:
    return {run.key: Record(run.key, {}, 2.0, 1.5) for run in runs}


def test_times_are_sums_over_the_runs_that_ended() -> None:
    formula, table, curves = experiments()
    settings = RunSettings(quick=True)
    runs = set(table.plan(settings))
    found = records({run for run in runs if "method=GCN" in run.key or "method=LP" in run.key})
    first, second, third, total = timings([table, curves, formula], settings, found)
    assert (first.n_runs, first.elapsed, first.cpu) == (2 * 18 * 2, 1.5 * 72, 2.0 * 72)
    assert first.networks == 72.0
    assert second.n_runs == 2 * 4 * 2, "the share of 30 % is in both"
    assert (third.n_runs, third.cpu) == (0, 0.0)
    assert total.n_runs == first.n_runs
    assert total.sentence() == "72 runs took 3 minutes of one core (SGC, GCN: 72 seconds), 2 minutes by the clock"


def test_a_table_of_times_has_a_line_for_each() -> None:
    settings = RunSettings(quick=True)
    lines = timing_table(timings(experiments(), settings, {})).splitlines()
    assert [line.split(" | ")[0] for line in lines[2:]] == [
        "| frequency-response",
        "| real-accuracy",
        "| label-fraction",
        "| all, runs in common once",
    ]
    assert len({line.count("|") for line in lines}) == 1


def test_times_are_words() -> None:
    assert [spoken(seconds) for seconds in (0.0, 89.0, 91.0, 5399.0, 5400.0)] == [
        "1 second",
        "89 seconds",
        "2 minutes",
        "90 minutes",
        "1.5 hours",
    ]
