"""The generative model: one Gaussian field over the attributes of a graph's nodes."""

from graphmrf.linalg.spectrum import Spectrum, density_of_states
from graphmrf.model.compare import compare_graphs
from graphmrf.model.condition import Posterior
from graphmrf.model.diagnostics import Diagnostics
from graphmrf.model.mrf import GaussianMRF
from graphmrf.model.precision import Precision

__all__ = [
    "Diagnostics",
    "GaussianMRF",
    "Posterior",
    "Precision",
    "Spectrum",
    "compare_graphs",
    "density_of_states",
]
