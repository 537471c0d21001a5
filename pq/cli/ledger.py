"""`pq ledger`: make an account of privacy budget in a file, and see who spent what, when and for what."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import click

from pq.cli import EXIT_STATUS, NearGroup, ReadPath, WrittenPath, output_options, refuse, say, tell
from pq.core.budget.events import NEIGHBOURS
from pq.core.budget.ledger import Ledger, LedgerError

_LONGEST = 400  # characters of a number
LEDGER_OPTIONS = (
    click.option(
        "--ledger",
        type=click.Path(dir_okay=False, readable=False),
        metavar="FILE",
        help="Charge this account, made by `pq ledger init`, before anything is computed from the values. What does "
        "not fit is refused before the data are read; data that are not valid cost nothing.",
    ),
    click.option(
        "--purpose", default="", help="What the release is for; the account keeps it, and the report shows it."
    ),
    click.option("--who", default="", envvar="PQ_WHO", help="Your name, for the account; none is guessed. Or PQ_WHO."),
)


def ledger_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options that say which account it charges, for what and in whose name."""
    for option in reversed(LEDGER_OPTIONS):
        command = option(command)
    return command


def account_of(path: str | None, who: str) -> Ledger | None:
    """The account that a command charges. Raises `click.UsageError` where there is none at the path."""
    try:
        with readable():
            return None if path is None else Ledger.open(path, who=who)
    except FileNotFoundError:
        raise refuse(f"there is no ledger at {path}; pq ledger init {path} --total EPSILON makes one") from None
    except ValueError as error:
        raise refuse(error) from None


@contextmanager
def readable() -> Iterator[None]:
    """Within it, an account that cannot be used ends the command with exit code 1."""
    try:
        yield
    except LedgerError as error:
        raise click.ClickException(str(error)) from None


@click.group(cls=NearGroup, epilog=EXIT_STATUS)
def ledger() -> None:
    """Keep account of the privacy budget that is spent on the same people."""


@ledger.command(epilog=EXIT_STATUS)
@click.argument("file", type=WrittenPath())
@click.option("--total", required=True, help="All the epsilon that may be spent on a person, such as 1.5 or 3/2.")
@click.option(
    "--delta", help="All the delta that may be spent; with one, many small releases cost less than their sum."
)
@output_options("Print nothing.")
def init(file: Path, total: str, delta: str | None, as_json: bool, quiet: bool) -> None:
    """Make an account in FILE, which must not be there yet; on a local disk."""
    if file.exists() and file.stat().st_size:  # an empty one is what a full disk has left of an account
        raise refuse(f"{file} is there already")
    try:
        with readable():
            made = Ledger.open(
                file, total=_number(total, "total"), delta=None if delta is None else _number(delta, "delta")
            )
    except ValueError as error:
        raise refuse(error) from None
    tell(made.statement(), made.to_dict(), "", as_json, quiet)


@ledger.command(epilog=EXIT_STATUS)
@click.argument("file", type=ReadPath())
@output_options("Print the epsilon that remains alone.")
def show(file: str, as_json: bool, quiet: bool) -> None:
    """Print what was spent from FILE, by whom, when and for what, and what remains.

    A report of a release bears a receipt: the ledger's name and the number of the entry.
    """
    with readable():
        account = Ledger.open(file)
        facts = account.to_dict()
        tell(account.statement(signed=True), facts, facts["remaining"], as_json, quiet)


@ledger.command(epilog=EXIT_STATUS)
@click.argument("file", type=ReadPath())
def event(file: str) -> None:
    """Print all spends from FILE as an event of dp_accounting, in JSON, for other accountants."""
    with readable():
        account = Ledger.open(file)
        said = [NEIGHBOURS[entry.adjacency] for entry in account.entries if entry.adjacency]
        told = {"neighboring_relation": said[0] if said else None, "event": account.to_event()}  # all say the same
        say(json.dumps(told, indent=2))


def _number(text: str, name: str) -> Fraction:
    """A decimal or a quotient, exact. Raises `ValueError` naming the option."""
    try:
        if len(text) > _LONGEST or abs(int(text.lower().partition("e")[2] or 0)) > _LONGEST:
            raise ValueError
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise ValueError(f"{name} must be a number such as 1.5 or 3/2") from None
