from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner, Result

import graphmrf as gm
from graphmrf.cli import app

if TYPE_CHECKING:
    from graphmrf.model.expected_accuracy import KnownData

RUNNER = CliRunner()
CITY = gm.datasets.example()
NODES, EDGES = str(CITY.nodes), str(CITY.edges)


def run(*words: object) -> Result:
    return RUNNER.invoke(app, [str(word) for word in words])


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("field") / "city.json"
    result = run("fit", NODES, EDGES, "-a", "income", "-a", "rent", "-o", path)
    assert result.exit_code == 0, result.output
    return path


def test_fit_saves_the_model_that_the_library_fits(model: Path) -> None:
    table = gm.read(NODES, EDGES, id="district")
    expected = gm.GaussianMRF.fit(table.graph, table.frame[["income", "rent"]])
    saved = gm.GaussianMRF.load(model)
    np.testing.assert_array_equal(saved.H, expected.H)
    np.testing.assert_array_equal(saved.C, expected.C)
    assert saved.names == ("income", "rent")


def test_fit_takes_every_numeric_column_that_varies(tmp_path: Path) -> None:
    frame = pd.read_csv(NODES).assign(city="Bern", level=3)
    frame.to_csv(tmp_path / "nodes.csv", index=False)
    result = run("fit", tmp_path / "nodes.csv", EDGES, "--ignore", "x", "--ignore", "y", "--json")
    assert list(json.loads(result.stdout)["attributes"]) == ["income", "green", "minutes", "rent"]
    assert "ignored 'city': not numeric" in result.stderr
    assert "ignored 'level': a single value" in result.stderr


@pytest.mark.parametrize("coupled", [False, True])
def test_partial_correlations_are_those_of_the_precision_matrix(coupled: bool, tmp_path: Path) -> None:
    words = ("fit", NODES, EDGES, "-a", "green", "-a", "rent", "-o", tmp_path / "city.json")
    shown = run(*words, *(("--coupled",) if coupled else ())).stdout
    mrf, ring = gm.GaussianMRF.load(tmp_path / "city.json"), gm.Graph.from_edges(range(5), [1, 2, 3, 4, 0])
    N = np.eye(5) - ring.S.toarray()
    gamma = np.kron(mrf.H, np.eye(5)) + np.kron(mrf.C, N)
    expected = -gamma[0, 5] / np.sqrt(gamma[0, 0] * gamma[5, 5])
    assert shown.count(f"rent ({expected:+.2f})") == shown.count(f"green ({expected:+.2f})") == 1


def test_sample_draws_every_node_of_the_edge_file(model: Path, tmp_path: Path) -> None:
    result = run("sample", model, EDGES, "-n", 3, "--seed", 1, "-o", tmp_path / "draws.csv")
    assert result.exit_code == 0, result.output
    frame = pd.read_csv(tmp_path / "draws.csv")
    assert list(frame.columns) == ["sample", "node", "income", "rent"]
    assert frame.groupby("sample").size().tolist() == [1000, 1000, 1000]
    table = gm.datasets.read_edges(EDGES)
    expected = gm.GaussianMRF.load(model).sample(table.graph, 3, 1)
    np.testing.assert_allclose(frame[["income", "rent"]].to_numpy().reshape(3, 1000, 2), expected, rtol=1e-12)
    assert frame["node"][:1000].tolist() == table.frame["node"].tolist()


def test_conditional_draws_keep_what_is_known(model: Path, tmp_path: Path) -> None:
    result = run("sample", model, EDGES, "--given", NODES, "-n", 2, "-o", tmp_path / "draws.parquet")
    assert result.exit_code == 0, result.output
    drawn, given = pd.read_parquet(tmp_path / "draws.parquet"), pd.read_csv(NODES)
    for _, draw in drawn.groupby("sample"):
        known = given["rent"].notna().to_numpy()
        np.testing.assert_allclose(draw["rent"].to_numpy()[known], given["rent"][known])
        assert draw["rent"].notna().all()
    one, two = (draw["rent"].to_numpy() for _, draw in drawn.groupby("sample"))
    assert not np.allclose(one, two)


@pytest.mark.parametrize("content", [None, "{}"])
def test_a_file_that_is_no_model_says_how_to_make_one(content: str | None, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "city.json").write_text(content)
    result = run("sample", tmp_path / "city.json", EDGES)
    assert result.exit_code == 2
    assert "graphmrf fit -o" in result.stderr


def test_foresee_refuses_to_suggest_more_nodes_than_are_left(model: Path) -> None:
    result = run("foresee", model, NODES, EDGES, "--target", "rent", "--suggest", 999)
    assert result.exit_code == 2
    assert "--suggest must be at most 700" in result.stderr


def test_foresee_tells_of_features_it_takes_for_granted(model: Path, tmp_path: Path) -> None:
    pd.read_csv(NODES)[["district", "rent"]].to_csv(tmp_path / "nodes.csv", index=False)
    assert (
        "as if features 'income' were known"
        in run("foresee", model, tmp_path / "nodes.csv", EDGES, "--target", "rent").stderr
    )
    assert "as if" not in run("foresee", model, NODES, EDGES, "--target", "rent").stderr


@pytest.mark.parametrize("command", ["sample", "predict"])
def test_a_negative_seed_is_bad_input_not_a_bug(command: str, model: Path) -> None:
    result = run(command, model if command == "sample" else NODES, EDGES, "--seed", -1)
    assert result.exit_code == 2
    assert "--seed" in result.stderr


def test_foresee_says_what_the_library_says(model: Path) -> None:
    result = run("foresee", model, NODES, EDGES, "--target", "rent", "--suggest", 2, "--json")
    found = json.loads(result.stdout)
    table, mrf = gm.read(NODES, EDGES, id="district"), gm.GaussianMRF.load(model)
    labelled = ~np.isnan(table.outcome("rent"))
    cases: tuple[tuple[str, KnownData], ...] = (("lp", "labels"), ("lgc", "features"), ("lgc-rp", "both"))
    for method, given in cases:
        assert found["r2"][method]["r2"] == pytest.approx(mrf.expected_r2(table.graph, "rent", labelled, given))
    suggested = mrf.suggest(table.graph, "rent", labelled, 2)
    assert found["suggest"] == table.frame["district"].iloc[suggested].tolist()


def test_words_stand_to_the_left_and_numbers_to_the_right(model: Path) -> None:
    lines = run("foresee", model, NODES, EDGES, "--target", "rent").stdout.splitlines()
    head, first, second = (next(line for line in lines if f"  {name} " in line) for name in ("method", "lp", "lgc"))
    assert head.index("uses") == first.index("outcomes of neighbours") == second.index("features")
    assert len(first.split("0.")[0]) == len(second.split("0.")[0])


def test_without_an_output_the_draws_are_previewed(model: Path) -> None:
    result = run("sample", model, EDGES)
    assert "The first 8 of 1000 rows; save all with -o samples.csv" in result.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("fit", NODES, EDGES, "-o", "model.txt"), "name the file something.json"),
        (("fit", NODES, EDGES, "-a", "price"), "has no column 'price'"),
        (("fit", NODES, EDGES, "-a", "district"), "contains the node ids"),
        (("sample", "missing.json", EDGES), "missing.json"),
        (("fit", NODES, EDGES, "-a", "rent", "--ignore", "rent"), "'rent' is both --attribute and --ignore"),
        (("fit", NODES, EDGES, "-a", "rnt"), "did you mean 'rent'? "),
        (("fit", NODES, EDGES, "--ignore", "minute"), "did you mean 'minutes'? "),
        (("foresee", "{model}", NODES, EDGES, "--target", "green"), "no attribute 'green'; it has income, rent"),
        (("foresee", "{model}", NODES, EDGES, "--target", "Rent"), "did you mean 'rent'? it has income, rent"),
        (("foresee", "{model}", NODES, EDGES, "--target", "income"), "nothing to predict"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(words: tuple[str, ...], message: str, model: Path) -> None:
    result = run(*(model if word == "{model}" else word for word in words))
    assert result.exit_code == 2, result.output
    assert message in result.stderr
    assert result.stdout == ""


def test_a_table_without_the_models_attributes_is_refused(model: Path, tmp_path: Path) -> None:
    pd.read_csv(NODES)[["district", "green"]].to_csv(tmp_path / "nodes.csv", index=False)
    result = run("sample", model, EDGES, "--given", tmp_path / "nodes.csv")
    assert result.exit_code == 2
    assert "none of the model's attributes (income, rent)" in result.stderr


def test_a_damaged_model_or_one_of_another_version_is_refused(model: Path, tmp_path: Path) -> None:
    content = json.loads(model.read_text())
    for damage in ('{"format": "graphmrf.', json.dumps({**content, "version": 99}), json.dumps({"a": 1})):
        (tmp_path / "bad.json").write_text(damage)
        result = run("sample", tmp_path / "bad.json", EDGES, "-o", tmp_path / "draws.csv")
        assert result.exit_code == 2
        assert "bad.json" in result.stderr
        assert not (tmp_path / "draws.csv").exists()


@pytest.fixture
def own(model: Path, tmp_path: Path) -> dict[str, Path]:
    """Copies of the files, and links to them, that may be lost."""
    files = {"nodes": tmp_path / "nodes.csv", "edges": tmp_path / "edges.csv", "model": tmp_path / "city.json"}
    for path, source in zip(files.values(), (NODES, EDGES, str(model)), strict=True):
        path.write_bytes(Path(source).read_bytes())
    for name in ("nodes", "edges"):
        (tmp_path / f"{name}.json").symlink_to(files[name])
        (tmp_path / f"hard-{name}.json").hardlink_to(files[name])
    (tmp_path / "city.csv").symlink_to(files["model"])
    return files


@pytest.mark.parametrize(
    "words",
    [
        ("sample", "{model}", "{edges}", "-o", "{edges}"),
        ("sample", "{model}", "{edges}", "-o", "{folder}/../{name}/edges.csv"),
        ("sample", "{model}", "{edges}", "--given", "{nodes}", "-o", "{nodes}"),
        ("sample", "{model}", "{edges}", "--given", "{nodes}", "-o", "{edges}"),
        ("sample", "{model}", "{edges}", "-o", "{folder}/city.csv"),
        ("sample", "{folder}/city.csv", "{edges}", "-o", "{folder}/city.csv"),
        ("fit", "{nodes}", "{edges}", "-o", "{folder}/nodes.json"),
        ("fit", "{nodes}", "{edges}", "-o", "{folder}/edges.json"),
        ("fit", "{nodes}", "{edges}", "-o", "{folder}/hard-nodes.json"),
        ("fit", "{nodes}", "{edges}", "-o", "{folder}/hard-edges.json"),
    ],
)
def test_no_command_writes_over_its_input(words: tuple[str, ...], own: dict[str, Path]) -> None:
    folder = own["nodes"].parent
    before = {path: path.read_bytes() for path in folder.iterdir()}
    result = run(*(word.format(**own, folder=folder, name=folder.name) for word in words))
    assert result.exit_code == 2, result.output
    assert "is an input, too; write results to a file of their own" in result.stderr
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.parametrize("name", ["sample", "income", "rent"])
def test_an_id_called_like_a_column_of_the_draws_is_refused(name: str, model: Path, tmp_path: Path) -> None:
    frame = pd.read_csv(NODES).rename(columns={name: f"{name} 2"}).rename(columns={"district": name})
    frame.to_csv(tmp_path / "nodes.csv", index=False)
    words = ("sample", model, EDGES, "--given", tmp_path / "nodes.csv", "--id", name, "-o", tmp_path / "draws.csv")
    result = run(*words)
    assert result.exit_code == 2, result.output
    assert f"the draws would have two columns '{name}'" in result.stderr
    assert not (tmp_path / "draws.csv").exists()


@pytest.mark.parametrize("name", ["sample", "node"])
def test_an_attribute_called_like_a_column_of_the_draws_is_refused(name: str, tmp_path: Path) -> None:
    gm.GaussianMRF(np.eye(2), np.ones(2), names=["a", name]).save(tmp_path / "odd.json")
    result = run("sample", tmp_path / "odd.json", EDGES, "-o", tmp_path / "draws.csv")
    assert result.exit_code == 2, result.output
    assert f"the draws would have two columns '{name}'" in result.stderr
