"""Figures 2 and 3: frequency responses of the filters, and recovery of omega from samples of the model."""

from collections.abc import Callable, Iterator, Sequence
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
    percent,
    share_off,
)
from graphmrf_paper.methods import TABLE_METHODS
from graphmrf_paper.runs import Entry, Experiment, Options, Outline, Plan, Result, Results, Run, RunSettings, Scalar
from graphmrf_paper.splits import hide

_DECADE = 4  # steps of the grid
_INSET = 2 * _DECADE  # the true omega of the inset: 10
OMEGA_GRID = tuple(float(10.0 ** (-1 + step / 4)) for step in range(13))
"""The grid of the paper: 0.1 to 100, four to a decade."""
_CORRELATED = ((1.0, -0.99), (-0.99, 1.0))  # the paper's H: feature and outcome almost determine each other
_GRAPH = "synthetic-paper-h1"  # the paper's own graph; its samples are drawn anew
_RESPONSES = "Frequency responses of LGC and SGC on a 6-regular graph"
_DEGREE, _DEEPEST = 6, 20  # as in the paper's figure


def _responses(*_: PaperTable) -> Iterator[Figure]:
    r"""Yield the figure of frequency responses on a regular graph: the factor of an eigenvector of N.

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
    yield Figure("frequency-response", caption, panels, columns=2)


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
    lambda _: Outline.of(figures=_responses),
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
    y, X = A[:, -1], A[:, :-1] if o["features"] else None
    labelled, hidden = hide(y, o["seed"])

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
    name, features = f"omega-{method.lower().replace('/', '-')}", int(method != "LP")
    steps, ticks = range(len(OMEGA_GRID)), tuple(f"{omega:.3g}" for omega in OMEGA_GRID)
    what = f"{method}: mean R² with the true ω, with a tenth of it (under-smoothing), with ten times (over-smoothing)."
    form = PaperTable(name, what, ("true ω",), ("true", "a tenth", "ten times"))

    def outline(settings: RunSettings) -> Outline:
        def entry(step: int, guess: int) -> Entry:
            options: dict[str, Scalar] = {"data": _GRAPH, "features": features, "step": step}
            runs = [
                Run.of(recover_omega, {**options, "seed": seed}, seconds=0.1 if features else 0.05)
                for seed in settings.repeats
            ]
            return Entry(runs, (method, guess)) if guess in steps else Entry(note="")

        def conclude(tables: Sequence[PaperTable], results: Results) -> Findings:
            R2 = _numbers(Plan.of(form, {(ticks[step],): step for step in steps}, steps, entry).fill(results)).T
            if np.isnan(R2).any():
                return Findings(tuple(tables))
            goals = (_recovered(method, R2.argmax(axis=0)), *_losses(method, tables[0]))
            return Findings(tuple(tables), (_heat(name, method, R2, len(settings.repeats)),), goals)

        shown = Plan.of(
            form,
            {(ticks[step],): step for step in steps},
            (0, -_DECADE, _DECADE),
            lambda step, off: entry(step, step + off),
        )
        return Outline([shown], conclude)

    remarks = ("On the paper's own graph, with samples drawn here; the paper prints no numbers.",)
    return Experiment(name, f"{method} recovers ω", place, (_GRAPH,), outline, remarks)


def _numbers(table: PaperTable) -> Floats:
    """Return our numbers, NaN where there is none."""
    return np.array([[cell.ours for cell in row.cells] for row in table.rows], dtype=np.float64)


def _heat(name: str, method: str, R2: Floats, n_samples: int) -> Figure:
    """Return R2 for every omega of the predictor (rows) and of the model (columns)."""
    ticks = tuple(f"{omega:.3g}" if step % 4 == 0 else "" for step, omega in enumerate(OMEGA_GRID))
    marks = tuple((step, int(best)) for step, best in enumerate(R2.argmax(axis=0)))
    inset = _INSET if method == "LP" else None
    panel = Heat(f"{method}: R²", "ω of the model", f"ω of {method}", R2, ticks, ticks, marks, inset=inset)
    caption = f"{method} recovers ω: mean R² of {n_samples} samples; a dot marks the best ω of each column."
    if inset is not None:
        caption += f" Inset: R² against the ω of {method} where the true one is {OMEGA_GRID[inset]:.3g} (dashed)."
    return Figure(name, caption, (panel,))


def _losses(method: str, table: PaperTable) -> list[Goal]:
    """Return how much R2 under-smoothing and over-smoothing cost, on average over the rows."""
    R2 = _numbers(table)
    lost = R2[:, :1] - R2[:, 1:]
    if np.isnan(lost).all(axis=0).any():
        return []
    under, over = (number(float(each)) for each in np.nanmean(lost, axis=0))
    return [
        Goal(f"R² of {method} lost with a tenth of the {table.columns[0]} ω, with ten times", f"{under} and {over}")
    ]


def _recovered(method: str, best: Floats) -> Goal:
    true, found = np.log10(OMEGA_GRID), np.log10(OMEGA_GRID)[best]
    off = share_off(np.column_stack([found, true]))
    exact = int(np.count_nonzero(found == true))
    measured = f"off by {percent(off, 1)} ({exact} of {len(best)} are the true one)"
    what = f"log₁₀ of the best ω of {method}, compared with the true ω"
    return Goal(what, measured, f"≤ {percent(TOLERANCE, 0)}", off <= TOLERANCE)


_SMOOTHERS: dict[str, Callable[..., Any]] = {
    "LP": LabelPropagation,
    "LGC": lambda **level: LinearGraphConvolution(**level, shrinkage=0.0),
    "LGC/RP": lambda **level: ResidualPropagation(LinearGraphConvolution(**level, shrinkage=0.0), **level),
}


def misspecify(data_dir: str | None, o: Options) -> Result:
    """R2 of every method with the omega it chooses by cross-validation, with a tenth of it and with ten times."""
    graph, X, y = load_task(data_dir, o["data"], o["outcome"])
    labelled, hidden = hide(y, o["seed"])

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


def _real_outline(settings: RunSettings) -> Outline:
    def entry(line: tuple[tuple[str, str], str], factor: float) -> Entry:
        (data, outcome), name = line
        runs = settings.over_splits(misspecify, {"data": data, "outcome": outcome}, seconds=1.0)
        return Entry(runs, (name, str(factor)))

    lines = {(title_of(task[0]), task[1], name): (task, name) for task in REAL_TASKS for name in _SMOOTHERS}
    caption = "Mean R² with the ω chosen by cross-validation, with a tenth of it, and with ten times; 30 % labelled."
    heads, columns = ("data", "outcome", "method"), ("chosen", "a tenth", "ten times")
    return Outline.of(
        Plan.of(PaperTable("smoothing-real", caption, heads, columns), lines, _FACTORS, entry),
        goals=lambda table: [goal for name in _SMOOTHERS for goal in _losses(name, table.having(name))],
    )


SMOOTHING_REAL = Experiment(
    "smoothing-real",
    "Smoothing ten times too weak or too strong, real data",
    "Beyond the paper",
    tuple(dict.fromkeys(data for data, _ in REAL_TASKS)),
    _real_outline,
    ("Not in the paper, which shows over-smoothing and under-smoothing on samples of its model.",),
)
OMEGA_LP = _recovery("LP", "Figure 3 (a)")
OMEGA_LGC = _recovery("LGC", "Figure 3 (b)")
OMEGA_LGC_RP = _recovery("LGC/RP", "Figure 3 (c)")
