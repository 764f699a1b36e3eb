"""Formatting of numbers and lists for people, and the nearest name to a misspelt one."""

import difflib
import math
import unicodedata
from collections.abc import Collection, Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike

MINUS = "\N{MINUS SIGN}"
DASH = "\N{EN DASH}"


def did_you_mean(name: str, known: Iterable[str], *, similar: float = 0.7) -> str:
    """Return a question with the known names most similar to an unknown one, and a blank; empty if none is similar.

    Names are alike by `similar` of 1 or more, capitals aside; at .5 'age' suggests 'wage' and 'page'.
    """
    spelt: dict[str, list[str]] = {}
    for each in known:
        spelt.setdefault(str(each).lower(), []).append(str(each))
    near = difflib.get_close_matches(name.lower(), spelt, n=3, cutoff=similar)
    quoted = [f"'{each}'" for key in near for each in spelt[key]]
    return f"did you mean {' or '.join(quoted)}? " if quoted else ""


def near_or_all(name: str, known: Collection[str]) -> str:
    """Return the same question for a name of a fixed list, or the whole list if none is similar."""
    return did_you_mean(name, known, similar=0.5).rstrip() or f"there are {', '.join(known)}"


def quoted_distinctly(one: str, other: str) -> tuple[str, str]:
    """Quote two different strings, escaped if they look alike."""
    alike = unicodedata.normalize("NFKC", one) == unicodedata.normalize("NFKC", other)
    return (ascii(one), ascii(other)) if alike else (f"'{one}'", f"'{other}'")


def joined(words: Sequence[str]) -> str:
    """Return words as a list in a sentence."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def count(n: int, noun: str) -> str:
    """Return a count with its noun."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def decimals(values: ArrayLike) -> int | None:
    """Return the decimals that show three digits of the spread of `values`; None asks for scientific notation."""
    finite = np.asarray(values, dtype=float)
    finite = finite[np.isfinite(finite)]
    spread = float(np.std(finite)) if finite.size else 0.0
    spread = spread or float(np.max(np.abs(finite), initial=0.0)) or 1.0
    digits = 2 - math.floor(math.log10(spread))
    return max(digits, 0) if -10 <= digits <= 6 else None


def number(value: float | None, places: int | None = 3) -> str:
    """Return a number with thousands separated and without a minus before 0; a dash for None or NaN."""
    if value is None or not math.isfinite(value):
        return DASH
    return minus_signs(f"{value:.2e}" if places is None else f"{value:z,.{places}f}")


def minus_signs(formatted: str) -> str:
    """Return a formatted number with minus signs in place of its hyphens."""
    return formatted.replace("-", MINUS)


def above_zero(r2: float, error: float) -> bool:
    """Return whether an accuracy R² is above that of the mean, 0, by more than its standard error."""
    return r2 > (error if math.isfinite(error) else 0.0)


def r2_range(r2: float, error: float, *, wide: float = 0.1) -> str:
    """Return the range of two standard errors around an accuracy R²; empty where it is certain to a decimal."""
    if not math.isfinite(error) or 2.0 * error <= wide:
        return ""
    return f"{number(r2 - 2.0 * error, 2)} to {number(min(r2 + 2.0 * error, 1.0), 2)}"


def r2_in_words(r2: float, error: float, name: str = "R²") -> str:
    """Return an accuracy R², or another of its kind, with its range where it is uncertain."""
    within = r2_range(r2, error)
    return f"{name} {number(r2)}" + (f", uncertain ({within})" if within else "")


def nothing_predicts(name: str, r2: float, error: float, score: str = "R²") -> str:
    """Return the sentence on an outcome that cannot be predicted."""
    within = f" ± {number(error, 2)}" if math.isfinite(error) else ""
    shown = f"{score} {number(r2, 2)}{within}"
    return f"No method predicts held-out values of {name} better than their mean does: {shown}."


def smoothing_level(alpha: float | None) -> str:
    """Return a smoothing level without trailing zeros; a dash for none."""
    return DASH if alpha is None else f"{alpha:.6g}"
