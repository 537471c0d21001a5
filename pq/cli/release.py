"""`pq release`: private quantiles of one column of a file.

What this command prints about the data is the released values and nothing else. The public arguments are tried on an
empty column before the file is opened. A cell that the printed rule does not read counts as a missing record without a
word. No error shows the header: in a file without one that would be its first record.
"""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Callable
from typing import Any

import click

import pq
from pq.cli import nearest, refuse
from pq.cli.files import FileColumn, file_options
from pq.cli.groups import GroupOptions, group_options
from pq.core.budget.account import LedgerError
from pq.core.kind import NUMBER, SIMPLE_KINDS, shown
from pq.core.priors import spelled_families, spelling
from pq.private.columns.text import CellRule

SPELLINGS = ", ".join(map(spelling, spelled_families().values()))
TIMES = [CellRule(kind) for kind in SIMPLE_KINDS if kind != NUMBER]
BARE_TIME = re.compile(r"(?<![\w'\"])(\d{4}-\d\d-\d\d(?:T[\d:.+Z-]+)?|\d\d:\d\d(?::[\d.]+)?|P[\dWDTHMS.]+)(?![\w'\"(])")
SHOWN = 60  # characters of a text in a message


def parse_prior(text: str) -> Any:
    """The prior that a text such as `cauchy(40, 20)` or `laplace(loc=40, scale=5)` names.

    text: a family whose parameters are numbers, in any case, with numbers, or dates, timestamps, times and durations of
    ISO 8601, as arguments. Raises `ValueError` where the text is no such call, or the family refuses the numbers.

    >>> parse_prior("cauchy(40, 20)") == pq.Cauchy(40.0, 20.0)
    True
    """
    families = spelled_families()
    try:
        call = ast.parse(BARE_TIME.sub(r"'\1'", text.strip()), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        call = None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        raise ValueError(f"prior {_short(text)} is not of the form name(number, ...), such as cauchy(40, 20)")
    if call.func.id.lower() not in families:
        near = nearest(call.func.id.lower(), families)
        raise ValueError(f"prior {_short(text)} is of no known family{near} There are: {', '.join(sorted(families))}")
    positional = [_number_in(text, node) for node in call.args]
    named = {str(keyword.arg): _number_in(text, keyword.value) for keyword in call.keywords}
    try:
        return families[call.func.id.lower()](*positional, **named)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"prior {_short(text)} is refused: {error}") from None


def _short(text: str) -> str:
    return repr(text if len(text) <= SHOWN else f"{text[:SHOWN]}...")


def _number_in(text: str, node: ast.expr) -> float:
    try:
        value = ast.literal_eval(node)
        shown = ast.unparse(node)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        value, shown = None, ast.unparse(node) if isinstance(node, ast.Name) else "..."
    if isinstance(value, str):
        value = next((number for number in (rule.read(value) for rule in TIMES) if not math.isnan(number)), None)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError(f"prior {_short(text)} has an argument that is no number: {shown}")
    return finite(value, "prior")


def finite(value: Any, name: str) -> float:
    """A number or its text as a finite float; raises `ValueError` naming the option.

    >>> finite("0.5", "epsilon")
    0.5
    """
    try:
        number = float(value)
    except (ValueError, OverflowError):
        number = math.inf if isinstance(value, int) else math.nan
    if not math.isfinite(number):
        shown = "" if isinstance(value, int) else f", got {_short(str(value))}"
        raise ValueError(f"{name} must be a number within the range of a float{shown}")
    return number


class FiniteFloat(click.ParamType):
    """A number within the range of a float: 1e400 is no infinite budget."""

    name = "float"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            return finite(value, "it")
        except ValueError as error:
            self.fail(str(error), param, ctx)


class StepLength(FiniteFloat):
    """A step of a grid: a number, or a duration such as P1D."""

    name = "step"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        length = TIMES[-1].read(value) if isinstance(value, str) else math.nan
        return super().convert(value if math.isnan(length) else length, param, ctx)


def parse_quantiles(text: str) -> list[float]:
    """The numbers of a comma-separated text; their range is the release's to judge.

    >>> parse_quantiles("0.25, 0.5,0.75")
    [0.25, 0.5, 0.75]
    """
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"quantiles {_short(text)} are not numbers separated by commas") from None


TREE_OPTIONS = (
    click.option("--adjacency", type=click.Choice(["add-remove", "replace"]), default="add-remove", show_default=True),
    click.option("--calibration", type=click.Choice(["sharp", "paper"]), default="sharp", show_default=True),
    click.option("--adaptation", type=click.Choice(["conditional", "edge"]), default="conditional", show_default=True),
    click.option("--arity", type=int, default=2, show_default=True, help="Children of a node of the tree."),
    click.option(
        "--budget-power",
        type=FiniteFloat(),
        default=0.0,
        show_default=True,
        help="Decay of the budget over the levels.",
    ),
)


def tree_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options for the shape and the law of a release."""
    for option in reversed(TREE_OPTIONS):
        command = option(command)
    return command


@click.command(
    epilog="Exit status: 0 released, 1 the file cannot be read, 2 an argument or the file is not valid; nothing is "
    "released then."
)
@file_options
@click.option("--quantiles", required=True, metavar="Q,...", help="Numbers in [0, 1], separated by commas.")
@click.option("--epsilon", required=True, type=FiniteFloat(), help="Total privacy budget of this call.")
@click.option(
    "--prior", "priors", required=True, multiple=True, metavar="NAME(...)",
    help=f"Where the values are expected, from public knowledge: {SPELLINGS}. Once for all, or once for each.",
)  # fmt: skip
@tree_options
@click.option("--grid", type=StepLength(), help="Release multiples of this step only; right for values that repeat.")
@group_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--quiet", is_flag=True, help="Print the values alone, one a line.")
def release(quantiles: str, priors: tuple[str, ...], as_json: bool, quiet: bool, **settings: Any) -> None:
    """Release private quantiles of a column of FILE, or of standard input for `-`.

    Each row is one record; a cell that is not read counts as missing. FILE is CSV by RFC 4180 or Parquet, and valid:
    that it is, is taken for public knowledge. Every call spends its epsilon anew. With --by all groups together spend
    it once.
    """
    column = FileColumn.taking(settings)
    groups = GroupOptions.taking(settings)
    try:
        asked = parse_quantiles(quantiles)
        chosen = [parse_prior(text) for text in priors]
        settings["priors"] = chosen[0] if len(chosen) == 1 else chosen
        free = settings | {"ledger": None}
        if groups is not None:
            groups.trial(column, asked, free)
        else:
            pq.release([], asked, **free)
    except (ValueError, TypeError, OverflowError) as error:
        raise refuse(error) from None
    if groups is not None:
        click.echo(groups.told(*groups.released(column, asked, settings), as_json=as_json, quiet=quiet))
        return
    values, _, rule = column.read()
    try:
        released = pq.release(values, asked, **settings)
    except LedgerError as error:
        raise refuse(error) from None
    if quiet:
        click.echo("\n".join(shown(released.values)))
    elif as_json:
        click.echo(json.dumps({**released.to_dict(), "cells": rule}, indent=2, default=str))
    else:
        click.echo(f"{released}\n{rule}")
