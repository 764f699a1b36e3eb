"""Whole tables: the missing cells of all columns, numbers and classes, with error bars and draws."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin

from graphmrf.errors import (
    ConvergenceError,
    GraphMRFError,
    InvalidInputError,
    RefusesFormerNames,
    refuses_former_options,
)
from graphmrf.estimators.graph_classifier import GraphClassifier
from graphmrf.estimators.graph_regressor import GraphRegressor
from graphmrf.estimators.inputs import check_fitted, check_graph
from graphmrf.estimators.storage import Storable
from graphmrf.model import GaussianMRF
from graphmrf.selection import distance_matched_folds

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

    from graphmrf._typing import Floats
    from graphmrf.graph import Graph

JOINT_METHODS = ("auto", "coupled", "fields")

_COLLINEAR = 1e-10  # share of its variance that other columns leave of one that follows from them


@dataclass(eq=False, repr=False)
class GraphImputer(RefusesFormerNames, TransformerMixin, Storable, BaseEstimator):
    r"""A table of nodes without missing cells: each is predicted from all other columns and from the neighbours.

    Numbers are imputed by one of two methods. "coupled" is one Gaussian field of all columns,
    :math:`\Gamma = H \otimes I + C \otimes N` (`GaussianMRF` with ``coupled=True``), conditioned on all known cells.
    "fields" is a `GraphRegressor` for each column with the others as features, which also finds nonlinear and local
    effects, and takes longer; it always imputes columns that follow from others, such as copies and totals. "auto"
    hides a fold of the known cells of every column, at places that imitate its holes, and uses the method that
    predicts them better. Classes are imputed by `GraphClassifier`.

    Parameters
    ----------
    graph : Graph, or a graph of SciPy, NetworkX or igraph
        The graph; rows of a table are its nodes, matched by id where it has ids.
    method : {"auto", "coupled", "fields"}, default "auto"
        How columns of numbers are imputed.
    likelihoods : mapping of str to str, optional
        Columns with another likelihood of `GraphRegressor`, such as ``{"cases": "poisson"}``; it imputes them.
    sizes : mapping of str to str, optional
        For these, the column with the exposure of counts or the trials of successes, known everywhere, such as
        ``{"cases": "population"}``; 1 by default.
    cv : int, default 5
        Folds, one of which is hidden to choose the method.
    random_state : int, default 0
        Seed of folds and fits.

    Attributes
    ----------
    filled_ : DataFrame of shape (n, q)
        The table without missing cells.
    std_ : DataFrame of shape (n, q)
        Standard deviations of imputed numbers; 0 where a cell was known, NaN in columns of classes, and where only one
        cell was known.
    probability_ : DataFrame of shape (n, q)
        Probabilities of imputed classes; 1 where a cell was known, NaN in columns of numbers.
    methods_ : dict
        The method of each column with missing cells: "coupled", "fields", "classes" or "constant".
    scores_ : DataFrame
        R2 of both methods on the hidden cells of each column; empty unless they were compared.
    notes_ : tuple of str
        Decisions made by the fit.

    Examples
    --------
    >>> import numpy as np
    >>> from graphmrf import Graph, GraphImputer
    >>> ring = Graph.from_edges(np.arange(60), (np.arange(60) + 1) % 60)
    >>> level = np.sin(np.arange(60) / 5)
    >>> table = np.column_stack([level, 2 * level + np.cos(np.arange(60.0))])
    >>> table[::7, 0] = table[3::9, 1] = np.nan
    >>> imputer = GraphImputer(ring, method="coupled").fit(table)
    >>> bool(np.abs(imputer.transform(table)[::7, 0] - level[::7]).max() < 0.2)
    True
    """

    graph: Any
    _: KW_ONLY
    method: str = "auto"
    likelihoods: Mapping[str, str] | None = None
    sizes: Mapping[str, str] | None = None
    cv: int = 5
    random_state: int = 0

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002  (every transformer is fitted alike)
        """Predict the missing cells of a table.

        Parameters
        ----------
        X : array or DataFrame of shape (n, q)
            A row for every node; NaN or None is missing. Columns of a frame that are not numeric have classes.
        y : ignored

        Raises
        ------
        InvalidInputError
            If the number of rows is not that of nodes, or a column has no known cell.
        """
        if self.method not in JOINT_METHODS:
            raise InvalidInputError(f"method must be one of {', '.join(JOINT_METHODS)}, got {self.method!r}")
        graph = check_graph(self.graph)
        table = _Table.of(graph, graph.align(X, "X"), self.likelihoods or {}, self.sizes or {})
        self.n_features_in_ = table.frame.shape[1]
        self.notes_ = table.notes
        self.scores_ = pd.DataFrame()
        self.methods_ = self._choose(graph, table)
        self._parts = self._fill(graph, table, self.methods_)
        self.filled_ = table.frame.copy()
        self.std_ = pd.DataFrame(np.nan, table.frame.index, table.frame.columns)
        self.probability_ = self.std_.copy()
        self.std_[table.numbers], self.probability_[table.classes] = 0.0, 1.0
        self._holes = table.frame.isna()
        for name, part in self._parts.items():
            hole = self._holes[name].to_numpy()
            self.filled_.loc[hole, name] = part.values[hole]
            sure = self.probability_ if name in table.classes else self.std_
            sure.loc[hole, name] = part.sure[hole]
        return self

    def transform(self, X: Any) -> Any:
        """Return a table of the same nodes and columns with its missing cells filled by what `fit` predicted."""
        check_fitted(self, "filled_")
        given = check_graph(self.graph).align(X, "X")
        frame = given if isinstance(given, pd.DataFrame) else pd.DataFrame(np.asarray(given))
        if frame.shape != self.filled_.shape:
            raise InvalidInputError(
                f"X must have the shape of the fit, {self.filled_.shape}, got {frame.shape}; fit again for other tables"
            )
        known = frame.notna().to_numpy()
        filled = self.filled_.set_axis(frame.columns, axis=1).set_axis(frame.index)
        filled = filled.where(~known, frame)
        return filled if isinstance(given, pd.DataFrame) else filled.to_numpy(dtype=np.float64)

    @refuses_former_options
    def sample(self, n_samples: int = 1, *, random_state: int = 0) -> list[pd.DataFrame]:
        """Return draws of the whole table; columns filled by the coupled field are drawn jointly, others by themselves.

        Every known cell keeps its value.
        """
        check_fitted(self, "filled_")
        drawn = {name: part.draw(n_samples, random_state) for name, part in self._parts.items()}
        tables = [self.filled_.copy() for _ in range(n_samples)]
        for name, values in drawn.items():
            hole = self._holes[name].to_numpy()
            for table, one in zip(tables, values, strict=True):
                table.loc[hole, name] = one[hole]
        return tables

    def get_feature_names_out(self, input_features: Any = None) -> Any:  # noqa: ARG002  (scikit-learn's signature)
        """Return the names of the columns."""
        check_fitted(self, "filled_")
        return np.asarray([str(name) for name in self.filled_.columns], dtype=object)

    def _choose(self, graph: Graph, table: _Table) -> dict[Any, str]:
        """Return the method for each column with missing cells."""
        methods = dict.fromkeys(table.classes, "classes") | dict.fromkeys(table.likelihoods, "fields")
        methods |= dict.fromkeys(table.constant, "constant") | dict.fromkeys(table.derived, "fields")
        left = [name for name in table.holes if name not in methods]
        if self.method != "auto":
            methods |= dict.fromkeys(left, self.method)
        elif left:
            known = table.frame[left].notna().sum()
            tried = [name for name in left if known[name] >= 2 * self.cv]
            methods |= dict.fromkeys(left, "fields")
            self.scores_ = self._compare(graph, table, tried)
            methods |= {name: str(self.scores_.loc[name].fillna(-np.inf).idxmax()) for name in tried}
        return {name: methods[name] for name in table.holes}

    def _compare(self, graph: Graph, table: _Table, names: list[Any]) -> pd.DataFrame:
        """Return the R2 of both methods on a fold of the known cells of each column, all hidden at once."""
        hidden = table.frame.copy()
        for name in names:
            known = table.frame[name].notna().to_numpy()
            folds = distance_matched_folds(graph, known, self.cv, random_state=self.random_state).folds
            hidden.loc[hidden.index[np.flatnonzero(known)[folds == 0]], name] = np.nan
        trial = _Table.of(graph, hidden, table.likelihoods, table.sizes)
        scores = pd.DataFrame(index=pd.Index(names), columns=["coupled", "fields"], dtype=np.float64)
        for method in scores.columns:
            try:
                parts = self._fill(graph, trial, dict.fromkeys(names, method))
            except GraphMRFError as error:
                self.notes_ = (*self.notes_, f"left out the {method} field: {error}")
                continue
            for name in names:
                tried = (hidden[name].isna() & table.frame[name].notna()).to_numpy()
                truth = table.frame[name].to_numpy(dtype=np.float64)[tried]
                errors, spread = truth - parts[name].values[tried], truth - truth.mean()
                scores.loc[name, method] = 1.0 - float(errors @ errors) / (float(spread @ spread) or np.inf)
        return scores

    def _fill(self, graph: Graph, table: _Table, methods: Mapping[Any, str]) -> dict[Any, _Part]:
        """Return the predictions of the columns, each by its method."""
        parts: dict[Any, _Part] = {}
        joint = [name for name, method in methods.items() if method == "coupled"]
        if joint:
            A = table.attributes
            chosen = A.columns.isin([str(name) for name in joint])
            A = A.loc[:, chosen | (A.notna().sum() >= 2 * self.cv) & ~A.columns.isin(_derived(A)[1])]
            posterior = _coupled_posterior(graph, A)
            parts |= {name: _Coupled(posterior, A.columns.get_loc(str(name))) for name in joint}
        for name, method in methods.items():
            if method == "fields":
                model = GraphRegressor(likelihood=table.likelihoods.get(name, "auto"), random_state=self.random_state)
                y = table.frame[name].to_numpy(dtype=np.float64)
                parts[name] = _Field(model.fit(graph, table.others(name), y, **table.size(name)))
            elif method == "classes":
                labels = table.frame[name].astype(object).where(table.frame[name].notna(), None).to_numpy()
                classifier = GraphClassifier(cv=self.cv, random_state=self.random_state)
                parts[name] = _Classes(classifier.fit(graph, table.others(name), labels))
            elif method == "constant":
                known = table.frame[name].dropna()
                parts[name] = _Constant(known.iloc[0], graph.n_nodes, known.size)
        return {name: parts[name] for name in methods}


def _derived(A: pd.DataFrame) -> tuple[list[str], list[str]]:
    """Return the columns that are linear combinations of others where all are known, and those of earlier ones."""
    rows = A.dropna().to_numpy()
    if len(rows) <= 2 * A.shape[1]:
        return [], []
    rows = rows - rows.mean(axis=0)
    rows /= np.maximum(np.linalg.norm(rows, axis=0), 1e-300)

    def follow(j: int, others: list[int]) -> bool:
        left = rows[:, j] - rows[:, others] @ np.linalg.lstsq(rows[:, others], rows[:, j], rcond=None)[0]
        return bool(left @ left < _COLLINEAR)

    columns = range(A.shape[1])
    involved = [j for j in columns if follow(j, [k for k in columns if k != j])]
    again = [j for j in involved if follow(j, list(range(j)))]
    return [str(A.columns[j]) for j in involved], [str(A.columns[j]) for j in again]


def _coupled_posterior(graph: Graph, A: pd.DataFrame) -> Any:
    """Return the coupled model of all attributes, given the known cells."""
    try:
        return GaussianMRF.fit(graph, A, coupled=True, center="fitted").condition(graph, A)
    except np.linalg.LinAlgError as error:
        raise ConvergenceError(
            f"the columns {', '.join(A.columns)} have no joint model, as some follow from others or have too few "
            "known cells; leave them out, or use method='fields'"
        ) from error


# The parts below are the predictions of one column: `values` of all nodes, how `sure` they are (standard deviations of
# numbers, probabilities of classes), and draws of all nodes.


@dataclass(frozen=True, eq=False)
class _Coupled:
    posterior: Any
    column: Any

    @property
    def values(self) -> Floats:
        return np.asarray(self.posterior.mean)[:, self.column]

    @property
    def sure(self) -> Floats:
        return np.asarray(self.posterior.std)[:, self.column]

    def draw(self, count: int, random_state: int) -> Floats:
        return np.asarray(self.posterior.sample(count, random_state))[:, :, self.column]


@dataclass(frozen=True, eq=False)
class _Field:
    model: GraphRegressor

    @property
    def values(self) -> Floats:
        return np.asarray(self.model.predict(of="observation"))

    @property
    def sure(self) -> Floats:
        return np.asarray(self.model.predict(return_std=True, of="observation")[1])

    def draw(self, count: int, random_state: int) -> Floats:
        return np.asarray(self.model.sample(count, random_state=random_state, of="observation"))


@dataclass(frozen=True, eq=False)
class _Classes:
    model: GraphClassifier

    @property
    def values(self) -> Any:
        return np.asarray(self.model.predict(), dtype=object)

    @property
    def sure(self) -> Floats:
        probability = np.asarray(self.model.predict_proba())
        return np.asarray(probability[np.arange(len(probability)), np.searchsorted(self.model.classes_, self.values)])

    def draw(self, count: int, random_state: int) -> Any:
        bounds = np.cumsum(np.asarray(self.model.predict_proba()), axis=1)
        u = np.random.default_rng(random_state).random((count, len(bounds), 1))
        codes = np.minimum((u > bounds).sum(axis=2), bounds.shape[1] - 1)
        return self.model.classes_.astype(object)[codes]


@dataclass(frozen=True, eq=False)
class _Constant:
    value: Any
    n: int
    known: int

    @property
    def values(self) -> Any:
        return np.full(self.n, self.value)

    @property
    def sure(self) -> Floats:
        certain = 0.0 if isinstance(self.value, float | int) else 1.0
        return np.full(self.n, certain if self.known > 1 else np.nan)

    def draw(self, count: int, random_state: int) -> Any:  # noqa: ARG002  (as all parts)
        return np.tile(self.values, (count, 1))


_Part: TypeAlias = _Coupled | _Field | _Classes | _Constant


def _check_frame(frame: pd.DataFrame, n: int) -> None:
    """Raise unless a table has a row for every node, columns of different names, and a known cell in each."""
    if len(frame) != n:
        raise InvalidInputError(f"X must have one row for each of the {n} nodes, got {len(frame)}")
    names = pd.Index([str(name) for name in frame.columns])
    if names.has_duplicates:
        twice = names[names.duplicated()][0]
        raise InvalidInputError(f"every column needs a name of its own, got {twice!r} more than once; rename one")
    empty = [name for name in frame.columns if frame[name].isna().all()]
    if empty:
        raise InvalidInputError(f"every column must have a known cell, got none in {empty[0]!r}; drop the column")


@dataclass(frozen=True, eq=False)
class _Table:
    """A table of nodes, with the kinds of its columns, and with what columns are as features."""

    frame: pd.DataFrame
    likelihoods: Mapping[Any, str]
    sizes: Mapping[Any, Any]
    numbers: list[Any]
    classes: list[Any]

    @classmethod
    def of(cls, graph: Graph, X: Any, likelihoods: Mapping[Any, str], sizes: Mapping[Any, Any]) -> _Table:
        """Return a checked table."""
        frame = X.copy() if isinstance(X, pd.DataFrame) else pd.DataFrame(np.asarray(X, dtype=np.float64))
        _check_frame(frame, graph.n_nodes)
        numbers = [name for name, kind in frame.dtypes.items() if kind.kind in "iuf"]
        unknown = [name for name in likelihoods if name not in numbers]
        if unknown:
            raise InvalidInputError(f"likelihoods must name columns of numbers, got {unknown[0]!r}; have {numbers}")
        for name, size in sizes.items():
            if name not in likelihoods or size not in numbers or frame[size].isna().any():
                raise InvalidInputError(
                    f"sizes must lead from columns with a likelihood to columns of numbers known everywhere, got "
                    f"{name!r}: {size!r}; see likelihoods, and fill {size!r} first"
                )
        frame = frame.astype(dict.fromkeys(numbers, np.float64))
        return cls(frame, likelihoods, sizes, numbers, [name for name in frame.columns if name not in numbers])

    @property
    def holes(self) -> list[Any]:
        """Columns with missing cells."""
        return [name for name in self.frame.columns if self.frame[name].isna().any()]

    @property
    def constant(self) -> list[Any]:
        """Columns with one value."""
        return [name for name in self.frame.columns if self.frame[name].nunique() == 1]

    @property
    def derived(self) -> list[Any]:
        """Columns of numbers that follow from others wherever all are known, such as copies and totals."""
        names = _derived(self.attributes)[0]
        return [name for name in self.numbers if str(name) in names]

    @property
    def notes(self) -> tuple[str, ...]:
        """What the standard deviations leave out."""
        single = [str(name) for name in self.frame.columns if self.frame[name].notna().sum() == 1]
        return (f"only one known cell, so no standard deviation: {', '.join(single)}",) if single else ()

    def size(self, name: Any) -> dict[str, Floats]:
        """Return exposure or trials of a column, as `GraphRegressor.fit` takes them."""
        if name not in self.sizes:
            return {}
        word = "trials" if self.likelihoods[name] == "binomial" else "exposure"
        return {word: self.frame[self.sizes[name]].to_numpy()}

    @property
    def attributes(self) -> pd.DataFrame:
        """Columns of numbers that vary, and an indicator of every class of the others but the first."""
        varying = [self._features(name) for name in self.frame.columns if name not in self.constant]
        return pd.concat([pd.DataFrame(index=self.frame.index), *varying], axis=1)

    def others(self, name: Any) -> pd.DataFrame | None:
        """Return the other columns as features; None where there are none."""
        names = [other for other in self.frame.columns if other != name and other not in self.constant]
        return pd.concat([self._features(other) for other in names], axis=1) if names else None

    def _features(self, name: Any) -> pd.DataFrame:
        column = self.frame[name]
        if name in self.numbers:
            return pd.DataFrame({str(name): column})
        values = column.astype(object).where(column.notna(), None)
        levels = sorted(set(values.dropna()), key=str)[1:]
        indicators = {f"{name}={level}": np.where(column.isna(), np.nan, values == level) for level in levels}
        return pd.DataFrame(indicators, index=column.index, dtype=np.float64)
