"""`pq` as people install it: from its wheel, in a folder without the repository."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path


def bare(folder: Path) -> dict[str, str]:
    """The environment of a process that has no home, and no place for a cache."""
    inherited = {name: value for name, value in os.environ.items() if name not in ("HOME", "XDG_CACHE_HOME")}
    return inherited | {"NUMBA_CACHE_DIR": str(folder / "people.csv" / "below")}


def run(
    installed: Path, folder: Path, *arguments: str, code: str = "", environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """`pq` in a folder; of this environment only the other packages are seen (-S reads no links to a checkout)."""
    places = [installed, *{sysconfig.get_path(name) for name in ("purelib", "platlib")}]
    settings = {"PYTHONPATH": os.pathsep.join(map(str, places)), "PYTHONDONTWRITEBYTECODE": "1", "PYTHONUTF8": "1"}
    program = ["-c", code] if code else ["-m", "pq.cli"]
    return subprocess.run(
        [sys.executable, "-S", *program, *arguments],
        cwd=folder, env=(environment or dict(os.environ)) | settings,
        capture_output=True, encoding="utf-8", check=False, timeout=300,
    )  # fmt: skip
