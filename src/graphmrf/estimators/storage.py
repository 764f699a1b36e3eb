"""Fitted models as files: an archive of arrays and one table in JSON; reading one runs no code that the file names.

A file is a ZIP archive, which has a checksum of every entry: ``model.json``, its SHA-256, and ``arrays/K.npy`` for
every array, without pickles. The table has plain values, places of arrays, and objects by their class, which must be
one of graphmrf. Cached properties are not stored. An object with ``stored`` is stored as the arguments of ``rebuilt``:
a fitted field as its data and its hyper-parameters, so that files are small.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import zipfile
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import sparse

from graphmrf.caching import cached_property
from graphmrf.errors import InvalidInputError
from graphmrf.files import atomic, check_place, check_readable
from graphmrf.graph import Graph

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

FORMAT = 1  # a file of a newer one is refused
_TABLE, _DIGEST = "model.json", "model.sha256"
_PACKAGES = tuple(f"graphmrf.{name}" for name in ("estimators", "field", "graph", "model", "networks", "selection"))


class Storable:
    """An estimator that can be saved to a file."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a file, which `graphmrf.load` reads.

        The file contains the data and the fitted parameters as arrays and plain values; nothing in it is executed when
        it is read. It is written completely or not at all.

        `path`: where to write; by convention with the suffix ``.gmrf``. Raises InvalidInputError if the model has parts
        of other packages, such as a base of scikit-learn, or the file cannot be written.
        """
        place, writer = check_place(path), _Writer()
        head = {"format": FORMAT, "graphmrf": version("graphmrf"), "model": writer.encoded(self)}
        table = head | {"objects": writer.objects, "arrays": len(writer.arrays)}
        text = json.dumps(table, allow_nan=False).encode()
        with atomic(place) as draft, zipfile.ZipFile(draft, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            archive.writestr(_TABLE, text)
            archive.writestr(_DIGEST, hashlib.sha256(text).hexdigest())
            for k, array in enumerate(writer.arrays):
                with archive.open(f"arrays/{k}.npy", "w", force_zip64=True) as stream:
                    np.lib.format.write_array(stream, array, allow_pickle=False)


def load(path: str | os.PathLike[str]) -> Any:
    """Return the fitted model in a file that `save` wrote.

    Loading executes nothing in the file, so a file from an untrusted source is as safe as a table of numbers.
    Predictions are those of the saved model, up to rounding.

    Raises
    ------
    InvalidInputError
        If the file is not a model, damaged, or of a newer version of the format.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import graphmrf as gm
    >>> path = gm.Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 4])
    >>> model = gm.LabelPropagation(alpha=0.9).fit(path, None, np.array([1.0, 2.0, np.nan, 4.0, np.nan]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(f"{folder}/model.gmrf")
    ...     again = gm.load(f"{folder}/model.gmrf")
    >>> again.predict().round(2)
    array([1.  , 2.  , 2.93, 4.  , 3.39])
    """
    place = check_readable(path)
    if not zipfile.is_zipfile(place):
        raise _not_a_model(place)
    try:
        with zipfile.ZipFile(place) as archive:
            return _read(archive, str(place))
    except (InvalidInputError, MemoryError):
        raise
    except Exception as error:  # a damaged archive fails in as many ways as it has parts
        raise InvalidInputError(
            f"{place} is damaged ({error}); save the model again, or use a copy of the file"
        ) from error


def _not_a_model(place: object) -> InvalidInputError:
    return InvalidInputError(f"{place} is not a graphmrf model; pass a file written by model.save")


def _read(archive: zipfile.ZipFile, place: str) -> Any:
    if not {_TABLE, _DIGEST} <= set(archive.namelist()):
        raise _not_a_model(place)
    text = archive.read(_TABLE)
    table = json.loads(text)
    if table["format"] > FORMAT:
        raise InvalidInputError(
            f"{place} was written by graphmrf {table['graphmrf']}, in a newer format than this version reads "
            f"({table['format']}, {FORMAT} here); upgrade graphmrf, or save the model with this version"
        )
    if hashlib.sha256(text).hexdigest() != archive.read(_DIGEST).decode():
        raise ValueError("its contents were changed")
    arrays = (io.BytesIO(archive.read(f"arrays/{k}.npy")) for k in range(table["arrays"]))
    reader = _Reader(table["objects"], [np.lib.format.read_array(each, allow_pickle=False) for each in arrays])
    return reader.decoded(table["model"])


class _Kind(NamedTuple):
    """A kind of value that JSON lacks: its type, its encoding in simpler parts, and how to rebuild it."""

    type: Any
    parts: Callable[[Any], Any]
    made: Callable[[Any], Any]


def _cells(parts: Any) -> Any:
    values, shape = parts
    found = np.empty(len(values), dtype=object)
    found[:] = values
    return found.reshape(shape)


def _plain_index(index: pd.Index) -> list[Any]:
    values = index.to_numpy()
    return [values if values.dtype.kind in "biuf" else index.astype(object).to_numpy(), index.name]


def _sparse_rows(X: Any) -> list[Any]:
    rows: Any = sparse.csr_array(X)
    return [rows.data, rows.indices, rows.indptr, rows.shape]


# The first kind that fits is used. Numbers that are not finite are the only floats among them.
_KINDS = {
    "float": _Kind(float, repr, float),
    "tuple": _Kind(tuple, list, tuple),
    "dict": _Kind(dict, lambda own: [list(pair) for pair in own.items()], dict),
    "cells": _Kind(np.ndarray, lambda own: [own.ravel().tolist(), own.shape], _cells),
    "multi": _Kind(
        pd.MultiIndex,
        lambda own: [list(own.levels), [np.asarray(code) for code in own.codes], list(own.names)],
        lambda parts: pd.MultiIndex(levels=parts[0], codes=parts[1], names=parts[2]),
    ),
    "range": _Kind(
        pd.RangeIndex,
        lambda own: [[own.start, own.stop, own.step], own.name],
        lambda parts: pd.RangeIndex(range(*parts[0]), name=parts[1]),
    ),
    "periods": _Kind(
        pd.PeriodIndex,
        lambda own: [own.asi8, own.freqstr, own.name],
        lambda parts: pd.PeriodIndex.from_ordinals(parts[0], freq=parts[1], name=parts[2]),  # type: ignore[attr-defined]
    ),
    "times": _Kind(
        pd.DatetimeIndex | pd.TimedeltaIndex,
        lambda own: [own.asi8, str(own.dtype), own.name],
        lambda parts: pd.Index(parts[0], name=parts[2]).astype(parts[1]),
    ),
    "index": _Kind(
        pd.Index, _plain_index, lambda parts: pd.Index(parts[0], name=parts[1], tupleize_cols=False).infer_objects()
    ),
    "series": _Kind(
        pd.Series,
        lambda own: [own.to_numpy(), own.index, own.name],
        lambda parts: pd.Series(parts[0], index=parts[1], name=parts[2]),
    ),
    "frame": _Kind(
        pd.DataFrame,
        lambda own: [[own.iloc[:, k].to_numpy() for k in range(own.shape[1])], own.index, own.columns],
        lambda parts: pd.DataFrame(dict(enumerate(parts[0])), index=parts[1]).set_axis(parts[2], axis=1),
    ),
    "sparse": _Kind(
        sparse.sparray | sparse.spmatrix,
        _sparse_rows,
        lambda parts: sparse.csr_array(tuple(parts[:3]), shape=parts[3]),
    ),
    "time": _Kind(pd.Timestamp, lambda own: own.isoformat(), pd.Timestamp),
}


@dataclass
class _Writer:
    """Arrays and objects of a model, and their places; equal arrays have one."""

    arrays: list[Any] = field(default_factory=list)
    objects: list[Any] = field(default_factory=list)
    _places: dict[Any, int] = field(default_factory=dict)
    _alive: list[Any] = field(default_factory=list)  # objects whose identity is a place: no other may take it

    def encoded(self, value: Any) -> Any:
        """Return a value as JSON has it."""
        value = value.item() if isinstance(value, np.generic) and value.dtype.kind in "biufU" else value
        if value is None or isinstance(value, bool | int | str) or (isinstance(value, float) and math.isfinite(value)):
            return value
        if isinstance(value, list):
            return [self.encoded(each) for each in value]
        if isinstance(value, np.ndarray) and value.dtype.kind != "O":
            return {"array": self._array(value)}
        if _is_ours(type(value)):
            return {"object": self._object(value)}
        for name, kind in _KINDS.items():
            if isinstance(value, kind.type):
                return {name: self.encoded(kind.parts(value))}
        what = f"{type(value).__module__}.{type(value).__qualname__}"
        raise InvalidInputError(
            f"models are saved without objects of other packages, which only code could load again, got {what}; "
            "save that object separately, and pass its predictions to ResidualPropagation(predictions=...)"
        )

    def _array(self, value: Any) -> int:
        key = f"{value.dtype.str}{value.shape}", hashlib.sha256(np.ascontiguousarray(value).tobytes()).digest()
        if key not in self._places:
            self._places[key] = len(self.arrays)
            self.arrays.append(value)
        return self._places[key]

    def _object(self, value: Any) -> int:
        if id(value) not in self._places:
            self._places[id(value)], state = len(self.objects), _state(value)
            self._alive += [value, state]
            record: dict[str, Any] = {"class": f"{type(value).__module__}.{type(value).__qualname__}"}
            self.objects.append(record)  # before its attributes, which may lead back to it
            record["state"] = {name: self.encoded(each) for name, each in state.items()}
        return self._places[id(value)]


@dataclass
class _Reader:
    """Values from JSON, and the objects among them, each made once."""

    objects: list[Any]
    arrays: list[Any]
    _made: dict[int, Any] = field(default_factory=dict)

    def decoded(self, value: Any) -> Any:
        """Return a value from what JSON has of it."""
        if isinstance(value, list):
            return [self.decoded(each) for each in value]
        if not isinstance(value, dict):
            return value
        ((kind, content),) = value.items()
        if kind == "array":
            return self.arrays[content].copy()
        return self._object(content) if kind == "object" else _KINDS[kind].made(self.decoded(content))

    def _object(self, place: int) -> Any:
        if place in self._made:
            return self._made[place]
        made, state = _class(self.objects[place]["class"]), self.objects[place]["state"]
        if hasattr(made, "rebuilt"):
            self._made[place] = made.rebuilt(**{name: self.decoded(each) for name, each in state.items()})
            return self._made[place]
        found = self._made[place] = object.__new__(made)  # before its attributes, which may lead back to it
        state = {name: self.decoded(each) for name, each in state.items()}
        found.__setstate__(state) if hasattr(found, "__setstate__") else vars(found).update(state)
        return found


def _is_ours(made: type) -> bool:
    return made.__module__.startswith(_PACKAGES)


def _class(name: str) -> Any:
    """Return the class of a name in a file, if it is one of a model."""
    module, _, own = name.rpartition(".")
    found = getattr(import_module(module), own, None) if module.startswith(_PACKAGES) else None
    if not isinstance(found, type) or not _is_ours(found):
        raise ValueError(f"{name} is not part of a model")
    return found


def _state(value: Any) -> dict[str, Any]:
    """Return what is stored of an object."""
    if hasattr(value, "stored"):
        stored: dict[str, Any] = value.stored()
        return stored
    if isinstance(value, Graph) and value.is_remote:
        raise InvalidInputError(
            "a model is saved with its graph, but its edges are on the workers of a cluster; save the predictions"
        )
    members = (member for base in type(value).__mro__ for member in vars(base).items())
    cached = {name for name, each in members if isinstance(each, cached_property)}
    state = {name: each for name, each in (value.__getstate__() or {}).items() if name not in cached}
    if isinstance(value, Graph) and not isinstance(value.engine_name, str):
        state["engine_name"] = "auto"
    return state
