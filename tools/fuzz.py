"""Fuzzed files: mutations of every format that is read, and of models, journals and pages that are kept.

A reader gives an answer or refuses with an error of ours; anything else is a finding, and so is a warning, a process
that dies, and a file that takes more than `SLOW` seconds of CPU time.

``python -m tools.fuzz --count 100000 --models 10000 --seed 0`` prints what happened, as a table and as JSON lines;
``--keep DIR`` keeps the files of the findings.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import gzip
import io
import json
import os
import resource
import shlex
import signal
import sys
import tempfile
import time
import warnings
import zipfile
import zlib
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.show import show

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from benchmarks.show import Row

SLOW = 20
"""CPU seconds for a file of a few kB, so that a process that had to wait is not slow; the slowest seed takes .05."""
PAGES = 40
"""Models for each page, which takes a hundred times as long to make as a model to read."""
BATCH = 250
"""Files for each process that is forked, so that one that dies takes few others with it."""
MEMORY = 8 << 30
"""Address space of such a process: a damaged length asks for more, and must be refused."""
TOKENS = (
    *(b"\0", b'"', b"'", b",", b";", b"\t", b"|", b"\r", b"\n", b"\r\n", b" ", b"\xef\xbb\xbf", b"\xff\xfe", b"\xc3"),
    *(b"nan", b"inf", b"-inf", b"1e999", b"1e-400", b"-0", b"9007199254740993", b"NA", b"true", b"0x1F", b"1,5", b"$"),
    *(b"{", b"}", b"[", b"]", b"null", b"<", b">", b"&", b"%", b"#", b"=", b"\\", b"\xe2\x80\xae", b"\x1b[2J", b"-1"),
)
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2**63, 10**400, 0.5, -0.0, 5e-324, 1e308, float("nan"), float("inf"), "", "rent"),
    *("\0", "x" * 1000, [], {}, [[]], [1.0], [[1.0]], {"a": 1}, ["a", "a"], [None], [True], [[1.0, 2.0], [3.0]]),
)


def main() -> None:
    """Print what became of so many files."""
    parser = argparse.ArgumentParser(prog="python -m tools.fuzz", description=__doc__)
    parser.add_argument("--count", type=int, default=100_000, help="files over all formats")
    parser.add_argument("--models", type=int, default=10_000, help="models, journals and pages")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no other files after so long")
    parser.add_argument("--keep", type=Path, help="folder for the files of the findings")
    options = parser.parse_args()
    end = time.monotonic() + options.seconds
    rows = [
        *fuzz(kept(), options.models, options.seed, options.keep, end),
        *fuzz(pages(), -(-options.models // PAGES), options.seed, options.keep, end),
        *fuzz(tables(), options.count, options.seed, options.keep, end),
    ]
    show("fuzz", __doc__, rows)
    sys.exit(any(row["findings"] for row in rows))


class Target:
    """A format: seeds, how one of them is changed, and what reads the file."""

    def __init__(
        self, suffix: str, seeds: list[bytes], mutate: Callable[..., bytes], read: Callable[[Path], Any]
    ) -> None:
        self.suffix, self.seeds, self.mutate, self.read = suffix, seeds, mutate, read

    def content(self, rng: np.random.Generator) -> bytes:
        """Return a changed seed."""
        seed, other = (self.seeds[int(rng.integers(len(self.seeds)))] for _ in range(2))
        return self.mutate(seed, other, rng)

    def outcome(self, path: Path) -> str:
        """Return `read`, `refused`, or the finding."""
        from graphmrf.errors import InvalidInputError

        with warnings.catch_warnings(record=True) as sprayed:
            warnings.simplefilter("always")
            try:
                self.read(path)
                told = "read"
            except InvalidInputError:
                told = "refused"
            except _TooSlow:
                told = "slow"
            except Exception as error:
                return f"{type(error).__name__}: {error}"[:200]
        return f"warning: {sprayed[0].message}"[:200] if sprayed else told


class _TooSlow(BaseException):
    pass


def fuzz(targets: dict[str, Target], count: int, seed: int, keep: Path | None = None, end: float = np.inf) -> list[Row]:
    """Return a row for every format: files, how many were read and refused, findings and the first of them."""
    share = -(-count // max(len(targets), 1))
    tallies: dict[str, Counter[str]] = {name: Counter() for name in targets}
    took = dict.fromkeys(targets, 0.0)
    for first in range(0, share, BATCH):
        for k, (name, target) in enumerate(targets.items()):
            start = time.monotonic()
            if start < end:
                keys = [(seed, k, i) for i in range(first, min(first + BATCH, share))]
                tallies[name].update(_in_a_process(target, keys, keep))
            took[name] += time.monotonic() - start
    rows = []
    for name, tally in tallies.items():
        findings = {text: n for text, n in tally.items() if text not in ("read", "refused")}
        rows.append(
            {
                "format": name,
                "seed": seed,
                "files": tally.total(),
                "read": tally["read"],
                "refused": tally["refused"],
                "findings": sum(findings.values()),
                "seconds": round(took[name], 1),
                "first": next(iter(findings), ""),
            }
        )
    return rows


def _in_a_process(target: Target, keys: list[tuple[int, int, int]], keep: Path | None) -> Counter[str]:
    """Return the outcomes of some files, each made from its key, read in a process of their own."""
    hears, says = os.pipe()
    child = os.fork()
    if not child:
        code = 1
        with contextlib.suppress(BaseException), os.fdopen(says, "w") as stream:
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, resource.RLIM_INFINITY))
            for text in outcomes(target, keys, keep):
                stream.write(json.dumps(text) + "\n")
                stream.flush()
            code = 0
        os._exit(code)
    os.close(says)
    with os.fdopen(hears) as stream:
        told = [json.loads(line) for line in stream]
    _, status = os.waitpid(child, 0)
    found = Counter(told)
    if status:
        found[f"the process died ({os.waitstatus_to_exitcode(status)}) at {keys[len(told)]}"] += 1
        found += _in_a_process(target, keys[len(told) + 1 :], keep) if keys[len(told) + 1 :] else Counter()
    return found


def outcomes(target: Target, keys: list[tuple[int, int, int]], keep: Path | None = None) -> Iterator[str]:
    """Yield what becomes of the file made from every key."""
    signal.signal(signal.SIGPROF, _ring)
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as folder:
        path = Path(folder, f"fuzzed{target.suffix}")
        for key in keys:
            path.write_bytes(target.content(np.random.default_rng(key)))
            signal.setitimer(signal.ITIMER_PROF, SLOW)
            outcome = target.outcome(path)
            signal.setitimer(signal.ITIMER_PROF, 0)
            if keep is not None and outcome not in ("read", "refused"):
                keep.mkdir(parents=True, exist_ok=True)
                (keep / f"{'-'.join(map(str, key))}{target.suffix}").write_bytes(path.read_bytes())
            yield outcome


def _ring(*_: object) -> None:
    raise _TooSlow


def mutated(seed: bytes, other: bytes, rng: np.random.Generator) -> bytes:
    """Return a text or binary file with a few changes, most often one."""
    content = bytearray(seed)
    for _ in range(int(rng.geometric(0.7))):
        _change(content, other, rng)
    return bytes(content)


_OFTEN = (0.3, 0.1, 0.1, 0.1, 0.05, 0.05, 0.3)
"""How often a bit, bytes, a loss, a repeat, an end, another file and a token: those that leave most to be read more."""


def _change(content: bytearray, other: bytes, rng: np.random.Generator) -> None:
    kind = int(rng.choice(7, p=_OFTEN))
    at = int(rng.integers(len(content) + 1))
    end = min(len(content), at + int(rng.geometric(0.1)))
    if kind == 0 and at < len(content):
        content[at] ^= 1 << int(rng.integers(8))
    elif kind == 1:
        content[at:end] = rng.bytes(end - at)
    elif kind == 2:
        del content[at:end]
    elif kind == 3:
        content[at:at] = content[at:end] * int(rng.integers(1, 20))
    elif kind == 4:
        del content[at:]
    elif kind == 5:
        content[at:] = other[int(rng.integers(len(other) + 1)) :]
    else:
        content[at : at + int(rng.integers(4))] = TOKENS[int(rng.integers(len(TOKENS)))]


def zipped(seed: bytes, other: bytes, rng: np.random.Generator) -> bytes:
    """Return a gzipped file with changes inside it, or now and then in its own bytes."""
    if rng.random() < 0.2:
        return mutated(seed, other, rng)
    return gzip.compress(mutated(gzip.decompress(seed), gzip.decompress(other), rng), 1)


def in_archive(seed: bytes, other: bytes, rng: np.random.Generator) -> bytes:
    """Return an archive with changes in one of its files, or now and then in its own bytes."""
    if rng.random() < 0.2:
        return mutated(seed, other, rng)
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(seed)) as book, zipfile.ZipFile(made, "w") as new:
        changed = rng.choice(book.namelist())
        for name in book.namelist():
            content = book.read(name)
            new.writestr(name, mutated(content, content, rng) if name == changed else content)
    return made.getvalue()


def restructured(seed: bytes, other: bytes, rng: np.random.Generator) -> bytes:
    """Return JSON with another value in some place, or with changed bytes."""
    if rng.random() < 0.3:
        return mutated(seed, other, rng)
    content = json.loads(seed)
    for _ in range(int(rng.integers(1, 3))):
        _replace(content, rng)
    return json.dumps(content).encode()


def _replace(content: Any, rng: np.random.Generator) -> None:
    """Put another value, or none, into a random place of nested lists and objects."""
    value = copy.deepcopy(VALUES[int(rng.integers(len(VALUES)))])  # put in twice, it would hold itself
    while content:
        key = (
            list(content)[int(rng.integers(len(content)))]
            if isinstance(content, dict)
            else int(rng.integers(len(content)))
        )
        inner = content[key]
        if not isinstance(inner, list | dict) or not inner or rng.random() < 0.3:
            if rng.random() < 0.2:
                del content[key]
            else:
                content[key] = value
            return
        content = inner


def tables() -> dict[str, Target]:
    """Return the formats of tables of nodes and of edges, with seeds from the tests."""
    import file_variants as town
    from graphmrf.datasets import read

    def seeds(suffix: str, kind: str) -> list[bytes]:
        files = [item for variant in town.VARIANTS for item in variant.files.items()]
        found = [_bytes(content, suffix) for name, content in files if name == f"{kind}{suffix}"]
        return [each for each in found if suffix != ".xlsx" or each.startswith(b"PK")]

    def as_nodes(path: Path) -> None:
        _used(read(path, town.PLAIN, unknown="drop"))

    def as_edges(path: Path) -> None:
        _used(read(town.NODES, path, weight_is="distance" if path.suffix == ".gwt" else None, unknown="drop"))

    made: dict[str, Target] = {}
    for suffix in (".csv", ".tsv", ".txt", ".csv.gz", ".parquet", ".xlsx"):
        mutate = zipped if suffix == ".csv.gz" else in_archive if suffix == ".xlsx" else mutated
        made[f"nodes{suffix}"] = Target(suffix, seeds(suffix, "nodes"), mutate, as_nodes)
    for suffix in (".csv", ".txt", ".graphml", ".mtx", ".gal", ".gwt"):
        made[f"edges{suffix}"] = Target(suffix, seeds(suffix, "edges"), mutated, as_edges)
    return made


def _bytes(content: Any, suffix: str) -> bytes:
    if not callable(content):
        return content.encode() if isinstance(content, str) else bytes(content)
    with tempfile.TemporaryDirectory() as folder:
        content(Path(folder, f"seed{suffix}"))
        return Path(folder, f"seed{suffix}").read_bytes()


def _used(table: Any) -> None:
    """Look at what was read, as a command would: every column as an outcome, and all of them as features."""
    from graphmrf.datasets import features
    from graphmrf.errors import InvalidInputError

    for name in table.frame.columns[1:4]:
        with contextlib.suppress(InvalidInputError):
            table.outcome(name)
    with contextlib.suppress(InvalidInputError):
        features(table, targets=tuple(table.frame.columns[1:2]), ignore=())


def kept() -> dict[str, Target]:
    """Return models and journals, and what reads them."""
    import graphmrf as gm
    from graphmrf_paper.runner import Record, open_journal
    from graphmrf_paper.synthetic import watts_strogatz

    graph = watts_strogatz(40, 4, 0.1)
    field = gm.GaussianMRF(np.eye(2) + 0.3, np.ones(2))
    folder = Path(tempfile.mkdtemp())
    gm.GaussianMRF.fit(graph, field.sample(graph, 1, random_state=0)[0]).save(folder / "model.json")
    whole = json.loads((folder / "model.json").read_text())
    bare = {key: value for key, value in whole.items() if key != "sha256"}
    with open_journal(folder / "journal") as journal:
        for k in range(3):
            journal.append(Record(f"accuracy seed={k}", {"r2": k / 7}, 0.1))

    def drawn(path: Path) -> None:
        sample = gm.GaussianMRF.load(path).sample(graph, 1, random_state=0)
        if not np.isfinite(sample).all():
            raise ArithmeticError("a draw is not finite")

    def opened(path: Path) -> None:
        with open_journal(path):
            pass

    models = [json.dumps(each).encode() for each in (bare, bare, whole)]
    return {
        "models": Target(".json", models, restructured, drawn),
        "journals": Target(".jsonl", [(folder / "journal").read_bytes()], mutated, opened),
    }


def pages() -> dict[str, Target]:
    """Return the content of pages, and what makes a page of it."""
    from graphmrf.report import unpack_content
    from graphmrf.report.page import render_content

    def shown(path: Path) -> None:
        render_content(unpack_content(zlib.compress(path.read_bytes())))

    return {"pages": Target(".json", [_page()], restructured, shown)}


def _page() -> bytes:
    """Return the content of the page of a small town."""
    from typer.testing import CliRunner

    import file_variants as town
    from graphmrf.cli import app
    from graphmrf.datasets import read_page
    from graphmrf.report import unpack_content

    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        Path("nodes.csv").write_text(town.csv(town.NODES))
        Path("edges.csv").write_text(town.csv(town.PLAIN))
        words = "predict nodes.csv edges.csv -t rent --method lp -o out.parquet"
        CliRunner().invoke(app, shlex.split(words))
        return json.dumps(unpack_content(read_page("out.parquet"))).encode()


if __name__ == "__main__":
    main()
