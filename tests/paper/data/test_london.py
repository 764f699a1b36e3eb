"""London wards: order, contiguity, election of the year, and the real tables cell by cell."""

from pathlib import Path

import pytest

from graphmrf.datasets import load
from graphmrf_paper import places
from published import same_as_reference

pytestmark = pytest.mark.slow


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """Four wards in the boundary file, two with data, listed the other way round."""
    made = {
        "london/MaycoordLondon.csv": "0ward,1area,2may16,3may12,4edu,5age,6gender,7xcoord,8ycoord,9income,"
        "10populationsize\nE3,7,.28,.23,1.8,50.5,.52,.16,51.4,38.2,8172.0\nE1,0,.49,.45,1.9,46.5,.53,.15,51.5,33.5,8875.0\n",
        "london/code.csv": '"","ELmap$GSS_CODE"\n"1","E1"\n"2","E2"\n"3","E3"\n"4","E4"\n',
        "london/W.csv": '"","0","1","2","3"\n"1",0,.5,.5,0\n"2",1,0,0,0\n"3",.5,0,0,.5\n"4",0,0,1,0\n',
    }
    for path, text in made.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    return {path: tmp_path / path for path in made}


def test_wards_with_data_in_the_order_of_the_boundaries(files: dict[str, Path]) -> None:
    tables = places.clean_wards(files, year=2016)
    assert tables["nodes"]["ward"].tolist() == ["E1", "E3"]
    assert tables["nodes"]["area"].tolist() == [0, 7]
    assert tables["nodes"]["populationsize"].tolist() == [8875, 8172]
    assert tables["edges"].to_numpy().tolist() == [[0, 1]]


def test_only_the_election_depends_on_the_year(files: dict[str, Path]) -> None:
    first, second = (places.clean_wards(files, year=year)["nodes"] for year in (2012, 2016))
    assert first["election"].tolist() == [0.45, 0.23]
    assert second["election"].tolist() == [0.49, 0.28]
    assert first.drop(columns="election").equals(second.drop(columns="election"))


@pytest.mark.parametrize("year", places.ELECTIONS)
def test_equal_to_the_reference(year: int, cache: Path, raw_data: Path, clean_data: Path) -> None:
    data = load(f"london-{year}", data_dir=raw_data, cache_dir=cache)
    same_as_reference(data, clean_data / "london", f"nodes_{year}")
