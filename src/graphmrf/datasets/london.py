"""London wards: which touch, who lives there, and the mayoral elections of 2012 and 2016."""

from functools import partial

import numpy as np
import pandas as pd

from graphmrf.datasets.dataset import (
    Attribute,
    Files,
    Info,
    Recipe,
    Tables,
    number_nodes,
    published_files,
    simple_edges,
)

ELECTIONS = {2012: "3may12", 2016: "2may16"}
_WARDS, _CONTIGUITY, _CODES = "london/MaycoordLondon.csv", "london/W.csv", "london/code.csv"
_ATTRIBUTES = (
    Attribute("edu", "level, about 0-4", "average education level"),
    Attribute("age", "years", "average age"),
    Attribute("gender", "fraction", "share of one gender (0.42-0.57; probably women)"),
    Attribute("income", "thousand pounds per year (presumed)", "income"),
    Attribute("populationsize", "persons", "population used for the averages"),
    Attribute("election", "fraction, 0..1", "vote share in the mayoral election of the year; not a signed margin"),
)
_FILES = published_files(_WARDS, _CONTIGUITY, _CODES)
_SOURCE = (
    "Ward data: Godoy-Lorite & Jones, arXiv:2003.07146. "
    "Boundaries: London Datastore, statistical GIS boundary files (queen contiguity by R spdep::poly2nb)."
)
_LICENCE = (
    "Boundaries: Open Government Licence (contains National Statistics and Ordnance Survey data, Crown copyright), "
    "as far as known. Ward attributes: no explicit licence found."
)


def clean_wards(files: Files, *, year: int) -> Tables:
    """Return nodes and edges: the wards of the boundary file that have data, in its order; queen contiguity."""
    wards = pd.read_csv(files[_WARDS]).set_index("0ward")
    codes = pd.read_csv(files[_CODES]).iloc[:, 1]
    kept = np.flatnonzero(codes.isin(wards.index))
    touching = pd.read_csv(files[_CONTIGUITY], index_col=0).to_numpy()[np.ix_(kept, kept)]
    columns = {
        "x": "7xcoord",
        "y": "8ycoord",
        "edu": "4edu",
        "age": "5age",
        "gender": "6gender",
        "income": "9income",
        "populationsize": "10populationsize",
        "election": ELECTIONS[year],
    }
    chosen = wards.loc[codes.iloc[kept]]
    nodes = number_nodes(
        {
            "ward": chosen.index.to_numpy(),
            "area": chosen["1area"].to_numpy(dtype=np.int64),
            **{name: chosen[column].to_numpy(dtype=np.float64) for name, column in columns.items()},
        }
    )
    return {"nodes": nodes, "edges": simple_edges(*np.nonzero(touching))}


def _recipe(year: int) -> Recipe:
    info = Info(
        name=f"london-{year}",
        title=f"London wards: election, {year}",
        n_nodes=608,
        n_edges=1750,
        attributes=_ATTRIBUTES,
        outcomes=("income", "edu", "age", "election"),
        source=_SOURCE,
        licence=_LICENCE,
        remarks=(
            "further columns: ward (GSS code), area (borough 0-32), x, y (longitude, latitude)",
            "only election differs between the years",
            "the paper's printed numbers for election are for its logarithm; it counts 4 attributes but uses all 6",
        ),
    )
    return Recipe(info, _FILES, partial(clean_wards, year=year))


LONDON_RECIPES = tuple(_recipe(year) for year in ELECTIONS)
