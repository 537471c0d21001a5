"""Public keys as JSON, exactly and both ways, and as texts that tell them apart (Section 3.1)."""

from __future__ import annotations

import datetime as dt
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import chain, repeat
from typing import Any

import numpy as np

from pq.core.seconds import TIMES, as_ticks
from pq.private.columns.identity import identity_of

JSON_KEYS = (str, bool, int, float)
WRITTEN: dict[type, tuple[Callable[[Any], str], Callable[[str], Any]]] = {  # the first type that fits; both ways
    dt.datetime: (dt.datetime.isoformat, dt.datetime.fromisoformat),
    dt.date: (dt.date.isoformat, dt.date.fromisoformat),
    dt.time: (dt.time.isoformat, dt.time.fromisoformat),
    dt.timedelta: (
        lambda length: str(length // dt.timedelta(microseconds=1)),
        lambda text: dt.timedelta(microseconds=int(text)),
    ),
    np.datetime64: (str, np.datetime64),
    np.timedelta64: (
        lambda length: f"{length.astype(np.int64)} {np.datetime_data(length.dtype)[0]}",
        lambda text: np.int64(text.split()[0]).view(f"m8[{text.split()[1]}]"),
    ),
    Decimal: (str, Decimal),
    Fraction: (str, Fraction),
}


def key_written(key: Any) -> Any:
    """A key as JSON has it; `key_read` is the inverse. A time of pandas that Python's times lack is written as numpy's.
    Raises `ValueError` naming keys for what cannot be written and read back exactly.

    >>> key_written("a"), key_written(Fraction(1, 3))
    ('a', {'Fraction': '1/3'})
    """
    for form in (key, as_ticks(key)):
        try:
            written = _in_json(form)
            found = _out_of_json(json.loads(json.dumps(written, allow_nan=False, ensure_ascii=False).encode()))
            if identity_of(found) == identity_of(key) if isinstance(key, TIMES) else found == key:
                return written
        except (ValueError, ArithmeticError):  # too many digits, an infinity, a year that Python has not
            pass
    raise ValueError(f"keys must be such as JSON and Python can write in full, which this {type(key).__name__} is not")


def key_read(written: Any) -> Any:
    """The inverse of `key_written`; raises `TypeError` or `ValueError` naming keys for what that has not written."""
    found = _out_of_json(written)
    if key_written(found) != written:
        raise ValueError(f"keys must be written as `to_dict` does, got {written!r}")
    return found


def _out_of_json(written: Any) -> Any:
    if isinstance(written, JSON_KEYS):
        return written
    readers = {kind.__name__: read for kind, (_, read) in WRITTEN.items()}
    if not isinstance(written, Mapping) or len(written) != 1 or next(iter(written)) not in readers:
        raise TypeError(f"keys must be texts, numbers or one of {', '.join(readers)}")
    ((name, text),) = written.items()
    try:
        found = readers[name](text) if isinstance(text, str) else None
        if found is not None and found == found:  # no NaN, no NaT
            return found
    except (ValueError, ArithmeticError, TypeError, IndexError):
        pass
    raise ValueError(f"keys must hold a {name}, got {text!r}")


def key_texts(keys: Sequence[Any]) -> list[str]:
    """Keys for people (g,): those that read alike say what type they are, and then which of the keys.

    >>> key_texts([1, "1", "b"])
    ['1 (int)', '1 (str)', 'b']
    """
    kept = [key_read(key_written(key)) for key in keys]  # what is read later reads alike
    texts = [_seen(str(key.isoformat() if isinstance(key, dt.date | dt.time) else key)) for key in kept]
    types, places = [type(key).__name__ for key in kept], [f"key {place}" for place in range(1, len(keys) + 1)]
    for marks in chain([types], repeat(places)):
        shared = Counter(texts)
        if len(shared) == len(texts):
            break
        texts = [f"{text} ({mark})" if shared[text] > 1 else text for text, mark in zip(texts, marks, strict=True)]
    return texts


def _seen(text: str) -> str:
    """A text as pages show it: quoted where white space or what cannot be printed would be lost."""
    return text if text == " ".join(text.split()) and text.isprintable() else repr(text)


def _in_json(key: Any) -> Any:
    if isinstance(key, JSON_KEYS):
        return key
    kind = next(kind for kind in WRITTEN if isinstance(key, kind))
    return {kind.__name__: WRITTEN[kind][0](key)}
