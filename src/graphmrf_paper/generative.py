"""Figures 7 to 10: the fitted generative model, its parameters, maps drawn from it, and the accuracy it expects."""

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
    compare,
)
from graphmrf_paper.methods import TABLE_METHODS
from graphmrf_paper.published import authors, beside
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
    heads = ("error of H", "error of h", "NLL/n fitted", "NLL/n true")
    rows = tuple(TableRow((level,), _error_cells(level, each)) for level, each in found.items())
    caption = f"{_PARAMETERS}: relative error of H and h, and negative log-likelihood per node (fitted and true)."
    table = PaperTable("fitted-parameters", caption, ("h₀",), heads, rows, decimals=4)
    values = _parameter_table(found)
    panels = tuple(_matrix(each, kind, level) for kind in ("true ", "") for level, each in found.items())
    figure = Figure("fitted-parameters", f"{_PARAMETERS}: true above, fitted below.", panels, columns=len(found) or 1)
    goals = [goal for level in found for goal in compare(f"entries of H and h, h₀ = {level}", values.cells([level]))]
    return Findings((table, values), (figure,) if panels else (), (*goals, *_likely(found)))


def _error_cells(level: str, found: Result) -> tuple[TableCell, ...]:
    """Return the errors of our fit beside those of the authors' fit, and the likelihoods."""
    names = _parameter_names(len(found["h"]))
    theirs = [authors("fitted-parameters", level, name) for name in names]
    cells = []
    for part in "hH":
        chosen = [k for k, name in enumerate(names) if name[0] == part]
        errors = np.array([(theirs[k] or 0.0) - _entry(found, names[k], "true ") for k in chosen])
        # Each entry off the diagonal of H is there twice.
        twice = np.array([2.0 if "," in names[k] and len(set(names[k][2:-1].split(","))) == 2 else 1.0 for k in chosen])
        size = np.linalg.norm(found[f"true {part}"])
        cells.append(TableCell(found[f"error {part}"], authors=float(np.sqrt(twice @ errors**2) / size)))
    return (cells[1], cells[0], TableCell(found["nll"]), TableCell(found["true nll"]))


def _parameter_names(q: int) -> list[str]:
    """Return the names of all parameters: those of h, then the upper triangle of H."""
    return [*(f"h[{i + 1}]" for i in range(q)), *(f"H[{i + 1},{j + 1}]" for i in range(q) for j in range(i, q))]


def _entry(found: Result, name: str, kind: str = "") -> float:
    values = found[f"{kind}{name[0]}"]
    for place in name[2:-1].split(","):
        values = values[int(place) - 1]
    return float(values)


def _parameter_table(found: dict[str, Result]) -> PaperTable:
    """Return every parameter of the fits beside those of the authors' fits."""
    q = max((len(each["h"]) for each in found.values()), default=0)
    rows = tuple(
        TableRow(
            (name,),
            tuple(
                beside(TableCell(_entry(each, name)), "fitted-parameters", level, name) for level, each in found.items()
            ),
        )
        for name in _parameter_names(q)
    )
    caption = f"{_PARAMETERS}: every entry of h and H, at each h₀."
    name = "fitted-parameters"
    return PaperTable(f"{name}-values", caption, ("parameter",), tuple(found), rows, numbers=name)


def _matrix(found: Result, kind: str, level: str) -> Heat:
    values = np.column_stack([found[f"{kind}H"], np.full(len(found["h"]), np.nan), found[f"{kind}h"]])
    ticks = (*(str(k + 1) for k in range(len(values))), "", "h")
    name = "true" if kind else "fitted"
    return Heat(f"{name}, h₀ = {level}", "", "", values, ticks, ticks[: len(values)], signed=True)


def _likely(found: dict[str, Result]) -> list[Goal]:
    if not found:
        return []
    better = all(each["nll"] <= each["true nll"] for each in found.values())
    return [Goal("the fit is at least as likely as the true parameters", "yes" if better else "no", "yes", better)]


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
_EXPECTED = {"LP": "o", "LGC": "s", "LGC/RP": "^"}  # methods and their markers
_TOGETHER = "all together"
_FEWEST = 3  # points; a correlation of two is 1 whatever they are


def expected_splits(data_dir: str | None, o: Options) -> Result:
    r"""Expected R2 of LP, LGC and LGC/RP at every split: as in the paper, and when the level is fitted, too.

    The formula of `graphmrf.model.expected_accuracy.estimate_r2`,

    .. math:: 1 - \frac{\mathrm{tr}\,\Sigma}{\mathrm{tr}\,\Sigma_0 - 1'\Sigma_0 1 / |U|},

    with one decomposition of N for all splits: :math:`\Sigma_0`, the covariance of the outcome given nothing, and that
    given the features are functions of N. Predictors that fit an intercept do not pay for an unknown level; their
    numerator is :math:`\mathrm{tr}\,\Sigma - 1'\Sigma 1 / |U|`.
    """
    mrf = fitted_mrf(data_dir, o["data"])
    prior, given_features = _covariances(mrf, mrf.index(o["outcome"]), *_decomposed(data_dir, o["data"]))
    found: dict[str, list[float]] = {name + suffix: [] for name in _EXPECTED for suffix in ("", LEVEL_FITTED)}
    for seed in range(o["seed"], o["seed"] + o["splits"]):
        U = ~split(len(prior), TRAINING, random_state=seed)
        left = (_given_labels(prior, U), _given_nothing(given_features, U), _given_labels(given_features, U))
        trace, level = _given_nothing(prior, U)
        for name, (variance, common) in zip(_EXPECTED, left, strict=True):
            found[name].append(1.0 - variance / (trace - level))
            found[name + LEVEL_FITTED].append(1.0 - (variance - common) / (trace - level))
    return found


def expected_of_features(mrf: GaussianMRF, t: int, data_dir: str | None, o: Options) -> list[float]:
    """Return the expected R2 of LGC for attribute `t` at every split, from a model with given parameters."""
    prior, given_features = _covariances(mrf, t, *_decomposed(data_dir, o["data"]))
    hidden = [~split(len(prior), TRAINING, random_state=seed) for seed in range(o["seed"], o["seed"] + o["splits"])]
    parts = [(_given_nothing(given_features, U)[0], *_given_nothing(prior, U)) for U in hidden]
    return [1.0 - variance / (trace - level) for variance, trace, level in parts]


def _covariances(mrf: GaussianMRF, t: int, eigenvalues: Floats, V: Floats) -> tuple[Floats, Floats]:
    """Return the covariance of an attribute given nothing, and given the others, at all nodes."""
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


def _expected(name: str, title: str, place: str, tasks: Outcomes, **rest: Any) -> Experiment:
    """R2 expected from the fitted model and R2 measured, for every outcome and LP, LGC, LGC/RP."""
    collect = partial(_expected_collect, name, title, tasks)
    return Experiment(name, title, place, tuple(tasks), partial(_expected_plan, tasks), collect, **rest)


def _expected_plan(tasks: Outcomes, settings: RunSettings) -> list[Run]:
    """Return the expected values of every outcome, and the measured ones of every split."""
    pairs = [(data, outcome) for data, outcomes in tasks.items() for outcome in outcomes]
    measured = [run for pair in pairs for name in _EXPECTED for run in _measured(*pair, name, settings)]
    return [*(_expected_run(*pair, settings) for pair in pairs), *measured]


def _expected_run(data: str, outcome: str, settings: RunSettings) -> Run:
    seeds, seconds = settings.seeds, 0.5 if family(data) in ("synthetic", "london") else 8.0
    options: dict[str, Scalar] = {"data": data, "outcome": outcome, "seed": seeds[0], "splits": len(seeds)}
    return Run.of(expected_splits, options, seconds=seconds)


def _measured(data: str, outcome: str, name: str, settings: RunSettings) -> list[Run]:
    return transductive_runs([(data, outcome)], TABLE_METHODS[name], settings)


def _expected_collect(name: str, title: str, tasks: Outcomes, results: Results, settings: RunSettings) -> Findings:
    """Return the points, the same as a table, and the correlations."""
    groups = {
        _label(data): [row for outcome in outcomes for row in _rows(name, results, settings, data, outcome)]
        for data, outcomes in tasks.items()
    }
    together = [row for rows in groups.values() for row in rows]
    caption = f"{title}: mean over random splits, 30 % of the nodes labelled."
    columns = ("expected", f"expected{LEVEL_FITTED}", "measured")
    table = PaperTable(name, caption, ("data", "outcome", "method"), columns, tuple(together))
    panels = tuple(_points(label, rows) for label, rows in groups.items())
    goals = [*compare("expected R²", table.cells(["expected"])), *compare("measured R²", table.cells(["measured"]))]
    goals += [goal for label, rows in groups.items() for goal in _correlation(label, rows)]
    goals += _correlation(_TOGETHER, together)
    return Findings((table,), (Figure(name, caption, panels, columns=len(panels)),), tuple(goals))


def _rows(table: str, results: Results, settings: RunSettings, data: str, outcome: str) -> list[TableRow]:
    expected = results.get(_expected_run(data, outcome, settings).key, {})
    rows = []
    for name in _EXPECTED:
        labels = (_label(data), outcome, name)
        first, fitted = (mean_cell(expected.get(name + suffix, [])) for suffix in ("", LEVEL_FITTED))
        measured = average(results, _measured(data, outcome, name, settings), name)
        row = "/".join(labels)
        cells = (beside(first, table, row, "expected"), fitted, beside(measured, table, row, "measured"))
        rows.append(TableRow(labels, cells))
    return rows


def _correlation(label: str, rows: Sequence[TableRow]) -> list[Goal]:
    triples = [[cell.ours for cell in row.cells] for row in rows if all(cell.ours is not None for cell in row.cells)]
    if len(triples) < _FEWEST:
        return []
    paper, level, measured = np.array(triples, dtype=np.float64).T
    correlation, fitted = (float(np.corrcoef(each, measured)[0, 1]) for each in (paper, level))
    text = f"{correlation:.3f} (mean |difference| {np.abs(paper - measured).mean():.3f}{LEVEL_FITTED} {fitted:.3f})"
    return [Goal(f"correlation of expected and measured R², {label}", text)]


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
        series.append(Series(f"{outcome}, {method}", [x], [y], colour=colour, marker=_EXPECTED[method]))
    return Chart("points", title, "expected R²", "measured R²", tuple(series))


R2_SYNTHETIC = _expected(
    "r2-estimate-synthetic",
    "Expected and measured R², synthetic data",
    "Figure 9",
    dict.fromkeys(SYNTHETIC.values(), LABELS),
)
R2_REAL = _expected(
    "r2-estimate-real",
    "Expected and measured R², real data",
    "Figure 10",
    {"us-2016": US, "cdc-2008": CDC, "london-2016": LONDON},
    remarks=(
        "Expected from the exact maximum-likelihood fit, which is not the paper's fit; where the model does not "
        "hold (CDC), its expectation does not, either.",
    ),
)
