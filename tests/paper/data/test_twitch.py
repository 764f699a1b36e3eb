"""Twitch: repeated rows and features, and the real tables cell by cell."""

from pathlib import Path

import pandas as pd
import pytest

from graphmrf.datasets import load
from graphmrf_paper import catalogue, twitch
from published import same_as_reference, same_table

pytestmark = pytest.mark.slow


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """Three users, one of them listed twice."""
    made = {
        "edges.csv": "from,to\n2,0\n0,2\n1,2\n1,1\n",
        "features.json": '{"2": [7, 3, 7], "0": [3169], "1": []}',
        "target.csv": "id,days,mature,views,partner,new_id\n30,300,True,9,False,2\n10,100,False,8,True,0\n"
        "20,200,True,5,False,1\n30,300,True,10,False,2\n",
    }
    for part, text in made.items():
        (tmp_path / part).write_text(text)
    return {f"twitch/FR/musae_FR_{part}": tmp_path / part for part in made}


def test_users_by_number_the_last_row_wins(files: dict[str, Path]) -> None:
    nodes = twitch.clean_streamers(files, code="FR")["nodes"]
    assert nodes["twitch_id"].tolist() == [10, 20, 30]
    assert nodes["views"].tolist() == [8, 5, 10]
    assert nodes[["mature", "partner"]].to_numpy().tolist() == [[0, 1], [1, 0], [1, 0]]


def test_edges_and_features_count_once(files: dict[str, Path]) -> None:
    tables = twitch.clean_streamers(files, code="FR")
    assert tables["edges"].to_numpy().tolist() == [[0, 2], [1, 2]]
    assert tables["features"].to_numpy().tolist() == [[0, 3169], [2, 3], [2, 7]]


def test_every_country_can_be_downloaded() -> None:
    for code in ("de", "engb", "es", "fr", "ptbr", "ru"):
        assert len(catalogue.recipe(f"twitch-{code}").files) == 3


@pytest.mark.parametrize("code", ["DE", "ENGB", "PTBR"])
def test_equal_to_the_reference(code: str, cache: Path, raw_data: Path, clean_data: Path) -> None:
    data = load(f"twitch-{code.lower()}", data_dir=raw_data, cache_dir=cache)
    same_as_reference(data, clean_data / "twitch" / code, "nodes")
    same_table(data.extra["features"], pd.read_csv(clean_data / "twitch" / code / "features.csv.gz"))
