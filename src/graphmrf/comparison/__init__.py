"""Methods compared, chosen and explained: the work behind `graphmrf predict`, for Python users too."""

from graphmrf.comparison.candidates import DEFAULT, Comparison, FittedMethod, as_outcome, choose, compare
from graphmrf.comparison.explanation import Effects, Explanation, explain, labels_needed, learning_curve
from graphmrf.comparison.held_out import HeldOut
from graphmrf.comparison.prediction import Prediction, predict_outcome
from graphmrf.comparison.settings import AUTO, EXCEEDANCE, SUGGESTIONS, TRANSFORMS, Bounds, Settings

__all__ = [
    "AUTO",
    "DEFAULT",
    "EXCEEDANCE",
    "SUGGESTIONS",
    "TRANSFORMS",
    "Bounds",
    "Comparison",
    "Effects",
    "Explanation",
    "FittedMethod",
    "HeldOut",
    "Prediction",
    "Settings",
    "as_outcome",
    "choose",
    "compare",
    "explain",
    "labels_needed",
    "learning_curve",
    "predict_outcome",
]
