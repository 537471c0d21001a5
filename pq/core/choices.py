"""The words that options may be, one list for each option."""

from __future__ import annotations

from typing import Literal, get_args

Adjacency = Literal["add-remove", "replace"]
Calibration = Literal["paper", "sharp"]
Adaptation = Literal["conditional", "edge"]
OnNan = Literal["drop", "lowest", "highest"]
Unknown = Literal["drop", "other"]


def check_choice(value: object, allowed: object, name: str) -> None:
    """Raise `ValueError` naming the argument unless `value` is one of a `Literal`'s members."""
    check_name(value, get_args(allowed), name)


def check_name(value: object, allowed: object, name: str) -> None:
    """Raise `ValueError` naming the argument unless `value` is among the names that a registry holds."""
    if value not in allowed:  # type: ignore[operator]
        raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}")  # type: ignore[call-overload]
