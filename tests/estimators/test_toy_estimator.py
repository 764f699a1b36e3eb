"""A new estimator is its file and one row: a toy does everything that the others do."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from cases import random_case
from graphmrf import GraphClassifier, LinearRegression, ResidualPropagation, explain
from graphmrf.cli import app
from graphmrf.estimators.methods import METHODS
from graphmrf.estimators.out_of_fold import out_of_fold
from graphmrf.selection import assign_folds
from toy_estimator import TOY

CASE = random_case(3, n=30, p=2, labelled=16)


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(METHODS, TOY.key, TOY)


@pytest.mark.slow
def test_the_command_line_predicts_with_it(tmp_path: Path) -> None:
    upper = np.argwhere(np.triu(CASE.W))
    nodes = pd.DataFrame({"id": np.arange(30), "size": CASE.X[:, 0], "income": CASE.y})
    nodes.to_csv(tmp_path / "nodes.csv", index=False)
    pd.DataFrame(upper, columns=["source", "target"]).to_csv(tmp_path / "edges.csv", index=False)
    files = [str(tmp_path / name) for name in ("nodes.csv", "edges.csv", "predictions.csv", "report.html")]
    options = ["--target", "income", "--method", "toy", "-o", files[2], "--report", files[3]]
    result = CliRunner().invoke(app, ["predict", *files[:2], *options])
    assert result.exit_code == 0, result.output
    assert "by median (toy" in result.output
    found = pd.read_csv(files[2])["prediction"]
    np.testing.assert_allclose(found, np.where(CASE.known, CASE.y, np.nanmedian(CASE.y)), rtol=1e-6)
    assert "Median" in Path(files[3]).read_text(encoding="utf-8")


@pytest.mark.slow
def test_what_it_offers_is_on_the_page_and_in_the_files(tmp_path: Path) -> None:
    upper = np.argwhere(np.triu(CASE.W))
    nodes = pd.DataFrame({"id": np.arange(30), "size": CASE.X[:, 0], "income": CASE.y})
    nodes.assign(ward=["north", "south"] * 15).to_csv(tmp_path / "nodes.csv", index=False)
    pd.DataFrame(upper, columns=["source", "target"]).to_csv(tmp_path / "edges.csv", index=False)
    files = [str(tmp_path / name) for name in ("nodes.csv", "edges.csv", "out.csv", "page.html")]
    options = ["--group", "ward", "--suggest", "2", "-o", files[2], "--report", files[3]]
    result = CliRunner().invoke(app, ["predict", *files[:2], "--target", "income", "--method", "toy", *options])
    assert result.exit_code == 0, result.output
    groups, median = pd.read_csv(tmp_path / "out-by-ward.csv").set_index("ward"), np.nanmedian(CASE.y)
    np.testing.assert_allclose(groups["total"], 15 * median)
    assert "labels that would help most" in result.stdout
    page = Path(files[3]).read_text(encoding="utf-8")
    for words in ("By ward", "Label these next", "How many labels", "Do the intervals contain", "depends on a feature"):
        assert words in page
    refused = CliRunner().invoke(app, ["predict", *files[:2], "--target", "income", "--method", "toy", "--conformal"])
    assert refused.exit_code == 2
    assert "--method toy does not offer conformal intervals; use --method field" in refused.output


def test_its_explanation_has_dependence_and_leave_one_out() -> None:
    X, labels = pd.DataFrame(CASE.X, columns=["size", "age"]), CASE.y[CASE.known]
    found = explain(TOY.make().fit(CASE.graph, X, CASE.y), X)
    assert found.dependence is not None
    assert found.loo is not None
    assert found.dependence["feature"].unique().tolist() == ["size", "age"]
    np.testing.assert_allclose(found.dependence["mean"], np.median(labels))
    others = [np.median(np.delete(labels, k)) for k in range(labels.size)]
    np.testing.assert_allclose(found.loo.set_index("node")["prediction"], others)
    assert explain(LinearRegression().fit(CASE.graph, X, CASE.y), X).loo is None


def test_it_is_refitted_without_each_fold() -> None:
    labels, folds = CASE.y[CASE.known], assign_folds(16, 4)
    expected = [np.median(labels[folds != fold]) for fold in folds]
    fitted = TOY.make(random_state=1).fit(CASE.graph, None, CASE.y)
    np.testing.assert_allclose(out_of_fold(fitted, CASE.graph, None, CASE.y, folds), expected)


def test_its_residuals_are_propagated() -> None:
    mean, std = ResidualPropagation(TOY.make(), alpha=0.5).fit(CASE.graph, CASE.X, CASE.y).predict(return_std=True)
    np.testing.assert_allclose(mean[CASE.known], CASE.y[CASE.known])
    assert (std[~CASE.known] > 0).all()


def test_it_classifies() -> None:
    classes = np.where(CASE.known, CASE.y > np.nanmedian(CASE.y), np.nan)
    assert GraphClassifier(TOY.make()).fit(CASE.graph, None, classes).predict().shape == (30,)
