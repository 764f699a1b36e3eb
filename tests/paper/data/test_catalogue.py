"""Names, folders of raw files, the cache of cleaned copies, and downloads that go well and badly."""

import csv
import errno
import hashlib
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pooch
import pyarrow as pa
import pyarrow.parquet
import pytest

from graphmrf import LabelPropagation, datasets
from graphmrf.datasets import load
from graphmrf.errors import FetchError, InvalidInputError
from graphmrf_paper import catalogue
from mirror import EDGES, NODES, Mirror, serve, tiny, write_raw

pytestmark = pytest.mark.slow

EXPECTED = {
    *("us-2012", "us-2016", "london-2012", "london-2016", "elliptic"),
    *(f"cdc-{year}" for year in range(2003, 2009)),
    *(f"twitch-{code}" for code in ("de", "engb", "es", "fr", "ptbr", "ru")),
    *(f"synthetic-paper-h{level}" for level in (1, 10, 100)),
}


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    return write_raw(tmp_path / "raw")


def kept(cache: Path) -> list[str]:
    """Return everything in the cache of cleaned copies."""
    return sorted(str(path.relative_to(cache / "clean")) for path in (cache / "clean").rglob("*"))


def test_every_name_is_there_and_described() -> None:
    assert set(datasets.names()) >= EXPECTED
    for name in datasets.names():
        info = datasets.info(name)
        assert info.name == name
        assert info.title
        assert info.source
        assert info.licence
        assert set(info.outcomes) <= set(info.columns)


@pytest.mark.parametrize(
    ("name", "near"), [("us-2015", "us-2016"), ("Twitch-PT", "twitch-ptbr"), ("elliptc", "elliptic")]
)
def test_unknown_name(name: str, near: str) -> None:
    with pytest.raises(InvalidInputError, match=rf"no data set is called '{name}'; did you mean .*{near}"):
        load(name)


def test_a_name_like_no_other_lists_all() -> None:
    with pytest.raises(InvalidInputError, match="there are us-2012, us-2016"):
        datasets.info("%")


@pytest.mark.parametrize("below", ["", "datasets"])
def test_a_folder_of_raw_files(below: str, tmp_path: Path, cache: Path) -> None:
    write_raw(tmp_path / "checkout" / below)
    data = load("tiny", data_dir=tmp_path / "checkout", cache_dir=cache)
    assert data.frame["y"].tolist()[::2] == [1.5, 3.25]
    assert data.table.outcome("y")[2] == 3.25
    assert data.edges.to_numpy().tolist() == [[0, 1], [1, 2]]
    assert repr(data) == "Dataset('tiny': 3 nodes, 2 edges, 1 attribute)"


def test_columns_of_a_data_set_go_beside_its_graph(raw: Path, cache: Path) -> None:
    data = load("tiny", data_dir=raw, cache_dir=cache)
    y = data.frame["y"]
    found: Any = LabelPropagation(alpha=0.5).fit(data.graph, None, y.iloc[::-1]).predict()
    assert found.index.equals(data.graph.ids)
    assert found.dropna()[y.notna()].tolist() == y.dropna().tolist()


def test_the_folder_comes_from_the_environment(raw: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHMRF_DATA", str(raw))
    assert load("tiny", cache_dir=cache).graph.n_nodes == 3


def test_a_folder_without_the_files_lists_them(raw: Path, cache: Path) -> None:
    (raw / EDGES).unlink()
    with pytest.raises(InvalidInputError, match=rf"lacks 1 of the 2 raw files of tiny: {EDGES}; put all of them there"):
        load("tiny", data_dir=raw, cache_dir=cache)
    with pytest.raises(InvalidInputError, match=r"lacks 7 of the 7 raw files of us-2016: county_facebook/county-info"):
        load("us-2016", data_dir=raw, cache_dir=cache)
    with pytest.raises(InvalidInputError, match="no such folder; check data_dir or GRAPHMRF_DATA"):
        load("tiny", data_dir=raw / "nowhere", cache_dir=cache)
    assert not cache.exists()


def test_other_files_of_the_same_shape_are_told(raw: Path, cache: Path) -> None:
    (raw / NODES).write_bytes((raw / NODES).read_bytes().replace(b"1.5", b"9.5"))
    data = load("tiny", data_dir=raw, cache_dir=cache)
    assert data.frame["y"].iloc[0] == 9.5
    assert data.notes == (f"{NODES} is not byte for byte the published file",)


def test_files_of_another_size_are_refused(raw: Path, cache: Path) -> None:
    (raw / NODES).write_text("node,code,y\n0,007,1.5\n")
    with pytest.raises(InvalidInputError, match=r"tiny has 3 nodes and 2 edges, but these files give 1 and 2"):
        load("tiny", data_dir=raw, cache_dir=cache)
    assert not cache.exists()


def test_files_of_another_layout_are_refused(raw: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def clean(_: object) -> dict[str, pd.DataFrame]:
        raise KeyError("y")

    recipe = tiny()
    monkeypatch.setitem(catalogue.RECIPES, "tiny", replace(recipe, clean=clean))
    with pytest.raises(InvalidInputError, match=r"tiny: cannot clean .*nodes.csv.*\(KeyError: 'y'\); give the files"):
        load("tiny", data_dir=raw, cache_dir=cache)


def _unneeded(files: object) -> dict[str, pd.DataFrame]:
    raise AssertionError(f"{files} are cleaned again")


def test_a_copy_is_kept_and_read(raw: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = load("tiny", data_dir=raw, cache_dir=cache)
    folder = kept(cache)[0]
    assert kept(cache) == [folder, *(f"{folder}/{name}" for name in ("edges.parquet", "nodes.parquet", "sha256.json"))]
    stamp = pa.parquet.read_schema(cache / "clean" / folder / "nodes.parquet").metadata[b"graphmrf"].decode()
    assert '"format": 1' in stamp
    assert all(str(sha256) in stamp for sha256 in tiny().files.values())
    monkeypatch.setitem(catalogue.RECIPES, "tiny", replace(tiny(), clean=_unneeded))
    again = load("tiny", data_dir=raw, cache_dir=cache)
    pd.testing.assert_frame_equal(first.frame, again.frame)


@pytest.mark.parametrize("damage", [b"", b"PAR1 but cut short", None])
def test_a_damaged_copy_is_made_anew(damage: bytes | None, raw: Path, cache: Path) -> None:
    load("tiny", data_dir=raw, cache_dir=cache)
    file = next((cache / "clean").rglob("nodes.parquet"))
    whole = file.read_bytes()
    if damage is None:
        file.unlink()
    else:
        file.write_bytes(damage)
    assert load("tiny", data_dir=raw, cache_dir=cache).graph.n_nodes == 3
    assert file.read_bytes() == whole


@pytest.mark.parametrize("name", ["nodes.parquet", "edges.parquet", "sha256.json"])
def test_no_flipped_bit_of_a_copy_is_believed(name: str, raw: Path, cache: Path) -> None:
    expected = load("tiny", data_dir=raw, cache_dir=cache)
    file, rng = next((cache / "clean").rglob(name)), np.random.default_rng(0)
    whole = file.read_bytes()
    for place in rng.integers(0, len(whole), 40):
        flipped = bytearray(whole)
        flipped[place] ^= 1 << rng.integers(0, 8)
        file.write_bytes(flipped)
        found = load("tiny", data_dir=raw, cache_dir=cache)
        pd.testing.assert_frame_equal(found.frame, expected.frame)
        pd.testing.assert_frame_equal(found.edges, expected.edges)
        assert file.read_bytes() == whole


def test_a_copy_with_another_stamp_is_not_believed(raw: Path, cache: Path) -> None:
    load("tiny", data_dir=raw, cache_dir=cache)
    file = next((cache / "clean").rglob("nodes.parquet"))
    table = pa.parquet.read_table(file)
    stamped = table.slice(0, 1).replace_schema_metadata({**table.schema.metadata, b"graphmrf": b"{}"})
    pa.parquet.write_table(stamped, file)
    assert load("tiny", data_dir=raw, cache_dir=cache).graph.n_nodes == 3


def test_another_format_has_a_copy_of_its_own(raw: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load("tiny", data_dir=raw, cache_dir=cache)
    monkeypatch.setattr(catalogue, "CACHE_FORMAT", catalogue.CACHE_FORMAT + 1)
    load("tiny", data_dir=raw, cache_dir=cache)
    assert len(list((cache / "clean").iterdir())) == 2


@pytest.mark.parametrize("writes", [0, 1])
@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
def test_disk_full_or_interrupted_while_caching(
    writes: int, error: BaseException, raw: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_table, calls = pa.parquet.write_table, []

    def fill(table: pa.Table, path: Path, *rest: Any) -> None:
        calls.append(path)
        if len(calls) > writes:
            Path(path).write_bytes(b"PAR1 half a ta")
            raise error
        write_table(table, path, *rest)

    with monkeypatch.context() as full:
        full.setattr(pa.parquet, "write_table", fill)
        if isinstance(error, OSError):
            (note,) = load("tiny", data_dir=raw, cache_dir=cache).notes
            assert "cannot be cached in" in note
            assert "No space left on device" in note
            assert "free some space, or choose another folder" in note
        else:
            with pytest.raises(KeyboardInterrupt):
                load("tiny", data_dir=raw, cache_dir=cache)
    assert kept(cache) == []
    assert load("tiny", data_dir=raw, cache_dir=cache).graph.n_nodes == 3


@pytest.mark.parametrize("damaged", [False, True])
def test_loading_at_the_same_time(damaged: bool, raw: Path, cache: Path) -> None:
    if damaged:
        load("tiny", data_dir=raw, cache_dir=cache)
        next((cache / "clean").rglob("nodes.parquet")).write_text("PAR1")
    with ThreadPoolExecutor(8) as pool:
        loaded = list(pool.map(lambda _: load("tiny", data_dir=raw, cache_dir=cache), range(32)))
    assert all(data.graph.n_edges == 2 for data in loaded)
    assert len(kept(cache)) == 4


def left(cache: Path) -> list[str]:
    """Return every file in the cache, with its place."""
    return sorted(str(path.relative_to(cache)) for path in cache.rglob("*") if path.is_file())


def works(cache: Path, mirror: Mirror) -> None:
    data = load("tiny", cache_dir=cache, mirror=mirror.url)
    assert data.frame["y"].isna().tolist() == [False, True, False]
    assert left(cache)[-2:] == [f"raw/cf60223/{EDGES}", f"raw/cf60223/{NODES}"]
    assert len(left(cache)) == 5  # and the two cleaned tables with their sums


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
    assert len(left(cache)) == 5


@pytest.mark.skipif(sys.platform != "linux", reason="the environment does not move the cache folder")
def test_the_cache_is_that_of_the_platform(raw: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
    assert load("tiny", data_dir=raw).graph.n_nodes == 3
    assert kept(tmp_path / "user" / "graphmrf")


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
    with pytest.raises(InvalidInputError, match=r"cannot keep downloads in .*Not a directory.*cache_dir"):
        load("tiny", cache_dir=tmp_path / "file" / "cache", mirror=mirror.url)


def test_files_without_a_checksum_are_not_downloaded() -> None:
    recipe = tiny()
    with pytest.raises(AssertionError, match="tiny is downloaded, so each file needs a checksum"):
        replace(recipe, files={**recipe.files, EDGES: None})


@pytest.mark.parametrize("name", ["london-2016", "cdc-2007"])
def test_the_published_files_through_a_server(name: str, cache: Path, raw_data: Path) -> None:
    paths = list(catalogue.recipe(name).files)
    with serve({path: (raw_data / path).read_bytes() for path in paths}) as running:
        downloaded = load(name, cache_dir=cache, mirror=running.url)
    found = load(name, cache_dir=cache.with_name("other"), data_dir=raw_data)
    pd.testing.assert_frame_equal(downloaded.frame, found.frame)
    pd.testing.assert_frame_equal(downloaded.edges, found.edges)


@pytest.mark.parametrize("mirror", ["gopher://127.0.0.1/", "no address at all", "://"])
def test_a_mirror_that_is_no_address_is_named(mirror: str, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GRAPHMRF_DATA", raising=False)
    with pytest.raises(FetchError, match="check mirror or GRAPHMRF_MIRROR") as caught:
        load("tiny", cache_dir=cache, mirror=mirror)
    assert "network" not in str(caught.value)


def test_a_cache_that_cannot_be_a_folder_is_not_told_to_be_full(raw: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    loaded = load("tiny", data_dir=raw, cache_dir=tmp_path / "file")
    assert loaded.graph.n_nodes == 3
    (note,) = loaded.notes
    assert "Not a directory); choose another folder" in note


def test_the_checksums_on_record_are_those_of_the_published_files(raw_data: Path) -> None:
    with Path(catalogue.__file__).with_name("checksums.csv").open() as lines:
        record = list(csv.DictReader(lines))
    assert len(record) == 60
    there = [row for row in record if (raw_data / row["path"]).is_file()]
    for row in there:
        content = (raw_data / row["path"]).read_bytes()
        assert (len(content), hashlib.sha256(content).hexdigest()) == (int(row["bytes"]), row["sha256"])
    assert len(there) > 30
