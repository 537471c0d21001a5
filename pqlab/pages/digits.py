"""Do the printed digits of the pages hold on other processors? Runs pages again under other last bits, and compares.

`python -m pqlab.pages.digits --seed 1 --seed 2 --lesser [NAMES]` runs them with shaken functions, one seed after the
other (see `pqlab.pages.shaken`), and with the instruction sets of an old processor. Texts must be as stored; pictures
are not compared. The command fails if a run prints other texts.
"""

from __future__ import annotations

import difflib
import platform
import tempfile
from pathlib import Path
from typing import Any

import click
import nbformat
import numpy as np

from pqlab.pages.build import environment_changed, execute
from pqlab.pages.notebook import Notebook, NotebookError, code_cells, load, sources, texts

# Machine code is compiled anew there, or the formulas alone would be looked at.
_SHAKE = """\
from pqlab.pages.shaken import install as _install
_install({seed})
from pq.private.fast.lanes import WALK as _walk
_walk.ready(float("inf"))
del _install, _walk"""


def lesser_instructions() -> dict[str, str]:
    """The environment in which numpy, its linear algebra, the C library and the compiler know an old processor only.

    >>> lesser_instructions()["NUMBA_CPU_NAME"]
    'generic'
    """
    # numpy is told what it found: other names, and those of features that are not there, make it complain.
    found = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])
    chosen = {"NPY_DISABLE_CPU_FEATURES": " ".join(found), "NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}
    if platform.machine() in ("x86_64", "AMD64"):
        chosen |= {"OPENBLAS_CORETYPE": "Nehalem", "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-FMA4,-AVX512F"}
    return chosen


def again(source: Path, caches: Path, *, seed: int = 0, lesser: bool = False) -> Notebook:
    """Run a source once more: shaken by a seed (0: not), or under lesser instruction sets.

    caches: folder for shaken machine code, one subfolder a seed; other runs must not find it.

    Raises:
        NotebookError: as `pqlab.pages.build.execute`.
    """
    page = load(source)
    page.cells.insert(0, nbformat.v4.new_code_cell(_SHAKE.format(seed=seed)))
    environment = {"NUMBA_CACHE_DIR": str(caches / str(seed))} if seed else {}
    with environment_changed(environment | (lesser_instructions() if lesser else {})):
        page = execute(page)
    del page.cells[0]
    return page


def text_differences(stored: Notebook, other: Notebook) -> list[str]:
    """Where the texts of two runs of a page differ, a few lines for each cell."""
    found = []
    for index, (one, two) in enumerate(zip(code_cells(stored), code_cells(other), strict=True), start=1):
        before, after = (_lines(cell) for cell in (one, two))
        if before != after:
            changes = [line for line in difflib.ndiff(before, after) if line[:2] in ("- ", "+ ")]
            found.append(f"code cell {index} prints other texts:\n" + "\n".join(f"  {line}" for line in changes[:8]))
    return found


def _lines(cell: Any) -> list[str]:
    return "\n".join(text for output in cell.get("outputs", []) for text in sorted(texts(output))).splitlines()


@click.command()
@click.argument("names", nargs=-1)
@click.option("--folder", type=click.Path(path_type=Path), default=Path("notebooks"), show_default=True)
@click.option("--seed", "seeds", multiple=True, type=click.IntRange(min=1), help="shake by this seed; may be repeated")
@click.option("--lesser", is_flag=True, help="run under lesser instruction sets")
@click.option(
    "--caches",
    type=click.Path(path_type=Path),
    help="folder that keeps shaken machine code (default: none)",
)
def main(names: tuple[str, ...], folder: Path, seeds: tuple[int, ...], lesser: bool, caches: Path | None) -> None:
    """Run pages again under other last bits; fail where they print other texts than are stored."""
    if not (seeds or lesser):
        raise click.UsageError("say --seed or --lesser")
    try:
        chosen = sources(folder, names)
    except NotebookError as error:
        raise click.ClickException(str(error)) from None
    runs: dict[str, dict[str, Any]] = {f"shaken by {seed}": {"seed": seed} for seed in seeds}
    if lesser:
        runs["lesser instruction sets"] = {"lesser": True}
    with tempfile.TemporaryDirectory() as own:
        kept = Path(own) if caches is None else caches
        failed = sum(_compare(source, kept, how, **run) for how, run in runs.items() for source in chosen)
    if failed:
        raise click.ClickException(f"{failed} of {len(runs) * len(chosen)} runs print other texts")


def _compare(source: Path, caches: Path, how: str, **run: Any) -> bool:
    try:
        found = text_differences(load(source.with_suffix(".ipynb")), again(source, caches, **run))
    except NotebookError as error:
        found = [str(error)]
    click.echo("\n".join([f"{source.stem}, {how}: {'other texts' if found else 'the same'}", *found]))
    return bool(found)


if __name__ == "__main__":
    main()
