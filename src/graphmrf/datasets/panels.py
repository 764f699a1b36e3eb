"""Long tables of panels: one row per node and time to one row for each pair of them, and the times to come."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa

from graphmrf.datasets.table_files import row_number
from graphmrf.errors import InvalidInputError
from graphmrf.graph.product import time_numbers

if TYPE_CHECKING:
    from collections.abc import Mapping

    from graphmrf._typing import Ints
    from graphmrf.datasets.table_files import TableFile


@dataclass(frozen=True, eq=False)
class PanelRows:
    """The rows of a long table: of which node and time each one is."""

    nodes: TableFile  # the first row of every node, in the order of the file
    # node, time (n_rows,): positions of the node and the time of every row
    node: Ints
    time: Ints
    times: pd.Index  # all times, ascending, those to come last

    @classmethod
    def of(cls, file: TableFile, name: str, time: str, horizon: int) -> PanelRows:
        """Return the rows of a file whose nodes and times are in these columns, and so many times to come.

        Raises InvalidInputError if a node or time is missing, a time is neither a number nor a date, or two rows are of
        one node and time.
        """
        keys = file.keys(name).combine_chunks()
        if keys.null_count:
            record = int(np.argmax(keys.is_null().to_numpy(zero_copy_only=False)))
            raise InvalidInputError(
                f"{file.place(record)}, column {name}: the node id is missing; give it in every row"
            )
        node, distinct = pd.factorize(keys.to_pandas())
        times = _parsed(file, time)
        position, found = pd.factorize(times, sort=True)
        _check_once(file, node * len(found) + position, (name, time))
        first = np.unique(node, return_index=True)[1]
        columns = {each: pa.chunked_array(cells.take(pa.array(first))) for each, cells in file.columns.items()}
        numbers = {each: pa.chunked_array(cells.take(pa.array(first))) for each, cells in file.numbers.items()}
        nodes = replace(file, columns=columns, numbers=numbers, index=None)
        assert len(distinct) == nodes.n_rows
        return cls(nodes, node, position, _with_future(pd.Index(found, name=time), horizon))

    def spread(self, columns: Mapping[str, pd.Series], n: int) -> pd.DataFrame:
        """Return columns of the file with a row for each of `n` nodes and all times, node by node.

        Where the file has no row of a node and time, a column that is the same at all times of every node keeps its
        value, and others are missing.
        """
        places, T = self.node * self.times.size + self.time, self.times.size
        frame = pd.DataFrame({name: values.to_numpy() for name, values in columns.items()}, index=places)
        whole = frame.reindex(range(n * T))
        absent = ~np.isin(np.arange(n * T), places)
        if not absent.any():
            return whole
        by_node = frame.groupby(self.node)
        lasting = (by_node.nunique() <= 1).all(axis=0)
        for name in frame.columns[lasting]:
            value = by_node[name].first().reindex(range(n)).repeat(T).set_axis(range(n * T))
            whole[name] = whole[name].where(~absent, value)
        return whole

    def records(self, n: int) -> Ints:
        """Return the record of the file in each row of `spread`, -1 where there is none."""
        records = np.full(n * self.times.size, -1)
        records[self.node * self.times.size + self.time] = np.arange(self.node.size)
        return records


def _parsed(file: TableFile, name: str) -> Any:
    """Return the times in a column, numbers or dates."""
    values = file.values(name)
    if values.isna().any():
        record = int(np.argmax(values.isna()))
        raise InvalidInputError(f"{file.place(record)}, column {name}: the time is missing; give it in every row")
    if values.dtype.kind in "iufM":
        return values
    dates = pd.to_datetime(values, errors="coerce", format="ISO8601")
    if dates.isna().any():
        record = int(np.argmax(dates.isna()))
        raise InvalidInputError(
            f"{file.place(record)}, column {name}: '{values.iloc[record]}' is neither a number nor a date; write times "
            "such as 2024, 17.5 or 2024-05-31"
        )
    return dates


def _check_once(file: TableFile, pairs: Ints, names: tuple[str, str]) -> None:
    """Raise where two rows are of one node and time."""
    again = np.flatnonzero(pd.Series(pairs).duplicated())
    if again.size:
        rows = np.flatnonzero(pairs == pairs[again[0]])[:2]
        first, second = (row_number(file.path, int(row)) for row in rows)
        node, time = (file.columns[name][int(rows[0])].as_py() for name in names)
        more = f" ({again.size} such rows)" if again.size > 1 else ""
        raise InvalidInputError(
            f"{file.path}, rows {first} and {second}: both are of {names[0]} '{node}' at {names[1]} {time}{more}; keep "
            "one row for each node and time, such as their mean"
        )


def _with_future(times: pd.Index, horizon: int) -> pd.Index:
    """Return times and so many to come, as far apart as they are usually."""
    if horizon < 0 or (horizon and times.size < 2):
        need = f"must be 0 or more, got {horizon}" if horizon < 0 else "needs at least two times to go on from, got one"
        raise InvalidInputError(f"--horizon {need}")
    if not horizon:
        return times
    ahead: Any
    if isinstance(times, pd.DatetimeIndex) and np.ptp(times.day) == 0:  # months or years, of unequal length
        months = int(np.median(np.diff(12 * times.year + times.month)))
        ahead = [times[-1] + pd.DateOffset(months=months * k) for k in range(1, horizon + 1)]
        return times.append(pd.DatetimeIndex(ahead)).rename(times.name)
    step = np.median(np.diff(time_numbers(times)))
    ahead = step * np.arange(1, horizon + 1)
    if isinstance(times, pd.DatetimeIndex):
        ahead = pd.to_timedelta(ahead, unit="D")
    elif times.dtype.kind in "iu" and step == np.floor(step):
        ahead = ahead.astype(np.int64)
    return times.append(pd.Index(times[-1] + ahead)).rename(times.name)
