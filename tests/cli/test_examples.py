"""The examples run, and say what they say they do."""

import runpy
from pathlib import Path
from types import SimpleNamespace

import numpy as np
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


def test_the_benchmark_of_classes_finds_communities() -> None:
    torch, rng, codes = pytest.importorskip("torch"), np.random.default_rng(0), np.arange(90) % 3
    same = codes[:, None] == codes
    u, v = np.nonzero(np.triu(rng.random((90, 90)) < np.where(same, 0.2, 0.01), 1))
    words, train = rng.poisson(np.where(np.arange(30) // 10 == codes[:, None], 0.6, 0.2)), np.arange(90) < 18
    data = SimpleNamespace(
        edge_index=torch.tensor(np.stack([np.append(u, v), np.append(v, u)])),
        num_nodes=90,
        **{"x": torch.tensor(words), "y": torch.tensor(codes)},
        **{"train_mask": torch.tensor(train), "test_mask": torch.tensor(~train)},
    )
    script = runpy.run_path(str(EXAMPLES / "planetoid.py"))
    for name in ("label propagation", "graph convolution + residual propagation"):
        assert script["accuracy"](data, script["METHODS"][name], n_components=5) > 0.9


def test_the_benchmark_of_classes_names_the_remedy_without_internet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    datasets = pytest.importorskip("torch_geometric.datasets")

    def fail(*_: object) -> None:
        raise ConnectionError("no route")

    monkeypatch.setattr(datasets, "Planetoid", fail)
    with pytest.raises(SystemExit, match=r"(?s)Cora cannot be downloaded: no route.*ind\.cora\.\*.*raw"):
        runpy.run_path(str(EXAMPLES / "planetoid.py"))["load"]("Cora", tmp_path)
