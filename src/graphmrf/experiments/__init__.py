"""The paper's tables and figures: their runs, a runner that resumes, and the published numbers beside ours."""

from collections.abc import Sequence

from graphmrf.errors import InvalidInputError
from graphmrf.experiments.accuracy import (
    INDUCTIVE_SYNTHETIC,
    INDUCTIVE_US,
    LABEL_FRACTION,
    REAL_ACCURACY,
    SYNTHETIC_ACCURACY,
)
from graphmrf.experiments.classification import CLASSIFICATION, CLASSIFICATION_TWITCH
from graphmrf.experiments.data import load_raw
from graphmrf.experiments.findings import Figure, Findings, Goal, PaperTable
from graphmrf.experiments.generative import FITTED_PARAMETERS, R2_REAL, R2_SYNTHETIC, SAMPLED_MAPS
from graphmrf.experiments.journal import Journal, Record, open_journal
from graphmrf.experiments.run import Experiment, Result, Run, RunSettings
from graphmrf.experiments.runner import available_cores, execute, pending
from graphmrf.experiments.small_tables import COEFFICIENTS, DATA_STATISTICS
from graphmrf.experiments.smoothing import FREQUENCY_RESPONSE, OMEGA_LGC, OMEGA_LGC_RP, OMEGA_LP
from graphmrf.experiments.timing import Timing, spoken, timings
from graphmrf.text import near_or_all

__all__ = [
    "EXPERIMENTS",
    "Experiment",
    "Figure",
    "Findings",
    "Goal",
    "Journal",
    "PaperTable",
    "Record",
    "Result",
    "Run",
    "RunSettings",
    "Timing",
    "available_cores",
    "execute",
    "find_experiments",
    "load_raw",
    "open_journal",
    "pending",
    "spoken",
    "timings",
]

EXPERIMENTS: tuple[Experiment, ...] = (
    SYNTHETIC_ACCURACY,
    FREQUENCY_RESPONSE,
    OMEGA_LP,
    OMEGA_LGC,
    OMEGA_LGC_RP,
    DATA_STATISTICS,
    REAL_ACCURACY,
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
