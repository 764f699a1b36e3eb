"""graphmrf fit, sample and foresee: the generative model of the paper on the same files as predict."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import typer

from graphmrf import datasets
from graphmrf._typing import Bools
from graphmrf.cli import options, terminal
from graphmrf.cli.file_hints import EDGES, GIVEN, MODEL, NODES, explained, looks_like
from graphmrf.cli.foresight import FieldForecast, check_page
from graphmrf.errors import InvalidInputError
from graphmrf.files import check_apart, check_place
from graphmrf.model import GaussianMRF
from graphmrf.model.foresee import estimate_r2, target_covariance
from graphmrf.report import write_report
from graphmrf.text import did_you_mean

DRAW = "sample"
"""Column of the draws with their number."""

TAKE_MORE = ("sample",)
"""Commands that are handed arguments they do not take, to say more about them than that."""

ModelFile = Annotated[
    Path, typer.Argument(metavar="MODEL", help="A model written by graphmrf fit (.json).", show_default=False)
]
ModelOutput = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="FILE", help="Where to keep the model: a .json file.")
]
SampleOutput = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="FILE", help="The draws: .csv, .csv.gz, .tsv or .parquet."),
]
Named = Annotated[
    list[str] | None,
    typer.Option("--attribute", "-a", metavar="COL", help="Column to model; repeatable. Without it: all numeric ones."),
]
OneTarget = Annotated[str, typer.Option("--target", "-t", metavar="COL", help="The attribute to be predicted.")]
Coupled = Annotated[bool, typer.Option("--coupled", help="Let attributes of neighbours interact across columns, too.")]
Draws = Annotated[int, typer.Option("--draws", "-n", metavar="N", min=1, help="Number of draws.")]
DrawSeed = Annotated[int, typer.Option(metavar="S", min=0, help="Seed of the draws.")]
Given = Annotated[
    Path | None,
    typer.Option(metavar="NODES", help="Table of nodes: its cells are kept, its empty cells drawn given the others."),
]
_Files = Annotated[
    list[Path],
    typer.Argument(
        metavar="[MODEL] NODES EDGES",
        help="Tables of nodes and of edges; before them perhaps a model written by graphmrf fit (.json).",
        show_default=False,
    ),
]
_Reach = Annotated[
    float | None, typer.Option(metavar="R²", help="Also say how many labels it takes to reach this R², such as 0.8.")
]
_Suggest = Annotated[int, typer.Option(metavar="K", min=0, help="Also name the K nodes whose labels would help most.")]


def fit(
    nodes: options.NodesFile,
    edges: options.EdgesFile,
    *,
    attribute: Named = None,
    ignore: options.Ignore = None,
    coupled: Coupled = False,
    id: options.Id = None,  # noqa: A002 - named like the option
    source: options.Source = None,
    dest: options.Dest = None,
    weight: options.Weight = None,
    weight_is: options.WeightIs = None,
    unknown: options.Unknown = "error",
    output: ModelOutput = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Fit the generative model to the numeric columns of NODES.

    Empty cells are fine: the likelihood of what is there is maximised. The
    model says how attributes of one node depend on each other, and how smooth
    each is along the edges.

    [bold]Example[/bold]:

        graphmrf fit districts.csv borders.csv --ignore x --ignore y -o city.json
    """
    with terminal.errors_as_exit_codes(debug=debug):
        check_apart([output], [nodes, edges])
        if output is not None:
            _check_model_place(output)
        with explained("fit", {NODES: nodes, EDGES: edges}):
            columns: dict[str, Any] = {"source": source, "dest": dest, "weight": weight, "weight_is": weight_is}
            table = datasets.read(nodes, edges, id=id, unknown=unknown, **columns)
        _check_columns(table, attribute or [], ignore or [])
        found = datasets.attributes(table, named=attribute or (), ignore=ignore or ())
        mrf = GaussianMRF.fit(table.graph, found.A, coupled=coupled)
        if output is not None:
            mrf.save(output)
        if not quiet:
            terminal.note((*table.notes, *found.notes, *_flags(mrf)))
        if json:
            terminal.print_json(_summary(mrf))
        elif not quiet:
            _show_model(mrf, output)


def sample(
    context: typer.Context,
    model: ModelFile,
    edges: options.EdgesFile,
    *,
    given: Given = None,
    draws: Draws = 1,
    seed: DrawSeed = 0,
    id: options.Id = None,  # noqa: A002 - named like the option
    source: options.Source = None,
    dest: options.Dest = None,
    weight: options.Weight = None,
    weight_is: options.WeightIs = None,
    unknown: options.Unknown = "error",
    output: SampleOutput = None,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Draw attributes for all nodes from MODEL, or, with --given, only what is empty.

    The graph is all that MODEL needs, so the nodes are the ends of EDGES;
    --given takes a table of nodes, whose cells are then known. The result has
    one row per draw and node: sample, the node's id, and the attributes.

    [bold]Example[/bold]:

        graphmrf sample city.json borders.csv --given districts.csv -n 10 -o rents.csv
    """
    with terminal.errors_as_exit_codes(debug=debug):
        check_apart([output], [model, edges, given])
        if output is not None:
            datasets.check_writable(output)
        if context.args:
            raise InvalidInputError(_too_many(model, edges, context.args))
        columns: dict[str, Any] = {"source": source, "dest": dest, "weight": weight, "weight_is": weight_is}
        with explained("sample", {MODEL: model, EDGES: edges, GIVEN: given}):
            mrf = GaussianMRF.load(model)
            table = (
                datasets.read(given, edges, id=id, unknown=unknown, **columns)
                if given
                else datasets.read_edges(edges, **columns)
            )
        _check_names(table, mrf)
        if given is None:
            drawn = mrf.sample(table.graph, draws, seed)
        else:
            drawn = mrf.condition(table.graph, _attributes(table, mrf)).sample(draws, seed)
        frame = _long(table, mrf, drawn)
        if output is not None:
            datasets.write(frame, output)
        if not quiet:
            terminal.note(table.notes)
            _show_draws(frame, draws, output)


def foresee(
    context: typer.Context,
    files: _Files,
    *,
    target: OneTarget,
    suggest: _Suggest = 0,
    reach: _Reach = None,
    ignore: options.Ignore = None,
    id: options.Id = None,  # noqa: A002 - named like the option
    source: options.Source = None,
    dest: options.Dest = None,
    weight: options.Weight = None,
    weight_is: options.WeightIs = None,
    unknown: options.Unknown = "error",
    report: options.Report = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Say how accurate predictions of a column will be, now and with more labels.

    Nodes with a value in the column of NODES count as labelled. Expected R² on
    the others by the field that graphmrf predict fits, and how it grows with
    labels at further nodes. With a MODEL of graphmrf fit before the tables:
    expected R², under it, of label propagation, graph convolution and both.

    [bold]Example[/bold]:

        graphmrf foresee districts.csv borders.csv --target rent --reach 0.8 --suggest 5
    """
    with terminal.errors_as_exit_codes(debug=debug):
        model, nodes, edges = _check_files(files)
        if model is not None and (report is not None or reach is not None or ignore):
            raise InvalidInputError("--report, --reach and --ignore are for the field, without MODEL; drop one of them")
        if report is not None:
            check_page(report, nodes, edges)
        given = {NODES: nodes, EDGES: edges} if model is None else {MODEL: model, NODES: nodes, EDGES: edges}
        with explained("foresee", given):
            mrf = None if model is None else GaussianMRF.load(model)
            columns: dict[str, Any] = {"source": source, "dest": dest, "weight": weight, "weight_is": weight_is}
            table = datasets.read(nodes, edges, id=id, unknown=unknown, **columns)
        if mrf is not None:
            notes, summary, show = _under_model(table, mrf, target, suggest)
        else:
            with terminal.progress(1, quiet=quiet):
                seen = FieldForecast.of(table, target, ignore=ignore or (), reach=reach, suggest=suggest)
            notes, summary, show = (*table.notes, *seen.notes), seen.summary, seen.show
            if report is not None:
                write_report(report, seen.page(terminal.command_line(context)))
        if not quiet:
            terminal.note(notes)
        if json:
            terminal.print_json(summary)
        elif not quiet:
            show()


def _check_files(files: list[Path]) -> tuple[Path | None, Path, Path]:
    """Return model, nodes and edges, of which the first may be left out."""
    tables = files[1:] if len(files) == 3 else files
    if len(tables) != 2 or (len(files) == 2 and looks_like(files[0]) == "a model"):
        raise InvalidInputError(
            f"foresee takes NODES and EDGES, or MODEL, NODES and EDGES, got {', '.join(map(str, files))}; "
            "name both tables"
        )
    return (files[0] if len(files) == 3 else None), tables[0], tables[1]


def _under_model(
    table: datasets.AttributedGraph, mrf: GaussianMRF, target: str, suggest: int
) -> tuple[tuple[str, ...], dict[str, Any], Callable[[], None]]:
    """Return notes, summary and a way to print what the paper's model foresees."""
    labelled = _labelled(table, mrf, target, suggest)
    problem = target_covariance(mrf.parameters, table.graph, mrf.index(target), labelled)
    expected = {
        name: estimate_r2(problem, given) for name, given in (("lp", "labels"), ("lgc", "features"), ("lgc-rp", "both"))
    }
    chosen = mrf.suggest(table.graph, target, labelled, suggest).tolist() if suggest else []
    ids = [str(table.frame[table.id].iloc[node]) for node in chosen]
    values = {name: {"r2": r2, "error": error} for name, (r2, error) in expected.items()}
    summary = {"target": target, "labelled": int(labelled.sum()), "r2": values, "suggest": ids}
    notes = (*table.notes, *_assumed(table, mrf, target))
    return notes, summary, lambda: _show_expected(target, labelled, expected, ids)


def _too_many(model: Path, edges: Path, more: list[str]) -> str:
    """Say how a table of nodes is given, for whoever gives it as other commands take it."""
    tables = [edges, *(Path(each) for each in more)]
    nodes = next((path for path in tables if looks_like(path) == "a table of nodes"), None)
    said = f"sample takes two files, MODEL and EDGES, got {len(tables) + 1}"
    if nodes is None or len(tables) != 2:
        return f"{said}; a table of nodes is given with --given NODES"
    (ends,) = (path for path in tables if path is not nodes)
    return f"{said}; a table of nodes is given with --given: graphmrf sample {model} {ends} --given {nodes}"


def _check_columns(table: datasets.AttributedGraph, named: list[str], ignored: list[str]) -> None:
    for option, names in (("--attribute", named), ("--ignore", ignored)):
        for name in names:
            table.require(name, option=option)
    for name in named:
        if name in ignored:
            raise InvalidInputError(f"'{name}' is both --attribute and --ignore; drop one of them")


def _check_names(table: datasets.AttributedGraph, mrf: GaussianMRF) -> None:
    """Raise where two columns of the draws would have the same name, of which only one could be kept."""
    repeated = {table.id} & {DRAW, *mrf.names} or {DRAW} & {*mrf.names}
    if repeated:
        raise InvalidInputError(
            f"the draws would have two columns '{repeated.pop()}': they are {DRAW}, {table.id} (the ids), "
            f"{', '.join(mrf.names)} (the model); rename the column in its file"
        )


def _check_model_place(path: Path) -> None:
    if path.suffix != ".json":
        raise InvalidInputError(f"a model is kept as JSON, got {path}; name the file something.json")
    check_place(path)


def _attributes(table: datasets.AttributedGraph, mrf: GaussianMRF) -> pd.DataFrame:
    """Return the model's attributes from a table; a column that is not there is unknown everywhere."""
    here = set(table.frame.columns[1:])
    if not here & set(mrf.names):
        raise InvalidInputError(
            f"{table.path} has none of the model's attributes ({', '.join(mrf.names)}); "
            "leave --given away to draw all of them, or name the columns alike"
        )
    unknown = np.full(table.graph.n_nodes, np.nan)
    columns = {name: table.outcome(name) if name in here else unknown for name in mrf.names}
    return pd.DataFrame(columns, index=table.graph.ids)


def _labelled(table: datasets.AttributedGraph, mrf: GaussianMRF, target: str, suggest: int) -> Bools:
    if target not in mrf.names:
        near = did_you_mean(target, mrf.names)
        raise InvalidInputError(f"the model has no attribute '{target}'; {near}it has {', '.join(mrf.names)}")
    table.require(target, option="--target")
    labelled = ~np.isnan(table.outcome(target))
    left = int((~labelled).sum())
    if not left:
        raise InvalidInputError(f"{table.path}, column {target}: no empty cell, so there is nothing to predict")
    if suggest > left:
        raise InvalidInputError(f"--suggest must be at most {left}, the number of nodes without a label, got {suggest}")
    return labelled


def _assumed(table: datasets.AttributedGraph, mrf: GaussianMRF, target: str) -> tuple[str, ...]:
    lacking = [name for name in mrf.names if name != target and name not in table.frame.columns[1:]]
    named = ", ".join(f"'{name}'" for name in lacking)
    note = f"lgc and lgc-rp are foreseen as if features {named} were known, which {table.path} does not have"
    return (note,) if lacking else ()


def _long(table: datasets.AttributedGraph, mrf: GaussianMRF, drawn: Any) -> pd.DataFrame:
    n_samples, n, q = drawn.shape
    ids = pd.concat([table.frame[table.id]] * n_samples, ignore_index=True)
    frame = pd.DataFrame({DRAW: np.repeat(np.arange(n_samples), n), table.id: ids})
    return pd.concat([frame, pd.DataFrame(drawn.reshape(-1, q), columns=list(mrf.names))], axis=1)


def _flags(mrf: GaussianMRF) -> tuple[str, ...]:
    """Return what to know about the fit, one line each."""
    return mrf.diagnostics.flags if mrf.diagnostics is not None else ()


def _summary(mrf: GaussianMRF) -> dict[str, Any]:
    """Return what a script may want to know of a model, ready for JSON."""
    assert mrf.diagnostics is not None
    found = mrf.diagnostics
    return {
        "attributes": {
            name: {"mean": float(mean), "alpha": mrf.alpha(name), "omega": mrf.omega(name)}
            for name, mean in zip(mrf.names, mrf.mean, strict=True)
        },
        "log_likelihood": found.log_likelihood,
        "log_likelihood_error": found.log_likelihood_error,
        "aic": found.aic,
        "bic": found.bic,
        "gradient_norm": found.gradient_norm,
        "iterations": found.iterations,
        "flags": list(found.flags),
    }


def _show_model(mrf: GaussianMRF, output: Path | None) -> None:
    """Print the attributes of a model, and how well it fits."""
    found = mrf.diagnostics
    assert found is not None
    rows = [
        [name, f"{mean:.4g}", f"{mrf.alpha(name):.3f}", _strongest(mrf, name)]
        for name, mean in zip(mrf.names, mrf.mean, strict=True)
    ]
    terminal.print_table(["attribute", "mean", "smoothness alpha", "depends most on (partial correlation)"], rows)
    terminal.say(
        f"{found.n_nodes} nodes, {found.n_parameters} parameters, log-likelihood {found.log_likelihood:.2f}, "
        f"AIC {found.aic:.2f}, BIC {found.bic:.2f}; {found.iterations} Newton steps, "
        f"gradient {found.gradient_norm:.0e}"
    )
    terminal.say(f"Saved {output}" if output else "Keep it with -o model.json; then try graphmrf sample or foresee")


def _strongest(mrf: GaussianMRF, name: str) -> str:
    """Name the attribute of the same node with the largest partial correlation, given all else in the graph."""
    if mrf.q == 1:
        return ""
    k = mrf.index(name)
    precision = mrf.H + mrf.C  # the block of Gamma at a node with edges, where N is 1
    scale = np.sqrt(np.diag(precision))
    partial = -precision[k] / (scale * scale[k])
    partial[k] = 0.0
    other = int(np.abs(partial).argmax())
    return f"{mrf.names[other]} ({partial[other]:+.2f})"


def _show_draws(frame: pd.DataFrame, draws: int, output: Path | None) -> None:
    """Print the first draws, or where all of them are."""
    if output is not None:
        terminal.say(f"Saved {output}: {draws} draw{'s' * (draws > 1)}, {len(frame)} rows")
        return
    cells = [
        [f"{cell:.4g}" if isinstance(cell, float) else str(cell) for cell in row] for row in frame.head(8).to_numpy()
    ]
    terminal.print_table(list(frame.columns), cells)
    terminal.say(f"The first {len(cells)} of {len(frame)} rows; save all with -o samples.csv")


def _show_expected(target: str, labelled: Bools, expected: dict[str, tuple[float, float]], ids: list[str]) -> None:
    """Print how accurate every method will be, and the nodes to ask for."""
    uses = {"lp": "outcomes of neighbours", "lgc": "features", "lgc-rp": "both"}
    rows = [[name, uses[name], f"{r2:.3f}", f"{error:.3f}"] for name, (r2, error) in expected.items()]
    terminal.say(f"{target}: {int(labelled.sum())} nodes are labelled, {int((~labelled).sum())} to be predicted")
    terminal.print_table(["method", "uses", "expected R²", "± (probes)"], rows)
    if ids:
        terminal.say("Labels that would help most, in this order: " + ", ".join(ids))
