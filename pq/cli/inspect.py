"""`pq inspect`: how a release would read a column, for the holder of the data; its output is not private."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import click

import pq
from pq.cli.files import FileColumn, file_options


@click.command(epilog="Exit status: 0 inspected, 1 the file cannot be read, 2 an option or the file is not valid.")
@file_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def inspect(as_json: bool, **options: Any) -> None:
    """Tell how the cells of a column of FILE are read and how many are unread. NOT PRIVATE: for the holder alone.

    It tells no minimum, no count and no ties: who chooses a prior or a grid by those has left differential privacy.
    """
    column, _, rule = FileColumn.taking(options).read()
    found = replace(pq.inspect(column), rule=rule)
    click.echo(json.dumps(found.to_dict(), indent=2) if as_json else str(found))
