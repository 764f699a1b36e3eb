r"""Components by their covariance: the nonlinear function, the function that drifts over the graph, the field, noise.

.. math:: f R_{\omega\nu} + r\,k(Z, Z') + r_2\,k_2(Z, Z') \circ R_{\omega_2\nu_2} + s I

with :math:`Z = [X, SX]`, squared-exponential `k`, and the correlations `R` of a Matern field on the graph.

For the sparse solver a function with covariance `k` is nearly a sum of some columns with independent coefficients of
one variance: from the eigenvalues :math:`\Lambda` and eigenvectors `U` of `k` among a thousand random nodes `C` come
the columns :math:`\Phi = k(Z, C) U \Lambda^{-1/2}` of all nodes, with :math:`\Phi \Phi' \approx k(Z, Z)` (Nystrom).
"""

from __future__ import annotations

import logging
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from graphmrf.field.covariance import Component
from graphmrf.field.hyperparameters import LEAST_NOISE, Parameter, variance
from graphmrf.field.matern import NUS, OMEGAS
from graphmrf.linalg import smooth
from graphmrf.linalg.dense import array, place

if TYPE_CHECKING:
    from collections.abc import Mapping

    from graphmrf._typing import Floats, Ints
    from graphmrf.engines import Engine
    from graphmrf.field.covariance import Covariance, Jvp, OtherGraph, Slopes, Vjp
    from graphmrf.field.design import Design, LabelledGraph
    from graphmrf.field.hyperparameters import Values
    from graphmrf.graph import Graph
    from graphmrf.linalg.dense import Triangle

_PROGRESS = logging.getLogger("graphmrf.progress")

NONLINEAR = (256, 1000)
"""Fewest and most columns of the nonlinear function; chosen by eye, solves and memory grow with them."""

LOCAL = (64, 400)
"""Columns above which a function that drifts is worth its time, and the most there are; chosen by eye."""

DRIFT = 1000.0
"""Omega of the drift in the sparse solver, fixed because it is in the columns: local effects change slowly."""

_CELLS = 10_000_000
"""Cells of the columns of one function: 80 MB. Doubling them doubles the columns of a large graph, and its solves."""
_CENTRES = 1500
"""Random nodes that span functions: chosen by eye; eigenvectors of twice as many take eight times as long."""
_RANK = 1e-8
"""Eigenvalue, relative to the largest, below which a column is rounding."""
_ROWS, _ROWS_ON_DEVICE = 512, 8192
"""Nodes whose columns are computed at once: few enough that their kernel, 3 or 6 MB, stays in the processor's cache."""
_SINGLE_CELLS = 20_000_000
"""Values of the kernel beyond which columns are in float32: a third of the time, and the noise of labels is far above
its rounding; 13,000 nodes."""
_LANDMARKS = 200
"""Random nodes that span smooth functions over the graph: one block of solves."""
_FACTORS = 64
"""Factors in features and over the graph whose products are the columns of local effects."""
_DRIFTING = 16
"""Columns of local effects in joint draws of large graphs, each times a field on the graph: what they lack is drawn as
noise. Doubled, draws take twice as long."""
_TOLERANCE = 1e-4
"""Relative residual of these solves, and eigenvalue below which a function is what they leave."""
_LEAST_NORM = 0.1
"""Row norm, in medians, below which functions are not brought to size 1: there they would be noise."""

OMEGA = Parameter("omega", math.log(20.0), math.log(OMEGAS[0]), math.log(OMEGAS[1]), 2.0, 1.0)
"""Omega of all fields, exact, sparse and the paper's: within a factor e^2 of 20."""

NU = Parameter("nu", 0.0, math.log(NUS[0]), math.log(NUS[1]), 0.7, 1.0)
"""Nu: within e^0.7 of 1."""

_LENGTH = (0.0, -2.5, 4.0, 1.0, 1.0)
"""A length scale: within e of the typical distance of two nodes."""


def squared_exponential(A: Floats, B: Floats) -> Floats:
    r"""Return :math:`\exp(-\lVert a_i - b_j \rVert^2 / 2)`."""
    halves = A @ B.T
    halves -= 0.5 * np.einsum("ij,ij->i", A, A)[:, None]
    halves -= 0.5 * np.einsum("ij,ij->i", B, B)
    return array(np.exp(np.minimum(halves, 0.0)))


def typical_distance(p: int) -> float:
    r"""Return the distance of two typical nodes in :math:`Z = [X, SX]`, :math:`\sqrt{4p}`."""
    return math.sqrt(4.0 * p)


def _times_squares(labels: Covariance, K: Floats, a: Floats) -> tuple[Floats, Floats]:
    r"""Return :math:`K a`, and :math:`(K \circ D_d) a` of the squared differences :math:`D_d` of every argument `d`."""
    Z = labels.design.Z[labels.rows]
    Za = Z * a[:, None]
    Ka, KZa, KZZa = np.split(labels.triangle.times(K, np.hstack([a[:, None], Za, Z * Za])), [1, 1 + Z.shape[1]], axis=1)
    return Ka[:, 0], Z**2 * Ka - 2.0 * Z * KZa + KZZa


def _derivatives(triangle: Triangle, matrices: Mapping[str, Floats], scale: float = 1.0) -> tuple[Vjp, Jvp]:
    """Return both products with the derivatives of a covariance, which are some matrices times a number."""

    def vjp(G: Floats) -> Slopes:
        return {name: scale * triangle.dot(G, each) for name, each in matrices.items()}

    def jvp(a: Floats) -> dict[str, Floats]:
        return {name: scale * triangle.times(each, a[:, None])[:, 0] for name, each in matrices.items()}

    return vjp, jvp


class GraphField(Component):
    r"""The field that is smooth over the graph, :math:`f R_{\omega\nu}`, with `R` from :math:`(I + \omega N)^{-\nu}`.

    The sparse solver has no columns of it: it is what its solves are about (see `sparse_system`), and nu is 1 there.
    """

    name = "field"
    effect = "graph field"
    words = ("the graph field", "what neighbours have in common beyond their features")
    parameters = (variance("field", 0.3), OMEGA, NU)
    of_features = False
    least_nodes = 2

    def among(self, labels: Covariance, h: Values) -> tuple[Floats, Vjp, Jvp]:
        """Return the covariance among the labelled nodes, its vector-Jacobian product, and its derivatives."""
        found = labels.correlations.among(h["omega"], h["nu"], unit_variance=h["unit_variance"])
        matrices = {"field": found.R, "omega": found.slopes[0], "nu": found.slopes[1]}
        return h["field"] * found.R, *_derivatives(labels.triangle, matrices, h["field"])

    def across(self, labels: Covariance, h: Values, nodes: Ints) -> Floats:
        """Return the covariance between other nodes and the labelled ones."""
        R = labels.correlations.across(h["omega"], h["nu"], nodes, unit_variance=h["unit_variance"])
        return array(h["field"] * R)

    def variances(self, labels: Covariance, h: Values, nodes: Ints) -> Floats:
        """Return the prior variance at some nodes."""
        given = labels.correlations.variances(h["omega"], h["nu"], nodes, unit_variance=h["unit_variance"])
        return np.asarray(h["field"] * given)

    def on_graph(self, h: Values) -> tuple[float, float]:
        """Return omega and nu."""
        return h["omega"], h["nu"]

    def factors(self, labels: Covariance, h: Values) -> tuple[Floats, tuple[float, float] | None]:
        """Return one column, which a field on the graph multiplies."""
        at, n = self.on_graph(h), len(labels.design.Z)
        scale = labels.eigen.variances(*at) ** -0.5 if h["unit_variance"] else np.ones(n)
        return np.sqrt(h["field"]) * scale[:, None], at

    def elsewhere(self, labels: Covariance, h: Values, there: OtherGraph, nodes: Ints) -> tuple[Floats | None, Floats]:
        """Return that the field of another graph is not known, and its variance."""
        if h["unit_variance"]:
            return None, np.full(nodes.size, h["field"])
        share = h["field"] / labels.eigen.mean(h["omega"], h["nu"])
        return None, np.asarray(share * there.variances(h["omega"], h["nu"])[nodes])


class Nonlinear(Component):
    r"""A smooth function of own and neighbours' features, :math:`r\,k(Z, Z')`.

    A length scale is a common one times one for the group (own or neighbours' features) times one for the feature;
    of a group within :math:`e^{0.5}` and of a feature within :math:`e^{0.3}` of the others.
    """

    name = "nonlinear"
    effect = "nonlinear effects"
    words = ("nonlinear effects of features", "curves and interactions, own and neighbours'")
    parameters = (
        variance("nonlinear"),
        Parameter("length", *_LENGTH),
        Parameter("groups", 0.0, -4.0, 4.0, 0.5, 1.0, 2),
        Parameter("features", 0.0, -4.0, 4.0, 0.3, 1.0, 0),
    )
    transfers = True

    def read(self, values: Mapping[str, Floats], p: int) -> dict[str, Any]:
        """Return the variance, and the length scales (2 p,)."""
        factors = values["length"] * values["groups"][:, None] * values["features"]
        return {"nonlinear": float(values["nonlinear"][0]), "lengths": typical_distance(p) * factors.ravel()}

    def among(self, labels: Covariance, h: Values) -> tuple[Floats, Vjp, Jvp]:
        """Return the covariance among the labelled nodes, its vector-Jacobian product, and its derivatives."""
        K = labels.distances(h["lengths"] ** -2.0)
        K *= -0.5
        np.exp(K, out=K)
        K *= h["nonlinear"]

        def vjp(G: Floats) -> Slopes:
            GK, Z = K * G, labels.design.Z[labels.rows]
            sums, products = np.split(labels.triangle.times(GK, np.column_stack([np.ones(len(Z)), Z])), [1], axis=1)
            spread = sums[:, 0] @ Z**2 - np.einsum("ij,ij->j", Z, products)
            by_length = (2.0 * spread * h["lengths"] ** -2.0).reshape(2, -1)
            return {
                "nonlinear": float(sums.sum()),
                "length": float(by_length.sum()),
                "groups": by_length.sum(axis=1),
                "features": by_length.sum(axis=0),
            }

        def jvp(a: Floats) -> dict[str, Floats]:
            Ka, by_square = _times_squares(labels, K, a)
            by_length = (by_square * h["lengths"] ** -2.0).reshape(a.size, 2, -1)
            groups, features = by_length.sum(axis=2), by_length.sum(axis=1)
            return {"nonlinear": Ka, "length": groups.sum(axis=1), "groups": groups, "features": features}

        return K, vjp, jvp

    def across(self, labels: Covariance, h: Values, nodes: Ints) -> Floats:
        """Return the covariance between other nodes and the labelled ones."""
        Z = labels.design.Z / h["lengths"]
        return array(h["nonlinear"] * squared_exponential(labels.triangle.place(Z[nodes]), Z[labels.rows]))

    def variances(self, labels: Covariance, h: Values, nodes: Ints) -> Floats:  # noqa: ARG002 - the same everywhere
        """Return the prior variance at some nodes."""
        return np.full(nodes.size, h["nonlinear"])

    def elsewhere(self, labels: Covariance, h: Values, there: OtherGraph, nodes: Ints) -> tuple[Floats | None, Floats]:
        """Return the covariance of nodes of another graph with the labelled ones, and their prior variance."""
        own, others = labels.design.Z[labels.rows] / h["lengths"], there.design.Z[nodes] / h["lengths"]
        return h["nonlinear"] * squared_exponential(others, own), np.full(nodes.size, h["nonlinear"])

    def factors(self, labels: Covariance, h: Values) -> tuple[Floats, tuple[float, float] | None]:
        """Return the leading columns of the function, which random numbers multiply."""
        return np.sqrt(h["nonlinear"]) * nonlinear_columns(labels.design, h["lengths"], NONLINEAR[0], 0), None

    def columns(self, graph: LabelledGraph, design: Design, h: Values, most: int) -> Floats | None:
        """Return the leading columns of the function."""
        size = min(max(_affordable(graph, NONLINEAR[1]), NONLINEAR[0]), most)
        return nonlinear_columns(design, h["lengths"], size, graph.seed, engine=graph.graph.engine)

    def columns_elsewhere(self, there: OtherGraph, design: Design, h: Values, size: int, seed: int) -> Floats | None:
        """Return the same columns for another graph: its nodes seen from the same centres."""
        return nonlinear_columns(design, h["lengths"], size, seed, there.design.Z)


class Local(Component):
    r"""A smooth function of features that drifts over the graph, :math:`r_2\,k_2(Z, Z') \circ R_{\omega_2\nu_2}`.

    For the sparse solver its columns are products: of those that span smooth functions of features best, and of those
    that span smooth functions over the graph best, from :math:`(I + \omega N)^{-1}` among random nodes, at an omega
    of 1000.
    """

    name = "local"
    effect = "local effects"
    words = ("local effects of features", "effects that change from one part of the graph to another")
    parameters = (
        variance("local", 0.1),
        OMEGA._replace(name="local_omega"),
        NU._replace(name="local_nu"),
        Parameter("local_length", *_LENGTH),
    )
    least_nodes = 2

    def read(self, values: Mapping[str, Floats], p: int) -> dict[str, Any]:
        """Return variance, smoothness, and the length scale in standard deviations."""
        plain = {parameter.name: float(values[parameter.name][0]) for parameter in self.parameters}
        return plain | {"local_length": plain["local_length"] * typical_distance(p)}

    def among(self, labels: Covariance, h: Values) -> tuple[Floats, Vjp, Jvp]:
        """Return the covariance among the labelled nodes, its vector-Jacobian product, and its derivatives."""
        kernel = labels.squares * (-0.5 * h["local_length"] ** -2.0)
        np.exp(kernel, out=kernel)
        kernel *= h["local"]
        found = labels.correlations.among(h["local_omega"], h["local_nu"])
        K, omega, nu = (np.multiply(each, kernel, out=each) for each in (found.R, *found.slopes))
        np.multiply(K, labels.squares, out=kernel)
        kernel *= h["local_length"] ** -2.0
        matrices = {"local": K, "local_length": kernel, "local_omega": omega, "local_nu": nu}
        return K, *_derivatives(labels.triangle, matrices)

    def across(self, labels: Covariance, h: Values, nodes: Ints) -> Floats:
        """Return the covariance between other nodes and the labelled ones."""
        Z = labels.design.Z / h["local_length"]
        R = labels.correlations.across(h["local_omega"], h["local_nu"], nodes)
        return array(h["local"] * squared_exponential(labels.triangle.place(Z[nodes]), Z[labels.rows]) * R)

    def variances(self, labels: Covariance, h: Values, nodes: Ints) -> Floats:  # noqa: ARG002 - the same everywhere
        """Return the prior variance at some nodes."""
        return np.full(nodes.size, h["local"])

    def on_graph(self, h: Values) -> tuple[float, float]:
        """Return omega and nu of the drift."""
        return h["local_omega"], h["local_nu"]

    def factors(self, labels: Covariance, h: Values) -> tuple[Floats, tuple[float, float] | None]:
        """Return the leading columns of the function of features, which fields on the graph multiply."""
        at, lengths = self.on_graph(h), np.full(2 * labels.design.p, h["local_length"])
        scale = (h["local"] / labels.eigen.variances(*at)) ** 0.5
        return scale[:, None] * nonlinear_columns(labels.design, lengths, _DRIFTING, 0), at

    def columns(self, graph: LabelledGraph, design: Design, h: Values, most: int) -> Floats | None:  # noqa: ARG002
        """Return the leading columns of the function; None where the graph is too large for more than a few."""
        size = min(_affordable(graph, LOCAL[1]), most)
        if size <= LOCAL[0]:
            return None
        _PROGRESS.info("columns of local effects")
        return local_columns(graph.graph, design, size, graph.seed)


class Noise(Component):
    r"""Independent noise of every node, :math:`s I`; of a label it may have a variance of its own, :math:`s r_i`.

    The ratios :math:`r_i` are 1 but for labels far from all others (see `averaged`).
    """

    name = "noise"
    effect = "noise"
    words = ("noise", "what nothing here predicts")
    parameters = (Parameter("noise", math.log(0.1), math.log(LEAST_NOISE), 2.0, absent=LEAST_NOISE),)
    of_features = False

    def among(self, labels: Covariance, h: Values) -> tuple[Floats, Vjp, Jvp]:
        """Return the covariance among the labelled nodes, its vector-Jacobian product, and its derivatives."""
        triangle = labels.triangle
        K, variances = triangle.full(0.0), h["noise"] * h.get("ratios", 1.0)
        K[triangle.diagonal] = variances

        def vjp(G: Floats) -> Slopes:
            return {"noise": float((variances * G[triangle.diagonal]).sum())}

        return K, vjp, lambda a: {"noise": variances * a}

    def across(self, labels: Covariance, h: Values, nodes: Ints) -> Floats:  # noqa: ARG002 - no covariance
        """Return that different nodes have none in common."""
        return np.zeros((nodes.size, labels.rows.size))

    def variances(self, labels: Covariance, h: Values, nodes: Ints) -> Floats:  # noqa: ARG002 - the same everywhere
        """Return the prior variance at some nodes."""
        return np.full(nodes.size, h["noise"])


def _affordable(graph: LabelledGraph, most: int) -> int:
    """Return a number of columns: more where graph and labels are small."""
    return min(_CELLS // graph.graph.n_nodes, graph.rows.size // 2, most)


def nonlinear_columns(
    design: Design, lengths: Floats, size: int, seed: int, elsewhere: Floats | None = None, engine: Engine | None = None
) -> Floats:
    """Return at most so many columns of all nodes that span functions with some length scales best.

    With the arguments `elsewhere` of nodes of another graph, the same columns for these. They are computed where an
    engine has its arrays, if one is given.
    """
    n = design.groups.shape[1]
    if not design.p:
        return np.zeros((n if elsewhere is None else len(elsewhere), 0))
    nodes = design.order[np.random.default_rng(seed).permutation(n)[:_CENTRES]]
    centres = design.Z[nodes] / lengths
    found = np.linalg.eigh(squared_exponential(place(engine, centres), centres))
    values, vectors = np.asarray(found[0])[::-1][:size], np.asarray(found[1])[:, ::-1][:, :size]
    kept = values > _RANK * values.max(initial=0.0)
    mixing = vectors[:, kept] / np.sqrt(values[kept])
    Z = design.Z if elsewhere is None else elsewhere
    dtype = np.dtype(np.float32 if len(Z) * nodes.size > _SINGLE_CELLS else np.float64)
    columns: Floats = np.empty((len(Z), mixing.shape[1]), dtype=dtype)
    scaled, mixing, at_once = np.asarray(Z / lengths, dtype=dtype), mixing.astype(dtype), _ROWS
    if hasattr(engine, "place"):  # a device, on which matrices are in float64
        at_once = _ROWS_ON_DEVICE
    else:
        centres = centres.astype(dtype)
    for first in range(0, len(Z), at_once):
        rows = slice(first, first + at_once)
        columns[rows] = squared_exponential(place(engine, scaled[rows]), centres) @ mixing
    return columns


def local_columns(graph: Graph, design: Design, size: int, seed: int) -> Floats:
    """Return the leading columns of the function that drifts, at all nodes, shape (n, size) or less.

    Examples
    --------
    >>> from graphmrf.graph import Graph
    >>> from graphmrf.field.design import make_design
    >>> ring = Graph.from_edges(np.arange(40), (np.arange(40) + 1) % 40)
    >>> local_columns(ring, make_design(ring, np.cos(np.arange(40.0))[:, None]), 10, 0).shape
    (40, 10)
    """
    features = nonlinear_columns(
        design, np.full(2 * design.p, typical_distance(design.p)), _FACTORS, seed, engine=graph.engine
    )
    places = _graph_functions(graph, design.order, seed)
    sizes = np.outer(np.mean(places**2, axis=0), np.mean(features**2, axis=0))
    place, feature = np.unravel_index(np.argsort(-sizes, axis=None)[:size], sizes.shape)
    return np.asarray(places[:, place] * features[:, feature])


def _graph_functions(graph: Graph, order: Ints, seed: int) -> Floats:
    """Return columns that span smooth functions over the graph, of about the same size at all nodes."""
    n = graph.n_nodes
    landmarks = order[np.random.default_rng(seed).permutation(n)[:_LANDMARKS]]
    ones = np.zeros((n, landmarks.size))
    ones[landmarks, np.arange(landmarks.size)] = 1.0
    K = smooth(graph, ones, DRIFT / (1.0 + DRIFT), tolerance=_TOLERANCE)
    values, vectors = np.linalg.eigh(0.5 * (K[landmarks] + K[landmarks].T))
    values, vectors = values[::-1][:_FACTORS], vectors[:, ::-1][:, :_FACTORS]
    kept = values > _TOLERANCE * values[0]
    functions = K @ (vectors[:, kept] / np.sqrt(values[kept]))
    norms = np.sqrt(np.einsum("ij,ij->i", functions, functions))
    usual = float(np.median(norms[norms > 0]))  # components without a landmark have none
    return np.asarray(functions / np.maximum(norms, _LEAST_NORM * usual)[:, None])
