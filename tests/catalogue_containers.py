"""Odd containers of the catalogue: encodings, delimiters, archives, types of Parquet, GraphML and matrices."""

import bz2
import datetime
import decimal
import json
import lzma
import uuid
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet

from catalogue import AGE, ANY, IDS, LP, LR, Content, Odd, edges, nodes, parquet
from catalogue_tables import LP_PARQUET, TEXT, format_of_edges, named, renamed, rents, zip_of
from file_variants import NODES, PLAIN, N, csv


def each_cell(form: str) -> str:
    """Return the table of nodes with every cell written in a form."""
    return "\n".join(",".join(form.format(cell) for cell in line.split(",")) for line in TEXT.splitlines())


def written(column: str, form: Callable[[float], str]) -> str:
    """Return the table of nodes with the numbers of a column written in another way."""
    return csv(NODES.assign(**{column: ["" if np.isnan(x) else form(x) for x in NODES[column]]}))


ENCODINGS = [
    nodes("a name in Windows' code page", csv(NODES.rename(columns={"age": "âge"})).encode("cp1252")),
    nodes("a name in Shift-JIS", csv(NODES.rename(columns={"age": "年齢"})).encode("shift-jis")),
    nodes("cells in GB18030", csv(NODES.assign(town="城市")).encode("gb18030")),
    nodes("a name in UTF-7", csv(NODES.rename(columns={"age": "âge"})).encode("utf-7")),
    nodes("EBCDIC", TEXT.encode("cp500"), "save it again as UTF-8"),
    nodes("half a surrogate in UTF-8", TEXT.replace("age", "a\ud800ge", 1).encode("utf-8", "surrogatepass")),
    nodes("a NUL of two bytes", TEXT.encode().replace(b"age", b"a\xc0\x80ge", 1)),
    nodes("a mark in every line", TEXT.replace("\n", "\n\ufeff"), "nodes.csv, row 32"),
    *(
        nodes(f"lines that end with {end!r}", TEXT.replace("\n", end), "the first line must name the columns")
        for end in ("\x0b", "\u2028", "\x85")
    ),
    nodes("no-break spaces around cells", TEXT.replace(",", "\u00a0,\u00a0")),
    nodes("Excel's line about commas", "sep=,\n" + TEXT),
    nodes("Excel's line about semicolons", "sep=;\n" + TEXT.replace(",", ";")),
    nodes("two bars for a delimiter", TEXT.replace(",", "||")),
    nodes("every cell in double quotes", each_cell('"{}"')),
    nodes("every cell in single quotes", each_cell("'{}'"), "is not in nodes.csv"),
    nodes("a quote after a backslash", TEXT.replace(IDS[0], '"a\\"b"'), "is not in nodes.csv"),
    nodes("nothing but commas, 200,000 rows", ",\n" * 200_000, "has no columns"),
    nodes("a row of 10,000 cells", f"{TEXT}{',' * 10_000}\n", "expected 3 columns, got 10001"),
    nodes("ids under pandas' name of an index", csv(NODES.rename(columns={"id": "Unnamed: 0"}))),
    nodes("ids under Arrow's name of an index", csv(NODES.rename(columns={"id": "__index_level_0__"}))),
    nodes("percents", written("rent", "{}%".format)),
    nodes("euros", written("rent", "{} €".format)),
    nodes(
        "thousands apart by narrow blanks", written("rent", lambda x: f"{int(x):,}".replace(",", "\u202f")), factor=ANY
    ),
    nodes("losses in brackets", written("age", "({})".format)),
    nodes("a minus of typographers", written("age", "\u2212{}".format)),
    nodes("Fortran's exponents", written("rent", lambda x: f"{x:.6E}".replace("E", "D")), "column rent"),
    nodes("a half in one character", csv(NODES.assign(age=["½", *AGE[1:]])), "'½' is not a finite number", command=LR),
    nodes("zeros and ones to predict", csv(NODES.assign(rent=["0", "1", ""] * 10)), factor=ANY),
]

MORE_IDS = [
    named("ids of 2^63 with a decimal point", lambda k: f"{2**63 + k * 4096}.0"),
    named("ids like -0", lambda k: ["-0", "0", "+0", "0.0", "00"][k] if k < 5 else str(k)),
    named("ids of JSON", lambda k: json.dumps({"k": k})),
    named("ids with tabs", lambda k: f"a\t{k}"),
    named("ids with a return", lambda k: f"a\r{k}", "nodes.csv"),
    named("ids that end with NUL", lambda k: "a" + "\0" * (k + 1), "nodes.csv"),
    named("ids of soft hyphens", lambda k: "a\u00ad" * (k + 1)),
    named("ids of wide digits", lambda k: "".join(chr(ord(c) + 0xFEE0) for c in str(k))),
    named("ids that begin with #", lambda k: f"#{k}"),
    named("ids that begin with --", lambda k: f"--{k}"),
    named("ids like infinity", lambda k: ["inf", "-inf", "Infinity"][k] if k < 3 else str(k)),
    named("ids that are addresses", lambda k: f"10.0.0.{k}"),
    named("ids that are percents", lambda k: f"{k}%"),
    renamed("ends with a decimal point", lambda each: f"{each}.0", "is not in nodes.csv"),
]


def other_file(name: str, content: Content, says: str = "", suffix: str = "") -> Odd:
    """Return a case whose nodes are in a file of another name."""
    file = f"n{suffix or name}"
    return Odd(f"nodes in {name}", LP.replace("nodes.csv", file), {file: content}, says)


TO_SHELL = b"cos\nsystem\n(S'echo'\ntR."
UNREAD: dict[str, Content] = {
    ".zip": zip_of({"n.csv": TEXT.encode()}),
    ".csv.zip": zip_of({"n.csv": TEXT.encode()}),
    ".csv.bz2": bz2.compress(TEXT.encode()),
    ".csv.xz": lzma.compress(TEXT.encode()),
    ".pkl": TO_SHELL,
    ".feather": lambda path: pa.feather.write_feather(NODES, path),
    ".dta": b"x",
    ".jsonl": NODES.to_json(orient="records", lines=True),
    ".xls": b"\xd0\xcf\x11\xe0",
    ".ods": zip_of({"content.xml": b"<a/>"}),
}
FILES = [
    other_file("capital letters", TEXT, suffix=".CSV"),
    *(other_file(suffix, content, "the suffix gives the format") for suffix, content in UNREAD.items()),
    Odd("nodes at an address", LP.replace("nodes.csv", "https://127.0.0.1:9/nodes.csv"), says="127.0.0.1:9/nodes.csv"),
    Odd("nodes at a local address", LP.replace("nodes.csv", "file:///etc/passwd"), says="no .parquet files"),
    Odd("nodes by a pattern", LP.replace("nodes.csv", "'*.csv'"), says="no such file"),
    Odd("nodes in a home", LP.replace("nodes.csv", "'~/nodes.csv'"), says="no such file"),
    Odd("both tables on standard input", LP.replace("nodes.csv edges.csv", "- -"), says="is empty"),
    Odd("one file for both tables", LP.replace("edges.csv", "nodes.csv"), says="cannot find the two columns"),
]


def beside(name: str, values: pa.Array) -> Odd:
    """Return a case with a feature of a type."""
    table = pa.Table.from_pandas(NODES, preserve_index=False).append_column("odd", values)
    write: Callable[[Path], None] = lambda path: pa.parquet.write_table(table, path)  # noqa: E731
    return Odd(f"a feature of type {name}", LP_PARQUET.replace("lp", "lr"), {"odd.parquet": write}, factor=ANY)


def renamed_columns(path: Path) -> None:
    """Write the names of columns as pandas writes those of two levels."""
    table = pa.Table.from_pandas(NODES, preserve_index=False)
    pa.parquet.write_table(table.rename_columns([str(("a", name)) for name in table.column_names]), path)


def doubled_column(path: Path) -> None:
    """Write a column twice."""
    table = pa.Table.from_pandas(NODES, preserve_index=False)
    pa.parquet.write_table(table.append_column("age", table["age"]), path)


MORE_PARQUET = [
    Odd("encrypted Parquet", LP_PARQUET, {"odd.parquet": b"PARE" + bytes(200) + b"PARE"}, "cannot be read as .parquet"),
    Odd(
        "Feather named Parquet",
        LP_PARQUET,
        {"odd.parquet": lambda path: pa.feather.write_feather(NODES, path)},
        "cannot be read as .parquet",
    ),
    Odd("Parquet, a column twice", LP_PARQUET, {"odd.parquet": doubled_column}, "more than one column named 'age'"),
    Odd("Parquet, names of two levels", LP_PARQUET, {"odd.parquet": renamed_columns}, "has no column 'rent'"),
    Odd("Parquet, ids in the index", LP_PARQUET, {"odd.parquet": lambda path: NODES.set_index("id").to_parquet(path)}),
    Odd(
        "Parquet, truths to predict",
        LP_PARQUET,
        {"odd.parquet": parquet(NODES, rent=rents(lambda x: x > 1000))},
        factor=ANY,
    ),
    Odd(
        "Parquet, decimals of 60 digits to predict",
        LP_PARQUET,
        {"odd.parquet": parquet(NODES, rent=rents(lambda x: decimal.Decimal(10) ** 50 + int(x), pa.decimal256(60, 2)))},
        "column rent",
    ),
    beside("decimal256", pa.array([decimal.Decimal(k) for k in range(N)], pa.decimal256(60, 2))),
    beside("fixed_size_binary", pa.array([uuid.UUID(int=k).bytes for k in range(N)], pa.binary(16))),
    beside("large_list", pa.array([[k] for k in range(N)], pa.large_list(pa.int64()))),
    beside("large_binary", pa.array([b"x"] * N, pa.large_binary())),
    beside("date64", pa.array([datetime.date(2000, 1, 1 + k % 28) for k in range(N)], pa.date64())),
    beside("date32 in the year 9999", pa.array([datetime.date(9999, 12, 31)] * N)),
    beside("timestamp at its end", pa.array([2**63 - 1] * N, pa.int64()).cast(pa.timestamp("ns"))),
    beside("dictionary with nulls", pa.array([None, "a"] * (N // 2)).dictionary_encode()),
]

ENDS = list(PLAIN.itertuples(index=False))
NODE_TAGS = "".join(f'<node id="{each}"/>' for each in IDS)
EDGE_TAGS = "".join(f'<edge source="{u}" target="{v}"/>' for u, v in ENDS)
WEIGHT = '<key id="w" for="edge" attr.name="weight" attr.type="{}"/>'


def graphml(name: str, text: str | bytes, says: str = "", factor: float | None = 1.0) -> Odd:
    """Return a case whose edges are GraphML."""
    return format_of_edges(".graphml", name, text, says, factor)


def tagged(nodes: str = NODE_TAGS, edges: str = EDGE_TAGS, keys: str = "", default: str = "undirected") -> str:
    """Return GraphML of these parts."""
    space = 'xmlns="http://graphml.graphdrawing.org/xmlns"'
    return f'<graphml {space}>{keys}<graph edgedefault="{default}">{nodes}{edges}</graph></graphml>'


def matrix(kind: str, value: str = "") -> str:
    """Return the edges as a sparse matrix, the lower half of it."""
    row = {each: k + 1 for k, each in enumerate(IDS)}
    places = sorted({(max(row[u], row[v]), min(row[u], row[v])) for u, v in ENDS})
    body = "".join(f"{i} {j}{value}\n" for i, j in places)
    return f"%%MatrixMarket matrix coordinate {kind}\n% of districts\n{N} {N} {len(places)}\n{body}"


GRAPHS = [
    graphml("of directed edges", tagged(default="directed")),
    graphml(
        "without a namespace", f"<graphml><graph edgedefault='undirected'>{NODE_TAGS}{EDGE_TAGS}</graph></graphml>"
    ),
    graphml("a node twice", tagged(nodes=NODE_TAGS * 2)),
    graphml(
        "an unknown end", tagged(edges=f'{EDGE_TAGS}<edge source="zzz" target="{IDS[0]}"/>'), "is not in nodes.csv"
    ),
    graphml("an unknown type", tagged(keys=WEIGHT.format("complex")), "cannot be read as .graphml"),
    graphml(
        "text for a weight",
        tagged(keys=WEIGHT.format("double"), edges=EDGE_TAGS.replace("/>", '><data key="w">x</data></edge>')),
        "cannot be read as .graphml",
    ),
    graphml("an edge of many ends", tagged(edges=f"{EDGE_TAGS}<hyperedge/>"), "cannot be read as .graphml"),
    graphml("a second graph", tagged().replace("</graphml>", "<graph edgedefault='undirected'/></graphml>")),
    graphml("no edges", tagged(edges=""), factor=ANY),
    graphml("UTF-16", f"<?xml version='1.0' encoding='utf-16'?>{tagged()}".encode("utf-16")),
    *(
        format_of_edges(".mtx", kind, matrix(kind, value), factor=1.0)
        for kind, value in (
            ("pattern symmetric", ""),
            ("integer symmetric", " 1"),
            ("REAL SYMMETRIC", " 1.0"),
            ("real general", " 1.0"),
        )
    ),
    format_of_edges(".mtx", "skew-symmetric", matrix("real skew-symmetric", " 1.0"), "general or symmetric"),
    format_of_edges(".mtx", "Hermitian", matrix("complex hermitian", " 1.0 0.5"), "general or symmetric"),
    format_of_edges(".mtx", "complex numbers", matrix("complex general", " 1.0 0.5"), "general or symmetric"),
    format_of_edges(
        ".mtx", "fewer entries than said", matrix("real symmetric", " 1.0")[:-40], "cannot be read as .mtx"
    ),
    format_of_edges(".mtx", "no numbers", matrix("real symmetric", " nan"), "must be a finite number >= 0"),
    format_of_edges(".gal", "neighbours of themselves", f"0 {N} x id\n" + "".join(f"{i} 1\n{i}\n" for i in IDS)),
    format_of_edges(".gal", "its first line only", f"0 {N} x id\n", "must list 30 nodes by its first line, got 0"),
    format_of_edges(".gwt", "a distance below 0", f"0 {N} x id\n{IDS[0]} {IDS[1]} -1\n", "e.gwt"),
    edges("ends twice", csv(PLAIN.assign(source2=PLAIN["source"], target2=PLAIN["target"]))),
    edges("a column of dates", csv(PLAIN.assign(when="2024-01-01"))),
    edges("weights of percents", csv(PLAIN.assign(weight="50%"))),
    edges("a table of all pairs", csv(pd.DataFrame(0, index=IDS, columns=IDS).reset_index()), "edges.csv"),
    edges("lists of neighbours", "\n".join(",".join([each, *IDS[:3]]) for each in IDS), "more than one column"),
    edges("arrows", "\n".join(["edge", *(f"{u}->{v}" for u, v in ENDS)]), "cannot find the two columns"),
    edges("ends in the other order", csv(PLAIN[["target", "source"]])),
]

CONTAINERS = (*ENCODINGS, *MORE_IDS, *FILES, *MORE_PARQUET, *GRAPHS)
