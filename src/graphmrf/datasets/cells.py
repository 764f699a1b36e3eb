"""Cells of a file as values: numbers, yes/no, text; and ids in one canonical form."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from graphmrf._typing import Floats

MISSING = frozenset({"", "na", "n/a", "#n/a", "nan", "-nan", "null", "none", "<na>"})
_CODE = r"^[+-]?0[0-9]"
_INTEGER = r"^(0|-?[1-9][0-9]{0,17})$"


def is_text(column: pa.ChunkedArray) -> bool:
    """Return whether a column holds strings."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def values(column: pa.ChunkedArray, *, typed: bool) -> pd.Series:
    """Return a column as pandas values, with what its cells say.

    Strings that are all numbers become numbers, all true/false become booleans, and what reads as missing (an empty
    cell, NA, NaN, null, none in any case) becomes missing. Numbers written with leading zeros are codes and stay text.

    Parameters
    ----------
    column : pyarrow.ChunkedArray
        The cells.
    typed : bool
        The file itself said the types (Parquet): strings stay text.
    """
    if not is_text(column):
        return _plain(column)
    text = blanks_to_null(column)
    if not typed:
        for convert in (_integers, _numbers, _booleans):
            converted = convert(text)
            if converted is not None:
                return converted
    return _pandas(text)


def _plain(column: pa.ChunkedArray) -> pd.Series:
    if pa.types.is_null(column.type) or pa.types.is_decimal(column.type):
        column = column.cast(pa.float64())
    if pa.types.is_boolean(column.type) and column.null_count:
        column = column.cast(pa.int8()).cast(pa.float64())
    return _pandas(column)


def _pandas(column: pa.ChunkedArray) -> pd.Series:
    series: pd.Series = column.to_pandas()
    return series


def strings(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a text column as plain strings without surrounding blanks."""
    return pc.utf8_trim_whitespace(column.cast(pa.string()))


def blanks_to_null(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a text column, trimmed, with null where a cell reads as missing."""
    text = strings(column)
    missing = pc.is_in(pc.utf8_lower(text), value_set=pa.array(sorted(MISSING)))
    return pc.if_else(missing, pa.scalar(None, pa.string()), text)


def _integers(text: pa.ChunkedArray) -> pd.Series | None:
    if text.null_count or not pc.all(pc.match_substring_regex(text, _INTEGER), min_count=0).as_py():
        return None
    return _pandas(text.cast(pa.int64()))


def _numbers(text: pa.ChunkedArray) -> pd.Series | None:
    if pc.any(pc.match_substring_regex(text, _CODE), min_count=0).as_py():
        return None
    try:
        return _pandas(text.cast(pa.float64()))
    except pa.ArrowInvalid:
        return None


def _booleans(text: pa.ChunkedArray) -> pd.Series | None:
    lower = pc.utf8_lower(text)
    if not pc.all(pc.is_in(lower.drop_null(), value_set=pa.array(["true", "false"])), min_count=0).as_py():
        return None
    return _plain(pc.equal(lower, "true"))


def as_numbers(series: pd.Series) -> tuple[Floats, int | None]:
    """Return a column as float64 with NaN where it is missing, and the first record that is not a number (or None).

    Examples
    --------
    >>> import pandas as pd
    >>> as_numbers(pd.Series(["1.5", None, "abc"]))
    (array([1.5, nan, nan]), 2)
    """
    numbers = pd.to_numeric(series, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    stray = np.flatnonzero(np.isinf(numbers) | (np.isnan(numbers) & series.notna().to_numpy()))
    return numbers, int(stray[0]) if stray.size else None


def canonical(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return ids in the form in which they are compared; null where an id is missing.

    Text is taken as it stands, without surrounding blanks (``"00123"`` is not ``"123"``); an integer, and a float that
    is a whole number, becomes its decimal text, so that ``7`` in one file is ``"7"`` in another.
    """
    if is_text(column):
        text = strings(column)
        return pc.if_else(pc.equal(text, ""), pa.scalar(None, pa.string()), text)
    if pa.types.is_floating(column.type):
        column = pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)
        whole = pc.all(pc.equal(column, pc.floor(column)), min_count=0).as_py()
        column = column.cast(pa.int64()) if whole else column
    return column.cast(pa.string())


def ids(column: pa.ChunkedArray, *, typed: bool) -> pd.Series:
    """Return ids as users will see them again: integers when every one of them is written as one, else text."""
    if not is_text(column):
        return _pandas(column)
    integers = None if typed else _integers(strings(column))
    return _pandas(canonical(column)) if integers is None else integers
