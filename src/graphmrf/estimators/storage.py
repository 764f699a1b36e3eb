"""Fitted models as files: an archive of arrays and one table in JSON; reading one runs no code that the file names.

A file is a ZIP archive with ``model.json`` and an entry ``arrays/K.npy`` for every array, without pickles. The
table has plain values, places of arrays with their SHA-256, and objects by the names of classes that are registered
here. Values that are computed when first asked for are not stored, and a fitted field is stored as its data and what
its search found (`FieldOutcome.stored`), so that files are small.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import zipfile
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy import sparse

from graphmrf.errors import InvalidInputError
from graphmrf.files import atomic, check_place, check_readable
from graphmrf.kept import cached_property

if TYPE_CHECKING:
    import os
    from collections.abc import Callable
    from types import ModuleType

    from numpy.typing import NDArray

    AnyArray = NDArray[Any]

FORMAT = 1
"""Version of the format; a file of a newer one is refused."""

_TABLE, _DIGEST = "model.json", "model.sha256"
_REMEDY = "save the model again, or use a copy of the file"


@dataclass(frozen=True)
class _Kind:
    """A class whose objects can be stored: under what name, what is stored of them, and how they are rebuilt."""

    name: str
    stored: Callable[[Any], dict[str, Any]]
    rebuilt: Callable[..., Any] | None = None


_KINDS: dict[type, _Kind] = {}
_CLASSES: dict[str, type] = {}


def register_classes_of(module: ModuleType) -> None:
    """Let objects of a module's classes be stored: all attributes but those computed when first asked for."""
    for name, each in vars(module).items():
        if isinstance(each, type) and each.__module__ == module.__name__:
            _add(each, _Kind(f"{module.__name__.rpartition('.')[2]}.{name}", _attributes))


def register_rebuilt(each: type, stored: Callable[[Any], dict[str, Any]], rebuilt: Callable[..., Any]) -> None:
    """Let objects of a class be stored as the arguments of a function that makes them again."""
    _add(each, _Kind(each.__name__, stored, rebuilt))


def _add(each: type, kind: _Kind) -> None:
    _KINDS[each], _CLASSES[kind.name] = kind, each


def _attributes(value: Any) -> dict[str, Any]:
    lazy = {name for base in type(value).__mro__ for name, each in vars(base).items() if _is_lazy(each)}
    return {name: each for name, each in vars(value).items() if name not in lazy}


def _is_lazy(attribute: Any) -> bool:
    return isinstance(attribute, cached_property)


class Storable:
    """An estimator that can be saved to a file."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a file, which `graphmrf.load` reads.

        The file has the data and what the fit learned: arrays and plain values, nothing that is executed when it is
        read. It appears whole or not at all.

        `path`: where to write; by convention with the suffix ``.gmrf``. Raises InvalidInputError if the model has parts
        of other packages, such as a base of scikit-learn, or the file cannot be written.
        """
        write_model(self, path)


def write_model(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a model to a file."""
    place, writer = check_place(path), _Writer()
    head = {"format": FORMAT, "graphmrf": version("graphmrf"), "model": writer.encoded(model)}
    table = head | {"objects": writer.objects, "arrays": [_digest(each) for each in writer.arrays]}
    text = json.dumps(table, allow_nan=False).encode()
    with atomic(place) as draft, zipfile.ZipFile(draft, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr(_TABLE, text)
        archive.writestr(_DIGEST, hashlib.sha256(text).hexdigest())
        for k, array in enumerate(writer.arrays):
            with archive.open(_entry(k), "w", force_zip64=True) as stream:
                np.lib.format.write_array(stream, array, allow_pickle=False)


def read_model(path: str | os.PathLike[str]) -> Any:
    """Return the model in a file.

    Raises InvalidInputError if the file is no model, damaged, or of a newer version of the format.
    """
    place = check_readable(path)
    if not zipfile.is_zipfile(place):
        raise InvalidInputError(f"{place} is no model of graphmrf; give a file that model.save wrote")
    try:
        with zipfile.ZipFile(place) as archive:
            return _read(archive, str(place))
    except InvalidInputError:
        raise
    except MemoryError:
        raise
    except Exception as error:  # a damaged archive fails in as many ways as it has parts
        raise InvalidInputError(f"{place} is damaged ({error}); {_REMEDY}") from error


def _read(archive: zipfile.ZipFile, place: str) -> Any:
    if not {_TABLE, _DIGEST} <= set(archive.namelist()):
        raise InvalidInputError(f"{place} is no model of graphmrf; give a file that model.save wrote")
    text = archive.read(_TABLE)
    table = json.loads(text)
    if table["format"] > FORMAT:
        raise InvalidInputError(
            f"{place} was written by graphmrf {table['graphmrf']}, in a newer format than this version reads "
            f"({table['format']}, {FORMAT} here); upgrade graphmrf, or save the model with this version"
        )
    if hashlib.sha256(text).hexdigest() != archive.read(_DIGEST).decode():
        raise InvalidInputError(f"{place} is damaged (its table was changed); {_REMEDY}")
    return _Reader(table["objects"], [_array(archive, k, digest) for k, digest in enumerate(table["arrays"])]).decoded(
        table["model"]
    )


def _array(archive: zipfile.ZipFile, k: int, digest: str) -> AnyArray:
    found: AnyArray = np.lib.format.read_array(io.BytesIO(archive.read(_entry(k))), allow_pickle=False)
    if _digest(found) != digest:
        raise ValueError(f"array {k} was changed")
    return found


def _entry(k: int) -> str:
    return f"arrays/{k}.npy"


def _digest(array: AnyArray) -> str:
    head = f"{array.dtype.str}{array.shape}".encode()
    return hashlib.sha256(head + np.ascontiguousarray(array).tobytes()).hexdigest()


@dataclass
class _Writer:
    """Arrays and objects of a model, and their places."""

    arrays: list[AnyArray] = field(default_factory=list)
    objects: list[Any] = field(default_factory=list)
    _places: dict[Any, int] = field(default_factory=dict)
    _alive: list[Any] = field(default_factory=list)
    """Objects whose identity is a place: no other may take it."""

    def encoded(self, value: Any) -> Any:
        """Return a value as JSON has it."""
        value = value.item() if isinstance(value, np.generic) and value.dtype.kind in "biufU" else value
        if value is None or isinstance(value, bool | int | str):
            return value
        if isinstance(value, float):
            return value if math.isfinite(value) else {"float": repr(value)}
        if isinstance(value, list | tuple | dict):
            return self._container(value)
        if type(value) in _KINDS:
            return {"object": self._object(value)}
        return self._table(value)

    def _container(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {"dict": [[self.encoded(k), self.encoded(each)] for k, each in value.items()]}
        return {"list" if isinstance(value, list) else "tuple": [self.encoded(each) for each in value]}

    def _object(self, value: Any) -> int:
        if id(value) not in self._places:
            self._places[id(value)] = len(self.objects)
            self._alive.append(value)
            kind, own = _KINDS[type(value)], {"class": _KINDS[type(value)].name}
            self.objects.append(own)
            state = kind.stored(value)
            self._alive.append(state)
            own["state"] = {name: self.encoded(each) for name, each in state.items()}  # type: ignore[assignment]
        return self._places[id(value)]

    def _table(self, value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return self._array(value)
        if isinstance(value, pd.Index):
            return {"index": _index_parts(value, self.encoded)}
        if isinstance(value, pd.Series):
            parts = value.array if value.dtype.kind == "M" else value.to_numpy()
            return {"series": [self._column(parts), self.encoded(value.index), self.encoded(value.name)]}
        if isinstance(value, pd.DataFrame):
            columns = [self._column(value.iloc[:, k].to_numpy()) for k in range(value.shape[1])]
            return {"frame": [columns, self.encoded(value.index), self.encoded(value.columns)]}
        if sparse.issparse(value):
            rows: Any = sparse.csr_array(value)  # type: ignore[call-overload]  # any sparse one
            return {"sparse": [self._array(each) for each in (rows.data, rows.indices, rows.indptr)] + [rows.shape]}
        if isinstance(value, pd.Timestamp):
            return {"time": value.isoformat()}
        what = f"{type(value).__module__}.{type(value).__qualname__}"
        raise InvalidInputError(
            f"a model is saved without parts of other packages, which only code could bring back, got {what}; "
            "save that part by its own means, and pass its predictions to ResidualPropagation(predictions=...)"
        )

    def _column(self, values: Any) -> Any:
        return self._array(np.asarray(values))

    def _array(self, value: AnyArray) -> Any:
        if value.dtype.kind == "O":
            return {"objects": [self.encoded(each) for each in value.ravel().tolist()], "shape": list(value.shape)}
        digest = _digest(value)
        if digest not in self._places:
            self._places[digest] = len(self.arrays)
            self.arrays.append(np.ascontiguousarray(value).reshape(value.shape))
        return {"array": self._places[digest]}


def _index_parts(index: pd.Index, encoded: Callable[[Any], Any]) -> Any:
    """Return the kind of an index, what `_INDICES` makes it of, and its names."""
    names = encoded(list(index.names))
    if isinstance(index, pd.MultiIndex):
        parts = [list(index.levels), [np.asarray(code) for code in index.codes]]
        return ["multi", *map(encoded, parts), names]
    if isinstance(index, pd.RangeIndex):
        return ["range", encoded([index.start, index.stop, index.step]), names]
    if isinstance(index, pd.DatetimeIndex):
        zone = None if index.tz is None else str(index.tz)
        return ["dates", encoded(index.tz_convert(None).to_numpy() if zone else index.to_numpy()), zone, names]
    if isinstance(index, pd.PeriodIndex):
        return ["periods", encoded(index.asi8), index.freqstr, names]
    values = index.to_numpy()
    return ["plain", encoded(values if values.dtype.kind in "biuf" else index.astype(object).to_numpy()), names]


@dataclass
class _Reader:
    """Values from JSON, and the objects among them, each made once."""

    objects: list[Any]
    arrays: list[AnyArray]
    _made: dict[int, Any] = field(default_factory=dict)

    def decoded(self, value: Any) -> Any:
        """Return a value from what JSON has of it."""
        if not isinstance(value, dict):
            return value
        kind, content = next(iter(value.items()))
        return getattr(self, f"_{_READS[kind]}")(content, value)

    def _float(self, content: Any, _: Any) -> float:
        return float(content)

    def _list(self, content: Any, _: Any) -> list[Any]:
        return [self.decoded(each) for each in content]

    def _tuple(self, content: Any, _: Any) -> tuple[Any, ...]:
        return tuple(self.decoded(each) for each in content)

    def _dict(self, content: Any, _: Any) -> dict[Any, Any]:
        return {self.decoded(key): self.decoded(each) for key, each in content}

    def _array(self, content: int, _: Any) -> AnyArray:
        return self.arrays[content].copy()

    def _cells(self, content: Any, value: Any) -> AnyArray:
        found = np.empty(len(content), dtype=object)
        found[:] = [self.decoded(each) for each in content]
        return found.reshape(value["shape"])

    def _series(self, content: Any, _: Any) -> pd.Series:
        values, index, name = (self.decoded(each) for each in content)
        return pd.Series(values, index=index, name=name)

    def _frame(self, content: Any, _: Any) -> pd.DataFrame:
        columns, index, names = [self.decoded(each) for each in content[0]], *map(self.decoded, content[1:])
        return pd.DataFrame(dict(enumerate(columns)), index=index).set_axis(names, axis=1)

    def _sparse(self, content: Any, _: Any) -> Any:
        parts: Any = tuple(self.decoded(each) for each in content[:3])
        return sparse.csr_array(parts, shape=tuple(content[3]))

    def _time(self, content: str, _: Any) -> pd.Timestamp:
        return pd.Timestamp(content)

    def _index(self, content: Any, _: Any) -> Any:
        kind, *rest = content
        *parts, names = (self.decoded(each) for each in rest)
        return _INDICES[kind](*parts, names)

    def _object(self, place: int, _: Any) -> Any:
        if place in self._made:
            return self._made[place]
        record = self.objects[place]
        made = _CLASSES[record["class"]]
        rebuilt = _KINDS[made].rebuilt
        if rebuilt is not None:
            self._made[place] = rebuilt(**self._state(record))
            return self._made[place]
        found: Any = object.__new__(made)
        self._made[place] = found  # before its attributes, which may lead back to it
        for name, each in self._state(record).items():
            object.__setattr__(found, name, each)
        return found

    def _state(self, record: Any) -> dict[str, Any]:
        return {name: self.decoded(each) for name, each in record["state"].items()}


def _dates(times: pd.DatetimeIndex, zone: str | None) -> pd.DatetimeIndex:
    return times if zone is None else times.tz_localize("UTC").tz_convert(zone)


_INDICES: dict[str, Any] = {
    "multi": lambda levels, codes, names: pd.MultiIndex(levels=levels, codes=codes, names=names),
    "range": lambda ends, names: pd.RangeIndex(*ends).rename(names[0]),
    "dates": lambda values, zone, names: _dates(pd.DatetimeIndex(values, name=names[0]), zone),
    "periods": lambda values, freq, names: pd.PeriodIndex(
        pd.arrays.PeriodArray(values, pd.PeriodDtype(freq)), name=names[0]
    ),
    "plain": lambda values, names: pd.Index(values, name=names[0], tupleize_cols=False).infer_objects(),
}
"""Makers of an index by its kind."""

_READS = {
    "float": "float",
    "list": "list",
    "tuple": "tuple",
    "dict": "dict",
    "array": "array",
    "objects": "cells",
    "series": "series",
    "frame": "frame",
    "sparse": "sparse",
    "time": "time",
    "index": "index",
    "object": "object",
}
"""Methods of `_Reader` by the kinds of values that are no plain ones."""
