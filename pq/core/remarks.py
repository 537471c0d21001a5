"""What whoever reads released values should know of them, in plain words (Section 3.1).

From released values and public facts alone, so that saying it costs no privacy: the same values of the same request
have the same remarks, whatever the column.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import numpy as np

from pq.core.kind import NUMBER, Duration, Kind, shown
from pq.core.priors import Prior
from pq.core.priors.differing import differing
from pq.core.request import LARGEST_SIZE, Request
from pq.core.scores import Array

LARGE_EPSILON = 10.0
FAR_SHARE, LEAST_TAIL = 0.01, 1e-3  # of the level or what is above it: a prior's mass beyond a value in its far tail
EDGE = 0.005  # of the width of a prior: as near to an end of its support is at it
FAR_SIZE, NOISE_OF_TOTAL = 2.0, 20.0  # a factor; and nats by which a private total may be off
FEW_RECORDS = 50.0  # times one over the budget: with fewer, values say as much of the prior as of the column
WIDE_PRIOR = 100.0  # times as wide as what was released
MIDDLE = (0.05, 0.95)  # between these levels lies the width of a prior
NAMED = 4  # quantiles that a remark names


def remarks_on(request: Request, values: Array, total: int | None, kind: Kind, whole: bool) -> tuple[str, ...]:
    """Remarks on the released values (m,) of the distinct quantiles, in increasing order; see `pq.Release`.

    >>> from pq.core.priors import Uniform
    >>> request = Request.of([0.5], epsilon=12, priors=Uniform(0, 10))
    >>> for remark in remarks_on(request, np.array([10.0]), None, NUMBER, whole=False): print(remark)
    epsilon is 12: above 10 a promise means little, since one person's records may change the odds of an outcome
    by a factor of e^12
    the value of quantile 0.5 is at the upper end, 10, of its prior's support, and may lie beyond: unless nothing
    can, a wider prior tells
    """
    parts = (
        _of_budget(request),
        _of_size(request, total),
        _of_grid(request, kind, whole),
        _of_edges(request, values, kind),
        _of_tails(request, values),
        _of_width(request, values, kind),
    )
    with np.errstate(all="ignore"):  # differences of the largest floats are infinite, and quietly so
        return tuple(remark for part in parts for remark in part)


def outside_remarks(request: Request, values: Array, intervals: Array) -> tuple[str, ...]:
    """A remark on values (m,) outside of intervals (m, 2) that assume less than they do."""
    slack = 0.0 if request.step is None else float(request.step)
    outside = (values < intervals[:, 0] - slack) | (values > intervals[:, 1] + slack)
    if not outside.any():
        return ()
    named = _named(request, np.flatnonzero(outside))
    promise = "assume_smooth is wrong of this column" if request.assume_smooth else "the column has many ties or gaps"
    return (f"{named} outside of what the noisy counts alone allow: probably {promise}; trust the interval",)


def _of_budget(request: Request) -> Iterator[str]:
    epsilon = float(request.epsilon)
    if math.isinf(epsilon):
        yield "epsilon is infinite: nothing is private"
    elif epsilon > LARGE_EPSILON:
        yield (
            f"epsilon is {epsilon:.6g}: above {LARGE_EPSILON:g} a promise means little, since one person's records may "
            f"change the odds of an outcome by a factor of e^{epsilon:.6g}"
        )


def _of_size(request: Request, total: int | None) -> Iterator[str]:
    guess, budget = request.size_guess, max(float(request.budget), math.ulp(0.0))
    if total is not None and guess is not None:
        far = max(total, 1) > FAR_SIZE * guess or FAR_SIZE * max(total, 1) < guess
        if far and abs(total - guess) > NOISE_OF_TOTAL / budget:
            yield (
                f"the private total, {total}, is far from size_guess, {guess:.6g}: a better guess may choose a better "
                "mechanism"
            )
    size = total if total is not None else request.public_total if request.public_total is not None else guess
    size = None if size is None else min(size, LARGEST_SIZE)
    if size is not None and size * budget < FEW_RECORDS:
        yield (
            f"about {max(size, 0):.6g} records at epsilon {budget:.6g} a record are few: the values say as much of the "
            "priors as of the column"
        )


def _of_grid(request: Request, kind: Kind, whole: bool) -> Iterator[str]:
    if request.step is None:
        if whole:
            yield "the column is declared to hold whole numbers: grid=1 releases whole numbers, and hits frequent ones"
        return
    step = float(request.step)
    narrow = min((_width(prior) for prior in request.priors), default=math.inf)
    if step > narrow:
        yield (
            f"the grid's step, {_length(step, kind)}, is coarser than a prior, nine tenths of which are "
            f"{_length(narrow, kind)} wide: few values are left to choose from"
        )


def _of_edges(request: Request, values: Array, kind: Kind) -> Iterator[str]:
    """Values at the ends of their priors' supports, a remark for each end."""
    found: dict[tuple[str, float], list[int]] = {}
    for i, prior in enumerate(request.priors):
        for side, end in zip(("lower", "upper"), prior.support, strict=True):
            if math.isfinite(end) and abs(values[i] - end) <= _edge(prior, request):
                found.setdefault((side, end), []).append(i)
    for (side, end), where in found.items():
        yield (
            f"{_named(request, where)} at the {side} end, {_place(end, kind)}, of its prior's support, and may lie "
            "beyond: unless nothing can, a wider prior tells"
        )


def _of_tails(request: Request, values: Array) -> Iterator[str]:
    """Values which their priors hardly expected."""
    far, least = [], 0.0
    for i, prior in enumerate(request.priors):
        if any(abs(values[i] - end) <= _edge(prior, request) for end in prior.support if math.isfinite(end)):
            continue
        log_tail = min(prior.log_mass(-math.inf, values[i]), prior.log_mass(values[i], math.inf))
        q = float(request.distinct[i])
        if log_tail < math.log(FAR_SHARE * max(min(q, 1.0 - q), LEAST_TAIL)):
            far.append(i)
            least = min(least, log_tail)
    if far:
        odds = f"once in {math.exp(-least):.0e}" if least > -300.0 else "practically never"
        yield (
            f"{_named(request, far)} far in the tail of its prior, which expected one so far out {odds}: a prior "
            "that is wrong costs accuracy; a wider one, or one with heavier tails, forgives more"
        )


def _of_width(request: Request, values: Array, kind: Kind) -> Iterator[str]:
    """A prior that is far wider than what came out."""
    if len(values) < 2 or len(differing(request.priors)) > 1:
        return
    ends = [min(max(float(q), LEAST_TAIL), 1.0 - LEAST_TAIL) for q in (request.distinct[0], request.distinct[-1])]
    low, high = request.priors[0].quantile_between(-math.inf, math.inf, ends)
    spread = max(float(values[-1] - values[0]), 0.0 if request.step is None else float(request.step))
    if spread > 0.0 and high - low > WIDE_PRIOR * spread:
        yield (
            f"the prior is far wider than what was released: {_length(high - low, kind)} between the outermost "
            f"quantiles, against {_length(spread, kind)}; a narrower one, if public knowledge has it, costs less"
        )


def _edge(prior: Prior, request: Request) -> float:
    """How near to an end of a prior's support is at it."""
    half = 0.0 if request.step is None else 0.5 * float(request.step)
    width = _width(prior)
    return max(EDGE * width, half) if math.isfinite(width) else half


def _width(prior: Prior) -> float:
    low, high = prior.quantile_between(-math.inf, math.inf, list(MIDDLE))
    return float(high - low)


def _named(request: Request, where: Iterable[int]) -> str:
    """The subject of a sentence: the values of some quantiles."""
    levels = [f"{float(request.distinct[i]):.6g}" for i in where]
    if len(levels) == 1:
        return f"the value of quantile {levels[0]} is"
    more = f" and {len(levels) - NAMED} more" if len(levels) > NAMED else ""
    return f"each value of the quantiles {', '.join(levels[:NAMED])}{more} is"


def _place(number: float, kind: Kind) -> str:
    return f"{number:.6g}" if kind == NUMBER else shown(kind.from_numbers([number]))[0]


def _length(number: float, kind: Kind) -> str:
    return f"{number:.6g}" if kind == NUMBER else shown(Duration().from_numbers([number]))[0]
