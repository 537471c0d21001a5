"""The one public rule by which a cell of text is read, whatever the cells beside it say (Section 3.1)."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np

from pq.core.kind import NUMBER, Date, Duration, Kind, Time, Timestamp
from pq.core.seconds import MICROSECOND, in_seconds, seconds_of

CURRENCY = "$¢£¤¥฿\u20a0-\u20cf"  # as a set of a regular expression
LENGTH = re.compile(
    r"(?P<sign>[+-]?)P(?!$)(?:(?P<W>[0-9]+)W)?(?:(?P<D>[0-9]+)D)?"
    r"(?:T(?!$)(?:(?P<H>[0-9]+)H)?(?:(?P<M>[0-9]+)M)?(?:(?P<S>[0-9]+(?:[.,][0-9]+)?)S)?)?"
)
SECONDS = {"W": 604_800, "D": 86_400, "H": 3_600, "M": 60, "S": 1}
MOST_DIGITS, LONGEST = 100, 10**15  # of a duration, in seconds: beyond, no float has microseconds
ISO = {Date: dt.date.fromisoformat, Timestamp: dt.datetime.fromisoformat, Time: dt.time.fromisoformat}
PATTERNS = {
    Date: "a date of ISO 8601 such as 2026-03-01",
    Timestamp: "a timestamp of ISO 8601 such as 2026-03-01T12:30:00+01:00, in UTC where it says no offset",
    Time: "a time of day of ISO 8601 such as 12:30:00",
    Duration: "a duration of ISO 8601 in weeks, days, hours, minutes and seconds, such as P1DT2H30M",
}


@dataclass(frozen=True)
class CellRule:
    """How cells of text are read: a public rule, printed by `str`.

    kind: what they are, `pq.core.kind`. decimal: the mark before decimals, one character. thousands: the mark that may
    part digits by threes, or None. Raises `ValueError` naming decimal or thousands for a mark that is none.

    >>> rule = CellRule(thousands=",")
    >>> rule.read(" $66,000.00 "), rule.read("6,60"), rule.read("-1e3")
    (66000.0, nan, -1000.0)
    """

    kind: Kind = NUMBER
    decimal: str = "."
    thousands: str | None = None
    _pattern: re.Pattern[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name, mark in (("decimal", self.decimal), ("thousands", self.thousands)):
            if mark is not None and (len(mark) != 1 or mark.isalnum() or mark in '+-"\r\n'):
                raise ValueError(f"{name} must be one character that is no digit, letter, sign or quote, got {mark!r}")
        if self.decimal == self.thousands:
            raise ValueError(f"thousands must differ from decimal, got {self.thousands!r} for both")
        whole = "[0-9]+"
        if self.thousands is not None:
            whole = rf"[0-9]{{1,3}}(?:{re.escape(self.thousands)}[0-9]{{3}})+|{whole}"
        point = re.escape(self.decimal)
        number = rf"(?:(?:{whole})(?:{point}[0-9]*)?|{point}[0-9]+)(?:[eE][+-]?[0-9]+)?|(?i:inf(?:inity)?)"
        pattern = rf"\s*([+-]?)\s?[{CURRENCY}]?\s?([+-]?)({number})\s?[{CURRENCY}]?\s*"
        object.__setattr__(self, "_pattern", re.compile(pattern))

    def __str__(self) -> str:
        if self.kind != NUMBER:
            return f"a cell counts as {PATTERNS[type(self.kind)]}; any other as missing"
        marks = f"decimal mark {self.decimal!r}, " + (
            "no thousands mark" if self.thousands is None else f"thousands mark {self.thousands!r}"
        )
        return f"a cell counts as a number with {marks}, spaces and a currency sign left out; any other as missing"

    def read(self, cell: str) -> float:
        """What a cell says, in the unit of its kind; NaN if the rule does not read it."""
        try:
            if self.kind == NUMBER:
                return self._number(cell)
            if isinstance(self.kind, Duration):
                return _length(cell.strip())
            return seconds_of(ISO[type(self.kind)](cell.strip()))
        except (ValueError, OverflowError):
            return math.nan

    def _number(self, cell: str) -> float:
        found = self._pattern.fullmatch(cell)
        if found is None:
            return math.nan
        before, after, number = found.groups()
        if self.thousands is not None:
            number = number.replace(self.thousands, "")
        return float(f"{before}{after}{number.replace(self.decimal, '.')}")


PLAIN_CELLS = CellRule()  # of texts that stand among other records of unknown type


class TextColumn:
    """A column of cells read by one rule. It holds the records: keep it as safe as them.

    cells: (n,) texts. rule: how they are read. `kind` and `rule` are public, `values` (n,) are not: NaN where unread.
    """

    def __init__(self, cells: Iterable[str], rule: CellRule) -> None:
        self.rule, self.kind = rule, rule.kind
        self.values: np.ndarray[Any, np.dtype[np.float64]] = np.array([rule.read(cell) for cell in cells], dtype=float)

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        return "<TextColumn of sensitive records>"


def _length(text: str) -> float:
    """Seconds of a duration in ISO 8601; years and months have no fixed length."""
    found = LENGTH.fullmatch(text)
    if found is None:
        return math.nan
    parts = {unit: Decimal(found[unit].replace(",", ".")) for unit in SECONDS if found[unit]}
    with localcontext(prec=MOST_DIGITS):
        total = sum((part * SECONDS[unit] for unit, part in parts.items()), Decimal(0))
        total = -total if found["sign"] == "-" else total
        if abs(total) >= LONGEST:
            return float(total)
        return in_seconds(*divmod(math.floor(total * MICROSECOND), MICROSECOND))  # finer is cut, as of other times


def length_of(text: str) -> dt.timedelta:
    """A duration in ISO 8601 exactly, if it has whole microseconds; `_length` reads it as cells are read. Raises
    `ValueError` or `OverflowError` for what is none or longer than Python's.

    >>> length_of("-P200000DT0.000001S") == -dt.timedelta(days=200000, microseconds=1)
    True
    """
    found = LENGTH.fullmatch(text)
    if found is None:
        raise ValueError("not a duration")
    parts = {unit: Fraction(found[unit].replace(",", ".")) for unit in SECONDS if found[unit]}
    length = sum(part * SECONDS[unit] for unit, part in parts.items()) * MICROSECOND
    return dt.timedelta(microseconds=int(-length if found["sign"] == "-" else length))
