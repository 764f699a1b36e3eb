r"""Sparse factors :math:`P Q P^\top = L D L^\top` of precision matrices whose fill is small, as on maps and roads.

SuperLU computes the numbers; the fill-reducing ordering, the count of the fill and everything computed from the factor
(solves, draws, log-determinant, selected inversion) are here. An `Ordering` belongs to a sparsity pattern and serves
all values on it. It counts the fill without computing a factor, so that a social network, whose factor would be nearly
dense, is recognised in time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numba import njit
from scipy.sparse.linalg import spilu, splu

from graphmrf.caching import cached_property

if TYPE_CHECKING:
    from graphmrf._typing import Floats, Ints

__all__ = ["Ordering", "SparseFactor", "Symbolic"]

SparseMatrix: TypeAlias = "sp.csc_matrix[Any] | sp.csc_array[Any] | sp.csr_matrix[Any] | sp.csr_array[Any]"

_PANEL = 64  # columns solved for, or of a supernode inverted, at once: wide enough for BLAS, and they stay in the cache
_LEAF = 32  # nodes below which nested dissection does not divide a part
_SMALLER_SIDE = 0.25  # least share of a part on either side of a separator: bounds the depth of nested dissection


@dataclass(frozen=True, eq=False)
class Ordering:
    """A fill-reducing elimination order of a symmetric sparsity pattern, and the size of the factor under it."""

    # (n,): row and column of the matrix that is eliminated first, second, and so on; a postorder of its elimination
    # tree
    permutation: Ints
    fill: int  # nonzeros of the factor `L`, diagonal included
    flops: float  # sum of the squared column counts of `L`, which is the work of the factorisation

    @classmethod
    def of(cls, pattern: SparseMatrix, *, max_flops: float = 1e11) -> Ordering:
        """Order a symmetric pattern by nested dissection or minimum degree, whichever needs less work.

        Nested dissection takes nearly linear time on every graph. Minimum degree is often better but takes minutes on a
        large expander, so it is tried only if nested dissection needs at most `max_flops`, half a minute on one core.
        Stored zeros belong to the pattern.
        """
        A = _symmetric_pattern(pattern)
        n = A.shape[0]
        if (A.nnz / 2) ** 2 > n * max_flops:  # Cauchy and Schwarz: no order can need less
            return _measured(A, np.arange(n))
        dissection = _measured(A, _dissect(A.indptr, A.indices, _LEAF))
        if dissection.flops > max_flops:
            return dissection
        return min(dissection, _measured(A, _minimum_degree(A)), key=lambda ordering: ordering.flops)

    def by_groups(self, pattern: SparseMatrix, size: int) -> Ordering:
        """Return the order of a pattern whose rows are groups of equal size, one group after the other as here.

        Examples
        --------
        >>> pair, four = sp.csc_array(np.ones((2, 2))), sp.csc_array(np.ones((4, 4)))
        >>> Ordering.of(pair).by_groups(four, 2).fill
        10
        """
        return _measured(_symmetric_pattern(pattern), (self.permutation[:, None] * size + np.arange(size)).ravel())


@dataclass(frozen=True, eq=False)
class Symbolic:
    """The symbolic factorisation that all matrices of one pattern share."""

    permutation: Ints  # (n,): rows of the matrix in the order of elimination
    places: Ints  # where each entry of the reordered matrix is stored in the matrix
    # columns, rows: column starts and rows of the reordered matrix
    columns: Ints
    rows: Ints
    # indptr, indices: column starts and sorted rows of `L` below its diagonal
    indptr: Ints
    indices: Ints

    @classmethod
    def of(cls, pattern: sp.csc_array[Any], ordering: Ordering) -> Symbolic:
        """Return the symbolic factorisation of a symmetric pattern in an order of elimination."""
        places = sp.csc_array((np.arange(pattern.nnz), pattern.indices, pattern.indptr), shape=pattern.shape)
        A = _permuted(places, ordering.permutation)
        return cls(ordering.permutation, A.data, A.indptr, A.indices, *_structure(A))

    def factor(self, Q: sp.csc_array[Any]) -> SparseFactor | None:
        """Factorise a matrix whose entries are stored as in the pattern; None if it is not positive definite."""
        numbers = _eliminate(sp.csc_array((Q.data[self.places], self.rows, self.columns), shape=Q.shape))
        if numbers is None:
            return None
        L, pivots = numbers
        data = _align(self.indptr, self.indices, L.indptr, L.indices, L.data)
        return SparseFactor(Q, self.permutation, self.indptr, self.indices, data, pivots)


@dataclass(frozen=True, eq=False)
class SparseFactor:
    r"""The factor :math:`P Q P^\top = L D L^\top` of a sparse symmetric positive definite matrix."""

    Q: SparseMatrix  # (n, n): the matrix
    permutation: Ints  # (n,): its rows in the order of elimination
    # indptr, indices, data: columns of the unit lower triangular `L` without its diagonal; rows are sorted, and the
    # pattern is that of symbolic elimination, which contains entries that happen to be zero
    indptr: Ints
    indices: Ints
    data: Floats
    pivots: Floats  # (n,): diagonal of `D`; positive

    @classmethod
    def of(cls, Q: SparseMatrix, ordering: Ordering) -> SparseFactor | None:
        """Factorise a symmetric `Q` in the given order; None if `Q` is not numerically positive definite."""
        matrix = sp.csc_array(Q)
        return Symbolic.of(matrix, ordering).factor(matrix)

    @cached_property
    def log_determinant(self) -> float:
        """Logarithm of the determinant of `Q`."""
        return float(np.log(self.pivots).sum())

    def solve(self, B: Floats) -> Floats:
        r"""Return :math:`Q^{-1} B` for a vector or for the columns of a matrix."""
        columns = B if B.ndim > 1 else B[:, None]
        out = np.empty(columns.shape)
        for first in range(0, columns.shape[1], _PANEL):
            X = np.ascontiguousarray(columns[self.permutation, first : first + _PANEL], dtype=float)
            _forward(self.indptr, self.indices, self.data, X)
            X /= self.pivots[:, None]
            _backward(self.indptr, self.indices, self.data, X)
            out[self.permutation, first : first + _PANEL] = X
        return out.reshape(B.shape)

    def draw(self, E: Floats) -> Floats:
        r"""Return :math:`P^\top L^{-\top} D^{-1/2} E`, of covariance :math:`Q^{-1}` if `E` is standard normal."""
        X = np.ascontiguousarray((E if E.ndim > 1 else E[:, None]) / np.sqrt(self.pivots)[:, None])
        _backward(self.indptr, self.indices, self.data, X)
        out = np.empty_like(X)
        out[self.permutation] = X
        return out.reshape(E.shape)

    def inverse_diagonal(self) -> Floats:
        r"""Return the diagonal of :math:`Q^{-1}` (the marginal variances), by selected inversion."""
        diagonal = np.empty(len(self.pivots))
        diagonal[self.permutation] = self._selected_inverse()[1]
        return diagonal

    def inverse_entries(self) -> sp.csc_array[Any]:
        r"""Return the entries of :math:`Q^{-1}` on the pattern of `Q`, for traces of :math:`Q^{-1} \partial Q`.

        Entries that `Q` stores as zeros belong to its pattern, and get their values too.
        """
        Z, diagonal = self._selected_inverse()
        pattern = sp.csc_array(self.Q)
        position = np.argsort(self.permutation)
        values = _look_up(pattern.indptr, pattern.indices, position, self.indptr, self.indices, Z, diagonal)
        return sp.csc_array((values, pattern.indices.copy(), pattern.indptr.copy()), shape=pattern.shape)

    def _selected_inverse(self) -> tuple[Floats, Floats]:
        """Entries of the inverse below the diagonal on the pattern of `L`, and its diagonal, in elimination order."""
        panels = _panels(self.indptr, self.indices, _PANEL)
        Z, diagonal = np.zeros(len(self.data)), np.zeros(len(self.pivots))
        _invert(self.indptr, self.indices, self.data, self.pivots, panels, Z, diagonal)
        return Z, diagonal


def _symmetric_pattern(pattern: SparseMatrix) -> sp.csc_array[Any]:
    """Return a well-conditioned matrix with the given pattern and a full diagonal, rows sorted."""
    A = sp.csc_array((np.ones(pattern.nnz), pattern.indices, pattern.indptr), shape=pattern.shape)
    degrees = np.diff(A.indptr) + 1.0
    A = sp.csc_array(A + sp.diags_array(degrees))
    A.sort_indices()
    return A


def _permuted(A: SparseMatrix, permutation: Ints) -> sp.csc_array[Any]:
    """Return the rows and columns of a symmetric matrix in another order, rows sorted; stored zeros stay."""
    A = sp.csc_array(A)
    position = np.empty(len(permutation), A.indices.dtype)
    position[permutation] = np.arange(len(permutation))
    B = A[:, permutation]
    B.indices = position[B.indices]
    B.has_sorted_indices = False
    B.sort_indices()
    return B


def _measured(A: sp.csc_array[Any], permutation: Ints) -> Ordering:
    """Postorder a permutation, which makes supernodes contiguous at the same fill, and count the fill."""
    permuted = _permuted(A, permutation)
    permutation = permutation[_postorder(_elimination_tree(permuted.indptr, permuted.indices))]
    permuted = _permuted(A, permutation)
    counts = _column_counts(permuted.indptr, permuted.indices, _elimination_tree(permuted.indptr, permuted.indices))
    return Ordering(permutation, int(counts.sum()), float(np.square(counts, dtype=float).sum()))


def _minimum_degree(A: sp.csc_array[Any]) -> Ints:
    """Return SuperLU's multiple minimum degree order, read off an incomplete factor that drops all fill."""
    incomplete = spilu(
        A, drop_tol=1e300, fill_factor=1, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )  # fmt: skip
    return np.argsort(incomplete.perm_c)


def _eliminate(A: sp.csc_array[Any]) -> tuple[sp.csc_array[Any], Floats] | None:
    """Return `L` and the pivots of a matrix eliminated in its own order; None unless all pivots are positive."""
    try:
        lu = splu(A.astype(float), permc_spec="NATURAL", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    except RuntimeError:  # exactly singular
        return None
    pivots = lu.U.diagonal()
    positive = np.all(pivots > 0) and np.all(np.isfinite(pivots))
    in_order = np.array_equal(lu.perm_r, lu.perm_c) and np.array_equal(lu.perm_c, np.arange(len(pivots)))
    return (sp.csc_array(lu.L), pivots) if positive and in_order else None


def _structure(A: sp.csc_array[Any]) -> tuple[Ints, Ints]:
    """Return the column starts and the sorted rows of `L` below its diagonal."""
    parent = _elimination_tree(A.indptr, A.indices)
    counts = _column_counts(A.indptr, A.indices, parent)
    indptr = np.concatenate([[0], np.cumsum(counts - 1)])
    return indptr, _row_subtrees(A.indptr, A.indices, parent, indptr)


@njit(cache=True, nogil=True)
def _elimination_tree(indptr: Any, indices: Any) -> Any:
    """Return the parent of every column in the elimination tree, -1 for roots (Liu, with path compression)."""
    n = len(indptr) - 1
    parent, ancestor = np.full(n, -1), np.full(n, -1)
    for i in range(n):
        for p in range(indptr[i], indptr[i + 1]):
            j = np.int64(indices[p])
            while j != -1 and j < i:
                above = ancestor[j]
                ancestor[j] = i
                if above == -1:
                    parent[j] = i
                j = above
    return parent


@njit(cache=True, nogil=True)
def _postorder(parent: Any) -> Any:
    """Return the columns so that every subtree of the elimination tree is contiguous and ends in its root."""
    n = len(parent)
    child, sibling = np.full(n + 1, -1), np.full(n, -1)
    for j in range(n - 1, -1, -1):
        above = parent[j] if parent[j] >= 0 else n
        sibling[j] = child[above]
        child[above] = j
    order, count, j = np.empty(n, np.int64), 0, n
    while True:
        while child[j] != -1:
            j = child[j]
        if j == n:
            return order
        order[count] = j
        count += 1
        above = parent[j] if parent[j] >= 0 else n
        child[above] = sibling[j]
        j = above


@njit(cache=True, nogil=True)
def _first_descendants(parent: Any, post: Any) -> Any:
    """Return the place in the postorder of every column's first descendant, itself included."""
    first = np.full(len(parent), -1)
    for k in range(len(parent)):
        j = post[k]
        while j != -1 and first[j] == -1:
            first[j] = k
            j = parent[j]
    return first


@njit(cache=True, nogil=True)
def _column_counts(indptr: Any, indices: Any, parent: Any) -> Any:
    """Count the nonzeros of every column of `L` in nearly linear time (Gilbert, Ng and Peyton)."""
    n, post = len(parent), _postorder(parent)
    first = _first_descendants(parent, post)
    counts = np.ones(n + 1, np.int64)  # the last place takes what roots pass on
    counts[parent] = 0  # only the leaves of the tree count themselves
    last_first, last_leaf, ancestor = np.full(n, -1), np.full(n, -1), np.arange(n)
    for k in range(n):
        j = post[k]
        counts[parent[j]] -= 1
        for p in range(indptr[j], indptr[j + 1]):
            i = indices[p]
            if i > j and first[j] > last_first[i]:  # j is a leaf of the row subtree of i
                counts[j] += 1
                if last_leaf[i] != -1:
                    counts[_root(ancestor, last_leaf[i])] -= 1
                last_first[i], last_leaf[i] = first[j], j
        ancestor[j] = parent[j] if parent[j] != -1 else j
    for j in range(n):
        counts[parent[j]] += counts[j]
    return counts[:n]


@njit(cache=True, nogil=True)
def _root(ancestor: Any, j: Any) -> Any:
    """Return the root of `j` in a forest, and point all nodes on the way to it."""
    root = j
    while root != ancestor[root]:
        root = ancestor[root]
    while j != root:
        above = ancestor[j]
        ancestor[j] = root
        j = above
    return root


@njit(cache=True, nogil=True)
def _row_subtrees(indptr: Any, indices: Any, parent: Any, starts: Any) -> Any:
    """Return the rows of `L` below its diagonal, sorted in every column, by walking every row's subtree."""
    n = len(parent)
    rows, ends, visited = np.empty(starts[n], np.int32), starts[:n].copy(), np.full(n, -1)
    for i in range(n):
        visited[i] = i
        for p in range(indptr[i], indptr[i + 1]):
            j = np.int64(indices[p])
            while j < i and visited[j] != i:
                rows[ends[j]] = i
                ends[j] += 1
                visited[j] = i
                j = parent[j]
    return rows


@njit(cache=True, nogil=True)
def _align(indptr: Any, indices: Any, source_indptr: Any, source_indices: Any, source: Any) -> Any:
    """Return the values of one sparse matrix on the pattern of another, column by column."""
    n = len(indptr) - 1
    data, column = np.empty(len(indices)), np.zeros(n)
    for j in range(n):
        for p in range(source_indptr[j], source_indptr[j + 1]):
            column[source_indices[p]] = source[p]
        for p in range(indptr[j], indptr[j + 1]):
            data[p] = column[indices[p]]
        for p in range(source_indptr[j], source_indptr[j + 1]):
            column[source_indices[p]] = 0.0
    return data


@njit(cache=True, nogil=True)
def _forward(indptr: Any, indices: Any, data: Any, X: Any) -> None:
    """Set ``X = L^-1 X``."""
    single = X.shape[1] == 1
    for j in range(len(indptr) - 1):
        if single:
            x = X[j, 0]
            for p in range(indptr[j], indptr[j + 1]):
                X[indices[p], 0] -= data[p] * x
            continue
        above = X[j]
        for p in range(indptr[j], indptr[j + 1]):
            below, entry = X[indices[p]], data[p]
            for c in range(len(above)):
                below[c] -= entry * above[c]


@njit(cache=True, nogil=True)
def _backward(indptr: Any, indices: Any, data: Any, X: Any) -> None:
    """Set ``X = L^-T X``."""
    single = X.shape[1] == 1
    for j in range(len(indptr) - 2, -1, -1):
        if single:
            total = 0.0
            for p in range(indptr[j], indptr[j + 1]):
                total += data[p] * X[indices[p], 0]
            X[j, 0] -= total
            continue
        above = X[j]
        for p in range(indptr[j], indptr[j + 1]):
            below, entry = X[indices[p]], data[p]
            for c in range(len(above)):
                above[c] -= entry * below[c]


@njit(cache=True, nogil=True)
def _panels(indptr: Any, indices: Any, widest: Any) -> Any:
    """Return the first columns of panels: neighbouring columns that have the same rows below them."""
    n = len(indptr) - 1
    starts, count = np.zeros(n + 1, np.int64), 0
    for j in range(n):
        a = indptr[j - 1] if j else 0
        nested = j > 0 and indptr[j] - a == indptr[j + 1] - indptr[j] + 1 and indices[a] == j
        if not (nested and j - starts[count - 1] < widest):
            starts[count] = j
            count += 1
    starts[count] = n
    return starts[: count + 1].copy()


@njit(cache=True, nogil=True)
def _invert(indptr: Any, indices: Any, data: Any, pivots: Any, panels: Any, Z: Any, diagonal: Any) -> None:  # noqa: PLR0913, PLR0917
    """Compute the inverse on the pattern of `L` (Takahashi's recursion), panel by panel from the last.

    With J the columns of a panel, S the rows below and Y = L_SJ L_JJ^-1, the inverse has Z_SJ = -Z_SS Y and
    Z_JJ = L_JJ^-T D_J^-1 L_JJ^-1 - Y' Z_SJ; all of Z_SS lies in the pattern of columns that are done.
    """
    place = np.full(len(pivots), -1)
    for t in range(len(panels) - 2, -1, -1):
        j, width = panels[t], panels[t + 1] - panels[t]
        rows = indices[indptr[j] + width - 1 : indptr[j + 1]]
        inverse = _inverse_of_block(indptr, data, j, width)
        Y = np.dot(_block_below(indptr, data, j, width), inverse)
        Z_SJ = -np.dot(_submatrix(indptr, indices, rows, place, Z, diagonal), Y)
        scaled = inverse.copy()
        for a in range(width):
            scaled[a] /= pivots[j + a]
        Z_JJ = np.dot(inverse.T.copy(), scaled) - np.dot(Y.T.copy(), Z_SJ)
        for a in range(width):
            diagonal[j + a] = Z_JJ[a, a]
            start = indptr[j + a]
            Z[start : start + width - 1 - a] = Z_JJ[a + 1 :, a]
            Z[start + width - 1 - a : indptr[j + a + 1]] = Z_SJ[:, a]


@njit(cache=True, nogil=True)
def _inverse_of_block(indptr: Any, data: Any, j: Any, width: Any) -> Any:
    """Return the inverse of the unit lower triangular block of a panel."""
    inverse = np.eye(width)
    for a in range(width):
        start = indptr[j + a]
        for b in range(a + 1, width):
            for c in range(a + 1):
                inverse[b, c] -= data[start + b - a - 1] * inverse[a, c]
    return inverse


@njit(cache=True, nogil=True)
def _block_below(indptr: Any, data: Any, j: Any, width: Any) -> Any:
    """Return the rows of a panel below its triangular block as a dense matrix."""
    height = indptr[j + width] - indptr[j + width - 1]
    block = np.empty((height, width))
    for a in range(width):
        block[:, a] = data[indptr[j + a + 1] - height : indptr[j + a + 1]]
    return block


@njit(cache=True, nogil=True)
def _submatrix(indptr: Any, indices: Any, rows: Any, place: Any, Z: Any, diagonal: Any) -> Any:
    """Return the rows and columns `rows` of a symmetric matrix as a dense one; `place` is -1 before and after."""
    out = np.empty((len(rows), len(rows)))
    for a in range(len(rows)):
        place[rows[a]] = a
    for a in range(len(rows)):
        k = rows[a]
        out[a, a] = diagonal[k]
        for p in range(indptr[k], indptr[k + 1]):
            b = place[indices[p]]
            if b >= 0:
                out[a, b] = Z[p]
                out[b, a] = Z[p]
    for a in range(len(rows)):
        place[rows[a]] = -1
    return out


@njit(cache=True, nogil=True)
def _look_up(  # noqa: PLR0913, PLR0917 - a kernel takes every array it reads
    columns: Any, rows: Any, position: Any, indptr: Any, indices: Any, Z: Any, diagonal: Any
) -> Any:
    """Return the entries of the inverse at the entries of a pattern in original order."""
    values = np.empty(len(rows))
    for j in range(len(columns) - 1):
        for p in range(columns[j], columns[j + 1]):
            a, b = position[j], position[rows[p]]
            if a == b:
                values[p] = diagonal[a]
                continue
            low, high = min(a, b), max(a, b)
            start, stop = indptr[low], indptr[low + 1]
            values[p] = Z[start + np.searchsorted(indices[start:stop], high)]
    return values


@njit(cache=True, nogil=True)
def _dissect(indptr: Any, indices: Any, leaf: Any) -> Any:
    """Return George's nested dissection order: two parts, then the level set of a breadth-first search between them.

    Trees that hang on the rest of the graph come first, from their leaves, because they need no fill. Parts that are
    small or have no small balanced separator, as in expanders, are ordered by degeneracy.
    """
    n = len(indptr) - 1
    part, level = np.zeros(n, np.int64), np.empty(n, np.int64)
    order, degrees = _peel(indptr, indices, np.arange(n), part, level)
    trees = np.int64(np.searchsorted(degrees, 2, side="right"))  # a node is a neighbour of its own
    part[order[:trees]] = -1
    stack: Any = [(trees, np.int64(n))]
    while stack:
        low, high = stack.pop()
        first, second = high - low, 0
        if high - low > leaf:
            reached = _search(indptr, indices, order, part, level, low, high)
            if reached < high - low:
                first, second = reached, high - low - reached
            else:
                first, second = _separate(indptr, indices, order, part, level, low, high)
        if second:
            part[order[low + first : low + first + second]] = low + first
            part[order[low + first + second : high]] = -1
            stack.append((low, low + first))
            stack.append((low + first, low + first + second))
        else:
            order[low:high] = _peel(indptr, indices, order[low:high], part, level)[0]
    return order


@njit(cache=True, nogil=True)
def _search(indptr: Any, indices: Any, order: Any, part: Any, level: Any, low: Any, high: Any) -> Any:  # noqa: PLR0913, PLR0917
    """Sort a part by its levels from a pseudo-peripheral node; return how many nodes were reached."""
    depth, root = -1, order[low]
    while True:
        reached = _levels(indptr, indices, order[low:high], part, level, root)
        last = order[low + reached - 1]
        if level[last] <= depth:
            return reached
        depth, root = level[last], last
        for a in range(low + reached - 1, low - 1, -1):
            i = order[a]
            if level[i] < depth:
                break
            if indptr[i + 1] - indptr[i] < indptr[root + 1] - indptr[root]:
                root = i


@njit(cache=True, nogil=True)
def _levels(indptr: Any, indices: Any, nodes: Any, part: Any, level: Any, root: Any) -> Any:
    """Move the nodes of a part that a root reaches to its front, in breadth-first order; return their number."""
    level[nodes] = -1
    queue = np.empty(len(nodes), np.int64)
    queue[0], level[root] = root, 0
    head, tail = 0, 1
    while head < tail:
        i = queue[head]
        head += 1
        for p in range(indptr[i], indptr[i + 1]):
            k = indices[p]
            if part[k] == part[root] and level[k] == -1:
                level[k] = level[i] + 1
                queue[tail] = k
                tail += 1
    queue[tail:] = nodes[level[nodes] == -1]
    nodes[:] = queue
    return tail


@njit(cache=True, nogil=True)
def _separate(indptr: Any, indices: Any, order: Any, part: Any, level: Any, low: Any, high: Any) -> Any:  # noqa: PLR0913, PLR0917
    """Sort a part into two sides and the level set between them; return the sizes of the sides, or all and 0."""
    nodes = order[low:high].copy()
    middle = _middle_level(level[nodes])
    if middle == 0:
        return high - low, 0
    here = level[nodes] == middle
    for a in np.flatnonzero(here):  # a node with no neighbour on the far side belongs to the near one
        i, touches = nodes[a], False
        for p in range(indptr[i], indptr[i + 1]):
            touches |= part[indices[p]] == part[i] and level[indices[p]] == middle + 1
        here[a] = touches
    near, far, between = nodes[(level[nodes] <= middle) & ~here], nodes[level[nodes] > middle], nodes[here]
    order[low:high] = np.concatenate((near, far, between))
    return len(near), len(far)


@njit(cache=True, nogil=True)
def _middle_level(levels: Any) -> Any:
    """Return the level that is smallest relative to the smaller side; 0 if all are larger or leave too little there."""
    n = len(levels)
    sizes = np.bincount(levels)
    middle, best, before = 0, 1.0, sizes[0]
    for m in range(1, len(sizes) - 1):
        smaller = min(before, n - before - sizes[m])
        if smaller >= _SMALLER_SIDE * n and sizes[m] < best * smaller:
            middle, best = m, sizes[m] / smaller
        before += sizes[m]
    return middle


def core_numbers(A: Any) -> Any:
    """Return the core number of every node: the largest `k` for which it is in a `k`-core of the graph."""
    n = A.shape[0]
    nodes, found = _peel(A.indptr, A.indices, np.arange(n), np.zeros(n, np.int64), np.empty(n, np.int64))
    cores = np.empty(n, np.int64)
    cores[nodes] = np.maximum.accumulate(found)
    return cores


@njit(cache=True, nogil=True)
def _peel(indptr: Any, indices: Any, nodes: Any, part: Any, place: Any) -> Any:
    """Return the nodes of a part by degeneracy, each of least degree among those after it, and their core numbers.

    `place` is scratch. The degree counts the node itself, as the pattern does.
    """
    m, name = len(nodes), part[nodes[0]] if len(nodes) else 0
    degrees = np.zeros(m, np.int64)
    for a in range(m):
        place[nodes[a]] = a
        for p in range(indptr[nodes[a]], indptr[nodes[a] + 1]):
            degrees[a] += part[indices[p]] == name
    queue = np.argsort(degrees, kind="mergesort")  # positions in `nodes`, in sections of equal degree
    starts = np.searchsorted(degrees[queue], np.arange(degrees.max() + 2 if m else 0))
    where = np.empty(m, np.int64)
    where[queue] = np.arange(m)
    for q in range(m):
        a = queue[q]
        for p in range(indptr[nodes[a]], indptr[nodes[a] + 1]):
            if part[indices[p]] != name:
                continue
            b = place[indices[p]]
            if degrees[b] > degrees[a]:
                head = queue[starts[degrees[b]]]  # b leaves its section: it changes places with the head
                queue[where[b]], queue[where[head]] = head, b
                where[b], where[head] = where[head], where[b]
                starts[degrees[b]] += 1
                degrees[b] -= 1
    return nodes[queue], degrees[queue]
