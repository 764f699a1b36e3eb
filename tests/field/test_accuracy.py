"""Expected accuracy, what to label next, and sums over groups."""

import numpy as np
import pytest

import latent
from families import grid
from graphmrf._typing import Floats, Ints
from graphmrf.errors import InvalidInputError
from graphmrf.field import TERMS, AveragedPosterior, Design, ExpectedAccuracy, Observations, Scale
from graphmrf.field.dense import DenseField, DensePosterior
from graphmrf.field.reading import Numbers
from graphmrf.field.transform import Power

NAMES = ("own", "field")
GRAPH = grid(6)
N = 36


def accuracy(m: int = 12, *, power: Power | None = None) -> tuple[ExpectedAccuracy, Floats]:
    """The accuracy of a field of known hyper-parameters, and its prior covariance."""
    rng = np.random.default_rng(1)
    design = Design.of(GRAPH, rng.standard_normal((N, 2)))
    h = latent.hyperparameters(2, kappa2=0.1, order=1.5, noise=0.3)
    K = latent.prior(NAMES, GRAPH.adjacency.toarray(), design, h)
    z = rng.multivariate_normal(np.zeros(N), K + 0.3 * np.eye(N))
    rows = np.sort(rng.permutation(N)[:m])
    scale = Scale(np.exp(0.5 * z[rows]) if power else z[rows], power)
    observations = Observations.of(rows, scale.z)
    field = DenseField.of(design, tuple(TERMS[name] for name in NAMES), observations)
    posterior = AveragedPosterior([DensePosterior(field, h)])
    return ExpectedAccuracy(posterior, observations, Numbers(scale), N, 0), K


def scale_of(found: ExpectedAccuracy) -> Scale:
    assert isinstance(found.reading, Numbers)
    return found.reading.scale


@pytest.mark.parametrize("power", [None, Power(0.0, signed=False)], ids=["identity", "log"])
def test_the_expected_r2_is_that_of_outcomes_drawn_from_the_model(power: Power | None) -> None:
    found, _ = accuracy(power=power)
    U = found.unknown
    draws = scale_of(found).back(found.posterior.draw_outcome(U, 4000, np.random.default_rng(0)))
    about, variation = draws.var(axis=0).mean(), draws.var(axis=1).mean()
    assert found.expected_r2()[0] == pytest.approx(1.0 - about / variation, abs=0.05)
    assert 0.0 < found.expected_r2()[1] < 0.6


def test_other_labels_have_the_variance_of_dense_algebra() -> None:
    found, K = accuracy()
    labelled = np.arange(N) % 3 == 0
    others = Observations.of(np.flatnonzero(labelled), np.zeros(12))
    variance = np.diag(latent.given(K, others, 0.3)[1])[~labelled] + 0.3
    now, _ = found.expected_r2()
    share = found.expected_r2(labelled)[0]
    assert share < 1.0
    ratio = (1.0 - found.expected_r2(labelled)[0]) / (1.0 - now)
    U = found.unknown
    mean_now = np.mean(found.posterior.outcome(U).moments[1])
    assert ratio == pytest.approx(variance.mean() / mean_now, rel=0.35)  # the variation differs with the nodes


def test_accuracy_grows_with_labels() -> None:
    found, _ = accuracy()
    r2, error = found.learning_curve([12, 18, 30], 5)
    assert r2[0] == pytest.approx(found.expected_r2()[0])
    assert (np.diff(r2) > 0).all()
    assert (error > 0).all()


def test_questions_without_an_answer_are_explained() -> None:
    found, _ = accuracy()
    with pytest.raises(InvalidInputError, match="at least 2 unlabelled nodes, got 0"):
        found.expected_r2(np.ones(N, dtype=bool))
    with pytest.raises(InvalidInputError, match="at least one node, got none"):
        found.expected_r2(np.zeros(N, dtype=bool))


def others_variance(K: Floats, rows: list[int], candidates: Ints) -> float:
    """Latent variance left on some nodes once others are labelled."""
    labels = Observations.of(np.array(rows), np.zeros(len(rows)))
    return float(np.diag(latent.given(K, labels, 0.3)[1])[candidates].sum())


def test_suggestions_are_the_greedy_choice_of_dense_algebra() -> None:
    found, K = accuracy()
    nodes, r2, reason = found.suggest(3)
    assert reason == ""
    rows, unknown = found.observations.nodes.tolist(), found.unknown
    for node in nodes.tolist():
        left = {
            i: others_variance(K, [*rows, i], np.setdiff1d(unknown, [i])) + float(_latent(K, rows)[i])
            for i in np.setdiff1d(unknown, rows).tolist()
        }
        assert node == min(left, key=lambda i: left[i])
        rows.append(node)
    assert (np.diff(r2) > 0).all()
    assert r2[0] > found.expected_r2()[0]


def _latent(K: Floats, rows: list[int]) -> Floats:
    return np.diag(latent.given(K, Observations.of(np.array(rows), np.zeros(len(rows))), 0.3)[1])


def test_more_suggestions_begin_with_fewer() -> None:
    found, K = accuracy()
    rows, asked = found.observations.nodes, found.unknown[:4]
    others = np.setdiff1d(found.unknown, asked)
    assert others_variance(K, [*rows, *asked], others) < 0.95 * others_variance(K, [*rows], others)
    assert found.suggest(4, np.isin(np.arange(N), asked))[2] == ""
    four, eight = found.suggest(4)[0], found.suggest(8)[0]
    np.testing.assert_array_equal(eight[:4], four)


def test_suggestions_stay_among_those_that_can_be_asked() -> None:
    found, _ = accuracy()
    best = found.suggest(4)[0]
    among = np.isin(np.arange(N), best[1:])
    nodes, _, _ = found.suggest(1, among)
    assert nodes.size == 1
    assert among[nodes].all()
    assert found.suggest(0)[0].size == 0


def test_sums_are_those_of_the_joint_posterior() -> None:
    found, K = accuracy()
    groups = [np.arange(9), np.arange(9, 36), found.observations.nodes[:3]]
    total, std, low, high = found.sums(groups, 0.8)
    mean, covariance = latent.given(K, found.observations, 0.3)
    unit, centre = scale_of(found).unit, scale_of(found).y.mean()
    y = centre + unit * mean
    y[found.observations.nodes] = scale_of(found).y
    noisy = covariance + 0.3 * np.eye(N)
    noisy[found.observations.nodes] = noisy[:, found.observations.nodes] = 0.0
    for k, nodes in enumerate(groups):
        assert total[k] == pytest.approx(y[nodes].sum(), abs=1e-4)
        expected = unit * np.sqrt(noisy[np.ix_(nodes, nodes)].sum())
        assert std[k] == pytest.approx(expected, rel=0.1, abs=1e-9)
        assert high[k] - low[k] == pytest.approx(2 * 1.2816 * expected, rel=0.15, abs=1e-9)


def test_sums_of_a_transformed_outcome_add_up_its_means() -> None:
    found, _ = accuracy(power=Power(0.0, signed=False))
    total, std, low, high = found.sums([np.arange(N)], 0.9)
    draws = scale_of(found).back(found.posterior.draw_outcome(found.unknown, 20_000, np.random.default_rng(5)))
    known = scale_of(found).y.sum()
    assert total[0] == pytest.approx(known + draws.sum(axis=1).mean(), rel=0.05)
    assert std[0] == pytest.approx(draws.sum(axis=1).std(), rel=0.2)
    assert low[0] < total[0] < high[0]
