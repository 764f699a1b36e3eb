"""The generative model: one Gaussian field over the attributes of a graph's nodes."""

from graphmrf.model.diagnostics import Diagnostics
from graphmrf.model.mrf import GaussianMRF
from graphmrf.model.precision import Precision

__all__ = ["Diagnostics", "GaussianMRF", "Precision"]
