"""Figures 7 and 8: the fitted generative model, its parameters, and maps drawn from it."""

from functools import lru_cache
from typing import Any

import numpy as np

from graphmrf._typing import Floats
from graphmrf.model import GaussianMRF
from graphmrf_paper.attributes import SYNTHETIC, load_attributes, load_raw
from graphmrf_paper.findings import Figure, Findings, Goal, Heat, Map, PaperTable, TableCell, TableRow, compare, grid
from graphmrf_paper.published import authors, beside
from graphmrf_paper.runs import Experiment, Options, Result, Results, Run, RunSettings


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

    def cell(name: str, level: str) -> TableCell:
        return beside(TableCell(_entry(found[level], name)), "fitted-parameters", level, name)

    rows = grid({(name,): name for name in _parameter_names(q)}, found, cell)
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
