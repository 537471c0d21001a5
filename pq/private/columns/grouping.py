"""The records of a table by public group and value, reduced where they live (Section 3.1).

One query of the table's own engine where it has one: the key and the value of a record, and whose it is where that
bounds something, are brought to one form each, and equal ones are counted; only the counts come back. Tables in memory
are read column by column. What is asked is checked by the table's schema before a record is looked at, and no record
can make anything raise, be missed, or add a group.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from pq.core.kind import NUMBER, Kind
from pq.core.quiet import quiet
from pq.private.columns.counts import Counts
from pq.private.columns.declared import Declared, running
from pq.private.columns.door import as_floats
from pq.private.columns.dtypes import array_of_buffer, declaration_of
from pq.private.columns.keys import TEXT, KeyColumn, Keys, declared_type
from pq.private.columns.library import library_of
from pq.private.columns.persons import GroupedRecords, Persons, bounded
from pq.private.columns.reduce import numbers_in, numbers_out, on_step
from pq.private.columns.tables import OpenTable, Types, declared_in, opened

KEY, VALUE, PERSON, RECORDS = COLUMNS = ("key", "value", "person", "records")
NO_KEY = float("inf")  # where a record has none of the public keys, which are finite
LONG_LIST = 300  # keys: DuckDB takes about as long to look each record up among them as to count it
# Engines, by narwhals' names, in which texts that are told to be compared as they are differ where any character does.
EXACT = {"POLARS", "PANDAS", "PYARROW", "DASK", "DUCKDB", "PYSPARK", "PYSPARK_CONNECT"}
EVERY_ROW = 2**62  # of a query: a limit that cuts nothing off, but lets no engine filter before it
# What an ID may be beside what a key may be: bytes. All else is refused, such as several values, types whose records an
# engine calls equal where Python does not (a month and thirty days), or that Python cannot always list.
BYTES = re.compile(r"((large_|fixed_size_)?binary(_view)?|blob|uuid)([(\[].*)?|\|S\d+", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True)
class GroupedColumn:
    """A column of a table by group, and how it is read; all of it public.

    columns: names of the columns of keys, values and persons, by what they are. keys: the public ones, None where all
    records are of one group. kind: of the values. step: of the grid that they are rounded to. others: whether records
    of no public key make a group of their own, the last. engine: whether the table's own engine reduces it.
    """

    table: OpenTable
    columns: dict[str, str]
    keys: Keys | None
    value: Declared
    step: Fraction | None
    others: bool
    engine: bool
    times: bool

    @classmethod
    def of(
        cls,
        table: OpenTable,
        *,
        value: str,
        by: str | None,
        keys: Any,
        person: str | None,
        step: Fraction | None,
        others: bool,
    ) -> GroupedColumn:
        """Raises `TypeError` or `ValueError` naming by, value, person or keys, by the table's schema and the
        public keys alone."""
        with quiet():
            named = {"by": by, "value": value, "person": person}
            columns = {what: _known(table, what, name) for what, name in named.items() if name is not None}
            declared = declared_in(table, "value", value)
            column = None if by is None else KeyColumn.of(table, by)
            known = None if column is None or by is None else Keys.of(keys, column, by)
            who = None if person is None else _ids(table, person)
            engine = table.lazy is not None and "none" not in [one.grouping for one in (declared, column, who) if one]
            if engine:
                _check_comparison(table.lazy, {"by": column, "person": who})
            times = who is not None and who.kind not in (None, NUMBER)
            return cls(table, columns, known, declared, step, others, engine, times)

    @property
    def kind(self) -> Kind:
        return self.value.kind

    @property
    def groups(self) -> int:
        """How many there are, with the one of other records."""
        return 1 if self.keys is None else len(self.keys.given) + self.others

    def read(self, most_records: int, most_groups: int) -> list[Counts]:
        """The records of each group. Of a person at most so many in all, in at most so many groups, where the table
        says whose records are whose; it is a promise elsewhere."""
        with quiet():
            rows = running(self._in_engine if self.engine else self._in_memory)()
            if self.step is not None:
                rows = GroupedRecords(rows.places, on_step(rows.values, self.step), rows.records, rows.persons)
            kept = np.flatnonzero(rows.places < self.groups)
            persons = rows.persons and Persons(rows.persons.codes[kept], rows.persons.digests[kept])
            rows = GroupedRecords(rows.places[kept], rows.values[kept], rows.records[kept], persons)
            if persons is not None:
                rows = bounded(rows, most_records, most_groups)
            return Counts.by_group(self.kind, rows.places, self.groups, rows.values, rows.records, most_records)

    def _rows(self, fetched: dict[str, Any], values: Any, records: Any) -> GroupedRecords:
        places = np.zeros(len(values), dtype=np.int64) if self.keys is None else self.keys.places(fetched["by"])
        persons = Persons.of(fetched["person"], self.times) if "person" in fetched else None
        return GroupedRecords(places, values, records, persons)

    def _in_memory(self) -> GroupedRecords:
        fetch = self.table.fetch(list(dict.fromkeys(self.columns.values())))
        fetched = {what: fetch(name) for what, name in self.columns.items()}
        values = self.value.records(fetched["value"])
        return self._rows(fetched, values, np.ones(len(values), dtype=np.int64))

    def _in_engine(self) -> GroupedRecords:
        import narwhals.stable.v2 as nw

        value = nw.col(self.columns["value"])
        is_number = self.value.grouping == "number"
        wanted = {"value": numbers_in(value, self.step) if is_number else value}
        texts = self._texts()
        frame = without_collations(self.table.lazy, list(dict.fromkeys(self.columns.values())), texts)
        if "person" in self.columns:
            person = nw.col(self.columns["person"])
            plain = self.columns["person"] not in texts or frame.implementation.is_duckdb()
            if frame.collect_schema()[self.columns["person"]].is_float():
                person = person + 0.0  # -0.0 is 0.0: Arrow's groups tell them apart, and pandas fails at both
            wanted["person"] = person if plain else person.cast(nw.String)  # which has no collation, in Spark
            frame = frame.filter(~wanted["person"].is_null())
        late = None
        if self.keys is not None:
            frame, wanted["by"], late = self._keyed(frame)
        names = dict(zip(("by", "value", "person"), COLUMNS, strict=False))
        frame = frame.select(*(wanted[what].alias(names[what]) for what in wanted))
        counted = frame.group_by(*(names[what] for what in wanted)).agg(nw.len().alias(RECORDS))
        if late is not None:
            counted = counted.head(EVERY_ROW).filter(late)
        options = {"engine": "streaming"} if counted.implementation.is_polars() else {}
        found = counted.collect(**options)
        fetched = {what: found.get_column(names[what]).to_native() for what in wanted}
        values = numbers_out(fetched["value"], self.step) if is_number else as_floats(fetched["value"])
        return self._rows(fetched, values, as_floats(found.get_column(RECORDS).to_native()).astype(np.int64))

    def _keyed(self, frame: Any) -> tuple[Any, Any, Any]:
        """The query and its keys, records of no public key left out of it or given one that is none; and which of the
        counts to leave out where that is cheaper, or None.

        Keys that are times stay what they are: every engine writes its own constants for them.
        """
        import narwhals.stable.v2 as nw

        assert self.keys is not None
        column, key = self.keys.column, nw.col(self.columns["by"])
        if not column.texts and column.grouping != "number":
            return frame, key, None
        wanted = tuple(self.keys.index)  # of a list Dask makes an array of numpy's texts, which end in no NUL
        none: Any = max(wanted, key=len) + "x" if column.texts else NO_KEY
        in_duckdb = frame.implementation.is_duckdb()
        if not (column.texts and in_duckdb):  # whose texts are such already
            key = key.cast(nw.String if column.texts else nw.Float64)
        known = key.is_in(wanted)
        if self.others:
            return frame, nw.when(known).then(key).otherwise(nw.lit(none)), None
        if in_duckdb and len(wanted) >= LONG_LIST:
            return frame, key, nw.col(KEY).is_in(wanted)
        return frame.filter(known), key, None

    def _texts(self) -> set[str]:
        """The columns of keys and of persons that are declared to hold texts."""
        names = {name for what, name in self.columns.items() if what != "value"}
        return {name for name in names if TEXT.fullmatch(str(declared_type(self.table, name)))}


def _check_comparison(frame: Any, columns: dict[str, KeyColumn | None]) -> None:
    """Raises `TypeError` naming the argument whose column of texts or bytes an engine might compare by a rule of its
    own, as a collation is: different IDs or keys would be one, and which of them that is up to other records. Numbers
    and times that differ are equal by no such rule."""
    if frame.implementation.name in EXACT:
        return
    for argument, column in columns.items():
        if column is not None and column.kind is None:
            raise TypeError(
                f"{argument} must name a column of numbers, dates or times in a query of "
                f"{frame.implementation.name.lower()}, which may call different texts equal; hand over the query's "
                "result as a table in memory, such as its .to_pyarrow()"
            )


def without_collations(frame: Any, columns: list[str], texts: set[str]) -> Any:
    """A query for some columns in which texts are equal only if they are the same.

    DuckDB lets a column's collation call different texts equal, and which of them stands for all then depends on what
    other records there are. Its collation "C" compares bytes.
    """
    if not texts or not frame.implementation.is_duckdb():
        return frame
    import duckdb
    import narwhals.stable.v2 as nw

    found = {name: duckdb.ColumnExpression(name) for name in columns}
    for name in texts:
        found[name] = found[name].cast("VARCHAR").collate("C")
    return nw.from_native(frame.to_native().select(*(found[name].alias(name) for name in columns)))


def open_table(x: Any, argument: str = "table") -> OpenTable:
    """A table of any engine, or a mapping from names to columns, asked for its schema; raises `TypeError` or
    `ValueError` naming it.

    A data frame of polars is a query as well.
    """
    if isinstance(x, Mapping):
        try:
            lengths = {len(column) for column in x.values()}
        except TypeError as error:
            raise TypeError(f"{argument} must have columns that are lists or arrays: {error}") from None
        if len(lengths) > 1:
            raise ValueError(f"{argument} must have columns of one length")
        held = {name: array_of_buffer(x[name]) for name in x}
        types: Types = {name: partial(_in_mapping, _dtype(column), column) for name, column in held.items()}
        return OpenTable(types, lambda _: held.__getitem__)
    with quiet():
        table = _opened_as(x, argument)
    if table is None:
        raise TypeError(f"{argument} must be a data frame, a query or a mapping of columns, got {type(x).__name__}")
    if table.lazy is None and type(x).__module__.startswith("polars."):
        import narwhals.stable.v2 as nw

        return OpenTable(table.types, table.fetch, nw.from_native(x).lazy())
    return table


def _opened_as(x: Any, argument: str) -> OpenTable | None:
    """`opened`, whose refusals name x, by the argument's own name."""
    try:
        return opened(x, library_of(x))
    except (TypeError, ValueError) as error:
        message = str(error)
        if not message.startswith("x must"):
            raise
        raise type(error)(argument + message.removeprefix("x")) from None


def _ids(table: OpenTable, person: str) -> KeyColumn:
    """The declared type of IDs; raises `TypeError` naming person for one that can be none."""
    if BYTES.fullmatch(str(declared_type(table, person))):
        return KeyColumn(None, "value")
    return KeyColumn.of(table, person, "person")


def _dtype(column: Any) -> Any:
    return getattr(column, "dtype", getattr(column, "type", None))


def _in_mapping(_: Any, column: Any) -> Declared:
    return declaration_of(column, library_of(column))


def _known(table: OpenTable, what: str, name: Any) -> Any:
    if not isinstance(name, Hashable) or name not in table.types:
        raise ValueError(f"{what} must name one of the columns {', '.join(map(str, table.types))}, got {name!r}")
    return name
