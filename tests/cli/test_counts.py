"""Counts and successes in `graphmrf predict`."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from graphmrf import Graph
from graphmrf.cli import app
from graphmrf.estimators.graph_regressor import GraphRegressor
from graphmrf.estimators.observed import ObservedRegressor

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


def test_yes_or_no(folder: Path) -> None:
    paths = [str(folder / name) for name in ("nodes.csv", "edges.csv")]
    options = ["--target", "ill", "--ignore", "cases", "--likelihood", "binomial", "-o", str(folder / "out.csv")]
    result = CliRunner().invoke(app, ["predict", *paths, *options])
    assert result.exit_code == 0, result.output
    assert pd.read_csv(folder / "out.csv")["prediction"].between(0.0, 1.0).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--exposure", "people"], "--exposure is for --likelihood poisson or negative-binomial"),
        (["--likelihood", "gamma"], "--likelihood must be one of"),
        (["--likelihood", "poisson", "--method", "lp"], "is for --method field"),
        (["--likelihood", "binomial", "--trials", "x"], "trials"),
    ],
)
def test_options_that_do_not_fit(folder: Path, options: list[str], message: str) -> None:
    code, text, _ = predict(folder, "--target", "cases", *options)
    assert code == 2
    assert message in " ".join(text.split())


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
