"""The bundled example: what it promises, and that its script makes it; the checksums on record."""

import csv
import hashlib
import runpy
from pathlib import Path

import numpy as np
import pandas as pd

from graphmrf import datasets
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


def test_the_script_makes_the_bundled_files(tmp_path: Path) -> None:
    runpy.run_path(str(SCRIPT))["main"](tmp_path)
    files = example()
    for path in (files.nodes, files.edges, files.hidden):
        made, bundled = pd.read_csv(tmp_path / path.name), pd.read_csv(path)
        # Rounding may fall the other way with another LAPACK.
        pd.testing.assert_frame_equal(made, bundled, rtol=0, atol=0.11 if path == files.nodes else 0.011)


def test_the_checksums_on_record_are_those_of_the_published_files(raw_data: Path) -> None:
    with Path(datasets.__file__).with_name("checksums.csv").open() as lines:
        record = list(csv.DictReader(lines))
    assert len(record) == 60
    there = [row for row in record if (raw_data / row["path"]).is_file()]
    for row in there:
        content = (raw_data / row["path"]).read_bytes()
        assert (len(content), hashlib.sha256(content).hexdigest()) == (int(row["bytes"]), row["sha256"])
    assert len(there) > 30
