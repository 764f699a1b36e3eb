"""Mutation score: small faults put into linalg, model and field, one at a time, each judged by the tests that reach it.

``make mutate COUNT=100 SEED=0`` draws that many places in each package and one of Cosmic Ray's operators at each. The
tests that run the changed line, as coverage recorded them once, decide, quickest first: a failure or a time-out kills
the mutant. Every verdict is kept as one JSON line under ``mutants/``; a run continues where the last one ended.
Survivors that no test could find are named in ``tools/equivalent_mutants.json``, each with the reason.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import difflib
import hashlib
import importlib
import json
import os
import random
import shutil
import signal
import sys
import time
from collections import defaultdict
from dataclasses import asdict, dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator

    Run = Generator[None, None, Any]  # yields while a process runs, and returns what came of it

ROOT = Path(__file__).parents[1]
OUTPUT = ROOT / "mutants"
EQUIVALENT = Path(__file__).with_name("equivalent_mutants.json")

# Tests that may kill a mutant of a package: its own, and those of what shows its results.
OF_DEFINITIONS = "tests/test_records.py"
_OF_FIELDS = ("", "_limits", "_sparse")
_OF_FEATURES = ("few_labels", "inductive", "missing_features", "out_of_fold", "effects")
TESTS = {
    "linalg": (OF_DEFINITIONS, "tests/linalg", "src/graphmrf/linalg", "tests/selection", "tests/model"),
    "model": (*(OF_DEFINITIONS, "tests/model", "src/graphmrf/model", "tests/test_state_machine.py"),),
    "field": (
        *(OF_DEFINITIONS, "tests/field", "src/graphmrf/field"),
        *(f"tests/estimators/test_graph_regressor{name}.py" for name in _OF_FIELDS),
        *(f"tests/estimators/test_{name}.py" for name in _OF_FEATURES),
    ),
}

# Sizes at which one method takes over from another that agrees with it: a step of one is a matter of speed.
LIMITS = ROOT / "src/graphmrf/linalg/limits.py"

# Seconds of tests that one mutant is given at most, as measured with coverage on; a line run on import is reached by
# all tests. Doubled, the few survivors take twice the time, and hardly any more is killed.
MOST_SECONDS = 30.0

# What tests need besides the source.
_BESIDE = ("tests", "benchmarks", "tools", "pyproject.toml", "README.md")

# Loaded once, before the forks: what tests import besides the package itself.
PRELOADED = (
    *("numpy", "scipy.sparse.linalg", "scipy.sparse.csgraph", "scipy.optimize", "scipy.stats", "scipy.special"),
    *("numba", "pandas", "pyarrow", "sklearn.linear_model", "sklearn.model_selection", "torch", "networkx"),
)

# Replaced only by each other: a float shifted, or an array compared by `is`, fails on the first test that runs it.
_KINDS = (
    {"Add", "Sub", "Mul", "Div", "FloorDiv", "Mod", "Pow"},
    {"BitOr", "BitAnd", "BitXor"},
    {"RShift", "LShift"},
    {"Eq", "NotEq"},
    {"Lt", "LtE", "Gt", "GtE"},
    {"Is", "IsNot"},
    {"In", "NotIn"},
    {"Delete", "USub"},
    {"Delete", "Invert"},
    {"Delete", "Not"},
)
_ARE_PLAIN = frozenset({"AddNot", "RemoveDecorator", "ZeroIterationForLoop", "NumberReplacer", "ExceptionReplacer"}) | {
    f"Replace{old}With{new}"
    for pair in (("True", "False"), ("And", "Or"), ("Break", "Continue"))
    for old, new in (pair, pair[::-1])
}

# Keywords and decorators that change speed, memory or the check of our own mistakes, and no result.
_SPEED_KEYWORDS = frozenset({"strict", "check_finite", "overwrite_a", "overwrite_b", "copy", "eq", "repr"})
_SPEED_DECORATORS = frozenset({"cache", "lru_cache", "override", "runtime_checkable", "overload", "final"})


@dataclass(frozen=True)
class Mutant:
    """One fault: the occurrence of an operator of Cosmic Ray in a file, and the line it changes."""

    path: str
    operator: str
    occurrence: int
    line: int

    @property
    def source(self) -> str:
        """Text of the file without the fault."""
        return (ROOT / self.path).read_text(encoding="utf-8")

    def text(self) -> str:
        """Text of the file with the fault."""
        from cosmic_ray.mutating import mutate_code
        from cosmic_ray.plugins import get_operator

        mutated: str = mutate_code(self.source, get_operator(self.operator)(), self.occurrence)
        return mutated

    @property
    def diff(self) -> str:
        """The lines changed, before and after."""
        lines = difflib.ndiff(self.source.splitlines(), self.text().splitlines())
        return "\n".join(line for line in lines if line[0] in "-+")


def main() -> None:
    """Judge the mutants that are not judged yet, and print the score and the survivors."""
    parser = argparse.ArgumentParser(prog="python -m tools.mutate", description=__doc__)
    parser.add_argument("packages", nargs="*", default=list(TESTS), help=f"any of {', '.join(TESTS)}; default all")
    parser.add_argument("--count", type=int, default=100, help="mutants of each package")
    parser.add_argument("--seed", type=int, default=0, help="seed of the sample")
    parser.add_argument("--minutes", type=float, default=1e9, help="stop after this time; run again to continue")
    parser.add_argument("--again", action="store_true", help="judge survivors again, with the tests as they are now")
    parser.add_argument("--jobs", type=int, default=1, help="mutants judged at a time")
    options = parser.parse_args()
    deadline = time.monotonic() + 60 * options.minutes
    for name in PRELOADED:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    for package in options.packages:
        trees = [_planted(OUTPUT / "trees" / f"{package}-{k}", package) for k in range(options.jobs)]
        kept = OUTPUT / f"{package}-{options.seed}.jsonl"
        if options.again:
            _forget_survivors(kept)
        reach = _reach(package, trees)
        mutants = sample(package, options.count, options.seed)
        _judge_all(mutants, kept, reach, trees, deadline)
        show(package, kept, mutants, options.seed)


def show(package: str, kept: Path, mutants: list[Mutant], seed: int) -> None:
    """Print the survivors of a package and its score."""
    wanted = {json.dumps(asdict(mutant)) for mutant in mutants}
    rows = [row for row in _rows(kept) if json.dumps(row["mutant"]) in wanted]
    survivors = [row for row in rows if row["verdict"] == "survived"]
    equivalent = json.loads(EQUIVALENT.read_text(encoding="utf-8"))
    for row in survivors:
        why = equivalent.get(row["diff"], "no test finds it")
        print(f"\n{row['mutant']['path']}:{row['mutant']['line']} ({row['tests']} tests): {why}\n{row['diff']}")
    told = {
        "benchmark": "mutate",
        "package": package,
        "seed": seed,
        "mutants": len(rows),
        "killed": len(rows) - len(survivors),
        "by time-out": sum(row["verdict"] == "timeout" for row in rows),
        "equivalent": sum(row["diff"] in equivalent for row in survivors),
    }
    print(f"\n{json.dumps(told)}\n{package}: {told['killed'] / max(len(rows), 1):.1%} killed", flush=True)


def sample(package: str, count: int, seed: int) -> list[Mutant]:
    """Mutants at places drawn without repetition, one operator at each."""
    places: dict[tuple[str, int, int], list[Mutant]] = defaultdict(list)
    for path in sorted(set((ROOT / "src/graphmrf" / package).rglob("*.py")) - {LIMITS}):
        for (line, column), mutant in _mutants(path):
            places[str(path), line, column].append(mutant)
    rng = random.Random(seed)
    drawn = rng.sample(sorted(places), min(count, len(places)))
    return [rng.choice(places[place]) for place in drawn]


def judge(mutant: Mutant, reach: dict[str, Any], tree: Path) -> Run:
    """Verdict of the tests that run the mutant's line: killed, timeout or survived."""
    tests = _tests_of(mutant, reach)
    start = time.monotonic()
    (tree / mutant.path).write_text(mutant.text(), encoding="utf-8")
    try:
        allowed = 60.0 + 5.0 * sum(reach["seconds"][test] for test in tests)
        verdict = (yield from _forked(lambda: _pytest(tests, tree), allowed, tree)) if tests else "survived"
    finally:
        shutil.copy2(ROOT / mutant.path, tree / mutant.path)
    seconds = round(time.monotonic() - start, 1)
    return {
        "mutant": asdict(mutant),
        "verdict": verdict,
        "tests": len(tests),
        "seconds": seconds,
        "diff": mutant.diff,
    }


# Which mutants there are


def _mutants(path: Path) -> Iterator[tuple[tuple[int, int], Mutant]]:
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.plugins import get_operator

    source = path.read_text(encoding="utf-8")
    lines = source.splitlines()
    nodes = list(ast_nodes(get_ast(source)))
    spans = list(_without_effect(ast.parse(source)))
    for name in _operators():
        operator = get_operator(name)()
        positions = (start for node in nodes for start, _ in operator.mutation_positions(node))
        for occurrence, start in enumerate(positions):
            place = (start[0], start[1] + (name == "core/RemoveDecorator"))  # a decorator starts after its @
            keyword_only = lines[start[0] - 1][start[1] :].startswith("*,")
            if not keyword_only and not any(first <= place < last for first, last in spans):
                yield start, Mutant(str(path.relative_to(ROOT)), name, occurrence, start[0])


@cache
def _operators() -> tuple[str, ...]:
    from cosmic_ray.plugins import operator_names

    names = sorted(operator_names())
    return tuple(name for name in names if _is_plain(name.removeprefix("core/")))


def _is_plain(name: str) -> bool:
    ends = set(name.split("_")[1:])
    return name in _ARE_PLAIN or (len(ends) == 2 and any(ends <= kind for kind in _KINDS))


def _without_effect(tree: ast.Module) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """Spans of source whose change no test could or should notice.

    Annotations, docstrings, protocols and imports for types; texts of errors; limits with a name of their own, whose
    step by one is a matter of speed; keywords of speed.
    """
    for node in ast.walk(tree):
        for found in _parts_without_effect(node):
            yield (found.lineno, found.col_offset), (found.end_lineno, found.end_col_offset)


def _parts_without_effect(node: ast.AST) -> Iterator[Any]:
    if isinstance(node, ast.ClassDef) and any(_name(base) == "Protocol" for base in node.bases):
        yield node
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        yield from (found for found in node.decorator_list if _name(found) in _SPEED_DECORATORS)
    if isinstance(node, ast.FunctionDef):
        arguments = node.args
        every = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg)
        yield from (found.annotation for found in every if found and found.annotation)
        yield from (node.returns,) if node.returns else ()
    elif isinstance(node, ast.AnnAssign):
        yield node.annotation
    elif isinstance(node, ast.Module):
        yield from (line for line in node.body if isinstance(line, ast.Assign) and _is_limit(line))
    elif _is_without_effect(node):
        yield node


def _is_without_effect(node: ast.AST) -> bool:
    if isinstance(node, ast.If):
        return _name(node.test) == "TYPE_CHECKING"
    if isinstance(node, ast.keyword):
        return node.arg in _SPEED_KEYWORDS
    return isinstance(node, ast.Raise | ast.JoinedStr | ast.Assert)


def _is_limit(line: ast.Assign) -> bool:
    return all(isinstance(name, ast.Name) and name.id.lstrip("_").isupper() for name in line.targets)


def _name(node: ast.expr) -> str:
    called = node.func if isinstance(node, ast.Call) else node
    return called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")


# Which tests reach a line


def _reach(package: str, trees: list[Path]) -> dict[str, Any]:
    """Tests by file and line, and the seconds each took: recorded once, and again when code or tests have changed."""
    kept, stamp = OUTPUT / f"{package}-reach.json", _stamp(package)
    if not kept.exists() or json.loads(kept.read_text(encoding="utf-8"))["stamp"] != stamp:
        kept.write_text(json.dumps({"stamp": stamp, **_recorded(package, trees)}), encoding="utf-8")
    found: dict[str, Any] = json.loads(kept.read_text(encoding="utf-8"))
    return found


def _stamp(package: str) -> str:
    """A checksum of a package and of its tests: the names and lines that a record is of."""
    return hashlib.sha256(b"".join((ROOT / name).read_bytes() for name in _test_files(package))).hexdigest()


def _test_files(package: str) -> list[str]:
    """Files with tests of a package, its own doctests among them."""
    found = {path for name in TESTS[package] for path in (ROOT / name, *(ROOT / name).rglob("*.py"))}
    return [str(path.relative_to(ROOT)) for path in sorted(found) if path.is_file()]


def _recorded(package: str, trees: list[Path]) -> dict[str, Any]:
    """What the tests of a package reach, file by file; those that fail without any mutant are left out, and named."""
    parts = {name: OUTPUT / "parts" / f"{package}-{k}.json" for k, name in enumerate(_test_files(package))}
    (OUTPUT / "parts").mkdir(parents=True, exist_ok=True)
    runs = [partial(_forked_record, name, part) for name, part in parts.items()]
    list(_together(runs, trees))
    seconds: dict[str, float] = {}
    lines: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for part in parts.values():
        found = json.loads(part.read_text(encoding="utf-8"))
        seconds |= {test: took for test, took in found["seconds"].items() if test not in found["failed"]}
        for file, line, test in ((f, n, t) for f, by in found["lines"].items() for n, ts in by.items() for t in ts):
            lines[file][line].append(test)
        print("".join(f"fails without any mutant: {test}\n" for test in found["failed"]), end="", flush=True)
    return {"seconds": seconds, "lines": lines}


def _forked_record(name: str, part: Path, tree: Path) -> Run:
    part.unlink(missing_ok=True)
    verdict = yield from _forked(lambda: _record(name, tree, part), 3600.0, tree)
    if not part.exists():
        sys.exit(f"the tests of {name} end without a record ({verdict}); see {tree / 'pytest.log'}")


def _record(name: str, tree: Path, part: Path) -> int:
    import coverage

    watch = coverage.Coverage(data_file=None, source=[str(tree / "src")])
    recorder = _Recorder(watch)
    watch.start()
    status = _pytest((name,), tree, plugin=recorder, end="--maxfail=1000")
    watch.stop()
    data = watch.get_data()
    lines = {
        str(Path(file).relative_to(tree)): {
            line: [test for test in tests if test] for line, tests in data.contexts_by_lineno(file).items()
        }
        for file in data.measured_files()
        if Path(file).is_relative_to(tree)
    }
    found = {"seconds": recorder.seconds, "failed": sorted(recorder.failed), "lines": lines}
    part.write_text(json.dumps(found), encoding="utf-8")
    return status


class _Recorder:
    """A plugin of pytest: one context of coverage a test, its duration, and whether it passed."""

    def __init__(self, watch: Any) -> None:
        self.watch, self.seconds, self.failed = watch, dict[str, float](), set[str]()

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.watch.switch_context(nodeid)
        self.seconds[nodeid] = 0.0

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.seconds[report.nodeid] += report.duration
        if report.failed:
            self.failed.add(report.nodeid)

    def pytest_runtest_logfinish(self) -> None:
        self.watch.switch_context("")


def _tests_of(mutant: Mutant, reach: dict[str, Any]) -> list[str]:
    """Tests that run the statement of a mutant, or the function whose signature it is in; of another import, any."""
    lines: dict[str, list[str]] = reach["lines"].get(mutant.path, {})
    first, last = _statement(mutant)
    found = {test for line in range(first, last + 1) for test in lines.get(str(line), ())}
    if _runs_on_import(mutant):
        found |= {test for test in reach["seconds"] if not found or test.startswith(OF_DEFINITIONS)}
    found &= set(reach["seconds"])
    seconds, chosen = 0.0, list[str]()
    for test in sorted(found, key=lambda test: reach["seconds"][test]):
        seconds += reach["seconds"][test]
        if seconds > MOST_SECONDS and chosen:
            break
        chosen.append(test)
    return chosen


def _statement(mutant: Mutant) -> tuple[int, int]:
    """First and last line of the innermost statement around a mutant, without the body of a compound one.

    Of the signature of a function, those of its body: a default is read where the function runs.
    """
    first, last = mutant.line, mutant.line
    for node in ast.walk(ast.parse(mutant.source)):
        if isinstance(node, ast.stmt) and node.lineno <= mutant.line <= (node.end_lineno or 0):
            body = getattr(node, "body", None)
            first, last = node.lineno, body[0].lineno - 1 if body else (node.end_lineno or node.lineno)
            if isinstance(node, ast.FunctionDef) and mutant.line < node.body[0].lineno:
                first, last = node.body[0].lineno, node.end_lineno or node.lineno
    return first, max(last, mutant.line)


def _runs_on_import(mutant: Mutant) -> bool:
    functions = (node for node in ast.walk(ast.parse(mutant.source)) if isinstance(node, ast.FunctionDef))
    return not any(node.body[0].lineno <= mutant.line <= (node.end_lineno or 0) for node in functions)


# How a verdict is reached


def _judge_all(mutants: list[Mutant], kept: Path, reach: dict[str, Any], trees: list[Path], deadline: float) -> None:
    known = {json.dumps(row["mutant"]) for row in _rows(kept)}
    unknown = [mutant for mutant in mutants if json.dumps(asdict(mutant)) not in known]
    trials = (partial(judge, mutant, reach) for mutant in unknown if time.monotonic() < deadline)
    for row in _together(trials, trees):
        with kept.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        mutant = row["mutant"]
        print(f"{row['verdict']:<9}{row['seconds']:>7.1f} s  {mutant['path']}:{mutant['line']}", flush=True)


def _together(runs: Iterable[Callable[[Path], Run]], trees: list[Path]) -> Iterator[Any]:
    """What came of every run, as they end: as many at a time as there are trees, each in a tree of its own."""
    waiting, free = iter(runs), list(trees)
    running: dict[Path, Run] = {}
    while True:
        while free and (run := next(waiting, None)) is not None:
            tree = free.pop()
            running[tree] = run(tree)
        if not running:
            return
        for tree, step in list(running.items()):
            try:
                next(step)
            except StopIteration as end:
                del running[tree]
                free.append(tree)
                yield end.value
        time.sleep(0.02)


def _forked(work: Callable[[], int], allowed: float, tree: Path) -> Run:
    """Verdict of `work`, a run of pytest in a forked process: survived, killed, or timeout after `allowed` seconds."""
    child = os.fork()
    if child == 0:
        os.setsid()
        with (tree / "pytest.log").open("w") as log:
            os.dup2(log.fileno(), 1)
            os.dup2(log.fileno(), 2)
            status = 1
            with contextlib.suppress(BaseException):
                status = work()
            log.flush()
            os._exit(status)
    deadline = time.monotonic() + allowed
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return "survived" if status == 0 else "killed"
        yield
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "timeout"


def _pytest(tests: tuple[str, ...] | list[str], tree: Path, plugin: object = None, end: str = "-x") -> int:
    import pytest

    os.chdir(tree)
    sys.dont_write_bytecode = True
    sys.path[:0] = [str(tree / "src"), str(tree / "tests")]
    os.environ["PYTHONPATH"] = os.pathsep.join([str(tree / "src"), os.environ.get("PYTHONPATH", "")])
    files = dict.fromkeys(test.partition("::")[0] for test in tests)
    plugins = [_Order(tests), *([plugin] if plugin else [])]
    options = (end, "-q", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning")
    return int(pytest.main([*options, *files], plugins=plugins))


class _Order:
    """A plugin of pytest: the given tests only, in the given order, and no time spent on small counter-examples."""

    def __init__(self, tests: tuple[str, ...] | list[str]) -> None:
        self.rank = {test: rank for rank, test in enumerate(tests)}

    def pytest_sessionstart(self) -> None:
        from hypothesis import Phase, settings

        settings.register_profile("mutate", settings.default, phases=[Phase.explicit, Phase.generate], database=None)
        settings.load_profile("mutate")

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        chosen = [item for item in items if item.nodeid in self.rank]
        if chosen:
            items[:] = sorted(chosen, key=lambda item: self.rank[item.nodeid])


def _planted(tree: Path, package: str) -> Path:
    """A tree to put faults into: links to this one, but a copy of the package, with what was compiled from it."""
    source = tree / "src" / "graphmrf"
    shutil.rmtree(tree, ignore_errors=True)
    source.mkdir(parents=True)
    for path in (*(ROOT / "src" / "graphmrf").iterdir(), *(ROOT / name for name in _BESIDE)):
        (tree / path.relative_to(ROOT)).symlink_to(path)
    (source / package).unlink()
    shutil.copytree(ROOT / "src" / "graphmrf" / package, source / package)
    return tree


def _rows(kept: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in kept.read_text(encoding="utf-8").splitlines()] if kept.exists() else []


def _forget_survivors(kept: Path) -> None:
    rows = (row for row in _rows(kept) if row["verdict"] != "survived")
    kept.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


if __name__ == "__main__":
    main()
