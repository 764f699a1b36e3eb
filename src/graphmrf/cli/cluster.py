"""graphmrf cluster: what a Dask cluster has, and what would fit; and the cluster that a command runs on."""

from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from graphmrf.cli import later, options, terminal
from graphmrf.errors import InvalidInputError

cluster_group = typer.Typer(
    cls=options.CommandGroup, no_args_is_help=True, rich_markup_mode="rich", help="Clusters of Dask to run on."
)
_Address = Annotated[
    str,
    typer.Argument(metavar="ADDRESS", help="tcp://host:8786, a scheduler file .json, or local:4.", show_default=False),
]


@cluster_group.callback()
def only_group() -> None:
    """Clusters of Dask to run on, as `graphmrf predict --cluster ADDRESS` does."""


@cluster_group.command()
def check(address: _Address, *, json: options.Json = False, debug: options.Debug = False) -> None:
    """Say which workers a cluster has, whether their versions match, and what would fit.

    Exit code 0: it can be used, 1: it cannot, and why.
    """
    with terminal.errors_as_exit_codes(debug=debug), later.clusters.cluster(address) as machines:
        summary = summarise(machines)
        if json:
            terminal.print_json(summary)
            return
        terminal.say(f"{machines.address}: {len(summary['workers'])} workers, versions match; {machines.dashboard}")
        rows = [[each["address"], str(each["threads"]), _gigabytes(each["memory"])] for each in summary["workers"]]
        terminal.print_table(["worker", "threads", "memory"], rows)
        fits = summary["fits"]
        terminal.say(
            f"With 20 edges for every node, unweighted: columns are shared out up to {fits['columns']:,} nodes, "
            f"rows up to {fits['rows']:,}."
        )


def summarise(machines: "later.clusters.Cluster") -> dict[str, Any]:
    """Return what a cluster has, for scripts."""
    workers = [
        {"address": name, "threads": about["nthreads"], "memory": about["memory_limit"]}
        for name, about in machines.workers().items()
    ]
    return {"address": machines.address, "workers": workers, "fits": later.clusters.largest_graphs(machines)}


@contextmanager
def on_cluster(
    address: str | None, partition: str | None, checkpoint: Path | None, *, quiet: bool
) -> Iterator["Callable[[later.datasets.AttributedGraph], later.datasets.AttributedGraph]"]:
    """Yield what puts the graph of a table on a cluster while the block lasts, or leaves it here without an address."""
    if address is None:
        if partition is not None or checkpoint is not None:
            raise InvalidInputError("--partition and --checkpoint are for clusters; add --cluster ADDRESS")
        yield lambda table: table
        return
    with later.clusters.cluster(address, partition=partition or "auto", checkpoint=checkpoint) as machines:
        _tell(machines, quiet=quiet)
        yield lambda table: replace(table, graph=table.graph.on(machines))


@contextmanager
def pool_of(address: str | None, jobs: int | None, *, quiet: bool) -> Iterator[tuple[int | None, Executor | None]]:
    """Yield how many runs go at once, and what they are submitted to: a cluster, or nothing without an address."""
    if address is None:
        yield jobs, None
        return
    if jobs is not None:
        raise InvalidInputError("--jobs is for this machine, a cluster has its own number of threads; drop one of them")
    with later.clusters.cluster(address) as machines:
        _tell(machines, quiet=quiet)
        yield sum(about["nthreads"] for about in machines.workers().values()), machines.executor()


def _tell(machines: "later.clusters.Cluster", *, quiet: bool) -> None:
    if not quiet:
        terminal.note([f"running on {len(machines.workers())} workers, {machines.dashboard or machines.address}"])


def _gigabytes(memory: int) -> str:
    return f"{memory / 1e9:.1f} GB" if memory else "no limit"
