"""Which values a page's parameters may have, declared once: the page refuses others, and a sweep goes to their corners.

A page's `validate` cell declares a range for each parameter:

    accept(globals(), n=whole(20, 500), epsilon=real_number(0.01, 10), levels=increasing(0, 1))

`accept` refuses a name that is not declared too, so that a run that sets one by a spelling of its own (papermill takes
any) does not go on with the default.
"""

from __future__ import annotations

import ast
import difflib
import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

# What a kernel's namespace holds before a page says anything.
KERNELS_OWN = {"In", "Out", "exit", "get_ipython", "open", "quit"}


@dataclass(frozen=True)
class Range:
    """Values that a parameter may have, in words, by a test, and by the ends of them that a sweep tries.

    words: as in "n must be ..., and is 5". holds: of a value of any type; never raises. corners: ends of the range.
    optional: None is allowed too and means what the page says. sized: the running time grows with the value.
    """

    words: str
    holds: Callable[[Any], bool]
    corners: tuple[Any, ...]
    optional: bool = False
    sized: bool = False

    def allows(self, value: Any) -> bool:
        """Whether a value lies in the range."""
        return (self.optional and value is None) or self.holds(value)


def whole(low: int, high: int, *, sized: bool = False, optional: bool = False) -> Range:
    """Whole numbers from low to high.

    >>> whole(1, 3).allows(3), whole(1, 3).allows(3.0), whole(1, 3).allows(True)
    (True, False, False)
    """
    return Range(
        f"a whole number from {low} to {high}",
        lambda value: type(value) is int and low <= value <= high,
        (low, high),
        optional,
        sized,
    )


def real_number(low: float, high: float) -> Range:
    """Numbers from low to high.

    >>> real_number(0.1, 2).allows(1), real_number(0.1, 2).allows(float("nan")), real_number(0.1, 2).allows("1")
    (True, False, False)
    """
    return Range(f"a number from {low:g} to {high:g}", lambda value: _is_number(value, low, high), (low, high))


def increasing(
    low: float, high: float, *, least: int = 1, most: int = 20, whole_numbers: bool = False, optional: bool = False
) -> Range:
    """Lists of increasing numbers within [low, high], of least to most elements.

    >>> increasing(0, 1).allows([0.1, 0.9]), increasing(0, 1).allows([0.9, 0.1]), increasing(0, 1).allows([])
    (True, False, False)
    """

    def holds(value: Any) -> bool:
        if not (isinstance(value, list | tuple) and least <= len(value) <= most):
            return False
        fit = all(_is_number(one, low, high) and (type(one) is int or not whole_numbers) for one in value)
        return fit and all(one < other for one, other in itertools.pairwise(value))

    kind = "whole numbers" if whole_numbers else "numbers"
    corners: tuple[Any, ...] = ([low], [high]) if least == 1 else ([low, high],)
    return Range(f"{least} to {most} increasing {kind} from {low:g} to {high:g}", holds, corners, optional)


def several(low: float, high: float, *, most: int = 20) -> Range:
    """Lists of different numbers from low to high, in any order.

    >>> several(0, 1).allows([0.9, 0.1]), several(0, 1).allows([0.1, 0.1])
    (True, False)
    """
    inner = increasing(low, high, most=most)

    def holds(value: Any) -> bool:
        fit = isinstance(value, list | tuple) and all(_is_number(one, low, high) for one in value)
        return fit and inner.holds(sorted(value))

    return Range(f"1 to {most} different numbers from {low:g} to {high:g}", holds, inner.corners)


def one_of(*values: Any) -> Range:
    """The values named.

    >>> one_of("quick", "paper").allows("quik")
    False
    """
    return Range(
        f"one of {', '.join(map(repr, values))}",
        lambda value: any(type(value) is type(one) and value == one for one in values),
        values,
    )


def text() -> Range:
    """Any text."""
    return Range("a text", lambda value: isinstance(value, str), ("", "no such text"))


def accept(namespace: Mapping[str, Any], /, **ranges: Range) -> None:
    """Refuse parameters out of range, and names that are no parameters.

    namespace: of the page where only the parameters are set so far. ranges: one for each parameter.

    Raises:
        ValueError: a value lies outside its range, or a name is not declared; says which, and what was perhaps meant.

    >>> accept({"epsilon": 1.0}, epsilon=real_number(0.01, 10))
    >>> accept({"epsilon": 1.0, "epsilom": 2.0}, epsilon=real_number(0.01, 10))
    Traceback (most recent call last):
        ...
    ValueError: no parameter is named 'epsilom' (did you mean 'epsilon'?); the page has: epsilon
    """
    own = KERNELS_OWN | {name for name, value in namespace.items() if callable(value)}
    for name in namespace:
        if not (name in ranges or name in own or name.startswith("_")):
            near = difflib.get_close_matches(name, ranges, n=1)
            hint = f" (did you mean {near[0]!r}?)" if near else ""
            raise ValueError(f"no parameter is named {name!r}{hint}; the page has: {', '.join(ranges)}")
    for name, allowed in ranges.items():
        if not allowed.allows(namespace[name]):
            ending = ", or None" if allowed.optional else ""
            raise ValueError(f"{name} must be {allowed.words}{ending}, and is {namespace[name]!r}")


def declared_ranges(validation: str) -> dict[str, Range]:
    """The ranges that a `validate` cell declares, read from its source without running the rest of the cell.

    Raises:
        ValueError: the cell has not exactly one call of `accept`, or not of the form above.
    """
    calls = [
        node
        for node in ast.walk(ast.parse(validation))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "accept"
    ]
    if len(calls) != 1 or [ast.unparse(one) for one in calls[0].args] != ["globals()"]:
        raise ValueError("the cell tagged 'validate' must call accept(globals(), name=range, ...) once")
    return {word.arg: _value_of(word.value) for word in calls[0].keywords if word.arg is not None}


def _value_of(call: ast.expr) -> Range:
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in _MAKERS:
        options = {word.arg: ast.literal_eval(word.value) for word in call.keywords if word.arg}
        return _MAKERS[call.func.id](*map(ast.literal_eval, call.args), **options)
    raise ValueError(f"{ast.unparse(call)} is no range: there are {', '.join(_MAKERS)}")


def _is_number(value: Any, low: float, high: float) -> bool:
    return type(value) in (int, float) and math.isfinite(value) and low <= value <= high


_MAKERS: dict[str, Callable[..., Range]] = {
    "whole": whole,
    "real_number": real_number,
    "increasing": increasing,
    "several": several,
    "one_of": one_of,
    "text": text,
}
