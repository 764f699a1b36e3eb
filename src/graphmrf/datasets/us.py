"""U.S. counties: Facebook ties, demographics and the presidential elections of 2012 and 2016."""

from functools import partial
from pathlib import Path

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

ELECTION_YEARS = (2012, 2016)
# Oglala Lakota took a new code in 2015; income, education and votes still have the one of Shannon County.
_RENAMED = {"46102": "46113"}
_SHARES = {f"sh{miles:03d}m": f"sh_usfr_within_{miles}miles" for miles in (50, 100, 500)}

_ATTRIBUTES = (
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
_SOURCE = (
    "Facebook ties and shares: social connectedness data of Bailey et al. 2018 as published by the New York Times "
    "(Badger & Bui 2018). Demographics: USDA Economic Research Service county-level tables. "
    "Votes: table with the layout of github.com/tonmcg/US_County_Level_Election_Results_08-20."
)
_LICENCE = (
    "USDA tables: U.S. government work (public domain as far as known). Votes: no explicit licence found. "
    "Facebook/NYT aggregates: no explicit licence found; research use, cite the papers."
)
_TABLES = ("county-info", "top", "income", "population", "education", "unemployment", "election")
_FILES = published_files(*(f"county_facebook/{name}.csv" for name in _TABLES))


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


def _recipe(year: int) -> Recipe:
    info = Info(
        name=f"us-{year}",
        title=f"U.S. counties: Facebook ties, {year}",
        n_nodes=3106,
        n_edges=22574,
        attributes=_ATTRIBUTES,
        outcomes=("income", "education", "unemployment", "election"),
        source=_SOURCE,
        licence=_LICENCE,
        remarks=(
            "further columns: fips, county, state, dem_votes, gop_votes",
            "12 ties per county (the paper says about 20); mean degree 14.5, largest 210",
            *(("income and education of FIPS 46113 are missing",) if year == 2016 else ()),
        ),
    )
    return Recipe(info, _FILES, partial(clean_counties, year=year))


US_RECIPES = tuple(_recipe(year) for year in ELECTION_YEARS)
