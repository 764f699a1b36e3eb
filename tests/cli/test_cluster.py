"""``graphmrf cluster check`` and ``graphmrf predict --cluster``."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from graphmrf.cli import app
from graphmrf.datasets import example

pytestmark = pytest.mark.filterwarnings("ignore")  # those of Dask and Tornado, of connections that were cut
run = CliRunner().invoke


def test_a_cluster_is_described() -> None:
    result = run(app, ["cluster", "check", "local:1", "--json"])
    assert result.exit_code == 0, result.output
    summary = json.loads(result.stdout)
    assert [each["address"].split(":")[1] for each in summary["workers"]] == ["//127.0.0.1"]
    assert summary["fits"]["columns"] > 0


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
