"""Commands that are loaded when they are called, so that the list of them does not wait for what they need."""

from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command, get_group

COMMANDS = {
    "predict": ("predict", "Fill the empty cells of a column of NODES, with error bars."),
    "fit": ("field", "Fit the generative model to the numeric columns of NODES."),
    "sample": ("field", "Draw attributes for all nodes from MODEL, or, with --given, only what is empty."),
    "foresee": ("field", "Say how accurate predictions of a column will be, before making them."),
    "reproduce": ("reproduce", "Run the experiments of the paper again, beside its numbers."),
    "datasets": ("datasets", "The paper's data sets, by name."),
}
"""Module of every command, and the line that the list of commands has for it."""


class LazyGroup(TyperGroup):
    """A group that lists its commands by name and line, and loads the one that is called."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        for name, (_, line) in COMMANDS.items():
            self.add_command(TyperCommand(name, help=line))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the name of the command that is called, the command itself, and its arguments."""
        name, listed, rest = super().resolve_command(ctx, args)
        return name, load(name) if listed is not None and name in COMMANDS else listed, rest


def load(name: str) -> Any:
    """Return a command ready to run.

    Examples
    --------
    >>> load("predict").name
    'predict'
    """
    module = import_module(f"graphmrf.cli.{COMMANDS[name][0]}")
    if hasattr(module, "app"):
        command: Any = get_group(module.app)
    else:
        alone = typer.Typer(add_completion=False, rich_markup_mode="rich")
        settings = {"allow_extra_args": name in getattr(module, "TAKE_MORE", ())}
        alone.command(name, context_settings=settings)(getattr(module, name))
        command = get_command(alone)
    command.name = name
    return command
