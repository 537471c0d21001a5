"""Quantiles on the multiples of a public step, by margins: exact laws and samplers (Section 3.1, `eq:gap`).

The utility of a candidate is its margin, which `pq.core.margin` defines and bounds; the law is the exponential
mechanism's, or permute-and-flip's (`pq.private.mechanisms.lattice.flip`). The latter needs finitely many candidates in
runs of equal mass: a `Uniform` prior of any width, others of up to `FEW` candidates in the node. Elsewhere, by these
public facts alone, the law is the exponential mechanism's. (With many candidates as good as the best the two agree.)

Time: as in `pq.private.mechanisms.independent`, candidates whose ranks are far from the target are bounded, not
weighed. Permute-and-flip leaves out what weighs less than e^-48 of the best candidate in all, which no uniform of 53
bits can stand for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pq.core.grid import LATTICE_END, from_units, to_units
from pq.core.margin import Margins, split_at
from pq.core.priors import Prior, Uniform
from pq.core.scores import Target, log_less, log_sum
from pq.private.columns.cells import Lattice, LatticeView, Ranks
from pq.private.columns.door import Array
from pq.private.mechanisms.independent import LEAST_LOG_MASS, REACH, first_multiple, pick
from pq.private.mechanisms.lattice.flip import choose_class, log_factors

FEW = 2**14  # candidates that permute-and-flip takes one by one
LARGEST_CAP = 2**60  # parts of a record
MANY = 2**40  # candidates of equal mass that it takes as a run; a uniform of 53 bits still tells them apart


class Runs(NamedTuple):
    """Runs of neighbouring multiples of one utility, in order; a value that records hold is a run of its own.

    first, last: (c,) multiples. below, up_to: (c,) ranks that each stands for. edges: (c + 1,) in the data's units.
    whole: whether no candidate is left out.
    """

    first: Array
    last: Array
    below: Ranks
    up_to: Ranks
    edges: Array
    whole: bool


class Weighed(NamedTuple):
    """Classes of candidates of one weight, (c,): run, share and size of each, the log mass and weight of all or each.

    utility: of each class; log weights are relative to the one of index `best`, which is worth `top` nats.
    """

    run: npt.NDArray[np.intp]
    share: Array
    size: Array
    log_mass: Array
    log_weight: Array
    utility: Margins
    best: int
    top: float


@lru_cache(maxsize=256)
def outermost(prior: Prior, step: Fraction) -> tuple[float, float]:
    """The first and the last multiple that a prior gives mass, infinite where its support has no end."""
    ends = []
    for end, inwards in zip(prior.support, (1.0, -1.0), strict=True):
        k = float(np.rint(to_units(end, step)))
        if math.isfinite(k) and abs(k) < LATTICE_END:
            edges = from_units(np.array([k - 0.5, k + 0.5]), step)
            ends.append(k if prior.log_mass(edges[0], edges[1]) > -math.inf else k + inwards)
        else:
            ends.append(-inwards * math.inf)
    return ends[0], ends[1]


@lru_cache(maxsize=64)
def equal_runs(
    prior: Prior, step: Fraction, first: float, last: float, edge: tuple[bool, bool]
) -> tuple[Array, Array] | None:
    """Where runs of multiples of one mass begin, and the log mass of each multiple there; None if too many or infinite.

    edge: whether the first and the last multiple also have the mass beyond them.
    """
    if isinstance(prior, Uniform) and last - first < MANY:
        starts = np.unique([first, first + 1.0, last])
    elif last - first < FEW:
        starts = np.arange(first, last + 1.0)
    else:
        return None
    lower, upper = from_units(starts - 0.5, step), from_units(starts + 0.5, step)
    lower[0] = -math.inf if edge[0] else lower[0]
    upper[-1] = math.inf if edge[1] else upper[-1]
    return starts, np.atleast_1d(prior.log_mass(lower, upper))


def span_within(prior: Prior, step: Fraction, low: float, high: float) -> tuple[float, float]:
    """The first and the last candidate of an interval, infinite where there is none."""
    ends = outermost(prior, step)
    return min(max(ends[0], low), high), min(max(ends[1], low), high)


@dataclass(frozen=True)
class MarginLaw:
    """The law of one quantile at a node, on the multiples of a step.

    column, view: the records, those of the node with their weights. low, high: the node's interval, in units of the
    step. target: rank aimed at, in parts of a record. record_rate: nats per record. edge: adaptation of the prior, as
    in `pq.private.mechanisms.independent.Law`. flip: ask for permute-and-flip; `flips` says whether it can be. shares:
    what a tie may be split into, empty at a leaf. cap: parts of a record beyond which a margin counts no more, once
    ties are split.
    """

    column: Lattice
    view: LatticeView
    low: float
    high: float
    prior: Prior
    target: Target
    record_rate: float
    edge: bool = False
    flip: bool = True
    shares: tuple[float, ...] = ()
    cap: int = LARGEST_CAP

    @property
    def rate(self) -> float:
        """Nats per part of a record."""
        return self.record_rate / self.column.unit

    @cached_property
    def span(self) -> tuple[float, float]:
        """The first and the last candidate, infinite where there is none."""
        return span_within(self.prior, self.column.step, self.low, self.high)

    @cached_property
    def only(self) -> float | None:
        """The only candidate, also if the prior has no mass in the interval; None if there are more."""
        first, last = self.span
        lower, upper = (-math.inf, math.inf) if self.edge else self.column.edges_of(self.low, self.high)
        if first < last and self.prior.log_mass(lower, upper) > LEAST_LOG_MASS:
            return None
        o = self.column.output(float(self.prior.quantile_between(lower, upper, 0.5)))
        return min(max(o, self.low), self.high)

    @cached_property
    def _equal(self) -> tuple[Array, Array] | None:
        if not self.flip or math.isinf(self.record_rate):
            return None
        first, last = self.span
        beyond = (self.edge and first == self.low, self.edge and last == self.high)
        return equal_runs(self.prior, self.column.step, first, last, beyond)

    @property
    def flips(self) -> bool:
        """Whether the law is permute-and-flip, by public facts alone."""
        return self._equal is not None

    def runs(self, reach: float) -> Runs:
        """All runs whose ranks are within reach of the target, and perhaps more."""
        values, ranks, (first, last) = self.view.values, self.view.ranks, self.span
        far_below = int(np.searchsorted(ranks, self.target.whole - reach, side="left"))
        not_above = int(np.searchsorted(ranks, self.target.whole + 1.0 + reach, side="right"))
        # values[k] holds the ranks from ranks[k] to ranks[k + 1]; the run before it stands for ranks[k]
        start, stop = first, last
        if far_below > 0 and len(values):
            start = float(values[far_below - 1]) if far_below <= len(values) else float(values[-1]) + 1.0
        if not_above <= len(values) and len(values):
            stop = float(values[not_above - 1]) if not_above > 0 else float(values[0]) - 1.0
        start = min(max(start, first), last)
        stop = max(min(stop, last), start)
        held = values[max(far_below - 1, 0) : not_above]
        cuts = [np.array([start, start + 1.0, stop]), held, held + 1.0]
        if self._equal is not None:
            cuts.append(self._equal[0])
        begin = np.unique(np.concatenate(cuts))
        begin = begin[(begin >= start) & (begin <= stop) & (begin < math.inf)]
        end = np.append(begin[1:] - 1.0, stop)
        halves = np.append(begin - 0.5, stop + 0.5)
        edges = from_units(np.where(np.abs(halves) > LATTICE_END, halves * math.inf, halves), self.column.step)
        if self.edge:
            edges[0] = -math.inf if begin[0] == self.low else edges[0]
            edges[-1] = math.inf if stop == self.high else edges[-1]
        below = ranks[np.searchsorted(values, begin, side="left")]
        up_to = ranks[np.searchsorted(values, begin, side="right")]
        return Runs(begin, end, below, up_to, edges, start == first and stop == last)

    def utilities(self, runs: Runs) -> tuple[npt.NDArray[np.intp], Array, Margins]:
        """Of each run, or run and share of a tie: the index of the run, the share (NaN for any), the utility."""
        first = (runs.first == self.span[0]) & (runs.first > -math.inf)
        last = (runs.last == self.span[1]) & (runs.last < math.inf)
        margin = Margins.of(runs.below, runs.up_to, first, last, self.target)
        index, share = np.arange(len(runs.first)), np.full(len(runs.first), math.nan)
        if not self.shares:
            return index, share, margin
        tied = runs.up_to > runs.below
        index = np.repeat(index, np.where(tied, len(self.shares), 1))
        share = np.full(len(index), math.nan)
        share[tied[index]] = np.tile(self.shares, int(np.sum(tied)))
        inside = split_at((runs.up_to - runs.below)[index], np.where(np.isnan(share), 0.0, share))
        return index, share, Margins.of_pairs(margin.take(index), runs.below[index] + inside, self.cap, self.target)

    def weigh(self, runs: Runs) -> Weighed:
        """Log weights, relative to the best utility: of each candidate in a class for permute-and-flip, else of all."""
        index, share, utility = self.utilities(runs)
        parts = max(len(self.shares), 1)
        split = np.where(np.isnan(share), 1, parts)  # classes that a multiple's mass is shared by
        count = (runs.last - runs.first + 1.0)[index] * (parts // split)
        if self._equal is not None:
            starts, each = self._equal
            log_mass = each[np.searchsorted(starts, runs.first, side="right") - 1][index] - math.log(parts)
        else:
            log_mass = np.atleast_1d(self.prior.log_mass(runs.edges[:-1], runs.edges[1:]))[index] - np.log(split)
        best = utility.best(log_mass > -math.inf)
        if math.isinf(self.record_rate):
            log_weight = np.where(utility.scores(1e7, best) == 0.0, log_mass, -math.inf)
            return Weighed(index, share, count, log_mass, log_weight, utility, best, 0.0)
        log_weight, top = log_mass + utility.scores(self.rate, best), self.rate * float(utility.exact(best))
        return Weighed(index, share, count, log_mass, log_weight, utility, best, top)

    def _reach(self, nats: float = 0.0) -> float:
        return 1.0 + (REACH + nats) / self.rate if 0.0 < self.record_rate < math.inf else math.inf

    def _near(self) -> tuple[Runs, Weighed]:
        """Runs and weights but for candidates that together weigh less than e^-REACH of the best one."""
        first, last = self.span
        assert self._equal is not None
        many = math.log(last - first + 1.0)
        reach, most = self._reach(many), many + float(np.max(self._equal[1]))
        while True:
            runs = self.runs(reach)
            weighed = self.weigh(runs)
            beyond = most - self.rate * reach - weighed.top
            if runs.whole or beyond <= float(np.max(weighed.log_weight)) - REACH:
                return runs, weighed
            reach *= 8.0

    def draw(self, cell_uniform: float, point_uniform: float, level_uniform: float) -> tuple[float, float]:
        """The output, and the share of its records that lies below it, that three uniforms in (0, 1) stand for."""
        share_at = int(level_uniform * len(self.shares))
        any_share = self.shares[share_at] if self.shares else 0.5
        if self.only is not None:
            return self.only, any_share
        if self._equal is None:
            runs, weighed, chosen = self._pick(cell_uniform)
            run = int(weighed.run[chosen])
            o = self._multiple(runs, run, point_uniform)
        else:
            runs, weighed = self._near()
            chosen = choose_class(weighed.log_weight, weighed.size, level_uniform, cell_uniform)
            run, place = int(weighed.run[chosen]), math.floor(point_uniform * weighed.size[chosen])
            parts = weighed.size[chosen] / (runs.last[run] - runs.first[run] + 1.0)
            o = float(runs.first[run] + place // parts)
            any_share = self.shares[int(place % parts)] if self.shares else 0.5
        share = float(weighed.share[chosen])
        return o, any_share if math.isnan(share) else share

    def _pick(self, uniform: float) -> tuple[Runs, Weighed, int]:
        """The class whose share of the total weight covers `uniform`, by the exponential mechanism."""
        reach = self._reach()
        while True:
            runs = self.runs(reach)
            weighed = self.weigh(runs)
            outside = -self.rate * reach - weighed.top  # no candidate beyond scores more; their mass is at most one
            first, last = runs.first[0] > self.span[0], runs.last[-1] < self.span[1]
            bounds = outside if first else -math.inf, outside if last else -math.inf
            index = pick(weighed.log_weight, bounds, uniform)
            if index is not None:
                return runs, weighed, index
            reach *= 8.0

    def _multiple(self, runs: Runs, run: int, uniform: float) -> float:
        """The multiple at a share `uniform` of a run's mass."""
        first, last = float(runs.first[run]), float(runs.last[run])
        lower, upper = runs.edges[run : run + 2].tolist()
        return first_multiple(self.prior, self.column.step, first, last, lower, upper, uniform)

    @cached_property
    def _whole(self) -> tuple[Runs, Weighed, Array]:
        """All runs and classes, and what their log probabilities have beside the log masses and scores."""
        runs = self.runs(math.inf)
        weighed = self.weigh(runs)
        if self._equal is not None:
            factors = log_factors(weighed.log_weight, weighed.size)
            return runs, weighed, factors - float(np.max(weighed.log_weight))
        return runs, weighed, np.full(len(weighed.run), -log_sum(weighed.log_weight))

    def log_probability(self, o: float, share: float | None = None) -> float:
        """Exact log probability of an output in units of the step, with the share of a tie where ties are split."""
        far, rest = self.log_parts(o, share)
        return log_less(rest, far)

    def log_parts(self, o: float, share: float | None = None) -> tuple[Fraction, float]:
        """`log_probability` as minus an exact number of nats plus a float; see `pq.private.mechanisms.independent`."""
        nothing, parts = Fraction(0), max(len(self.shares), 1)
        if not self.span[0] <= o <= self.span[1] or (share is not None) != bool(self.shares):
            return nothing, -math.inf
        if share is not None and share not in self.shares:
            return nothing, -math.inf
        if self.only is not None:
            return nothing, -math.log(parts) if o == self.only else -math.inf
        runs, weighed, rests = self._whole
        run = int(np.searchsorted(runs.first, o, side="right")) - 1
        mine = np.flatnonzero((weighed.run == run) & (np.isnan(weighed.share) | (weighed.share == share)))
        k = int(mine[0])
        if math.isinf(self.record_rate):
            far, rest = nothing, float(weighed.log_weight[k] + rests[k])
        else:
            far = Fraction(self.rate) * (weighed.utility.exact(weighed.best) - weighed.utility.exact(k))
            rest = float(weighed.log_mass[k] + rests[k])
        return far, rest + self._log_part(o, run, k)

    def _log_part(self, o: float, run: int, k: int) -> float:
        """Log of the part of a class that one output, with one share, is."""
        runs, weighed, _ = self._whole
        if self._equal is not None:
            return 0.0
        split = -math.log(max(len(self.shares), 1)) if math.isnan(weighed.share[k]) else 0.0
        if runs.first[run] == runs.last[run]:
            return split
        edges = self.column.edges_of(o, o)  # the outermost multiples have all that lies beyond them
        lower, upper = max(edges[0], runs.edges[run]), min(edges[1], runs.edges[run + 1])
        whole = self.prior.log_mass(runs.edges[run], runs.edges[run + 1])
        return split + float(self.prior.log_mass(lower, upper) - whole) if whole > -math.inf else 0.0
