"""Tidy tables: one dictionary a row, grouped into means with standard errors, without a data frame library."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

Row = dict[str, Any]


def select(rows: Iterable[Mapping[str, Any]], **facts: Any) -> list[Row]:
    """The rows that have all these values.

    >>> select([{"m": 1, "gap": 3}, {"m": 2, "gap": 5}], m=2)
    [{'m': 2, 'gap': 5}]
    """
    return [dict(row) for row in rows if all(row[name] == value for name, value in facts.items())]


def mean_and_error(values: Any) -> tuple[float, float]:
    """Mean of independent values and its standard error, NaN for a single value, to twelve digits.

    values: (n,) numbers, at least one. Digits beyond the twelfth depend on the processor; with them a number that ends
    in a 5, as means of few counts do, would be printed as rounded up on one and down on another.

    >>> mean_and_error([1, 2, 3])
    (2.0, 0.57735)
    """
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or not array.size:
        raise ValueError(f"values must be a sequence of at least one number, got shape {array.shape}")
    error = float(np.std(array, ddof=1)) / math.sqrt(array.size) if array.size > 1 else math.nan
    return float(f"{np.mean(array):.12g}"), float(f"{error:.12g}")


def summarise(rows: Iterable[Mapping[str, Any]], by: Sequence[str], value: str) -> list[Row]:
    """Mean, standard error and number of a column's values in each group, in the order in which groups first occur.

    rows: with all the columns named. by: columns that make the groups. value: column of numbers.
    Returns rows with the columns of `by` and `mean`, `error`, `count`.

    >>> summarise([{"m": 1, "gap": 3}, {"m": 1, "gap": 5}], ["m"], "gap")
    [{'m': 1, 'mean': 4.0, 'error': 1.0, 'count': 2}]
    """
    groups: dict[tuple[Hashable, ...], list[float]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in by), []).append(float(row[value]))
    out = []
    for key, values in groups.items():
        mean, error = mean_and_error(values)
        out.append(dict(zip(by, key, strict=True)) | {"mean": mean, "error": error, "count": len(values)})
    return out


def paired_difference(
    rows: Iterable[Mapping[str, Any]], other: Iterable[Mapping[str, Any]], pair: Sequence[str], value: str
) -> tuple[float, float]:
    """Mean of `rows - other` over the pairs of rows that agree on the columns of `pair`, and its standard error.

    The data of a pair are the same, so what they have in common cancels. Raises `ValueError` naming rows or other if
    they are not the same pairs or if a pair occurs twice.

    >>> rows, other = [{"t": 0, "gap": 3}, {"t": 1, "gap": 5}], [{"t": 1, "gap": 4}, {"t": 0, "gap": 0}]
    >>> paired_difference(rows, other, ["t"], "gap")
    (2.0, 1.0)
    """
    one, two = _keyed(rows, pair, value, "rows"), _keyed(other, pair, value, "other")
    if one.keys() != two.keys():
        raise ValueError(f"rows and other must hold the same pairs: {len(one.keys() ^ two.keys())} occur in one only")
    return mean_and_error([one[key] - two[key] for key in one])


def _keyed(rows: Iterable[Mapping[str, Any]], pair: Sequence[str], value: str, name: str) -> dict[Any, float]:
    keyed: dict[Any, float] = {}
    for row in rows:
        key = tuple(row[column] for column in pair)
        if key in keyed:
            raise ValueError(f"{name} must hold a pair once, {key} occurs twice")
        keyed[key] = float(row[value])
    return keyed
