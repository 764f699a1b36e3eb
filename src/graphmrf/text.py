"""Numbers and lists as words: what people read, and the nearest name to a misspelt one."""

import difflib
from collections.abc import Iterable

SIMILAR = 0.7
"""How much alike two names must be, from 0 to 1, capitals aside."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a question with the known names that are nearest to one that is not among them, and a blank; else nothing.

    Examples
    --------
    >>> did_you_mean("incom", ["age", "income"])
    "did you mean 'income'? "
    >>> did_you_mean("rent", ["age", "income"])
    ''
    """
    spelt: dict[str, list[str]] = {}
    for each in known:
        spelt.setdefault(str(each).lower(), []).append(str(each))
    near = difflib.get_close_matches(name.lower(), spelt, n=3, cutoff=SIMILAR)
    quoted = [f"'{each}'" for key in near for each in spelt[key]]
    return f"did you mean {' or '.join(quoted)}? " if quoted else ""
