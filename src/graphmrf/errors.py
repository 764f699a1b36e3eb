"""What graphmrf raises: every message states the rule, the finding and the remedy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import Self


class GraphMRFError(Exception):
    """Base of everything graphmrf raises on purpose."""


class InvalidInputError(GraphMRFError, ValueError):
    """The caller's data or options break a rule; the message names the place and the remedy."""


class ConvergenceError(GraphMRFError, RuntimeError):
    """An iterative method stopped before it reached its tolerance."""


class MissingExtraError(GraphMRFError, ImportError):
    """An optional dependency is not installed; the message gives the install line."""


class FetchError(GraphMRFError, OSError):
    """A published data set could not be downloaded or cached; nothing broken is left, so another try may work."""


class ClusterError(GraphMRFError, RuntimeError):
    """A cluster cannot be reached, does not fit the work, or lost too much of it; the message gives the remedy."""


FORMER_NAMES = {"seed": "random_state", "folds": "cv", "left_out_": "loo_", "freedom_": "dof_", "on": "to"}
"""Parameters, attributes and methods of earlier versions, and what they are called now."""


class RefusesFormerNames:
    """A class whose former names raise an error that gives the new one; until version 1.0."""

    def __new__(cls, *_: Any, **options: Any) -> Self:
        """Refuse options by a former name; the constructor does the rest."""
        for name in options.keys() & FORMER_NAMES:
            raise InvalidInputError(f"{cls.__name__} has no option {name}; it is now called {FORMER_NAMES[name]}")
        return super().__new__(cls)

    if not TYPE_CHECKING:  # or every attribute would be one of any type

        def __getattr__(self, name: str) -> Any:
            if name in FORMER_NAMES:
                owner, new = type(self).__name__, FORMER_NAMES[name]
                raise AttributeError(f"{owner} has no attribute {name}; it is now called {new}")
            return self.__getattribute__(name)  # again, for the error that it raised
