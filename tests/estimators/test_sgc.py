"""Simple graph convolution against dense algebra, against PyTorch Geometric, and on bad input."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import r2_score

import oracle
from cases import Case, cases, random_case
from graphmrf import Graph, LinearRegression, ResidualPropagation, SimpleGraphConvolution
from graphmrf._typing import Floats
from graphmrf.errors import InvalidInputError
from graphmrf.estimators.error_bars import student_std
from graphmrf.estimators.linear import search_layers
from graphmrf.linalg.smoothing import powers
from graphmrf.selection import assign_folds


def averaged(W: Floats, X: Floats, n_layers: int) -> Floats:
    """S~^K X with S~ = (D + I)^-1/2 (W + I) (D + I)^-1/2; isolated nodes weigh as ones of mean degree do."""
    degrees = W.sum(axis=1)
    root = np.sqrt(np.where(degrees > 0, degrees, degrees[degrees > 0].mean() if degrees.any() else 0.0) + 1.0)
    S = (W + np.eye(len(W))) / np.outer(root, root)
    return np.asarray(np.linalg.matrix_power(S, n_layers) @ X)


@given(cases(), st.integers(0, 4))
def test_predictions_are_least_squares_on_averaged_features(case: Case, n_layers: int) -> None:
    model = SimpleGraphConvolution(n_layers=n_layers).fit(case.graph, case.X, case.y)
    Z = averaged(case.W, case.X - case.X.mean(axis=0), n_layers)
    mean, std = model.predict(return_std=True)
    np.testing.assert_allclose(mean, oracle.linear_regression(Z, case.y), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(Z @ model.coef_ + model.intercept_, mean, rtol=1e-6, atol=1e-6)
    M, L = np.column_stack([np.ones(len(Z)), Z]), case.known
    s2 = np.sum((case.y[L] - mean[L]) ** 2) / (L.sum() - 3)
    leverage = np.einsum("ij,jk,ik->i", M, np.linalg.inv(M[L].T @ M[L]), M)
    np.testing.assert_allclose(std, student_std(np.sqrt(s2), 1 + leverage, L.sum() - 3.0), rtol=1e-4)


@given(cases(), st.integers(0, 3))
def test_standard_errors_are_those_of_least_squares_on_averaged_features(case: Case, n_layers: int) -> None:
    model = SimpleGraphConvolution(n_layers=n_layers).fit(case.graph, case.X, case.y)
    L, Z = case.known, averaged(case.W, case.X - case.X.mean(axis=0), n_layers)
    M = np.column_stack([np.ones(len(Z)), Z])[L]
    expected = model.scale_ * np.sqrt(np.diag(np.linalg.inv(M.T @ M)))[1:]
    np.testing.assert_allclose(model.coef_std_, expected, rtol=1e-4)
    assert "standard error" in model.summary()


@given(cases())
def test_the_search_refits_without_each_fold(case: Case) -> None:
    model = SimpleGraphConvolution(random_state=3).fit(case.graph, case.X, case.y)
    L = np.flatnonzero(case.known)
    folds = assign_folds(L.size, 5, random_state=3)
    expected = []
    for n_layers in range(4):
        Z = averaged(case.W, case.X - case.X.mean(axis=0), n_layers)
        predicted = np.empty(L.size)
        for fold in range(int(folds.max()) + 1):
            hidden = oracle.hide(case.y, L[folds == fold])
            predicted[folds == fold] = oracle.linear_regression(Z, hidden)[L[folds == fold]]
        expected.append(r2_score(case.y[L], predicted))
    assert model.cv_results_ is not None
    np.testing.assert_array_equal(model.cv_results_["n_layers"], [0, 1, 2, 3])
    np.testing.assert_allclose(model.cv_results_["mean_r2"], expected, rtol=1e-5, atol=1e-5)
    assert model.n_layers_ == np.argmax(expected)


@given(cases(), st.integers(0, 3))
def test_without_intercept_nothing_is_centred(case: Case, n_layers: int) -> None:
    model = SimpleGraphConvolution(n_layers=n_layers, fit_intercept=False).fit(case.graph, case.X, case.y)
    Z = averaged(case.W, case.X, n_layers)
    b = np.linalg.lstsq(Z[case.known], case.y[case.known], rcond=None)[0]
    np.testing.assert_allclose(model.predict(), Z @ b, rtol=1e-6, atol=1e-6)
    assert model.intercept_ == 0


def test_another_graph_is_predicted_with_the_coefficients_of_the_first() -> None:
    first, second = random_case(1, n=30, p=3, labelled=20), random_case(2, n=25, p=3)
    model = SimpleGraphConvolution(n_layers=2).fit(first.graph, first.X, first.y)
    expected = averaged(second.W, second.X - first.X.mean(axis=0), 2) @ model.coef_ + model.intercept_
    mean, std = model.predict(second.graph, second.X, return_std=True)
    np.testing.assert_allclose(mean, expected, rtol=1e-8)
    assert (std > model.scale_).all()
    np.testing.assert_allclose(model.predict(first.graph, first.X), model.predict(), rtol=1e-10)


def test_zero_layers_are_linear_regression() -> None:
    case = random_case(3)
    model = SimpleGraphConvolution(n_layers=0).fit(case.graph, case.X, case.y)
    np.testing.assert_allclose(model.predict(), LinearRegression().fit(case.graph, case.X, case.y).predict())


def test_without_edges_nodes_keep_their_own_features() -> None:
    X, y = np.array([[1.0], [2.0], [4.0], [7.0]]), np.array([1.0, 2.0, np.nan, np.nan])
    graph = Graph.from_edges([], [], n_nodes=4)
    predicted = SimpleGraphConvolution(n_layers=3).fit(graph, X, y).predict()
    np.testing.assert_allclose(predicted, X[:, 0])


def test_an_isolated_node_counts_as_one_of_mean_degree_with_average_neighbours() -> None:
    case = random_case(8, n=30)
    W = case.graph.adjacency.toarray()
    alone = np.array([0, 1])
    W[alone] = W[:, alone] = 0.0
    graph, X = Graph(W), case.X.copy()
    X[alone[0]] += 100.0  # far outside the others
    model = SimpleGraphConvolution(n_layers=2).fit(graph, X, case.y)
    own = (1.0 + graph.degrees[~graph.isolated].mean()) ** -2
    expected = own * (X[alone] - model.feature_means_) @ model.coef_ + model.intercept_
    np.testing.assert_allclose(model.predict()[alone], expected, rtol=1e-8)
    np.testing.assert_allclose(model.predict(graph, X), model.predict(), rtol=1e-8)
    lone = Graph.from_edges([], [], n_nodes=2)
    np.testing.assert_allclose(model.predict(lone, X[alone]), expected, rtol=1e-8)


def test_products_agree_with_pytorch_geometric() -> None:
    torch = pytest.importorskip("torch")
    nn = pytest.importorskip("torch_geometric.nn")
    case = random_case(5, n=60, p=4)
    W = case.graph.adjacency.tocoo()
    edges, weights = torch.tensor(np.vstack(W.coords), dtype=torch.long), torch.tensor(W.data)
    layer = nn.SGConv(4, 4, K=3, bias=False).double()
    with torch.no_grad():
        layer.lin.weight.copy_(torch.eye(4))
        expected = layer(torch.tensor(case.X), edges, weights).numpy()
    np.testing.assert_allclose(powers(case.graph.loop_engine, case.X, 3)[3], expected, rtol=1e-10, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_both_engines_give_the_same_powers(dtype: type[np.floating]) -> None:
    case = random_case(7, n=50, p=3)
    engine = case.graph.to("numba").loop_engine
    X, kept = case.X.astype(dtype), np.array([4, 0, 17])
    expected = np.stack([averaged(case.W, case.X, K)[kept] for K in range(4)])
    tolerance = 1e-12 if dtype == np.float64 else 1e-5
    for each in (engine, case.graph.loop_engine):
        np.testing.assert_allclose(powers(each, X, 3, kept), expected, rtol=tolerance, atol=tolerance)


def test_residual_propagation_keeps_the_layers_and_chooses_a_level() -> None:
    case = random_case(11, n=60, p=3, labelled=40)
    base = SimpleGraphConvolution().fit(case.graph, case.X, case.y)
    model = ResidualPropagation(SimpleGraphConvolution()).fit(case.graph, case.X, case.y)
    assert model.base_.n_layers_ == base.n_layers_
    expected = oracle.residual_propagation(case.W, base.predict(), case.y, model.alpha_)
    np.testing.assert_allclose(model.predict(), expected, atol=1e-6)


def test_coefficients_have_the_names_of_the_columns() -> None:
    case = random_case(1)
    frame = pd.DataFrame(case.X, columns=["age", "income"])
    model = SimpleGraphConvolution().fit(case.graph, frame, case.y)
    assert isinstance(model.coef_, pd.Series)
    assert list(model.coef_.index) == ["age", "income"]


@pytest.mark.parametrize("n_layers", [-1, 1.5, "CV", True, None])
def test_a_strange_number_of_layers_is_refused(n_layers: object) -> None:
    case = random_case(1)
    with pytest.raises(InvalidInputError, match="n_layers must be 'cv' or a whole number >= 0"):
        SimpleGraphConvolution(n_layers=n_layers).fit(case.graph, case.X, case.y)  # type: ignore[arg-type]


def test_features_alone_are_not_enough_for_another_graph() -> None:
    case = random_case(1)
    model = SimpleGraphConvolution().fit(case.graph, case.X, case.y)
    with pytest.raises(InvalidInputError, match="got X alone; pass both"):
        model.predict(X=case.X)


def test_the_number_of_layers_with_the_least_error_is_chosen() -> None:
    X, y, folds = np.arange(4.0)[:, None], np.array([0.0, 1.0, 2.0, 3.0]), np.array([0, 1, 0, 1])
    assert search_layers(np.stack([X % 2, X]), y, folds, intercept=True).alpha == 1.0
