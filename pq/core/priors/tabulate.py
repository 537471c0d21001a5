"""How a distribution of any make becomes a law on panels: by its answers at public points, made a measure.

The masses of wide panels are what its distribution and survival functions lose from one mark to the next, counted
outwards from the median, and a value that does not fall from mark to mark is replaced by the one before. Within a wide
panel the mass is spread as the density says, on narrow panels that halve until a polynomial describes its logarithm.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pq.core.priors.numerics import LARGEST, Array, Masks
from pq.core.priors.panels import DEGREE, Panels, log_means, tamed

FLOOR = 3000.0  # nats: panels with less mass by as much than the heaviest have none
TRUSTED = -14.0  # log of the tail down to which the distribution function decides, and from which on the density
MOST_HEIGHT = 1e300  # nats: log densities beyond, by which some write the log of zero, count as no number
MOST_POINTS = 60_000  # at which a density is asked in the far tails; twice as many in all
ROUNDS = 70

_PLACES = 0.5 - 0.5 * np.cos(np.pi * (np.arange(DEGREE + 1) + 0.5) / (DEGREE + 1))  # Chebyshev points in [0, 1]


@cache
def _to_series() -> Array:
    return np.asarray(np.linalg.inv(np.polynomial.chebyshev.chebvander(2.0 * _PLACES - 1.0, DEGREE)), dtype=np.float64)


class _Pieces(NamedTuple):
    """Panels under work: ends, the wide panel each belongs to, and how well the panel fitted that it is half of."""

    a: Array
    b: Array
    owner: npt.NDArray[np.intp]
    misfit: Array

    def take(self, chosen: Any) -> _Pieces:
        return _Pieces(*(field[chosen] for field in self))


def tabulated(law: Any, low: float, high: float) -> Panels:
    """The law on panels that a frozen distribution's `logcdf`, `logsf`, `logpdf` and quartiles describe on [low, high].

    Raises `ValueError` naming `frozen` where they leave no mass at all.
    """
    with np.errstate(all="ignore"):
        low, high = max(low, -LARGEST), min(high, LARGEST)
        centre, spread = _centre(law, low, high)
        marks = _marks(low, high, centre, spread)
        middle = int(np.searchsorted(marks, centre))
        tails = _tails(law, "cdf", marks[middle::-1]), _tails(law, "sf", marks[middle:])
        if all(tail[0] == tail[-1] for tail in tails):
            raise ValueError("frozen must be a distribution with mass; its distribution function gives none anywhere")
        pieces, shapes, log_sizes = _fitted(law.logpdf, marks, (low, centre, high))
        inside = np.full(marks.size - 1, -np.inf)
        np.logaddexp.at(inside, pieces.owner, log_sizes)
        left = _log_masses(tails[0], inside[:middle][::-1])[::-1]
        wide = np.concatenate([left, _log_masses(tails[1], inside[middle:])])
        counts = np.bincount(pieces.owner, minlength=wide.size)
        even = -np.log(counts[pieces.owner])
        shares = np.where(inside[pieces.owner] > -np.inf, log_sizes - inside[pieces.owner], even)
        return Panels(np.append(pieces.a, pieces.b[-1]), wide[pieces.owner] + shares, shapes)


def _centre(law: Any, low: float, high: float) -> tuple[float, float]:
    """A point inside of the support and a length: median and distance of the quartiles, if the answers are any use."""
    quartiles = np.sort(_answers(law.ppf, np.array([0.25, 0.5, 0.75])))
    usual = quartiles[(quartiles > low) & (quartiles < high)]
    if usual.size:
        centre = float(usual[usual.size // 2])
    else:
        centre = 0.5 * low + 0.5 * high if max(-low, high) < LARGEST else min(max(0.0, low + 1.0), high - 1.0)
    if not low < centre < high:
        raise ValueError(f"frozen must have a support with an inside, got [{low}, {high}]")
    spread = float(np.ptp(usual)) if usual.size else 0.0
    return centre, spread if spread > 0.0 else max(1e-3 * abs(centre), 1.0)


def _answers(function: Callable[[Array], Any], points: Array) -> Array:
    """What a distribution's function answers; not-a-number where it raises or answers something else."""
    try:
        values = np.array(function(points.copy()), dtype=np.float64)  # a stranger keeps neither places nor answers
    except Exception:  # of a stranger's code, about public points
        values = np.array(np.nan)
    if values.shape == points.shape:
        return values
    if points.size < 2:
        return np.full(points.shape, np.nan)
    half = points.size // 2
    return np.concatenate([_answers(function, points[:half]), _answers(function, points[half:])])


def _marks(low: float, high: float, centre: float, spread: float) -> Array:
    """Ends of the wide panels: powers of two times the spread away from the median, and towards the ends."""
    powers = np.exp2(np.concatenate([np.arange(-8.0, 16.0), np.arange(16.0, 2100.0, 8.0)]))
    away = np.concatenate([centre - spread * powers, centre + spread * powers])
    closer = np.exp2(-np.concatenate([np.arange(1.0, 8.0), np.arange(8.0, 1100.0, 8.0)]))
    ends = [end + (centre - end) * closer for end in (low, high) if abs(end) < LARGEST]
    marks = np.unique(np.concatenate([away, *ends, [low, 0.0, centre, high]]))
    return marks[(marks >= low) & (marks <= high)]


def _tails(law: Any, tail: str, marks: Array) -> Array:
    """Log masses beyond marks that lead outwards from the median: they never rise, and are numbers."""
    answers = _answers(getattr(law, "log" + tail), marks)
    if np.isnan(answers).any():
        answers = np.where(np.isnan(answers), np.log(_answers(getattr(law, tail), marks)), answers)
    start = answers[0] if answers[0] <= 0.0 else np.log(0.5)
    return np.asarray(np.fmin.accumulate(np.append(start, answers[1:])))


def _log_masses(tails: Array, inside: Array) -> Array:
    """Log masses of the wide panels on one side, from the median outwards.

    tails: (k + 1,) logs of what lies beyond each mark. inside: (k,) log integrals of the density.
    """
    steps = tails[:-1] + np.log(-np.expm1(tails[1:] - tails[:-1]))
    steps = np.where(np.isnan(steps), -np.inf, steps)
    by_density = (tails[:-1] < TRUSTED) & (inside > -np.inf)
    out = np.where(by_density, inside, steps)
    if by_density.any():
        most = float(tails[np.argmax(by_density)])
        total = float(np.logaddexp.reduce(out[by_density]))
        if total > most + 1e-6:  # the density has more there than the distribution function leaves it
            out = np.where(by_density, out - (total - most), out)
    return out


def _fitted(
    log_density: Callable[[Array], Any], marks: Array, anchors: tuple[float, ...]
) -> tuple[_Pieces, Array, Array]:
    """Narrow panels in order, Chebyshev coefficients of the log density on them, and its log integrals."""
    open_ = _Pieces(marks[:-1], marks[1:], np.arange(marks.size - 1), np.full(marks.size - 1, np.inf))
    done: list[tuple[_Pieces, Array, Array]] = []
    points, heaviest = 0, -np.inf
    for round_ in range(ROUNDS):
        at = open_.a + _PLACES[:, None] * (open_.b - open_.a)
        points += at.size
        heights = _answers(log_density, at.ravel()).reshape(at.shape)
        heights = np.where(np.abs(heights) <= MOST_HEIGHT, heights, np.nan)
        shapes, log_sizes, misfit = _fit(heights, open_.b - open_.a)
        heaviest = max(heaviest, float(np.max(log_sizes, initial=-np.inf)))
        noisy = (misfit < 1e-6) & (misfit > 0.7 * open_.misfit) | (misfit < 1e-10) & (misfit > 0.25 * open_.misfit)
        middle = _middle(open_, anchors)
        ends_here = (log_sizes < heaviest - FLOOR) | (misfit < 2e-15 * _size(heights)) | noisy
        ends_here |= ~((open_.a < middle) & (middle < open_.b))
        if points > MOST_POINTS:  # only where the mass is
            ends_here |= log_sizes < heaviest - 40.0
        if round_ == ROUNDS - 1 or points > 2 * MOST_POINTS:
            ends_here[:] = True
        done.append((open_.take(ends_here), shapes[:, ends_here], log_sizes[ends_here]))
        rest, middle = open_.take(~ends_here), middle[~ends_here]
        if not middle.size:
            break
        twice = np.concatenate([misfit[~ends_here]] * 2)
        open_ = _Pieces(np.append(rest.a, middle), np.append(middle, rest.b), np.concatenate([rest.owner] * 2), twice)
    pieces = _Pieces(*(np.concatenate(field) for field in zip(*(entry[0] for entry in done), strict=True)))
    order = np.argsort(pieces.a)
    shapes, log_sizes = np.concatenate([d[1] for d in done], axis=1), np.concatenate([d[2] for d in done])
    return pieces.take(order), shapes[:, order], np.where(log_sizes < heaviest - FLOOR, -np.inf, log_sizes)[order]


def _size(heights: Array) -> Array:
    finite = np.where(np.isfinite(heights), np.abs(heights), 0.0)
    return 8.0 + np.max(finite, axis=0)


def _fit(heights: Array, widths: Array) -> tuple[Array, Array, Array]:
    """Series through log densities or a flat one, log integrals, and how large the last coefficients are."""
    known: Masks = np.isfinite(heights)
    series = np.asarray(_to_series() @ np.where(known, heights, 0.0), dtype=np.float64)
    shapes = tamed(series)
    misfit: Array = np.maximum(np.max(np.abs(series[-2:]), axis=0), np.max(np.abs(series - shapes), axis=0))
    flat = ~known.all(axis=0) | ((shapes[1] == 0.0) & (misfit > 0.0))
    if flat.any():
        most = np.max(np.where(known[:, flat], heights[:, flat], -np.inf), axis=0)
        level = most + np.log(np.mean(np.where(known[:, flat], np.exp(heights[:, flat] - most), 0.0), axis=0))
        shapes[:, flat] = 0.0
        shapes[0, flat] = np.where(most > -np.inf, level, 0.0)
        misfit[flat] = np.where(known[:, flat].any(axis=0), np.inf, 0.0)
    log_sizes = log_means(shapes) + np.log(widths)
    return shapes, np.where(known.any(axis=0), log_sizes, -np.inf), misfit


def _middle(pieces: _Pieces, anchors: tuple[float, ...]) -> Array:
    """Where to halve panels: in the middle, or by the same factor where an end is much nearer to an anchor."""
    a, b, _, _ = pieces
    out, best = a + 0.5 * (b - a), np.full(a.shape, 4.0)
    for anchor in anchors:
        near, far = (
            np.minimum(np.abs(a - anchor), np.abs(b - anchor)),
            np.maximum(np.abs(a - anchor), np.abs(b - anchor)),
        )
        apart = np.where(np.isfinite(far) & (near > 0.0) & ((a - anchor) * (b - anchor) > 0.0), far / near, 1.0)
        place = anchor + np.sign(b - anchor + (a - anchor)) * np.sqrt(near) * np.sqrt(far)
        out, best = np.where(apart > best, place, out), np.maximum(best, apart)
    return out
