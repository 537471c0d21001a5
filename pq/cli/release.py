"""`pq release`: private quantiles of one column of a file.

What this command prints about the data is the released values and nothing else. The public arguments, and whether the
budget suffices, are tried on an empty column before the file is opened; a ledger is charged once the file is valid. A
cell that the printed rule does not read counts as a missing record without a word. Of the header of a text file nothing
is shown, not even the name that is nearest to the one asked for: in a file without a header that would be its first
record.
"""

from __future__ import annotations

import ast
import json
import math
import re
import warnings
from collections.abc import Callable
from typing import Any, get_args

import click

import pq
from pq.cli import EXIT_STATUS, Named, nearest, refuse, say
from pq.cli.ending import Payment
from pq.cli.files import FileColumn, file_options
from pq.cli.groups import GroupOptions, group_options
from pq.cli.interval import interval_facts, level_option, told_release
from pq.cli.ledger import account_of, ledger_options, readable
from pq.cli.report import ReportFile, report_options
from pq.core.budget.ledger import BudgetExceededError, Ledger
from pq.core.budget.storage import journal_of
from pq.core.choices import Adaptation, Adjacency, Calibration
from pq.core.kind import NUMBER, SIMPLE_KINDS, shown
from pq.core.priors import prior_between, spelled_families, spelling
from pq.private.columns.text import CellRule
from pq.private.mechanisms.protocol import MECHANISMS

BETWEEN = "between(low, high, share=0.9, least=..., most=...)"
SPELLINGS = ", ".join([*map(spelling, spelled_families().values()), BETWEEN])
TIMES = [CellRule(kind) for kind in SIMPLE_KINDS if kind != NUMBER]
BARE_TIME = re.compile(r"(?<![\w'\"])(\d{4}-\d\d-\d\d(?:T[\d:.+Z-]+)?|\d\d:\d\d(?::[\d.]+)?|P[\dWDTHMS.]+)(?![\w'\"(])")
SHOWN = 60  # characters of a text in a message


def parse_prior(text: str) -> Any:
    """The prior that a text such as `cauchy(40, 20)` or `laplace(loc=40, scale=5)` names.

    text: a family whose parameters are numbers, or `between` for `pq.prior_between`, in any case, with numbers, or
    dates, timestamps, times and durations of ISO 8601, as arguments. Raises `ValueError` where the text is no such
    call, or what is called refuses the numbers.

    >>> parse_prior("cauchy(40, 20)") == pq.Cauchy(40.0, 20.0)
    True
    """
    families: dict[str, Callable[..., Any]] = {**spelled_families(), "between": prior_between}
    try:
        with warnings.catch_warnings(action="ignore"):  # what Python thinks of a text is about no program
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


ADJACENCY = click.option(
    "--adjacency", type=Named(get_args(Adjacency)), default="add-remove", show_default=True,
    help="What neighbouring data sets differ in.",
)  # fmt: skip
TREE_OPTIONS = (
    ADJACENCY,
    click.option("--calibration", type=Named(get_args(Calibration)), help="Of the tree: sharp, or as in the paper."),
    click.option("--adaptation", type=Named(get_args(Adaptation)), help="Of the tree: conditional, or edge."),
    click.option("--arity", type=int, help="Of the tree: children of a node; 2 if not given."),
    click.option("--budget-power", type=FiniteFloat(), help="Of the tree: decay of the budget over the levels, or 0."),
)
LAW_OPTIONS = (
    click.option("--mechanism", type=Named(["auto", *MECHANISMS]), default="auto", show_default=True,
                 help="auto: chosen from public facts; an option of the tree asks for the tree."),
    click.option("--assume-smooth", is_flag=True,
                 help="The column has few ties and no narrow peaks; where that is wrong, accuracy is lost."),
    click.option("--public-total", type=click.IntRange(0), help="Number of records, where it is public knowledge."),
    click.option("--max-contributions", type=click.IntRange(1), default=1, show_default=True,
                 help="Records that one person may own."),
    *TREE_OPTIONS,
)  # fmt: skip
prior_option = click.option(
    "--prior", "priors", required=True, multiple=True, metavar="NAME(...)",
    help=f"Where the values are expected, from public knowledge: {SPELLINGS}. Once for all, or once for each.",
    shell_complete=lambda ctx, param, begun: [f"{name}(" for name in spelled_families() if name.startswith(begun)],
)  # fmt: skip
grid_option = click.option(
    "--grid", type=StepLength(), help="Release multiples of this step only; right for values that repeat."
)


def tree_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options for the shape and the law of a tree."""
    return _with_options(command, TREE_OPTIONS)


def law_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options for the choice and the law of a mechanism."""
    return _with_options(command, LAW_OPTIONS)


def _with_options(command: Callable[..., Any], options: tuple[Callable[..., Any], ...]) -> Callable[..., Any]:
    for option in reversed(options):
        command = option(command)
    return command


@click.command(epilog=EXIT_STATUS)
@file_options
@click.option("--quantiles", required=True, metavar="Q,...", help="Numbers in [0, 1], separated by commas.")
@click.option("--epsilon", required=True, type=FiniteFloat(), help="Total privacy budget of this call.")
@prior_option
@click.option("--size", "size_guess", type=FiniteFloat(), help="Rough number of records; public, never counted.")
@law_options
@grid_option
@group_options
@ledger_options
@report_options
@level_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--quiet", is_flag=True, help="Print the values alone, one a line.")
@click.option("--yes", is_flag=True, help="Leave out the remarks on epsilon, grid, prior and size.")
def release(
    quantiles: str,
    priors: tuple[str, ...],
    ledger: str | None,
    who: str,
    level: float | None,
    as_json: bool,
    quiet: bool,
    yes: bool,
    **settings: Any,
) -> None:
    """Release private quantiles of a column of FILE, or of standard input for `-`.

    Each row is one record; a cell that is not read counts as missing. FILE is CSV by RFC 4180 or Parquet, and valid:
    that it is, is taken for public knowledge. Every call spends its epsilon anew. With --by all groups together spend
    it once.
    """
    column = FileColumn.taking(settings)
    groups = GroupOptions.taking(settings)
    if groups is not None and level is not None:
        raise refuse("--level is for one release: the page of --report has the intervals of groups")
    read = column.place, ledger, ledger and journal_of(ledger), None if groups is None else groups.keys
    report = ReportFile.taking(settings, column.column, read)
    account, payment = account_of(ledger, who), click.get_current_context().ensure_object(Payment)
    try:
        asked = parse_quantiles(quantiles)
        chosen = [parse_prior(text) for text in priors]
        settings["priors"] = chosen[0] if len(chosen) == 1 else chosen
        with readable():  # whether all is right and the budget suffices is known before the file is opened
            payment.taken_from(account)
            rehearsal = settings | {"ledger": None if account is None else account.rehearsal()}
            if groups is None:
                pq.release([], asked, **rehearsal)
            else:
                groups.trial(column, asked, rehearsal)
    except BudgetExceededError as error:
        raise click.ClickException(str(error)) from None
    except (ValueError, TypeError, OverflowError) as error:
        raise refuse(error) from None
    released: pq.Release | pq.GroupedRelease
    if groups is not None:
        released, rule = groups.released(column, asked, settings | {"ledger": account})
    else:
        values, _, rule = column.read()
        released = _charged(values, asked, account, settings)
    payment.released = True
    receipt = _receipt(account)
    if groups is not None and isinstance(released, pq.GroupedRelease):
        answer = groups.told(released, rule, receipt, as_json=as_json, quiet=quiet)
    else:
        assert isinstance(released, pq.Release)
        remarks = () if yes else released.remarks
        answer = _told(released, rule, remarks, receipt, ledger, level, as_json=as_json, quiet=quiet)
    say(answer, "its values")
    report.write(released, **receipt)


def _told(
    released: pq.Release,
    rule: str,
    remarks: tuple[str, ...],
    receipt: dict[str, str],
    ledger: str | None,
    level: float | None,
    *,
    as_json: bool,
    quiet: bool,
) -> str:
    """What the command prints of one release."""
    if quiet:
        return "\n".join(shown(released.values))
    if as_json:
        facts = released.to_dict() | interval_facts(released, level) | {"cells": rule, "remarks": remarks, **receipt}
        return json.dumps(facts, indent=2, default=str)
    said = [f"Remark: {remark}." for remark in remarks]
    paid = [f"charged to {ledger}: {one}" for one in receipt.values()]
    return "\n".join([told_release(released, level), rule, *said, *paid])


def _receipt(account: Ledger | None) -> dict[str, str]:
    """The entry that the last release of this thread made in the account, if there is one."""
    return {} if account is None or account.receipt is None else {"receipt": account.receipt}


def _charged(values: Any, asked: list[float], account: Ledger | None, settings: dict[str, Any]) -> pq.Release:
    """The release, paid for; somebody else may have been quicker and have left too little."""
    try:
        with readable():
            return pq.release(values, asked, **settings, ledger=account)
    except BudgetExceededError as error:
        raise click.ClickException(str(error)) from None
