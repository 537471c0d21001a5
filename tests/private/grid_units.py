"""Units of work for the tests of grids, in a module that workers can import; run as a program it computes a grid."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from pqlab.experiments.grid import Unit, run
from pqlab.experiments.static import stream
from pqlab.experiments.table import Row


def draws(*, seed: int, cell: int, rows: int = 3, log: str | None = None, seconds: float = 0.0) -> list[Row]:
    """Random numbers of a cell; a line in the log tells that they were drawn."""
    if log is not None:
        with Path(log).open("a") as file:
            file.write(f"{cell}\n")
    time.sleep(seconds)
    rng = stream(seed, "draws", cell)
    return [{"method": "m", "epsilon": 1.0, "trial": k, "max_gap": float(rng.random())} for k in range(rows)]


def fails(*, seed: int, log: str) -> list[Row]:
    raise ArithmeticError(f"no rows with seed {seed}, see {log}")


def units(count: int, **options: object) -> list[Unit]:
    return [Unit("figure", f"data{cell % 3}", draws, {"cell": cell} | options) for cell in range(count)]


if __name__ == "__main__":
    from grid_units import units as importable  # workers must not look for it in __main__

    folder, log, workers = sys.argv[1:]
    run(importable(12, log=log, seconds=0.05), Path(folder), workers=int(workers))
