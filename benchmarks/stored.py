"""Tables of benchmarks as files."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any


def save_rows(path: Path, rows: Iterable[Mapping[str, Any]], digits: int | None = None) -> None:
    """Write rows, which all have the names of the first, as CSV; numbers that are not whole with so many digits, if any
    are asked for."""
    table = list(rows)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, table[0])
        writer.writeheader()
        writer.writerows({name: _written(value, digits) for name, value in row.items()} for row in table)


def _written(value: Any, digits: int | None) -> Any:
    return f"{value:.{digits}g}" if digits is not None and isinstance(value, float) else value
