"""The reproduction as a Markdown page: what agrees, what differs and why, and what exact methods change."""

from collections.abc import Sequence
from dataclasses import dataclass

from graphmrf.experiments.experiment import Experiment
from graphmrf.experiments.findings import Findings, Goal
from graphmrf.experiments.runs import Settings
from graphmrf.experiments.spending import Spending
from graphmrf.experiments.tables import as_markdown

_INTRODUCTION = """\
# The paper, reproduced

Every table and figure with numbers in Jia & Benson, *A Unifying Generative Model for Graph Learning Algorithms*, run
again by `graphmrf reproduce` (see the [command](#the-command) at the end). In tables the paper's number stands in
brackets behind ours; a dash is a number that was not run, or that the paper does not print.
"""

_DIFFERENCES = """\
## What differs from the paper, and why

- **Splits.** The paper's random splits come from another generator. Only averages over splits can be compared.
- **Exact instead of trained.** The paper fits LR and LGC by gradient steps with a weight decay that its library applies
  a thousand times more strongly than its text says; ours are least squares. The score of a level is the pooled R² of
  the folds; the paper adds the R² of the folds up.
- **Converged smoothing.** The paper's text smooths until convergence, its code stops after 256 steps, and its printed
  CDC column fits about 20. Converged, LGC explains more of pm2.5 than printed, at larger levels.
- **London.** The printed numbers standardise log(election); the rows marked *log* do so, too. The paper counts four
  attributes, its four outcomes; its numbers need all six.
- **SGC.** In the paper's text a power of one matrix; in its code a mean over a node and at most 30 sampled neighbours
  with a trained layer for every step. `SGC` and `GCN` here are the networks of the code, `SGC exact` is the text's.
- **Networks.** Trained as in the paper's code: steps on a tenth of the labels, weight decay beside the learning rate,
  layers and steps by cross-validation. The level of `SGC/RP` and `GCN/RP` is chosen with the networks that missed a
  fold; the paper trains them again for every level.
- **Maximum likelihood.** The paper's stochastic fit, with weight decay, ends 3 to 8 % from the maximum in H. Ours is
  the maximum itself, found in about a second.
- **U.S. ties.** The text says about 20 for each county, the data have 12.

## What exact methods change

- One cross-validation of LP, LGC or LGC/RP costs milliseconds, because all levels share one Krylov space, so nothing
  is stopped early to save time.
- LGC at its converged level is never worse than printed by more than the noise of the splits, and better on pm2.5.
- Residual propagation on a base that is fitted on its own, with a level of its own for the residuals
  (`SGC exact/RP`), is more accurate on most real tasks than one level for both.
- The fitted field is reproducible: one answer whatever the start, so the parameters can be compared between years.
"""


_TIMES = """\
Times of one core are summed over the runs of an experiment; runs that two experiments share count for both. The time on
the clock is that between the ends of runs, with whatever else the machine did meanwhile.
"""


@dataclass(frozen=True)
class Origin:
    """Where a reproduction comes from.

    Parameters
    ----------
    settings : Settings
        How much was run.
    command : str
        The command that ran it.
    spending : Spending
        How long it took.
    left_out : sequence of str
        What was not run, and why.
    """

    settings: Settings
    command: str
    spending: Spending
    left_out: Sequence[str] = ()


def as_document(parts: Sequence[tuple[Experiment, Findings]], origin: Origin, *, drawn: bool = True) -> str:
    """Return the page.

    Parameters
    ----------
    parts : sequence of pairs
        Experiments and what they found.
    origin : Origin
        How they were run.
    drawn : bool, default True
        Whether there are files of figures to show.
    """
    quick = " and small networks (a quick run)" if origin.settings.quick else ""
    splits = f"This run has {len(origin.settings.seeds)} random splits{quick}."
    blocks = [_INTRODUCTION, f"{splits} Its {origin.spending.sentence()} ([more](#time)).\n", _goals(parts)]
    blocks += [_DIFFERENCES, *(_section(experiment, found, drawn=drawn) for experiment, found in parts)]
    left_out = "\n".join(f"- {note}" for note in origin.left_out)
    blocks += [f"## Left out\n\n{left_out}\n"] if left_out else []
    blocks += [f"## Time\n\n{_TIMES}\n{origin.spending.markdown()}\n"]
    blocks += [f"## The command\n\n```text\n{origin.command}\n```\n"]
    return "\n".join(blocks)


def _goals(parts: Sequence[tuple[Experiment, Findings]]) -> str:
    rows = [_goal(experiment, goal) for experiment, found in parts for goal in found.goals]
    if not rows:
        return ""
    head = "| in the paper | measured quantity | here | goal | |\n| --- | --- | --- | --- | --- |"
    return "\n".join(["## What agrees\n", head, *rows, ""])


def _goal(experiment: Experiment, goal: Goal) -> str:
    sign = {True: "met", False: "**not met**", None: ""}[goal.met]
    cells = (experiment.place, goal.what, goal.measured, goal.wanted, sign)
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"


def _section(experiment: Experiment, found: Findings, *, drawn: bool) -> str:
    lines = [f"## {experiment.place}: {experiment.title}", ""]
    lines += [f"- {remark}" for remark in found.remarks] + ([""] if found.remarks else [])
    for table in found.tables:
        lines += [table.caption, "", as_markdown(table), ""]
    figures = found.figures if drawn else ()
    lines += [f"![{figure.caption}](figures/{figure.name}.png)\n\n{figure.caption}\n" for figure in figures]
    return "\n".join(lines)
