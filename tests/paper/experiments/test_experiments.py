import json
import re
from importlib.resources import files

import pytest

from graphmrf.errors import InvalidInputError
from graphmrf_paper.methods import LINEAR_COLUMNS, PAPER_COLUMNS
from graphmrf_paper.published import authors, printed
from graphmrf_paper.reproduction import EXPERIMENTS, find_experiments
from graphmrf_paper.runs import Experiment, RunSettings

pytestmark = pytest.mark.slow

TABLES, FILES = (
    json.loads(files("graphmrf_paper").joinpath(f"{name}.json").read_text(encoding="utf-8"))
    for name in ("published", "authors")
)


def test_every_table_and_figure_with_numbers_is_there() -> None:
    places = [each.place for each in EXPERIMENTS]
    assert {f"Table {k}" for k in range(1, 6)} <= set(places)
    assert {f"Figure {k}" for k in (2, *range(4, 11))} | {f"Figure 3 ({k})" for k in "abc"} <= set(places)
    assert len({each.name for each in EXPERIMENTS}) == len(EXPERIMENTS)


def test_the_published_tables_are_complete() -> None:
    assert [len(TABLES[name]) for name in ("synthetic-accuracy", "real-accuracy", "coefficients")] == [3, 14, 2]
    for name in ("synthetic-accuracy", "real-accuracy"):
        assert all(tuple(row) == PAPER_COLUMNS for row in TABLES[name].values())
        assert all(0 <= cell["value"] <= 1 for row in TABLES[name].values() for cell in row.values())
    assert all(len(row) == 9 for row in TABLES["coefficients"].values())


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("synthetic-accuracy", "100", "GCN"), 0.45),
        (("real-accuracy", "twitch-ptbr/days", "GCN/RP"), 0.26),
        (("real-accuracy", "london-2016+log/election", "LP"), 0.67),
        (("coefficients", "us-2016", "education"), -1.53),
        (("classification", "inductive", "GCN"), 0.46),
        (("classification", "inductive", "LP"), None),
    ],
)
def test_a_published_number(place: tuple[str, str, str], value: float | None) -> None:
    assert printed(*place) == value


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("synthetic-accuracy", "100", "GCN"), 0.448),
        (("real-accuracy", "cdc-2008/pm2.5", "LGC"), 0.3719),
        (("real-accuracy", "london-2016+log/election", "LP"), None),
        (("label-fraction", "london-2016/election/LP", "10%"), 0.5153),
        (("inductive-synthetic", "h₀ = 100/inductive", "LGC"), 0.3415),
        (("r2-estimate-real", "CDC/pm2.5/LGC", "expected"), -1.5583),
    ],
)
def test_a_number_of_the_authors(place: tuple[str, str, str], value: float | None) -> None:
    assert authors(*place) == value


def test_the_authors_numbers_stand_beside_ours_wherever_there_are_some() -> None:
    """Names of rows and columns in the file are those of the tables, else a number would be lost without a word."""
    settings, found = RunSettings(quick=True), set()
    for experiment in EXPERIMENTS:
        for table in experiment.collect({}, settings).tables:
            found |= {cell.authors for cell in table.cells() if cell.authors is not None}
    listed = {
        cell["value"]
        for name in ("synthetic-accuracy", "real-accuracy", "label-fraction", "inductive-us", "r2-estimate-real")
        for row, cells in FILES[name].items()
        if row != "commit"
        for cell in cells.values()
    }
    assert listed <= found


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda each: each.name)
def test_runs_have_keys_of_their_own_and_say_how_long_they_take(experiment: Experiment) -> None:
    runs = list(experiment.plan(RunSettings(quick=True)))
    keys = {run.key for run in runs}
    assert len(keys) == len(set(runs))
    assert all(run.seconds > 0 and re.fullmatch(r"[a-z_]+( \w+=[^ =]+( \w+)?)+", run.key) for run in runs)


def test_a_quick_run_is_a_part_of_the_full_one_where_nothing_is_trained() -> None:
    (table,) = find_experiments(["real-accuracy"])
    quick, full = ({run.key for run in table.plan(RunSettings(quick=quick))} for quick in (True, False))
    assert {key for key in quick if any(f"method={name} " in key for name in LINEAR_COLUMNS)} <= full


def test_another_seed_has_other_splits() -> None:
    (table,) = find_experiments(["real-accuracy"])
    first, second = ({run.key for run in table.plan(RunSettings(seed=seed))} for seed in (0, 1))
    assert not first & second


@pytest.mark.parametrize(("name", "near"), [("real-acuracy", "real-accuracy"), ("Omega-LP", "omega-lp")])
def test_an_unknown_experiment_is_answered_with_the_nearest(name: str, near: str) -> None:
    with pytest.raises(InvalidInputError, match=f"no experiment is called '{name}'; did you mean .*'{near}'"):
        find_experiments([name])


def test_a_name_like_no_other_is_answered_with_all() -> None:
    with pytest.raises(InvalidInputError, match=r"there are synthetic-accuracy, .*r2-estimate-real"):
        find_experiments(["xyzzy"])


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda each: each.name)
def test_without_results_nothing_is_invented(experiment: Experiment) -> None:
    settings = RunSettings(quick=True)
    found = experiment.collect({}, settings)
    assert all(cell.ours is None for table in found.tables for cell in table.cells())
    assert not found.goals


def test_claims_are_counted_beside_print_and_the_authors_files() -> None:
    (table,) = find_experiments(["synthetic-accuracy"])
    settings, better = RunSettings(quick=True), {"1": "LGC", "10": "LP", "100": "LP"}
    results = {
        run.key: {name: {"value": 0.6 if name == better[level] else 0.5}}
        for run in table.plan(settings)
        for name in ("LGC", "LP")
        for level in better
        if f"-h{level} " in run.key and f"method={name} " in run.key
    }
    (goal,) = (goal for goal in table.collect(results, settings).goals if "LGC is at least as accurate" in goal.what)
    assert (goal.measured, goal.printed, goal.authors, goal.met) == ("1 of 3", "2 of 3", "2 of 3", None)
