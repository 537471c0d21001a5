"""Who somebody is: an ID in a form of its own, by a rule that looks at nothing but that ID (Section 3.1).

Python's `==` is no rule for persons. `numpy.float64(2**127)` equals thousands of whole numbers that differ from each
other, `Decimal` fails at numpy's integers, a class may do as it likes: were IDs compared as they are, one person could
make others one, or make their records vanish. Only forms are compared. They are of Python's own types, whose equality
is exact, and of two that are equal each equals whatever the other does.
"""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Collection
from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Rational, Real
from typing import Any, TypeAlias
from uuid import UUID

import numpy as np
import numpy.typing as npt

from pq.core.exact import MOST_DIGITS
from pq.core.kind import Date, Duration, Time, Timestamp, kind_of_ticks
from pq.core.seconds import MICROSECOND, PARTS, TICKS, TIMES, as_ticks, since_start
from pq.private.columns.declared import plain_column
from pq.private.columns.dtypes import declaration_of
from pq.private.columns.library import library_of
from pq.private.columns.record import content_of
from pq.private.columns.strings import in_strings

IdentityForm: TypeAlias = "str | int | float | tuple[str, Any]"  # of a pair, the first says what the second is
Hashes = npt.NDArray[np.uint64]
WORD = 2**64
LISTS = ("to_pylist", "to_list", "tolist")  # how libraries call the list of a column's records
NAMES: dict[type, str] = {Date: "instant", Timestamp: "instant", Time: "time of day", Duration: "duration"}
FINEST = PARTS["as"]  # ticks in a second of numpy's finest unit, in which all times are whole
CYCLES = {"Y": 400, "M": 4_800}  # in which the calendar comes round, of as many days
DAYS_IN_CYCLE = 146_097
NO_TIME = np.iinfo(np.int64).min  # numpy's NaT


def identity_of(item: Any) -> IdentityForm | None:
    """The form of an ID; None for what is none: a null, a NaN, a blank text, and an object of any class but these.

    Texts and bytes are themselves. Numbers that are exactly equal have one form, of whatever types they are; only a
    `Decimal` of more than `MOST_DIGITS` digits before or after the point is no ID. Times that are exactly equal have
    one, too, in whatever units and zones: a day is the instant at which it begins, and what has no zone is of UTC.
    UUIDs are IDs, and so are tuples of IDs. What wraps one value is that value, see
    `pq.private.columns.record.number_of`. Never raises.

    >>> identity_of(np.float32(2.0)), identity_of(Decimal("0.50")), identity_of("2"), identity_of(" ")
    (2, 0.5, '2', None)
    """
    try:
        return _form_of(item)
    except Exception:  # an object whose own methods fail, or a number without a ratio, as NaN is
        return None


def identities_in(column: Any, times: bool) -> tuple[list[IdentityForm | None], npt.NDArray[np.int64]]:
    """Forms of the IDs in a column, and which of them each record (n,) has.

    times: whether the column is declared to hold dates or times. Their ticks are taken then, not objects of Python or
    pandas: libraries hold dates that those calendars lack, and units that are finer.
    """
    declared = declaration_of(column, library_of(column)) if times else None
    if declared is None or declared.ticks is None:
        forms = [identity_of(item) for item in items_of(column)]
        return forms, np.arange(len(forms))
    distinct, rows = np.unique(plain_column(declared.ticks(column)), return_inverse=True)
    return _forms_of_ticks(NAMES[type(declared.kind)], distinct), rows


def items_of(records: Any) -> list[Any]:
    """A column's records one by one, as Python has them."""
    records = in_strings(records)
    name = next((name for name in LISTS if hasattr(records, name)), None)
    return list(records) if name is None else list(getattr(records, name)())


def digests_of(forms: Collection[IdentityForm]) -> Hashes:
    """64 bits of each ID (n,), alike in every process."""
    held = [_held_in(form) for form in forms]
    is_number = [isinstance(one, (int, float, Fraction)) for one in held]
    words = [hash(one) % WORD if number else _word_of(one) for one, number in zip(held, is_number, strict=True)]
    found = np.array(words, dtype=np.uint64)
    return np.where(is_number, mixed(found), found)


def mixed(words: Hashes) -> Hashes:
    """A bijection of 64 bits that leaves no order (the finaliser of SplitMix64)."""
    with np.errstate(over="ignore"):
        words = words + np.uint64(0x9E3779B97F4A7C15)
        words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return np.asarray(words ^ (words >> np.uint64(31)))


def _held_in(form: IdentityForm) -> Any:
    if not isinstance(form, tuple):
        return form
    return Fraction(*form[1]) if form[0] == "ratio" else form[1]


def _word_of(held: Any) -> int:
    text = held if isinstance(held, str) else repr(held)
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")


def _form_of(item: Any) -> IdentityForm | None:
    """May raise. Methods are the builtin classes' own, whatever a class derived from these has in their place."""
    kind = type(item)
    if kind is int:
        return item
    if kind is str:
        return item if item.strip() else None
    if kind is float:
        return int(item) if item.is_integer() else item if item == item else None
    if kind is bytes:
        return "bytes", item
    if kind is Decimal:
        return _form_of_decimal(item)
    if isinstance(item, str):
        return _form_of(str.__str__(item))
    if isinstance(item, float):
        return _form_of(float.__pos__(item))
    if isinstance(item, bytes):
        return _form_of(b"".join((item,)))
    if isinstance(item, Decimal):
        return _form_of_decimal(item)
    if isinstance(item, TIMES):
        return _form_of_time(item)
    if isinstance(item, (Real, np.bool_)):
        return _form_of_number(item)
    if isinstance(item, UUID):
        return "uuid", int(item.int)
    if library_of(item) == "pyarrow" and hasattr(item, "as_py"):
        return _form_of_scalar(item)
    inner = content_of(item)
    if inner is not item:
        return identity_of(inner)
    return _form_of_parts(item) if isinstance(item, tuple) else None


def _form_of_scalar(item: Any) -> IdentityForm | None:
    import pyarrow as pa

    is_time: bool = pa.types.is_temporal(item.type)  # which as an object of Python loses its nanoseconds
    return identities_in(pa.array([item], item.type), True)[0][0] if is_time else identity_of(item.as_py())


def _form_of_time(item: Any) -> IdentityForm | None:
    item = as_ticks(item)
    if isinstance(item, (np.datetime64, np.timedelta64)):
        kind = kind_of_ticks(item.dtype)
        return None if kind is None else _forms_of_ticks(NAMES[type(kind)], np.array([item]))[0]
    length = since_start(item)
    if isinstance(item, dt.time):
        length -= dt.time.utcoffset(item) or dt.timedelta(0)
    name = "time of day" if isinstance(item, dt.time) else "duration" if isinstance(item, dt.timedelta) else "instant"
    return name, length // dt.timedelta(microseconds=1) * (FINEST // MICROSECOND)


def _forms_of_ticks(name: str, ticks: npt.NDArray[Any]) -> list[IdentityForm | None]:
    """Of numpy's times, in a unit of a known length; None for what is no time."""
    unit = np.datetime_data(ticks.dtype)[0]
    counts = ticks.astype(ticks.dtype.newbyteorder("=")).view(np.int64)
    known = (counts != NO_TIME).tolist()
    whole, size = counts.tolist(), FINEST // PARTS[unit] if unit in PARTS else TICKS.get(unit, 604_800) * FINEST
    if unit in CYCLES:
        cycles, rest = np.divmod(counts, CYCLES[unit])
        days = rest.view(f"M8[{unit}]").astype("M8[D]").view(np.int64)
        whole = [cycle * DAYS_IN_CYCLE + day for cycle, day in zip(cycles.tolist(), days.tolist(), strict=True)]
        size = TICKS["D"] * FINEST
    return [(name, count * size) if there else None for count, there in zip(whole, known, strict=True)]


def _form_of_decimal(item: Decimal) -> IdentityForm | None:
    if not Decimal.is_finite(item):
        return _form_of(float(item))
    if Decimal.adjusted(item) > MOST_DIGITS:
        return None
    whole = Decimal.__int__(item)
    if Decimal.__eq__(item, whole):
        return whole
    return None if -int(Decimal.as_tuple(item)[2]) > MOST_DIGITS else _form_of_ratio(*Decimal.as_integer_ratio(item))


def _form_of_number(item: Any) -> IdentityForm | None:
    if isinstance(item, (Integral, np.bool_)):
        return int(item)
    try:
        parts = (item.numerator, item.denominator) if isinstance(item, Rational) else item.as_integer_ratio()
    except OverflowError:  # infinities have none
        return _form_of(float(item))
    ratio = Fraction(*map(int, parts))
    return _form_of_ratio(ratio.numerator, ratio.denominator)


def _form_of_ratio(above: int, below: int) -> IdentityForm:
    """Of a fraction in lowest terms: a whole number; else the float that is equal, if one is; else the two terms."""
    if below == 1:
        return above
    try:
        near = above / below
    except OverflowError:
        return "ratio", (above, below)
    return near if near.as_integer_ratio() == (above, below) else ("ratio", (above, below))


def _form_of_parts(item: tuple[Any, ...]) -> IdentityForm | None:
    """As a text, which has no depth: tuples in tuples in tuples may be too many to compare."""
    parts = [identity_of(part) for part in tuple.__iter__(item)]
    if not parts or None in parts:
        return None
    texts = [f"t{part[1]}" if isinstance(part, tuple) and part[0] == "tuple" else f"r{part!r}" for part in parts]
    return "tuple", "".join(f"{len(text)}:{text}" for text in texts)
