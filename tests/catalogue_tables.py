"""Odd tables of the catalogue: text, numbers, ids, edges, areas and Parquet."""

import datetime
import gzip
import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import pandas as pd
import pyarrow as pa

from catalogue import AGE, ANY, IDS, LP, LR, MODEL, RENT, Content, Odd, cells, edges, nodes, parquet
from file_variants import NODES, PLAIN, N, csv

TEXT = csv(NODES)
HEAD, *ROWS = TEXT.splitlines()
WIDE = pd.concat([NODES, pd.DataFrame({f"c{k}": range(N) for k in range(500)})], axis=1)
ODD_TABLES = [
    nodes("nothing at all", b"", "nodes.csv is empty"),
    nodes("one line end", "\n", "nodes.csv is empty"),
    nodes("line ends only", "\r\n\r\n\n\n", "nodes.csv is empty"),
    nodes("a byte order mark only", b"\xef\xbb\xbf", "nodes.csv is empty"),
    nodes("a mark of UTF-16 only", b"\xff\xfe", "nodes.csv is empty"),
    nodes("half a character of UTF-16", b"\xff\xfei", "nodes.csv"),
    nodes("names of nodes only", HEAD, "has no rows"),
    nodes("names of nodes and a line end", HEAD + "\n", "has no rows"),
    nodes("one row", f"{HEAD}\n{ROWS[0]}\n", "is not in nodes.csv"),
    nodes("blanks only", "   \n  \n", "nodes.csv"),
    nodes("delimiters only", ",,,\n,,,\n", "nodes.csv"),
    nodes("NUL bytes only", bytes(500), "nodes.csv"),
    nodes("a NUL in a name", TEXT.replace("age", "a\0ge", 1)),
    nodes("a NUL in an id", TEXT.replace(IDS[0], IDS[0] + "\0"), "is not in nodes.csv"),
    nodes("a NUL in a number", TEXT.replace(str(AGE[2]), f"{AGE[2]}\0"), "'40.78\\x00' is not a finite number"),
    nodes("NULs at the end", TEXT + "\0\0\0", "nodes.csv"),
    nodes("binary", bytes(range(256)) * 20, "nodes.csv"),
    nodes("a picture", b"\x89PNG\r\n\x1a\n" + bytes(range(200)), "nodes.csv"),
    nodes("gzip without its suffix", b"\x1f\x8b\x08\0" + bytes(range(256)), "nodes.csv"),
    nodes("HTML", "<!DOCTYPE html>\n<html><body>404 not found, sorry</body></html>\n", "nodes.csv"),
    nodes("JSON", json.dumps(MODEL, indent=1), "nodes.csv"),
    nodes("UTF-8 with a mark", TEXT.encode("utf-8-sig")),
    nodes("UTF-8 with two marks", b"\xef\xbb\xbf" + TEXT.encode("utf-8-sig"), factor=ANY),
    nodes("UTF-16, big end first", TEXT.encode("utf-16-be")),
    nodes("UTF-32", TEXT.encode("utf-32")),
    nodes("UTF-32 cut short", TEXT.encode("utf-32")[:-3], "nodes.csv"),
    nodes("UTF-16 cut short", TEXT.encode("utf-16")[:-1], "nodes.csv"),
    nodes("Mac line ends", TEXT.replace("\n", "\r")),
    nodes("mixed line ends", "\n".join(f"{line}\r" * (k % 2) or line for k, line in enumerate(TEXT.split("\n")))),
    nodes("no last line end", TEXT.rstrip()),
    nodes("blank lines in between", TEXT.replace("\n", "\n\n")),
    nodes("blank lines first", "\n\n\n" + TEXT),
    nodes("blanks at line ends", TEXT.replace("\n", " \n")),
    nodes("a form feed at the end", TEXT + "\x0c", "nodes.csv"),
    nodes("an end of file of DOS", TEXT + "\x1a", "nodes.csv"),
    nodes("a quote that never ends", TEXT + '"', "nodes.csv"),
    nodes("a quote that never ends, early", TEXT.replace("\n", '\n"', 1), "nodes.csv"),
    nodes("a quote inside a cell", TEXT.replace("D13", 'D"13'), "is not in nodes.csv"),
    nodes("quotes in quotes", csv(NODES.assign(town='the "old" one'))),
    nodes("a line break in a cell", csv(NODES.assign(town="old\ntown"))),
    nodes("a line break in a name", csv(NODES.rename(columns={"age": "a\nge"}))),
    nodes("a comment first", "# districts\n" + TEXT, "nodes.csv"),
    nodes("a cell too many", TEXT.replace("\n", ",1\n", 3), "nodes.csv"),
    nodes("a name of 100 kB", TEXT.replace("age", "a" * 100_000, 1)),
    nodes(
        "a name of 100 kB, asked for another",
        TEXT.replace("age", "a" * 100_000, 1),
        "no column 'zzz'",
        command=f"{LP} --ignore zzz",
    ),
    nodes("a cell of 100 kB", csv(NODES.assign(town="x" * 100_000))),
    nodes("a cell of 300 kB", csv(NODES.assign(town=["x" * 300_000, *"abc" * 9, "y", "z"]))),
    nodes("an id of 100 kB", TEXT.replace(IDS[0], "x" * 100_000), "edges.csv"),
    nodes(
        "a name twice", csv(NODES.assign(other=1).rename(columns={"other": "age"})), "more than one column named 'age'"
    ),
    nodes(
        "a target twice",
        csv(NODES.assign(other=1).rename(columns={"other": "rent"})),
        "more than one column named 'rent'",
    ),
    nodes("names that differ by case", csv(NODES.assign(Rent=1.5))),
    nodes("names that differ by blanks", csv(NODES.assign(**{"rent ": 1.5})), "more than one column named 'rent'"),
    nodes("a column without a name", csv(NODES.assign(**{"": 1.5})), "has cells but no name"),
    nodes("an empty column without a name", csv(NODES.assign(**{"": ""}))),
    nodes("500 columns", csv(WIDE)),
    nodes("500 empty columns", csv(pd.concat([NODES, pd.DataFrame(columns=[f"c{k}" for k in range(500)])], axis=1))),
    nodes("no column but ids", csv(NODES[["id"]]), "has no column 'rent'"),
    nodes("one column of one name", "rent\n1\n2\n\n", "nodes.csv"),
    nodes("a name that is a formula", csv(NODES.rename(columns={"age": "=1+1"}))),
    nodes("names in Chinese", csv(NODES.rename(columns={"age": "年龄"}))),
    nodes("a name of a format field", csv(NODES.rename(columns={"age": "{0!r}{x}%s%n"}))),
    nodes("a name of markup", csv(NODES.rename(columns={"age": "[red]age[/blue]"}))),
    nodes(
        "ids under a name of a result",
        csv(NODES.rename(columns={"id": "prediction"})),
        "has the name of a result",
    ),
    nodes("a feature under a name of a result", csv(NODES.rename(columns={"age": "prediction"}))),
    nodes("rows in another order", csv(NODES[::-1]), factor=ANY),
    nodes("the target empty", csv(NODES.assign(rent=np.nan)), "no labelled node"),
    nodes("the target known", csv(NODES.assign(rent=AGE)), "nothing to predict"),
    nodes("the target constant", csv(NODES.assign(rent=RENT * 0 + 7)), "constant"),
    nodes("the target of one value", csv(NODES.assign(rent=RENT.where(RENT.max() == RENT))), "a single labelled node"),
    nodes("the target of dates", csv(NODES.assign(rent=pd.Series(["2024-01-31", None] * 15))), "contains dates"),
    nodes("the target of times", csv(NODES.assign(rent=pd.Series(["12:30", None] * 15))), "nodes.csv"),
    nodes("the target of one class", csv(NODES.assign(rent=pd.Series(["yes", None] * 15))), "column rent"),
    nodes(
        "the target of as many classes as labels",
        csv(NODES.assign(rent=pd.Series([f"w{k}" if k % 2 else None for k in range(N)]))),
        "column rent",
    ),
    nodes(
        "the target of truths",
        csv(NODES.assign(rent=pd.Series(["True", "False", None] * 10))),
        factor=ANY,
        command="predict nodes.csv edges.csv -t rent --method lp",
    ),
    nodes("ids twice", csv(NODES.assign(id=[*IDS[:-1], IDS[0]])), "is not unique"),
    nodes("ids all alike", csv(NODES.assign(id="x")), "nodes.csv"),
    nodes("an id missing", csv(NODES.assign(id=["", *IDS[1:]])), "the node id is missing"),
    nodes("an id of blanks", csv(NODES.assign(id=["  ", *IDS[1:]])), "the node id is missing"),
]

NUMBERS = [
    *cells(
        "rent",
        [
            *((cell, "not a finite number") for cell in ("inf", "-inf", "Infinity", "1e400", "-1e999")),
            *((cell, "") for cell in ("NaN", "nan", "NA", "N/A", "null", "None", "", "  ", "<NA>", "#N/A", "-nan")),
            *(
                (cell, "is not a finite number")
                for cell in (
                    "abc",
                    "1_000",
                    "0x1F",
                    "1e",
                    "--5",
                    "5-",
                    "1/2",
                    "1:30",
                    "\uff15\uff15",
                    "٣",
                    "1 2 3",
                    "true",
                    "1d5",
                    "१",
                )
            ),
            *((cell, "") for cell in ("+5", "5.", ".5", "1E3", "1e-400", "-0", "5e-324")),
            *(
                (cell, "whole numbers beyond 2^53")
                for cell in ("9007199254740993", "-9007199254740993", "123456789012345678901")
            ),
            ("9007199254740992", ""),
            *(
                (cell, "must be of a size that can be squared")
                for cell in ("1e308", "-1e200", "1.7976931348623157e308")
            ),
            ("9" * 400, "not a finite number"),
            ("1" + "0" * 30, "whole numbers beyond 2^53"),
            ("0." + "1" * 5000, ""),
        ],
    ),
    *cells(
        "age",
        [
            *((cell, "is not a finite number") for cell in ("inf", "-Infinity", "1e400", "abc", "0x1F", "1_000")),
            *((cell, "") for cell in ("NaN", "", "NA", "+5", ".5", "1e-400", "5e-324")),
            *((cell, "must be of a size that can be squared") for cell in ("1e308", "-1e200")),
        ],
        LR,
    ),
    *(
        Odd(
            f"{column} in units of {unit:g}",
            LR,
            {"nodes.csv": csv(NODES.assign(**{column: NODES[column] * unit}))},
            says,
            unit if column == "rent" else 1.0,
        )
        for column in ("rent", "age")
        for unit, says in (
            (1e-300, "of a size that can be squared"),
            (1e-60, ""),
            (1e-12, ""),
            (1e12, ""),
            (1e60, ""),
            (1e290, "of a size that can be squared"),
        )
    ),
    Odd("rent shifted by 1e9", LP, {"nodes.csv": csv(NODES.assign(rent=RENT + 1e9))}, factor=ANY),
    Odd("rent shifted by 1e15", LP, {"nodes.csv": csv(NODES.assign(rent=(RENT + 1e15).round()))}, factor=ANY),
    Odd("a feature of zeros", LR, {"nodes.csv": csv(NODES.assign(zero=0))}),
    Odd("a feature twice under two names", LR, {"nodes.csv": csv(NODES.assign(again=AGE))}, factor=ANY),
    Odd("a feature that is empty", LR, {"nodes.csv": csv(NODES.assign(gone=np.nan))}),
    Odd("a feature known once", LR, {"nodes.csv": csv(NODES.assign(gone=[1.5, *[np.nan] * 29]))}, factor=ANY),
    Odd("a feature that is the target", LR, {"nodes.csv": csv(NODES.assign(same=RENT.fillna(0)))}, factor=ANY),
    Odd("a feature of dates", LR, {"nodes.csv": csv(NODES.assign(day="2024-01-31"))}, factor=ANY),
    Odd("a feature of truths", LR, {"nodes.csv": csv(NODES.assign(flag=[True, False] * 15))}, factor=ANY),
    Odd("a feature of names", LR, {"nodes.csv": csv(NODES.assign(name=[f"n{k}" for k in range(N)]))}, factor=ANY),
    *(
        Odd(
            f"skewed by exp({s:g} z), {t}",
            f"predict nodes.csv edges.csv -t rent --method field --transform {t} -o out.csv",
            {"nodes.csv": csv(NODES.assign(rent=np.exp(s * (RENT - 1000) / 200)))},
            "too skewed",
        )
        for s in (60.0, 300.0)
        for t in ("log", "auto", "box-cox", "yeo-johnson")
    ),
    Odd(
        "a logarithm of negative numbers",
        "predict nodes.csv edges.csv -t rent --transform log -o out.csv",
        {"nodes.csv": csv(NODES.assign(rent=RENT - 1000))},
        "needs positive values",
    ),
    Odd(
        "a logarithm of zero",
        "predict nodes.csv edges.csv -t rent --transform log -o out.csv",
        {"nodes.csv": csv(NODES.assign(rent=RENT.where(RENT.max() != RENT, 0)))},
        "needs positive values",
    ),
]


def named(name: str, form: Callable[[int], str], says: str = "", **more: Any) -> Odd:
    """Return a case whose ids are written in a form in both tables."""
    to = {each: form(k) for k, each in enumerate(IDS)}
    files: dict[str, Content] = {
        "nodes.csv": csv(NODES.assign(id=IDS.map(to))),
        "edges.csv": csv(PLAIN.map(to.__getitem__)),
    }
    return Odd(name, files=files, says=says, **more)


def renamed(name: str, form: Callable[[str], str], says: str = "", **more: Any) -> Odd:
    """Return a case whose ids are written in another form in the table of edges alone."""
    return edges(name, csv(PLAIN.map(form)), says, **more)


ODD_IDS = [
    named("ids that are whole numbers", str),
    named("ids below zero", lambda k: str(-k - 1)),
    named("ids with decimals", lambda k: str(k + 0.5)),
    named("ids beyond 64 bits", lambda k: str(10**30 + k)),
    named("ids of 2^63", lambda k: str(2**63 - 15 + k)),
    named("ids that differ by case", lambda k: ("a" if k % 2 else "A") * (k // 2 + 1)),
    named("ids that differ by inner blanks", lambda k: f"a{' ' * k}b"),
    named("ids that differ by outer blanks", lambda k: f"a{' ' * k}", "is not unique"),
    named("ids that differ by zeros", lambda k: "0" * k + "7"),
    named("ids that differ by normal form", lambda k: ("\u00e9" if k % 2 else "e\u0301") + str(k // 2)),
    named("ids that differ by a joiner", lambda k: "a" + "\u200b" * k),
    named("ids of emoji", lambda k: chr(0x1F600 + k)),
    named("ids right to left", lambda k: f"\u202eabc{k}"),
    named("ids that steer terminals", lambda k: f"\x1b[2J{k}"),
    named("ids that are formulas", lambda k: f"=cmd|'/c calc'!A{k}"),
    named("ids that are markup", lambda k: f"<script>alert({k})</script>"),
    named("ids that are paths", lambda k: f"../../{k}"),
    named("ids with commas", lambda k: f"a,{k}"),
    named("ids with quotes", lambda k: f'a"{k}'),
    named("ids with line breaks", lambda k: f"a\n{k}"),
    named("ids of 10 kB", lambda k: "x" * 10_000 + str(k)),
    named("ids that are dates", lambda k: f"2024-01-{k + 1:02d}"),
    named("ids like 1e3", lambda k: f"{k + 1}e3"),
    named("ids that are truths", lambda k: ["true", "false"][k % 2] + "s" * (k // 2)),
    named("ids like missing values", lambda k: ["NA", "nan", "null", "None", "N/A", "NaN"][k] if k < 6 else str(k)),
    named("ids of hexadecimal digits", lambda k: f"{k:#x}"),
    named("ids of surrogates", lambda k: f"a{k}\ufffe"),
    renamed("ends in small letters", str.lower),
    renamed("ends with blanks", lambda each: f"\t{each} "),
    renamed("ends in another normal form", lambda each: each + "\u0301", "is not in nodes.csv"),
    renamed("ends in quotes", lambda each: f"'{each}'", "is not in nodes.csv"),
    renamed("ends with a joiner", lambda each: each + "\u200b", "is not in nodes.csv"),
    renamed("ends with a NUL", lambda each: each + "\0", "is not in nodes.csv"),
    renamed("ends by row", lambda each: str(list(IDS).index(each)), "is not in nodes.csv"),
    renamed("ends by no name", lambda _: "", "the node id is missing"),
    renamed("ends all the same", lambda _: IDS[0], factor=ANY),
]


def weighted(
    name: str, form: Callable[[int], object], says: str = "", *, factor: float | None = 1.0, command: str = LP
) -> Odd:
    """Return a case whose edges have weights; unless said otherwise all alike, which changes nothing."""
    return edges(
        name,
        csv(PLAIN.assign(weight=pd.Series([form(k) for k in range(len(PLAIN))], dtype=object))),
        says,
        factor=factor,
        command=command,
    )


ODD_EDGES = [
    edges("nothing", b"", "edges.csv is empty"),
    edges("names only", "source,target\n", factor=ANY),
    edges("one column", "source\n" + "\n".join(PLAIN["source"]), "edges.csv"),
    edges("no known names", "a,b,c,d\n1,2,3,4\n", "the two columns with the ends"),
    edges("one end missing", csv(PLAIN.assign(target="")), "the node id is missing"),
    edges("self loops only", csv(PLAIN.assign(target=PLAIN["source"])), factor=ANY),
    edges("every edge three times", csv(pd.concat([PLAIN] * 3))),
    edges("every edge in both directions", csv(pd.concat([PLAIN, PLAIN.set_axis(["target", "source"], axis=1)]))),
    edges("unknown nodes only", csv(PLAIN.map(lambda each: f"x{each}")), "is not in nodes.csv"),
    edges(
        "unknown nodes only, to drop",
        csv(PLAIN.map(lambda each: f"x{each}")),
        "no edge joins two nodes",
        command=f"{LP} --unknown drop",
    ),
    edges("a table of nodes again", csv(NODES), "edges.csv"),
    edges("two columns of one name", csv(PLAIN).replace("target", "source", 1), "more than one column named 'source'"),
    edges("50,000 parallel edges", csv(pd.concat([PLAIN] * 1250))),
    weighted("weights of 1", lambda _: 1),
    weighted("weights of 1e308", lambda _: 1e308),
    weighted("weights of 1e-300", lambda _: 1e-300),
    weighted("weights of 2.3e-308", lambda _: 2.3e-308),
    weighted("denormal weights", lambda _: 5e-324, "weights must be"),
    weighted("weights of 1e-310", lambda _: 1e-310, "weights must be"),
    weighted("weights over 600 orders", lambda k: 1e-300 if k % 2 else 1e300, "weights must be"),
    weighted("weights of 0", lambda _: 0, factor=ANY),
    weighted("some weights of 0", lambda k: k % 2, factor=ANY),
    weighted("a weight below 0", lambda k: -1 if k == 3 else 1, "must be a finite number >= 0"),
    weighted("a weight of -0", lambda k: "-0.0" if k == 3 else 1, factor=ANY),
    weighted("a weight missing", lambda k: "" if k == 3 else 1, "must be a finite number >= 0"),
    *(
        weighted(f"a weight of {w}", lambda k, w=w: w if k == 3 else 1, "must be a finite number >= 0")  # type: ignore[misc]
        for w in ("inf", "-inf", "1e400", "nan")
    ),
    weighted("a weight of text", lambda k: "strong" if k == 3 else 1, "edges.csv"),
    weighted(
        "weights of text", lambda _: "strong", command=f"{LP} --weight weight", says="must be a finite number >= 0"
    ),
    weighted("weights of truths", lambda _: "true"),
    weighted("weights beyond 2^53", lambda _: 2**60),
    weighted("weights with units", lambda _: "5 km", "edges.csv"),
    weighted("distances of 0", lambda _: 0, command=f"{LP} --weight-is distance", says="edges.csv"),
    weighted("a distance of 0", lambda k: 0 if k == 3 else 1, command=f"{LP} --weight-is distance"),
    weighted("distances of 1e-308", lambda _: 1e-308, command=f"{LP} --weight-is distance"),
    weighted("distances of 1e307", lambda _: 1e307, command=f"{LP} --weight-is distance"),
    weighted("distances of 1e308", lambda _: 1e308, "give them in another unit", command=f"{LP} --weight-is distance"),
]

SQUARE = np.array([[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]])
GEO: dict[str, Any] = {
    "type": "FeatureCollection",
    "features": [
        {
            "type": "Feature",
            "properties": {"id": each},
            "geometry": {"type": "Polygon", "coordinates": [(SQUARE + np.array([k, 0])).tolist()]},
        }
        for k, each in enumerate(IDS)
    ],
}


def shapes(name: str, content: Any, says: str = "") -> Odd:
    """Return a case with a file of areas."""
    text = content if isinstance(content, str | bytes) else json.dumps(content)
    return Odd(
        f"areas: {name}",
        "predict nodes.csv --shapes a.geojson -t rent --method lp -o out.csv",
        {"a.geojson": text},
        says,
        ANY,
    )


def features(**changed: Any) -> Any:
    """Return the areas, the first of which is changed."""
    return {**GEO, "features": [{**GEO["features"][0], **changed}, *GEO["features"][1:]]}


AREAS = [
    shapes("as they are", GEO),
    shapes("empty", "", "a.geojson"),
    shapes("no JSON", "hello", "a.geojson"),
    shapes("a list", [], "a.geojson"),
    shapes("no areas", {**GEO, "features": []}, "a.geojson"),
    shapes("deep", "[" * 100_000, "a.geojson"),
    shapes(
        "deep coordinates",
        features(geometry={"type": "Polygon", "coordinates": json.loads("[" * 400 + "]" * 400)}),
        "a.geojson",
    ),
    shapes("one without a shape", features(geometry=None), "a.geojson"),
    shapes("one with an empty shape", features(geometry={"type": "Polygon", "coordinates": []}), "a.geojson"),
    shapes("one of an unknown kind", features(geometry={"type": "Blob", "coordinates": []}), "a.geojson"),
    shapes(
        "one with text for a coordinate",
        features(geometry={"type": "Polygon", "coordinates": [[["x", "y"]]]}),
        "a.geojson",
    ),
    shapes("one a point", features(geometry={"type": "Point", "coordinates": [0, 0]}), "a.geojson"),
    shapes(
        "one that crosses itself",
        features(geometry={"type": "Polygon", "coordinates": [[[0, 0], [1, 1], [1, 0], [0, 1], [0, 0]]]}),
    ),
    shapes("one without an id", features(properties={}), "a.geojson"),
    shapes("one with a list for an id", features(properties={"id": [1]}), "a.geojson"),
    shapes(
        "coordinates of 1e308",
        features(geometry={"type": "Polygon", "coordinates": [[[0, 0], [1e308, 0], [1e308, 1e308], [0, 0]]]}),
        "",
    ),
    shapes("cut short", json.dumps(GEO)[:700], "a.geojson"),
]

NUMBERED = pa.array(range(1, N + 1))
NUMERIC = (pa.int8(), pa.int16(), pa.int32(), pa.uint8(), pa.uint32(), pa.uint64(), pa.float32(), pa.float64())
TYPES: dict[str, tuple[pa.Array, str]] = {
    **{str(kind): (NUMBERED.cast(kind), "") for kind in NUMERIC},
    "float16": (pa.array(np.arange(1, N + 1, dtype=np.float16)), ""),
    "decimal": (NUMBERED.cast(pa.decimal128(20, 0)), ""),
    "string": (NUMBERED.cast(pa.string()), ""),
    "large_string": (NUMBERED.cast(pa.large_string()), ""),
    "dictionary": (NUMBERED.cast(pa.string()).dictionary_encode(), ""),
    "dictionary of numbers": (NUMBERED.dictionary_encode(), ""),
    "date": (NUMBERED.cast(pa.int32()).cast(pa.date32()), "edges"),
    "timestamp": (NUMBERED.cast(pa.timestamp("ns")), "edges"),
    "timestamp with zone": (NUMBERED.cast(pa.timestamp("us", "Europe/Berlin")), "edges"),
    "time": (NUMBERED.cast(pa.time64("us")), "edges"),
    "duration": (NUMBERED.cast(pa.duration("s")), ""),
    "binary": (NUMBERED.cast(pa.string()).cast(pa.binary()), ""),
    "binary, no text": (pa.array([bytes([255, k]) for k in range(N)]), "odd.parquet"),
    "bool": (pa.array([k % 2 == 0 for k in range(N)]), "odd.parquet"),
    "null": (pa.nulls(N), "the node id is missing"),
    "list": (pa.array([[k] for k in range(N)]), "ids of type list"),
    "struct": (pa.array([{"a": k} for k in range(N)]), "ids of type struct"),
    "map": (pa.array([[("a", k)] for k in range(N)], pa.map_(pa.string(), pa.int64())), "ids of type map"),
    "float with NaN": (pa.array([float("nan"), *range(1, N)]), "the node id is missing"),
    "float with infinity": (pa.array([float("inf"), *range(1, N)]), "odd.parquet"),
    "float beyond 2^63": (pa.array([1e300, *range(1, N)]), "odd.parquet"),
}


def parquet_bytes(frame: pd.DataFrame) -> bytes:
    """Return a table as the content of a Parquet file."""
    stream = io.BytesIO()
    frame.to_parquet(stream)
    return stream.getvalue()


def zip_of(files: dict[str, bytes]) -> bytes:
    """Return the content of an archive."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return stream.getvalue()


BY_ROW = csv(PLAIN.map(lambda each: list(IDS).index(each) + 1))
LP_PARQUET = LP.replace("nodes.csv", "odd.parquet")


def rents(form: Callable[[float], object], kind: pa.DataType | None = None) -> pa.Array:
    """Return the rents in another form, the missing ones still missing."""
    return pa.array([None if np.isnan(x) else form(x) for x in RENT], kind)


COLUMN_TYPES: dict[str, tuple[pa.Array, str]] = {
    "decimal": (pa.array(RENT.round(2), from_pandas=True).cast(pa.decimal128(20, 4), safe=False), ""),
    "float32": (pa.array(RENT, from_pandas=True).cast(pa.float32()), ""),
    "text": (rents(str), ""),
    "list": (rents(lambda x: [x]), "column rent"),
    "struct": (rents(lambda x: {"a": x}), "column rent"),
    "timestamp": (rents(int).cast(pa.timestamp("s")), "column rent"),
    "duration": (rents(int).cast(pa.duration("s")), "column rent"),
    "binary": (rents(lambda _: b"\xff"), "column rent"),
    "uint64 beyond 2^53": (rents(lambda x: 2**64 - 1 - int(x), pa.uint64()), "column rent"),
    "infinity": (pa.array([float("inf"), *RENT[1:]], from_pandas=True), "not a finite number"),
    "null": (pa.nulls(N), "no labelled node"),
}
PARQUET = [
    *(
        Odd(
            f"Parquet ids of type {kind}",
            LP_PARQUET,
            {"odd.parquet": parquet(NODES, id=ids), "edges.csv": BY_ROW},
            says,
        )
        for kind, (ids, says) in TYPES.items()
    ),
    *(
        Odd(
            f"a target of type {kind}",
            LP_PARQUET,
            {"odd.parquet": parquet(NODES, rent=values)},
            says,
            ANY if kind == "float32" else 1.0,
        )
        for kind, (values, says) in COLUMN_TYPES.items()
    ),
    *(
        Odd(
            f"a feature of type {kind}",
            LP_PARQUET.replace("lp", "lr"),
            {"odd.parquet": parquet(NODES.assign(odd=0), odd=cells)},
            factor=ANY,
        )
        for kind, (cells, _) in TYPES.items()
        if "infinity" not in kind and "2^63" not in kind
    ),
    Odd(
        "a feature of type float with infinity",
        LP_PARQUET.replace("lp", "lr"),
        {"odd.parquet": parquet(NODES.assign(odd=0), odd=TYPES["float with infinity"][0])},
        "not a finite number",
    ),
    Odd(
        "a feature of type float beyond squares",
        LP_PARQUET.replace("lp", "lr"),
        {"odd.parquet": parquet(NODES.assign(odd=0), odd=TYPES["float beyond 2^63"][0])},
        "of a size that can be squared",
    ),
    Odd("Parquet without rows", LP_PARQUET, {"odd.parquet": parquet(NODES[:0])}, "has no rows"),
    Odd("Parquet without columns", LP_PARQUET, {"odd.parquet": parquet(NODES[[]])}, "odd.parquet"),
    Odd(
        "Parquet cut short",
        LP_PARQUET,
        {"odd.parquet": parquet_bytes(NODES)[:500]},
        "cannot be read as .parquet",
    ),
    Odd("CSV named Parquet", LP_PARQUET, {"odd.parquet": TEXT}, "cannot be read as .parquet"),
    Odd("Parquet named CSV", files={"nodes.csv": NODES.to_parquet}, says="nodes.csv"),
    Odd("nothing named Parquet", LP_PARQUET, {"odd.parquet": b""}, "cannot be read as .parquet"),
]


def workbook(*sheets: list[list[object]], name: str = "nodes") -> Callable[[Path], None]:
    """Return what writes a workbook with these rows of cells."""

    def write(path: Path) -> None:
        book = openpyxl.Workbook()
        book.remove(book.worksheets[0])
        for k, rows in enumerate(sheets):
            sheet = book.create_sheet(f"{name}{k}")
            for row in rows:
                sheet.append(row)
        book.save(path)

    return write


def excel(name: str, content: Content, says: str = "", factor: float | None = 1.0) -> Odd:
    """Return a case with a table of nodes in a workbook."""
    return Odd(f"Excel: {name}", LP.replace("nodes.csv", "nodes.xlsx"), {"nodes.xlsx": content}, says, factor)


def format_of_edges(suffix: str, name: str, content: Content, says: str = "", factor: float | None = ANY) -> Odd:
    """Return a case with edges in another format."""
    return Odd(f"{suffix}: {name}", LP.replace("edges.csv", f"e{suffix}"), {f"e{suffix}": content}, says, factor)


SHEET: list[list[object]] = [
    ["id", "age", "rent"],
    *NODES.astype(object).where(NODES.notna(), None).to_numpy().tolist(),
]
ZIPPED = gzip.compress(TEXT.encode())
GZ = LP.replace("nodes.csv", "nodes.csv.gz")
LAUGHS = "".join(f'<!ENTITY l{k} "{f"&l{k - 1};" * 10}">' for k in range(1, 10))
BOMB = f'<!DOCTYPE x [<!ENTITY l0 "lol">{LAUGHS}]><graphml><graph><node id="&l9;"/></graph></graphml>'
THIEF = '<!DOCTYPE x [<!ENTITY f SYSTEM "file:///etc/passwd">]><graphml><graph><node id="&f;"/></graph></graphml>'
HEAD_MTX = "%%MatrixMarket matrix coordinate real symmetric\n"
FORMATS = [
    excel("as it is", workbook(SHEET)),
    excel("empty", workbook([]), "is empty"),
    excel("names only", workbook(SHEET[:1]), "has no rows"),
    excel("no sheet for cells", workbook([[]], SHEET), "is empty"),
    excel("rows of blanks in between", workbook([row for each in SHEET for row in (each, [])])),
    excel("formulas that were never computed", workbook([*SHEET[:-1], [IDS.iloc[-1], "=1+1", None]]), factor=ANY),
    excel(
        "an error of Excel",
        workbook([*SHEET[:-1], [IDS.iloc[-1], "#DIV/0!", None]]),
        "'#DIV/0!' is not a finite number",
    ),
    excel(
        "a date among numbers", workbook([*SHEET[:-1], [IDS.iloc[-1], datetime.date(2024, 1, 1), None]]), "column age"
    ),
    excel("truths", workbook([[*row, k % 2 == 0] if k else [*row, "flag"] for k, row in enumerate(SHEET)])),
    excel("a row that is too long", workbook([*SHEET[:-1], [*SHEET[-1], 1, 2, 3]]), "has cells but no name"),
    excel("a row that is too short", workbook([*SHEET[:-1], SHEET[-1][:1]]), factor=ANY),
    excel("an old workbook", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "wrong suffix"),
    excel("an archive of something else", zip_of({"a.txt": b"hello"}), "wrong suffix"),
    excel("an archive of nothing", zip_of({}), "wrong suffix"),
    excel("text", TEXT, "wrong suffix"),
    Odd("gzip as it is", GZ, {"nodes.csv.gz": ZIPPED}),
    Odd(
        "gzip in two parts", GZ, {"nodes.csv.gz": gzip.compress(TEXT[:50].encode()) + gzip.compress(TEXT[50:].encode())}
    ),
    Odd("gzip cut short", GZ, {"nodes.csv.gz": ZIPPED[:-30]}, "nodes.csv.gz cannot be read"),
    Odd("gzip with garbage after it", GZ, {"nodes.csv.gz": ZIPPED + b"garbage"}, "nodes.csv.gz cannot be read"),
    Odd(
        "gzip with a wrong sum",
        GZ,
        {"nodes.csv.gz": ZIPPED[:-8] + bytes(4) + ZIPPED[-4:]},
        "nodes.csv.gz cannot be read",
    ),
    Odd("gzip of gzip", GZ, {"nodes.csv.gz": gzip.compress(ZIPPED)}, "nodes.csv.gz"),
    Odd("gzip of nothing", GZ, {"nodes.csv.gz": gzip.compress(b"")}, "is empty"),
    Odd("text named gzip", GZ, {"nodes.csv.gz": TEXT}, "nodes.csv.gz cannot be read"),
    Odd("gzip of 20 MB of zeros", GZ, {"nodes.csv.gz": gzip.compress(bytes(20_000_000))}, "nodes.csv.gz"),
    format_of_edges(".graphml", "empty", "", "cannot be read as .graphml"),
    format_of_edges(".graphml", "no XML", "hello", "cannot be read as .graphml"),
    format_of_edges(".graphml", "no graph", "<graphml/>", "e.graphml"),
    format_of_edges(".graphml", "another XML", "<html><body/></html>", "e.graphml"),
    format_of_edges(".graphml", "a billion laughs", BOMB, "e.graphml"),
    format_of_edges(".graphml", "an entity from elsewhere", THIEF, "e.graphml"),
    format_of_edges(".graphml", "deep", "<a>" * 50_000, "cannot be read as .graphml"),
    format_of_edges(
        ".graphml", "an edge to nowhere", '<graphml><graph><edge source="a"/></graph></graphml>', "e.graphml"
    ),
    format_of_edges(".mtx", "empty", "", "e.mtx"),
    format_of_edges(".mtx", "no header", "1 2 3\n", "e.mtx"),
    format_of_edges(".mtx", "no entries", f"{HEAD_MTX}30 30 0\n"),
    format_of_edges(".mtx", "of another size", f"{HEAD_MTX}31 31 1\n2 1 1.0\n", "31 rows"),
    format_of_edges(
        ".mtx", "not square", "%%MatrixMarket matrix coordinate real general\n30 29 1\n2 1 1.0\n", "square"
    ),
    format_of_edges(".mtx", "an entry outside", f"{HEAD_MTX}30 30 1\n31 1 1.0\n", "e.mtx"),
    format_of_edges(".mtx", "an entry at 0", f"{HEAD_MTX}30 30 1\n0 1 1.0\n", "e.mtx"),
    format_of_edges(".mtx", "below zero", f"{HEAD_MTX}30 30 1\n2 1 -1.0\n", "must be a finite number >= 0"),
    format_of_edges(".mtx", "infinite", f"{HEAD_MTX}30 30 1\n2 1 inf\n", "must be a finite number >= 0"),
    format_of_edges(".mtx", "a billion entries", f"{HEAD_MTX}30 30 1000000000000\n2 1 1.0\n", "e.mtx"),
    format_of_edges(".mtx", "a billion rows", f"{HEAD_MTX}{10**12} {10**12} 1\n2 1 1.0\n", "e.mtx"),
    format_of_edges(".mtx", "a bracket", "%%MatrixMarket matrix coordinate pattern symmetric\n30 30 1\n2 1}", "e.mtx"),
    format_of_edges(".mtx", "a NUL", f"{HEAD_MTX}30 30 1\n2 1\0 1.0\n", "e.mtx"),
    format_of_edges(
        ".mtx", "complex", "%%MatrixMarket matrix coordinate complex symmetric\n30 30 1\n2 1 1.0 1.0\n", "e.mtx"
    ),
    format_of_edges(".mtx", "dense", "%%MatrixMarket matrix array real general\n30 30\n" + "1\n" * 900, "sparse"),
    format_of_edges(".gal", "empty", "", "e.gal"),
    format_of_edges(".gal", "no numbers", "hello world\n", "e.gal"),
    format_of_edges(".gal", "more neighbours than said", f"0 1 x id\n{IDS[0]} 5\n{IDS[1]}\n", "e.gal"),
    format_of_edges(".gal", "a negative count", f"0 1 x id\n{IDS[0]} -1\n{IDS[1]}\n", "e.gal"),
    format_of_edges(".gwt", "empty", "", "e.gwt"),
    format_of_edges(".gwt", "two columns", f"0 30 x id\n{IDS[0]} {IDS[1]}\n", "expected two ids and a number"),
    format_of_edges(".gwt", "text for a distance", f"0 30 x id\n{IDS[0]} {IDS[1]} far\n", "e.gwt"),
    format_of_edges(".gml", "an unknown format", "graph []", "suffix"),
    format_of_edges(".json", "an unknown format", "{}", "e.json"),
    format_of_edges("", "no format", csv(PLAIN), "suffix"),
    Odd("nothing on standard input", LP.replace("nodes.csv", "-"), says="is empty"),
]

TABLES = (*ODD_TABLES, *NUMBERS, *ODD_IDS, *ODD_EDGES, *AREAS, *PARQUET, *FORMATS)
