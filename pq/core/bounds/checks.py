"""Words and refusals that the bounds of learning share."""

from __future__ import annotations

from typing import Literal

Version = Literal["corrected", "paper"]


def check_positive(version: str, **positive: float) -> None:
    """Refuse an unknown version and any named argument that is not positive."""
    if version not in ("corrected", "paper"):
        raise ValueError("version must be 'corrected' or 'paper'")
    for name, value in positive.items():
        if not value > 0:
            raise ValueError(f"{name} must be positive")


def check_probability(**named: float) -> None:
    """Refuse a named argument outside (0, 1)."""
    for name, value in named.items():
        if not 0 < value < 1:
            raise ValueError(f"{name} must be in (0, 1)")
