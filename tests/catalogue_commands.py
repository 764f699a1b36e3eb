"""Odd commands of the catalogue: options, models, and what is no file among inputs and outputs."""

import json
import zlib
from collections.abc import Iterable
from typing import Any

from catalogue import ANY, LP, MODEL, SAMPLE, SPECIAL, WITH_MODEL, Content, Odd, page, refused, sealed, special
from file_variants import NODES, csv

COLUMN_OPTIONS = ("--id", "--source", "--dest", "--weight", "--ignore", "--group", "--target")
PREDICT = "predict nodes.csv edges.csv --target rent -o out.csv --report out.html"
PREDICT_OPTIONS = refused(
    [
        *(
            (f"{PREDICT} --method lp --alpha {a}", "--alpha must be in [0, 1)")
            for a in ("1", "-0.1", "nan", "inf", "1e300")
        ),
        (f"{PREDICT} --alpha 0.9999999999999999", "too close to 1 to compute with"),
        *((f"{PREDICT} --alpha {a}", "Invalid value for '--alpha'") for a in ("x", "''", "0,5", "1/2")),
        *(
            (f"{PREDICT} --interval {p}", "--interval must be between 0 and 1")
            for p in ("0", "1", "-1", "90", "nan", "inf", "1e-300")
        ),
        (f"{PREDICT} --interval 0.9999999999999999", "--interval must be between 0 and 1"),
        (f"{PREDICT} --interval 90%", "Invalid value for '--interval'"),
        *((f"{PREDICT} --folds {k}", "--folds must be at least 2") for k in ("1", "0", "-5")),
        *((f"{PREDICT} --folds {k}", "Invalid value for '--folds'") for k in ("2.5", "many")),
        *((f"{PREDICT} --seed {s}", "Invalid value for '--seed'") for s in ("-1", "0.5", "x")),
        *((f"{PREDICT} --suggest {k}", "Invalid value for '--suggest'") for k in ("-1", "0.5", "x")),
        (f"{PREDICT} --suggest 1000", "--suggest must be at most"),
        (f"{PREDICT} --method lp --suggest 2", "does not offer suggested labels; use --method field"),
        *((f"{PREDICT} --at-least {x}", "--at-least must be a finite number") for x in ("nan", "inf", "-inf")),
        *((f"{PREDICT} --at-most {x}", "--at-most must be a finite number") for x in ("nan", "inf")),
        (f"{PREDICT} --at-least 5 --at-most 1", "must be below --at-most 1"),
        (f"{PREDICT} --at-least 5 --at-most 5", "must be below --at-most 5"),
        (f"{PREDICT} --at-least 5000", "is not met by a known value"),
        (f"{PREDICT} --at-most -1", "is not met by a known value"),
        (f"{PREDICT} --integer", "--integer is not met by a known value"),
        *((f"{PREDICT} --method '{m}'", "--method must be one of lp, lr") for m in ("magic", "", "lp,lr", "lp ")),
        *((f"{PREDICT} --transform '{t}'", "--transform must be one of") for t in ("sqrt", "", "LOG")),
        *((f"{PREDICT} --method lgc {o}", "; use --method field") for o in ("--conformal", "--transform log")),
        *(
            (f"{PREDICT} --weight-is '{w}'", "--weight-is must be strength or distance")
            for w in ("length", "", "Distance")
        ),
        (f"{PREDICT} --weight none --weight-is distance", "exclude each other"),
        (f"{PREDICT} --weight-is distance", "no column of numbers for --weight-is"),
        *((f"{PREDICT} --unknown '{u}'", "--unknown must be error, drop or add") for u in ("ignore", "", "DROP")),
        *((f"{PREDICT} {o} zzz", "no column 'zzz'") for o in COLUMN_OPTIONS),
        *((f"{PREDICT} {o} ''", "no column ''") for o in COLUMN_OPTIONS),
        (f"{PREDICT} --target id", "contains the node ids"),
        (f"{PREDICT} --ignore rent", "both --target and --ignore"),
        (f"{PREDICT} --group rent", "both --target and --group"),
        (f"{PREDICT} --id rent", "the node id is missing"),
        (f"{PREDICT} --source source --dest source", "are the same column"),
        (f"{PREDICT} --weight source", "are the same column"),
        (f"{PREDICT} --knn age,rent", "pass one of an edge file, --knn or --shapes"),
        (f"{PREDICT} -k 3", "-k is the number of neighbours for --knn"),
        ("predict nodes.csv --target rent", "pass one of an edge file, --knn or --shapes"),
        ("predict nodes.csv --knn '' --target rent", "--knn needs the columns"),
        ("predict nodes.csv --knn , --target rent", "--knn needs the columns"),
        ("predict nodes.csv --knn zzz,age --target rent", "has no column 'zzz'"),
        ("predict nodes.csv --knn id,age --target rent", "a coordinate must be a number"),
        ("predict nodes.csv --knn rent --target rent", "a coordinate must be a number, got nothing"),
        *(
            (f"predict nodes.csv --knn age -k {k} --target rent", "-k must be from 1 to 29")
            for k in (0, -1, 30, 10**12)
        ),
        ("predict nodes.csv --knn age -k x --target rent", "Invalid value for '-k'"),
        ("predict nodes.csv --shapes nowhere.geojson --target rent", "no such file"),
        (f"{PREDICT} --partition rows", "add --cluster ADDRESS"),
        (f"{PREDICT} --checkpoint kept", "add --cluster ADDRESS"),
        *(
            (f"{PREDICT} --cluster '{c}'", "local workers are written local or local:4")
            for c in ("local:0", "local:-1", "local:x", "local:²")
        ),
        (f"{PREDICT} --cluster local:1 --partition cells", "must be 'auto', 'columns' or 'rows'"),
        (f"{PREDICT} --nonsense", "No such option"),
        (f"{PREDICT} --target", "requires an argument"),
        ("predict", "Missing argument"),
        (f"{PREDICT} --report out.csv", "something.html"),
        (f"{PREDICT} --method lr --alpha 0.5", "has no effect on --method lr"),
        (f"{PREDICT} --id age", "is not unique"),
        (f"{PREDICT} --at-least 0 --integer", "--integer is not met by a known value"),
        ("predict nodes.csv edges.csv -t rent -t age -o out.csv", "nothing to predict"),
        ("predict nodes.csv edges.csv -t rent,age -o out.csv", "no column 'rent,age'"),
        ("predict nodes.csv edges.csv -t ' rent' -o out.csv", "did you mean 'rent'"),
        *(
            (f"predict nodes.csv edges.csv -t rent --method lp -o {place}", "the suffix gives the format")
            for place in ("-", "/dev/stdout", "/dev/null", "out.csv.bz2", "out.json")
        ),
        ("predict nodes.csv edges.csv -t rent --method lp -o x/../out.csv", "does not exist; create it first"),
        ("predict nodes.csv edges.csv more.csv", "unexpected extra argument"),
        ("predict '' edges.csv", "is a directory"),
        ("perdict nodes.csv edges.csv", "No such command"),
    ]
)
REPEATED = [
    Odd("tables in the other order", "predict edges.csv nodes.csv --target rent --method lp -o out.csv"),
    Odd("unknown nodes to add, and none", f"{LP} --unknown add"),
    Odd("a target named twice", f"{LP} --target rent"),
    Odd("an option given twice", f"{LP} --interval 0.5 --interval 0.9"),
    Odd("ends named the other way round", f"{LP} --source target --dest source"),
    Odd("all nearest neighbours", "predict nodes.csv --knn age -k 29 -t rent --method lp -o out.csv", factor=ANY),
    Odd("a coordinate named twice", "predict nodes.csv --knn age,age -t rent --method lp -o out.csv", factor=ANY),
    Odd("a column ignored twice", f"{LP} --ignore age --ignore age"),
    Odd("an alpha of 0", f"{LP} --alpha 0", factor=ANY),
    Odd("an alpha next to 1", f"{LP} --alpha 0.99999999", factor=ANY),
    Odd("an interval next to 1", f"{LP} --interval 0.999999999999999"),
    Odd("ids to ignore", f"{LP} --ignore id"),
    Odd("an interval next to 0", f"{LP} --interval 1e-15"),
    Odd("more folds than labels", f"{LP} --folds 1000000000", factor=ANY),
    Odd("a seed of 64 bits", f"{LP} --seed 18446744073709551615", factor=ANY),
    Odd("a seed of 100 digits", f"{LP} --seed {10**99}", factor=ANY),
    Odd("bounds beyond all numbers", f"{LP} --at-least -1e308 --at-most 1e308"),
    Odd("weights that are not there, unasked", f"{LP} --weight none"),
    Odd("unknown nodes to drop, and none", f"{LP} --unknown drop"),
]


def model(name: str, says: str, **changed: Any) -> Odd:
    """Return a case with another model; a value of `...` is left out."""
    content = {key: value for key, value in {**MODEL, **changed}.items() if value is not ...}
    return Odd(f"a model with {name}", SAMPLE, {"model.json": json.dumps(content)}, says)


def raw_model(name: str, content: Content, says: str) -> Odd:
    """Return a case with something else in place of a model."""
    return Odd(f"a model that is {name}", SAMPLE, {"model.json": content}, says)


MODELS = [
    *(model(f"no {key}", "damaged model file", **{key: ...}) for key in ("names", "H", "h", "mean")),
    *(
        model(f"no {key}", "it has no format" if key == "format" else "version None", **{key: ...})
        for key in ("format", "version")
    ),
    *(model(f"{key} null", "damaged model file", **{key: None}) for key in ("names", "H", "h", "mean")),
    *(model(f"{key} as text", "damaged model file", **{key: "1"}) for key in ("names", "H", "h", "mean")),
    *(model(f"{key} as an object", "damaged model file", **{key: {"a": 1}}) for key in ("names", "H", "h", "mean")),
    *(model(f"{key} true", "damaged model file", **{key: True}) for key in ("names", "H", "h", "mean")),
    *(model(f"{key} empty", "model.json", **{key: []}) for key in ("names", "H", "h", "mean")),
    *(model(f"{key} nested", "model.json", **{key: [[[[1.0]]]]}) for key in ("names", "H", "h", "mean")),
    *(model(f"a number of 400 digits in {key}", "model.json", **{key: [10**400, 1]}) for key in ("h", "mean")),
    *(model(f"version {v!r}", "of the model format", version=v) for v in (0, 2, "1", [1], -1)),
    model("version true", "damaged model file", version=True),
    model("another format", "it has no format", format="pickle"),
    model("H not symmetric", "model.json", H=[[1.0, 0.9], [0.2, 1.0]]),
    model("H not positive", "model.json", H=[[1.0, 2.0], [2.0, 1.0]]),
    model("H ragged", "model.json", H=[[1.0, 0.2], [0.2]]),
    model("H of another size", "model.json", H=[[1.0]]),
    model("h negative", "model.json", h=[-1.0, 2.0]),
    model("h of another size", "model.json", h=[1.0]),
    model("a mean of another size", "model.json", mean=[1.0]),
    model("a name twice", "model.json", names=["rent", "rent"]),
    model("a name too few", "model.json", names=["rent"]),
    model("names that are numbers", "damaged model file", names=[1, 2]),
    model("h and C", "model.json", C=[[1.0]]),
    model("a wrong sum", "was changed since", sha256="0" * 64),
    model("a sum that is a list", "was changed since", sha256=[]),
    model("diagnostics as text", "damaged model file", diagnostics="fine"),
    model("diagnostics that lack all", "damaged model file", diagnostics={}),
    *(
        raw_model(f"sound, with H of {size:g}", sealed({**MODEL, "H": [[size, 0.0], [0.0, size]]}), "in another unit")
        for size in (1e308, 5e-324)
    ),
    raw_model("empty", "", "damaged model file"),
    raw_model("nothing", "null", "it has no format"),
    raw_model("a list", "[]", "it has no format"),
    raw_model("a number", "7", "it has no format"),
    raw_model("cut short", json.dumps(MODEL)[:60], "damaged model file"),
    raw_model("deep", "[" * 100_000, "damaged model file"),
    raw_model("deep and closed", "[" * 100_000 + "]" * 100_000, "damaged model file"),
    raw_model("deep in H", json.dumps(MODEL).replace("[[1.0", "[" * 50_000 + "1.0"), "damaged model file"),
    raw_model("binary", bytes(range(256)), "damaged model file"),
    raw_model("UTF-16", json.dumps(MODEL).encode("utf-16"), "damaged model file"),
    raw_model("full of NUL", bytes(1000), "damaged model file"),
    raw_model("with NaN", json.dumps({**MODEL, "mean": [float("nan"), 0]}), "damaged model file"),
    raw_model("with Infinity", json.dumps({**MODEL, "h": [float("inf"), 0]}), "damaged model file"),
    raw_model("with 1e999", json.dumps(MODEL).replace("40.0", "1e999"), "model.json"),
    raw_model("a number of 100,000 digits", json.dumps(MODEL).replace("40.0", "4" * 100_000), "model.json"),
    raw_model("a table", csv(NODES), "damaged model file"),
    *(raw_model(f"{kind}", special(kind), says) for kind, says in SPECIAL.items()),
    Odd(
        "a model in UTF-8 with a mark",
        SAMPLE,
        {"model.json": b"\xef\xbb\xbf" + json.dumps(MODEL).encode()},
        "damaged model file",
    ),
]

MODEL_COMMANDS = [
    *refused(
        [
            *((f"{SAMPLE} -n {n}", "'--draws'") for n in (0, -1, "x", 1.5)),
            *((f"{SAMPLE} --seed {s}", "'--seed'") for s in (-1, "x")),
            *((f"{SAMPLE} -n {10**k}", "more than fit in memory") for k in (12, 15, 30)),
            ("sample model.json -o out.csv", "there is no table of edges"),
            ("sample model.json edges.csv nodes.csv", "unexpected extra argument"),
            ("sample edges.csv model.json", "looks like"),
            ("sample model.json edges.csv --given nodes.csv -o nodes.csv", "is an input, too"),
            ("sample model.json edges.csv -o model.csv.json", "suffix gives the format"),
            ("sample model.json --knn age -o out.csv", "need the nodes"),
            ("sample model.json edges.csv --given other.csv -o out.csv", "none of the model's attributes"),
            ("foresee nodes.csv edges.csv", "Missing option"),
            ("foresee nodes.csv --target rent", "foresee takes"),
            ("foresee model.json nodes.csv edges.csv more.csv --target rent", "foresee takes"),
            ("foresee model.json nodes.csv edges.csv --target zzz", "the model has no attribute 'zzz'"),
            ("foresee model.json nodes.csv edges.csv --target id", "the model has no attribute 'id'"),
            ("foresee model.json nodes.csv edges.csv --target age", "nothing to predict"),
            ("foresee model.json nodes.csv edges.csv --target rent --suggest 1000", "--suggest must be at most"),
            (
                "foresee model.json nodes.csv edges.csv --target rent --target-r2 0.5",
                "are for the field, without MODEL",
            ),
            *(
                (f"foresee nodes.csv edges.csv --target rent --target-r2 {r}", "--target-r2 must be between 0 and 1")
                for r in (0, 1, -1, 2, "nan", "inf")
            ),
            ("foresee nodes.csv edges.csv --target rent --target-r2 x", "Invalid value for '--target-r2'"),
            ("foresee nodes.csv edges.csv --target rent --suggest 1000", "--suggest must be at most"),
            ("foresee nodes.csv edges.csv --target age", "leave at least two cells to predict empty"),
            ("foresee nodes.csv edges.csv --target id", "contains the node ids"),
            ("foresee nodes.csv edges.csv --target rent --report out.pdf", "something.html"),
            ("foresee nodes.csv edges.csv --target rent --report nodes.csv", "something.html"),
            ("fit nodes.csv edges.csv -o model.txt", "something.json"),
            ("fit nodes.csv edges.csv -o nodes.csv", "is an input, too"),
            ("fit nodes.csv edges.csv -a zzz -o new.json", "has no column 'zzz'"),
            ("fit nodes.csv edges.csv -a id -o new.json", "contains the node ids"),
            ("fit nodes.csv edges.csv -a age --ignore age -o new.json", "both --attribute and --ignore"),
            ("fit nodes.csv edges.csv --ignore age --ignore rent -o new.json", "no numeric column"),
            ("fit nodes.csv -o new.json", "pass one of an edge file, --knn or --shapes"),
            ("fit nodes.csv edges.csv --unknown maybe -o new.json", "--unknown must be error, drop or add"),
            ("fit nodes.csv edges.csv -o missing/new.json", "folder missing does not exist"),
        ],
        WITH_MODEL,
    ),
    Odd("a column fitted twice", "fit nodes.csv edges.csv -a age -a age -o new.json"),
    Odd("a draw from a model written by hand", SAMPLE, WITH_MODEL, factor=ANY, says=""),
]

OTHER_COMMANDS = refused(
    [
        ("report nowhere.parquet", "no such file"),
        ("report nodes.csv", "pages can be rebuilt only from Parquet"),
        ("report .", "is a directory"),
        ("report odd.parquet", "contains no page"),
        ("report damaged.parquet", "cannot be read as .parquet"),
        ("report empty.parquet", "cannot be read as .parquet"),
        ("report page.parquet", "the content of the page is damaged"),
        ("report list.parquet", "the content of the page is damaged"),
        ("report deep.parquet", "the content of the page is damaged"),
        ("report other.parquet", "a page needs content of format 1"),
        ("report lacking.parquet", "the content of the page is damaged"),
        ("report odd.parquet -o odd.parquet", "something.html"),
        ("report odd.parquet -o missing/x.html", "folder missing does not exist"),
        ("datasets info zzz", "no data set is called 'zzz'"),
        ("datasets info ''", "no data set is called ''"),
        ("datasets info ../../etc/passwd", "no data set is called"),
        ("datasets fetch zzz", "no data set is called 'zzz'"),
        ("datasets fetch", "Missing argument"),
        ("datasets fetch london-2016 --data-dir nowhere", "nowhere"),
        ("datasets fetch london-2016 --data-dir nodes.csv", "nodes.csv"),
        ("datasets export zzz folder", "no data set is called 'zzz'"),
        ("datasets export london-2016 . --format docx", "Invalid value for '--format'"),
        ("datasets export london-2016 . --preset best", "Invalid value for '--preset'"),
        ("datasets export london-2016 .", "would be replaced"),
        ("datasets example .", "would be replaced"),
        ("datasets example nodes.csv", "cannot be created"),
        ("datasets example nodes.csv/folder", "cannot be created"),
        ("datasets list --nonsense", "No such option"),
        ("reproduce zzz", "no experiment is called 'zzz'"),
        ("reproduce --list zzz", "no experiment is called 'zzz'"),
        ("reproduce data-statistics --quick --full", "No such option"),
        ("report", "Missing argument"),
        ("report nodes.csv -o out.csv", "something.html"),
        ("datasets fetch us-2016 --data-dir /dev/null", "no such folder"),
        ("datasets example city town", "unexpected extra argument"),
        ("'' ''", "No such command"),
        ("--nonsense", "No such option"),
        ("reproduce --jobs 0", "--jobs must be at least 1"),
        ("reproduce --jobs -3", "--jobs must be at least 1"),
        ("reproduce --jobs x", "Invalid value for '--jobs'"),
        ("reproduce --seed -1", "--seed must be 0 or more"),
        ("reproduce data-statistics -o nodes.csv", "nodes.csv"),
        ("reproduce data-statistics -o nodes.csv/x", "nodes.csv"),
        ("reproduce data-statistics --shapes nowhere.geojson -o results", "nowhere.geojson"),
        ("cluster check local:0", "local workers are written local or local:4"),
        ("cluster check local:two", "local workers are written local or local:4"),
        ("cluster check", "Missing argument"),
        ("cluster nonsense", "No such command"),
    ],
    {
        "odd.parquet": NODES.to_parquet,
        "damaged.parquet": b"PAR1" + bytes(100) + b"PAR1",
        "empty.parquet": b"",
        "page.parquet": page(b"no page"),
        "list.parquet": page(zlib.compress(b"[]")),
        "deep.parquet": page(zlib.compress(b"[" * 100_000)),
        "other.parquet": page(zlib.compress(b'{"format": 2}')),
        "lacking.parquet": page(zlib.compress(b'{"format": 1}')),
    },
)


def instead(command: str, name: str) -> Iterable[Odd]:
    """Yield a command whose input of this name is there, but no file."""
    for kind, says in SPECIAL.items():
        yield Odd(f"{command.split()[0]}: {name} is {kind}", command, {**WITH_MODEL, name: special(kind)}, says)
    gone = command.replace(name, f"gone-{name}")
    yield Odd(f"{command.split()[0]}: {name} is not there", gone, WITH_MODEL, "no such file")
    long = command.replace(name, "x" * 300 + name)
    yield Odd(f"{command.split()[0]}: {name} with a name too long", long, WITH_MODEL, "file name too long")
    inside = command.replace(name, f"other.csv/{name}")
    yield Odd(f"{command.split()[0]}: {name} in a file", inside, WITH_MODEL, "no such file")


INPUTS = [
    *instead("predict nodes.csv edges.csv -o out.csv", "nodes.csv"),
    *instead("predict nodes.csv edges.csv -o out.csv", "edges.csv"),
    *instead("fit nodes.csv edges.csv -o new.json", "nodes.csv"),
    *instead("fit nodes.csv edges.csv -o new.json", "edges.csv"),
    *instead("sample model.json edges.csv --given nodes.csv -o out.csv", "nodes.csv"),
    *instead("sample model.json edges.csv -o out.csv", "edges.csv"),
    *instead("foresee model.json nodes.csv edges.csv -t rent", "nodes.csv"),
    *instead("foresee nodes.csv edges.csv -t rent", "edges.csv"),
]

WRITERS = {
    "predict": (LP, "out.csv"),
    "predict --report": ("predict nodes.csv edges.csv -t rent --method lp --report out.html", "out.html"),
    "fit": ("fit nodes.csv edges.csv -o new.json", "new.json"),
    "sample": (SAMPLE, "out.csv"),
    "report": ("report page.parquet -o out.html", "out.html"),
    "foresee": ("foresee nodes.csv edges.csv -t rent --report out.html", "out.html"),
}


WRITTEN_FROM: dict[str, Content] = {**WITH_MODEL, "page.parquet": page(b"no page")}


def outputs(name: str, command: str, place: str) -> Iterable[Odd]:
    """Yield a command whose output cannot be written where it is to go."""
    says = {**SPECIAL, "a link to nothing": ""}
    kinds = ("a pipe", "a device", "a loop of links", *(["a folder"] if name != "predict" else []))  # parts go into it
    for kind in kinds:
        yield Odd(f"{name}: {place} is {kind}", command, {**WRITTEN_FROM, place: special(kind)}, says[kind])
    for there, why in (
        ("missing/", "folder missing does not exist"),
        ("other.csv/", "folder other.csv does not exist"),
        ("/proc/", "cannot be written"),
        ("x" * 300, "file name too long"),
    ):
        yield Odd(f"{name}: into {there[:12]}", command.replace(place, there + place), WRITTEN_FROM, why)
    yield Odd(f"{name}: an unknown suffix", command.replace(place, "out.docx"), WRITTEN_FROM, "out.docx")
    yield Odd(f"{name}: no suffix", command.replace(place, "out"), WRITTEN_FROM, "out")
    yield Odd(f"{name}: over an input", command.replace(place, "edges.csv"), WRITTEN_FROM, "edges.csv")


OUTPUTS = [case for name, (command, place) in WRITERS.items() for case in outputs(name, command, place)]

PLACES = [
    Odd("a home that cannot be written", env={"HOME": "/dev/null/home", "XDG_CACHE_HOME": ""}),
    Odd("no home", env={"HOME": ""}),
]

COMMANDS = (
    *(*PREDICT_OPTIONS, *REPEATED, *MODELS, *MODEL_COMMANDS, *OTHER_COMMANDS),
    *(*INPUTS, *OUTPUTS, *PLACES),
)
