"""Saved models: the same answers after loading, nothing executed, and errors that name file and remedy."""

import hashlib
import json
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression as Plain
from sklearn.tree import DecisionTreeRegressor

import graphmrf as gm
from graphmrf.errors import InvalidInputError

N = 60
RNG = np.random.default_rng(3)
GRAPH = gm.Graph.from_knn(RNG.random((N, 2)), 4, ids=[f"é{i}" for i in range(N)])
X = pd.DataFrame(RNG.normal(size=(N, 2)), columns=["age", "size"], index=GRAPH.ids)
HOLES = X.mask(RNG.random(X.shape) < 0.1)
LABELLED = RNG.random(N) < 0.5
Y = (X["age"] + np.sin(2 * X["size"]) + RNG.normal(scale=0.3, size=N)).where(LABELLED).rename("rent")
COUNTS = pd.Series(RNG.poisson(np.exp(0.5 * X["age"] + 1)), index=GRAPH.ids).where(LABELLED)
CLASSES = Y.map(lambda value: "high" if value > 0 else "low", na_action="ignore").astype(object).where(LABELLED, None)


@cache
def models() -> dict[str, Any]:
    return {
        "lp": gm.LabelPropagation().fit(GRAPH, None, Y),
        "spreading": gm.LabelSpreading(alpha=0.5).fit(GRAPH, None, Y),
        "lr": gm.LinearRegression().fit(GRAPH, X, Y),
        "lgc": gm.LinearGraphConvolution().fit(GRAPH, X, Y),
        "sgc": gm.SimpleGraphConvolution().fit(GRAPH, X, Y),
        "gcn": gm.GraphConvolutionalNetwork(n_layers=1, epochs=20).fit(GRAPH, X, Y),
        "lgc-rp": gm.ResidualPropagation(gm.LinearGraphConvolution()).fit(GRAPH, X, Y),
        "given": gm.ResidualPropagation(predictions=Y.fillna(0.0)).fit(GRAPH, None, Y),
        "arrays": gm.GraphRegressor().fit(gm.Graph(GRAPH.adjacency), X.to_numpy(np.float32), Y.to_numpy(np.float32)),
        "holes": gm.GraphRegressor(likelihood="student").fit(GRAPH, HOLES, Y),
        "sparse": gm.GraphRegressor(solver="sparse").fit(GRAPH, HOLES, Y),
        "skewed": gm.GraphRegressor(transform="yeo-johnson").fit(GRAPH, X, Y),
        "counts": gm.GraphRegressor(likelihood="negative-binomial").fit(GRAPH, X, COUNTS, exposure=2.0),
        "surveys": gm.GraphRegressor().fit(GRAPH, X, Y, std=0.2),
        "classes": gm.GraphClassifier().fit(GRAPH, X, CLASSES),
        "sigmoid": gm.GraphClassifier(gm.LabelPropagation(), cv=2).fit(GRAPH, None, CLASSES),
    }


def answers(model: Any) -> list[Any]:
    if isinstance(model, gm.GraphClassifier):
        return [model.predict_proba()]
    if isinstance(model, gm.LabelSpreading):
        return [model.predict()]
    return [*model.predict(return_std=True)]


def loaded(model: Any, folder: Path) -> Any:
    model.save(folder / "model.gmrf")
    return gm.load(folder / "model.gmrf")


@pytest.mark.parametrize("name", models())
def test_a_loaded_model_predicts_the_same(name: str, tmp_path: Path) -> None:
    model = models()[name]
    again = loaded(model, tmp_path)
    assert type(again) is type(model)
    assert str(again.summary()) == str(model.summary())
    for found, expected in zip(answers(again), answers(model), strict=True):
        assert type(found) is type(expected)
        assert found.dtype == expected.dtype if isinstance(found, np.ndarray) else found.index.equals(expected.index)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", ["lgc", "arrays", "sparse"])
def test_a_loaded_model_predicts_another_graph(name: str, tmp_path: Path) -> None:
    model, other = models()[name], gm.Graph.from_edges(np.arange(9), np.arange(1, 10))
    features = X.iloc[:10].to_numpy(np.float32) if name == "arrays" else X.iloc[:10].reset_index(drop=True)
    expected = model.predict(other, features, return_std=True)
    np.testing.assert_allclose(loaded(model, tmp_path).predict(other, features, return_std=True), expected, atol=1e-6)


def test_draws_totals_and_suggestions_are_the_same(tmp_path: Path) -> None:
    model, groups = models()["holes"], pd.Series(np.arange(N) % 3, index=GRAPH.ids)
    again = loaded(model, tmp_path)
    np.testing.assert_allclose(again.sample(3), model.sample(3), atol=1e-6)
    np.testing.assert_allclose(again.predict_total(groups), model.predict_total(groups), atol=1e-6)
    assert again.suggest(2)["node"].tolist() == model.suggest(2)["node"].tolist()


def test_imputers_and_adapters_are_stored(tmp_path: Path) -> None:
    imputer = gm.GraphImputer(GRAPH, method="coupled").fit(HOLES)
    again = loaded(imputer, tmp_path)
    pd.testing.assert_frame_equal(again.transform(HOLES), imputer.transform(HOLES))
    np.testing.assert_allclose(again.sample()[0], imputer.sample()[0])
    assert GRAPH.ids is not None
    nodes = GRAPH.ids[:20]
    adapter = gm.NodeAdapter(gm.LabelPropagation(alpha=0.5), GRAPH).fit(nodes, np.arange(20.0))
    np.testing.assert_array_equal(loaded(adapter, tmp_path).predict(nodes), adapter.predict(nodes))


@pytest.mark.parametrize(
    "times",
    [
        pd.to_datetime(["2024-01-01", "2025-01-01"]),
        pd.to_datetime(["2024-01-01", "2025-01-01"]).tz_localize("Europe/Vienna"),
        pd.period_range("2024", periods=2, freq="Y"),
        pd.RangeIndex(2, name="year"),
    ],
    ids=["dates", "zone", "periods", "range"],
)
def test_panels_are_stored(times: pd.Index, tmp_path: Path) -> None:
    panel = GRAPH.over_time(times)
    y = pd.Series(np.arange(2.0 * N), index=panel.ids).where(RNG.random(2 * N) < 0.5)
    model = gm.LabelPropagation(alpha=0.9).fit(panel, None, y)
    expected: Any = model.predict()
    pd.testing.assert_series_equal(loaded(model, tmp_path).predict(), expected)


def test_a_file_is_small(tmp_path: Path) -> None:
    models()["arrays"].save(tmp_path / "model.gmrf")
    assert (tmp_path / "model.gmrf").stat().st_size < 40_000


@pytest.mark.parametrize(
    "model",
    [
        gm.ResidualPropagation(Plain()).fit(GRAPH, X, Y),
        gm.GraphRegressor(learner=DecisionTreeRegressor()).fit(GRAPH, X, Y),
    ],
    ids=["base", "learner"],
)
def test_parts_of_other_packages_are_refused(model: Any, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"running code|other packages"):
        model.save(tmp_path / "model.gmrf")
    assert not list(tmp_path.iterdir())


def rewritten(path: Path, change: Any, *, with_digest: bool = False) -> None:
    """Change the table of a file, and its digest as somebody would who does so on purpose."""
    with zipfile.ZipFile(path) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    entries["model.json"] = json.dumps(change(json.loads(entries["model.json"]))).encode()
    if with_digest:
        entries["model.sha256"] = hashlib.sha256(entries["model.json"]).hexdigest().encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in entries.items():
            archive.writestr(name, content)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda table: table | {"format": 99}, r"model\.gmrf was written by .* newer format .* upgrade graphmrf"),
        (lambda table: table | {"model": {"object": 1}}, r"model\.gmrf is damaged \(its contents were changed\); save"),
    ],
    ids=["newer", "changed"],
)
def test_newer_and_changed_files_are_refused(change: Any, match: str, tmp_path: Path) -> None:
    models()["lp"].save(tmp_path / "model.gmrf")
    rewritten(tmp_path / "model.gmrf", change)
    with pytest.raises(InvalidInputError, match=match):
        gm.load(tmp_path / "model.gmrf")


@pytest.mark.parametrize("name", ["subprocess.Popen", "graphmrf.files.Path", "graphmrf.graph.np", "graphmrf.field.pd"])
def test_only_classes_of_models_are_made(name: str, tmp_path: Path) -> None:
    models()["lp"].save(tmp_path / "model.gmrf")
    objects = [{"class": name, "state": {}}]
    rewritten(tmp_path / "model.gmrf", lambda table: table | {"objects": objects}, with_digest=True)
    with pytest.raises(InvalidInputError, match=rf"damaged \({name} is not part of a model\)"):
        gm.load(tmp_path / "model.gmrf")


def test_a_flipped_byte_is_noticed(tmp_path: Path) -> None:
    models()["lp"].save(tmp_path / "model.gmrf")
    whole, expected = (tmp_path / "model.gmrf").read_bytes(), models()["lp"].predict()
    for place in np.linspace(0, len(whole) - 1, 60).astype(int).tolist():
        flipped = bytearray(whole)
        flipped[place] ^= 0x10
        (tmp_path / "flipped").write_bytes(flipped)
        try:
            found = gm.load(tmp_path / "flipped").predict()
        except InvalidInputError:
            continue
        pd.testing.assert_series_equal(found, expected)


@pytest.mark.parametrize("content", [b"", b"id,value\n1,2\n"])
def test_what_is_no_model_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_bytes(content)
    with pytest.raises(InvalidInputError, match=r"table\.csv is not a graphmrf model; pass a file"):
        gm.load(tmp_path / "table.csv")
    with pytest.raises(InvalidInputError, match="no such file"):
        gm.load(tmp_path / "nothing")


def test_a_model_that_is_not_fitted_is_stored_too(tmp_path: Path) -> None:
    assert loaded(gm.GraphRegressor(random_state=5), tmp_path).random_state == 5
