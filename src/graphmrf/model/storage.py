"""The model as a JSON file: readable, versioned, exact."""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from graphmrf.errors import InvalidInputError
from graphmrf.files import atomic
from graphmrf.model.diagnostics import Diagnostics

if TYPE_CHECKING:
    from graphmrf.model.mrf import GaussianMRF

FORMAT = "graphmrf.GaussianMRF"
VERSION = 1


def write_model(mrf: GaussianMRF, path: str | Path) -> None:
    """Write a model to a JSON file; every number is kept exactly."""
    content: dict[str, Any] = {"format": FORMAT, "version": VERSION, "names": list(mrf.names)}
    content["H"] = mrf.H.tolist()
    content |= {"C": mrf.C.tolist()} if mrf.is_coupled else {"h": mrf.h.tolist()}
    content["mean"] = mrf.mean.tolist()
    if mrf.diagnostics is not None:
        content["diagnostics"] = {k: _plain(v) for k, v in asdict(mrf.diagnostics).items()}
    with atomic(path) as draft:
        draft.write_text(json.dumps(content, indent=1, allow_nan=False) + "\n", encoding="utf-8")


def read_model(path: str | Path) -> dict[str, Any]:
    """Return the arguments of the model in a JSON file.

    Raises
    ------
    InvalidInputError
        If the file is damaged, not a model, or of another version.
    """
    content = _content(Path(path))
    try:
        values = {name: np.asarray(content[name], dtype=np.float64) for name in ("H", "mean")}
        other = "C" if "C" in content else "h"
        values[other] = np.asarray(content[other], dtype=np.float64)
        return {**values, "names": content["names"], "diagnostics": _diagnostics(content.get("diagnostics"))}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InvalidInputError(f"{path} is a damaged model file ({error!r}); fit and save the model again") from None


def _content(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidInputError(
            f"{path} cannot be read ({error.strerror}); name a file made by graphmrf fit -o or mrf.save"
        ) from None
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise InvalidInputError(f"{path} is a damaged model file ({error}); fit and save the model again") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise InvalidInputError(
            f"{path} is not a model file: it lacks the mark {FORMAT!r}; make one with graphmrf fit -o or mrf.save(path)"
        )
    if content.get("version") != VERSION:
        raise InvalidInputError(
            f"{path} has version {content.get('version')!r} of the model format, this graphmrf reads {VERSION}; "
            "fit and save the model again, or use the graphmrf that wrote it"
        )
    return content


def _plain(value: Any) -> Any:
    """JSON has no NaN, which stands for 'no standard error' here: it becomes null."""
    if isinstance(value, np.ndarray):
        return [_plain(part) for part in value] if value.ndim else _plain(value.item())
    if isinstance(value, float | np.floating):
        return float(value) if np.isfinite(value) else None
    return list(value) if isinstance(value, tuple) else value


def _diagnostics(content: dict[str, Any] | None) -> Diagnostics | None:
    if content is None:
        return None
    values: dict[str, Any] = {
        k: np.array(content[k], dtype=np.float64) for k in ("H_std", "C_std") if content.get(k) is not None
    }
    known = {field.name for field in fields(Diagnostics)} - {"H_std", "C_std", "flags"}
    values |= {k: content[k] for k in known}
    return Diagnostics(**values, flags=tuple(content.get("flags", ())))
