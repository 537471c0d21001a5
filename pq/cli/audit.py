"""`pq audit`: search for the worst privacy loss of a release with given settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from tqdm import tqdm

from pq.cli import EXIT_STATUS, output_options, refuse, tell
from pq.cli.release import parse_prior, parse_quantiles, tree_options
from pq.core.exact import quantile_fractions
from pq.truth.audit.report import TOLERANCE, AuditReport
from pq.truth.audit.table import settings as all_settings
from pq.truth.audit.table import write_audit
from pq.truth.audit.tree import audit_release


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
@tree_options
@click.option("--grid", type=float, help="Audit the release of multiples of this step.")
@click.option(
    "--prior",
    metavar="NAME(...)",
    help="Audit with this prior, as in `pq release`; without it, with the worst of a family.",
)
@click.option(
    "--pairs", type=click.IntRange(1), default=100_000, show_default=True, help="Pairs of neighbours to evaluate."
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of the search.")
@click.option("--figure", type=click.Path(dir_okay=False, path_type=Path), help="Write a picture: png, pdf or svg.")
@output_options("Print the largest loss over epsilon alone.")
@click.option(
    "--full",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Audit all kinds of settings, as a CSV file; a file that the same command has begun is gone on with.",
)
def audit(
    quantiles: str,
    prior: str | None,
    figure: Path | None,
    as_json: bool,
    quiet: bool,
    full: Path | None,
    pairs: int,
    **settings: Any,
) -> None:
    """Search for the two neighbouring data sets and the output with the largest privacy loss.

    No data are read. The exit status is 1 if a loss above epsilon was found. That none was found is no proof; the table
    of sensitivities in pq/privacy.py is.
    """
    if full is not None:
        _audit_all(full, pairs, settings["seed"])
        return
    try:
        asked = sorted(set(quantile_fractions(parse_quantiles(quantiles))))
        settings = {name: value for name, value in settings.items() if value is not None}  # the tree's own
        settings["priors"] = None if prior is None else parse_prior(prior)
        with tqdm(total=pairs, unit="pair", desc="pq audit", leave=False, disable=None) as bar:
            report = audit_release(asked, pairs=pairs, progress=bar.update, **settings)
    except (ValueError, TypeError) as error:
        raise refuse(error) from None
    if figure is not None:
        _save(report, figure)
    tell(str(report), report.to_dict(), f"{report.ratio:.7f}", as_json, quiet)
    if not report.passed:
        raise SystemExit(1)


def _save(report: AuditReport, path: Path) -> None:
    from matplotlib.figure import Figure

    picture = Figure(figsize=(9.0, 3.5), layout="constrained")
    report.draw(*picture.subplots(1, 2))
    try:
        picture.savefig(path)
    except (OSError, ValueError) as error:
        raise refuse(f"figure: {error}") from None


def _audit_all(path: Path, pairs: int, seed: int) -> None:
    total = sum(1 for _ in all_settings()) * pairs
    with tqdm(total=total, unit="pair", unit_scale=True, desc="pq audit --full", disable=None) as bar:
        rows = write_audit(path, pairs, seed, bar.update)
    worst = max(float(row["ratio"]) for row in rows)
    total = sum(int(row["pairs"]) for row in rows)
    click.echo(f"{len(rows)} settings, {total:,} pairs, largest |loss| / epsilon {worst:.8f}: {path}")
    if worst > 1.0 + TOLERANCE:
        raise SystemExit(1)
