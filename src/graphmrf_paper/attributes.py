"""Attributes as the paper's experiments use them: scaled, their logarithms, second samples, features and outcome."""

from dataclasses import replace
from functools import lru_cache

import numpy as np
import pandas as pd
from scipy import sparse
from scipy.sparse.linalg import svds

from graphmrf._typing import Floats
from graphmrf.errors import InvalidInputError
from graphmrf.graph import Graph
from graphmrf_paper.catalogue import load
from graphmrf_paper.dataset import Dataset
from graphmrf_paper.twitch import N_FEATURES

N_COMPONENTS = 64
"""Components of the binary features of Twitch, as in the paper."""


def paper(data: Dataset) -> pd.DataFrame:
    r"""Return the attributes of a data set as the paper's experiments use them, without a missing value.

    U.S., CDC and London: a missing value becomes the mean of the observed ones, then every attribute becomes

    .. math:: (x - \bar x) / s, \qquad s^2 = \sum_i (x_i - \bar x)^2 / (n - 1)

    over all nodes, those to be predicted included; a constant one becomes 0. One column is the outcome, all others are
    features.

    Twitch: 64 scores :math:`X V` of the binary features, from a singular value decomposition without centring, largest
    first, the columns of :math:`V` having a positive sum; then centred, not scaled. With them the standardised root of
    the degree, `root_degree`, and `days`, standardised.

    Elliptic: standardised but for `illicit`, which stays 1, 0 or missing. Synthetic: as sampled.

    Parameters
    ----------
    data : Dataset
        As loaded.

    Returns
    -------
    DataFrame of shape (n, q)
        Float64, in node order, with the ids of the graph as its index where there are some. The columns of Twitch are
        `component_1` to `component_64`, `root_degree`, `days`.

    Raises
    ------
    InvalidInputError
        An attribute without a single value.

    Examples
    --------
    >>> import pandas as pd
    >>> from graphmrf.datasets import Attribute, Dataset, Info
    >>> from graphmrf.graph import Graph
    >>> info = Info("trio", "Three nodes", 3, 2, (Attribute("y", "m", "height"),), ("y",), "ours", "none")
    >>> frame = pd.DataFrame({"node": [0, 1, 2], "y": [1.0, None, 3.0]})
    >>> paper(Dataset(Graph.from_edges([0, 1], [1, 2]), frame, info))["y"].round(3).tolist()
    [-1.0, 0.0, 1.0]
    """
    frame = data.frame[data.info.columns].astype(np.float64)
    family = data.info.name.split("-")[0]
    if family == "twitch":
        return _twitch(data)
    if family == "synthetic":
        return frame
    kept = frame[["illicit"]] if family == "elliptic" else frame[[]]
    scaled = frame.drop(columns=kept.columns)
    empty = scaled.columns[scaled.isna().all()]
    if len(empty):
        raise InvalidInputError(f"attribute '{empty[0]}' has no value at any node, so it has no mean; leave it out")
    filled = scaled.fillna(scaled.mean()).to_numpy()
    return pd.DataFrame(z_scores(filled), columns=scaled.columns, index=frame.index).join(kept)


def z_scores(values: Floats) -> Floats:
    """Return columns of mean 0 and standard deviation 1 (n - 1) over all rows; a constant column becomes 0."""
    centred = values - values.mean(axis=0)
    spread = values.std(axis=0, ddof=1)
    return np.asarray(centred / np.where(np.ptp(values, axis=0) == 0, np.inf, spread))


def _twitch(data: Dataset) -> pd.DataFrame:
    ones = data.extra["features"]
    shape = (len(data.frame), N_FEATURES)
    X = sparse.csr_array((np.ones(len(ones)), (ones["node"], ones["feature"])), shape=shape)
    components = component_scores(X, N_COMPONENTS)
    columns = [f"component_{k + 1}" for k in range(components.shape[1])]
    frame = pd.DataFrame(components, columns=columns, index=data.frame.index)
    frame["root_degree"] = z_scores(np.sqrt(data.graph.degrees))
    frame["days"] = z_scores(data.frame["days"].to_numpy(dtype=np.float64))
    return frame


def component_scores(X: sparse.csr_array, rank: int) -> Floats:
    """Return the centred scores of X on its leading right singular vectors, each with a positive sum."""
    # A fixed start makes ARPACK give the same answer every time.
    _, values, Vt = svds(X, k=rank, v0=np.ones(min(X.shape)))
    V = Vt[np.argsort(values)[::-1]].T
    XV = np.asarray(X @ (V * np.where(V.sum(axis=0) < 0, -1.0, 1.0)))
    return np.asarray(XV - XV.mean(axis=0))


SYNTHETIC = {h0: f"synthetic-paper-h{h0}" for h0 in (1, 10, 100)}
"""The paper's own samples, by smoothness h0."""
LABELS = ("a1", "a2", "a3", "a4", "a5")
"""Attributes of the synthetic data, each the outcome once."""
US = ("income", "education", "unemployment", "election")
CDC = ("airT", "landT", "precipitation", "sunlight", "pm2.5")
LONDON = ("income", "edu", "age", "election")
REAL_TASKS = tuple(
    (data, outcome)
    for data, outcomes in (("us-2016", US), ("cdc-2008", CDC), ("london-2016", LONDON), ("twitch-ptbr", ("days",)))
    for outcome in outcomes
)
"""Data set and outcome of the 14 real tasks."""
_LOG = "+log"
_TITLES = {"us": "U.S.", "cdc": "CDC", "london": "London", "twitch": "Twitch", "synthetic": "Synthetic"}
_CACHED = 16  # more data sets than any experiment has, so that none is loaded again for every run


@lru_cache(maxsize=_CACHED)
def load_raw(data_dir: str | None, name: str) -> Dataset:
    """Return a data set with raw values, from a folder or, with None, as `graphmrf.datasets.load` finds it."""
    return load(name, data_dir=data_dir)


@lru_cache(maxsize=_CACHED)
def load_attributes(data_dir: str | None, name: str) -> tuple[Graph, pd.DataFrame]:
    """Return graph and attributes of a data set as the paper's experiments use it.

    ``london-2016+log`` has the logarithm of the election result, as the numbers in print; ``synthetic-paper-h1:1`` is
    the second sample.
    """
    data = load_raw(data_dir, base_name(name))
    _, _, sample = name.partition(":")
    if name.endswith(_LOG):
        data = replace(data, frame=data.frame.assign(election=np.log(data.frame["election"])))
    if sample:
        drawn = data.extra["samples"]
        return data.graph, drawn[drawn["sample"] == int(sample)][data.info.columns].reset_index(drop=True)
    return data.graph, paper(data)


def load_task(data_dir: str | None, name: str, outcome: str) -> tuple[Graph, pd.DataFrame, Floats]:
    """Return graph, features (n, p) and outcome (n,): one attribute is the outcome, all others are features."""
    graph, frame = load_attributes(data_dir, name)
    return graph, frame.drop(columns=outcome), frame[outcome].to_numpy(dtype=np.float64)


def family(data: str) -> str:
    """Return the first part of the name of a data set.

    Examples
    --------
    >>> family("london-2016+log")
    'london'
    """
    return data.partition("-")[0]


def title_of(data: str) -> str:
    """Return a data set's name in tables.

    Examples
    --------
    >>> title_of("us-2016"), title_of("london-2016+log")
    ('U.S.', 'London, log')
    """
    return _TITLES[family(data)] + (", log" if data.endswith(_LOG) else "")


def base_name(data: str) -> str:
    """Return the name of the data set itself, without the variant of the experiment.

    Examples
    --------
    >>> base_name("london-2016+log"), base_name("synthetic-paper-h1:1")
    ('london-2016', 'synthetic-paper-h1')
    """
    return data.removesuffix(_LOG).partition(":")[0]
