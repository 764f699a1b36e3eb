"""The command line: parse, call, print."""

from importlib.metadata import version
from typing import Annotated

import typer

from graphmrf.cli.lazy import LazyGroup

app = typer.Typer(
    name="graphmrf",
    cls=LazyGroup,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(*, wanted: bool) -> None:
    if wanted:
        typer.echo(f"graphmrf {version('graphmrf')}")
        raise typer.Exit


@app.callback()
def graphmrf(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and stop.")
    ] = False,
) -> None:
    """Fill in missing numbers on the nodes of a graph, with error bars.

    [bold]Start here[/bold]:

        graphmrf predict nodes.csv edges.csv --target income -o predictions.csv
    """


def main() -> None:
    """Run the command line."""
    app()
