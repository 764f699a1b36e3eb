"""Joint errors of predictors that are linear in the labels: draws, intervals, totals and means of groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from graphmrf.errors import InvalidInputError
from graphmrf.estimators.error_bars import interval_width
from graphmrf.estimators.inputs import check_fitted
from graphmrf.estimators.tables import NodeEstimator, answers_tables
from graphmrf.estimators.targets import of_every_target
from graphmrf.graph.checks import check_count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from graphmrf._typing import Bools, Floats, Ints

SUMS = ("prediction", "std", "lower", "upper")
"""Columns of a sum or mean."""

_DRAWS, _AT_ONCE = 1000, 50
"""Joint draws for sums, and how many of them are made at once."""


class JointEstimator(NodeEstimator):
    """An estimator with a joint distribution of its errors: `_errors` draws them, `_scale_of_errors` widens them."""

    dof_: float

    def _errors(self, count: int, rng: np.random.Generator) -> Floats:
        """Return joint draws of outcomes less predictions, shape (n, count)."""
        raise NotImplementedError

    @answers_tables
    def predict_interval(self, level: float = 0.9) -> tuple[Floats, Floats]:
        """Return the ends of an interval for the outcome of every node, by Student's distribution.

        Where labels are kept it has width 0.

        Parameters
        ----------
        level : float in (0, 1)
            Probability that the interval contains the outcome.
        """
        check_level(level)
        mean, std = (np.asarray(each) for each in self.predict(return_std=True))
        width = interval_width(level, self.dof_) * std
        return mean - width, mean + width

    def sample(self, n_samples: int = 1, *, random_state: int = 0) -> Floats:
        """Return joint draws of the outcome of all nodes, shape (n_samples, n); where labels are kept, with them.

        Coefficients err with the same draw at all nodes. When y was a Series they are a DataFrame with a column for
        every node.
        """
        check_fitted(self, "_nodes")
        rng = np.random.default_rng(random_state)
        mean = np.asarray(self.predict(), dtype=np.float64)
        draws: Floats = self._nodes.draws(mean + self._errors(check_count(n_samples), rng).T)
        return draws

    @of_every_target
    def predict_total(self, groups: Any, *, level: float = 0.9) -> pd.DataFrame:
        """Return the sum of the outcome over every group of nodes, with error bars from joint draws.

        Labelled nodes count with their label.

        Parameters
        ----------
        groups : array or Series of shape (n,)
            Group of every node; None or NaN: in none.
        level : float in (0, 1)
            Probability that an interval contains the sum.

        Returns
        -------
        DataFrame
            By group, sorted: `prediction`, `std`, `lower`, `upper`, `n_nodes`, `n_observed`.
        """
        totals: pd.DataFrame = self._nodes.as_given(self._totals(groups, level))
        return totals

    @of_every_target
    def predict_mean(self, groups: Any, *, level: float = 0.9, weight: Any = None) -> pd.DataFrame:
        """Return the mean of the outcome over every group of nodes; see `predict_total`.

        Parameters
        ----------
        groups, level
            As in `predict_total`.
        weight : array or Series of shape (n,), optional
            Weight of every node in the mean, such as its population where outcomes are rates; 1 by default.
        """
        means: pd.DataFrame = self._nodes.as_given(weighted_means(self, groups, level, weight))
        return means

    def _totals(self, groups: Any, level: float, weight: Floats | None = None) -> pd.DataFrame:
        check_fitted(self, "_nodes")
        check_level(level)
        nodes = self._nodes
        names, members = read_groups(nodes.align(groups, "groups"), nodes.graph.n_nodes)
        mean = np.where(nodes.known, _numbers(nodes.y), np.asarray(self.predict(), dtype=np.float64))
        own = np.ones(mean.size) if weight is None else weight
        total, rng = _sums(own * mean, members), np.random.default_rng(0)
        open_ = np.where(nodes.known, 0.0, own)[:, None]
        drawn = [
            np.array([errors[places].sum(axis=0) for places in members]).reshape(len(members), _AT_ONCE)
            for errors in (open_ * self._errors(_AT_ONCE, rng) for _ in range(_DRAWS // _AT_ONCE))
        ]
        std = np.sqrt(np.mean(np.square(np.hstack(drawn)), axis=1))
        width = interval_width(level, self.dof_) * std
        return group_table(np.array([total, std, total - width, total + width]), names, members, nodes.known)


def _numbers(y: Any) -> Floats:
    return pd.to_numeric(pd.Series(np.asarray(y))).to_numpy(dtype=np.float64)


def _sums(values: Floats, members: Sequence[Ints]) -> Floats:
    return np.array([values[nodes].sum() for nodes in members])


def check_level(level: float) -> None:
    """Raise unless a level is a probability."""
    if not 0 < level < 1:
        raise InvalidInputError(f"level must be between 0 and 1, got {level!r}")


def group_table(sums: Floats, names: pd.Index, members: Sequence[Ints], observed: Bools) -> pd.DataFrame:
    """Return sums (4, groups) as a table with numbers of nodes."""
    return pd.DataFrame(sums.T, columns=SUMS, index=names).assign(
        n_nodes=np.array([nodes.size for nodes in members], dtype=np.int64),
        n_observed=np.array([observed[nodes].sum() for nodes in members], dtype=np.int64),
    )


def weighted_means(model: Any, groups: Any, level: float, weight: Any, sizes: Floats | None = None) -> pd.DataFrame:
    """Return means of groups: sums of weight times outcome over sums of weights, 1 by default or `sizes`."""
    check_fitted(model, "_nodes")
    nodes = model._nodes
    n = nodes.graph.n_nodes
    own = None if weight is None else read_weights(nodes.align(weight, "weight"), n)
    _, members = read_groups(nodes.align(groups, "groups"), n)
    found: pd.DataFrame = model._totals(groups, level, own)
    plain = np.ones(n) if sizes is None else sizes
    divisor = _sums(plain if own is None else own, members)
    if not (divisor > 0).all():
        raise InvalidInputError("weights must be positive at some node of every group, got a group of weight 0")
    return found.assign(**{name: found[name] / divisor for name in SUMS})


def read_weights(weight: Any, n: int) -> Floats:
    """Return weights of nodes, checked."""
    found = np.asarray(weight, dtype=np.float64)
    if found.shape != (n,) or not np.isfinite(found).all() or (found < 0).any():
        raise InvalidInputError(
            f"weight must be a number of 0 or more for each of the {n} nodes, got {_fault(found, n)}; "
            "fill in missing ones"
        )
    return found


def _fault(found: Floats, n: int) -> str:
    if found.shape != (n,):
        return f"shape {found.shape}"
    bad = np.flatnonzero(~np.isfinite(found) | (found < 0))
    return f"{found[bad[0]]:g} in row {bad[0]} ({bad.size} such rows in all)"


def read_groups(groups: Any, n: int) -> tuple[pd.Index, list[Ints]]:
    """Return the names of the groups, sorted, and the nodes of each."""
    if np.ndim(groups) != 1 or len(groups) != n:
        raise InvalidInputError(
            f"groups must name the group of each of the {n} nodes, got shape {np.shape(groups)}; "
            "use None for nodes in no group"
        )
    codes, names = pd.factorize(pd.Series(groups, dtype=getattr(groups, "dtype", object)), sort=True)
    order = np.argsort(codes, kind="stable")
    counts = np.bincount(codes + 1, minlength=len(names) + 1)
    members: list[Ints] = list(np.split(order, np.cumsum(counts)[:-1])[1:])
    return pd.Index(names, name=getattr(groups, "name", None) or "group"), members
