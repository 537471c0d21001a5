"""The options by which a command reads one column of a file, and the reading (Section 3.1)."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from pq.cli import Named, ReadPath, refuse
from pq.cli.ending import unusable
from pq.core.kind import NUMBER, SIMPLE_KINDS, Kind, kind_named
from pq.private.columns.counts import Counts
from pq.private.columns.files import OPENERS, TextFormat, compression_of, read_parquet, scan_parquet
from pq.private.columns.frames import count
from pq.private.columns.text import CellRule, TextColumn

STDIN = 0
KINDS = [str(kind) for kind in SIMPLE_KINDS]
FILE_OPTIONS = (
    click.argument("file", type=ReadPath(allow_dash=True)),
    click.option("--column", required=True, help="Name of the column in the header row."),
    click.option("--type", "kind", type=Named(KINDS), default=str(NUMBER), show_default=True,
                 help="What the cells are; dates and times are those of ISO 8601."),
    click.option("--separator", default=",", show_default=True, help="Character between cells, or 'tab'."),
    click.option("--decimal", default=".", show_default=True, help="Mark before decimals."),
    click.option("--thousands", help="Mark that may part digits by threes; without it none may."),
    click.option("--encoding", default="utf-8", show_default=True, help="Encoding of the text."),
    click.option("--compression", type=Named(["auto", *OPENERS]), default="auto", show_default=True,
                 help="auto: as the file's name ends, .gz, .bz2 or .xz."),
    click.option("--lines", is_flag=True, help="Read each line as a record of its own, whatever its quotes."),
    click.option("--format", "file_format", type=Named(["auto", "csv", "parquet"]), default="auto",
                 show_default=True, help="auto: Parquet if the file's name ends so. Its declared types decide."),
)  # fmt: skip


def file_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the argument FILE and the options that say how its column is read."""
    for option in reversed(FILE_OPTIONS):
        command = option(command)
    return command


def is_one_file(path: Path, other: str | int) -> bool:
    """Whether a path leads to the file that another path or a descriptor stands for."""
    if isinstance(other, str) and os.path.realpath(path) == os.path.realpath(other):  # there or not
        return True
    try:
        return os.path.samefile(path, other)
    except (OSError, ValueError):  # nothing is there, or a list of keys is longer than a name may be
        return False


@dataclass(frozen=True)
class FileColumn:
    """A column of a file and how it is read; public, and checked before the file is opened.

    Raises `click.UsageError` naming the option at fault.
    """

    file: str
    column: str
    rule: CellRule
    text: TextFormat | None  # None for Parquet, whose types are declared

    @classmethod
    def taking(cls, options: dict[str, Any]) -> FileColumn:
        """The column that a command's options describe; they are taken out of the options."""
        taken = {name: options.pop(name) for name in ("file", "column", "kind", "file_format", "compression", "lines")}
        separator, encoding = options.pop("separator"), options.pop("encoding")
        marks = options.pop("decimal"), options.pop("thousands")
        file, kind = taken["file"], taken["kind"]
        try:
            if taken["file_format"] == "parquet" or (
                taken["file_format"] == "auto" and file.lower().endswith(".parquet")
            ):
                if (kind, separator, *marks, encoding) != (str(NUMBER), ",", ".", None, "utf-8") or taken["lines"]:
                    raise ValueError("options for text cells do not apply to Parquet, which declares its types")
                if file == "-":
                    raise ValueError("file must have a name for Parquet")
                return cls(file, taken["column"], CellRule(), None)
            packed = compression_of(file) if taken["compression"] == "auto" else taken["compression"]
            separator = {"tab": "\t", "\\t": "\t"}.get(separator, separator)
            text = TextFormat(separator, encoding, packed, taken["lines"])
            return cls(file, taken["column"], CellRule(kind_named(kind), *marks), text)
        except ValueError as error:
            raise refuse(error) from None

    @property
    def place(self) -> str | int:
        """What `os.stat` finds the file by: its path, or the descriptor of standard input."""
        return STDIN if self.file == "-" else self.file

    def read(self) -> tuple[TextColumn | Counts, Kind, str]:
        """The column, its kind and the rule by which its cells are read; the latter two are public.

        Raises `click.UsageError` for a file that is not valid or lacks the column, `click.ClickException` for one that
        cannot be read; neither shows what is in it.
        """
        with self._refusing():
            if self.text is None:
                counts = count(scan_parquet(self.file), self.column)
                return counts, counts.kind, self.rule_text(counts.kind)
            cells = TextColumn(self.text.column(self._content(), self.column), self.rule)
            return cells, cells.kind, str(self.rule)

    def table(self, *others: str) -> Any:
        """A table with the column and others, read to its end: as Parquet declares them, or cells that are read by the
        rule, beside texts without the spaces around them. Raises as `read`."""
        with self._refusing():
            if self.text is None:
                return read_parquet(self.file, {self.column, *others})
            content, text = self._content(), self.text
            texts = {name: [cell.strip() for cell in text.column(content, name)] for name in others}
            return texts | {self.column: TextColumn(text.column(content, self.column), self.rule)}

    def blank(self, *others: str) -> Any:
        """The same without rows, for which no record is read. Raises as `read`."""
        with self._refusing():
            if self.text is None:
                return read_parquet(self.file, rows=0)
            texts: dict[str, Any] = {name: [] for name in others}
            return texts | {self.column: TextColumn([], self.rule)}

    def rule_text(self, kind: Kind) -> str:
        """The rule by which records are read, in words."""
        if self.text is None:
            return f"a record counts as a {kind} by its declared type; a null as missing"
        return str(self.rule)

    def _content(self) -> bytes:
        if self.file != "-":
            return Path(self.file).read_bytes()
        if sys.stdin is None:
            raise ValueError("standard input is closed")
        return sys.stdin.buffer.read()

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise unusable(error, self.file, "read") from None
        except (ImportError, RuntimeError) as error:
            raise click.ClickException(str(error)) from None
        except (ValueError, TypeError) as error:
            raise refuse(error) from None
