from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from graphmrf import GaussianMRF, LinearGraphConvolution
from graphmrf.experiments import Run, Source
from graphmrf.experiments.data import attributes, raw
from graphmrf.experiments.fields import OMEGAS
from graphmrf.experiments.foresight import LEVEL
from graphmrf.experiments.published import published
from graphmrf.experiments.work import perform
from graphmrf.metrics import r2
from graphmrf.selection import split
from small_paper import N_NODES

if TYPE_CHECKING:
    from graphmrf.model.foresee import Given


def do(source: Source, kind: str, **options: Any) -> dict[str, Any]:
    return dict(perform(Run.of(kind, options), source))


def test_attributes_are_standardised_over_all_nodes(source: Source) -> None:
    values = attributes(source, "london-2016").frame.to_numpy()
    np.testing.assert_allclose(values.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(values.std(axis=0, ddof=1), 1)


def test_the_logarithm_is_taken_before_standardising(source: Source) -> None:
    plain, logarithm = (attributes(source, name).frame["election"] for name in ("london-2016", "london-2016+log"))
    expected = np.log(raw(source, "london-2016").frame["election"])
    assert np.corrcoef(logarithm, expected)[0, 1] == pytest.approx(1)
    assert np.corrcoef(plain, expected)[0, 1] < 0.999


def test_accuracy_is_that_of_the_estimator_on_hidden_nodes(source: Source) -> None:
    known = attributes(source, "us-2016")
    X, y = known.task("income")
    labelled = split(len(y), 0.3, seed=5)
    fitted = LinearGraphConvolution(seed=5).fit(known.graph, X, np.where(labelled, y, np.nan))
    expected = {"value": r2(y[~labelled], fitted.predict()[~labelled]), "alpha": fitted.alpha_}
    found = do(source, "accuracy", data="us-2016", outcome="income", method="LGC", seed=5, fraction=0.3)
    assert found == {"LGC": expected}


def test_a_base_and_its_residual_propagation_come_from_one_run(source: Source) -> None:
    options = {"data": "us-2016", "outcome": "income", "seed": 1, "fraction": 0.3}
    assert list(do(source, "accuracy", **options, method="SGC exact")) == ["SGC exact", "SGC exact/RP"]
    pytest.importorskip("torch_geometric")
    assert list(do(source, "accuracy", **options, method="GCN", effort="quick")) == ["GCN", "GCN/RP"]


def test_inductive_accuracy_is_measured_on_the_other_graph(source: Source) -> None:
    old, new = attributes(source, "us-2012"), attributes(source, "us-2016")
    X, y = old.task("income")
    labelled = split(len(y), 0.3, seed=3)
    fitted = LinearGraphConvolution(seed=3).fit(old.graph, X, np.where(labelled, y, np.nan))
    X_new, y_new = new.task("income")
    found = do(source, "inductive", train="us-2012", test="us-2016", outcome="income", method="LGC", seed=3)
    expected = r2(y_new[~labelled], fitted.predict(new.graph, X_new)[~labelled])
    assert found == {"LGC": {"value": expected, "alpha": fitted.alpha_}}


def test_foreseen_accuracy_is_that_of_the_model(source: Source) -> None:
    known = attributes(source, "cdc-2008")
    mrf = GaussianMRF.fit(known.graph, known.frame, center=False)
    found = do(source, "foreseen", data="cdc-2008", outcome="pm2.5", seed=1, splits=2)
    kinds: dict[str, Given] = {"LP": "labels", "LGC": "features", "LGC/RP": "both"}
    for name, given in kinds.items():
        expected = [mrf.expected_r2(known.graph, "pm2.5", split(N_NODES, 0.3, seed=seed), given) for seed in (1, 2)]
        np.testing.assert_allclose(found[name], expected, rtol=1e-8)
        assert np.all(np.asarray(found[name + LEVEL]) > expected)


def test_a_fitted_level_costs_nothing_of_the_foreseen_accuracy(source: Source) -> None:
    known = attributes(source, "cdc-2008")
    mrf = GaussianMRF.fit(known.graph, known.frame, center=False)
    U, t = ~split(N_NODES, 0.3, seed=1), mrf.index("pm2.5")
    K = np.linalg.inv(mrf.precision(known.graph).H[t, t] * np.eye(N_NODES) + mrf.C[t, t] * known.graph.N.toarray())
    centre = np.eye(U.sum()) - 1 / U.sum()
    left = np.trace(centre @ K[np.ix_(U, U)])
    Gamma = np.kron(mrf.H, np.eye(N_NODES)) + np.kron(mrf.C, known.graph.N.toarray())
    block = slice(N_NODES * t, N_NODES * (t + 1))
    prior = np.linalg.inv(Gamma)[block, block]
    expected = 1 - left / np.trace(centre @ prior[np.ix_(U, U)])
    found = do(source, "foreseen", data="cdc-2008", outcome="pm2.5", seed=1, splits=1)
    np.testing.assert_allclose(found["LGC" + LEVEL], [expected], rtol=1e-8)


def test_omega_is_scored_at_every_level_of_the_grid(source: Source) -> None:
    graph = "synthetic-watts-strogatz-h1"
    without = do(source, "omega", data=graph, features=0, step=8, seed=1)
    assert list(without) == ["LP"]
    scores = np.asarray(without["LP"])
    assert len(scores) == len(OMEGAS)
    assert abs(int(scores.argmax()) - 8) <= 3
    assert list(do(source, "omega", data=graph, features=1, step=8, seed=1)) == ["LGC", "LGC/RP"]


def test_maps_keep_what_was_observed_in_its_own_units(source: Source) -> None:
    found = do(source, "maps", data="us-2016", seed=1)
    layers = found["layers"]
    assert len(layers) == 3
    observed = raw(source, "us-2016").frame["unemployment"]
    np.testing.assert_allclose(layers[0]["unemployment"], observed, rtol=1e-4)
    assert np.std(np.subtract(layers[1]["unemployment"], layers[2]["unemployment"])) > 0


def test_coefficients_are_named(source: Source) -> None:
    found = do(source, "coefficients", data="us-2016", outcome="election", seed=1)
    coefficients = found["coefficients"]
    assert list(coefficients)[:3] == ["sh050m", "sh100m", "sh500m"]
    assert len(coefficients) == 9


@pytest.mark.parametrize("method", ["LP", "LR", "LGC", "LGC/RP"])
def test_on_the_real_data_a_split_is_near_print(clean_data: Path, method: str) -> None:
    real = Source(str(clean_data))
    found = do(real, "accuracy", data="us-2016", outcome="income", method=method, seed=1, fraction=0.3)
    assert found[method]["value"] == pytest.approx(published("real-accuracy", "us-2016/income", method), abs=0.04)


def test_the_fit_of_a_synthetic_sample_is_at_least_as_likely_as_the_truth(clean_data: Path) -> None:
    found = do(Source(str(clean_data)), "parameters", data="synthetic-paper-h10")
    assert found["nll"] == pytest.approx(-4.62173, abs=2e-5)
    assert found["true nll"] == pytest.approx(-4.61738, abs=2e-5)
    assert found["error H"] == pytest.approx(0.020, abs=1e-3)
