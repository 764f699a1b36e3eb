r"""Laplace's approximation beside a long run of a sampler on three small real sets, with half of the nodes labelled.

Respiratory admissions in 271 zones of Glasgow (Poisson, with expected numbers), oral cancer in a connected part of 200
German districts (negative binomial) and mature streamers in a connected part of 200 of Twitch (0 and 1).
Hyper-parameters are at their mode for both. The sampler is elliptical slice sampling about the normal approximation
:math:`N(m, S)` (Murray, Adams and MacKay 2010; Nishihara, Murray and Adams 2014), with the exact ratio of densities, so
its draws are of the exact posterior. Over all nodes: the largest difference of posterior means in posterior standard
deviations, the least and the greatest ratio of standard deviations, and the largest standard error of the sampler's
means, from the spread of its independent chains. ``python -m benchmarks.laplace [--samples 2000000]``.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.counts import Counts
from benchmarks.counts import tasks as count_tasks
from benchmarks.more_data import Task, connected_part
from benchmarks.show import show
from graphmrf import datasets
from graphmrf.field import TERMS, FieldOptions, Observations, Responses
from graphmrf.field.dense import DenseField, DensePosterior
from graphmrf.field.likelihoods import LIKELIHOODS
from graphmrf.field.outcome import FieldOutcome
from graphmrf.field.space import NOISE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from benchmarks.show import Row
    from graphmrf._typing import Floats, Ints

CHAINS = 200
PART = 200
"""Nodes of the parts of larger graphs."""


def draws(
    log_ratio: Callable[[Floats], Floats], mean: Floats, S: Floats, steps: int, rng: np.random.Generator
) -> Iterator[Floats]:
    """Yield states (CHAINS, m) of chains whose density is N(mean, S) times exp(log_ratio)."""
    values, vectors = np.linalg.eigh(S)
    root = vectors * np.sqrt(np.maximum(values, 0.0))  # `S` is semidefinite where nodes have no part of their own
    v = rng.standard_normal((CHAINS, mean.size)) @ root.T
    current = log_ratio(mean + v)
    for _ in range(steps):
        other, level = rng.standard_normal(v.shape) @ root.T, current + np.log(rng.random(CHAINS))
        angle, before, left = rng.uniform(0.0, 2.0 * np.pi, CHAINS), v.copy(), np.arange(CHAINS)
        low, high = angle - 2.0 * np.pi, angle.copy()
        while left.size:
            turn = angle[left, None]
            proposed = before[left] * np.cos(turn) + other[left] * np.sin(turn)
            found = log_ratio(mean + proposed)
            taken = found > level[left]
            v[left[taken]], current[left[taken]] = proposed[taken], found[taken]
            left = left[~taken]
            low[left] = np.where(angle[left] < 0, angle[left], low[left])
            high[left] = np.where(angle[left] < 0, high[left], angle[left])
            angle[left] = rng.uniform(low[left], high[left])
        yield mean + v


def tasks() -> Iterator[tuple[str, Counts]]:
    """Yield the likelihood and the data of every task."""
    likelihoods = {"germany_oral_cancer": "negative-binomial", "glasgow_respiratory_2011": "poisson"}
    for task in count_tasks([2011]):
        yield likelihoods[task.name], task if task.graph.n_nodes < 2 * PART else _part(task)
    data = datasets.load("twitch-ptbr")
    X = datasets.paper(data).drop(columns="days").to_numpy()
    mature = data.frame["mature"].to_numpy(dtype=np.float64)
    yield "bernoulli", _part(Counts("Twitch PTBR, mature", data.graph, X, mature, np.ones(mature.size)))


def _part(task: Counts) -> Counts:
    places = np.column_stack([np.arange(task.y.size)])
    part = connected_part(Task(task.name, task.graph, task.X, task.y, "", places.astype(np.float64)), PART)
    assert part.places is not None
    return replace(task, graph=part.graph, X=part.X, y=part.y, exposure=task.exposure[part.places[:, 0].astype(int)])


def run(samples: int = 2_000_000, *, quick: bool = False) -> list[Row]:
    """Return a row for every task."""
    return [_row(name, task, 20_000 if quick else samples) for name, task in tasks()]


def _row(name: str, task: Counts, samples: int) -> Row:
    rng, n = np.random.default_rng(0), task.y.size
    labelled = np.sort(rng.permutation(n)[: n // 2])
    labels = Responses.of(LIKELIHOODS[name], labelled, task.y[labelled], task.exposure[labelled])
    terms = tuple(term for term in TERMS if term not in ("learned", "time"))
    options = FieldOptions(terms, representation="dense", members=1)
    start = time.perf_counter()
    [fit] = FieldOutcome.fit_responses(task.graph, task.X, [labels], task.exposure, options=options)
    fitted = time.perf_counter()
    found = fit.posterior.values(np.arange(n))
    mean, std, error = _exact(fit, labels, labelled, samples, rng)
    return {
        "task": task.name,
        "likelihood": name,
        "nodes": n,
        "labels": labelled.size,
        "means differ": round(float(np.max(np.abs(found.means[0] - mean) / std)), 4),
        "least ratio": round(float(np.min(np.sqrt(found.variances[0]) / std)), 4),
        "greatest ratio": round(float(np.max(np.sqrt(found.variances[0]) / std)), 4),
        "sampler's error": round(float(np.max(error / std)), 4),
        "draws": samples,
        "fit s": round(fitted - start, 2),
        "sampler s": round(time.perf_counter() - fitted, 1),
    }


def _exact(
    fit: FieldOutcome, labels: Responses, labelled: Ints, samples: int, rng: np.random.Generator
) -> tuple[Floats, Floats, Floats]:
    """Return means and standard deviations of latent values at all nodes, and standard errors of the means."""
    h, member, n = fit.posterior.h, fit.posterior.members[0], fit.y.size
    field = fit.fitted.field.observed(Observations.of(np.arange(n), np.zeros(n)))
    assert isinstance(field, DenseField)
    assert isinstance(member, DensePosterior)
    given = member.field.normal
    K = field.latent(term.among(field, h) for term in field.terms) + h[NOISE] * np.eye(n)
    among = K[np.ix_(labelled, labelled)]
    precision = np.linalg.inv(among + np.diag(given.error))
    to_others = K[:, labelled] @ np.linalg.pinv(among, hermitian=True)

    def log_ratio(v: Floats) -> Floats:
        exact = labels.likelihood.expand(labels.origin + labels.unit * v, labels.y, labels.size, h).log_density
        return np.asarray((exact + 0.5 * (given.z - v) ** 2 / given.error).sum(axis=1))

    mean, S, steps = among @ precision @ given.z, among - among @ precision @ among, samples // CHAINS
    sums, squares = np.zeros((CHAINS, n)), np.zeros(n)
    for step, v in enumerate(draws(log_ratio, mean, S, steps + steps // 10, rng)):
        if step >= steps // 10:
            about = (v - mean) @ to_others.T
            sums += about
            squares += (about**2).sum(axis=0)
    shift = sums.mean(axis=0) / steps
    unexplained = np.diag(K) - np.einsum("ij,ij->i", to_others, K[:, labelled])
    variance = squares / (steps * CHAINS) - shift**2 + np.maximum(unexplained, 0.0)
    return to_others @ mean + shift, np.sqrt(variance), (sums / steps).std(axis=0) / np.sqrt(CHAINS)


def main() -> None:
    """Print all tasks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=2_000_000)
    show("laplace", __doc__, run(parser.parse_args().samples))


if __name__ == "__main__":
    main()
