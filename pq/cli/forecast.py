"""`pq forecast`: how accurate a release will be, or what epsilon it needs, before any budget is spent.

No data are read: columns are drawn from the prior. The same columns and seeds serve every budget and every prior that
are compared.
"""

from __future__ import annotations

import math
import secrets
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click
from tqdm import tqdm

import pq
from pq.cli import EXIT_STATUS, Named, PicturePath, output_options, refuse, tell, written
from pq.cli.files import KINDS
from pq.cli.release import FiniteFloat, grid_option, law_options, parse_prior, parse_quantiles, prior_option
from pq.core.exact import budget_fraction
from pq.core.priors import Prior
from pq.core.priors.widen import widened
from pq.show.prospects import budget_curve, quantile_errors, text_bars
from pq.truth.forecast import Forecast, Rehearsal, prepared

STEPS = 6  # of the progress bar
HALF, TWICE = "half the epsilon", "twice the epsilon"
WIDER, NARROWER = "a prior twice as wide", "a prior half as wide"


@dataclass(frozen=True)
class Variation:
    """A forecast of the same release with another budget, or with other priors for the same records."""

    what: str
    forecast: Forecast

    def row(self) -> dict[str, Any]:
        """What is compared, as plain text and numbers."""
        found = self.forecast
        numbers = {name: getattr(found, name) for name in ("epsilon", "mechanism", "max_gap", "max_gap_error")}
        return {"what": self.what, **numbers}

    def __str__(self) -> str:
        found = self.forecast
        return f"{self.what:<22}{found.epsilon:>10.4g}{found.max_gap:>14.3g}  {found.mechanism}"


@click.command(epilog=EXIT_STATUS)
@click.option("--quantiles", required=True, metavar="Q,...", help="Numbers in [0, 1], separated by commas.")
@click.option("--epsilon", type=FiniteFloat(), help="Total privacy budget of the release.")
@click.option("--max-gap", type=FiniteFloat(), help="Instead of epsilon: the mean largest error wanted, in ranks.")
@prior_option
@click.option("--size", "size_guess", type=FiniteFloat(), help="Rough number of records; public, never counted.")
@click.option("--type", "kind", type=Named(KINDS), default=KINDS[0], show_default=True, help="What the column holds.")
@law_options
@grid_option
@click.option("--trials", type=click.IntRange(2), default=200, show_default=True, help="Releases to simulate.")
@click.option("--seed", type=click.IntRange(0), help="Seed of the simulation; without it, another one each time.")
@click.option("--plot", type=PicturePath(), help="Write a picture: png, pdf or svg.")
@output_options("Print one number alone: the mean largest error in ranks, or, with --max-gap, the epsilon.")
def forecast(
    quantiles: str,
    epsilon: float | None,
    max_gap: float | None,
    priors: tuple[str, ...],
    plot: Path | None,
    as_json: bool,
    quiet: bool,
    **settings: Any,
) -> None:
    """Forecast the error of a release, or find the epsilon for a wanted one; spends nothing and reads no data.

    Records are drawn from the prior (from the curve through the medians of several): the forecast is right as far as
    the prior is. The table says how the error changes with the budget and with the width of the prior.
    """
    if (epsilon is None) == (max_gap is None):
        raise refuse("give either --epsilon or --max-gap")
    if settings["size_guess"] is None and settings["public_total"] is None:
        raise refuse("give --size, a rough number of records")
    if plot is not None and find_spec("matplotlib") is None:
        raise refuse("--plot needs matplotlib, of the extra 'plots': pip install 'pq-quantiles[plots]'")
    try:
        asked, chosen = parse_quantiles(quantiles), [parse_prior(text) for text in priors]
        settings["rng"] = fresh_seed(settings.pop("seed"))
        with tqdm(total=STEPS, desc="pq forecast", leave=False, disable=None) as bar:
            if epsilon is None:
                facts = {name: value for name, value in settings.items() if name != "kind"}
                epsilon = pq.epsilon_for(asked, max_gap=max_gap or 0.0, priors=_one(chosen), **facts)
            bar.update()
            found, others = compared(asked, chosen, epsilon, bar.update, settings)
    except (ValueError, TypeError, OverflowError) as error:
        raise refuse(error) from None
    text = [str(found), "", f"{'with':<22}{'epsilon':>10}{'largest error':>14}  mechanism", *map(str, others)]
    if sys.stdout.isatty():
        text += ["", "Error in ranks by quantile", *text_bars([f"{q:g}" for q in found.quantiles], found.gap.tolist())]
    answer = f"{found.max_gap:.4g}" if max_gap is None else f"{epsilon:g}"
    facts = found.to_dict() | {"variations": [other.row() for other in others]}
    tell("\n".join(text), facts, answer, as_json, quiet)
    if plot is not None:
        _save_picture(plot, found, others)


def compared(
    quantiles: list[float], priors: list[Any], epsilon: float, progress: Any, settings: dict[str, Any]
) -> tuple[Forecast, list[Variation]]:
    """The forecast at a budget, and those at half and twice the budget, and with wider and narrower priors; without
    those that no release could have."""
    kind, trials, rng = (settings[name] for name in ("kind", "trials", "rng"))
    facts = {name: value for name, value in settings.items() if name not in ("kind", "trials", "rng")}
    maker = prepared(quantiles, epsilon=epsilon, priors=_one(priors), **facts)
    rehearsal = Rehearsal(maker, public=None, kind=kind, trials=trials, rng=rng)
    found = rehearsal.forecast(maker)
    progress()
    budgets = {HALF: epsilon * 0.5, TWICE: epsilon * 2.0}
    cases = [(what, budget, priors) for what, budget in budgets.items() if _is_budget(budget)]
    for what, factor in ((WIDER, 2.0), (NARROWER, 0.5)):
        others = [widened(prior, factor) for prior in priors]
        cases += [(what, epsilon, others)] if all(isinstance(other, Prior) for other in others) else []
    made = []
    for what, spent, given in cases:
        made.append(
            Variation(what, rehearsal.forecast(prepared(quantiles, epsilon=spent, priors=_one(given), **facts)))
        )
        progress()
    return found, made


def _is_budget(epsilon: float) -> bool:
    """Whether a release could have it: a share of one that could may be beyond the ends of what is allowed."""
    try:
        return not math.isinf(budget_fraction(epsilon))
    except ValueError:
        return False


def _one(priors: list[Any]) -> Any:
    return priors[0] if len(priors) == 1 else priors


def fresh_seed(seed: int | None) -> int:
    """A seed that is given, or one of the operating system's, so that all that is compared meets the same chances."""
    return secrets.randbits(63) if seed is None else seed


def _save_picture(path: Path, found: Forecast, others: list[Variation]) -> None:
    from matplotlib.figure import Figure

    picture = Figure(figsize=(9.0, 3.5), layout="constrained")
    left, right = picture.subplots(1, 2)
    quantile_errors(left, found.quantiles.tolist(), found.gap.tolist())
    made = {other.what: other.forecast for other in others}
    curve = [one for one in (made.pop(HALF, None), found, made.pop(TWICE, None)) if one is not None]
    labels = {what: one.max_gap for what, one in made.items()}
    budget_curve(right, [one.epsilon for one in curve], [one.max_gap for one in curve], labels, at=found.epsilon)
    with written(path):
        picture.savefig(path)
