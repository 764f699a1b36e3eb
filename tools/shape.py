"""The shape of the source tree: lines, constants, leaks, duplicates, cycles, function lengths, and walks of calls.

``make shape`` prints every figure beside its target. They are thermometers: a file glued together to please them is
worse than two.
"""

from __future__ import annotations

import ast
import importlib
import sys
import tempfile
from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np
from scipy import sparse
from typer.testing import CliRunner

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SOURCE = Path(__file__).parents[1] / "src" / "graphmrf"

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_DEFINITIONS = (*_FUNCTIONS, ast.ClassDef)

BLOCK = 6
"""Code lines from which a repeated block counts as a duplicate."""
ENGINE_SIDE = ("graphmrf.engines", "graphmrf.graph", "graphmrf.cli")
"""Packages that may name an engine: the engines, the graph that carries one, and the option that picks it."""
_PLAIN = (-1, 0, 1, 2, 0.5)
"""Numbers inside functions and classes that are counted nowhere: they are parts of formulas, signs and axes."""


@dataclass(frozen=True)
class Figure:
    """One figure and the target it is held against; `most` is None where none was set."""

    name: str
    value: float
    most: float | None = None

    def __str__(self) -> str:
        target = "" if self.most is None else f"   (at most {self.most:g}{'' if self.is_met else ': MISSED'})"
        return f"{self.name:<48}{self.value:>9g}{target}"

    @property
    def is_met(self) -> bool:
        """Whether the target is reached."""
        return self.most is None or self.value <= self.most


@dataclass(frozen=True, eq=False)
class Tree:
    """The modules of a package, parsed.

    Attributes
    ----------
    sources : dict
        Text of every module by its dotted name.
    """

    sources: dict[str, str]

    @classmethod
    def of(cls, folder: Path) -> Tree:
        """Read all modules below a package's folder."""
        return cls({_dotted(path, folder): path.read_text(encoding="utf-8") for path in sorted(folder.rglob("*.py"))})

    @cached_property
    def parsed(self) -> dict[str, ast.Module]:
        """Syntax tree of every module."""
        return {name: ast.parse(text) for name, text in self.sources.items()}

    @cached_property
    def imports(self) -> dict[str, set[str]]:
        """Modules of the package that every module imports, for types only included."""
        return {name: set(self._imported(tree)) - {name} for name, tree in self.parsed.items()}

    def _imported(self, tree: ast.Module) -> Iterator[str]:
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    inner = f"{node.module}.{alias.name}"
                    yield from (
                        found for found in (inner if inner in self.sources else node.module,) if found in self.sources
                    )
            elif isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names if alias.name in self.sources)

    @cached_property
    def lines(self) -> int:
        """Lines of all modules."""
        return sum(text.count("\n") for text in self.sources.values())

    def part(self, package: str) -> Tree:
        """Return the modules of one package."""
        return Tree({name: text for name, text in self.sources.items() if f"{name}.".startswith(f"{package}.")})

    @cached_property
    def constants(self) -> list[str]:
        """Names in capitals that modules bind to numbers alone: a number, or a collection of numbers."""
        return [f"{module}.{name}" for module, tree in self.parsed.items() for name in _constants(tree)]

    @cached_property
    def inline_numbers(self) -> list[str]:
        """Numbers written inside functions and classes, defaults included, but for those of formulas."""
        bodies = ((m, f) for m, tree in self.parsed.items() for f in tree.body if isinstance(f, _DEFINITIONS))
        places = {(m, n.lineno, n.col_offset): n.value for m, f in bodies for n in ast.walk(f) if _is_number(n)}
        return [f"{module}:{line} {value!r}" for (module, line, _), value in places.items() if value not in _PLAIN]

    @cached_property
    def private_reads(self) -> list[str]:
        """Private names that a module takes from another package: imported, or read as an attribute."""
        own = defaultdict[str, set[str]](set)
        for module, tree in self.parsed.items():
            own[_package(module)] |= set(_private_definitions(tree))
        return [
            f"{module}:{line} {name}"
            for module, tree in self.parsed.items()
            for line, name in [*_private_attributes(tree, own[_package(module)]), *_private_imports(tree, module)]
        ]

    @cached_property
    def engine_leaks(self) -> list[str]:
        """Places outside the engines that ask which engine they have, or use what its protocol does not list."""
        protocol = set(_members(_class(self.parsed["graphmrf.engines.protocol"], "Engine")))
        places = ((m, n) for m, tree in self.parsed.items() if _package(m) not in ENGINE_SIDE for n in ast.walk(tree))
        return [f"{module}:{node.lineno} {ast.unparse(node)}" for module, node in places if _leaks(node, protocol)]

    @cached_property
    def duplicates(self) -> list[str]:
        """Blocks of six code lines and more that occur twice, each at its second place."""
        seen: set[tuple[str, ...]] = set()
        found = []
        for module, tree in self.parsed.items():
            lines = _code(tree, self.sources[module])
            windows = [tuple(text for _, text in lines[k : k + BLOCK]) for k in range(len(lines) - BLOCK + 1)]
            repeated = [window in seen for window in windows]
            starts = (k for k, known in enumerate(repeated) if known and not (k and repeated[k - 1]))
            found += [f"{module}:{lines[k][0]}" for k in starts]
            seen |= set(windows)
        return found

    @cached_property
    def repeated_names(self) -> list[str]:
        """Public names that two modules define."""
        homes = defaultdict(list)
        for module, tree in self.parsed.items():
            for name in dict.fromkeys(_defined(tree)):
                homes[name].append(module)
        return sorted(f"{name}: {', '.join(where)}" for name, where in homes.items() if len(where) > 1)

    @cached_property
    def cycles(self) -> list[str]:
        """Groups of modules that import each other, for types only included (strongly connected components)."""
        graph = {name: sorted(imported) for name, imported in self.imports.items()}
        return [" <-> ".join(group) for group in _components(graph) if len(group) > 1]

    @cached_property
    def function_lengths(self) -> dict[str, int]:
        """Code lines in the body of every function: no docstring, comment or blank line."""
        lengths = {}
        for module, tree in self.parsed.items():
            text = self.sources[module].splitlines()
            for node in ast.walk(tree):
                if isinstance(node, _FUNCTIONS):
                    lengths[f"{module}:{node.lineno} {node.name}"] = _code_lines(node, text)
        return lengths


def _is_number(node: ast.AST) -> TypeGuard[ast.Constant]:
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)


def _constants(tree: ast.Module) -> Iterator[str]:
    """Yield the names in capitals that a module binds to numbers alone."""
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None and _is_numeric(node.value):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = (each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name))
            yield from (name for name in names if name.isupper())


def _is_numeric(value: ast.expr) -> bool:
    keys = {key for node in ast.walk(value) if isinstance(node, ast.Dict) for key in node.keys}
    leaves = [node for node in ast.walk(value) if isinstance(node, ast.Constant) and node not in keys]
    return bool(leaves) and all(map(_is_number, leaves))


def _dotted(path: Path, folder: Path) -> str:
    return ".".join(path.relative_to(folder.parent).with_suffix("").parts).removesuffix(".__init__")


def _defined(tree: ast.Module) -> Iterator[str]:
    """Yield the public names that a module binds itself."""
    for node in tree.body:
        if isinstance(node, (*_FUNCTIONS, ast.ClassDef)) and not node.name.startswith("_"):
            yield node.name
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        for target in targets:
            names = target.elts if isinstance(target, ast.Tuple) else [target]
            yield from (each.id for each in names if isinstance(each, ast.Name) and not each.id.startswith("_"))


def _package(module: str) -> str:
    """Return the package of a module, as graphmrf.linalg or graphmrf_paper."""
    first, *rest = module.split(".")
    return ".".join([first, *rest[:1]]) if first == "graphmrf" else first


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name != "_"


def _private_definitions(tree: ast.Module) -> Iterator[str]:
    """Yield the private names that a module defines, in classes and on instances, too."""
    for node in ast.walk(tree):
        if isinstance(node, _DEFINITIONS):
            yield node.name
        elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.id if isinstance(node, ast.Name) else node.attr


def _private_attributes(tree: ast.Module, own: set[str]) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and _is_private(node.attr) and node.attr not in own:
            yield node.lineno, ast.unparse(node)


def _private_imports(tree: ast.Module, module: str) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("graphmrf"):
            names = [*node.module.split("."), *(alias.name for alias in node.names)]
            if _package(node.module) != _package(module) and any(map(_is_private, set(names) - {"_typing"})):
                yield node.lineno, f"{node.module} {names[-1]}"


def _class(tree: ast.Module, name: str) -> ast.ClassDef:
    return next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name)


def _leaks(node: ast.AST, protocol: set[str]) -> TypeGuard[ast.expr]:
    """Whether an expression asks an engine for what its protocol does not promise, or names one."""
    if isinstance(node, ast.Attribute):
        return _is_engine(node.value) and node.attr not in protocol
    if not isinstance(node, ast.Call) or not node.args:
        return False
    called = ast.unparse(node.func)
    named = called.endswith((".on", ".to")) and isinstance(node.args[0], ast.Constant)
    return named or (called in ("hasattr", "getattr", "isinstance") and _is_engine(node.args[0]))


def _is_engine(node: ast.expr) -> bool:
    return ast.unparse(node).split(".")[-1] == "engine"


def _code(tree: ast.Module, text: str) -> list[tuple[int, str]]:
    """Return the numbered code lines of a module, without docstrings, comments, blank lines and imports."""
    left_out = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom) or _is_text(node)]
    hidden = {line for node in left_out for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)}
    lines = ((k, line.strip()) for k, line in enumerate(text.splitlines(), start=1) if k not in hidden)
    return [(k, line) for k, line in lines if line and not line.startswith("#")]


def _is_text(node: ast.AST) -> TypeGuard[ast.Expr]:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _components(graph: dict[str, list[str]]) -> list[list[str]]:
    """Return the strongly connected components."""
    place = {name: k for k, name in enumerate(graph)}
    ends = [(place[a], place[b]) for a, others in graph.items() for b in others]
    u, v = np.array(ends).T
    matrix = sparse.csr_array((np.ones(len(ends)), (u, v)), shape=(len(place), len(place)))
    _, labels = sparse.csgraph.connected_components(matrix, connection="strong")
    names = np.array(list(graph))
    return [names[labels == label].tolist() for label in np.unique(labels)]


def _code_lines(node: ast.FunctionDef | ast.AsyncFunctionDef, text: list[str]) -> int:
    body = node.body[1:] if ast.get_docstring(node) is not None else node.body
    if not body:
        return 0
    lines = text[body[0].lineno - 1 : node.end_lineno]
    return sum(bool(line.strip()) and not line.strip().startswith("#") for line in lines)


@dataclass(frozen=True)
class Walk:
    """What a call touches of the package: modules and functions that ran, and how deep calls went."""

    modules: frozenset[str]
    functions: int
    depth: int


def walk(call: Callable[[], Any]) -> Walk:
    """Return what a call touches when it is made again: what runs while modules are loaded does not count."""
    call()
    seen: set[tuple[str, str, int]] = set()
    level = deepest = 0

    def profile(frame: Any, event: str, _: Any) -> None:
        nonlocal level, deepest
        code = frame.f_code
        if not _is_ours(code) or event not in ("call", "return"):
            return
        level += 1 if event == "call" else -1
        deepest = max(deepest, level)
        seen.add((code.co_filename, code.co_qualname, code.co_firstlineno))

    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
    modules = frozenset(_dotted(Path(file), SOURCE) for file, _, _ in seen)
    return Walk(modules, len(seen), deepest)


def _is_ours(code: Any) -> bool:
    """Whether a function is of the package's own modules: no template, and nothing that a decorator wrote."""
    file: str = code.co_filename
    return file.startswith(str(SOURCE)) and file.endswith(".py")


def _regressor(solver: str) -> Callable[[], Any]:
    """Return a fit of a nonlinear outcome on a ring; not of the example, which linear effects explain."""
    gm, rng, n = importlib.import_module("graphmrf"), np.random.default_rng(0), 300
    graph, X = gm.Graph.from_edges(np.arange(n), (np.arange(n) + 1) % n), rng.standard_normal((n, 2))
    y = np.sin(2.0 * X[:, 0]) + X[:, 1] ** 2 + np.sin(np.arange(n) / 20.0)
    y[rng.permutation(n)[:180]] = np.nan
    return lambda: gm.GraphRegressor(solver=solver).fit(graph, X, y).predict(return_std=True)


def _command(*words: str) -> Callable[[], Any]:
    app = importlib.import_module("graphmrf.cli").app

    def run() -> None:
        with tempfile.TemporaryDirectory() as folder:
            result = CliRunner().invoke(app, [word.replace("OUT", folder) for word in words])
        if result.exit_code:
            raise RuntimeError(result.output)

    return run


def walks() -> dict[str, tuple[Walk, int]]:
    """Return the walks of the architecture, each with the modules it may touch."""
    files = importlib.import_module("graphmrf").datasets.example()
    predict = ["predict", str(files.nodes), str(files.edges), "--target", "rent", "-o", "OUT/out.csv"]
    return {
        "graphmrf predict": (walk(_command(*predict, "--report", "OUT/report.html")), 40),
        "GraphRegressor.fit, dense": (walk(_regressor("dense")), 15),
        "GraphRegressor.fit, sparse": (walk(_regressor("sparse")), 18),
    }


def figures(library: Tree, paper: Tree) -> dict[Figure, list[str]]:
    """Return the figures that need no run, each with the places that it counts."""
    lengths, field = np.array(list(library.function_lengths.values())), library.part("graphmrf.field")
    longest = sorted(library.function_lengths, key=library.function_lengths.__getitem__)[-10:]
    members = list(_members(_class(library.parsed["graphmrf.field.posterior"], "Posterior")))
    return {
        Figure("lines of graphmrf", library.lines, 27_000): [],
        Figure("lines of graphmrf_paper", paper.lines): [],
        Figure("lines of graphmrf.field", field.lines, 4500): [],
        Figure("modules of graphmrf", len(library.sources)): [],
        Figure("modules per 1,000 lines", round(1000 * len(library.sources) / library.lines, 2), 5): [],
        Figure("module constants made of numbers", len(library.constants), 150): library.constants,
        Figure("of them in field", len(field.constants), 60): field.constants,
        Figure("numbers inside functions and classes of field", len(field.inline_numbers)): field.inline_numbers,
        Figure("private reads across packages", len(library.private_reads), 0): library.private_reads,
        Figure("leaks of the engine protocol", len(library.engine_leaks), 0): library.engine_leaks,
        Figure("duplicates of six and more lines", len(library.duplicates)): library.duplicates,
        Figure("members of Posterior", len(members), 8): members,
        Figure("public names in two modules", len(library.repeated_names), 0): library.repeated_names,
        Figure("import cycles, types included", len(library.cycles), 0): library.cycles,
        Figure("code lines of a function: median", float(np.median(lengths)), 5): [],
        Figure("code lines of a function: 95th percentile", float(np.percentile(lengths, 95)), 20): [],
        Figure("code lines of a function: most", int(lengths.max()), 50): longest,
    }


def _members(node: ast.ClassDef) -> Iterator[str]:
    """Yield the public methods and fields of a class."""
    for each in node.body:
        name = each.name if isinstance(each, _FUNCTIONS) else getattr(getattr(each, "target", None), "id", "_")
        if not name.startswith("_"):
            yield name


def main() -> None:
    """Print all figures; with ``--why`` also the places that they count."""
    why = "--why" in sys.argv
    for figure, places in figures(Tree.of(SOURCE), Tree.of(SOURCE.with_name("graphmrf_paper"))).items():
        print(figure, *(places if why else ()), sep="\n    ")
    for name, (found, most) in walks().items():
        print(Figure(f"modules that run in {name}", len(found.modules), most))
        print(f"    {found.functions} functions, depth {found.depth}")
        print(*(f"    {module}" for module in sorted(found.modules) if why), sep="\n", end="\n" * why)


if __name__ == "__main__":
    main()
