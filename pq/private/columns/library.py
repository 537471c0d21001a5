"""Whose a column is: the package that made it, by its type alone (Section 3.1)."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

FLOAT64 = np.dtype(np.float64)
KNOWN = ("numpy", "pandas", "polars", "pyarrow")  # whose columns declare what they hold


def library_of(x: Any) -> str:
    """The package that an object's class comes from, or the first of its bases that is known."""
    return _library(type(x))  # type: ignore[arg-type]  # classes can be hashed


@lru_cache(maxsize=256)
def _library(kind: type) -> str:
    made_by = [base.__module__.partition(".")[0] for base in kind.__mro__]
    return next((name for name in made_by if name in KNOWN), made_by[0])


def is_table(x: Any) -> bool:
    """Whether x is a data frame or a query of whatever engine, by its type alone."""
    return hasattr(type(x), "columns")


def is_ready(x: Any) -> bool:
    """Whether x is a column of floats as it is."""
    return type(x) is np.ndarray and x.dtype == FLOAT64 and x.ndim == 1
