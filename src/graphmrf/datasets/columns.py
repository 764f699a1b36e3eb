"""Columns of a table as numbers: the feature matrix X, and the attributes A of the generative model."""

import logging
from collections.abc import Collection
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pandas as pd
from pandas.api import types

from graphmrf.datasets.attributed_graph import AttributedGraph
from graphmrf.datasets.dialect import is_formatted_number
from graphmrf.datasets.edge_files import name_words
from graphmrf.datasets.table_files import listing
from graphmrf.errors import InvalidInputError
from graphmrf.text import count, did_you_mean

_PROGRESS = logging.getLogger("graphmrf.progress")

_Prepared: TypeAlias = tuple[dict[str, pd.Series], str, str]
"""Result of one column: columns of X, and the group and text of its note."""
# Last words of names of columns with codes.
CODES = frozenset(
    {
        *("id", "ids", "uid", "gid", "fid", "oid", "objectid", "uuid", "guid", "code", "codes"),
        *("fips", "geoid", "geocode", "zip", "zipcode", "zcta", "postcode", "postalcode", "plz"),
        *("ags", "nuts", "lau", "gss", "cbsa"),
    }
)
_COUNTED = frozenset({"year", "month", "week", "day", "hour", "time", "date", "rank", "order", "position", "age"})
_DATE = (
    r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}([T ]\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:?\d{2})?)?"
    r"|\d{1,2}[-/.]\d{1,2}[-/.](\d{4}|\d{2})( \d{1,2}:\d{2}(:\d{2})?)?"
    r"|\d{1,2}:\d{2}(:\d{2})?"
)
FILLED = "filled missing cells with the column mean"
# Why columns are ignored.
_IGNORED = {
    "constant": "a single value",
    "unlearnable": "a single value in the rows with an outcome",
    "unasked": "no values in the rows to be predicted",
    "dates": "dates; write days or years as numbers to use them",
    "other": "neither numeric nor text",
    "text": "not numeric",
    "code": "codes, by the name or the values; rename to use them",
    "ambiguous": "ambiguous numbers; write 1080.5 to use them",
    "names": "text with too many different values",
}


@dataclass(frozen=True, eq=False)
class Features:
    """A feature matrix, without missing cells, and what was done to the columns it came from."""

    X: pd.DataFrame  # (n, p): float32 where the table has that, else float64; `p` may be 0
    notes: tuple[str, ...]  # one line for each kind of change
    unfilled: pd.DataFrame  # (n, p): the same, NaN where a number was missing
    names: tuple[str, ...] = ()  # the columns of the table that became features


def features(
    table: AttributedGraph,
    *,
    targets: Collection[str] = (),
    ignore: Collection[str] = (),
    max_levels: int = 50,
    rare: int = 10,
) -> Features:
    """Return the features of every node: all columns but the id, the targets and those to ignore.

    Numbers stay, with missing cells filled by the mean of the column; true/false becomes 0/1; a text column becomes
    one 0/1 column per level but the first (``region=north``); missing is a level of its own, and levels of few
    nodes are pooled as `other`. Ignored are columns with a single value, at all nodes or at those with an outcome;
    dates; columns that are neither numbers nor text; numbers in more than one format; and what identifies nodes: text
    with many levels or fewer than two nodes per level, row numbers, copies of the id, and whole numbers in a column
    whose name suggests codes (`county_fips`, `GEOID`, `zip`). With several targets, none is a feature of another.

    `table`: where the columns are. `targets`, `ignore`: columns left out. `max_levels`: text columns with more levels
    are dropped; the default is the number of states of the U.S. `rare`: levels of fewer nodes (or fewer than 2 % of the
    nodes, in small tables) are pooled: coefficients fitted to so few are unstable. Raises InvalidInputError: a column
    to leave out that is not there, an infinite cell, or a word in a column of numbers.
    """
    _check_present(table, ignore)
    left_out = {*table.keys, *targets, *ignore}
    names = [name for name in table.frame.columns if name not in left_out]
    check_agreement(table, names)
    _PROGRESS.info("features from %d columns", len(names))
    prepared = [_prepare(table, name, max_levels, rare) for name in names]
    prepared += _unlearnable(table, targets, prepared)
    columns = {name: values for made, _, _ in prepared for name, values in made.items()}
    if len(columns) < sum(len(made) for made, _, _ in prepared):
        raise InvalidInputError("two features would have the same name after one-hot encoding; rename a column")
    unfilled = _by_id(pd.DataFrame(columns, index=table.frame.index), table)
    used = [str(name) for name, (made, _, _) in zip(names, prepared, strict=False) if made]  # then come notes
    return Features(_filled(unfilled), _messages(prepared), unfilled, tuple(used))


def check_agreement(table: AttributedGraph, names: Collection[str]) -> None:
    """Raise where a column that describes nodes differs between the rows of a node."""
    if table.rows is None:
        return
    for name in names:
        cells = table.rows[name]
        different = np.asarray(cells.groupby(level=0).nunique()) > 1
        if different.any():
            node = int(np.unique(table.rows.index)[np.argmax(different)])
            rows = np.flatnonzero((table.rows.index == node) & cells.notna().to_numpy())
            other = next(row for row in rows if cells.iloc[row] != cells.iloc[rows[0]])
            raise InvalidInputError(
                f"{table.row_place(int(other))}, column {name}: '{cells.iloc[other]}' of node "
                f"'{table.labels[node]}', which has '{cells.iloc[rows[0]]}' in another row; a feature must be the same "
                f"in all rows of a node: give its mean, or leave it out with --ignore {name}"
            )


def _unlearnable(table: AttributedGraph, targets: Collection[str], prepared: list[_Prepared]) -> list[_Prepared]:
    """Remove columns that cannot help, and return the notes on them.

    The effect of a column that is constant among nodes with an outcome cannot be estimated. A column that is empty at
    all nodes to predict cannot help there; if it follows from the outcome, it would make held-out predictions perfect.
    """
    outcomes = table.frame[[*targets]]
    labelled, asked = outcomes.notna().any(axis=1), outcomes.isna().any(axis=1)
    if not labelled.any():
        return []
    messages: list[_Prepared] = []
    for place, (made, *_) in enumerate(prepared):
        for name, values in list(made.items()):
            if asked.any() and values[asked].isna().all():
                messages.append(({}, "unasked", f"'{name}'"))
            elif values[labelled].nunique() <= 1:
                messages.append(({}, "unlearnable", f"'{name}'"))
            else:
                continue
            del made[name]
            prepared[place] = prepared[place] if made else (made, "", "")  # no other note on it
    return messages


def _filled(frame: pd.DataFrame) -> pd.DataFrame:
    """Return columns with their mean in missing cells; the same table where none is missing."""
    holes = [name for name in frame.columns if frame[name].hasnans]
    return frame.fillna(frame[holes].astype(np.float64).mean()) if holes else frame


def _check_present(table: AttributedGraph, ignore: Collection[str]) -> None:
    unknown = [name for name in ignore if name not in table.frame.columns]
    if unknown:
        near, known = did_you_mean(unknown[0], table.frame.columns), listing(table.frame.columns)
        raise InvalidInputError(
            f"no column {listing(unknown)} to ignore in {table.path or 'the table'}; {near}it has {known}"
        )


def _messages(prepared: list[_Prepared]) -> tuple[str, ...]:
    """Return one line for each kind of change."""
    groups: dict[str, list[str]] = {}
    for _, group, text in prepared:
        if group:
            groups.setdefault(group, []).append(text)
    return tuple(
        f"ignored {', '.join(texts)}: {_IGNORED[group]}" if group in _IGNORED else f"{group}: {', '.join(texts)}"
        for group, texts in groups.items()
    )


def _prepare(table: AttributedGraph, name: str, max_levels: int, rare: int) -> _Prepared:
    series = table.frame[name]
    if is_text(series) and is_dates(series):
        return {}, "dates", f"'{name}'"
    number = types.is_bool_dtype(series) or types.is_numeric_dtype(series)
    if not (number or is_text(series) or isinstance(series.dtype, pd.CategoricalDtype)):
        return {}, "other", f"'{name}' ({series.dtype})"
    # the first rows mostly show whether all cells are the same; counting different ones may take seconds
    if all(part.nunique(dropna=False) <= 1 for part in (series.head(1000), series)):
        return {}, "constant", f"'{name}'"
    if number and _names_nodes(table, name):
        return {}, "code", f"'{name}'"
    return _numbers(table, name) if number else _levels(table, name, max_levels, rare)


def is_text(series: pd.Series) -> bool:
    """Return whether a column contains text; empty cells, which make it one of objects before pandas 3, are ignored."""
    return bool(types.is_string_dtype(series.dropna()))


def is_dates(series: pd.Series) -> bool:
    """Return whether a column contains dates or times, as such or as text."""
    if not is_text(series):
        return bool(types.is_datetime64_any_dtype(series))
    text = series.dropna().astype(str)
    return len(text) > 0 and bool(text.str.fullmatch(_DATE).all())


def _names_nodes(table: AttributedGraph, name: str) -> bool:
    """Return whether whole numbers are codes by their name, a copy of the ids, or the numbers of the rows."""
    series = table.frame[name]
    if types.is_bool_dtype(series) or not all(_is_whole(part) for part in (series.head(1000), series)):
        return False
    words = name_words(str(name))
    if words and words[-1] in CODES:
        return True
    # Ten: shorter runs of whole numbers are often the data of small tables.
    if len(series) <= 10:
        return False
    known = series.dropna().to_numpy(dtype=np.float64)
    copied = types.is_numeric_dtype(table.frame[table.id]) and series.equals(table.frame[table.id].astype(series.dtype))
    counted = len(known) == len(series) and _COUNTED.isdisjoint(words) and bool((np.diff(known) == 1).all())
    return copied or counted


def _is_whole(series: pd.Series) -> bool:
    known = series.dropna().to_numpy(dtype=np.float64)
    return bool((known == np.floor(known)).all())


def _numbers(table: AttributedGraph, name: str) -> _Prepared:
    kind = np.float32 if table.frame[name].dtype == np.float32 else np.float64
    values = pd.Series(table.outcome(name).astype(kind, copy=False), index=table.frame.index)
    missing = int(values.isna().sum())
    if not missing:
        return {name: values}, "", ""
    if values.nunique() == 1:
        return {}, "constant", f"'{name}'"
    return {name: values}, FILLED, f"'{name}' ({count(missing, 'cell')})"


def _levels(table: AttributedGraph, name: str, max_levels: int, rare: int) -> _Prepared:
    text = table.frame[name].astype(object).fillna("missing").astype(str)
    n_values = text.nunique()
    if is_formatted_number(table.frame[name]):
        return ({}, "ambiguous", f"'{name}' (such as {text.iloc[0]})")
    if n_values > min(max_levels, len(text) / 2):
        _check_words(table, name)
        return {}, "names", f"'{name}' ({n_values} values)"
    # rare levels are pooled: coefficients fitted to few nodes are unstable
    text = text.mask(text.map(text.value_counts()) < min(rare, len(text) // 50), "other")
    levels = sorted(text.unique())
    columns = {f"{name}={level}": (text == level).astype(np.float64) for level in levels[1:]}
    empty = ", one for empty cells" if table.frame[name].isna().any() and "missing" in levels else ""
    return columns, "one-hot encoded", f"'{name}' ({len(levels)} levels{empty})"


def _check_words(table: AttributedGraph, name: str) -> None:
    """Raise where most cells of a column of text are numbers: a stray word must not turn all of them into text.

    Digits after a leading zero are a code (01004, 2A004), not a number.
    """
    # Half: with a quarter, house numbers such as 12 B are an error; with all, one stray word drops the column.
    text = table.frame[name].dropna().astype(str)
    if pd.to_numeric(text, errors="coerce").notna().mean() <= 0.5 or text.str.match(r"0\d").any():
        return
    try:
        table.outcome(name)
    except InvalidInputError as error:
        raise InvalidInputError(f"{error}, or leave the column out with --ignore {name}") from error


@dataclass(frozen=True, eq=False)
class Attributes:
    """Attributes of every node, NaN where missing, and notes on ignored columns."""

    A: pd.DataFrame  # (n, q): all float64
    notes: tuple[str, ...]  # one line for each kind of ignored column


def attributes(table: AttributedGraph, *, named: Collection[str] = (), ignore: Collection[str] = ()) -> Attributes:
    """Return the columns named, or else all numeric columns that vary, except the id and those to ignore.

    Raises InvalidInputError if a column does not exist or, being named, is not numeric; or if nothing is left.
    """
    for name in ignore:
        table.require(name)
    if named:
        wanted = [name for name in dict.fromkeys(named) if name not in set(ignore)]
        return Attributes(_numeric_frame(table, wanted), ())
    candidates = [name for name in table.frame.columns if name not in {*table.keys, *ignore}]
    numeric = [name for name in candidates if pd.api.types.is_numeric_dtype(table.frame[name])]
    varying = [name for name in numeric if table.frame[name].nunique() > 1]
    if not varying:
        raise InvalidInputError(f"{table.path or 'the table'} has no numeric column that varies; the model needs one")
    prepared: list[_Prepared] = [
        ({}, "constant" if name in numeric else "text", f"'{name}'") for name in candidates if name not in varying
    ]
    return Attributes(_numeric_frame(table, varying), _messages(prepared))


def _numeric_frame(table: AttributedGraph, names: list[str]) -> pd.DataFrame:
    columns = {name: table.outcome(name) for name in names}
    return _by_id(pd.DataFrame(columns, index=table.frame.index), table)


def _by_id(frame: pd.DataFrame, table: AttributedGraph) -> pd.DataFrame:
    """Return rows in node order under the ids of the nodes, so that row numbers are not mistaken for ids."""
    return frame if table.graph.ids is None else frame.set_axis(table.graph.ids)
