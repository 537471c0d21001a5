"""Rows of all sections, each with the checks that serve it and the code that they call."""

from __future__ import annotations

import tomllib
from typing import Any

from proofs_checks.engine.registry import FOLDER, SECTIONS, all_checks, name_of

VERDICTS = ("holds", "holds corrected", "false as stated", "not decided", "definition")
GRADES = ("proved", "high precision", "property tested", "statistical", "none")

Claim = dict[str, Any]


def load_rows() -> dict[str, Claim]:
    """Every row as it is written, by its label, in the order of the paper.

    Raises:
        ValueError: a label has two rows.
    """
    rows: dict[str, Claim] = {}
    for section in SECTIONS:
        found = tomllib.loads((FOLDER / section / "claims.toml").read_text(encoding="utf-8"))
        if twice := sorted(set(found) & set(rows)):
            raise ValueError(f"rows twice: {twice}")
        rows |= found
    return rows


def load_claims() -> dict[str, Claim]:
    """Every row, with `checks` (keys) and `code` (dotted names) from the decorators.

    Raises:
        ValueError: a check serves a row that does not exist.
    """
    claims = {label: {**row, "checks": [], "code": []} for label, row in load_rows().items()}
    for key, check in all_checks().items():
        if unknown := sorted(set(check.labels) - set(claims)):
            raise ValueError(f"{key} serves rows that do not exist: {unknown}")
        for label in check.labels:
            claims[label]["checks"].append(key)
            claims[label]["code"] += [name for name in map(name_of, check.code) if name not in claims[label]["code"]]
    return claims
