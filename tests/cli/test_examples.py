"""The examples run, and say what they say they do."""

import runpy
from pathlib import Path

import pandas as pd
import pytest

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_the_quickstart_prints_what_its_last_lines_show(capsys: pytest.CaptureFixture[str]) -> None:
    script = EXAMPLES / "quickstart.py"
    runpy.run_path(str(script))
    printed = capsys.readouterr().out.splitlines()
    shown = script.read_text(encoding="utf-8").splitlines()[-len(printed) :]
    assert [f"# {line}".rstrip() for line in printed] == shown


def test_the_demo_tells_the_truth(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLES / "demo.py"))["main"](tmp_path / "demo")
    assert sorted(path.name for path in (tmp_path / "demo").iterdir()) == ["predictions.csv", "report.html"]
    made = pd.read_csv(tmp_path / "demo" / "predictions.csv")
    assert made.columns[1:].tolist() == ["prediction", "std", "lower", "upper", "observed", "left_out", "residual"]
    assert len(made) == 1000
    said = capsys.readouterr().out
    r2 = float(said.split("hidden: R² ")[1].split(";")[0])
    coverage = float(said.split("; ")[-2].split(" %")[0])
    assert r2 > 0.6
    assert 86 < coverage < 94
