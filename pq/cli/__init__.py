"""The `pq` command. Each subcommand lives in a module of its own, imported when it is called."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

# name of the command -> "module:function", a click command; its help line stands here so that listing imports nothing
COMMANDS = {
    "audit": ("pq.cli.audit:audit", "Look for the worst privacy loss between neighbouring data sets."),
    "claims": ("pqlab.commands.claims:claims", "List the paper's statements with their verdicts."),
    "ledger": ("pq.cli.ledger:ledger", "Make an account of privacy budget, or show who spent what, and when."),
    "release": ("pq.cli.release:release", "Release private quantiles of a column of a CSV file."),
    "reproduce": ("pqlab.commands.reproduce:reproduce", "Run the experiments of the paper, into tables and a report."),
    "run": ("pqlab.commands.run:run", "Run a notebook with other parameters."),
}


class LazyGroup(click.Group):
    """A group whose commands are imported when they are needed; one whose module is absent is not listed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(name for name, (target, _) in COMMANDS.items() if _is_there(target))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        module, function = COMMANDS[cmd_name][0].split(":")
        command: click.Command = getattr(import_module(module), function)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name][1]) for name in self.list_commands(ctx)])


def _is_there(target: str) -> bool:
    """Whether a command's module is installed: those of the workshop are in a checkout only."""
    package, module = target.split(":")[0].rsplit(".", 1)
    return find_spec(package.split(".")[0]) is not None and find_spec(f"{package}.{module}") is not None


def roots() -> list[Path]:
    """Folders that may be the project's: the current one and those above it, then the one that holds this package."""
    here = Path.cwd()
    return [here, *here.parents, Path(__file__).resolve().parents[2]]


def fresh_folder(base: Path, name: str) -> Path:
    """Make and return `base/name-001`, or the first number after all that are there."""
    base.mkdir(parents=True, exist_ok=True)
    taken = [path.name[len(name) + 1 :] for path in base.iterdir() if path.name.startswith(f"{name}-")]
    number = 1 + max((int(rest) for rest in taken if rest.isdecimal()), default=0)
    while True:
        folder = base / f"{name}-{number:03d}"
        try:
            folder.mkdir()
        except FileExistsError:  # another run was quicker
            number += 1
        else:
            return folder


def refuse(message: Any) -> click.UsageError:
    """An error for something that the caller gave wrong: exit code 2."""
    return click.UsageError(str(message))


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(version("pq"), prog_name="pq")
def main() -> None:
    """Private quantiles with the help of predictions.

    Every release spends the epsilon that it is given; two releases of the same people's data spend the sum.
    """
