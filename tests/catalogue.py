"""A catalogue of bad and odd inputs: each gets the right answer, or exit code 2 and one line with the remedy.

Every case is a command on the small town of `file_variants`, some of whose files are replaced. One that is understood
has to give the predictions of the plain files; one that is refused writes nothing. None shows a traceback, a warning or
"internal error".
"""

import contextlib
import io
import json
import os
import shlex
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
from typer.testing import CliRunner, Result

from file_variants import NODES, PLAIN, csv
from graphmrf.cli import app
from graphmrf.datasets.written_tables import PAGE

Content = str | bytes | Callable[[Path], None]
Predictions = Any

LP = "predict nodes.csv edges.csv --target rent --method lp -o out.csv"
LR = "predict nodes.csv edges.csv --target rent --method lgc-rp -o out.csv"
RENT, AGE, IDS = NODES["rent"], NODES["age"], NODES["id"]
LONGEST = 1500
"""Characters of a message that somebody reads."""
ANY = None
"""In place of a factor: predictions that are finite, whatever they are."""


@dataclass(frozen=True)
class Odd:
    """A command line on some files.

    Parameters
    ----------
    name : str
        What is odd about it.
    command : str
        Words after `graphmrf`, in a folder with the files.
    files : mapping
        Files that differ from the plain ones, by name.
    says : str
        Words of the refusal; empty where the answer must be right.
    factor : float, optional
        The unit of the predictions, by that of the plain ones; `ANY` where they are others.
    env : mapping
        Variables of the environment.
    """

    name: str
    command: str = LP
    files: Mapping[str, Content] = field(default_factory=dict)
    says: str = ""
    factor: float | None = 1.0
    env: Mapping[str, str] = field(default_factory=dict)

    def outcome(self) -> tuple[str, str]:
        """Return `right`, `refused` or what is wrong in capitals, and what was said."""
        with TemporaryDirectory() as folder, contextlib.chdir(folder):
            _write({**PLAIN_FILES, **self.files})
            before = _content()
            with warnings.catch_warnings(record=True) as sprayed:
                warnings.simplefilter("always")
                result = CliRunner().invoke(app, shlex.split(self.command), env=dict(self.env))
            said = " ".join(result.stderr.replace("│", " ").split()).replace(f"{folder}/", "")
            made = _content()
            return self._problem(result, made, before, said) or _sprayed(sprayed) or self._verdict(result), said

    def _verdict(self, result: Result) -> str:
        return "right" if result.exit_code == 0 else "refused"

    def _problem(self, result: Result, made: Mapping[str, bytes], before: Mapping[str, bytes], said: str) -> str:
        if "Traceback" in said or "internal error" in said or not isinstance(result.exception, SystemExit | None):
            return "A BUG OF OURS"
        if any(made.get(name) != content for name, content in before.items()):
            return "AN INPUT CHANGED"
        new = {name: content for name, content in made.items() if name not in before}
        return _problem_of_refusal(result, new, said, self.says) if self.says else self._problem_of_answer(result, new)

    def _problem_of_answer(self, result: Result, new: Mapping[str, bytes]) -> str:
        if result.exit_code:
            return "REFUSED"
        if sorted(new) != sorted(self._given("-o", "--report")):
            return f"OTHER FILES: {sorted(new)}"
        if any(not line.startswith("note: ") for line in result.stderr.splitlines()):
            return "NOISE"
        return self._difference(new["out.csv"]) if "out.csv" in new else ""

    def _given(self, *options: str) -> list[str]:
        return [value for option, value in pairwise(shlex.split(self.command)) if option in options]

    def _difference(self, table: bytes) -> str:
        frame = pd.read_csv(io.BytesIO(table))
        if "prediction" not in frame or self.factor is None:
            numbers = frame.get("prediction", frame.select_dtypes("number"))
            return "" if np.isfinite(np.asarray(numbers, dtype=float)).all() else "NOT FINITE"
        found = frame["prediction"].to_numpy()
        (method,) = self._given("--method")
        expected = plain_answer(method) * self.factor
        same = found.shape == expected.shape and np.allclose(found, expected, rtol=1e-7, atol=0)
        return "" if same else f"WRONG: {found[:3]} instead of {expected[:3]}"


def _problem_of_refusal(result: Result, new: Mapping[str, bytes], said: str, says: str) -> str:
    if result.exit_code != 2:
        return f"NOT REFUSED, exit code {result.exit_code}"
    if new or result.stdout:
        return f"WRITTEN: {sorted(new)}"
    usage = said.startswith("Usage: ") or "─ Error ─" in said
    if len(said) > LONGEST:
        return "A LONG MESSAGE"
    if not usage and (result.stderr.count("\n") != 1 or not said.startswith("error: ")):
        return "NOISE"
    return "" if says in said else f"NO WORD OF {says!r}"


def _sprayed(found: list[warnings.WarningMessage]) -> str:
    return f"WARNING: {found[0].message}" if found else ""


def _write(files: Mapping[str, Content]) -> None:
    for name, content in files.items():
        path = Path(name)
        if callable(content):
            content(path)
        else:
            path.write_bytes(content.encode() if isinstance(content, str) else content)


def _content() -> dict[str, bytes]:
    return {
        str(path): path.read_bytes() if path.is_file() and not path.is_symlink() else b"" for path in Path().rglob("*")
    }


@cache
def plain_answer(method: str) -> Predictions:
    """Return the predictions from the plain files."""
    with TemporaryDirectory() as folder, contextlib.chdir(folder):
        _write(PLAIN_FILES)
        CliRunner().invoke(app, shlex.split(LP.replace("lp", method)))
        return pd.read_csv("out.csv")["prediction"].to_numpy()


PLAIN_FILES: dict[str, Content] = {"nodes.csv": csv(NODES), "edges.csv": csv(PLAIN)}


def refused(pairs: Iterable[tuple[str, str]], files: Mapping[str, Content] | None = None) -> Iterable[Odd]:
    """Yield commands that must be refused, with the words of the refusal."""
    return [Odd(command, command, files or {}, says) for command, says in pairs]


def cells(column: str, pairs: Iterable[tuple[str, str]], command: str = LP) -> Iterable[Odd]:
    """Yield tables of nodes with one odd cell where a value is known, with the words of the refusal or none."""
    place = int(np.flatnonzero(RENT.notna())[3])
    for cell, says in pairs:
        odd = NODES[column].astype(object)
        odd[place] = cell
        yield Odd(f"{column} {cell[:30]!r}", command, {"nodes.csv": csv(NODES.assign(**{column: odd}))}, says, ANY)


def nodes(name: str, content: Content, says: str = "", **more: Any) -> Odd:
    """Return a case with another table of nodes."""
    return Odd(name, files={"nodes.csv": content}, says=says, **more)


def edges(name: str, content: Content, says: str = "", **more: Any) -> Odd:
    """Return a case with another table of edges."""
    return Odd(name, files={"edges.csv": content}, says=says, **more)


def parquet(frame: pd.DataFrame, **columns: pa.Array) -> Callable[[Path], None]:
    """Return what writes a table as Parquet, with some of its columns replaced."""

    def write(path: Path) -> None:
        table = pa.Table.from_pandas(frame, preserve_index=False)
        for name, values in columns.items():
            table = table.set_column(table.column_names.index(name), name, values)
        pa.parquet.write_table(table, path)

    return write


def page(content: bytes) -> Callable[[Path], None]:
    """Return what writes results with this as their page."""
    table = pa.Table.from_pandas(NODES, preserve_index=False)
    return lambda path: pa.parquet.write_table(table.replace_schema_metadata({PAGE: content}), path)


def special(kind: str) -> Callable[[Path], None]:
    """Return what puts something there that is no file."""
    made: dict[str, Callable[[Path], None]] = {
        "a pipe": os.mkfifo,
        "a device": lambda path: path.symlink_to("/dev/zero"),
        "a loop of links": lambda path: path.symlink_to(path),
        "a link to nothing": lambda path: path.symlink_to("nowhere"),
        "a folder": Path.mkdir,
    }
    return made[kind]


SPECIAL = {
    "a pipe": "is a named pipe",
    "a device": "is a device",
    "a loop of links": "too many levels of symbolic links",
    "a link to nothing": "no such file",
    "a folder": "is a directory",
}


MODEL: dict[str, Any] = {
    "format": "graphmrf.GaussianMRF",
    "version": 1,
    "names": ["age", "rent"],
    "H": [[1.0, 0.2], [0.2, 1.0]],
    "h": [0.5, 2.0],
    "mean": [40.0, 1000.0],
}
SAMPLE = "sample model.json edges.csv -o out.csv"


def sealed(model: Mapping[str, Any]) -> str:
    """Return a model file with the checksum of its content."""
    checksum = sha256(json.dumps(model, sort_keys=True).encode()).hexdigest()
    return json.dumps({**model, "sha256": checksum})


WITH_MODEL: dict[str, Content] = {"model.json": sealed(MODEL), "other.csv": csv(NODES[["id"]])}
