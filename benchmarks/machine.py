"""What benchmarks of speed share: the machine by name, and a call beside others that find quantiles."""

from __future__ import annotations

import hashlib
import platform
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl

from benchmarks.one_release import best_seconds
from benchmarks.stored import save_rows

LEAST_SECONDS = 0.05  # of a turn: short calls are repeated, or those after a large one would be timed with cold caches


def instruction_sets() -> list[str]:
    """What numpy found of the processor's instruction sets."""
    from numpy._core._multiarray_umath import __cpu_features__

    return sorted(name for name, there in __cpu_features__.items() if there)


def processor() -> str:
    """The processor's name."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines() if Path("/proc/cpuinfo").exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def machine() -> str:
    """The processor and its instruction sets, and what finds quantiles beside `pq`, in one line."""
    versions = f"numpy {np.__version__}, polars {pl.__version__}, duckdb {duckdb.__version__}"
    return f"{processor()}, {versions}: {' '.join(instruction_sets())}"


def save_for_machine(folder: Path, name: str, rows: Sequence[dict[str, Any]]) -> Path:
    """Write a table of this machine, which no other machine's run replaces; returns its path."""
    digest = hashlib.sha256(f"{processor()} {' '.join(instruction_sets())}".encode()).hexdigest()[:8]
    place = folder / digest
    place.mkdir(parents=True, exist_ok=True)
    (place / "machine.txt").write_text(machine() + "\n", encoding="utf-8")
    save_rows(place / f"{name}.csv", rows, digits=4)
    return place / f"{name}.csv"


def beside(call: Callable[[], Any], x: Any, levels: Sequence[float], rounds: int, each: int = 1) -> dict[str, float]:
    """Microseconds of a call that does something `each` times, and ratios to sorting x and to its quantiles elsewhere.

    The calls take turns in this process, on one thread where they let themselves be told so, and the best of several
    rounds counts, in seconds of the processor: what else the machine does meanwhile changes these least.
    """
    frame, connection = pl.Series("x", x).to_frame(), duckdb.connect()
    connection.execute("set threads = 1")
    connection.register("table_of_x", frame.to_arrow())
    wanted = [pl.col("x").quantile(q).alias(str(k)) for k, q in enumerate(levels)]
    others: dict[str, Callable[[], Any]] = {
        "to_sort": lambda: np.sort(x),
        "to_quantile": lambda: np.quantile(x, levels),
        "to_polars": lambda: frame.select(wanted),
        "to_duckdb": lambda: connection.execute(f"select quantile_cont(x, {list(levels)}) from table_of_x").fetchall(),
    }
    taken, *seconds = best_seconds(rounds, call, *others.values(), least=LEAST_SECONDS, clock=time.process_time)
    ratios = {name: taken / each / other for name, other in zip(others, seconds, strict=True)}
    return {"us": taken / each * 1e6} | ratios
