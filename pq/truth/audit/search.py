"""Search for the neighbouring columns and the output with the largest privacy loss, for any mechanism with a log
density (Section 3).

A candidate is a set of tokens on the line: the records that two neighbouring columns share, the record in which they
differ (its two values under "replace"), and the outputs. Many candidates climb at once by small random moves: a token
next to another one or upon it, to another place, a record out or in, a part of the line pushed aside. The worst are
replaced by copies of the best and by new ones.

A search gives a lower bound of the worst loss: a ratio above epsilon is a proof that a mechanism is not private, none
is not a proof that it is. The proofs are in `pq.core.sensitivity`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pq.private.columns.door import Array
from pq.truth.audit.bins import Line
from pq.truth.audit.mechanism import Audited, Lossy, log_ratios

COPIED = 0.2  # part of the candidates that is replaced by copies of the best, now and then
FRESH = 0.1  # part that is replaced by new ones
EVERY = 12  # generations between replacements
STRAY = 8  # generations between those in which outputs may leave the line


@dataclass(frozen=True, eq=False)
class Found:
    """The worst candidate of a search: |loss| in nats, the two columns, the output, and how the ratios of all pairs are
    spread."""

    loss: float
    x: Array
    neighbour: Array
    values: Array
    pairs: int
    histogram: np.ndarray[Any, Any]  # (len(BINS) - 1,) counts of |loss| / epsilon


BINS = np.append(np.linspace(0.0, 1.0, 51), [1.0 + 1e-7, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0, np.inf])


class Search:
    """Candidates that climb towards the largest privacy loss between neighbours.

    mechanism: see `pq.truth.audit.mechanism.Audited`. outputs: length m of its output, which is sorted. epsilon: only
    the histogram uses it. adjacency: "add-remove" or "replace". line: where tokens may be. records: most records that
    neighbours share. population: number of candidates. rng: a Generator. start: an (x, neighbour, values) to begin
    with; the other candidates are random.
    """

    def __init__(
        self,
        mechanism: Audited | Lossy,
        outputs: int,
        *,
        epsilon: float,
        adjacency: str,
        line: Line,
        rng: np.random.Generator,
        records: int = 8,
        population: int = 256,
        start: tuple[Any, Any, Any] | None = None,
    ) -> None:
        self.mechanism, self.outputs, self.epsilon, self.line, self.rng = mechanism, outputs, float(epsilon), line, rng
        self.replace = adjacency == "replace"
        self.records = records if start is None else max(records, len(start[0]))
        self.histogram = np.zeros(len(BINS) - 1, dtype=np.int64)
        self.pairs = self.generation = 0
        self.tokens = self._fresh(population)
        if start is not None:
            self.tokens[: population // 4] = self._tokens_of(*start)
        self.losses = self._losses(self.tokens)

    # Columns of `tokens`: `records` shared records (+inf: none), the two versions of the other record, the outputs.

    def _tokens_of(self, x: Any, neighbour: Any, values: Any) -> Array:
        one, other = list(map(float, x)), list(map(float, neighbour))
        shared = []
        for value in list(one):
            if value in other:
                other.remove(value)
                one.remove(value)
                shared.append(value)
        pair = [*one, *other, math.inf, math.inf][:2]
        return np.array([*shared, *[math.inf] * (self.records - len(shared)), *pair, *map(float, values)])

    def _fresh(self, count: int) -> Array:
        """New candidates: tokens anywhere, or outputs in order with records between them and the other record at one
        end."""
        width = self.records + 2 + self.outputs
        share = self.rng.random((count, width))
        ladder = self.rng.random(count) < 0.5
        order = np.argsort(np.argsort(self._ladder_keys(count), axis=1), axis=1)
        share = np.where(ladder[:, None], (order + 0.5 + 0.4 * share) / (width + 1), share)
        pair = slice(self.records, self.records + 2)
        outermost = (order[:, pair] == 0) | (order[:, pair] == width - 1)
        beyond = ladder[:, None] & outermost & (self.rng.random((count, 2)) < 0.5)  # on the far side of all mass
        share[:, pair] = np.where(beyond, np.where(share[:, pair] < 0.5, 0.0, 1.0), share[:, pair])
        tokens = self.line.place(share)
        dropped = self.rng.random((count, self.records)) < self.rng.choice([0.0, 0.2, 0.5, 0.8], size=(count, 1))
        tokens[:, : self.records][dropped] = math.inf
        if not self.replace:
            tokens[:, self.records + 1] = math.inf
        return self.line.snap(tokens)

    def _ladder_keys(self, count: int) -> Array:
        """Sort keys of tokens that stand in a row: outputs evenly, records between them or in heaps, the other record
        at the ends."""
        outputs = np.tile(np.arange(1.0, self.outputs + 1.0), (count, 1))
        even = (np.arange(self.records) + 0.5) / max(self.records, 1) * (self.outputs + 1)
        heaps = self.rng.integers(0, self.outputs + 1, size=(count, 3)) + 0.5
        heaped = np.take_along_axis(heaps, self.rng.integers(0, 3, size=(count, self.records)), axis=1)
        records = np.where(self.rng.random((count, 1)) < 0.5, even + 0.25, heaped)
        flip = self.rng.random((count, 1)) < 0.5
        ends = np.where(flip, [0.01, self.outputs + 1.0], [self.outputs + 1.0, 0.01])
        gap = self.rng.integers(0, self.outputs + 1, size=(count, 2)) + self.rng.choice(
            [0.01, 0.5, 0.99], size=(count, 2)
        )
        ends = np.where(self.rng.random((count, 2)) < 0.6, gap, ends)
        return np.concatenate([records, ends, outputs], axis=1)

    def pair(self, tokens: Array) -> tuple[Array, Array, Array]:
        """Columns (count, n), their neighbours and sorted outputs of candidates."""
        k = self.records
        x = np.sort(tokens[:, : k + 1], axis=1)
        neighbour = np.sort(np.delete(tokens[:, : k + 2], k, axis=1), axis=1)
        return x, neighbour, np.sort(tokens[:, k + 2 :], axis=1)

    def _losses(self, tokens: Array) -> Array:
        x, neighbour, values = self.pair(tokens)
        losses = np.abs(log_ratios(self.mechanism, x, neighbour, values))
        self.pairs += len(losses)
        self.histogram += np.histogram(losses / self.epsilon, BINS)[0]
        return losses

    def advance(self) -> None:
        """One generation: a move of every candidate, kept where it does not lower the loss."""
        moved = self._move(self.tokens)
        losses = self._losses(moved)
        better = losses >= self.losses
        self.tokens[better], self.losses[better] = moved[better], losses[better]
        self.generation += 1
        if self.generation % EVERY == 0:
            self._cull()

    def _cull(self) -> None:
        order = np.argsort(self.losses)
        count = len(order)
        copied, fresh = int(COPIED * count), int(FRESH * count)
        worst, best = order[fresh : fresh + copied], order[count - copied :]
        self.tokens[worst], self.losses[worst] = self.tokens[best], self.losses[best]
        if fresh:
            self.tokens[order[:fresh]] = self._fresh(fresh)
            self.losses[order[:fresh]] = self._losses(self.tokens[order[:fresh]])

    def _move(self, tokens: Array) -> Array:
        tokens = tokens.copy()
        rows = np.arange(len(tokens))
        for _ in range(int(self.rng.integers(1, 4))):
            self._move_one(tokens, rows)
        pushed = self.rng.random(len(tokens)) < 0.15
        if pushed.any():
            pivot = tokens[rows, self.rng.integers(tokens.shape[1], size=len(rows))]
            push = self.line.scale * self.rng.integers(-2, 3, size=len(rows))
            beyond = (tokens > pivot[:, None]) & pushed[:, None]
            tokens = np.where(beyond, tokens + push[:, None], tokens)
        crossed = np.flatnonzero(self.rng.random(len(tokens)) < 0.1)
        if crossed.size:
            tokens[crossed] = self._cross(tokens[crossed])
        if self.generation % STRAY:
            outputs = tokens[:, self.records + 2 :]
            lost = ~((outputs >= self.line.place(np.zeros(1))) & (outputs <= self.line.place(np.ones(1))))
            outputs[lost] = self.line.place(self.rng.random(np.count_nonzero(lost)))
        return self.line.snap(tokens)

    def _cross(self, tokens: Array) -> Array:
        """What lies below a point of each row, with what lies above it in another row that does well."""
        k = self.records
        order = np.argsort(self.losses)
        upper = self.tokens[self.rng.choice(order[len(order) // 2 :], size=len(tokens))]
        lower_o, upper_o = np.sort(tokens[:, k + 2 :], axis=1), np.sort(upper[:, k + 2 :], axis=1)
        cut = self.rng.integers(0, self.outputs + 1, size=(len(tokens), 1))
        outputs = np.where(np.arange(self.outputs) < cut, lower_o, upper_o)
        ends = np.full((len(tokens), 1), math.inf)
        top = np.take_along_axis(np.concatenate([-ends, lower_o], axis=1), cut, axis=1)
        bottom = np.take_along_axis(np.concatenate([upper_o, ends], axis=1), cut, axis=1)
        share = self.rng.random(ends.shape)
        with np.errstate(invalid="ignore"):
            inner = np.where(np.isinf(top), bottom, np.where(np.isinf(bottom), top, top + (bottom - top) * share))
        low, high = tokens[:, :k], upper[:, :k]
        records = np.concatenate(
            [np.where(low < inner, low, math.inf), np.where(high >= inner, high, math.inf)], axis=1
        )
        crossed = np.concatenate([np.sort(records, axis=1)[:, :k], tokens[:, k : k + 2], outputs], axis=1)
        if self.replace:  # each version of the record from the row whose part it is in
            for column in (k, k + 1):
                other = upper[:, column]
                crossed[:, column] = np.where(
                    (other >= inner[:, 0]) & (tokens[:, column] >= inner[:, 0]), other, crossed[:, column]
                )
        return np.where(top <= bottom, crossed, tokens)

    def _move_one(self, tokens: Array, rows: Any) -> None:
        """Move one token of each row: near another, upon it, near itself, anywhere, out, or in exchange with
        another."""
        rng, count, width = self.rng, len(rows), tokens.shape[1]
        kinds = rng.random(count)
        token = np.where(
            kinds < 0.5,
            rng.integers(max(self.records, 1), size=count),
            np.where(kinds < 0.65, self.records + rng.integers(1 + self.replace, size=count), 0),
        )
        token = np.where(kinds >= 0.65, rng.integers(self.records + 2, width, size=count), token)
        other = rng.integers(width, size=count)
        anywhere = self.line.place(rng.random(count))
        here, there = tokens[rows, token], tokens[rows, other]
        if self.line.step is None:
            offset = self.line.scale * 10.0 ** rng.choice(
                [-rng.uniform(0.0, 1.0, count), -rng.uniform(0.0, 9.0, count)]
            )
        else:
            offset = float(self.line.step) * rng.integers(1, 4, size=count)
        offset = offset * rng.choice([-1.0, 1.0], size=count)
        kind = rng.random(count)
        new = np.select(
            [kind < 0.3, kind < 0.4, kind < 0.6, kind < 0.7, kind < 0.8],
            [there + offset, there, here + offset, np.where(token < self.records, math.inf, anywhere), there],
            anywhere,
        )
        exchange = (kind >= 0.7) & (kind < 0.8) & np.isfinite(here) & np.isfinite(there)
        tokens[rows, token] = np.where(np.isposinf(new) & (token >= self.records), anywhere, new)
        tokens[rows[exchange], other[exchange]] = here[exchange]

    def run(self, pairs: int, report: Callable[[int], Any] | None = None) -> None:
        """Advance until at least `pairs` more pairs are evaluated; `report` is told of each batch's number."""
        end = self.pairs + pairs
        while self.pairs < end:
            before = self.pairs
            self.advance()
            if report is not None:
                report(self.pairs - before)

    @property
    def best(self) -> float:
        """Largest |loss| so far, in nats."""
        return float(np.max(self.losses))

    def found(self) -> Found:
        """The worst candidate so far, as columns without the places of absent records."""
        k = int(np.argmax(self.losses))
        x, neighbour, values = (part[0] for part in self.pair(self.tokens[k : k + 1]))
        return Found(
            self.best, x[x < math.inf], neighbour[neighbour < math.inf], values, self.pairs, self.histogram.copy()
        )


def race(searches: Sequence[Search], pairs: int, report: Callable[[int], Any] | None = None) -> Found:
    """Spend `pairs` on searches in rounds, after each of which the worse half is given up; the worst candidate of
    all."""
    rounds = len(searches).bit_length()
    running = list(searches)
    for left in range(rounds, 0, -1):
        rest = pairs - sum(search.pairs for search in searches)
        for search in running:
            search.run(-(-rest // (left * len(running))), report)
        running = sorted(running, key=lambda search: -search.best)[: -(-len(running) // 2)]
    found = max((search.found() for search in searches), key=lambda found: found.loss)
    total = np.sum([search.histogram for search in searches], axis=0)
    return replace(found, pairs=sum(search.pairs for search in searches), histogram=total)
