"""Writing tables: whole or not at all, and never surprised at the end."""

import tempfile
from pathlib import Path

import pandas as pd
import pytest

from graphmrf.datasets import check_writable, write, written_tables
from graphmrf.errors import InvalidInputError

FRAME = pd.DataFrame({"id": ["00123", "x,y"], "prediction": [0.1, 1 / 3], "observed": [True, False]})


@pytest.mark.parametrize("name", ["p.csv", "p.tsv", "p.csv.gz", "p.tsv.gz", "P.CSV"])
def test_text_comes_back_with_every_digit(name: str, tmp_path: Path) -> None:
    path = write(FRAME, tmp_path / name)
    separator = "\t" if ".tsv" in name else ","
    pd.testing.assert_frame_equal(pd.read_csv(path, sep=separator, dtype={"id": "str"}), FRAME)


@pytest.mark.parametrize("name", ["p.parquet", "p.pq"])
def test_parquet_comes_back(name: str, tmp_path: Path) -> None:
    pd.testing.assert_frame_equal(pd.read_parquet(write(FRAME, tmp_path / name)), FRAME)


@pytest.mark.parametrize("name", ["p.csv", "p.csv.gz", "p.parquet"])
def test_the_same_table_gives_the_same_bytes(name: str, tmp_path: Path) -> None:
    (tmp_path / "again").mkdir()
    assert write(FRAME, tmp_path / name).read_bytes() == write(FRAME, tmp_path / "again" / name).read_bytes()


def test_a_failure_keeps_the_old_file_and_leaves_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "p.csv"
    path.write_text("old")

    def fail_half_way(_frame: pd.DataFrame, temporary: Path, *_: object) -> None:
        temporary.write_text("half a ta")
        raise OSError("disk full")

    monkeypatch.setattr(written_tables, "_save", fail_half_way)
    with pytest.raises(OSError, match="disk full"):
        write(FRAME, path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_places_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(InvalidInputError, match="is a directory"):
        check_writable(tmp_path / "folder.csv")
    with pytest.raises(InvalidInputError, match="no folder"):
        check_writable(tmp_path / "missing" / "p.csv")
    with pytest.raises(InvalidInputError, match=r"suffix.*\.parquet"):
        check_writable(tmp_path / "p.doc")
    assert [path.name for path in tmp_path.iterdir()] == ["folder.csv"]


def test_a_folder_that_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    with pytest.raises(InvalidInputError, match="Permission denied"):
        check_writable(tmp_path / "p.csv")
