"""Names, folders of raw files, and the cache of cleaned copies."""

import errno
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

from graphmrf import datasets
from graphmrf.datasets import cache as copies
from graphmrf.datasets import catalogue, load
from graphmrf.errors import FetchError, InvalidInputError
from mirror import EDGES, NODES, tiny, write_raw

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
    assert repr(data) == "Dataset('tiny': 3 nodes, 2 edges, 1 attributes)"


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
    assert data.frame["y"][0] == 9.5
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
    monkeypatch.setitem(catalogue._RECIPES, "tiny", type(recipe)(recipe.info, recipe.files, clean))
    with pytest.raises(InvalidInputError, match=r"tiny: cannot clean .*nodes.csv.*\(KeyError: 'y'\); give the files"):
        load("tiny", data_dir=raw, cache_dir=cache)


def test_a_copy_is_kept_and_read(raw: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = load("tiny", data_dir=raw, cache_dir=cache)
    folder = kept(cache)[0]
    assert kept(cache) == [folder, f"{folder}/edges.parquet", f"{folder}/nodes.parquet"]
    stamp = pa.parquet.read_schema(cache / "clean" / folder / "nodes.parquet").metadata[b"graphmrf"].decode()
    assert '"format": 1' in stamp
    assert all(str(file.sha256) in stamp for file in tiny().files)
    monkeypatch.setattr(catalogue, "_cleaned", None)  # not needed again
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


def test_a_copy_with_another_stamp_is_not_believed(raw: Path, cache: Path) -> None:
    load("tiny", data_dir=raw, cache_dir=cache)
    file = next((cache / "clean").rglob("nodes.parquet"))
    table = pa.parquet.read_table(file)
    stamped = table.slice(0, 1).replace_schema_metadata({**table.schema.metadata, b"graphmrf": b"{}"})
    pa.parquet.write_table(stamped, file)
    assert load("tiny", data_dir=raw, cache_dir=cache).graph.n_nodes == 3


def test_another_format_has_a_copy_of_its_own(raw: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load("tiny", data_dir=raw, cache_dir=cache)
    monkeypatch.setattr(copies, "FORMAT", copies.FORMAT + 1)
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
        with pytest.raises((FetchError, KeyboardInterrupt)) as caught:
            load("tiny", data_dir=raw, cache_dir=cache)
    if isinstance(error, OSError):
        assert "No space left on device); free some space, or choose another folder" in str(caught.value)
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
    assert len(kept(cache)) == 3
