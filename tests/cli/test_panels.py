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
        (["--time", "year", "-t", "year"], "contains the times"),
    ],
)
def test_options_of_time_that_cannot_be_are_refused(folder: Path, options: list[str], message: str) -> None:
    files = [str(folder / name) for name in ("panel.csv", "edges.csv")]
    result = CliRunner().invoke(app, ["predict", *files, *options])
    assert result.exit_code == 2
    assert message in " ".join(result.output.split())


@pytest.mark.parametrize(("likelihood", "option"), [("poisson", "--exposure"), ("binomial", "--trials")])
def test_rows_that_a_file_lacks_have_the_last_exposure_of_their_node(
    tmp_path: Path, likelihood: str, option: str
) -> None:
    rng, n, years = np.random.default_rng(0), 20, range(2018, 2022)
    long = pd.DataFrame([(f"n{i}", year) for i in range(n) for year in years], columns=["id", "year"])
    long["people"] = rng.integers(100, 900, len(long))
    long["cases"] = rng.binomial(long["people"], 0.1 + 0.05 * np.sin(np.arange(len(long)) / 12))
    pd.DataFrame({"u": [f"n{i}" for i in range(n - 1)], "v": [f"n{i}" for i in range(1, n)]}).to_csv(
        tmp_path / "edges.csv", index=False
    )
    options = ["--time", "year", "-t", "cases", "--likelihood", likelihood, option, "people"]
    files = [str(tmp_path / name) for name in ("panel.csv", "edges.csv")]

    def predictions(table: pd.DataFrame, *more: str) -> tuple[str, pd.Series]:
        table.to_csv(tmp_path / "panel.csv", index=False)
        result = CliRunner().invoke(app, ["predict", *files, *options, *more, "-o", str(tmp_path / "out.csv")])
        assert result.exit_code == 0, result.output
        return " ".join(result.output.split()), pd.read_csv(tmp_path / "out.csv").set_index(["id", "year"])[
            "prediction"
        ]

    text, found = predictions(long.drop(index=5), "--horizon", "1")
    assert "people is carried forward from earlier times in 21 rows that the file lacks" in text
    latest = long.loc[long["year"] == 2021].assign(year=2022, cases=np.nan)
    gap = long.loc[[5]].assign(people=long["people"][4], cases=np.nan)
    _, written = predictions(pd.concat([long.drop(index=5), gap, latest]))
    pd.testing.assert_series_equal(found.sort_index(), written.sort_index())

    long.astype({"people": object}).assign(people=lambda t: t["people"].where(t.index != 7)).to_csv(
        files[0], index=False
    )
    result = CliRunner().invoke(app, ["predict", *files, *options, "--horizon", "1"])
    assert result.exit_code == 2
    assert "panel.csv, row 9, column people: every node needs a number" in " ".join(result.output.split())
