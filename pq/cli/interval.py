"""The option by which `pq release` prints an interval beside each value, and the printing."""

from __future__ import annotations

import math
from typing import Any

import click

import pq
from pq.private.exhibit import interval_numbers, value_texts
from pq.private.intervals import MOST_LEVEL, interval_level
from pq.show.promise import interval_words

NONE_TOLD = "No interval: nothing tells the number of records; --size does."


def _checked(ctx: click.Context, param: click.Parameter, value: float | None) -> float | None:
    try:
        if value is not None and interval_level(value) > MOST_LEVEL:
            raise ValueError(f"level must be at most {MOST_LEVEL}, got {value}")
    except ValueError as error:
        raise click.BadParameter(str(error), ctx=ctx, param=param) from None
    return value


level_option = click.option(
    "--level", type=float, callback=_checked, metavar="SHARE",
    help="Print intervals, too, that hold all true quantiles at once in this share of releases, such as 0.95; costs"
    " some seconds and no budget. The report has them anyway.",
)  # fmt: skip


def told_release(released: pq.Release, level: float | None) -> str:
    """The release as text, with an interval beside each value where a level is given."""
    if level is None:
        return str(released)
    numbers = released.numbers
    ends = interval_numbers(released, numbers, level, None)
    _, spans = value_texts(released, numbers, ends)
    said = ["-" if ends is None else f"{low} to {high}" for low, high in spans]
    head, *rows = str(released).split("\n")
    width = max(map(len, rows))
    told = [f"{row:<{width}}  {text}" for row, text in zip(rows, [f"{100 * level:.10g}% interval", *said], strict=True)]
    words = NONE_TOLD if ends is None else interval_words(released.mechanism, f"{100 * level:.10g}%")
    return "\n".join([head, *told, words])


def interval_facts(released: pq.Release, level: float | None) -> dict[str, Any]:
    """The intervals for JSON, as numbers like the values: null for an infinite end, or where there are none."""
    if level is None:
        return {}
    ends = interval_numbers(released, released.numbers, level, None)
    pairs = None if ends is None else [[x if math.isfinite(x) else None for x in pair] for pair in ends.tolist()]
    return {"level": level, "intervals": pairs}
