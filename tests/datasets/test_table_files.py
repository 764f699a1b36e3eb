"""Writing tables: whole or not at all, and never surprised at the end."""

import sys
import tempfile
from pathlib import Path
from typing import IO

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

from graphmrf.datasets import check_writable, write
from graphmrf.datasets.table_files import TableFile, read_table
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

    def fail_half_way(_frame: pd.DataFrame, stream: IO[bytes], **_: object) -> None:
        stream.write(b"half a ta")
        raise OSError("disk full")

    monkeypatch.setattr(pd.DataFrame, "to_csv", fail_half_way)
    with pytest.raises(OSError, match="disk full"):
        write(FRAME, path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_of_parquet_is_one_table(tmp_path: Path) -> None:
    longer = pd.DataFrame({"id": list("abcde"), "rent": [1.0, 2.0, np.nan, 4.0, 5.0]})
    for frame, parts in ((longer, 3), (longer[:3], 2)):  # the second time a part of the first is in the way
        write(frame, check_writable(tmp_path, geographic=True), part_rows=2)
        assert [file.name for file in sorted(tmp_path.iterdir())] == [f"part-{k:05}.parquet" for k in range(parts)]
        found = read_table(tmp_path)
        pd.testing.assert_frame_equal(pd.DataFrame({name: found.values(name) for name in found.columns}), frame)
    (tmp_path / "notes.txt").touch()
    with pytest.raises(InvalidInputError, match=r"other files \(notes.txt\), which are never replaced"):
        check_writable(tmp_path, geographic=True)
    (tmp_path / "notes.txt").unlink()
    (tmp_path / "part-00001.parquet").write_bytes(b"no parquet")
    with pytest.raises(InvalidInputError, match=r"part-00001.parquet cannot be read as .parquet"):
        read_table(tmp_path)


def test_parts_of_somebody_else_are_never_replaced(tmp_path: Path) -> None:
    FRAME.to_parquet(tmp_path / "part-00000.parquet")
    with pytest.raises(InvalidInputError, match=r"other files \(part-00000.parquet\), which are never replaced"):
        write(FRAME, tmp_path)
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "part-00000.parquet"), FRAME)


def test_places_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(InvalidInputError, match="is a directory"):
        check_writable(tmp_path / "folder.csv")
    with pytest.raises(InvalidInputError, match="is a directory"):
        check_writable(tmp_path / "folder.csv", geographic=True)
    with pytest.raises(InvalidInputError, match="does not exist"):
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


def test_a_workbook_without_its_reader_is_no_damaged_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(FRAME, tmp_path / "p.xlsx")
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(InvalidInputError) as told:
        read_table(path)
    assert (
        str(told.value)
        == f"{path}: .xlsx files need openpyxl; install it with pip install 'graphmrf[excel]', or use .csv"
    )


def test_parquet_whose_text_is_not_utf8_is_refused(tmp_path: Path) -> None:
    words = pa.array([b"a", b"\xff\xfe"]).view(pa.string())
    pyarrow.parquet.write_table(pa.table({"id": words, "rent": [1.0, None]}), tmp_path / "nodes.parquet")
    with pytest.raises(InvalidInputError, match="is neither UTF-8"):
        read_table(tmp_path / "nodes.parquet")


def test_a_draft_of_a_workbook_that_lxml_cannot_write_is_an_error_of_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("openpyxl")

    def fails(*_: object, **__: object) -> None:
        raise type("SerialisationError", (Exception,), {})("IO_EFBIG")

    monkeypatch.setattr(pd.DataFrame, "to_excel", fails)
    with pytest.raises(OSError, match="no draft of the workbook could be written: IO_EFBIG"):
        write(FRAME, tmp_path / "out.xlsx")
    assert list(tmp_path.iterdir()) == []


def test_whole_numbers_beyond_double_precision_are_counted() -> None:
    column = pa.chunked_array([["9007199254740992", "9007199254740993"]])
    assert TableFile(Path("a.csv"), {"y": column}).all_rounded == {"y": 1}
