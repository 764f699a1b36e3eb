"""Figures 2 and 3: frequency responses of the filters, and omega recovered from samples of the model."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from sklearn.metrics import r2_score

from graphmrf._typing import Floats
from graphmrf.estimators import LabelPropagation, LinearGraphConvolution, ResidualPropagation
from graphmrf.model import GaussianMRF
from graphmrf.text import number
from graphmrf_paper.attributes import REAL_TASKS, load_raw, load_task, title_of
from graphmrf_paper.findings import (
    TOLERANCE,
    Chart,
    Figure,
    Findings,
    Goal,
    Heat,
    PaperTable,
    Series,
    TableCell,
    grid,
    share_off,
)
from graphmrf_paper.methods import TABLE_METHODS
from graphmrf_paper.runs import TRAINING, Experiment, Options, Result, Results, Run, RunSettings, Scalar, average
from graphmrf_paper.splits import authors_split

_DECADE = 4  # steps of the grid
_INSET = 2 * _DECADE  # the true omega of the inset: 10
OMEGA_GRID = tuple(float(10.0 ** (-1 + step / 4)) for step in range(13))
"""The grid of the paper: 0.1 to 100, four to a decade."""
_CORRELATED = ((1.0, -0.99), (-0.99, 1.0))  # the paper's H: feature and outcome almost determine each other
_GRAPH = "synthetic-paper-h1"  # the paper's own graph; its samples are drawn anew
_RESPONSES = "Frequency responses of LGC and SGC on a 6-regular graph"
_DEGREE, _DEEPEST = 6, 20  # as in the paper's figure


def _responses(results: Results, settings: RunSettings) -> Findings:  # noqa: ARG001 - every experiment collects from both
    r"""Return what smoothing leaves of an eigenvector of N, on a regular graph.

    .. math:: g(\lambda) = 1 / (1 + \omega \lambda) \quad \text{(LGC)}, \qquad
              g(\lambda) = (1 - \tfrac{d}{d + 1} \lambda)^K \quad \text{(SGC)}
    """
    frequency, d = np.linspace(0, 2, 201), _DEGREE
    lgc = [(f"ω = {omega:.3g}", 1 / (1 + omega * frequency)) for omega in 10.0 ** np.linspace(-2, 3, 11)]
    sgc = [(f"K = {K}", (1 - d / (d + 1) * frequency) ** K) for K in range(_DEEPEST + 1)]
    panels = tuple(
        Chart("lines", title, "eigenvalue λ of N", "response g(λ)", _gradient(frequency, curves))
        for title, curves in (("LGC", lgc), ("SGC", sgc))
    )
    caption = f"{_RESPONSES}: LGC with ω from 0.01 (blue) to 1000 (red), SGC with K from 0 (blue) to 20 (red)."
    return Findings(figures=(Figure("frequency-response", caption, panels, columns=2),))


def _gradient(x: Floats, curves: Sequence[tuple[str, Floats]]) -> tuple[Series, ...]:
    last = max(len(curves) - 1, 1)
    return tuple(
        Series(label, x.tolist(), y.tolist(), colour=position / last) for position, (label, y) in enumerate(curves)
    )


FREQUENCY_RESPONSE = Experiment(
    "frequency-response",
    _RESPONSES,
    "Figure 2",
    (),
    lambda _: (),
    _responses,
    ("A formula, so there is nothing to differ: SGC is no low-pass filter beyond λ = 7/6.",),
)


def recover_omega(data_dir: str | None, o: Options) -> Result:
    """R2 of predictors with every omega of the grid on one sample drawn with ``OMEGA_GRID[step]``.

    Without features only label propagation predicts; with one, linear graph convolution with and without residual
    propagation.
    """
    graph, true = load_raw(data_dir, o["data"]).graph, OMEGA_GRID[o["step"]]
    mrf = GaussianMRF(_CORRELATED, [true, true]) if o["features"] else GaussianMRF([[1.0]], [true])
    A = mrf.sample(graph, 1, random_state=o["seed"])[0]
    labelled = authors_split(graph.n_nodes, TRAINING, o["seed"])
    y, X = A[:, -1], A[:, :-1] if o["features"] else None
    hidden = np.where(labelled, y, np.nan)

    def scores(make: Callable[[float], Any]) -> list[float]:
        predictions = [make(guess).fit(graph, X, hidden).predict() for guess in OMEGA_GRID]
        return [float(r2_score(y[~labelled], prediction[~labelled])) for prediction in predictions]

    if not o["features"]:
        return {"LP": scores(lambda guess: LabelPropagation(omega=guess))}
    return {
        "LGC": scores(lambda guess: LinearGraphConvolution(omega=guess)),
        "LGC/RP": scores(lambda guess: ResidualPropagation(LinearGraphConvolution(omega=guess), omega=guess)),
    }


def _recovery(method: str, place: str) -> Experiment:
    """Accuracy for every pair of the omega that drew the sample and the omega of the predictor."""
    name, title = f"omega-{method.lower().replace('/', '-')}", f"{method} recovers ω"
    remarks = ("On the paper's own graph, with samples drawn here; the paper prints no numbers.",)
    collect = partial(_recovery_collect, name, method)
    return Experiment(name, title, place, (_GRAPH,), partial(_recovery_plan, method), collect, remarks)


def _recovery_plan(method: str, settings: RunSettings) -> list[Run]:
    return [run for step in range(len(OMEGA_GRID)) for run in _recovery_runs(method, step, settings)]


def _recovery_runs(method: str, step: int, settings: RunSettings) -> list[Run]:
    features = int(method != "LP")
    options: dict[str, Scalar] = {"data": _GRAPH, "features": features, "step": step}
    seconds = 0.1 if features else 0.05
    return [Run.of(recover_omega, {**options, "seed": seed}, seconds=seconds) for seed in settings.repeats]


def _recovery_collect(name: str, method: str, results: Results, settings: RunSettings) -> Findings:
    """Return the heat map, and how far its maxima are from the diagonal."""
    columns = [_mean_scores(method, step, results, settings) for step in range(len(OMEGA_GRID))]
    if any(column is None for column in columns):
        return Findings()
    R2 = np.array(columns).T
    best = R2.argmax(axis=0)
    ticks = tuple(f"{omega:.3g}" if step % 4 == 0 else "" for step, omega in enumerate(OMEGA_GRID))
    marks = tuple((step, int(found)) for step, found in enumerate(best))
    inset = _INSET if method == "LP" else None
    panel = Heat(f"{method}: R²", "ω of the model", f"ω of {method}", R2, ticks, ticks, marks, inset=inset)
    samples = f"mean R² of {len(settings.repeats)} samples"
    caption = f"{method} recovers ω: {samples}; a dot marks the best ω of each column."
    if inset is not None:
        caption += f" Inset: R² against the ω of {method} where the true one is {OMEGA_GRID[inset]:.3g} (dashed)."
    table = _misspecified(name, method, R2)
    return Findings((table,), (Figure(name, caption, (panel,)),), (_recovered(method, best), *_losses(method, table)))


def _misspecified(name: str, method: str, R2: Floats) -> PaperTable:
    """Return R2 at the true omega, and with one ten times too small or too large, where that is on the grid."""

    def cell(step: int, off: int) -> TableCell:
        guess = step + off
        return TableCell(float(R2[guess, step]) if 0 <= guess < len(R2) else None)

    rows = grid({(f"{omega:.3g}",): step for step, omega in enumerate(OMEGA_GRID)}, (0, -_DECADE, _DECADE), cell)
    caption = (
        f"{method}: mean R² with the true ω, with a tenth of it (under-smoothing), with ten times (over-smoothing)."
    )
    return PaperTable(name, caption, ("true ω",), ("true", "a tenth", "ten times"), rows)


def _losses(method: str, table: PaperTable) -> list[Goal]:
    """Return how much R2 under-smoothing and over-smoothing cost, on average over the rows."""
    R2 = np.array([[cell.ours for cell in row.cells] for row in table.rows], dtype=np.float64)
    lost = R2[:, :1] - R2[:, 1:]
    if np.isnan(lost).all(axis=0).any():
        return []
    under, over = (number(float(each)) for each in np.nanmean(lost, axis=0))
    return [
        Goal(f"R² of {method} lost with a tenth of the {table.columns[0]} ω, with ten times", f"{under} and {over}")
    ]


def _mean_scores(method: str, step: int, results: Results, settings: RunSettings) -> Floats | None:
    found = [results[run.key][method] for run in _recovery_runs(method, step, settings) if run.key in results]
    return np.mean(found, axis=0) if found else None


def _recovered(method: str, best: Floats) -> Goal:
    true, found = np.log10(OMEGA_GRID), np.log10(OMEGA_GRID)[best]
    off = share_off(list(zip(found, true, strict=True)))
    exact = int(np.count_nonzero(found == true))
    measured = f"off by {off:.1%} ({exact} of {len(best)} are the true one)".replace("%", " %")
    wanted = f"≤ {TOLERANCE:.0%}".replace("%", " %")
    return Goal(f"log₁₀ of the best ω of {method}, compared with the true ω", measured, wanted, off <= TOLERANCE)


_SMOOTHERS: dict[str, Callable[..., Any]] = {
    "LP": LabelPropagation,
    "LGC": lambda **level: LinearGraphConvolution(**level, shrinkage=0.0),
    "LGC/RP": lambda **level: ResidualPropagation(LinearGraphConvolution(**level, shrinkage=0.0), **level),
}


def misspecify(data_dir: str | None, o: Options) -> Result:
    """R2 of every method with the omega it chooses by cross-validation, with a tenth of it and with ten times."""
    graph, X, y = load_task(data_dir, o["data"], o["outcome"])
    labelled = authors_split(graph.n_nodes, TRAINING, o["seed"])
    hidden = np.where(labelled, y, np.nan)

    def score(make: Callable[..., Any], omega: float) -> float:
        predicted = make(omega=omega).fit(graph, X, hidden).predict()
        return float(r2_score(y[~labelled], predicted[~labelled]))

    found = {}
    for name in _SMOOTHERS:
        alpha = TABLE_METHODS[name].fit(graph, X, hidden, seed=o["seed"], effort="")[name].alpha_
        omega = alpha / (1.0 - alpha)
        found[name] = {str(factor): score(_SMOOTHERS[name], omega * factor) for factor in _FACTORS}
    return found


_FACTORS = (1.0, 0.1, 10.0)


def _real_runs(task: tuple[str, str], settings: RunSettings) -> list[Run]:
    return settings.over_splits(misspecify, {"data": task[0], "outcome": task[1]}, seconds=1.0)


def _real_collect(results: Results, settings: RunSettings) -> Findings:
    columns = ("chosen", "a tenth", "ten times")
    lines = {(title_of(task[0]), task[1], name): (task, name) for task in REAL_TASKS for name in _SMOOTHERS}

    def cell(line: tuple[tuple[str, str], str], factor: float) -> TableCell:
        return average(results, _real_runs(line[0], settings), line[1], quantity=str(factor))

    rows = grid(lines, _FACTORS, cell)
    caption = "Mean R² with the ω chosen by cross-validation, with a tenth of it, and with ten times; 30 % labelled."
    table = PaperTable("smoothing-real", caption, ("data", "outcome", "method"), columns, rows)
    goals = [goal for name in _SMOOTHERS for goal in _losses(name, table.having(name))]
    return Findings((table,), (), tuple(goals))


SMOOTHING_REAL = Experiment(
    "smoothing-real",
    "Smoothing ten times too weak or too strong, real data",
    "Beyond the paper",
    tuple(dict.fromkeys(data for data, _ in REAL_TASKS)),
    lambda settings: [run for task in REAL_TASKS for run in _real_runs(task, settings)],
    _real_collect,
    ("Not in the paper, which shows over-smoothing and under-smoothing on samples of its model.",),
)
OMEGA_LP = _recovery("LP", "Figure 3 (a)")
OMEGA_LGC = _recovery("LGC", "Figure 3 (b)")
OMEGA_LGC_RP = _recovery("LGC/RP", "Figure 3 (c)")
