"""Sparse features: reduced by their leading singular vectors, the same in every method that takes features."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy import sparse

import graphmrf as gm
from graphmrf.errors import InvalidInputError
from graphmrf.estimators.inputs import MOST_COMPONENTS, Components, as_sparse

if TYPE_CHECKING:
    from collections.abc import Callable

    from graphmrf._typing import Floats

N, P = 90, 130
METHODS: list[Callable[[], Any]] = [
    gm.GraphRegressor,
    gm.LinearRegression,
    lambda: gm.LinearGraphConvolution(alpha=0.5),
    lambda: gm.ResidualPropagation(gm.LinearRegression(), alpha=0.5),
    gm.SimpleGraphConvolution,
]


def _graph(seed: int = 0) -> gm.Graph:
    return gm.Graph.from_knn(np.random.default_rng(seed).random((N, 2)), 4)


def _words(p: int = P, seed: int = 1) -> Any:
    """Return words of five topics: 0 and 1, with one column that no node has."""
    rng = np.random.default_rng(seed)
    topics = rng.random((N, 5)) < 0.3
    X = (topics @ (rng.random((5, p)) < 0.2) > 0) & (rng.random((N, p)) < 0.8)
    X[:, 3] = False
    return sparse.csr_array(X.astype(np.float64))


def _outcome(X: Any, share: float = 0.6) -> Floats:
    rng = np.random.default_rng(2)
    y = X @ np.linspace(-1.0, 1.0, X.shape[1]) + 0.1 * rng.standard_normal(N)
    return np.where(rng.random(N) < share, y, np.nan)


def test_directions_are_those_of_the_dense_decomposition() -> None:
    X = sparse.diags_array(np.linspace(1.0, 3.0, N)) @ _words()
    dense = X.toarray()
    scaled = dense / np.where(dense.max(axis=0) > 0, dense.max(axis=0), 1.0)
    U, s, _ = np.linalg.svd(scaled, full_matrices=False)
    found = Components.of(X)(X)
    np.testing.assert_allclose(found @ found.T, (U * s**2)[:, :MOST_COMPONENTS] @ U[:, :MOST_COMPONENTS].T, atol=1e-8)


@pytest.mark.parametrize("make", METHODS)
def test_predictions_are_those_of_the_reduced_columns(make: Callable[[], Any]) -> None:
    graph, X = _graph(), _words()
    y = _outcome(X)
    expected = make().fit(graph, Components.of(X)(X), y).predict()
    np.testing.assert_allclose(make().fit(graph, X, y).predict(), expected, atol=1e-10)


@pytest.mark.parametrize("make", METHODS)
def test_few_columns_are_taken_as_dense_ones(make: Callable[[], Any]) -> None:
    graph, X = _graph(), _words(6)
    y = _outcome(X)
    expected = make().fit(graph, X.toarray(), y).predict()
    np.testing.assert_array_equal(make().fit(graph, X, y).predict(), expected)


def test_containers_zeros_and_doubled_entries_do_not_matter() -> None:
    X = _words()
    half = sparse.coo_array(X * 0.5)
    rows, columns = np.nonzero(X.toarray() == 0)
    cells = np.concatenate([half.data, half.data, np.zeros(rows.size)])
    places = np.concatenate([half.row, half.row, rows]), np.concatenate([half.col, half.col, columns])
    doubled = sparse.coo_matrix((cells, places), shape=X.shape)
    for other in (sparse.csc_matrix(X), doubled, sparse.lil_array(X), as_sparse(X.astype(np.int64))):
        found = as_sparse(other)
        np.testing.assert_allclose(Components.of(found)(found), Components.of(X)(X), atol=1e-9)


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support:UserWarning")
def test_sparse_tensors_of_pytorch_are_taken() -> None:
    torch = pytest.importorskip("torch")
    graph, X = _graph(), _words()
    y, tensor = _outcome(X), torch.tensor(X.toarray())
    expected = gm.LinearRegression().fit(graph, X, y).predict()
    for layout in (torch.sparse_coo, torch.sparse_csr):
        with_layout = tensor.to_sparse(layout=layout)
        np.testing.assert_allclose(gm.LinearRegression().fit(graph, with_layout, y).predict(), expected, atol=1e-9)


def test_order_of_nodes_does_not_matter() -> None:
    graph, X = _graph(), _words()
    y, order = _outcome(X), np.random.default_rng(3).permutation(N)
    moved = gm.Graph(graph.adjacency[order][:, order])
    expected = gm.GraphRegressor(learner=None).fit(graph, X, y).predict()
    found = gm.GraphRegressor(learner=None).fit(moved, X[order], y[order]).predict()
    np.testing.assert_allclose(found, expected[order], atol=1e-4)


def test_columns_of_low_rank_give_no_columns_of_rounding() -> None:
    rng = np.random.default_rng(4)
    X = sparse.csr_array(rng.integers(0, 2, (N, 3)) @ rng.integers(0, 3, (3, P)))
    assert Components.of(as_sparse(X)).directions.shape == (P, 3)
    empty = sparse.csr_array((N, P))
    y = _outcome(_words())
    expected = gm.GraphRegressor().fit(_graph(), None, y).predict()
    np.testing.assert_allclose(gm.GraphRegressor().fit(_graph(), empty, y).predict(), expected, atol=1e-10)


def test_another_graph_is_predicted_from_the_same_words() -> None:
    X = _words()
    other, new = _graph(5), _words(seed=6)
    model = gm.GraphRegressor(learner=None).fit(_graph(), X, _outcome(X))
    reduced = Components.of(X)
    twin = gm.GraphRegressor(learner=None).fit(_graph(), reduced(X), _outcome(X))
    np.testing.assert_allclose(model.predict(other, new), twin.predict(other, reduced(new)), atol=1e-10)
    np.testing.assert_allclose(model.predict(other, new.toarray()), model.predict(other, new), atol=1e-10)
    np.testing.assert_allclose(
        model.score(other, new, new @ np.linspace(-1, 1, P)),
        model.score(other, new.toarray(), new @ np.linspace(-1, 1, P)),
    )
    with pytest.raises(InvalidInputError, match=f"{P} features of the fit, got {P - 1}"):
        model.predict(other, new[:, 1:])


def test_the_graph_and_words_of_the_fit_keep_labels() -> None:
    graph, X = _graph(), _words()
    y = _outcome(X)
    model = gm.GraphRegressor(learner=None).fit(graph, X, y)
    known = ~np.isnan(y)
    np.testing.assert_array_equal(model.predict(graph, X.copy())[known], y[known])


@pytest.mark.slow
def test_classes_are_predicted_from_words() -> None:
    graph, X = _graph(), _words()
    y = _outcome(X)
    labels = [None if np.isnan(each) else "high" if each > 0 else "low" for each in y]
    expected = gm.GraphClassifier().fit(graph, Components.of(X)(X), labels)
    found = gm.GraphClassifier().fit(graph, X, labels)
    np.testing.assert_allclose(found.predict_proba(), expected.predict_proba(), atol=1e-8)
    assert found.score(graph, X, np.where(X[:, [0]].toarray().ravel() > 0, "high", "low")) >= 0


def test_out_of_fold_update_and_files(tmp_path: Any) -> None:
    graph, X = _graph(), _words()
    y = _outcome(X)
    folds = np.arange(np.sum(~np.isnan(y))) % 3
    reduced = Components.of(X)(X)
    model, twin = (gm.LinearGraphConvolution(alpha=0.5).fit(graph, each, y) for each in (X, reduced))
    expected = twin.out_of_fold(graph, reduced, y, folds)
    np.testing.assert_allclose(model.out_of_fold(graph, X, y, folds), expected, atol=1e-10)
    more = np.where(np.isnan(y) & (np.arange(N) < 30), 0.5, np.nan)
    np.testing.assert_allclose(model.update(more).predict(), twin.update(more).predict(), atol=1e-10)
    model.save(tmp_path / "model.zip")
    other, new = _graph(5), _words(seed=6)
    loaded: Any = gm.load(tmp_path / "model.zip")
    np.testing.assert_array_equal(loaded.predict(other, new), model.predict(other, new))


def test_methods_are_compared_on_words() -> None:
    graph, X = _graph(), _words()
    y = _outcome(X)
    sparse_table = gm.compare(graph, X, y, methods=["lr"]).table
    dense_table = gm.compare(graph, Components.of(X)(X), y, methods=["lr"]).table
    np.testing.assert_allclose(sparse_table["r2"], dense_table["r2"], atol=1e-10)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (sparse.csr_array(np.full((N, 60), np.nan)), "sparse X must be finite, got nan in column 0 at node 0"),
        (sparse.csr_array(np.full((N, 3), np.inf)), "sparse X must be finite, got inf"),
        (sparse.csr_array(np.ones((N, 60), dtype=np.complex128)), "must have numbers in two dimensions"),
        (sparse.csr_array(np.ones((N - 1, 60))), f"one row for each of the {N} nodes, got {N - 1}"),
    ],
)
def test_what_cannot_be_reduced_is_refused(X: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        gm.LinearRegression().fit(_graph(), X, _outcome(_words()))


def test_single_precision_in_gives_single_precision_out() -> None:
    graph, X = _graph(), _words()
    y = _outcome(X)
    found = gm.LinearRegression().fit(graph, X.astype(np.float32), y.astype(np.float32)).predict()
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, gm.LinearRegression().fit(graph, X, y).predict(), rtol=1e-3, atol=1e-3)
