r"""Beyond the paper: attributes that act along edges, the generative model of GraphSAGE's concatenation.

With the precision :math:`H \otimes I + C \otimes N` and a full `C` in place of `diag(h)`,

.. math:: E[y \mid X] = (I + \omega N)^{-1} (X b + N X g),

linear in a node's own features and in those averaged over neighbours, each with its own coefficients, then smoothed.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.metrics import r2_score

from graphmrf._typing import Floats
from graphmrf.estimators import LinearGraphConvolution, LinearRegression, ResidualPropagation
from graphmrf.graph import Graph
from graphmrf.model import GaussianMRF
from graphmrf_paper.attributes import REAL_TASKS, load_attributes, load_raw, load_task, title_of
from graphmrf_paper.findings import Chart, Figure, Goal, PaperTable, Series
from graphmrf_paper.runs import Entry, Experiment, Options, Outline, Plan, Result, Run, RunSettings, Scalar, Task
from graphmrf_paper.splits import hide

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
    return _scores(graph, X.to_numpy(), y, o["seed"])


def couple_fits(data_dir: str | None, o: Options) -> Result:
    """Log-likelihood and AIC of the paper's field and of the coupled one, fitted to all attributes."""
    graph, frame = load_attributes(data_dir, o["data"])
    fits = {name: GaussianMRF.fit(graph, frame, center=False, coupled=name == _FITS[1]) for name in _FITS}
    found = {name: fit.diagnostics for name, fit in fits.items()}
    return {name: {"value": each.log_likelihood, "AIC": each.aic} for name, each in found.items() if each is not None}


def couple_drawn(data_dir: str | None, o: Options) -> Result:
    """The same R2 on a sample of a field whose two attributes depend on each other along the edges."""
    graph = load_raw(data_dir, o["data"]).graph
    A = coupled_field(o["coupling"]).sample(graph, 1, random_state=o["seed"])[0]
    return _scores(graph, A[:, :1], A[:, 1], o["seed"])


def coupled_field(coupling: float) -> GaussianMRF:
    """Return the field of a feature and an outcome, with a coupling between -1 and 1 along the edges."""
    H, C = (np.array([[1.0, -off], [-off, 1.0]]) for off in (_OWN, coupling))
    return GaussianMRF(H, C=_OMEGA * C)


def _scores(graph: Graph, X: Floats, y: Floats, seed: int) -> dict[str, dict[str, float]]:
    (labelled, hidden), both = hide(y, seed), np.hstack([X, graph.N @ X])
    found = {}
    for name, (neighbours, make) in _METHODS.items():
        predicted = make().fit(graph, both if neighbours else X, hidden).predict()
        found[name] = {"value": float(r2_score(y[~labelled], predicted[~labelled]))}
    return found


def _outline(settings: RunSettings) -> Outline:
    def table(name: str, head: str, what: str, task: Task, rows: dict[str, dict[str, Scalar]]) -> Plan:
        caption = f"Own and neighbours' features on {what}: mean R², 30 % of the nodes labelled."
        form = PaperTable(name, caption, (head,), tuple(_METHODS), ranked=True)

        def entry(options: dict[str, Scalar], method: str) -> Entry:
            return Entry(settings.over_splits(task, options, seconds=0.4), (method, "value"))

        return Plan.of(form, {(label,): options for label, options in rows.items()}, _METHODS, entry)

    couplings: dict[str, dict[str, Scalar]] = {f"{c:g}": {"data": _GRAPH, "coupling": c} for c in _COUPLINGS}
    tasks: dict[str, dict[str, Scalar]] = {
        f"{title_of(data)}, {outcome}": {"data": data, "outcome": outcome} for data, outcome in _TASKS
    }
    return Outline.of(
        table("coupled-drawn", "coupling", "samples of coupled fields", couple_drawn, couplings),
        table("coupled-real", "data, outcome", "real data", couple_real, tasks),
        _likelihoods(),
        goals=lambda drawn, real, _: [*_gain(drawn, "samples"), *_gain(real, "real data")],
        figures=_figures,
    )


def _likelihoods() -> Plan:
    heads = tuple(f"{name}, {quantity}" for name in _FITS for quantity in ("log-likelihood", "AIC"))
    form = PaperTable("coupled-likelihood", "Both fields fitted to all attributes.", ("data",), heads, decimals=0)

    def entry(data: str, path: tuple[str, str]) -> Entry:
        return Entry([Run.of(couple_fits, {"data": data}, seconds=4.0)], path)

    columns = [(name, quantity) for name in _FITS for quantity in ("value", "AIC")]
    return Plan.of(form, {(title_of(data),): data for data in _DATA}, columns, entry)


def _figures(drawn: PaperTable, *_: PaperTable) -> Iterator[Figure]:
    filters = Chart("lines", "Filters of the feature", "eigenvalue λ of N", "(b + λg) / (1 + ωλ)", _filters())
    means = {name: [cell.ours for cell in drawn.cells([name])] for name in drawn.columns}
    curves = tuple(Series(name, _COUPLINGS, [r2 or 0.0 for r2 in each]) for name, each in means.items() if all(each))
    accuracy = Chart("lines", "Accuracy on samples", "coupling along the edges", "R²", curves)
    caption = (
        "A feature that acts along the edges: the filter between feature and outcome, and the accuracy of regressions "
        "on own features and on own and neighbours' features."
    )
    yield Figure("coupled-field", caption, (filters, accuracy), columns=2)


def _filters() -> tuple[Series, ...]:
    frequency, last = np.linspace(0, 2, 201), len(_COUPLINGS) - 1
    series = []
    for k, coupling in enumerate(_COUPLINGS):
        mrf = coupled_field(coupling)
        response = (mrf.beta(1) + frequency * mrf.edge_beta(1)) / (1.0 + _OMEGA * frequency)
        series.append(Series(f"{coupling:g}", frequency.tolist(), response.tolist(), colour=k / last))
    return tuple(series)


def _gain(table: PaperTable, where: str) -> Iterator[Goal]:
    """Yield what neighbours' features add, on average over the rows."""
    means = {name: np.mean([np.nan if c.ours is None else c.ours for c in table.cells([name])]) for name in _METHODS}
    if np.isfinite(list(means.values())).all():
        parts = [f"{name} {means[name]:.3f} → {means[name + _BOTH]:.3f}" for name in ("LGC", "LGC/RP")]
        yield Goal(f"mean R² without and with neighbours' features, {where}", "; ".join(parts))


COUPLED = Experiment(
    "coupled-field",
    "Attributes that act along the edges",
    "Beyond the paper",
    (_GRAPH, *_DATA),
    _outline,
    (
        "With a full, symmetric C in place of diag(h), the outcome is expected at (I + ωN)⁻¹(Xb + NXg): own and "
        "neighbours' features with coefficients of their own, as GraphSAGE concatenates them, then smoothed.",
        "'GraphSAGE, linear' is least squares on X and NX without the smoothing. Coupling 0 is the paper's model.",
    ),
)
