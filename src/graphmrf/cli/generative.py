"""What fit, sample and foresee print: a model, its draws, and the accuracy it expects."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import typer

from graphmrf._typing import Bools
from graphmrf.cli import terminal
from graphmrf.model import GaussianMRF


def flags(mrf: GaussianMRF) -> tuple[str, ...]:
    """Return what to know about the fit, one line each."""
    return mrf.diagnostics.flags if mrf.diagnostics is not None else ()


def summary(mrf: GaussianMRF) -> dict[str, Any]:
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


def show_model(mrf: GaussianMRF, output: Path | None) -> None:
    """Print the attributes of a model, and how well it fits."""
    found = mrf.diagnostics
    assert found is not None
    rows = [
        [name, f"{mean:.4g}", f"{mrf.alpha(name):.3f}", _strongest(mrf, name)]
        for name, mean in zip(mrf.names, mrf.mean, strict=True)
    ]
    terminal.print_table(["attribute", "mean", "smoothness alpha", "depends most on (partial correlation)"], rows)
    typer.echo(
        f"{found.n_nodes} nodes, {found.n_parameters} parameters, log-likelihood {found.log_likelihood:.2f}, "
        f"AIC {found.aic:.2f}, BIC {found.bic:.2f}; {found.iterations} Newton steps, "
        f"gradient {found.gradient_norm:.0e}"
    )
    typer.echo(f"Saved {output}" if output else "Keep it with -o model.json; then try graphmrf sample or foresee")


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


def show_draws(frame: pd.DataFrame, draws: int, output: Path | None) -> None:
    """Print the first draws, or where all of them are."""
    if output is not None:
        typer.echo(f"Saved {output}: {draws} draw{'s' * (draws > 1)}, {len(frame)} rows")
        return
    cells = [
        [f"{cell:.4g}" if isinstance(cell, float) else str(cell) for cell in row] for row in frame.head(8).to_numpy()
    ]
    terminal.print_table(list(frame.columns), cells)
    typer.echo(f"The first {len(cells)} of {len(frame)} rows; save all with -o samples.csv")


def show_expected(target: str, labelled: Bools, expected: dict[str, tuple[float, float]], ids: list[str]) -> None:
    """Print how accurate every method will be, and the nodes to ask for."""
    uses = {"lp": "outcomes of neighbours", "lgc": "features", "lgc-rp": "both"}
    rows = [[name, uses[name], f"{r2:.3f}", f"{error:.3f}"] for name, (r2, error) in expected.items()]
    typer.echo(f"{target}: {int(labelled.sum())} nodes are labelled, {int((~labelled).sum())} to be predicted")
    terminal.print_table(["method", "uses", "expected R2", "± (probes)"], rows)
    if ids:
        typer.echo("Labels that would help most, in this order: " + ", ".join(ids))
