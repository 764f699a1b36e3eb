"""Counties and wards: the data of the U.S., of the CDC and of London, from the files as they were published."""

from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from graphmrf_paper.dataset import (
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

ELECTION_YEARS = (2012, 2016)
# Oglala Lakota took a new code in 2015; income, education and votes still have the one of Shannon County.
_RENAMED = {"46102": "46113"}
_SHARES = {f"sh{miles:03d}m": f"sh_usfr_within_{miles}miles" for miles in (50, 100, 500)}

_US_ATTRIBUTES = (
    Attribute("sh050m", "fraction of friends", "share of Facebook friends living within 50 miles (same in both years)"),
    Attribute("sh100m", "fraction of friends", "... within 100 miles"),
    Attribute("sh500m", "fraction of friends", "... within 500 miles"),
    Attribute("income", "US dollars per year", "median household income"),
    Attribute("migration", "per 1000 inhabitants", "net migration rate"),
    Attribute("birth", "per 1000 inhabitants", "birth rate"),
    Attribute("death", "per 1000 inhabitants", "death rate"),
    Attribute("education", "percent of adults", "share with a bachelor degree or higher"),
    Attribute("unemployment", "percent of labour force", "unemployment rate"),
    Attribute("election", "fraction, -1..1", "(gop - dem) / (gop + dem), positive where the Republicans won"),
)
_US_SOURCE = (
    "Facebook ties and shares: social connectedness data of Bailey et al. 2018 as published by the New York Times "
    "(Badger & Bui 2018). Demographics: USDA Economic Research Service county-level tables. "
    "Votes: table with the layout of github.com/tonmcg/US_County_Level_Election_Results_08-20."
)
_US_LICENCE = (
    "USDA tables: U.S. government work (public domain as far as known). Votes: no explicit licence found. "
    "Facebook/NYT aggregates: no explicit licence found; research use, cite the papers."
)
_US_TABLES = ("county-info", "top", "income", "population", "education", "unemployment", "election")
_US_FILES = published_files(*(f"county_facebook/{name}.csv" for name in _US_TABLES))


def clean_counties(files: Files, *, year: int) -> Tables:
    """Return nodes and edges of one year.

    Nodes are the counties in all six tables, with Facebook shares, by FIPS code. A county is joined to each of the 12
    others in its list of strongest ties.
    """
    tables = {Path(path).stem: file for path, file in files.items()}
    shares = _by_fips(tables["county-info"], "county").rename(index=_RENAMED).dropna(subset=list(_SHARES.values()))
    people = _by_fips(tables["population"], "FIPS").rename(index=_RENAMED)
    work = _by_fips(tables["unemployment"], "FIPS").rename(index=_RENAMED)
    income, education = (_by_fips(tables[name], "FIPS") for name in ("income", "education"))
    votes = _by_fips(tables["election"], "fips_code")
    joined = shares.join([people.add_prefix("p."), work.add_prefix("w.")], how="inner")
    joined = joined.join([income, education, votes.drop(columns="county")], how="inner").sort_index()
    ties = pd.read_csv(tables["top"])
    u, v = (locate(ties[end], joined["id"]) for end in ("county_id", "connect_id"))
    return {"nodes": _nodes(joined, year), "edges": simple_edges(u, v)}


def _by_fips(file: Path, code: str) -> pd.DataFrame:
    frame = pd.read_csv(file, dtype={code: "str"}, thousands=",", encoding="utf-8")
    return frame.set_index(frame[code].str.zfill(5)).drop(columns=code).rename_axis("fips")


def _nodes(joined: pd.DataFrame, year: int) -> pd.DataFrame:
    dem, gop = (joined[f"{party}_{year}"].to_numpy(dtype=np.int64) for party in ("dem", "gop"))
    measured = {
        **_SHARES,
        "income": f"MedianIncome{year}",
        "migration": f"p.R_NET_MIG_{year}",
        "birth": f"p.R_birth_{year}",
        "death": f"p.R_death_{year}",
        "education": f"BachelorRate{year}",
        "unemployment": f"w.Unemployment_rate_{year}",
    }
    return number_nodes(
        {
            "fips": joined.index.to_numpy(),
            "county": joined["p.Area_Name"].to_numpy(),
            "state": joined["p.State"].to_numpy(),
            **{name: joined[column].to_numpy(dtype=np.float64) for name, column in measured.items()},
            # 12 decimals: more than the votes can tell apart, and the same number after a trip through text.
            "election": ((gop - dem) / (gop + dem)).round(12),
            "dem_votes": dem,
            "gop_votes": gop,
        }
    )


def _us_recipe(year: int) -> Recipe:
    info = Info(
        name=f"us-{year}",
        title=f"U.S. counties: Facebook ties, {year}",
        n_nodes=3106,
        n_edges=22574,
        attributes=_US_ATTRIBUTES,
        outcomes=("income", "education", "unemployment", "election"),
        source=_US_SOURCE,
        licence=_US_LICENCE,
        remarks=(
            "further columns: fips, county, state, dem_votes, gop_votes",
            "12 ties per county (the paper says about 20); mean degree 14.5, largest 210",
            *(("income and education of FIPS 46113 are missing",) if year == 2016 else ()),
        ),
    )
    return Recipe(info, _US_FILES, partial(clean_counties, year=year))


US_RECIPES = tuple(_us_recipe(year) for year in ELECTION_YEARS)


CLIMATE_YEARS = tuple(range(2003, 2009))
_BORDERS = "climate/adjacency.txt"
CDC_TABLES = {
    "airT": "climate/max_air_temperature.txt",
    "landT": "climate/land_surface_temperature.txt",
    "precipitation": "climate/percipitation.txt",  # spelled like this where it is published
    "sunlight": "climate/sunlight.txt",
    "pm2.5": "climate/fine_particulate_matter.txt",
}
_CDC_ATTRIBUTES = (
    Attribute("airT", "degrees C", "average daily maximum air temperature"),
    Attribute("landT", "degrees C", "average day land surface temperature"),
    Attribute("precipitation", "mm per day", "average daily precipitation"),
    Attribute("sunlight", "kJ per square metre", "average daily sunlight"),
    Attribute("pm2.5", "microgram per cubic metre", "average fine particulate matter"),
)
_CDC_FILES = published_files(_BORDERS, *CDC_TABLES.values())
_CDC_SOURCE = (
    "CDC WONDER environmental data (NLDAS air temperature, precipitation and sunlight; MODIS land surface temperature; "
    "PM2.5). Borders: U.S. Census Bureau county adjacency file."
)
_CDC_LICENCE = "U.S. government data (public domain as far as known); CDC WONDER asks to be cited."


def clean_climate(files: Files, *, year: int) -> Tables:
    """Return nodes and edges of one year: the counties in the border list and in all five tables, by FIPS code."""
    # Only the first neighbour of a county repeats its code.
    borders = pd.read_csv(files[_BORDERS], sep="\t", header=None, dtype="str", encoding="latin-1")
    county, neighbour = borders[1].ffill(), borders[3]
    tables = {name: _year(files, path, year) for name, path in CDC_TABLES.items()}
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


def _cdc_recipe(year: int) -> Recipe:
    info = Info(
        name=f"cdc-{year}",
        title=f"U.S. counties: climate, {year}",
        n_nodes=3107,
        n_edges=9230,
        attributes=_CDC_ATTRIBUTES,
        outcomes=tuple(CDC_TABLES),
        source=_CDC_SOURCE,
        licence=_CDC_LICENCE,
        remarks=(
            "further columns: fips, county, state",
            "the paper uses 2008; the same 3107 counties in every year",
        ),
    )
    return Recipe(info, _CDC_FILES, partial(clean_climate, year=year))


CDC_RECIPES = tuple(_cdc_recipe(year) for year in CLIMATE_YEARS)


ELECTIONS = {2012: "3may12", 2016: "2may16"}
_WARDS, _CONTIGUITY, _CODES = "london/MaycoordLondon.csv", "london/W.csv", "london/code.csv"
_LONDON_ATTRIBUTES = (
    Attribute("edu", "level, about 0-4", "average education level"),
    Attribute("age", "years", "average age"),
    Attribute("gender", "fraction", "share of one gender (0.42-0.57; probably women)"),
    Attribute("income", "thousand pounds per year (presumed)", "income"),
    Attribute("populationsize", "persons", "population used for the averages"),
    Attribute("election", "fraction, 0..1", "vote share in the mayoral election of the year; not a signed margin"),
)
_LONDON_FILES = published_files(_WARDS, _CONTIGUITY, _CODES)
_LONDON_SOURCE = (
    "Ward data: Godoy-Lorite & Jones, arXiv:2003.07146. "
    "Boundaries: London Datastore, statistical GIS boundary files (queen contiguity by R spdep::poly2nb)."
)
_LONDON_LICENCE = (
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


def _london_recipe(year: int) -> Recipe:
    info = Info(
        name=f"london-{year}",
        title=f"London wards: election, {year}",
        n_nodes=608,
        n_edges=1750,
        attributes=_LONDON_ATTRIBUTES,
        outcomes=("income", "edu", "age", "election"),
        source=_LONDON_SOURCE,
        licence=_LONDON_LICENCE,
        remarks=(
            "further columns: ward (GSS code), area (borough 0-32), x, y (longitude, latitude)",
            "only election differs between the years",
            "the paper's printed numbers for election are for its logarithm; it counts 4 attributes but uses all 6",
        ),
    )
    return Recipe(info, _LONDON_FILES, partial(clean_wards, year=year))


LONDON_RECIPES = tuple(_london_recipe(year) for year in ELECTIONS)
