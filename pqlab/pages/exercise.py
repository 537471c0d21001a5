"""Checks of what students compute: they say what is wrong with an answer, and never what is right."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

NOT_YET = "not yet"


def grade(answer: Any, right: Callable[[Any], Any], hints: Mapping[str, Callable[[Any], Any]] | None = None) -> None:
    """Print whether an answer is right, and what is wrong where a hint knows it; never raises.

    answer: None as long as there is none. right: a test of an answer. hints: what to say, by tests of wrong answers
    that people give; the first that fits is said.

    >>> grade(None, lambda a: a == 4)
    not answered yet
    >>> grade(3, lambda a: a == 4, {"one level is missing": lambda a: a == 3})
    not yet: one level is missing
    >>> grade("four", lambda a: abs(a - 4) < 1)
    not yet: this is a str, and cannot be compared
    """
    if answer is None:
        print("not answered yet")
        return
    try:
        if right(answer):
            print("right")
            return
        fitting = [words for words, fits in (hints or {}).items() if fits(answer)]
        print(f"{NOT_YET}: {fitting[0]}" if fitting else NOT_YET)
    except Exception:  # whatever a student wrote
        print(f"{NOT_YET}: this is a {type(answer).__name__}, and cannot be compared")
