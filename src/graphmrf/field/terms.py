r"""The terms of the field: each is one class with a covariance, a sparse form, and the words people read.

With standardised features `X`, neighbours' means `M`, :math:`Z = [X, M]`, squared-exponential `k` and the correlations
`R` of :math:`(\kappa^2 + N)^{-\nu}`, each term has a variance :math:`\sigma^2` of its own and the covariance

=============  =================================================================
`own`          :math:`XX' / p`
`neighbours`   :math:`MM' / p`
`smoothed`     :math:`TX (TX)' / p`, with `T` the field's filter over its mean
`levels`       :math:`LL' / \bar\ell`, with `L` of 0 and 1 and :math:`\bar\ell` ones in a mean row
`learned`      :math:`cc'`, with `c` out-of-fold predictions of a learner
`time`         that of a random walk over the times of a panel, the same at all nodes
`nonlinear`    :math:`k(Z, Z')`, with a length scale for every column
`local`        :math:`k(Z, Z') \circ R`, with one length scale
`field`        :math:`R`
=============  =================================================================
"""

from __future__ import annotations

import math
from copy import copy
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from graphmrf.field.space import Shape
from graphmrf.field.spectrum import ORDER, range_prior

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from graphmrf._typing import Floats, Ints
    from graphmrf.field.features import Design
    from graphmrf.field.spectrum import Correlations, FieldSpectrum
    from graphmrf.graph import Graph

    Values = Mapping[str, Any]


class Among(NamedTuple):
    """A covariance among labelled nodes, and products with its derivatives by logarithms of hyper-parameters.

    `vjp` takes a symmetric matrix `G` and returns the inner product of `G` with every derivative; `jvp` takes a vector
    and returns every derivative times it.
    """

    K: Floats
    vjp: Callable[[Floats], dict[str, Any]]
    jvp: Callable[[Floats], dict[str, Floats]]


def by_matrices(K: Floats, derivatives: Callable[[], Mapping[str, Floats]]) -> Among:
    """Return a covariance whose derivatives are some matrices, computed when they are first asked for."""
    known = cache(derivatives)
    return Among(
        K,
        lambda G: {name: float(np.vdot(G, each)) for name, each in known().items()},
        lambda a: {name: each @ a for name, each in known().items()},
    )


class Labelled(Protocol):
    """What dense terms see of the data: features of all nodes, the labelled nodes, correlations of the graph."""

    @property
    def design(self) -> Design:
        """Features of all nodes."""

    @property
    def rows(self) -> Ints:
        """Node of every observation."""

    @property
    def spectrum(self) -> FieldSpectrum:
        """Functions of the graph's spectrum."""

    @property
    def correlations(self) -> Correlations:
        """Correlations of the graph among the labelled nodes."""

    @property
    def smoothed_features(self) -> Floats:
        """Own features under the functions that span the graph's correlations."""


class Term:
    """One term of the field; a new one is a subclass and one row in `TERMS`.

    Attributes
    ----------
    name : str
        Its name, and that of its variance.
    effect : str
        Its row in the table of shares.
    words : pair of str
        What it is called in a sentence, and what it is.
    needs_features, transfers, is_sparse : bool
        Whether it needs features, whether it holds on another graph, and whether it has a sparse form: few columns, or
        a precision on the graph.
    scale : float
        Scale of its standard deviation a priori, over that of other terms.
    """

    name = ""
    effect = ""
    words = ("", "")
    needs_features = True
    transfers = True
    is_sparse = True
    scale = 1.0

    def applies(self, design: Design) -> bool:
        """Return whether the data have what the term is about."""
        return bool(design.p) or not self.needs_features

    def split(self, design: Design) -> list[Term]:  # noqa: ARG002 - most terms are one
        """Return the terms, each with a variance of its own, that this one is for a design."""
        return [copy(self)]

    def shapes(self, graph: Graph, p: int) -> tuple[Shape, ...]:  # noqa: ARG002 - most terms have none
        """Return the hyper-parameters besides the variance."""
        return ()

    def among(self, data: Labelled, h: Values) -> Among:
        """Return the covariance among the labelled nodes, variance included, and its derivatives."""
        raise NotImplementedError

    def between(self, data: Labelled, h: Values, nodes: Ints, others: Ints) -> Floats:
        """Return the covariance between two sets of nodes, variance included."""
        raise NotImplementedError

    def variance(self, data: Labelled, h: Values, nodes: Ints) -> Floats:
        """Return the prior variance at some nodes."""
        raise NotImplementedError


class LinearTerm(Term):
    """A term with a few columns; coefficients are independent a priori, each with the variance over their number."""

    def columns(self, design: Design) -> Floats:
        """Return the columns at all nodes of a design."""
        raise NotImplementedError

    def _columns(self, data: Labelled, h: Values, nodes: Ints) -> Floats:  # noqa: ARG002 - smoothed features need them
        return np.asarray(self.columns(data.design)[nodes])

    def among(self, data: Labelled, h: Values) -> Among:
        """Return the covariance among the labelled nodes."""
        F = self._columns(data, h, data.rows)
        K = h[self.name] / F.shape[1] * (F @ F.T)
        return by_matrices(K, lambda: {self.name: K})

    def between(self, data: Labelled, h: Values, nodes: Ints, others: Ints) -> Floats:
        """Return the covariance between two sets of nodes."""
        F, G = self._columns(data, h, nodes), self._columns(data, h, others)
        return np.asarray(h[self.name] / F.shape[1] * (F @ G.T))

    def variance(self, data: Labelled, h: Values, nodes: Ints) -> Floats:
        """Return the prior variance at some nodes."""
        F = self._columns(data, h, nodes)
        return np.asarray(h[self.name] / F.shape[1] * np.einsum("ij,ij->i", F, F))


_NEIGHBOURHOOD = ("neighbours' features", "linear effects of the features of the neighbourhood")


class Own(LinearTerm):
    """Linear effects of a node's own features."""

    name = "own"
    effect = "own features"
    words = ("own features", "linear effects of a node's own features")

    def columns(self, design: Design) -> Floats:
        """Return own features."""
        return design.own


class Neighbours(LinearTerm):
    """Linear effects of the mean features of a node's neighbours."""

    name = "neighbours"
    effect = "neighbours' features"
    words = _NEIGHBOURHOOD

    def columns(self, design: Design) -> Floats:
        """Return neighbours' means."""
        return design.neighbours


class Smoothed(LinearTerm):
    """Linear effects of features smoothed as the graph field is: the paper's linear graph convolution."""

    name = "smoothed"
    effect = "neighbours' features"
    words = _NEIGHBOURHOOD
    transfers = False

    def shapes(self, graph: Graph, p: int) -> tuple[Shape, ...]:  # noqa: ARG002 - as for every term
        """Return range and order, those of the graph field."""
        return (range_prior(graph, "field.range"), ORDER)

    def _columns(self, data: Labelled, h: Values, nodes: Ints) -> Floats:
        return np.asarray(data.spectrum.combine(*_range_and_order(h, "field"), data.smoothed_features)[0, nodes])

    def among(self, data: Labelled, h: Values) -> Among:
        """Return the covariance among the labelled nodes, with derivatives by the field's range and order."""
        F, by_range, by_order = data.spectrum.combine(
            *_range_and_order(h, "field"), data.smoothed_features[:, data.rows]
        )
        scale = h[self.name] / F.shape[1]
        slopes = {"field.range": by_range, "field.order": by_order}

        def vjp(G: Floats) -> dict[str, Any]:
            GF = G @ F
            found = {name: 2.0 * scale * float(np.vdot(GF, dF)) for name, dF in slopes.items()}
            return found | {self.name: scale * float(np.vdot(GF, F))}

        def jvp(a: Floats) -> dict[str, Floats]:
            Fa = F.T @ a
            found = {name: scale * (F @ (dF.T @ a) + dF @ Fa) for name, dF in slopes.items()}
            return found | {self.name: scale * (F @ Fa)}

        return Among(scale * (F @ F.T), vjp, jvp)


class Levels(LinearTerm):
    """Effects of the levels of categories, which have the same variance a priori however rare they are.

    Of several categories each has a term, `levels:name`; all other columns of levels share one.
    """

    name = "levels"
    effect = "levels of categories"
    words = ("levels of categories", "an effect of every level of categories, words or tags")
    needs_features = False

    def columns(self, design: Design) -> Floats:
        """Return the columns of the levels."""
        if self.name == Levels.name:
            return design.levels
        return design.levels[:, [self.name == _of_category(group) for group in design.groups]]

    def applies(self, design: Design) -> bool:
        """Return whether there are levels."""
        return bool(design.levels.shape[1])

    def split(self, design: Design) -> list[Term]:
        """Return a term for each category where there are several; together they vary as much as one."""
        groups = dict.fromkeys(design.groups)
        found: list[Term] = [copy(self) for _ in groups]
        for term, group in zip(found, groups, strict=True):
            term.name = _of_category(group) if len(found) > 1 else self.name
            term.scale = self.scale / math.sqrt(len(found))
        return found


def _of_category(group: str) -> str:
    return f"levels:{group}"


class Learned(LinearTerm):
    """The effect of out-of-fold predictions of a learner."""

    name = "learned"
    effect = "learned effects"
    words = ("learned effects", "out-of-fold predictions of a learner, such as boosted trees")

    def columns(self, design: Design) -> Floats:
        """Return the column of the learner."""
        return design.learned

    def applies(self, design: Design) -> bool:
        """Return whether there is a learner."""
        return bool(design.learned.size)


class Time(LinearTerm):
    """The effect of every time of a panel, common to all nodes: a random walk and noise, so forecasts widen."""

    name = "time"
    effect = "effects of time"
    words = ("effects of time", "what all nodes have in common at a time, of panels")
    needs_features = False
    transfers = False

    def columns(self, design: Design) -> Floats:
        """Return the columns of the times."""
        return design.times

    def applies(self, design: Design) -> bool:
        """Return whether there are several times."""
        return bool(design.times.shape[1] > 1)


class Nonlinear(Term):
    """A smooth function of own and neighbours' features, with a length scale for each."""

    name = "nonlinear"
    effect = "nonlinear effects"
    words = ("nonlinear effects", "smooth nonlinear functions of own and neighbours' features")

    def shapes(self, graph: Graph, p: int) -> tuple[Shape, ...]:  # noqa: ARG002 - as for every term
        """Return the length scales: about the distance of two typical nodes."""
        return (Shape("nonlinear.lengths", math.sqrt(4.0 * p), 0.5, 2 * p),)

    def arguments(self, design: Design, h: Values) -> Floats:
        """Return features over their length scales."""
        return np.asarray(design.both / h["nonlinear.lengths"])

    def among(self, data: Labelled, h: Values) -> Among:
        """Return the covariance among the labelled nodes, with derivatives by every length scale."""
        Z = self.arguments(data.design, h)[data.rows]
        K = h[self.name] * squared_exponential(Z, Z)

        def vjp(G: Floats) -> dict[str, Any]:
            M = G * K
            squares = 2.0 * (Z**2).T @ M.sum(axis=1) - 2.0 * np.einsum("ij,ij->j", Z, M @ Z)
            return {self.name: float(M.sum()), "nonlinear.lengths": squares}

        def jvp(a: Floats) -> dict[str, Floats]:
            q = Z.shape[1]
            found = K @ np.hstack([a[:, None], Z * a[:, None], Z**2 * a[:, None]])
            squares = Z**2 * found[:, :1] - 2.0 * Z * found[:, 1 : 1 + q] + found[:, 1 + q :]
            return {self.name: found[:, 0], "nonlinear.lengths": squares}

        return Among(K, vjp, jvp)

    def between(self, data: Labelled, h: Values, nodes: Ints, others: Ints) -> Floats:
        """Return the covariance between two sets of nodes."""
        Z = self.arguments(data.design, h)
        return np.asarray(h[self.name] * squared_exponential(Z[nodes], Z[others]))

    def variance(self, data: Labelled, h: Values, nodes: Ints) -> Floats:  # noqa: ARG002 - the same at all nodes
        """Return the prior variance at some nodes."""
        return np.full(nodes.size, h[self.name])


class Local(Term):
    """A smooth function of features that changes over the graph."""

    name = "local"
    effect = "local effects"
    words = ("local effects", "effects of features that change over the graph")
    transfers = False
    is_sparse = False

    def shapes(self, graph: Graph, p: int) -> tuple[Shape, ...]:
        """Return the length scale in features, and range and order over the graph."""
        length = Shape("local.length", math.sqrt(4.0 * p), 1.0)
        return (length, range_prior(graph, "local.range"), Shape("local.order", ORDER.median, ORDER.spread))

    def among(self, data: Labelled, h: Values) -> Among:
        """Return the covariance among the labelled nodes and its derivatives."""
        Z = data.design.both[data.rows] / h["local.length"]
        squares = squared_distances(Z, Z)
        E = np.exp(-0.5 * squares)
        E *= h[self.name]
        R, slopes = data.correlations.among(*_range_and_order(h, "local"))
        K = E * R

        def derivatives() -> dict[str, Floats]:
            by_range, by_order = slopes()
            by_length = squares * K
            return {self.name: K, "local.length": by_length, "local.range": E * by_range, "local.order": E * by_order}

        return by_matrices(K, derivatives)

    def between(self, data: Labelled, h: Values, nodes: Ints, others: Ints) -> Floats:
        """Return the covariance between two sets of nodes."""
        Z = data.design.both / h["local.length"]
        R = data.spectrum.between(*_range_and_order(h, "local"), nodes, others)
        return np.asarray(h[self.name] * squared_exponential(Z[nodes], Z[others]) * R)

    def variance(self, data: Labelled, h: Values, nodes: Ints) -> Floats:  # noqa: ARG002 - the same at all nodes
        """Return the prior variance at some nodes."""
        return np.full(nodes.size, h[self.name])


class GraphField(Term):
    """A field that is smooth over the graph, of the same variance at every node."""

    name = "field"
    effect = "graph field"
    words = ("the graph field", "what neighbours have in common beyond their features")
    needs_features = False
    transfers = False

    def shapes(self, graph: Graph, p: int) -> tuple[Shape, ...]:  # noqa: ARG002 - as for every term
        """Return range and order."""
        return (range_prior(graph, "field.range"), ORDER)

    def among(self, data: Labelled, h: Values) -> Among:
        """Return the covariance among the labelled nodes and its derivatives."""
        R, slopes = data.correlations.among(*_range_and_order(h, "field"))
        v = h[self.name]
        K = v * R

        def derivatives() -> dict[str, Floats]:
            by_range, by_order = slopes()
            return {self.name: K, "field.range": v * by_range, "field.order": v * by_order}

        return by_matrices(K, derivatives)

    def between(self, data: Labelled, h: Values, nodes: Ints, others: Ints) -> Floats:
        """Return the covariance between two sets of nodes."""
        return np.asarray(h[self.name] * data.spectrum.between(*_range_and_order(h, "field"), nodes, others))

    def variance(self, data: Labelled, h: Values, nodes: Ints) -> Floats:  # noqa: ARG002 - the same at all nodes
        """Return the prior variance at some nodes."""
        return np.full(nodes.size, h[self.name])


def _range_and_order(h: Values, term: str) -> tuple[float, float]:
    return float(h[f"{term}.range"][0]), float(h[f"{term}.order"][0])


def squared_distances(A: Floats, B: Floats) -> Floats:
    """Return the squared distances between rows."""
    found = A @ B.T
    found *= -2.0
    found += np.einsum("ij,ij->i", A, A)[:, None]
    found += np.einsum("ij,ij->i", B, B)
    return np.maximum(found, 0.0, out=found)


def squared_exponential(A: Floats, B: Floats) -> Floats:
    r"""Return :math:`\exp(-\lVert a_i - b_j \rVert^2 / 2)`."""
    found = squared_distances(A, B)
    found *= -0.5
    return np.exp(found, out=found)


TERMS: dict[str, Term] = {
    term.name: term
    for term in (Own(), Neighbours(), Smoothed(), Levels(), Learned(), Time(), Nonlinear(), Local(), GraphField())
}
"""All terms of the default field by name."""


def family(name: str) -> str:
    """Return the name in `TERMS` of a term of a fit."""
    return name.partition(":")[0]


EFFECTS: dict[str, tuple[str, str]] = {term.effect: term.words for term in TERMS.values()} | {
    "noise": ("noise", "what neither features nor neighbours predict")
}
"""Rows of the table of shares: the effect in a sentence, and what it means."""


@dataclass(frozen=True)
class Prior:
    """The terms that a fit can use: those chosen, less those of features, times or a learner where there are none."""

    terms: tuple[Term, ...]

    @classmethod
    def of(cls, names: tuple[str, ...], design: Design, scales: Mapping[str, float] | None = None) -> Prior:
        """Return the terms of some names for a design, some of them with a scale a priori."""
        found = [term for name in names if TERMS[name].applies(design) for term in TERMS[name].split(design)]
        for term in found:
            term.scale *= (scales or {}).get(family(term.name), 1.0)
        return cls(tuple(found))
