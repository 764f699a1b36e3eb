"""The data of the experiments: found in a folder, raw or cleaned, or downloaded; as the paper uses them."""

import os
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd

from graphmrf._typing import Floats
from graphmrf.datasets import Dataset, load, paper
from graphmrf.datasets.catalogue import recipe
from graphmrf.errors import InvalidInputError
from graphmrf.graph import Graph

CLEAN, RAW = "GRAPHMRF_CLEAN_DATA", "GRAPHMRF_DATA"
SYNTHETIC = {h0: f"synthetic-paper-h{h0}" for h0 in (1, 10, 100)}
LOG = "+log"
_FOLDERS = {"us": "county_facebook", "cdc": "climate", "london": "london"}


@dataclass(frozen=True)
class Source:
    """Where the data are.

    Parameters
    ----------
    folder : str or None
        A folder of raw or cleaned files. None: the folders that GRAPHMRF_CLEAN_DATA and GRAPHMRF_DATA name, and for
        what is in neither a download, unless one of them is set.
    """

    folder: str | None = None

    @property
    def folders(self) -> tuple[Path, ...]:
        """Folders to look into, in order."""
        named = [self.folder] if self.folder else [os.environ.get(CLEAN), os.environ.get(RAW)]
        return tuple(Path(folder).expanduser() for folder in named if folder)


@dataclass(frozen=True, eq=False)
class Attributes:
    """A graph and what the paper calls attributes, standardised; one column is the outcome, the others are features."""

    graph: Graph
    frame: pd.DataFrame

    def task(self, outcome: str) -> tuple[pd.DataFrame, Floats]:
        """Return features (n, p) and outcome (n,)."""
        return self.frame.drop(columns=outcome), self.frame[outcome].to_numpy(dtype=np.float64)


@lru_cache(maxsize=16)
def attributes(source: Source, name: str) -> Attributes:
    """Return a data set as the paper's experiments use it.

    Parameters
    ----------
    source : Source
        Where the files are.
    name : str
        A data set by name. ``london-2016+log`` has the logarithm of the election result, as the numbers in print;
        ``synthetic-paper-h1:1`` is the second sample.
    """
    base, _, sample = name.removesuffix(LOG).partition(":")
    data = raw(source, base)
    if name.endswith(LOG):
        data = replace(data, frame=data.frame.assign(election=np.log(data.frame["election"])))
    if sample:
        drawn = data.extra["samples"]
        return Attributes(data.graph, drawn[drawn["sample"] == int(sample)][data.info.columns].reset_index(drop=True))
    return Attributes(data.graph, paper(data))


@lru_cache(maxsize=16)
def raw(source: Source, name: str) -> Dataset:
    """Return a data set with raw values.

    Raises
    ------
    InvalidInputError
        No folder has its files; the message lists which are missing from the last one looked into.
    """
    trouble = None
    for folder in source.folders:
        try:
            return _cleaned(folder, name) or load(name, data_dir=folder)
        except InvalidInputError as error:
            trouble = error
    if trouble is not None:
        raise trouble
    return load(name)


def _cleaned(folder: Path, name: str) -> Dataset | None:
    """Return the data set of a folder with cleaned tables, None where it has none."""
    family, _, part = name.partition("-")
    if family == "synthetic":
        return _archive(folder, name)
    place = folder / "twitch" / part.upper() if family == "twitch" else folder / _FOLDERS.get(family, family)
    nodes, edges = place / ("nodes.csv.gz" if family == "twitch" else f"nodes_{part}.csv.gz"), place / "edges.csv.gz"
    if not (nodes.is_file() and edges.is_file()):
        return None
    info, ends = recipe(name).info, pd.read_csv(edges)
    frame = pd.read_csv(nodes, dtype={"fips": "str"})
    extra = {"features": pd.read_csv(place / "features.csv.gz")} if family == "twitch" else {}
    return Dataset(Graph.from_edges(ends["u"], ends["v"], n_nodes=len(frame)), frame, info, extra)


def _archive(folder: Path, name: str) -> Dataset | None:
    made = recipe(name)
    files = {file.path: folder / file.alternative for file in made.files}  # none where the samples are drawn here
    if not all(file.is_file() for file in files.values()):
        return None
    tables = made.clean(files)
    graph = Graph.from_edges(tables["edges"]["u"], tables["edges"]["v"], n_nodes=len(tables["nodes"]))
    return Dataset(graph, tables["nodes"], made.info, {name: tables[name] for name in ("samples", "parameters")})
