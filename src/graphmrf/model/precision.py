"""The precision matrix of the field, as an operator on attribute matrices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator

from graphmrf.errors import InvalidInputError
from graphmrf.linalg import multiply

if TYPE_CHECKING:
    from typing import Any

    from graphmrf._typing import Floats
    from graphmrf.graph import Graph


@dataclass(frozen=True)
class Precision:
    r"""The precision matrix :math:`\Gamma = H \otimes I + C \otimes N`, never formed.

    It acts on attribute matrices instead of on their vectorisation, because

    .. math:: \Gamma\,\mathrm{vec}(A) = \mathrm{vec}(A H + N A\,C).

    Parameters
    ----------
    graph : Graph
        The graph of `N`.
    H, C : arrays of shape (q, q)
        Same-node interactions, and interactions along the edges.

    Examples
    --------
    >>> from graphmrf.graph import Graph
    >>> Precision(Graph.from_edges([0], [1]), np.eye(2), np.diag([1.0, 3.0])) @ np.ones((2, 2))
    array([[1., 1.],
           [1., 1.]])
    """

    graph: Graph
    H: Floats
    C: Floats

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the matrix on stacked columns, (nq, nq)."""
        size = self.graph.n_nodes * len(self.H)
        return size, size

    def __matmul__(self, A: Floats) -> Floats:
        A = np.asarray(A, dtype=np.float64)
        if A.shape == self.shape[:1]:
            return self._on_vector(A)
        if A.shape != (self.graph.n_nodes, len(self.H)):
            raise InvalidInputError(
                f"the operand must be a matrix of shape {(self.graph.n_nodes, len(self.H))} or a vector of its "
                f"{self.shape[0]} stacked entries, got shape {A.shape}"
            )
        return A @ self.H + (A - multiply(self.graph, A)) @ self.C

    def quadratic(self, A: Floats) -> float:
        r"""Return :math:`\mathrm{vec}(A)' \Gamma\,\mathrm{vec}(A)`."""
        return float(np.vdot(A, self @ A))

    def linear_operator(self) -> LinearOperator[Any]:
        """Return the matrix as a SciPy operator on vectors of stacked columns."""
        return LinearOperator(self.shape, matvec=self._on_vector, rmatvec=self._on_vector, dtype=np.float64)

    def to_sparse(self) -> sparse.csr_array:
        """Return the matrix itself as a SciPy sparse array; for small graphs."""
        on_node = sparse.kron(sparse.csr_array(self.H), sparse.eye_array(self.graph.n_nodes))
        return sparse.csr_array(on_node + sparse.kron(sparse.csr_array(self.C), self.graph.N))

    def _on_vector(self, a: Floats) -> Floats:
        A = a.reshape(len(self.H), self.graph.n_nodes).T
        return (self @ A).T.ravel()
