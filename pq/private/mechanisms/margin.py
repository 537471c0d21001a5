"""The margin of a candidate on a grid: what single quantiles and trees aim by, its sensitivity and cost (`eq:gap`).

**Margin.** For records of total weight n, a target rank t and a candidate o, let F(o) count the records up to o and
F(o-) those below it. The utility is `min(F(o) - t, t - F(o-))`: minus the gap where o is wrong, and where it is right,
by how many ranks. The gap alone says the same of a value that holds the rank barely and of one that holds it by far.

**Open ends.** Nothing can come out above the last candidate or below the first, so that the last needs no records above
it and the first none below: F(last) counts as infinite, F(first-) as minus infinite. First and last come from the
prior's support and earlier outputs, never from records.

**Sensitivity** (`margin_sensitivity`). *Add-remove*, t = q n: with a record more at v, t rises by q, F(o) by [v <= o]
and F(o-) by [v < o]. So F(o) - t and t - F(o-) each move by -q, q, 1 - q or q - 1, and their minimum, or one alone at
an open end, by at most max(q, 1 - q). *Add-remove* with a `public_total` n0, t = q n0 + (n - n0) / 2: the same with 1/2
for q, so at most 1/2. *Replace*: t is fixed, F(o) and F(o-) move by at most 1. A record of weight w moves a node's
margins by w times as much; for nodes below the root see `pq.privacy`. All this holds for `-|rank - t|` and continuous
outputs as well.

**Split ties.** A node of a tree may also say which share s of the records at its output lies below: candidates are
pairs (o, s), with utility `min(margin, cap - |F(o-) + s (F(o) - F(o-)) - t|)` for a public cap. With a record more, the
rank F(o-) + s (F(o) - F(o-)) rises by [v < o] + s [v = o], from 0 to 1, so that its distance from t moves by no more
than the margin may, and a minimum of functions of one sensitivity has that sensitivity. The children get s and 1 - s of
each of these records (`split_ties`).

**Cost** (`zcdp_cost`). A law with log weights `rate * utility`, rate = epsilon / (2 sensitivity), is epsilon-private,
be it the exponential mechanism's or permute-and-flip's. The first is also of bounded range epsilon, hence epsilon^2 /
8-zCDP. The second is not: candidates {0, 1}, q = 1/2, columns (0, 1) and (1,) have losses epsilon and -log(2 -
e^-epsilon).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from pq.privacy import sensitivity
from pq.request import Interval

HALF = Fraction(1, 2)


def shifted_target(relative: Fraction, n: float, public_total: int | None = None) -> float:
    """The rank aimed at among records of weight n: `q n`, or `q n0 + (n - n0) / 2` where the total n0 is public.

    public_total: number of records that is known without the data, exactly or nearly. Each record that it is off moves
    the target by q - 1/2; that costs accuracy, never privacy. A total made from the data costs privacy.

    >>> shifted_target(Fraction(9, 10), 100), shifted_target(Fraction(9, 10), 102, 100)
    (90.0, 91.0)
    """
    if public_total is None:
        return float(relative * Fraction(n))
    return float(relative * public_total + (Fraction(n) - public_total) * HALF)


def margin_sensitivity(relative: Fraction, depth: int, adjacency: str, public_total: int | None = None) -> Fraction:
    """Sensitivity of a margin with `shifted_target`, exact; proved in the first lines of this module.

    relative: relative quantile. depth: level in the tree, 1 at the root; only the root may have a public total. Raises
    `ValueError` naming public_total below it.

    >>> q = Fraction(99, 100)
    >>> margin_sensitivity(q, 1, "add-remove"), margin_sensitivity(q, 1, "add-remove", 1000)
    (Fraction(99, 100), Fraction(1, 2))
    """
    if public_total is None:
        return sensitivity(relative, depth, adjacency, "sharp")
    if depth != 1:
        raise ValueError(f"public_total must be None below the root, where no total is public, got {public_total}")
    return sensitivity(HALF, depth, adjacency, "sharp")


def zcdp_cost(epsilon: Fraction, flips: bool) -> Fraction:
    """The zCDP cost of one draw, exact: `epsilon^2 / 8`, for permute-and-flip `epsilon^2 / 2`, as of any pure privacy.

    >>> zcdp_cost(Fraction(1), False), zcdp_cost(Fraction(1), True)
    (Fraction(1, 8), Fraction(1, 2))
    """
    return epsilon**2 / (2 if flips else 8)


def split_ties(interval: Interval, outputs: Sequence[float], shares: Sequence[float]) -> list[Interval]:
    """The intervals between a node's sorted outputs, with the parts of the records at each end that they hold.

    interval: (low, high, part of the records at low, part at high). shares: for each output, which part of its records
    lies below it; 1/2 everywhere is `pq.request.split`. The parts of a record in all intervals sum to at most its
    weight in the node, whatever the outputs: with these released, its total loss stays within the budget of a path.

    >>> split_ties((0.0, 9.0, 0.5, 1.0), [4.0], [0.25])
    [(0.0, 4.0, 0.5, 0.25), (4.0, 9.0, 0.75, 1.0)]
    """
    low, high, low_share, high_share = interval
    weights = [low_share if o == low else high_share if o == high else 1.0 for o in outputs]
    below = [low_share, *((1.0 - s) * w for s, w in zip(shares, weights, strict=True))]
    above = [*(s * w for s, w in zip(shares, weights, strict=True)), high_share]
    return list(zip((low, *outputs), (*outputs, high), below, above, strict=True))
