"""Sparse features, such as words or tags in thousands of columns, reduced to a few dense ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import svds

from graphmrf.errors import InvalidInputError

if TYPE_CHECKING:
    from graphmrf._typing import Floats

MOST_COLUMNS = 50
"""Columns up to which sparse features are dense ones, and to which more are reduced."""


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
        _check(X)
        p = X.shape[1]
        if p <= MOST_COLUMNS:
            return cls(np.ones(p), np.eye(p))
        largest = abs(X).max(axis=0).toarray().ravel().astype(np.float64)
        largest = np.where(largest > 0, largest, 1.0)
        return cls(largest, _right_singular_vectors(X @ sparse.diags_array(1.0 / largest)))

    def __call__(self, X: Any) -> Any:
        """Return the reduced features of nodes; what has another number of columns and is dense, as it is."""
        p, k = self.directions.shape
        if not is_sparse(X) and np.shape(X)[1:] != (p,):
            return X
        if X.shape[1] != p:
            raise InvalidInputError(f"X must have the {p} features of the fit, got {X.shape[1]}; pass the same columns")
        X = sparse.csr_array(X)
        _check(X)
        reduced = X.toarray() if k == p else X @ (self.directions / self.largest[:, None])
        return np.asarray(reduced, dtype=np.float32 if X.dtype == np.float32 else np.float64)


def is_sparse(X: Any) -> bool:
    """Whether features are a sparse matrix of SciPy."""
    return bool(sparse.issparse(X))


def as_sparse(X: Any) -> Any:
    """Return a sparse matrix of SciPy or PyTorch in rows; anything else as it is.

    Examples
    --------
    >>> as_sparse(sparse.coo_array(([1.0, 2.0], ([0, 0], [1, 1])), shape=(1, 3))).toarray()
    array([[0., 3., 0.]])
    """
    if type(X).__module__.partition(".")[0] == "torch" and "sparse" in str(X.layout):
        X = X.detach().cpu().to_sparse_coo().coalesce()
        X = sparse.coo_array((X.values().numpy(), tuple(X.indices().numpy())), shape=tuple(X.shape))
    if not is_sparse(X):
        return X
    if X.ndim != 2 or X.dtype.kind not in "buif":
        raise InvalidInputError(
            f"X must hold real numbers in two dimensions (nodes, features), got {X.dtype} of shape {X.shape}; "
            "convert it first"
        )
    return sparse.csr_array(X if X.dtype.kind == "f" else X.astype(np.float64))


def reduced(X: Any) -> Any:
    """Return features as a model sees them that is fitted to them: sparse ones reduced."""
    X = as_sparse(X)
    return Components.of(X)(X) if is_sparse(X) else X


def _right_singular_vectors(X: Any) -> Floats:
    """Return the leading right singular vectors (p, k) of a sparse matrix, of singular values above rounding."""
    rank = min(MOST_COLUMNS, min(X.shape) - 1)
    if not X.count_nonzero() or rank < 1:
        return np.zeros((X.shape[1], 0))
    start = np.random.default_rng(0).standard_normal(min(X.shape))
    _, s, found = svds(X, rank, v0=start, return_singular_vectors="vh")  # type: ignore[arg-type]  # SciPy documents it
    V = found[::-1][s[::-1] > s.max() * max(X.shape) * np.finfo(np.float64).eps].T
    return np.asarray(V * np.sign(V[np.abs(V).argmax(axis=0), np.arange(V.shape[1])]))


def _check(X: Any) -> None:
    """Raise unless all cells are finite: none can be missing where most are 0."""
    rows = sparse.coo_array(X)
    bad = np.flatnonzero(~np.isfinite(rows.data))
    if bad.size:
        raise InvalidInputError(
            f"a sparse X must be finite, got {rows.data[bad[0]]} in column {rows.col[bad[0]]} at node "
            f"{rows.row[bad[0]]} ({bad.size} such cells in all); put 0 there, or pass an array with NaN"
        )
