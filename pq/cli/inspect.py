"""`pq inspect`: how a release would read a column, for the holder of the data; its output is not private."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

import pq
from pq.cli import EXIT_STATUS, output_options, tell
from pq.cli.files import FileColumn, file_options

OPTIONS_SAY = "--type, --decimal and --thousands say"


@click.command(epilog=EXIT_STATUS)
@file_options
@output_options("Print the number of unread cells alone.")
def inspect(as_json: bool, quiet: bool, **options: Any) -> None:
    """Tell how the cells of a column of FILE are read and how many are unread. NOT PRIVATE: for the holder alone.

    It tells no minimum, no count and no ties: who chooses a prior or a grid by those has left differential privacy.
    """
    column, _, rule = FileColumn.taking(options).read()
    found = replace(pq.inspect(column), rule=rule)
    hint = f"\nWhere too many are unread, {OPTIONS_SAY} how cells are written." if found.unread else ""
    tell(f"{found}{hint}", found.to_dict(), str(found.unread), as_json, quiet)
