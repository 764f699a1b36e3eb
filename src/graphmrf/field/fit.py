"""The field fitted to labels: both solvers in one function each, and the one value they return."""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import ndtri
from scipy.stats import t as student

from graphmrf.engines import map_columns
from graphmrf.field.averaged import (
    BLENDED,
    AveragedPosterior,
    median,
    point_weight,
    sample_hyperparameters,
    with_imputed_variance,
)
from graphmrf.field.components import COMPONENTS
from graphmrf.field.covariance import Covariance, unshown_effects, unshown_variance
from graphmrf.field.design import LabelledGraph, component_sizes, make_design, with_distant
from graphmrf.field.exact import ExactPosterior, maximise
from graphmrf.field.hyperparameters import Hyperparameters
from graphmrf.field.matern import eigen, is_probed, probed_series
from graphmrf.field.multiple_imputation import impute
from graphmrf.field.paper_model import JointModel
from graphmrf.field.posterior import Mixture
from graphmrf.field.sparse import SparseSearch, features_alone, kernel_part
from graphmrf.field.transform import Scale, choose_transform
from graphmrf.kept import cached_property
from graphmrf.selection import assign_folds, search_convolution_and_residual, whiten

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from graphmrf._typing import Bools, Floats, Ints
    from graphmrf.engines import Engine
    from graphmrf.field.covariance import Component
    from graphmrf.field.multiple_imputation import Imputation
    from graphmrf.field.posterior import Posterior
    from graphmrf.field.sparse import SparsePosterior
    from graphmrf.field.transform import Kind
    from graphmrf.graph import Graph

_PROGRESS = logging.getLogger("graphmrf.progress")

WORTH = (3.0, 10.0)
"""Times of the sparse solver that the exact one is worth, with many labels and with few: its R2 is higher by .005 on
average and by up to .017 (``python -m benchmarks solvers``), and of few labels it averages over hyper-parameters.
Doubled, 20,000 nodes with 3000 labels take 3 minutes in place of one."""

_MOST_BYTES = 4e9
"""Memory that the exact solver may take on a CPU: half of a small machine. Doubled, 100,000 nodes may have 3000 labels,
not 1500, if that were worth its time."""

FUNCTIONS = 26
"""Functions of the graph that span all correlations; see `matern`."""

SPEEDS = {
    "cpu": {"product": 8e-10, "step": 2e-10, "eigenvectors": 3e-11, "dense": 1.0, "entry": 1e-7, "kept": 1.0},
    "gpu": {"product": 2e-11, "step": 1e-12, "eigenvectors": 1e-12, "dense": 0.05, "entry": 2e-9, "kept": 2.0},
}
"""Seconds of an edge in a product, of a step of dense algebra, of one over the cube of nodes for eigenvectors, of an
entry of a covariance between nodes and labels; of a likelihood, over those of one core; and the memory, over that
of half matrices and one copy. Measured by
``python -m benchmarks.solvers --foreseen``; twice as fast a machine chooses the same but at the edge."""

FOLDS = 5
"""Folds of calibration and of the choice of a level: the usual number."""

CALIBRATED = (10, 200)
"""Fewest labels that are split into folds for calibration, and most for which hyper-parameters are refitted there."""

_FITTED = 8
"""Hyper-parameters that the sparse solver fits to its labels: variances of own, neighbours', distant, nonlinear and
local effects, of field and noise, and omega. On power-law graphs and maps of 2,000 nodes (5 draws) 90 % intervals hold
82 to 90 % without it with 20, 40 and 100 labels, and 90 to 96 % were it 9. Doubled, those of 20 labels hold all."""

_EFFECT_DRAWS = 16
"""Draws of missing features that tell the sparse solver the variance of what they say, to a third of itself. Doubled,
the time of a fit with missing features grows by a tenth."""
_LEAST_STATED = 0.05
"""Least share of the variance of labels that is not put down to missing features, for it is known to a third of itself.
Doubled, nodes whose features are known have wider error bars where others lack a feature that says all."""
_FREEDOMS = (2.5, 200.0)
"""Degrees of freedom of the scores: heavier tails have hardly a variance, and 200 are normal."""
_PRIOR_LABELS = 10.0
"""Scores of 1 added to those of the labels: they hold the widths where labels are a handful, and vanish in hundreds."""
_LARGEST = 5.0
"""Scores beyond count as this for the scale: one label in a million times its deviation says nothing of other nodes."""


def fit_exact(
    graph: Graph,
    X: Floats,
    y: Floats,
    *,
    kinds: tuple[Kind, ...] = ("identity",),
    components: Sequence[Component] = COMPONENTS,
    seed: int = 0,
) -> FittedField:
    """Return the field fitted by dense algebra on the labelled nodes, averaged over missing features.

    Labels whose own features are missing have noise of their own (`with_imputed_variance`). Where the paper's own
    model wins, the features of all nodes tell its parameters, too.

    Parameters
    ----------
    graph : Graph
        The graph.
    X : array of shape (n, p)
        Features of all nodes, NaN where missing.
    y : array of shape (n,)
        Outcomes, NaN where unknown.
    kinds : tuple of str
        Transforms of the outcome to choose from.
    components : sequence of Component
        The terms of the field.
    seed : int
        Seed of everything random.
    """
    rows = np.flatnonzero(~np.isnan(y))
    imputed = impute(graph, X, seed=seed) if np.isnan(X).any() else None
    made = make_design(graph, X if imputed is None else imputed.X, rows=rows)
    unseen, more = unshown(graph, rows, components, made.p)
    covariance = Covariance.of(made, eigen(graph, rows), rows, components, unseen)
    scale = choose_transform(covariance, y[rows], kinds, seed=seed)
    designs = [] if imputed is None else [made.elsewhere(graph, draw) for draw in imputed.draws]
    weight, order = 1.0 if scale.is_constant else point_weight(rows.size), made.order_of_labels(rows, scale.z)
    effects, points, spent = {c.name: c.effect for c in components}, list[Hyperparameters](), 0
    ends = None
    if imputed is not None and designs and not scale.is_constant:
        covariance, ends = with_imputed_variance(graph, covariance, scale.z, imputed, seed=seed)
    if weight < 1.0:
        points, spent = sample_hyperparameters(covariance, scale.z, seed=seed)
    if not weight:
        middle = ExactPosterior(covariance, median(points), scale.z)
        averaged = AveragedPosterior(middle, designs, points, weight)
        log_evidence = float(np.mean([member.log_likelihood for member in averaged.members[: len(points)]]))
        calibration = calibrate(averaged, order, seed, trust=0.0)
        return FittedField(averaged, scale, calibration, y, made.kept, effects, log_evidence, spent, seed, (1.0, more))
    h, found = maximise(covariance, scale.z, seed=seed, ends=ends)
    base, log_evidence = ExactPosterior(covariance, h, scale.z, ends=found.ends), found.log_evidence
    if imputed is None and not h["unit_variance"] and scale.power is None and not scale.is_constant:
        joint = JointModel(graph, covariance, X[:, made.kept] / made.scales[0], y[rows] / scale.unit)
        base, log_evidence = joint.posterior(h["omega"]) or (base, log_evidence)
        base = replace(base, ends=found.ends)
    likely: Posterior = AveragedPosterior(base, designs) if designs else base
    calibration = calibrate(likely, order, seed, trust=weight, engine=graph.engine)
    posterior = AveragedPosterior(base, designs, points, weight) if points else likely
    spent += found.evaluations
    return FittedField(posterior, scale, calibration, y, made.kept, effects, log_evidence, spent, seed, (1.0, more))


def fit_sparse(
    graph: Graph,
    X: Floats,
    y: Floats,
    *,
    kinds: tuple[Kind, ...] = ("identity",),
    components: Sequence[Component] = COMPONENTS,
    seed: int = 0,
) -> FittedField:
    """Return the field fitted by block solves over the graph; of what needs dense algebra a part of the labels decides.

    Missing features are at their expectation: an average over draws would solve for all columns once for each of them.
    What is not known of them is taken from the variance of all nodes, and added where they are missing; see
    `by_imputation`. The parameters are those of `fit_exact`.
    """
    rows = np.flatnonzero(~np.isnan(y))
    imputed = impute(graph, X, seed=seed) if np.isnan(X).any() else None
    expected = X if imputed is None else imputed.X
    plain = make_design(graph, expected, rows=rows)
    order, part = plain.order_of_labels(rows, y[rows]), kernel_part(plain, rows, y[rows], seed)
    alone = features_alone(graph, plain, rows[part], components)
    scale = Scale(y[rows], choose_transform(alone, y[rows][part], kinds, seed=seed).power)
    alpha = _level(graph, expected, y, scale, _folds(order, seed))
    labelled = LabelledGraph(graph, rows, seed)
    unseen, more = unshown(graph, rows, components, plain.p)
    made = with_distant(graph, plain, alpha, rows=rows)
    search = SparseSearch(labelled, made, scale.z, alpha, tuple(components), unseen)
    posterior, found = search.run()
    calibration = calibrate(posterior, order, seed, engine=graph.engine, fitted=_FITTED)
    unstated = (1.0, more)
    if imputed is not None and imputed.posterior is not None:
        share, variance = by_imputation(posterior, graph, rows, imputed)
        unstated, stated = (share, variance + more), posterior.left_out[1]
        calibration = calibration.rescaled(stated, redistributed(stated, unstated, rows))
    effects = {c.name: c.effect for c in components}
    found_at = (found.log_evidence, found.evaluations)
    return FittedField(posterior, scale, calibration, y, plain.kept, effects, *found_at, seed, unstated)


def unshown(
    graph: Graph, rows: Ints, components: Sequence[Component], p: int, there: Graph | None = None
) -> tuple[tuple[str, ...], Floats]:
    """Return the effects of `p` features and of the graph that no label shows, and their variance.

    The variance is that of all nodes of the graph, or of another one; see `unshown_effects` and `unshown_variance`.
    """
    present = [component for component in components if p or not component.of_features]
    names = unshown_effects(present, component_sizes(graph), rows)
    return names, unshown_variance(present, names, component_sizes(there or graph), rows.size)


def by_imputation(posterior: SparsePosterior, graph: Graph, rows: Ints, imputed: Imputation) -> tuple[float, Floats]:
    r"""Return the share of the stated variance that is not due to imputed features, and the variance (n,) that is.

    A field fitted at expected features takes what these miss of the true ones for noise of all nodes alike: on average
    over the labels, :math:`\mathrm{Var} f(x_i)` over draws of the missing cells, with `f` the effects of features.
    That is taken from the variance of all nodes, nearly all of it at most, and every node gets that of its own.
    """
    _PROGRESS.info("effects of missing features")
    variance = np.var([posterior.effects(graph, X) for X in imputed.sample(_EFFECT_DRAWS)], axis=0, ddof=1)
    share = 1.0 - float(variance[rows].mean() / posterior.left_out[1].mean())
    return max(share, _LEAST_STATED), variance


def redistributed(variance: Floats, unstated: tuple[float, Floats], nodes: Ints) -> Floats:
    """Return variances of some nodes, with what a posterior does not state of them; see `FittedField.unstated`."""
    return np.asarray(unstated[0] * variance + unstated[1][nodes])


SOLVERS: dict[str, Callable[..., FittedField]] = {"exact": fit_exact, "sparse": fit_sparse}
"""The solvers by name."""


def choose_solver(graph: Graph, labels: int, features: int) -> tuple[str, str]:
    """Return the solver that is worth its foreseen time, and why; see `exact_cost` and `sparse_cost`.

    The exact one, which is more accurate and averages over hyper-parameters of few labels, unless it takes more than a
    minute and `WORTH` times as long, or more memory than `most_bytes`.
    """
    exact, sparse = exact_cost(graph, labels, features), sparse_cost(graph, labels, features)
    if exact[1] > most_bytes(graph, labels):
        reason = f"the exact one would take about {exact[1] / 1e9:.0f} GB of memory"
    elif exact[0] > _most_seconds(labels, sparse[0]):
        reason = f"the exact one would take {_in_words(exact[0])}, {exact[0] / sparse[0]:.0f} times as long"
    else:
        return "exact", f"takes {_in_words(exact[0])}"
    return "sparse", f"takes {_in_words(sparse[0])}; {reason}"


def most_bytes(graph: Graph, labels: int) -> float:
    """Return the memory that the exact solver may take: 4 GB, or what is free on the device that has eigenvectors."""
    engine: Any = graph.engine
    return float(engine.room()) if hasattr(engine, "room") and not is_probed(graph, labels) else _MOST_BYTES


def foreseen_time(solver: str, graph: Graph, labels: int, features: int) -> str:
    """Return in words how long a solver is foreseen to take."""
    cost = {"exact": exact_cost, "sparse": sparse_cost}[solver]
    return f"takes {_in_words(cost(graph, labels, features)[0])}"


def _most_seconds(labels: int, sparse: float) -> float:
    """Return the time that the exact solver is worth beside that of the sparse one."""
    return max(60.0, WORTH[labels < BLENDED[1]] * sparse)


def _in_words(seconds: float) -> str:
    """Return a rough time.

    Examples
    --------
    >>> _in_words(3.2), _in_words(400.0), _in_words(2e4)
    ('some seconds', 'about 7 minutes', 'about 6 hours')
    """
    if seconds < 10:
        return "some seconds"
    for unit, name in ((3600.0, "hours"), (60.0, "minutes"), (1.0, "seconds")):
        if seconds >= 2 * unit:
            return f"about {seconds / unit:.0f} {name}"
    raise AssertionError


def exact_cost(graph: Graph, labels: int, features: int) -> tuple[float, float]:
    r"""Return the seconds and bytes that a fit and prediction by the exact solver is foreseen to take on one core.

    - Likelihoods: some dozen on parts of the labels, then 20 on all `m`, each of :math:`m^2` and :math:`m^3` steps; of
      fewer than 120 labels 1600 of them for draws of hyper-parameters.
    - Up to 10,000 nodes, or with 120 labels and more: :math:`n^3` for eigenvectors, or for the polynomials that are
      taken where they are quicker.
    - Beyond: polynomials of degree K, K products of :math:`2E + 4n` steps for some columns a label and a feature and
      for probes, summed to as many functions; and the covariance of every node with every label in every draw.
    """
    n, m, speed = graph.n_nodes, labels, SPEEDS["cpu"] if is_probed(graph, labels) else _speed(graph)
    draws = 31 if point_weight(m) < 1.0 else 1
    steps = {300: 60, 1200: 10, m: 20} if m > 400 else {m: 60 + 200 * (60 < m <= 200) + 1600 * (draws > 1)}
    likelihoods = sum(count * _likelihood(min(size, m)) for size, count in steps.items())
    predictions = speed["entry"] * draws * n * m
    if not is_probed(graph, m):
        dense = speed["eigenvectors"] * n**3
        kept = speed["kept"] * (24.0 * n**2 + 4.0 * FUNCTIONS * m**2)
        return speed["dense"] * likelihoods + dense + predictions, kept
    passes = 1 + n * m // 5_000_000 if draws > 1 else 2
    columns = (2 + passes) * m + 2 * features + 96
    needed = 8.0 * n * (250 + 3 * m * (m > BLENDED[0]) + FUNCTIONS * features * (draws > 1)) + 4.0 * FUNCTIONS * m**2
    product = speed["product"] * (graph.indices.size + 4 * n) + speed["step"] * n * FUNCTIONS
    least = speed["dense"] * likelihoods + predictions + 20 * columns * product
    if needed > most_bytes(graph, m) or least > _most_seconds(m, sparse_cost(graph, m, features)[0]):
        return least, needed  # no need to look for eigenvalues
    return least + (graph.derived(probed_series).degree - 20) * columns * product, needed


def sparse_cost(graph: Graph, labels: int, features: int) -> tuple[float, float]:
    """Return the seconds and bytes that a fit by the sparse solver is foreseen to take on one core.

    Some 30 likelihoods of 8 columns and the probes of a determinant, and the columns of effects once roughly and once
    well, by some 25 products of the graph each; length scales by likelihoods of up to 2000 labels.
    """
    n, speed = graph.n_nodes, _speed(graph)
    effects = 256 + 4 * features + min(400, labels // 2, 10_000_000 // n)
    columns = 30 * (8 + min(max(1_200_000 // n, 8), 32)) + 700 + effects
    scales = sum(count * _likelihood(min(size, labels)) for size, count in {300: 60, 1200: 10, 2000: 20}.items())
    iterating = 25 * columns * speed["product"] * (graph.indices.size + 4 * n)
    return iterating + (speed["dense"] * scales if features else 0.0), 8.0 * n * (2 * effects + 200)


def _likelihood(labels: int) -> float:
    """Return the seconds of a likelihood and its gradient, on one core."""
    return 2e-3 + 1.8e-7 * labels**2 + 2.5e-11 * labels**3


def _speed(graph: Graph) -> dict[str, float]:
    return SPEEDS["gpu" if hasattr(graph.engine, "place") else "cpu"]


def _folds(order: Ints, seed: int) -> Ints:
    """Return the fold of every label, by its place in an order that does not depend on the numbers of nodes."""
    folds = np.empty(order.size, dtype=np.int64)
    folds[order] = assign_folds(order.size, FOLDS, seed=seed)
    return folds


def _level(graph: Graph, X: Floats, y: Floats, scale: Scale, folds: Ints) -> float:
    """Return the level that cross-validation chooses for linear graph convolution with residual propagation."""
    _PROGRESS.info("level of smoothing by cross-validation")
    z, rows = y.copy(), np.flatnonzero(~np.isnan(y))
    z[rows] = scale.z
    return search_convolution_and_residual(graph, whiten(X, centred=True), z, folds).alpha


def cross_fit(
    posterior: Posterior, folds: Ints, z: Callable[[Bools], Floats], seed: int, *, engine: Engine | None = None
) -> tuple[Floats, Floats]:
    """Return out-of-fold mean and variance of every label, with hyper-parameters refitted without each fold.

    A few labels determine the hyper-parameters so loosely that these remember each of them: what the field says of a
    label given all others (`Posterior.left_out`) is then too good.

    Parameters
    ----------
    posterior : Posterior
        The field given all its labels.
    folds : integer array of shape (m,)
        Fold of every label.
    z : callable
        Returns the standardised labels that are not of a fold.
    seed : int
        Seed of the searches.
    engine : Engine, optional
        That of the graph; the workers of a cluster share out the folds.
    """
    mean, variance = np.empty(folds.size), np.empty(folds.size)
    masks = [folds == fold for fold in range(int(folds.max()) + 1)]
    refits = map_columns(engine, _refitted, ((posterior, own, z(own), seed) for own in masks))
    for own, moments in zip(masks, refits, strict=True):
        mean[own], variance[own] = moments
    return mean, variance


def _refitted(_: Engine | None, posterior: Posterior, own: Bools, z: Floats, seed: int) -> tuple[Floats, Floats]:
    return posterior.refitted(own, z, seed)


def calibrate(
    posterior: Posterior,
    order: Ints,
    seed: int,
    *,
    trust: float = 1.0,
    engine: Engine | None = None,
    fitted: int = 0,
) -> IntervalCalibration:
    r"""Return the scores of the labels given the others; of few labels, by fields fitted without their fold.

    Folds are assigned in an `order` of the labels, see `Design.order_of_labels`.
    With a `trust` of 0, as of the averaged field, whose error bars need no calibration, nothing is fitted again.
    Where nothing is, and `k` hyper-parameters were `fitted` to the `m` labels themselves, residuals are too small:
    scores are multiplied by :math:`\sqrt{m / (m - k)}`, at most by :math:`\sqrt 3`.
    """
    z, (residual, variance) = posterior.z, posterior.left_out
    if trust and CALIBRATED[0] <= z.size <= min(CALIBRATED[1], posterior.refitted_up_to):
        folds = _folds(order, seed)
        mean, variance = cross_fit(posterior, folds, lambda own: z[~own], seed, engine=engine)
        residual, fitted = z - mean, 0
    std, freedom = np.sqrt(variance), max(z.size - fitted, z.size / 3.0)
    return IntervalCalibration(math.sqrt(z.size / freedom) * residual / std, float(std.max()), trust)


@dataclass(frozen=True, eq=False)
class IntervalCalibration:
    """Standardised leave-one-out residuals of the labels, and the widths they ask for.

    Attributes
    ----------
    scores : array of shape (m,)
        Residual of each label given all others, over its standard deviation.
    seen : float
        The largest of these standard deviations: what is less certain than any label is not narrowed by them.
    trust : float
        How far scores are followed; with 0 error bars stay as stated.

    Examples
    --------
    >>> calibration = IntervalCalibration(np.random.default_rng(0).standard_normal(500))
    >>> round(calibration.scale, 1), round(calibration.student(0.95), 1), round(calibration.conformal(0.95), 1)
    (1.0, 2.0, 2.0)
    """

    scores: Floats
    seen: float = math.inf
    trust: float = 1.0

    def rescaled(self, stated: Floats, variance: Floats) -> IntervalCalibration:
        """Return the same for other variances (m,) of the labels than were stated."""
        return replace(self, scores=self.scores * np.sqrt(stated / variance), seen=math.sqrt(float(variance.max())))

    def factor(self, std: Floats, ratio: float) -> Floats:
        """Return what deviations are multiplied by, where scores ask for a ratio of calibrated to stated widths.

        Beyond the standard deviations that labels have, as of nodes whose features are missing where those of labels
        are not, widths grow as stated: scores that lie close together say nothing of them.
        """
        ratio = 1.0 + self.trust * (ratio - 1.0)
        if ratio >= 1.0:
            return np.full(std.size, ratio)
        return np.asarray(ratio + (1.0 - ratio) * np.maximum(1.0 - self.seen / np.maximum(std, self.seen), 0.0))

    @cached_property
    def scale(self) -> float:
        """Factor for standard deviations: the root mean square of the scores, with ten scores of 1 added to them.

        Scores beyond 5 count as 5: a single label in a million times its deviation says nothing of other nodes.
        """
        scores = np.minimum(np.abs(self.scores), _LARGEST)
        return math.sqrt((float(scores @ scores) + _PRIOR_LABELS) / (scores.size + _PRIOR_LABELS))

    @cached_property
    def _tails(self) -> tuple[float, float]:
        """Degrees of freedom, no more than scores, and scale of the Student distribution that fits the scores best."""
        least, most = _FREEDOMS
        bounds = np.log([least, np.clip(self.scores.size, least + 0.5, most)])
        found = minimize_scalar(lambda f: self._misfit(float(np.exp(f)))[0], bounds=tuple(bounds), method="bounded")
        freedom = float(np.exp(found.x))
        return freedom, self._misfit(freedom)[1]

    def _misfit(self, freedom: float) -> tuple[float, float]:
        """Return the negative log likelihood of the scores at the best scale, and that scale."""
        squares = np.append(self.scores**2, np.ones(int(_PRIOR_LABELS)))
        scale2 = 1.0
        for _ in range(50):  # expectation-maximisation of the scale of a Student distribution
            scale2 = float(np.mean((freedom + 1.0) * squares / (freedom + squares / scale2)))
        scale = math.sqrt(scale2)
        return -float(student.logpdf(np.sqrt(squares), freedom, scale=scale).sum()), scale

    def student(self, level: float) -> float:
        """Return the half width of an interval, in standard deviations, from the Student distribution of the scores."""
        freedom, scale = self._tails
        return scale * float(student.ppf(0.5 + 0.5 * level, freedom))

    def conformal(self, level: float) -> float:
        r"""Return the half width that covers a further exchangeable score with at least the given probability.

        It is the :math:`\lceil (m + 1) \cdot level \rceil`-th smallest absolute score; infinite when m is too small.
        """
        rank = math.ceil((self.scores.size + 1) * level - 1e-9)
        ordered = np.sort(np.abs(self.scores))
        return float(ordered[rank - 1]) if 1 <= rank <= ordered.size else float("inf") if rank else 0.0


@dataclass(frozen=True, eq=False)
class FittedField:
    """A field given its labels, in the units of the outcome.

    Attributes
    ----------
    posterior : Posterior
        The standardised field given its labels.
    scale : Scale
        From standardised values to the units of the outcome.
    calibration : IntervalCalibration
        How far labels lie from what the others say of them: what error bars and intervals are widened by.
    y : array of shape (n,)
        Outcomes, NaN where unknown.
    kept : bool array of shape (p,)
        The features that vary.
    effects : dict of str to str
        Row of the table of shares of every component.
    standardised_log_evidence : float
        Log marginal likelihood of the standardised labels.
    evaluations : int
        Likelihoods computed.
    seed : int
        Seed of refits.
    unstated : pair of float and array of shape (n,)
        What variances are multiplied by, and what is added, for imputed features (see `by_imputation`) and for effects
        that no label shows (see `unshown_variance`).
    """

    posterior: Posterior
    scale: Scale
    calibration: IntervalCalibration
    y: Floats
    kept: Bools
    effects: dict[str, str]
    standardised_log_evidence: float
    evaluations: int
    seed: int
    unstated: tuple[float, Floats]

    @property
    def log_evidence(self) -> float:
        """Log marginal likelihood of the labels, in their units."""
        return self.standardised_log_evidence + (0.0 if self.scale.is_constant else self.scale.log_jacobian)

    @cached_property
    def rows(self) -> Ints:
        """The labelled nodes."""
        return np.flatnonzero(~np.isnan(self.y))

    @cached_property
    def _unknown(self) -> Ints:
        return np.flatnonzero(np.isnan(self.y))

    @cached_property
    def standardised(self) -> Mixture:
        """The standardised outcome of the unlabelled nodes, before it is calibrated; see `Mixture.hedged`."""
        usual = self.posterior.relative_variance()[self._unknown]
        found = self._stated
        variances = redistributed(found.variances, self.unstated, self._unknown)
        return Mixture(found.weights, found.means, variances).hedged(self.posterior.z, self.posterior.origin, usual)

    @cached_property
    def _stated(self) -> Mixture:
        """The same as the posterior states it."""
        return self.posterior.mixture(self._unknown)

    @cached_property
    def widening(self) -> Floats:
        """Standard deviation of every node over the one that the posterior states; 1 for labelled ones."""
        stated, hedged = self._stated.moments[1], self.standardised.moments[1]
        return self._filled(np.sqrt(hedged / stated), np.ones(self.y.size))

    @cached_property
    def predictions(self) -> tuple[Floats, Floats]:
        """Mean and standard deviation of every node; labelled ones keep their label."""
        found = self.standardised
        mean, variance = found.moments
        factor = self.calibration.factor(np.sqrt(variance), self.calibration.scale)
        wider = Mixture(found.weights, mean + factor * (found.means - mean), factor**2 * found.variances)
        centre, spread = self._in_units(wider)
        return self._filled(centre, self.y), self._filled(spread, np.zeros(self.y.size))

    def _in_units(self, found: Mixture) -> tuple[Floats, Floats]:
        """Return mean and standard deviation in the units of the outcome."""
        if self.scale.power is None:
            mean, variance = found.moments
            return self.scale.moments(mean, np.sqrt(variance))
        each = [self.scale.moments(m, np.sqrt(v)) for m, v in zip(found.means, found.variances, strict=True)]
        mean, variance = Mixture.of([(m, s**2) for m, s in each], found.weights).moments
        return mean, np.sqrt(variance)

    def interval(self, level: float, kind: Literal["field", "conformal"]) -> tuple[Floats, Floats]:
        """Return the ends of an interval for every node: quantiles of its distribution, or by ranks of the scores."""
        found = self.standardised
        mean, variance = found.moments
        std = np.sqrt(variance)
        if kind == "conformal":
            ends = [mean + side * self.calibration.conformal(level) * std for side in (-1.0, 1.0)]
        else:
            factor = self.calibration.factor(std, self.calibration.student(level) / float(ndtri(0.5 + 0.5 * level)))
            ends = [mean + factor * (found.quantile(0.5 + 0.5 * side * level) - mean) for side in (-1.0, 1.0)]
        low, high = (self._filled(self.scale.back(end), self.y) for end in ends)
        return low, high

    def draw(self, count: int, seed: int) -> Floats:
        """Return joint draws of all nodes, as far about their mean as the standard deviations of `predictions` say."""
        stated, (mean, variance) = self._stated.moments[0], self.standardised.moments
        draws = self.posterior.draw(self._unknown, count, np.random.default_rng(seed))
        factor = self.calibration.factor(np.sqrt(variance), self.calibration.scale) * self.widening[self._unknown]
        whole = np.tile(self.y, (count, 1))
        whole[:, self._unknown] = self.scale.back(mean + factor * (draws - stated))
        return whole

    def _filled(self, values: Floats, known: Floats) -> Floats:
        whole = known.copy()
        whole[self._unknown] = values
        return whole

    @property
    def left_out(self) -> tuple[Floats, Floats]:
        """Mean and standard deviation of every label given the others."""
        residual, variance = self.posterior.left_out
        std = np.sqrt(redistributed(variance, self.unstated, self.rows))
        return self.scale.moments(
            self.posterior.z - residual, self.calibration.factor(std, self.calibration.scale) * std
        )

    def out_of_fold(self, folds: Ints, *, refitted_up_to: int | None = None) -> Floats:
        """Return the prediction of every label by a field without its fold, the transform kept.

        Hyper-parameters are refitted for so many labels, by default `Posterior.refitted_up_to`, and kept for more.
        """
        labels, predictions = self.y[self.rows], np.empty(folds.size)
        refits = 2 < folds.size <= (self.posterior.refitted_up_to if refitted_up_to is None else refitted_up_to)
        for fold in range(int(folds.max()) + 1):
            own = folds == fold
            scale = Scale(labels[~own], self.scale.power) if refits else self.scale
            mean, variance = self._refitted(own, scale.z) if refits else self.posterior.without(own)
            predictions[own] = scale.moments(mean, np.sqrt(variance))[0]
        return predictions

    def _refitted(self, own: Bools, z: Floats) -> tuple[Floats, Floats]:
        """Return standardised mean and variance of some labels as a fit to the others, of values `z`, predicts them."""
        usual = self.posterior.relative_variance()[self.rows[own]]
        return Mixture.of([self.posterior.refitted(own, z, self.seed)]).hedged(z, usual=usual).moments

    @property
    def shares(self) -> dict[str, float]:
        """Share of the variance of the labels by kind of effect, and noise; they add up to 1."""
        found = dict.fromkeys(self.effects.values(), 0.0)
        for name, share in self.posterior.shares.items():
            found[self.effects[name]] += share
        return found

    def own_effects(self, returning: float) -> Floats:
        """Return the mean effect (p,) of a node's own features by all ways, per unit; see `Posterior.own_effects`."""
        return self._placed(self.posterior.own_effects(returning))

    @property
    def coefficients(self) -> dict[str, tuple[Floats, Floats]]:
        """Linear coefficients and standard errors (p,) per unit of the feature, by the effect's title."""
        return {title: (self._placed(a), self._placed(b)) for title, (a, b) in self.posterior.coefficients.items()}

    def _placed(self, values: Floats) -> Floats:
        whole = np.zeros(self.kept.size)
        whole[self.kept] = self.scale.unit * values
        return whole
