"""The paper's synthetic samples: the published form and the compact one say the same."""

import json
from pathlib import Path

import numpy as np
import pytest

from graphmrf.datasets import load, samples
from graphmrf.errors import InvalidInputError

NAMES = {"WattsStrogatzOriginal": "synthetic-paper", "WattsStrogatz": "synthetic-paper-watts-strogatz"}


def test_the_published_form(tmp_path: Path) -> None:
    """Three nodes on a path, two samples, two attributes; parameters as h, the diagonal of H, the rest of H."""
    file = tmp_path / "shift.json"
    W = [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
    A = [[[1, 2], [3, 4], [5, 6]], [[7, 8], [9, 10], [11, 12]]]
    filled = [[[*row, 0, 0, 0] for row in sample] for sample in A]
    off = list(range(10))
    file.write_text(json.dumps({"Y": filled, "A": W, "ξ0": [1, 2, 3, 4, 5, 10, 20, 30, 40, 50, *off]}))
    tables = samples.clean({"x": file}, path="x")
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


@pytest.mark.parametrize("graph", NAMES)
@pytest.mark.parametrize("level", samples.LEVELS)
def test_equal_to_the_reference(graph: str, level: int, tmp_path: Path, cache: Path, clean_data: Path) -> None:
    reference = np.load(clean_data / "synthetic" / f"{graph}_h{level}.npz")
    compact = load(f"{NAMES[graph]}-h{level}", data_dir=clean_data, cache_dir=cache)
    file = tmp_path / "synthetic" / graph / f"shift_{samples.LEVELS[level]}.json"
    file.parent.mkdir(parents=True)
    H, W = reference["H"], np.zeros((1000, 1000), dtype=int)
    W[tuple(reference["edges"].T)] = W[tuple(reference["edges"].T[::-1])] = 1
    xi = [*reference["h"], *np.diag(H), *H[np.triu_indices(5, 1)]]
    file.write_text(json.dumps({"Y": reference["attributes"].tolist(), "A": W.tolist(), "ξ0": xi}))
    published = load(f"{NAMES[graph]}-h{level}", data_dir=tmp_path, cache_dir=cache)
    for data in (compact, published):
        np.testing.assert_array_equal(data.edges, reference["edges"])
        np.testing.assert_array_equal(data.frame.loc[:, "a1":], reference["attributes"][0])
        stacked = data.extra["samples"].loc[:, "a1":].to_numpy().reshape(10, 1000, 5)
        np.testing.assert_array_equal(stacked, reference["attributes"])
        np.testing.assert_array_equal(data.extra["parameters"]["h"], reference["h"])
        np.testing.assert_array_equal(data.extra["parameters"].loc[:, "H1":], H)


def test_it_is_not_downloaded(cache: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"no checksum.*WattsStrogatzOriginal/shift_\+1.0.json"):
        load("synthetic-paper-h10", cache_dir=cache)
