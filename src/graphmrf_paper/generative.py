"""Figures 7 to 10: the fitted generative model, its parameters, maps drawn from it, and the accuracy it foresees."""

from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from graphmrf._typing import Bools, Floats
from graphmrf.model import GaussianMRF
from graphmrf.selection import split
from graphmrf_paper.accuracy import transductive_runs
from graphmrf_paper.attributes import CDC, LABELS, LONDON, SYNTHETIC, US, family, load_attributes, load_raw, title_of
from graphmrf_paper.findings import (
    Chart,
    Figure,
    Findings,
    Goal,
    Heat,
    Map,
    PaperTable,
    Series,
    TableCell,
    TableRow,
)
from graphmrf_paper.methods import TABLE_METHODS
from graphmrf_paper.runs import (
    TRAINING,
    Experiment,
    Options,
    Result,
    Results,
    Run,
    RunSettings,
    Scalar,
    average,
    mean_cell,
)


@lru_cache(maxsize=2)  # runs of one data set follow each other; more keeps more models in memory
def fitted_mrf(data_dir: str | None, data: str) -> GaussianMRF:
    """Return the model of maximum likelihood, mean 0 as in the paper."""
    graph, frame = load_attributes(data_dir, data)
    return GaussianMRF.fit(graph, frame, center=False)


def recover_parameters(data_dir: str | None, o: Options) -> Result:
    """The maximum-likelihood parameters of a synthetic sample beside those it was drawn with."""
    graph, frame = load_attributes(data_dir, o["data"])
    true = load_raw(data_dir, o["data"]).extra["parameters"].to_numpy()
    h, H = true[:, 0], true[:, 1:]
    mrf, A = fitted_mrf(data_dir, o["data"]), frame.to_numpy()
    constant = 0.5 * len(h) * np.log(2 * np.pi)  # left out by the paper
    true_nll, nll = (-each.log_likelihood(graph, A) / len(A) - constant for each in (GaussianMRF(H, h), mrf))
    return {
        "H": mrf.H.tolist(),
        "h": mrf.h.tolist(),
        "true H": H.tolist(),
        "true h": h.tolist(),
        "error H": float(np.linalg.norm(mrf.H - H) / np.linalg.norm(H)),
        "error h": float(np.linalg.norm(mrf.h - h) / np.linalg.norm(h)),
        "true nll": float(true_nll),
        "nll": float(nll),
    }


_PARAMETERS = "Fitted parameters of the model"


def _parameter_run(data: str) -> Run:
    return Run.of(recover_parameters, {"data": data}, seconds=0.5)


def _parameter_collect(results: Results, settings: RunSettings) -> Findings:  # noqa: ARG001 - every experiment has settings
    """Return the matrices as a figure, and their relative errors."""
    runs = {str(h0): _parameter_run(data) for h0, data in SYNTHETIC.items()}
    found = {level: results[run.key] for level, run in runs.items() if run.key in results}
    columns = ("error H", "error h", "nll", "true nll")
    rows = tuple(TableRow((level,), tuple(TableCell(each[name]) for name in columns)) for level, each in found.items())
    caption = f"{_PARAMETERS}: relative error of H and h, and negative log-likelihood per node (fitted and true)."
    heads = ("error of H", "error of h", "NLL/n fitted", "NLL/n true")
    table = PaperTable("fitted-parameters", caption, ("h₀",), heads, rows, decimals=4)
    panels = tuple(_matrix(each, kind, level) for kind in ("true ", "") for level, each in found.items())
    figure = Figure("fitted-parameters", f"{_PARAMETERS}: true above, fitted below.", panels, columns=len(found) or 1)
    return Findings((table,), (figure,) if panels else (), tuple(_errors(found)))


def _matrix(found: Result, kind: str, level: str) -> Heat:
    values = np.column_stack([found[f"{kind}H"], np.full(len(found["h"]), np.nan), found[f"{kind}h"]])
    ticks = (*(str(k + 1) for k in range(len(values))), "", "h")
    name = "true" if kind else "fitted"
    return Heat(f"{name}, h₀ = {level}", "", "", values, ticks, ticks[: len(values)], signed=True)


def _errors(found: dict[str, Result]) -> list[Goal]:
    if not found:
        return []
    H, h = (max(each[f"error {name}"] for each in found.values()) for name in "Hh")
    better = all(each["nll"] <= each["true nll"] for each in found.values())
    return [
        Goal("largest relative error of the fitted H and h", f"{H:.3f} and {h:.3f}", "printed"),
        Goal("the fit is at least as likely as the true parameters", "yes" if better else "no", "yes", better),
    ]


FITTED_PARAMETERS = Experiment(
    "fitted-parameters",
    _PARAMETERS,
    "Figure 7",
    tuple(SYNTHETIC.values()),
    lambda _: [_parameter_run(data) for data in SYNTHETIC.values()],
    _parameter_collect,
    (
        "The fit is the maximum of the likelihood; the paper's stochastic fit ends 3 to 8 % from it in H, mostly "
        "too small, probably by its weight decay.",
    ),
)

_MAPPED = {"unemployment": (0.0, 15.0), "election": (-1.0, 1.0)}  # attributes and limits of the colours, the paper's
_N_MAPS = 2  # samples beside what was observed, as in the paper
_MAPPED_DATA = "us-2016"
_MAPS = "Unemployment and election drawn given the other attributes"


def draw_maps(data_dir: str | None, o: Options) -> Result:
    """Unemployment and election drawn given all other attributes, in their own units, beside what was observed."""
    graph, frame = load_attributes(data_dir, o["data"])
    units, names, hidden = load_raw(data_dir, o["data"]).frame, list(_MAPPED), frame.copy()
    hidden[names] = np.nan
    drawn = fitted_mrf(data_dir, o["data"]).condition(graph, hidden).sample(_N_MAPS, random_state=o["seed"])
    places = [list(frame.columns).index(name) for name in names]
    layers = [frame[names].to_numpy(), *drawn.take(places, axis=2)]
    center, spread = units[names].mean().to_numpy(), units[names].std().to_numpy()
    return {
        "ids": units["fips"].tolist() if "fips" in units else [],
        "layers": [dict(zip(names, map(_short, (layer * spread + center).T), strict=True)) for layer in layers],
        "smoothness": [[_along_edges(graph.S, column) for column in layer.T] for layer in layers],
        "correlation": [float(np.corrcoef(layer.T)[0, 1]) for layer in layers],
    }


def _along_edges(S: Any, values: Floats) -> float:
    """Correlation of the ends of edges, each weighted by the degrees: 1 for a field that does not vary along edges."""
    centred = values - values.mean()
    return float(centred @ (S @ centred) / (centred @ centred))


def _short(values: Floats) -> list[float]:
    return [float(f"{value:.5g}") for value in values]


def _map_run(settings: RunSettings) -> Run:
    return Run.of(draw_maps, {"data": _MAPPED_DATA, "seed": settings.seeds[0]}, seconds=4.0)


def _map_collect(results: Results, settings: RunSettings) -> Findings:
    """Return the maps, and a table of how smooth and how correlated they are."""
    found = results.get(_map_run(settings).key)
    if found is None:
        return Findings()
    labels = ["observed", *(f"sample {k + 1}" for k in range(len(found["layers"]) - 1))]
    panels = tuple(
        Map(f"{name}, {label}", _MAPPED_DATA, tuple(found["ids"]), np.asarray(layer[name]), limits)
        for name, limits in _MAPPED.items()
        for layer, label in zip(found["layers"], labels, strict=True)
    )
    figure = Figure("sampled-maps", f"{_MAPS}.", panels, columns=len(labels))
    return Findings((_map_table(found, labels),), (figure,))


def _map_table(found: Result, labels: list[str]) -> PaperTable:
    columns = (*(f"correlation along edges, {name}" for name in _MAPPED), "correlation of the two")
    rows = tuple(
        TableRow((label,), tuple(TableCell(value) for value in (*smooth, both)))
        for label, smooth, both in zip(labels, found["smoothness"], found["correlation"], strict=True)
    )
    caption = "Do the samples resemble the data? Correlation along edges, and between the two attributes."
    return PaperTable("sampled-maps", caption, ("map",), columns, rows)


SAMPLED_MAPS = Experiment(
    "sampled-maps",
    _MAPS,
    "Figure 8",
    (_MAPPED_DATA,),
    lambda settings: [_map_run(settings)],
    _map_collect,
    ("Observed and drawn values in their own units, limited to 0..15 % and -1..1 as in the paper.",),
)

LEVEL_FITTED = ", level fitted"
_FORESEEN = {"LP": "o", "LGC": "s", "LGC/RP": "^"}  # methods and their markers
_TOGETHER = "all together"
_FEWEST = 3  # points; a correlation of two is 1 whatever they are


def foresee_splits(data_dir: str | None, o: Options) -> Result:
    r"""R2 foreseen for LP, LGC and LGC/RP at every split: as in the paper, and when the level is fitted, too.

    The formula of `graphmrf.model.foresee.estimate_r2`,

    .. math:: 1 - \frac{\mathrm{tr}\,\Sigma}{\mathrm{tr}\,\Sigma_0 - 1'\Sigma_0 1 / |U|},

    with one decomposition of N for all splits: :math:`\Sigma_0`, the covariance of the outcome given nothing, and that
    given the features are functions of N. Predictors that fit an intercept do not pay for an unknown level; their
    numerator is :math:`\mathrm{tr}\,\Sigma - 1'\Sigma 1 / |U|`.
    """
    prior, given_features = _covariances(data_dir, o["data"], o["outcome"])
    found: dict[str, list[float]] = {name + suffix: [] for name in _FORESEEN for suffix in ("", LEVEL_FITTED)}
    for seed in range(o["seed"], o["seed"] + o["splits"]):
        U = ~split(len(prior), TRAINING, random_state=seed)
        left = (_given_labels(prior, U), _given_nothing(given_features, U), _given_labels(given_features, U))
        trace, level = _given_nothing(prior, U)
        for name, (variance, common) in zip(_FORESEEN, left, strict=True):
            found[name].append(1.0 - variance / (trace - level))
            found[name + LEVEL_FITTED].append(1.0 - (variance - common) / (trace - level))
    return found


def _covariances(data_dir: str | None, data: str, outcome: str) -> tuple[Floats, Floats]:
    """Return the covariance of an outcome given nothing, and given the features, at all nodes."""
    mrf = fitted_mrf(data_dir, data)
    eigenvalues, V = _decomposed(data_dir, data)
    t = mrf.index(outcome)
    given_features = (V / (mrf.H[t, t] + mrf.C[t, t] * eigenvalues)) @ V.T
    return (V * _response(mrf, t, eigenvalues)) @ V.T, given_features


def _response(mrf: GaussianMRF, t: int, eigenvalues: Floats) -> Floats:
    """Return the variance of an attribute along every eigenvector of N: a sum over the channels of the field."""
    parts = mrf.channels
    return np.asarray(parts.inverse[:, t] ** 2 @ (1.0 / (1.0 + parts.strength[:, None] * eigenvalues)))


def _given_nothing(K: Floats, U: Bools) -> tuple[float, float]:
    """Return the trace of a covariance on U, and the part of it that all nodes share: 1'K1 / |U|."""
    return float(np.diag(K)[U].sum()), float(K[np.ix_(U, U)].sum() / U.sum())


def _given_labels(K: Floats, U: Bools) -> tuple[float, float]:
    """Return the same of the covariance on U given the outcome elsewhere."""
    R = cholesky(K[np.ix_(~U, ~U)], lower=True)
    explained = solve_triangular(R, K[np.ix_(~U, U)], lower=True)
    trace, level = _given_nothing(K, U)
    return trace - float(np.sum(explained**2)), level - float(np.sum(explained.sum(axis=1) ** 2) / U.sum())


@lru_cache(maxsize=1)  # 77 MB of eigenvectors for the U.S. counties
def _decomposed(data_dir: str | None, data: str) -> tuple[Floats, Floats]:
    eigenvalues, V = np.linalg.eigh(load_raw(data_dir, data).graph.N.toarray())
    return eigenvalues, V


Outcomes = dict[str, tuple[str, ...]]


def _foresight(name: str, title: str, place: str, tasks: Outcomes, **rest: Any) -> Experiment:
    """R2 foreseen from the fitted model against R2 measured, for every outcome and LP, LGC, LGC/RP."""
    collect = partial(_foresight_collect, name, title, tasks, rest.pop("wanted", None))
    return Experiment(name, title, place, tuple(tasks), partial(_foresight_plan, tasks), collect, **rest)


def _foresight_plan(tasks: Outcomes, settings: RunSettings) -> list[Run]:
    """Return the foreseen values of every outcome, and the measured ones of every split."""
    pairs = [(data, outcome) for data, outcomes in tasks.items() for outcome in outcomes]
    measured = [run for pair in pairs for name in _FORESEEN for run in _measured(*pair, name, settings)]
    return [*(_foreseen_run(*pair, settings) for pair in pairs), *measured]


def _foreseen_run(data: str, outcome: str, settings: RunSettings) -> Run:
    seeds, seconds = settings.seeds, 0.5 if family(data) in ("synthetic", "london") else 8.0
    options: dict[str, Scalar] = {"data": data, "outcome": outcome, "seed": seeds[0], "splits": len(seeds)}
    return Run.of(foresee_splits, options, seconds=seconds)


def _measured(data: str, outcome: str, name: str, settings: RunSettings) -> list[Run]:
    return transductive_runs([(data, outcome)], TABLE_METHODS[name], settings)


def _foresight_collect(
    name: str, title: str, tasks: Outcomes, wanted: float | None, results: Results, settings: RunSettings
) -> Findings:
    """Return the points, the same as a table, and the correlations."""
    groups = {
        _label(data): [row for outcome in outcomes for row in _rows(results, settings, data, outcome)]
        for data, outcomes in tasks.items()
    }
    together = [row for rows in groups.values() for row in rows]
    caption = f"{title}: mean over random splits, 30 % of the nodes labelled."
    columns = ("foreseen", f"foreseen{LEVEL_FITTED}", "measured")
    table = PaperTable(name, caption, ("data", "outcome", "method"), columns, tuple(together))
    panels = tuple(_points(label, rows) for label, rows in groups.items())
    goals = [_correlation(label, rows, None) for label, rows in groups.items()]
    goals.append(_correlation(_TOGETHER, together, wanted))
    figure = Figure(name, caption, panels, columns=len(panels))
    return Findings((table,), (figure,), tuple(goal for goal in goals if goal is not None))


def _rows(results: Results, settings: RunSettings, data: str, outcome: str) -> list[TableRow]:
    foreseen = results.get(_foreseen_run(data, outcome, settings).key, {})
    rows = []
    for name in _FORESEEN:
        cells = [mean_cell(foreseen.get(name + suffix, [])) for suffix in ("", LEVEL_FITTED)]
        measured = average(results, _measured(data, outcome, name, settings), name)
        rows.append(TableRow((_label(data), outcome, name), (*cells, measured)))
    return rows


def _correlation(label: str, rows: Sequence[TableRow], wanted: float | None) -> Goal | None:
    triples = [[cell.ours for cell in row.cells] for row in rows if all(cell.ours is not None for cell in row.cells)]
    if len(triples) < _FEWEST:
        return None
    paper, level, measured = np.array(triples, dtype=np.float64).T
    correlation, fitted = (float(np.corrcoef(each, measured)[0, 1]) for each in (paper, level))
    text = f"{correlation:.3f} (mean |difference| {np.abs(paper - measured).mean():.3f}{LEVEL_FITTED} {fitted:.3f})"
    what = f"correlation of foreseen and measured R², {label}"
    if wanted is None:
        return Goal(what, text, "printed")
    return Goal(what, text, f"> {wanted}", correlation > wanted)


def _label(data: str) -> str:
    return f"h₀ = {data.rpartition('-h')[2]}" if family(data) == "synthetic" else title_of(data)


def _points(title: str, rows: Sequence[TableRow]) -> Chart:
    outcomes = list(dict.fromkeys(row.labels[1] for row in rows))
    series = []
    for row in rows:
        (_, outcome, method), x, y = row.labels, row.cells[0].ours, row.cells[-1].ours
        if x is None or y is None:
            continue
        colour = outcomes.index(outcome) / max(len(outcomes) - 1, 1)
        series.append(Series(f"{outcome}, {method}", [x], [y], colour=colour, marker=_FORESEEN[method]))
    return Chart("points", title, "foreseen R²", "measured R²", tuple(series))


R2_SYNTHETIC = _foresight(
    "r2-estimate-synthetic",
    "Foreseen and measured R², synthetic data",
    "Figure 9",
    dict.fromkeys(SYNTHETIC.values(), LABELS),
    wanted=0.98,
)
R2_REAL = _foresight(
    "r2-estimate-real",
    "Foreseen and measured R², real data",
    "Figure 10",
    {"us-2016": US, "cdc-2008": CDC, "london-2016": LONDON},
    remarks=(
        "Foreseen from the exact maximum-likelihood fit, which is not the paper's fit; where the model does not "
        "hold (CDC), its foresight does not, either.",
    ),
)
