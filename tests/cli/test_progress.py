"""The bar of a long fit: moved on by fits, with the latest stage beside it; lines where there is no terminal."""

import io
import logging
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from rich.console import Console
from rich.progress import Progress

from graphmrf.cli import terminal

LOGGER = logging.getLogger("graphmrf.progress")


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Iterator[io.StringIO]:
    """A terminal that remembers what it was shown."""
    shown = io.StringIO()
    console = Console(file=shown, force_terminal=True, width=120)
    monkeypatch.setattr(terminal, "Console", lambda **_: console)
    yield shown
    assert LOGGER.handlers == []
    assert (LOGGER.level, LOGGER.propagate) == (logging.NOTSET, True)


def test_the_latest_stage_stands_beside_the_bar(screen: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    bars = []

    class Watched(Progress):
        def start(self) -> None:
            bars.append(self)
            super().start()

    monkeypatch.setattr(terminal, "Progress", Watched)
    with terminal.progress([1.0, 1.0], quiet=False) as advance:
        LOGGER.info("solving for %d columns: %d of %d", 321, 96, 321)
        LOGGER.debug("not for everyone")
        bars[0].refresh()
        assert "solving for 321 columns: 96 of 321" in screen.getvalue()
        assert "50%" not in screen.getvalue()
        LOGGER.info("searching [the] scale\nof the graph")
        bars[0].refresh()
        assert "searching [the] scale of the graph" in screen.getvalue()
        advance("lp: R² 0.41 [±]")
        assert "lp: R² 0.41 [±]\n" in screen.getvalue()
        assert bars[0].tasks[0].fields["stage"] == ""
        assert bars[0].tasks[0].completed == 1
    assert "not for everyone" not in screen.getvalue()


def test_a_failure_leaves_the_logger_as_it_was(screen: io.StringIO) -> None:
    with pytest.raises(ValueError, match="lost"), terminal.progress([1.0, 1.0], quiet=False):
        raise ValueError("lost")
    assert "fitting" in screen.getvalue()


def test_the_quiet_stay_quiet(screen: io.StringIO) -> None:
    with terminal.progress([1.0], quiet=True) as advance:
        assert LOGGER.handlers == []
        LOGGER.info("solving")
        advance()
    assert screen.getvalue() == ""


def test_a_short_fit_says_nothing_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with terminal.progress([1.0], quiet=False) as advance:
        LOGGER.info("solving")
        advance()
    assert capsys.readouterr() == ("", "")


def test_lines_tell_how_far_it_is_where_there_is_no_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter([0.0, 5.0, 20.0, 22.0, 22.0, 40.0, 40.0, 55.0, 99.0])
    monkeypatch.setattr(terminal, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    with terminal.progress([1.0, 1.0, 2.0], quiet=False) as advance:
        LOGGER.info("searching")  # 5 s: too early for a line
        LOGGER.info("solving \x1b[2J now")
        advance("lp: R² 0.41 \x1b[2J")  # 22 s: too soon after the last
        advance()
        LOGGER.info("searching")
        LOGGER.info("longer than before")
    assert capsys.readouterr().err.splitlines() == [
        "fitting: solving \\x1b[2J now",
        "lp: R² 0.41 \\x1b[2J",
        "fitting, 2 of 3 steps done in 0:00:40",
        "fitting, 2 of 3 steps done in 0:00:55: searching",
        "fitting, 2 of 3 steps done in 0:01:39: longer than before",
    ]
    assert LOGGER.handlers == []
