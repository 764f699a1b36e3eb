r"""The field as a list of components: their contract, their hyper-parameters, and the covariance they add up to.

.. math:: \mathrm{Cov}(y) = t_0 + \sum_c v_c K_c

Every component `c` is one class (see `Component`); names, search space, covariance and gradients all follow from the
list. Components have variance 1 at the average node before they are multiplied by their own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from graphmrf.field.correlations import Correlations, Smoothings
from graphmrf.field.design import predicted_by_own
from graphmrf.field.hyperparameters import Space
from graphmrf.field.matern import matern_smooth
from graphmrf.field.posterior import new_outcome_variance
from graphmrf.kept import cached_property
from graphmrf.linalg import marginal_variance
from graphmrf.linalg.dense import array

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Self

    from graphmrf._typing import Bools, Floats, Ints
    from graphmrf.field.design import Design, LabelledGraph
    from graphmrf.field.hyperparameters import Parameter, Values
    from graphmrf.field.matern import Eigen
    from graphmrf.graph import Graph
    from graphmrf.linalg.dense import Triangle

_UNEQUAL = (20.0, 2.0)
"""Usual omega, and the ratio of marginal variances that no label shows from which they are taken as equal."""

_SHOWN = (0.05, 10)
"""Share of the labels, and number of them, either of which shows an effect: as many as a fold of the fewest that are
calibrated, and as many as those. Doubled, graphs of which few nodes have neighbours have wider error bars there."""

Slopes: TypeAlias = "dict[str, float | Floats]"
Vjp: TypeAlias = "Callable[[Floats], Slopes]"
Jvp: TypeAlias = "Callable[[Floats], dict[str, Floats]]"
"""Takes a vector (m,), and returns the derivatives of the covariance by every coordinate times it, (m,) or (m, k)."""


class Component(ABC):
    """One term of the field. A new one is a class of this contract in the list ``field.components.COMPONENTS``.

    Attributes
    ----------
    name : str
        Its name, which is also that of its variance among the hyper-parameters.
    effect : str
        Its row in the table of shares; components may share a row.
    words : pair of str
        The effect in a sentence, and what it means.
    parameters : tuple of Parameter
        Its hyper-parameters, with range and prior.
    of_features : bool
        Whether there is none without features.
    transfers : bool
        Whether it says the same of another graph (see `elsewhere`); otherwise only the field of this one knows it.
    least_nodes : int
        Nodes of the smallest connected component in which it differs from effects of own features, and from noise:
        neighbours' features of an isolated node are predicted by its own, and its field is noise; second neighbours'
        features of one of a pair are its own.
    """

    name: str
    effect: str
    words: tuple[str, str]
    parameters: tuple[Parameter, ...]
    of_features: bool = True
    transfers: bool = False
    least_nodes: int = 1

    def read(self, values: Mapping[str, Floats], p: int) -> dict[str, Any]:  # noqa: ARG002 - part of the contract
        """Return the hyper-parameters from the exponentials of the coordinates, for `p` features."""
        return {parameter.name: float(values[parameter.name][0]) for parameter in self.parameters}

    @abstractmethod
    def among(self, labels: Covariance, h: Values) -> tuple[Floats, Vjp, Jvp]:
        """Return the covariance among the labelled nodes, packed, its vector-Jacobian product, and its derivatives.

        The former takes the gradient of a function by the packed matrix, and returns its derivatives by every
        coordinate; the latter takes a vector, and returns the derivatives of the matrix times it.
        """

    @abstractmethod
    def across(self, labels: Covariance, h: Values, nodes: Ints) -> Floats:
        """Return the covariance between other nodes and the labelled ones, shape (len(nodes), m)."""

    @abstractmethod
    def variances(self, labels: Covariance, h: Values, nodes: Ints) -> Floats:
        """Return the prior variance at some nodes."""

    def on_graph(self, h: Values) -> tuple[float, float] | None:  # noqa: ARG002 - part of the contract
        """Return `omega` and `nu` of the field on the graph that it is made of; None without one."""
        return None

    def factors(self, labels: Covariance, h: Values) -> tuple[Floats, tuple[float, float] | None]:
        r"""Return columns (n, r) of all nodes whose sum, each times a random number or field, is the component, nearly.

        With them comes None where the columns are multiplied by independent standard normal numbers, or the `omega` and
        `nu` of the independent fields on the graph, of spectrum `Eigen.matern`, that multiply them.
        """
        raise NotImplementedError(f"component {self.name!r} cannot be drawn on large graphs; use solver='sparse'")

    def elsewhere(self, labels: Covariance, h: Values, there: OtherGraph, nodes: Ints) -> tuple[Floats | None, Floats]:  # noqa: ARG002
        """Return the covariance (k, m) of nodes of another graph with the labelled ones, and their prior variance (k,).

        What only the field of this graph knows has no covariance, None, and the variance it has here on average.
        """
        return None, np.full(nodes.size, self.variances(labels, h, labels.rows).mean())

    def columns(self, graph: LabelledGraph, design: Design, h: Values, most: int) -> Floats | None:  # noqa: ARG002
        """Return columns F of all nodes, at most so many if there is a choice, for the sparse solver; None without.

        The component then is F times coefficients of prior variance ``h[name] * weight(F.shape[1])``.
        """
        return None

    def columns_elsewhere(self, there: OtherGraph, design: Design, h: Values, size: int, seed: int) -> Floats | None:  # noqa: ARG002
        """Return so many columns of all nodes of another graph, the same as here; None if it has none there."""
        return None

    def weight(self, width: int) -> float:  # noqa: ARG002 - part of the contract
        """Return the prior variance of a coefficient over that of the component, for so many columns."""
        return 1.0


class LinearComponent(Component):
    """A component that is linear in some columns: `features` is all it must have.

    Attributes
    ----------
    title : str
        What its coefficients are called, where every feature has one (see `scales`).
    """

    title: str = ""

    @abstractmethod
    def features(self, labels: Covariance, h: Values, nodes: Ints) -> Floats:
        """Return the columns at some nodes."""

    def labelled(self, labels: Covariance, h: Values) -> tuple[Floats, dict[str, Floats]]:
        """Return the columns at the labelled nodes, and their derivatives by coordinates; here they are fixed."""
        return self.features(labels, h, labels.rows), {}

    def weight(self, width: int) -> float:
        """Return the prior variance of a coefficient: columns of variance 1 together have that of the component."""
        return 1.0 / max(width, 1)

    def among(self, labels: Covariance, h: Values) -> tuple[Floats, Vjp, Jvp]:
        """Return the covariance among the labelled nodes, its vector-Jacobian product, and its derivatives."""
        return linear_among((self,), labels, h)

    def across(self, labels: Covariance, h: Values, nodes: Ints) -> Floats:
        """Return the covariance between other nodes and the labelled ones."""
        F = self.features(labels, h, labels.rows)
        there = labels.triangle.place(self.features(labels, h, nodes))
        return array(h[self.name] * self.weight(F.shape[1]) * (there @ F.T))

    def variances(self, labels: Covariance, h: Values, nodes: Ints) -> Floats:
        """Return the prior variance at some nodes."""
        F = self.features(labels, h, nodes)
        return np.asarray(h[self.name] * self.weight(F.shape[1]) * np.einsum("ij,ij->i", F, F))

    def factors(self, labels: Covariance, h: Values) -> tuple[Floats, tuple[float, float] | None]:
        """Return the columns at all nodes, of the size of the effects, which random numbers multiply."""
        F = self.features(labels, h, np.arange(len(labels.design.Z)))
        return np.asarray(np.sqrt(h[self.name] * self.weight(F.shape[1])) * F), None

    def features_elsewhere(self, labels: Covariance, h: Values, there: OtherGraph, nodes: Ints) -> Floats | None:  # noqa: ARG002
        """Return the columns at some nodes of another graph, in the units of this one; None where none are known."""
        return None

    def elsewhere(self, labels: Covariance, h: Values, there: OtherGraph, nodes: Ints) -> tuple[Floats | None, Floats]:
        """Return the covariance of nodes of another graph with the labelled ones, and their prior variance."""
        G = self.features_elsewhere(labels, h, there, nodes)
        if G is None:
            return super().elsewhere(labels, h, there, nodes)
        F = self.features(labels, h, labels.rows)
        share = h[self.name] * self.weight(F.shape[1])
        return np.asarray(share * (G @ F.T)), np.asarray(share * np.einsum("ij,ij->i", G, G))

    def scales(self, labels: Covariance, h: Values) -> Floats | None:  # noqa: ARG002 - part of the contract
        """Return the units of the columns in those of the features, where every feature has one; None otherwise."""
        return None


def linear_among(components: Sequence[LinearComponent], labels: Covariance, h: Values) -> tuple[Floats, Vjp, Jvp]:
    """Return the covariance of several linear components together: one product of matrices in place of many."""
    triangle = labels.triangle
    found = [component.labelled(labels, h) for component in components]
    shares = [h[c.name] * c.weight(F.shape[1]) for c, (F, _) in zip(components, found, strict=True)]
    stacked = np.hstack([F for F, _ in found])
    scaled = stacked * np.sqrt(np.repeat(shares, [F.shape[1] for F, _ in found]))

    def vjp(G: Floats) -> Slopes:
        GF, slopes, first = triangle.times(G, stacked), Slope(), 0
        for component, share, (F, derivatives) in zip(components, shares, found, strict=True):
            own = GF[:, first : first + F.shape[1]]
            slopes.add({component.name: share * float(np.vdot(F, own))})
            slopes.add({name: 2.0 * share * float(np.vdot(dF, own)) for name, dF in derivatives.items()})
            first += F.shape[1]
        return slopes

    def jvp(a: Floats) -> dict[str, Floats]:
        products = Slope()
        for component, share, (F, derivatives) in zip(components, shares, found, strict=True):
            products.add({component.name: share * (F @ (F.T @ a))})
            products.add({name: share * (F @ (dF.T @ a) + dF @ (F.T @ a)) for name, dF in derivatives.items()})
        return products

    return triangle.gram(scaled), vjp, jvp


class Slope(dict[str, Any]):
    """Derivatives by name, added up."""

    def add(self, more: Mapping[str, Any]) -> None:
        """Add other derivatives."""
        for name, slope in more.items():
            self[name] = self.get(name, 0.0) + slope


@dataclass(frozen=True, eq=False)
class Covariance:
    """The covariance of the outcomes of the labelled nodes, its derivatives, and its blocks with other nodes.

    Attributes
    ----------
    design : Design
        Features of all nodes.
    correlations : Correlations
        The graph's part: eigenvectors, and the labelled nodes.
    components : tuple of Component
        The terms of the field.
    imputed : array of shape (m,), optional
        Variance that a label has because features of its node were imputed; see `averaged.with_imputed_variance`.
    unshown : tuple of str
        Components that no label shows, which have no variance here; see `unshown_effects`.
    """

    design: Design
    correlations: Correlations
    components: tuple[Component, ...]
    imputed: Floats | None = None
    unshown: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, design: Design, eigen: Eigen, rows: Ints, components: Sequence[Component], unshown: tuple[str, ...] = ()
    ) -> Self:
        """Return the covariance of some nodes by those of the components that the exact solver searches."""
        searched = tuple(c for c in components if c.parameters)
        return cls(design, Correlations(eigen, rows), searched, unshown=unshown)

    @cached_property
    def space(self) -> Space:
        """Where the hyper-parameters of the components live that labels show."""
        names = [parameter.name for c in self.components if c.name not in self.unshown for parameter in c.parameters]
        return Space(self.components, self.design.p, tuple(names) if self.unshown else None)

    @property
    def rows(self) -> Ints:
        """The labelled nodes."""
        return self.correlations.rows

    @property
    def eigen(self) -> Eigen:
        """Eigenvectors of the graph."""
        return self.correlations.eigen

    @property
    def triangle(self) -> Triangle:
        """Layout of the matrices among the labelled nodes."""
        return self.correlations.triangle

    def part(self, places: Ints | Bools) -> Covariance:
        """Return the same for some of the labelled nodes."""
        chosen = np.flatnonzero(places) if places.dtype == np.bool_ else np.asarray(places, dtype=np.int64)
        imputed = None if self.imputed is None else self.imputed[chosen]
        return Covariance(self.design, self.correlations.part(chosen), self.components, imputed, self.unshown)

    @cached_property
    def unit_variance(self) -> bool:
        """Whether no label shows how unequal marginal variances are, as where all isolated nodes are unlabelled."""
        return unequal_variance_unseen(self.eigen.variances(_UNEQUAL[0], 1.0), self.rows)

    @cached_property
    def _levels_seen(self) -> tuple[float, bool]:
        """How far labels tell what levels of components do, and whether an isolated node has a label.

        The former is c / (c + p) for c more components than one and p features: as many of them as coefficients tell
        half of it, and on a connected graph nothing does.
        """
        sizes, own = np.bincount(self.design.components), self.design.components[self.rows]
        more = np.unique(own).size - 1
        return more / max(more + self.design.p, 1), bool((sizes[own] == 1).any())

    def level_damping(self, h: Values) -> tuple[float, float]:
        """Return what levels of components, and of isolated nodes, count elsewhere: see `smoothed_levels`."""
        mean, (seen, lonely) = self.eigen.mean(h["omega"], h["nu"]), self._levels_seen
        return mean + (1.0 - mean) * seen, 1.0 if lonely else mean

    @cached_property
    def smoothings(self) -> Smoothings:
        """The features smoothed as a field is."""
        return Smoothings(self.eigen, self.rows, self.design.groups[0], self.correlations.spanned, self.design.isolated)

    def with_isolated(self, h: Values, here: Design, nodes: Ints, smoothed: Floats) -> Floats:
        """Return smoothed features (k, n', p), and their derivatives, with what own ones predict at isolated nodes.

        Smoothing leaves an isolated node as it is, and makes all others smaller: over the mean eigenvalue it would be
        far from all others. It is so only in the paper's own model, in which own features have no other effect.
        """
        if h.get("paper_model") or not here.isolated[nodes].any():
            return smoothed
        coefficients = self.smoothings.regressions(h["omega"], h["nu"])[: len(smoothed)]
        return predicted_by_own(smoothed, here.groups[0][nodes], coefficients, here.isolated[nodes])

    @cached_property
    def squares(self) -> Floats:
        """Squared distances of the labelled nodes in feature space, as a lower triangle."""
        return self.distances(np.ones(self.design.Z.shape[1]))

    def distances(self, weights: Floats) -> Floats:
        """Return weighted squared distances of the labelled nodes, as a lower triangle."""
        Z = self.triangle.place(self.design.Z[self.rows] * np.sqrt(weights))
        half = 0.5 * np.einsum("ij,ij->i", Z, Z)
        found = -self.triangle.gram(Z)
        for rows, strip in self.triangle.strips(found):
            np.add(strip, half[rows, None] + half[: rows.stop], out=strip)
        found *= 2.0
        return np.maximum(found, 0.0, out=found)

    def present(self, h: Values) -> list[Component]:
        """Return the components that have a variance."""
        return [c for c in self.components if h[c.name] and (self.design.p or not c.of_features)]

    def among(self, h: Values) -> tuple[Floats, Vjp, Jvp]:
        """Return the covariance among the labelled nodes, packed, its vector-Jacobian product, and its derivatives."""
        present = self.present(h)
        self._expect(present, h)
        linear = [component for component in present if isinstance(component, LinearComponent)]
        total, derivatives = self.triangle.full(h["constant"]), list[tuple[Vjp, Jvp]]()
        makers = [partial(linear_among, linear)] * bool(linear)
        for among in makers + [c.among for c in present if not isinstance(c, LinearComponent)]:
            found = among(self, h)
            total += found[0]
            derivatives.append(found[1:])
            del found  # the next takes the memory of the matrix
        if self.imputed is not None:
            total[self.triangle.diagonal] += self.triangle.place(self.imputed)

        def vjp(G: Floats) -> Slopes:
            slopes = Slope()
            for each, _ in derivatives:
                slopes.add(each(G))
            return slopes

        def jvp(a: Floats) -> dict[str, Floats]:
            products = Slope()
            for _, each in derivatives:
                products.add(each(a))
            return products

        return total, vjp, jvp

    def _expect(self, present: Sequence[Component], h: Values) -> None:
        self.correlations.expect([at for c in present if (at := c.on_graph(h)) is not None])

    def across(self, h: Values, nodes: Ints) -> dict[str, Floats]:
        """Return the components between other nodes and the labelled ones, each of shape (len(nodes), m)."""
        present = [c for c in self.present(h) if c.name != "noise"]
        self._expect(present, h)
        return {c.name: c.across(self, h, nodes) for c in present}

    def factors(self, h: Values) -> tuple[list[tuple[Floats, tuple[float, float] | None]], Floats]:
        """Return what the components are sums of, see `Component.factors`, and the variance (n,) that these lack."""
        found = [c.factors(self, h) for c in self.present(h) if c.name != "noise"]
        n = len(self.design.Z)
        left = self.variances(h, np.arange(n)) - h["constant"] - h["noise"]
        for columns, at in found:
            variance = 1.0 if at is None else self.eigen.variances(*at)
            left -= variance * np.einsum("ij,ij->i", columns, columns)
        return found, np.maximum(left, 0.0)

    def elsewhere(self, h: Values, there: OtherGraph, nodes: Ints) -> tuple[Floats, Floats]:
        """Return the covariance of outcomes of another graph with the labels, and their prior variance with noise."""
        across, prior = np.full((nodes.size, self.rows.size), h["constant"]), np.full(nodes.size, h["constant"])
        for component in self.present(h):
            block, variance = component.elsewhere(self, h, there, nodes)
            prior += variance
            if block is not None:
                across += block
        return across, prior

    def variances(self, h: Values, nodes: Ints) -> Floats:
        """Return the prior variance of the outcome of some nodes, noise included."""
        parts = [component.variances(self, h, nodes) for component in self.present(h)]
        return np.asarray(h["constant"] + np.sum(parts, axis=0))


@dataclass(frozen=True, eq=False)
class OtherGraph:
    """Another graph, and the features of its nodes in the units of the graph of the labels.

    Attributes
    ----------
    graph : Graph
        The other graph.
    design : Design
        Features of its nodes; see `Design.elsewhere`.
    """

    graph: Graph
    design: Design
    _smoothed: dict[tuple[float, float], Floats] = field(default_factory=dict, repr=False)

    def smoothed(self, omega: float, nu: float) -> Floats:
        r"""Return :math:`(I + \omega N)^{-\nu}` times a constant 1 and its own features, shape (n, 1 + p)."""
        if (omega, nu) not in self._smoothed:
            columns = np.column_stack([np.ones(self.graph.n_nodes), self.design.groups[0]])
            self._smoothed[omega, nu] = matern_smooth(self.graph, columns, omega, nu)
        return self._smoothed[omega, nu]

    def smoothed_levels(self, omega: float, nu: float, damping: tuple[float, float]) -> Floats:
        r"""Return `smoothed` with the level of every connected component, and of isolated nodes, damped.

        Smoothing damps all patterns but the levels, :math:`D^{1/2} 1` on a component, and a connected graph shows one
        draw of them: errors of coefficients, which all other patterns told, would be blown up by the level of another.
        So it counts as an average pattern does, unless there are many components; and isolated nodes do, unless one
        of them has a label. See `Covariance.level_damping`.
        """
        columns = np.column_stack([np.ones(self.graph.n_nodes), self.design.groups[0]])
        places, lonely = self.graph.components, np.asarray(self.graph.degrees == 0)
        root = np.sqrt(np.where(lonely, 1.0, self.graph.degrees))[:, None]
        sums = np.zeros((self.graph.n_components, columns.shape[1]))
        np.add.at(sums, places, root * columns)
        levels = root * (sums / np.bincount(places, root[:, 0] ** 2)[:, None])[places]
        return np.asarray(self.smoothed(omega, nu) - (1.0 - np.where(lonely, *damping[::-1]))[:, None] * levels)

    def variances(self, omega: float, nu: float) -> Floats:
        r"""Return the diagonal of :math:`(I + \omega N)^{-1}`; nu is 1 wherever the field has unequal variances."""
        assert nu == 1.0
        return marginal_variance(self.graph, omega / (1.0 + omega))


def unequal_variance_unseen(variances: Floats, rows: Ints) -> bool:
    r"""Return whether unlabelled nodes have marginal variances beyond twice, or below half, any that a label shows.

    Then a field of unit variance at all nodes is the safer guess: nothing tells what it is where it would be largest,
    or whether it is as small as stated where it would be smallest.

    Parameters
    ----------
    variances : array of shape (n,)
        Diagonal of :math:`(I + \omega N)^{-1}` at the usual omega of 20.
    rows : integer array of shape (m,)
        The labelled nodes.
    """
    seen, ratio = variances[rows], _UNEQUAL[1]
    return bool(variances.max() > ratio * seen.max() or ratio * variances.min() < seen.min())


def unshown_effects(components: Sequence[Component], sizes: Ints, rows: Ints) -> tuple[str, ...]:
    """Return the names of the effects that hardly any label shows, as those of neighbours where labels have none.

    The labels are as likely for any variance of these, since they take part in effects that labels do show.

    Parameters
    ----------
    components : sequence of Component
        The terms of the field.
    sizes : integer array of shape (n,)
        Nodes of the connected component of every node.
    rows : integer array of shape (m,)
        The labelled nodes.

    Examples
    --------
    >>> from graphmrf.field.components import COMPONENTS
    >>> sizes = np.array([1, 1, 2, 2, 3, 3, 3])
    >>> unshown_effects(COMPONENTS, sizes, np.array([0, 2])), unshown_effects(COMPONENTS, sizes, np.array([0, 4]))
    (('second', 'distant', 'smoothed'), ())
    >>> unshown_effects(COMPONENTS, sizes, np.array([0, 1]))
    ('neighbours', 'second', 'distant', 'smoothed', 'local', 'field')
    """
    share, number = _SHOWN
    few = min(share * rows.size, number)
    return tuple(c.name for c in components if np.count_nonzero(sizes[rows] >= c.least_nodes) < few)


def unshown_variance(components: Sequence[Component], unshown: tuple[str, ...], sizes: Ints, labels: int) -> Floats:
    """Return the variance (n,) of effects that no label shows at the nodes that have them; 0 at others.

    Each has the share of one of the components in the variance of a new outcome given the standardised labels, as if
    all were alike. Doubled, error bars of nodes with neighbours are wider by a quarter where no label has any.
    """
    searched = [c for c in components if c.parameters]
    each = new_outcome_variance(labels) / len(searched)
    acting = [sizes >= c.least_nodes for c in searched if c.name in unshown]
    return np.asarray(each * np.sum(acting, axis=0)) if acting else np.zeros(sizes.size)
