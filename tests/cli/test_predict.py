"""graphmrf predict: what comes out, in every form, and the limit cases."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t as student
from typer.testing import CliRunner

import graphmrf as gm
from graphmrf.cli import COMMANDS, app, load_command
from graphmrf.comparison import AUTO, TRANSFORMS
from graphmrf.errors import ConvergenceError
from graphmrf.estimators import methods

METHODS = ["lp", "lr", "lgc", "lgc-rp", "field", "auto"]


def table(town: Any, *options: str) -> pd.DataFrame:
    path = town.folder / "out.csv"
    result = town.run("-o", str(path), *options)
    assert result.exit_code == 0, result.output
    return pd.read_csv(path, dtype={"place": "str"})


def summary(town: Any, *options: str) -> dict[str, Any]:
    result = town.run("--json", *options)
    assert result.exit_code == 0, result.output
    loaded: dict[str, Any] = json.loads(result.stdout)
    return loaded


@pytest.mark.parametrize("method", METHODS)
def test_the_table_has_every_node_in_order_and_keeps_what_was_observed(method: str, town: Any) -> None:
    made = table(town, "--target", "income", "--method", method)
    columns = ["prediction", "std", "lower", "upper", "observed", "left_out", "residual"]
    assert list(made.columns) == ["place", *columns]
    assert (made["left_out"].notna() == made["observed"]).all()
    assert (made["residual"].notna() == made["observed"]).all()
    assert made["place"].tolist() == town.nodes["place"].tolist()
    observed = town.nodes["income"].notna()
    assert made["observed"].tolist() == observed.tolist()
    np.testing.assert_array_equal(made["prediction"][observed], town.nodes["income"][observed])
    assert (made["std"][observed] == 0).all()
    assert (made["std"][~observed] > 0).all()


def test_up_to_ninety_per_cent_the_interval_is_that_of_a_normal_distribution(town: Any) -> None:
    made = table(town, "--target", "income", "--method", "lgc-rp", "--interval", "0.9")
    np.testing.assert_allclose(made["upper"] - made["prediction"], 1.644854 * made["std"], rtol=1e-6)


ESTIMATORS: dict[str, Callable[[], Any]] = {
    "lp": gm.LabelPropagation,
    "lr": gm.LinearRegression,
    "lgc": gm.LinearGraphConvolution,
    "lgc-rp": lambda: gm.ResidualPropagation(gm.LinearGraphConvolution()),
    "field": gm.GraphRegressor,
}


@pytest.mark.parametrize("method", ESTIMATORS)
def test_each_method_is_the_estimator_of_the_library(method: str, town: Any) -> None:
    read = gm.read(town.folder / "nodes.csv", town.folder / "edges.csv")
    X = None if method == "lp" else read.frame[["age"]]
    mean, std = ESTIMATORS[method]().fit(read.graph, X, read.outcome("income")).predict(return_std=True)
    made = table(town, "--target", "income", "--method", method)
    hidden = ~made["observed"]
    np.testing.assert_allclose(made["prediction"][hidden], mean[hidden], rtol=1e-10)
    np.testing.assert_allclose(made["std"][hidden], std[hidden], rtol=1e-10)


@pytest.mark.slow
def test_auto_takes_the_field_unless_another_is_surely_better(town: Any) -> None:
    made = summary(town, "--target", "income")
    target = made["targets"][0]
    scores = {row["method"]: row["r2"] for row in target["comparison"]}
    assert list(scores) == ["lp", "lr", "lgc", "lr-rp", "lgc-rp", "field"]
    leader = max(scores, key=lambda method: scores[method])
    assert scores[leader] < scores["field"] + 2 * target["r2_error"]
    assert target["method"] == "field"
    assert target["r2"] == scores["field"]
    assert not any("higher R²" in note for note in made["notes"])
    for method, score in scores.items():
        assert summary(town, "--target", "income", "--method", method)["targets"][0]["r2"] == pytest.approx(score)


@pytest.mark.parametrize("signal", [0.0, 5.0])
def test_the_first_lines_say_when_nothing_predicts_the_target(signal: float, town: Any) -> None:
    rng = np.random.default_rng(3)
    noise = rng.standard_normal(len(town.nodes)) + signal * town.nodes["age"]
    town.write(town.nodes.assign(income=noise.where(town.nodes["income"].notna())))
    result = town.run("--target", "income", "--report", str(town.folder / "page.html"))
    sentence = "No method predicts held-out values of income better than their mean does: R² "
    assert any(line.startswith(sentence) for line in result.stdout.splitlines()) == (not signal)
    assert (sentence in (town.folder / "page.html").read_text(encoding="utf-8")) == (not signal)


def test_auto_prints_the_comparison_and_one_sentence(town: Any) -> None:
    result = town.run("--target", "income")
    assert result.exit_code == 0
    for words in ("outcomes of neighbours", "lgc-rp", "carry the prediction", "save all with -o"):
        assert words in result.stdout
    first, *others = result.stderr.splitlines()
    assert first == "note: nodes.csv: the first column, 'place', is used as the node id"
    assert others[0] == "note: features: 'age'"
    assert all(line.startswith("note: income: ") for line in others[1:])


def test_a_given_alpha_is_used_and_scored(town: Any) -> None:
    target = summary(town, "--target", "income", "--alpha", "0.83")["targets"][0]
    assert [row["alpha"] for row in target["comparison"]] == [0.83, None, 0.83, 0.83, 0.83, None]
    assert all(np.isfinite(row["r2"]) for row in target["comparison"])


@pytest.mark.parametrize("method", ["lp", "lgc", "lgc-rp"])
def test_a_given_alpha_has_the_score_of_the_search(method: str, town: Any) -> None:
    read = gm.read(town.folder / "nodes.csv", town.folder / "edges.csv")
    made = ESTIMATORS[method]()
    model = made.set_params(shrinkage=0) if method == "lgc" else made  # as at a given level
    searched = model.fit(read.graph, read.frame[["age"]], read.outcome("income")).cv_results_
    given = summary(town, "--target", "income", "--method", method, "--alpha", "0.6")["targets"][0]
    assert given["r2"] == pytest.approx(searched["mean_r2"][searched["alpha"] == 0.6][0], abs=1e-5)


def test_json_is_all_there_is_on_stdout(town: Any) -> None:
    made = summary(town, "--target", "income", "--method", "lgc")
    assert (made["nodes"], made["edges"], made["components"], made["id"]) == (64, 112, 1, "place")
    target = made["targets"][0]
    assert target["target"] == "income"
    assert target["observed"] + target["predicted"] == 64
    assert list(target["coefficients"]) == ["age"]
    assert town.made == []


def test_quiet_prints_nothing(town: Any) -> None:
    result = town.run("--target", "income", "--quiet", "-o", str(town.folder / "out.csv"))
    assert (result.exit_code, result.output) == (0, "")
    assert town.made == ["out.csv"]


@pytest.mark.parametrize("name", ["out.parquet", "out.csv.gz", "out.tsv"])
def test_every_output_format_holds_the_same(name: str, town: Any) -> None:
    expected = table(town, "--target", "income")
    result = town.run("--target", "income", "-o", str(town.folder / name))
    assert result.exit_code == 0
    path = town.folder / name
    separator = "\t" if name.endswith("tsv") else ","
    made = (
        pd.read_parquet(path) if name.endswith("parquet") else pd.read_csv(path, sep=separator, dtype={"place": "str"})
    )
    pd.testing.assert_frame_equal(made, expected)


def test_every_input_format_gives_the_same(town: Any) -> None:
    expected = table(town, "--target", "income")
    town.nodes.to_parquet(town.folder / "n.parquet")
    town.edges.to_csv(town.folder / "e.tsv.gz", sep="\t", index=False)
    paths = [str(town.folder / name) for name in ("n.parquet", "e.tsv.gz")]
    result = CliRunner().invoke(app, ["predict", *paths, "--target", "income", "-o", str(town.folder / "again.csv")])
    assert result.exit_code == 0, result.output
    pd.testing.assert_frame_equal(pd.read_csv(town.folder / "again.csv", dtype={"place": "str"}), expected)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_bytes(town: Any) -> None:
    first = [town.run("--target", "income", "--seed", "3", "--json").stdout for _ in range(2)]
    assert first[0] == first[1]
    table(town, "--target", "income", "--seed", "3")
    before = (town.folder / "out.csv").read_bytes()
    table(town, "--target", "income", "--seed", "3")
    assert (town.folder / "out.csv").read_bytes() == before


def with_rent(town: Any) -> pd.DataFrame:
    rent = town.nodes["age"] / 4 + np.sin(np.arange(64))
    rent[5:30] = np.nan
    nodes: pd.DataFrame = town.nodes.assign(rent=rent)
    return nodes


def test_several_targets_have_columns_of_their_own(town: Any) -> None:
    town.write(with_rent(town))
    made = table(town, "--target", "income", "--target", "rent")
    parts = ["prediction", "std", "lower", "upper", "observed", "left_out", "residual"]
    assert list(made.columns) == ["place", *(f"income_{part}" for part in parts), *(f"rent_{part}" for part in parts)]


@pytest.mark.slow
def test_without_a_target_the_only_column_with_empty_cells_is_predicted(town: Any) -> None:
    expected = table(town, "--target", "income")
    pd.testing.assert_frame_equal(table(town), expected)
    assert "note: income: predicted, as the only numeric column with empty cells" in town.run().stderr
    town.write(with_rent(town))
    pd.testing.assert_frame_equal(table(town, "--ignore", "rent"), expected)


def test_every_target_has_a_preview_that_fits_a_terminal(town: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    town.write(with_rent(town))
    shown = town.run("--target", "income", "--target", "rent", "--method", "lr").stdout
    assert shown.count("place   prediction") == 2
    assert "…" not in shown
    assert "The first 8 of 25 predicted nodes" in shown


def test_a_constant_prediction_is_shown_plainly(town: Any) -> None:
    town.write(edges=town.edges.head(0))
    shown = town.run("--target", "income", "--method", "lp").stdout
    assert f" {town.nodes['income'].mean():.1f} " in shown
    assert "e+" not in shown


def test_numbers_of_two_values_are_told(town: Any) -> None:
    income = town.nodes["income"]
    said = "note: rich is 0/1 and treated as numeric; use --classify for classes"
    rich = (income > income.median()).astype(float).where(income.notna())
    for column in (rich, rich.map({1.0: "true", 0.0: "false"})):
        town.write(town.nodes.drop(columns="income").assign(rich=column))
        assert said in town.run("--target", "rich", "--method", "lr").stderr
    town.write()
    assert "treated as numeric" not in town.run("--target", "income", "--method", "lr").stderr


def test_standard_errors_as_features_are_pointed_out(town: Any) -> None:
    rng = np.random.default_rng(0)
    town.write(town.nodes.assign(income_se=rng.random(64), population=rng.integers(10, 99, 64)))
    said = " ".join(town.run("--target", "income", "--method", "lr").stderr.split())
    assert "'income_se', 'population': used as features, but the names suggest standard errors or sample sizes" in said
    town.write()
    assert "the names suggest" not in town.run("--target", "income", "--method", "lr").stderr


@pytest.mark.slow
def test_one_target_is_no_feature_of_another(town: Any) -> None:
    expected = table(town, "--target", "income")
    town.write(with_rent(town))
    made = table(town, "--target", "income", "--target", "rent")
    np.testing.assert_allclose(made["income_prediction"], expected["prediction"])


def test_what_was_done_to_the_columns_is_told(town: Any) -> None:
    age = town.nodes["age"].mask(np.arange(64) == 7)
    town.write(town.nodes.assign(age=age, flat=1, side=["n", "s"] * 32, street=[f"s{i}" for i in range(64)]))
    notes = town.run("--target", "income").stderr
    jointly = "filled missing cells from the other features and the neighbours"
    assert f"note: {jointly} (field; other methods: with the column mean): 'age' (1 cell)" in notes
    assert "note: ignored 'flat': a single value" in notes
    assert "note: one-hot encoded: 'side' (2 levels)" in notes
    assert "note: ignored 'street' (64 values): text with too many different values" in notes


def test_error_bars_from_few_values_come_with_a_warning(town: Any) -> None:
    known = town.nodes["income"].notna().cumsum()
    town.write(town.nodes.assign(income=town.nodes["income"].where(known <= 6)))
    notes = town.run("--target", "income", "--method", "lr").stderr
    assert "note: income: only 6 known values for 1 feature: R² is uncertain" in notes
    assert "for 1 feature" not in town.run("--target", "income", "--method", "lp").stderr
    assert "only 6 known values: R² is uncertain, and error bars are wide" in town.run("--method", "field").stderr
    town.write()
    assert "too narrow" not in town.run("--target", "income").stderr


def test_error_bars_that_are_empty_are_not_said_to_be_wide(town: Any) -> None:
    known = town.nodes["income"].notna().cumsum()
    town.write(town.nodes.assign(income=town.nodes["income"].where(known <= 2)))
    notes = town.run("--target", "income", "--method", "lr").stderr
    assert "only 2 known values for 1 feature: R² is uncertain, and std, lower and upper are empty" in notes
    assert "wide" not in notes


def test_tails_of_few_values_are_those_of_students_distribution(town: Any) -> None:
    known = town.nodes["income"].notna().cumsum()
    town.write(town.nodes.assign(income=town.nodes["income"].where(known <= 6)))
    made = table(town, "--target", "income", "--method", "lr", "--interval", "0.99")
    widths = ((made["upper"] - made["lower"]) / made["std"])[~made["observed"]]
    np.testing.assert_allclose(widths, 2.0 * student.ppf(0.995, 4) / np.sqrt(2.0), rtol=1e-4)


def test_ignored_columns_do_not_matter(town: Any) -> None:
    expected = table(town, "--target", "income")
    town.write(town.nodes.assign(noise=np.cos(np.arange(64))))
    pd.testing.assert_frame_equal(table(town, "--target", "income", "--ignore", "noise"), expected)


def test_without_features_only_outcomes_of_neighbours_are_left(town: Any) -> None:
    target = summary(town, "--target", "income", "--ignore", "age")["targets"][0]
    assert [row["method"] for row in target["comparison"]] == ["lp", "field"]
    assert "Without features" in target["carries"]
    assert summary(town, "--target", "income", "--method", "lp")["targets"][0]["carries"] == ""


@pytest.mark.parametrize("method", METHODS)
def test_no_edges(method: str, town: Any) -> None:
    town.write(edges=town.edges.head(0))
    made = table(town, "--target", "income", "--method", method)
    assert np.isfinite(made[["prediction", "std", "lower", "upper"]]).all(axis=None)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_isolated_nodes_and_components_without_labels(method: str, town: Any) -> None:
    income = town.nodes["income"].copy()
    income[:16] = np.nan
    income[[0, 40]] = 30.0, np.nan
    first_rows = set(town.nodes["place"][:16])
    inside = town.edges.map(lambda name: name in first_rows)
    cut = town.edges[inside["source"] == inside["target"]]
    lonely = town.nodes["place"][[0, 40]].tolist()
    town.write(town.nodes.assign(income=income), cut[~cut.isin(lonely).any(axis=1)])
    made = table(town, "--target", "income", "--method", method)
    assert np.isfinite(made[["prediction", "std", "lower", "upper"]]).all(axis=None)
    assert (made["std"][~made["observed"]] > 0).all()
    assert "income: 16 nodes have no path to a node with a known value" in town.run("--target", "income").stderr


@pytest.mark.parametrize("method", METHODS)
def test_two_labelled_nodes(method: str, town: Any) -> None:
    income = town.nodes["income"].mask(np.arange(64) > 1)
    income[:2] = 20.0, 40.0
    town.write(town.nodes.assign(income=income))
    made = table(town, "--target", "income", "--method", method)
    assert np.isfinite(made["prediction"]).all()


def test_a_report_is_written_beside_the_table(town: Any) -> None:
    result = town.run(
        "--target", "income", "-o", str(town.folder / "out.csv"), "--report", str(town.folder / "report.html")
    )
    assert result.exit_code == 0, result.output
    assert town.made == ["out.csv", "report.html"]
    assert "Saved " in result.stdout
    page = (town.folder / "report.html").read_text(encoding="utf-8")
    for words in ("income", "place", "--target income", "carry the prediction"):
        assert words in page


def test_a_failure_of_ours_is_exit_code_1_and_leaves_nothing(town: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ConvergenceError("no convergence\nafter 10 steps")

    monkeypatch.setattr(gm.LabelPropagation, "fit", fail)
    result = town.run("--target", "income", "--method", "lp", "-o", str(town.folder / "out.csv"))
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "failed: no convergence after 10 steps\n"
    assert town.made == []


@pytest.mark.parametrize("target", ["income", "wealth"])
def test_a_method_that_does_not_converge_is_left_out(target: str, town: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Any, graph: Any, X: Any, y: Any, **known: Any) -> None:  # noqa: ARG001 - the arguments of a fit
        raise ConvergenceError("no optimum after 500 steps")

    income = town.nodes["income"]
    wealth = pd.Series(np.where(income > income.median(), "high", "low")).where(income.notna())
    town.write(town.nodes.assign(income=income if target == "income" else 1.0, wealth=wealth))
    monkeypatch.setattr(gm.GraphRegressor, "fit", fail)
    made = summary(town, "--target", target)
    assert [row["method"] for row in made["targets"][0]["comparison"]] == ["lp", "lr", "lgc", "lr-rp", "lgc-rp"]
    said = f"{target}: field is left out, as it did not converge: no optimum after 500 steps"
    assert said in made["notes"]
    alone = town.run("--target", target, "--method", "field")
    assert (alone.exit_code, alone.stderr) == (1, "failed: no optimum after 500 steps\n")


def test_a_bug_is_one_line_too(town: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def stumble(*_: object, **__: object) -> None:
        raise KeyError("fits")

    monkeypatch.setattr(gm.LabelPropagation, "fit", stumble)
    result = town.run("--target", "income", "--method", "lp", "-o", str(town.folder / "out.csv"))
    assert result.exit_code == 1
    assert result.stderr.startswith("failed: KeyError")
    assert result.stderr.count("\n") == 1
    assert town.made == []


def test_a_full_disk_leaves_nothing(town: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail_half_way(_frame: pd.DataFrame, stream: IO[bytes], **_: object) -> None:
        stream.write(b"half a ta")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pd.DataFrame, "to_csv", fail_half_way)
    result = town.run("--target", "income", "-o", str(town.folder / "out.csv"))
    assert result.exit_code == 1
    assert "No space left" in result.stderr
    assert town.made == []


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_full_stdout_is_one_line_and_a_closed_one_none() -> None:
    command = [sys.executable, "-m", "graphmrf", "datasets", "list"]
    with Path("/dev/full").open("w") as full:
        found = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (found.returncode, found.stderr) == (1, "failed: [Errno 28] No space left on device\n")
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as closed:
        found = subprocess.run(command, stdout=closed, stderr=subprocess.PIPE, text=True, check=False)
    assert (found.returncode, found.stderr) == (0, "")


def test_sigterm_leaves_no_temporary_file(tmp_path: Path) -> None:
    code = (
        "import sys, time, graphmrf.files as files\n"
        "from graphmrf import cli\n"
        "def write():\n"
        "    with files.atomic(sys.argv[1]) as draft:\n"
        "        draft.write_text('half'); print('writing', flush=True); time.sleep(60)\n"
        "cli.app = write\n"
        "cli.main()\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "out.csv")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "writing\n"
        running.terminate()
        _, said = running.communicate(timeout=60)
    assert (running.returncode, said) == (143, "stopped by SIGTERM; every file is untouched or complete\n")
    assert not list(tmp_path.iterdir())


def test_version_and_help() -> None:
    runner = CliRunner()
    assert runner.invoke(app, ["--version"]).stdout.startswith("graphmrf 0")
    assert "predict" in runner.invoke(app, ["--help"]).stdout
    text = runner.invoke(app, ["predict", "--help"], env={"COLUMNS": "120", "TERM": "dumb"}).stdout
    for words in ("graphmrf predict districts.csv borders.csv --target rent", "--method", "--interval", "Exit code"):
        assert words in text


@pytest.mark.parametrize("name", COMMANDS)
def test_commands_are_listed_with_the_line_of_their_own_help(name: str) -> None:
    command, line = load_command(name), COMMANDS[name][1]
    assert command.help.split("\n")[0] == line
    assert command.name == name


@pytest.mark.parametrize("command", ["", *COMMANDS, "datasets list"])
def test_help_loads_nothing_large(command: str) -> None:
    code = "import sys; from graphmrf.cli import main\ntry: main()\nfinally: print(sorted(LARGE & {*sys.modules}))"
    large = {"numpy", "scipy", "pandas", "pyarrow", "sklearn", "numba", "plotly", "pydantic"}
    call = [sys.executable, "-c", code.replace("LARGE", repr(large)), *command.split(), "--help"]
    shown = subprocess.run(call, capture_output=True, text=True, check=True).stdout
    assert "Usage:" in shown
    assert shown.endswith("\n[]\n")


def test_a_misspelt_command_is_guessed() -> None:
    result = CliRunner().invoke(app, ["predcit"])
    assert result.exit_code == 2
    assert "Did you mean 'predict'?" in result.stderr


def test_every_method_is_explained() -> None:
    text = CliRunner().invoke(app, ["predict", "--help"], env={"COLUMNS": "200", "TERM": "dumb"}).stdout
    words = set(re.findall("[a-z-]+", text))
    assert {*methods.METHODS, AUTO, *TRANSFORMS} <= words


@pytest.mark.slow
def test_the_real_command(town: Any) -> None:
    command = [sys.executable, "-c", "from graphmrf.cli import main; main()", "predict"]
    paths = [str(town.folder / "nodes.csv"), str(town.folder / "edges.csv")]
    good = subprocess.run([*command, *paths, "--json"], capture_output=True, text=True, check=False)
    assert good.returncode == 0
    assert json.loads(good.stdout)["nodes"] == 64
    bad = subprocess.run([*command, *paths, "--target", "rent"], capture_output=True, text=True, check=False)
    assert (bad.returncode, bad.stdout) == (2, "")
    assert bad.stderr.startswith("error: ")
    assert "Traceback" not in bad.stderr


@pytest.fixture
def interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let Ctrl-C come while the field is fitted."""

    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(gm.GraphRegressor, "fit", interrupt)


@pytest.mark.slow
@pytest.mark.usefixtures("interrupted")
def test_ctrl_c_during_the_field_uses_the_best_of_the_other_methods(town: Any) -> None:
    result = town.run("--target", "income", "--json")
    assert result.exit_code == 0
    assert (
        "income: field is left out, as Ctrl-C stopped its fit; the best of the other methods is used" in result.stderr
    )
    (found,) = json.loads(result.stdout)["targets"]
    scores = {each["method"]: each["r2"] for each in found["comparison"]}
    assert "field" not in scores
    assert found["method"] == max(scores, key=lambda name: scores[name])


@pytest.mark.usefixtures("interrupted")
@pytest.mark.parametrize("options", [["--method", "field"], ["--suggest", "2"]])
def test_ctrl_c_ends_where_no_other_method_is_there(town: Any, options: list[str]) -> None:
    result = town.run("--target", "income", *options)
    assert (result.exit_code, result.stdout) == (130, "")
