"""Counts and successes in `graphmrf predict`."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import mean_poisson_deviance
from typer.testing import CliRunner

from graphmrf import Graph
from graphmrf.cli import app
from graphmrf.estimators.graph_regressor import GraphRegressor
from graphmrf.estimators.methods import ObservedRegressor
from graphmrf.text import number

N = 60


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rng, ids = np.random.default_rng(0), np.arange(N)
    people = rng.uniform(50.0, 500.0, N).round()
    cases = rng.poisson(0.05 * people * np.exp(np.sin(ids / 6.0))).astype(float)
    frame = pd.DataFrame({"id": [f"n{k}" for k in ids], "people": people, "x": rng.standard_normal(N), "cases": cases})
    frame["ill"] = (np.sin(ids / 6.0) > 0).astype(float)
    frame.loc[::3, ["cases", "ill"]] = np.nan
    frame.to_csv(tmp_path / "nodes.csv", index=False)
    ends = {"source": frame["id"], "target": np.roll(frame["id"], -1)}
    pd.DataFrame(ends).to_csv(tmp_path / "edges.csv", index=False)
    return tmp_path


def predict(folder: Path, *options: str) -> tuple[int, str, pd.DataFrame]:
    paths = [str(folder / name) for name in ("nodes.csv", "edges.csv")]
    output = folder / "out.csv"
    result = CliRunner().invoke(app, ["predict", *paths, "--ignore", "ill", "-o", str(output), *options])
    return result.exit_code, result.output, pd.read_csv(output) if output.exists() else pd.DataFrame()


@pytest.mark.slow
def test_counts_with_an_exposure(folder: Path) -> None:
    code, text, table = predict(folder, "--target", "cases", "--likelihood", "poisson", "--exposure", "people")
    assert code == 0, text
    frame = pd.read_csv(folder / "nodes.csv")
    graph = Graph.from_edges(np.arange(N), (np.arange(N) + 1) % N)
    model = GraphRegressor(likelihood="poisson").fit(graph, frame[["x"]], frame["cases"], exposure=frame["people"])
    hidden = frame["cases"].isna()
    expected = np.asarray(model.predict(of="observation"))
    np.testing.assert_allclose(table["prediction"][hidden], expected[hidden], rtol=1e-6)
    np.testing.assert_array_equal(table["prediction"][~hidden], frame["cases"][~hidden])
    assert (table["lower"] == table["lower"].round()).all()
    assert (table["lower"] >= 0).all()
    low, high = model.predict_interval(0.9)
    for name, rates in (("smoothed", model.predict()), ("smoothed_lower", low), ("smoothed_upper", high)):
        np.testing.assert_allclose(table[name], rates, rtol=1e-6)


@pytest.mark.slow
def test_counts_are_scored_by_their_deviance_on_all_surfaces(folder: Path) -> None:
    options = ("--target", "cases", "--likelihood", "poisson", "--exposure", "people")
    code, text, table = predict(folder, *options, "--report", str(folder / "page.html"), "--json")
    assert code == 0, text
    (target,) = json.loads(text[text.index("{") :])["targets"]
    frame = pd.read_csv(folder / "nodes.csv")
    seen = frame["cases"].notna()
    cases, people, held_out = (each[seen] for each in (frame["cases"], frame["people"], table["left_out"]))
    one_rate = people * cases.sum() / people.sum()
    expected = 1 - mean_poisson_deviance(cases, held_out) / mean_poisson_deviance(cases, one_rate)
    assert target["explained_deviance"] == pytest.approx(expected)
    assert "r2" not in target
    assert target["comparison"][0]["explained_deviance"] == target["explained_deviance"]
    page = (folder / "page.html").read_text(encoding="utf-8")
    assert f"Explained deviance is about {number(expected, 2)}" in page
    assert "Explained deviance in cross-validation" in page
    assert "R² in cross-validation" not in page
    _, text, _ = predict(folder, *options)
    assert f"cross-validated explained deviance {number(expected)}" in " ".join(text.split())


@pytest.mark.slow
def test_further_counts_are_suggested_with_the_deviance_to_expect(folder: Path) -> None:
    options = ("--target", "cases", "--likelihood", "poisson", "--exposure", "people", "--suggest", "2")
    code, text, _ = predict(folder, *options, "--report", str(folder / "page.html"))
    assert code == 0, text
    words = " ".join(text.split())
    assert "labels that would help most, in this order: expected explained deviance" in words
    measured = words.split("cross-validated explained deviance ")[1][:5]
    assert f"expected explained deviance {measured} now" in words
    page = (folder / "page.html").read_text(encoding="utf-8")
    assert "Expected explained deviance at the remaining nodes" in page
    assert "Expected R²" not in page


@pytest.mark.slow
def test_yes_or_no(folder: Path) -> None:
    paths = [str(folder / name) for name in ("nodes.csv", "edges.csv")]
    options = ["--target", "ill", "--ignore", "cases", "--likelihood", "binomial", "-o", str(folder / "out.csv")]
    result = CliRunner().invoke(app, ["predict", *paths, *options])
    assert result.exit_code == 0, result.output
    assert pd.read_csv(folder / "out.csv")["prediction"].between(0.0, 1.0).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--exposure", "people"], "--exposure is for --likelihood poisson or negative-binomial, got auto; cases has "),
        (["--exposure", "people"], "their variance may exceed their mean: add --likelihood negative-binomial "),
        (["--trials", "people"], "cases has whole numbers with trials: add --likelihood binomial --trials people"),
        (["--likelihood", "poisson", "--at-least", "0"], "--at-least is implied by --likelihood poisson"),
        (["--likelihood", "negative-binomial", "--integer"], "--integer is implied by --likelihood negative-binomial"),
        (["--likelihood", "binomial", "--at-most", "9"], "whole numbers, at least 0 and at most the trials; leave it"),
        (["--likelihood", "gamma"], "--likelihood must be one of"),
        (["--likelihood", "poisson", "--method", "lp"], "is for --method field"),
        (["--likelihood", "binomial", "--trials", "x"], "row 4, column x: trials of observed rows must be positive"),
        (["--likelihood", "binomial"], "nodes.csv, row 3, column cases: successes must be at most their trials"),
        (["--std", "x"], "nodes.csv, row 4, column x: standard errors of observed rows must be positive"),
        (["--std", "people", "--likelihood", "poisson"], "--std is for --likelihood auto or gaussian, got poisson"),
        (["--likelihood", "poisson", "--transform", "log"], "--transform is for numbers, not counts or shares"),
        (["--likelihood", "poisson", "--conformal"], "--conformal is for numbers, not counts or shares"),
        (["--value-weight", "people", "--transform", "log"], "--transform is for numbers, not counts or shares"),
        (["--std", "people", "--value-weight", "people"], "--std and --value-weight exclude each other"),
        (["--value-weight", "people", "--method", "lp"], "--value-weight is for --method field, got lp"),
    ],
)
def test_options_that_do_not_fit(folder: Path, options: list[str], message: str) -> None:
    code, text, _ = predict(folder, "--target", "cases", *options)
    assert code == 2
    assert message in " ".join(text.split())


@pytest.mark.slow
def test_a_likelihood_is_proposed_but_not_used(folder: Path) -> None:
    code, text, table = predict(folder, "--target", "cases")
    assert code == 0, text
    words = " ".join(text.split())
    assert "cases has whole numbers with an exposure; their variance may exceed their mean: add --likelihood " in words
    assert "negative-binomial --exposure people" in words
    assert (table["lower"] != table["lower"].round()).any()
    code, text, _ = predict(folder, "--target", "cases", "--likelihood", "poisson")
    words = " ".join(text.split())
    assert "cases: every count has an exposure of 1; name a column of exposures with --exposure" in words
    assert "add --likelihood" not in words
    _, text, _ = predict(folder, "--target", "cases", "--likelihood", "poisson", "--exposure", "people")
    assert "exposure of 1" not in " ".join(text.split())
    frame = pd.read_csv(folder / "nodes.csv")
    frame.assign(cases=frame["cases"] + 0.5).to_csv(folder / "nodes.csv", index=False)
    _, text, _ = predict(folder, "--target", "cases", "--exposure", "people")
    assert "drop --exposure, as the target has no counts" in " ".join(text.split())
    paths = [str(folder / name) for name in ("nodes.csv", "edges.csv")]
    text = CliRunner().invoke(app, ["predict", *paths, "--target", "ill", "--ignore", "cases", "--method", "lp"]).output
    assert "use --classify for classes, or --likelihood binomial for probabilities" in " ".join(text.split())


@pytest.mark.parametrize("likelihood", ["student", "gaussian"])
def test_likelihoods_of_numbers(folder: Path, likelihood: str) -> None:
    code, text, table = predict(folder, "--target", "cases", "--likelihood", likelihood)
    assert code == 0, text
    frame = pd.read_csv(folder / "nodes.csv")
    graph = Graph.from_edges(np.arange(N), (np.arange(N) + 1) % N)
    model = GraphRegressor(likelihood=likelihood).fit(graph, frame[["people", "x"]], frame["cases"])
    np.testing.assert_allclose(table["prediction"], model.predict(), rtol=1e-6)


def test_errors_of_counts_name_the_row_of_the_file(folder: Path) -> None:
    frame = pd.read_csv(folder / "nodes.csv")
    frame.loc[4, "cases"] = -1.0
    frame.to_csv(folder / "nodes.csv", index=False)
    code, text, _ = predict(folder, "--target", "cases", "--likelihood", "poisson", "--exposure", "people")
    assert code == 2
    text = " ".join(text.split())
    assert (
        "nodes.csv, row 6, column cases: likelihood 'poisson' needs whole numbers of cases, 0 or more, got -1" in text
    )
    assert "with --exposure" in text


@pytest.mark.slow
def test_known_errors_smooth_known_values(folder: Path) -> None:
    frame = pd.read_csv(folder / "nodes.csv")
    rng = np.random.default_rng(1)
    frame["rate"] = np.sin(np.arange(N) / 6.0) + 0.5 * rng.standard_normal(N)
    frame.loc[::3, "rate"] = np.nan
    frame["error"] = np.where(frame["rate"].isna(), np.nan, 0.5)
    frame.drop(columns=["cases"]).to_csv(folder / "nodes.csv", index=False)
    code, text, table = predict(folder, "--target", "rate", "--std", "error", "--ignore", "people")
    assert code == 0, text
    graph = Graph.from_edges(np.arange(N), (np.arange(N) + 1) % N)
    model = GraphRegressor().fit(graph, frame[["x"]], frame["rate"], std=frame["error"])
    np.testing.assert_allclose(table["prediction"], model.predict(), rtol=1e-6)
    assert "known values have errors, so they are predicted, too" in " ".join(text.split())
    code, text, table = predict(folder, "--target", "rate", "--value-weight", "people", "--ignore", "error")
    assert code == 0, text
    weighted = GraphRegressor().fit(graph, frame[["x"]], frame["rate"], weight=frame["people"])
    np.testing.assert_allclose(table["prediction"], weighted.predict(), rtol=1e-6)


def test_observations_keep_what_was_counted() -> None:
    ring = Graph.from_edges(np.arange(N), (np.arange(N) + 1) % N)
    y = np.random.default_rng(0).poisson(5.0, N).astype(float)
    y[::4] = np.nan
    model = ObservedRegressor("poisson").fit(ring, None, y)
    mean, std = model.predict(return_std=True)
    known = ~np.isnan(y)
    np.testing.assert_array_equal(mean[known], y[known])
    assert (std[known] == 0).all()
    assert (std[~known] > 1).all()
    folds = np.arange(known.sum()) % 3
    np.testing.assert_allclose(
        model.out_of_fold(ring, None, y, folds), model.regressor_.out_of_fold(ring, None, y, folds)
    )


@pytest.mark.slow
def test_the_probability_of_a_high_rate(folder: Path) -> None:
    options = ("--target", "cases", "--likelihood", "poisson", "--exposure", "people", "--above", "0.08")
    code, text, table = predict(folder, *options, "--report", str(folder / "page.html"))
    assert code == 0, text
    frame = pd.read_csv(folder / "nodes.csv")
    graph = Graph.from_edges(np.arange(N), (np.arange(N) + 1) % N)
    model = GraphRegressor(likelihood="poisson").fit(graph, frame[["x"]], frame["cases"], exposure=frame["people"])
    probability = np.asarray(model.probability(above=0.08))
    np.testing.assert_allclose(table["probability_above"], probability, atol=1e-6)
    line = (
        f"{(probability > 0.95).sum()} nodes of {N} exceed 0.08 with a probability above 95 %, and "
        f"{(probability < 0.05).sum()} with one below 5 %."
    )
    assert line in " ".join(text.split())
    assert line in (folder / "page.html").read_text(encoding="utf-8")


def test_the_probability_of_a_high_number(folder: Path) -> None:
    code, text, table = predict(folder, "--target", "cases", "--above", "20", "--method", "field")
    assert code == 0, text
    frame = pd.read_csv(folder / "nodes.csv")
    known = frame["cases"].notna()
    np.testing.assert_array_equal(table["probability_above"][known], frame["cases"][known] > 20)
    assert table["probability_above"][~known].between(0.0, 1.0, inclusive="neither").any()
    code, text, _ = predict(folder, "--target", "cases", "--above", "20", "--method", "lp")
    assert code == 2
    assert "--method lp does not offer the probability of exceeding a value; use --method field" in " ".join(
        text.split()
    )
    code, text, _ = predict(folder, "--target", "cases", "--above", "nan")
    assert "--above must be a finite number, got nan" in " ".join(text.split())
