"""Figures 7 and 8: the fitted generative model, its parameters, and maps drawn from it."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from graphmrf._typing import Floats
from graphmrf.model import GaussianMRF
from graphmrf_paper.attributes import LABELS, SYNTHETIC, load_attributes, load_raw
from graphmrf_paper.findings import Figure, Findings, Goal, Heat, Map, PaperTable, compare
from graphmrf_paper.runs import Entry, Experiment, Options, Outline, Plan, Result, Results, Run, RunSettings


@lru_cache(maxsize=2)  # runs of one data set follow each other
def fitted_mrf(data_dir: str | None, data: str) -> GaussianMRF:
    """Return the model of maximum likelihood, mean 0 as in the paper."""
    graph, frame = load_attributes(data_dir, data)
    return GaussianMRF.fit(graph, frame, center=False)


def recover_parameters(data_dir: str | None, o: Options) -> Result:
    """Maximum-likelihood parameters of a synthetic sample, beside the true ones."""
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


def _parameter_run(h0: int) -> Run:
    return Run.of(recover_parameters, {"data": SYNTHETIC[h0]}, seconds=0.5)


def _parameter_names(q: int) -> dict[str, tuple[str | int, ...]]:
    """Return the names of all parameters, those of h, then the upper triangle of H, and their places in a result."""
    h = {f"h[{i + 1}]": ("h", i) for i in range(q)}
    return {**h, **{f"H[{i + 1},{j + 1}]": ("H", i, j) for i in range(q) for j in range(i, q)}}


def _parameter_outline(_: RunSettings) -> Outline:
    """Relative errors and every entry beside those of the authors' fits, and the matrices as a figure."""
    name, levels = "fitted-parameters", tuple(SYNTHETIC)
    errors = PaperTable(
        name,
        f"{_PARAMETERS}: relative error of H and h, and negative log-likelihood per node (fitted and true).",
        ("h₀",),
        ("error of H", "error of h", "NLL/n fitted", "NLL/n true"),
        decimals=4,
        quantity="relative error",
    )
    values = PaperTable(
        f"{name}-values",
        f"{_PARAMETERS}: every entry of h and H, at each h₀.",
        ("parameter",),
        tuple(map(str, levels)),
        numbers=(name,),
        quantity="entry of H or h",
    )
    parameters = {(each,): (each, path) for each, path in _parameter_names(len(LABELS)).items()}

    def value(row: tuple[str, tuple[str | int, ...]], h0: int) -> Entry:
        return Entry([_parameter_run(h0)], row[1]).beside(name, str(h0), row[0])

    def conclude(tables: Sequence[PaperTable], results: Results) -> Findings:
        found = {str(h0): results[_parameter_run(h0).key] for h0 in levels if _parameter_run(h0).key in results}
        panels = tuple(_matrix(each, kind, level) for kind in ("true ", "") for level, each in found.items())
        figure = Figure(name, f"{_PARAMETERS}: true above, fitted below.", panels, columns=len(found) or 1)
        goals = [goal for h0 in found for goal in compare(f"entries of H and h, h₀ = {h0}", tables[1].cells([h0]))]
        return Findings(tuple(tables), (figure,) if panels else (), (*goals, *_likely(found)))

    def error(h0: int, column: str) -> Entry:
        path = {"NLL/n fitted": "nll", "NLL/n true": "true nll"}.get(column, column.replace(" of", ""))
        return Entry([_parameter_run(h0)], (path,), authors=(name, str(h0), column))

    rows = {(str(h0),): h0 for h0 in levels}
    return Outline((Plan.of(errors, rows, errors.columns, error), Plan.of(values, parameters, levels, value)), conclude)


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
    _parameter_outline,
    (
        "The fit is the maximum of the likelihood; the paper's stochastic fit ends short of it, its H mostly too "
        "small, probably by its weight decay.",
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
    """Correlation of neighbouring values, weighted by degrees: 1 for a field that does not vary along edges."""
    centred = values - values.mean()
    return float(centred @ (S @ centred) / (centred @ centred))


def _short(values: Floats) -> list[float]:
    return [float(f"{value:.5g}") for value in values]


def _map_run(settings: RunSettings) -> Run:
    return Run.of(draw_maps, {"data": _MAPPED_DATA, "seed": settings.seeds[0]}, seconds=4.0)


def _map_outline(settings: RunSettings) -> Outline:
    """Maps, and a table of how smooth and how correlated they are."""
    run, labels = _map_run(settings), ("observed", *(f"sample {k + 1}" for k in range(_N_MAPS)))
    columns = {
        **{f"correlation along edges, {name}": ("smoothness", k) for k, name in enumerate(_MAPPED)},
        "correlation of the two": ("correlation", None),
    }
    caption = "Do the samples resemble the data? Correlation along edges, and between the two attributes."
    form = PaperTable("sampled-maps", caption, ("map",), tuple(columns))

    def entry(k: int, column: str) -> Entry:
        quantity, place = columns[column]
        return Entry([run], (quantity, k) if place is None else (quantity, k, place))

    def conclude(tables: Sequence[PaperTable], results: Results) -> Findings:
        if run.key not in results:
            return Findings(tuple(tables))
        found = results[run.key]
        panels = tuple(
            Map(f"{name}, {label}", _MAPPED_DATA, tuple(found["ids"]), np.asarray(layer[name]), limits)
            for name, limits in _MAPPED.items()
            for layer, label in zip(found["layers"], labels, strict=True)
        )
        return Findings(tuple(tables), (Figure("sampled-maps", f"{_MAPS}.", panels, columns=len(labels)),))

    rows = {(label,): k for k, label in enumerate(labels)}
    return Outline([Plan.of(form, rows, columns, entry)], conclude)


SAMPLED_MAPS = Experiment(
    "sampled-maps",
    _MAPS,
    "Figure 8",
    (_MAPPED_DATA,),
    _map_outline,
    ("Observed and drawn values in their own units, limited to 0..15 % and -1..1 as in the paper.",),
)
