from pathlib import Path

import numpy as np
import pytest

from graphmrf_paper.classification import classify_nodes, random_parts, split_nodes
from graphmrf_paper.runs import Run

pytestmark = pytest.mark.slow


@pytest.fixture
def elliptic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Files of the shape of the Elliptic data: 49 steps of 16 payments each, whose first number tells the class."""
    monkeypatch.setenv("GRAPHMRF_CACHE", str(tmp_path / "cache"))
    rng, steps = np.random.default_rng(0), np.repeat(np.arange(1, 50), 16)
    n = steps.size
    illicit = rng.random(n) < 0.4
    values = rng.normal(size=(n, 165))
    values[:, 0] += 3 * illicit
    lines = [",".join([str(k), str(steps[k]), *(f"{v:.4f}" for v in values[k])]) for k in range(n)]
    (tmp_path / "elliptic_txs_features.csv").write_text("\n".join(lines) + "\n")
    classes = [f"{k},{'unknown' if k % 16 == 15 else 1 if illicit[k] else 2}" for k in range(n)]
    (tmp_path / "elliptic_txs_classes.csv").write_text("\n".join(["txId,class", *classes]) + "\n")
    flows = [f"{k},{k + 1}" for k in range(n - 1) if steps[k] == steps[k + 1]]
    (tmp_path / "elliptic_txs_edgelist.csv").write_text("\n".join(["txId1,txId2", *flows]) + "\n")
    return str(tmp_path)


def f1_of(data_dir: str | None, method: str, setting: str, data: str = "elliptic") -> dict[str, float]:
    options: dict[str, str | int | float] = {"data": data, "setting": setting, "method": method, "seed": 1}
    return {column: score["value"] for column, score in Run.of(classify_nodes, options).perform(data_dir).items()}


@pytest.mark.parametrize("setting", ["transductive", "inductive"])
def test_a_class_that_a_feature_tells_is_found(elliptic: str, setting: str) -> None:
    found = f1_of(elliptic, "LR", setting)
    assert found["LR"] > found["always 1"]
    assert found["LR"] > 0.7


@pytest.mark.parametrize("method", ["LP", "LGC", "LGC/RP"])
def test_every_method_classifies(elliptic: str, method: str) -> None:
    assert 0 <= f1_of(elliptic, method, "transductive")[method] <= 1


@pytest.mark.parametrize("method", ["SGC", "GCN"])
def test_networks_come_with_residual_propagation(elliptic: str, method: str) -> None:
    pytest.importorskip("torch_geometric")
    assert list(f1_of(elliptic, method, "transductive")) == [method, f"{method}/RP", "always 1"]


def test_a_likelihood_for_classes_classifies(elliptic: str) -> None:
    found = f1_of(elliptic, "LGC/RP logit", "transductive")
    assert found["LGC/RP logit"] > found["always 1"]


def test_inductive_means_later_time_steps(elliptic: str) -> None:
    problem = split_nodes(elliptic, "elliptic", "inductive", 0)
    steps = np.repeat(np.arange(1, 50), 16)
    assert steps[problem.train].max() == 31
    assert (steps[problem.validation].min(), steps[problem.validation].max()) == (32, 36)
    assert steps[problem.test].min() == 37
    assert not (problem.train | problem.validation | problem.test)[np.arange(15, steps.size, 16)].any()


def test_parts_are_random_and_share_no_node() -> None:
    parts = random_parts(np.ones(490, dtype=bool), (31, 5, 13), seed=1)
    assert [int(part.sum()) for part in parts] == [310, 50, 130]
    assert np.all(np.sum(parts, axis=0) == 1)
