"""The list of the paper's tables and figures."""

from collections.abc import Sequence

from graphmrf.errors import InvalidInputError
from graphmrf.text import near_or_all
from graphmrf_paper.accuracy import INDUCTIVE_SYNTHETIC, INDUCTIVE_US, LABEL_FRACTION, REAL_ACCURACY, SYNTHETIC_ACCURACY
from graphmrf_paper.classification import CLASSIFICATION, CLASSIFICATION_TWITCH
from graphmrf_paper.coupled import COUPLED
from graphmrf_paper.deviations import AUTHORS_FOLDS, TRAINED, TRUNCATED
from graphmrf_paper.expected import R2_REAL, R2_SYNTHETIC
from graphmrf_paper.generative import FITTED_PARAMETERS, SAMPLED_MAPS
from graphmrf_paper.runs import Experiment
from graphmrf_paper.small_tables import COEFFICIENTS, DATA_STATISTICS
from graphmrf_paper.smoothing import FREQUENCY_RESPONSE, OMEGA_LGC, OMEGA_LGC_RP, OMEGA_LP, SMOOTHING_REAL

EXPERIMENTS: tuple[Experiment, ...] = (
    SYNTHETIC_ACCURACY,
    FREQUENCY_RESPONSE,
    OMEGA_LP,
    OMEGA_LGC,
    OMEGA_LGC_RP,
    DATA_STATISTICS,
    REAL_ACCURACY,
    TRUNCATED,
    AUTHORS_FOLDS,
    LABEL_FRACTION,
    INDUCTIVE_SYNTHETIC,
    INDUCTIVE_US,
    COEFFICIENTS,
    CLASSIFICATION,
    CLASSIFICATION_TWITCH,
    FITTED_PARAMETERS,
    SAMPLED_MAPS,
    R2_SYNTHETIC,
    R2_REAL,
    SMOOTHING_REAL,
    TRAINED,
    COUPLED,
)
"""Every table and figure of the paper with numbers or data in it, in the order of the paper."""


def find_experiments(names: Sequence[str]) -> tuple[Experiment, ...]:
    """Return the experiments named, in the order of the paper; all of them when none is.

    Raises
    ------
    InvalidInputError
        No such experiment; the message has the nearest names.

    Examples
    --------
    >>> [experiment.name for experiment in find_experiments(["real-accuracy", "synthetic-accuracy"])]
    ['synthetic-accuracy', 'real-accuracy']
    """
    known = [experiment.name for experiment in EXPERIMENTS]
    for name in names:
        if name not in known:
            raise InvalidInputError(f"no experiment is called '{name}'; {near_or_all(name, known)}")
    return tuple(each for each in EXPERIMENTS if not names or each.name in names)
