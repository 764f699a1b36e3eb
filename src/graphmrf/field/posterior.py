"""What follows from the labels under a field: the one interface of all solvers, and the shares of its components."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from scipy.special import ndtr, ndtri

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from graphmrf._typing import Bools, Floats, Ints
    from graphmrf.field.hyperparameters import Hyperparameters
    from graphmrf.graph import Graph


_BISECTIONS = 40
"""Halvings of the interval that holds a quantile: 12 digits of its width."""


@dataclass(frozen=True, eq=False)
class Mixture:
    """A mixture of normal distributions for every one of some nodes.

    Attributes
    ----------
    weights : array of shape (k,)
        Weight of every member; they add up to 1.
    means, variances : arrays of shape (k, n)
        Mean and variance of every member.

    Examples
    --------
    >>> mixture = Mixture(np.array([0.5, 0.5]), np.array([[-3.0], [3.0]]), np.ones((2, 1)))
    >>> mean, variance = mixture.moments
    >>> float(mean[0]), float(variance[0]), round(float(mixture.quantile(0.75)[0]), 3)
    (0.0, 10.0, 3.0)
    """

    weights: Floats
    means: Floats
    variances: Floats

    @classmethod
    def of(cls, found: Sequence[tuple[Floats, Floats]], weights: Floats | None = None) -> Mixture:
        """Return the mixture of means and variances, by default with equal weights."""
        means, variances = zip(*found, strict=True)
        equal = np.full(len(means), 1.0 / len(means))
        return cls(equal if weights is None else weights, np.array(means), np.array(variances))

    @property
    def moments(self) -> tuple[Floats, Floats]:
        """Mean, and variance by Rubin's rule: the mean variance and the variance of the means."""
        mean = self.weights @ self.means
        return mean, self.weights @ (self.variances + (self.means - mean) ** 2)

    def hedged(self, z: Floats, origin: float = 0.0, usual: Floats | float = 1.0) -> Mixture:
        r"""Return the mixture about means that stay within what the labels `z` show of outcomes.

        A field whose standard deviation :math:`\sigma_i` at a node is larger than `s`, that of the labels, knows less
        than their mean does, and follows features to where no label has been. So the less it is certain of a mean
        :math:`m_i`, the more of what is beyond the range of the labels, where 2 of `m + 1` exchangeable outcomes lie,
        is cut off, and the more the rest is shrunk to the mean of the labels:

        .. math:: m_i \mapsto \min\Big(1, \frac s{\sigma_i}\Big) \Big(m_i - \min\Big(1, \frac{\sigma_i}s\Big)
                  \big(m_i - \min(\max(m_i, \min z), \max z)\big)\Big), \qquad s^2 = \frac m{m - 3},

        the variance of a new outcome given `m` normal ones. What that takes away from a mean is uncertainty: squared,
        it is added to the variance.

        Parameters
        ----------
        z : array of shape (m,)
            The standardised labels.
        origin : float
            What is expected where nothing is known; see `Posterior.origin`.
        usual : float or array of shape (n,)
            Variance of the outcome of every node over that of the labelled ones; see `Posterior.relative_variance`.

        Examples
        --------
        >>> far = Mixture(np.ones(1), np.array([[0.5, 50.0]]), np.array([[0.2, 400.0]]))
        >>> hedged, _ = far.hedged(np.array([-1.5, -0.5, 0.0, 0.5, 0.5, 1.0])).moments
        >>> hedged.round(2).tolist()
        [0.5, 0.07]
        """
        if not z.size:
            return self
        mean, variance = self.moments
        wide = np.sqrt(np.maximum(usual, 1.0))
        doubt = np.sqrt(variance / new_outcome_variance(z.size)) / wide
        about = mean - origin
        beyond = about - np.clip(about, wide * (z.min() - origin), wide * (z.max() - origin))
        cut = (about - np.minimum(doubt, 1.0) * beyond) / np.maximum(doubt, 1.0) - about
        return Mixture(self.weights, self.means + cut, self.variances + cut**2)

    def with_draws_to_come(self, pairs: int, draws: Ints | None = None) -> Mixture:
        r"""Return the mixture of what all draws of missing features would say, from that of so few pairs of them.

        About `q` independent draws of known mean a further one has Student's distribution, with :math:`q / (q - 2)` of
        their variance (Rubin and Schenker, 1986, have it for multiple imputation): what the present ones leave open of
        it is added to the variance of every member.

        Parameters
        ----------
        pairs : int
            The number `q` of pairs.
        draws : integer array of shape (k,), optional
            The draw of the features of every member, -1 for one of none; by default each member is one.
        """
        weights, about = self.about_draws(np.arange(len(self.weights)) if draws is None else draws)
        between = weights @ about**2
        return Mixture(self.weights, self.means, self.variances + student_variance(pairs) * between - between)

    def about_draws(self, draws: Ints) -> tuple[Floats, Floats]:
        """Return the weights (d,) of the draws of features, and means (d, n) of their members about that of all."""
        own = (draws == np.unique(draws[draws >= 0])[:, None]) * self.weights
        own = own[own.any(axis=1)]
        weights = own.sum(axis=1)
        means = (own / weights[:, None]) @ self.means
        return weights, means - (weights @ means) / max(float(weights.sum()), 1e-300)

    def quantile(self, level: float) -> Floats:
        """Return the value below which every node lies with some probability, between those of the members."""
        stds = np.sqrt(self.variances)
        each = self.means + float(ndtri(level)) * stds
        low, high = each.min(axis=0), each.max(axis=0)
        for _ in range(_BISECTIONS if len(self.weights) > 1 else 0):
            middle = 0.5 * (low + high)
            below = self.weights @ ndtr((middle - self.means) / stds) < level
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return np.asarray(0.5 * (low + high))


def student_variance(freedom: float) -> float:
    """Return the variance of Student's distribution with so many degrees of freedom, more than 2.

    Examples
    --------
    >>> student_variance(4)
    2.0
    """
    return freedom / (freedom - 2.0)


def new_outcome_variance(labels: int) -> float:
    """Return the variance of a new outcome given so many normal ones of variance 1, m / (m - 3); see `Mixture.hedged`.

    The fewer they are, the less they tell of it; below four, where the formula ends, as much as four.

    Examples
    --------
    >>> [new_outcome_variance(labels) for labels in (2, 4, 6)]
    [4.0, 4.0, 2.0]
    """
    return max(labels, 4) / max(labels - 3.0, 1.0)


class Posterior(Protocol):
    """The standardised outcome of all nodes given standardised labels; callers do not ask which solver it is of.

    Exact (`ExactPosterior`), sparse (`SparsePosterior`), and averaged over missing features, hyper-parameters or both
    (`AveragedPosterior`).
    """

    @property
    def h(self) -> Hyperparameters:
        """The hyper-parameters."""

    @property
    def z(self) -> Floats:
        """The standardised labels, shape (m,)."""

    @property
    def refitted_up_to(self) -> int:
        """Number of labels up to which `refitted` is worth its time."""

    @property
    def noise(self) -> float:
        """Variance of the independent noise of a node."""

    @property
    def origin(self) -> float:
        """What is expected of an outcome of which nothing is known."""

    def relative_variance(self, graph: Graph | None = None) -> Floats:
        """Return the prior variance of the graph field at all nodes, over its mean at the labelled ones.

        It is 1 but in the paper's own model, and of another graph that of its nodes.
        """

    @property
    def central(self) -> Posterior:
        """The field at one point of the hyper-parameters and features, in place of an average."""

    def moments(self, nodes: Ints) -> tuple[Floats, Floats]:
        """Return mean and variance of the outcome of unlabelled nodes, noise included."""

    def mixture(self, nodes: Ints) -> Mixture:
        """Return the whole distribution of the outcome of every unlabelled node, of which `moments` are the moments."""

    def draw(self, nodes: Ints, count: int, rng: np.random.Generator) -> Floats:
        """Return joint draws of the outcomes of unlabelled nodes, noise included, shape (count, len(nodes))."""

    def times_covariance(self, nodes: Ints, Z: Floats) -> Floats:
        """Return the joint covariance of unlabelled nodes, noise left out, times columns `Z` (len(nodes), k)."""

    def variances_given(self, rows: Ints, nodes: Ints) -> Floats:
        """Return the variance of nodes, noise included, were the labels those of other nodes `rows`.

        Values of labels play no part in it; nor does what they say of imputed features.
        """

    @property
    def left_out(self) -> tuple[Floats, Floats]:
        """Residual and variance of every label given the others."""

    def held_out(self, own: Bools) -> tuple[Floats, Floats]:
        """Return residuals and joint covariance, noise included, of some labels given the others."""

    def fitted_without(self, own: Bools, z: Floats, seed: int) -> Posterior:
        """Return the field fitted to the other labels, whose values are `z`."""

    def without(self, own: Bools) -> tuple[Floats, Floats]:
        """Return mean and variance of some labels given the others, at the same hyper-parameters."""

    def refitted(self, own: Bools, z: Floats, seed: int) -> tuple[Floats, Floats]:
        """Return mean and variance of some labels by a field fitted to the others, whose values are `z`."""

    def by_features(self, own: Bools) -> tuple[Floats, Floats]:
        """Return mean and variance of some labels by their features alone, of whose effects the other labels tell."""

    def elsewhere(self, graph: Graph, X: Floats) -> tuple[Floats, Floats]:
        """Return mean and variance of the outcome of all nodes of another graph, noise included.

        Effects of features carry over; what only the field of this graph knows is uncertainty there.
        """

    @property
    def shares(self) -> Mapping[str, float]:
        """The part of the variance of the labels that every component predicts, each label from the others."""

    def own_effects(self, returning: float) -> Floats:
        """Return the mean change (p,) of a node's expected outcome per unit of its own feature, by all effects.

        `returning` is the mean diagonal of :math:`S^2`: what comes back from the neighbours.
        """

    @property
    def coefficients(self) -> Mapping[str, tuple[Floats, Floats]]:
        """Mean and standard deviation of linear coefficients (p,) per unit of the feature, by the effect's title."""


def share_out(z: Floats, residual: Floats, predictions: Mapping[str, Floats], *, itself: Floats) -> dict[str, float]:
    r"""Return the share of every component, and that of "noise"; they add up to 1.

    "noise" is the covariance of the whole prediction's error with the label over the variance of the label; the rest
    is divided among the components by the covariance of their predictions with the label, those below 0 counting as 0.

    Parameters
    ----------
    z : array of shape (m,)
        The labels.
    residual : array of shape (m,)
        What the others leave of every label.
    predictions : mapping of str to array of shape (m,)
        What every component says of every label given the others.
    itself : array of shape (m,)
        How much of "smoothed" a node has from its own features: it is counted as "own".

    Examples
    --------
    >>> z = np.array([-1.0, 1.0])
    >>> said = {"own": 0.2 * z, "smoothed": 0.6 * z, "field": 0.0 * z}
    >>> {name: round(share, 3) for name, share in share_out(z, 0.2 * z, said, itself=0.15 * z).items()}
    {'own': 0.35, 'smoothed': 0.45, 'field': 0.0, 'noise': 0.2}
    """
    deviations = z - z.mean()
    variance = float(np.mean(deviations**2))
    if variance == 0:
        return dict.fromkeys(predictions, 0.0) | {"noise": 1.0}

    def explained(prediction: Floats) -> float:
        return max(float(np.mean(prediction * deviations)) / variance, 0.0)

    parts = {name: explained(prediction) for name, prediction in predictions.items()}
    moved = min(explained(itself), parts.get("smoothed", 0.0))
    if moved:
        parts |= {"own": parts.get("own", 0.0) + moved, "smoothed": parts["smoothed"] - moved}
    noise, total = float(np.clip(np.mean(residual * deviations) / variance, 0.0, 1.0)), sum(parts.values())
    if total == 0:
        return parts | {"noise": 1.0}
    return {name: (1.0 - noise) * part / total for name, part in parts.items()} | {"noise": noise}
