"""graphmrf reproduce: the tables and figures of the paper, beside the published numbers."""

from pathlib import Path
from typing import Annotated

import typer

from graphmrf.cli import later, options, terminal
from graphmrf.cli.cluster import pool_of
from graphmrf.errors import InvalidInputError

_Names = Annotated[list[str] | None, typer.Argument(metavar="NAME", help="Experiments; all without a name.")]
_All = Annotated[bool, typer.Option("--all", help="All experiments; the default without names.")]
_Quick = Annotated[bool, typer.Option("--quick", help="Two splits and small networks: a few minutes.")]
_Output = Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="Folder for results, tables and figures.")]
_DataDir = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Folder of the raw data files; downloaded otherwise.")
]
_Jobs = Annotated[int | None, typer.Option(metavar="N", help="Processes; one for each core by default.")]
_Seed = Annotated[int, typer.Option(metavar="S", help="Seed of the splits and samples.")]
_List = Annotated[bool, typer.Option("--list", help="List the experiments and stop.")]
_Shapes = Annotated[Path | None, typer.Option(metavar="FILE", help="GeoJSON outlines of U.S. counties, for the maps.")]
_Without = Annotated[
    list[str] | None, typer.Option(metavar="METHOD", help="Leave out a method, such as GCN; repeat for more.")
]
_NoFigures = Annotated[bool, typer.Option("--no-figures", help="Tables only; figures need Matplotlib.")]


def reproduce(
    context: typer.Context,
    names: _Names = None,
    *,
    everything: _All = False,
    quick: _Quick = False,
    output: _Output = Path("reproduction"),
    data_dir: _DataDir = None,
    jobs: _Jobs = None,
    seed: _Seed = 0,
    list: _List = False,  # noqa: A002 - named like the option
    shapes: _Shapes = None,
    without: _Without = None,
    no_figures: _NoFigures = False,
    cluster: options.OnCluster = None,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Repeat the experiments of the paper, beside the published numbers.

    Writes tables (CSV, Markdown, LaTeX), figures (PNG, SVG) and one page,
    index.html. Finished runs are stored in results.jsonl: the same command
    continues where it was interrupted. Everything takes about half an hour on
    two cores.

    [bold]Example[/bold]: see everything in a few minutes, then in full.

        graphmrf reproduce --quick

        graphmrf reproduce --all

        graphmrf reproduce real-accuracy --output paper
    """
    with terminal.errors_as_exit_codes(debug=debug), pool_of(None if list else cluster, jobs, quiet=quiet) as pool:
        if everything and names:
            raise InvalidInputError("--all runs every experiment, got names as well; leave out --all or the names")
        if list:
            later.paper.show_list(names or ())
            return
        later.paper.run_again(
            names or (),
            quick=quick,
            output=output,
            data_dir=None if data_dir is None else str(data_dir),
            jobs=pool[0],
            seed=seed,
            shapes=shapes,
            without=without or (),
            drawn=not no_figures,
            quiet=quiet,
            command=terminal.command_line(context),
            executor=pool[1],
        )
