"""Graph convolutional networks: outputs against dense algebra, folds trained at once against one by one."""

import pickle
import sys
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import r2_score

import oracle
from cases import random_case
from graphmrf import Graph, GraphConvolutionalNetwork, ResidualPropagation
from graphmrf._typing import Floats
from graphmrf.errors import ConvergenceError, InvalidInputError, MissingExtraError
from graphmrf.estimators import Training
from graphmrf.estimators.error_bars import student_std
from graphmrf.estimators.inputs import read_outcome
from graphmrf.selection import assign_folds

torch = pytest.importorskip("torch")

CASE = random_case(11, n=40, p=3, labelled=20)


def network(**options: Any) -> GraphConvolutionalNetwork:
    few: dict[str, Any] = {"n_layers": 2, "epochs": 30, "hidden": 8, "device": "cpu"}
    return GraphConvolutionalNetwork(**(few | options))


def fitted(y: Any = CASE.y, X: Any = CASE.X, **options: Any) -> GraphConvolutionalNetwork:
    return network(**options).fit(CASE.graph, X, y)


def averages(W: Floats) -> Floats:
    root = np.sqrt(W.sum(axis=1) + 1.0)
    return (W + np.eye(len(W))) / np.outer(root, root)


@pytest.mark.parametrize("relu", [True, False])
@pytest.mark.parametrize("n_layers", [1, 2, 3])
def test_the_forward_pass_is_the_formula(n_layers: int, relu: bool) -> None:
    model = fitted(n_layers=n_layers, activation="relu" if relu else "identity")
    S, H, degrees = averages(CASE.W), model.scaling_.features(CASE.X), CASE.W.sum(axis=1)
    H[degrees == 0] /= 1.0 + degrees[degrees > 0].mean()  # as among neighbours with average features
    weights, biases = model.weights_[: n_layers + 1], model.weights_[n_layers + 1 :]
    for W, b in zip(weights[:-1], biases[:-1], strict=True):
        H = S @ H @ W + b
        H = np.maximum(H, 0.0) if relu else H
    expected = model.scaling_.prediction((H @ weights[-1] + biases[-1])[:, 0])
    np.testing.assert_allclose(model.predict(), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "training", [Training(standardise=False), Training(standardise=False, batch=0.3, neighbours=2), "paper"]
)
def test_a_fold_is_trained_in_company_as_it_is_alone(training: Any) -> None:
    searched = fitted(n_layers="cv", epochs=20, training=training)
    folds, labelled = assign_folds(20, 5, random_state=0), np.flatnonzero(CASE.known)
    together = searched.refit_folds(CASE.graph, CASE.X, read_outcome(CASE.y, 40), folds)
    for fold in range(5):
        alone = searched.fixed().fit(CASE.graph, CASE.X, oracle.hide(CASE.y, labelled[folds == fold]))
        np.testing.assert_allclose(together[:, fold], alone.predict()[labelled], rtol=1e-3, atol=1e-4)


def test_other_folds_are_trained_when_they_are_asked_for() -> None:
    searched, folds = fitted(n_layers="cv", epochs=20), assign_folds(20, 4, random_state=9)
    together = searched.refit_folds(CASE.graph, CASE.X, read_outcome(CASE.y, 40), folds)
    assert together.shape == (20, 4)


def test_the_search_takes_the_best_pair() -> None:
    model = fitted(n_layers="cv", epochs="cv")
    table = model.cv_results_
    assert table is not None
    assert table["fold_r2"].shape == (15, 5)
    best = int(np.argmax(table["mean_r2"]))
    assert (model.n_layers_, model.epochs_) == (table["n_layers"][best], table["epochs"][best])
    assert model.searched_ is not None
    matched, fits = model.searched_
    unseen = fits[np.arange(20), matched.folds]
    assert r2_score(CASE.y[CASE.known], unseen) == pytest.approx(table["mean_r2"][best])
    assert model.scale_ == pytest.approx(np.sqrt(np.sum((CASE.y[CASE.known] - unseen) ** 2) / 18))  # 2 for the choice
    expected = student_std(model.scale_, np.ones(40), 18.0)
    np.testing.assert_array_equal(model.predict(return_std=True)[1], expected)


@pytest.mark.parametrize("training", ["full", "paper"])
def test_the_same_seed_gives_the_same_network(training: Any) -> None:
    first, second = fitted(training=training, random_state=4), fitted(training=training, random_state=4)
    np.testing.assert_array_equal(first.predict(), second.predict())
    assert not np.array_equal(first.predict(), fitted(training=training, random_state=5).predict())


def test_nothing_outside_is_seeded() -> None:
    torch.manual_seed(7)
    before = torch.rand(1)
    torch.manual_seed(7)
    fitted()
    assert torch.rand(1) == before


@pytest.mark.parametrize("training", ["full", "paper"])
def test_only_labels_of_labelled_nodes_matter(training: Any) -> None:
    masked = np.ma.array(CASE.truth, mask=~CASE.known)
    np.testing.assert_array_equal(fitted(masked, training=training).predict(), fitted(training=training).predict())


def test_units_do_not_matter() -> None:
    model, other = fitted(), fitted(1000.0 + 10.0 * CASE.y, CASE.X * [1.0, 100.0, 0.01] + 5.0)
    np.testing.assert_allclose(other.predict(), 1000.0 + 10.0 * model.predict(), rtol=1e-3)


def test_predictions_follow_the_nodes_when_they_are_reordered() -> None:
    order = np.random.default_rng(0).permutation(40)
    shuffled = network().fit(Graph(CASE.W[order][:, order]), CASE.X[order], CASE.y[order])
    np.testing.assert_allclose(shuffled.predict(), fitted().predict()[order], rtol=1e-3, atol=1e-3)


def test_without_constants_features_of_zero_are_predicted_zero() -> None:
    model = fitted(fit_intercept=False)
    assert len(model.weights_) == 3
    np.testing.assert_array_equal(model.predict(CASE.graph, np.zeros((40, 3))), np.zeros(40))


def test_another_graph_is_predicted_by_the_same_network() -> None:
    model, other = fitted(), random_case(4, n=25, p=3)
    np.testing.assert_allclose(model.predict(CASE.graph, CASE.X), model.predict(), rtol=1e-6)
    mean, std = model.predict(other.graph, other.X, return_std=True)
    assert mean.shape == std.shape == (25,)
    with pytest.raises(InvalidInputError, match="got X alone; pass both"):
        model.predict(X=other.X)


def test_it_learns_what_a_line_cannot() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 1))
    y = np.abs(X[:, 0])
    y[200:] = np.nan
    model = GraphConvolutionalNetwork(n_layers=1, epochs=300, device="cpu").fit(
        Graph.from_edges([], [], n_nodes=300), X, y
    )
    assert r2_score(np.abs(X[200:, 0]), model.predict()[200:]) > 0.95


def test_a_pickle_and_a_clone() -> None:
    model = fitted()
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(), model.predict())
    copy = clone(model)
    with pytest.raises(NotFittedError, match="not fitted yet"):
        copy.predict()
    np.testing.assert_array_equal(copy.fit(CASE.graph, CASE.X, CASE.y).predict(), model.predict())
    assert model.fixed().n_layers == 2


def test_frames_and_single_precision() -> None:
    frame = pd.DataFrame(CASE.X.astype(np.float32), columns=["a", "b", "c"])
    model = fitted(CASE.y.astype(np.float32), frame)
    assert model.predict().dtype == np.float32
    np.testing.assert_allclose(model.predict(), fitted().predict(), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("options", [{}, {"training": "paper"}, {"n_layers": "cv", "epochs": 20}])
def test_residuals_are_propagated(options: dict[str, Any]) -> None:
    base = fitted(**options)
    model = ResidualPropagation(network(**options)).fit(CASE.graph, CASE.X, CASE.y)
    expected = oracle.residual_propagation(CASE.W, base.predict(), CASE.y, model.alpha_)
    np.testing.assert_allclose(model.predict(), expected, atol=1e-5)
    assert model.scale_ > 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_layers": 0}, "n_layers must be 'cv' or a whole number >= 1, got 0"),
        ({"epochs": "many"}, "epochs must be 'cv' or a whole number >= 1, got 'many'"),
        ({"hidden": 1.5}, "hidden must be .* got 1.5"),
        ({"activation": "tanh"}, "activation must be 'relu' or 'identity', got 'tanh'"),
        ({"training": "half"}, "training must be 'full', 'paper' or a Training"),
        ({"device": "abacus"}, "device 'abacus' is not available .* use device='auto' or 'cpu'"),
    ],
)
def test_strange_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        fitted(**options)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_gpu_that_is_not_there_is_an_error() -> None:
    with pytest.raises(InvalidInputError, match=r"device 'cuda' is not available .* use device='auto' or 'cpu'"):
        fitted(device="cuda")
    assert fitted(device="auto").device_ == "cpu"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch": 0.0}, r"batch must be in \(0, 1\], got 0.0"),
        ({"neighbours": 0}, "neighbours must be None or at least 1, got 0"),
        ({"learning_rate": -1.0}, "learning_rate must be positive"),
        ({"decay": 1.0}, r"decay must be in \[0, 1\)"),
    ],
)
def test_strange_training_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        Training(**options)


def test_without_pytorch_the_install_line_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'graphmrf\[gnn\]'"):
        fitted()


def test_no_features_and_endless_ones_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="needs features, got a table without columns"):
        fitted(X=np.zeros((40, 0)))
    with pytest.raises(ConvergenceError, match="the training diverged"):
        fitted(X=CASE.X * 1e30, training="paper")
