"""`pq audit`: search for the worst privacy loss of a release with given settings."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import click
from tqdm import tqdm

from pq.cli import EXIT_STATUS, Named, PicturePath, WrittenPath, output_options, refuse, say, tell, written
from pq.cli.release import parse_prior, parse_quantiles, tree_options
from pq.core.exact import quantile_fractions
from pq.private.mechanisms.protocol import MECHANISMS
from pq.truth.audit.laws import laws, write_laws
from pq.truth.audit.outcomes import audit_mechanism
from pq.truth.audit.report import TOLERANCE, AuditReport
from pq.truth.audit.table import settings as all_settings
from pq.truth.audit.table import write_audit
from pq.truth.audit.tree import audit_release

TREE_PAIRS, LAW_PAIRS = 100_000, 1000
MADE = b"# pq audit "  # begins the tables of this command


@click.command(epilog=EXIT_STATUS)
@click.option(
    "--quantiles",
    default="0.25,0.5,0.75",
    show_default=True,
    metavar="Q,...",
    help="Numbers in [0, 1], separated by commas.",
)
@click.option(
    "--epsilon", type=float, default=1.0, show_default=True, help="Budget that the release claims to keep to."
)
@click.option(
    "--mechanism", type=Named(list(MECHANISMS)), default="tree", show_default=True, help="Audit releases by this one."
)
@tree_options
@click.option("--size", "size_guess", type=float, help="Rough number of records that a release would be told.")
@click.option("--assume-smooth", is_flag=True, help="Audit the release that is promised a smooth column.")
@click.option("--grid", type=float, help="Audit the release of multiples of this step.")
@click.option(
    "--prior",
    metavar="NAME(...)",
    help="Audit with this prior, as in `pq release`; without it, with the worst of a family.",
)
@click.option(
    "--pairs",
    type=click.IntRange(1),
    help=f"Pairs of neighbours to evaluate; {TREE_PAIRS} for the tree, else {LAW_PAIRS} with three outcomes each.",
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of the search.")
@click.option("--figure", type=PicturePath(), help="Write a picture: png, pdf or svg.")
@output_options("Print the largest loss over epsilon alone.")
@click.option(
    "--full",
    type=WrittenPath(),
    help="Audit all kinds of settings of the tree, as a CSV file; one that the same command has begun is gone on with.",
)
@click.option(
    "--each",
    type=WrittenPath(),
    help="Audit each mechanism under either adjacency, with and without a grid, as a CSV file.",
)
def audit(
    quantiles: str,
    mechanism: str,
    prior: str | None,
    figure: Path | None,
    as_json: bool,
    quiet: bool,
    full: Path | None,
    each: Path | None,
    pairs: int | None,
    **settings: Any,
) -> None:
    """Search for the two neighbouring data sets and the output with the largest privacy loss.

    No data are read. The exit status is 1 if a loss above epsilon was found. That none was found is no proof; the table
    of sensitivities in pq/core/sensitivity.py and the heads of the mechanisms are.
    """
    if full is not None:
        _audit_all(full, pairs or TREE_PAIRS, settings["seed"], all_settings, write_audit)
    if each is not None:
        _audit_all(each, pairs or LAW_PAIRS, settings["seed"], laws, write_laws)
    if full is not None or each is not None:
        return
    search: Callable[..., AuditReport] = partial(audit_mechanism, mechanism=mechanism)
    wanted = pairs or LAW_PAIRS
    if mechanism == "tree":
        search, wanted = audit_release, pairs or TREE_PAIRS
        for chosen_by_others in ("size_guess", "assume_smooth"):
            settings.pop(chosen_by_others)
    try:
        asked = sorted(set(quantile_fractions(parse_quantiles(quantiles))))
        settings = {name: value for name, value in settings.items() if value is not None}  # the mechanism's own
        settings["priors"] = None if prior is None else parse_prior(prior)
        with tqdm(total=wanted, unit="pair", desc="pq audit", leave=False, disable=None) as bar:
            report = search(asked, pairs=wanted, progress=bar.update, **settings)
    except (ValueError, TypeError) as error:
        raise refuse(error) from None
    tell(str(report), report.to_dict(), f"{report.ratio:.7f}", as_json, quiet)
    if figure is not None:
        _save(report, figure)
    if not report.passed:
        raise SystemExit(1)


def _save(report: AuditReport, path: Path) -> None:
    from matplotlib.figure import Figure

    picture = Figure(figsize=(9.0, 3.5), layout="constrained")
    report.draw(*picture.subplots(1, 2))
    with written(path):
        picture.savefig(path)


def _audit_all(path: Path, pairs: int, seed: int, settings: Callable[..., Any], write: Callable[..., Any]) -> None:
    with written(path):
        held = path.read_bytes() if path.is_file() else MADE
    if not held.startswith(MADE):
        raise refuse(f"{path} is no table that this command has made: give a name that is free")
    total = sum(1 for _ in settings()) * pairs
    with tqdm(total=total, unit="pair", unit_scale=True, desc="pq audit", disable=None) as bar, written(path):
        rows = write(path, pairs, seed, bar.update)
    worst = max(float(row["ratio"]) for row in rows)
    total = sum(int(row["pairs"]) for row in rows)
    say(f"{len(rows)} settings, {total:,} pairs, largest |loss| / epsilon {worst:.8f}: {path}")
    if worst > 1.0 + TOLERANCE:
        raise SystemExit(1)
