"""What a fit says about itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from graphmrf._typing import Floats


@dataclass(frozen=True)
class Diagnostics:
    r"""How a maximum-likelihood fit ended.

    Attributes
    ----------
    log_likelihood : float
        Of the attributes (of the observed ones, where some are missing), with its constant.
    log_likelihood_error : float
        Standard error of `log_likelihood` from the density of states; 0 when the eigenvalues are exact.
    gradient_norm : float
        Largest entry of the projected gradient of the negative log-likelihood per node, in standardised attributes.
    iterations : int
        Newton steps.
    n_nodes : int
        Nodes with at least one observed attribute.
    n_parameters : int
        Free entries of H, of h or C, and of the mean where it was estimated.
    H_std, C_std : arrays of shape (q, q), or None
        Standard errors from the Fisher information; NaN for what lies on the boundary, None where there are none.
    flags : tuple of str
        What a reader should know: boundary solutions, missing entries, a graph without edges.
    """

    log_likelihood: float
    log_likelihood_error: float
    gradient_norm: float
    iterations: int
    n_nodes: int
    n_parameters: int
    H_std: Floats | None = None
    C_std: Floats | None = None
    flags: tuple[str, ...] = ()

    @property
    def aic(self) -> float:
        """Akaike's criterion, ``2 n_parameters - 2 log_likelihood``."""
        return 2.0 * self.n_parameters - 2.0 * self.log_likelihood

    @property
    def bic(self) -> float:
        """Schwarz's criterion, ``n_parameters log(n_nodes) - 2 log_likelihood``."""
        return float(self.n_parameters * np.log(self.n_nodes) - 2.0 * self.log_likelihood)

    @property
    def h_std(self) -> Floats | None:
        """Standard errors of h, shape (q,)."""
        return None if self.C_std is None else np.diag(self.C_std).copy()
