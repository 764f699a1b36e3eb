"""Interruptions: commands killed, short of disk or memory at random moments, and bits flipped in what they keep.

A command runs in a process forked from one that is warm, in a folder that has its outputs from before; at a random
moment, of the clock or of the file operations, it is killed, terminated or interrupted, or it has little disk or memory
from the start. Every output must then be as it was, or as the undisturbed command writes it; and after the next run
there must be nothing else in the folder. A flipped bit in a model, a cache or a journal must be found or do no harm.

``python -m tools.torture --count 500 --seed 0`` prints what happened, as a table and as JSON lines.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import resource
import shlex
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from benchmarks.show import show

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.show import Row

FAULTS = ("SIGKILL", "SIGTERM", "SIGINT", "full disk", "little memory")
EVENTS = frozenset({"open", "os.rename", "os.remove", "os.mkdir", "os.truncate", "shutil.rmtree"})
"""What Python tells of before it is done to files."""
SPARE = (1e5, 1e8)
"""Bytes of address space that are left to a command short of memory: from too few for anything to enough for most."""

COMMANDS = {
    "predict, CSV and page": "predict nodes.csv edges.csv -t rent --method lp -o out.csv --report out.html",
    "predict, Parquet": "predict nodes.csv edges.csv -t rent --method lp -o out.parquet",
    "predict, gzipped": "predict nodes.csv edges.csv -t rent --method lp -o out.csv.gz",
    "predict, Excel": "predict nodes.csv edges.csv -t rent --method lp -o out.xlsx",
    "predict, GeoJSON": "predict nodes.csv edges.csv -t rent --method lp -o out.geojson",
    "fit": "fit nodes.csv edges.csv -o new.json",
    "sample, CSV": "sample model.json edges.csv -n 200 -o out.csv",
    "sample, Parquet": "sample model.json edges.csv -n 200 -o out.parquet",
    "report": "report results.parquet -o out.html",
    "datasets example": "datasets example city --force",
    "datasets export": "datasets export tiny out --force --data-dir raw --cache-dir cache",
    "reproduce": "reproduce data-statistics --quick --no-figures --jobs 1 -o results",
}
"""Every command that writes, in each of the forms that it writes."""
SELDOM = "reproduce"
"""The command that takes seconds where others take tenths."""
TIMED = ("results/index.html", "results/reproduction.md")
"""Outputs that hold a time, so that a second run gives other bytes: their ends are compared."""
GROWING = ("results/results.jsonl",)
"""Outputs that are written line by line, so that the next run may find half a line, and must go on from there."""


def main() -> None:
    """Print what happened to so many commands and so many flipped bits."""
    parser = argparse.ArgumentParser(prog="python -m tools.torture", description=__doc__)
    parser.add_argument("--count", type=int, default=500, help="faults over all commands")
    parser.add_argument("--flips", type=int, default=1000, help="bits to flip")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no other fault after so long")
    parser.add_argument("--quick", action="store_true", help=f"without {SELDOM}, which starts processes of its own")
    options = parser.parse_args()
    bits = flips(options.flips, options.seed)
    faults = interruptions(options.count, options.seed, quick=options.quick, seconds=options.seconds)
    rows = [{**row, "seed": options.seed} for row in (*faults, *bits)]
    show("torture", __doc__, rows)
    sys.exit(any(row["broken"] or row["left over"] for row in rows))


def interruptions(count: int, seed: int, *, quick: bool = False, seconds: float = np.inf) -> list[Row]:
    """Return a row for every command: faults, how they ended, broken files, leftovers after the next run."""
    rng, begin = np.random.default_rng(seed), time.monotonic()
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        start = Path("start")
        _prepare(start)
        names = [name for name in COMMANDS if not quick or name != SELDOM]
        victims: dict[str, Victim] = {}
        often = np.array([0.2 if name == SELDOM else 1.0 for name in names])
        tallies: dict[str, Counter[str]] = defaultdict(Counter)
        for _ in range(count):
            name = names[int(rng.choice(len(names), p=often / often.sum()))]
            fault = FAULTS[int(rng.integers(len(FAULTS)))]
            if name not in victims:
                victims[name] = Victim(name, COMMANDS[name], start)
            tallies[name].update(victims[name].suffer(fault, rng))
            if time.monotonic() - begin > seconds:
                break
        return [_row(name, tally) for name, tally in tallies.items()]


def _row(name: str, tally: Counter[str]) -> Row:
    kept = ("broken", "left over", "a bug of ours")
    ends = {key: n for key, n in sorted(tally.items()) if key.startswith("ended")}
    return {
        "command": name,
        "faults": sum(tally[fault] for fault in FAULTS),
        **{fault: tally[fault] for fault in FAULTS},
        **{key: tally[key] for key in kept},
        "ended": ", ".join(f"{key.removeprefix('ended ')}: {n}" for key, n in ends.items()),
    }


class Victim:
    """A command, a folder with its outputs from before, and what it writes when it is left alone."""

    def __init__(self, name: str, words: str, start: Path) -> None:
        self.words = words
        self.home = Path(f"home of {name}")
        shutil.copytree(start, self.home)
        begin = time.monotonic()
        ended, said = self._run()
        assert ended == "exit 0", (words, said)
        self.seconds = time.monotonic() - begin
        self.new = _content(self.home)
        self.events = int((self.home.parent / "events").read_text())
        made = [path for path in self.new if path not in _content(start)]
        self.largest = max(len(self.new[path]) for path in made)
        self.old = {path: b"old\n" for path in made if not path.startswith(("cache", "results/"))}

    def suffer(self, fault: str, rng: np.random.Generator) -> Counter[str]:
        """Return what came of one fault."""
        self._set_back()
        before = _content(self.home)
        limits = {}
        if fault == "full disk":
            limits = {resource.RLIMIT_FSIZE: int(rng.integers(0, self.largest))}
        elif fault == "little memory":
            limits = {resource.RLIMIT_AS: _address_space() + int(np.exp(rng.uniform(*np.log(SPARE))))}
        sent = getattr(signal, fault, None)
        by_clock = bool(rng.integers(2))
        at_event = None if sent is None or by_clock else (int(rng.integers(1, self.events + 1)), sent)
        delay = float(rng.uniform(0, 1.2 * self.seconds)) if sent is not None and by_clock else None
        ended, said = self._run(limits, at_event, None if delay is None or sent is None else (delay, sent))
        found = Counter({fault: 1, f"ended {ended}": 1})
        found["broken"] = sum(not self._is_whole(path, before) for path in {*self.new, *before})
        found["a bug of ours"] = int("internal error" in said or ("Traceback" in said and sent is None))
        again, said = self._run()
        now = _content(self.home)
        found["broken"] += again != "exit 0"
        found["broken"] += sum(path not in now or not self._is_new(path, now[path]) for path in self.new)
        found["left over"] = len(set(now) - set(self.new))
        return found

    def _set_back(self) -> None:
        for path in self.new:
            if path in self.old:
                (self.home / path).write_bytes(self.old[path])
        shutil.rmtree(self.home / "cache", ignore_errors=True)
        shutil.rmtree(self.home / "results", ignore_errors=True)

    def _is_whole(self, path: str, before: dict[str, bytes]) -> bool:
        file = self.home / path
        if not file.exists():
            return path not in before
        content = file.read_bytes()
        return content == before.get(path) or self._is_new(path, content)

    def _is_new(self, path: str, content: bytes) -> bool:
        if path.endswith(".xlsx"):
            return _cells(content) == _cells(self.new[path])
        if path in TIMED:
            return content[-20:] == self.new[path][-20:]
        return path in GROWING or content == self.new.get(path)

    def _run(
        self,
        limits: dict[int, int] | None = None,
        at_event: tuple[int, int] | None = None,
        at_time: tuple[float, int] | None = None,
    ) -> tuple[str, str]:
        """Run the command in a forked process and return how it ended, and what it said."""
        hears, says = os.pipe()
        child = os.fork()
        if not child:
            _be_the_command(self.words, self.home, limits or {}, at_event, says)
        os.close(says)
        if at_time is not None:
            time.sleep(at_time[0])
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, at_time[1])
        with os.fdopen(hears, errors="replace") as stream:
            said = stream.read()
        _, status = os.waitpid(child, 0)
        code = os.waitstatus_to_exitcode(status)
        return signal.Signals(-code).name if code < 0 else f"exit {code}", said


def _be_the_command(
    words: str, home: Path, limits: dict[int, int], at_event: tuple[int, int] | None, says: int
) -> None:
    """Run a command line in this process, which ends with it."""
    code = 1
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.dup2(says, 1)
        os.dup2(says, 2)
        events = _watch(at_event)
        with contextlib.chdir(home):
            for limit, value in limits.items():
                resource.setrlimit(limit, (value, resource.RLIM_INFINITY))
            code = _called(words)
        if not limits and at_event is None:
            Path("events").write_text(str(len(events)))
    except KeyboardInterrupt:
        code = 130
    except BaseException:  # what a command without a memory of its own has left to say
        code = 1
    finally:
        os._exit(code)


def _called(words: str) -> int:
    from graphmrf.cli import app

    try:
        app(shlex.split(words), prog_name="graphmrf")
    except SystemExit as error:
        return int(error.code or 0)
    return 0


def _watch(at_event: tuple[int, int] | None) -> list[str]:
    """Return a list that is added to with every operation on files; send a signal at the one of this number."""
    seen: list[str] = []

    def hook(event: str, _: object) -> None:
        if event in EVENTS:
            seen.append(event)
            if at_event is not None and len(seen) == at_event[0]:
                os.kill(os.getpid(), at_event[1])

    sys.addaudithook(hook)
    return seen


def _cells(workbook: bytes) -> str:
    try:
        return pd.read_excel(io.BytesIO(workbook)).to_csv()
    except Exception as error:  # whatever a workbook cut short makes its reader raise
        return repr(error)


def _address_space() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def _content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def _prepare(folder: Path) -> None:
    """Write inputs of all commands into a folder, and load what they need into this process."""
    import small_paper
    from catalogue import MODEL, sealed
    from file_variants import NODES, PLAIN
    from graphmrf_paper import catalogue
    from mirror import tiny, write_raw

    catalogue.RECIPES["tiny"] = tiny()
    small_paper.write_all(Path("papers"))
    for name in ("GRAPHMRF_DATA", "GRAPHMRF_CACHE", "GRAPHMRF_MIRROR"):
        os.environ.pop(name, None)
    os.environ |= {"GRAPHMRF_CACHE": str(Path("papers").resolve()), "GRAPHMRF_MIRROR": "http://127.0.0.1:9/"}
    folder.mkdir()
    write_raw(folder / "raw")
    rng = np.random.default_rng(0)
    NODES.assign(lon=rng.random(len(NODES)), lat=rng.random(len(NODES))).to_csv(folder / "nodes.csv", index=False)
    PLAIN.to_csv(folder / "edges.csv", index=False)
    (folder / "model.json").write_text(sealed(MODEL))
    with contextlib.chdir(folder):
        _warm("predict nodes.csv edges.csv -t rent --method lp -o results.parquet --report page.html")
        _warm("predict nodes.csv edges.csv -t rent --method lp -o warm.xlsx")
        _warm("fit nodes.csv edges.csv -o warm.json")
        _warm("reproduce --list")
        for name in ("page.html", "warm.json", "warm.xlsx"):
            Path(name).unlink()


def _warm(words: str) -> None:
    with contextlib.redirect_stdout(None), Path(os.devnull).open("w") as nowhere, contextlib.redirect_stderr(nowhere):
        assert _called(f"{words}") == 0, words


def flips(count: int, seed: int) -> list[Row]:
    """Return a row for every kind of file that is kept: bits flipped, found, harmless, and silently wrong."""
    rng = np.random.default_rng(seed)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for name, made in KEPT.items():
            read = made()
            files = sorted(path for path in Path(name).rglob("*") if path.is_file())
            tally = Counter(_flipped(read, files, rng) for _ in range(-(-count // len(KEPT))))
            wrong = tally["silently wrong"]
            rows.append({"command": f"read {name}", "faults": tally.total(), **tally, "broken": wrong, "left over": 0})
    return rows


def _flipped(read: Callable[[], str], files: list[Path], rng: np.random.Generator) -> str:
    """Return what a reader makes of a file with one bit flipped: `found`, `harmless` or `silently wrong`."""
    from graphmrf.errors import GraphMRFError

    before = {file: file.read_bytes() for file in files}
    file = files[int(rng.integers(len(files)))]
    content = bytearray(before[file])
    content[int(rng.integers(len(content)))] ^= 1 << int(rng.integers(8))
    expected = read()
    file.write_bytes(bytes(content))
    try:
        return "harmless" if read() == expected else "silently wrong"
    except GraphMRFError:
        return "found"
    finally:
        for kept, whole in before.items():
            kept.write_bytes(whole)


def _model() -> Callable[[], str]:
    import graphmrf as gm
    from graphmrf_paper.synthetic import watts_strogatz

    graph = watts_strogatz(40, 4, 0.1)
    drawn = gm.GaussianMRF(np.eye(3) + 0.3, np.ones(3)).sample(graph, 1, random_state=0)[0]
    Path("a model").mkdir()
    gm.GaussianMRF.fit(graph, drawn).save("a model/model.json")

    def read() -> str:
        mrf = gm.GaussianMRF.load("a model/model.json")
        return repr((mrf.H.tolist(), mrf.h.tolist(), mrf.mean.tolist(), mrf.names, mrf.diagnostics))

    return read


def _cache() -> Callable[[], str]:
    import small_paper
    from graphmrf_paper import catalogue

    cache, made = Path("a cache"), catalogue.recipe("us-2016")
    tables = {
        "nodes": small_paper.county_tables()["us-2016"],
        "edges": pd.DataFrame({"u": range(99), "v": range(1, 100)}),
    }

    def read() -> str:
        copy, _ = catalogue.cached_tables(made, catalogue.published_checksums(made), cache, lambda: tables)
        return "".join(copy[name].to_json(double_precision=15) for name in sorted(copy))

    read()
    return read


def _journal() -> Callable[[], str]:
    from graphmrf_paper.runner import Record, open_journal

    path = Path("a journal/results.jsonl")
    path.parent.mkdir()
    with open_journal(path) as journal:
        for k in range(10):
            journal.append(Record(f"accuracy seed={k}", {"r2": k / 7, "alpha": 0.5}, 0.1))

    written = dict(journal.results)

    def read() -> str:
        with open_journal(path) as journal:  # a line that is dropped is run again
            return "whole" if journal.results.items() <= written.items() else repr(journal.results)

    return read


def _page() -> Callable[[], str]:
    from graphmrf.datasets import read_page, write
    from graphmrf.report import unpack_content
    from graphmrf.report.page import pack_content

    Path("a page").mkdir()
    content = {"format": 1, "title": "rents", "rows": [[k, k / 7] for k in range(300)]}
    write(pd.DataFrame({"id": range(30)}), "a page/results.parquet", page=pack_content(content))
    return lambda: repr(unpack_content(read_page("a page/results.parquet")))


KEPT: dict[str, Callable[[], Callable[[], str]]] = {
    "a model": _model,
    "a cache": _cache,
    "a journal": _journal,
    "a page": _page,
}
"""What is kept for later, by the name of its folder: a function that writes it and returns what reads it."""


if __name__ == "__main__":
    main()
