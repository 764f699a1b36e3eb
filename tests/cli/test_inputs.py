"""Files in the wrong order are told apart by what they look like."""

from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner, Result

import graphmrf as gm
from graphmrf.cli import app
from graphmrf.cli.inputs import looks_like

CITY = gm.datasets.example()
NODES, EDGES, MODEL = str(CITY.nodes), str(CITY.edges), "{model}"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("order") / "city.json"
    assert run("fit", NODES, EDGES, "-a", "rent", "-o", str(path)).exit_code == 0
    return str(path)


def run(*words: str) -> Result:
    return CliRunner().invoke(app, [*words])


@pytest.mark.parametrize(
    ("words", "wrong", "order"),
    [
        (("predict", MODEL, EDGES), {"NODES": MODEL}, "predict NODES EDGES"),
        (("sample", EDGES, MODEL), {"MODEL": EDGES, "EDGES": MODEL}, "sample MODEL EDGES"),
        (("sample", MODEL, NODES), {"EDGES": NODES}, "sample MODEL EDGES"),
        (("sample", MODEL, EDGES, "--given", EDGES), {"--given": EDGES}, "sample MODEL EDGES --given NODES"),
        (
            ("foresee", NODES, EDGES, MODEL, "-t", "rent"),
            {"MODEL": NODES, "NODES": EDGES, "EDGES": MODEL},
            "foresee MODEL NODES EDGES",
        ),
    ],
)
def test_misplaced_files_are_named(words: tuple[str, ...], wrong: dict[str, str], order: str, model: str) -> None:
    kinds = {NODES: "a table of nodes", EDGES: "a table of edges", MODEL: "a model"}
    result = run(*(model if word == MODEL else word for word in words))
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    told = [f"{name} is {path}, which looks like {kinds[path]}" for name, path in wrong.items()]
    expected = f"error: {', and '.join(told)}; the order is graphmrf {order}. As given: "
    assert result.stderr.startswith(expected.replace(MODEL, model))


@pytest.mark.parametrize("words", [("predict", "--method", "lp", "-t", "rent"), ("fit", "-a", "rent")])
def test_edges_may_come_first(words: tuple[str, ...], tmp_path: Path) -> None:
    command, *options = words
    outputs = []
    for files in ((NODES, EDGES), (EDGES, NODES)):
        path = tmp_path / ("out.csv" if command == "predict" else "out.json")
        result = run(command, *files, *options, "-o", str(path))
        assert result.exit_code == 0, result.stderr
        outputs.append(path.read_text())
    assert outputs[0] == outputs[1]
    assert f"note: {NODES} is taken as the table of nodes, and {EDGES} as that of edges;" in result.stderr


KNOWN = "town,rent\nb,1\nc,2\ne,4\n"
WAYS = "from,to\na,b\nb,c\nc,d\nd,e\n"
UNNAMED_WAYS = "here,there\na,b\na,c\nb,c\nc,d\nd,e\n"


@pytest.mark.parametrize("ways", [WAYS, UNNAMED_WAYS])
def test_a_file_of_known_values_is_enough(ways: str, tmp_path: Path) -> None:
    (tmp_path / "known.csv").write_text(KNOWN)
    (tmp_path / "ways.csv").write_text(ways)
    for files in (("known.csv", "ways.csv"), ("ways.csv", "known.csv")):
        paths = [str(tmp_path / name) for name in files]
        refused = run("predict", *paths, "--method", "lp")
        assert refused.exit_code == 2
        assert "node 'a' is not in" in refused.stderr
        assert "by --unknown add" in refused.stderr
        result = run("predict", *paths, "--method", "lp", "--unknown", "add", "-o", str(tmp_path / "out.csv"))
        assert "2 nodes of ways.csv added to known.csv, such as 'a'" in result.stderr
        assert pd.read_csv(tmp_path / "out.csv")["town"].tolist() == ["b", "c", "e", "a", "d"]


def test_another_mistake_has_no_word_on_the_order(tmp_path: Path) -> None:
    path = tmp_path / "nodes.csv"
    path.write_text("id,rent\na,1\na,\nb,2\n")
    assert "order" not in run("predict", str(path), EDGES).stderr
    (tmp_path / "tree.csv").write_text("child,parent,by\nb,a,x\nc,z,x\n")
    path.write_text("id,rent\na,1\nb,\nc,2\n")
    message = run("predict", str(path), str(tmp_path / "tree.csv")).stderr
    assert "choose two with --source and --dest" in message
    assert "order" not in message


def test_what_cannot_be_read_looks_like_nothing(tmp_path: Path) -> None:
    (tmp_path / "empty.csv").write_text("")
    for name in ("empty.csv", "missing.csv", "picture.png"):
        assert looks_like(tmp_path / name) == ""
