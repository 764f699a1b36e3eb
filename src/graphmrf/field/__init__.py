"""The general field behind `GraphRegressor`: components, their likelihood, and what follows from the labels.

Formulas of the components are in `covariance`, names and ranges of their hyper-parameters in `hyperparameters`; that
solver is exact, by dense algebra on the labelled nodes. The modules `sparse_*` are its scalable form.
"""

from graphmrf.field.calibration import Calibration
from graphmrf.field.covariance import COMPONENTS, Covariance
from graphmrf.field.design import Design, design
from graphmrf.field.evidence import Evidence, Optimum, maximise
from graphmrf.field.hyperparameters import Hyperparameters, Space
from graphmrf.field.posterior import FieldPosterior
from graphmrf.field.skew import POSITIVE, Kind, choose_scale
from graphmrf.field.transform import Power, Scale
from graphmrf.field.unseen import unseen

__all__ = [
    "COMPONENTS",
    "POSITIVE",
    "Calibration",
    "Covariance",
    "Design",
    "Evidence",
    "FieldPosterior",
    "Hyperparameters",
    "Kind",
    "Optimum",
    "Power",
    "Scale",
    "Space",
    "choose_scale",
    "design",
    "maximise",
    "unseen",
]
