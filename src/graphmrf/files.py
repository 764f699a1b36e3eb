"""The one atomic write: a file is there whole or not at all, whatever happens on the way; and the check before it."""

import os
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from graphmrf.errors import InvalidInputError


@contextmanager
def atomic(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a temporary path in the same folder to write to; it takes the final name in one step when all went well.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomic(f"{folder}/answer.txt") as draft:
    ...         _ = draft.write_text("42")
    ...     sorted(file.name for file in Path(folder).iterdir())
    ['answer.txt']
    """
    path = Path(path)
    draft = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}.tmp")
    try:
        yield draft
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def check_place(path: str | os.PathLike[str]) -> Path:
    """Return the path of any file to write later, after making sure that its folder takes it."""
    path = Path(path)
    if path.is_dir():
        raise InvalidInputError(f"{path} is a directory; give a file name inside it")
    if not path.parent.is_dir():
        raise InvalidInputError(f"{path}: there is no folder {path.parent}; make it first")
    try:
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise InvalidInputError(f"{path} cannot be written ({error.strerror}); choose another place") from error
    return path
