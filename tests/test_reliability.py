"""A small part of what `make torture` and `make fuzz` do: nothing half-written, nothing but answers and refusals."""

import subprocess
import sys
from pathlib import Path

import pytest

from tools import reliability
from tools.fuzz import Target, kept, outcomes, tables
from tools.torture import flips

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent
FUZZED = tables() | kept()


@pytest.mark.parametrize("target", FUZZED.values(), ids=FUZZED.keys())
def test_fuzzed_files_are_read_or_refused(target: Target) -> None:
    found = list(outcomes(target, [(1, 0, k) for k in range(40)]))
    assert {*found} <= {"read", "refused"}


def test_no_flipped_bit_is_silently_wrong() -> None:
    assert not any(row["broken"] for row in flips(80, seed=1))


@pytest.mark.skipif(sys.platform != "linux", reason="limits of disk and memory are those of Linux")
def test_commands_that_are_interrupted_break_nothing() -> None:
    words = [sys.executable, "-m", "tools.torture", "--count", "5", "--flips", "0", "--seed", "1", "--quick"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_page_has_the_numbers_of_the_runs() -> None:
    page = reliability.PAGE.read_text(encoding="utf-8")
    assert reliability.written(page, reliability.kept_rows()) == page
