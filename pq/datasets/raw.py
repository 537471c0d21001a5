"""Readers of the raw formats from which the embedded tables are rebuilt, and of the embedded format itself.

- UCI Adult: comma and space between fields, `?` for what is unknown, no header, labels that end in a dot in the test
  file, whose first line is no record, and a blank line at the end.
- Pickled data frames: read without pandas, and without running whatever else a pickle may hold.
"""

from __future__ import annotations

import io
import math
import pickle
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from typing import Any

import numpy as np
import numpy.typing as npt

from pq.datasets.table import Array

ADULT_FIELDS = 15
ADULT_LABELS = frozenset({"<=50K", ">50K"})


def adult_records(lines: Iterable[str]) -> Iterator[list[str]]:
    """The records in a raw Adult file as lists of 15 stripped fields; what is unknown stays `?`, labels lose their dot.

    Raises `ValueError` naming the line that is neither a record, nor blank, nor a remark starting with `|`.

    >>> head = "|1x3 Cross validator"
    >>> record = "25, Private, 226802, 11th, 7, Never-married, ?, Own-child, Black, Male, 0, 0, 40, ?, <=50K."
    >>> [(fields[0], fields[6], fields[12], fields[14]) for fields in adult_records([head, record, ""])]
    [('25', '?', '40', '<=50K')]
    """
    for number, line in enumerate(lines, start=1):
        text = line.strip()
        if not text or text.startswith("|"):
            continue
        fields = [entry.strip() for entry in text.split(",")]
        fields[-1] = fields[-1].removesuffix(".")
        if len(fields) != ADULT_FIELDS or fields[-1] not in ADULT_LABELS:
            raise ValueError(f"line {number} is no record of 15 fields with an income label: {text[:60]!r}")
        yield fields


def known_numbers(entries: Iterable[str]) -> list[int]:
    """The whole numbers among text fields; `?` is dropped."""
    return [int(entry) for entry in entries if entry != "?"]


class _Values:
    """An array of Python objects inside a pickle, filled by its state."""

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, shape, _, fortran, items = state
        self.array = np.empty(math.prod(shape), dtype=object)
        self.array[:] = items
        self.array = self.array.reshape(shape, order="F" if fortran else "C")


class _Frame:
    """A data frame inside a pickle: its state holds the block manager."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.blocks, self.axes = state["_mgr"]


def _from_buffer(buffer: bytearray, dtype: np.dtype[Any], shape: tuple[int, ...], order: Any) -> npt.NDArray[Any]:
    return np.frombuffer(buffer, dtype=dtype).reshape(shape, order=order)


# The names that such a pickle may call, each bound to something harmless. Any other is refused.
_ALLOWED: dict[tuple[str, str], Any] = {
    ("builtins", "slice"): slice,
    ("numpy", "dtype"): np.dtype,
    ("numpy", "ndarray"): np.ndarray,
    ("pandas.core.frame", "DataFrame"): _Frame,
    ("pandas.core.internals.managers", "BlockManager"): lambda blocks, axes: (blocks, axes),
    ("pandas._libs.internals", "_unpickle_block"): lambda values, places, ndim: (values, places),
    ("pandas.core.indexes.base", "_new_Index"): lambda kind, state: state,
    ("pandas.core.indexes.base", "Index"): None,
    ("pandas.core.indexes.range", "RangeIndex"): None,
    **{(f"numpy.{core}.numeric", "_frombuffer"): _from_buffer for core in ("core", "_core")},
    **{(f"numpy.{core}.multiarray", "_reconstruct"): lambda *_: _Values() for core in ("core", "_core")},
}


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _ALLOWED:
            raise pickle.UnpicklingError(f"a data frame does not need {module}.{name}")
        return _ALLOWED[module, name]


def read_frame(pickled: bytes) -> dict[str, npt.NDArray[Any]]:
    """The columns of a pickled pandas data frame by name, numbers as numbers and all else as objects.

    Raises `pickle.UnpicklingError` if the pickle calls anything that a plain data frame does not.
    """
    frame = _Reader(io.BytesIO(pickled)).load()
    if not isinstance(frame, _Frame):
        raise pickle.UnpicklingError("the pickle holds no data frame")
    names = frame.axes[0]["data"].array
    columns: dict[str, npt.NDArray[Any]] = {}
    for values, places in frame.blocks:
        block = values.array if isinstance(values, _Values) else values
        positions = range(len(names))[places] if isinstance(places, slice) else places
        columns.update({names[p]: block[i] for i, p in enumerate(positions)})
    return columns


def decimal_text(value: float) -> str:
    """The shortest decimal text that reads back as the value, without a trailing `.0`.

    >>> decimal_text(6.4), decimal_text(90.0)
    ('6.4', '90')
    """
    return repr(float(value)).removesuffix(".0")


def write_day(day: date, records: npt.ArrayLike) -> str:
    """A day of records as one line: date, comma, then each value, with `*count` where more than one record holds it.

    >>> write_day(date(2013, 1, 1), [4, -1, 4])
    '2013-01-01,-1 4*2'
    """
    values, counts = np.unique(np.asarray(records, dtype=np.float64), return_counts=True)
    pairs = zip(values, counts, strict=True)
    return f"{day},{' '.join(decimal_text(v) + (f'*{n}' if n > 1 else '') for v, n in pairs)}"


def read_day(line: str) -> tuple[date, Array]:
    """The inverse of `write_day`: the date and its records, ascending.

    >>> read_day("2013-01-01,-1 4*2")
    (datetime.date(2013, 1, 1), array([-1.,  4.,  4.]))
    """
    day, _, text = line.partition(",")
    pairs: Sequence[tuple[str, str, str]] = [item.partition("*") for item in text.split()]
    values = np.array([float(value) for value, _, _ in pairs])
    return date.fromisoformat(day), np.repeat(values, [int(count or 1) for _, _, count in pairs])
