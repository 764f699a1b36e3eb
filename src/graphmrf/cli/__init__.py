"""The command line: parse, call, print. Commands are loaded when called, and what they compute with when they run."""

import signal
import sys
from importlib import import_module
from io import TextIOWrapper
from typing import Annotated, Any

import typer
from typer.core import TyperCommand
from typer.main import get_command, get_group

from graphmrf.cli.later import CommandGroup

COMMANDS = {
    "predict": ("predict", "Fill the empty cells of a column of NODES, with error bars."),
    "fill": ("fill", "Fill the empty cells of all columns of NODES, numbers and classes."),
    "report": ("report", "Rebuild the page of RESULTS, without fitting."),
    "fit": ("model_commands", "Fit the generative model to the numeric columns of NODES."),
    "sample": ("model_commands", "Draw attributes for all nodes from MODEL, or, with --given, only what is empty."),
    "foresee": ("model_commands", "Estimate how accurate predictions of a column are, now and with more labels."),
    "reproduce": ("reproduce", "Repeat the experiments of the paper, beside the published numbers."),
    "cluster": ("cluster", "Dask clusters to run on."),
    "datasets": ("datasets", "The paper's data sets by name, and an example to try."),
}
"""Module of every command, and the line that the list of commands has for it."""


_FORMER_OPTIONS = {("predict", "--whole"): "--integer", ("foresee", "--reach"): "--target-r2"}


class LazyGroup(CommandGroup):
    """A group that lists its commands by name and line, and loads the one that is called."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        for name, (_, line) in COMMANDS.items():
            self.add_command(TyperCommand(name, help=line))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the name of the command that is called, the command itself, and its arguments."""
        name, listed, rest = super().resolve_command(ctx, args)
        for option in rest:
            if new := _FORMER_OPTIONS.get((str(name), option)):
                raise typer.BadParameter(f"no option {option}; it is now called {new}")
        try:
            return name, load_command(name) if listed is not None and name in COMMANDS else listed, rest
        except KeyboardInterrupt:
            typer.echo("stopped by Ctrl-C; nothing was done yet", err=True)
            raise typer.Exit(130) from None


def load_command(name: str) -> Any:
    """Return a command ready to run."""
    module = import_module(f"graphmrf.cli.{COMMANDS[name][0]}")
    if hasattr(module, f"{name}_group"):
        command: Any = get_group(getattr(module, f"{name}_group"))
    else:
        alone = typer.Typer(add_completion=False, rich_markup_mode="rich")
        alone.command(name)(getattr(module, name))
        command = get_command(alone)
    command.name = name
    return command


app = typer.Typer(
    name="graphmrf",
    cls=LazyGroup,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(*, wanted: bool) -> None:
    if wanted:
        typer.echo(f"graphmrf {import_module('graphmrf').__version__}")
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


def _terminate(*_: object) -> None:
    typer.echo("stopped by SIGTERM; every file is untouched or complete", err=True)
    sys.exit(128 + signal.SIGTERM)


def main() -> None:
    """Run the command line; characters that a terminal cannot show, such as ², become question marks.

    SIGTERM ends it as Ctrl-C does: what is half written is removed.
    """
    signal.signal(signal.SIGTERM, _terminate)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")
    app()
