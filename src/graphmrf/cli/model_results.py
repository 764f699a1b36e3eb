"""Results of fit, sample and foresee by the paper's model: checks of the input, draws, tables and summaries."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from graphmrf import datasets
from graphmrf._typing import Bools
from graphmrf.cli import terminal
from graphmrf.cli.inputs import A_MODEL, looks_like
from graphmrf.cli.options import GraphOptions
from graphmrf.datasets.table_files import SHAPES
from graphmrf.errors import InvalidInputError
from graphmrf.files import check_place, free_memory
from graphmrf.model import GaussianMRF
from graphmrf.model.expected_accuracy import estimate_r2, target_covariance
from graphmrf.text import did_you_mean, minus_signs, number

DRAW = "sample"  # column of the draws with their number


def fitted(
    table: datasets.AttributedGraph, named: Sequence[str], ignore: Sequence[str], *, coupled: bool
) -> tuple[GaussianMRF, tuple[str, ...]]:
    """Return the model of the columns named, or of all numeric ones, and what to know about it."""
    for option, names in (("--attribute", named), ("--ignore", ignore)):
        for name in names:
            table.require(name, option=option)
    if both := [name for name in named if name in ignore]:
        raise InvalidInputError(f"'{both[0]}' is both --attribute and --ignore; drop one of them")
    found = datasets.attributes(table, named=named, ignore=ignore)
    mrf = GaussianMRF.fit(table.graph, found.A, coupled=coupled)
    assert mrf.diagnostics is not None
    return mrf, (*table.notes, *found.notes, *mrf.diagnostics.flags)


def check_files(files: Sequence[Path], *, places: bool) -> tuple[Path | None, Path, Path | None]:
    """Return model, nodes and edges, of which the first may be left out, and the last where nodes have `places`.

    A file of areas at the end has them.
    """
    places = places or files[-1].suffix.lower() in SHAPES
    with_model = len(files) == (2 if places else 3)
    tables = files[1:] if with_model else files
    if len(tables) != (1 if places else 2) or looks_like(tables[0]) == A_MODEL:
        wanted = "NODES, or MODEL and NODES" if places else "NODES and EDGES, or MODEL, NODES and EDGES"
        raise InvalidInputError(
            f"foresee takes {wanted}, got {', '.join(map(str, files))}; name {'the table' if places else 'both tables'}"
        )
    return (files[0] if with_model else None), tables[0], None if places else tables[1]


def read_ends(edges: Path | None, options: GraphOptions) -> datasets.AttributedGraph:
    """Return the graph of a table of edges alone; raise where there is none, or coordinates of unknown nodes."""
    if options.has_places or edges is None:
        lacking = "--knn and --shapes need the nodes" if options.has_places else "there is no table of edges"
        raise InvalidInputError(f"{lacking}; write for example: graphmrf sample MODEL EDGES, or --given NODES")
    columns = {name: value for name, value in options.of_edges.items() if name != "unknown"}
    return datasets.read_edges(edges, **columns)


def draw_table(
    table: datasets.AttributedGraph, mrf: GaussianMRF, draws: int, seed: int, *, conditional: bool
) -> pd.DataFrame:
    """Return one row per draw and node: its number, the id, and the attributes; of a table only what is empty."""
    _check_names(table, mrf)
    n_numbers = draws * table.graph.n_nodes * mrf.q
    if 8 * n_numbers > (free_memory() or np.inf):
        raise InvalidInputError(
            f"--draws {draws} of {mrf.q} attributes at {table.graph.n_nodes} nodes are {n_numbers:.1e} numbers, more "
            "than fit in memory; draw fewer at once, with another --seed each time"
        )
    if conditional:
        posterior = mrf.condition(table.graph, _attributes(table, mrf))
        return _long(table, mrf, posterior.sample(draws, seed))
    return _long(table, mrf, mrf.sample(table.graph, draws, seed))


def under_model(
    table: datasets.AttributedGraph, mrf: GaussianMRF, target: str, suggest: int
) -> tuple[tuple[str, ...], dict[str, Any], Callable[[], None]]:
    """Return notes, summary and a way to print the accuracy that the paper's model expects."""
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


def _check_names(table: datasets.AttributedGraph, mrf: GaussianMRF) -> None:
    """Raise where two columns of the draws would have the same name, of which one would be lost."""
    repeated = {table.id} & {DRAW, *mrf.names} or {DRAW} & {*mrf.names}
    if repeated:
        raise InvalidInputError(
            f"the draws would have two columns '{repeated.pop()}': they are {DRAW}, {table.id} (the ids), "
            f"{', '.join(mrf.names)} (the model); rename the column in its file"
        )


def check_model_place(path: Path) -> None:
    """Raise unless a model can be saved there."""
    if path.suffix != ".json":
        raise InvalidInputError(f"a model is saved as JSON, got {path}; name the file something.json")
    check_place(path)


def _attributes(table: datasets.AttributedGraph, mrf: GaussianMRF) -> pd.DataFrame:
    """Return the model's attributes from a table; a column that is not there is unknown everywhere."""
    here = set(table.frame.columns[1:])
    if not here & set(mrf.names):
        raise InvalidInputError(
            f"{table.path} has none of the model's attributes ({', '.join(mrf.names)}); "
            "leave out --given to draw all of them, or give the columns the same names"
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
    note = f"lgc and lgc-rp are estimated as if features {named} were known, which {table.path} does not have"
    return (note,) if lacking else ()


def _long(table: datasets.AttributedGraph, mrf: GaussianMRF, drawn: Any) -> pd.DataFrame:
    n_samples, n, q = drawn.shape
    ids = pd.concat([table.frame[table.id]] * n_samples, ignore_index=True)
    frame = pd.DataFrame({DRAW: np.repeat(np.arange(n_samples), n), table.id: ids})
    return pd.concat([frame, pd.DataFrame(drawn.reshape(-1, q), columns=list(mrf.names))], axis=1)


def model_summary(mrf: GaussianMRF) -> dict[str, Any]:
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


def show_model(mrf: GaussianMRF, n_nodes: int, output: Path | None) -> None:
    """Print the attributes of a model fitted to so many nodes, and how well it fits."""
    found = mrf.diagnostics
    assert found is not None
    rows = [
        [name, minus_signs(f"{mean:.4g}"), f"{mrf.alpha(name):.3f}", _strongest(mrf, name)]
        for name, mean in zip(mrf.names, mrf.mean, strict=True)
    ]
    terminal.print_table(["attribute", "#mean", "#smoothness alpha", "depends most on (partial correlation)"], rows)
    terminal.say(
        f"{n_nodes} nodes{f', {found.n_nodes} of them with values' * (found.n_nodes < n_nodes)}, "
        f"{found.n_parameters} parameters, log-likelihood {number(found.log_likelihood, 2)}, "
        f"AIC {number(found.aic, 2)}, BIC {number(found.bic, 2)}; {found.iterations} Newton steps, "
        f"gradient {minus_signs(f'{found.gradient_norm:.0e}')}"
    )
    terminal.say(f"Saved {output}" if output else "Save it with -o model.json; then try graphmrf sample or foresee")


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
    return f"{mrf.names[other]} ({minus_signs(f'{partial[other]:+.2f}')})"


def show_draws(frame: pd.DataFrame, draws: int, output: Path | None) -> None:
    """Print the first draws, or where all of them are."""
    if output is not None:
        terminal.say(f"Saved {output}: {draws} draw{'s' * (draws > 1)}, {len(frame)} rows")
        return
    cells = [
        [minus_signs(f"{cell:.4g}") if isinstance(cell, float) else str(cell) for cell in row]
        for row in frame.head(8).to_numpy()
    ]
    draw, key, *attributes = frame.columns
    terminal.print_table([f"#{draw}", key, *(f"#{name}" for name in attributes)], cells)
    terminal.say(f"The first {len(cells)} of {len(frame)} rows; save all with -o samples.csv")


def _show_expected(target: str, labelled: Bools, expected: dict[str, tuple[float, float]], ids: list[str]) -> None:
    """Print how accurate every method will be, and the nodes to ask for."""
    uses = {"lp": "outcomes of neighbours", "lgc": "features", "lgc-rp": "both"}
    rows = [[name, uses[name], number(r2), number(error)] for name, (r2, error) in expected.items()]
    terminal.say(f"{target}: {int(labelled.sum())} nodes are labelled, {int((~labelled).sum())} to be predicted")
    terminal.print_table(["method", "uses", "#expected R²", "#± (probes)"], rows)
    if ids:
        terminal.say("Labels that would help most, in this order: " + ", ".join(ids))
