"""What a fitted field reports besides predictions: expected accuracy, labels to ask for, explanations, a summary."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
import pandas as pd
from scipy.special import ndtr, ndtri

from graphmrf.caching import cached_property
from graphmrf.errors import InvalidInputError
from graphmrf.estimators.base import JointEstimator
from graphmrf.estimators.inputs import check_fitted, node_positions, read_mask
from graphmrf.estimators.summary import Summary, summarise
from graphmrf.estimators.tables import of_every_target
from graphmrf.field import TERMS, Responses
from graphmrf.field.precision import DENSE_NODES
from graphmrf.graph.checks import check_count
from graphmrf.selection import steps_to_label
from graphmrf.text import MINUS, count, number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from graphmrf._typing import Bools, Floats, Ints
    from graphmrf.estimators.inputs import Categories, FeatureColumns
    from graphmrf.field.criteria import Criteria
    from graphmrf.field.outcome import FieldOutcome

LEARNED = TERMS["learned"].effect


@dataclass(frozen=True, eq=False)
class LabelSelection:
    r"""Test of whether labels were chosen by their outcome, on graphs whose eigenvectors are affordable.

    Were nodes labelled without regard to their outcome, predictions at labelled nodes, each from all other labels,
    would have the same mean as those at the other nodes. (Leave-one-out predictions, as those that include the label
    agree with it.) The difference is proportional to :math:`\sum_k \hat l_k \hat p_k` with the coefficients, in the
    eigenvectors of `N`, of the labelled nodes and of the predictions, both about their means. Labels and predictions
    may both be alike among neighbours: coefficients of some eigenvectors are then large, but the sign of every product
    is random, so that the sum over the root of its sum of squares has tails no wider than the normal distribution.
    """

    field: FieldOutcome

    @cached_property
    def z(self) -> float:
        """Difference of the means in its standard errors; NaN on large graphs, and where nothing differs."""
        known = ~np.isnan(self.field.y)
        if known.all() or known.size > DENSE_NODES:
            return float("nan")
        predicted = self.field.predictions[0].copy()
        predicted[self.field.rows] = self.field.leave_one_out[0]
        vectors = self.field.graph.eigenpairs[1]
        parts = (vectors.T @ (known - known.mean())) * (vectors.T @ (predicted - predicted.mean()))
        error, size = float(np.linalg.norm(parts)), float(np.abs(self.field.y[known]).max())
        return float(parts.sum()) / error if error > np.sqrt(np.finfo(np.float64).eps) * size else float("nan")

    @property
    def notes(self) -> tuple[str, ...]:
        """A warning where labels without regard to the outcome are ruled out."""
        p = 2.0 * float(ndtr(-abs(self.z)))
        if not p < 0.001:
            return ()
        end = "high" if self.z > 0 else "low"
        return (
            f"values are known mostly where {end} ones are expected (p = {p:.1g} if nodes were chosen without regard "
            f"to them); if they are known because they are {end}, other predictions are too {end}, and intervals too "
            "narrow",
        )


class AnalysedField(JointEstimator):
    """The analysis of a fitted field, for `GraphRegressor`."""

    likelihood: str
    _notes: tuple[str, ...]
    _selection: LabelSelection
    _field: FieldOutcome
    _columns: FeatureColumns
    _categories: Categories
    _criteria: Criteria

    @property
    def keeps_labels(self) -> bool:
        """Whether `predict` returns the label of a labelled node."""
        raise NotImplementedError

    def _check_scored(self) -> None:
        """Raise unless the field is fitted, and not to ordered classes."""
        check_fitted(self, "_field")
        if self.likelihood == "ordinal":
            raise InvalidInputError(
                "expected accuracy is of numbers, counts and shares, got classes; for classes use GraphClassifier"
            )

    def _check_numbers(self, what: str) -> None:
        """Raise unless the field is fitted to numbers with the same noise, one of a node."""
        check_fitted(self, "_field")
        if not self.keeps_labels:
            raise InvalidInputError(
                f"{what} need numbers with the same noise, one of a node; for other observations use predict, "
                "predict_interval and loo_"
            )

    @property
    def notes_(self) -> tuple[str, ...]:
        """What to look at in the data; labels chosen by their outcome are tested for."""
        check_fitted(self, "_field")
        return (*self._notes, *(self._selection.notes if self.keeps_labels else ()))

    def _group_sums(self, members: Sequence[Ints], level: float, weight: Floats | None) -> Floats:
        return self._field.sums(members, level, weight)

    @property
    def _sizes(self) -> Floats:
        return self._field.sizes

    @overload
    def expected_r2(self, labelled: Any = None, *, return_std: Literal[False] = False) -> float: ...
    @overload
    def expected_r2(self, labelled: Any = None, *, return_std: Literal[True]) -> tuple[float, float]: ...
    def expected_r2(self, labelled: Any = None, *, return_std: bool = False) -> float | tuple[float, float]:
        r"""Return the R2 to expect on the unlabelled nodes, with the labels there are or with others.

        .. math:: 1 - \mathrm{tr}\,\Sigma_{UU} / \mathrm E \textstyle\sum_U (y_i - \bar y)^2

        with the posterior covariance, noise included, which does not depend on the values of labels. Of counts and
        shares it is the share of the Poisson or binomial deviance that is explained, over that of one overall rate:
        the median over outcomes drawn from the posterior. A count that nobody has yet has the expected information of
        its exposure or trials (where these are unknown, of their median).

        Parameters
        ----------
        labelled : bool array of shape (n,), optional
            True at the nodes that would have a label; by default those that have one.
        return_std : bool, default False
            Also return the standard error.
        """
        self._check_scored()
        found = self._field.accuracy.expected_r2(self._mask(labelled, "labelled"))
        return found if return_std else found[0]

    def _mask(self, nodes: Any, name: str) -> Bools | None:
        return None if nodes is None else read_mask(self._nodes.align(nodes, name), self._field.y.size, name)

    def expected_learning_curve(self, n_labels: Any = None, *, draws: int = 3) -> pd.DataFrame:
        """Return the R2 to expect with more labels, at nodes drawn at random; of counts see `expected_r2`.

        Parameters
        ----------
        n_labels : sequence of int, optional
            Total numbers of labels; by default up to twenty times as many as there are now.
        draws : int
            Random orders of the further labels to average over.

        Returns
        -------
        DataFrame
            `n_labels`, `expected_r2`, and a band of 90 %, `lower` and `upper`.
        """
        self._check_scored()
        m, n = self._field.rows.size, self._field.y.size
        times = [round(m * factor) for factor in (1.0, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0)]
        sizes = [size for size in times if size <= n - 2] if n_labels is None else [int(size) for size in n_labels]
        if not all(m <= size <= n - 2 for size in sizes):
            raise InvalidInputError(f"n_labels must be from the {m} labels there are to {n - 2}, got {sizes}")
        r2, error = self._field.accuracy.learning_curve(sizes, check_count(draws))
        band = ndtri(0.95) * error
        return pd.DataFrame({"n_labels": sizes, "expected_r2": r2, "lower": r2 - band, "upper": r2 + band})

    def suggest(self, k: int = 1, *, among: Any = None) -> pd.DataFrame:
        """Return the `k` unlabelled nodes whose labels would help most, best first.

        They are chosen one after the other by how much their labels reduce the variance of all other unlabelled nodes,
        of counts and shares weighted by their expected information.
        Where no label helps other nodes the table is empty, and ``attrs["reason"]`` has the reason.

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
        self._check_scored()
        mask = self._mask(among, "among")
        candidates = int(np.sum(np.isnan(self._field.y) & (True if mask is None else mask)))
        if isinstance(k, bool) or not isinstance(k, int | np.integer) or not 0 <= k <= candidates:
            raise InvalidInputError(f"k must be a whole number from 0 to the {candidates} nodes to ask, got {k!r}")
        nodes, r2, reason = self._field.accuracy.suggest(int(k), mask)
        found = pd.DataFrame({"node": nodes, "std": self._field.predictions[1][nodes], "expected_r2": r2})
        found.attrs["reason"] = reason
        labelled: pd.DataFrame = self._nodes.rows(found, nodes)
        return labelled

    @of_every_target
    def summary(self) -> str:
        """Return effects, hyper-parameters and criteria of the fit as a table of text.

        Linear effects of a node's own features with standard errors and 95 % intervals, all other features and those of
        its neighbours held fixed, on the scale of the link (the logarithm of counts, the logit of shares). Log
        evidence; expected log predictive density (elpd) by leave-one-out, by Pareto-smoothed importance sampling (PSIS)
        with its largest diagnostic `k`, and by WAIC. Moran's I of leave-one-out residuals over the edges among labelled
        nodes with its p-value, and `phi`, the share of the graph field in it and in each node's independent part.
        """
        if "_field" not in vars(self):
            return Summary("GraphRegressor: not fitted yet")
        n, m = self._nodes.graph.n_nodes, self._nodes.graph.n_edges
        labels = self._field.labels
        likelihood = labels.likelihood.title if isinstance(labels, Responses) else self.likelihood
        facts = {"likelihood": likelihood, "nodes": f"{n:,}", "edges": f"{m:,}", "labelled": f"{labels.nodes.size:,}"}
        return summarise(facts, self._field.shares, [str(name) for name in self._columns.labels], self._criteria)

    @property
    def shares_(self) -> pd.Series:
        """Share of the variance by kind of effect."""
        check_fitted(self, "_field")
        return pd.Series(self._field.shares, name="share")

    @property
    def explanation_(self) -> str:
        """What carries the prediction, in one sentence."""
        shares = self.shares_.drop("noise").sort_values(ascending=False)
        shown = [(str(name), round(100 * float(share))) for name, share in shares.items() if share >= 0.005]
        if not shown:
            return "Neither features nor neighbours explain the outcome."
        first, *others = shown
        rest = "".join(f", {name} {percent} %" for name, percent in others)
        return f"{first[0].capitalize()} explain{'s' * (first[0] == 'graph field')} {first[1]} % of the variance{rest}."

    @property
    def coef_(self) -> Floats | pd.Series:
        """Mean change of a node's expected outcome per unit of its own feature."""
        check_fitted(self, "_field")
        return self._columns.named(self._field.own_effects)

    def explain(self, node: Any) -> NodeExplanation:
        """Return the parts of the prediction of a node: the weight of every label, and each kind of effect.

        Where learned effects take part, weights hold the predictions of the learner fixed, see `NodeExplanation`.

        Parameters
        ----------
        node : hashable
            Id of the node, or its position where the graph has no ids.

        Raises
        ------
        InvalidInputError
            If the node is unknown or labelled, or the outcome is not a sum: transformed, counts or shares.
        """
        self._check_numbers("explanations")
        if self._field.scale.power is not None:
            raise InvalidInputError("contributions add up without a transform only; fit with transform='identity'")
        (place,) = node_positions(self._nodes.graph, np.asarray([node])).tolist()
        field, rows = self._field, self._field.rows
        if not np.isnan(field.y[place]):
            raise InvalidInputError(f"explain is for predictions, got {node!r}, whose value is known; see loo_")
        weights, unit = field.label_weights(np.array([place]))[0], field.scale.unit
        mean = float(field.scale.back(np.zeros(1))[0])
        steps = steps_to_label(self._nodes.graph, np.arange(field.y.size) == place)[rows]
        table = pd.DataFrame({"node": rows, "label": field.y[rows], "steps": steps, "weight": weights}, index=rows)
        table["contribution"] = unit * weights * field.scale.z
        table = table.iloc[np.argsort(-np.abs(table["contribution"].to_numpy()), kind="stable")]
        effects = pd.Series({name: unit * part for name, part in field.effects_at(place).items()}, name="effect")
        labelled = self._nodes.rows(table, table["node"].to_numpy())
        return NodeExplanation(node, float(field.predictions[0][place]), mean, labelled, effects)

    def strongest_labels(self, nodes: Ints, most: int = 3) -> pd.DataFrame:
        """Return the labels with the largest weights in the predictions of some nodes, see `explain`.

        Parameters
        ----------
        nodes : integer array of shape (k,)
            Positions of unlabelled nodes, increasing.
        most : int
            Number of labels of each.

        Returns
        -------
        DataFrame
            Positions of the `node` and the `labelled` node, and the `weight`, the largest of a node first.
        """
        self._check_numbers("explanations")
        weights, rows = self._field.label_weights(nodes), self._field.rows
        order = np.argsort(-np.abs(weights), axis=1, kind="stable")[:, :most]
        largest = np.take_along_axis(weights, order, axis=1)
        columns = {"node": np.repeat(nodes, order.shape[1]), "labelled": rows[order.ravel()], "weight": largest.ravel()}
        return pd.DataFrame(columns)

    def partial_dependence(self, feature: Any, values: Any) -> Floats:
        """Return the mean prediction if a feature of every node had each of some values.

        Over a sample of 200 nodes with their other features, and those of their neighbours, unchanged; by the effects
        of features alone.

        Parameters
        ----------
        feature : hashable
            Name of the feature, or its position where features have no names.
        values : array of shape (k,)
            Values of the feature.
        """
        check_fitted(self, "_field")
        names = self._columns.labels
        if feature not in names:
            raise InvalidInputError(f"feature must be one of {', '.join(map(str, names))}, got {feature!r}")
        return self._field.dependence(names.index(feature), np.asarray(values, dtype=np.float64))

    @overload
    def feature_attributions(
        self, nodes: Any, *, n_permutations: int = 100, return_std: Literal[False] = False
    ) -> pd.DataFrame: ...
    @overload
    def feature_attributions(
        self, nodes: Any, *, n_permutations: int = 100, return_std: Literal[True]
    ) -> tuple[pd.DataFrame, pd.DataFrame]: ...
    def feature_attributions(
        self, nodes: Any, *, n_permutations: int = 100, return_std: bool = False
    ) -> pd.DataFrame | tuple[pd.DataFrame, pd.DataFrame]:
        """Return what each feature adds at some nodes: Shapley values of the effects of features, by sampling.

        By the effects of features alone, linear, nonlinear and learned, as in `predict` for another graph. A feature
        has its value at a node, and its means over neighbours and second neighbours, or all of these as at a background
        node. Its attribution is the mean change from the latter to the former over random orders in which features
        change, each run through in both directions, and over background nodes, a random one for each order. The
        attributions of a node add up to its prediction by features alone less the mean of those at the background
        nodes, which is ``attrs["mean"]``. With a transform they are of the transformed outcome, of counts and shares on
        the scale of the link. The levels of a column of categories are one feature; `degree` is that of degrees, where
        there are learned effects.

        Parameters
        ----------
        nodes : sequence of ids, or of positions where the graph has no ids
            The nodes.
        n_permutations : int
            Number of random orders; with as many as nodes the background is every node once.
        return_std : bool, default False
            Also return the standard errors of sampling orders and background nodes.

        Returns
        -------
        DataFrame of shape (len(nodes), features), or two of them
            A row for every node, in the order given.
        """
        check_fitted(self, "_field")
        places, count = node_positions(self._nodes.graph, np.asarray(nodes)), check_count(n_permutations)
        if not (count and self._columns.count):
            raise InvalidInputError(
                f"attributions need a random order and features, got {count} and {self._columns.count}; without "
                "features use explain"
            )
        owner, names = pd.factorize(pd.Index(self._categories.owners(self._columns.labels), dtype=object))
        shown = [*names, "degree"] if self._field.has_learner else list(names)
        *both, mean = self._field.attributions(places, owner, count)
        tables = [pd.DataFrame(each[:, : len(shown)], columns=shown, index=places) for each in both]
        tables[0].attrs["mean"] = mean
        found, error = (self._nodes.rows(table, places) for table in tables)
        return (found, error) if return_std else found

    @property
    def loo_(self) -> pd.DataFrame:
        """Prediction of every label from all others."""
        check_fitted(self, "_field")
        (mean, std), rows = self._field.leave_one_out, self._field.rows
        table = pd.DataFrame({"node": rows, "label": self._field.y[rows], "prediction": mean, "std": std})
        labelled: pd.DataFrame = self._nodes.rows(table, rows)
        return labelled


@dataclass(frozen=True, eq=False, repr=False)
class NodeExplanation:
    r"""A prediction as a sum: the mean of the labels plus the contribution of each label, or of each kind of effect.

    The field is linear in the labels at given hyper-parameters and features, so the sum is exact,
    :math:`\hat y_i = \bar y + \sum_j w_{ij} (y_j - \bar y)`. A weight is the change of the prediction per unit of a
    label at given hyper-parameters. Predictions of a learner are features, which a weight holds fixed, too: they also
    depend on the labels, so with learned effects a label that changes has another effect than its weight.

    Attributes
    ----------
    node : hashable
        The node, by id where the graph has ids.
    prediction : float
        Its prediction.
    mean : float
        Mean of the labels, outliers drawn in.
    labels : DataFrame
        A row for every label, the largest contribution first: `label`, `steps` along edges to the node (infinite where
        there is no path), `weight`, and `contribution`, the weight times the label less the mean.
    effects : Series
        What each kind of effect adds: own features, those of neighbours, the graph field. The rest of the prediction
        less the mean is a constant.
    """

    node: Any
    prediction: float
    mean: float
    labels: pd.DataFrame
    effects: pd.Series

    def __repr__(self) -> str:
        """Return the sums, and the labels with the largest contributions."""
        about = f"{self.node}: {number(self.prediction)} = {number(self.mean)} (mean of the labels)"
        effects = "".join(f" {_signed(float(value))} ({name})" for name, value in self.effects.items())
        constant = self.prediction - self.mean - float(self.effects.sum())
        fixed = ["  weights hold the predictions of the learner fixed"] if LEARNED in self.effects.index else []
        lines = [
            f"  {_signed(added)} from {name}: {number(label)}, {_steps(steps)}, weight {number(weight, 3)}"
            for name, _, label, steps, weight, added in self.labels.head(5).itertuples()
        ]
        return "\n".join([f"{about}{effects} {_signed(constant)} (constant)", *lines, *fixed])


def _steps(steps: float) -> str:
    return count(int(steps), "step") + " away" if np.isfinite(steps) else "no path"


def _signed(value: float) -> str:
    return f"{MINUS if value < 0 else '+'} {number(abs(value))}"
