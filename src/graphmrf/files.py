"""The one atomic write: a file is there whole or not at all, whatever happens on the way."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


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
    draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        yield draft
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
