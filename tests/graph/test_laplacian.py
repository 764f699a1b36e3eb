"""The combinatorial Laplacian beside dense algebra: every solver, estimator and the model run on it."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import oracle
from graphmrf import (
    GaussianMRF,
    Graph,
    GraphRegressor,
    GraphSmoother,
    LabelPropagation,
    LabelSpreading,
    LinearGraphConvolution,
    LinearRegression,
    ResidualPropagation,
    SimpleGraphConvolution,
)
from graphmrf._typing import Bools, Floats
from graphmrf.errors import InvalidInputError
from graphmrf.linalg.limits import LIMITS
from graphmrf.linalg.precision import NodePrecision, PrecisionBlock
from graphmrf.linalg.spectrum import density_of_states
from graphmrf.linalg.variance import conditional_variance, loo_precision
from graphmrf.model.conditional import Conditional

RNG = np.random.default_rng(5)


def weights(n: int, share: float = 0.15) -> Floats:
    """Random weights; the last node is isolated."""
    W = np.triu(RNG.uniform(0.2, 2.0, (n, n)) * (RNG.random((n, n)) < share), 1)
    W[:, -1] = 0.0
    return W + W.T


W = weights(60)
N = (np.diag(W.sum(axis=1)) - W) / W.sum(axis=1).max()
LOOPED = W + np.diag(W.sum(axis=1).max() - W.sum(axis=1))  # the oracle's normalised Laplacian of it is N
GRAPH = Graph(W).with_laplacian("combinatorial")
KNOWN: Bools = RNG.random(60) < 0.5
X: Floats = RNG.normal(size=(60, 2))
Y: Floats = np.linalg.solve(np.eye(60) + 9 * N, RNG.normal(size=60) + X @ [2.0, -1.0]) + 1.0
LABELS: Floats = np.where(KNOWN, Y, np.nan)


def test_it_is_the_difference_of_degrees_and_weights_over_the_largest_degree() -> None:
    np.testing.assert_allclose(GRAPH.N.toarray(), N, atol=1e-15)
    np.testing.assert_allclose(oracle.laplacian(LOOPED), N, atol=1e-12)
    values = GRAPH.eigenpairs[0]
    assert values.min() >= 0
    assert values.max() <= 2
    np.testing.assert_allclose(values, np.linalg.eigvalsh(N), atol=1e-12)


@pytest.mark.parametrize("engine", ["scipy", "numba"])
def test_engines_multiply_by_one_less_it(engine: str) -> None:
    from graphmrf.linalg import multiply

    np.testing.assert_allclose(multiply(GRAPH.to(engine), X), X - N @ X, atol=1e-12)


def test_the_constructor_takes_it_as_well() -> None:
    graph = Graph(W, laplacian="combinatorial")
    np.testing.assert_allclose(graph.N.toarray(), N, atol=1e-15)
    mean = Y[KNOWN].mean()
    Q = np.eye(60) + 9.0 * N
    field = -np.linalg.solve(Q[np.ix_(~KNOWN, ~KNOWN)], Q[np.ix_(~KNOWN, KNOWN)] @ (Y[KNOWN] - mean))
    np.testing.assert_allclose(LabelPropagation(omega=9.0).fit(graph, None, LABELS).predict()[~KNOWN], mean + field)
    with pytest.raises(InvalidInputError, match="must be one of"):
        Graph(W, laplacian="random walk")  # type: ignore[arg-type]


def test_a_graph_keeps_its_laplacian_and_two_of_them_differ() -> None:
    import pickle

    assert Graph(W, laplacian="combinatorial") == GRAPH
    assert pickle.loads(pickle.dumps(GRAPH)) == GRAPH
    assert Graph(W) != GRAPH
    assert GRAPH.with_laplacian("normalised") == Graph(W)
    assert GRAPH.to("numba").with_ids(range(60)).laplacian == "combinatorial"
    with pytest.raises(InvalidInputError, match="must be one of"):
        GRAPH.with_laplacian("random walk")  # type: ignore[arg-type]


@pytest.mark.parametrize("alpha", [0.3, 0.95])
def test_label_propagation_and_its_variance(alpha: float) -> None:
    model = LabelPropagation(alpha=alpha).fit(GRAPH, None, LABELS)
    mean = Y[KNOWN].mean()
    np.testing.assert_allclose(model.predict(), oracle.propagate(LOOPED, Y - mean, KNOWN, alpha) + mean, atol=1e-6)
    expected = oracle.conditional_variance(LOOPED, KNOWN, alpha)
    np.testing.assert_allclose(conditional_variance(GRAPH, KNOWN, alpha), expected, atol=1e-10)
    inverse = np.diag(oracle.known_precision(LOOPED, KNOWN, alpha))
    np.testing.assert_allclose(loo_precision(GRAPH, KNOWN, alpha), inverse, rtol=1e-8)


def test_probed_variances_come_to_the_exact_ones() -> None:
    drawn = conditional_variance(GRAPH, KNOWN, 0.9, probes=4000, limits=replace(LIMITS, dense_variance=0))
    np.testing.assert_allclose(drawn, oracle.conditional_variance(LOOPED, KNOWN, 0.9), rtol=0.06, atol=1e-12)
    probed = loo_precision(GRAPH, KNOWN, 0.9, probes=4000, limits=replace(LIMITS, dense_variance=0))
    np.testing.assert_allclose(probed, np.diag(oracle.known_precision(LOOPED, KNOWN, 0.9)), rtol=0.06)
    d = RNG.uniform(0, 2, 60)
    A = np.eye(60) + 4 * N + np.diag(d)
    node = NodePrecision(GRAPH, 4.0, d, replace(LIMITS, dense_precision=0))
    np.testing.assert_allclose(node.diagonal, np.diag(A), rtol=1e-12)
    np.testing.assert_allclose(node.inverse_diagonal(probes=4000), np.diag(np.linalg.inv(A)), rtol=0.05)
    np.testing.assert_allclose(node.solve(X), np.linalg.solve(A, X), atol=1e-7)


def test_blocks_of_the_precision_of_the_model() -> None:
    H, C = np.array([[2.0, 0.5], [0.5, 1.0]]), np.array([[3.0, 1.0], [1.0, 4.0]])
    missing = RNG.random((60, 2)) < 0.6
    gamma = (np.kron(np.eye(60), H) + np.kron(N, C))[np.ix_(missing.ravel(), missing.ravel())]
    block = PrecisionBlock(GRAPH, H, C, missing)
    np.testing.assert_allclose(block.matrix.toarray(), gamma, atol=1e-12)
    expected = np.linalg.inv(gamma)
    b = np.where(missing, X, 0.0)
    np.testing.assert_allclose(block.solve(b[None])[0][missing], expected @ b[missing], atol=1e-7)
    drawn = Conditional(GRAPH, H, C, missing, dense_entries=0, exact_entries=0).variance(probes=4000)[0]
    np.testing.assert_allclose(drawn[missing], np.diag(expected), rtol=0.05)


def test_the_spectrum_from_probes_has_its_traces() -> None:
    states = density_of_states(GRAPH, probes=64, steps=40)
    assert states.sum(lambda x: x) == pytest.approx(np.trace(N))
    assert states.sum(lambda x: x**2) == pytest.approx(np.trace(N @ N))
    assert states.sum(np.log1p) == pytest.approx(np.linalg.slogdet(np.eye(60) + N)[1], rel=0.02)


@pytest.mark.parametrize("alpha", [0.8, "cv"])
def test_graph_convolution_and_residual_propagation(alpha: Any) -> None:
    convolution = LinearGraphConvolution(alpha=alpha).fit(GRAPH, X, LABELS)
    smooth = oracle.smooth(LOOPED, X - convolution.feature_means_, convolution.alpha_) @ convolution.coef_
    smooth[-1] *= 1.0 - convolution.alpha_  # an isolated node counts as one with average neighbours
    np.testing.assert_allclose(convolution.predict(), smooth + convolution.intercept_, atol=1e-6)
    both = ResidualPropagation(LinearRegression(), alpha=0.8).fit(GRAPH, X, LABELS)
    base = LinearRegression().fit(GRAPH, X, LABELS).predict()
    expected = base + oracle.propagate(LOOPED, Y - base, KNOWN, 0.8)
    np.testing.assert_allclose(both.predict(), expected, atol=1e-6)


def test_the_model_fits_conditions_and_samples() -> None:
    A = np.column_stack([X, Y])
    mrf = GaussianMRF.fit(GRAPH, A)
    H, h = mrf.H, mrf.h
    gamma = np.kron(np.eye(60), H) + np.kron(N, np.diag(h))
    hidden = np.zeros((60, 3), dtype=bool)
    hidden[~KNOWN, 2] = hidden[::7, 0] = True
    posterior = mrf.condition(GRAPH, np.where(hidden, np.nan, A))
    a, M = (A - mrf.mean).ravel(), hidden.ravel()
    expected = -np.linalg.solve(gamma[np.ix_(M, M)], gamma[np.ix_(M, ~M)] @ a[~M])
    np.testing.assert_allclose((posterior.mean - mrf.mean).ravel()[M], expected, atol=1e-6)
    np.testing.assert_allclose(posterior.std.ravel()[M] ** 2, np.diag(np.linalg.inv(gamma[np.ix_(M, M)])), rtol=1e-6)


def test_label_propagation_of_the_full_model_marginalises_the_features() -> None:
    A = np.column_stack([X, Y])
    mrf = GaussianMRF.fit(GRAPH, A)
    K = np.linalg.inv(np.kron(np.eye(60), mrf.H) + np.kron(N, np.diag(mrf.h)))[2::3, 2::3]
    expected = K[np.ix_(~KNOWN, KNOWN)] @ np.linalg.solve(K[np.ix_(KNOWN, KNOWN)], Y[KNOWN] - mrf.mean[2])
    labels = np.full((60, 3), np.nan)
    labels[KNOWN, 2] = Y[KNOWN]
    mean = mrf.condition(GRAPH, labels).mean[~KNOWN, 2]
    np.testing.assert_allclose(mean, expected + mrf.mean[2], atol=1e-6)


@pytest.mark.parametrize("solver", ["dense", "sparse"])
def test_the_field_predicts_on_it(solver: Any) -> None:
    model = GraphRegressor(solver=solver).fit(GRAPH, X, LABELS)
    errors = (model.predict() - Y)[~KNOWN]
    assert np.mean(errors**2) < np.var(Y[~KNOWN])


def test_methods_with_a_matrix_of_their_own_refuse_it() -> None:
    with pytest.raises(InvalidInputError, match="with_laplacian"):
        SimpleGraphConvolution(n_layers=1).fit(GRAPH, X, LABELS)


def test_an_intrinsic_car_is_the_limit_of_label_propagation_on_it() -> None:
    linked, hidden = np.arange(59), ~KNOWN[:59]
    laplacian = np.diag(W.sum(axis=1)) - W
    graph = Graph(W[:59, :59]).with_laplacian("combinatorial")
    Q = laplacian[np.ix_(linked, linked)]
    icar = -np.linalg.solve(Q[np.ix_(hidden, hidden)], Q[np.ix_(hidden, ~hidden)] @ Y[:59][~hidden])
    ours = LabelPropagation(alpha=1 - 1e-9).fit(graph, None, LABELS[:59]).predict()[hidden]
    np.testing.assert_allclose(ours, icar, atol=1e-6)
    normalised = LabelPropagation(alpha=1 - 1e-9).fit(Graph(W[:59, :59]), None, LABELS[:59]).predict()[hidden]
    assert np.abs(normalised - icar).max() > 0.1


def test_spreading_is_equation_1_of_the_paper() -> None:
    for graph, M in ((Graph(W), W), (GRAPH, LOOPED)):
        model = LabelSpreading(alpha=0.9).fit(graph, None, LABELS)
        y0 = np.where(KNOWN, Y - Y[KNOWN].mean(), 0.0)
        f = np.linalg.solve(np.eye(60) / 9.0 + oracle.laplacian(M), y0 / 9.0)
        np.testing.assert_allclose(model.predict(), f + Y[KNOWN].mean(), atol=1e-6)
        folds = np.arange(KNOWN.sum()) % 3
        found = model.out_of_fold(graph, None, LABELS, folds)
        for fold in range(3):
            inside = KNOWN.copy()
            inside[np.flatnonzero(KNOWN)[folds == fold]] = False
            mean = Y[inside].mean()
            expected = oracle.smooth(M, np.where(inside, Y - mean, 0.0), 0.9) + mean
            np.testing.assert_allclose(found[folds == fold], expected[KNOWN & ~inside], atol=1e-5)


def test_frequency_responses_are_those_of_the_filters() -> None:
    looped = oracle.laplacian(W + np.eye(60))
    looped[59, 59] = 1.0 - 1.0 / (1.0 + W.sum() / 59)  # the isolated node counts as one of mean degree
    convolution = LinearGraphConvolution(alpha=0.7, fit_intercept=False).fit(GRAPH, X, LABELS)
    simple = SimpleGraphConvolution(n_layers=3, fit_intercept=False).fit(Graph(W), X, LABELS)
    spreading = LabelSpreading(alpha=0.7).fit(GRAPH, None, LABELS)
    smoother = GraphSmoother(GRAPH, alpha=0.7).fit(X)
    labels = np.where(KNOWN, Y - Y[KNOWN].mean(), 0.0)
    averaging = N + np.diag(np.arange(60) == 59)  # features of an isolated node: average neighbours, N_uu = 1
    cases: list[tuple[Any, Floats, Floats, Floats]] = [
        (convolution, averaging, X @ convolution.coef_, convolution.predict()),
        (simple, looped, X @ simple.coef_, simple.predict()),
        (spreading, N, labels, spreading.predict() - spreading.mean_),
        (smoother, averaging, (X - X.mean(axis=0))[:, 0], smoother.transform(X)[:, 0] - X[:, 0].mean()),
    ]
    for model, matrix, before, after in cases:
        values, V = np.linalg.eigh(matrix)
        np.testing.assert_allclose(after, V @ (model.frequency_response(values) * (V.T @ before)), atol=1e-6)
