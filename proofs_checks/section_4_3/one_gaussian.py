"""Why a tree of noisy sums, with a learner that adapts, costs what one Gaussian release costs: the step from nodes to
the exact curve by which noise is judged private."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from fractions import Fraction

import mpmath
import numpy as np
import sympy

from pq import bounds
from proofs_checks.engine.registry import check
from proofs_checks.tools.gaussian import exact_delta
from proofs_checks.tools.runs import prefix_nodes

F = Fraction
Vector = tuple[Fraction, Fraction]
Node = tuple[int, int]
Learner = Callable[[Sequence[Vector], Sequence[Vector]], Vector]


def of_outputs(outputs: Sequence[Vector], _: Sequence[Vector]) -> Vector:
    """A gradient that depends on all that has been released, not linearly."""
    total = sum((o[0] * (k + 1) - o[1] for k, o in enumerate(outputs)), F(1, 3))
    return F(total.numerator % 7, 7), F(total.denominator % 5 - 2, 3)


def _peeking(outputs: Sequence[Vector], gradients: Sequence[Vector]) -> Vector:
    return gradients[-1] if gradients else of_outputs(outputs, gradients)


def _day(gradient: Vector, outputs: Sequence[Vector]) -> Vector:
    """What the other data set has in the place of a day's gradient; also by what was released before."""
    return gradient[0] - F(1, 2) - F(len(outputs), 9), F(2, 3) - gradient[1]


def released(steps: int, total: bool) -> list[Node]:
    """Nodes of the sums that iterates see, and of the sum of all if it is released, in the order of their last day."""
    nodes = {node for t in range(1, steps + total) for node in prefix_nodes(t)}
    return sorted(nodes, key=lambda node: (node[1], -node[0]))


def loss(
    nodes: list[Node], noise: dict[Node, Vector], steps: int, day: int, learner: Learner
) -> tuple[Fraction, Vector]:
    """Log ratio of the densities of all noisy nodes, noise of variance one, at what these noises give; and by how much
    the gradient of the day differs between the two data sets, given what was released."""
    ours, theirs, outputs, at = list[Vector](), list[Vector](), list[Vector](), F(0)
    moved = (F(0), F(0))
    for t in range(1, steps + 1):
        own, other = learner(outputs, ours), learner(outputs, theirs)
        if t == day:
            other = _day(other, outputs)
            moved = own[0] - other[0], own[1] - other[1]
        ours.append(own)
        theirs.append(other)
        fresh = [node for node in nodes if node[1] == t]
        for first, last in fresh:
            z, sums = (
                noise[first, last],
                [[sum(v[i] for v in each[first - 1 : last]) for i in (0, 1)] for each in (ours, theirs)],
            )
            outputs.append((sums[0][0] + z[0], sums[0][1] + z[1]))
            at += sum(((sums[0][i] + z[i] - sums[1][i]) ** 2 - z[i] ** 2) / 2 for i in (0, 1))
    return at, moved


@check(
    "ours:dpftrl-noise",
    "ours:joint-runs",
    "thm:dpftrl/privacy",
    "thm:sequential/privacy",
    "thm:quantile-regret/privacy",
    code=bounds.tree_nodes,
    rejects=[
        (_peeking, bounds.tree_nodes),
        (of_outputs, lambda steps, *, release_total: 1),
        (of_outputs, lambda steps, *, release_total: bounds.tree_nodes(steps, release_total=release_total) + 1),
        (of_outputs, lambda steps, *, release_total: max(bounds.tree_nodes(steps, release_total=release_total) - 1, 0)),
    ],
)
def check_tree_is_one_gaussian(subject: tuple[Learner, Callable[..., int]] = (of_outputs, bounds.tree_nodes)) -> str:
    """In fractions, whatever the noises: if a day's gradient differs by v, the log ratio of all that a learner is given
    is <v, the noises of the nodes that hold the day> plus their number times |v|^2/2, as of one release of variance
    one over that number. These noises come after the gradient, so they are independent of v.

    subject: the learner, and the largest number of such nodes.
    """
    learner, most = subject
    rng, cases = np.random.default_rng(29), 0
    for steps, total in itertools.product(range(1, 10), (False, True)):
        nodes, held = released(steps, total), 0
        for day in range(1, steps + 1):
            holding = [node for node in nodes if node[0] <= day <= node[1]]
            assert all(last >= day for _, last in holding), "released before its day"
            noise = {node: (F(int(rng.integers(-9, 10)), 4), F(int(rng.integers(-9, 10)), 4)) for node in nodes}
            found, v = loss(nodes, noise, steps, day, learner)
            linear = sum((v[i] * noise[node][i] for node in holding for i in (0, 1)), F(0))
            assert found == linear + len(holding) * (v[0] ** 2 + v[1] ** 2) / 2, (steps, total, day)
            held, cases = max(held, len(holding)), cases + 1
        assert held == most(steps, release_total=total), (steps, total)
    return f"a tree's loss is that of one Gaussian release, whatever a learner does with it: {cases} cases in fractions"


@check(
    "ours:dpftrl-noise",
    "ours:joint-runs",
    "thm:dpftrl/privacy",
    rejects=[lambda m, n: m + n, lambda m, n: m, lambda m, n: sympy.sqrt(m**2 + n**2) * F(101, 100)],
)
def check_curve(subject: Callable[..., sympy.Expr] = lambda m, n: sympy.sqrt(m**2 + n**2)) -> str:
    """A loss of mean m^2/2 and variance m^2 has the exact curve for its delta, which rises with m, so the largest move
    decides; losses of two runs add up to one with the root of the sum of squares. subject: m of both."""
    m, n, eps, x = sympy.symbols("m n eps x", positive=True)

    def density(mean: sympy.Expr) -> sympy.Expr:
        return sympy.exp(-((x - mean) ** 2) / (2 * m**2)) / (m * sympy.sqrt(2 * sympy.pi))

    def cdf(y: sympy.Expr) -> sympy.Expr:
        return sympy.erfc(-y / sympy.sqrt(2)) / 2

    curve = cdf(m / 2 - eps / m) - sympy.exp(eps) * cdf(-m / 2 - eps / m)
    # E (1 - exp(eps - loss))^+ falls with eps as -e^eps E(exp(-loss); loss > eps), and tends to 0 as the curve does
    assert sympy.simplify(sympy.exp(-x) * density(m**2 / 2) / density(-(m**2) / 2)) == 1
    slope = sympy.diff(curve, eps) + sympy.exp(eps) * cdf(-m / 2 - eps / m)
    assert sympy.simplify(slope) == 0 == sympy.limit(curve.subs(m, 1), eps, sympy.oo)
    rise = sympy.diff(curve, m) - sympy.exp(-((m / 2 - eps / m) ** 2) / 2) / sympy.sqrt(2 * sympy.pi)
    assert sympy.simplify(sympy.expand(rise.rewrite(sympy.exp))) == 0
    both = subject(m, n)  # independent losses: means and variances add
    assert sympy.simplify(both**2 / 2 - m**2 / 2 - n**2 / 2) == 0
    for epsilon, size in itertools.product((0.1, 1.0, 5.0), (0.2, 1.0, 3.0)):
        found = float(curve.subs({eps: epsilon, m: size}).evalf(30))
        assert mpmath.almosteq(found, float(exact_delta(epsilon, 1 / size)), 1e-9, 1e-15), (epsilon, size)
    return "delta of a Gaussian loss: the exact curve, which rises with the move; two runs add in squares (sympy)"
