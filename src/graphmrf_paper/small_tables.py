"""Tables 2 and 4: statistics of the data sets, and coefficients of linear graph convolution."""

import numpy as np

from graphmrf_paper.attributes import load_attributes, load_task, title_of
from graphmrf_paper.findings import Goal, PaperTable, compare
from graphmrf_paper.methods import TABLE_METHODS
from graphmrf_paper.runs import TRAINING, Entry, Experiment, Options, Outline, Plan, Result, Run, RunSettings
from graphmrf_paper.splits import authors_split

_COUNTS = ("vertices", "edges", "attributes")
_COUNTED = ("us-2016", "cdc-2008", "london-2016", "twitch-ptbr")


def count_data(data_dir: str | None, o: Options) -> Result:
    """Counts of a data set; attributes as the experiments use them."""
    graph, frame = load_attributes(data_dir, o["data"])
    return {"vertices": graph.n_nodes, "edges": graph.n_edges, "attributes": frame.shape[1]}


def _count_outline(_: RunSettings) -> Outline:
    def entry(data: str, count: str) -> Entry:
        return Entry([Run.of(count_data, {"data": data})], (count,)).beside("data-statistics", data, count)

    def goals(table: PaperTable) -> list[Goal]:
        return [goal for name in _COUNTS for goal in compare(f"number of {name}", table.cells([name]), decimals=1)]

    form = PaperTable(
        "data-statistics", "Statistics of the data sets.", ("data",), _COUNTS, decimals=0, quantity="count"
    )
    return Outline.of(Plan.of(form, {(title_of(data),): data for data in _COUNTED}, _COUNTS, entry), goals=goals)


DATA_STATISTICS = Experiment(
    "data-statistics",
    "Statistics of the data sets",
    "Table 2",
    _COUNTED,
    _count_outline,
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


def _coefficient_outline(settings: RunSettings) -> Outline:
    def entry(data: str, feature: str) -> Entry:
        path = ("coefficients", feature)
        return Entry(coefficient_runs(data, settings), path).beside("coefficients", data, feature)

    caption = f"{_TITLE}: mean over the splits, 30 % of the counties labelled."
    form = PaperTable("coefficients", caption, ("year",), FEATURES, decimals=2, quantity="coefficient")
    plan = Plan.of(form, {(data.partition("-")[2],): data for data in _YEARS}, FEATURES, entry)
    return Outline.of(plan, goals=lambda table: compare("coefficients", table.cells(), decimals=2))


COEFFICIENTS = Experiment(
    "coefficients",
    _TITLE,
    "Table 4",
    _YEARS,
    _coefficient_outline,
    (
        "Mean of the coefficients of standardised, smoothed features although the level differs between splits, "
        "as in the paper. Its networks are shrunk by weight decay, ours are least squares.",
    ),
)
