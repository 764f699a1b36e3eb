"""Tables in files: CSV and TSV (also gzipped) and Parquet, by suffix; cells and ids as values; written atomically."""

import contextlib
import csv
import gzip
import io
import os
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TypeAlias, cast

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from graphmrf.errors import InvalidInputError
from graphmrf.files import atomic, check_place, check_readable
from graphmrf.text import count, did_you_mean

PathLike: TypeAlias = str | os.PathLike[str]

DELIMITERS = {".csv": ",", ".tsv": "\t", ".csv.gz": ",", ".tsv.gz": "\t"}
PARQUET = (".parquet", ".pq")
SUFFIXES = (*DELIMITERS, *PARQUET)

_MISSING = frozenset({"", "na", "n/a", "#n/a", "nan", "-nan", "null", "none", "<na>"})
_CODE = r"^[+-]?0[0-9]"
_INTEGER = r"^(0|-?[1-9][0-9]{0,17})$"  # 18 digits: every such number is an int64; one more digit may overflow it
_LISTED = 8
"""Names shown in a message. By eye: eight fit two lines of a terminal; doubled, the remedy after them is lost."""


@dataclass(frozen=True)
class TableFile:
    """One file as it was read: every cell of a text file still a string, Parquet columns with their own types.

    Parameters
    ----------
    path : path
        Where the table came from; names the file in messages.
    columns : dict of pyarrow.ChunkedArray
        Columns in file order, under their names without surrounding blanks.
    notes : tuple of str
        What was left out, one line each.
    """

    path: Path
    columns: dict[str, pa.ChunkedArray]
    notes: tuple[str, ...] = ()

    @property
    def n_rows(self) -> int:
        """Number of records."""
        return len(next(iter(self.columns.values())))

    @property
    def typed(self) -> bool:
        """Whether the file itself says the types of its columns."""
        return suffix_of(self.path) in PARQUET

    def place(self, record: int) -> str:
        """Return the file and the row of a 0-based record: the line of a text file (the header is line 1)."""
        return f"{self.path}, row {row_number(self.path, record)}"

    def values(self, column: str) -> pd.Series:
        """Return a column as pandas values, with what its cells say.

        Strings that are all numbers become numbers, all true/false become booleans, and what reads as missing (an empty
        cell, NA, NaN, null, none in any case) becomes missing. Numbers written with leading zeros are codes and stay
        text, and so do all strings of a file that itself says the types of its columns.
        """
        return _values(self.columns[column], typed=self.typed)

    def ids(self, column: str) -> pd.Series:
        """Return ids as users will see them again: integers when every one of them is written as one, else text."""
        return shown_ids(self.columns[column], typed=self.typed)

    def keys(self, column: str) -> pa.ChunkedArray:
        """Return ids in the form in which they are compared; null where an id is missing.

        Text is taken as it stands, without surrounding blanks (``"00123"`` is not ``"123"``); an integer, and a float
        that is a whole number, becomes its decimal text, so that ``7`` in one file is ``"7"`` in another.
        """
        return _canonical(self.columns[column])

    def require(self, column: str, *, option: str) -> str:
        """Return the name of a column that must be there; `option` is what the user would change."""
        if column not in self.columns:
            raise InvalidInputError(
                f"{self.path} has no column '{column}'; {did_you_mean(column, self.columns)}"
                f"it has {listing(self.columns)}: choose one with {option}"
            )
        return column


def listing(names: Iterable[str]) -> str:
    """Return names for a message, quoted, at most eight of them.

    Examples
    --------
    >>> listing(["u", "v"])
    "'u', 'v'"
    """
    quoted = [f"'{name}'" for name in names]
    return ", ".join(quoted[:_LISTED]) + (f" and {len(quoted) - _LISTED} more" if len(quoted) > _LISTED else "")


def suffix_of(path: PathLike) -> str:
    """Return the known suffix of a table's path, or raise.

    Examples
    --------
    >>> suffix_of("counties/nodes.CSV.gz")
    '.csv.gz'
    """
    name = Path(path).name.lower()
    found = [suffix for suffix in SUFFIXES if name.endswith(suffix)]
    if not found:
        raise InvalidInputError(f"{path}: the suffix says the format, and it must be one of {', '.join(SUFFIXES)}")
    return found[0]


def read_table(path: PathLike) -> TableFile:
    """Return the table in a file, read by its suffix.

    Raises
    ------
    InvalidInputError
        No such file, a directory, an unknown suffix, an empty or damaged file, repeated column names.
    """
    path = check_readable(path)
    reader = _load_parquet if suffix_of(path) in PARQUET else _load_text
    try:
        table = reader(path)
    except (EOFError, zlib.error, gzip.BadGzipFile, pa.ArrowInvalid, UnicodeDecodeError, OSError) as error:
        raise InvalidInputError(_unreadable(path, error)) from error
    return _without_unnamed(path, table)


def _load_parquet(path: Path) -> pa.Table:
    return pa.parquet.ParquetFile(path).read()


def _load_text(path: Path) -> pa.Table:
    # Every cell stays a string, so that ids keep their zeros and a bad cell can be quoted.
    # One thread, because only then does a parse error name its row.
    types = dict.fromkeys(_header(path), pa.string())
    with _open_bytes(path) as stream:
        return pa.csv.read_csv(
            stream,
            read_options=pa.csv.ReadOptions(use_threads=False),
            parse_options=pa.csv.ParseOptions(delimiter=DELIMITERS[suffix_of(path)], newlines_in_values=True),
            convert_options=pa.csv.ConvertOptions(column_types=types, strings_can_be_null=False),
        )


def _header(path: Path) -> list[str]:
    with _open_text(path) as text:
        names = next((cells for cells in csv.reader(text, delimiter=DELIMITERS[suffix_of(path)]) if cells), None)
    if names is None:
        raise InvalidInputError(f"{path} is empty; its first line must name the columns")
    return names


def _open_bytes(path: Path) -> IO[bytes]:
    return cast("IO[bytes]", gzip.open(path, "rb")) if suffix_of(path).endswith(".gz") else path.open("rb")


def _open_text(path: Path) -> io.TextIOWrapper:
    return io.TextIOWrapper(_open_bytes(path), encoding="utf-8-sig", newline="")


def _unreadable(path: Path, error: Exception) -> str:
    message = str(error).removeprefix("CSV parse error: ").splitlines()[0]
    if isinstance(error, UnicodeDecodeError) or "UTF8" in message:
        return f"{path} is not UTF-8 text; save it again in that encoding"
    if row := re.match(r"Row #(\d+): (Expected \d+ columns, got \d+)", message):
        remedy = delimiter_hint(_header(path)) or "quote cells that hold the delimiter"
        return f"{path}, row {row_number(path, int(row[1]) - 2)}: {row[2].lower()}; {remedy}"
    return f"{path} cannot be read as {suffix_of(path)} ({message}); it may be cut short or have the wrong suffix"


def delimiter_hint(names: Sequence[str]) -> str:
    """Return what to do about a header whose only name holds another delimiter; else nothing.

    Examples
    --------
    >>> delimiter_hint(["id;rent"])
    "its columns seem to be separated by ';': save it with commas (.csv) or tabs (.tsv), and decimal points"
    """
    marks = [mark for mark in ";\t|," if len(names) == 1 and mark in names[0]]
    if not marks:
        return ""
    remedy = "save it with commas (.csv) or tabs (.tsv), and decimal points"
    return f"its columns seem to be separated by {marks[0]!r}: {remedy}"


def _without_unnamed(path: Path, table: pa.Table) -> TableFile:
    names = [name.strip() for name in table.column_names]
    repeated = [name for name, times in Counter(names).items() if times > 1 and name]
    if repeated:
        raise InvalidInputError(f"{path} has more than one column named {listing(repeated)}; rename them")
    unnamed = [name for name in names if not name or name.startswith(("__index_level_", "Unnamed:"))]
    ignored = f"{path.name}: ignored {count(len(unnamed), 'column')} without a name (a saved row index)"
    columns = {name: table.column(i) for i, name in enumerate(names) if name not in unnamed}
    if not columns:
        raise InvalidInputError(f"{path} has no columns; its first line must name them")
    return TableFile(path, columns, (ignored,) if unnamed else ())


def row_number(path: PathLike, record: int) -> int:
    """Return where a 0-based record stands: its line in a text file, its 1-based number in Parquet.

    The text file is read again up to there, because blank lines and quoted line breaks move it.
    """
    if suffix_of(path) in PARQUET:
        return record + 1
    with _open_text(Path(path)) as text:
        reader = csv.reader(text, delimiter=DELIMITERS[suffix_of(path)])
        started, seen = 1, -2
        for cells in reader:
            seen += bool(cells)
            if cells and seen == record:
                break
            started = reader.line_num + 1
    return started


def _is_text(column: pa.ChunkedArray) -> bool:
    """Return whether a column holds strings."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _values(column: pa.ChunkedArray, *, typed: bool) -> pd.Series:
    if not _is_text(column):
        return _plain(column)
    text = _blanks_to_null(column)
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


def _strings(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a text column as plain strings without surrounding blanks."""
    return pc.utf8_trim_whitespace(column.cast(pa.string()))


def _blanks_to_null(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a text column, trimmed, with null where a cell reads as missing."""
    text = _strings(column)
    missing = pc.is_in(pc.utf8_lower(text), value_set=pa.array(sorted(_MISSING)))
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


def _canonical(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if _is_text(column):
        text = _strings(column)
        return pc.if_else(pc.equal(text, ""), pa.scalar(None, pa.string()), text)
    if pa.types.is_floating(column.type):
        column = pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)
        whole = pc.all(pc.equal(column, pc.floor(column)), min_count=0).as_py()
        column = column.cast(pa.int64()) if whole else column
    return column.cast(pa.string())


def shown_ids(column: pa.ChunkedArray, *, typed: bool) -> pd.Series:
    """Return a column of ids as `TableFile.ids` does."""
    if not _is_text(column):
        return _pandas(column)
    integers = None if typed else _integers(_strings(column))
    return _pandas(_canonical(column)) if integers is None else integers


def check_writable(path: PathLike) -> Path:
    """Return the path of a table to write later, after making sure that it can be.

    Raises
    ------
    InvalidInputError
        An unknown suffix, a directory in its place, or a folder that is missing or cannot be written.
    """
    suffix_of(path)
    return check_place(path)


def write(frame: pd.DataFrame, path: PathLike) -> Path:
    r"""Write a table as CSV, TSV (gzipped or not) or Parquet, by suffix; whole or not at all.

    The table goes to a temporary file in the same folder, which then takes the final name in one step.

    Parameters
    ----------
    frame : DataFrame
        What to write; its index is left out.
    path : path
        Ends in `.csv`, `.tsv`, `.csv.gz`, `.tsv.gz`, `.parquet` or `.pq`.

    Returns
    -------
    Path
        The file written.

    Raises
    ------
    InvalidInputError
        As `check_writable`.

    Examples
    --------
    >>> import pandas as pd, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(pd.DataFrame({"id": ["00123"], "rent": [9.5]}), f"{folder}/rents.csv").read_text()
    'id,rent\n00123,9.5\n'
    """
    path = check_writable(path)
    with atomic(path) as draft:
        _save(frame, draft, suffix_of(path))
    return path


def _save(frame: pd.DataFrame, path: Path, suffix: str) -> None:
    if suffix in PARQUET:
        frame.to_parquet(path, index=False)
        return
    # No time and no name in the header: the same table gives the same bytes.
    with path.open("wb") as raw, contextlib.ExitStack() as stack:
        stream: IO[bytes] = raw
        if suffix.endswith(".gz"):
            stream = cast("IO[bytes]", stack.enter_context(gzip.GzipFile("", "wb", fileobj=raw, mtime=0)))
        frame.to_csv(stream, index=False, sep=DELIMITERS[suffix], lineterminator="\n")
