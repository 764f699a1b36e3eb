"""The shape of the source tree: modules, records, importers, cycles, function lengths, and how far a call walks.

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

FIELD = "graphmrf.field"
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
    def uses(self) -> dict[str, set[str]]:
        """As `imports`, with a name that a package passes on counted for the module that defines it, too."""
        return {name: imported | set(self._passed_on(self.parsed[name])) for name, imported in self.imports.items()}

    def _passed_on(self, tree: ast.Module) -> Iterator[str]:
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module in self.sources:
                homes = _homes(self.parsed[str(node.module)])
                yield from (homes[alias.name] for alias in node.names if homes.get(alias.name) in self.sources)

    @cached_property
    def lines(self) -> int:
        """Lines of all modules."""
        return sum(text.count("\n") for text in self.sources.values())

    def part(self, package: str) -> Tree:
        """Return the modules of one package."""
        return Tree({name: text for name, text in self.sources.items() if f"{name}.".startswith(f"{package}.")})

    @cached_property
    def constants(self) -> list[str]:
        """Names in capitals that modules bind to something with a number in it."""
        return [f"{module}.{name}" for module, tree in self.parsed.items() for name in _constants(tree)]

    @cached_property
    def inline_numbers(self) -> list[str]:
        """Numbers written inside functions and classes, defaults included, but for those of formulas."""
        bodies = ((m, f) for m, tree in self.parsed.items() for f in tree.body if isinstance(f, _DEFINITIONS))
        places = {(m, n.lineno, n.col_offset): n.value for m, f in bodies for n in ast.walk(f) if _is_number(n)}
        return [f"{module}:{line} {value!r}" for (module, line, _), value in places.items() if value not in _PLAIN]

    @cached_property
    def records(self) -> list[str]:
        """Data classes and named tuples."""
        classes = ((name, node) for name, tree in self.parsed.items() for node in ast.walk(tree))
        return [f"{name}.{node.name}" for name, node in classes if isinstance(node, ast.ClassDef) and _is_record(node)]

    @cached_property
    def single_importer(self) -> list[str]:
        """Modules that exactly one other imports."""
        importers = defaultdict(set)
        for name, imported in self.uses.items():
            for other in imported:
                importers[other].add(name)
        return sorted(f"{name} <- {min(who)}" for name, who in importers.items() if len(who) == 1)

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
    """Yield the names in capitals that a module binds to something with a number in it."""
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = (each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name))
            if any(map(_is_number, ast.walk(node.value))):
                yield from (name for name in names if name.isupper())


def _homes(tree: ast.Module) -> dict[str, str]:
    """Return the module that every name of a package's own imports comes from."""
    nodes = (node for node in tree.body if isinstance(node, ast.ImportFrom) and node.module)
    return {alias.asname or alias.name: str(node.module) for node in nodes for alias in node.names}


def _dotted(path: Path, folder: Path) -> str:
    return ".".join(path.relative_to(folder.parent).with_suffix("").parts).removesuffix(".__init__")


def _is_record(node: ast.ClassDef) -> bool:
    decorators = " ".join(ast.unparse(each) for each in node.decorator_list)
    return "dataclass" in decorators or any("NamedTuple" in ast.unparse(base) for base in node.bases)


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
    """Return the four walks of the architecture, each with the modules it may touch."""
    files = importlib.import_module("graphmrf").datasets.example()
    predict = ["predict", str(files.nodes), str(files.edges), "--target", "rent", "-o", "OUT/out.csv"]
    reproduce = ["reproduce", "omega-lp", "--quick", "--output", "OUT/paper", "--jobs", "1"]
    return {
        "predict": (walk(_command(*predict, "--report", "OUT/report.html")), 40),
        "GraphRegressor, dense": (walk(_regressor("dense")), 15),
        "GraphRegressor, sparse": (walk(_regressor("sparse")), 15),
        "reproduce": (walk(_command(*reproduce)), 40),
    }


def figures(tree: Tree) -> list[Figure]:
    """Return the figures that need no run, each beside its target."""
    lengths, field = np.array(list(tree.function_lengths.values())), tree.part(FIELD)
    return [
        Figure("modules", len(tree.sources)),
        Figure("lines", tree.lines),
        Figure("lines of field", field.lines, 4500),
        Figure("constants of field", len(field.constants), 60),
        Figure("numbers inside functions and classes of field", len(field.inline_numbers)),
        Figure("modules per 1,000 lines", round(1000 * len(tree.sources) / tree.lines, 2), 5),
        Figure("record classes", len(tree.records), 139),
        Figure("modules with a single importer", len(tree.single_importer), 29),
        Figure("public names in two modules", len(tree.repeated_names), 0),
        Figure("import cycles, types included", len(tree.cycles), 0),
        Figure("functions", lengths.size),
        Figure("code lines of a function: median", float(np.median(lengths)), 5),
        Figure("code lines of a function: 95th percentile", float(np.percentile(lengths, 95)), 20),
        Figure("code lines of a function: most", int(lengths.max()), 50),
    ]


def main() -> None:
    """Print all figures; with ``--why`` also what is behind those that count places."""
    tree = Tree.of(SOURCE)
    print(*figures(tree), sep="\n")
    for name, (found, most) in walks().items():
        print(Figure(f"modules touched by {name}", len(found.modules), most))
        print(f"    {found.functions} functions, depth {found.depth}")
        if "--why" in sys.argv:
            print("   ", *sorted(found.modules))
    if "--why" in sys.argv:
        longest = sorted(tree.function_lengths, key=tree.function_lengths.__getitem__)[-10:]
        for title, rows in (
            ("single importer", tree.single_importer),
            ("repeated", tree.repeated_names),
            ("cycles", tree.cycles),
            ("longest", longest),
            ("constants of field", tree.part(FIELD).constants),
            ("numbers inside functions and classes of field", tree.part(FIELD).inline_numbers),
        ):
            print(f"\n{title}:", *rows, sep="\n  ")


if __name__ == "__main__":
    main()
