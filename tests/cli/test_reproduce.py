import errno
import json
import re
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import small_paper
from graphmrf.cli import app
from graphmrf_paper import runner
from graphmrf_paper.methods import TABLE_METHODS
from graphmrf_paper.reproduction import EXPERIMENTS

pytestmark = pytest.mark.slow

PROCESSES = runner.process_pool


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_paper.write_all(tmp_path_factory.mktemp("data"))


@pytest.fixture(autouse=True)
def _surroundings(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Miniatures for data, and a thread for worker processes, which have tests/paper/experiments/test_runner.py."""
    small_paper.use(data, monkeypatch)
    monkeypatch.setattr(runner, "process_pool", lambda _: ThreadPoolExecutor(1))


@pytest.fixture
def output(tmp_path: Path) -> Path:
    return tmp_path / "out"


def reproduce(*words: str | Path) -> Result:
    return CliRunner().invoke(app, ["reproduce", *map(str, words)])


def refused(*words: str | Path) -> str:
    result = reproduce(*words)
    assert result.exit_code == 2, result.output
    assert result.stderr.count("\n") == 1
    return result.stderr


def only(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """Let these be all experiments there are."""
    few = tuple(each for each in EXPERIMENTS if each.name in names)
    monkeypatch.setattr(import_module("graphmrf_paper.reproduction"), "find_experiments", lambda _: few)


@pytest.mark.parametrize("width", [20, 60, 80, 200])
def test_the_list_has_every_name_whole_and_its_time(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    text = reproduce("--list").stdout
    assert re.search(r"^ +real-accuracy +Table.* +\d+ *(minutes|hours)?", text, re.MULTILINE)
    assert {each.name for each in EXPERIMENTS} <= set(text.split())
    assert "\N{HORIZONTAL ELLIPSIS}" not in text


def test_two_tables_are_written_in_every_form(output: Path) -> None:
    result = reproduce("data-statistics", "coefficients", "--quick", "-o", output)
    assert result.exit_code == 0, result.output
    assert "8 runs to do: about" in result.stderr
    assert f"open {output}/index.html" in result.stdout
    for name in ("data-statistics", "coefficients"):
        for suffix in ("csv", "md", "tex"):
            assert (output / "tables" / f"{name}.{suffix}").stat().st_size > 100
    csv = (output / "tables" / "data-statistics.csv").read_text()
    assert "London,attributes,6,,1,4,,2," in csv
    document = (output / "reproduction.md").read_text()
    assert "| London | 100 (608) | 300 (1,750) | 6 (4) |" in document
    assert "graphmrf reproduce data-statistics coefficients --quick" in document
    assert re.search(
        r"Its 8 runs took \d+ seconds? of one core, \d+ seconds? by the clock \(\[more\]\(#time\)\)", document
    )
    assert re.search(r"\| coefficients \| 4 (\| \d+ seconds? ){3}\| . \|", document)
    assert "2 splits, quick run; 8 runs took" in (output / "index.html").read_text()


def test_the_page_is_one_file_with_figures_in_it(output: Path) -> None:
    result = reproduce("sampled-maps", "frequency-response", "--quick", "-o", output)
    assert result.exit_code == 0, result.output
    page = (output / "index.html").read_text()
    assert page.count('src="data:image/svg+xml;base64,') == 2
    assert not re.search(r'(src|href)="(?!data:|#)', page)
    for name in ("sampled-maps", "frequency-response"):
        assert (output / "figures" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert b"<svg" in (output / "figures" / f"{name}.svg").read_bytes()
        assert f"](figures/{name}.png)" in (output / "reproduction.md").read_text()


def test_the_same_command_again_does_nothing_twice(output: Path) -> None:
    words = ("coefficients", "--quick", "--no-figures", "-o", output)
    reproduce(*words)
    before = {path: path.read_bytes() for path in output.rglob("*") if path.is_file()}
    result = reproduce(*words)
    assert "runs to do" not in result.stderr
    assert {path: path.read_bytes() for path in output.rglob("*") if path.is_file()} == before


def test_a_full_run_takes_over_the_splits_of_a_quick_one(output: Path) -> None:
    reproduce("coefficients", "--quick", "--no-figures", "-o", output)
    result = reproduce("coefficients", "--no-figures", "-o", output)
    assert "16 runs to do, 4 are there already" in result.stderr


def test_shapes_are_used_for_maps(output: Path, tmp_path: Path) -> None:
    square = [[[-100.0, 40.0], [-99.0, 40.0], [-99.0, 41.0], [-100.0, 40.0]]]
    features = [
        {"type": "Feature", "id": f"{1000 + k:05d}", "geometry": {"type": "Polygon", "coordinates": square}}
        for k in range(100)
    ]
    shapes = tmp_path / "counties.json"
    shapes.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    words = ("sampled-maps", "--quick")
    assert reproduce(*words, "-o", output, "--shapes", shapes).exit_code == 0
    assert reproduce(*words, "-o", output.with_name("plain")).exit_code == 0
    drawn, plain = (
        (folder / "figures" / "sampled-maps.png").read_bytes() for folder in (output, output.with_name("plain"))
    )
    assert drawn != plain


def test_an_unknown_name_is_answered_with_the_nearest(output: Path) -> None:
    message = refused("real-acuracy", "-o", output)
    assert message.startswith("error: no experiment is called 'real-acuracy'; did you mean 'real-accuracy'")
    assert not output.exists()


def test_a_folder_without_the_files_lists_them(output: Path, tmp_path: Path) -> None:
    message = refused("coefficients", "-o", output, "--data-dir", tmp_path)
    assert "us-2012" in message
    assert "county_facebook/election.csv" in message


def test_without_any_data_nothing_is_run(output: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    only(monkeypatch, "frequency-response", "coefficients")
    assert "us-2012" in refused("--quick", "-o", output, "--data-dir", tmp_path)


def test_what_lacks_its_data_is_left_out_with_a_note(data: Path, output: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    only(monkeypatch, "synthetic-accuracy", "data-statistics", "fitted-parameters", "classification")
    result = reproduce("--all", "--quick", "--no-figures", "-o", output)
    assert result.exit_code == 0, result.output
    notes = [line for line in result.stderr.splitlines() if line.startswith("note:")]
    assert len(notes) == 2
    assert re.match("note: left out classification: elliptic is downloaded when you accept its licence", notes[1])
    assert re.match("note: left out synthetic-accuracy, fitted-parameters: .*synthetic/WattsStrogatzOriginal", notes[0])
    document = (output / "reproduction.md").read_text()
    assert "synthetic-accuracy, fitted-parameters: the data set synthetic-paper-h1 was not there" in document
    assert "elliptic was not there; graphmrf datasets fetch elliptic --accept-licence downloads it" in document
    assert str(data) not in document.split("## The command")[0]


def test_results_of_another_version_are_refused_and_kept(output: Path) -> None:
    output.mkdir()
    other = json.dumps({"title": "graphmrf reproduction", "format": 0, "version": "0.0.1"}) + "\n"
    (output / "results.jsonl").write_text(other)
    message = refused("data-statistics", "-o", output)
    assert "has format 0 (graphmrf 0.0.1), this version has format 2" in message
    assert (output / "results.jsonl").read_text() == other


@pytest.mark.parametrize("place", ["graphmrf_paper.runner.write_line", "graphmrf_paper.reproduction.Path.write_bytes"])
def test_a_full_disk_is_told_and_what_was_done_is_kept(
    place: str, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("data-statistics", "--quick", "--no-figures", "-o", output)
    assert reproduce("coefficients", *words).exit_code == 0
    before = (output / "results.jsonl").read_text()

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(place, full)
        result = reproduce("coefficients", "--seed", "1", *words)
    assert result.exit_code == 1
    assert f"failed: cannot write to {output} (No space left on device); what was finished is kept" in result.stderr
    assert (output / "results.jsonl").read_text().startswith(before)
    assert reproduce("coefficients", "--seed", "1", *words).exit_code == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--jobs", "0"), "--jobs must be at least 1, got 0"),
        (("--seed", "-1"), "--seed must be 0 or more, got -1"),
        (("--all",), "--all runs every experiment, got names as well"),
        (("--shapes", "nowhere.json"), "nowhere.json cannot be read"),
    ],
)
def test_options_out_of_range_are_refused(words: tuple[str, ...], message: str, output: Path) -> None:
    assert message in refused("data-statistics", "-o", output, *words)


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert "cannot make the folder" in refused("data-statistics", "-o", tmp_path / "file")


def test_without_matplotlib_the_extra_is_named(output: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphmrf_paper.figures.find_spec", lambda _: None)
    result = reproduce("data-statistics", "-o", output)
    assert result.exit_code == 2
    assert "pip install 'graphmrf[figures]', or use --no-figures" in result.stderr


def test_a_run_that_fails_is_told_and_the_rest_is_written(
    output: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_paper.use(tmp_path, monkeypatch)
    monkeypatch.setattr(runner, "process_pool", PROCESSES)  # which have not read these data yet
    for name, nodes in small_paper.county_tables().items():
        small_paper.keep(tmp_path, name, nodes.drop(columns="education") if name == "us-2012" else nodes)
    result = reproduce("coefficients", "--quick", "--no-figures", "-o", output)
    assert result.exit_code == 1
    assert "2 runs failed, the first is 'lgc_coefficients data=us-2012" in result.stderr
    assert "| 2016 |" in (output / "tables" / "coefficients.md").read_text()


@pytest.mark.parametrize("name", ["index.html", "reproduction.md"])
def test_the_page_of_another_is_not_replaced(name: str, output: Path) -> None:
    output.mkdir()
    (output / name).write_text("my home page")
    assert "would be replaced; give another folder with --output" in refused("data-statistics", "--quick", "-o", output)
    assert [(path.name, path.read_text()) for path in output.iterdir()] == [(name, "my home page")]


def test_methods_are_left_out(output: Path) -> None:
    others = [word for name in TABLE_METHODS if name != "LP" for word in ("--without", name)]
    result = reproduce("real-accuracy", "--quick", "--no-figures", *others, "--output", output)
    assert result.exit_code == 0, result.output
    keys = [json.loads(line)["key"] for line in (output / "results.jsonl").read_text().splitlines()[1:]]
    assert keys
    assert all(" method=LP " in key for key in keys)
    assert "runs have no result" in (output / "reproduction.md").read_text(encoding="utf-8")


def test_a_method_to_leave_out_must_be_one() -> None:
    assert "no method is called 'LGC shrank'; did you mean 'LGC shrunk'" in refused("--without", "LGC shrank")
