"""Errors of graphmrf: every message states the rule, the finding and the remedy."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Self

_Function = TypeVar("_Function", bound="Callable[..., Any]")


class GraphMRFError(Exception):
    """Base class of all errors that graphmrf raises."""


class InvalidInputError(GraphMRFError, ValueError):
    """The caller's data or options break a rule; the message names the place and the remedy."""


class ConvergenceError(GraphMRFError, RuntimeError):
    """An iterative method stopped before it reached its tolerance."""


class MissingExtraError(GraphMRFError, ImportError):
    """An optional dependency is not installed; the message gives the install line."""


class FetchError(GraphMRFError, OSError):
    """A published data set could not be downloaded or cached; nothing broken is left, so another try may work."""


class ClusterError(GraphMRFError, RuntimeError):
    """A cluster cannot be reached, is too small for the work, or lost too many workers."""


class RenamedError(GraphMRFError, ImportError):
    """A module is asked for a name of an earlier version; the message gives the new one."""


# Options, attributes and methods of earlier versions with their present names: they raise an error until version 1.0.
FORMER_OPTIONS = {"seed": "random_state", "folds": "cv"}
FORMER_NAMES = {"left_out_": "loo_", "freedom_": "dof_", "coefficients_": "coef_", "on": "to"}


def _check_options(owner: str, options: Mapping[str, Any]) -> None:
    for name in options.keys() & FORMER_OPTIONS:
        raise InvalidInputError(f"{owner} has no option {name}; it is now called {FORMER_OPTIONS[name]}")


def refuses_former_options(function: _Function) -> _Function:
    """Decorate a function: options by a former name raise an error that gives the new one."""

    @wraps(function)
    def wrapped(*args: Any, **options: Any) -> Any:
        _check_options(function.__qualname__, options)
        return function(*args, **options)

    return cast("_Function", wrapped)


def missing_name(module: str, name: str, renamed: Mapping[str, str]) -> Exception:
    """Return the error for a name that a module does not have, with the present one if it is a former name."""
    if name in renamed:
        return RenamedError(f"{module} has no {name}; it is now called {renamed[name]}")
    return AttributeError(f"module {module!r} has no attribute {name!r}")


class RefusesFormerNames:
    """A class whose former options, attributes and methods raise an error that gives the new name."""

    def __new__(cls, *_: Any, **options: Any) -> Self:
        """Refuse options by a former name; the constructor does the rest."""
        _check_options(cls.__name__, options)
        return super().__new__(cls)

    if not TYPE_CHECKING:  # or every attribute would be one of any type

        def __getattr__(self, name: str) -> Any:
            if name in FORMER_NAMES:
                owner, new = type(self).__name__, FORMER_NAMES[name]
                raise AttributeError(f"{owner} has no attribute {name}; it is now called {new}")
            return self.__getattribute__(name)  # again, for the error that it raised
