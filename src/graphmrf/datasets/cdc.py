"""U.S. counties: borders and yearly climate averages, 2003 to 2008."""

from functools import partial

import numpy as np
import pandas as pd

from graphmrf.datasets.dataset import (
    Attribute,
    Files,
    Info,
    Recipe,
    Tables,
    locate,
    number_nodes,
    published_files,
    simple_edges,
)

CLIMATE_YEARS = tuple(range(2003, 2009))
_BORDERS = "climate/adjacency.txt"
_TABLES = {
    "airT": "climate/max_air_temperature.txt",
    "landT": "climate/land_surface_temperature.txt",
    "precipitation": "climate/percipitation.txt",  # spelled like this where it is published
    "sunlight": "climate/sunlight.txt",
    "pm2.5": "climate/fine_particulate_matter.txt",
}
_ATTRIBUTES = (
    Attribute("airT", "degrees C", "average daily maximum air temperature"),
    Attribute("landT", "degrees C", "average day land surface temperature"),
    Attribute("precipitation", "mm per day", "average daily precipitation"),
    Attribute("sunlight", "kJ per square metre", "average daily sunlight"),
    Attribute("pm2.5", "microgram per cubic metre", "average fine particulate matter"),
)
_FILES = published_files(_BORDERS, *_TABLES.values())
_SOURCE = (
    "CDC WONDER environmental data (NLDAS air temperature, precipitation and sunlight; MODIS land surface temperature; "
    "PM2.5). Borders: U.S. Census Bureau county adjacency file."
)
_LICENCE = "U.S. government data (public domain as far as known); CDC WONDER asks to be cited."


def clean_climate(files: Files, *, year: int) -> Tables:
    """Return nodes and edges of one year: the counties in the border list and in all five tables, by FIPS code."""
    # Only the first neighbour of a county repeats its code.
    borders = pd.read_csv(files[_BORDERS], sep="\t", header=None, dtype="str", encoding="latin-1")
    county, neighbour = borders[1].ffill(), borders[3]
    tables = {name: _year(files, path, year) for name, path in _TABLES.items()}
    fips = pd.Index(county.unique())
    for table in tables.values():
        fips = fips.intersection(table.index)
    fips = fips.sort_values()
    place = tables["airT"].loc[fips, "County"].str.rsplit(", ", n=1)
    nodes = number_nodes(
        {
            "fips": fips.to_numpy(),
            "county": place.str[0].to_numpy(),
            "state": place.str[1].to_numpy(),
            **{name: table.loc[fips].iloc[:, -1].to_numpy(dtype=np.float64) for name, table in tables.items()},
        }
    )
    return {"nodes": nodes, "edges": simple_edges(locate(county, fips), locate(neighbour, fips))}


def _year(files: Files, path: str, year: int) -> pd.DataFrame:
    frame = pd.read_csv(files[path], sep="\t", dtype={"County Code": "str"}, encoding="latin-1")
    return frame[frame["Year"] == year].set_index("County Code")


def _recipe(year: int) -> Recipe:
    info = Info(
        name=f"cdc-{year}",
        title=f"U.S. counties: climate, {year}",
        n_nodes=3107,
        n_edges=9230,
        attributes=_ATTRIBUTES,
        outcomes=tuple(_TABLES),
        source=_SOURCE,
        licence=_LICENCE,
        remarks=(
            "further columns: fips, county, state",
            "the paper uses 2008; the same 3107 counties in every year",
        ),
    )
    return Recipe(info, _FILES, partial(clean_climate, year=year))


CDC_RECIPES = tuple(_recipe(year) for year in CLIMATE_YEARS)
