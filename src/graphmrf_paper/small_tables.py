"""Tables 2 and 4: what the data sets are, and the coefficients of linear graph convolution."""

from functools import partial

import numpy as np

from graphmrf_paper.attributes import load_attributes, load_task, title_of
from graphmrf_paper.findings import Findings, PaperTable, TableCell, compare, grid
from graphmrf_paper.methods import TABLE_METHODS
from graphmrf_paper.published import beside
from graphmrf_paper.runs import TRAINING, Experiment, Options, Result, Results, Run, RunSettings, mean_cell
from graphmrf_paper.splits import authors_split

_COUNTS = ("vertices", "edges", "attributes")
_COUNTED = ("us-2016", "cdc-2008", "london-2016", "twitch-ptbr")


def count_data(data_dir: str | None, o: Options) -> Result:
    """Counts of a data set; attributes as the experiments use them."""
    graph, frame = load_attributes(data_dir, o["data"])
    return {"vertices": graph.n_nodes, "edges": graph.n_edges, "attributes": frame.shape[1]}


def _count_run(data: str) -> Run:
    return Run.of(count_data, {"data": data})


def _count_collect(results: Results, settings: RunSettings) -> Findings:  # noqa: ARG001 - every experiment has settings
    rows = grid({(title_of(data),): data for data in _COUNTED}, _COUNTS, partial(_count_cell, results))
    table = PaperTable("data-statistics", "Statistics of the data sets.", ("data",), _COUNTS, rows, decimals=0)
    goals = [goal for column in _COUNTS for goal in compare(f"number of {column}", table.cells([column]), decimals=1)]
    return Findings((table,), (), tuple(goals))


def _count_cell(results: Results, data: str, count: str) -> TableCell:
    found = results.get(_count_run(data).key, {})
    return beside(TableCell(found.get(count), n_runs=len(found) and 1), "data-statistics", data, count)


DATA_STATISTICS = Experiment(
    "data-statistics",
    "Statistics of the data sets",
    "Table 2",
    _COUNTED,
    lambda _: [_count_run(data) for data in _COUNTED],
    _count_collect,
    (
        "London: the paper counts 4 attributes, its four outcomes; its code and its numbers use all 6.",
        "U.S.: the text speaks of about 20 ties per county, the data have 12 (mean degree 14.5).",
    ),
)

_ELECTION = "election"
_YEARS = ("us-2012", "us-2016")
FEATURES = ("sh050m", "sh100m", "sh500m", "income", "migration", "birth", "death", "education", "unemployment")
_TITLE = "LGC coefficients for the margin of victory"


def lgc_coefficients(data_dir: str | None, o: Options) -> Result:
    """Coefficients of linear graph convolution for standardised, smoothed features."""
    graph, X, y = load_task(data_dir, o["data"], o["outcome"])
    labelled = authors_split(graph.n_nodes, TRAINING, o["seed"])
    fitted = TABLE_METHODS["LGC"].make(o["seed"], "").fit(graph, X, np.where(labelled, y, np.nan))
    return {"alpha": fitted.alpha_, "coefficients": {str(name): float(b) for name, b in fitted.coef_.items()}}


def coefficient_runs(data: str, settings: RunSettings) -> list[Run]:
    """Return the run of every split of a year."""
    return settings.over_splits(lgc_coefficients, {"data": data, "outcome": _ELECTION})


def _coefficient_collect(results: Results, settings: RunSettings) -> Findings:
    """Return the mean coefficients, the levels differing between splits, and how far from print they are."""
    years = {(data.partition("-")[2],): data for data in _YEARS}
    rows = grid(years, FEATURES, partial(_coefficient_cell, results, settings))
    caption = f"{_TITLE}: mean over the splits, 30 % of the counties labelled."
    table = PaperTable("coefficients", caption, ("year",), FEATURES, rows, decimals=2)
    return Findings((table,), (), tuple(compare("coefficients", table.cells(), decimals=2)))


def _coefficient_cell(results: Results, settings: RunSettings, data: str, feature: str) -> TableCell:
    found = (results.get(run.key, {}).get("coefficients", {}) for run in coefficient_runs(data, settings))
    return beside(mean_cell(each.get(feature) for each in found), "coefficients", data, feature)


COEFFICIENTS = Experiment(
    "coefficients",
    _TITLE,
    "Table 4",
    _YEARS,
    lambda settings: [run for data in _YEARS for run in coefficient_runs(data, settings)],
    _coefficient_collect,
    (
        "Mean of the coefficients of standardised, smoothed features although the level differs between splits, "
        "as in the paper. Its networks are shrunk by weight decay, ours are least squares.",
    ),
)
