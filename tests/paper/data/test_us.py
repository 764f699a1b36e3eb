"""U.S. counties: the joining rules on a made-up country, and the real one cell by cell."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from graphmrf.datasets import load
from graphmrf_paper import places
from published import same_table

pytestmark = pytest.mark.slow

# 01001 and 01003 are ordinary, 46102 is Oglala Lakota under its new code, 51515 has no shares, 02158 no income.
RAW = {
    "county-info": "county,id,sh_usfr_within_50miles,sh_usfr_within_100miles,sh_usfr_within_500miles\n"
    "01001,0,.5,.6,.7\n01003,1,.4,.5,.6\n46102,2,.3,.4,.5\n51515,3,NA,NA,NA\n02158,4,.1,.2,.3\n",
    "top": "county_id,connect_id,rank\n0,0,1\n0,1,2\n1,1,1\n1,0,2\n2,2,1\n2,0,2\n2,3,3\n3,1,1\n4,0,1\n",
    "income": 'FIPS,MedianIncome2012,MedianIncome2016\n0,"50,000","60,000"\n1001,"51,441","54,487"\n1003,1,2\n'
    '46113,"28,406",\n51515,1,2\n',
    "population": "FIPS,State,Area_Name,R_birth_2012,R_birth_2016,R_death_2012,R_death_2016,"
    "R_NET_MIG_2012,R_NET_MIG_2016\n"
    "01000,AL,Alabama,1,1,1,1,1,1\n01001,AL,Autauga County,11,12,10,9,-6.1,5.3\n01003,AL,Baldwin County,1,2,3,4,5,6\n"
    "46102,SD,Doña County,1,2,3,4,5,6\n51515,VA,Bedford city,1,2,3,4,5,6\n02158,AK,Kusilvak,1,2,3,4,5,6\n",
    "education": "FIPS,BachelorRate2012,BachelorRate2016\n1001,21.9,27.7\n1003,1,2\n46113,12.5,\n51515,1,2\n2158,1,2\n",
    "unemployment": "FIPS,State,Area_name, Unemployed_2012 ,Unemployment_rate_2012,Unemployment_rate_2016\n"
    '1001,AL,"Autauga County, AL"," 1,779 ",6.9,5.1\n1003,AL,B,1,2,3\n46102,SD,O,1,2,3\n'
    "51515,VA,B,1,2,3\n2158,AK,K,1,2,3\n",
    "election": "fips_code,county,dem_2012,gop_2012,dem_2016,gop_2016\n46113,Shannon County,2922,188,2504,241\n"
    "01001,Autauga County,6354,17366,5908,18110\n01003,B,1,3,1,1\n51515,B,1,2,3,4\n02158,K,1,2,3,4\n",
}


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    for name, text in RAW.items():
        (tmp_path / f"{name}.csv").write_text(text, encoding="utf-8")
    return {f"county_facebook/{name}.csv": tmp_path / f"{name}.csv" for name in RAW}


def test_counties_in_every_table_are_kept_under_one_code(files: dict[str, Path]) -> None:
    nodes = places.clean_counties(files, year=2016)["nodes"]
    assert nodes["fips"].tolist() == ["01001", "01003", "46113"]
    assert nodes["county"].tolist() == ["Autauga County", "Baldwin County", "Doña County"]
    assert nodes["state"].tolist() == ["AL", "AL", "SD"]


def test_values_are_raw_and_missing_stays_missing(files: dict[str, Path]) -> None:
    nodes = places.clean_counties(files, year=2016)["nodes"]
    np.testing.assert_array_equal(nodes["income"], [54487, 2, np.nan])
    np.testing.assert_array_equal(nodes["education"], [27.7, 2, np.nan])
    np.testing.assert_array_equal(nodes["election"].round(6), [0.508036, 0, -0.824408])
    assert places.clean_counties(files, year=2012)["nodes"]["migration"].tolist() == [-6.1, 5, 5]
    assert nodes["gop_votes"].tolist() == [18110, 1, 241]


def test_ties_are_undirected_and_stay_inside(files: dict[str, Path]) -> None:
    assert places.clean_counties(files, year=2012)["edges"].to_numpy().tolist() == [[0, 1], [0, 2]]


@pytest.mark.parametrize("year", places.ELECTION_YEARS)
def test_equal_to_the_reference(year: int, cache: Path, raw_data: Path, clean_data: Path) -> None:
    data = load(f"us-{year}", data_dir=raw_data, cache_dir=cache)
    expected = pd.read_csv(clean_data / "county_facebook" / f"nodes_{year}.csv.gz", dtype={"fips": "str"})
    # The reference table read this UTF-8 name as Latin-1; ours is what the file says.
    expected["county"] = expected["county"].replace("DoÃ±a Ana County", "Doña Ana County")
    same_table(data.table.frame, expected)
    same_table(data.edges, pd.read_csv(clean_data / "county_facebook" / "edges.csv.gz"))
    assert data.graph.n_components == 1
