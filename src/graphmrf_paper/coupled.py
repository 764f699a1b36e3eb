r"""Beyond the paper: attributes that act along edges, the generative story of GraphSAGE's concatenation.

With the precision :math:`H \otimes I + C \otimes N` and a full `C` in place of `diag(h)`,

.. math:: E[y \mid X] = (I + \omega N)^{-1} (X b + N X g),

linear in a node's own features and in those averaged over neighbours, each with its own coefficients, then smoothed.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.metrics import r2_score

from graphmrf._typing import Bools, Floats
from graphmrf.estimators import LinearGraphConvolution, LinearRegression, ResidualPropagation
from graphmrf.graph import Graph
from graphmrf.model import GaussianMRF
from graphmrf_paper.attributes import REAL_TASKS, load_attributes, load_raw, load_task, title_of
from graphmrf_paper.findings import Chart, Figure, Findings, Goal, PaperTable, Series, grid
from graphmrf_paper.runs import TRAINING, Experiment, Options, Result, Results, Run, RunSettings, average
from graphmrf_paper.splits import authors_split

_GRAPH = "synthetic-paper-h1"
_COUPLINGS = (-0.9, -0.6, -0.3, 0.0, 0.3, 0.6, 0.9)  # g / omega: the effect where neighbours differ most
_OMEGA, _OWN = 10.0, 0.5  # smoothness of both attributes; b, the effect where neighbours do not differ
_BOTH = ", X and NX"
_METHODS: dict[str, tuple[bool, Callable[[], Any]]] = {
    "LR": (False, LinearRegression),
    "LGC": (False, LinearGraphConvolution),
    "GraphSAGE, linear": (True, LinearRegression),
    f"LGC{_BOTH}": (True, LinearGraphConvolution),
    "LGC/RP": (False, lambda: ResidualPropagation(LinearGraphConvolution())),
    f"LGC/RP{_BOTH}": (True, lambda: ResidualPropagation(LinearGraphConvolution())),
}
_FITS = ("diag(h)", "coupled")
_TASKS = REAL_TASKS[:-1]  # without Twitch, whose features are components
_DATA = tuple(dict.fromkeys(data for data, _ in _TASKS))


def couple_real(data_dir: str | None, o: Options) -> Result:
    """R2 of regressions on own features, and on own and neighbours' features."""
    graph, X, y = load_task(data_dir, o["data"], o["outcome"])
    return _scores(graph, X.to_numpy(), y, authors_split(graph.n_nodes, TRAINING, o["seed"]))


def couple_fits(data_dir: str | None, o: Options) -> Result:
    """Log-likelihood and AIC of the paper's field and of the coupled one, fitted to all attributes."""
    graph, frame = load_attributes(data_dir, o["data"])
    fits = {name: GaussianMRF.fit(graph, frame, center=False, coupled=name == _FITS[1]) for name in _FITS}
    found = {name: fit.diagnostics for name, fit in fits.items()}
    return {name: {"value": each.log_likelihood, "AIC": each.aic} for name, each in found.items() if each is not None}


def couple_drawn(data_dir: str | None, o: Options) -> Result:
    """The same on a sample of a field with two attributes that depend on each other along the edges."""
    graph = load_raw(data_dir, o["data"]).graph
    A = coupled_field(o["coupling"]).sample(graph, 1, random_state=o["seed"])[0]
    return _scores(graph, A[:, :1], A[:, 1], authors_split(graph.n_nodes, TRAINING, o["seed"]))


def coupled_field(coupling: float) -> GaussianMRF:
    """Return the field of a feature and an outcome, with a coupling between -1 and 1 along the edges.

    Examples
    --------
    >>> coupled_field(0.6).edge_beta(1)
    array([6.])
    """
    H, C = (np.array([[1.0, -off], [-off, 1.0]]) for off in (_OWN, coupling))
    return GaussianMRF(H, C=_OMEGA * C)


def _scores(graph: Graph, X: Floats, y: Floats, labelled: Bools) -> dict[str, dict[str, float]]:
    hidden, both = np.where(labelled, y, np.nan), np.hstack([X, graph.N @ X])
    found = {}
    for name, (neighbours, make) in _METHODS.items():
        predicted = make().fit(graph, both if neighbours else X, hidden).predict()
        found[name] = {"value": float(r2_score(y[~labelled], predicted[~labelled]))}
    return found


def _real_runs(task: tuple[str, str], settings: RunSettings) -> list[Run]:
    return settings.over_splits(couple_real, {"data": task[0], "outcome": task[1]}, seconds=0.5)


def _drawn_runs(coupling: float, settings: RunSettings) -> list[Run]:
    return settings.over_splits(couple_drawn, {"data": _GRAPH, "coupling": coupling}, seconds=0.2)


def _fit_run(data: str) -> Run:
    return Run.of(couple_fits, {"data": data}, seconds=4.0)


def _plan(settings: RunSettings) -> list[Run]:
    drawn = [run for coupling in _COUPLINGS for run in _drawn_runs(coupling, settings)]
    real = [run for task in _TASKS for run in _real_runs(task, settings)]
    return [*map(_fit_run, _DATA), *drawn, *real]


def _collect(results: Results, settings: RunSettings) -> Findings:
    drawn = _table("coupled-drawn", "coupling", results, {f"{c:g}": _drawn_runs(c, settings) for c in _COUPLINGS})
    real = _table(
        "coupled-real",
        "data, outcome",
        results,
        {f"{title_of(d)}, {y}": _real_runs((d, y), settings) for d, y in _TASKS},
    )
    filters = Chart("lines", "Filters of the feature", "eigenvalue λ of N", "(b + λg) / (1 + ωλ)", _filters())
    curves = tuple(
        Series(name, _COUPLINGS, [cell.ours or 0.0 for cell in drawn.cells([name])])
        for name in drawn.columns
        if _known(drawn)
    )
    accuracy = Chart("lines", "Accuracy on samples", "coupling along the edges", "R²", curves)
    caption = (
        "A feature that acts along the edges: the filter between feature and outcome, and the accuracy of regressions "
        "on own features and on own and neighbours' features."
    )
    figure = Figure("coupled-field", caption, (filters, accuracy), columns=2)
    return Findings(
        (drawn, real, _likelihoods(results)), (figure,), tuple(_gain(table) for table in (drawn, real) if _known(table))
    )


def _table(name: str, head: str, results: Results, rows: dict[str, list[Run]]) -> PaperTable:
    what = "samples of coupled fields" if name == "coupled-drawn" else "real data"
    caption = f"Own and neighbours' features on {what}: mean R², 30 % of the nodes labelled."
    lines = grid({(label,): runs for label, runs in rows.items()}, _METHODS, partial(average, results))
    return PaperTable(name, caption, (head,), tuple(_METHODS), lines, ranked=True)


def _likelihoods(results: Results) -> PaperTable:
    columns = [(name, quantity) for name in _FITS for quantity in ("value", "AIC")]
    heads = tuple(f"{name}, {'log-likelihood' if quantity == 'value' else quantity}" for name, quantity in columns)
    runs = {(title_of(data),): [_fit_run(data)] for data in _DATA}
    rows = grid(runs, columns, lambda row, column: average(results, row, column[0], quantity=column[1]))
    return PaperTable("coupled-likelihood", "Both fields fitted to all attributes.", ("data",), heads, rows, decimals=0)


def _filters() -> tuple[Series, ...]:
    frequency, last = np.linspace(0, 2, 201), len(_COUPLINGS) - 1
    series = []
    for k, coupling in enumerate(_COUPLINGS):
        mrf = coupled_field(coupling)
        response = (mrf.beta(1) + frequency * mrf.edge_beta(1)) / (1.0 + _OMEGA * frequency)
        series.append(Series(f"{coupling:g}", frequency.tolist(), response.tolist(), colour=k / last))
    return tuple(series)


def _known(table: PaperTable) -> bool:
    return all(cell.ours is not None for cell in table.cells())


def _gain(table: PaperTable) -> Goal:
    """Return what neighbours' features add, on average over the rows."""
    means = {
        name: float(np.mean([cell.ours for cell in table.cells([name]) if cell.ours is not None]))
        for name in table.columns
    }
    parts = [f"{name} {means[name]:.3f} → {means[name + _BOTH]:.3f}" for name in ("LGC", "LGC/RP")]
    where = "samples" if table.name == "coupled-drawn" else "real data"
    return Goal(f"mean R² without and with neighbours' features, {where}", "; ".join(parts))


COUPLED = Experiment(
    "coupled-field",
    "Attributes that act along the edges",
    "Beyond the paper",
    (_GRAPH, *_DATA),
    _plan,
    _collect,
    (
        "With a full, symmetric C in place of diag(h), the outcome is expected at (I + ωN)⁻¹(Xb + NXg): own and "
        "neighbours' features with coefficients of their own, as GraphSAGE concatenates them, then smoothed.",
        "'GraphSAGE, linear' is least squares on X and NX without the smoothing. Coupling 0 is the paper's model.",
    ),
)
