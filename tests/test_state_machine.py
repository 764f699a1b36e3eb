"""Graph, fit, predict, condition, save and load in any order: each step agrees with dense algebra and with the last."""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import oracle
from cases import random_case
from graphmrf import GaussianMRF, Graph, LinearGraphConvolution, ResidualPropagation
from graphmrf._typing import Floats

pytestmark = pytest.mark.slow

SEEDS = st.integers(0, 10**6)


class FieldOnAGraph(RuleBasedStateMachine):
    """A graph with attributes `A`, some of them unknown, a model of them, and what was last predicted."""

    @initialize(seed=SEEDS)
    def draw(self, seed: int) -> None:
        self.case = random_case(seed, n=9)
        self.W = self.case.W
        self.A = np.column_stack([self.case.X, self.case.truth])
        self.unknown, self.drawn = np.zeros(self.A.shape, dtype=bool), True
        q = self.A.shape[1]
        self.mrf = GaussianMRF(np.eye(q) + 0.2, np.arange(1.0, q + 1), mean=self.A.mean(axis=0))

    @property
    def graph(self) -> Graph:
        return Graph(self.W)

    @property
    def seen(self) -> Floats:
        return np.where(self.unknown, np.nan, self.A)

    @rule(seed=SEEDS)
    def hide(self, seed: int) -> None:
        self.unknown = np.random.default_rng(seed).random(self.A.shape) < 0.3

    @rule(seed=SEEDS)
    def renumber(self, seed: int) -> None:
        order = np.random.default_rng(seed).permutation(len(self.W))
        before = self.mrf.condition(self.graph, self.seen).mean
        self.W, self.A, self.unknown = self.W[order][:, order], self.A[order], self.unknown[order]
        np.testing.assert_allclose(self.mrf.condition(self.graph, self.seen).mean, before[order], atol=1e-8)

    @rule()
    def condition(self) -> None:
        posterior = self.mrf.condition(self.graph, self.seen)
        Gamma = oracle.field_precision(self.W, self.mrf.H, self.mrf.C)
        u = self.unknown.ravel(order="F")
        centred = (self.A - self.mrf.mean).ravel(order="F")
        expected = centred.copy()
        expected[u] = -np.linalg.solve(Gamma[u][:, u], Gamma[u][:, ~u] @ centred[~u])
        mean = expected.reshape(self.A.shape, order="F") + self.mrf.mean
        np.testing.assert_allclose(posterior.mean, mean, atol=1e-7)
        assert (posterior.std[~self.unknown] == 0).all()
        self.A, self.drawn = np.where(self.unknown, posterior.mean, self.A), False

    @rule()
    def save_and_load(self) -> None:
        before = self.mrf.log_likelihood(self.graph, self.seen)
        with TemporaryDirectory() as folder:
            path = Path(folder, "model.json")
            self.mrf.save(path)
            self.mrf = GaussianMRF.load(path)
        assert self.mrf.log_likelihood(self.graph, self.seen) == before

    @rule(seed=SEEDS)
    def sample(self, seed: int) -> None:
        self.A, self.drawn = self.mrf.sample(self.graph, 1, random_state=seed)[0], True
        np.testing.assert_array_equal(self.mrf.sample(self.graph, 1, random_state=seed)[0], self.A)

    @precondition(lambda self: self.drawn and not self.unknown.any())  # means alone have no likelihood to maximise
    @rule()
    def fit(self) -> None:
        found = GaussianMRF.fit(self.graph, self.A)
        assert found.log_likelihood(self.graph, self.A) >= self.mrf.log_likelihood(self.graph, self.A) - 1e-6
        self.mrf = found

    @rule(alpha=st.sampled_from([0.0, 0.5, 0.9]))
    def predict(self, alpha: float) -> None:
        y = self.seen[:, -1]
        if np.isnan(y).all() or np.isnan(y).sum() == 0 or (~np.isnan(y)).sum() < 5:
            return
        model = ResidualPropagation(LinearGraphConvolution(alpha=alpha), alpha=alpha).fit(self.graph, self.A[:, :-1], y)
        expected = oracle.convolution_and_propagation(self.W, self.A[:, :-1], y, alpha)
        np.testing.assert_allclose(model.predict(), expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max())

    @invariant()
    def the_model_is_finite(self) -> None:
        if hasattr(self, "mrf"):
            assert np.isfinite(self.mrf.log_likelihood(self.graph, self.seen))


TestFieldOnAGraph = FieldOnAGraph.TestCase
TestFieldOnAGraph.settings = settings(max_examples=12, stateful_step_count=8, deadline=None, derandomize=True)
