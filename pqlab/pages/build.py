"""Executing notebooks so that two runs of one source give the same bytes."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, DeadKernelError

from pqlab.pages.notebook import (
    KERNEL,
    LARGEST_FILE,
    Notebook,
    NotebookError,
    check,
    check_outputs,
    code_cells,
    load,
    tags,
    with_stable_ids,
)

CELL_SECONDS = 600
# The kernel listens on this machine only, for one run; its remark that it does so unencrypted helps nobody.
QUIET_KERNEL = ("--log-level=ERROR",)
DEAD_KERNEL = "the kernel ended before the page did: it was killed, or ran out of memory"
# By these variables, or what begins with them, a shell has a say in what a kernel's cells find or print: a script that
# runs first, assertions that are left out, colours, widths, the looks of tables and figures.
_SHELLS_SAY = (
    "PYTHON", "IPYKERNEL_", "NO_COLOR", "FORCE_COLOR", "CLICOLOR", "COLUMNS", "LINES", "MPLBACKEND", "POLARS_FMT_",
    "POLARS_TABLE_WIDTH", "POLARS_VERBOSE", "POLARS_WARN_",
)  # fmt: skip
# These only say where code is, and whether and where it is kept compiled.
_PLACES = {
    "PYTHONPATH", "PYTHONHOME", "PYTHONPLATLIBDIR", "PYTHONUSERBASE", "PYTHONNOUSERSITE", "PYTHONSAFEPATH",
    "PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX", "PYTHONUTF8",
}  # fmt: skip
_TEXT_CHUNKS = {b"tEXt", b"zTXt", b"iTXt", b"tIME", b"eXIf"}


def execute(notebook: Notebook) -> Notebook:
    """A copy of the notebook with the outputs of a run in an empty folder, the same bytes every time.

    Raises:
        NotebookError: a cell failed, or wrote to stderr (warnings do), or an output is not the same on every machine.
    """
    page = nbformat.v4.new_notebook(
        metadata={"kernelspec": dict(KERNEL)}, cells=[bare(cell) for cell in notebook.cells]
    )
    page = with_stable_ids(page)
    with tempfile.TemporaryDirectory() as folder, clean_kernel_environment():
        client = NotebookClient(
            page,
            timeout=CELL_SECONDS,
            kernel_name=KERNEL["name"],
            record_timing=False,
            extra_arguments=list(QUIET_KERNEL),
            coalesce_streams=True,
            resources={"metadata": {"path": folder}},
        )
        try:
            client.execute()
        except CellExecutionError as error:
            raise NotebookError(str(error)) from None
        except DeadKernelError:
            raise NotebookError(DEAD_KERNEL) from None
    page.metadata = nbformat.from_dict({"kernelspec": dict(KERNEL), "language_info": {"name": "python"}})
    for cell in code_cells(page):
        cell.metadata.pop("execution", None)
        for output in cell.outputs:
            if "image/png" in output.get("data", {}):
                output.data["image/png"] = _without_png_text(output.data["image/png"])
    problems = check_outputs(page)
    if problems:
        raise NotebookError("\n".join(problems))
    nbformat.validate(page)
    return page


def build(source: Path) -> Path:
    """Execute one source and store the page beside it; an unsound page is not stored.

    Raises:
        NotebookError: the source or what it gave is not as it should be.
    """
    notebook = load(source)
    problems = check(notebook)
    if problems:
        raise NotebookError("\n".join(problems))
    text = nbformat.writes(execute(notebook)).rstrip("\n") + "\n"
    size = len(text.encode())
    if size > LARGEST_FILE:
        raise NotebookError(f"the page has {size} bytes, more than {LARGEST_FILE}: draw fewer or smaller figures")
    target = source.with_suffix(".ipynb")
    target.write_text(text, encoding="utf-8")
    return target


@contextmanager
def clean_kernel_environment() -> Iterator[None]:
    """Start kernels of this interpreter, without the user's IPython profile, startup script and style of figures, and
    with figures shown inline, whatever the shell says and whichever other kernels of that name are installed."""
    with tempfile.TemporaryDirectory() as folder:
        _write_kernel(Path(folder) / "kernels" / KERNEL["name"])
        paths = [folder, *filter(None, [os.environ.get("JUPYTER_PATH")])]
        style = Path(folder) / "matplotlibrc"
        style.touch()  # as matplotlib is by itself
        said = {name for name in os.environ if name.startswith(_SHELLS_SAY)} - _PLACES
        environment: dict[str, str | None] = dict.fromkeys(said) | {
            "IPYTHONDIR": folder,
            "MATPLOTLIBRC": str(style),
            "JUPYTER_PATH": os.pathsep.join(paths),
            "PYDEVD_DISABLE_FILE_VALIDATION": "1",
        }
        with environment_changed(environment):
            yield


@contextmanager
def environment_changed(environment: Mapping[str, str | None]) -> Iterator[None]:
    """Give variables of this process's environment other values for a while; None takes one away."""
    before = {name: os.environ.get(name) for name in environment}
    _set(environment)
    try:
        yield
    finally:
        _set(before)


def _set(environment: Mapping[str, str | None]) -> None:
    for name, value in environment.items():
        os.environ.pop(name, None)
        if value is not None:
            os.environ[name] = value


def _write_kernel(folder: Path) -> None:
    folder.mkdir(parents=True)
    start = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    specification = {"argv": start, "display_name": KERNEL["display_name"], "language": KERNEL["language"]}
    (folder / "kernel.json").write_text(json.dumps(specification), encoding="utf-8")


def bare(cell: Any) -> Any:
    """The cell without outputs and without metadata other than its tags; checks are folded in Jupyter too."""
    metadata: dict[str, Any] = {"tags": tags(cell)} if tags(cell) else {}
    if {"check", "validate"} & set(tags(cell)):
        metadata["jupyter"] = {"source_hidden": True}
    make = {
        "code": nbformat.v4.new_code_cell,
        "markdown": nbformat.v4.new_markdown_cell,
        "raw": nbformat.v4.new_raw_cell,
    }
    return make[cell.cell_type](cell.source, metadata=metadata)


def _without_png_text(encoded: str) -> str:
    """The same picture without the chunks that name the software and the time that made it."""
    data = b64decode(encoded)
    kept, place = [data[:8]], 8
    while place < len(data):
        end = place + 12 + int.from_bytes(data[place : place + 4], "big")
        if data[place + 4 : place + 8] not in _TEXT_CHUNKS:
            kept.append(data[place:end])
        place = end
    return b64encode(b"".join(kept)).decode()
