"""Figures 9 and 10: expected R2, with our fit and with the authors', and measured R2."""

from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from graphmrf._typing import Bools, Floats
from graphmrf.model import GaussianMRF
from graphmrf.text import number
from graphmrf_paper.accuracy import transductive_runs
from graphmrf_paper.attributes import CDC, LABELS, LONDON, SYNTHETIC, US, family, load_attributes, load_raw, title_of
from graphmrf_paper.findings import Chart, Figure, Goal, PaperTable, Series, TableRow, compare
from graphmrf_paper.generative import fitted_mrf
from graphmrf_paper.methods import TABLE_METHODS
from graphmrf_paper.published import authors
from graphmrf_paper.runs import Entry, Experiment, Options, Outline, Plan, Result, Run, RunSettings, Scalar
from graphmrf_paper.splits import TRAINING, authors_split

SIMULATED, LEVEL_FITTED, MEASURED = ", simulated", ", level fitted", ", measured"
_FULL = ", full model"
LP_FULL = f"LP{_FULL}"
"""Label propagation with the features integrated out, the paper's appendix B.2."""
_MARKERS = {"LP": "o", LP_FULL: "D", "LGC": "s", "LGC/RP": "^"}
_FITS = ("maximum likelihood", "authors' parameters")
_DRAWS = 200  # from the model: the simulated mean has a standard error below .01 wherever expectations are above 0
_COLUMNS = (
    "expected",
    *(f"expected{end}" for end in (SIMULATED, LEVEL_FITTED, SIMULATED + LEVEL_FITTED)),
    "measured",
    _FITS[1],
)
_FEWEST = 3  # points; a correlation of two is 1 whatever they are


def expected_accuracy(data_dir: str | None, o: Options) -> Result:
    """Expected R2 of LP, LGC and LGC/RP on every split, with both fits; and the measured R2 of LP of the full model."""
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
    """A field with covariance `K`, conditioned on the labels outside `U`."""

    def __init__(self, K: Floats, U: Bools) -> None:
        self.K, self.U = K, U
        self.R = cholesky(K[np.ix_(~U, ~U)], lower=True)
        self.explained = solve_triangular(self.R, K[np.ix_(~U, U)], lower=True)

    def remaining(self) -> tuple[float, float]:
        """Return the trace of the conditional covariance on U, and the part of it that all nodes share."""
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


def _expected(name: str, title: str, place: str, tasks: Outcomes, remarks: tuple[str, ...]) -> Experiment:
    """R2 expected from the fitted model and R2 measured, for every outcome and method."""
    caption = f"{title}: mean over the splits, 30 % of the nodes labelled."
    form = PaperTable(name, caption, ("data", "outcome", "method"), _COLUMNS)
    lines = {
        (_label(data), outcome, method): (data, outcome, method)
        for data, outcomes in tasks.items()
        for outcome in outcomes
        for method in _MARKERS
    }

    def outline(settings: RunSettings) -> Outline:
        def entry(line: tuple[str, str, str], column: str) -> Entry:
            data, outcome, method = line
            run, row = _expected_run(data, outcome, settings), f"{_label(data)}/{outcome}/{method}"
            if column == "measured" and method != LP_FULL:
                runs = transductive_runs([(data, outcome)], TABLE_METHODS[method], settings)
                return Entry(runs, (method, "value")).beside(name, row, "measured")
            owner, end = (column, "") if column == _FITS[1] else (_FITS[0], column.removeprefix("expected"))
            formula = LP_FULL + MEASURED if column == "measured" else method.removesuffix(_FULL) + end
            expected = Entry([run], (owner, formula))
            return expected if end else expected.beside(name, row, column.replace(owner, "expected"))

        return Outline.of(Plan.of(form, lines, _COLUMNS, entry), goals=_goals, figures=figures)

    def figures(table: PaperTable) -> Iterator[Figure]:
        panels = tuple(_points(label, table.having(label).rows) for label in map(_label, tasks))
        yield Figure(name, caption, panels, columns=len(panels))

    return Experiment(name, title, place, tuple(tasks), outline, remarks)


def _expected_run(data: str, outcome: str, settings: RunSettings) -> Run:
    seeds, seconds = settings.seeds, 2.0 if family(data) in ("synthetic", "london") else 20.0
    options: dict[str, Scalar] = {"data": data, "outcome": outcome, "seed": seeds[0], "splits": len(seeds)}
    return Run.of(expected_accuracy, options, seconds=seconds)


def _goals(table: PaperTable) -> Iterator[Goal]:
    """Yield how expected values compare with the authors' files and with measured values."""
    yield from compare("expected R², authors' parameters", table.cells([_FITS[1]]))
    yield from compare("expected R², maximum likelihood", table.cells(["expected"]))
    yield from compare("measured R²", table.cells(["measured"]))
    for label in dict.fromkeys(row.labels[0] for row in table.rows):
        yield from _correlation(label, [row for row in table.having(label).rows if row.labels[2] != LP_FULL])
    yield from _correlation("all together", [row for row in table.rows if row.labels[2] != LP_FULL])
    for kind in ("LP", LP_FULL):
        yield from _closeness(kind, table.having(kind).rows)


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
    """Return how far the measured R2 of one kind of label propagation is from the expected R2."""
    known = _complete(rows)
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
    _REMARKS,
)
R2_REAL = _expected(
    "r2-estimate-real",
    "Expected and measured R², real data",
    "Figure 10",
    {"us-2016": US, "cdc-2008": CDC, "london-2016": LONDON},
    (
        *_REMARKS,
        "Points below -.25 are drawn at the edge of the picture with an arrow; the paper's figure cuts them off.",
    ),
)
