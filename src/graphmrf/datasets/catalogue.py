"""The paper's data sets by name: found or downloaded, cleaned, kept, loaded."""

from collections.abc import Callable
from pathlib import Path

from graphmrf.datasets import cache, cdc, drawn, elliptic, london, samples, twitch, us
from graphmrf.datasets.dataset import Dataset, Info
from graphmrf.datasets.download import Places, check_downloadable, checksum, download, find
from graphmrf.datasets.files import PathLike
from graphmrf.datasets.recipe import Files, Recipe, Tables
from graphmrf.errors import InvalidInputError
from graphmrf.graph import Graph
from graphmrf.text import near_or_all

_RECIPES: dict[str, Recipe] = {
    recipe.info.name: recipe for part in (us, cdc, london, twitch, elliptic, samples, drawn) for recipe in part.RECIPES
}


def names() -> tuple[str, ...]:
    """Return the names of all data sets.

    Examples
    --------
    >>> names()[:3]
    ('us-2012', 'us-2016', 'cdc-2003')
    """
    return tuple(_RECIPES)


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
    """Return how a data set is made, or raise with the nearest names."""
    if name in _RECIPES:
        return _RECIPES[name]
    raise InvalidInputError(f"no data set is called '{name}'; {near_or_all(name, _RECIPES)}")


def _ignore(_: str) -> None:
    pass


def load(
    name: str,
    *,
    data_dir: PathLike | None = None,
    cache_dir: PathLike | None = None,
    mirror: str | None = None,
    advance: Callable[[str], None] = _ignore,
) -> Dataset:
    """Return a data set of the paper, cleaned, with raw values.

    The raw files are those of the paper's reference repository at one commit, verified by SHA-256. A cleaned copy is
    kept as Parquet, so that a second call reads one folder.

    Parameters
    ----------
    name : str
        One of `names`, such as ``"us-2016"``.
    data_dir : path, optional
        Folder with raw files (the repository's `datasets`); nothing is downloaded then. By default the environment
        variable `GRAPHMRF_DATA`, if set.
    cache_dir : path, optional
        Where downloads and cleaned copies are kept; by default `GRAPHMRF_CACHE`, else the user's cache folder.
    mirror : str, optional
        Address to download from; by default `GRAPHMRF_MIRROR`, else the public repository.
    advance : callable, optional
        Called with the name of each raw file, once it is downloaded or read.

    Returns
    -------
    Dataset
        `graph`, `frame` (node order), `info`.

    Raises
    ------
    InvalidInputError
        No such data set, a folder without its files, or with files that are not those published.
    FetchError
        A download or the cache failed; nothing broken is left, and another try starts from what arrived whole.

    Examples
    --------
    >>> load("us-2016").graph  # doctest: +SKIP
    Graph(n_nodes=3106, n_edges=22574, unweighted)
    """
    made = recipe(name)
    if not made.files:
        return _dataset(made, made.clean({}), ())
    places = Places.choose(data_dir, cache_dir, mirror)
    if places.data is None:
        check_downloadable(made)
        tables = _kept(made, _published(made), places, lambda: _cleaned(made, download(made, places, advance)))
        return _dataset(made, tables, ())
    files = find(made, places.data)
    sha256 = {path: _told(path, file, advance) for path, file in files.items()}
    notes = _changed(made, sha256)
    tables = _kept(made, sha256, places, lambda: (_checked if notes else _cleaned)(made, files))
    return _dataset(made, tables, notes)


def _published(made: Recipe) -> dict[str, str]:
    return {file.path: file.sha256 for file in made.files if file.sha256 is not None}


def _told(path: str, file: Path, advance: Callable[[str], None]) -> str:
    sha256 = checksum(file)
    advance(path)
    return sha256


def _kept(made: Recipe, sha256: dict[str, str], places: Places, make: Callable[[], Tables]) -> Tables:
    """Return the cached copy of what raw files with these checksums give, made now if there is none."""
    mark = cache.stamp(made.info.name, sha256)
    folder = cache.place(places.cache, made.info.name, mark)
    tables = cache.read(folder, mark)
    if tables is None:
        tables = make()
        cache.write(tables, folder, mark)
    return tables


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
    tables = _cleaned(made, files)
    counts, expected = (len(tables["nodes"]), len(tables["edges"])), (made.info.n_nodes, made.info.n_edges)
    if counts != expected and not made.where and made.info.n_edges is not None:
        raise InvalidInputError(
            f"{made.info.name} has {expected[0]} nodes and {expected[1]} edges, but these files give {counts[0]} and "
            f"{counts[1]}; give the files as they were published"
        )
    return tables


def _changed(made: Recipe, sha256: dict[str, str]) -> tuple[str, ...]:
    published = _published(made)
    changed = (path for path, found in sha256.items() if published.get(path, found) != found)
    return tuple(f"{path} is not byte for byte the published file" for path in changed)


def _dataset(made: Recipe, tables: Tables, notes: tuple[str, ...]) -> Dataset:
    nodes, edges = tables["nodes"], tables["edges"]
    graph = Graph.from_edges(edges["u"].to_numpy(), edges["v"].to_numpy(), n_nodes=len(nodes))
    if graph.n_nodes != made.info.n_nodes or graph.n_edges != (made.info.n_edges or graph.n_edges):
        known = f"the {made.info.n_nodes} and {made.info.n_edges} on record"
        notes = (*notes, f"{graph.n_nodes} nodes and {graph.n_edges} edges, not {known}")
    extra = {name: table for name, table in tables.items() if name not in ("nodes", "edges")}
    return Dataset(graph, nodes, made.info, extra, notes)
