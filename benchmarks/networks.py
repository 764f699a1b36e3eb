"""SGC, GCN and their RP variants on the paper's 3 synthetic and 14 real rows: mean R2 of 10 splits beside the paper.

SGC and GCN are the paper's: gradient steps, a tenth of the labels at a time, at most 30 neighbours. "exact" is
`SimpleGraphConvolution`: all neighbours, symmetric normalisation, least squares. All networks of a row are trained at
once, on a GPU if there is one; set GRAPHMRF_BENCHMARKS to a folder to keep and resume them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from sklearn.metrics import r2_score

from benchmarks import questions
from benchmarks.company import Question, answer
from graphmrf import ResidualPropagation, SimpleGraphConvolution
from graphmrf.linalg import propagate
from graphmrf.networks.options import PAPER_TRAINING, pick_device
from graphmrf.selection import search_residual

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.show import Row
    from graphmrf._typing import Floats

METHODS = ("SGC", "GCN", "SGC/RP", "GCN/RP")

SYNTHETIC = {
    1: (0.37, 0.34, 0.40, 0.37),
    10: (0.45, 0.45, 0.56, 0.54),
    100: (0.38, 0.45, 0.63, 0.62),
}
PAPER = {
    ("U.S.", "income"): (0.51, 0.53, 0.55, 0.55),
    ("U.S.", "education"): (0.43, 0.47, 0.46, 0.48),
    ("U.S.", "unemployment"): (0.32, 0.45, 0.52, 0.53),
    ("U.S.", "election"): (0.43, 0.52, 0.61, 0.61),
    ("CDC", "airT"): (0.86, 0.95, 0.97, 0.97),
    ("CDC", "landT"): (0.79, 0.91, 0.93, 0.93),
    ("CDC", "precipitation"): (0.61, 0.79, 0.90, 0.90),
    ("CDC", "sunlight"): (0.80, 0.90, 0.97, 0.97),
    ("CDC", "pm2.5"): (0.23, 0.78, 0.96, 0.97),
    ("London", "income"): (0.64, 0.63, 0.65, 0.64),
    ("London", "edu"): (0.74, 0.79, 0.77, 0.79),
    ("London", "age"): (0.66, 0.70, 0.72, 0.72),
    ("London", "election"): (0.74, 0.76, 0.78, 0.78),
    ("Twitch", "days"): (0.22, 0.26, 0.23, 0.26),
}
CLOSE = 0.03


def run(*, quick: bool) -> list[Row]:
    """Train the networks of every row, propagate their residuals, and compare."""
    problem = questions.missing()
    if problem:
        return [{"skipped": problem}]
    n_splits, rows = 2 if quick else 10, []
    for h0 in questions.H0[:1] if quick else questions.H0:
        asked = list(questions.synthetic("WattsStrogatzOriginal", h0, n_splits))[: 1 if quick else None]
        rows.append(_row("synthetic", f"h0 = {h0}", asked, SYNTHETIC[h0]))
    for data, outcome, question in questions.real(n_splits, quick=quick):
        rows.append(_row(data, outcome, [question], PAPER[data.removesuffix(", log"), outcome]))
    return [*rows, *_summary(rows)]


def _row(data: str, outcome: str, asked: Sequence[Question], paper: Sequence[float]) -> Row:
    parts = [_scores(question) for question in asked]
    scores = np.concatenate([scores for scores, _ in parts]).mean(axis=0)
    layers = np.concatenate([layers for _, layers in parts]).mean(axis=0)
    compared = {
        name: {"R2": float(score), "paper": published}
        for name, score, published in zip(METHODS, scores, paper, strict=False)
    }
    exact = {"SGC exact": float(scores[4]), "SGC exact/RP": float(scores[5])}
    chosen = {"K of SGC, GCN, exact": " ".join(f"{K:.1f}" for K in layers)}
    return {"data": data, "outcome": outcome, **compared, **exact, **chosen}


def _scores(question: Question) -> tuple[Floats, Floats]:
    """Return R2 (n_splits, 6) at the hidden nodes, and the layers (n_splits, 3) of SGC, GCN and the exact SGC."""
    device, columns, layers = pick_device("auto"), [], []
    for relu in (False, True):
        found = answer(question, PAPER_TRAINING, relu=relu, device=device)
        both = [_with_residuals(question, s, *pair) for s, pair in enumerate(zip(found.fits, found.final, strict=True))]
        columns.append(both)
        layers.append(found.n_layers)
    exact = [_exact(question, split) for split in range(len(question.labelled))]
    sgc, gcn, ours = np.array(columns[0]), np.array(columns[1]), np.array(exact)
    table = np.column_stack([sgc[:, 0], gcn[:, 0], sgc[:, 1], gcn[:, 1], ours[:, 0], ours[:, 1]])
    return table, np.column_stack([*layers, ours[:, 2]])


def _with_residuals(question: Question, split: int, fits: Floats, final: Floats) -> tuple[float, float]:
    """Return R2 of a network and of residual propagation on top, its level chosen by the network's own folds."""
    labelled, folds = question.labelled[split], question.folds[split]
    y = np.where(labelled, question.y, np.nan)
    alpha = search_residual(question.graph, y, fits.astype(np.float64), folds).alpha
    residuals = np.where(labelled, question.y - final, 0.0)[:, None]
    propagated = final + propagate(question.graph, residuals, labelled, alpha)[:, 0]
    truth = question.y[~labelled]
    return r2_score(truth, final[~labelled]), r2_score(truth, propagated[~labelled])


def _exact(question: Question, split: int) -> tuple[float, float, int]:
    hidden = ~question.labelled[split]
    y = np.where(hidden, np.nan, question.y)
    model = ResidualPropagation(SimpleGraphConvolution(random_state=split), random_state=split).fit(
        question.graph, question.X, y
    )
    alone, both = model.base_.predict(), model.predict()
    truth = question.y[hidden]
    return r2_score(truth, alone[hidden]), r2_score(truth, both[hidden]), model.base_.n_layers_


def _summary(rows: Sequence[Row]) -> list[Row]:
    """Return how far from the paper; London counts as it was printed, with the logarithm."""
    counted = [row for row in rows if row["data"] != "London"]
    gaps = {name: np.array([row[name]["R2"] - row[name]["paper"] for row in counted]) for name in METHODS}
    return [
        {"data": "all", "outcome": "mean difference", **{name: float(gap.mean()) for name, gap in gaps.items()}},
        {"data": "all", "outcome": "largest", **{name: float(np.abs(gap).max()) for name, gap in gaps.items()}},
        {
            "data": "all",
            "outcome": f"beyond {CLOSE}",
            **{name: f"{int((np.abs(gap) > CLOSE).sum())} of {gap.size}" for name, gap in gaps.items()},
        },
    ]
