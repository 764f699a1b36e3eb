"""Inputs of estimators, checked once: every message states the rule, the finding and the remedy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from pandas.api.types import is_string_dtype
from scipy import sparse
from scipy.sparse.linalg import svds
from sklearn.exceptions import NotFittedError

from graphmrf.errors import InvalidInputError
from graphmrf.graph import Graph
from graphmrf.graph.checks import check_magnitude
from graphmrf.selection import MatchedFolds, distance_matched_folds

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from graphmrf._typing import Bools, Floats, Ints

# Share of the nodes to predict without a value, and of the labelled ones with one, beyond which a column seems to
# follow from the outcome.
_TOGETHER = 0.9
MOST_COMPONENTS = 50  # columns up to which sparse features become dense, and to which more are reduced


@dataclass(frozen=True)
class Outcome:
    """The outcome of every node of a graph, NaN where it is to be predicted."""

    y: Floats  # (n,): values in float64
    known: Bools  # (n,): where there is one
    single: bool  # whether it was given in float32

    @property
    def n_labelled(self) -> int:
        """Number of labelled nodes."""
        return int(np.count_nonzero(self.known))

    def matched_folds(self, graph: Graph, n_folds: int, random_state: int) -> MatchedFolds:
        """Return folds that imitate the holes, random ones where holes are random."""
        return distance_matched_folds(graph, self.known, n_folds, random_state=random_state)

    def clamp(self, values: Floats) -> Floats:
        """Return the values, with the known outcomes where there are any."""
        return np.where(self.known, self.y, values)


@dataclass(frozen=True)
class FeatureColumns:
    """The features of a fit: how many, and their names when they were a DataFrame."""

    count: int
    names: pd.Index | None

    @property
    def labels(self) -> list[Any]:
        """The names of the columns, or their numbers."""
        return list(range(self.count) if self.names is None else self.names)

    def title(self, column: int) -> str:
        """Return what to call a column in a message."""
        return f"column {self.labels[column]!r}"

    def named(self, coef: Floats) -> Floats | pd.Series:
        """Return one number for each column, under its name when there are names."""
        return coef if self.names is None else pd.Series(coef, index=self.names)


@dataclass(frozen=True)
class Categories:
    """Levels of the columns of a table that are categories or text, by column."""

    levels: dict[Any, pd.Index]

    @classmethod
    def of(cls, X: Any) -> Categories:
        """Return the levels of at least two nodes in a table, in order; none of an array."""
        if not isinstance(X, pd.DataFrame):
            return cls({})
        found = {}
        for name, values in X.items():
            known = values.dropna()
            if isinstance(values.dtype, pd.CategoricalDtype) or (known.size and is_string_dtype(known)):
                counts = known.astype(str).value_counts()
                if counts.size > 0.5 * known.size:
                    raise InvalidInputError(
                        f"a column of text must have levels that nodes share, got {counts.size} different values at "
                        f"{known.size} nodes in column {name!r}; make it numbers, or drop it"
                    )
                found[name] = pd.Index(sorted(counts.index[counts > 1]))
        return cls(found)

    def dummies(self, X: Any) -> Any:
        """Return a table with a column of 0 and 1 for each level, `name=level`; missing and new levels are 0 in all."""
        if not self.levels or not isinstance(X, pd.DataFrame):
            return X
        parts = [X[[name]] if name not in self.levels else self._of(X, name) for name in X.columns]
        return pd.concat(parts, axis=1)

    def owners(self, columns: Iterable[Any]) -> tuple[Any, ...]:
        """Return the column that each of those of `dummies` is made of, itself where it is none of a level."""
        made = {f"{name}={level}": name for name, levels in self.levels.items() for level in levels}
        return tuple(made.get(column, column) for column in columns)

    def _of(self, X: pd.DataFrame, name: Any) -> pd.DataFrame:
        text, levels = X[name].astype(object).where(X[name].notna()).map(str, na_action="ignore"), self.levels[name]
        codes = levels.get_indexer(text)
        found = np.zeros((len(X), len(levels)))
        found[np.flatnonzero(codes >= 0), codes[codes >= 0]] = 1.0
        return pd.DataFrame(found, index=X.index, columns=[f"{name}={level}" for level in levels])


@dataclass(frozen=True)
class Table:
    """Features in float64, shape (n, p), and whether they were given in float32."""

    X: Floats
    columns: FeatureColumns
    single: bool


@dataclass(frozen=True)
class Labels:
    """The class of every node: `codes` (n,) are positions in `classes`, -1 where it is to be predicted."""

    codes: Ints
    classes: Any

    @property
    def known(self) -> Bools:
        """Where there is a label."""
        return self.codes >= 0

    def against_the_rest(self, code: int) -> Floats:
        """Return the outcome 1 in a class, 0 in any other, NaN where it is to be predicted."""
        return np.where(self.known, (self.codes == code).astype(np.float64), np.nan)


def check_graph(graph: object) -> Graph:
    """Return the graph, converted from SciPy, NetworkX or igraph; raise an error that names the constructors."""
    return Graph.wrap(graph)


def read_outcome(y: Any, n: int) -> Outcome:
    """Return the outcome of `n` nodes: numbers, at least one of them known, none infinite."""
    values, single = _numbers(y, "y")
    if values.shape != (n,):
        raise InvalidInputError(
            f"y must have one entry for each of the {n} nodes, got shape {values.shape}; put NaN where it is unknown"
        )
    infinite = np.flatnonzero(np.isinf(values))
    if infinite.size:
        raise InvalidInputError(
            f"y must be finite, got {values[infinite[0]]} at node {infinite[0]}; correct it, or put NaN to predict it"
        )
    check_magnitude(values[:, None], "y")
    known = ~np.isnan(values)
    if not known.any():
        raise InvalidInputError(f"y must have at least one known value, got NaN at all {n} nodes; label some nodes")
    return Outcome(values, known, single)


def read_features(X: Any, n: int | None, owner: str, *, holes: bool = False) -> Table:
    """Return the features of `n` nodes (None: of any number): a table of finite numbers, NaN only where `holes`."""
    if X is None:
        raise InvalidInputError(f"{owner} needs features X, got None; without features use LabelPropagation")
    names = X.columns if isinstance(X, pd.DataFrame) else None
    values, single = _numbers(X, "X")
    if values.ndim != 2:
        raise InvalidInputError(
            f"X must have two dimensions (nodes, features), got shape {values.shape}; reshape one feature to (n, 1)"
        )
    if n is not None and len(values) != n:
        raise InvalidInputError(f"X must have one row for each of the {n} nodes, got {len(values)}")
    columns = FeatureColumns(values.shape[1], names)
    _check_cells(values, columns, holes=holes)
    check_magnitude(values, "X", None if names is None else list(names))
    return Table(values, columns, single)


def match_features(X: Any, n: int | None, fitted: FeatureColumns, owner: str, *, holes: bool = False) -> Floats:
    """Return the features of other nodes, with the columns that were fitted, by name; NaN only where `holes`."""
    table = read_features(X, n, owner, holes=holes)
    columns = table.columns
    if fitted.names is not None and columns.names is not None and list(columns.names) != list(fitted.names):
        return table.X[:, _places(list(columns.names), list(fitted.names))]
    if columns.count != fitted.count:
        raise InvalidInputError(
            f"X must have the {fitted.count} features of the fit, got {columns.count}; pass the same columns"
            + ("" if fitted.names is None else f", {list(fitted.names)}")
        )
    return table.X


def _places(found: list[Any], wanted: list[Any]) -> list[int]:
    """Return where the wanted names are among those found; raise if some are missing, too many, or there twice."""
    missing, extra = [c for c in wanted if c not in found], [c for c in found if c not in wanted]
    twice = [c for k, c in enumerate(found) if c in found[:k]]
    if missing or extra or twice:
        finding = f"missing {missing}, unexpected {extra}" if missing or extra else f"{twice} more than once"
        raise InvalidInputError(f"X must have the columns of the fit, got {finding}; pass X[{wanted}]")
    return [found.index(name) for name in wanted]


def read_labels(y: Any, n: int) -> Labels:
    """Return the classes of `n` nodes: numbers, text or booleans; NaN, None or an empty cell is to be predicted."""
    values = _label_values(y, n)
    known = np.flatnonzero(~pd.isna(values))
    if not known.size:
        raise InvalidInputError(f"y must have at least one known label, got none at all {n} nodes; label some nodes")
    try:
        classes = np.array(sorted(set(values[known].tolist())))
    except TypeError as error:
        kinds = sorted({type(value).__name__ for value in values[known].tolist()})
        raise InvalidInputError(
            f"labels in y must all have one type, got {' and '.join(kinds)}; convert them, for example with str"
        ) from error
    codes = np.full(n, -1)
    codes[known] = np.searchsorted(classes, np.array(values[known].tolist()))
    return Labels(codes, classes)


def check_classes(labels: Labels, n_folds: int) -> None:
    """Raise unless there are at least two classes, each with a member for every fold, or only one, held out once."""
    classes, counts = labels.classes, np.bincount(labels.codes[labels.known])
    if classes.size < 2:
        raise InvalidInputError(
            f"y must have at least two classes, got only {_quoted(classes[0])}; label nodes of another class too"
        )
    if labels.known.all() and classes.dtype.kind in "if" and classes[0] == -1 and classes[1] == 0:
        raise InvalidInputError(
            f"y has no missing label, but -1 at {counts[0]} nodes beside classes from 0 on; if -1 is unknown pass "
            "np.where(y == -1, np.nan, y), and if it is a class y.astype(str)"
        )
    rare = np.flatnonzero((counts < n_folds) & ((counts > 1) | (counts.max() == 1)))
    if rare.size:
        found = ", ".join(f"{_quoted(classes[code])} with {counts[code]}" for code in rare[:5])
        more = f" and {rare.size - 5} more" if rare.size > 5 else ""
        raise InvalidInputError(
            f"every class must have a labelled node for each of the {n_folds} folds, got {found}{more}; "
            "label more of them, merge classes, or lower cv"
        )


def check_seen(truth: Labels, classes: Any) -> Ints:
    """Return the codes of labels among the classes of the fit, -1 where unknown; raise if some are not among them."""
    unseen = [value for value in truth.classes.tolist() if value not in classes.tolist()]
    if unseen:
        raise InvalidInputError(
            f"y must contain classes of the fit only, {_listed(classes.tolist())}, got {_listed(unseen)}; "
            "fit with labels of those classes too, or put NaN there"
        )
    position = np.array([classes.tolist().index(value) for value in truth.classes.tolist()])
    return np.where(truth.known, position[truth.codes], -1)


def as_given(values: Floats, *, single: bool) -> Floats:
    """Return a copy of an answer, in float32 when everything given was."""
    return np.array(values, dtype=np.float32 if single else np.float64)


def check_fitted(estimator: object, attribute: str) -> None:
    """Raise scikit-learn's NotFittedError unless `fit` has set the attribute."""
    targets = vars(estimator).get("targets_")
    if targets is not None:
        raise NotFittedError(
            f"this {type(estimator).__name__} has a fit for each of {len(targets)} targets; ask one of them, such as "
            f"model.targets_[{next(iter(targets))!r}]"
        )
    if attribute not in vars(estimator):
        raise NotFittedError(f"this {type(estimator).__name__} is not fitted yet; call fit(graph, X, y) first")


def refuse_other_graph(graph: object, X: object, owner: str) -> None:
    """Raise if a predictor that needs the labels of its graph is asked about another one."""
    if graph is not None or X is not None:
        raise InvalidInputError(
            f"{owner} predicts only the nodes of the graph it was fitted on, got another graph or X; call predict() "
            "without them, or fit on the other graph with the labels known there"
        )


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    """Raise unless an option has one of its values."""
    if value not in choices:
        raise InvalidInputError(f"{name} must be one of {', '.join(choices)}, got {value!r}")


def check_level(level: float) -> None:
    """Raise unless a level is a probability."""
    if not 0 < level < 1:
        raise InvalidInputError(f"level must be between 0 and 1, got {level!r}")


def known_with_outcome(missing: Bools, known: Bools, titles: Sequence[str]) -> tuple[Bools, tuple[str, ...]]:
    """Return which columns must be left out, as they have hardly any value at the nodes to predict, and notes on them.

    A column that follows from the outcome makes held-out predictions perfect, and helps nowhere else. `missing` (n, p):
    cells without a value. `known` (n,): nodes with an outcome. `titles`: what to call the columns.

    Examples
    --------
    >>> missing, known = np.array([[False], [False], [True]]), np.array([True, True, False])
    >>> known_with_outcome(missing, known, ["column 'copy'"])[1]
    ("column 'copy' is left out: it has no value at the nodes to predict",)
    """
    if known.all():
        return np.zeros(missing.shape[1], dtype=bool), ()
    asked, labelled = missing[~known].mean(axis=0), missing[known].mean(axis=0) if known.any() else 1.0
    left_out = (asked == 1.0) | (np.minimum(asked, 1.0 - labelled) > _TOGETHER)
    notes = (
        f"{titles[j]} is left out: it has {'no' if asked[j] == 1.0 else 'hardly any'} value at the nodes to predict"
        for j in np.flatnonzero(left_out).tolist()
    )
    return left_out, tuple(notes)


def node_positions(graph: Graph, X: Any) -> Ints:
    """Return the positions of nodes given by id, or by position on a graph without ids; one a row."""
    named = np.asarray(X.iloc[:, 0] if isinstance(X, pd.DataFrame) and X.shape[1] == 1 else X)
    named = named[:, 0] if named.ndim == 2 and named.shape[1] == 1 else named
    if named.ndim != 1:
        raise InvalidInputError(f"X must name one node a row, got shape {named.shape}; features go to features=")
    if graph.ids is not None:
        places = graph.ids.get_indexer(pd.Index(named, tupleize_cols=False))
        if (places < 0).any():
            stray = named.tolist()[int(np.argmax(places < 0))]
            raise InvalidInputError(f"X must contain ids of the graph, got {stray!r}; pass some of graph.ids")
        return np.asarray(places)
    whole = named.dtype.kind in "iu" or (named.dtype.kind == "f" and (named == np.floor(named)).all())
    if not whole or (named < 0).any() or (named >= graph.n_nodes).any():
        raise InvalidInputError(f"X must contain node positions 0 to {graph.n_nodes - 1}; or give the graph its ids")
    return named.astype(np.int64)


def read_mask(mask: Any, n: int, name: str) -> Bools:
    """Return a mask of the nodes, checked."""
    found = np.asarray(mask)
    if found.dtype != np.bool_ or found.shape != (n,):
        raise InvalidInputError(
            f"{name} must be True or False for each of the {n} nodes, got {found.dtype} of shape {found.shape}; "
            "for a list of nodes use np.isin(np.arange(n), nodes)"
        )
    return found


def read_weights(weight: Any, n: int) -> Floats:
    """Return weights of nodes, checked."""
    found = np.asarray(weight, dtype=np.float64)
    bad = np.flatnonzero(~np.isfinite(found) | (found < 0))
    if found.shape != (n,) or bad.size:
        shape = f"shape {found.shape}"
        fault = shape if found.shape != (n,) else f"{found[bad[0]]:g} in row {bad[0]} ({bad.size} such rows in all)"
        raise InvalidInputError(
            f"weight must be a number of 0 or more for each of the {n} nodes, got {fault}; fill in missing ones"
        )
    return found


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


@dataclass(frozen=True, eq=False)
class Components:
    r"""The leading right singular vectors `V` of a sparse matrix, its columns divided by their largest absolute values.

    The features that a model sees are :math:`X D^{-1} V`. `V` has a column for every singular value above rounding,
    and 50 at most. Labels play no part. Of up to 50 columns `V` and `D` are the identity.

    Attributes
    ----------
    largest : array of shape (p,)
        Diagonal of `D`; 1 for an empty column.
    directions : array of shape (p, k)
        The matrix `V`.
    """

    largest: Floats
    directions: Floats

    @classmethod
    def of(cls, X: Any) -> Components:
        """Return the components of a sparse matrix of SciPy."""
        _check_sparse(X)
        p = X.shape[1]
        if p <= MOST_COMPONENTS:
            return cls(np.ones(p), np.eye(p))
        largest = abs(X).max(axis=0).toarray().ravel().astype(np.float64)
        largest = np.where(largest > 0, largest, 1.0)
        return cls(largest, _right_singular_vectors(X @ sparse.diags_array(1.0 / largest)))

    def __call__(self, X: Any) -> Any:
        """Return the reduced features of nodes; what has another number of columns and is dense, as it is."""
        p, k = self.directions.shape
        if not sparse.issparse(X) and np.shape(X)[1:] != (p,):
            return X
        if X.shape[1] != p:
            raise InvalidInputError(f"X must have the {p} features of the fit, got {X.shape[1]}; pass the same columns")
        X = sparse.csr_array(X)
        _check_sparse(X)
        reduced = X.toarray() if k == p else X @ (self.directions / self.largest[:, None])
        return np.asarray(reduced, dtype=np.float32 if X.dtype == np.float32 else np.float64)


def is_sparse(X: Any) -> bool:
    """Whether features are a sparse matrix of SciPy."""
    return bool(sparse.issparse(X))


def as_sparse(X: Any) -> Any:
    """Return a sparse matrix of SciPy or PyTorch in rows; anything else as it is."""
    if type(X).__module__.partition(".")[0] == "torch" and "sparse" in str(X.layout):
        X = X.detach().cpu().to_sparse_coo().coalesce()
        X = sparse.coo_array((X.values().numpy(), tuple(X.indices().numpy())), shape=tuple(X.shape))
    if not is_sparse(X):
        return X
    if X.ndim != 2 or X.dtype.kind not in "buif":
        raise InvalidInputError(
            f"X must have numbers in two dimensions (nodes, features), got {X.dtype} of shape {X.shape}; "
            "convert it first"
        )
    return sparse.csr_array(X if X.dtype.kind == "f" else X.astype(np.float64))


def reduced(X: Any) -> Any:
    """Return features as a model fitted to them sees them: sparse ones reduced."""
    X = as_sparse(X)
    return Components.of(X)(X) if is_sparse(X) else X


def _right_singular_vectors(X: Any) -> Floats:
    """Return the leading right singular vectors (p, k) of a sparse matrix, of singular values above rounding."""
    rank = min(MOST_COMPONENTS, min(X.shape) - 1)
    if not X.count_nonzero() or rank < 1:
        return np.zeros((X.shape[1], 0))
    start = np.random.default_rng(0).standard_normal(min(X.shape))
    _, s, found = svds(X, rank, v0=start, return_singular_vectors="vh")  # type: ignore[arg-type]  # SciPy documents it
    V = found[::-1][s[::-1] > s.max() * max(X.shape) * np.finfo(np.float64).eps].T
    return np.asarray(V * np.sign(V[np.abs(V).argmax(axis=0), np.arange(V.shape[1])]))


def _check_sparse(X: Any) -> None:
    """Raise unless all cells are finite: none can be missing where most are 0."""
    rows = sparse.coo_array(X)
    bad = np.flatnonzero(~np.isfinite(rows.data))
    if bad.size:
        raise InvalidInputError(
            f"a sparse X must be finite, got {rows.data[bad[0]]} in column {rows.col[bad[0]]} at node "
            f"{rows.row[bad[0]]} ({bad.size} such cells in all); put 0 there, or pass an array with NaN"
        )


def _numbers(values: Any, name: str) -> tuple[Floats, bool]:
    """Return float64 values, and whether they came as float32."""
    if sparse.issparse(values):
        raise InvalidInputError(f"{name} must be dense, got a sparse matrix; use {name}.toarray()")
    if isinstance(values, pd.DataFrame):
        return _frame_numbers(values)
    if isinstance(values, pd.Series):
        values = (
            values.to_numpy(dtype=np.float64, na_value=np.nan) if values.dtype.kind in "buif" else values.to_numpy()
        )
    if isinstance(values, np.ma.MaskedArray):
        values = np.ma.filled(values.astype(np.float64), np.nan)
    array = np.asarray(values)
    if array.dtype.kind not in "buifO":
        raise InvalidInputError(f"{name} must be numeric, got dtype {array.dtype}; convert or encode it first")
    try:
        return array.astype(np.float64), array.dtype == np.float32
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"{name} must be numeric, got {error}; convert or encode it first") from error


def _frame_numbers(frame: pd.DataFrame) -> tuple[Floats, bool]:
    for name, dtype in frame.dtypes.items():
        if dtype.kind not in "buif":
            raise InvalidInputError(
                f"X must be numeric, got {dtype} in column {name!r}; encode it, for example with pandas.get_dummies"
            )
    single = bool(frame.shape[1]) and all(dtype == np.float32 for dtype in frame.dtypes)
    return frame.to_numpy(dtype=np.float64, na_value=np.nan), single


def _check_cells(X: Floats, columns: FeatureColumns, *, holes: bool) -> None:
    bad = np.isinf(X) if holes else ~np.isfinite(X)
    if not bad.any():
        return
    row, column = np.argwhere(bad)[0]
    remedy = "replace infinite values, NaN being missing" if holes else "fill missing cells, or use GraphRegressor"
    raise InvalidInputError(
        f"X must be finite, got {X[row, column]} in {columns.title(int(column))} at node {row} "
        f"({np.count_nonzero(bad)} such cells in all); {remedy}"
    )


def _label_values(y: Any, n: int) -> Any:
    if isinstance(y, np.ma.MaskedArray):
        hidden, y = np.ma.getmaskarray(y), np.ma.getdata(y).astype(object)
        y[hidden] = None
    values = np.asarray(y.astype(object) if isinstance(y, pd.Series) else y, dtype=object)
    if values.shape != (n,):
        raise InvalidInputError(
            f"y must have one label for each of the {n} nodes, got shape {values.shape}; put None where it is unknown"
        )
    return values


def _listed(values: list[Any]) -> str:
    shown = ", ".join(_quoted(value) for value in values[:5])
    return shown if len(values) <= 5 else f"{shown} and {len(values) - 5} more"


def _quoted(value: Any) -> str:
    return repr(value.item() if isinstance(value, np.generic) else value)
