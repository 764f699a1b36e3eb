"""One small town, written as people's programs would write it: every variant is understood, or refused with a remedy.

The town has 30 districts with an age, a rent in euros of which a third is missing, and 41 borders with a number of
trips. A variant says which files there are, what options go with them, and, where it must be refused, what the message
says. One that is read has to give the graph, the ids, the ages and the rents of the plain files.
"""

import gzip
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from graphmrf.datasets import AttributedGraph, read
from graphmrf.errors import InvalidInputError

N = 30
Content = str | bytes | Callable[[Path], None]


def _town() -> tuple[pd.DataFrame, pd.DataFrame]:
    rng = np.random.default_rng(7)
    nodes = pd.DataFrame(
        {
            "id": [f"D{13000 + 7 * k}" for k in rng.permutation(N)],
            "age": (40 + 5 * rng.standard_normal(N)).round(2),
            "rent": (1000 + 200 * rng.standard_normal(N)).round(2),
        }
    )
    nodes.loc[rng.permutation(N)[:10], "rent"] = np.nan
    pairs = [(k, k + 1) for k in range(N - 1)] + [(k, k + 7) for k in range(0, N - 7, 2)][:16]
    u, v = np.array(pairs).T
    edges = pd.DataFrame({"source": nodes["id"].to_numpy()[u], "target": nodes["id"].to_numpy()[v]})
    return nodes, edges.assign(trips=rng.integers(1, 9, len(edges)) / 4)


NODES, EDGES = _town()
PLAIN = EDGES[["source", "target"]]
INTEGERS = {name: int(name[1:]) for name in NODES["id"]}


@dataclass(frozen=True)
class Variant:
    """Files and options; `refused` has the words of the message, or nothing for what must be understood."""

    name: str
    files: dict[str, Content]
    options: dict[str, Any] = field(default_factory=dict)
    refused: Sequence[str] = ()
    told: str = ""
    weights: Any = None
    ids: Sequence[Any] | None = None

    def write(self, folder: Path) -> tuple[Path, Path]:
        for name, content in self.files.items():
            path = folder / name
            if callable(content):
                content(path)
            else:
                path.write_bytes(content.encode() if isinstance(content, str) else content)
        nodes, edges = (folder / name for name in self.files)
        return nodes, edges

    def outcome(self, folder: Path) -> tuple[str, str]:
        """Return `understood`, `refused` or `MISREAD`, and what was told."""
        try:
            table = read(*self.write(folder), **self.options)
            wrong = self._differences(table)
        except InvalidInputError as error:
            return self._refusal(str(error))
        told = "; ".join(table.notes).replace(f"{folder}/", "")
        if self.refused or wrong or self.told not in told:
            return "MISREAD", wrong or f"not told or not refused: {told}"
        return "understood", told

    def _refusal(self, message: str) -> tuple[str, str]:
        missing = [words for words in self.refused if words not in message]
        if not self.refused or missing:
            return "MISREAD", f"refused without {missing}: {message}"
        return "refused", message

    def _differences(self, table: AttributedGraph) -> str:
        expected = list(NODES["id"]) if self.ids is None else list(self.ids)
        if table.frame[table.id].tolist() != expected:
            return f"ids {table.frame[table.id].tolist()[:3]} instead of {expected[:3]}"
        for name, values in {name: table.outcome(name) for name in ("age", "rent")}.items():
            if not np.allclose(values, NODES[name], rtol=1e-12, equal_nan=True):
                return f"{name} {values[:3]} instead of {NODES[name].to_numpy()[:3]}"
        dense = np.zeros((N, N))
        at = {name: k for k, name in enumerate(NODES["id"])}
        u, v = EDGES["source"].map(at).to_numpy(), EDGES["target"].map(at).to_numpy()
        dense[u, v] = dense[v, u] = 1.0 if self.weights is None else self.weights
        found = _dense(table)
        return "" if np.allclose(found, dense, rtol=1e-12) else f"degrees {found.sum(0)[:3]}, not {dense.sum(0)[:3]}"


def _dense(table: AttributedGraph) -> Any:
    graph, found = table.graph, np.zeros((N, N))
    rows = np.repeat(np.arange(N), np.diff(graph.indptr))
    found[rows, graph.indices] = 1.0 if graph.weights is None else graph.weights
    return found


def csv(frame: pd.DataFrame, **options: Any) -> str:
    return str(frame.to_csv(**{"index": False, "lineterminator": "\n", **options}))


def _dressed(column: str, form: Callable[[float], str], nodes: pd.DataFrame = NODES) -> pd.DataFrame:
    return nodes.assign(**{column: pd.Series([None if np.isnan(x) else form(x) for x in nodes[column]])})


def _german(value: float) -> str:
    return f"{value:,.2f}".translate(str.maketrans(",.", ".,"))


def _xlsx(frame: pd.DataFrame, **options: Any) -> Callable[[Path], None]:
    return lambda path: frame.to_excel(path, index=False, **options)


def _two_sheets(path: Path) -> None:
    with pd.ExcelWriter(path) as book:
        NODES.to_excel(book, sheet_name="districts", index=False)
        EDGES.to_excel(book, sheet_name="borders", index=False)


def _graphml(**options: Any) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        import networkx as nx

        graph = nx.from_pandas_edgelist(EDGES, edge_attr=options.get("edge_attr"))
        if options.get("labelled"):
            nx.set_node_attributes(graph, {node: node for node in graph}, "label")
            graph = nx.relabel_nodes(graph, {node: f"n{k}" for k, node in enumerate(graph)})
        nx.write_graphml(graph, path)

    return write


def _positions() -> tuple[Any, Any]:
    at = {name: k + 1 for k, name in enumerate(NODES["id"])}
    return EDGES["source"].map(at).to_numpy(), EDGES["target"].map(at).to_numpy()


def _mtx(kind: str, size: int = N) -> str:
    u, v = _positions()
    lines = [f"{max(a, b)} {min(a, b)}" for a, b in zip(u, v, strict=True)]
    if kind == "real":
        lines = [f"{line} {w}" for line, w in zip(lines, EDGES["trips"], strict=True)]
    head = f"%%MatrixMarket matrix coordinate {kind} symmetric\n{size} {size} {len(lines)}\n"
    return head + "\n".join(lines) + "\n"


def _gal(head: str = f"0 {N} districts id") -> str:
    both = pd.concat([PLAIN, PLAIN.rename(columns={"source": "target", "target": "source"})])
    groups = both.groupby("source")["target"].agg(list)
    return f"{head}\n" + "".join(f"{node} {len(near)}\n{' '.join(near)}\n" for node, near in groups.items())


def _gwt() -> str:
    rows = (f"{u} {v} {w}\n" for u, v, w in EDGES.itertuples(index=False))
    return f"0 {N} districts id\n" + "".join(rows)


def _nodes(name: str, content: Content, *, edges: Content | None = None, **more: Any) -> Variant:
    """A variant of the table of nodes, beside plain edges."""
    suffix = more.pop("suffix", ".csv")
    return Variant(name, {f"nodes{suffix}": content, "edges.csv": csv(PLAIN) if edges is None else edges}, **more)


def _edges(name: str, content: Content, *, nodes: Content | None = None, **more: Any) -> Variant:
    """A variant of the table of edges, beside plain nodes."""
    suffix = more.pop("suffix", ".csv")
    return Variant(name, {"nodes.csv": csv(NODES) if nodes is None else nodes, f"edges{suffix}": content}, **more)


TRIPS = EDGES["trips"].to_numpy()
BOTH = pd.concat([EDGES, EDGES.rename(columns={"source": "target", "target": "source"})])
NUMBERED = NODES.assign(id=[INTEGERS[name] for name in NODES["id"]])
NUMBERED_EDGES = PLAIN.map(lambda name: INTEGERS[name])
SEMICOLON = csv(NODES, sep=";", decimal=",")
STRAY = pd.concat([PLAIN, pd.DataFrame({"source": ["Q1", "Q2"], "target": [NODES["id"][0], "Q1"]})])
GZIPPED = io.BytesIO()
with gzip.GzipFile("", "wb", fileobj=GZIPPED, mtime=0) as _stream:
    _stream.write(SEMICOLON.encode())

DIALECTS = (
    _nodes("plain CSV", csv(NODES)),
    _nodes("semicolons, decimal commas", SEMICOLON, told="columns are separated by semicolons; numbers: 'age'"),
    _nodes("semicolons, decimal points", csv(NODES, sep=";"), told="separated by semicolons"),
    _nodes("semicolons after sep=;", "sep=;\n" + SEMICOLON, told="separated by semicolons"),
    _nodes("semicolons, gzipped", GZIPPED.getvalue(), suffix=".csv.gz", told="separated by semicolons"),
    _nodes("semicolons in .txt", SEMICOLON, suffix=".txt", told="is read as"),
    _nodes("semicolons at every end", SEMICOLON.replace("\n", ";\n"), told="separated by semicolons"),
    _nodes("commas, quoted decimal commas", csv(NODES, decimal=",", quoting=1), told="is read as"),
    _nodes("tabs in .csv", csv(NODES, sep="\t"), told="separated by tabs"),
    _nodes("tabs in .txt", csv(NODES, sep="\t"), suffix=".txt"),
    _nodes("tabs, decimal commas", csv(NODES, sep="\t", decimal=","), suffix=".tsv", told="is read as"),
    _nodes("commas in .tsv", csv(NODES), suffix=".tsv", told="separated by commas"),
    _nodes("pipes in .csv", csv(NODES, sep="|"), told="separated by '|'"),
    _nodes("blanks in .txt", csv(NODES, na_rep="NA", sep=" "), suffix=".txt"),
    _nodes("Windows line ends", csv(NODES, lineterminator="\r\n")),
    _nodes("quoted everything", csv(NODES, quoting=1)),
    _nodes("blanks around names", csv(NODES).replace("id,age,rent", "id , age, rent", 1)),
    _nodes("UTF-8 with a mark", csv(NODES).encode("utf-8-sig")),
    _nodes("Latin-1", csv(NODES.assign(town="Köln")).encode("latin-1"), told="text is Windows-1252 (Latin-1)"),
    _nodes("Windows-1252, semicolons", csv(NODES.assign(u="€"), sep=";", decimal=",").encode("cp1252"), told="text is"),
    _nodes("UTF-16", csv(NODES).encode("utf-16"), told="text is UTF-16"),
    _nodes("UTF-16, no mark", csv(NODES).encode("utf-16-le"), told="text is UTF-16"),
    _nodes("UTF-16, tabs (Unicode text)", csv(NODES, sep="\t").encode("utf-16"), suffix=".txt", told="text is UTF-16"),
    _nodes("no known encoding", csv(NODES).encode() + b"\x81\xe9", refused=("nodes.csv", "UTF-8")),
    _nodes("a title above the names", "Districts 2024\n" + csv(NODES), refused=("nodes.csv, row 2", "first line")),
    _nodes("no names", csv(NODES, header=False), refused=("nodes.csv, row 1", "first line must name the columns")),
    _nodes("two delimiters fit", "id;a,b\nx;1,2\ny;3,4\n", refused=("nodes.csv", "commas or semicolons", "quote")),
    _nodes("a ragged row", csv(NODES) + "D1\n", refused=("nodes.csv, row 32", "expected 3 columns, got 1")),
)

NUMBERS = (
    _nodes("dollars", csv(_dressed("rent", lambda x: f"${x:,.2f}")), told="is read as"),
    _nodes("euros after", csv(_dressed("rent", lambda x: f"{_german(x)} €"), sep=";"), told="is read as"),
    _nodes("square metres", csv(_dressed("rent", lambda x: f"{x:.2f} m²")), told="is read as"),
    _nodes("currency code", csv(_dressed("rent", lambda x: f"CHF {x:.2f}")), told="is read as"),
    _nodes("per cent", csv(_dressed("age", lambda x: f"{x:.2f} %")), told="% is read as"),
    _nodes("thousands, commas", csv(_dressed("rent", lambda x: f"{x:,.2f}")), told="is read as"),
    _nodes("thousands, points", csv(_dressed("rent", _german), sep=";"), told="is read as"),
    _nodes("thousands, blanks", csv(_dressed("rent", lambda x: f"{x:,.2f}".replace(",", "\xa0"))), told="is read as"),
    _nodes("thousands, apostrophes", csv(_dressed("rent", lambda x: f"{x:,.2f}".replace(",", "'"))), told="is read as"),
    _nodes("NA for missing", csv(NODES, na_rep="NA")),
    _nodes("scientific notation", csv(_dressed("rent", lambda x: f"{x:.10e}"))),
    _nodes("two units", csv(NODES.assign(rent=["9 km", "900 m"] * 15)), refused=("row 2, column rent",)),
    _nodes("two currencies", csv(NODES.assign(rent=["$900", "€900"] * 15)), refused=("row 2, column rent",)),
    _nodes("per cent and shares", csv(NODES.assign(rent=["12 %", "0.12"] * 15)), refused=("row 2, column rent",)),
    _nodes(
        "1.200 beside 719",
        csv(NODES.assign(rent=["1.200 €", "719 €"] * 15)),
        refused=("column rent", "1200 or 1.200"),
    ),
    _nodes("1.234, semicolons", csv(NODES.assign(age=40, rent="1.234"), sep=";"), refused=("column rent", "1234 or")),
    _nodes(
        "1,234, semicolons",
        csv(NODES.assign(age=NODES["age"].round(0).astype(int), rent="1,234"), sep=";", decimal="."),
        refused=("column rent",),
    ),
    _nodes("a word among numbers", csv(NODES.assign(rent=["?", *NODES["rent"][1:]])), refused=("row 2, column rent",)),
)

SHEETS = (
    _nodes("xlsx", _xlsx(NODES), suffix=".xlsx"),
    _nodes("xlsx, two sheets", _two_sheets, suffix=".xlsx", told="only its first sheet, 'districts'"),
    _nodes("xlsx, numbers as text", _xlsx(_dressed("rent", _german)), suffix=".xlsx", told="is read as"),
    _nodes(
        "xlsx, ids as numbers", _xlsx(NUMBERED), edges=csv(NUMBERED_EDGES), suffix=".xlsx", ids=list(NUMBERED["id"])
    ),
    _nodes("CSV named .xlsx", csv(NODES), suffix=".xlsx", refused=("nodes.xlsx", "wrong suffix")),
    _nodes("Parquet", NODES.to_parquet, suffix=".parquet"),
    _nodes("a document", csv(NODES), suffix=".docx", refused=("nodes.docx", "suffix", ".csv")),
)

IDS = (
    _nodes("to_csv with its index", csv(NODES, index=True), told="without a name"),
    _nodes("ids in the unnamed index", csv(NODES.set_index("id"), index=True, index_label=""), told="'id' has the ids"),
    _nodes(
        "names beside ids, other ends",
        csv(NODES.rename(columns={"id": "nr"}).assign(name=[f"place {k}" for k in range(N)])),
        edges=csv(EDGES.set_axis(["von", "nach", "trips"], axis=1)),
        told="'nr' has the ids",
        weights=TRIPS,
    ),
    _nodes("another name for ids", csv(NODES.rename(columns={"id": "district"})), told="'district'"),
    _nodes("ids not first", csv(NODES[["age", "rent", "id"]].rename(columns={"id": "gss"})), told="'gss' has the ids"),
    _nodes(
        "row numbers named id", csv(NODES.rename(columns={"id": "gss"}).assign(id=range(N))), told="'gss' has the ids"
    ),
    _nodes(
        "ids 13001.0",
        csv(NUMBERED.assign(id=NUMBERED["id"].astype(float))),
        edges=csv(NUMBERED_EDGES),
        told="is matched to",
        ids=[f"{k}.0" for k in NUMBERED["id"]],
    ),
    _nodes(
        "ids 13001.0 in edges",
        csv(NUMBERED),
        edges=csv(NUMBERED_EDGES.astype(float)),
        told="is matched to",
        ids=list(NUMBERED["id"]),
    ),
    _nodes("ids in small letters", csv(NODES), edges=csv(PLAIN.map(str.lower)), told="is matched to"),
    _nodes("ids with blanks", csv(NODES), edges=csv(PLAIN.map(lambda name: f" {name} "))),
    _nodes(
        "ids without their zeros",
        csv(NUMBERED.assign(id=NUMBERED["id"].map("{:07d}".format))),
        edges=csv(NUMBERED_EDGES),
        refused=("edges.csv, row 2", "same zeros"),
    ),
    _nodes("an id twice", csv(pd.concat([NODES, NODES[:1]])), refused=("rows 2 and 32", "--id")),
    _nodes("an id missing", csv(NODES.assign(id=["", *NODES["id"][1:]])), refused=("row 2", "missing")),
)

GRAPHS = (
    _edges("focal, neighbor", csv(PLAIN.set_axis(["focal", "neighbor"], axis=1))),
    _edges("any two names", csv(PLAIN.set_axis(["one", "other"], axis=1)), told="edges run from 'one' to 'other'"),
    _edges(
        "any names and trips",
        csv(EDGES.set_axis(["one", "other", "trips"], axis=1)),
        told="'one' to 'other'",
        weights=TRIPS,
    ),
    _edges("no header", csv(PLAIN, header=False), told="first line is read as an edge"),
    _edges("no header, blanks, .txt", csv(PLAIN, header=False, sep=" "), suffix=".txt", told="read as an edge"),
    _edges("semicolons, weights", csv(EDGES, sep=";", decimal=","), told="is read as", weights=TRIPS),
    _edges("both directions", csv(BOTH[["source", "target"]]), told="counted once"),
    _edges("both directions, weights", csv(BOTH), told="both directions, each used once", weights=TRIPS),
    _edges("self loops", csv(pd.concat([PLAIN, PLAIN[:2].assign(target=PLAIN["source"])])), told="self loop"),
    _edges("unknown nodes", csv(STRAY), refused=("edges.csv, row 43", "'Q1'", "--unknown drop")),
    _edges("unknown nodes, dropped", csv(STRAY), options={"unknown": "drop"}, told="dropped 2 edges to 2 unknown ids"),
    _edges(
        "distances", csv(EDGES.rename(columns={"trips": "km"})), refused=("edges.csv", "km", "--weight-is distance")
    ),
    _edges(
        "distances, inverted",
        csv(EDGES.rename(columns={"trips": "km"})),
        options={"weight_is": "distance"},
        told="smaller means stronger",
        weights=1 / TRIPS,
    ),
    _edges(
        "distances as strengths",
        csv(EDGES.rename(columns={"trips": "km"})),
        options={"weight": "km"},
        told="as requested",
        weights=TRIPS,
    ),
    _edges("distances, ignored", csv(EDGES.rename(columns={"trips": "travel_time"})), options={"weight": "none"}),
    _edges("two weights", csv(EDGES.assign(flow=1.5)), refused=("edges.csv", "'trips', 'flow'", "--weight")),
    _edges("an edge number", csv(EDGES.assign(id=range(len(EDGES)))), told="'trips'", weights=TRIPS),
    _edges("GraphML", _graphml(), suffix=".graphml"),
    _edges("GraphML, weights", _graphml(edge_attr="trips"), suffix=".graphml", told="'trips'", weights=TRIPS),
    _edges(
        "GraphML, labels",
        _graphml(labelled=True),
        suffix=".graphml",
        options={"source": "source label", "dest": "target label"},
    ),
    _edges("Matrix Market", _mtx("pattern"), suffix=".mtx"),
    _edges("Matrix Market, weights", _mtx("real"), suffix=".mtx", told="'weight'", weights=TRIPS),
    _edges(
        "Matrix Market, other size", _mtx("pattern", N + 1), suffix=".mtx", refused=("edges.mtx", "31 rows", "30 nodes")
    ),
    _edges("GAL", _gal(), suffix=".gal"),
    _edges("GAL, old header", _gal(str(N)), suffix=".gal"),
    _edges("GAL, cut short", _gal()[:200], suffix=".gal", refused=("edges.gal",)),
    _edges("GWT", _gwt(), suffix=".gwt", refused=("edges.gwt", "distance", "--weight-is")),
    _edges("GWT, inverted", _gwt(), suffix=".gwt", options={"weight_is": "distance"}, weights=1 / TRIPS),
    _edges("damaged GraphML", "<graphml><node", suffix=".graphml", refused=("edges.graphml", "damaged")),
)

VARIANTS = (*DIALECTS, *NUMBERS, *SHEETS, *IDS, *GRAPHS)
