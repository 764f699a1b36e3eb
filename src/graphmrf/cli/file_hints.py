"""Hints at files in the wrong order, put before the error that they caused."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from graphmrf.cli import later
from graphmrf.errors import InvalidInputError

MODEL, NODES, EDGES, GIVEN = "MODEL", "NODES", "EDGES", "--given"
_ROLES = {MODEL: "a model", NODES: "a table of nodes", EDGES: "a table of edges", GIVEN: "a table of nodes"}


@contextmanager
def explained(command: str, files: Mapping[str, Path | None]) -> Iterator[None]:
    """Put a hint at files that look as if they were in another's place before an error on bad input.

    Parameters
    ----------
    command : str
        Name of the command, for its usage.
    files : mapping of str to path
        The files by argument (`MODEL`, `NODES`, `EDGES`, `GIVEN`), in the order of the command; None is left out.
    """
    try:
        yield
    except InvalidInputError as error:
        given = {name: path for name, path in files.items() if path is not None}
        wrong = _misplaced(given)
        if not wrong or isinstance(error.__cause__, InvalidInputError):  # which says it already
            raise
        usage = " ".join(name if name.isupper() else f"{name} {NODES}" for name in given)
        raise InvalidInputError(f"{wrong}; the order is graphmrf {command} {usage}. As given: {error}") from error


def _misplaced(given: Mapping[str, Path]) -> str:
    """Return a sentence on files that look like another argument; empty where that is only a guess."""
    wrong = {
        name: seen for name, path in given.items() if (seen := later.inputs.looks_like(path)) not in ("", _ROLES[name])
    }
    sure = NODES not in given or any(seen != _ROLES[NODES] for seen in wrong.values())
    return ", and ".join(f"{name} is {given[name]}, which looks like {seen}" for name, seen in wrong.items() if sure)
