"""The right value has what is left: a law for few candidates that spends all of epsilon on every wrong one (`eq:gap`).

**Law.** Candidates 0, 1, ..., k - 1 of equal mass, add-remove, target t = (n + shift) / 2 with a public whole shift (0
for the median, about (2 q - 1) n0 where the total n0 is public). With F(o) records up to o and F(o-) below it, o is too
low by d = n + shift - 2 F(o) records if that is positive, and too high by d = 2 F(o-) - n - shift. The last candidate
is never too low, the first never too high. Every record moves every d by one. A candidate that is wrong by d has the
probability `g = max(1 / L, f) e^(-epsilon d)`: L >= 2 counts the candidates from it to the next value that records
hold, both included, in the direction of the right ones (to the last or first candidate if none is held), and f is a
public floor, e^(-2 epsilon) / 2 <= f <= 1/2. Let W be the sum of these. The right candidates, N in number, have (1 - W)
/ N each.

**Proof.** (1) *Wrong before and after.* d moves by one, so e^(-epsilon d) by epsilon. L changes only with a record in
the direction of the right ones, which d goes with: one more there takes g down by epsilon and L down, so max(1 / L, f)
up, by at most 1 / (2 f) <= e^(2 epsilon). The loss stays within epsilon. (2) *Right, then wrong.* Then d goes from 0 to
1, so all candidates from o to the next held value were right: N >= L, and L only falls: g' >= e^-epsilon / N. In the
other direction g' <= e^-epsilon / 2 <= e^epsilon (1 - W) / N, if N <= 2 e^(2 epsilon) (1 - W). (3) *Right before and
after.* n + shift changes parity, and several are right only where it is even, so N, N' are 1, 1 or N, 1 (or 1, N, which
is the same). If 1, 1: by (1) W' <= e^epsilon W, so that (1 - W) / (1 - W') <= e^epsilon if W' <= 1 / (1 + e^-epsilon).
If N, 1: the N - 1 others are wrong by 1 now, with L at most their distance from the right one, plus one; the others'
part of W has fallen by no more than epsilon, see (1). So N (1 - W') <= e^epsilon (1 - W) if N (1 - e^-epsilon (s + W))
<= e^epsilon (1 - W), s the least sum of max(1 / L, f) over N - 1 candidates beside one, which has all on one side. (N
>= 2 and the bound on W' also keep (1 - W') / (1 - W) / N and its inverse within the other bound.)

What remains is to bound W: on either side the runs between held values have sums of max(1 / L, f) with L = 2, 3, ...,
and each further run is wrong by two records more at least. `remainder_floor` finds the least f on a public lattice of
values for which all conditions hold, or says that there is none; it sees k and epsilon only.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from pq.private.columns.door import Array

MOST = 128  # candidates beyond which no floor is looked for
FLOORS = 64


@lru_cache(maxsize=256)
def remainder_floor(candidates: int, epsilon: float) -> float | None:
    """The least floor f with which the law is epsilon-private for that many candidates, None if none is known to be.

    candidates: at least 1. epsilon: positive.

    >>> remainder_floor(8, 2.0) is not None, remainder_floor(111, 1.0) is None
    (True, True)
    """
    if not 1 <= candidates <= MOST:
        return None
    for floor in np.linspace(math.exp(-2.0 * epsilon) / 2.0, 0.5, FLOORS).tolist():
        if _allowed(candidates, epsilon, floor):
            return float(floor)
    return None


def _allowed(candidates: int, epsilon: float, floor: float) -> bool:
    """Whether the conditions of the proof hold for every number of candidates that may be right."""
    fall = math.exp(-epsilon)
    sums = np.cumsum(np.append(0.0, np.maximum(1.0 / np.arange(2.0, candidates + 1.0), floor)))
    side = np.zeros(candidates)  # the largest sum over so many candidates on one side, the nearest run counted in full
    for n in range(1, candidates):
        side[n] = np.max(sums[1 : n + 1] + fall**2 * side[n - 1 :: -1])

    def heaviest(others: int) -> float:
        return float(np.max(side[: others + 1] + side[others::-1]))

    if fall * heaviest(candidates - 1) > 1.0 / (1.0 + fall):
        return False
    for right in range(2, candidates + 1):
        tied = fall**2 * heaviest(candidates - right)
        if right > 2.0 * (1.0 - tied) / fall**2:
            return False
        if any(right * (1.0 - fall * (sums[right - 1] + w)) > (1.0 - w) / fall for w in (0.0, tied)):
            return False
    return True


def remainder_law(counts: npt.NDArray[np.int64], shift: int, epsilon: float) -> Array:
    """Exact probabilities of all candidates.

    counts: (k,) records at each candidate; those of records beyond the ends count at the ends. shift: public, 0 for the
    median. Raises `ValueError` naming epsilon if no floor is known for that many candidates.

    >>> remainder_law(np.array([1, 1]), 0, 1.0).round(6), remainder_law(np.array([2, 0]), 0, 1.0).round(6)
    (array([0.5, 0.5]), array([0.932332, 0.067668]))
    """
    k = len(counts)
    floor = remainder_floor(k, epsilon)
    if floor is None:
        raise ValueError(f"epsilon must be larger for a law of {k} candidates by remainders, got {epsilon}")
    up_to = np.cumsum(counts)
    whole = int(up_to[-1]) + shift
    too_low, too_high = whole - 2 * up_to, 2 * (up_to - counts) - whole
    too_low[-1], too_high[0] = 0, 0
    places = np.arange(k)
    held = np.flatnonzero(counts)
    above = np.append(held, k - 1)[np.searchsorted(held, places, side="right")]
    below = np.append(0, held)[np.searchsorted(held, places, side="left")]
    steps = np.where(too_low > 0, above - places, places - below) + 1.0
    wrong_by = np.maximum(np.maximum(too_low, too_high), 0)
    chances = np.where(wrong_by > 0, np.maximum(1.0 / steps, floor) * np.exp(-epsilon * wrong_by), 0.0)
    right = wrong_by == 0
    chances[right] = (1.0 - float(np.sum(chances))) / int(np.sum(right))
    return chances
