"""`pq run`: rerun a notebook with other parameters, strictly, into a folder of its own."""

from __future__ import annotations

import copy
import difflib
import sys
from pathlib import Path
from typing import Any

import click
import nbformat

from pq.cli import WrittenPath, fresh_folder, project_folder, refuse, say
from pqlab.pages.course import FILE, lessons
from pqlab.pages.notebook import (
    KERNEL,
    PICTURES,
    Notebook,
    NotebookError,
    code_cells,
    images,
    load,
    missing_outputs,
    read_parameters,
    read_ranges,
    tags,
)
from pqlab.pages.parameters import ParameterError, code_for, parse_all


@click.command()
@click.argument("notebook", required=False)
@click.option(
    "-p",
    "given",
    nargs=2,
    multiple=True,
    metavar="NAME VALUE",
    help="Set a parameter that the notebook declares; repeatable.",
)
@click.option("--profile", type=click.Choice(["quick", "paper"]), help="The same as -p profile VALUE.")
@click.option(
    "-o", "--output", type=WrittenPath(folder=True), default=Path("runs"), show_default=True,
    help="Folder that receives a new folder for each run.",
)  # fmt: skip
@click.option("--list", "listed", is_flag=True, help="List the project's pages and their parameters, and run none.")
def run(
    notebook: str | None, given: tuple[tuple[str, str], ...], profile: str | None, output: Path, listed: bool
) -> None:
    """Run NOTEBOOK, a path or a bare name such as 03_many_quantiles, with other parameters.

    A name that the notebook does not declare, a value of another type than its default, and one out of the range that
    the notebook declares, is refused before anything runs. The executed notebook and its figures go to a new folder;
    earlier runs are kept.
    """
    if listed:
        for line in overview(pages()):
            say(line)
        return
    if notebook is None:
        raise refuse("NOTEBOOK is missing; `pq run --list` lists the project's pages")
    if profile is not None:
        given = (*given, ("profile", profile))
    try:
        source = find(notebook)
        page = load(source)
        values = parse_all(read_parameters(page), given)
        within_ranges(page, values)
    except (NotebookError, ParameterError) as error:
        raise refuse(f"{notebook}: {error}") from None
    folder = fresh_folder(output, source.stem)
    target = folder / f"{source.stem}.ipynb"
    try:
        done = execute_with(page, values, target)
        figures = save_figures(done, folder)
    except NotebookError as error:
        click.echo(f"{error}\n\nnotebook up to the failure: {target}", err=True)
        raise SystemExit(1) from None
    except OSError as error:
        raise click.ClickException(f"{folder} cannot be written: {error.strerror}") from None
    for text in results(done):
        say(text)
    for figure in figures:
        say(f"figure:   {figure}")
    say(f"notebook: {target}")
    missing = missing_outputs(done)
    if missing:
        raise click.ClickException("; ".join(missing))


def within_ranges(page: Notebook, values: dict[str, Any]) -> None:
    """Refuse values out of the ranges that a page declares, without running any of it.

    Raises:
        ParameterError: names the parameter and its range.
    """
    ranges = read_ranges(page)
    for name, value in values.items():
        if ranges and not ranges[name].allows(value):
            ending = ", or None" if ranges[name].optional else ""
            raise ParameterError(f"parameter {name!r} must be {ranges[name].words}{ending}, and is {value!r}")


def find(name: str) -> Path:
    """The file that a path means, or the project's page that a bare name does, never one that lies about elsewhere.

    Raises:
        NotebookError: there is none.
    """
    if Path(name).suffix in (".md", ".ipynb"):
        if Path(name).is_file():
            return Path(name)
        raise NotebookError("no such file")
    known = pages()
    if name in known:
        return known[name]
    near = difflib.get_close_matches(name, known, n=1)
    raise NotebookError(
        f"no such notebook; did you mean {near[0]}?" if near else f"no such notebook; there are: {', '.join(known)}"
    )


def pages() -> dict[str, Path]:
    """The project's pages by name, in the order of the course where there is one."""
    root = project_folder()
    if root is None:
        return {}
    folder = root / "notebooks"
    if (folder / FILE).exists():
        return {one.name: folder / f"{one.name}.md" for one in lessons(folder)}
    return {path.stem: path for path in sorted(folder.glob("[0-9][0-9]*_*.md"))}


def overview(known: dict[str, Path]) -> list[str]:
    """For each page a line with its title, and a line for each parameter with its default and what it may be."""
    lines = []
    for name, path in known.items():
        page = load(path)
        title = next(cell.source for cell in page.cells if cell.cell_type == "markdown").splitlines()[0].lstrip("# ")
        lines.append(f"{name}: {title}")
        ranges = read_ranges(page)
        for parameter in read_parameters(page).values():
            words = ranges[parameter.name].words if ranges else str(parameter.shape)
            lines.append(f"    {parameter.name} = {parameter.default!r}: {words}")
    return lines


def with_values(notebook: Notebook, values: dict[str, Any]) -> Notebook:
    """A copy without outputs, with a cell after the declarations that sets the values."""
    page = copy.deepcopy(notebook)
    page.cells = [cell for cell in page.cells if "injected-parameters" not in tags(cell)]
    for cell in code_cells(page):
        cell.outputs, cell.execution_count = [], None
    if values:
        place = next(index for index, cell in enumerate(page.cells) if "parameters" in tags(cell))
        cell = nbformat.v4.new_code_cell(code_for(values), metadata={"tags": ["injected-parameters"]})
        page.cells.insert(place + 1, cell)
    page.metadata = nbformat.from_dict({"kernelspec": dict(KERNEL), "language_info": {"name": "python"}})
    return page


def execute_with(notebook: Notebook, values: dict[str, Any], target: Path) -> Notebook:
    """Execute the notebook with the values into `target`, in its folder, showing progress to who looks on.

    The values are set by a cell of our own making, since papermill turns a tuple into text.

    Raises:
        NotebookError: a cell failed or the kernel died; what ran until then is in `target`.
    """
    import papermill
    from nbclient.exceptions import DeadKernelError

    from pqlab.pages.build import DEAD_KERNEL, QUIET_KERNEL, clean_kernel_environment

    try:
        with clean_kernel_environment():
            return papermill.execute_notebook(
                with_values(notebook, values),
                target.resolve(),
                kernel_name=KERNEL["name"],
                progress_bar=sys.stderr.isatty(),
                cwd=target.parent.resolve(),
                extra_arguments=list(QUIET_KERNEL),
            )
    except papermill.PapermillExecutionError as error:
        raise NotebookError(str(error)) from None
    except DeadKernelError:
        raise NotebookError(DEAD_KERNEL) from None


def save_figures(notebook: Notebook, folder: Path) -> list[Path]:
    """Store each image of an executed notebook as a file in the folder."""
    paths: list[Path] = []
    for cell in code_cells(notebook):
        for kind, image in images(cell):
            path = folder / f"figure-{len(paths) + 1}.{kind}"
            path.write_bytes(image)
            paths.append(path)
    return paths


def results(notebook: Notebook) -> list[str]:
    """The texts that the cells tagged `result` show."""
    shown = []
    for cell in code_cells(notebook):
        for output in cell.outputs if "result" in tags(cell) else []:
            text = output.get("text") or output.get("data", {}).get("text/plain", "")
            if text.strip() and not PICTURES.keys() & output.get("data", {}):
                shown.append(text.rstrip("\n"))
    return shown
