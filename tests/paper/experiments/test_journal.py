import json
from io import RawIOBase
from pathlib import Path

import pytest

from graphmrf.errors import InvalidInputError
from graphmrf_paper.runner import Journal, Record, open_journal

pytestmark = pytest.mark.slow

RECORDS = [Record(f"accuracy seed={k}", {"LP": {"value": k / 7}}, 0.5) for k in range(3)]


def written(path: Path) -> bytes:
    with open_journal(path) as kept:
        for record in RECORDS:
            kept.append(record)
    return path.read_bytes()


def test_results_are_there_again(results: Path) -> None:
    written(results)
    with open_journal(results) as kept:
        assert kept.found == {record.key: record for record in RECORDS}


@pytest.mark.parametrize("length", [1, 5, 30])
def test_a_torn_last_line_is_dropped_and_can_be_written_again(results: Path, length: int) -> None:
    whole = written(results)
    results.write_bytes(whole[:-length])
    with open_journal(results) as kept:
        assert list(kept.found) == [record.key for record in RECORDS[:-1]]
        kept.append(RECORDS[-1])
    assert results.read_bytes() == whole


def test_a_torn_title_is_written_again(results: Path) -> None:
    title = written(results).splitlines(keepends=True)[0]
    results.write_bytes(title[:10])
    with open_journal(results) as kept:
        assert not kept.found
    assert results.read_bytes() == title


def test_a_damaged_line_is_named(results: Path) -> None:
    lines = written(results).splitlines(keepends=True)
    results.write_bytes(b"".join([*lines[:2], b"{oops\n", *lines[2:]]))
    with pytest.raises(InvalidInputError, match="line 3 is damaged; delete that line"), open_journal(results):
        pass


def test_another_format_is_refused_and_kept(results: Path) -> None:
    other = json.dumps({"title": "graphmrf reproduction", "format": 99, "version": "7.0"}) + "\n"
    results.write_text(other)
    with (
        pytest.raises(InvalidInputError, match=r"has format 99 \(graphmrf 7.0\), this version has format 2"),
        open_journal(results),
    ):
        pass
    assert results.read_text() == other


def test_any_other_file_is_refused(results: Path) -> None:
    results.write_text("a,b\n1,2\n")
    with pytest.raises(InvalidInputError, match="is not a results file"), open_journal(results):
        pass


def test_two_commands_do_not_write_to_one_file(results: Path) -> None:
    with (
        open_journal(results),
        pytest.raises(InvalidInputError, match="another command is writing"),
        open_journal(results),
    ):
        pass


class Full:
    """A file on a disk that takes some bytes and then no more."""

    def __init__(self, stream: RawIOBase, room: int) -> None:
        self.stream, self.room = stream, room

    def write(self, content: memoryview) -> int:
        if self.room == 0:
            raise OSError(28, "No space left on device")
        taken = self.stream.write(content[: self.room]) or 0
        self.room -= taken
        return taken

    def fileno(self) -> int:
        return self.stream.fileno()


def test_a_full_disk_loses_only_the_run_that_was_being_written(results: Path) -> None:
    written(results)
    with results.open("ab", buffering=0) as stream:
        full = Journal(Full(stream, 10), {})  # type: ignore[arg-type]  # all that is used of a file
        with pytest.raises(OSError, match="No space left"):
            full.append(Record("accuracy seed=9", {}, 0.5))
    with open_journal(results) as kept:
        assert len(kept.found) == 3


@pytest.mark.parametrize("content", ["years of work", '{"a": 1}', "line\nand half a li", "[" * 100_000])
def test_the_file_of_another_is_refused_and_kept_to_the_last_byte(results: Path, content: str) -> None:
    results.write_text(content)
    with pytest.raises(InvalidInputError, match="is not a results file"), open_journal(results):
        pass
    assert results.read_text() == content


@pytest.mark.parametrize(
    "line",
    [{"key": "a", "result": {}, "seconds": 1.0}, {"key": "a", "result": {}, "seconds": 1.0, "crc32": 1}, ["key"], 7],
)
def test_lines_without_their_checksum_are_named(results: Path, line: object) -> None:
    whole = written(results)
    results.write_bytes(whole + json.dumps(line).encode() + b"\n")
    with pytest.raises(InvalidInputError, match="line 5 is damaged; delete that line"), open_journal(results):
        pass
