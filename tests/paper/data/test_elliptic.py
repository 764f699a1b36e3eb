"""Elliptic: small files of the published shape, where to get the real ones, and files that cannot be right."""

import hashlib
import io
import os
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from graphmrf.datasets import load, paper
from graphmrf.errors import InvalidInputError
from graphmrf_paper import catalogue
from graphmrf_paper.elliptic import CLASS_COUNTS
from mirror import serve

pytestmark = pytest.mark.slow

RAW = Path(os.environ.get("GRAPHMRF_DATA", "")) / "elliptic"
IDS = (230425980, 5530458, 232022460, 232438397)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Four transactions, 167 columns without a header, and one payment listed in both directions."""
    made = tmp_path / "elliptic_bitcoin_dataset"
    made.mkdir()
    values = np.random.default_rng(0).standard_normal((4, 165))
    numbers = [",".join(map(repr, row)) for row in values.tolist()]
    rows = [f"{name},{step},{row}\n" for name, step, row in zip(IDS, (1, 1, 2, 2), numbers, strict=True)]
    (made / "elliptic_txs_features.csv").write_text("".join(rows))
    (made / "elliptic_txs_classes.csv").write_text(
        f"txId,class\n{IDS[3]},1\n{IDS[0]},unknown\n{IDS[1]},2\n{IDS[2]},unknown\n"
    )
    (made / "elliptic_txs_edgelist.csv").write_text(
        f"txId1,txId2\n{IDS[0]},{IDS[1]}\n{IDS[3]},{IDS[2]}\n{IDS[2]},{IDS[3]}\n"
    )
    return made


def test_the_published_files(folder: Path, cache: Path) -> None:
    data = load("elliptic", data_dir=folder, cache_dir=cache)
    assert data.edges.to_numpy().tolist() == [[0, 1], [2, 3]]
    assert data.frame["tx_id"].tolist() == list(IDS)
    assert data.frame["time_step"].tolist() == [1, 1, 2, 2]
    np.testing.assert_array_equal(data.frame["illicit"], [np.nan, 0, np.nan, 1])
    values = np.random.default_rng(0).standard_normal((4, 165))
    np.testing.assert_array_equal(data.frame.loc[:, "local_1":"aggregated_72"], values)
    assert data.notes == ("4 nodes and 2 edges, not the 203769 and 234355 on record",)


def test_the_facts_on_record() -> None:
    known = catalogue.info("elliptic")
    assert (known.n_nodes, known.n_edges, len(known.columns)) == (203_769, 234_355, 166 + 1)
    assert "transactions: 4,545 illicit, 42,019 licit, 157,205 unknown" in known.remarks


@pytest.mark.skipif(not (RAW / "elliptic_txs_features.csv").exists(), reason="needs the Elliptic files")
def test_the_published_files_have_the_facts_on_record(cache: Path) -> None:
    data = load("elliptic", data_dir=RAW, cache_dir=cache)
    assert not data.notes
    counts = data.frame["illicit"].map({1.0: "illicit", 0.0: "licit"}).fillna("unknown").value_counts()
    assert counts.to_dict() == CLASS_COUNTS
    assert sorted(data.frame["time_step"].unique()) == list(range(1, 50))


def test_the_outer_folder_will_do(folder: Path, cache: Path) -> None:
    assert load("elliptic", data_dir=folder.parent, cache_dir=cache).graph.n_edges == 2


def test_the_preset_leaves_the_classes_alone(folder: Path, cache: Path) -> None:
    values = paper(load("elliptic", data_dir=folder, cache_dir=cache))
    assert values.shape == (4, 167)
    np.testing.assert_array_equal(values["illicit"], [np.nan, 0, np.nan, 1])
    np.testing.assert_allclose(values.drop(columns="illicit").std(), 1)


def test_without_a_folder_the_licence_is_shown_and_must_be_accepted(cache: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"CC BY-NC-ND 4.0.*--accept-licence.*elliptic_txs_features"):
        load("elliptic", cache_dir=cache)


def test_what_is_downloaded_is_what_a_folder_gives(folder: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = {}
    for file in folder.iterdir():
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            archive.write(file, file.name)
        content[f"{file.name}.zip"] = packed.getvalue()
    recipe = catalogue.recipe("elliptic")
    sums = {path: hashlib.sha256(content[f"{path}.zip"]).hexdigest() for path in recipe.files}
    monkeypatch.setitem(catalogue.RECIPES, "elliptic", replace(recipe, archives=sums))
    with serve(content) as mirror:
        data = load("elliptic", cache_dir=cache, mirror=mirror.url, accept_licence=True)
    pd.testing.assert_frame_equal(data.frame, load("elliptic", data_dir=folder, cache_dir=cache).frame)
    assert load("elliptic", cache_dir=cache).graph.n_edges == 2  # accepted once


def test_a_folder_without_a_file_lists_it(folder: Path, cache: Path) -> None:
    (folder / "elliptic_txs_classes.csv").unlink()
    with pytest.raises(InvalidInputError, match=r"lacks 1 of the 3 raw files of elliptic: elliptic_txs_classes.csv"):
        load("elliptic", data_dir=folder, cache_dir=cache)


def _without_a_column(text: str) -> str:
    return "\n".join(line.rsplit(",", 1)[0] for line in text.splitlines())


@pytest.mark.parametrize(
    ("part", "change", "message"),
    [
        ("features", _without_a_column, "must have 167 columns and no header, got 166"),
        ("features", lambda text: text.replace("\n", "\n5", 1), "has no row for transaction 55530458"),
        ("features", lambda text: text + text, "listed twice"),
        ("classes", lambda text: text.replace(",unknown", ",3"), "class '3' is none of 1, 2, unknown"),
        ("classes", lambda text: text.replace("class", "kind"), "cannot clean .*KeyError: 'class'"),
        ("edgelist", lambda text: text + "7,8\n", "names a transaction that elliptic_txs_features.csv lacks"),
    ],
)
def test_files_that_cannot_be_right(
    part: str, change: Callable[[str], str], message: str, folder: Path, cache: Path
) -> None:
    file = folder / f"elliptic_txs_{part}.csv"
    file.write_text(change(file.read_text()))
    with pytest.raises(InvalidInputError, match=message):
        load("elliptic", data_dir=folder, cache_dir=cache)
    assert not cache.exists()
