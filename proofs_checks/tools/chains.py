"""Chains of bad luck: every error as large as its node allows, all the same way."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from flint import arb

from pq.bounds import fibonacci
from proofs_checks.tools.exact import Algorithm, Grid, Node, Prior, ball, build, log_ball, probability, rank_target

HALF = Fraction(1, 2)

Spend = Callable[[int, int], int]  # (depth, mechanisms of the node) -> exponent of z = 2**-exponent


@dataclass(frozen=True)
class Chain:
    """An instance of Algorithm 2 with its data, the indices on the chain and the ranks by which they err on it."""

    algorithm: Algorithm
    data: Grid
    indices: tuple[int, ...]
    errors: tuple[int, ...]

    @property
    def inverse_psi_sum(self) -> Fraction:
        """m over the harmonic mean; 1 for each quantile off the chain."""
        on_chain = replace(
            self.algorithm,
            quantiles=tuple(self.algorithm.quantiles[i] for i in self.indices),
            priors=tuple(self.algorithm.priors[i] for i in self.indices),
            z=tuple(self.algorithm.z[i] for i in self.indices),
        )
        return on_chain.inverse_psi_sum(self.data) + len(self.algorithm.quantiles) - len(self.indices)

    def log_spread(self, beta: Fraction) -> arb:
        """log(m / (beta Psi))."""
        return log_ball(self.inverse_psi_sum / beta)

    def failure(self, error: int) -> Fraction:
        """Exact probability that the largest gap is at least `error`."""
        return probability(
            self.algorithm.law(self.data), lambda outputs: max(self.algorithm.gaps(self.data, outputs)) >= error
        )


def exponents_of(root: Node | None, spend: Spend, m: int) -> list[int]:
    """The exponent of each mechanism."""
    result = [0] * m

    def down(node: Node | None) -> None:
        if node is not None:
            for i in node.indices:
                result[i] = spend(node.depth, len(node.indices))
            for child in node.children:
                down(child)

    down(root)
    return result


def make_chain(
    quantiles: Sequence[Fraction], n: int, arity: int, path: Sequence[int], spend: Spend, bits: int, margin: int = 1
) -> Chain:
    """The chain that takes the given mechanism of each level and then the child on its given side.

    path: index (in 0..m-1) of the quantile that errs at each level. bits: -log2 of Psi on the chain, a multiple of
    every exponent.
    """
    priors: list[Prior] = [{rank_target(q, n) + HALF: Fraction(1)} for q in quantiles]
    exponents = exponents_of(build(range(len(quantiles)), arity), spend, len(quantiles))
    ranks: dict[int, int] = {}
    for i in path:
        distance = bits // exponents[i]
        below = max((j for j in ranks if j < i), default=-1)
        above = min((j for j in ranks if j > i), default=-1)
        low, q_low = (ranks[below], quantiles[below]) if below >= 0 else (0, Fraction(0))
        high, q_high = (ranks[above], quantiles[above]) if above >= 0 else (n, Fraction(1))
        relative = (quantiles[i] - q_low) / (q_high - q_low)
        shifted = low + math.floor(relative * (high - low))
        near = math.floor(quantiles[i] * n) - distance
        far = 2 * shifted - near - margin
        assert low < near, "the near half must lie inside the node"
        assert far < high, "the far half must lie inside the node"
        ranks[i] = far
        priors[i] = {near + HALF: HALF, far + HALF: HALF}
    errors = tuple(ranks[i] - math.floor(quantiles[i] * n) for i in path)
    z = tuple(Fraction(1, 2**e) for e in exponents)
    return Chain(Algorithm(tuple(quantiles), tuple(priors), z, arity=arity), Grid(n), tuple(path), errors)


def corrected_binary(levels: int) -> arb:
    """F_{k+2} - 1."""
    return arb(fibonacci(levels + 2) - 1)


def least_arity(m: int) -> int:
    """ceil(exp(sqrt(log 2 log(m + 1)))), exactly: an integer only at m + 1 = 2**(b * b)."""
    b = math.isqrt((m + 1).bit_length() - 1)
    if m + 1 == 1 << (b * b):
        return 1 << b
    whole = (arb(2).log() * arb(m + 1).log()).sqrt().exp().ceil().unique_fmpz()
    assert whole is not None, f"the ceiling at m = {m} needs more digits"
    return int(whole)


def printed_kary(m: int, arity: int) -> arb:
    """2 pi**2 exp(2 sqrt(log 2 log(m + 1)))."""
    return 2 * arb.pi() ** 2 * (2 * (arb(2).log() * arb(m + 1).log()).sqrt()).exp()


def cauchy_mass(low: Fraction, high: Fraction | float) -> arb:
    """Standard Cauchy mass of an interval, in a ball."""
    upper = arb.pi() / 2 if high == math.inf else ball(Fraction(high)).atan()
    return (upper - ball(low).atan()) / arb.pi()
