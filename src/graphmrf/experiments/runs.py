"""The unit of work: one run, with a key that names it for ever."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

Scalar: TypeAlias = str | int | float
Options: TypeAlias = Mapping[str, Any]
Result: TypeAlias = Mapping[str, Any]
Results: TypeAlias = Mapping[str, Result]

TRAINING = 0.3
SPLITS, QUICK_SPLITS = 10, 2
REPEATS, QUICK_REPEATS = 30, 4
_SEEDS_APART = 1000


@dataclass(frozen=True)
class Settings:
    """How much to do.

    Parameters
    ----------
    quick : bool
        Two splits and small networks, to see everything in a few minutes.
    seed : int
        Another seed takes other splits and samples, >= 0.

    Examples
    --------
    >>> Settings(quick=True).seeds, Settings(seed=1).seeds
    (range(1, 3), range(1001, 1011))
    """

    quick: bool = False
    seed: int = 0

    @property
    def seeds(self) -> range:
        """Seeds of the random splits."""
        return self._from_one(QUICK_SPLITS if self.quick else SPLITS)

    @property
    def repeats(self) -> range:
        """Seeds of the samples that are drawn from the model."""
        return self._from_one(QUICK_REPEATS if self.quick else REPEATS)

    @property
    def effort(self) -> str:
        """How long networks are trained: part of the key of their runs."""
        return "quick" if self.quick else "full"

    def _from_one(self, count: int) -> range:
        first = _SEEDS_APART * self.seed + 1
        return range(first, first + count)


@dataclass(frozen=True)
class Run:
    """One independent piece of work: what kind, and everything its result depends on.

    Parameters
    ----------
    kind : str
        Which function does it, see `work.KINDS`.
    options : tuple of pairs
        Its arguments, sorted by name.
    seconds : float
        Expected time on one core; not part of what the run is.

    Examples
    --------
    >>> Run.of("accuracy", {"seed": 1, "data": "us-2016"}).key
    'accuracy data=us-2016 seed=1'
    """

    kind: str
    options: tuple[tuple[str, Scalar], ...]
    seconds: float = field(default=0.1, compare=False)

    @classmethod
    def of(cls, kind: str, options: Mapping[str, Scalar], *, seconds: float = 0.1) -> "Run":
        """Return the run with these options, in whatever order they are given."""
        return cls(kind, tuple(sorted(options.items())), seconds)

    @property
    def key(self) -> str:
        """The name under which the result is kept."""
        return " ".join([self.kind, *(f"{name}={value}" for name, value in self.options)])
