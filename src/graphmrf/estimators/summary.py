"""Summaries of fitted models as tables of text, in the style of statsmodels."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy.special import ndtri

from graphmrf.text import minus_signs, number

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from graphmrf._typing import Floats
    from graphmrf.field.criteria import Criteria

_MOST_EFFECTS = 40  # features up to which all effects are listed, the strongest ones of more
_MANY = 0.4  # effective parameters per label from which WAIC is unreliable (Vehtari, Gelman and Gabry, 2017)
_LARGEST_K = 0.7  # shape of the tail of importance weights from which they are unreliable (Vehtari and others, 2024)


class Summary(str):
    """Text that consoles and notebooks show as it is, line by line."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self)}</pre>"


def table_of(title: str, values: Any, digits: str = ",.4f") -> list[str]:
    """Return the lines of a table of named numbers; none where there are no values."""
    if values is None:
        return []
    named = values if isinstance(values, pd.Series) else pd.Series(np.ravel(values)).rename(lambda j: f"x{j}")
    cells = {name: minus_signs(format(float(each), f"z{digits}")) for name, each in named.items()}
    return ["", f"  {title}", *(f"    {name!s:<30} {cell:>12}" for name, cell in cells.items())]


def summarise(facts: Mapping[str, str], shares: Mapping[Any, float], names: Sequence[str], found: Criteria) -> Summary:
    """Return the summary of a field: what was fitted, shares of the variance, effects of features, criteria."""
    (waic, waic_error, parameters), (loo, loo_error) = found.waic, found.leave_one_out
    psis, psis_error, k = found.psis
    moran, p = found.moran
    doubt = "; unreliable, as they are many" if parameters > _MANY * found.outcome.rows.size else ""
    far = f"; unreliable, as k > {_LARGEST_K} at {np.sum(k > _LARGEST_K)} nodes" if (k > _LARGEST_K).any() else ""
    facts = {
        **facts,
        "log evidence": number(found.log_evidence),
        "elpd, leave-one-out": f"{number(loo)} ± {number(loo_error)}",
        "elpd, PSIS": f"{number(psis)} ± {number(psis_error)}, k up to {k.max():.2f}{far}",
        "elpd, WAIC": f"{number(waic)} ± {number(waic_error)}, {number(parameters)} effective parameters{doubt}",
        "Moran's I of residuals": "not defined" if np.isnan(moran) else f"{number(moran)}, p = {number(p)}",
    }
    width = max(map(len, facts))
    lines = ["GraphRegressor", *(f"  {name:<{width}}  {value}" for name, value in facts.items())]
    lines += table_of("share of the variance", pd.Series(shares))
    lines += _effects(names, found.effects)
    hyper = [(name, values[0]) for name, values in found.hyperparameters.items() if len(values) == 1]
    lines += _table("hyper-parameter", ("mode", "2.5 %", "97.5 %"), hyper)
    return Summary("\n".join(lines))


def _effects(names: Sequence[str], effects: Floats) -> list[str]:
    """Return the table of linear effects with standard errors, z and 95 % intervals."""
    z = effects[:, 0] / np.where(effects[:, 1] > 0, effects[:, 1], np.nan)
    order = np.argsort(-np.nan_to_num(np.abs(z)), kind="stable")
    chosen = [k for k in sorted(order[:_MOST_EFFECTS]) if not np.isnan(effects[k, 0])]
    width = float(ndtri(0.975))
    rows = [
        (names[k], np.array([b, error, z[k], b - width * error, b + width * error]))
        for k, (b, error) in ((k, effects[k]) for k in chosen)
    ]
    return _table("linear effect", ("effect", "std err", "z", "2.5 %", "97.5 %"), rows)


def _table(title: str, columns: tuple[str, ...], rows: Iterable[tuple[str, Floats]]) -> list[str]:
    lines = [f"    {name:<30}" + "".join(minus_signs(f" {each:>z10.4g}") for each in row) for name, row in rows]
    return ["", f"  {title:<32}" + "".join(f" {each:>10}" for each in columns), *lines] if lines else []
