"""Downloads that go well and badly: a clear error, nothing broken in the cache, and a second try that works."""

import errno
from pathlib import Path
from typing import Any

import pandas as pd
import pooch
import pytest

from graphmrf.datasets import catalogue, load
from graphmrf.errors import FetchError, InvalidInputError
from mirror import EDGES, NODES, Mirror, serve, tiny


def left(cache: Path) -> list[str]:
    """Return every file in the cache, with its place."""
    return sorted(str(path.relative_to(cache)) for path in cache.rglob("*") if path.is_file())


def works(cache: Path, mirror: Mirror) -> None:
    data = load("tiny", cache_dir=cache, mirror=mirror.url)
    assert data.frame["y"].isna().tolist() == [False, True, False]
    assert left(cache)[-2:] == [f"raw/cf60223/{EDGES}", f"raw/cf60223/{NODES}"]
    assert len(left(cache)) == 4  # and the two cleaned tables


def test_a_data_set_is_downloaded_once(cache: Path, mirror: Mirror) -> None:
    heard: list[str] = []
    first = load("tiny", cache_dir=cache, mirror=mirror.url, advance=heard.append)
    again = load("tiny", cache_dir=cache, mirror=mirror.url)
    assert heard == mirror.asked == [NODES, EDGES]
    assert first.frame["code"].tolist() == ["007", "008", "009"]
    assert first.graph.n_edges == 2
    assert first.notes == ()
    pd.testing.assert_frame_equal(first.frame, again.frame)


def test_places_come_from_the_environment(cache: Path, mirror: Mirror, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHMRF_CACHE", str(cache))
    monkeypatch.setenv("GRAPHMRF_MIRROR", mirror.url + "/")
    assert load("tiny").graph.n_nodes == 3
    assert len(left(cache)) == 4


def test_pooch_is_quiet(cache: Path, mirror: Mirror, capfd: pytest.CaptureFixture[str]) -> None:
    level = pooch.get_logger().level
    load("tiny", cache_dir=cache, mirror=mirror.url)
    assert capfd.readouterr() == ("", "")
    assert pooch.get_logger().level == level


def test_partial_download(cache: Path, mirror: Mirror) -> None:
    mirror.withheld[EDGES] = 3
    with pytest.raises(FetchError, match=rf"cannot download {mirror.url}/{EDGES}.*try again.*GRAPHMRF_DATA"):
        load("tiny", cache_dir=cache, mirror=mirror.url)
    assert left(cache) == [f"raw/cf60223/{NODES}"]
    mirror.withheld.clear()
    works(cache, mirror)
    assert mirror.asked == [NODES, EDGES, EDGES]  # what arrived whole is not asked for again


def test_wrong_checksum(cache: Path, mirror: Mirror) -> None:
    good = mirror.content[NODES]
    mirror.content[NODES] = good.replace(b"1.5", b"9.5")
    with pytest.raises(FetchError, match=r"nodes.csv sent is not the published file \(its SHA-256 differs\)"):
        load("tiny", cache_dir=cache, mirror=mirror.url)
    assert left(cache) == []
    mirror.content[NODES] = good
    works(cache, mirror)


def test_damaged_download_in_the_cache(cache: Path, mirror: Mirror) -> None:
    damaged = cache / "raw" / "cf60223" / NODES
    damaged.parent.mkdir(parents=True)
    damaged.write_text("half a ta")
    works(cache, mirror)


def test_missing_on_the_server(cache: Path, mirror: Mirror) -> None:
    body = mirror.content.pop(NODES)
    with pytest.raises(FetchError, match=r"nodes.csv \(HTTP 404\)"):
        load("tiny", cache_dir=cache, mirror=mirror.url)
    assert left(cache) == []
    mirror.content[NODES] = body
    works(cache, mirror)


def test_no_network(cache: Path, mirror: Mirror) -> None:
    with serve({}) as gone:
        pass
    with pytest.raises(FetchError, match=r"\(ConnectionError\); check the network and try again"):
        load("tiny", cache_dir=cache, mirror=gone.url)
    assert left(cache) == []
    works(cache, mirror)


def test_no_such_host(cache: Path) -> None:
    with pytest.raises(FetchError, match="check the network"):
        load("tiny", cache_dir=cache, mirror="http://nowhere.invalid")
    assert left(cache) == []


def test_disk_full_while_downloading(cache: Path, mirror: Mirror, monkeypatch: pytest.MonkeyPatch) -> None:
    def fill(_self: object, _url: str, output_file: str, *_: Any) -> None:
        Path(output_file).write_text("half a ta")
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as full:
        full.setattr(pooch.HTTPDownloader, "__call__", fill)
        with pytest.raises(FetchError, match=r"cannot keep downloads in .*No space left.*GRAPHMRF_CACHE"):
            load("tiny", cache_dir=cache, mirror=mirror.url)
    assert left(cache) == []
    works(cache, mirror)


def test_cache_in_a_place_that_refuses(tmp_path: Path, mirror: Mirror) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FetchError, match=r"cannot keep downloads in .*Not a directory.*cache_dir"):
        load("tiny", cache_dir=tmp_path / "file" / "cache", mirror=mirror.url)


def test_files_without_a_checksum_are_not_downloaded(
    cache: Path, mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(catalogue._RECIPES, "tiny", tiny(edges=None))
    with pytest.raises(InvalidInputError, match=r"no checksum of its files is on record.*tiny/edges.csv.*data_dir"):
        load("tiny", cache_dir=cache, mirror=mirror.url)
    assert mirror.asked == []


@pytest.mark.parametrize("name", ["london-2016", "cdc-2007"])
def test_the_published_files_through_a_server(name: str, cache: Path, raw_data: Path) -> None:
    paths = [file.path for file in catalogue.recipe(name).files]
    with serve({path: (raw_data / path).read_bytes() for path in paths}) as running:
        downloaded = load(name, cache_dir=cache, mirror=running.url)
    found = load(name, cache_dir=cache.with_name("other"), data_dir=raw_data)
    pd.testing.assert_frame_equal(downloaded.frame, found.frame)
    pd.testing.assert_frame_equal(downloaded.edges, found.edges)
