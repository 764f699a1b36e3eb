"""Dialects of text tables: encoding, delimiter, decimal mark, and formatted numbers; detected from samples."""

import codecs
import csv
import io
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from graphmrf.errors import InvalidInputError

SAMPLE = 1 << 16  # bytes from which encoding and delimiter are detected: 64 KiB, some thousand rows
MARKS = (",", ";", "\t", "|")
_NAMES = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "'|'", " ": "blanks"}
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
WINDOWS = "cp1252"
_SPOKEN = {WINDOWS: "Windows-1252 (Latin-1)", "utf-16-le": "UTF-16", "utf-16-be": "UTF-16"}
# What reads as a missing cell, in any case.
MISSING = frozenset({"", "na", "n/a", "#n/a", "nan", "-nan", "null", "none", "<na>"})
_CURRENCIES = (
    "USD|EUR|GBP|CHF|JPY|CNY|INR|SEK|NOK|DKK|PLN|CZK|HUF|BRL|MXN|AUD|CAD|NZD|ZAR|TRY|KRW|RUB|Rs\\.?|kr\\.?|zł|Kč"
)
_CURRENCY = rf"[$€£¥₹₽₩₺¢]|US\$|{_CURRENCIES}"
_UNIT = (
    "m²|m2|m³|m3|km²|km2|km/h|km|cm|mm|m|ha|ft²|ft|mi|mph|sq ?ft|sq ?m|sq ?mi|acres?|kg|g|t|lbs?|°C|°F|"
    "kWh|MWh|GWh|kW|MW|ppm|ppb|[µμ]g/m³"
)
_FORMATTED = (
    r"^(?P<open>\()?(?P<sign>[-+\x{2212}]?)\s?"
    rf"(?P<before>{_CURRENCY})?\s?(?P<inner>[-\x{{2212}}]?)"
    r"(?P<body>\d[\d.,'\x{2019} \x{00A0}\x{202F}\x{2009}]*|[.,]\d+)(?P<power>[eE][-+]?\d+)?"
    rf"[\s\x{{00A0}}\x{{202F}}]?(?P<after>%|{_CURRENCY}|{_UNIT})?(?P<close>\))?$"
)
_PLAIN = r"^[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?$"
_CODE = r"^[-+]?0\d"
_BLANKS = r"[ \x{00A0}\x{202F}\x{2009}'\x{2019}]"
_GROUPED = rf"^\d{{1,3}}({_BLANKS}\d{{3}})*([.,]\d+)?$"
_UNCLEAR = r"^[1-9]\d{{0,2}}\{0}\d{{3}}$"
_DECIMAL = r"^\d*\{0}\d+$|^\d{{1,3}}(\{1}\d{{3}})+\{0}\d+$|^\d{{1,3}}(\{1}\d{{3}}){{2,}}$|^\d+\{0}$"


@dataclass(frozen=True)
class Dialect:
    """How a text file is written."""

    encoding: str = "utf-8"  # name of a Python codec
    delimiter: str = ","  # what separates columns
    skipped: int = 0  # lines before the one that names the columns: 1 for the ``sep=;`` of spreadsheets

    def differences(self, usual: str) -> Iterator[str]:
        """Yield what differs from UTF-8 text with the delimiter of its suffix."""
        if self.delimiter != usual and usual:
            yield f"columns are separated by {_NAMES[self.delimiter]}"
        if not self.encoding.startswith("utf-8"):
            yield f"text is {_SPOKEN.get(self.encoding, self.encoding.upper())}"


def dialect(head: bytes, *, usual: str, whole: bool) -> Dialect:
    """Return how a text file is written, from its first bytes.

    `head`: the file, or its beginning. `usual`: the delimiter of its suffix; empty where the suffix has none. `whole`:
    whether `head` is all of it: a last line without an end is otherwise cut short. Raises InvalidInputError if two
    delimiters fit equally well.
    """
    encoding = encoding_of(head)
    text = decoded(head, encoding)
    lines = text.splitlines(keepends=True)
    declared = re.fullmatch(r"sep=(.)\s*", lines[0]) if lines else None
    if declared:
        return Dialect(encoding, declared[1], 1)
    kept = lines if whole or len(lines) == 1 else lines[:-1]
    return Dialect(encoding, _delimiter("".join(kept), usual))


def encoding_of(head: bytes) -> str:
    """Return the name of the codec of a text, from its first bytes."""
    for mark, name in _BYTE_ORDER_MARKS:
        if head.startswith(mark):
            return name
    # Latin letters, digits and delimiters in UTF-16 have a zero in every second byte; a third leaves room for others.
    if 3 * head[1::2].count(0) > len(head[1::2]) > 0:
        return "utf-16-le"
    if 3 * head[::2].count(0) > len(head[::2]) > 0:
        return "utf-16-be"
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return WINDOWS
    return "utf-8"


def decoded(head: bytes, encoding: str) -> str:
    """Return bytes as text, without a byte order mark, or half a character at the end."""
    return codecs.getincrementaldecoder(encoding)().decode(head).removeprefix("\ufeff")


def _delimiter(text: str, usual: str) -> str:
    fitting = {mark: n for mark in MARKS if (n := _n_columns(text, mark)) > 1}
    most = [mark for mark, n in fitting.items() if n == max(fitting.values())]
    if len(most) > 1:
        spoken = " or ".join(_NAMES[mark] for mark in most)
        raise InvalidInputError(f"{spoken} may separate its columns; quote the cells and names that contain the others")
    if most:
        return most[0]
    first = next(iter(_rows(text, usual or ",")), [""])
    split = [mark for mark in (usual, *MARKS) if mark and len(next(iter(_rows(text, mark)), [])) > 1]
    if split:
        return split[0]
    return " " if not usual and " " in first[0].strip() else usual or ","


def _rows(text: str, delimiter: str) -> list[list[str]]:
    try:
        return [cells for cells in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter) if cells]
    except csv.Error:
        return []


def _n_columns(text: str, delimiter: str) -> int:
    """Return in how many columns a delimiter splits every row alike; 0 where it does not."""
    widths = {len(cells) for cells in _rows(text, delimiter)}
    return widths.pop() if len(widths) == 1 else 0


def parse_formatted(
    columns: Mapping[str, pa.ChunkedArray], delimiter: str
) -> tuple[dict[str, pa.ChunkedArray], tuple[str, ...]]:
    """Return text columns of formatted numbers as plain numbers, and an example of each conversion.

    Percent and currency signs, units, thousands separators and decimal commas are removed; 12 % is 12. A column that
    is ambiguous or has two units is left as it is.
    """
    peeks = {name: _peek(column) for name, column in columns.items()}
    found = {name: mark for name, cells in peeks.items() if (mark := _decimal_mark(_bodies(cells)))}
    sure = set(found.values()) - {"?"}
    common = sure.pop() if len(sure) == 1 else ""
    made, messages = {}, []
    for name, cells in peeks.items():
        _check_thousands(name, cells)
        if len(cells) and (common == "," or (not _all(cells, _PLAIN) and _all(cells, _FORMATTED))):
            plain = _plain_numbers(columns[name], common or {",": "."}.get(delimiter, ""))
            if plain is not None:
                made[name] = plain
                messages.append(_example(name, columns[name], plain))
        elif delimiter != "," and not common:
            _check_point(name, cells)
    return made, tuple(text for text in messages if text)


def _check_point(name: str, cells: pa.ChunkedArray) -> None:
    """Raise if a column has only numbers such as 1.234, which many spreadsheets write for 1234."""
    unclear = cells.filter(pc.match_substring_regex(cells, _UNCLEAR.format(".")))
    if len(unclear) and not _decimal_mark(_bodies(cells)) and _all(cells, _PLAIN):
        remedy = "or separate columns by commas where the point is a decimal point"
        raise InvalidInputError(f"{_may_be(name, str(unclear[0]), str(unclear[0]))}, {remedy}")


def _check_thousands(name: str, cells: pa.ChunkedArray, *, least: int = 3) -> None:
    """Raise where points look like separators of thousands: 1.200 and 1.085 beside 719, with no other use of the point.

    A column of decimals would also have numbers with one or two of them, or 719.000; two pointed cells can be chance.
    """
    bodies = _bodies(cells)
    pointed = bodies.filter(pc.match_substring(bodies, "."))
    if bodies.null_count or not least <= len(pointed) < len(bodies):
        return
    if _all(pointed, _UNCLEAR.format(".")) and not _any(bodies, r"^\d{4}|,"):
        place = pc.index(pc.match_substring(bodies, "."), True).as_py()
        raise InvalidInputError(
            f"{_may_be(name, str(cells[place]), str(bodies[place]))}, or all with the same decimals"
        )


def _may_be(name: str, cell: str, body: str) -> str:
    return f"column {name}: '{cell}' may be {body.replace('.', '')} or {body}; write it without separators of thousands"


def _all(cells: pa.ChunkedArray, pattern: str) -> bool:
    return bool(pc.all(pc.match_substring_regex(cells, pattern), min_count=0).as_py())


def is_formatted_number(text: pd.Series) -> bool:
    """Return whether most cells of a column of text are numbers with signs, units or separators."""
    cells = pa.chunked_array([pa.array(text.dropna().astype(str), pa.string())])
    formatted = pc.and_(pc.match_substring_regex(cells, _FORMATTED), pc.invert(pc.match_substring_regex(cells, _PLAIN)))
    return len(cells) > 0 and 2 * pc.sum(formatted).as_py() > len(cells)


def _peek(column: pa.ChunkedArray, some: int = 300) -> pa.ChunkedArray:
    """Return some cells of a column, from its head, its middle and its tail, without the empty ones."""
    n = len(column)
    if n > 3 * some:
        slices = [column.slice(start, some) for start in (0, n // 2, n - some)]
        column = pa.chunked_array([chunk for part in slices for chunk in part.chunks])
    return _cells(column)


def _cells(column: pa.ChunkedArray) -> pa.ChunkedArray:
    text = pc.utf8_trim_whitespace(column)
    return text.filter(pc.invert(is_missing(text)))


def is_missing(text: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return which cells of trimmed text read as missing."""
    return pc.is_in(pc.utf8_lower(text), value_set=pa.array(sorted(MISSING)))


def _bodies(cells: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the digits of formatted cells with their marks, without blanks between groups; null for other text."""
    body = pc.struct_field(pc.extract_regex(cells, _FORMATTED), "body")
    body = pc.utf8_trim_whitespace(body)
    grouped = pc.match_substring_regex(body, _GROUPED)
    bare = pc.if_else(grouped, pc.replace_substring_regex(body, _BLANKS, ""), body)
    return pc.if_else(pc.match_substring_regex(bare, r"^[\d.,]+$"), bare, pa.scalar(None, pa.string()))


def _any(cells: pa.ChunkedArray, pattern: str) -> bool:
    return bool(pc.any(pc.match_substring_regex(cells, pattern), min_count=0).as_py())


def _certain(bodies: pa.ChunkedArray, mark: str, other: str) -> bool:
    clear = bodies.filter(pc.invert(pc.match_substring_regex(bodies, _UNCLEAR.format(mark))))
    return _any(clear, _DECIMAL.format(mark, other))


def _decimal_mark(bodies: pa.ChunkedArray) -> str:
    """Return the decimal mark of a column, `?` if its cells disagree, and nothing if they leave it open."""
    bodies = bodies.drop_null()
    proved = [mark for mark, other in ((",", "."), (".", ",")) if _certain(bodies, mark, other)]
    return "?" if len(proved) == 2 else "".join(proved)


def _plain_numbers(column: pa.ChunkedArray, common: str) -> pa.ChunkedArray | None:
    """Return a column of formatted numbers as plain ones; None if it has other cells or is ambiguous."""
    text = pc.utf8_trim_whitespace(column)
    missing = is_missing(text)
    cells = text.filter(pc.invert(missing))
    if not _all(cells, _FORMATTED) or _any(cells, _CODE):
        return None
    parts = pc.extract_regex(text, _FORMATTED)
    if not _one_unit(parts.filter(pc.invert(missing))):
        return None
    bodies = _bodies(text)
    mark = _decimal_mark(bodies) or common or ("" if _any(bodies, "[.,]") else ".")
    if mark not in (",", ".") or bodies.filter(pc.invert(missing)).null_count:
        return None
    numbers = _rewritten(parts, bodies, mark)
    return None if numbers is None else pc.if_else(missing, text, numbers)


def _one_unit(parts: pa.ChunkedArray) -> bool:
    """Return whether all numbers are in one unit: all or none in per cent, and at most one currency or other unit."""
    units = pc.binary_join_element_wise(pc.struct_field(parts, "before"), pc.struct_field(parts, "after"), "")
    found = set(pc.unique(units).to_pylist())
    return len(found) == 1 or (len(found - {""}) == 1 and not any("%" in unit for unit in found))


def _rewritten(parts: pa.ChunkedArray, bodies: pa.ChunkedArray, mark: str) -> pa.ChunkedArray | None:
    other = "." if mark == "," else ","
    grouped = rf"^(\d+|\d{{1,3}}(\{other}\d{{3}})+)?(\{mark}\d*)?$"
    if not _all(bodies.drop_null(), grouped):
        return None
    digits = pc.replace_substring(pc.replace_substring(bodies, other, ""), mark, ".")
    signs = pc.binary_join_element_wise(*(pc.struct_field(parts, name) for name in ("sign", "inner", "open")), "")
    if _any(signs, r"^.."):  # such as --5
        return None
    negative = pc.match_substring_regex(signs, r"[-\x{2212}(]")
    return pc.binary_join_element_wise(pc.if_else(negative, "-", ""), digits, pc.struct_field(parts, "power"), "")


def _example(name: str, before: pa.ChunkedArray, after: pa.ChunkedArray) -> str:
    text = pc.utf8_trim_whitespace(before)
    changed = pc.index(pc.not_equal(text, after), True).as_py()
    return "" if changed < 0 else f"'{name}' ({text[changed]} is read as {after[changed]})"
