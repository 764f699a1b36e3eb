"""The field fitted to labels: representation, mode, average over hyper-parameters, tails."""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse.csgraph import breadth_first_order

from graphmrf.field.classes import ClassFields, Sides, combined, fields_of
from graphmrf.field.dense import DenseField
from graphmrf.field.learned import BOOSTED_TREES, LEAST_LABELS, tried, with_learned
from graphmrf.field.noise import NORMAL, StudentT
from graphmrf.field.observations import Observations, Responses
from graphmrf.field.posterior import AveragedPosterior
from graphmrf.field.precision import DENSE_NODES, GraphPrecisions
from graphmrf.field.search import MEMBERS, WARM, average, find_mode, first_draw
from graphmrf.field.space import NOISE
from graphmrf.field.sparse import SparseField
from graphmrf.field.spectrum import walks_of_five
from graphmrf.field.terms import TERMS, Prior
from graphmrf.field.transform import fences
from graphmrf.graph import Graph
from graphmrf.linalg.dense import one_blas_thread

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import TypeAlias

    from graphmrf._typing import Floats, Ints
    from graphmrf.field.features import Design
    from graphmrf.field.learned import Trial
    from graphmrf.field.noise import Noise
    from graphmrf.field.posterior import Posterior
    from graphmrf.field.search import Mode
    from graphmrf.field.terms import Term

    Labels: TypeAlias = Observations | Responses | Sides
    AnyField: TypeAlias = DenseField | SparseField | ClassFields

_PROGRESS = logging.getLogger("graphmrf.progress")
# nodes up to which the covariance is dense where there is no sparse factor; elsewhere it is up to `DENSE_NODES`
DENSE_NETWORK = 6000
PART = 400  # labels on which a search begins when there are many more
PART_NODES = 10_000  # nodes of the connected part on which the search of a sparse field begins
REFITTED = 600  # labels up to which hyper-parameters are searched again when some labels are left out
_AGREE = 0.01  # variance between predictions of mode and members, over their own, below which the mode stands for all
_ERROR = 0.005  # the same over the number of members: what is left of the error of the average
_NORMAL_MEDIAN = 0.6745  # median of the absolute value of a standard normal variable
_SETTLED = 0.02  # mean change of weights that ends the rounds of weights and hyper-parameters
_ROUNDS = 3  # most rounds of weights and hyper-parameters where labels have heavy tails


@dataclass(frozen=True, eq=False)
class Found:
    """What the search of a fit found: all that another fit of the same field needs besides its data."""

    mode: Mode  # the most probable hyper-parameters
    points: list[Floats]  # coordinates of the members of the average, the mode first
    likelihood: Noise  # distribution of an observation about the latent field
    weights: Floats  # (m,): precision of the noise of every observation over that of a usual one
    fixed: dict[str, Any] | None  # shapes that the sparse representation does not search; None for a dense covariance
    shares: Floats | None = None  # weights of the members of the average, see `AveragedPosterior`


@dataclass(frozen=True, eq=False)
class FittedField:
    """A field given labels."""

    field: DenseField | SparseField  # the field with its observations
    mode: Mode  # the most probable hyper-parameters
    points: list[Floats]  # coordinates of the members of the average, the mode first
    posterior: AveragedPosterior  # the latent field given the labels
    trial: Trial | None = None  # what boosted trees added on held-out labels, where they were on trial

    @property
    def found(self) -> Found:
        """What the search found."""
        fixed = dict(self.field.fixed) if isinstance(self.field, SparseField) else None
        given, weights = self.posterior, self.field.observations.weights
        return Found(self.mode, self.points, given.likelihood, weights, fixed, given.shares)


def refit(fitted: FittedField, observations: Observations | Responses, *, seed: int = 0) -> AveragedPosterior:
    """Return the posterior given other observations, see `refit_together`."""
    return refit_together([fitted], observations, seed=seed)[0]


def refit_together(fitted: Sequence[FittedField], observations: Labels, *, seed: int = 0) -> list[AveragedPosterior]:
    """Return the posterior of every field given others, its hyper-parameters searched again from where they were.

    Of many labels the hyper-parameters hardly depend on any of them, and are the same.
    """
    field, first = combined([each.field for each in fitted]).observed(observations), fitted[0]  # type: ignore[arg-type]
    likelihood = first.posterior.likelihood
    if observations.nodes.size > REFITTED:
        shares = first.posterior.shares
        return [
            AveragedPosterior([each.posterior(x) for x in first.points], likelihood, shares)
            for each in fields_of(field)
        ]
    with one_blas_thread():
        mode = find_mode(field, first.mode.x, tolerance=_tolerance(observations.nodes.size), damping=WARM)
        averages = _average(field, mode, likelihood, seed=seed, members=len(first.points))
        return [each.posterior for each in averages]


@dataclass(frozen=True)
class FieldOptions:
    """How a field is fitted."""

    terms: tuple[str, ...] = tuple(TERMS)
    # "gaussian", "student" with as many degrees of freedom as the labels suggest, or "auto": normal, with more noise
    # for labels beyond Tukey's outer fences, so that no wild label carries a prediction
    likelihood: str = "auto"
    representation: str = "auto"  # "dense" covariance, "sparse" precision, or "auto", by the number of nodes
    members: int = MEMBERS  # most members of the average over hyper-parameters; 1 for the mode alone
    learner: Any = None  # regressor whose out-of-fold predictions are a term; "auto" are boosted trees, if they help
    seed: int = 0
    # where the search begins, that of a fit of nearly the same data; length scales of nonlinear effects in the sparse
    # representation remain those found there, if there are any
    start: Found | None = None
    priors: Mapping[str, float] | None = None  # scales of some terms a priori, see `Space`
    # the category that each column of features is a level of, empty where there is none; () for none at all
    groups: tuple[str, ...] = ()


def fit_field(design: Design, observations: Observations | Responses, options: FieldOptions) -> FittedField:
    """Return the field fitted to standardised labels, see `fit_together`."""
    return fit_together(design, observations, options)[0]


def fit_together(design: Design, observations: Labels, options: FieldOptions) -> list[FittedField]:
    """Return the field fitted to standardised labels, or that of every class with the same hyper-parameters."""
    prior = Prior.of(options.terms, design, options.priors)
    if options.likelihood == "auto" and isinstance(observations, Observations):
        observations = observations.weighted(observations.weights * _marginal_weights(observations.z))
    dense = _is_dense(design.graph) if options.representation == "auto" else options.representation == "dense"
    with one_blas_thread():
        begun = _search_from(options, design, prior, observations, dense=dense)
        field, mode = begun or (_search_dense if dense else _search_sparse)(design, prior, observations, options.seed)
        found = _with_tails(field, mode, options.likelihood)
        if _is_sparse(field) and field.design is not design:
            found = _on_whole(*found, design, observations)
        field, mode, likelihood, trial = _with_learner(*found, options)
        fitted = _average(field, mode, likelihood, seed=options.seed, members=options.members)
        return [replace(each, trial=trial) for each in fitted]


def _is_sparse(field: AnyField) -> bool:
    return isinstance(fields_of(field)[0], SparseField)


def _dense(design: Design, terms: tuple[Term, ...], labels: Labels) -> DenseField | ClassFields:
    """Return the dense field of labels, or that of every class."""
    if isinstance(labels, Sides):
        return ClassFields.of(partial(DenseField.of, design, terms), labels)
    return DenseField.of(design, terms, labels)


def _sparse(
    design: Design, terms: tuple[Term, ...], labels: Labels, fixed: Mapping[str, Any]
) -> SparseField | ClassFields:
    """Return the sparse field of labels, or that of every class."""
    if isinstance(labels, Sides):
        return ClassFields.of(partial(SparseField.of, design, terms, fixed=fixed), labels)
    return SparseField.of(design, terms, labels, fixed)


def _with_learner(
    field: AnyField, mode: Mode, likelihood: Noise, options: FieldOptions
) -> tuple[AnyField, Mode, Noise, Trial | None]:
    """Return the field with learned effects and its mode: those asked for, or of boosted trees where they help."""
    labels, on_trial = field.observations, options.learner == BOOSTED_TREES
    wanted = options.learner is not None and "learned" in options.terms and field.design.learner is None
    too_few = on_trial and labels.nodes.size < LEAST_LABELS
    design = field.design
    if not wanted or too_few or not (design.p or design.levels.size):
        return field, mode, likelihood, None
    _PROGRESS.info("field: learned effects")
    fields = fields_of(field)
    designs = [with_learned(design, each.observations, options.learner, options.seed) for each in fields]
    trial = tried([each.posterior(mode.x) for each in fields], designs) if on_trial else None
    if trial is not None and not trial.helps:
        return field, mode, likelihood, trial
    is_sparse = _is_sparse(field)
    every = Prior.of(options.terms, designs[0], options.priors).terms
    terms = tuple(term for term in every if term.is_sparse or not is_sparse)
    larger = combined([replace(each, terms=terms).on(own) for each, own in zip(fields, designs, strict=True)])
    start = np.insert(mode.x, larger.space.names.index("learned"), 0.0)
    return larger, find_mode(larger, start, tolerance=_tolerance(labels.nodes.size), damping=WARM), likelihood, trial


def rebuild(design: Design, observations: Observations | Responses, options: FieldOptions, found: Found) -> FittedField:
    """Return the field given labels at hyper-parameters that are known: nothing is searched."""
    if isinstance(observations, Observations):
        observations = observations.weighted(found.weights)
    design = with_learned(design, observations, options.learner, options.seed) if options.learner else design
    field = _field_of(design, Prior.of(options.terms, design, options.priors), observations, found)
    members = [field.posterior(x) for x in found.points]
    return FittedField(field, found.mode, found.points, AveragedPosterior(members, found.likelihood, found.shares))


def _field_of(
    design: Design, prior: Prior, observations: Observations | Responses, found: Found
) -> DenseField | SparseField:
    """Return the field in the representation of a search."""
    if found.fixed is None:
        return DenseField.of(design, prior.terms, observations)
    terms = tuple(term for term in prior.terms if term.is_sparse)
    return SparseField.of(design, terms, observations, found.fixed)


def _search_from(
    options: FieldOptions, design: Design, prior: Prior, observations: Labels, *, dense: bool
) -> tuple[AnyField, Mode] | None:
    """Return the field and its mode by a search from another fit; None where that has other coordinates."""
    start = options.start
    if start is None or isinstance(observations, Sides) or dense != (start.fixed is None):
        return None
    shapes = start.fixed
    if shapes is not None and "nonlinear.lengths" not in shapes:
        shapes = shapes | _feature_shapes(design, prior, observations, options.seed)
    field = _field_of(design, prior, observations, replace(start, fixed=shapes))
    if field.size != start.mode.x.size:
        return None
    return field, find_mode(field, start.mode.x, tolerance=_tolerance(field.rows.size), damping=WARM)


def _is_dense(graph: Graph) -> bool:
    """Return whether the covariance is dense: the graph is small, or has no sparse factor and is not large."""
    n = graph.n_nodes
    if DENSE_NODES < n <= DENSE_NETWORK:
        return GraphPrecisions.of(graph).ordering is None
    return n <= DENSE_NODES


def _marginal_weights(z: Floats) -> Floats:
    """Return weights below 1 for labels beyond the fences: the noise of a label reaches from there to it."""
    middle, reach = fences(z)
    about = np.maximum(np.abs(z - middle), reach)
    return np.asarray((reach / about) ** 2) if reach > 0 else np.ones(z.size)


def _tolerance(labels: int) -> float:
    """Return the gain in log posterior that ends a search: so little a label changes no prediction."""
    return 1e-4 * labels


def _search_dense(
    design: Design, prior: Prior, observations: Labels, seed: int
) -> tuple[DenseField | ClassFields, Mode]:
    """Return the dense field and its mode."""
    field = _dense(design, prior.terms, observations)
    return field, _mode(field, seed)


def _mode(field: DenseField | ClassFields, seed: int) -> Mode:
    """Return the mode of a dense field; with many labels the search begins at that of a random half of them."""
    m = field.rows.size
    if m <= PART:
        return _first_mode(field)
    first = _mode(field.part(_part(m, m // 2, seed)), seed)
    return find_mode(field, first.x, tolerance=_tolerance(m), damping=WARM)


def _first_mode(field: DenseField | ClassFields) -> Mode:
    """Return the mode that is reached from the prior medians.

    Of counts and shares, first from there with numbers near them: 0 and 1 alone hardly show which features matter, and
    the search would end where none does. Where the likelihood's own hyper-parameters have estimates, from these, too.
    """
    tolerance, given = _tolerance(field.rows.size), field.observations
    if isinstance(given, Observations):
        return find_mode(field, np.zeros(field.size), tolerance=tolerance)
    normal = field.observed(given.as_numbers())  # type: ignore[arg-type]  # of the kind of those given
    found = find_mode(normal, np.zeros(normal.size), tolerance=tolerance)
    starts = [field.space.taken_from(normal.space, found.x)]
    if isinstance(given, Responses) and given.shape_estimates:
        starts.append(field.space.placed(starts[0], given.shape_estimates))
    return min((find_mode(field, start, tolerance=tolerance) for start in starts), key=lambda mode: mode.value)


def _part(count: int, size: int, seed: int) -> Ints:
    """Return the places of a random part of the labels, in order."""
    return np.sort(np.random.default_rng(seed).permutation(count)[:size])


def _search_sparse(
    design: Design, prior: Prior, observations: Labels, seed: int
) -> tuple[SparseField | ClassFields, Mode]:
    """Return the sparse field and its mode, of a large graph those on a connected part.

    Length scales come from a dense field of the effects of features alone on a part of the labels.
    """
    prior = Prior(tuple(term for term in prior.terms if term.is_sparse))
    fixed = _feature_shapes(design, prior, observations, seed)
    has_field, n = any(term.name == "field" for term in prior.terms), design.own.shape[0]
    if has_field and n > 2 * PART_NODES and (whole := GraphPrecisions.of(design.graph)).ordering is not None:
        fixed |= {"field.order": np.ones(1)} if whole.degree == 1 else {}
        design, observations = _connected_part(design, observations, seed)
    field = _sparse(design, prior.terms, observations, fixed)
    _PROGRESS.info("field: sparse precision of %d nodes", design.own.shape[0])
    return field, find_mode(field, np.zeros(field.size), tolerance=_tolerance(field.rows.size))


def _on_whole(
    part: AnyField, mode: Mode, likelihood: Noise, design: Design, observations: Labels
) -> tuple[SparseField | ClassFields, Mode, Noise]:
    """Return the field on the whole graph and its mode, from those of a connected part."""
    first = fields_of(part)[0]
    assert isinstance(first, SparseField)
    whole = _sparse(design, part.terms, observations, first.fixed)
    start = whole.space.taken_from(part.space, mode.x)
    if likelihood is not NORMAL and isinstance(whole, SparseField):
        whole = whole.observed(
            whole.normal.weighted(likelihood.weights(_scores(whole, replace(mode, x=start), likelihood)))
        )
    tolerance = _tolerance(observations.nodes.size)
    return whole, find_mode(whole, start, tolerance=tolerance, damping=WARM), likelihood


def _feature_shapes(design: Design, prior: Prior, observations: Labels, seed: int) -> dict[str, Any]:
    """Return the length scales of nonlinear effects, by a dense field of features alone on a part of the labels."""
    terms = tuple(term for term in prior.terms if term.transfers)
    if not any(term.name == "nonlinear" for term in terms):
        return {}
    field = _dense(design, terms, observations.part(_part(observations.nodes.size, PART, seed)))
    return {"nonlinear.lengths": field.space.read(_first_mode(field).x)["nonlinear.lengths"]}


def _connected_part(design: Design, observations: Labels, seed: int) -> tuple[Design, Labels]:
    """Return the nodes around a random label, with their features and observations."""
    graph, rng = design.graph, np.random.default_rng(seed)
    start = int(rng.choice(observations.nodes))
    nodes = np.sort(breadth_first_order(graph.adjacency, start, directed=False)[0][:PART_NODES])
    place = np.full(graph.n_nodes, -1)
    place[nodes] = np.arange(nodes.size)
    small = Graph(graph.adjacency[nodes][:, nodes])
    inside = observations.part(place[observations.nodes] >= 0)
    return design.at(nodes, small), inside.at(place[inside.nodes])


def _with_tails(field: AnyField, mode: Mode, likelihood: str) -> tuple[AnyField, Mode, Noise]:
    """Return the field with labels weighted by how far they lie from what the others predict, and its mode."""
    if likelihood != "student" or isinstance(field, ClassFields):
        return field, mode, NORMAL
    tails = StudentT.fit(_scores(field, mode, NORMAL))
    for _ in range(_ROUNDS):
        scores = _scores(field, mode, tails)
        tails = StudentT.fit(scores)
        weights = tails.weights(scores)
        if np.abs(weights - field.observations.weights).mean() < _SETTLED:
            break
        field = field.observed(field.normal.weighted(weights))
        mode = find_mode(field, mode.x, tolerance=_tolerance(weights.size), damping=WARM)
    return field, mode, tails


def _scores(field: DenseField | SparseField, mode: Mode, likelihood: Noise) -> Floats:
    """Return leave-one-out residuals over their standard deviations, scaled to a normal median."""
    single = AveragedPosterior([field.posterior(mode.x)], likelihood)
    mean, variance = single.leave_one_out().moments
    scores = (field.normal.z - mean) / np.sqrt(variance)
    return np.asarray(scores / (float(np.median(np.abs(scores))) / _NORMAL_MEDIAN or 1.0))


def _average(field: AnyField, mode: Mode, likelihood: Noise, *, seed: int, members: int) -> list[FittedField]:
    """Return the average over hyper-parameters, the mode alone where the posterior is narrow, for every field."""
    fields = fields_of(field)
    centres = [each.posterior(mode.x) for each in fields]
    drawn, last = _members(field, mode, centres, seed, members) if members > 1 else ([], 1.0)
    shares = np.append(np.ones(1 + len(drawn[2:])), np.full(len(drawn[:2]), last))
    found = []
    for each, centre in zip(fields, centres, strict=True):
        posterior = AveragedPosterior([centre, *(each.posterior(x) for x in drawn)], likelihood, shares)
        found.append(FittedField(each, mode, [mode.x, *drawn], posterior))
    return found


def _members(
    field: AnyField, mode: Mode, centres: Sequence[Posterior], seed: int, most: int
) -> tuple[list[Floats], float]:
    """Return the members of the average besides the mode, and the weight of the last pair; all others have 1.

    The more a first pair differs from the mode, the more pairs there are; each begins with a weight of 0, so that no
    label that moves a little adds a pair at once.
    """
    nodes = _some_nodes(field, seed)

    def predicted(posteriors: Iterable[Posterior]) -> tuple[Floats, Floats]:
        moments = [(*each.moments(nodes), each.h[NOISE]) for each in posteriors]
        stds = [np.sqrt(variance + noise) for _, variance, noise in moments]
        return np.concatenate([mean for mean, *_ in moments]), np.concatenate(stds)

    def change(found: list[Floats]) -> float:
        """Return the variance between predictions of the mode and members, over their own."""
        drawn = (predicted(each.posterior(x) for each in fields_of(field)) for x in found)  # one at a time
        means, stds = zip(at_mode, *drawn, strict=True)
        about = [np.square(each - each[0]) for each in (np.array(means), np.array(stds))]
        return float(sum(each.sum(axis=0).mean() for each in about) / (1 + len(found)) / np.mean(np.square(stds)))

    def beyond(share: float) -> float:
        """Return how far a share is from that where the mode stands for all to twice that, from 0 to 1."""
        return min(max(share / _AGREE - 1.0, 0.0), 1.0)

    at_mode = predicted(centres)
    needed = beyond(1.5 * change([first_draw(mode, seed)]))  # where the posterior is narrow it is normal
    if not needed:
        return [], 1.0
    drawn = average(field, mode, count=most - most % 2, seed=seed)
    pair = list(islice(drawn, 2))
    share = change(pair)
    pairs = min(0.5 * needed * beyond(share) * share / _ERROR, most // 2)
    whole = math.ceil(pairs)
    return (pair + list(islice(drawn, 2 * whole - 2)) if whole else []), pairs - whole + 1.0


def _some_nodes(field: AnyField, seed: int) -> Ints:
    """Return some nodes to predict in the components with labels, the same in any order of the nodes."""
    graph = field.design.graph
    reached = np.flatnonzero(np.isin(graph.components, graph.components[field.rows]))
    hidden = np.setdiff1d(reached, field.rows)
    nodes = hidden if hidden.size else reached
    keys = field.design.own.sum(axis=1), walks_of_five(graph)  # features distinguish nodes with the same walks
    nodes = nodes[np.lexsort([key[nodes] for key in keys])]
    return np.sort(np.random.default_rng(seed).permutation(nodes)[:300])
