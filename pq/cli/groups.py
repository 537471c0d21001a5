"""The part of `pq release` that releases every group of a table (Section 3.1).

A cell of a text file is compared with the public keys as text, without the spaces around it; a column of Parquet by its
declared type. Nothing that is printed tells which keys the file holds.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import click

import pq
from pq.cli import refuse
from pq.cli.files import FileColumn, is_one_file
from pq.core.budget.account import BudgetExceededError, LedgerError
from pq.core.choices import Unknown
from pq.core.kind import kind_named
from pq.private.columns.files import SUFFIXES
from pq.private.columns.grouping import open_table
from pq.private.columns.keys import KeyColumn, keys_of_texts

KEY_FILES = (".csv", *SUFFIXES)
OPTIONS = (
    click.option("--by", metavar="NAME", help="Release the quantiles of every group: rows alike in this column."),
    click.option("--keys", metavar="KEY,...|FILE", help="The groups' keys, from public knowledge: separated by commas, "
                 "or a CSV file with a column of the same name. Each has a row, with or without records."),
    click.option("--person", metavar="NAME", help="Column that says whose a row is: of each person no more rows are "
                 "kept than one may own; rows without an ID are left out."),
    click.option("--max-groups", type=click.IntRange(1), help="Groups that one person may have rows in; else one."),
    click.option("--unknown", type=click.Choice(get_args(Unknown)), help="Rows of no such key: left out, or a further "
                 "group with the key other; drop if not given."),
    click.option("--csv", "as_csv", is_flag=True, default=None, help="Print CSV: key, quantile, value."),
)  # fmt: skip


def group_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options that make its release one by group."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


@dataclass(frozen=True)
class GroupOptions:
    """The groups that a command is asked for; public. by, person: names of columns. keys: as they were given."""

    by: str
    keys: str
    person: str | None
    max_groups: int
    unknown: str
    as_csv: bool

    @classmethod
    def taking(cls, options: dict[str, Any]) -> GroupOptions | None:
        """What a command's options ask for, None for one release of all; they are taken out of the options.

        Raises `click.UsageError` naming the option that needs another.
        """
        taken = {name: options.pop(name) for name in ("by", "keys", "person", "max_groups", "unknown", "as_csv")}
        if taken["by"] is None:
            given = [name for name, value in taken.items() if value is not None]
            if given:
                raise refuse(f"--{given[0].removeprefix('as_').replace('_', '-')} needs --by")
            return None
        if taken["keys"] is None:
            raise refuse("--by needs --keys: keys are public, and are not looked up in the file")
        return cls(
            by=taken["by"],
            keys=taken["keys"],
            person=taken["person"],
            max_groups=taken["max_groups"] or 1,
            unknown=taken["unknown"] or "drop",
            as_csv=bool(taken["as_csv"]),
        )

    def trial(self, column: FileColumn, asked: list[float], settings: dict[str, Any]) -> None:
        """Try the public arguments on a table without rows, before records are read. Raises as `pq.release_groups`."""
        if column.text is not None and column.column in self._others():
            raise ValueError("by and person must name other columns than --column, where cells are texts")
        if self._keys_in_file and is_one_file(Path(self.keys), column.place):
            raise ValueError(
                f"keys must be public, and {self.keys} is the file of the data: who is there would be told"
            )
        if Path(self.keys).suffix.lower() == ".parquet" and "," not in self.keys:
            raise ValueError(f"keys must be keys, or a CSV file of them, got {self.keys}")
        self._release(column.blank(*self._others()), column, asked, settings)

    def released(
        self, column: FileColumn, asked: list[float], settings: dict[str, Any]
    ) -> tuple[pq.GroupedRelease, str]:
        """The release and the rule by which cells were read. Raises `click.UsageError` or `click.ClickException`."""
        table = column.table(*self._others())
        try:
            made = self._release(table, column, asked, settings)
        except (BudgetExceededError, LedgerError, RuntimeError) as error:
            raise click.ClickException(str(error)) from None
        except (ValueError, TypeError) as error:
            raise refuse(error) from None
        return made, column.rule_text(kind_named(made.groups[0].kind))

    def told(self, made: pq.GroupedRelease, rule: str, receipt: dict[str, str], *, as_json: bool, quiet: bool) -> str:
        """What the command prints."""
        if quiet:
            return "\n".join(value for _, _, value in made.rows())
        if as_json:
            return json.dumps({**made.to_dict(), "cells": rule, **receipt}, indent=2, default=str)
        if self.as_csv:
            text = io.StringIO()
            csv.writer(text, lineterminator="\n").writerows([(self.by, "quantile", "value"), *made.rows()])
            return text.getvalue().rstrip("\n")
        return "\n".join([str(made), rule, *(f"charged, as entry {one}" for one in receipt.values())])

    def _others(self) -> list[str]:
        return [self.by] if self.person is None else [self.by, self.person]

    def _release(
        self, table: Any, column: FileColumn, asked: list[float], settings: dict[str, Any]
    ) -> pq.GroupedRelease:
        facts = {"max_groups": self.max_groups, "unknown": self.unknown, "person": self.person}
        facts["max_contributions"] = max(settings.get("max_contributions") or 1, self.max_groups)
        keys = self._public_keys(table)
        return pq.release_groups(table, asked, by=self.by, value=column.column, keys=keys, **settings | facts)

    @property
    def _keys_in_file(self) -> bool:
        return Path(self.keys).suffix.lower() in KEY_FILES

    def _public_keys(self, table: Any) -> Any:
        if self._keys_in_file:
            if not Path(self.keys).is_file():
                raise ValueError(f"keys must name a file that is there, got {self.keys}")
            return Path(self.keys)
        texts = self.keys.split(",")
        opened = open_table(table)
        if self.by not in opened.types:
            return texts  # refused with the names of the columns
        return keys_of_texts(texts, KeyColumn.of(opened, self.by))
