"""Which quantile is estimated where, and with what budget: the tree of `alg:quantiles`, free of data (Section 3.2)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Context, Decimal
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pq.core.arrays import read_only
from pq.core.choices import Adjacency, Calibration, check_choice
from pq.core.exact import (
    Number,
    briefly,
    budget_fraction,
    decimal_fraction,
    distinct_fractions,
    quantile_fractions,
    whole_number,
)
from pq.core.facts import Facts
from pq.core.sensitivity import rate, sensitivity
from pq.core.tree import Node, build_tree

LARGEST_POWER = 50  # the weights of the levels stay well inside the floats
BITS = 49  # of a denominator that stands for one too large
LARGEST_DENOMINATOR = 10**15  # a thousand times it is still an int64


class PlanArrays(NamedTuple):
    """A plan for compiled code.

    nodes: (k, 5) first member, end, low, high and parent of each node, parents first; -1 for none. members: (m,)
    quantiles of the nodes, one node after another. fractions: (m, 3) numerators and denominators of the relative
    quantiles, and what remains of each, in parts of the square of the denominator. rates: (1, m) nats per rank.
    """

    nodes: npt.NDArray[np.int64]
    members: npt.NDArray[np.int64]
    fractions: npt.NDArray[np.int64]
    rates: npt.NDArray[np.float64]


@dataclass(frozen=True)
class Plan(Facts):
    """The public part of a release: a tree over the quantiles, with exact budgets. Made by `pq.plan`; see there.

    Arrays of length m follow the caller's order, repeats included; `lower` and `upper` index into that order (-1: no
    bound).
    """

    quantiles: tuple[Fraction, ...]
    epsilon: Fraction | float
    adjacency: str
    calibration: str
    arity: int
    budget_power: float
    distinct: tuple[Fraction, ...] = field(repr=False)
    positions: tuple[int, ...] = field(repr=False)  # of each quantile in `distinct`
    root: Node = field(repr=False)
    public_total: int | None = field(default=None, repr=False)  # of records, for one quantile: its target is shifted

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """All nodes, parents before children."""
        return tuple(self.root.walk())

    @cached_property
    def _node_of(self) -> dict[int, Node]:
        return {i: node for node in self.nodes for i in node.indices}

    @cached_property
    def mechanisms(self) -> tuple[Share, ...]:
        """What each distinct quantile's mechanism spends and how fast its weights fall, in the order of `distinct`."""
        return tuple(self._mechanism(i) for i in range(len(self.distinct)))

    @cached_property
    def arrays(self) -> PlanArrays | None:
        """The plan as arrays, for compiled code; None where a number has no place in them."""
        return self.arrays_within(LARGEST_DENOMINATOR, rounded=self.calibration != "paper")

    def arrays_within(self, largest: int, rounded: bool = False) -> PlanArrays | None:
        """The same with denominators of relative quantiles up to a largest one. rounded: whether others may be rounded
        to a hundred bits, which the floor of a target would notice."""
        members = [i for node in self.nodes for i in node.indices]
        ends = np.cumsum([len(node.indices) for node in self.nodes]).tolist()
        place = {id(child): k for k, node in enumerate(self.nodes) for child in node.children}
        nodes = [
            (end - len(node.indices), end, node.low, node.high, place.get(id(node), -1))
            for node, end in zip(self.nodes, ends, strict=True)
        ]
        relatives = [m.relative for m in self.mechanisms]
        rates = [m.rate for m in self.mechanisms]
        if (max(q.denominator for q in relatives) > largest and not rounded) or math.isinf(max(rates)):
            return None
        fractions = [(*q.as_integer_ratio(), 0) if q.denominator <= largest else _in_bits(q) for q in relatives]
        integers = [read_only(np.array(table, dtype=np.int64)) for table in (nodes, members, fractions)]
        return PlanArrays(integers[0], integers[1], integers[2], read_only(np.array([rates])))

    def _mechanism(self, i: int) -> Share:
        node = self._node_of[i]
        low = self.distinct[node.low] if node.low >= 0 else Fraction(0)
        high = self.distinct[node.high] if node.high >= 0 else Fraction(1)
        relative = (self.distinct[i] - low) / (high - low)
        epsilon_i = node.epsilon / len(node.indices)
        calibration = self.calibration if self.public_total is None else "shifted"
        bound = sensitivity(relative, node.depth, self.adjacency, calibration)
        return Share(relative, epsilon_i, bound, rate(epsilon_i, bound))

    @cached_property
    def quantile_values(self) -> npt.NDArray[np.float64]:
        """(m,) the quantiles as floats in the caller's order, read-only."""
        return read_only(np.array([float(q) for q in self.quantiles]))

    @property
    def depth(self) -> int:
        """Number of levels, `ceil(log_arity(m + 1))`."""
        return max(node.depth for node in self.nodes)

    @cached_property
    def depths(self) -> tuple[int, ...]:
        """(m,) level of each quantile, 1 at the root."""
        return tuple(self._node_of[p].depth for p in self.positions)

    @cached_property
    def epsilons(self) -> tuple[Fraction | float, ...]:
        """(m,) budget that each quantile's mechanism spends, exact."""
        return tuple(self.mechanisms[p].epsilon for p in self.positions)

    @cached_property
    def relative(self) -> tuple[Fraction, ...]:
        """(m,) relative quantile of each within its node's interval, exact."""
        return tuple(self.mechanisms[p].relative for p in self.positions)

    @cached_property
    def lower(self) -> tuple[int, ...]:
        """(m,) caller's index of the ancestor whose estimate bounds each quantile below, or -1."""
        return tuple(self._caller_index(self._node_of[p].low) for p in self.positions)

    @cached_property
    def upper(self) -> tuple[int, ...]:
        """(m,) caller's index of the ancestor whose estimate bounds each quantile above, or -1."""
        return tuple(self._caller_index(self._node_of[p].high) for p in self.positions)

    def _caller_index(self, position: int) -> int:
        return -1 if position < 0 else self.positions.index(position)

    def paths(self) -> list[tuple[Node, ...]]:
        """Every root-to-leaf path of nodes; the budgets of each sum to `epsilon`."""

        def extend(path: tuple[Node, ...]) -> Iterator[tuple[Node, ...]]:
            below = [child for child in path[-1].children if child is not None]
            if not below:
                yield path
            for child in below:
                yield from extend((*path, child))

        return list(extend((self.root,)))

    def __str__(self) -> str:
        head = (
            f"Plan: {len(self.quantiles)} quantiles, epsilon {_short(self.epsilon)}, {self.adjacency}, "
            f"{self.calibration}, arity {self.arity}, {self.depth} levels"
        )
        rows = [("quantile", "depth", "relative", "epsilon", "below", "above")]
        for j, q in enumerate(self.quantiles):
            bounds = (self.lower[j], self.upper[j])
            between = [_short(self.quantiles[b]) if b >= 0 else "-" for b in bounds]
            rows.append(
                (
                    _short(q),
                    str(self.depths[j]),
                    _short(self.relative[j]),
                    _short(self.epsilons[j]),
                    between[0],
                    between[1],
                )
            )
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join([head, *("  ".join(c.rjust(w) for c, w in zip(row, widths, strict=True)) for row in rows)])

    def draw(self, ax: Any) -> None:
        """Draw the tree on matplotlib axes: quantiles in their order from left to right, levels downwards.

        A node is a bar with a dot for each of its quantiles, labelled with the budget that its mechanism spends. A
        branch leaves a bar between the two dots that bound it and ends in the middle of its own bar.
        """
        for node in self.nodes:
            bar = (node.indices[0] - 0.3, node.indices[-1] + 0.3)
            ax.plot(bar, [-node.depth] * 2, color="0.7", linewidth=4, solid_capstyle="round", zorder=1)
            ends = (bar[0] - 0.3, *node.indices, bar[1] + 0.3)
            for child, left, right in zip(node.children, ends, ends[1:], strict=False):
                if child is not None:
                    places = [(left + right) / 2, (child.indices[0] + child.indices[-1]) / 2]
                    ax.plot(places, [-node.depth, -child.depth], color="0.7", linewidth=1.2, zorder=0)
        for i, q in enumerate(self.distinct):
            level = -self._node_of[i].depth
            ax.scatter([i], [level], s=50, zorder=2, color="C0")
            label = f"{_short(q)}\n$\\varepsilon_i$={float(self.mechanisms[i].epsilon):.3g}"
            ax.annotate(
                label, (i, level), textcoords="offset points", xytext=(0, -7), ha="center", va="top", fontsize=8
            )
        ax.set_xlim(-0.8, len(self.distinct) - 0.2)
        ax.set_ylim(-self.depth - 0.6, -0.7)
        ax.set_yticks([-level for level in range(1, self.depth + 1)], [str(k) for k in range(1, self.depth + 1)])
        ax.set_xticks([])
        ax.set_xlabel("quantiles, in their order")
        ax.set_ylabel("level")


def _in_bits(q: Fraction) -> tuple[int, int, int]:
    """A fraction down to a hundred bits: numerator, denominator, and the rest in parts of its square."""
    whole, rest = divmod((q.numerator << 2 * BITS) // q.denominator, 1 << BITS)
    return whole, 1 << BITS, rest


@dataclass(frozen=True)
class Share:
    """One exponential mechanism of a plan: its relative quantile, budget, sensitivity and rate (nats per rank)."""

    relative: Fraction
    epsilon: Fraction | float
    sensitivity: Fraction
    rate: float


def _short(value: Fraction | float) -> str:
    """A rational as short text: a decimal where it is one of few digits, else numerator/denominator."""
    if isinstance(value, float):
        return str(value)
    if Fraction(f"{float(value):.6g}") == value:
        return f"{float(value):.6g}"
    return str(value) if value.denominator < 1000 else f"{float(value):.6g}"


def plan(
    quantiles: Any,
    *,
    epsilon: Number | float,
    adjacency: Adjacency = "add-remove",
    calibration: Calibration = "sharp",
    arity: int = 2,
    budget_power: float = 0.0,
) -> Plan:
    """Lay quantiles out on the tree of `alg:quantiles` and share the budget among its levels; no data are involved.

    quantiles: (m,) numbers in [0, 1], any order, repeats share one release. epsilon: total budget of the release,
    positive or infinite. arity: branches of a node, at least 2; a node estimates up to `arity - 1` quantiles.
    budget_power: levels are given budgets proportional to `depth ** -budget_power`, 0 to 50 (`thm:kary` suggests
    about 1.5).

    Returns a `Plan`. Raises `ValueError` or `TypeError` naming the argument. Guarantees that the budgets of every
    root-to-leaf path sum to epsilon in exact arithmetic, for any m and arity.

    >>> p = plan([0.25, 0.5, 0.75], epsilon=1)
    >>> p.depth, [str(e) for e in p.epsilons], p.lower
    (2, ['1/2', '1/2', '1/2'], (-1, -1, 1))
    >>> plan([0.1], epsilon=0.5).epsilons
    (Fraction(1, 2),)
    """
    check_choice(adjacency, Adjacency, "adjacency")
    check_choice(calibration, Calibration, "calibration")
    power = power_fraction(budget_power)
    branches = whole_number(arity, "arity", least=2)
    return plan_for(quantile_fractions(quantiles), budget_fraction(epsilon), adjacency, calibration, branches, power)


def power_fraction(budget_power: Any) -> Fraction:
    """A power by which budgets fall over the levels, exact; raises naming budget_power."""
    power = decimal_fraction(budget_power, "budget_power")
    if not 0 <= power <= LARGEST_POWER:
        raise ValueError(f"budget_power must lie between 0 and {LARGEST_POWER}, got {briefly(budget_power)}")
    return power


@lru_cache(maxsize=256)
def plan_for(
    quantiles: tuple[Fraction, ...],
    budget: Fraction | float,
    adjacency: str,
    calibration: str,
    arity: int,
    power: Fraction,
    public_total: int | None = None,
) -> Plan:
    """The plan of checked arguments; kept, since many releases share one. public_total: see `Plan`."""
    distinct = distinct_fractions(quantiles)
    index = {q: i for i, q in enumerate(distinct)}
    root = build_tree(0, len(distinct), -1, -1, 1, budget, arity, power)
    assert root is not None
    positions = tuple(index[q] for q in quantiles)
    return Plan(quantiles, budget, adjacency, calibration, arity, float(power), distinct, positions, root, public_total)


def kary_arity(m: int) -> int:
    """The branching factor of `thm:kary-main`, `ceil(exp(sqrt(log 2 log(m + 1))))`, exactly.

    m: number of quantiles, at least 1. At m + 1 = 2**(b * b) the root is the whole number 2**b, and beside it closer to
    that than floats see from b = 7 on.

    >>> [kary_arity(m) for m in (1, 9, 15, 99, 2**49 - 1, 2**49)]
    [2, 4, 4, 6, 128, 129]
    """
    exponent = math.sqrt(math.log(2) * math.log(m + 1))
    if exponent < 700.0:  # within the floats
        rough = math.exp(exponent)
        if abs(rough - round(rough)) > 1e-9 * rough:
            return math.ceil(rough)
    digits = 60
    while True:
        exact = Context(prec=digits)
        root = exact.exp(exact.sqrt(exact.multiply(exact.ln(Decimal(2)), exact.ln(Decimal(m + 1)))))
        whole = round(root)
        if abs(exact.subtract(root, whole)) > exact.scaleb(root, -digits // 2):
            return whole + (root > whole)
        if whole.bit_count() == 1:  # 2**b is enough for all m + 1 up to 2**(b * b)
            return whole + (m >> (whole.bit_length() - 1) ** 2 > 0)
        digits *= 2
