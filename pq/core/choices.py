"""The words that options may be, one list for each option."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, get_args

Adjacency = Literal["add-remove", "replace"]
Calibration = Literal["paper", "sharp"]
Adaptation = Literal["conditional", "edge"]
OnNan = Literal["drop", "lowest", "highest"]
QuantilesOf = Literal["column", "population"]
Unknown = Literal["drop", "other"]


def check_choice(value: object, allowed: object, name: str) -> None:
    """Raise `ValueError` naming the argument unless `value` is one of a `Literal`'s members."""
    check_name(value, get_args(allowed), name)


def check_name(value: object, allowed: object, name: str) -> None:
    """Raise `ValueError` naming the argument unless `value` is among the names that a registry holds."""
    if value not in allowed:  # type: ignore[operator]
        known: list[str] = list(allowed)  # type: ignore[call-overload]
        near = nearest(value, known, end="")
        raise ValueError(f"{name} must be one of {', '.join(map(repr, known))}, got {value!r}{near}")


def checked_texts(**texts: Any) -> dict[str, str]:
    """Texts that have a form in UTF-8; raises `TypeError` or `ValueError` naming the argument."""
    for name, text in texts.items():
        if not isinstance(text, str):
            raise TypeError(f"{name} must be text, got {type(text).__name__}")
        if text.encode("utf-8", "replace").decode() != text:
            raise ValueError(f"{name} must be text that has a form in UTF-8")
    return texts


def nearest(word: object, known: Iterable[str], end: str = ".") -> str:
    """A question after the known word that is most like a wrong one; `end` if none is.

    >>> nearest("couchy", ["cauchy", "normal"])
    '; did you mean cauchy?'
    """
    import difflib  # nearly never needed

    found = difflib.get_close_matches(word, list(known), n=1) if isinstance(word, str) else []
    return f"; did you mean {found[0]}?" if found else end
