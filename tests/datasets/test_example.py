"""The bundled example: what it promises, and that its script makes it."""

import runpy
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from graphmrf.datasets import example, read

SCRIPT = Path(__file__).parents[2] / "examples" / "make_example.py"


def test_the_hidden_rents_are_those_missing_in_the_nodes() -> None:
    files = example()
    table = read(files.nodes, files.edges)
    hidden = pd.read_csv(files.hidden)
    missing = np.isnan(table.outcome("rent"))
    assert table.frame.loc[missing, "district"].tolist() == hidden["district"].tolist()
    assert missing.mean() == 0.7
    assert hidden["rent"].notna().all()
    assert table.graph.n_components == 1


@pytest.mark.slow
def test_the_script_makes_the_bundled_files(tmp_path: Path) -> None:
    runpy.run_path(str(SCRIPT))["main"](tmp_path)
    files = example()
    for path in (files.nodes, files.edges, files.hidden):
        made, bundled = pd.read_csv(tmp_path / path.name), pd.read_csv(path)
        # Rounding may fall the other way with another LAPACK.
        pd.testing.assert_frame_equal(made, bundled, rtol=0, atol=0.11 if path == files.nodes else 0.011)
