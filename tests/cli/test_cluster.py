"""``graphmrf cluster check`` and ``graphmrf predict --cluster``."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from graphmrf.cli import app
from graphmrf.datasets import example

fsspec: Any = pytest.importorskip("fsspec")
# Warnings ignored are those of Dask and Tornado, of connections that were cut.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
run = CliRunner().invoke


def test_a_cluster_is_described() -> None:
    result = run(app, ["cluster", "check", "local:1", "--json"])
    assert result.exit_code == 0, result.output
    summary = json.loads(result.stdout)
    assert [each["address"].split(":")[1] for each in summary["workers"]] == ["//127.0.0.1"]
    assert summary["fits"]["columns"] > 0
    assert summary["versions"]["numpy"] == np.__version__


def test_predictions_of_a_cluster_are_those_of_one_machine(tmp_path: Path) -> None:
    files = example()
    for place, options in {
        "here": [],
        "there": ["--cluster", "local:1", "--checkpoint", str(tmp_path / "kept")],
    }.items():
        command = ["predict", files.nodes, files.edges, "--target", "rent", "--method", "lgc", "--quiet", *options]
        (tmp_path / place).mkdir()
        result = run(app, [*map(str, command), "-o", str(tmp_path / place)])
        assert result.exit_code == 0, result.output
    expected, found = (pd.read_parquet(tmp_path / place) for place in ("here", "there"))
    np.testing.assert_allclose(found["prediction"], expected["prediction"], rtol=1e-12)
    assert list((tmp_path / "kept").glob("*.npz"))


def test_edges_of_a_folder_are_read_by_the_workers_that_share_rows(tmp_path: Path) -> None:
    rng, places = np.random.default_rng(0), {name: tmp_path / name for name in ("nodes", "edges", "here", "there")}
    for folder in places.values():
        folder.mkdir()
    ids, (u, v) = [f"n{k}" for k in rng.permutation(60)], rng.integers(0, 60, (2, 200))
    frame = pd.DataFrame({"id": ids, "rooms": rng.normal(size=60), "rent": rng.normal(size=60)})
    frame.loc[::3, "rent"] = np.nan
    frame.to_parquet(places["nodes"] / "0.parquet")
    edges = pd.DataFrame({"from": [ids[k] for k in u], "to": [ids[k] for k in v], "weight": rng.random(200)})
    edges[:90].to_parquet(places["edges"] / "0.parquet")
    edges[90:].to_parquet(places["edges"] / "1.parquet")
    command = ["predict", str(places["nodes"]), str(places["edges"]), "--target", "rent"]
    on_rows = ["--cluster", "local:1", "--partition", "rows"]
    for place, options in {"here": [], "there": on_rows}.items():
        result = run(app, [*command, "--method", "lgc-rp", *options, "-o", str(places[place])])
        assert result.exit_code == 0, result.output
    expected, found = (pd.read_parquet(places[place]) for place in ("here", "there"))
    for column in ("prediction", "std", "lower", "upper"):
        np.testing.assert_allclose(found[column], expected[column], rtol=0, atol=1e-5)
    assert found["id"].tolist() == ids
    urls = ["predict", places["nodes"].as_uri(), f"{places['edges'].as_uri()}/", "--target", "rent"]
    result = run(app, [*urls, "--method", "lgc-rp", *on_rows, "-o", str(tmp_path / "urls.parquet")])
    assert result.exit_code == 0, result.output
    by_urls = pd.read_parquet(tmp_path / "urls.parquet")
    np.testing.assert_allclose(by_urls["std"], found["std"], rtol=0, atol=1e-12)
    for options in (["--method", "field"], ["--method", "lgc", "--report", str(tmp_path / "page.html")]):
        result = run(app, [*command, *options, *on_rows])
        assert (result.exit_code, "needs the edges" in result.stderr) == (2, True), result.output


@pytest.mark.parametrize("address", ["", " ", "nobody.json", "local:many", "tcp://127.0.0.1:port", "what://host:1"])
def test_what_is_no_address_is_refused(address: str) -> None:
    result = run(app, ["cluster", "check", address])
    assert (result.exit_code, result.stdout) == (2, "")
    assert "local:4" in result.stderr or "--scheduler-file" in result.stderr


def test_tables_at_urls_are_read_on_one_machine(tmp_path: Path) -> None:
    memory, files = fsspec.filesystem("memory"), example()
    pd.read_csv(files.nodes).to_parquet(tmp_path / "nodes.parquet")
    memory.put(str(tmp_path / "nodes.parquet"), "/bucket/nodes/0.parquet")
    pd.read_csv(files.edges).to_parquet(tmp_path / "edges.parquet")
    edges = (tmp_path / "edges.parquet").as_uri()
    command = ["--target", "rent", "--method", "lp", "--quiet", "-o"]
    result = run(app, ["predict", "memory://bucket/nodes", edges, *command, str(tmp_path / "urls.csv")])
    assert result.exit_code == 0, result.output
    result = run(app, ["predict", str(files.nodes), str(files.edges), *command, str(tmp_path / "files.csv")])
    assert (tmp_path / "urls.csv").read_text() == (tmp_path / "files.csv").read_text()


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("dropbox://bucket/edges", "pip install it"),
        ("what://bucket/edges", "Protocol not known"),
        ("memory://nobody", "has no .parquet files"),
        ("file:///nobody/edges.parquet", "cannot be read"),
    ],
)
def test_urls_that_cannot_be_read_are_told(url: str, words: str) -> None:
    result = run(app, ["predict", str(example().nodes), url, "--target", "rent", "--method", "lp"])
    assert result.exit_code == 2, result.output
    assert words in result.stderr


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (["--partition", "rows"], 2, "add --cluster"),
        (["--cluster", "local:2", "--partition", "cells"], 2, "'columns' or 'rows'"),
        (["--cluster", "local:many"], 2, "local:4"),
    ],
)
def test_wrong_options_are_refused(options: list[str], code: int, words: str) -> None:
    files = example()
    result = run(app, ["predict", str(files.nodes), str(files.edges), *options])
    assert result.exit_code == code
    assert words in result.stderr
