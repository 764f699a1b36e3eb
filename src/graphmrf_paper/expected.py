"""Figures 9 and 10: the accuracy that a fitted model expects, from our fit and from the authors' own, and measured."""

from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from graphmrf._typing import Bools, Floats
from graphmrf.model import GaussianMRF
from graphmrf.text import number
from graphmrf_paper.accuracy import transductive_runs
from graphmrf_paper.attributes import CDC, LABELS, LONDON, SYNTHETIC, US, family, load_attributes, load_raw, title_of
from graphmrf_paper.findings import Chart, Figure, Findings, Goal, PaperTable, Series, TableRow, compare
from graphmrf_paper.generative import fitted_mrf
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
from graphmrf_paper.splits import authors_split

SIMULATED, LEVEL_FITTED, MEASURED = ", simulated", ", level fitted", ", measured"
LP_FULL = "LP, full model"
"""Label propagation with the features integrated out, the paper's appendix B.2."""
_MARKERS = {"LP": "o", LP_FULL: "D", "LGC": "s", "LGC/RP": "^"}
_METHODS = ("LP", "LGC", "LGC/RP")
_FITS = ("maximum likelihood", "authors' parameters")
_DRAWS = 200  # from the model: the simulated mean has a standard error below .01 wherever expectations are above 0
_TOGETHER = "all together"
_FEWEST = 3  # points; a correlation of two is 1 whatever they are


def expected_accuracy(data_dir: str | None, o: Options) -> Result:
    """Expected R2 of LP, LGC and LGC/RP at every split, from both fits; measured, that of LP of the full model."""
    _, frame = load_attributes(data_dir, o["data"])
    t, y = list(frame.columns).index(o["outcome"]), frame[o["outcome"]].to_numpy(dtype=np.float64)
    seeds = range(o["seed"], o["seed"] + o["splits"])
    fits = (fitted_mrf(data_dir, o["data"]), authors_mrf(o["data"], [str(name) for name in frame.columns]))
    return {
        owner: _expected_of(mrf, t, y, _decomposed(data_dir, o["data"]), seeds)
        for owner, mrf in zip(_FITS, fits, strict=True)
    }


def authors_mrf(data: str, names: Sequence[str]) -> GaussianMRF:
    """Return the model with the parameters in the authors' files."""
    place = ("authors-parameters", data)
    if family(data) == "synthetic":
        place, names = ("fitted-parameters", data.rpartition("-h")[2]), [str(k + 1) for k in range(len(names))]
    H = np.zeros((len(names), len(names)))
    for i, a in enumerate(names):
        for j, b in enumerate(names[i:], start=i):
            H[i, j] = H[j, i] = authors(*place, f"H[{a},{b}]")
    return GaussianMRF(H, np.array([authors(*place, f"h[{name}]") for name in names], dtype=np.float64))


@lru_cache(maxsize=1)  # 77 MB of eigenvectors for the U.S. counties
def _decomposed(data_dir: str | None, data: str) -> tuple[Floats, Floats]:
    eigenvalues, V = np.linalg.eigh(load_raw(data_dir, data).graph.N.toarray())
    return eigenvalues, V


def _expected_of(
    mrf: GaussianMRF, t: int, y: Floats, decomposed: tuple[Floats, Floats], seeds: range
) -> dict[str, list[float]]:
    r"""Return expected values of R2 for attribute `t`, by method.

    To first order, as in the paper (`graphmrf.model.expected_accuracy.estimate_r2`),

    .. math:: 1 - \frac{\mathrm{tr}\,\Sigma}{\mathrm{tr}\,\Sigma_0 - 1'\Sigma_0 1 / |U|},

    a ratio of expectations; simulated, the expectation of the ratio over draws from the model. Predictors that fit an
    intercept do not pay for an unknown level; their numerator is :math:`\mathrm{tr}\,\Sigma - 1'\Sigma 1 / |U|`.
    """
    (eigenvalues, V), parts = decomposed, mrf.channels
    prior = np.asarray(parts.inverse[:, t] ** 2 @ (1.0 / (1.0 + parts.strength[:, None] * eigenvalues)))
    noise = 1.0 / (mrf.H[t, t] + mrf.C[t, t] * eigenvalues)
    rng = np.random.default_rng(seeds.start)
    # What features explain and what they leave are independent, both functions of N.
    explained, left = (
        V @ (np.sqrt(np.maximum(each, 0.0))[:, None] * rng.standard_normal((len(V), _DRAWS)))
        for each in (prior - noise, noise)
    )
    K, K_left, drawn = (V * prior) @ V.T, (V * noise) @ V.T, explained + left
    found: dict[str, list[float]] = {}
    for seed in seeds:
        U = ~authors_split(len(V), TRAINING, seed)
        (trace, level), spread = _given_nothing(K, U), _centred(drawn[U])
        lp, both = _LabelledNodes(K, U), _LabelledNodes(K_left, U)
        ways = {
            "LP": (lp.remaining(), lp.errors(drawn)),
            "LGC": (_given_nothing(K_left, U), left[U]),
            "LGC/RP": (both.remaining(), both.errors(left)),
        }
        for name, ((variance, common), errors) in ways.items():
            values = {
                "": 1.0 - variance / (trace - level),
                LEVEL_FITTED: 1.0 - (variance - common) / (trace - level),
                SIMULATED: float(np.mean(1.0 - (errors**2).sum(axis=0) / spread)),
                SIMULATED + LEVEL_FITTED: float(np.mean(1.0 - _centred(errors) / spread)),
            }
            for suffix, value in values.items():
                found.setdefault(name + suffix, []).append(value)
        r2 = 1.0 - (lp.errors(y[:, None]) ** 2).sum() / _centred(y[U, None])[0]
        found.setdefault(LP_FULL + MEASURED, []).append(float(r2))
    return found


class _LabelledNodes:
    """What labels outside `U` explain of a field with covariance `K`."""

    def __init__(self, K: Floats, U: Bools) -> None:
        self.K, self.U = K, U
        self.R = cholesky(K[np.ix_(~U, ~U)], lower=True)
        self.explained = solve_triangular(self.R, K[np.ix_(~U, U)], lower=True)

    def remaining(self) -> tuple[float, float]:
        """Return the trace of the covariance that is left on U, and the part of it that all nodes share."""
        trace, level = _given_nothing(self.K, self.U)
        common = float(np.sum(self.explained.sum(axis=1) ** 2) / self.U.sum())
        return trace - float(np.sum(self.explained**2)), level - common

    def errors(self, fields: Floats) -> Floats:
        """Return fields (n, k) less their expectation given their values outside U, at the nodes of U."""
        inside = solve_triangular(self.R, fields[~self.U], lower=True)
        return np.asarray(fields[self.U] - self.explained.T @ inside)


def _given_nothing(K: Floats, U: Bools) -> tuple[float, float]:
    """Return the trace of a covariance on U, and the part of it that all nodes share: 1'K1 / |U|."""
    return float(np.diag(K)[U].sum()), float(K[np.ix_(U, U)].sum() / U.sum())


def _centred(values: Floats) -> Floats:
    """Return the sum of squares of every column about its mean."""
    return np.asarray(((values - values.mean(axis=0)) ** 2).sum(axis=0))


Outcomes = dict[str, tuple[str, ...]]


def _expected(name: str, title: str, place: str, tasks: Outcomes, **rest: Any) -> Experiment:
    """R2 expected from the fitted model and R2 measured, for every outcome and method."""
    collect = partial(_expected_collect, name, title, tasks)
    return Experiment(name, title, place, tuple(tasks), partial(_expected_plan, tasks), collect, **rest)


def _expected_plan(tasks: Outcomes, settings: RunSettings) -> list[Run]:
    """Return the expected values of every outcome, and the measured ones of every split."""
    pairs = [(data, outcome) for data, outcomes in tasks.items() for outcome in outcomes]
    measured = [run for pair in pairs for name in _METHODS for run in _measured(*pair, name, settings)]
    return [*(_expected_run(*pair, settings) for pair in pairs), *measured]


def _expected_run(data: str, outcome: str, settings: RunSettings) -> Run:
    seeds, seconds = settings.seeds, 2.0 if family(data) in ("synthetic", "london") else 20.0
    options: dict[str, Scalar] = {"data": data, "outcome": outcome, "seed": seeds[0], "splits": len(seeds)}
    return Run.of(expected_accuracy, options, seconds=seconds)


def _measured(data: str, outcome: str, name: str, settings: RunSettings) -> list[Run]:
    return transductive_runs([(data, outcome)], TABLE_METHODS[name], settings)


def _expected_collect(name: str, title: str, tasks: Outcomes, results: Results, settings: RunSettings) -> Findings:
    """Return the points, the same as tables, and how they agree."""
    groups = {
        _label(data): [row for outcome in outcomes for row in _rows(name, results, settings, data, outcome)]
        for data, outcomes in tasks.items()
    }
    together = [row for rows in groups.values() for row in rows]
    caption = f"{title}: mean over the splits, 30 % of the nodes labelled."
    heads = ("data", "outcome", "method")
    ends = ("", SIMULATED, LEVEL_FITTED, SIMULATED + LEVEL_FITTED)
    columns = (*(f"expected{end}" for end in ends), "measured", _FITS[1])
    table = PaperTable(name, caption, heads, columns, tuple(together))
    panels = tuple(_points(label, rows) for label, rows in groups.items())
    goals = [
        *compare("expected R², authors' parameters", table.cells(columns[-1:])),
        *compare("expected R², maximum likelihood", table.cells(columns[:1])),
        *compare("measured R²", table.cells(["measured"])),
    ]
    for label, rows in {**groups, _TOGETHER: together}.items():
        goals += _correlation(label, [row for row in rows if row.labels[2] != LP_FULL])
    lp = [row for row in together if row.labels[2] in ("LP", LP_FULL)]
    goals += [goal for kind in ("LP", LP_FULL) for goal in _closeness(kind, lp)]
    return Findings((table,), (Figure(name, caption, panels, columns=len(panels)),), tuple(goals))


def _rows(table: str, results: Results, settings: RunSettings, data: str, outcome: str) -> list[TableRow]:
    found = results.get(_expected_run(data, outcome, settings).key, {})
    ours, theirs = (found.get(owner, {}) for owner in _FITS)
    rows = []
    for name in _MARKERS:
        labels, formula = (_label(data), outcome, name), "LP" if name == LP_FULL else name
        row = "/".join(labels)
        first, *others = (
            mean_cell(ours.get(formula + end, [])) for end in ("", SIMULATED, LEVEL_FITTED, SIMULATED + LEVEL_FITTED)
        )
        if name == LP_FULL:
            measured = mean_cell(ours.get(LP_FULL + MEASURED, []))
        else:
            measured = average(results, _measured(data, outcome, name, settings), name)
        cells = (beside(first, table, row, "expected"), *others, beside(measured, table, row, "measured"))
        rows.append(TableRow(labels, (*cells, beside(mean_cell(theirs.get(formula, [])), table, row, "expected"))))
    return rows


def _correlation(label: str, rows: Sequence[TableRow]) -> list[Goal]:
    known = _complete(rows)
    if len(known) < _FEWEST:
        return []
    paper, simulated, level, _, measured, _ = known.T
    texts = [
        f"{np.corrcoef(each, measured)[0, 1]:.3f} (mean |difference| {np.abs(each - measured).mean():.3f})"
        for each in (paper, simulated, level)
    ]
    text = f"{texts[0]}; simulated {texts[1]}; level fitted {texts[2]}"
    typical = " and ".join(number(float(np.median(each - paper))) for each in (measured, simulated))
    return [
        Goal(f"correlation of expected and measured R², {label}", text),
        Goal(f"measured and simulated R² less expected, medians, {label}", typical),
    ]


def _closeness(kind: str, rows: Sequence[TableRow]) -> list[Goal]:
    """Return how far one kind of label propagation is from what is expected of that of the full model."""
    known = _complete([row for row in rows if row.labels[2] == kind])
    if not known.size:
        return []
    off = np.abs(known[:, 0] - known[:, 4])
    return [Goal(f"|expected less measured R²| of {kind}", f"mean {off.mean():.3f}, largest {off.max():.3f}")]


def _complete(rows: Sequence[TableRow]) -> Floats:
    values = [[cell.ours for cell in row.cells] for row in rows if all(cell.ours is not None for cell in row.cells)]
    return np.array(values, dtype=np.float64)


def _label(data: str) -> str:
    return f"h₀ = {data.rpartition('-h')[2]}" if family(data) == "synthetic" else title_of(data)


def _points(title: str, rows: Sequence[TableRow]) -> Chart:
    outcomes = list(dict.fromkeys(row.labels[1] for row in rows))
    series = []
    for row in rows:
        (_, outcome, method), x, y = row.labels, row.cells[0].ours, row.cells[4].ours
        if x is None or y is None:
            continue
        colour = outcomes.index(outcome) / max(len(outcomes) - 1, 1)
        series.append(Series(f"{outcome}, {method}", [x], [y], colour=colour, marker=_MARKERS[method]))
    return Chart("points", title, "expected R²", "measured R²", tuple(series))


_REMARKS = (
    "'expected' is the paper's formula, a ratio of expectations, at the maximum of the likelihood; 'simulated' is the "
    f"expectation of the ratio, over {_DRAWS} draws from the model; 'level fitted' allows predictors an intercept; "
    "the last column is the paper's formula with the parameters in the authors' files.",
    f"'{LP_FULL}' integrates the features out with the fitted parameters (appendix B.2), which is what the formula for "
    "LP expects; 'LP' is measured without features, at a level of its own.",
)
R2_SYNTHETIC = _expected(
    "r2-estimate-synthetic",
    "Expected and measured R², synthetic data",
    "Figure 9",
    dict.fromkeys(SYNTHETIC.values(), LABELS),
    remarks=_REMARKS,
)
R2_REAL = _expected(
    "r2-estimate-real",
    "Expected and measured R², real data",
    "Figure 10",
    {"us-2016": US, "cdc-2008": CDC, "london-2016": LONDON},
    remarks=(
        *_REMARKS,
        "Points below -.25 are drawn at the edge of the picture with an arrow; the paper's figure cuts them off.",
    ),
)
