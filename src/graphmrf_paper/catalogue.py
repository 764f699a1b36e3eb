"""The paper's data sets by name: found in a folder or downloaded, cleaned, cached, loaded."""

import errno
import hashlib
import json
import logging
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pandas as pd
import pooch
import pyarrow as pa
import pyarrow.parquet

from graphmrf.datasets.columns import is_text
from graphmrf.datasets.table_files import PathLike
from graphmrf.errors import FetchError, InvalidInputError
from graphmrf.files import atomic
from graphmrf.graph import Graph
from graphmrf.text import near_or_all
from graphmrf_paper.dataset import Dataset, Files, Info, Recipe, Tables
from graphmrf_paper.elliptic import ELLIPTIC_RECIPES
from graphmrf_paper.places import CDC_RECIPES, LONDON_RECIPES, US_RECIPES
from graphmrf_paper.synthetic import DRAWN_RECIPES, PUBLISHED_RECIPES
from graphmrf_paper.twitch import TWITCH_RECIPES

COMMIT = "cf60223"
MIRROR = f"https://raw.githubusercontent.com/000Justin000/GaussianMRF/{COMMIT}/datasets/"
DATA, CACHE, URL = "GRAPHMRF_DATA", "GRAPHMRF_CACHE", "GRAPHMRF_MIRROR"
CACHE_FORMAT = 1
"""Layout of cached tables; raise it when recipes give other tables, and all are made again."""
_STAMP, _SUMS = b"graphmrf", "sha256.json"
RECIPES: dict[str, Recipe] = {
    recipe.info.name: recipe
    for recipe in (
        *(*US_RECIPES, *CDC_RECIPES, *LONDON_RECIPES, *TWITCH_RECIPES, *ELLIPTIC_RECIPES),
        *(*PUBLISHED_RECIPES, *DRAWN_RECIPES),
    )
}


def names() -> tuple[str, ...]:
    """Return the names of all data sets.

    Examples
    --------
    >>> names()[:3]
    ('us-2012', 'us-2016', 'cdc-2003')
    """
    return tuple(RECIPES)


def info(name: str) -> Info:
    """Return what is known about a data set: title, source, licence, counts, attributes, outcomes.

    Raises
    ------
    InvalidInputError
        No such data set; the message has the nearest names.

    Examples
    --------
    >>> info("london-2016").outcomes
    ('income', 'edu', 'age', 'election')
    """
    return recipe(name).info


def n_files(name: str) -> int:
    """Return how many raw files a data set is made of."""
    return len(recipe(name).files)


def recipe(name: str) -> Recipe:
    """Return the recipe of a data set, or raise with the nearest names."""
    if name in RECIPES:
        return RECIPES[name]
    raise InvalidInputError(f"no data set is called '{name}'; {near_or_all(name, RECIPES)}")


def _ignore(_: str) -> None:
    pass


def load(
    name: str,
    *,
    data_dir: PathLike | None = None,
    cache_dir: PathLike | None = None,
    mirror: str | None = None,
    accept_licence: bool = False,
    advance: Callable[[str], None] = _ignore,
) -> Dataset:
    """Return a data set of the paper, cleaned, with raw values.

    The raw files are those of the paper's reference repository at one commit, verified by SHA-256. Cleaned tables are
    cached as Parquet files.

    Parameters
    ----------
    name : str
        One of `names`, such as ``"us-2016"``.
    data_dir : path, optional
        Folder with raw files (the repository's `datasets`); nothing is downloaded then. By default the environment
        variable `GRAPHMRF_DATA`, if set.
    cache_dir : path, optional
        Where downloads and cleaned tables are cached; by default `GRAPHMRF_CACHE`, else the user's cache folder.
    mirror : str, optional
        Address to download from; by default `GRAPHMRF_MIRROR`, else the public repository.
    accept_licence : bool
        Whether you accept the licence of a data set that asks for it (``"elliptic"``) before its first download.
    advance : callable, optional
        Called with the name of each raw file, once it is downloaded or read.

    Returns
    -------
    Dataset
        `graph`, `frame` (node order), `info`.

    Raises
    ------
    InvalidInputError
        No such data set, a folder without its files, or with files that are not those published, or a cache folder
        that cannot be written.
    FetchError
        A download failed, or the disk is full; another try starts from the files that are complete.

    Examples
    --------
    >>> load("us-2016").graph  # doctest: +SKIP
    Graph(n_nodes=3106, n_edges=22574, unweighted, ids 01001, 01003, 01005, ...)
    """
    made = recipe(name)
    if not made.files:
        return _dataset(made, made.clean({}), ())
    folder, cache = data_dir or os.environ.get(DATA), _cache_folder(cache_dir)
    if not folder:
        url = (mirror or os.environ.get(URL) or made.url or MIRROR).rstrip("/") + "/"

        def fetch() -> Tables:
            _check_accepted(made, accepted=accept_licence)
            return _cleaned(made, _download(made, cache, url, advance))

        return _dataset(made, *cached_tables(made, published_checksums(made), cache, fetch))
    files = _find(made, Path(folder).expanduser())
    sha256 = {path: _checksum(path, file, advance) for path, file in files.items()}
    notes = _changed(made, sha256)
    tables, more = cached_tables(made, sha256, cache, lambda: (_checked if notes else _cleaned)(made, files))
    return _dataset(made, tables, (*notes, *more))


def _cache_folder(cache_dir: PathLike | None) -> Path:
    return Path(cache_dir or os.environ.get(CACHE) or pooch.os_cache("graphmrf")).expanduser()


def published_checksums(made: Recipe) -> dict[str, str]:
    """Return the SHA-256 of every published file of a data set, by its path."""
    return {path: sha256 for path, (_, sha256) in made.downloads.items()}


def _checksum(path: str, file: Path, advance: Callable[[str], None]) -> str:
    """Return the SHA-256 of a file, and call `advance`."""
    with file.open("rb") as stream:
        sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
    advance(path)
    return sha256


def cached_tables(
    made: Recipe, sha256: Mapping[str, str], cache: Path, make: Callable[[], Tables]
) -> tuple[Tables, tuple[str, ...]]:
    """Return the cached tables for raw files with these checksums, made now if there are none, and notes.

    A cache that cannot be written costs time only, so that is a note.
    """
    stamp = json.dumps({"format": CACHE_FORMAT, "name": made.info.name, "raw": dict(sha256)}, sort_keys=True).encode()
    folder = cache / "clean" / f"{made.info.name}-{hashlib.sha256(stamp).hexdigest()[:16]}"
    tables = _read_copy(folder, stamp)
    if tables is not None:
        return tables, ()
    tables = make()
    try:
        _write_copy(tables, folder, stamp)
    except OSError as error:
        trouble = f"the cleaned tables cannot be cached in {folder.parent} ({error.strerror or error})"
        return tables, (f"{trouble}; {_remedy(error)}",)
    return tables, ()


def _read_copy(folder: Path, stamp: bytes) -> Tables | None:
    """Return the tables of a cached copy, None unless it is complete and has the stamp and its checksums.

    A flipped bit in a Parquet file often gives another number and no error.
    """
    tables = {}
    try:
        sums = json.loads((folder / _SUMS).read_bytes())
        for name, sha256 in sums.items():
            content = (folder / f"{name}.parquet").read_bytes()
            if hashlib.sha256(content).hexdigest() != sha256:
                return None
            table = pa.parquet.read_table(pa.BufferReader(content))
            if (table.schema.metadata or {}).get(_STAMP) != stamp:
                return None
            tables[name] = table.to_pandas()
    except Exception:  # a damaged copy makes its readers raise anything
        return None
    return tables if {"nodes", "edges"} <= tables.keys() else None


def _write_copy(tables: Tables, folder: Path, stamp: bytes) -> None:
    """Write the tables, and their checksums last: a copy that has them is complete. After an error nothing is left."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        sums = {name: _keep(tables[name], folder / f"{name}.parquet", stamp) for name in sorted(tables)}
        with atomic(folder / _SUMS) as draft:
            draft.write_text(json.dumps(sums, indent=1) + "\n", encoding="utf-8")
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _keep(frame: pd.DataFrame, path: Path, stamp: bytes) -> str:
    """Write one table, marked, and return the SHA-256 of its file."""
    table = pa.Table.from_pandas(frame, preserve_index=False)
    marked = table.replace_schema_metadata({**(table.schema.metadata or {}), _STAMP: stamp})
    with atomic(path) as draft:
        pa.parquet.write_table(marked, draft)
        return hashlib.sha256(draft.read_bytes()).hexdigest()


def _cleaned(made: Recipe, files: Files) -> Tables:
    try:
        return made.clean(files)
    except InvalidInputError:
        raise
    except (ValueError, LookupError, TypeError) as error:  # what parsers say of a file that has another layout
        raise InvalidInputError(
            f"{made.info.name}: cannot clean {', '.join(str(file) for file in files.values())} "
            f"({type(error).__name__}: {error}); give the files as they were published"
        ) from error


def _checked(made: Recipe, files: Files) -> Tables:
    """Return the cleaned tables of files other than those published, if they have the same counts."""
    tables, known = _cleaned(made, files), made.info
    counts = len(tables["nodes"]), len(tables["edges"])
    if known.n_edges is not None and counts != (known.n_nodes, known.n_edges):
        raise InvalidInputError(
            f"{known.name} has {known.n_nodes} nodes and {known.n_edges} edges, but these files give {counts[0]} and "
            f"{counts[1]}; give the files as they were published"
        )
    return tables


def _changed(made: Recipe, sha256: dict[str, str]) -> tuple[str, ...]:
    changed = (path for path, found in sha256.items() if (made.files[path] or found) != found)
    return tuple(f"{path} is not byte for byte the published file" for path in changed)


def _dataset(made: Recipe, tables: Tables, notes: tuple[str, ...]) -> Dataset:
    nodes, edges = tables["nodes"], tables["edges"]
    graph = Graph.from_edges(edges["u"].to_numpy(), edges["v"].to_numpy(), n_nodes=len(nodes))
    named = nodes.iloc[:, 1]  # what names a node comes first: codes of counties and wards
    if is_text(named) and named.is_unique:
        graph = graph.with_ids(named)
        nodes = nodes.set_axis(named, axis=0).rename_axis(index=None)  # the column has the name
    if graph.n_nodes != made.info.n_nodes or graph.n_edges != (made.info.n_edges or graph.n_edges):
        known = f"the {made.info.n_nodes} and {made.info.n_edges} on record"
        notes = (*notes, f"{graph.n_nodes} nodes and {graph.n_edges} edges, not {known}")
    extra = {name: table for name, table in tables.items() if name not in ("nodes", "edges")}
    return Dataset(graph, nodes, made.info, extra, notes)


def _find(recipe: Recipe, folder: Path) -> Files:
    """Return the raw files of a data set in a folder of the user's; raise with a list of those that are not there."""
    if not folder.is_dir():
        raise InvalidInputError(f"{folder}: no such folder; check data_dir or {DATA}")
    candidates = [{path: folder / below / path for path in recipe.files} for below in recipe.folders]
    missing, files = min(((_missing(files), files) for files in candidates), key=lambda each: len(each[0]))
    if missing:
        raise InvalidInputError(
            f"{folder} lacks {len(missing)} of the {len(recipe.files)} raw files of {recipe.info.name}: "
            f"{', '.join(missing)}; put all of them there, or leave data_dir and {DATA} out to download them"
        )
    return files


def _missing(files: Files) -> list[str]:
    return [path for path, file in files.items() if not file.is_file()]


def _check_accepted(recipe: Recipe, *, accepted: bool) -> None:
    """Raise where the licence must be accepted first."""
    if recipe.terms and not accepted:
        raise InvalidInputError(
            f"{recipe.info.name} is downloaded when you accept its licence ({recipe.terms}): graphmrf datasets fetch "
            f"{recipe.info.name} --accept-licence, or load(..., accept_licence=True); or name a folder that has "
            f"{', '.join(recipe.files)} with data_dir, --data-dir or {DATA}"
        )


def _download(recipe: Recipe, cache: Path, url: str, advance: Callable[[str], None]) -> Files:
    """Return the raw files of a data set, downloaded unless they are cached; `advance` is called for each."""
    registry = {name: f"sha256:{sha256}" for name, sha256 in recipe.downloads.values()}
    place = cache / "raw" / (recipe.info.name if recipe.url else COMMIT)
    store = pooch.create(path=place, base_url=url, registry=registry)
    files = {}
    with _hushed():
        for path, (name, _) in recipe.downloads.items():
            files[path] = _fetch(store, name)
            advance(path)
    return files


def _fetch(store: pooch.Pooch, path: str) -> Path:
    url = store.get_url(path)
    try:
        return Path(store.fetch(path))
    except ValueError as error:
        if "hash" not in str(error).lower():  # no address at all, or one of another protocol
            raise FetchError(
                f"cannot download {url} ({error}); check mirror or {URL}, which is an https address"
            ) from error
        raise FetchError(
            f"what {url} sent is not the published file (its SHA-256 differs), so it was thrown away; try again, "
            f"and if it stays so give the files in a folder with data_dir or {DATA}"
        ) from error
    except OSError as error:
        refused = error.errno is not None and error.errno not in _FULL
        raise (InvalidInputError if refused else FetchError)(_trouble(error, url, store.path)) from error


_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EIO)  # errors of a disk that may pass; others will come again


def _remedy(error: OSError) -> str:
    """Return what to do about an error of the disk."""
    first = "free some space, or " if error.errno in _FULL else ""
    return f"{first}choose another folder with cache_dir or {CACHE}"


def _trouble(error: OSError, url: str, folder: Path) -> str:
    # The errors of requests are OSErrors without a number; those of the disk have one.
    if error.errno is not None:
        return f"cannot keep downloads in {folder} ({error.strerror}); {_remedy(error)}"
    response, reason = getattr(error, "response", None), type(error).__name__
    if response is not None:
        reason = f"HTTP {response.status_code}"
        response.close()  # pooch leaves it open
    return (
        f"cannot download {url} ({reason}); check the network and try again, "
        f"or give the files in a folder with data_dir or {DATA}"
    )


@contextmanager
def _hushed() -> Iterator[None]:
    """Keep pooch from printing what it fetches."""
    logger = pooch.get_logger()
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(level)
