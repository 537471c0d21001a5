"""Columns that are buffers are read, or refused, by the format that they declare, with records and without."""

from __future__ import annotations

import array
import ctypes
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import pq


class Cell(ctypes.Structure):
    _fields_ = (("a", ctypes.c_int),)


def view_of(held: Any) -> Any:
    return memoryview(held)


def of_numpy(dtype: Any) -> Callable[[int], Any]:
    return lambda n: view_of(np.ones(n, dtype))


def numbers(code: str, n: int) -> Any:
    return array.array(code, [1] * n)


def cast(letter: str, size: int) -> Callable[[int], Any]:
    return lambda n: view_of(bytes(n * size)).cast(letter)


NUMBERS: dict[str, Callable[[int], Any]] = {
    **{f"memoryview {dtype}": of_numpy(dtype) for dtype in ("e", "f", "d", "g", ">d", ">i2", "?", "b", "Q", "O")},
    **{f"cast {letter}": cast(letter, 8) for letter in ("n", "N", "@d", "q")},
    **{f"array {code}": partial(numbers, code) for code in "bBhHiIlLqQfd"},
    "every other": lambda n: view_of(np.ones(2 * n, "e"))[::2],
    "ctypes": lambda n: (ctypes.c_double * n)(),
    "ctypes backwards": lambda n: (ctypes.c_double.__ctype_be__ * n)(),
}
TEXTS: dict[str, Callable[[int], Any]] = {  # which may be IDs or keys
    "characters": cast("c", 1),
    "texts": of_numpy("U3"),
    "bytes": of_numpy("S3"),
    "array u": lambda n: array.array("u", "1" * n),
    "ctypes characters": lambda n: (ctypes.c_char * n)(),
}
NEITHER: dict[str, Callable[[int], Any]] = {
    "pointers": cast("P", 8),
    "complex": of_numpy("D"),
    "records": of_numpy("i4,f8"),
    "rows in records": of_numpy([("a", "f8", (2,))]),
    "ctypes pointers": lambda n: (ctypes.c_void_p * n)(),
    "ctypes long doubles": lambda n: (ctypes.c_longdouble * n)(),  # of no format of numpy's
    "ctypes wide characters": lambda n: (ctypes.c_wchar * n)(),
    "ctypes structures": lambda n: (Cell * n)(),
}
COUNTS = (0, 1, 3)


@pytest.mark.parametrize("name", NUMBERS)
def test_a_buffer_of_numbers_is_read(name: str) -> None:
    """float16 and long double were read without records only: with one a release failed after its charge."""
    for n in COUNTS:
        x = NUMBERS[name](n)
        expected = np.asarray(memoryview(x)).astype(float)
        assert pq.count(x).counts.sum() == n and set(pq.count(x).values) == set(expected)
        assert pq.release(x, [0.5], epsilon=1, priors=pq.Cauchy(0, 1)).values.shape == (1,)
        table = {"x": x, "one": [1.0] * n}
        assert pq.count(table, "x", person="one", max_contributions=5).counts.sum() == n
        assert pq.count(table, "one", person="x", max_contributions=5).counts.sum() == n
        grouped = pq.release_groups(
            table, [0.5], by="x", value="one", keys=[1, 7], epsilon=1, priors=pq.Cauchy(0, 1), person="x"
        )
        assert list(grouped.releases) == [1, 7]


@pytest.mark.parametrize("name", [*TEXTS, *NEITHER])
def test_a_buffer_of_no_numbers_is_refused_before_the_charge(name: str) -> None:
    ledger = pq.Ledger(1)
    said = set()
    for n in COUNTS:
        x = {**TEXTS, **NEITHER}[name](n)
        with pytest.raises(TypeError, match="x must be a column of real numbers") as error:
            pq.release(x, [0.5], epsilon=1, priors=pq.Cauchy(0, 1), ledger=ledger)
        with pytest.raises(TypeError, match="value must name a column of numbers, dates or times"):
            pq.count({"v": x, "p": ["a"] * n}, "v", person="p")
        said.add(str(error.value))
        person: dict[str, Any] = {"v": [1.0] * n, "p": x}
        if name in TEXTS:
            assert pq.count(person, "v", person="p", max_contributions=5).counts.sum() in (0, n)
        else:
            with pytest.raises(TypeError, match="person must name a column of texts, numbers, dates or times"):
                pq.count(person, "v", person="p")
    assert ledger.spent == 0 and len(said) == 1


@pytest.mark.parametrize("n", COUNTS)
def test_tables_and_bytes_are_refused_as_buffers_too(n: int) -> None:
    for x in (view_of(np.ones((n, 2))), (ctypes.c_double * 2 * n)(), view_of(np.ones(()))):
        with pytest.raises(ValueError, match="x must be one-dimensional"):
            pq.count(x)
    for held in (b"1" * n, bytearray(n)):
        with pytest.raises(TypeError, match="value must name a column of numbers, dates or times"):
            pq.count({"v": held, "p": ["a"] * n}, "v", person="p")
