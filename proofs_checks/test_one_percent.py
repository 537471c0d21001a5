"""Each bound of the package is pinned: with one percent more or less of it, some check that names it fails.

So it does if the bound is right where the check calls it first, or wherever one argument is as in the first call: no
bound is compared at one point alone, nor at one value of an argument. The last takes minutes, and is for every bound
with `PQ_LONG=1` only. What the paper prints is compared in `tests/core/test_bounds_printed.py`.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from types import FunctionType
from typing import Any

import pytest

from pq import bounds
from pq.bounds import lem_quantile, tree_zcdp
from proofs_checks.engine.registry import Check, all_checks

FUNCTIONS = {name: inspect.unwrap(getattr(bounds, name)) for name in bounds.__all__}
QUICK = ("dyadic_conditional", "expected_gap", "lem_quantile", "joint_even_gap", "cells_gap", "pubpri_step_sizes")
BOUNDS = {name: function for name, function in FUNCTIONS.items() if inspect.isfunction(function)}


def signature_of(function: Callable[..., Any]) -> tuple[str, ...]:
    """The names of its arguments."""
    return tuple(inspect.signature(function).parameters)


def moved(found: Any, factor: float) -> Any:
    """A number times the factor, or one more or less if it is whole; of several numbers, each."""
    if isinstance(found, bool) or found is None:
        return found
    if isinstance(found, int):
        return found + (1 if factor > 1 else -1)
    if isinstance(found, tuple | list):
        parts = [moved(part, factor) for part in found]
        return type(found)(*parts) if hasattr(found, "_fields") else type(found)(parts)
    return found * factor


@contextmanager
def off_by(function: Any, factor: float, *, but_at: Collection[str] = ()) -> Iterator[None]:
    """The function off by a factor for everybody who has imported it: it keeps its identity and changes its code.

    but_at: arguments; where they are as in the first call it stays right.
    """
    kept = function.__code__, function.__defaults__, function.__kwdefaults__
    original = FunctionType(kept[0], function.__globals__, argdefs=kept[1])
    original.__kwdefaults__ = kept[2]
    signature, first = inspect.signature(original), list[list[Any]]()

    def off(*args: Any, **named: Any) -> Any:
        found, given = original(*args, **named), signature.bind(*args, **named)
        given.apply_defaults()
        point = [given.arguments[name] for name in but_at]
        first.append(point)
        del first[1:]
        return found if but_at and point == first[0] else moved(found, factor)

    function.__globals__["_moved"] = off
    function.__defaults__ = function.__kwdefaults__ = None
    function.__code__ = (lambda *args, **named: _moved(*args, **named)).__code__  # type: ignore[name-defined]  # noqa: F821
    try:
        yield
    finally:
        function.__code__, function.__defaults__, function.__kwdefaults__ = kept
        del function.__globals__["_moved"]


def rejects(check: Check, function: Any, factor: float, *, but_at: Collection[str]) -> bool:
    """Whether it fails with such a function: by an assertion, or since the package refuses what it is given."""
    try:
        with off_by(function, factor, but_at=but_at):
            check.function()
    except (AssertionError, ValueError):
        return True
    return False


def is_pinned(function: Callable[..., Any], factor: float, *, but_at: Collection[str] = ()) -> bool:
    """Whether a check that names the function rejects it off by the factor; the quick ones first."""
    named = [check for check in all_checks().values() if function in map(inspect.unwrap, check.code)]
    quick = sorted(named, key=lambda check: "simulated" in check.key)
    return any(rejects(check, function, factor, but_at=but_at) for check in quick)


@pytest.mark.parametrize("name", BOUNDS)
def test_one_percent_of_a_bound_is_noticed(name: str) -> None:
    assert is_pinned(BOUNDS[name], 0.99) and is_pinned(BOUNDS[name], 1.01)


@pytest.mark.parametrize("name", BOUNDS)
def test_one_percent_of_a_bound_is_noticed_beyond_the_first_point(name: str) -> None:
    at = signature_of(BOUNDS[name])
    assert all(is_pinned(BOUNDS[name], factor, but_at=at) for factor in (0.99, 1.01))


@pytest.mark.parametrize("name", BOUNDS if os.environ.get("PQ_LONG") == "1" else QUICK)
def test_one_percent_of_a_bound_is_noticed_at_other_values_of_each_argument(name: str) -> None:
    for argument in signature_of(BOUNDS[name]):
        if argument != "version" and (name, argument) != ("lem_error", "rounded"):  # what is printed; a slack of 0
            assert all(is_pinned(BOUNDS[name], factor, but_at=(argument,)) for factor in (0.99, 1.01)), argument


def test_a_function_off_by_a_factor_comes_back() -> None:
    right = lem_quantile(-1.0, 1.0, beta=0.5)
    with off_by(lem_quantile, 2.0):
        assert lem_quantile(-1.0, 1.0, beta=0.5) == bounds.lem_quantile(-1.0, 1.0, beta=0.5) == 2 * right
    with off_by(lem_quantile, 2.0, but_at=signature_of(lem_quantile)):
        assert lem_quantile(-1.0, 1.0, beta=0.5) == lem_quantile(-1.0, epsilon=1.0, beta=0.5, sensitivity=1.0) == right
        assert lem_quantile(-1.0, 0.5, beta=0.5) == 4 * right
    assert lem_quantile(-1.0, 1.0, beta=0.5) == right
    assert not is_pinned(tree_zcdp, 1.0), "it is right as it is"
