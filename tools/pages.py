"""Pages of the documentation as programs: blocks of Python run, and console commands print what the page shows.

A page is one program in one folder. ``python`` blocks run in their order, and the ``text`` block after one is what it
prints; in ``console`` blocks a line that starts with ``$`` is a command, the lines after it what it prints. Dots in
what is shown stand for anything, as in doctests. ``sh`` blocks, such as installations, are shown only.
"""

import contextlib
import doctest
import io
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from graphmrf.cli import app

ROOT = Path(__file__).parent.parent
RUN = ("python", "console")
_BLOCK = re.compile(r"^( *)```(\w+)[^\n]*\n(.*?)^\1```$", re.DOTALL | re.MULTILINE)
_LOOSE = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def pages() -> list[Path]:
    """Return all pages with something to run."""
    found = sorted((ROOT / "docs").rglob("*.md"))
    return [path for path in found if any(language in RUN for language, _ in blocks(path.read_text("utf-8")))]


def blocks(text: str) -> Iterator[tuple[str, str]]:
    """Yield language and content of every fenced block."""
    for found in _BLOCK.finditer(text):
        indent, language, content = found.groups()
        yield language, "".join(line.removeprefix(indent) for line in content.splitlines(keepends=True))


def run_page(path: Path) -> int:
    """Run a page in the current folder; return how many blocks ran."""
    names: dict[str, Any] = {"__name__": "__main__"}
    found, count = list(blocks(path.read_text("utf-8"))), 0
    for k, (language, content) in enumerate(found):
        if language not in RUN:
            continue
        count += 1
        following = found[k + 1] if k + 1 < len(found) else ("", "")
        if language == "console":
            _run_console(content, path)
        elif ">>> " in content:
            _run_doctest(content, names, path)
        else:
            _run_script(content, names, path, following[1] if following[0] == "text" else None)
    return count


def _run_script(code: str, names: dict[str, Any], path: Path, shown: str | None) -> None:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, str(path), "exec"), names)
    if shown is not None:
        _compare(shown, printed.getvalue(), code, path)


def _run_doctest(code: str, names: dict[str, Any], path: Path) -> None:
    test = doctest.DocTestParser().get_doctest(code, names, path.name, str(path), 0)
    failed = io.StringIO()
    runner = doctest.DocTestRunner(optionflags=_LOOSE)
    runner.run(test, out=failed.write, clear_globs=False)
    names |= test.globs
    assert not runner.failures, failed.getvalue()


def _run_console(content: str, path: Path) -> None:
    for part in re.split(r"^\$ ", content, flags=re.MULTILINE)[1:]:
        command, _, shown = part.replace("\\\n", " ").partition("\n")
        program, *arguments = shlex.split(command)
        assert program == "graphmrf", f"{path}: only graphmrf runs in console blocks, got {command}"
        result = CliRunner().invoke(app, arguments, env={"COLUMNS": "80", "TERM": "dumb"})
        if shown.strip():
            _compare(shown, result.output, command, path)
        else:
            assert result.exit_code == 0, result.output


def _compare(shown: str, printed: str, code: str, path: Path) -> None:
    alike = doctest.OutputChecker().check_output(shown, printed, _LOOSE)
    assert alike, f"{path}: after\n{code}\nthe page shows\n{shown}\nbut it prints\n{printed}"
