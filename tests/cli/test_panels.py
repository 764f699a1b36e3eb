"""graphmrf predict --time: gaps, the last time and the times to come of a panel."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from graphmrf.cli import app


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rng, n = np.random.default_rng(0), 25
    level = np.sin(np.arange(n) / 3)[:, None] + 0.2 * rng.normal(size=(n, 6)).cumsum(axis=1)
    long = pd.DataFrame(level, columns=range(2015, 2021)).rename_axis("id").reset_index()
    long = long.melt("id", var_name="year", value_name="rent")
    long.loc[rng.random(len(long)) < 0.2, "rent"] = np.nan
    long.dropna().to_csv(tmp_path / "panel.csv", index=False)
    pd.DataFrame({"u": range(n - 1), "v": range(1, n)}).to_csv(tmp_path / "edges.csv", index=False)
    return tmp_path


def test_a_panel_has_a_row_for_every_node_and_time_and_forecasts_spread(folder: Path) -> None:
    files = [str(folder / name) for name in ("panel.csv", "edges.csv")]
    out = ["-o", str(folder / "out.csv"), "--report", str(folder / "page.html")]
    options = ["--time", "year", "--horizon", "2", "-t", "rent", "--method", "lp"]
    result = CliRunner().invoke(app, ["predict", *files, *options, *out])
    assert result.exit_code == 0, result.output
    assert "a step in time weighs" in " ".join(result.output.split())
    made = pd.read_csv(folder / "out.csv")
    assert list(made.columns[:3]) == ["id", "year", "prediction"]
    pairs = made[["id", "year"]].sort_values("id", kind="stable").to_numpy().tolist()
    assert pairs == [[i, year] for i in range(25) for year in range(2015, 2023)]
    known = pd.read_csv(folder / "panel.csv").set_index(["id", "year"])["rent"]
    kept = made[made["observed"]].set_index(["id", "year"])["prediction"]
    np.testing.assert_allclose(kept.sort_index(), known.sort_index())
    assert made[made["year"] == 2022]["std"].mean() > made[made["year"] == 2021]["std"].mean()
    assert "12, 2022" in (folder / "page.html").read_text()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--horizon", "1"], "add --time"),
        (["--time", "month"], "has no column 'month'"),
        (["--time", "year", "-t", "year"], "holds the times"),
    ],
)
def test_options_of_time_that_cannot_be_are_refused(folder: Path, options: list[str], message: str) -> None:
    files = [str(folder / name) for name in ("panel.csv", "edges.csv")]
    result = CliRunner().invoke(app, ["predict", *files, *options])
    assert result.exit_code == 2
    assert message in " ".join(result.output.split())
