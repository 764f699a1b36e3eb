"""The paper's tables and figures as specs, a runner that resumes, and the published numbers beside ours."""

from graphmrf.experiments.catalogue import EXPERIMENTS, experiment_names, find
from graphmrf.experiments.data import Source
from graphmrf.experiments.data import raw as load_raw
from graphmrf.experiments.experiment import Experiment
from graphmrf.experiments.findings import Figure, Findings, Goal, Table
from graphmrf.experiments.runner import available_cores, execute, pending
from graphmrf.experiments.runs import Result, Run, Settings
from graphmrf.experiments.spending import Spending, spending, spoken
from graphmrf.experiments.store import Journal, Record, journal

__all__ = [
    "EXPERIMENTS",
    "Experiment",
    "Figure",
    "Findings",
    "Goal",
    "Journal",
    "Record",
    "Result",
    "Run",
    "Settings",
    "Source",
    "Spending",
    "Table",
    "available_cores",
    "execute",
    "experiment_names",
    "find",
    "journal",
    "load_raw",
    "pending",
    "spending",
    "spoken",
]
