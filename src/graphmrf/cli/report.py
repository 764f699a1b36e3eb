"""graphmrf report: the page of results in Parquet, rebuilt without fitting."""

from pathlib import Path
from typing import Annotated

import typer

from graphmrf.cli import later, options, terminal
from graphmrf.files import check_readable

ResultsFile = Annotated[
    Path,
    typer.Argument(metavar="RESULTS", help="File written by graphmrf predict -o results.parquet.", show_default=False),
]
PageOutput = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="FILE", help="The page, one .html file; by default beside RESULTS."),
]


def report(
    results: ResultsFile, *, output: PageOutput = None, quiet: options.Quiet = False, debug: options.Debug = False
) -> None:
    """Rebuild the page of RESULTS, without fitting.

    A table written as Parquet contains everything its page shows.

    [bold]Example[/bold]:

        graphmrf predict nodes.csv edges.csv --target rent -o rents.parquet
        graphmrf report rents.parquet -o rents.html
    """
    with terminal.errors_as_exit_codes(debug=debug):
        check_readable(results)
        page = results.with_suffix(".html") if output is None else output
        later.inputs.check_page(page, results)
        later.report.write_content(page, later.report.unpack_content(later.datasets.read_page(results)))
        if not quiet:
            terminal.say(f"Saved {page}")
