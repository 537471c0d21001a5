"""`pq release`: private quantiles of one column of a CSV file.

What this command prints about the data is the released values and nothing else. The public arguments are tried on an
empty column before the file is opened. A cell that is no number counts as a missing record without a word, like a row
that is too short. No error shows the header: in a file without one that would be its first record.
"""

from __future__ import annotations

import ast
import csv
import json
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

import pq
from pq.cli import refuse
from pq.core.priors import spelled_families, spelling

SPELLINGS = ", ".join(map(spelling, spelled_families().values()))
LONGEST_CELL = (
    2**31 - 1
)  # characters; the csv module's own limit would make a long cell an error that tells of the data


def parse_prior(text: str) -> Any:
    """The prior that a text such as `cauchy(40, 20)` or `laplace(loc=40, scale=5)` names.

    Parameters:
        text: a family whose parameters are numbers, in any case, with numbers as arguments.

    Raises:
        ValueError: the text is no such call, or the family refuses the numbers.

    >>> parse_prior("cauchy(40, 20)") == pq.Cauchy(40.0, 20.0)
    True
    """
    families = spelled_families()
    try:
        call = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        call = None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        raise ValueError(f"prior {text!r} is not of the form name(number, ...), such as cauchy(40, 20)")
    if call.func.id.lower() not in families:
        raise ValueError(f"prior {text!r} is of no known family; there are: {', '.join(sorted(families))}")
    positional = [_number_in(text, node) for node in call.args]
    named = {str(keyword.arg): _number_in(text, keyword.value) for keyword in call.keywords}
    try:
        return families[call.func.id.lower()](*positional, **named)
    except (TypeError, ValueError) as error:
        raise ValueError(f"prior {text!r} is refused: {error}") from None


def _number_in(text: str, node: ast.expr) -> float:
    try:
        value = ast.literal_eval(node)
    except (ValueError, SyntaxError):
        value = None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError(f"prior {text!r} has an argument that is no number: {ast.unparse(node)}")
    return float(value)


def parse_quantiles(text: str) -> list[float]:
    """The numbers of a comma-separated text; their range is the release's to judge.

    >>> parse_quantiles("0.25, 0.5,0.75")
    [0.25, 0.5, 0.75]
    """
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"quantiles {text!r} are not numbers separated by commas") from None


def read_column(content: bytes, name: str) -> list[float]:
    """One column of a CSV file's content with a header row; what is no number is NaN.

    Each line after the header is one record, read by itself: a stray quote spoils no other line, and a cell may hold no
    line break. Blank lines are left out.

    Raises:
        ValueError: the header does not have that name exactly once (spaces around names do not count).
    """
    csv.field_size_limit(LONGEST_CELL)
    lines = [line.rstrip("\r") for line in content.decode("utf-8-sig", errors="replace").split("\n")]
    header = [cell.strip() for cell in _cells(lines[0])]
    if header.count(name.strip()) != 1:
        found = "no column" if name.strip() not in header else "more than one column"
        raise ValueError(f"column: the header row has {found} named {name!r}")
    place = header.index(name.strip())
    rows = [_cells(line) for line in lines[1:] if line]
    return [_number(row[place]) if place < len(row) else math.nan for row in rows]


def _cells(line: str) -> list[str]:
    """The cells of one line; none if the csv module refuses it."""
    try:
        return next(csv.reader([line]), [])
    except csv.Error:
        return []


def _number(cell: str) -> float:
    try:
        return math.nan if "_" in cell else float(cell)
    except ValueError:
        return math.nan


TREE_OPTIONS = (
    click.option("--adjacency", type=click.Choice(["add-remove", "replace"]), default="add-remove", show_default=True),
    click.option("--calibration", type=click.Choice(["sharp", "paper"]), default="sharp", show_default=True),
    click.option("--adaptation", type=click.Choice(["conditional", "edge"]), default="conditional", show_default=True),
    click.option("--arity", type=int, default=2, show_default=True, help="Children of a node of the tree."),
    click.option(
        "--budget-power", type=float, default=0.0, show_default=True, help="Decay of the budget over the levels."
    ),
)


def tree_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options for the shape and the law of a release."""
    for option in reversed(TREE_OPTIONS):
        command = option(command)
    return command


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, allow_dash=True))
@click.option("--column", required=True, help="Name of the column in the header row.")
@click.option("--quantiles", required=True, metavar="Q,...", help="Numbers in [0, 1], separated by commas.")
@click.option("--epsilon", required=True, type=float, help="Total privacy budget of this call.")
@click.option(
    "--prior", "priors", required=True, multiple=True, metavar="NAME(...)",
    help=f"Where the values are expected, from public knowledge: {SPELLINGS}. Once for all, or once for each.",
)  # fmt: skip
@tree_options
@click.option("--grid", type=float, help="Release multiples of this step only; right for values that repeat.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def release(file: str, column: str, quantiles: str, priors: tuple[str, ...], as_json: bool, **settings: Any) -> None:
    """Release private quantiles of a column of the CSV FILE, or of standard input for `-`.

    Each row is one record; a cell that is no number counts as missing. Every call spends its epsilon anew.
    """
    try:
        asked = parse_quantiles(quantiles)
        chosen = [parse_prior(text) for text in priors]
        settings["priors"] = chosen[0] if len(chosen) == 1 else chosen
        pq.release([], asked, **settings)
    except (ValueError, TypeError) as error:
        raise refuse(error) from None
    try:
        content = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        values = read_column(content, column)
    except OSError as error:
        raise click.ClickException(f"{file} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise refuse(error) from None
    released = pq.release(values, asked, **settings)
    click.echo(json.dumps(released.to_dict(), indent=2, default=str) if as_json else str(released))
