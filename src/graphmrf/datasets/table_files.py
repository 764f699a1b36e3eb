"""Tables in files: text of any dialect (also gzipped), Parquet, xlsx, shapes; cells and ids as values."""

import csv
import gzip
import io
import os
import re
import sys
import warnings
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import IO, Any, TypeAlias, cast

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from graphmrf._typing import Floats, Ints
from graphmrf.datasets.dialect import SAMPLE, WINDOWS, Dialect, dialect, is_missing, parse_formatted
from graphmrf.errors import InvalidInputError, MissingExtraError
from graphmrf.files import as_url, check_readable, opened, parquet_files
from graphmrf.text import count, did_you_mean

PathLike: TypeAlias = str | os.PathLike[str]

DELIMITERS = {".csv": ",", ".tsv": "\t", ".txt": "", ".csv.gz": ",", ".tsv.gz": "\t", ".txt.gz": ""}
PARQUET = (".parquet", ".pq")
# Stands for the file of a table that is in memory already; its columns have types, as those of Parquet have.
FRAME = Path("DataFrame.pq")
EXCEL = ".xlsx"
SHAPES = (".geojson", ".gpkg", ".shp")  # files of shapes whose other columns are a table; GeoPandas reads them
TYPED = (*PARQUET, *SHAPES)  # formats whose columns have types, and whose records are numbered from 1
SUFFIXES = (*DELIMITERS, *PARQUET, EXCEL, *SHAPES)
STDIN = Path("-")  # the path of standard input: text with any delimiter
_CODE = r"^[+-]?0[0-9]"
_INTEGER = r"^(0|-?[1-9][0-9]{0,17})$"  # 18 digits: every such number is an int64; one more digit may overflow it
_LONG = r"^\s*[+-]?[0-9]{16,400}\s*$"  # from 16 digits on float64 skips whole numbers; from 309 on it has none


@dataclass(frozen=True)
class TableFile:
    """One file as it was read: every cell of a text file still a string, Parquet columns with their own types."""

    path: Path  # where the table came from; names the file in messages
    columns: dict[str, pa.ChunkedArray]  # columns in file order, under their names without surrounding blanks
    notes: tuple[str, ...] = ()  # assumptions and ignored parts, one line each
    # text columns of formatted numbers (``9,5``, ``$1,200``, ``12 %``), as plain numbers
    numbers: dict[str, pa.ChunkedArray] = field(default_factory=dict)
    index: pa.ChunkedArray | None = None  # a first column without a name
    size: int | None = None  # number of rows of a matrix, whose ends of edges are row numbers from 1
    headless: bool = False  # whether the file has no header

    @property
    def n_rows(self) -> int:
        """Number of records."""
        return len(next(iter(self.columns.values())))

    @property
    def by_name(self) -> dict[str, str]:
        """Columns by their names in small letters, the first of several."""
        return {name.lower(): name for name in reversed(self.columns)}

    @property
    def typed(self) -> bool:
        """Whether columns have types in the file."""
        return self.path.suffix.lower() in TYPED

    def place(self, record: int) -> str:
        """Return the file and the row of a 0-based record: the line of a text file (the header is line 1)."""
        if self.path != STDIN and not self.path.name.lower().endswith(SUFFIXES):
            return f"{self.path}, edge {record + 1}"
        return f"{self.path}, row {row_number(self.path, record - self.headless)}"

    def values(self, column: str) -> pd.Series:
        """Return a column as pandas values; cells of text files become numbers or booleans where all are.

        Empty cells, NA, NaN, null and none in any case are missing. Numbers with leading zeros are codes and stay text.
        """
        with self._readable(column, "cells"):
            return _values(self.numbers.get(column, self.columns[column]), typed=self.typed)

    @property
    def all_rounded(self) -> dict[str, int]:
        """Columns with a whole number that float64 rounds, and the first record with one."""
        found = {column: _first_rounded(cells) for column, cells in self.columns.items()}
        return {column: record for column, record in found.items() if record is not None}

    def ids(self, column: str) -> pd.Series:
        """Return ids as shown to users: integers if all are written as integers, else text."""
        with self._readable(column, "ids"):
            return shown_ids(self.columns[column], typed=self.typed)

    def keys(self, column: str) -> pa.ChunkedArray:
        """Return ids in the form in which they are compared, null where one is missing.

        Text stays as it is, less surrounding blanks; whole numbers become their decimal text.
        """
        with self._readable(column, "ids"):
            return _canonical(self.columns[column])

    def take(self, rows: Ints) -> "TableFile":
        """Return a table of some of its rows."""
        columns, numbers = (
            {name: cells.take(pa.array(rows)) for name, cells in each.items()} for each in (self.columns, self.numbers)
        )
        return replace(self, columns=columns, numbers=numbers, index=None)

    def has_unique(self, column: str) -> bool:
        """Whether a column has an id in every row, and none of them twice."""
        keys = self.keys(column)
        return keys.null_count == 0 and len(pc.unique(keys)) == self.n_rows

    @contextmanager
    def _readable(self, column: str, what: str) -> Iterator[None]:
        """Turn the errors of Arrow and pandas into one that names the column."""
        try:
            yield
        except (pa.ArrowException, ValueError, OverflowError) as error:
            message, kind = _first_line(error), self.columns[column].type
            raise InvalidInputError(
                f"{self.path}, column {column}: {what} of type {kind} cannot be read ({message}); write them as text"
            ) from error

    def require(self, column: str, *, option: str) -> str:
        """Return the name of a column that must be there; `option` is the one to change."""
        if column not in self.columns:
            raise InvalidInputError(
                f"{self.path} has no column '{column}'; {did_you_mean(column, self.columns)}"
                f"it has {listing(self.columns)}: choose one with {option}"
            )
        return column


def _first_rounded(cells: pa.ChunkedArray) -> int | None:
    if not (pa.types.is_integer(cells.type) or _is_text(cells)):
        return None
    text = cells.cast(pa.string())
    long = pc.fill_null(pc.match_substring_regex(text, _LONG), fill_value=False)
    records = (int(record) for record in np.flatnonzero(long.to_numpy()))
    return next((record for record in records if _is_rounded(str(text[record]))), None)


def _is_rounded(cell: str) -> bool:
    whole = int(cell)
    return abs(whole) < 2**1023 and int(float(whole)) != whole  # others are not finite, which is reported later


def listing(names: Iterable[str], *, most: int = 8) -> str:
    """Return quoted names for a message, up to two lines of a terminal."""
    quoted = [f"'{name}'" for name in names]
    return and_more(quoted, most)


def and_more(words: Sequence[str], most: int = 8) -> str:
    """Return the first of some words, and how many more there are."""
    return ", ".join(words[:most]) + (f" and {len(words) - most} more" if len(words) > most else "")


def suffix_of(path: PathLike) -> str:
    """Return the known suffix of a table's path, or raise."""
    if Path(path) == STDIN:
        return ".txt"
    name = Path(path).name.lower()
    found = [suffix for suffix in SUFFIXES if name.endswith(suffix)]
    if not found:
        raise InvalidInputError(f"{path}: the suffix gives the format and must be one of {', '.join(SUFFIXES)}")
    return found[0]


def read_table(path: PathLike | Any) -> TableFile:
    """Return the table in a file, read by its suffix (``-`` is text on standard input), in a DataFrame or read before.

    A folder of Parquet files, or a URL of fsspec, is one table, its rows in the order of the names of the files. Raises
    InvalidInputError where there is no readable table.
    """
    if not isinstance(path, str | os.PathLike):
        return path if isinstance(path, TableFile) else frame_file(path)
    if url := as_url(path):
        return _read_parts(Path(url), parquet_files(url))
    if files := parts_of(path):
        return _read_parts(Path(path) / f"*{PARQUET[0]}", files)
    path = Path(path) if Path(path) == STDIN else check_readable(path)
    suffix = suffix_of(path)
    readers = {EXCEL: _read_excel} | dict.fromkeys(PARQUET, _read_parquet) | dict.fromkeys(SHAPES, _read_described)
    try:
        return readers.get(suffix, _read_text)(path)
    except (InvalidInputError, MissingExtraError):
        raise
    except Exception as error:  # a damaged file makes its reader raise anything, even that memory is short
        raise InvalidInputError(unreadable(path, error)) from error


def frame_file(table: Any, path: Path = FRAME) -> TableFile:
    """Return a DataFrame of pandas, GeoPandas (less its shapes), Polars or Arrow; an index of names comes first."""
    if not isinstance(table, pd.DataFrame) and hasattr(table, "to_pandas"):
        table = table.to_pandas()
    if not isinstance(table, pd.DataFrame):
        kind = type(table).__name__
        raise InvalidInputError(f"a table must be a path or a DataFrame, got {kind}; pass pandas.DataFrame(...)")
    frame = pd.DataFrame(table.loc[:, [dtype.name != "geometry" for dtype in table.dtypes]])
    if not isinstance(frame.index, pd.RangeIndex):
        frame = frame.reset_index(names=str(frame.index.name or "id"))
    try:
        arrow = pa.Table.from_pandas(frame.rename(columns=str), preserve_index=False)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise InvalidInputError(
            f"the columns of a DataFrame must each have one type: {error}; convert the column"
        ) from error
    return _without_unnamed(path, arrow)


def _read_described(path: Path) -> TableFile:
    """Return the columns besides the shapes; of points their longitude and latitude, too."""
    shapes = read_areas(path)
    if shapes.crs is None or set(shapes.geom_type) != {"Point"} or {"lon", "lat"} & {*shapes.columns}:
        return frame_file(shapes, path)
    points = shapes.geometry.to_crs(4326)
    return frame_file(shapes.assign(lon=points.x, lat=points.y), path)


def read_areas(path: Path) -> Any:
    """Return a file of shapes as a GeoDataFrame."""
    geopandas = geopandas_module(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # on cells of columns that may not matter
            return geopandas.read_file(path)
    except Exception as error:  # the readers of GeoPandas have errors of their own
        message = (str(error) or type(error).__name__).splitlines()[0]
        raise InvalidInputError(f"{path} cannot be read as shapes ({message}); it may be damaged") from error


def geopandas_module(path: PathLike) -> Any:
    """Return GeoPandas, which reads and writes shapes."""
    try:
        return import_module("geopandas")
    except ImportError as error:
        raise MissingExtraError(f"{path}: shapes need GeoPandas; pip install 'graphmrf[geo]'") from error


def parts_of(path: PathLike) -> list[Path]:
    """Return the Parquet files in a folder, in the order of their names; none where it is no folder or has none."""
    if not os.path.isdir(path):  # noqa: PTH112 - pathlib's raises for names that are too long
        return []
    return sorted(file for file in Path(path).iterdir() if file.suffix.lower() in PARQUET)


def count_rows(path: PathLike) -> int:
    """Return the number of rows in the metadata of Parquet files (one, a folder or a URL), else 0."""
    url = as_url(path)
    one = [path for path in (Path(path),) if path.suffix.lower() in PARQUET]
    n_rows = 0
    for part in parquet_files(url) if url else parts_of(path) or one:
        with _opened_part(part) as stream:
            n_rows += pa.parquet.read_metadata(stream).num_rows
    return n_rows


@contextmanager
def _opened_part(part: Path | str) -> Iterator[Any]:
    """Give the stream of a Parquet file, or of one at a URL; raise InvalidInputError where it is damaged."""
    try:
        with opened(part) if isinstance(part, str) else check_readable(part).open("rb") as stream:
            yield stream
    except (pa.ArrowException, OSError) as error:
        raise InvalidInputError(unreadable(Path(part), error)) from error


def _read_parts(path: Path, parts: Sequence[Path | str]) -> TableFile:
    tables = []
    for part in parts:
        with _opened_part(part) as stream:
            tables.append(_checked(pa.parquet.read_table(stream)))
    try:
        return _without_unnamed(path, pa.concat_tables(tables))
    except pa.ArrowException as error:
        raise InvalidInputError(f"{path}: all files must have the same columns ({error})") from error


def _read_parquet(path: Path) -> TableFile:
    return _without_unnamed(path, _checked(pa.parquet.ParquetFile(path).read()))


def _checked(table: pa.Table) -> pa.Table:
    """Return a table of Parquet whose text is UTF-8; Arrow raises on other bytes only here, or when it uses them."""
    for column in table.columns:
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            column.validate(full=True)
    return table


def _read_text(path: Path) -> TableFile:
    content = sys.stdin.buffer.read() if path == STDIN else None
    written = _dialect(path, content)
    try:
        table = _load_text(path, content, written)
    except pa.ArrowInvalid as error:
        # The first bad byte may come after the sample.
        if "UTF8" not in str(error):
            raise
        written = Dialect(WINDOWS, written.delimiter, written.skipped)
        table = _load_text(path, content, written)
    return _with_parsed_numbers(_without_unnamed(path, table), written, DELIMITERS[suffix_of(path)])


def _dialect(path: Path, content: bytes | None = None) -> Dialect:
    with _open_bytes(path, content) as stream:
        head = stream.read(SAMPLE)
    try:
        return dialect(head, usual=DELIMITERS[suffix_of(path)], whole=len(head) < SAMPLE)
    except InvalidInputError as error:
        raise InvalidInputError(f"{path}: {error}") from error


def _load_text(path: Path, content: bytes | None, written: Dialect) -> pa.Table:
    # Every cell stays a string, so that ids keep their zeros and a bad cell can be quoted.
    # One thread, because only then does a parse error name its row.
    types = dict.fromkeys(_header(path, content, written), pa.string())
    encoding = "utf8" if written.encoding == "utf-8" else written.encoding
    with _open_bytes(path, content) as stream:
        return pa.csv.read_csv(
            stream,
            read_options=pa.csv.ReadOptions(use_threads=False, encoding=encoding, skip_rows=written.skipped),
            parse_options=pa.csv.ParseOptions(delimiter=written.delimiter, newlines_in_values=True),
            convert_options=pa.csv.ConvertOptions(column_types=types, strings_can_be_null=False),
        )


def _header(path: Path, content: bytes | None, written: Dialect) -> list[str]:
    with _open_text(path, content, written) as text:
        names = next((cells for cells in csv.reader(text, delimiter=written.delimiter) if cells), None)
    if names is None:
        raise InvalidInputError(f"{path} is empty; its first line must name the columns")
    number = next((name for name in names if re.fullmatch(r"\s*-?\d*[.,]\d+\s*", name)), None)
    if number is not None:
        raise InvalidInputError(f"{path}, row 1: '{number}' is not a name; the first line must name the columns")
    return names


def _open_bytes(path: Path, content: bytes | None = None) -> IO[bytes]:
    if content is not None:
        return io.BytesIO(content)
    return cast("IO[bytes]", gzip.open(path, "rb")) if suffix_of(path).endswith(".gz") else path.open("rb")


def _open_text(path: Path, content: bytes | None, written: Dialect) -> io.TextIOWrapper:
    encoding = "utf-8-sig" if written.encoding == "utf-8" else written.encoding
    text = io.TextIOWrapper(_open_bytes(path, content), encoding=encoding, errors="replace", newline="")
    for _ in range(written.skipped):
        text.readline()
    return text


def _with_parsed_numbers(file: TableFile, written: Dialect, usual: str) -> TableFile:
    """Return the table with formatted numbers parsed, and a note on the format of the file."""
    try:
        text = {name: column for name, column in file.columns.items() if _is_text(column)}
        numbers, examples = parse_formatted(text, written.delimiter)
    except InvalidInputError as error:
        raise InvalidInputError(f"{file.path}, {error}") from error
    said = [*written.differences(usual), *([f"numbers: {and_more(examples)}"] if examples else [])]
    notes = (f"{file.path.name}: {'; '.join(said)}",) if said else ()
    return replace(file, notes=(*notes, *file.notes), numbers=numbers)


def _read_excel(path: Path) -> TableFile:
    rows, (sheet, *others) = _sheet(path)
    if not rows:
        raise InvalidInputError(f"{path} is empty; the first row of its sheet '{sheet}' must name the columns")
    (_, head), *body = rows
    names = ["" if name is None else str(name) for name in head]
    cells = list(zip(*(_padded(row, len(names)) for _, row in body), strict=True)) or [()] * len(names)
    table = pa.table([_excel_column(column) for column in cells], names=names)
    notes = (f"{path.name}: only its first sheet, '{sheet}', is read",) if others else ()
    file = _with_parsed_numbers(_without_unnamed(path, table), Dialect(), ",")
    return replace(file, notes=(*notes, *file.notes))


def _sheet(path: Path) -> tuple[list[tuple[int, tuple[Any, ...]]], list[str]]:
    """Return the rows of the first sheet of a workbook that are not empty, with their numbers; and all sheets."""
    openpyxl = openpyxl_module(path)
    with path.open("rb") as stream, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # on styles and links, which matter to no cell
        try:
            book = openpyxl.load_workbook(stream, read_only=True, data_only=True)
        except (zipfile.BadZipFile, KeyError, ValueError) as error:
            raise OSError(f"no workbook: {error}") from error
        first = enumerate(book.worksheets[0].iter_rows(values_only=True), 1)
        rows = [(number, row) for number, row in first if any(cell is not None for cell in row)]
        return rows, [sheet.title for sheet in book.worksheets]


def openpyxl_module(path: PathLike) -> Any:
    """Return the reader and writer of Excel's files; raise where it is not installed."""
    try:
        import openpyxl
    except ImportError as error:
        raise InvalidInputError(
            f"{path}: {EXCEL} files need openpyxl; install it with pip install 'graphmrf[excel]', or use .csv"
        ) from error
    return openpyxl


def _padded(row: tuple[Any, ...], width: int) -> tuple[Any, ...]:
    return (*row, *[None] * (width - len(row)))[:width]


def _excel_column(cells: Sequence[Any]) -> pa.Array:
    """Return cells of one type unchanged, and cells of several types as text."""
    kinds = {type(cell) for cell in cells if cell is not None}
    if kinds <= {int, float} or (len(kinds) == 1 and kinds != {str}):
        return pa.array([cell if kinds != {int, float} or cell is None else float(cell) for cell in cells])
    return pa.array([_as_text(cell) for cell in cells], pa.string())


def _as_text(cell: Any) -> str:
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return "" if cell is None else str(cell)


def _first_line(error: Exception, most: int = 300) -> str:
    """Return the beginning of a reader's own message; some quote a whole cell."""
    return (str(error) or type(error).__name__).splitlines()[0][:most]


def unreadable(path: Path, error: Exception) -> str:
    """Return the message on a file that its reader cannot read."""
    message = _first_line(error).removeprefix("CSV parse error: ")
    if isinstance(error, UnicodeDecodeError) or "UTF8" in message:
        return f"{path} is neither UTF-8, UTF-16 nor Windows-1252 text; save it again as UTF-8"
    if "Empty CSV file" in message:
        return f"{path} has no rows below the names of its columns; it needs one for each record"
    if row := re.match(r"Row #(\d+): (Expected (\d+) columns, got \d+)", message):
        remedy = "quote cells that contain the delimiter" if row[3] != "1" else "the first line must name the columns"
        return f"{path}, row {row_number(path, int(row[1]) - 2)}: {row[2].lower()}; {remedy}"
    return f"{path} cannot be read as {suffix_of(path)} ({message}); it may be cut short or have the wrong suffix"


def _without_unnamed(path: Path, table: pa.Table) -> TableFile:
    names = [name.strip() for name in table.column_names]
    repeated = [name for name, times in Counter(names).items() if times > 1 and name]
    if repeated:
        raise InvalidInputError(
            f"{path} has more than one column named {listing(repeated)}; rename them, "
            "or put a line with the names of the columns first"
        )
    unnamed = [i for i, name in enumerate(names) if not name or name.startswith(("__index_level_", "Unnamed:"))]
    empty = [i for i in unnamed if _is_empty(table.column(i))]
    nameless = [i for i in unnamed if i not in empty and i > 0 and not names[i]]
    columns = {name: _widened(table.column(i)) for i, name in enumerate(names) if i not in unnamed}
    if not columns:
        raise InvalidInputError(f"{path} has no columns; its first line must name them")
    if nameless:
        raise InvalidInputError(f"{path}: column {nameless[0] + 1} has cells but no name; name it in the first line")
    index = [i for i in unnamed if i not in empty]
    ignored = f"{path.name}: ignored {count(len(index), 'column')} without a name (a saved row index)"
    return TableFile(path, columns, (ignored,) if index else (), index=table.column(index[0]) if index else None)


def _widened(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return half-precision numbers, which few functions of Arrow and no index of pandas take, in single precision."""
    return column.cast(pa.float32()) if pa.types.is_float16(column.type) else column


def _is_empty(column: pa.ChunkedArray) -> bool:
    if _is_text(column):
        return bool(pc.all(pc.equal(_strings(column), ""), min_count=0).as_py())
    return bool(column.null_count == len(column))


def row_number(path: PathLike, record: int) -> int:
    """Return where a 0-based record stands: its line in a text file, its 1-based number in Parquet and among shapes.

    The text file is read again up to there, because blank lines and quoted line breaks shift it.
    """
    path = Path(path)
    if suffix_of(path) in TYPED:
        return record + 1
    if path == STDIN:
        return record + 2
    return _sheet(path)[0][record + 1][0] if suffix_of(path) == EXCEL else _line(path, record)


def _line(path: Path, record: int) -> int:
    written = _dialect(path)
    with _open_text(path, None, written) as text:
        reader = csv.reader(text, delimiter=written.delimiter)
        started, seen = 1, -2
        for cells in reader:
            seen += bool(cells)
            if cells and seen == record:
                break
            started = reader.line_num + 1
    return started + written.skipped


def _is_text(column: pa.ChunkedArray) -> bool:
    """Return whether a column contains strings."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _values(column: pa.ChunkedArray, *, typed: bool) -> pd.Series:
    if not _is_text(column):
        return _plain(column)
    text = _strings(column)
    text = pc.if_else(is_missing(text), pa.scalar(None, pa.string()), text)
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


def as_numbers(series: pd.Series) -> tuple[Floats, int | None]:
    """Return a column as float64 with NaN where it is missing, and the first record that is no number, if any."""
    numbers = pd.to_numeric(series, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    if series.dtype.kind == "O":  # pandas below 3 reads a number up to a NUL
        numbers = np.where([isinstance(cell, str) and "\0" in cell for cell in series], np.nan, numbers)
    stray = np.flatnonzero(np.isinf(numbers) | (np.isnan(numbers) & series.notna().to_numpy()))
    return numbers, int(stray[0]) if stray.size else None
