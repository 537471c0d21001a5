"""The options by which a command writes a page that shows a release, and the writing."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from pq.cli import WrittenPath, refuse, written
from pq.cli.files import is_one_file
from pq.core.choices import checked_texts

REPORT_OPTIONS = (
    click.option("--report", type=WrittenPath(), help="Write a page to show, in HTML."),
    click.option("--title", default="", help="Heading of the page; without it the column's name."),
    click.option("--unit", default="", help="Unit of the values, for the page."),
)  # fmt: skip


def report_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options for a page."""
    for option in reversed(REPORT_OPTIONS):
        command = option(command)
    return command


@dataclass(frozen=True)
class ReportFile:
    """A page that is to be written, or none; its texts and its place are checked before data are read."""

    path: Path | None
    texts: dict[str, str]

    @classmethod
    def taking(cls, options: dict[str, Any], column: str, read: Iterable[str | int | None] = ()) -> ReportFile:
        """The page that a command's options describe; they are taken out of the options, but for the purpose.

        read: paths or descriptors of what the command reads or keeps account in, which no page may take the place of.
        Raises `click.UsageError` naming the option at fault, or `click.ClickException` where no page may be written.
        """
        path, title, unit = (options.pop(name) for name in ("report", "title", "unit"))
        try:
            texts = checked_texts(title=title or f"Quantiles of {column}", unit=unit, purpose=options["purpose"])
        except ValueError as error:
            raise refuse(error) from None
        if path is not None and not path.absolute().parent.is_dir():
            raise refuse(f"report: there is no folder {path.parent}")
        if path is not None and any(other is not None and is_one_file(path, other) for other in read):
            raise refuse(f"report: {path} is a file that this command reads")
        if path is not None and path.exists() and not path.is_file():
            raise refuse(f"report: {path} is no file that a page can be kept in")
        if path is not None and not os.access(path if path.exists() else path.absolute().parent, os.W_OK):
            raise click.ClickException(f"{path} cannot be written: permission denied")
        return cls(path, texts)

    def write(self, released: Any, **texts: str | None) -> None:
        """Write the page of values that are out, if one is wanted. Raises `click.ClickException` where that fails."""
        if self.path is None:
            return
        with written(self.path):
            released.report(self.path, **self.texts, **{name: text for name, text in texts.items() if text})
