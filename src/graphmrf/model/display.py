"""A model for the eye: as text, and as a table in notebooks."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from graphmrf._typing import Floats
    from graphmrf.model.diagnostics import Diagnostics
    from graphmrf.model.mrf import GaussianMRF


def as_text(mrf: GaussianMRF) -> str:
    """Return one line for the prompt."""
    kind = "coupled, " if mrf.is_coupled else ""
    alphas = ", ".join(f"{name}={mrf.alpha(name):.3g}" for name in mrf.names[:8])
    more = ", ..." if len(mrf.names) > 8 else ""
    return f"GaussianMRF({kind}{len(mrf.names)} attributes; alpha: {alphas}{more})"


def as_html(mrf: GaussianMRF) -> str:
    """Return a table: per attribute its mean and smoothing, H, and C when it is not diagonal; then how the fit went."""
    summary = np.column_stack([mrf.mean, mrf.h, *(np.array([f(n) for n in mrf.names]) for f in (mrf.omega, mrf.alpha))])
    parts = [f"<b>GaussianMRF</b>, {len(mrf.names)} attributes{', coupled' if mrf.is_coupled else ''}"]
    parts.append(_table("", summary, mrf.names, ("mean", "h", "ω", "α")))
    parts.append(_table("H", mrf.H, mrf.names, mrf.names))
    if mrf.is_coupled:
        parts.append(_table("C", mrf.C, mrf.names, mrf.names))
    if mrf.diagnostics is not None:
        parts.append(_fit(mrf.diagnostics))
    return "<div>" + "".join(parts) + "</div>"


def _fit(d: Diagnostics) -> str:
    line = f"log-likelihood {d.log_likelihood:.6g}, AIC {d.aic:.6g}, BIC {d.bic:.6g}, {d.iterations} steps"
    flags = "".join(f"<li>{escape(flag)}</li>" for flag in d.flags)
    return f"<p>{line}</p>" + (f"<ul>{flags}</ul>" if flags else "")


def _table(title: str, values: Floats, rows: tuple[str, ...], columns: tuple[str, ...]) -> str:
    head = "".join(f"<th>{escape(c)}</th>" for c in columns)
    body = "".join(
        f"<tr><th>{escape(name)}</th>" + "".join(f"<td>{v:.4g}</td>" for v in row) + "</tr>"
        for name, row in zip(rows, values, strict=True)
    )
    return f"<table><thead><tr><th>{escape(title)}</th>{head}</tr></thead><tbody>{body}</tbody></table>"
