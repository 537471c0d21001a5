"""Budgets by level that are best for the recurrences of thm:binary and thm:kary."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import sympy
import z3
from flint import arb

from pq import bounds
from pq.bounds import (
    best_arity,
    binary_shares,
    binary_weighted,
    c_p,
    fibonacci,
    kary_constant,
    kary_depth,
    kary_shares,
    kary_weighted,
    thm_binary,
    thm_kary,
)
from proofs_checks.engine.registry import check
from proofs_checks.section_3_3.kary_chains import chain_probability
from proofs_checks.tools.broken import scaled
from proofs_checks.tools.chains import Chain, least_arity, make_chain
from proofs_checks.tools.exact import build
from proofs_checks.tools.solver import prove


def kary_error(shares: Sequence[float]) -> float:
    """The recurrence E_k = 1 / w_k + 2 E_{k-1} of thm:kary."""
    now = 0.0
    for share in shares:
        now = 1 / share + 2 * now
    return now


@check(
    "text:depth-budgets",
    "ours:kary-shares",
    code=kary_shares,
    rejects=[lambda d: [1 / d] * d, lambda d: bounds.kary_shares(d)[::-1], lambda d: [2.0**-k for k in range(d)]],
)
def check_kary_shares(subject: Callable[[int], list[float]] = kary_shares) -> str:
    """The shares attain ((2**(d/2) - 1) / (sqrt 2 - 1))**2 <= (3 + 2 sqrt 2) 2**d and beat every power of the depth."""
    for depth in range(1, 40):
        shares = subject(depth)
        assert math.isclose(math.fsum(shares), 1.0)
        best = kary_error(shares)
        assert math.isclose(best, ((2 ** (depth / 2) - 1) / (math.sqrt(2) - 1)) ** 2)
        assert best < (3 + 2 * math.sqrt(2)) * 2**depth
        for p in (0.0, 1.01, 1.5, 1.6151, 2.0, 3.0):  # equal budgets, and powers
            weights = [k**-p for k in range(1, depth + 1)]
            others = [w / math.fsum(weights) for w in weights]
            assert best <= kary_error(others) * (1 + 1e-12)
            unrolled = math.fsum(2 ** (depth - k) / share for k, share in enumerate(others, 1))
            assert math.isclose(kary_error(others), unrolled), "what Cauchy and Schwarz are applied to"
    d = sympy.symbols("d", positive=True)
    limit = sympy.limit(((2 ** (d / 2) - 1) / (sympy.sqrt(2) - 1)) ** 2 / 2**d, d, sympy.oo)
    assert sympy.simplify(limit - (3 + 2 * sympy.sqrt(2))) == 0
    assert [f"{v:.2f}" for v in (2 * float(limit), c_p(1.61510584869))] == ["11.66", "16.83"], "as the row says"
    return (
        "thm:kary sharpened: budgets ~ 2^((d-k)/2) give the constant 2 (3 + 2 sqrt 2) = 11.66 where the least "
        "c_p is 16.83"
    )


def binary_error(shares: Sequence[float]) -> float:
    """The recurrence E_k = 1 / w_k + E_{k-1} + E_{k-2} of thm:binary with shares w_k of the budget."""
    before, now = 0.0, 0.0
    for share in shares:
        before, now = now, 1 / share + now + before
    return now


def supremum_of_shares(depth: int) -> arb:
    """(sum sqrt F_j)**2 / phi**d, which rises with d to its supremum."""
    total = sum((arb(fibonacci(j)).sqrt() for j in range(1, depth + 1)), arb(0))
    return total**2 / ((1 + arb(5).sqrt()) / 2) ** depth


@check("ours:binary-shares", rejects=["9.6813", "9.7791", "9.7793", "15.84"])
def check_shares_supremum(subject: str = "9.7792") -> str:
    """The supremum of (sum sqrt F_j)**2 / phi**d is 1/(sqrt 5 (1 - phi^(-1/2))^2) = 9.77917..., from below.

    For all d: sqrt F_j <= 5^(-1/4) (phi^(j/2) + phi^(-3j/2)/2), and the second parts add up to less than what the sum
    of the first lacks.
    """
    values = [supremum_of_shares(depth) for depth in range(1, 200)]
    assert all(value < arb(subject) for value in values), "exceeded"
    assert all(one < two for one, two in itertools.pairwise(values[:60])), "rises"
    assert values[-1] > arb(subject) - arb("0.0001"), "not the least constant to five digits"
    root = ((1 + arb(5).sqrt()) / 2).sqrt()
    assert 1 / (2 * (root**3 - 1)) < 1 / (1 - 1 / root) and 1 / (arb(5).sqrt() * (1 - 1 / root) ** 2) < arb(subject)
    return "budgets ~ sqrt(F_(d-k+1)): the constant rises to 9.77917 phi^d (256-bit balls, d < 200)"


@check(
    "ours:binary-shares",
    code=binary_shares,
    rejects=[lambda d: [1 / d] * d, lambda d: bounds.kary_shares(d), lambda d: bounds.binary_shares(d)[::-1]],
)
def check_binary_shares(subject: Callable[[int], list[float]] = binary_shares) -> str:
    """The shares attain (sum sqrt F_j)**2, beat equal and random shares, and lose the factor log2(m + 1) for good."""
    draw = random.Random(7)
    root = ((1 + arb(5).sqrt()) / 2).sqrt()  # sqrt F_j is sqrt(phi^j / 5^(1/2)) up to a vanishing part
    limit = 1 / (arb(5).sqrt() * (1 - 1 / root) ** 2)
    assert supremum_of_shares(250).overlaps(limit) or abs(supremum_of_shares(250) - limit) < 1e-15
    for depth in range(1, 40):
        shares = subject(depth)
        assert math.isclose(math.fsum(shares), 1.0)
        best = binary_error(shares)
        assert math.isclose(best, math.fsum(math.sqrt(fibonacci(j)) for j in range(1, depth + 1)) ** 2)
        assert best <= depth * (fibonacci(depth + 2) - 1) * (1 + 1e-12)
        for _ in range(20):
            raw = [share * math.exp(draw.gauss(0, 0.3)) for share in shares]
            assert best <= binary_error([v / math.fsum(raw) for v in raw]) * (1 + 1e-12)
        assert best < float(limit) * ((1 + math.sqrt(5)) / 2) ** depth * (1 + 1e-12)
    return "thm:binary sharpened: budgets ~ sqrt(F_(d-k+1)) give (sum sqrt F_j)^2 < 9.7792 phi^d, for d (F_(d+2) - 1)"


@check("ours:binary-shares", "ours:kary-shares", rejects=[lambda power: 0, lambda power: z3.RealVal("99/100")])
def check_cauchy_schwarz(subject: Callable[[int], Any] = lambda power: power) -> str:
    """sum a_k / w_k is at least (sum sqrt a_k)**2 for shares that sum to one, with equality at w_k ~ sqrt a_k."""
    for size in (2, 3):
        r = z3.Reals(" ".join(f"r{k}" for k in range(size)))  # square roots of the coefficients
        w = z3.Reals(" ".join(f"w{k}" for k in range(size)))
        positive = z3.And([v > 0 for v in (*r, *w)])
        for j, k in itertools.combinations(range(size), 2):  # each pair of the expanded square
            pair = subject(1) * r[j] * r[j] * w[k] * w[k] + r[k] * r[k] * w[j] * w[j] >= 2 * r[j] * r[k] * w[j] * w[k]
            prove(z3.Implies(positive, pair), "the cross terms of Cauchy and Schwarz")
    return "sum a_k / w_k >= (sum sqrt a_k)^2 over shares w: the cross terms are squares (z3)"


@check("ours:kary-shares", code=(kary_weighted, best_arity), rejects=[least_arity, lambda m: 2])
def check_best_arity(subject: Callable[[int], int] = best_arity) -> str:
    """The chosen arity is the best of all, and the bound is below the corrected thm:kary for every m tried."""
    for m in [*range(1, 200), 1000, 4095, 83_521]:
        best = kary_weighted(-1e6, 1.0, m, 0.5, arity=subject(m), rounded=False)
        assert best <= min(kary_weighted(-1e6, 1.0, m, 0.5, arity=k, rounded=False) for k in range(2, min(m + 3, 400)))
        assert best <= thm_kary(-1e6, 1.0, m, 0.5, rounded=False) * (1 + 1e-12)
    return (
        "best_arity is the best arity, m < 200 and some larger; the sharpened bound is never above the "
        "corrected thm:kary"
    )


Budgets = tuple[int, ...]  # of the levels, in whole numbers near the shares: sqrt 2 is 17/12 or 24/17


def _chain(m: int, arity: int, budgets: Budgets, quantiles: Sequence[Fraction], n: int) -> Chain:
    """Bad luck down the tree: on the last children for K > 2, or right and left in turn; each of its priors is half on
    either side of what its node aims at."""
    root, path = build(range(m), arity), []
    while root is not None:
        path.append(root.indices[-1])
        root = root.children[-1 if arity > 2 or len(path) % 2 else 0] if root.children else None
    return make_chain(quantiles, n, arity, path, lambda depth, count: budgets[depth - 1], _bits(budgets), 2)


def _bits(budgets: Budgets) -> int:
    """-log2 of the inner products: a multiple of the budgets that sets a thousand ranks or more at any."""
    common = math.lcm(*budgets)
    return common * -(-1000 * max(budgets) // common)


@check(
    "ours:binary-shares",
    "ours:kary-shares",
    code=(binary_weighted, kary_weighted),
    rejects=[
        *((scaled(binary_weighted, factor), kary_weighted) for factor in (0.99, 1.01)),
        *((binary_weighted, scaled(kary_weighted, factor)) for factor in (0.99, 1.01)),
        (thm_binary, kary_weighted),
        (binary_weighted, thm_kary),
    ],
)
def check_shares_are_needed(
    subject: tuple[Callable[..., float], Callable[..., float]] = (binary_weighted, kary_weighted),
) -> str:
    """Chains of bad luck with these budgets, up to a ten thousandth of the constant, need 0.99 of either bound, up to
    three levels, and no more than the bound (exact laws)."""
    shares = []
    for budgets in ((1,), (1, 1), (17, 12, 12)):
        depth = len(budgets)
        m, farthest = 2**depth - 1, _bits(budgets) // min(budgets)
        quantiles = [Fraction(i, m + 1) for i in range(1, m + 1)]
        chain = _chain(m, 2, budgets, quantiles, 2**depth * farthest * 4 * fibonacci(depth + 2))
        assert binary_error([b / sum(budgets) for b in budgets]) < 1.0001 * binary_error(bounds.binary_shares(depth))
        log_psi, epsilon = math.log(m) - float(chain.log_spread(Fraction(1))), 2 * math.log(2) * sum(budgets)
        shares.append(max(chain.errors) / subject[0](log_psi, epsilon, m, 0.5))
        assert 0.99 < shares[-1] <= 1, (m, shares)
        assert chain.failure(max(chain.errors)) > Fraction(1, 2)
    for arity, m, budgets in ((3, 8, (17, 12)), (5, 24, (17, 12)), (3, 26, (24, 17, 12))):
        quantiles = [Fraction(1, 4) + Fraction(i, 160 * m) for i in range(1, m + 1)]  # close together
        chain = _chain(m, arity, budgets, quantiles, 160 * m * 40_000)
        depth, epsilon = len(budgets), 2 * math.log(2) * sum(budgets) * (arity - 1)
        assert kary_error([b / sum(budgets) for b in budgets]) < 1.0001 * kary_error(bounds.kary_shares(depth))
        bound = subject[1](math.log(m) - float(chain.log_spread(Fraction(1))), epsilon, m, 0.5, arity=arity)
        assert 0.99 * bound < max(chain.errors) <= bound, (arity, m)
        assert chain_probability(chain) > Fraction(1, 2)
    return f"budgets by level: chains need {min(shares):.3f} of the binary bound, 0.99 of the K-ary one (exact laws)"


FIRST = {1.5: 17**4, 1.6: 33**5, 2.0: 257**8}  # quantiles of the least tree for which budgets by depth save, by power


@check(
    "text:depth-budgets",
    code=(kary_constant, kary_depth, c_p),
    rejects=[lambda p: 3, lambda p: FIRST[p] - 1, lambda p: FIRST[p] + 1, lambda p: 2**64 + 1 if p == 2 else FIRST[p]],
)
def check_depth_budgets(subject: Callable[[float], int] = lambda p: FIRST[p]) -> str:
    """Budgets k^-p against equal ones: H A against d (2^d - 1), smaller from as many quantiles on and for no fewer; the
    factor saved is d over a constant, c_p/2 in the limit, and d is about sqrt(log2 m).

    Trees have d levels or more just from m = K^(d - 1), K = 2^(d - 1) + 1, on. Up to m + 1 = 2^((d - 1)^2) the arity's
    (d - 1)st power is at least m + 1; from there to K^(d - 1) the arity is K. Beyond, k + 1 is the arity from
    log2(m + 1) > log2(k)^2 on, where (k + 1)^(d - 1) is at most m: so at k = K, and the room grows with k.
    """
    for p in (1.5, 1.6, 2.0):
        smaller, shares = [], {}
        for d in [*range(1, 40), 500]:
            harmonic = math.fsum(k**-p for k in range(1, d + 1))
            shares[d] = d * (2**d - 1) / (harmonic * kary_constant(d, p))
            smaller += [d] * (shares[d] > 1)
        levels, first = smaller[0], subject(p)
        assert smaller == [*range(levels, 40), 500], (p, smaller[:2])
        assert [kary_depth(m, least_arity(m)) for m in (first - 1, first)] == [levels - 1, levels], (p, first)
        assert c_p(p) / 2 < 40 * (1 - 0.5**40), "beyond: H A is at most c_p 2^d / 2, step:kary-display"
        saved = [shares[d] / d * c_p(p) / 2 / (1 - 0.5**d) for d in (39, 500)]
        assert 1 <= saved[1] <= saved[0] and saved[1] <= 1 + 500 ** (1 - p) / (p - 1), (p, saved)
    assert round(257**8 / 2**64, 2) == 1.03, "as the row says"
    assert (least_arity(3), kary_depth(3, 3)) == (3, 2), "as the row says"
    assert math.isclose((1 + 1 / 4) * kary_constant(2, 2.0), 7.5) and 2 * kary_constant(2, 0.0) == 6, "as the row says"
    for d in range(2, 6):
        least = (2 ** (d - 1) + 1) ** (d - 1)  # quantiles of d levels
        near = (*range(1, 800), *range(least - 500, least + 500), *range(10**5, 10**5 + 500))
        assert all((kary_depth(m, least_arity(m)) >= d) == (m >= least) for m in near if m > 0), d
    for m in (*range(1, 3000), *(10**k for k in range(4, 60))):
        assert -1 < kary_depth(m, least_arity(m)) - math.sqrt(math.log2(m + 1)) < 1, m
    for d in range(2, 60):
        arity = 2 ** (d - 1) + 1
        m = arity ** (d - 1)
        assert kary_depth(m, least_arity(m)) == d and kary_depth(m - 1, least_arity(m - 1)) == d - 1
        assert (arb(arity).log() / arb(2).log()) ** 2 > (d - 1) * arb(arity + 1).log() / arb(2).log()
        assert d - 1 <= math.sqrt(math.log2(m + 1)) <= d
    return "budgets k^-p beat equal ones from 9 levels on, m = 257^8 (p = 2); the factor saved tends to 2 d/c_p"
