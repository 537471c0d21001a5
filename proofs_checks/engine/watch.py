"""Whether a check calls the code that it names."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

from proofs_checks.engine.registry import Check, bodies, name_of


def watched(check: Check) -> tuple[str, list[str]]:
    """Run a check as it stands.

    Returns:
        its line, and the names of the code that it promises to call and does not.

    Raises:
        AssertionError: or whatever else the check raises.
    """
    for code in check.code:
        if hasattr(code, "cache_clear"):  # a value that is remembered calls nothing
            code.cache_clear()
    owners = {id(body): name_of(code) for code in check.code for body in bodies(code)}
    missing = {name_of(code) for code in check.code}

    def look(frame: FrameType, event: str, argument: Any) -> None:
        missing.discard(owners.get(id(frame.f_code), ""))
        if not missing:
            sys.setprofile(None)

    if missing:
        sys.setprofile(look)
    try:
        line = check.function()
    finally:
        sys.setprofile(None)
    return line, sorted(missing)
