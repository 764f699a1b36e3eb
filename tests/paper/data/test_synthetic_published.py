"""The paper's synthetic samples: the published form, and every published file by name."""

import json
from pathlib import Path

import numpy as np
import pytest

from graphmrf.datasets import load, names
from graphmrf_paper import catalogue, synthetic
from mirror import serve

pytestmark = pytest.mark.slow


def test_the_published_form(tmp_path: Path) -> None:
    """Three nodes on a path, two samples, two attributes; parameters as h, the diagonal of H, the rest of H."""
    file = tmp_path / "shift.json"
    W = [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
    A = [[[1, 2], [3, 4], [5, 6]], [[7, 8], [9, 10], [11, 12]]]
    filled = [[[*row, 0, 0, 0] for row in sample] for sample in A]
    off = list(range(10))
    file.write_text(json.dumps({"Y": filled, "A": W, "ξ0": [1, 2, 3, 4, 5, 10, 20, 30, 40, 50, *off]}))
    tables = synthetic.clean_samples({"x": file}, path="x")
    assert tables["nodes"]["a2"].tolist() == [2, 4, 6]
    assert tables["edges"].to_numpy().tolist() == [[0, 1], [1, 2]]
    assert tables["samples"].query("sample == 1")["a1"].tolist() == [7, 9, 11]
    assert tables["samples"]["node"].tolist() == [0, 1, 2, 0, 1, 2]
    H = tables["parameters"].loc[:, "H1":].to_numpy()
    assert tables["parameters"]["h"].tolist() == [1, 2, 3, 4, 5]
    assert np.diag(H).tolist() == [10, 20, 30, 40, 50]
    np.testing.assert_array_equal(H, H.T)
    assert H[0].tolist() == [10, 0, 1, 2, 3]
    assert H[1, 2:].tolist() == [4, 5, 6]


@pytest.mark.parametrize("level", synthetic.SHIFTS)
def test_the_published_file_is_the_reference(level: int, cache: Path, raw_data: Path, clean_data: Path) -> None:
    reference = np.load(clean_data / "synthetic" / f"WattsStrogatzOriginal_h{level}.npz")
    data = load(f"synthetic-paper-h{level}", data_dir=raw_data, cache_dir=cache)
    assert data.notes == ()
    assert data.info.counts == "1,000 nodes, 3,000 edges, 5 attributes"
    np.testing.assert_array_equal(data.edges, reference["edges"])
    stacked = data.extra["samples"].loc[:, "a1":].to_numpy().reshape(10, 1000, 5)
    np.testing.assert_array_equal(stacked.astype(np.float32), reference["attributes"])
    np.testing.assert_array_equal(data.frame.loc[:, "a1":], stacked[0])
    np.testing.assert_array_equal(data.extra["parameters"]["h"], reference["h"])
    np.testing.assert_array_equal(data.extra["parameters"].loc[:, "H1":], reference["H"])


def test_it_is_downloaded_by_its_checksum(cache: Path, raw_data: Path) -> None:
    path = "synthetic/WattsStrogatzOriginal/shift_+1.0.json"
    with serve({path: (raw_data / path).read_bytes()}) as running:
        data = load("synthetic-paper-h10", cache_dir=cache, mirror=running.url)
    assert data.graph.n_edges == 3000
    assert data.notes == ()


def test_every_published_graph_has_a_name_at_every_level() -> None:
    named = [name for name in names() if name.startswith("synthetic-paper-")]
    assert len(named) == len({path for name in named for path in catalogue.recipe(name).files}) == 21


def test_a_graph_drawn_at_random_has_the_edges_of_its_file(tmp_path: Path, cache: Path) -> None:
    name = "synthetic-paper-block-model-h1"
    (path,) = catalogue.recipe(name).files
    file = tmp_path / path
    file.parent.mkdir(parents=True)
    W = (np.add.outer(np.arange(1000), np.arange(1000)) == 999).astype(int)
    file.write_text(json.dumps({"Y": np.zeros((1, 1000, 5)).tolist(), "A": W.tolist(), "ξ0": [1.0] * 20}))
    data = load(name, data_dir=tmp_path, cache_dir=cache)
    assert data.graph.n_edges == 500
    assert data.info.counts == "1,000 nodes, 5 attributes"
    assert data.notes == (f"{path} is not byte for byte the published file",)
