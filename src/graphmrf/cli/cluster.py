"""graphmrf cluster: what a Dask cluster has, and what would fit; and the cluster that a command runs on."""

import logging
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from graphmrf.cli import later, options, terminal
from graphmrf.errors import InvalidInputError
from graphmrf.files import as_url

cluster_group = typer.Typer(
    cls=later.CommandGroup, no_args_is_help=True, rich_markup_mode="rich", help="Clusters of Dask to run on."
)
# Methods that need no edges on this machine, where rows are with workers.
WITHOUT_EDGES = ("lp", "lr", "lgc", "sgc", "lgc-rp", "sgc-rp", "lr-rp")
_Address = Annotated[
    str,
    typer.Argument(metavar="ADDRESS", help="tcp://host:8786, a scheduler file .json, or local:4.", show_default=False),
]


@cluster_group.callback()
def only_group() -> None:
    """Clusters of Dask to run on, as `graphmrf predict --cluster ADDRESS` does."""


@cluster_group.command()
def check(address: _Address, *, json: options.Json = False, debug: options.Debug = False) -> None:
    """Show the workers of a cluster, whether their versions match, and which graphs would fit.

    Exit code 0: it can be used, 1: it cannot, and why.
    """
    with terminal.errors_as_exit_codes(debug=debug), _connected(address) as machines:
        summary = contents(machines)
        if json:
            terminal.print_json(summary)
            return
        same = ", ".join(f"{name} {version}" for name, version in summary["versions"].items())
        terminal.say(f"{machines.address}: {len(summary['workers'])} workers, all with {same}; {machines.dashboard}")
        rows = [[each["address"], str(each["threads"]), _gigabytes(each["memory"])] for each in summary["workers"]]
        terminal.print_table(["worker", "threads", "memory"], rows)
        fits = summary["fits"]
        terminal.say(
            f"With 20 edges for every node, unweighted: dividing columns is possible up to {fits['columns']:,} nodes, "
            f"dividing rows up to {fits['rows']:,}."
        )


def contents(machines: "later.clusters.Cluster") -> dict[str, Any]:
    """Return what a cluster has, for scripts."""
    workers = [
        {"address": name, "threads": about["nthreads"], "memory": about["memory_limit"]}
        for name, about in machines.workers().items()
    ]
    about = {"address": machines.address, "versions": later.clusters.own_versions()}
    return {**about, "workers": workers, "fits": later.clusters.largest_graphs(machines)}


def _connected(address: str, **options: Any) -> "later.clusters.Cluster":
    """Return a cluster without the log messages of its libraries: errors are raised as ours."""
    machines = later.clusters.cluster(address, **options)
    libraries = "distributed", "tornado", "asyncio"
    for name in [name for name in logging.root.manager.loggerDict if name.partition(".")[0] in libraries]:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    return machines


@contextmanager
def on_cluster(
    address: str | None, partition: str | None, checkpoint: Path | None, *, quiet: bool
) -> Iterator["later.clusters.Cluster | None"]:
    """Yield the cluster that a command runs on while the block lasts, or None without an address."""
    if address is None:
        if partition is not None or checkpoint is not None:
            raise InvalidInputError("--partition and --checkpoint are for clusters; add --cluster ADDRESS")
        yield None
        return
    with _connected(address, partition=partition or "auto", checkpoint=checkpoint) as machines:
        _tell(machines, quiet=quiet)
        yield machines


def read_placed(
    machines: "later.clusters.Cluster | None",
    tables: tuple[Path, Path | None],
    columns: dict[str, Any],
    *,
    asked: tuple[str, Path | None],
    **others: Any,
) -> "later.datasets.AttributedGraph":
    """Return what `inputs.read_graph` does, with the graph on a cluster where there is one.

    Edges in a folder of Parquet files are read by the workers alone where each has some rows of the graph, which must
    do for what is asked: the method, and a page.
    """
    nodes, edges = tables
    if machines is not None and edges is not None and _rows_of_folder(machines, nodes, edges):
        _check_without_edges(*asked)
        return later.datasets.read_on_workers(nodes, edges, machines, id=others.get("id"), **columns)
    table = later.inputs.read_graph(nodes, edges, columns, **others)
    return table if machines is None else replace(table, graph=table.graph.to(machines))


def _rows_of_folder(machines: "later.clusters.Cluster", nodes: Path, edges: Path) -> bool:
    """Whether workers read rows of a folder or URL of edges, on request or because a worker has no room for all."""
    if not (edges.is_dir() or as_url(edges)) or machines.partition == "columns":
        return False
    return machines.partition == "rows" or not machines.fits(*map(later.datasets.count_rows, (nodes, edges)))


def _check_without_edges(method: str, report: Path | None) -> None:
    """Raise if a requested output needs the edges on this machine, and only workers have them."""
    if report is not None or method not in WITHOUT_EDGES:
        wanted = "--report" if report is not None else f"--method {method}"
        raise InvalidInputError(
            f"{wanted} needs the edges on this machine, and with --partition rows only workers read those of a folder; "
            f"{'drop it' if report is not None else 'use ' + ', '.join(WITHOUT_EDGES)}, or give them in one file"
        )


@contextmanager
def pool_of(address: str | None, jobs: int | None, *, quiet: bool) -> Iterator[tuple[int | None, Executor | None]]:
    """Yield how many runs go at once, and what they are submitted to: a cluster, or nothing without an address."""
    if address is None:
        yield jobs, None
        return
    if jobs is not None:
        raise InvalidInputError("--jobs is for this machine, a cluster has its own number of threads; drop one of them")
    with _connected(address) as machines:
        _tell(machines, quiet=quiet)
        yield sum(about["nthreads"] for about in machines.workers().values()), machines.executor()


def _tell(machines: "later.clusters.Cluster", *, quiet: bool) -> None:
    if not quiet:
        terminal.note([f"running on {len(machines.workers())} workers, {machines.dashboard or machines.address}"])


def _gigabytes(memory: int) -> str:
    return f"{memory / 1e9:.1f} GB" if memory else "no limit"
