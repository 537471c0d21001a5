"""Checks of the numbers that priors are made of and asked about: whatever is no number is refused by name."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from pq.core.exact import briefly, is_real
from pq.core.priors.numerics import Array
from pq.core.seconds import TIMES, seconds_of


def real(value: Any, name: str) -> float:
    """A finite real argument as a float, a time or a duration in seconds; raises naming the argument."""
    if type(value) is not float:
        value = value[()] if isinstance(value, np.ndarray) and value.ndim == 0 else value
        try:
            value = seconds_of(value) if isinstance(value, TIMES) else value
        except TypeError as error:
            raise TypeError(f"{name} must be a real number or a time: {error}") from None
    return finite_number(value, name)


def finite_number(value: Any, name: str) -> float:
    """A finite real argument without a unit, such as a weight, as a float; raises naming it, for times too."""
    if type(value) is float and math.isfinite(value):  # the way of nearly all: looking further takes ten times as long
        return value + 0.0
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if not is_real(value):
        raise TypeError(f"{name} must be a real number, got {type(value).__name__}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ValueError(f"{name} must be finite, got {briefly(value)}")
    return number + 0.0  # one zero


def positive(value: Any, name: str = "scale") -> float:
    """A finite real argument above zero as a float; raises naming the argument."""
    number = real(value, name)
    if number <= 0.0:
        raise ValueError(f"{name} must be positive, got {briefly(value)}")
    return number


def reals(values: Any, name: str, each: Callable[[Any, str], float] = real) -> tuple[float, ...]:
    """A sequence of finite real numbers as floats; raises naming the first that is none."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise TypeError(f"{name} must be a sequence of real numbers, got {type(values).__name__}")
    return tuple(each(value, f"{name}[{i}]") for i, value in enumerate(values))


def reals_each(values: Any, count: int, name: str) -> Array:
    """A finite real number for all quantiles, or one for each of them, as (count,); raises naming the argument."""
    if np.shape(values) not in ((), (count,)):
        raise ValueError(f"{name} must be a finite number, or one for each quantile")
    return np.array([real(values, name)] * count if np.shape(values) == () else reals(values, name))


def shares(values: Any, count: int, of: str) -> tuple[float, ...]:
    """Non-negative weights, divided by their sum; weights that add up to one already stay as they are."""
    weights = reals(values, "weights", finite_number)
    if len(weights) != count:
        raise ValueError(f"weights must have one entry for each of the {count} {of}, got {len(weights)}")
    if min(weights, default=0.0) < 0.0:
        raise ValueError("weights must not be negative")
    largest = max(weights, default=0.0)
    if largest <= 0.0:
        raise ValueError("weights must have a positive sum")
    if largest > 1e300:  # the sum could overflow
        weights = tuple(weight / largest for weight in weights)
    total = math.fsum(weights)
    return weights if abs(total - 1.0) <= 4e-16 else tuple(weight / total for weight in weights)


def floats(values: Any, name: str) -> Array:
    """An array argument as float64; raises for text, booleans and other things that are no real numbers."""
    if type(values) is np.ndarray and values.dtype == np.float64:
        return values
    if type(values) is float:
        return np.array(values)
    try:
        array = np.asarray(values)
        if array.dtype.kind in "fiu" or (array.dtype.kind == "O" and all(map(is_real, array.flat))):
            return array.astype(np.float64)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{name} must be an array of float64 numbers: {error}") from None
    raise TypeError(f"{name} must hold real numbers, got {array.dtype}")
