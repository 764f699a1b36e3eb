"""The generative model: one Gaussian field over the attributes of a graph's nodes."""

from graphmrf.linalg.spectrum import Spectrum, density_of_states
from graphmrf.model.conditional import AttributePosterior
from graphmrf.model.fit import Diagnostics, compare_graphs
from graphmrf.model.mrf import GaussianMRF
from graphmrf.model.parameters import Parameters, Precision

__all__ = [
    "AttributePosterior",
    "Diagnostics",
    "GaussianMRF",
    "Parameters",
    "Precision",
    "Spectrum",
    "compare_graphs",
    "density_of_states",
]
