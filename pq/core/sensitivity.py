"""Adjacency, sensitivity and rate of each mechanism (Section 3, `alg:quantiles`).

One table, `SENSITIVITY`, holds what every exponential mechanism of a plan is calibrated by. Its entries, for a
mechanism with relative quantile `q` on a node with `n` points and utility `-|k - t|`, where `k` counts the node's
points below the output:

- *add-remove*, "paper" (`t = floor(q n)`): one more point moves `k` by 0 or 1 and `t` by 0 or 1, so `k - t` by at most
  1.
- *add-remove*, "sharp" (`t = q n`): `t` moves by `q` and `k` by 0 or 1, so `k - t` moves by `-q` or `1 - q`.
- *add-remove*, "shifted", at the root (`t = q n0 + (n - n0) / 2`, where n0 is public and not made from the data): `t`
  moves by 1/2 and `k` by 0 or 1, so `k - t` by 1/2 in either direction, for every q and every n0.
- *replace*, at the root: `n` stays, so `t` stays, and `k` moves by at most 1.
- *replace*, below the root: as long as both versions of the record fall into the same node its loss is as at the root.
  Once they part, one branch loses a record and another gains one, each at the add-remove sensitivity. Calibrating by
  twice that, every node past the parting costs half its budget in either branch, and the total is at most (budget of
  one path + budget of the other) / 2.

A mechanism with budget `epsilon_i` and sensitivity `D` weighs an output by `exp(-epsilon_i / (2 D) * |k - t|)`. A
record touches the mechanisms of one root-to-leaf path (two under *replace*), whose budgets sum to epsilon exactly; see
`pq.plan`.

On a grid a record may sit exactly at an output. With "sharp" calibration it then goes on to the nodes on both sides
with half its weight each. A record of weight `w` moves `k - t` by at most `w D`, so it costs a node at most `w` times
the node's budget; as the weights of a record on each level of the tree sum to at most one, its total cost is a convex
combination of the budgets of paths, at most epsilon. (Under *replace*, below the root, a node's cost is at most the
mean of what its budget costs either version of the record.) Floored targets jump by a whole rank however small the
weight, so "paper" calibration drops such a record instead.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from pq.core.exact import float_below

LARGEST_RATE = 1e250  # times any rank it is still a finite number of nats

SENSITIVITY: dict[tuple[str, str, bool], Callable[[Fraction], Fraction]] = {
    # (adjacency, calibration, at the root) -> sensitivity of the utility as a function of the relative quantile
    ("add-remove", "paper", True): lambda q: Fraction(1),
    ("add-remove", "paper", False): lambda q: Fraction(1),
    ("add-remove", "sharp", True): lambda q: max(q, 1 - q),
    ("add-remove", "sharp", False): lambda q: max(q, 1 - q),
    ("add-remove", "shifted", True): lambda q: Fraction(1, 2),
    ("replace", "paper", True): lambda q: Fraction(1),
    ("replace", "paper", False): lambda q: Fraction(2),
    ("replace", "sharp", True): lambda q: Fraction(1),
    ("replace", "sharp", False): lambda q: 2 * max(q, 1 - q),
}


def sensitivity(relative: Fraction, depth: int, adjacency: str, calibration: str) -> Fraction:
    """Sensitivity of one mechanism's utility, exact (the table of this module).

    relative: relative quantile in [0, 1]. depth: level in the tree, 1 at the root.

    >>> sensitivity(Fraction(1, 4), 1, "add-remove", "sharp")
    Fraction(3, 4)
    """
    return SENSITIVITY[adjacency, calibration, depth == 1](relative)


def rate(epsilon_i: Fraction | float, sensitivity: Fraction) -> float:
    """Nats that a mechanism takes off an output's log weight per rank of distance: `epsilon_i / (2 sensitivity)`,
    rounded down.

    >>> rate(Fraction(1, 2), Fraction(1))
    0.25
    """
    if not isinstance(epsilon_i, Fraction):
        return epsilon_i
    return min(float_below(epsilon_i / (2 * sensitivity)), LARGEST_RATE)
