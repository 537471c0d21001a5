"""The `pq` command: each subcommand is a module of its own, registered as an entry point and imported when called."""

from __future__ import annotations

import ast
import atexit
import errno
import glob
import io
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from importlib.metadata import EntryPoint, entry_points, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from pq.cli.ending import Payment, UnprintedError, ended, unusable
from pq.core.choices import nearest

EXIT_STATUS = (
    "Exit status: 0 done; 1 it could not be done: a file that cannot be read or written, a budget that does not"
    " suffice, a loss that an audit found; 2 the call or a file is not valid; 3 a release was paid for, but broke"
    " off or could not be shown whole. Nothing is released, or paid for, with 1 or 2."
)

WALK = ("inspect", "forecast", "ledger", "release")  # a newcomer's way, in which help lists the commands


@cache
def commands() -> dict[str, EntryPoint]:
    """The installed commands by name."""
    return {entry.name: entry for entry in entry_points(group="pq.commands")}


class NearGroup(click.Group):
    """A group that, asked for a command that it lacks, names the nearest."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        known = self.known(ctx)
        if args and args[0] not in known and not args[0].startswith("-") and not ctx.resilient_parsing:
            ctx.fail(f"No such command {args[0]!r}{nearest(args[0], known)}")
        return super().resolve_command(ctx, args)

    def known(self, ctx: click.Context) -> list[str]:
        """Names of its commands."""
        return self.list_commands(ctx)


class LazyGroup(NearGroup):
    """A group whose commands are imported when they are needed; those of a checkout are listed where there is one."""

    def __call__(self, *args: Any, **extra: Any) -> Any:
        """As a program: nothing interrupts the end of the interpreter, which would change the exit code."""
        atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)
        self.main(*args, **extra)

    def main(self, *args: Any, standalone_mode: bool = True, **extra: Any) -> Any:
        """As click's, but that `ended` decides on the exit code."""
        run = partial(super().main, *args, standalone_mode=False, **extra)
        if not standalone_mode:
            return run()
        payment = Payment()
        raise SystemExit(ended(partial(run, obj=payment), payment))

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(name for name, entry in commands().items() if _source(entry) is not None)

    def known(self, ctx: click.Context) -> list[str]:
        return list(commands())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = commands().get(cmd_name)
        if entry is None:
            return None
        if _source(entry) is None:
            if ctx.resilient_parsing:  # a line that is being typed is completed, or left as it is
                return None
            raise refuse(f"{cmd_name} works on a checkout of the project only, and this is an installed package")
        command: click.Command = entry.load()
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        listed = [name for name in self.list_commands(ctx) if name not in WALK]
        inside = [name for name in listed if commands()[name].module.startswith("pq.")]
        parts = {
            "In this order, from a file to a page": [*WALK],
            "Besides": inside,
            "For research, in a checkout": [name for name in listed if name not in inside],
        }
        for title, names in parts.items():
            if names:
                with formatter.section(title):
                    formatter.write_dl([(name, _help_line(commands()[name])) for name in names])


def _source(entry: EntryPoint) -> Path | None:
    """The file of a command's module; None if it is not installed."""
    package = entry.module.split(".")[0]
    spec = find_spec(entry.module) if find_spec(package) is not None else None
    return None if spec is None or spec.origin is None else Path(spec.origin)


def _help_line(entry: EntryPoint) -> str:
    """What the first sentence of the module's docstring says after the command's name, without importing it."""
    source = _source(entry)
    text = (ast.get_docstring(ast.parse(source.read_text(encoding="utf-8"))) if source else None) or ""
    line = text.split("\n\n")[0].replace("\n", " ").partition(": ")[2]
    return line[:1].upper() + line[1:]


def project_folder() -> Path | None:
    """The checkout that this package is installed from, if it is."""
    root = Path(__file__).resolve().parents[2]
    return root if (root / "proofs_checks").is_dir() else None


def numbered_folders(base: Path, name: str) -> dict[int, Path]:
    """What is in a folder as `name-001` and so on, by number; what else begins so is somebody else's."""
    rests = {path: path.name.removeprefix(f"{name}-") for path in base.glob(f"{glob.escape(name)}-*")}
    return {int(rest): path for path, rest in rests.items() if rest.isdecimal()}


def fresh_folder(base: Path, name: str) -> Path:
    """Make and return `base/name-001`, or the first number after all that are there."""
    with written(base):
        base.mkdir(parents=True, exist_ok=True)
        number = 1 + max(numbered_folders(base, name), default=0)
        while True:
            folder = base / f"{name}-{number:03d}"
            try:
                folder.mkdir()
            except FileExistsError:  # another run was quicker
                number += 1
            else:
                return folder


@contextmanager
def written(path: Path) -> Iterator[None]:
    """Within it, a file or folder that cannot be written ends the command with exit code 1."""
    try:
        yield
    except OSError as error:
        raise unusable(error, path, "written") from None


def refuse(message: Any) -> click.UsageError:
    """An error for something that the caller gave wrong: exit code 2."""
    return click.UsageError(str(message))


class ReadPath(click.Path):
    """The path of a file to read. Where nothing or a folder is, the call is wrong; whether what is there can be read
    is seen when it is opened, which alone can tell."""

    def __init__(self, allow_dash: bool = False) -> None:
        super().__init__(dir_okay=False, readable=False, allow_dash=allow_dash)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path = super().convert(value, param, ctx)
        try:
            if not (self.allow_dash and path == "-"):
                os.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            self.fail(f"File {click.format_filename(path)!r} does not exist.", param, ctx)
        except OSError:  # said by whoever opens it
            pass
        return path


class WrittenPath(click.Path):
    """The path of a file, or of a folder, to write; whether it can be is seen when it is."""

    def __init__(self, *, folder: bool = False) -> None:
        super().__init__(file_okay=not folder, dir_okay=folder, readable=False, path_type=Path)


class PicturePath(WrittenPath):
    """The path of a picture to write; its suffix says in which format."""

    FORMATS = (".png", ".pdf", ".svg")

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path = Path(super().convert(value, param, ctx))  # type: ignore[arg-type]
        if path.suffix.lower() not in self.FORMATS:
            self.fail(f"{str(path)!r} must end in {', '.join(self.FORMATS)}", param, ctx)
        return path


class Named(click.Choice):
    """A choice among words that, given another one, names the nearest."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            near = nearest(str(value), map(str, self.choices))
            raise click.BadParameter(f"{error.message.rstrip('.')}{near}", ctx=ctx, param=param) from None


def output_options(quiet: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a command the options --json and --quiet. quiet: help of the latter, what is printed then."""

    def options(command: Callable[..., Any]) -> Callable[..., Any]:
        command = click.option("--quiet", is_flag=True, help=quiet)(command)
        return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(command)

    return options


def say(text: str, what: str = "the answer") -> None:
    """Print an answer. Raises `UnprintedError` where that fails. what: it is, for a message."""
    try:
        if sys.stdout is None:  # of a process that was started with it closed
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        click.echo(text)
        sys.stdout.flush()
    except OSError as error:
        raise UnprintedError(error, what) from None


def tell(text: str, facts: dict[str, Any], brief: str, as_json: bool, quiet: bool) -> None:
    """Print an answer as JSON, in brief, or as text; nothing where the brief one is empty."""
    answer = json.dumps(facts, indent=2, default=str) if as_json else brief if quiet else text
    if answer:
        say(answer)


@click.group(cls=LazyGroup, epilog=EXIT_STATUS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(version("pq-quantiles"), prog_name="pq")
def main() -> None:
    """Private quantiles with the help of predictions.

    Every release spends the epsilon that it is given; two releases of the same people's data spend the sum.

    \b
    pq inspect salaries.csv --column salary
    pq forecast --quantiles 0.25,0.5,0.75 --size 20000 --epsilon 0.5 --prior "between(20000, 150000, least=0)"
    pq ledger init staff.ledger --total 1
    pq release salaries.csv --column salary --quantiles 0.25,0.5,0.75 --size 20000 --epsilon 0.5 \\
      --prior "between(20000, 150000, least=0)" --ledger staff.ledger --report salaries.html
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a letter that the terminal does not know becomes a question mark
