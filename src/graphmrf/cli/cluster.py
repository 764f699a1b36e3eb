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
    cls=later.CommandGroup, no_args_is_help=True, rich_markup_mode="rich", help="Dask clusters to run on."
)
# Methods that need no edges on this machine, where rows are with workers.
WITHOUT_EDGES = ("lp", "lr", "lgc", "sgc", "lgc-rp", "sgc-rp", "lr-rp")
_Address = Annotated[
    str,
    typer.Argument(metavar="ADDRESS", help="tcp://host:8786, a scheduler file .json, or local:4.", show_default=False),
]


@cluster_group.callback()
def only_group() -> None:
    """Dask clusters to run on, as `graphmrf predict --cluster ADDRESS` does."""


@cluster_group.command()
def check(address: _Address, *, json: options.Json = False, debug: options.Debug = False) -> None:
    """Show the workers of a cluster, whether their versions match, and which graphs would fit.

    Exit code 0: it can be used; 1: it cannot, and the reason is printed.
    """
    with terminal.errors_as_exit_codes(debug=debug), _connected(address) as machines:
        summary = contents(machines)
        if json:
            terminal.print_json(summary)
            return
        same = ", ".join(f"{name} {version}" for name, version in summary["versions"].items())
        terminal.say(f"{machines.address}: {len(summary['workers'])} workers, all with {same}; {machines.dashboard}")
        rows = [[each["address"], str(each["threads"]), _gigabytes(each["memory"])] for each in summary["workers"]]
        terminal.print_table(["worker", "#threads", "memory"], rows)
        fits = summary["fits"]
        terminal.say(
            f"With 20 edges for every node, unweighted: dividing columns is possible up to {fits['columns']:,} nodes, "
            f"dividing rows up to {fits['rows']:,}."
        )


def contents(machines: "later.dask.Cluster") -> dict[str, Any]:
    """Return what a cluster has, for scripts."""
    workers = [
        {"address": name, "threads": about["nthreads"], "memory": about["memory_limit"]}
        for name, about in machines.workers().items()
    ]
    about = {"address": machines.address, "versions": later.dask.own_versions()}
    return {**about, "workers": workers, "fits": later.dask.largest_graphs(machines)}


def _connected(address: str, **options: Any) -> "later.dask.Cluster":
    """Return a cluster without the log messages of its libraries: errors are raised as ours."""
    machines = later.dask.cluster(address, **options)
    libraries = "distributed", "tornado", "asyncio"
    for name in [name for name in logging.root.manager.loggerDict if name.partition(".")[0] in libraries]:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    return machines


@contextmanager
def on_cluster(options: options.ClusterOptions, *, quiet: bool) -> Iterator["later.dask.Cluster | None"]:
    """Yield the cluster that a command runs on while the block lasts, or None without an address."""
    if options.cluster is None:
        if options.partition is not None or options.checkpoint is not None:
            raise InvalidInputError("--partition and --checkpoint are for clusters; add --cluster ADDRESS")
        yield None
        return
    partition = options.partition or "auto"
    with _connected(options.cluster, partition=partition, checkpoint=options.checkpoint) as machines:
        _announce(machines, quiet=quiet)
        yield machines


def read_placed(
    machines: "later.dask.Cluster | None",
    nodes: Path,
    edges: Path | None,
    graph: options.GraphOptions,
    *,
    needs_edges: str,
    repeated: bool = False,
) -> "later.datasets.AttributedGraph":
    """Return what `inputs.read_graph` does, with the graph on a cluster where there is one.

    Edges in a folder of Parquet files are read by the workers alone where each has some rows of the graph; that is not
    possible with the option `needs_edges`, if any.
    """
    if machines is not None and "time" in graph.of_edges:
        raise InvalidInputError("--time runs on this machine; drop --cluster")
    if repeated:
        if machines is not None:
            raise InvalidInputError("--repeated runs on this machine; drop --cluster")
        return later.inputs.read_several_rows(nodes, edges, graph)
    if machines is not None and edges is not None and _rows_of_folder(machines, nodes, edges):
        if needs_edges:
            raise InvalidInputError(
                f"{needs_edges} needs the edges on this machine, and with --partition rows only workers read those of "
                f"a folder; use --method {', '.join(WITHOUT_EDGES)} without --report, or give the edges in one file"
            )
        return later.datasets.read_on_workers(nodes, edges, machines, id=graph.id, **graph.of_edges)
    table = later.inputs.read_graph(nodes, edges, graph)
    return table if machines is None else replace(table, graph=table.graph.to(machines))


def _rows_of_folder(machines: "later.dask.Cluster", nodes: Path, edges: Path) -> bool:
    """Whether workers read rows of a folder or URL of edges, on request or because a worker has no room for all."""
    if not (edges.is_dir() or as_url(edges)) or machines.partition == "columns":
        return False
    return machines.partition == "rows" or not machines.fits(*map(later.datasets.count_rows, (nodes, edges)))


@contextmanager
def pool_of(address: str | None, jobs: int | None, *, quiet: bool) -> Iterator[tuple[int | None, Executor | None]]:
    """Yield how many runs go at once, and what they are submitted to: a cluster, or nothing without an address."""
    if address is None:
        yield jobs, None
        return
    if jobs is not None:
        raise InvalidInputError("--jobs is for this machine, a cluster has its own number of threads; drop one of them")
    with _connected(address) as machines:
        _announce(machines, quiet=quiet)
        yield sum(about["nthreads"] for about in machines.workers().values()), machines.executor()


def _announce(machines: "later.dask.Cluster", *, quiet: bool) -> None:
    if not quiet:
        terminal.note([f"running on {len(machines.workers())} workers, {machines.dashboard or machines.address}"])


def _gigabytes(memory: int) -> str:
    return f"{memory / 1e9:.1f} GB" if memory else "no limit"
