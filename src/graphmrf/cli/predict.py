"""graphmrf predict: two files in, predictions with error bars out."""

from dataclasses import dataclass
from pathlib import Path

import typer

from graphmrf import datasets
from graphmrf.cli import options, order, terminal
from graphmrf.cli.job import Job, Settings
from graphmrf.cli.methods import AUTO, Tuning
from graphmrf.cli.results import Results
from graphmrf.errors import InvalidInputError
from graphmrf.report import write_report


@dataclass(frozen=True)
class Places:
    """Where results go, made sure of before any work is done."""

    output: Path | None
    report: Path | None

    def fill(self, found: Results, *, command: str) -> None:
        """Write what was asked for, each file whole or not at all."""
        if self.output is not None:
            datasets.write(found.frame(), self.output)
        if self.report is not None:
            write_report(self.report, found.report(command))

    def check(self, *inputs: Path) -> None:
        """Raise unless every file can be written without harming another."""
        if self.output is not None:
            datasets.check_writable(self.output)
        if self.report is not None:
            _check_report_place(self.report)
        files = [path.resolve() for path in (*inputs, self.output, self.report) if path is not None]
        for path in files[len(inputs) :]:
            if files.count(path) > 1:
                raise InvalidInputError(f"{path} is named twice; write results to a file of their own")


def _check_report_place(path: Path) -> None:
    if path.suffix.lower() not in (".html", ".htm"):
        raise InvalidInputError(f"a report is a page of HTML, got {path}; name the file something.html")
    datasets.check_place(path)


def predict(
    context: typer.Context,
    nodes: options.Nodes,
    edges: options.Edges,
    *,
    target: options.Target = None,
    ignore: options.Ignore = None,
    id: options.Id = None,  # noqa: A002 - named like the option
    source: options.Source = None,
    dest: options.Dest = None,
    weight: options.Weight = None,
    method: options.MethodName = AUTO,
    alpha: options.Alpha = None,
    interval: options.Interval = 0.9,
    conformal: options.Conformal = False,
    transform: options.Transform = "identity",
    folds: options.Folds = 5,
    seed: options.Seed = 0,
    output: options.Output = None,
    report: options.Report = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Fill the empty cells of a column of NODES, with error bars.

    The two tables make a graph: NODES has one row per node (an id, numbers,
    text), EDGES has one row per edge (two ids, perhaps a weight). Columns are
    found by name, and every assumption is printed as a note.

    [bold]Example[/bold]: rents are known for some districts only.

        graphmrf predict districts.csv borders.csv --target rent -o rents.csv

    The result has one row per node, in the order of NODES: the id, prediction,
    std, lower, upper, observed; for a target of words: prediction, probability,
    observed. Exit code 0: done, 1: a failure of ours, 2: the input is wrong.
    """
    with terminal.errors_as_exit_codes(debug=debug):
        settings = Settings(method, interval, Tuning(alpha, folds, seed, transform), conformal=conformal)
        places = Places(output, report)
        places.check(nodes, edges)
        with order.explained("predict", {order.NODES: nodes, order.EDGES: edges}):
            table = datasets.read(nodes, edges, id=id, source=source, dest=dest, weight=weight)
        job = Job.prepare(table, target or (), ignore=ignore or (), settings=settings)
        if not quiet:
            terminal.note(job.warnings)
        with terminal.progress(job.n_fits, quiet=quiet) as advance:
            predictions = job.run(advance)
        found = Results(table, predictions, job.notes)
        places.fill(found, command=terminal.command_line(context))
        if not quiet:
            terminal.note(found.notes)
        if json:
            terminal.print_json(found.summary())
        elif not quiet:
            terminal.show(found, saved=[path for path in (output, report) if path is not None])
