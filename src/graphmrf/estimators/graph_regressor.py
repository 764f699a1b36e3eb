"""The general Gaussian field: linear, nonlinear and graph effects at once, all tuned by their own likelihood."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
import pandas as pd

from graphmrf.errors import InvalidInputError
from graphmrf.estimators.inputs import (
    as_given,
    check_fitted,
    check_graph,
    match_features,
    read_features,
    read_outcome,
)
from graphmrf.estimators.tables import NodeEstimator, answers_tables, predicts_tables, takes_folds, takes_tables
from graphmrf.field import POSITIVE, SOLVERS, choose_solver, exact_cost, foreseen_time, most_bytes
from graphmrf.field.elsewhere import Transfer
from graphmrf.field.foresight import Foresight, RegionSums
from graphmrf.field.multiple_imputation import MOST_PATTERNS
from graphmrf.model.attributes import check_count

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Self

    from graphmrf._typing import Bools, Floats, Ints
    from graphmrf.estimators.inputs import Table
    from graphmrf.field import Kind
    from graphmrf.graph import Graph

_PROGRESS = logging.getLogger("graphmrf.progress")

_CURVE = (1.0, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0)
"""Numbers of labels of a learning curve, over those there are; each costs a factorisation of as many labels."""
_BAND = 1.645
"""Standard errors of a band of 90 %."""
_SUMS = ("prediction", "std", "lower", "upper")
_TOGETHER = 0.9
"""Part of the unlabelled nodes without, and of the labelled ones with a value, beyond which a column is taken to follow
from the outcome: by chance hardly any does; doubled distance from 1, columns that only were measured together would."""

_KINDS = ("identity", "log", "box-cox", "yeo-johnson")


class GraphRegressor(NodeEstimator):
    r"""A Gaussian field with linear, nonlinear and graph effects; nothing to tune.

    The outcome is a sum of independent Gaussian parts: linear effects of a node's own features, of its neighbours' and
    of theirs, and of the smoothed features, a smooth nonlinear function of own and neighbours' features, the same
    drifting over the graph, a field that is smooth over the graph, and noise,

    .. math:: \mathrm{Cov}(y) = t_0 + \tfrac{t_1}{p} XX' + \tfrac{t_2}{p} SX(SX)' + \tfrac{t_3}{p} S^2X(S^2X)'
              + \tfrac{t_4}{p} TX(TX)' + f R_{\omega\nu} + r\,k(Z, Z') + r_2\,k_2(Z, Z') \circ R_{\omega_2\nu_2} + s I

    with :math:`Z = [X, SX]`, squared-exponential `k` and `R` the correlations of :math:`T = (I + \omega N)^{-\nu}`. All
    variances, smoothness and length scales maximise the likelihood of the labels (with weak priors, see
    `graphmrf.field.Space`); no cross-validation. A part that the labels do not support gets next to none. Linear
    regression, label propagation and graph convolution with residual propagation are special or limiting cases.

    The paper's own model, :math:`y \sim N((I + \omega N)^{-1} X b, \sigma^2 (I + \omega N)^{-1})`, competes as a whole,
    because few labels can tell its few parameters better. Where it wins, and the labels agree, its parameters are those
    of the joint `GaussianMRF` of features and outcome, of which the features of all nodes say something, too.

    This is computed exactly where that is foreseen to take at most three times as long as the sparse solver, and up to
    4 GB of memory: some 10,000 nodes with 3000 labels, or 100,000 nodes with 100 labels. On more than 10,000 nodes with
    fewer than 120 labels prior variances of unlabelled nodes are from random probes. The sparse solver runs on any
    graph that fits in memory. It keeps to :math:`\nu = 1`, writes nonlinear and local functions as sums of some hundred
    columns (local ones up to some 150,000 nodes), and adds linear effects of features from farther away,
    :math:`S^3 (I + \omega_0 N)^{-1} X`, at the level that suits linear graph convolution with residual propagation,
    which it so contains. Determinants and variances come from random probes on graphs of more than 1500 nodes.
    What a long fit is doing is logged to ``graphmrf.progress``.

    Missing cells of the features are filled by the coupled Gaussian field of all features (see `GaussianMRF`), at their
    expectation given the known features of the node and of the nodes around it, labels not being read. The exact
    solver averages over ten draws of them, so that predictions from uncertain features have wider error bars, and
    labels from such features count less; see `graphmrf.field.averaged`.

    Of fewer than 120 labels the exact solver also averages over 30 draws of the hyper-parameters from their posterior,
    under weak priors (see `graphmrf.field.averaged`), because the most likely ones fit a handful of labels by chance;
    those have a part in it from 60 labels on, and all of it from 120.

    A labelled node keeps its label in `predict`; labels may be noisy, and what the field says of a labelled node given
    all others is in `left_out_`. A node no label reaches gets what its features say.

    Parameters
    ----------
    transform : {"identity", "log", "box-cox", "yeo-johnson", "auto"}, default "identity"
        Monotone transform of the outcome, under which it is Gaussian; exponents by likelihood. "auto" takes the
        most likely of those that apply ("log" and "box-cox" need positive labels). Predictions are in the units of
        the outcome: means, standard deviations and intervals of the transformed-back distribution.
    seed : int, default 0
        Seed of the part of many labels on which the search starts, and of the probes of the sparse solver.
    solver : {"auto", "exact", "sparse"}, default "auto"
        How the field is computed: as foreseen times suggest, or always the one or the other.
    exact_limits : pair of int, optional
        Nodes and labels up to which the exact solver runs, whatever time and memory are foreseen.

    Attributes
    ----------
    hyperparameters_ : Hyperparameters
        Variances (in shares of the variance of the labels), smoothness and length scales; of up to 60 labels medians
        over their draws.
    log_evidence_ : float
        Log marginal likelihood of the labels, in their units; of up to 60 labels its mean over the draws.
    shares_ : Series
        Share of the variance of the labels that each kind of effect predicts (each label from all others, by
        hyper-parameters that know it), and noise; they add up to 1.
    coef_ : array of shape (p,), or Series
        Mean change of a node's expected outcome per unit of its own feature, all ways together: the linear effect, the
        node's own part in smoothed and second neighbours' features (the mean diagonal of `T` and of `S²`), and the mean
        slope, over labelled nodes, of the nonlinear and local functions; with a transform, of the transformed outcome.
        The sparse solver leaves out the nonlinear functions and features from three and more steps away.
    coefficients_ : DataFrame
        Linear coefficients of own, neighbours' (`SX`), second neighbours' (`S²X`) and smoothed features, with the
        sparse solver distant instead of smoothed ones, with their standard errors, per unit of the feature; with a
        transform, of the transformed outcome. Nonlinear effects come on top.
    explanation_ : str
        One sentence: what carries the prediction.
    left_out_ : DataFrame
        For every labelled node its position (`node`), `label`, `prediction` from all other labels, and `std`; indexed
        by id when y was a Series.
    transform_ : Scale
        The transform in use.
    solver_, solver_reason_ : str
        "exact" or "sparse", and why, with the time that was foreseen.
    notes_ : tuple of str
        What deserves a look in the data, such as a feature that is known only where the outcome is.

    Examples
    --------
    >>> import numpy as np
    >>> from graphmrf import Graph
    >>> from graphmrf.estimators.graph_regressor import GraphRegressor
    >>> ring = Graph.from_edges(np.arange(40), (np.arange(40) + 1) % 40)
    >>> X = np.cos(np.arange(40.0))[:, None]
    >>> y = 3.0 * X[:, 0] + 1.0
    >>> y[::4] = np.nan
    >>> model = GraphRegressor().fit(ring, X, y)
    >>> model.predict()[:2].round(1)
    array([4. , 2.6])
    >>> model.explanation_
    'Own features explain 99 % of the variance.'
    """

    keeps_labels = True

    def __init__(
        self,
        *,
        transform: str = "identity",
        seed: int = 0,
        solver: str = "auto",
        exact_limits: tuple[int, int] | None = None,
    ) -> None:
        self.transform = transform
        self.seed = seed
        self.solver = solver
        self.exact_limits = exact_limits

    @takes_tables
    def fit(self, graph: Graph, X: Any, y: Any) -> Self:
        """Learn the hyper-parameters and condition the field on the labels.

        Parameters
        ----------
        graph : Graph, or a graph of SciPy (sparse), NetworkX or igraph
            The graph.
        X : array or DataFrame of shape (n, p), or None
            Features of all nodes, NaN where missing; None for the graph alone.
        y : array or Series of shape (n,)
            Outcomes, NaN where they are to be predicted; at least 2 known.

        Raises
        ------
        InvalidInputError
            If the inputs break a rule.
        ConvergenceError
            If a solve of the sparse solver misses its tolerance.
        """
        n = check_graph(graph).n_nodes
        outcome = read_outcome(y, n)
        table = read_features(np.zeros((n, 0)) if X is None else X, n, "GraphRegressor", holes=True)
        self.solver_, self.solver_reason_ = _choose_solver(
            self.solver, graph, outcome.n_labelled, table.columns.count, self.exact_limits
        )
        _PROGRESS.info("field: %s solver, %s", self.solver_, self.solver_reason_)
        kinds = _kinds(self.transform, outcome.y[outcome.known])
        _check_missing(table)
        self.notes_ = tuple(_known_with_outcome(table, outcome.known))
        self._field = SOLVERS[self.solver_](graph, table.X, outcome.y, kinds=kinds, seed=self.seed)
        self._foresight, self._regions = Foresight(self._field), RegionSums(self._field, graph)
        self._returning = float((graph.S.data**2).sum()) / n
        self._columns, self._fitted_on = table.columns, (graph, table.X)
        self._transfer = Transfer(self._field, *self._fitted_on)
        self._single = outcome.single and (table.single or not table.columns.count)
        self.hyperparameters_, self.transform_ = self._field.posterior.h, self._field.scale
        self.log_evidence_, self.n_evaluations_ = self._field.log_evidence, self._field.evaluations
        return self

    @overload
    def predict(self, graph: Graph | None = None, X: Any = None, *, return_std: Literal[False] = False) -> Floats: ...
    @overload
    def predict(
        self, graph: Graph | None = None, X: Any = None, *, return_std: Literal[True]
    ) -> tuple[Floats, Floats]: ...
    @predicts_tables
    def predict(
        self, graph: Graph | None = None, X: Any = None, *, return_std: bool = False
    ) -> Floats | tuple[Floats, Floats]:
        """Return the outcome of every node; labelled nodes keep their label.

        Of another graph it returns what features say. What only the field of the fitted graph knew, the graph field
        and local effects, is uncertainty there; see `graphmrf.field.elsewhere`.

        Parameters
        ----------
        graph, X : Graph and array or DataFrame, optional
            Another graph and the features of its nodes, the same columns (of a DataFrame in any order); NaN where
            missing, which is imputed by the joint field of the features of the fit, and predictions are averaged over
            ten draws. By default the graph and features of the fit.
        return_std : bool, default False
            Also return the standard deviation of the unobserved outcome about its prediction, noise and uncertainty
            of the coefficients included, calibrated on leave-one-out residuals (of up to 200 labels, on residuals
            of fields fitted without the fold of the label; of up to 60 not at all); 0 at the labelled nodes. Of another
            graph it is calibrated on regions of the fitted graph whose labels were held out.

        Returns
        -------
        array of shape (n,), or two of them
            In float32 when X and y were.

        Raises
        ------
        InvalidInputError
            If another graph comes without its features, features without a graph, or columns differ from the fit's.
        """
        check_fitted(self, "_field")
        if graph is None and X is None:
            found = self._field.predictions
        else:
            found = self._transfer.predict(*self._elsewhere(graph, X))
        mean, std = (as_given(values, single=self._single) for values in found)
        return (mean, std) if return_std else mean

    def _elsewhere(self, graph: Any, X: Any) -> tuple[Graph, Floats]:
        """Return another graph, and the features of its nodes, checked."""
        if graph is None:
            raise InvalidInputError("GraphRegressor predicts other nodes on their graph, got X alone; pass both")
        graph = check_graph(graph)
        n, X = graph.n_nodes, graph.align(X, "X")
        if X is None and self._columns.count:
            wanted = self._columns.count if self._columns.names is None else list(self._columns.names)
            raise InvalidInputError(
                f"GraphRegressor needs the features of the other graph, got None; pass X of {wanted}"
            )
        table = np.zeros((n, 0)) if X is None else X
        return graph, match_features(table, n, self._columns, "GraphRegressor", holes=True)

    @answers_tables
    def predict_interval(
        self,
        level: float = 0.9,
        *,
        interval: Literal["field", "conformal"] = "field",
        graph: Graph | None = None,
        X: Any = None,
    ) -> tuple[Floats, Floats]:
        """Return the ends of an interval for the outcome of every node; labelled nodes have width 0.

        Parameters
        ----------
        level : float in (0, 1)
            Probability that the interval holds the outcome.
        interval : {"field", "conformal"}
            How many of its own standard deviations the interval of a node reaches. "field": the quantile of a
            Student distribution fitted to the standardised residuals by which `predict` calibrates; of an average over
            draws, quantiles of the mixture, widened as much. "conformal":
            their empirical quantile, of which no shape is assumed; infinite when labels are too few for the level.
        graph, X : Graph and array or DataFrame, optional
            Another graph and the features of its nodes, as in `predict`.
        """
        check_fitted(self, "_field")
        if not 0 < level < 1:
            raise InvalidInputError(f"level must be between 0 and 1, got {level!r}")
        if interval not in ("field", "conformal"):
            raise InvalidInputError(f"interval must be 'field' or 'conformal', got {interval!r}")
        if graph is None and X is None:
            low, high = self._field.interval(level, interval)
        else:
            low, high = self._transfer.interval(level, interval, *self._elsewhere(graph, X))
        return as_given(low, single=self._single), as_given(high, single=self._single)

    def sample(self, n_samples: int = 1, *, seed: int = 0, graph: Graph | None = None, X: Any = None) -> Floats:
        """Return joint draws of the outcome of all nodes given the labels, which they keep, shape (n_samples, n).

        When y was a Series they are a DataFrame with a column for every node. With another graph and the features of
        its nodes, matched by id as in `predict`, they are draws of its outcomes, always an array in the order of its
        nodes: independent given features but for a graph field of its own.
        """
        check_fitted(self, "_field")
        count = check_count(n_samples)
        if graph is None and X is None:
            draws: Floats = self._nodes.draws(as_given(self._field.draw(count, seed), single=self._single))
            return draws
        return as_given(self._transfer.draw(count, seed, *self._elsewhere(graph, X)), single=self._single)

    @overload
    def expected_r2(self, labelled: Any = None, *, return_std: Literal[False] = False) -> float: ...
    @overload
    def expected_r2(self, labelled: Any = None, *, return_std: Literal[True]) -> tuple[float, float]: ...
    def expected_r2(self, labelled: Any = None, *, return_std: bool = False) -> float | tuple[float, float]:
        r"""Return the R2 to be expected on the unlabelled nodes, with the labels there are or with others.

        .. math:: 1 - c\,\mathrm{tr}\,\Sigma_{UU} / \mathrm E \textstyle\sum_U (y_i - \bar y)^2

        with the posterior covariance, noise included, which does not depend on the values of labels, and `c` the mean
        square of the out-of-fold residuals of the labels over the variance foreseen for them.

        Parameters
        ----------
        labelled : bool array of shape (n,), optional
            True at the nodes that would have a label; by default those that have one.
        return_std : bool, default False
            Also return the standard error: that of `c`, and the chance of which nodes are hard to predict.
        """
        check_fitted(self, "_field")
        mask = (
            None
            if labelled is None
            else _read_mask(self._nodes.align(labelled, "labelled"), self._field.y.size, "labelled")
        )
        found = self._foresight.expected_r2(mask)
        return found if return_std else found[0]

    def expected_learning_curve(self, n_labels: Any = None, *, draws: int = 3) -> pd.DataFrame:
        """Return the R2 to be expected with more labels, at nodes drawn at random.

        Parameters
        ----------
        n_labels : sequence of int, optional
            Numbers of labels, those there are included; by default up to twenty times as many as there are.
        draws : int
            Random orders of the further labels to average over.

        Returns
        -------
        DataFrame
            `n_labels`, `expected_r2`, and a band of 90 %, `lower` and `upper`.
        """
        check_fitted(self, "_field")
        m, n = self._field.rows.size, self._field.y.size
        times = [round(m * factor) for factor in _CURVE]
        sizes = [size for size in times if size <= n - 2] if n_labels is None else [int(size) for size in n_labels]
        if not all(m <= size <= n - 2 for size in sizes):
            raise InvalidInputError(f"n_labels must be from the {m} labels there are to {n - 2}, got {sizes}")
        r2, error = self._foresight.learning_curve(sizes, check_count(draws))
        band = _BAND * error
        return pd.DataFrame({"n_labels": sizes, "expected_r2": r2, "lower": r2 - band, "upper": r2 + band})

    def suggest(self, k: int = 1, *, among: Any = None) -> pd.DataFrame:
        """Return the `k` unlabelled nodes whose labels would help most, best first.

        They are chosen one after the other by what their labels take from the variance of all other unlabelled nodes,
        at the central hyper-parameters. Where no label helps other nodes the table is empty, and ``attrs["reason"]``
        says so.

        Parameters
        ----------
        k : int
            Number of nodes.
        among : bool array of shape (n,), optional
            True at the nodes that can be asked; by default all.

        Returns
        -------
        DataFrame
            Position of the `node`, `std` of its prediction, and the `expected_r2` with this label and those above it,
            on all nodes that are unlabelled now.
        """
        check_fitted(self, "_field")
        n = self._field.y.size
        mask = None if among is None else _read_mask(self._nodes.align(among, "among"), n, "among")
        candidates = int(np.sum(np.isnan(self._field.y) & (True if mask is None else mask)))
        if isinstance(k, bool) or not isinstance(k, int | np.integer) or not 0 <= k <= candidates:
            raise InvalidInputError(f"k must be a whole number from 0 to the {candidates} nodes to ask, got {k!r}")
        nodes, r2, reason = self._foresight.suggest(int(k), mask)
        found = pd.DataFrame({"node": nodes, "std": self._field.predictions[1][nodes], "expected_r2": r2})
        found.attrs["reason"] = reason
        labelled: pd.DataFrame = self._nodes.rows(found, nodes)
        return labelled

    def predict_total(self, groups: Any, *, level: float = 0.9) -> pd.DataFrame:
        """Return the sum of the outcome over every group of nodes, with error bars from the joint posterior.

        Observed nodes count with their label. Intervals are calibrated on neighbourhoods of labels that are held out,
        up to 400 labels with hyper-parameters fitted to the others.

        Parameters
        ----------
        groups : array or Series of shape (n,)
            Group of every node; None or NaN: in none.
        level : float in (0, 1)
            Probability that an interval holds the sum.

        Returns
        -------
        DataFrame
            By group, sorted: `prediction`, `std`, `lower`, `upper`, `n_nodes`, `n_observed`.
        """
        totals: pd.DataFrame = self._nodes.as_given(self._totals(groups, level))
        return totals

    def _totals(self, groups: Any, level: float) -> pd.DataFrame:
        check_fitted(self, "_field")
        if not 0 < level < 1:
            raise InvalidInputError(f"level must be between 0 and 1, got {level!r}")
        names, members = _read_groups(self._nodes.align(groups, "groups"), self._field.y.size)
        found = pd.DataFrame(self._regions.sums(members, level).T, columns=_SUMS, index=names)
        observed = ~np.isnan(self._field.y)
        return found.assign(
            n_nodes=np.array([nodes.size for nodes in members], dtype=np.int64),
            n_observed=np.array([observed[nodes].sum() for nodes in members], dtype=np.int64),
        )

    def predict_mean(self, groups: Any, *, level: float = 0.9) -> pd.DataFrame:
        """Return the mean of the outcome over every group of nodes; see `predict_total`."""
        found = self._totals(groups, level)
        means: pd.DataFrame = self._nodes.as_given(
            found.assign(**{name: found[name] / found["n_nodes"] for name in _SUMS})
        )
        return means

    @takes_folds
    def out_of_fold(self, graph: Graph, X: Any, y: Any, folds: Ints) -> Floats:  # noqa: ARG002  (as in every estimator)
        """Return the prediction (n_labelled,) of each labelled node by a field without its fold.

        Of up to 400 labels the hyper-parameters are searched again without each fold, of more they are kept. The sparse
        solver always keeps them, and beyond 20,000 labels its coefficients, too.

        Parameters
        ----------
        graph, X, y : Graph, features, array of shape (n,)
            What the fit was given; they are not read again.
        folds : integer array of shape (n_labelled,)
            Fold of every labelled node, in node order.
        """
        check_fitted(self, "_field")
        return self._field.out_of_fold(folds)

    @property
    def shares_(self) -> pd.Series:
        """Share of the variance of the labels by kind of effect."""
        check_fitted(self, "_field")
        return pd.Series(self._field.shares, name="share")

    @property
    def explanation_(self) -> str:
        """What carries the prediction, in one sentence."""
        shares = self.shares_.drop("noise").sort_values(ascending=False)
        told = [(str(name), round(100 * float(share))) for name, share in shares.items() if share >= 0.005]
        if not told:
            return "Neither features nor neighbours explain the outcome."
        first, *others = told
        rest = "".join(f", {name} {percent} %" for name, percent in others)
        return f"{first[0].capitalize()} explain{'s' * (first[0] == 'graph field')} {first[1]} % of the variance{rest}."

    @property
    def coefficients_(self) -> pd.DataFrame:
        """Linear coefficients and standard errors."""
        check_fitted(self, "_field")
        names, columns = self._columns.names, dict[str, Any]()
        for title, (mean, std) in self._field.coefficients.items():
            columns |= {title: mean, f"{title} (standard error)": std}
        return pd.DataFrame(columns, index=pd.RangeIndex(self._columns.count) if names is None else names, dtype=float)

    @property
    def coef_(self) -> Floats | pd.Series:
        """Mean change of a node's expected outcome per unit of its own feature."""
        check_fitted(self, "_field")
        return self._columns.named(self._field.own_effects(self._returning))

    @property
    def left_out_(self) -> pd.DataFrame:
        """What the field says of every label, given all others."""
        check_fitted(self, "_field")
        (mean, std), rows = self._field.left_out, self._field.rows
        table = pd.DataFrame({"node": rows, "label": self._field.y[rows], "prediction": mean, "std": std})
        labelled: pd.DataFrame = self._nodes.rows(table, rows)
        return labelled


def _read_mask(mask: Any, n: int, name: str) -> Bools:
    """Return a mask of the nodes, checked."""
    found = np.asarray(mask)
    if found.dtype != np.bool_ or found.shape != (n,):
        raise InvalidInputError(
            f"{name} must be True or False for each of the {n} nodes, got {found.dtype} of shape {found.shape}; "
            "for a list of nodes use np.isin(np.arange(n), nodes)"
        )
    return found


def _read_groups(groups: Any, n: int) -> tuple[pd.Index, list[Ints]]:
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


def _choose_solver(
    solver: str, graph: Graph, labels: int, features: int, limits: tuple[int, int] | None
) -> tuple[str, str]:
    """Return the solver, why it is taken, and how long that is foreseen to take."""
    if solver not in (*SOLVERS, "auto"):
        raise InvalidInputError(f"solver must be one of {', '.join(SOLVERS)} or auto, got {solver!r}")
    if labels < 2:
        raise InvalidInputError(f"GraphRegressor needs at least 2 labelled nodes, got {labels}; label more")
    if solver == "auto" and limits is None:
        return choose_solver(graph, labels, features)
    chosen, reason = (solver, "as asked") if limits is None else _within(limits, solver, graph.n_nodes, labels)
    needed = 0.0 if limits or solver == "sparse" else exact_cost(graph, labels, features)[1]
    room = most_bytes(graph, labels)
    if needed > room:
        raise InvalidInputError(
            f"GraphRegressor's exact solver takes at most {room / 1e9:.0f} GB of memory, got {graph.n_nodes} "
            f"nodes and {labels} labels, which take {needed / 1e9:.0f}; leave solver at 'auto', or set exact_limits"
        )
    return chosen, f"{foreseen_time(chosen, graph, labels, features)}; {reason}"


def _within(limits: tuple[int, int], solver: str, n: int, labels: int) -> tuple[str, str]:
    """Return the solver by given numbers of nodes and labels."""
    small, said = n <= limits[0] and labels <= limits[1], f"limits of {limits[0]} nodes and {limits[1]} labels"
    if solver == "sparse":
        return solver, "as asked"
    if small:
        return "exact", f"within the {said}"
    if solver == "exact":
        raise InvalidInputError(
            f"GraphRegressor's exact solver takes at most {limits[0]} nodes and {limits[1]} labels, got {n} and "
            f"{labels}; leave solver at 'auto', or raise exact_limits"
        )
    return "sparse", f"beyond the {said}"


def _kinds(transform: str, labels: Floats) -> tuple[Kind, ...]:
    """Return the transforms to compare."""
    if transform not in (*_KINDS, "auto"):
        raise InvalidInputError(f"transform must be one of {', '.join(_KINDS)} or auto, got {transform!r}")
    lowest, constant = float(labels.min()), bool(np.ptp(labels) == 0)
    if transform in POSITIVE and lowest <= 0:
        raise InvalidInputError(f"transform {transform!r} needs positive labels, got {lowest}; use 'yeo-johnson'")
    if constant:
        return ("identity",)
    wanted = _KINDS if transform == "auto" else (transform,)
    return tuple(kind for kind in wanted if lowest > 0 or kind not in POSITIVE)  # type: ignore[misc]  # checked above


def _known_with_outcome(table: Table, known: Bools) -> Iterator[str]:
    """Say which columns are known where the outcome is, and hardly anywhere else."""
    missing, names = np.isnan(table.X), table.columns.names
    if known.all():
        return
    least = np.minimum(missing[~known].mean(axis=0), 1.0 - missing[known].mean(axis=0))
    for column in np.flatnonzero(least > _TOGETHER).tolist():
        name = f"column {column}" if names is None else f"column {names[column]!r}"
        yield (
            f"{name} is known where the outcome is, and missing elsewhere, so it says little of the nodes to predict; "
            "drop it if it follows from the outcome"
        )


def _check_missing(table: Table) -> None:
    """Raise unless missing cells can be imputed: a known cell in every column, and not too many patterns of them."""
    missing = np.isnan(table.X)
    for column in np.flatnonzero(missing.all(axis=0))[:1]:
        names = table.columns.names
        place = f"column {names[column]!r}" if names is not None else f"column {column}"
        raise InvalidInputError(f"every column of X must have a known cell, got none in {place}; drop it")
    patterns = len(np.unique(np.packbits(missing, axis=1), axis=0)) if missing.any() else 0
    if patterns * missing.shape[1] ** 2 > MOST_PATTERNS:
        raise InvalidInputError(
            f"missing cells of X are filled by a joint field of its columns, got {missing.shape[1]} columns and "
            f"{patterns} patterns of missing cells, more than it can take; fill them first, or drop columns"
        )
