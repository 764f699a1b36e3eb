"""The data of the experiments: attributes as the paper uses them, their logarithms and second samples by name."""

from dataclasses import replace
from functools import lru_cache

import numpy as np
import pandas as pd

from graphmrf._typing import Floats
from graphmrf.datasets import Dataset, load, paper
from graphmrf.graph import Graph

SYNTHETIC = {h0: f"synthetic-paper-h{h0}" for h0 in (1, 10, 100)}
"""The paper's own samples by the smoothness they were drawn with."""
LABELS = ("a1", "a2", "a3", "a4", "a5")
"""Attributes of the synthetic data, each the outcome once."""
US = ("income", "education", "unemployment", "election")
CDC = ("airT", "landT", "precipitation", "sunlight", "pm2.5")
LONDON = ("income", "edu", "age", "election")
_LOG = "+log"
_TITLES = {"us": "U.S.", "cdc": "CDC", "london": "London", "twitch": "Twitch", "synthetic": "Synthetic"}
_KEPT = 16  # more data sets than any experiment has; fewer would load them again for every run, more keeps more memory


@lru_cache(maxsize=_KEPT)
def load_raw(data_dir: str | None, name: str) -> Dataset:
    """Return a data set with raw values, from a folder or, with None, as `graphmrf.datasets.load` finds it."""
    return load(name, data_dir=data_dir)


@lru_cache(maxsize=_KEPT)
def load_attributes(data_dir: str | None, name: str) -> tuple[Graph, pd.DataFrame]:
    """Return graph and attributes of a data set as the paper's experiments use it.

    Parameters
    ----------
    data_dir : str or None
        Folder of the raw files.
    name : str
        A data set by name. ``london-2016+log`` has the logarithm of the election result, as the numbers in print;
        ``synthetic-paper-h1:1`` is the second sample.
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
