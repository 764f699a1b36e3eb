"""The general field behind `GraphRegressor`: components, their likelihood, and what follows from the labels.

Formulas of the components are in `covariance`, names and ranges of their hyper-parameters in `hyperparameters`; that
solver is exact, by dense algebra on the labelled nodes. The modules `sparse_*` are its scalable form.
"""

from graphmrf.model.field.calibration import Calibration
from graphmrf.model.field.covariance import COMPONENTS, Covariance
from graphmrf.model.field.design import Design, design
from graphmrf.model.field.evidence import Evidence, Optimum, maximise
from graphmrf.model.field.hyperparameters import Hyperparameters, Space
from graphmrf.model.field.posterior import FieldPosterior
from graphmrf.model.field.skew import POSITIVE, Kind, choose_scale
from graphmrf.model.field.transform import Power, Scale
from graphmrf.model.field.unseen import unseen

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
