import contextlib
import io
import re
from pathlib import Path

import numpy as np
from typer.testing import CliRunner

from graphmrf import datasets
from graphmrf.cli import app

README = Path(__file__).parent.parent / "README.md"


def test_the_example_prints_what_the_readme_shows() -> None:
    [(code, shown)] = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", README.read_text(), re.DOTALL)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, str(README), "exec"), {})
    assert printed.getvalue() == shown


def test_the_command_prints_what_the_readme_shows(tmp_path: Path) -> None:
    [shown] = re.findall(r"command\s+prints:\n\n```text\n(.*?)```", README.read_text(), re.DOTALL)
    files = datasets.example()
    arguments = ["predict", str(files.nodes), str(files.edges), "--target", "rent", "--ignore", "x", "--ignore", "y"]
    printed = CliRunner().invoke(app, [*arguments, "-o", str(tmp_path / "out.csv")], env={"COLUMNS": "80"}).stdout
    number, bar = r"\d+\.?\d*", "[█─]+"
    words = [re.sub(f"{number}|{bar}", "", text).split() for text in (shown, printed.partition("Saved")[0])]
    assert words[0] == words[1]
    values = [[float(found) for found in re.findall(number, text)] for text in (shown, printed.partition("Saved")[0])]
    scores = [np.where(np.array(found) > 1, np.array(found) / 100, found) for found in values]
    np.testing.assert_allclose(scores[0], scores[1], atol=0.03)


def test_every_linked_file_exists() -> None:
    links = re.findall(r"\]\((?!http)([^)#]+)\)", README.read_text())
    assert links
    assert [link for link in links if not (README.parent / link).exists()] == []
