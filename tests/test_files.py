"""Files: written whole or not at all, nothing left behind, and nothing that is no file."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from graphmrf.errors import InvalidInputError
from graphmrf.files import as_url, atomic, check_apart, check_place, check_readable, remove_leftovers

KILLED = """
import os, signal, sys
from graphmrf.files import atomic
with atomic(sys.argv[1]) as draft:
    draft.write_text("half a ta")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_the_next_run_removes_what_a_killed_one_left(tmp_path: Path) -> None:
    target = tmp_path / "table.csv"
    target.write_text("old")
    done = subprocess.run([sys.executable, "-c", KILLED, str(target)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert len(names(tmp_path)) == 2
    assert target.read_text() == "old"
    with atomic(target) as draft:
        draft.write_text("new")
    assert names(tmp_path) == ["table.csv"]
    assert target.read_text() == "new"


def test_drafts_of_running_processes_stay_and_those_of_other_machines_for_a_day(tmp_path: Path) -> None:
    with atomic(tmp_path / "a") as draft:
        draft.write_text("in the making")
        elsewhere = tmp_path / f".graphmrf-00000000-1-{'0' * 32}.tmp"
        other = tmp_path / ".graphmrf-notes.tmp"
        for path in (elsewhere, other):
            path.touch()
        with atomic(tmp_path / "a") as second:
            assert second != draft
            second.touch()
        assert draft.exists()
        assert elsewhere.exists()
        os.utime(elsewhere, (0, time.time() - 2 * 86_400))
        remove_leftovers(tmp_path)
    assert names(tmp_path) == [other.name, "a"]


def test_a_name_as_long_as_can_be_is_written_and_a_longer_one_refused_at_once(tmp_path: Path) -> None:
    longest = check_place(tmp_path / ("x" * 251 + ".csv"))
    with atomic(longest) as draft:
        draft.write_text("1")
    assert longest.read_text() == "1"
    for check in (check_place, check_readable):
        with pytest.raises(InvalidInputError, match="file name too long") as caught:
            check(tmp_path / ("x" * 5000 + ".csv"))
        assert len(str(caught.value)) < 300


def special(folder: Path, kind: str) -> Path:
    path = folder / "odd.csv"
    if kind == "a named pipe":
        os.mkfifo(path)
    elif kind == "a device":
        path.symlink_to("/dev/zero")
    elif kind == "a directory":
        path.mkdir()
    else:
        path.symlink_to(path)
    return path


@pytest.mark.parametrize("kind", ["a named pipe", "a device", "a directory", "too many levels of symbolic links"])
@pytest.mark.parametrize("check", [check_place, check_readable])
def test_what_is_no_file_is_neither_read_nor_replaced(kind: str, check: object, tmp_path: Path) -> None:
    path = special(tmp_path, kind)
    assert callable(check)
    with pytest.raises(InvalidInputError, match=kind):
        check(path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may do everything")
def test_permissions_are_told(tmp_path: Path) -> None:
    path = tmp_path / "kept.csv"
    path.touch(mode=0o000)
    with pytest.raises(InvalidInputError, match="cannot be read: permission denied; check its permissions"):
        check_readable(path)
    with pytest.raises(InvalidInputError, match="is write-protected"):
        check_place(path)


def test_folders_that_are_read_are_not_written_to_and_those_with_inputs_neither(tmp_path: Path) -> None:
    folder = tmp_path / "edges"
    folder.mkdir()
    (tmp_path / "link").symlink_to(folder)
    for output, source in ((folder, folder / "part-0.parquet"), (tmp_path / "link" / "new.parquet", folder)):
        with pytest.raises(InvalidInputError, match="is an input, too"):
            check_apart([output], [source])
    check_apart([tmp_path / "new.parquet"], [folder])


def test_outputs_that_are_not_there_yet_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    check_apart([tmp_path / "a.csv", tmp_path / "a.html", None], [tmp_path / "b.csv"])
    with pytest.raises(InvalidInputError, match="is named twice"):
        check_apart([tmp_path / "a.csv", tmp_path / "link" / "a.csv"], [])


def test_urls_are_told_from_paths() -> None:
    assert as_url(Path("s3://bucket/edges")) == "s3://bucket/edges"
    assert (as_url(Path("file:///data")), as_url(Path("C:/data"))) == ("file:///data", None)
