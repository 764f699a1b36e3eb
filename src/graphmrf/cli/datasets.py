"""graphmrf datasets: list, describe, fetch and export the paper's data sets."""

import dataclasses
import os
from collections.abc import Iterable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphmrf.cli import later, options, terminal
from graphmrf.errors import InvalidInputError
from graphmrf.files import atomic

if TYPE_CHECKING:
    import pandas as pd

    from graphmrf.datasets import Dataset, Info

datasets_group = typer.Typer(
    cls=later.CommandGroup,
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="The paper's data sets by name, and an example to try.",
)


class Preset(StrEnum):
    """Values of an export: as they were measured, or as the paper's experiments use them."""

    raw = "raw"
    paper = "paper"


class Format(StrEnum):
    """How an export is written: the suffix of its files."""

    csv = "csv"
    csv_gz = "csv.gz"
    parquet = "parquet"


_Name = Annotated[str, options.argument("NAME", "As in graphmrf datasets list.")]
_Names = Annotated[list[str], options.argument("NAME...", "One or more names.")]
_DataDir = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Raw files already on disk; nothing is downloaded.", envvar="GRAPHMRF_DATA"),
]
_CacheDir = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Folder for downloads and cleaned copies.", envvar="GRAPHMRF_CACHE")
]


@datasets_group.command("list")
def list_names(*, json: options.Json = False, debug: options.Debug = False) -> None:
    """List the data sets that can be loaded by name."""
    with terminal.errors_as_exit_codes(debug=debug):
        known = [later.datasets.info(name) for name in later.datasets.names()]
        if json:
            terminal.print_json({"datasets": [_summary(info) for info in known]})
            return
        rows = [[f"{each.name}\n  {each.title}", str(each.n_nodes), str(each.n_edges or "")] for each in known]
        terminal.print_table(["name and title", "#nodes", "#edges"], rows)


@datasets_group.command("info")
def show_info(name: _Name, *, json: options.Json = False, debug: options.Debug = False) -> None:
    """Show source, licence, counts and attributes of a data set."""
    with terminal.errors_as_exit_codes(debug=debug):
        known = later.datasets.info(name)
        if json:
            terminal.print_json(dataclasses.asdict(known))
            return
        for line in _lines(known):
            typer.echo(line)
        screen = 20
        rows = [[each.name, each.unit, each.meaning] for each in known.attributes[:screen]]
        terminal.print_table(["attribute", "unit", "meaning"], rows)
        if len(known.attributes) > screen:
            typer.echo(f"and {len(known.attributes) - screen} more; --json shows all")


@datasets_group.command()
def fetch(
    names: _Names,
    *,
    data_dir: _DataDir = None,
    cache_dir: _CacheDir = None,
    accept_licence: Annotated[
        bool, typer.Option("--accept-licence", help="You accept the licence that `datasets info` shows.")
    ] = False,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Download, clean and store data sets, so that loading them needs no network."""
    with terminal.errors_as_exit_codes(debug=debug):
        for name in names:
            later.datasets.info(name)
        for name in names:
            data = _load(name, data_dir, cache_dir, quiet=quiet, accept_licence=accept_licence)
            if not quiet:
                terminal.note(data.notes)
                typer.echo(f"{name}: {data.graph.n_nodes} nodes, {data.graph.n_edges} edges, ready to load")


@datasets_group.command("example")
def write_example(
    folder: Annotated[Path, options.argument("DIR", "Folder to write to; by default this one.")] = Path(),
    *,
    force: Annotated[bool, typer.Option("--force", help="Replace existing files.")] = False,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Write the bundled example, an invented city, as nodes.csv and edges.csv; 700 of its 1000 rents are missing."""
    with terminal.errors_as_exit_codes(debug=debug):
        files = later.datasets.example()
        places = {folder / path.name: path for path in (files.nodes, files.edges)}
        if not force:
            _check_free(places)
        _make(folder)
        for place, path in places.items():
            with atomic(place) as draft:
                draft.write_bytes(path.read_bytes())
        if not quiet:
            nodes, edges = places
            terminal.say(f"Saved {nodes} and {edges}")
            terminal.say(f"Try: graphmrf predict {nodes} {edges} --target rent --ignore x --ignore y")


@datasets_group.command()
def export(
    name: _Name,
    folder: Annotated[Path, options.argument("DIR", "Folder to write to; created if it does not exist.")],
    *,
    preset: Annotated[Preset, typer.Option(help="Values as measured, or standardised as in the paper.")] = Preset.raw,
    force: Annotated[bool, typer.Option("--force", help="Replace existing files.")] = False,
    format: Annotated[Format, typer.Option(help="Of the files.")] = Format.csv,  # noqa: A002 - named like the option
    data_dir: _DataDir = None,
    cache_dir: _CacheDir = None,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Write a data set as nodes.csv and edges.csv, for graphmrf predict or any other program.

    [bold]Example[/bold]:

        graphmrf datasets export us-2016 counties
        graphmrf predict counties/nodes.csv counties/edges.csv --target income
    """
    with terminal.errors_as_exit_codes(debug=debug):
        if not force:
            _check_free(folder / f"{part}.{format}" for part in ("nodes", "edges"))
        data = _load(name, data_dir, cache_dir, quiet=quiet)
        tables = {folder / f"{part}.{format}": table for part, table in _parts(data, preset)}
        if not force:
            _check_free(tables)
        _make(folder)
        saved = [later.datasets.write(table, path) for path, table in tables.items()]
        if not quiet:
            terminal.note(data.notes)
            terminal.say("Saved " + " and ".join(str(path) for path in saved))


def _load(
    name: str, data_dir: Path | None, cache_dir: Path | None, *, quiet: bool, accept_licence: bool = False
) -> "Dataset":
    with terminal.progress([1.0] * later.datasets.n_files(name), quiet=quiet, label=f"fetching {name}") as advance:
        return later.datasets.load(
            name, data_dir=data_dir, cache_dir=cache_dir, accept_licence=accept_licence, advance=lambda _: advance()
        )


def _check_free(places: Iterable[Path]) -> None:
    taken = [str(path) for path in places if os.path.lexists(path)]
    if taken:
        raise InvalidInputError(f"{' and '.join(taken)} would be replaced; choose another folder, or add --force")


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInputError(f"{folder} cannot be created ({error.strerror}); choose another place") from error


def _parts(data: "Dataset", preset: Preset) -> Iterator[tuple[str, "pd.DataFrame"]]:
    yield "edges", data.edges
    if preset == Preset.paper:
        yield "nodes", data.frame[["node"]].join(later.datasets.paper(data))
        return
    yield "nodes", data.frame
    yield from data.extra.items()


def _summary(info: "Info") -> dict[str, str | int | None]:
    counts = {"n_nodes": info.n_nodes, "n_edges": info.n_edges, "n_attributes": len(info.attributes)}
    return {"name": info.name, "title": info.title, **counts}


def _lines(info: "Info") -> Iterator[str]:
    yield f"{info.name}: {info.title}"
    yield info.counts
    yield f"outcomes: {', '.join(info.outcomes)}"
    yield f"source: {info.source}"
    yield f"licence: {info.licence}"
    for remark in info.remarks:
        yield f"note: {remark}"
