"""`pq ledger`: make an account of privacy budget in a file, and see who spent what, when and for what."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import click

from pq.cli import EXIT_STATUS, NearGroup, output_options, refuse, tell
from pq.core.budget.ledger import Ledger, LedgerError

_LONGEST = 400  # characters of a number


@click.group(cls=NearGroup, epilog=EXIT_STATUS)
def ledger() -> None:
    """Keep account of the privacy budget that is spent on the same people."""


@ledger.command(epilog=EXIT_STATUS)
@click.argument("file", type=click.Path(dir_okay=False))
@click.option("--total", required=True, help="All the epsilon that may be spent on a person, such as 1.5 or 3/2.")
@click.option(
    "--delta", help="All the delta that may be spent; with one, many small releases cost less than their sum."
)
@output_options("Print nothing.")
def init(file: str, total: str, delta: str | None, as_json: bool, quiet: bool) -> None:
    """Make an account in FILE, which must not be there yet; on a local disk."""
    if Path(file).exists():
        raise refuse(f"{file} is there already")
    try:
        made = Ledger.open(
            file, total=_number(total, "total"), delta=None if delta is None else _number(delta, "delta")
        )
    except ValueError as error:
        raise refuse(error) from None
    except LedgerError as error:
        raise click.ClickException(str(error)) from None
    tell(made.statement(), made.to_dict(), "", as_json, quiet)


@ledger.command(epilog=EXIT_STATUS)
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@output_options("Print the epsilon that remains alone.")
def show(file: str, as_json: bool, quiet: bool) -> None:
    """Print what was spent from FILE, by whom, when and for what, and what remains."""
    try:
        account = Ledger.open(file)
        facts = account.to_dict()
        tell(account.statement(signed=True), facts, facts["remaining"], as_json, quiet)
    except LedgerError as error:
        raise click.ClickException(str(error)) from None


def _number(text: str, name: str) -> Fraction:
    """A decimal or a quotient, exact. Raises `ValueError` naming the option."""
    try:
        if len(text) > _LONGEST or abs(int(text.lower().partition("e")[2] or 0)) > _LONGEST:
            raise ValueError
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise ValueError(f"{name} must be a number such as 1.5 or 3/2") from None
