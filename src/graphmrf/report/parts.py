"""The parts of what a report says of a target: frozen rows, checked here."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from graphmrf._typing import Floats, Ints
from graphmrf.errors import InvalidInputError


def reject(violations: int, message: str) -> None:
    """Raise an error with this message, if there is anything to reject."""
    if violations:
        raise InvalidInputError(message)


@dataclass(frozen=True)
class MethodRow:
    """Cross-validated accuracy of one method.

    Parameters
    ----------
    method : str
        Key of the method (``"lp"``, ``"lr"``, ``"lgc"``, ``"lgc-rp"``) or any other name.
    r2 : float
        Accuracy over all folds; NaN when it could not be computed.
    fold_r2 : sequence of float
        Accuracy in every fold.
    alpha : float or None
        Smoothing level; None for a method without one.

    Examples
    --------
    >>> MethodRow("lp", r2=0.6, fold_r2=(0.5, 0.7), alpha=0.9).alpha
    0.9
    """

    method: str
    r2: float
    fold_r2: Sequence[float] = ()
    alpha: float | None = None


@dataclass(frozen=True)
class AlphaCurve:
    """Cross-validated accuracy of one method against the smoothing level.

    Parameters
    ----------
    method : str
        Key of the method.
    alphas, mean_r2 : arrays of shape (m,)
        Levels that were tried, and the accuracy at each.
    fold_r2 : array of shape (m, n_folds)
        Accuracy of every fold.
    chosen : float
        The level that was kept.

    Examples
    --------
    >>> AlphaCurve("lp", np.array([0.0, 0.5]), np.array([0.1, 0.4]), np.array([[0.1], [0.4]]), 0.5).chosen
    0.5
    """

    method: str
    alphas: Floats
    mean_r2: Floats
    fold_r2: Floats
    chosen: float

    def __post_init__(self) -> None:
        levels, means, folds = np.shape(self.alphas), np.shape(self.mean_r2), np.shape(self.fold_r2)
        reject(
            len(levels) != 1 or means != levels or len(folds) != 2 or folds[:1] != levels,
            f"the curve of {self.method!r} must have one row for each level, got {levels} levels, {means} means and "
            f"{folds} folds; pass the arrays of cv_results_",
        )


@dataclass(frozen=True)
class Coefficients:
    """Coefficients of a linear method, in the units of its features.

    Parameters
    ----------
    names : sequence of str
        One name per feature.
    values : array of shape (p,)
        One coefficient per feature.
    intercept : float or None
        Constant term; of methods that smooth features, the prediction where all features are average.

    Examples
    --------
    >>> Coefficients(("age",), np.array([0.3]), intercept=1.0).names
    ('age',)
    """

    names: Sequence[str]
    values: Floats
    intercept: float | None = None

    def __post_init__(self) -> None:
        reject(
            np.shape(self.values) != (len(self.names),),
            f"coefficients need one value per name, got {np.shape(self.values)} values for {len(self.names)} names; "
            "pass coef_.index and coef_.to_numpy()",
        )


@dataclass(frozen=True)
class Effects:
    """Linear coefficients of a node's own features and of its neighbours', with standard errors.

    Parameters
    ----------
    names : sequence of str
        One name per feature.
    groups : sequence of str
        Whose features: ``("own", "neighbours", ...)``.
    values, errors : arrays of shape (p, n_groups)
        Coefficients in the units of the outcome and the feature, and their standard errors.
    transform : str
        The transform of the outcome whose units these are; empty for the outcome itself.

    Examples
    --------
    >>> Effects(("age",), ("own", "neighbours"), np.array([[0.3, 0.1]]), np.array([[0.1, 0.2]])).order
    array([0])
    """

    names: Sequence[str]
    groups: Sequence[str]
    values: Floats
    errors: Floats
    transform: str = ""

    def __post_init__(self) -> None:
        wanted, found = (len(self.names), len(self.groups)), (np.shape(self.values), np.shape(self.errors))
        reject(
            found != (wanted, wanted),
            f"effects need a value and an error for each of {wanted[0]} names and {wanted[1]} groups, got {found}; "
            "pass the columns of coefficients_",
        )

    @property
    def order(self) -> Ints:
        """Positions of the features, the clearest first: by the largest ratio of a coefficient to its error."""
        clear = np.abs(self.values) / np.where(self.errors > 0, self.errors, np.inf)
        return np.argsort(-clear.max(axis=1, initial=0.0), kind="stable")


@dataclass(frozen=True)
class Truth:
    """How the prediction fared against outcomes that were kept hidden from it.

    Parameters
    ----------
    r2 : float
        Accuracy on the hidden outcomes.
    coverage : float or None
        Share of the hidden outcomes inside their interval.
    n_nodes : int
        Number of hidden outcomes.

    Examples
    --------
    >>> Truth(r2=0.7, coverage=0.91, n_nodes=700).n_nodes
    700
    """

    r2: float
    coverage: float | None
    n_nodes: int
