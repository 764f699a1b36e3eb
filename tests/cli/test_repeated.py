"""Long tables in `graphmrf predict`: several observations of a node."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import mean_poisson_deviance
from typer.testing import CliRunner

from graphmrf import Graph
from graphmrf.cli import app
from graphmrf.estimators.graph_regressor import GraphRegressor
from graphmrf.estimators.rows import LongTable

N = 40


@pytest.fixture
def frame() -> pd.DataFrame:
    rng, node = np.random.default_rng(0), np.repeat(np.arange(N), 1 + np.arange(N) % 3)
    level, people = np.sin(node / 6.0), rng.uniform(50.0, 500.0, node.size).round()
    table = pd.DataFrame({"id": [f"n{k}" for k in node], "altitude": np.cos(node * 1.7).round(3), "people": people})
    table["ph"] = (level + 0.3 * rng.standard_normal(node.size)).round(3)
    table["error"] = rng.uniform(0.2, 0.5, node.size).round(3)
    table["cases"] = rng.poisson(0.05 * people * np.exp(level)).astype(float)
    table.loc[node % 5 == 0, ["ph", "cases", "error"]] = np.nan
    return table


def predict(folder: Path, frame: pd.DataFrame, *options: str) -> tuple[int, str, pd.DataFrame]:
    frame.to_csv(folder / "nodes.csv", index=False)
    ids = frame.iloc[:, 0].unique()
    pd.DataFrame({"source": ids, "target": np.roll(ids, -1)}).to_csv(folder / "edges.csv", index=False)
    paths, output = [str(folder / name) for name in ("nodes.csv", "edges.csv")], folder / "out.csv"
    result = CliRunner().invoke(app, ["predict", *paths, "-o", str(output), *options])
    return result.exit_code, " ".join(result.output.split()), pd.read_csv(output) if output.exists() else frame


def model(frame: pd.DataFrame, target: str, likelihood: str = "auto", **known: Any) -> GraphRegressor:
    ids = pd.Index(frame["id"].unique())
    graph = Graph.from_edges(np.arange(N), np.roll(np.arange(N), -1), n_nodes=N).with_ids(ids)
    X = frame.drop_duplicates("id").set_index("id")[["altitude"]]
    return GraphRegressor(likelihood=likelihood).fit(graph, X, frame[target], nodes=frame["id"], **known)


def test_rows_of_a_node_are_its_observations(frame: pd.DataFrame, tmp_path: Path) -> None:
    options = ("--target", "ph", "--repeated", *(f"--ignore={name}" for name in ("people", "error", "cases")))
    code, text, table = predict(tmp_path, frame, *options, "--report", str(tmp_path / "page.html"))
    assert code == 0, text
    assert table["id"].tolist() == frame["id"].unique().tolist()
    mean, std = model(frame, "ph").predict(return_std=True)
    np.testing.assert_allclose(table["prediction"], mean, rtol=1e-6)
    np.testing.assert_allclose(table["std"], std, rtol=1e-6)
    rows = frame["ph"].notna().sum()
    line = f"{rows} observations of {N - N // 5} nodes"
    assert line in text
    assert line in (tmp_path / "page.html").read_text(encoding="utf-8")
    assert f"ph: {N} of {N} nodes predicted from {N - N // 5} known values" in text


@pytest.mark.slow
def test_rows_have_their_own_errors(frame: pd.DataFrame, tmp_path: Path) -> None:
    options = ("--target", "ph", "--repeated", "--std", "error", "--ignore", "people", "--ignore", "cases")
    known = frame[frame["ph"].notna()].reset_index(drop=True)  # then no cell is empty, and all nodes are estimated
    code, text, table = predict(tmp_path, frame, *options)
    assert code == 0, text
    np.testing.assert_allclose(table["prediction"], model(frame, "ph", std=frame["error"]).predict(), rtol=1e-6)
    code, text, table = predict(tmp_path, known, *options, "--report", str(tmp_path / "page.html"))
    assert code == 0, text
    assert len(table) == known["id"].nunique()
    assert table["std"].gt(0).all()


def test_rows_have_their_own_exposure(frame: pd.DataFrame, tmp_path: Path) -> None:
    options = ("--target", "cases", "--repeated", "--exposure", "people", "--ignore", "ph", "--ignore", "error")
    code, text, table = predict(tmp_path, frame, *options, "--likelihood", "poisson")
    assert code == 0, text
    fitted = model(frame, "cases", "poisson", exposure=frame["people"])
    np.testing.assert_allclose(table["prediction"], fitted.predict(of="observation"), rtol=1e-6)
    seen = frame["cases"].notna()
    of_node = frame[seen].groupby("id", sort=False)[["cases", "people"]].mean()
    held_out = table.set_index("id")["left_out"].dropna()
    cases, people = of_node["cases"], of_node["people"]
    share = 1 - mean_poisson_deviance(cases, held_out[cases.index]) / mean_poisson_deviance(
        cases, people * cases.sum() / people.sum()
    )
    assert f"cross-validated explained deviance {share:.3f}".rstrip("0") in text
    code, text, _ = predict(tmp_path, frame, *options)
    assert code == 2
    assert "add --likelihood negative-binomial --exposure people" in text


def test_single_rows_are_as_without_the_option(frame: pd.DataFrame, tmp_path: Path) -> None:
    once, options = frame.drop_duplicates("id"), ("--target", "ph", "--method", "field")
    _, text, plain = predict(tmp_path, once, *options)
    code, text, repeated = predict(tmp_path, once, *options, "--repeated")
    assert code == 0, text
    pd.testing.assert_frame_equal(plain, repeated)


def test_the_first_column_has_the_ids_where_no_name_says_so(frame: pd.DataFrame, tmp_path: Path) -> None:
    options = ("--target", "ph", "--repeated", *(f"--ignore={name}" for name in ("people", "error", "cases")))
    code, text, table = predict(tmp_path, frame.rename(columns={"id": "lake"}), *options)
    assert code == 0, text
    assert "the first column, 'lake', is used as the node id" in text
    assert table["lake"].tolist() == frame["id"].unique().tolist()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            [],
            "is not unique (26 such ids); keep one row per node, choose another column with --id, or predict with --re",
        ),
        (["--repeated"], "row 4, column people: '68.0' of node 'n1', which has '"),
        (["--repeated"], "a feature must be the same in all rows of a node: give its mean, or leave it out with --ign"),
        (["--repeated", "--group", "people"], "column people: '"),
        (["--repeated", "--method", "lp"], "--repeated is for --method field, got lp"),
        (["--repeated", "--time", "people"], "--repeated and --time exclude each other"),
        (["--repeated", "--classify"], "--repeated is for numbers, got classes in 'ph'"),
        (
            ["--repeated", "--std", "altitude", "--ignore", "people"],
            "row 3, column altitude: standard errors of observed rows must be positive",
        ),
        (
            ["--repeated", "--transform", "log", "--ignore", "people"],
            "--transform is for numbers, not counts or shares",
        ),
    ],
)
def test_what_long_tables_cannot_have(frame: pd.DataFrame, tmp_path: Path, options: list[str], message: str) -> None:
    positive = frame.assign(ph=frame["ph"] + 5.0)
    code, text, _ = predict(tmp_path, positive, "--target", "ph", "--ignore=cases", "--ignore=error", *options)
    assert code == 2
    assert message in text


def test_a_word_among_observations_is_named_by_its_row(frame: pd.DataFrame, tmp_path: Path) -> None:
    frame["ph"] = frame["ph"].astype(object)
    frame.loc[3, "ph"] = "acid"
    code, text, _ = predict(tmp_path, frame, "--target", "ph", "--repeated")
    assert code == 2
    assert "nodes.csv, row 5, column ph: 'acid' is not a finite number" in text


def test_means_of_measurements_are_weighted_by_precision() -> None:
    nodes, y, std = np.array([1, 0, 1, 1]), np.array([4.0, 2.0, 7.0, np.nan]), np.array([0.5, 0.1, 1.0, 0.2])
    mean, known = LongTable(nodes, y, {"std": std}).means(3)
    np.testing.assert_allclose(mean, [2.0, (4.0 * 4.0 + 7.0) / 5.0, np.nan])
    np.testing.assert_allclose(known["std"][:2], [0.1, 5.0**-0.5])
