"""Private prefix sums (Algorithm alg:dpftrl): the square root of the matrix of prefix sums against the binary tree.

With A = L R and white noise z one releases L (R x + z). A change of one value moves R x by a column of R times the
change, and the noise of a sum is a row of L. The square root L = R = A^(1/2) is lower triangular, with
c_k = binom(2k, k) / 4^k on the k-th diagonal.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import accumulate, pairwise

import numpy as np
import sympy
import z3
from flint import arb

from pq import learners
from pq.core.learners.prefix import square_root_coefficients
from pq.learners import TreeAggregator, mean_squared_error, square_root_sensitivity
from pq.private.noise import Normals
from proofs_checks.engine.registry import check
from proofs_checks.tools.runs import prefix_nodes
from proofs_checks.tools.solver import prove

F = Fraction

MOST = 96  # steps to which matrices are written out


class _Ones(Normals):
    """Noise that counts the draws in it."""

    def draw(self, shape: tuple[int, ...]) -> np.ndarray:
        return np.ones(shape)


def most_nodes(steps: int) -> int:
    """Of a sum that an iterate of so many steps sees: floor(log2 T)."""
    return steps.bit_length() - 1


@check(
    "thm:dpftrl/regret",
    "thm:dpftrl/prefix-noise",
    code=TreeAggregator,
    rejects=[
        (int.bit_count, lambda t: max(0, t.bit_length() - 2)),
        (int.bit_count, lambda t: math.ceil(math.log2(t))),
        (lambda t: math.ceil(math.log2(t)), most_nodes),
        (int.bit_length, most_nodes),
        (lambda t: t.bit_count() + (t == 299), most_nodes),
    ],
)
def check_prefix_noise(subject: tuple[Callable[[int], int], Callable[[int], int]] = (int.bit_count, most_nodes)) -> str:
    """A prefix sum adds popcount(t) nodes, in dyadic blocks and in the package's tree, where each node's noise is a one
    here; the iterates of T steps see at most floor(log2 T) of them, and 2^k - 1 < T has as many for the largest k.

    For every T: if t < T < 2^(k + 1), then t <= 2^(k + 1) - 2 has a zero among its k + 1 binary digits. And a t <= 2^j
    has j + 1 digits only if it is 2^j, with one one: from t = 2 on there are at most ceil(log2 t) ones.
    """
    nodes, most = subject
    tree = TreeAggregator(300, 1.0, (), _Ones())
    for t in range(1, 301):
        assert nodes(t) == len(prefix_nodes(t)) == round(tree.add(0.0)), t
    seen = 0
    for steps in range(1, 2000):
        seen = max(seen, (steps - 1).bit_count())
        assert seen <= most(steps), steps
        assert most(steps) <= seen, (steps, "not the least bound")
    for k in range(1, 200):  # beyond: the ends of each range of T with as many digits
        assert (2 ** (k + 1) - 2).bit_count() == (2**k - 1).bit_count() == k and most(2**k) == most(
            2 ** (k + 1) - 1
        ) == k
    assert (len(prefix_nodes(1)), len(prefix_nodes(8))) == (1, 1) and math.ceil(math.log2(8)) == 3, "as the row says"
    wrong = [t for t in range(1, 64) if t.bit_count() != math.ceil(math.log2(t))]
    above = [t for t in range(1, 5000) if t.bit_count() > math.ceil(math.log2(t))]
    assert above == [1]
    return (
        f"noise of a prefix sum: popcount(t) nodes, not ceil(log2 t) (differs at {len(wrong)} of 63; less only at t=1)"
    )


def coefficients(steps: int) -> list[Fraction]:
    """c_0, ..., c_(T-1), exactly."""
    return [F(math.comb(2 * k, k), 4**k) for k in range(steps)]


@check(
    "ours:square-root-sums",
    rejects=[
        lambda steps: [F(1)] * steps,
        lambda steps: [F(math.comb(2 * k, k), 4**k) if k < 90 else F(1, 18) for k in range(steps)],
    ],
)
def check_square_root_factors(subject: Callable[[int], list[Fraction]] = coefficients) -> str:
    """The square of the lower triangular matrix is the matrix of prefix sums, for every T.

    Entry (t, s) of the square depends on n = t - s alone: it is sum_k c_k c_(n-k), the n-th coefficient of C(z)^2 for
    C(z) = sum c_k z^k. From 2k c_k = (2k - 1) c_(k-1) follows 2 (1 - z) C' = C, so D = C^2 has (1 - z) D' = D, which
    says n d_n = (n - 1) d_(n-1) + d_(n-1): all d_n are equal, to d_0 = 1. Recurrence and sums are checked exactly.
    """
    found = subject(MOST)
    assert found[0] == 1 and all(2 * k * found[k] == (2 * k - 1) * found[k - 1] for k in range(1, MOST))
    for n in range(MOST):
        assert sum(found[k] * found[n - k] for k in range(n + 1)) == 1, n
    floats = square_root_coefficients(MOST)
    assert all(abs(value - float(exact)) < 1e-14 for value, exact in zip(floats, found, strict=True))
    return f"L R is the matrix of prefix sums, by a recurrence for every T, and written out exactly to T = {MOST}"


def squares(steps: int) -> list[Fraction]:
    """c_0^2 + ... + c_t^2 for t < T: the squared norms of the rows, and of the columns from the last to the first."""
    return list(accumulate(c * c for c in coefficients(steps)))


@check(
    "ours:square-root-sums",
    code=square_root_sensitivity,
    rejects=[
        lambda steps: 1.0,
        lambda steps: math.sqrt(steps.bit_length()),
        lambda steps: learners.square_root_sensitivity(max(1, steps - 1)),
    ],
)
def check_square_root_sensitivity(subject: Callable[[int], float] = learners.square_root_sensitivity) -> str:
    """One value that changes by a vector of norm s moves R x by s times the norm of the first column, at most.

    The move is the outer product of column j and that vector, whose Frobenius norm is the product of both norms.
    Column j holds c_0, ..., c_(T-1-j), so its squared norm is a sum of squares, and column j - 1 adds one more.
    """
    for steps in range(1, MOST + 1):
        entries = coefficients(steps)
        columns = [[entries[t - j] if t >= j else F(0) for t in range(steps)] for j in range(steps)]
        norms = [sum(entry * entry for entry in column) for column in columns]
        assert norms == squares(steps)[::-1] and max(norms) == norms[0] and norms.count(norms[0]) == 1
        assert abs(subject(steps) ** 2 - float(norms[0])) < 1e-12 * float(norms[0]), steps
    return f"sensitivity of the square root: the norm of its first column, exactly, T = 1..{MOST}"


SHORT = 64  # steps from which on errors are compared by inequalities for all lengths


def square_root_error(steps: int) -> Fraction:
    """Mean squared error of a sum at unit privacy: the largest squared norm of a column times the mean of the rows'."""
    norms = squares(steps)
    return norms[-1] * sum(norms) / steps


def tree_error(steps: int, refined: bool = False) -> Fraction:
    """The same for the tree: a value is in T.bit_length() nodes, and sum t adds a node for each binary one of t.

    refined: a node of height h is estimated from its descendants too, and has the variance 1 / (2 - 2^-h): the mean of
    the node and of the sum of its two halves, weighted by their precisions (Honaker).
    """
    nodes = [[h for h in range(t.bit_length()) if t >> h & 1] for t in range(1, steps + 1)]
    variances = [1 / (2 - F(1, 2**h)) if refined else F(1) for h in range(steps.bit_length())]
    assert not refined or all(1 / node == 1 + 1 / (2 * half) for half, node in pairwise(variances)), "Honaker's"
    return steps.bit_length() * sum(variances[h] for heights in nodes for h in heights) / steps


@check(
    "ours:square-root-sums",
    code=mean_squared_error,
    rejects=[
        lambda steps: tree_error(steps, refined=True),
        lambda steps: square_root_error(steps) * F(101, 100),
        lambda steps: F(steps),
    ],
)
def check_square_root_error(subject: Callable[[int], Fraction] = square_root_error) -> str:
    """From two steps on the square root has less mean squared error than both trees at the same privacy, for every T.

    To T = 300 by exact fractions. For T >= 64, with H = log T:
    - k c_k^2 grows, to 1 / pi (Wallis), so sum_{k<T} c_k^2 <= 1 + (1 + H) / pi, and the error is at most its square;
    - ones(n) = sum_{t<n} popcount(t) >= n log2(3n/4) / 2: for n = 2^a (1 + x), 0 <= x < 1, ones(n) is
      a 2^(a-1) + 2^a x + ones(2^a x), and by induction it is enough that
      g(x) = 2x + x log2 x - (1 + x) log2(1 + x) + log2(4/3) >= 0; g' = 2 + log2(x / (1 + x)) changes sign at 1/3 only,
      and g(1/3) = 0;
    - a node's variance exceeds 1/2 and T.bit_length() exceeds log2 T, so both trees have an error of at least
      log2(T) log2(3T/4) / 4; in H the difference is a parabola that opens upwards, positive and growing at log 64.
    """
    for steps in range(2, 301):
        error, refined = subject(steps), tree_error(steps, refined=True)
        assert error < refined < tree_error(steps), steps
        for mechanism, exact in (("square-root", error), ("tree-refined", refined), ("tree", tree_error(steps))):
            assert abs(learners.mean_squared_error(steps, mechanism) / float(exact) - 1) < 1e-12, (steps, mechanism)

    k = z3.Real("k")
    prove(z3.Implies(k > 0, (2 * k + 1) ** 2 > 4 * k * (k + 1)), "k c_k^2 grows")
    grown = [j * c * c for j, c in enumerate(coefficients(200))]
    assert all(before < after for before, after in pairwise(grown)) and arb(float(grown[-1])) < 1 / arb.pi()
    assert all(float(s) <= 1 + (1 + math.log(t)) / math.pi for t, s in enumerate(squares(300), 1)), "as the row says"
    ones = list(accumulate((t.bit_count() for t in range(4096)), initial=0))
    assert all(2 * ones[n] >= n * math.log2(0.75 * n) - 1e-9 for n in range(1, 4096))
    halves = [(n, n.bit_length() - 1, n - 2 ** (n.bit_length() - 1)) for n in range(2, 4096)]
    assert all(2 * ones[n] == a * 2**a + 2 * rest + 2 * ones[rest] for n, a, rest in halves), "n = 2^a + rest"
    x = sympy.symbols("x", positive=True)
    rise = sympy.diff(2 * x + (x * sympy.log(x) - (1 + x) * sympy.log(1 + x) + sympy.log(F(4, 3))) / sympy.log(2), x)
    assert sympy.simplify(rise - 2 - (sympy.log(x) - sympy.log(1 + x)) / sympy.log(2)) == 0, "g'"
    assert F(1, 3) / (1 + F(1, 3)) == F(1, 2**2), "the root of g', as x/(1 + x) grows"
    third, two = arb(1) / 3, arb(2).log()
    least = 2 * third + third * third.log() / two - 4 * third * (4 * third).log() / two + (4 * third).log() / two
    assert abs(least) < 1e-12 and least.contains(0)
    high = arb(SHORT).log()
    gain = high * (high - (4 * third).log()) / (4 * two**2) - (1 + (1 + high) / arb.pi()) ** 2
    slope = (2 * high - (4 * third).log()) / (4 * two**2) - 2 * (1 + (1 + high) / arb.pi()) / arb.pi()
    assert gain > 0 and slope > 0 and 1 / (4 * two**2) > 1 / arb.pi() ** 2
    return f"the square root beats both trees for every T >= 2: exactly to 300, by inequalities from {SHORT}"
