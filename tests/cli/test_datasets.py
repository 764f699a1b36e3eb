"""graphmrf datasets: what is listed, fetched and exported, and what is refused."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner, Result

from graphmrf.cli import app
from graphmrf.datasets import read
from graphmrf_paper import catalogue
from mirror import CONTENT, EDGES, Mirror, serve, tiny, write_raw

Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a subcommand with the tiny data set in the catalogue and a cache of its own."""
    for name in ("GRAPHMRF_DATA", "GRAPHMRF_MIRROR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GRAPHMRF_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setitem(catalogue.RECIPES, "tiny", tiny())
    return lambda *words: CliRunner().invoke(app, ["datasets", *map(str, words)])


@pytest.fixture
def mirror(monkeypatch: pytest.MonkeyPatch) -> Iterator[Mirror]:
    with serve(CONTENT) as running:
        monkeypatch.setenv("GRAPHMRF_MIRROR", running.url)
        yield running


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    return write_raw(tmp_path / "raw")


def refused(result: Result, *, code: int = 2) -> str:
    assert result.exit_code == code, result.output
    assert result.stdout == ""
    assert result.stderr.startswith("error: " if code == 2 else "failed: ")
    assert result.stderr.count("\n") == 1
    return result.stderr


def test_list_shows_every_name_and_its_counts(run: Run) -> None:
    lines = [line.split() for line in run("list").stdout.splitlines()]
    assert ["us-2016", "3106", "22574"] in [line[:3] for line in lines]
    assert set(catalogue.names()) <= {word for line in lines for word in line[:1]}
    listed = json.loads(run("list", "--json").stdout)["datasets"]
    assert [each["name"] for each in listed] == list(catalogue.names())


@pytest.mark.parametrize("width", [80, 140])
def test_names_are_whole_and_titles_follow_them_in_a_terminal_of_any_width(
    width: int, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    lines = run("list").stdout.splitlines()
    place = next(k for k, line in enumerate(lines) if line.split()[:1] == ["us-2016"])
    assert lines[place + 1].startswith("    U.S. counties")
    assert not any("…" in line for line in lines)


def test_info_shows_source_licence_counts_and_units(run: Run) -> None:
    shown = run("info", "cdc-2008").stdout
    for text in (
        "3,107 nodes, 9,230 edges, 5 attributes",
        "source: CDC WONDER",
        "licence: U.S. government",
        "degrees C",
    ):
        assert text in shown
    told = json.loads(run("info", "cdc-2008", "--json").stdout)
    assert told["outcomes"] == ["airT", "landT", "precipitation", "sunlight", "pm2.5"]
    assert told["attributes"][0]["unit"] == "degrees C"


def test_info_of_many_attributes_is_cut(run: Run) -> None:
    assert "and 147 more; --json shows all" in run("info", "elliptic").stdout


@pytest.mark.parametrize("command", [["info"], ["fetch"], ["export"], ["fetch", "tiny"]])
def test_unknown_name(command: list[str], run: Run, mirror: Mirror, tmp_path: Path) -> None:
    place = [tmp_path / "out"] if command == ["export"] else []
    message = refused(run(*command, "us-2015", *place))
    assert "no data set is called 'us-2015'; did you mean 'us-2016' or 'us-2012'" in message
    assert mirror.asked == []  # names are checked before anything is fetched
    assert not (tmp_path / "out").exists()


def test_fetch_then_work_offline(run: Run, mirror: Mirror, tmp_path: Path) -> None:
    result = run("fetch", "tiny")
    assert result.exit_code == 0, result.output
    assert result.stdout == "tiny: 3 nodes, 2 edges, ready to load\n"
    asked = len(mirror.asked)
    assert run("export", "tiny", tmp_path / "out").exit_code == 0
    assert len(mirror.asked) == asked
    assert run("fetch", "tiny", "--quiet").output == ""


def test_a_failing_download(run: Run, mirror: Mirror) -> None:
    mirror.content.clear()
    assert "HTTP 404" in refused(run("fetch", "tiny"), code=1)


def test_a_folder_without_the_files(run: Run, raw: Path) -> None:
    (raw / EDGES).unlink()
    assert f"lacks 1 of the 2 raw files of tiny: {EDGES};" in refused(run("fetch", "tiny", "--data-dir", raw))


def test_files_that_were_changed_are_told(run: Run, raw: Path) -> None:
    (raw / EDGES).write_bytes(CONTENT[EDGES].replace(b"\n", b"\r\n"))
    result = run("fetch", "tiny", "--data-dir", raw)
    assert result.stderr == f"note: {EDGES} is not byte for byte the published file\n"


@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "parquet"])
def test_export_is_what_predict_reads(suffix: str, run: Run, raw: Path, tmp_path: Path) -> None:
    out = tmp_path / "new" / "folder"
    result = run("export", "tiny", out, "--data-dir", raw, "--format", suffix)
    assert result.exit_code == 0, result.output
    assert f"Saved {out / 'edges'}.{suffix} and {out / 'nodes'}.{suffix}" in result.stdout
    table = read(out / f"nodes.{suffix}", out / f"edges.{suffix}")
    assert table.id == "node"
    assert table.frame["code"].tolist() == ["007", "008", "009"]
    np.testing.assert_array_equal(table.outcome("y"), [1.5, np.nan, 3.25])
    assert table.graph.n_edges == 2


def test_export_of_the_preset(run: Run, raw: Path, tmp_path: Path) -> None:
    assert run("export", "tiny", tmp_path / "out", "--data-dir", raw, "--preset", "paper").exit_code == 0
    nodes = pd.read_csv(tmp_path / "out" / "nodes.csv")
    assert list(nodes.columns) == ["node", "y"]
    np.testing.assert_allclose(nodes["y"], [-1, 0, 1], atol=1e-12)


@pytest.mark.parametrize("name", ["nodes.csv", "edges.csv"])
def test_export_replaces_a_file_only_when_told_to(name: str, run: Run, raw: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / name).write_text("years of work")
    words = ("export", "tiny", tmp_path / "out", "--data-dir", raw)
    assert f"{name} would be replaced; choose another folder, or add --force" in refused(run(*words))
    assert [(path.name, path.read_text()) for path in (tmp_path / "out").iterdir()] == [(name, "years of work")]
    assert run(*words, "--format", "parquet").exit_code == 0
    assert run(*words, "--force").exit_code == 0
    assert (tmp_path / "out" / name).read_text() != "years of work"


def test_export_to_a_place_that_refuses(run: Run, raw: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    message = refused(run("export", "tiny", tmp_path / "file" / "out", "--data-dir", raw))
    assert "cannot be created" in message


@pytest.mark.slow
def test_predict_on_an_export(run: Run, raw_data: Path, tmp_path: Path) -> None:
    assert run("export", "london-2016", tmp_path / "out", "--data-dir", raw_data).exit_code == 0
    nodes = pd.read_csv(tmp_path / "out" / "nodes.csv")
    truth = nodes["income"].copy()
    nodes.loc[::2, "income"] = np.nan
    nodes.to_csv(tmp_path / "out" / "nodes.csv", index=False)
    words = [str(tmp_path / "out" / name) for name in ("nodes.csv", "edges.csv", "predictions.csv")]
    result = CliRunner().invoke(app, ["predict", *words[:2], "--target", "income", "-o", words[2]])
    assert result.exit_code == 0, result.output
    found = pd.read_csv(words[2])
    assert np.corrcoef(found["prediction"][::2], truth[::2])[0, 1] > 0.85


def test_the_example_is_written_once(tmp_path: Path) -> None:
    made = CliRunner().invoke(app, ["datasets", "example", str(tmp_path / "city")])
    assert made.exit_code == 0, made.output
    assert "--target rent" in made.stdout
    assert pd.read_csv(tmp_path / "city" / "nodes.csv")["rent"].isna().sum() == 700
    again = CliRunner().invoke(app, ["datasets", "example", str(tmp_path / "city")])
    assert (again.exit_code, "would be replaced" in again.stderr) == (2, True)
    assert CliRunner().invoke(app, ["datasets", "example", str(tmp_path / "city"), "--force"]).exit_code == 0
