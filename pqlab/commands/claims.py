"""`pq claims`: the paper's statements, what became of each, and how well that is known."""

from __future__ import annotations

import shutil
import textwrap
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import click

from pq.cli import project_folder, refuse, say

VERDICTS = ("holds", "holds corrected", "false as stated", "not decided", "definition")
GRADES = ("proved", "high precision", "property tested", "statistical", "none")
DETAILS = ("section", "paper", "corrected", "verdict", "grade", "code", "checks", "notebook", "counterexample", "note")
SEARCHED = ("title", "section", "paper", "corrected", "counterexample", "note")

Claim = dict[str, Any]


def load_claims() -> dict[str, Claim]:
    """The rows of every section, keyed by the paper's label, from the project's folder.

    Raises:
        click.ClickException: the folder is not found from here, or a table cannot be read.
    """
    root = project_folder()
    places = [] if root is None else sorted((root / "proofs_checks").glob("section_*/claims.toml"))
    if not places:
        raise click.ClickException("proofs_checks is not beside the package; install pq from a checkout of the project")
    table: dict[str, Claim] = {}
    for place in places:
        try:
            table |= tomllib.loads(place.read_text(encoding="utf-8"))
        except tomllib.TOMLDecodeError as error:
            raise click.ClickException(f"{_short(place)} is not valid TOML: {error}") from None
    return table


def evidence(label: str) -> Claim:
    """The checks of a row and the code that they call, where the checks can be imported."""
    try:
        from proofs_checks.engine.registry import checks_of, name_of
    except ImportError:
        return {}
    found = checks_of(label)
    names = dict.fromkeys(name_of(code) for check in found for code in check.code)
    return {"code": list(names), "checks": [check.key for check in found]}


@click.command()
@click.argument("label", required=False)
@click.option("--verdict", type=click.Choice(VERDICTS), help="Only statements with this verdict.")
@click.option("--grade", type=click.Choice(GRADES), help="Only statements known this well.")
@click.option("--search", metavar="TEXT", help="Only statements that mention the text, in any case.")
def claims(label: str | None, verdict: str | None, grade: str | None, search: str | None) -> None:
    """List the paper's statements with their verdicts, or show one LABEL in full."""
    table = load_claims()
    if label is not None:
        if label not in table:
            raise refuse(f"no statement has the label {label!r}; `pq claims` lists them")
        say(_in_full(label, table[label] | evidence(label)))
        return
    chosen = {name: claim for name, claim in table.items() if _matches(name, claim, verdict, grade, search)}
    if not chosen:
        raise click.ClickException("no statement matches")
    say(_as_table(chosen))
    say(f"\n{len(chosen)} of {len(table)} statements")
    for key, order in (("verdict", VERDICTS), ("grade", GRADES)):
        counts = Counter(str(claim.get(key, "none")) for claim in chosen.values())
        known = [f"{counts[name]} {name}" for name in (*order, *sorted(set(counts) - set(order))) if counts[name]]
        say(f"by {key}: " + ", ".join(known))


def _matches(label: str, claim: Claim, verdict: str | None, grade: str | None, search: str | None) -> bool:
    text = " ".join([label, *(str(claim.get(key, "")) for key in SEARCHED)]).casefold()
    return (
        (verdict is None or claim.get("verdict") == verdict)
        and (grade is None or claim.get("grade") == grade)
        and (search is None or search.casefold() in text)
    )


def _as_table(table: dict[str, Claim]) -> str:
    rows: list[tuple[str, ...]] = [("label", "verdict", "grade", "statement")]
    rows += [
        (name, *(str(claim.get(key, "")) for key in ("verdict", "grade", "title"))) for name, claim in table.items()
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    room = max(30, shutil.get_terminal_size((160, 24)).columns - sum(widths) - 6)
    lines = [
        "  ".join(
            [*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), textwrap.shorten(row[3], room)]
        )
        for row in rows
    ]
    return "\n".join(line.rstrip() for line in lines)


def _in_full(label: str, claim: Claim) -> str:
    lines = [f"{label}: {claim.get('title', '')}"]
    for key in DETAILS:
        value = claim.get(key, "")
        text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
        if text:
            lines.append(textwrap.fill(text, 118, initial_indent=f"  {key:<15}", subsequent_indent=" " * 17))
    return "\n".join(lines)


def _short(path: Path) -> str:
    return "/".join(path.parts[-2:])
