"""Raw files: downloaded with a checksum into the cache, or found in a folder of the user's."""

import hashlib
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from graphmrf.datasets.files import PathLike
from graphmrf.datasets.recipe import Files, RawFile, Recipe
from graphmrf.errors import FetchError, InvalidInputError

if TYPE_CHECKING:
    import pooch

COMMIT = "cf60223"
MIRROR = f"https://raw.githubusercontent.com/000Justin000/GaussianMRF/{COMMIT}/datasets/"
DATA, CACHE, URL = "GRAPHMRF_DATA", "GRAPHMRF_CACHE", "GRAPHMRF_MIRROR"


@dataclass(frozen=True)
class Places:
    """Where raw files are, or come from, and where copies are kept.

    Parameters
    ----------
    data : path, optional
        Folder of raw files; with it, nothing is downloaded.
    cache : path
        Folder of downloads and cleaned copies.
    mirror : str
        Address below which the raw files are, with a slash at its end.
    """

    data: Path | None
    cache: Path
    mirror: str

    @classmethod
    def choose(cls, data_dir: PathLike | None, cache_dir: PathLike | None, mirror: str | None) -> "Places":
        """Return the places given, else those of the environment, else the defaults."""
        data = data_dir or os.environ.get(DATA) or None
        cache = cache_dir or os.environ.get(CACHE) or _user_cache()
        url = mirror or os.environ.get(URL) or MIRROR
        return cls(None if data is None else Path(data).expanduser(), Path(cache).expanduser(), url.rstrip("/") + "/")


def _user_cache() -> Path:
    # Imported where it is used: it brings a whole HTTP client, and most commands download nothing.
    import pooch

    return Path(pooch.os_cache("graphmrf"))


def find(recipe: Recipe, folder: Path) -> Files:
    """Return the raw files of a data set in a folder of the user's.

    Raises
    ------
    InvalidInputError
        No such folder, or files that are not in it; the message lists them.
    """
    if not folder.is_dir():
        raise InvalidInputError(f"{folder}: no such folder; check data_dir or {DATA}")
    candidates = [{file.path: _existing(folder / below, file) for file in recipe.files} for below in recipe.folders]
    best = min(candidates, key=lambda found: list(found.values()).count(None))
    missing = [path for path, file in best.items() if file is None]
    if missing:
        raise InvalidInputError(
            f"{folder} lacks {len(missing)} of the {len(recipe.files)} raw files of {recipe.info.name}: "
            f"{', '.join(missing)}; {_remedy(recipe)}"
        )
    return {path: file for path, file in best.items() if file is not None}


def _existing(folder: Path, file: RawFile) -> Path | None:
    candidates = (folder / path for path in (file.path, file.alternative) if path)
    return next((path for path in candidates if path.is_file()), None)


def _remedy(recipe: Recipe) -> str:
    if recipe.where:
        return f"{recipe.where}, and name its folder"
    if _verifiable(recipe):
        return f"put all of them there, or leave data_dir and {DATA} out to download them"
    return f"take them from {MIRROR} and put them there"


def _verifiable(recipe: Recipe) -> bool:
    return all(file.sha256 is not None for file in recipe.files)


def check_downloadable(recipe: Recipe) -> None:
    """Raise unless every file can be downloaded and verified."""
    if recipe.where:
        raise InvalidInputError(
            f"{recipe.where}, and name the folder of its files with data_dir, --data-dir or {DATA}: "
            f"{', '.join(file.path for file in recipe.files)}"
        )
    if not _verifiable(recipe):
        urls = ", ".join(MIRROR + file.path for file in recipe.files)
        raise InvalidInputError(
            f"{recipe.info.name} is not downloaded, because no checksum of its files is on record; fetch them yourself "
            f"({urls}), keep their folders, and name the outer one with data_dir, --data-dir or {DATA}"
        )


def download(recipe: Recipe, places: Places, advance: Callable[[str], None]) -> Files:
    """Return the raw files of a data set, downloaded unless they are in the cache; `advance` hears of each.

    Raises
    ------
    FetchError
        No network, no such file, a file cut short or with another checksum, a full disk. What arrived whole is kept.
    """
    import pooch

    registry = {file.path: f"sha256:{file.sha256}" for file in recipe.files}
    store = pooch.create(path=places.cache / "raw" / COMMIT, base_url=places.mirror, registry=registry)
    files = {}
    with _hushed():
        for path in registry:
            files[path] = _fetch(store, path)
            advance(path)
    return files


def _fetch(store: "pooch.Pooch", path: str) -> Path:
    url = store.get_url(path)
    try:
        return Path(store.fetch(path))
    except ValueError as error:
        raise FetchError(
            f"what {url} sent is not the published file (its SHA-256 differs), so it was thrown away; try again, "
            f"and if it stays so give the files in a folder with data_dir or {DATA}"
        ) from error
    except OSError as error:
        raise FetchError(_trouble(error, url, store.path)) from error


def _trouble(error: OSError, url: str, folder: Path) -> str:
    # The errors of requests are OSErrors without a number; those of the disk have one.
    if error.errno is not None:
        return (
            f"cannot keep downloads in {folder} ({error.strerror}); free some space, "
            f"or choose another folder with cache_dir or {CACHE}"
        )
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
    """Keep pooch from telling on stderr what it fetches: who wants to know passes `advance`."""
    import pooch

    logger = pooch.get_logger()
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(level)


def checksum(file: Path) -> str:
    """Return the SHA-256 of a file."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
