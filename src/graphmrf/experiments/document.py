"""The reproduction as a Markdown page: what agrees, what differs and why, and what exact methods change."""

from collections.abc import Iterable, Sequence

from graphmrf.experiments.experiment import Experiment
from graphmrf.experiments.findings import Findings, Goal
from graphmrf.experiments.runs import Settings
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


def as_document(
    parts: Sequence[tuple[Experiment, Findings]], settings: Settings, notes: Iterable[str], command: str
) -> str:
    """Return the page.

    Parameters
    ----------
    parts : sequence of pairs
        Experiments and what they found.
    settings : Settings
        How much was run.
    notes : iterable of str
        What was left out.
    command : str
        The command that ran it.
    """
    splits = f"{len(settings.seeds)} random splits" + (" and small networks (a quick run)" if settings.quick else "")
    blocks = [_INTRODUCTION, f"This run has {splits}.\n", _goals(parts), _DIFFERENCES]
    blocks += [_section(experiment, found) for experiment, found in parts]
    left_out = "\n".join(f"- {note}" for note in notes)
    blocks += [f"## Left out\n\n{left_out}\n"] if left_out else []
    blocks += [f"## The command\n\n```text\n{command}\n```\n"]
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


def _section(experiment: Experiment, found: Findings) -> str:
    lines = [f"## {experiment.place}: {experiment.title}", ""]
    lines += [f"- {remark}" for remark in found.remarks] + ([""] if found.remarks else [])
    for table in found.tables:
        lines += [table.caption, "", as_markdown(table), ""]
    lines += [f"Drawn in `figures/{figure.name}.svg`: {figure.caption}\n" for figure in found.figures]
    return "\n".join(lines)
