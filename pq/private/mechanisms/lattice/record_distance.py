"""Margins counted in records: how many must come or go until a candidate is right by a tolerance, or is so no more.

**Utility.** With f records up to a candidate and g above it, the candidate is *not too low* if (1 - q) f - q g >= d,
and with f below it and g from it on *not too high* if q g - (1 - q) f >= d, for a public tolerance d. Between columns
that are one record apart lies a distance of one; the signed distance to a set (half a record less than the records that
it takes to leave it, minus as much as it takes to enter) therefore moves by at most one for each record, and so does
the minimum of the two. At rate epsilon / 2 any law of `pq.private.mechanisms` is then epsilon-private under add-remove,
for every q and d: whatever d is made of, as long as it is public.

**What it gains.** A margin in ranks must be charged max(q, 1 - q) for each record, also where no record moves it by
that much: for q > 1/2 those above a candidate that is too low are few, and once they are gone only records below help,
1 - q each. With d = q (1 - q) n0, n0 a public lower bound of the number of records, this happens just below the target:
the utility of values that are too low falls twice as fast with their ranks as that of values that are too high. Unlike
a `public_total` the bound may be far too low; then little is gained and nothing lost. One that is too high draws
releases away from their target in proportion, which costs accuracy, never privacy.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt

from pq.private.columns.door import Array

Whole = npt.NDArray[np.int64]


def record_margins(below: Whole, up_to: Whole, n: int, q: Fraction, least_total: int) -> Array:
    """Signed records by which candidates are right, halves of odd numbers; infinite at open ends where both are.

    below, up_to: (c,) records below each candidate and up to it, in order; the first and the last candidate are open
    ends, see `pq.core.margin`. n: number of records. q: in (0, 1). least_total: public, at least 0.

    >>> record_margins(np.array([0, 2, 2]), np.array([2, 2, 4]), 4, Fraction(1, 2), 0)
    array([0.5, 0.5, 0.5])
    """
    if not 0 < q < 1:
        raise ValueError(f"q must lie strictly between 0 and 1, got {q}")
    if q < Fraction(1, 2):  # seen from the other end
        return record_margins(n - up_to[::-1], n - below[::-1], n, 1 - q, least_total)[::-1]
    tolerance = q * (1 - q) * least_total
    scale = q.denominator * tolerance.denominator
    heavy, light, least = int(q * scale), int((1 - q) * scale), int(tolerance * scale)
    above = n - up_to
    enough = light * up_to - heavy * above - least
    entered = _ceil(-enough, heavy)
    few_above = above + _ceil(least - light * up_to, light)  # all above gone, the rest must come below
    not_low = np.where(enough >= 0, enough // heavy + 0.5, 0.5 - np.where(entered <= above, entered, few_above))
    onwards = n - below
    enough = heavy * onwards - light * below - least
    left = enough // heavy + 1
    none_left = onwards + np.maximum((-light * below - least) // light + 1, 0)
    not_high = np.where(enough >= 0, np.where(left <= onwards, left, none_left) - 0.5, 0.5 - _ceil(-enough, heavy))
    not_low[-1], not_high[0] = np.inf, np.inf
    return np.minimum(not_low, not_high)


def _ceil(numerator: Whole, denominator: int) -> Whole:
    return -(-numerator // denominator)
