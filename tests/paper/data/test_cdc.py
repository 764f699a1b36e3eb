"""Climate of U.S. counties: which counties and borders count, and the real tables cell by cell."""

from pathlib import Path

import pytest

from graphmrf.datasets import load
from graphmrf_paper import places
from published import same_as_reference

pytestmark = pytest.mark.slow


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """Three counties in the tables, three in the border list, two in both."""
    borders = '"A County, AL"\t01001\t"A County, AL"\t01001\n\t\t"B County, AL"\t01003\n\t\t"D County, AL"\t01007\n'
    borders += '"B County, AL"\t01003\t"A County, AL"\t01001\n\t\t"B County, AL"\t01003\n'
    borders += '"D County, AL"\t01007\t"A County, AL"\t01001\n'
    made = {"climate/adjacency.txt": borders}
    counties = (("01003", "B County"), ("01001", "A County"), ("01005", "C County"))
    head = '"Notes"\t"County"\t"County Code"\t"Year"\t"Year Code"\tAvg (µg/m³)\r\n'
    for k, path in enumerate(places.CDC_TABLES.values()):
        made[path] = head + "".join(
            f'\t"{name}, AL"\t"{code}"\t"{year}"\t"{year}"\t{k}.{code[-1]}{year % 10}\r\n'
            for year in (2007, 2008)
            for code, name in counties
        )
    for path, text in made.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_bytes(text.encode("latin-1"))
    return {path: tmp_path / path for path in made}


def test_counties_with_borders_and_all_tables(files: dict[str, Path]) -> None:
    tables = places.clean_climate(files, year=2008)
    assert tables["nodes"]["fips"].tolist() == ["01001", "01003"]
    assert tables["nodes"]["county"].tolist() == ["A County", "B County"]
    assert tables["nodes"]["state"].tolist() == ["AL", "AL"]
    assert tables["edges"].to_numpy().tolist() == [[0, 1]]


def test_the_year_is_the_one_asked_for(files: dict[str, Path]) -> None:
    assert places.clean_climate(files, year=2007)["nodes"]["pm2.5"].tolist() == [4.17, 4.37]
    assert places.clean_climate(files, year=2008)["nodes"]["airT"].tolist() == [0.18, 0.38]


@pytest.mark.parametrize("year", places.CLIMATE_YEARS)
def test_equal_to_the_reference(year: int, cache: Path, raw_data: Path, clean_data: Path) -> None:
    data = load(f"cdc-{year}", data_dir=raw_data, cache_dir=cache)
    assert not data.frame.isna().any(axis=None)
    if (clean_data / "climate" / f"nodes_{year}.csv.gz").exists():
        same_as_reference(data, clean_data / "climate", f"nodes_{year}")
    else:
        assert (data.graph.n_nodes, data.graph.n_edges) == (3107, 9230)
