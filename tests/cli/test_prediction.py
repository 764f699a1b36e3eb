"""The general field at the command line: intervals, transforms, shares, effects, and where it does not run."""

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

import graphmrf as gm
from graphmrf.cli import inputs, targets
from graphmrf.comparison import Settings
from graphmrf.estimators import graph_regressor
from graphmrf.files import free_memory
from graphmrf.text import number, r2_in_words

FIELD = ("--target", "income", "--method", "field")


def made(town: Any, *options: str) -> tuple[pd.DataFrame, dict[str, Any]]:
    path = town.folder / "out.csv"
    result = town.run("-o", str(path), "--json", *options)
    assert result.exit_code == 0, result.output
    return pd.read_csv(path, dtype={"place": "str"}), json.loads(result.stdout)


def fitted(town: Any, **options: Any) -> gm.GraphRegressor:
    read = gm.read(town.folder / "nodes.csv", town.folder / "edges.csv")
    return gm.GraphRegressor(**options).fit(read.graph, read.frame[["age"]], read.outcome("income"))


@pytest.mark.slow
@pytest.mark.parametrize(("flag", "kind"), [((), "field"), (("--conformal",), "conformal")])
def test_intervals_are_those_of_the_field(flag: tuple[str, ...], kind: Any, town: Any) -> None:
    frame, _ = made(town, *FIELD, "--interval", "0.8", *flag)
    low, high = fitted(town).predict_interval(0.8, interval=kind)
    np.testing.assert_allclose(frame["lower"], low, rtol=1e-8)
    np.testing.assert_allclose(frame["upper"], high, rtol=1e-8)


def test_intervals_of_a_transformed_target_are_not_symmetric(town: Any) -> None:
    frame, summary = made(town, *FIELD, "--transform", "log")
    low, high = fitted(town, transform="log").predict_interval(0.9)
    np.testing.assert_allclose(frame[["lower", "upper"]], np.column_stack([low, high]), rtol=1e-8)
    hidden = frame[~frame["observed"]]
    assert (hidden["lower"] > 0).all()
    assert (hidden["upper"] - hidden["prediction"] > hidden["prediction"] - hidden["lower"]).all()
    assert not any("transform" in note for note in summary["notes"])


def test_the_likeliest_transform_is_told(town: Any) -> None:
    _, summary = made(town, *FIELD, "--transform", "auto")
    assert any("income: transform chosen by likelihood: " in note for note in summary["notes"])


def test_conformal_intervals_without_a_bound_are_told(town: Any) -> None:
    known = town.nodes["income"].notna().cumsum()
    town.write(town.nodes.assign(income=town.nodes["income"].where(known <= 6)))
    frame, summary = made(town, *FIELD, "--conformal", "--report", str(town.folder / "page.html"))
    assert np.isposinf(frame["upper"][~frame["observed"]]).all()
    assert any("too few known values for a conformal interval of 90 %" in note for note in summary["notes"])


@pytest.mark.slow
def test_shares_and_effects_are_shown_everywhere(town: Any) -> None:
    page = town.folder / "page.html"
    shown = town.run(*FIELD, "--report", str(page))
    assert shown.exit_code == 0, shown.output
    _, summary = made(town, *FIELD)
    target = summary["targets"][0]
    assert sum(target["shares"].values()) == pytest.approx(1)
    assert target["carries"].endswith("of the variation).") or ", then " in target["carries"]
    model = fitted(town)
    assert target["shares"] == pytest.approx(model.shares_.to_dict(), abs=1e-8)
    assert target["coefficients"] == pytest.approx(dict(zip(["age"], model.coef_, strict=True)))
    for words in ("what carries it", "the graph field", "noise", target["carries"]):
        assert words in shown.stdout
    for words in ("What carries the prediction", "What the features contribute", "Field regression"):
        assert words in page.read_text(encoding="utf-8")


def test_other_methods_have_no_shares(town: Any) -> None:
    _, summary = made(town, "--target", "income", "--method", "lgc-rp")
    assert summary["targets"][0]["shares"] is None
    assert "what carries it" not in town.run("--target", "income", "--method", "lgc-rp").stdout


def test_without_features_the_field_is_left(town: Any) -> None:
    frame, summary = made(town, *FIELD, "--ignore", "age")
    assert np.isfinite(frame["prediction"]).all()
    assert not summary["targets"][0]["coefficients"]
    assert set(summary["targets"][0]["shares"]) == {"graph field", "noise"}


def test_classes_are_predicted_by_the_method_with_the_least_log_loss(town: Any) -> None:
    income = town.nodes["income"]
    words = np.where(income > income.median(), "high", "low").astype(object)
    words[income.isna()] = None
    town.write(town.nodes.drop(columns="income").assign(wealth=words))
    (target,) = json.loads(town.run("--target", "wealth", "--json").stdout)["targets"]
    losses = {row["method"]: row["log_loss"] for row in target["comparison"]}
    assert list(losses) == ["lp", "lr", "lgc", "lr-rp", "lgc-rp", "field"]
    assert losses[target["method"]] == min(losses.values()) == target["log_loss"]
    assert target["reason"].startswith(f"{target['method']} is used: its log loss at held-out labels is the lowest")
    said = json.loads(town.run("--target", "wealth", "--json", "--conformal", "--method", "field").stdout)["notes"]
    assert "wealth: conformal intervals are for numbers, not for classes" in said


@pytest.mark.slow
def test_every_class_beyond_two_has_a_field_of_its_own_with_a_warning(town: Any) -> None:
    words = pd.Series(["low", "middle", "high", None] * 16)
    town.write(town.nodes.drop(columns="income").assign(wealth=words))
    job = ("--target", "wealth", "--folds", "2", "--method")
    said = "note: wealth: field has a latent value for each of 3 classes, which is slow; try --method lgc-rp\n"
    assert town.run(*job, "field").stderr.startswith(said)
    assert said not in town.run(*job, "lr").stderr


def test_held_out_numbers_are_the_same_in_the_terminal_the_page_the_file_and_the_summary(town: Any) -> None:
    page = town.folder / "page.html"
    frame, summary = made(town, *FIELD, "--report", str(page))
    shown, text = " ".join(town.run(*FIELD).stdout.split()), page.read_text(encoding="utf-8").replace("\xa0", " ")
    r2, error = summary["targets"][0]["r2"], summary["targets"][0]["r2_error"]
    known = frame[frame["observed"]]
    income = known["prediction"]
    assert r2 == pytest.approx(1 - np.sum((income - known["left_out"]) ** 2) / np.sum((income - income.mean()) ** 2))
    assert f"cross-validated {r2_in_words(r2, error)}" in shown
    assert f"{number(r2, 3)} ± {number(error, 3)}" in text
    inside = 100 * np.mean(known["residual"].abs() <= norm.ppf(0.95))
    assert f"{inside:.0f} % of the known values lie inside their 90 % interval" in text


@pytest.mark.parametrize("level", ["1e-300", "1e-17", "0.99999999999999999", "nan", "-1"])
@pytest.mark.parametrize("method", ["field", "lp"])
def test_intervals_without_a_width_or_an_end_are_refused(level: str, method: str, town: Any) -> None:
    result = town.run("--target", "income", "--method", method, "--interval", level)
    assert result.exit_code == 2
    assert "--interval must be between 0 and 1" in " ".join(result.stderr.split())


@pytest.mark.parametrize("level", ["1e-15", "0.999999999999999"])
def test_the_narrowest_and_the_widest_interval_contain_the_prediction(level: str, town: Any) -> None:
    frame, _ = made(town, *FIELD, "--interval", level)
    assert (frame["lower"] <= frame["upper"]).all()
    assert np.isfinite(frame[["lower", "upper"]]).all(axis=None)


def test_the_solver_is_in_the_summary(town: Any) -> None:
    assert json.loads(town.run(*FIELD, "--json").stdout)["targets"][0]["solver"] == "dense"


def test_missing_cells_reach_the_field_and_other_methods_have_the_mean(town: Any) -> None:
    age = town.nodes["age"].mask(np.arange(64) % 5 == 0)
    town.write(town.nodes.assign(age=age, rooms=0.1 * town.nodes["age"] + np.sin(np.arange(64))))
    read = gm.read(town.folder / "nodes.csv", town.folder / "edges.csv")
    X, y = read.frame[["age", "rooms"]], read.outcome("income")
    frame, summary = made(town, *FIELD)
    expected = gm.GraphRegressor().fit(read.graph, X, y).predict()
    np.testing.assert_allclose(frame["prediction"], expected, rtol=1e-8)
    assert "filled missing cells from the other features and the neighbours: 'age' (13 cells)" in summary["notes"]
    frame, summary = made(town, "--target", "income", "--method", "lr")
    expected = gm.LinearRegression().fit(read.graph, X.fillna(X.mean()), y).predict()
    np.testing.assert_allclose(frame["prediction"], np.where(np.isnan(y), expected, y), rtol=1e-8)
    assert "filled missing cells with the column mean: 'age' (13 cells)" in summary["notes"]


def test_more_missing_cells_than_the_field_can_fill(town: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph_regressor, "MOST_PATTERNS", 1)
    town.write(town.nodes.assign(age=town.nodes["age"].mask(np.arange(64) % 5 == 0)))
    _, summary = made(town, "--target", "income")
    said = "income: field has missing cells filled with the column mean, too: missing cells of X are filled by a joint"
    assert any(note.startswith(said) for note in summary["notes"])


@pytest.mark.parametrize(
    ("method", "free", "remedy"),
    [("field", 10**6, "--method lgc-rp"), ("field", 10**4, "--cluster"), ("lgc-rp", 10**4, "--cluster")],
)
def test_a_fit_that_does_not_fit_into_memory_is_refused(town: Any, method: str, free: int, remedy: str) -> None:
    graph = gm.read(town.folder / "nodes.csv", town.folder / "edges.csv").graph
    memory = inputs.Memory(free, large=1, solve=2000, field=10**6)
    with pytest.raises(gm.errors.InvalidInputError, match=f"GB more memory, and .* GB are free; use .*{remedy}"):
        targets.within_memory(graph, 1, Settings((method,)), memory, numbers=True)


def test_a_field_that_nobody_asked_for_is_left_out_where_there_is_no_memory_for_it(town: Any) -> None:
    graph = gm.read(town.folder / "nodes.csv", town.folder / "edges.csv").graph
    memory = inputs.Memory(10**6, large=1, solve=2000, field=10**6)
    settings, notes = targets.within_memory(graph, 1, Settings(), memory, numbers=True)
    assert "field is left out: it would take about 0.1 GB more memory, and 0.0 GB are free" in notes
    assert "field" not in settings.methods
    with pytest.raises(gm.errors.InvalidInputError, match="use --method lgc-rp"):
        targets.within_memory(graph, 1, Settings(conformal=True), memory, numbers=True)


def test_edges_that_do_not_fit_into_memory_are_refused_before_they_are_read(town: Any) -> None:
    path = town.folder / "edges.parquet"
    pd.read_csv(town.folder / "edges.csv", dtype="str").to_parquet(path)
    with pytest.raises(gm.errors.InvalidInputError, match=r"to read, and .* GB are free; read it on workers"):
        inputs.check_room(path, inputs.Memory(100, large=1))


@pytest.mark.parametrize("free", [None, 10**12])
def test_the_memory_of_a_large_fit_is_reported(town: Any, free: int | None) -> None:
    graph = gm.read(town.folder / "nodes.csv", town.folder / "edges.csv").graph
    _, notes = targets.within_memory(graph, 0, Settings(("lp",)), inputs.Memory(free, large=1), numbers=True)
    assert "the fit takes about 0.0 GB of memory" in " ".join(notes)


def test_the_free_memory_is_that_of_the_system() -> None:
    free = free_memory()
    assert free is None or free > 10**6
