"""Bad input: exit code 2, one line that says what, where and what to do, and no output file."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

from graphmrf.cli import app


def test_missing_file(town: Any, refused: Callable[..., str]) -> None:
    (town.folder / "edges.csv").unlink()
    assert "edges.csv: no such file" in refused()


def test_directory_instead_of_a_file(town: Any, refused: Callable[..., str]) -> None:
    (town.folder / "edges.csv").unlink()
    (town.folder / "edges.csv").mkdir()
    assert "is a directory" in refused()


def test_empty_file(town: Any, refused: Callable[..., str]) -> None:
    (town.folder / "nodes.csv").write_text("")
    assert "nodes.csv is empty" in refused()


def test_missing_target_column(refused: Callable[..., str]) -> None:
    message = refused("--target", "rent")
    assert "no column 'rent'" in message
    assert "'age', 'income'" in message


@pytest.mark.parametrize("option", ["--id", "--source", "--dest", "--weight", "--ignore"])
def test_missing_column_of_an_option(option: str, refused: Callable[..., str]) -> None:
    assert "no column 'zzz'" in refused(option, "zzz")


@pytest.mark.parametrize(
    ("option", "given", "file", "near"),
    [
        ("--target", "incme", "nodes.csv", "'income'"),
        ("--target", "Income", "nodes.csv", "'income'"),
        ("--ignore", "agee", "nodes.csv", "'age'"),
        ("--id", "palce", "nodes.csv", "'place'"),
        ("--source", "sorce", "edges.csv", "'source'"),
        ("--dest", "Target", "edges.csv", "'target'"),
    ],
)
def test_a_misspelt_column_is_guessed(option: str, given: str, file: str, near: str, refused: Any) -> None:
    message = refused(option, given)
    assert file in message
    assert f"no column '{given}'" in message
    assert f"; did you mean {near}? it has '" in message


def test_a_misspelt_weight_is_guessed_and_a_strange_one_is_not(town: Any, refused: Callable[..., str]) -> None:
    town.write(edges=town.edges.assign(length=1.0))
    assert "did you mean 'length'? it has 'source', 'target', 'length': choose one with --weight" in refused(
        "--weight", "lenght"
    )
    assert "did you mean" not in refused("--weight", "qqq")


def test_edge_to_an_unknown_node(town: Any, refused: Callable[..., str]) -> None:
    town.edges.loc[4, "target"] = "Q9"
    town.write()
    message = refused()
    assert "edges.csv, row 6, column target: node 'Q9' is not in" in message
    assert "add such nodes, with empty cells, by --unknown add, or leave such edges out by --unknown drop" in message


def test_duplicate_node_ids(town: Any, refused: Callable[..., str]) -> None:
    town.nodes.loc[3, "place"] = town.nodes.loc[1, "place"]
    town.write()
    for options in (("--id", "place"), ()):
        message = refused(*options)
        assert "rows 3 and 5, column place" in message
        assert f"'{town.nodes.loc[1, 'place']}' is not unique; keep" in message


def test_empty_node_id(town: Any, refused: Callable[..., str]) -> None:
    town.nodes.loc[3, "place"] = None
    town.write()
    assert "nodes.csv, row 5, column place: the node id is missing" in refused()


def test_no_rows(town: Any, refused: Callable[..., str]) -> None:
    town.write(town.nodes.head(0))
    assert "nodes.csv has no rows" in refused()


@pytest.mark.parametrize(("weight", "shown"), [(-1.0, "'-1.0'"), (np.nan, "a missing value"), (np.inf, "'inf'")])
def test_weights_that_cannot_be(weight: float, shown: str, town: Any, refused: Callable[..., str]) -> None:
    weights = np.ones(len(town.edges))
    weights[7] = weight
    town.write(edges=town.edges.assign(weight=weights))
    assert f"edges.csv, row 9, column weight: an edge weight must be a finite number >= 0, got {shown}" in refused()


def test_more_than_one_weight_column(town: Any, refused: Callable[..., str]) -> None:
    town.write(edges=town.edges.assign(weight=1.0, km=2.0))
    message = refused()
    assert "'weight', 'km'" in message
    assert "--weight" in message


def test_text_in_a_numeric_target(town: Any, refused: Callable[..., str]) -> None:
    column = town.nodes["income"].astype(object)
    column[15] = "abc"
    town.write(town.nodes.assign(income=column))
    for options in ((), ("--target", "income")):
        assert "nodes.csv, row 17, column income: 'abc' is not a finite number" in refused(*options)


def test_a_mark_for_missing_values_is_no_class(town: Any, refused: Callable[..., str]) -> None:
    town.write(town.nodes.assign(income=town.nodes["income"].astype(object).fillna("?")))
    for options in ((), ("--target", "income")):
        message = refused(*options)
        assert "nodes.csv, row 2, column income: '?' is not a finite number" in message
        assert "leave it empty" in message


@pytest.mark.parametrize("marks", [("{:.2f} €", "${:.2f}"), ("{:.1f} %", "{:.2f}"), ("{:.2f}", "{:.2f},-")])
def test_numbers_written_in_two_ways_are_refused(
    marks: tuple[str, str], town: Any, refused: Callable[..., str]
) -> None:
    written = [None if np.isnan(x) else marks[i % 2].format(x) for i, x in enumerate(town.nodes["income"])]
    town.write(town.nodes.assign(income=written))
    assert "nodes.csv" in refused("--target", "income")


def test_points_that_look_like_thousands_are_refused(town: Any, refused: Callable[..., str]) -> None:
    """719 beside 1.200, in a file with commas: nobody writes three decimals in some cells and none in others."""
    rents = [719 + 97 * i for i in range(len(town.nodes))]
    town.write(town.nodes.assign(rent=[f"{x} €" if x < 1000 else f"{x // 1000}.{x % 1000:03d} €" for x in rents]))
    assert "column rent: '1.010 €' may be 1010 or 1.010; write it without" in refused("--target", "income")


def test_numbers_with_a_strange_unit_are_no_classes(town: Any, refused: Callable[..., str]) -> None:
    written = [None if np.isnan(x) else f"{x:.4f} per month" for x in town.nodes["income"]]
    town.write(town.nodes.assign(income=written))
    message = refused("--target", "income")
    assert "per month" in message
    assert "too many for classes; write numbers without a unit" in message


def test_text_in_a_numeric_feature(town: Any, refused: Callable[..., str]) -> None:
    column = pd.Series(np.arange(len(town.nodes)) + 0.5).astype(object)
    column[15] = "unknown"
    town.write(town.nodes.assign(area=column))
    message = refused("--target", "income")
    assert "nodes.csv, row 17, column area: 'unknown' is not a finite number" in message
    assert "or leave the column out with --ignore area" in message
    assert town.run("--target", "income", "--method", "lp", "--ignore", "area").exit_code == 0


def test_no_labelled_node(town: Any, refused: Callable[..., str]) -> None:
    town.write(town.nodes.assign(income=np.nan))
    assert "column income: no labelled node" in refused("--target", "income")


def test_one_labelled_node(town: Any, refused: Callable[..., str]) -> None:
    town.write(town.nodes.assign(income=[30.0] + [np.nan] * 63))
    assert "column income: a single labelled node" in refused("--target", "income")


def test_nothing_to_predict(town: Any, refused: Callable[..., str]) -> None:
    town.write(town.nodes.assign(income=np.arange(64.0)))
    assert "column income: nothing to predict" in refused("--target", "income")
    assert "nothing to predict" in refused()


def test_which_column_to_predict_is_asked(town: Any, refused: Callable[..., str]) -> None:
    age, rooms = (town.nodes["age"].mask(np.arange(64) % k == 0) for k in (30, 16))
    town.write(town.nodes.assign(age=age, rooms=rooms))
    empty = town.nodes["income"].isna().sum()
    message = refused()
    assert f"'income' ({empty} of 64 cells empty), 'rooms' (4 of 64 cells empty), 'age' (3 of 64" in message
    assert "such as --target income" in message
    assert town.run("--target", "income", "--method", "lr").exit_code == 0


def test_words_with_empty_cells_must_be_named(town: Any, refused: Callable[..., str]) -> None:
    words = pd.Series(["high", "low"] * 32).mask(np.arange(64) % 2 == 0)
    town.write(town.nodes.drop(columns="income").assign(wealth=words))
    assert "or classify a column of text with --target wealth" in refused()


def test_constant_target(town: Any, refused: Callable[..., str]) -> None:
    town.write(town.nodes.assign(income=town.nodes["income"] * 0 + 5))
    assert "column income: constant" in refused("--target", "income")


def test_an_id_named_like_a_result(town: Any, refused: Callable[..., str]) -> None:
    town.write(town.nodes.rename(columns={"place": "std"}))
    assert "rename it" in refused()


@pytest.mark.parametrize("alpha", ["1", "1.5", "-0.1", "nan"])
def test_alpha_outside_its_range(alpha: str, refused: Callable[..., str]) -> None:
    assert "--alpha must be in [0, 1)" in refused("--alpha", alpha)


@pytest.mark.parametrize("method", ["lr", "field", "sgc", "gcn"])
def test_a_level_for_a_method_without_one(method: str, refused: Callable[..., str]) -> None:
    assert f"--alpha has no effect on --method {method}" in refused("--alpha", "0.5", "--method", method)


@pytest.mark.parametrize("interval", ["0", "1", "90"])
def test_interval_outside_its_range(interval: str, refused: Callable[..., str]) -> None:
    assert "--interval must be between 0 and 1" in refused("--interval", interval)


def test_too_few_folds(refused: Callable[..., str]) -> None:
    assert "--folds must be at least 2" in refused("--folds", "1")


def test_unknown_method(refused: Callable[..., str]) -> None:
    assert "--method must be one of lp, lr, lgc, lr-rp, lgc-rp, field, sgc, sgc-rp, gcn, gcn-rp, auto" in refused(
        "--method", "magic"
    )


@pytest.mark.parametrize("method", ["lr", "lgc", "lgc-rp"])
def test_a_method_without_the_features_it_needs(method: str, refused: Callable[..., str]) -> None:
    assert "use --method lp" in refused("--method", method, "--ignore", "age")


@pytest.mark.parametrize(("option", "name"), [("--output", "out.csv"), ("--report", "out.html")])
@pytest.mark.parametrize("folder", ["missing", "nodes.csv"])
def test_unwritable_output(option: str, name: str, folder: str, town: Any, refused: Callable[..., str]) -> None:
    assert "does not exist" in refused(option, str(town.folder / folder / name))


def test_output_of_an_unknown_format(town: Any, refused: Callable[..., str]) -> None:
    assert "suffix" in refused("-o", str(town.folder / "out.doc"))


def test_report_that_is_not_named_a_page(town: Any, refused: Callable[..., str]) -> None:
    assert "something.html" in refused("--report", str(town.folder / "report.pdf"))


def spelt(path: Path, how: str) -> Path:
    """Another name of a file."""
    if how == "relative":
        return Path(os.path.relpath(path))
    if how == "roundabout":
        return path.parent / ".." / path.parent.name / path.name
    if how in ("link", "hard link"):
        other = path.parent.parent / f"{path.parent.name}-{how}-{path.name}"
        (other.symlink_to if how == "link" else other.hardlink_to)(path)
        return other
    return path


SPELLINGS = ["as given", "relative", "roundabout", "link", "hard link"]


@pytest.mark.parametrize("how", SPELLINGS)
@pytest.mark.parametrize("name", ["nodes.csv", "edges.csv"])
def test_output_over_an_input(how: str, name: str, town: Any, refused: Callable[..., str]) -> None:
    before = (town.folder / name).read_bytes()
    assert "is an input, too" in refused("-o", str(spelt(town.folder / name, how)))
    assert (town.folder / name).read_bytes() == before


@pytest.mark.parametrize("how", SPELLINGS)
def test_a_report_over_an_input_and_over_the_output(how: str, town: Any, refused: Callable[..., str]) -> None:
    page = town.folder / "nodes.csv"
    link = town.folder.parent / f"{town.folder.name}.html"
    link.symlink_to(os.path.relpath(page, link.parent) if how == "relative" else spelt(page, how))
    assert "is an input, too" in refused("--report", str(link))
    assert "is named twice" in refused("-o", str(town.folder / "x.csv"), "--report", str(_link(town, "x.csv")))


def _link(town: Any, name: str) -> Path:
    link = Path(f"{town.folder}-{name}.html")
    link.symlink_to(town.folder / name)
    return link


@pytest.mark.parametrize("name", ["income_prediction", "income_std", "age_observed", "age_probability"])
def test_an_id_named_like_a_result_of_one_of_two_targets(name: str, town: Any, refused: Callable[..., str]) -> None:
    age = town.nodes["age"].mask(np.arange(64) % 3 == 0)
    town.write(town.nodes.assign(age=age).rename(columns={"place": name}))
    message = refused("--id", name, "--target", "income", "--target", "age")
    assert f"the id column '{name}' has the name of a result" in message


def test_the_place_of_the_output_is_checked_before_anything_is_read(town: Any, refused: Callable[..., str]) -> None:
    (town.folder / "nodes.csv").write_text("")
    assert "does not exist" in refused("-o", str(town.folder / "missing" / "out.csv"))


def test_debug_shows_where(town: Any) -> None:
    result = town.run("--target", "rent", "--debug")
    assert result.exit_code == 2
    assert "Traceback" in result.stderr


@pytest.mark.parametrize(("option", "value"), [("--transform", "log"), ("--conformal", None)])
def test_options_of_the_field_with_another_method(option: str, value: str | None, refused: Callable[..., str]) -> None:
    given = [option, value] if value else [option]
    said = "a transform of the outcome" if value else "conformal intervals"
    assert f"--method lp does not offer {said}; use --method field" in refused("--method", "lp", *given)


def test_unknown_transform(refused: Callable[..., str]) -> None:
    message = refused("--transform", "sqrt")
    assert "--transform must be one of identity, log, box-cox, yeo-johnson, auto, got 'sqrt'" in message


@pytest.mark.parametrize("transform", ["log", "box-cox"])
def test_a_transform_that_needs_positive_values(transform: str, town: Any, refused: Callable[..., str]) -> None:
    town.write(town.nodes.assign(income=town.nodes["income"] - 30))
    message = refused("--target", "income", "--transform", transform)
    assert f"nodes.csv, column income: --transform {transform} needs positive values, got " in message
    assert "use --transform yeo-johnson" in message


EXTREME = [
    ("income", "9007199254740993", "whole numbers beyond 2^53"),
    ("income", "-123456789012345678", "whole numbers beyond 2^53"),
    ("income", "12345678901234567890123", "whole numbers beyond 2^53"),
    ("income", "1e400", "not a finite number"),
    ("income", "1e200", "must be of a size that can be squared"),
    ("income", "1e308", "must be of a size that can be squared"),
    ("age", "-1e100", "must be of a size that can be squared"),
    ("age", "1e400", "not a finite number"),
]


@pytest.mark.parametrize(("column", "cell", "message"), EXTREME)
def test_numbers_that_cannot_be_computed_with(
    column: str, cell: str, message: str, town: Any, refused: Callable[..., str]
) -> None:
    cells = town.nodes[column].astype(object)
    cells[1] = cell
    town.write(town.nodes.assign(**{column: cells}))
    assert message in refused("--target", "income", "--method", "lgc-rp")


@pytest.mark.parametrize("column", ["income", "age"])
@pytest.mark.parametrize("unit", [1e-300, 1e-100, 1e100, 1e290])
def test_columns_in_units_that_cannot_be_computed_with(
    column: str, unit: float, town: Any, refused: Callable[..., str]
) -> None:
    town.write(town.nodes.assign(**{column: town.nodes[column] * unit}))
    assert "must be of a size that can be squared" in refused("--target", "income", "--method", "lgc-rp")


@pytest.mark.parametrize("unit", [1e-60, 1e60])
def test_columns_in_units_of_any_other_size(unit: float, town: Any) -> None:
    found = []
    for factor in (1.0, unit):
        town.write(town.nodes.assign(income=town.nodes["income"] * factor, age=town.nodes["age"] / factor))
        result = town.run("--target", "income", "--method", "lgc-rp", "-o", str(town.folder / "out.csv"))
        assert result.exit_code == 0, result.output
        found.append(pd.read_csv(town.folder / "out.csv")["prediction"].to_numpy() / factor)
    np.testing.assert_allclose(found[1], found[0], rtol=1e-8)


@pytest.mark.parametrize("unit", [1e308, 1e-307])
def test_weights_in_units_of_any_size(unit: float, town: Any) -> None:
    found, weights = [], 1 + np.arange(len(town.edges)) % 3 / 4
    for factor in (0.5, unit * 0.5):
        town.write(edges=town.edges.assign(weight=weights * factor))
        result = town.run("--target", "income", "--method", "lp", "-o", str(town.folder / "out.csv"))
        assert result.exit_code == 0, result.output
        found.append(pd.read_csv(town.folder / "out.csv")["prediction"].to_numpy())
    np.testing.assert_allclose(found[1], found[0], rtol=1e-10)


@pytest.mark.parametrize(("small", "large"), [(5e-324, 1.0), (1e-310, 1e-309), (1e-300, 1e300)])
def test_weights_that_cannot_be_computed_with(
    small: float, large: float, town: Any, refused: Callable[..., str]
) -> None:
    town.write(edges=town.edges.assign(weight=np.where(np.arange(len(town.edges)) % 2, small, large)))
    assert "weights must be" in refused()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--source", "source", "--dest", "source"), "--source and --dest are the same column, 'source'"),
        (("--dest", "source"), "--source and --dest are the same column, 'source'"),
        (("--weight", "target"), "--weight and an end of the edges are the same column, 'target'"),
    ],
)
def test_one_column_for_two_things(options: tuple[str, ...], message: str, refused: Callable[..., str]) -> None:
    assert message in refused(*options)


@pytest.mark.parametrize("offset", [2.0**50, 4.0e15, 1e9])
def test_the_report_of_nearly_constant_outcomes(offset: float, town: Any) -> None:
    known = np.where(town.nodes["income"].isna(), np.nan, offset + np.arange(64) % 2)
    town.write(town.nodes.assign(income=known))
    outputs = ("-o", str(town.folder / "out.csv"), "--report", str(town.folder / "out.html"))
    result = town.run("--target", "income", "--method", "lp", *outputs)
    assert result.exit_code == 0, result.output
    assert town.made == ["out.csv", "out.html"]


@pytest.mark.parametrize("kind", ["pipe", "device", "loop", "long name"])
@pytest.mark.parametrize("name", ["nodes.csv", "edges.csv"])
def test_inputs_that_are_no_files(kind: str, name: str, town: Any) -> None:
    path = town.folder / name
    path.unlink()
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "loop":
        path.symlink_to(path)
    else:
        path = path.with_name("x" * 300 + ".csv")
    paths = [str(path) if name == other else str(town.folder / other) for other in ("nodes.csv", "edges.csv")]
    result = CliRunner().invoke(app, ["predict", *paths])
    assert result.exit_code == 2, result.output
    said = {"pipe": "a named pipe", "device": "a device", "loop": "symbolic links", "long name": "name too long"}
    assert said[kind] in result.stderr
    assert result.stderr.count("\n") == 1


ODD_TYPES = {
    "list": pa.array([[i] for i in range(64)]),
    "struct": pa.array([{"a": i} for i in range(64)]),
    "map": pa.array([[("a", i)] for i in range(64)], pa.map_(pa.string(), pa.int64())),
    "binary": pa.array([b"\xff\xfe" + bytes([i]) for i in range(64)]),
}


@pytest.mark.parametrize("kind", ODD_TYPES)
def test_ids_of_odd_types(kind: str, town: Any) -> None:
    table = pa.Table.from_pandas(town.nodes, preserve_index=False).set_column(0, "place", ODD_TYPES[kind])
    pa.parquet.write_table(table, town.folder / "odd.parquet")
    words = ["predict", str(town.folder / "odd.parquet"), str(town.folder / "edges.csv"), "--id", "place"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 2, result.output
    assert "column place: ids of type" in result.stderr


@pytest.mark.parametrize("suffix", ["parquet", "csv.gz", "xlsx"])
@pytest.mark.parametrize("seed", range(15))
def test_damaged_files(suffix: str, seed: int, town: Any) -> None:
    path = town.folder / f"damaged.{suffix}"
    (town.nodes.to_excel if suffix == "xlsx" else town.nodes.to_parquet if suffix == "parquet" else town.nodes.to_csv)(
        path, index=False
    )
    content, rng = bytearray(path.read_bytes()), np.random.default_rng(seed)
    for place in rng.integers(0, len(content), 40):
        content[place] = rng.integers(0, 256)
    path.write_bytes(bytes(content[: rng.integers(1, len(content))] if seed % 3 == 0 else content))
    result = CliRunner().invoke(app, ["predict", str(path), str(town.folder / "edges.csv"), "--method", "lp"])
    assert result.exit_code in (0, 2), result.output
    assert "internal error" not in result.output


def test_ctrl_c_says_one_sentence(town: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("graphmrf.datasets.read", interrupt)
    result = town.run("--target", "income")
    assert result.exit_code == 130
    assert result.stdout == ""
    assert result.stderr == "stopped by Ctrl-C; every file is untouched or complete\n"


@pytest.mark.parametrize(("words", "found"), [("graphmrf pre", "predict"), ("graphmrf predict --tra", "--transform")])
def test_the_shell_completes_commands_and_options(words: str, found: str) -> None:
    asked = {"_GRAPHMRF_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    assert CliRunner().invoke(app, [], env=asked, prog_name="graphmrf").stdout.split() == [found]


def test_a_terminal_without_the_signs_has_question_marks() -> None:
    code = "import sys; from graphmrf.cli import main; sys.argv = ['graphmrf', '--help']; main()"
    spoken = os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    done = subprocess.run([sys.executable, "-c", code], env=spoken, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert b"predict" in done.stdout


@pytest.mark.parametrize("transform", ["log", "auto"])
def test_outcomes_too_skewed_for_numbers(transform: str, town: Any, refused: Callable[..., str]) -> None:
    values = np.exp(60.0 * np.random.default_rng(0).standard_normal(64))
    town.write(town.nodes.assign(income=np.where(town.nodes["income"].isna(), np.nan, values)))
    assert "too skewed" in refused("--target", "income", "--method", "field", "--transform", transform)


HOSTILE = "\x1b[2J\x1b]0;owned\x07\u202e\x9b31m"


@pytest.mark.parametrize("where", ["id", "column", "target", "unknown node", "class"])
def test_what_steers_a_terminal_is_spelt_out(where: str, town: Any) -> None:
    nodes, edges, options = town.nodes, town.edges, ["--method", "lp"]
    if where == "id":
        nodes = nodes.assign(place=nodes["place"] + HOSTILE)
        edges = edges.assign(source=edges["source"] + HOSTILE, target=edges["target"] + HOSTILE)
    elif where == "column":
        nodes = nodes.assign(**{HOSTILE: [f"w{i}" for i in range(64)]})
        options = ["--method", "lr"]
    elif where == "target":
        nodes = nodes.rename(columns={"income": HOSTILE})
    elif where == "class":
        words = np.where(np.arange(64) % 2, HOSTILE, "b")
        nodes = nodes.assign(income=pd.Series(words).mask(nodes["income"].isna()))
        options += ["--target", "income"]
    else:
        edges.loc[3, "target"] = HOSTILE
    town.write(nodes, edges)
    paths = [str(town.folder / "nodes.csv"), str(town.folder / "edges.csv")]
    result = CliRunner().invoke(
        app, ["predict", *paths, *options], color=True
    )  # color: what is no terminal is not told
    assert result.exit_code == (2 if where == "unknown node" else 0), result.output
    assert not set("\x1b\x07\x9b\u202e") & set(result.output)
    assert "\\x1b[2J" in result.output


@pytest.mark.parametrize("part", ["part-0.parquet", "part-00000.parquet"])
def test_a_folder_of_inputs_is_never_an_output(part: str, town: Any) -> None:
    folder = town.folder / "d"
    folder.mkdir()
    town.nodes.to_parquet(folder / part)
    before = (folder / part).read_bytes()
    result = CliRunner().invoke(
        app, ["predict", str(folder / part), str(town.folder / "edges.csv"), "-t", "income", "-o", str(folder)]
    )
    assert result.exit_code == 2
    assert "which are never replaced" in result.stderr
    assert (folder / part).read_bytes() == before
    assert list(folder.iterdir()) == [folder / part]
