"""The notebooks as source and as pages: reading, checking, and executing them the same way every time.

A page lives in two files. `NN_name.md` is the source, MyST text that people edit and review; `NN_name.ipynb` is the
same page with the outputs that a run of the source gave. `python -m pqlab.pages.notebook build` makes the second from
the first, the same bytes at every run, and `python -m pqlab.pages.notebook check` refuses a pair that does not belong
together.
"""

from __future__ import annotations

import ast
import hashlib
import re
from base64 import b64decode
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import jupytext
import nbformat

from pqlab.pages.parameters import Parameter, ParameterError, declared
from pqlab.pages.ranges import Range, declared_ranges

Notebook = Any  # nbformat's NotebookNode is a dict with attribute access and carries no types

KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
LARGEST_FILE = 800_000  # bytes
PICTURES = {"image/svg+xml": "svg", "image/png": "png"}  # kinds, by what a file of each is called
NBVAL_MARKS = {"nbval-ignore-output", "nbval-check-output", "nbval-raises-exception", "nbval-skip", "raises-exception"}
UNSTABLE = {
    "a machine path": re.compile(
        r"(?<![\w.])/(?:home|root|tmp|work|Users|var|opt|usr)/\w|\b[A-Z]:\\(?:Users|Windows)|site-packages"
    ),
    "a memory address": re.compile(r"\b0x[0-9a-fA-F]{5,}\b"),
    "a clock or a timing": re.compile(
        r"\b\d{1,2}:\d{2}:\d{2}\b|\b\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}"
        r"|Wall time|CPU times|\bit/s\b|\bs/it\b|\d ?[mµun]s ± "
    ),
}


class NotebookError(RuntimeError):
    """A notebook is not as it should be; the message lists all that is wrong."""


def load(path: Path) -> Notebook:
    """Read a notebook from MyST text (`.md`) or from JSON (`.ipynb`).

    Raises:
        NotebookError: the file is neither, or cannot be read as what its name says.
    """
    try:
        if path.suffix == ".md":
            notebook = jupytext.read(path, fmt="md:myst")
        elif path.suffix == ".ipynb":
            notebook = nbformat.read(path, as_version=4)
        else:
            raise NotebookError(f"{path.name}: a notebook's name ends in .md or .ipynb")
    except (ValueError, nbformat.reader.NotJSONError, nbformat.ValidationError) as error:
        raise NotebookError(f"{path.name}: cannot be read as a notebook: {error}") from None
    return with_stable_ids(notebook)


def tags(cell: Any) -> list[str]:
    """The tags of a cell, none if it has none."""
    return list(cell.metadata.get("tags", []))


def code_cells(notebook: Notebook) -> list[Any]:
    """The code cells in order."""
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def read_parameters(notebook: Notebook) -> dict[str, Parameter]:
    """The parameters that a notebook declares.

    Raises:
        ParameterError: there is not exactly one code cell tagged `parameters`, or it holds more than literals.
    """
    cells = [cell for cell in notebook.cells if "parameters" in tags(cell)]
    if len(cells) != 1 or cells[0].cell_type != "code":
        raise ParameterError(
            f"the notebook has {len(cells)} cells tagged 'parameters' and needs exactly one code cell so tagged"
        )
    return declared(cells[0].source)


def read_ranges(notebook: Notebook) -> dict[str, Range]:
    """The ranges of the parameters that the notebook's `validate` cell declares by `accept`; none if it does not.

    Raises:
        ParameterError: they are not those of all parameters, or a default lies outside.
    """
    sources = [cell.source for cell in code_cells(notebook) if "validate" in tags(cell)]
    if not sources or "accept(" not in sources[0]:
        return {}
    try:
        ranges = declared_ranges(sources[0])
    except (ValueError, SyntaxError) as error:
        raise ParameterError(str(error)) from None
    parameters = read_parameters(notebook)
    if set(ranges) != set(parameters):
        odd = ", ".join(sorted(set(ranges) ^ set(parameters)))
        raise ParameterError(f"parameters and ranges do not belong together: {odd}")
    outside = [name for name, one in parameters.items() if not ranges[name].allows(one.default)]
    if outside:
        raise ParameterError(f"defaults out of range: {', '.join(outside)}")
    return ranges


def check(notebook: Notebook) -> list[str]:
    """All that is wrong with a notebook's source, one line each; an empty list means nothing is.

    The kernel is `python3`; one code cell is tagged `parameters` and holds only literals; the next code cell is tagged
    `validate`; no later cell overrules a parameter; nothing is exempted from the comparison of outputs; no code cell is
    empty or ends in a semicolon (nbval runs cells without history, where that hides nothing).
    """
    problems = []
    kernel = notebook.metadata.get("kernelspec", {}).get("name")
    if kernel != KERNEL["name"]:
        problems.append(f"the header's kernelspec is {kernel!r}, not 'python3'")
    cells = code_cells(notebook)
    try:
        parameters = read_parameters(notebook)
        read_ranges(notebook)
    except ParameterError as error:
        problems.append(str(error))
    else:
        place = next(index for index, cell in enumerate(cells) if "parameters" in tags(cell))
        if place + 1 == len(cells) or "validate" not in tags(cells[place + 1]):
            problems.append("the code cell after the parameters is not tagged 'validate'")
        for index in range(place + 1, len(cells)):
            problems += [
                f"code cell {index + 1} overrules the parameter {name!r}"
                for name in sorted(_overruled(cells[index].source, set(parameters)))
            ]
    for index, cell in enumerate(cells, start=1):
        marks = {
            line.lstrip("# ").strip().lower().replace("_", "-") for line in cell.source.splitlines() if "#" in line
        }
        if (marks | {tag.lower() for tag in tags(cell)}) & NBVAL_MARKS:
            problems.append(f"code cell {index} is exempted from the comparison of outputs")
        if cell.source.rstrip().endswith(";"):
            problems.append(
                f"code cell {index} ends in ';', which hides its value in some runs only: give the value a name"
            )
        if not cell.source.strip():
            problems.append(f"code cell {index} is empty")
    return problems


def check_outputs(notebook: Notebook) -> list[str]:
    """All that is wrong with the outputs of an executed notebook, one line each.

    Every code cell ran, in order; nothing went to stderr; no cell failed; no output tells of the machine or the hour; a
    cell tagged `figure` drew one, and a cell tagged `result` has a result.
    """
    problems = []
    cells = code_cells(notebook)
    if [cell.execution_count for cell in cells] != list(range(1, len(cells) + 1)):
        problems.append("the code cells have not all been executed once, in order")
    if not any(cell.outputs for cell in cells):
        problems.append("there is no output at all")
    for index, cell in enumerate(cells, start=1):
        for output in cell.outputs:
            if output.output_type == "error":
                problems.append(f"code cell {index} failed with {output.ename}: {output.evalue}")
            elif output.get("name") == "stderr":
                problems.append(f"code cell {index} wrote to stderr: {output.text.strip()[:300]}")
            text = "\n".join(texts(output))
            problems += [
                f"code cell {index} shows {what}" for what, pattern in UNSTABLE.items() if pattern.search(text)
            ]
    return problems + missing_outputs(notebook)


def missing_outputs(notebook: Notebook) -> list[str]:
    """Cells whose tag promises an output that is not there: `figure` an image, `result` anything."""
    problems = []
    for index, cell in enumerate(code_cells(notebook), start=1):
        if "figure" in tags(cell) and not list(images(cell)):
            problems.append(f"code cell {index} is tagged 'figure' and drew none")
        if "result" in tags(cell) and not cell.outputs:
            problems.append(f"code cell {index} is tagged 'result' and shows none")
    return problems


def check_pair(source: Path) -> list[str]:
    """All that is wrong with a page: its source, its executed file, and how the two agree."""
    problems = check(load(source))
    executed = source.with_suffix(".ipynb")
    if not executed.exists():
        return [*problems, f"{executed.name} is missing: run `make notebooks`"]
    if executed.stat().st_size > LARGEST_FILE:
        problems.append(f"{executed.name} is larger than {LARGEST_FILE} bytes")
    page = load(executed)
    if page.metadata.get("kernelspec", {}) != KERNEL:
        problems.append(f"{executed.name} has another kernelspec than {KERNEL}")
    if _content(page) != _content(load(source)):
        problems.append(f"{executed.name} was made from another text: run `make notebooks`")
    return problems + check_outputs(page)


def images(cell: Any) -> Iterator[tuple[str, bytes]]:
    """The images among the outputs of a code cell: what a file of that kind is called, and its content."""
    for output in cell.get("outputs", []):
        for kind, suffix in PICTURES.items():
            if kind in output.get("data", {}):
                data = output.data[kind]
                yield suffix, data.encode() if suffix == "svg" else b64decode(data)


def texts(output: Any) -> Iterator[str]:
    """The texts of one output, images left out."""
    yield from (output[key] for key in ("text", "evalue") if key in output)
    for kind, data in output.get("data", {}).items():
        if isinstance(data, str) and not kind.startswith("image/"):
            yield data


def with_stable_ids(notebook: Notebook) -> Notebook:
    """The same notebook, each cell named after its text, so that a run changes no name and an edit changes one."""
    seen: Counter[str] = Counter()
    for cell in notebook.cells:
        name = hashlib.sha256(cell.source.encode()).hexdigest()[:12]
        seen[name] += 1
        cell["id"] = name if seen[name] == 1 else f"{name}-{seen[name]}"
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    return notebook


def _content(notebook: Notebook) -> list[tuple[str, str, list[str]]]:
    return [(cell.cell_type, cell.source, tags(cell)) for cell in notebook.cells]


def _overruled(source: str, names: set[str]) -> set[str]:
    """Which of the names the code gives a new value at its top level that does not come from the old one."""
    lines = ["" if line.lstrip().startswith(("%", "!")) else line for line in source.splitlines()]
    try:
        body = ast.parse("\n".join(lines)).body
    except SyntaxError:
        return set()
    found: set[str] = set()
    for statement in body:
        match statement:
            case ast.Assign(targets=targets, value=value):
                pass
            case ast.AnnAssign(target=target, value=ast.expr() as value) | ast.For(target=target, iter=value):
                targets = [target]
            case _:
                continue
        used = {node.id for node in ast.walk(value) if isinstance(node, ast.Name)}
        inside = [node for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)]
        found |= ({node.id for node in inside if isinstance(node.ctx, ast.Store)} & names) - used
    return found


def sources(folder: Path, names: tuple[str, ...] = ()) -> list[Path]:
    """The sources in a folder, all `NN_name.md` or the named ones, in order.

    Raises:
        NotebookError: a named notebook is not there, or the folder holds none, or a page whose source is gone.
    """
    found = sorted(folder.glob("[0-9][0-9]*_*.md"))
    if not found:
        raise NotebookError(f"no notebook source NN_name.md in {folder}")
    orphans = sorted({page.stem for page in folder.glob("*.ipynb")} - {source.stem for source in found})
    if orphans:
        raise NotebookError(f"no source for: {', '.join(orphans)}")
    stems = [Path(name).stem for name in names]
    unknown = sorted(set(stems) - {source.stem for source in found})
    if unknown:
        raise NotebookError(f"no notebook is named: {', '.join(unknown)}")
    return [source for source in found if not stems or source.stem in stems]


@click.group()
def main() -> None:
    """Check the notebooks, or execute them anew."""


_FOLDER = click.option("--folder", type=click.Path(path_type=Path), default=Path("notebooks"), show_default=True)


@main.command("check")
@click.argument("names", nargs=-1)
@_FOLDER
def _check(names: tuple[str, ...], folder: Path) -> None:
    """Refuse pages that are not executed, not up to date or not stable."""
    _each(names, folder, "sound", lambda source: "\n".join(check_pair(source)))


@main.command("build")
@click.argument("names", nargs=-1)
@_FOLDER
def _build(names: tuple[str, ...], folder: Path) -> None:
    """Execute sources and store their pages."""
    from pqlab.pages.build import build

    def problems(source: Path) -> str:
        try:
            build(source)
        except NotebookError as error:
            return str(error)
        return ""

    _each(names, folder, "built", problems)


def _each(names: tuple[str, ...], folder: Path, done: str, problems: Callable[[Path], str]) -> None:
    try:
        chosen = sources(folder, names)
    except NotebookError as error:
        raise click.ClickException(str(error)) from None
    failed = 0
    for source in chosen:
        trouble = problems(source)
        failed += bool(trouble)
        click.echo(
            f"{source.stem}: {'not ' + done if trouble else done}" + "".join(f"\n  {t}" for t in trouble.splitlines())
        )
    if failed:
        raise click.ClickException(f"{failed} of {len(chosen)} notebooks not {done}")


if __name__ == "__main__":
    from pqlab.pages.notebook import (
        main as command,  # this file once more, under the name by which other modules know it
    )

    command()
