"""Ways to break a statement that several checks share."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any


def printed(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same guarantee as the paper prints it."""
    return partial(function, version="paper")


def scaled(function: Callable[..., float], factor: float) -> Callable[..., float]:
    """A bound that is too small (or needlessly large) by a factor."""
    return lambda *args, **named: function(*args, **named) * factor


SLACK_ZERO = [lambda *_: Fraction(0)]
