import pytest

from graphmrf_paper.findings import PaperTable, TableCell
from graphmrf_paper.runs import Entry, Experiment, Options, Outline, Plan, Result, Run, RunSettings

pytestmark = pytest.mark.slow


def score(_: str | None, options: Options) -> Result:
    return {"LP": {"value": 0.1 * options["seed"]}, "all": [1.0, 3.0]}


SEEDS = [Run.of(score, {"seed": seed}) for seed in (1, 2, 3)]
RESULTS = {run.key: run.perform(None) for run in SEEDS}


def test_a_cell_is_mean_and_deviation_over_the_runs_that_have_a_result() -> None:
    cell = Entry(SEEDS, ("LP", "value")).cell({run.key: RESULTS[run.key] for run in SEEDS[:2]})
    assert cell.ours == pytest.approx(0.15)
    assert cell.n_runs == 2
    assert cell.spread == pytest.approx(0.05 * 2**0.5)
    assert Entry(SEEDS[:1], ("LP", "value")).cell(RESULTS).spread is None


def test_numbers_in_lists_are_averaged_or_taken_by_place() -> None:
    assert Entry(SEEDS, ("all",)).cell(RESULTS).ours == 2.0
    assert Entry(SEEDS, ("all", 1)).cell(RESULTS).ours == 3.0


@pytest.mark.parametrize("path", [("LGC", "value"), ("LP", "alpha"), ("none",)])
def test_what_no_result_has_is_an_empty_cell_beside_the_published_number(path: tuple[str, ...]) -> None:
    cell = Entry(SEEDS, path, note="why").beside("real-accuracy", "us-2016/income", "LGC").cell(RESULTS)
    assert cell == TableCell(None, 0.66, 0.6542, note="why")


def test_a_plan_knows_its_runs_and_fills_its_table() -> None:
    form = PaperTable("t", "T", ("row",), ("LP", "LGC"))
    plan = Plan.of(form, {("a",): 0, ("b",): 1}, form.columns, lambda k, name: Entry([SEEDS[k]], (name, "value")))
    experiment = Experiment("t", "T", "Table 1", (), lambda _: Outline.of(plan))
    assert set(experiment.plan(RunSettings())) == set(SEEDS[:2])
    (table,) = experiment.collect(RESULTS, RunSettings()).tables
    assert [row.labels for row in table.rows] == [("a",), ("b",)]
    assert [cell.ours for cell in table.cells()] == [0.1, None, 0.2, None]
