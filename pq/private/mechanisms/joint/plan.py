"""The public facts of a joint release: rates, totals, and one base measure under several priors (Section 3.2).

*Priors that differ.* Outputs that share a cell of the data are weighed together, and the weight of a group must be
exact: an approximate normaliser would spend privacy. Let mu be the mixture of the distinct priors in equal parts, and
cut the line at public places into bins B. The base density of output j is

    h_j(o) = mu(o) * mu_j(B) / mu(B)    for o in B,

so it has the mass of prior j on every bin and the shape of mu inside. All outputs then have one measure in a bin, times
constants: a group of outputs i..j inside a cell of mass w that lies in one bin has the weight w^g / g! times the
product of their g constants, exactly, and its places are g sorted draws from mu. Cells that cross a bin's edge are cut
there. The cuts are quantiles of the priors; where they stand is a matter of accuracy, not of privacy, as no record
moves them. One prior for all is the case of one bin and constants of one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal, get_args

import numpy as np

from pq.core.choices import Adjacency, check_choice
from pq.core.exact import budget_fraction, float_below, is_integer, quantile_fractions
from pq.core.expected import USUAL_SIZE
from pq.core.facts import Facts
from pq.core.grid import grid_step
from pq.core.priors import Mixture, Prior
from pq.core.priors.differing import differing
from pq.private.columns.door import Array
from pq.private.fast.encode import encode

Total = Literal["drawn", "best", "records"]

COUNTS_MOVED: dict[str, int] = {"add-remove": 1, "replace": 2}  # counts between outputs that a neighbour changes by one
LARGEST_RATE = Fraction(64)  # nats per record; more makes no visible difference, and less is always private
CUTS = 512  # about as many edges of bins for all priors together
LEAST_CUTS = 8  # for each
TAIL = 12  # further cuts at shares of 2^-1 ... 2^-TAIL on either side
MOST_AGAINST = 1e5  # nats that the priors may have against all outputs in increasing order: about a second's work
FEWEST_PLACES, MOST_PLACES = 8, 64
MOST_PARTS = 288  # of a base measure for machine code
FEWEST_TOTAL = {True: 4, False: 3}  # from so many outputs on, of a smooth column and others, the total is drawn as well


@dataclass(frozen=True)
class JointPlan(Facts):
    """What is known of a joint release before any data are touched; make it by `JointPlan.of`.

    quantiles: (k,) exact, strictly increasing. epsilon: exact. adjacency: "add-remove" or "replace". total: how the
    number of records enters, see `pq.private.mechanisms.joint.law`. priors: (k,). step: of the grid of outputs, exact,
    or None. total_step: exact distance of the totals that are tried, which are its multiples from 0 on. places:
    sub-places of a grid cell over which a record on a grid is spread.
    """

    quantiles: tuple[Fraction, ...]
    epsilon: Fraction
    adjacency: Adjacency
    total: Total
    priors: tuple[Prior, ...]
    step: Fraction | None
    total_step: Fraction
    places: int

    @classmethod
    def of(
        cls,
        quantiles: Any,
        *,
        epsilon: Any,
        priors: Any,
        adjacency: Adjacency = "add-remove",
        total: Total = "drawn",
        grid: Any = None,
        size_guess: Any = None,
    ) -> JointPlan:
        """Check the public facts of a joint release.

        quantiles: (k,) strictly increasing, in [0, 1]. epsilon: positive and finite. priors: one for all quantiles or
        one for each. total: "drawn", "best", or under "replace" also "records". grid: public step of the outputs, or
        None. size_guess: rough public number of records, tunes a release on a grid. Returns a plan. Raises `ValueError`
        or `TypeError` naming the argument.

        >>> from pq.core.priors import Uniform
        >>> plan = JointPlan.of([0.25, 0.5, 0.75], epsilon=1, priors=Uniform(0, 1))
        >>> plan.rate, plan.total_step, plan.releases_total
        (0.5, Fraction(8, 1), True)
        """
        exact, budget = quantile_fractions(quantiles), budget_fraction(epsilon)
        if list(exact) != sorted(set(exact)):
            raise ValueError("quantiles must be strictly increasing")
        if not isinstance(budget, Fraction):
            raise ValueError(f"epsilon must be finite, got {epsilon}")
        check_choice(adjacency, Adjacency, "adjacency")
        check_choice(total, Total, "total")
        if total == "records" and adjacency != "replace":
            raise ValueError('total must not be "records" under "add-remove": the number of records is not public')
        each = _each_prior(priors, len(exact))
        nats = exact_rate(budget, adjacency)
        step = total_step(nats, len(exact), total)
        return cls(exact, budget, adjacency, total, each, grid_step(grid), step, _places(size_guess, nats))

    def with_priors(self, priors: Any) -> JointPlan:
        """The same with other priors, and with what follows from the quantiles alone. Raises as `of`."""
        other = replace(self, priors=_each_prior(priors, self.size))
        other.__dict__.update({name: getattr(self, name) for name in ("levels", "shares", "share_rests")})
        return other

    @cached_property
    def rate(self) -> float:
        """Nats per record of score, rounded down."""
        return float_below(exact_rate(self.epsilon, self.adjacency))

    @property
    def releases_total(self) -> bool:
        """Whether the total is an output as well."""
        return self.total == "drawn" and self.adjacency == "add-remove"

    @property
    def size(self) -> int:
        """Number of outputs."""
        return len(self.quantiles)

    @cached_property
    def distinct_priors(self) -> int:
        return len(differing(self.priors))

    @cached_property
    def tables(self) -> Array | None:
        """The base measure for machine code, see `pq.private.fast.encode`; None where that does not do it."""
        tables = encode([self.base], MOST_PARTS)
        return None if tables is None else tables[0][0, 0]

    @cached_property
    def levels(self) -> Array:
        """(k,) the quantiles."""
        return np.array([float(q) for q in self.quantiles])

    @cached_property
    def shares(self) -> Array:
        """(k + 1,) of the records below, between and above the quantiles; they sum to one."""
        ends = (Fraction(0), *self.quantiles, Fraction(1))
        return np.array([float(b - a) for a, b in pairwise(ends)])

    @cached_property
    def share_rests(self) -> Array:
        """(k + 1,) what the shares lack as floats."""
        ends = (Fraction(0), *self.quantiles, Fraction(1))
        return np.array([float(b - a - Fraction(float(b - a))) for a, b in pairwise(ends)])

    @cached_property
    def total_unit(self) -> float:
        """`total_step` as a number."""
        return float(self.total_step)

    @cached_property
    def _measure(self) -> tuple[Prior, Array, Array]:
        return common_base(self.priors)

    @property
    def base(self) -> Prior:
        """The measure that all outputs share inside a bin."""
        return self._measure[0]

    @property
    def cuts(self) -> Array:
        """(b - 1,) inner edges of the bins, increasing."""
        return self._measure[1]

    @property
    def log_tilts(self) -> Array:
        """(k, b) logs of what each output's density is a multiple of the base by, on each bin."""
        return self._measure[2]

    @cached_property
    def log_most(self) -> float:
        """Log of a bound on the mass of all ordered outputs; no density exceeds `distinct_priors` times the base."""
        return self.size * math.log(self.distinct_priors) - math.lgamma(self.size + 1)


def exact_rate(epsilon: Fraction, adjacency: str) -> Fraction:
    """Nats per record of score: epsilon over twice the sensitivity of the score, which is the counts moved.

    >>> exact_rate(Fraction(1), "replace")
    Fraction(1, 4)
    """
    return min(epsilon / (2 * COUNTS_MOVED[adjacency]), LARGEST_RATE)


def total_step(rate: Fraction, size: int, total: str) -> Fraction:
    """Distance of the totals that are tried: as coarse as costs nothing; it depends on public facts alone.

    A drawn total blurs by `(size + 1) / rate` records anyway. The best one is found by keeping draws on a grid, and
    more are kept on a finer one.

    >>> total_step(Fraction(1, 2), 9, "drawn"), total_step(Fraction(1, 2), 9, "best")
    (Fraction(20, 1), Fraction(4, 1))
    """
    return 2 / rate if total == "best" else max(Fraction(1), (size + 1) / rate)


def priors_near(levels: Sequence[Fraction], asked: Sequence[Fraction], priors: Sequence[Prior]) -> list[Prior]:
    """The priors (k,) of levels (k,): their own, or those (m,) of the nearest quantiles (m,) asked for."""
    return [priors[min(range(len(asked)), key=lambda i: abs(asked[i] - level))] for level in levels]


def is_orderable(priors: Sequence[Prior]) -> bool:
    """Whether draws from the priors may come out in increasing order: else there is no joint law. If they come out so
    with a probability of less than e^-`MOST_AGAINST`, a draw from that law could take for ever.

    In a bin all priors with some mass there have the same measure, so bins that follow each other decide: of all ways
    to choose one for each output, the likeliest.

    >>> from pq.core.priors import Laplace, Uniform
    >>> is_orderable([Uniform(0, 2), Uniform(0, 1)]), is_orderable([Uniform(2, 3), Uniform(0, 1)])
    (True, False)
    >>> is_orderable([Laplace(30, 1), Laplace(0, 1)]), is_orderable([Laplace(0, 1), Uniform(-1e9, -9e8)])
    (True, False)
    """
    if len(differing(priors)) == 1:
        return True
    base, cuts, log_tilts = common_base(priors)
    log_base = base.log_mass(np.append(-math.inf, cuts), np.append(cuts, math.inf))
    likeliest = np.zeros(len(log_base))  # of outputs so far, the last in this bin or before
    with np.errstate(over="ignore"):
        for log_masses in log_tilts + log_base:
            likeliest = np.maximum.accumulate(likeliest + log_masses)
    return bool(likeliest[-1] >= -MOST_AGAINST)


def usual_total(size: int, smooth: bool = False) -> Total:
    """How the total enters: for few outputs the best one has less error than a drawn one, which many ties make slow.

    >>> usual_total(1), usual_total(3), usual_total(3, smooth=True), usual_total(9)
    ('best', 'drawn', 'best', 'drawn')
    """
    return "best" if size < FEWEST_TOTAL[smooth] else "drawn"


def _places(size_guess: Any, rate: Fraction) -> int:
    """Sub-places of a grid cell: enough that a value that everybody shares makes steps of about eight nats."""
    size = USUAL_SIZE if size_guess is None else size_guess
    if not is_integer(size):
        raise TypeError(f"size_guess must be an integer or None, got {type(size).__name__}")
    if size < 0:
        raise ValueError(f"size_guess must not be negative, got {size}")
    return int(min(max(math.ceil(rate * int(size) / 8), FEWEST_PLACES), MOST_PLACES))


def _each_prior(priors: Any, count: int) -> tuple[Prior, ...]:
    each = (priors,) * count if isinstance(priors, Prior) else priors
    if not isinstance(each, Sequence) or not all(isinstance(prior, Prior) for prior in each):
        raise TypeError("priors must be a prior of pq or a sequence of them")
    if len(each) != count:
        raise ValueError(f"priors must be one prior or one per quantile: got {len(each)} for {count} quantiles")
    if not is_orderable(each):
        raise ValueError("priors must leave some mass to outputs in increasing order for a joint release")
    return tuple(each)


def common_base(priors: Sequence[Prior]) -> tuple[Prior, Array, Array]:
    """One measure for all outputs, the cuts (b - 1,) between bins, and log tilts (k, b); see this module.

    >>> from pq.core.priors import Uniform
    >>> base, cuts, log_tilts = common_base([Uniform(0, 1), Uniform(0, 2)])
    >>> edges = np.array([-math.inf, *cuts, math.inf])
    >>> bool(np.allclose(np.exp(log_tilts[1] + base.log_mass(edges[:-1], edges[1:])).sum(), 1.0))
    True
    """
    distinct = differing(priors)
    if len(distinct) == 1:
        return distinct[0], np.empty(0), np.zeros((len(priors), 1))
    base = Mixture(tuple(distinct), (1.0,) * len(distinct))
    number = max(LEAST_CUTS, CUTS // len(distinct))
    tail = 0.5 ** np.arange(1, TAIL + 1)
    at = np.concatenate([np.arange(1, number) / number, tail, 1.0 - tail])
    ends = [end for prior in distinct for end in prior.support if math.isfinite(end)]  # no density beyond one's own
    cuts = np.unique(np.concatenate([ends, *(prior.quantile_between(-math.inf, math.inf, at) for prior in distinct)]))
    edges = np.concatenate([[-math.inf], cuts, [math.inf]])
    log_base = base.log_mass(edges[:-1], edges[1:])
    with np.errstate(invalid="ignore"):
        rows = [np.where(log_base > -np.inf, p.log_mass(edges[:-1], edges[1:]) - log_base, -np.inf) for p in priors]
    return base, cuts, np.array(rows)


assert set(COUNTS_MOVED) == set(get_args(Adjacency))
