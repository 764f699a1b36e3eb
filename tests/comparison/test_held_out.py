"""Accuracy by distance to the nearest known value: the rows, the terminal, the page, and what a summary says."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import families
from graphmrf import LabelPropagation
from graphmrf._typing import Bools, Floats
from graphmrf.cli import app
from graphmrf.comparison import HeldOut
from graphmrf.comparison.held_out import standard_error
from graphmrf.estimators.inputs import read_outcome
from graphmrf.graph import Graph
from graphmrf.selection import split, steps_to_label

SIDE = 24
REGIONS = "held-out regions, because the values to predict lie in regions without labels"


def waves() -> Floats:
    x, y = np.divmod(np.arange(SIDE**2), SIDE)
    return np.asarray(np.sin(x / 2.0) + np.cos(y / 2.5))


def left_half() -> Bools:
    return np.arange(SIDE**2) % SIDE < SIDE // 2


def held_out(known: Bools) -> HeldOut:
    graph, y = families.grid(SIDE), np.where(known, waves(), np.nan)
    outcome, model = read_outcome(y, SIDE**2), LabelPropagation().fit(graph, None, y)
    return HeldOut(model, graph, None, outcome, outcome.matched_folds(graph, 5, 0))


def written(folder: Path, known: Bools, values: object) -> tuple[str, str]:
    """Write the lattice with some values left empty."""
    u, v = families.grid(SIDE).adjacency.nonzero()
    frame = pd.DataFrame({"id": np.arange(SIDE**2), "rain": pd.Series(values).where(known)})
    frame.to_csv(folder / "nodes.csv", index=False)
    pd.DataFrame({"source": u[u < v], "target": v[u < v]}).to_csv(folder / "edges.csv", index=False)
    return str(folder / "nodes.csv"), str(folder / "edges.csv")


@pytest.mark.parametrize("random", [True, False])
def test_every_node_is_in_one_band(random: bool) -> None:
    known = split(SIDE**2, 0.3) if random else left_half()
    found = held_out(known)
    predictions = found.model.out_of_fold(found.graph, None, found.outcome.y, found.folds.folds)
    rows = found.by_distance(predictions, 0.9)
    assert rows["to_predict"].sum() == (~known).sum()
    assert rows["held_out"].sum() == known.sum()
    steps = steps_to_label(found.graph, known)
    near = rows.set_index("steps").loc["2 to 3", "to_predict"]
    assert near == ((steps == 2) | (steps == 3)).sum()
    errors = predictions - waves()[known]
    pooled = np.sqrt((rows["error"] ** 2 * rows["held_out"]).sum() / known.sum())
    assert pooled == pytest.approx(np.sqrt(np.mean(errors**2)))
    share = (rows["covered"].fillna(0.0) * rows["held_out"]).sum() / known.sum()
    assert share == pytest.approx(found.covered(0.9).mean())


class Stated:
    """A model whose out-of-fold means are 0, with these standard deviations."""

    def __init__(self, std: Floats) -> None:
        self.std = std

    def predict(self, *, return_std: bool = False) -> Floats:
        return self.std if return_std else np.zeros_like(self.std)

    def out_of_fold(self, *_: object, return_std: bool = False) -> object:
        return (np.zeros_like(self.std), self.std) if return_std else np.zeros_like(self.std)


def test_thirds_by_predicted_spread_show_noise_that_varies() -> None:
    """Errors of 1, 2 and 6 where the standard deviations are 3, 2 and 1, in a mixed order."""
    mixed = np.random.default_rng(0).permutation(30)
    std, errors = np.repeat([3.0, 2.0, 1.0], 10)[mixed], np.repeat([1.0, 2.0, 6.0], 10)[mixed]
    ring = Graph.from_edges(np.arange(30), (np.arange(30) + 1) % 30)
    outcome = read_outcome(errors, 30)
    folds = outcome.matched_folds(ring, 5, 0)
    rows = HeldOut(Stated(std), ring, None, outcome, folds).by_spread(np.zeros(30), 0.9)
    assert rows is not None
    assert rows["third"].tolist() == ["smallest", "middle", "largest"]
    np.testing.assert_allclose(
        rows[["held_out", "std", "error", "covered"]], [[10, 1, 6, 0], [10, 2, 2, 1], [10, 3, 1, 1]]
    )
    assert HeldOut(Stated(np.ones(30)), ring, None, outcome, folds).by_spread(np.zeros(30), 0.9) is None


def test_nodes_without_a_path_to_a_label_have_a_band() -> None:
    u, v = families.grid(SIDE).adjacency.nonzero()
    graph = Graph.from_edges(u, v, n_nodes=SIDE**2 + 1)
    y = np.append(np.where(left_half(), waves(), np.nan), np.nan)
    outcome, model = read_outcome(y, y.size), LabelPropagation().fit(graph, None, y)
    found = HeldOut(model, graph, None, outcome, outcome.matched_folds(graph, 5, 0))
    rows = found.by_distance(outcome.y[outcome.known], 0.9)
    assert rows["steps"].tolist()[-1] == "not connected"
    assert rows["to_predict"].tolist()[-1] == 1
    assert (rows["error"].dropna() == 0).all()


def test_a_standard_error_counts_regions() -> None:
    """Labels that repeat those of their region tell nothing more."""
    rng = np.random.default_rng(0)
    each = rng.normal(size=40)
    regions = np.repeat(np.arange(40), 6)
    assert standard_error(each[regions], 5, regions) == pytest.approx(standard_error(each, 5))
    assert standard_error(each, 5, np.arange(40)) == pytest.approx(standard_error(each, 5))


def test_holes_in_blocks_are_told_in_the_terminal_the_page_and_the_summary(tmp_path: Path) -> None:
    files = written(tmp_path, left_half(), waves())
    page = tmp_path / "page.html"
    shown = CliRunner().invoke(app, ["predict", *files, "--target", "rain", "--method", "lp", "--report", str(page)])
    assert shown.exit_code == 0, shown.output
    assert REGIONS in " ".join(shown.output.split())
    assert "10 and more" in shown.output
    text = page.read_text(encoding="utf-8")
    assert f"Accuracy is measured on {REGIONS}." in text
    assert "Accuracy by distance to the nearest known value" in text
    assert "Intervals by predicted standard deviation" in text
    assert "Held out region by region" in text
    summary = CliRunner().invoke(app, ["predict", *files, "--target", "rain", "--method", "lp", "--json", "--quiet"])
    assert json.loads(summary.stdout)["targets"][0]["held_out_regions"]


def test_random_holes_are_reported_as_before(tmp_path: Path) -> None:
    files = written(tmp_path, split(SIDE**2, 0.5), waves())
    page = tmp_path / "page.html"
    shown = CliRunner().invoke(app, ["predict", *files, "--target", "rain", "--method", "lp", "--report", str(page)])
    assert shown.exit_code == 0, shown.output
    assert "held-out regions" not in shown.output
    assert "Accuracy by distance" not in shown.output
    text = page.read_text(encoding="utf-8")
    assert "Held out fold by fold" in text
    assert "Accuracy by distance to the nearest known value" in text


def test_classes_in_regions_are_told(tmp_path: Path) -> None:
    files = written(tmp_path, left_half(), np.where(waves() > 0, "wet", "dry"))
    shown = CliRunner().invoke(app, ["predict", *files, "--target", "rain", "--method", "lp"])
    assert shown.exit_code == 0, shown.output
    assert REGIONS in " ".join(shown.output.split())
