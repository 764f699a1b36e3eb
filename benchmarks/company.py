"""Networks for all splits and folds of a question trained at once; on a GPU that costs little more than one of them."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from graphmrf.networks.options import DEPTHS, EPOCHS, LayerShape, Scaling
from graphmrf.networks.training import Inputs, Problem, outputs, train

if TYPE_CHECKING:
    from graphmrf._typing import Bools, Floats, Ints
    from graphmrf.graph import Graph
    from graphmrf.networks.options import Training
    from graphmrf.networks.training import Networks


@dataclass(frozen=True)
class Question:
    """Outcomes (n,) of a graph, hidden in several ways.

    Attributes
    ----------
    name : str
        Under which answers are kept.
    graph, X, y : Graph and arrays of shapes (n, p), (n,)
        The data, all outcomes.
    labelled : bool array of shape (n_splits, n)
        The nodes whose outcome a split may use, the same number in each.
    folds : integer array of shape (n_splits, n_labelled)
        Their folds.
    other : pair of Graph and array of shape (n_other, p), optional
        Another graph to predict.
    """

    name: str
    graph: Graph
    X: Floats
    y: Floats
    labelled: Bools
    folds: Ints
    other: tuple[Graph, Floats] | None = None

    @property
    def masks(self) -> Bools:
        """Training nodes (n_splits, n_folds + 1, n): without each fold, then all."""
        n_folds = int(self.folds.max()) + 1
        masks = np.repeat(self.labelled[:, None], n_folds + 1, axis=1)
        for mask, folds in zip(masks, self.folds, strict=True):
            nodes = np.flatnonzero(mask[-1])
            for fold in range(n_folds):
                mask[fold, nodes[folds == fold]] = False
        return masks


@dataclass(frozen=True)
class Answer:
    """For every split: what was chosen, predictions at labelled nodes without each fold, and at all nodes."""

    n_layers: Ints
    epochs: Ints
    fits: Floats
    final: Floats
    elsewhere: Floats


def answer(question: Question, training: Training, *, relu: bool, bias: bool = True, device: str) -> Answer:
    """Train for every number of layers, and choose layers and steps for every split by its folds."""
    folder = os.environ.get("GRAPHMRF_BENCHMARKS")
    key = f"{question.name}-{'gcn' if relu else 'sgc'}-{training.neighbours or 'all'}{'' if bias else '-unbiased'}"
    file = Path(folder) / f"{key.replace('/', '-').replace(' ', '-')}.npz" if folder else None
    if file is not None and file.exists():
        kept = Answer(**np.load(file))
        if len(kept.final) >= len(question.labelled):  # splits are numbered, so the first ones are always the same
            return Answer(**{name: part[: len(question.labelled)] for name, part in asdict(kept).items()})
    found = _choose(question, _Run(question, training, device), relu=relu, bias=bias)
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(file, **asdict(found))
    return found


class _Run:
    """A question on a device."""

    def __init__(self, question: Question, training: Training, device: str) -> None:
        self.question, self.masks = question, question.masks
        ys = [question.y[mask] for mask in question.labelled]
        self.scalings = [
            Scaling.of(question.X, y, centred=True) if training.standardise else Scaling.none(question.X.shape[1])
            for y in ys
        ]
        X = self.scalings[0].features
        self.inputs = Inputs.of(question.graph, X(question.X), training, device)
        other = question.other
        self.other = None if other is None else Inputs.of(other[0], X(other[1]), training, device)
        n_splits, n_models, n = self.masks.shape
        y = np.repeat([scaling.outcome(question.y) for scaling in self.scalings], n_models, axis=0)
        seeds = np.repeat(np.arange(n_splits), n_models).tolist()
        self.problem = Problem(self.inputs, y, self.masks.reshape(-1, n), training, seeds)

    def snapshot(self, networks: Networks) -> list[tuple[Floats, Floats, Floats]]:
        """Return for every split the predictions (n_labelled, n_folds), (n,) and (n_other,)."""
        n_splits, n_models, _ = self.masks.shape
        here = outputs(networks, self.inputs, seed=0).reshape(n_splits, n_models, -1)
        there: Floats = np.zeros((n_splits, n_models, 0))
        if self.other is not None:
            there = outputs(networks, self.other, seed=0).reshape(n_splits, n_models, -1)
        parts = zip(self.question.labelled, here, there, self.scalings, strict=True)
        return [
            (s.prediction(h[:-1, labelled]).T, s.prediction(h[-1]), s.prediction(t[-1])) for labelled, h, t, s in parts
        ]


def _choose(question: Question, run: _Run, *, relu: bool, bias: bool) -> Answer:
    n_splits = len(question.labelled)
    best, chosen = np.full(n_splits, np.inf), [(0, 0, *[np.empty(0)] * 3)] * n_splits
    shapes = [LayerShape(n_layers, 32, relu=relu, bias=bias) for n_layers in DEPTHS]
    for epochs, stacks in zip(EPOCHS, train(run.problem, shapes, EPOCHS), strict=True):
        for networks in stacks:
            for split, (fits, final, elsewhere) in enumerate(run.snapshot(networks)):
                folds, y = question.folds[split], question.y[question.labelled[split]]
                error = float(np.sum((fits[np.arange(folds.size), folds] - y) ** 2))
                if error < best[split]:
                    best[split], chosen[split] = error, (networks.shape.n_layers, epochs, fits, final, elsewhere)
    n, e, fits, final, elsewhere = (np.stack(part) for part in zip(*chosen, strict=True))
    return Answer(n, e, *(part.astype(np.float32) for part in (fits, final, elsewhere)))
