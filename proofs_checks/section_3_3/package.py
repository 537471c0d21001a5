"""What the package does with several quantiles, against fractions: the law of a release, its nodes, their bounds."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from typing import Any

import pq
from pq.bounds import lem_empirical, lem_error, lem_prior
from pq.core.plan import plan
from pq.private.release import release
from pq.truth.density import log_density
from proofs_checks.engine.registry import check
from proofs_checks.section_3_3.nodes import edge_pairs
from proofs_checks.section_3_3.rounding import witness
from proofs_checks.tools.broken import scaled
from proofs_checks.tools.exact import (
    Algorithm,
    Grid,
    Position,
    Prior,
    Restricted,
    adapt,
    ball,
    build,
    gap,
    log_ball,
    mechanism,
    psi,
)
from proofs_checks.tools.pieces import column, log_width, spread
from proofs_checks.tools.trees import node_cases

F = Fraction


def _instances() -> Iterator[tuple[Grid, Algorithm]]:
    """One, two and three quantiles on a few records, both adaptations, binary trees and one node of three."""
    for n, m, arity in ((2, 1, 2), (3, 2, 2), (3, 3, 2), (4, 3, 2), (3, 3, 4)):
        cells, masses = range(n + 1), (1, 20, 3, 400, 1, 20, 3)
        totals = [sum(masses[i : i + n + 1]) for i in range(m)]
        priors: tuple[Prior, ...] = tuple(
            {k + F(8 + 3 * i, 32): F(masses[k + i], totals[i]) for k in cells} for i in range(m)
        )
        quantiles = tuple(F(i + 1, m + 1) for i in range(m))
        for adaptation in ("conditional", "edge"):
            z = (F(1, 3),) * m
            yield Grid(n), Algorithm(quantiles, priors, z, arity=arity, adaptation=adaptation)


def _keywords(algorithm: Algorithm) -> dict[str, Any]:
    """The arguments of `pq.release` for an exact instance: every mechanism runs at -2 log z."""
    m = len(algorithm.quantiles)
    levels, node = (1, m) if algorithm.arity > m else (m.bit_length(), 1)
    return {
        "epsilon": -2 * math.log(algorithm.z[0]) * levels * node,
        "priors": [spread(prior) for prior in algorithm.priors],
        "mechanism": "tree",
        "calibration": "paper",
        "adaptation": algorithm.adaptation,
        "arity": algorithm.arity,
    }


def _other(**changed: Any) -> Callable[..., float]:
    """The law of a release with other arguments."""
    return lambda *args, **named: log_density(*args, **{**named, **changed})


def _unsorted(x: Any, values: Any, quantiles: Any, **named: Any) -> float:
    """The values handed back in the opposite order."""
    return log_density(x, values[::-1], quantiles, **named)


@check(
    "alg:quantiles",
    "text:exponential-mechanism",
    "text:two-step-sampling",
    "text:outside-mass",
    "text:edge-mass",
    "step:multiple-linearity",
    code=log_density,
    rejects=[_other(calibration="sharp"), _other(adaptation="conditional"), _other(adaptation="edge"), _unsorted],
)
def check_law_in_package(subject: Callable[..., float] = log_density) -> str:
    """The density of a release is that of Algorithm 2 in fractions, outcome by outcome: atoms spread over pieces."""
    cases = 0
    for data, algorithm in _instances():
        x, keywords = column(data), _keywords(algorithm)
        for outputs, probability in algorithm.law(data).items():
            values = [float(o) for o in outputs]
            found = subject(x, values, algorithm.quantiles, **keywords) + log_width(outputs)
            assert math.isclose(found, float(log_ball(probability)), abs_tol=1e-9), (algorithm, outputs)
            cases += 1
    return f"pq.log_density is the exact law of Algorithm 2 for {cases} outcomes, both adaptations"


def _tells(empty: Callable[[float, list[float]], float]) -> Callable[..., float]:
    """The law of a release whose last node, where its prior has no mass, returns another output if it has no records
    than if it has some."""

    def density(x: Any, values: Any, quantiles: Any, **named: Any) -> float:
        root = values[-2]
        chosen = root if max(x) > root else empty(root, x)
        return log_density(x, [*values[:-1], root], quantiles, **named) if values[-1] == chosen else -math.inf

    return density


@check(
    "alg:quantiles",
    "text:tree-privacy",
    code=(log_density, release),
    rejects=[_tells(lambda root, x: root + 1), _tells(lambda root, x: root + 0.5), _tells(lambda root, x: 0.5)],
)
def check_no_mass(subject: Callable[..., float] = log_density) -> str:
    """Where the prior has no mass between a node's edges the output is fixed by the edges and that prior: the same with
    and without records, and the loss stays within epsilon. Conditional adaptation; the children's priors lie on the
    wrong side of every output of the root."""
    right, root, left, epsilon = pq.Uniform(2, 3), pq.Uniform(0, 0.3), pq.Uniform(-1, -0.5), 2.0
    columns = ((0.1, 0.5), (0.1,)), ((0.1, 0.2, 0.25), (0.1, 0.2)), ((0.2, 0.25), (0.25,)), ((-1.0, 0.6), (0.6,))
    worst = 0.0
    for priors, (more, less) in itertools.product(([root, left], [right, root, left]), columns):
        m = len(priors)
        quantiles = [F(i + 1, m + 1) for i in range(m)]
        named: dict[str, Any] = {"epsilon": epsilon, "priors": priors, "mechanism": "tree", "adaptation": "conditional"}
        for place in (0.05, 0.15, 0.22, 0.28):
            others = place - 1, place - 0.5, place, place + 0.5, place + 1, 0.5, 2.0, -0.5
            heads: list[tuple[float, ...]] = [(other,) for other in others] if m == 3 else [()]
            vectors = [[*head, place, tail] for head, tail in itertools.product(heads, others)]
            laws = [[subject(list(x), vector, quantiles, **named) for vector in vectors] for x in (more, less)]
            possible = [
                [vector for vector, value in zip(vectors, law, strict=True) if value > -math.inf] for law in laws
            ]
            assert possible[0] == possible[1] == [[place] * m], (more, less, place, possible)
            loss = abs(max(laws[0]) - max(laws[1]))
            assert loss <= epsilon * (1 + 1e-12), (more, less, place, loss)
            worst = max(worst, loss)
        for seed in range(3):
            values = [release(x, quantiles, rng=[43, seed], **named).values for x in (more, less)]
            assert all(len(set(found)) == 1 for found in values), "as the density says"
    assert worst > 0
    return (
        "no mass between the edges: one output, the edge, with and without records; "
        f"largest loss {worst / epsilon:.2f} epsilon"
    )


def _shape(node: Any) -> Any:
    """Indices and children of a node, theirs or ours."""
    if node is None:
        return None
    children = tuple(map(_shape, node.children))
    return tuple(getattr(node, "indices", None) or node.members), children if any(children) else ()


@check(
    "alg:quantiles",
    "text:mechanisms-per-record",
    "step:binary-edges",
    "step:kary-edges",
    code=plan,
    rejects=[
        lambda quantiles, arity: plan(quantiles, epsilon=1, arity=arity + 1),
        lambda quantiles, arity: plan(quantiles[::2] or quantiles, epsilon=1, arity=arity),
    ],
)
def check_plan_in_package(
    subject: Callable[..., Any] = lambda quantiles, arity: plan(quantiles, epsilon=1, arity=arity),
) -> str:
    """`pq.plan` builds the tree of Algorithm 2's index arithmetic, and each of its paths spends epsilon exactly."""
    for m, arity in itertools.product(range(1, 64), (2, 3, 4, 7)):
        found = subject([F(i, m + 1) for i in range(1, m + 1)], arity)
        assert _shape(found.root) == _shape(build(range(m), arity)), (m, arity)
        assert max(_path_budgets(found.root)) == 1, (m, arity)
    return "pq.plan is the tree of Algorithm 2 for m < 64 and four arities; no path spends more than epsilon"


def _path_budgets(node: Any) -> list[Fraction]:
    """What each path from a node down spends."""
    below = [total for child in node.children if child is not None for total in _path_budgets(child)]
    return [node.epsilon + total for total in below] or [node.epsilon]


def _frequencies(data: Grid, algorithm: Algorithm, trials: int, **changed: Any) -> Counter[tuple[Fraction, ...]]:
    """How often each atom's piece, or edge, comes out of seeded releases."""
    places = {o for prior in algorithm.priors for o in prior}
    found: Counter[tuple[Fraction, ...]] = Counter()
    for trial in range(trials):
        released = release(column(data), algorithm.quantiles, rng=[41, trial], **{**_keywords(algorithm), **changed})
        found[tuple(min(places, key=lambda o, v=v: abs(float(o) - v)) for v in released.values)] += 1
    return found


@check(
    "alg:quantiles",
    "text:tree-privacy",
    code=release,
    rejects=[{"calibration": "sharp", "epsilon": 8.0}, {"adaptation": "conditional"}, {"adaptation": "edge"}],
)
def check_release_in_package(subject: dict[str, Any] | None = None) -> str:
    """Seeded releases have the frequencies of Algorithm 2 in fractions; a right one fails with probability 1e-6."""
    trials, worst = 1500, 0.0
    for data, algorithm in _instances():
        if len(algorithm.quantiles) == 2:
            law, found = algorithm.law(data), _frequencies(data, algorithm, trials, **(subject or {}))
            limit = math.sqrt(math.log(2 * 2 * len(law) / 1e-6) / (2 * trials))  # Hoeffding, both adaptations
            assert set(found) <= set(law), "an outcome of probability zero"
            off = max(abs(found[o] / trials - float(p)) for o, p in law.items())
            assert off <= limit, (algorithm.adaptation, off, limit)
            worst = max(worst, off / limit)
    return f"{trials} seeded releases: frequencies within {worst:.2f} of Hoeffding's at 1e-6, both adaptations"


def _node_bound(
    bound: Callable[..., float],
    budget: float,
    edge: float,
    rounding: float,
    gamma: float,
    error: float,
    log_psi: float,
    epsilon: float,
    *,
    slack: float = 2.0,
    **named: Any,
) -> float:
    """A bound on one node's gap with its budget, its edges' errors and its slack times numbers."""
    return bound(gamma, edge * error, log_psi, budget * epsilon, slack=rounding * slack, **named)


def _of_small_budgets(bound: Callable[..., float], factor: float, *args: float, **named: Any) -> float:
    """A bound off by a factor where the node's budget is below a tenth."""
    return bound(*args, **named) * (factor if args[3] < 0.1 else 1)


BY_ONE_PERCENT = [tuple(by if i == j else 1.0 for j in range(3)) for i in range(3) for by in (0.99, 1.01)]


@check(
    "lem:empirical",
    "lem:prior",
    "eq:empirical-probability",
    "step:prior-inner",
    code=(lem_empirical, lem_prior),
    rejects=[
        (lambda *a, **k: lem_empirical(*a, version="paper"), lem_prior),
        (lem_empirical, lambda *a, **k: lem_prior(*a, version="paper")),
        (lambda *a, version="corrected", **k: lem_empirical(*a, **k), lem_prior),
        (lem_empirical, lambda *a, version="corrected", **k: lem_prior(*a, **k)),
        *((partial(_of_small_budgets, lem_empirical, by), lem_prior) for by in (0.99, 1.01)),
        *((lem_empirical, partial(_of_small_budgets, lem_prior, by)) for by in (0.99, 1.01)),
        (lem_empirical, lambda gamma, error, *a, **k: lem_prior(gamma, error / 2, *a, **k)),
        (lambda gamma, error, *a, **k: lem_empirical(gamma, 0.9 * error, *a, **k), lem_prior),
        (scaled(lem_empirical, 1.01), lem_prior),
        (lem_empirical, scaled(lem_prior, 1.01)),
        *((partial(_node_bound, lem_empirical, *by), lem_prior) for by in BY_ONE_PERCENT),
        *((lem_empirical, partial(_node_bound, lem_prior, *by)) for by in BY_ONE_PERCENT),
    ],
)
def check_nodes_in_package(subject: tuple[Callable[..., float], ...] = (lem_empirical, lem_prior)) -> str:
    """Both bounds on one node's gap given its edges, as the package computes them, against exact tails. Below one, each
    is reached by nodes made for it, and so is no smaller with another slack, edge error or budget."""
    cases, attaining = 0, list(_attaining_nodes())
    closest = [[0.0, 0.0] for _ in attaining]
    for i, (data, levels, prior, edges, z) in enumerate([*attaining, *_small_nodes(), *_shifted_nodes()]):
        for gamma, tail, error, slack, logs in _node_tails(data, levels, prior, edges, z):
            for side, bound in enumerate(subject):
                limit = bound(gamma, error, logs[side], -2 * math.log(z), slack=slack)
                assert tail <= limit * (1 + 1e-9), (side, data, levels, edges, gamma)
                if i < len(attaining) and 0 < limit < 1:
                    closest[i][side] = max(closest[i][side], tail / limit)
            cases += 1
    for epsilon, gamma, error, slack in itertools.product(
        (1e-3, 0.7, 40.0), (0, 20, 300), (0.0, 7.25), (0.0, 1.5, 2.0)
    ):
        for side, (bound, twice) in enumerate(zip(subject, (1, 2), strict=True)):
            exponent = ball(F(epsilon) / 2 * (twice * (F(error) + F(slack)) - gamma)) + ball(F(3))  # of a log Psi of -3
            wanted = min(1.0, float(exponent.exp()))
            found = bound(gamma, error, -3.0, epsilon, slack=slack)
            assert math.isclose(found, wanted, rel_tol=1e-9), (side, epsilon, gamma, error, slack)
            printed = bound(gamma, error, -3.0, epsilon, slack=slack, version="paper")
            assert printed == bound(gamma, error, -3.0, epsilon, slack=0.0), "as printed there is no slack"
            assert slack != 2.0 or found == bound(gamma, error, -3.0, epsilon), "which is 2 if nothing is said"
    assert min(one for one, _ in closest) > 0.995, closest
    assert min(two for _, two in closest[1::2]) > 0.995, closest
    return f"lem:empirical and lem:prior in the package: {cases} exact tails, each bound reached below one"


_NodeCase = tuple[Grid, tuple[Fraction, ...], Prior, tuple[Position, Position], Fraction]


def _small_nodes() -> Iterator[_NodeCase]:
    """Every node between two finite edges that the small instances have."""
    for data, quantiles, priors, z in node_cases():
        for lo, i, hi in itertools.combinations(range(len(quantiles)), 3):
            for edges in edge_pairs(priors[lo], priors[hi]):
                if -math.inf not in edges and math.inf not in edges:
                    yield data, (quantiles[lo], quantiles[i], quantiles[hi]), priors[i], edges, z


def _shifted_nodes() -> Iterator[_NodeCase]:
    """Both edges off by as much the same way; half of the prior lies near the quantile, and half nearer to the
    shifted target."""
    for off, near in itertools.product((10, 30), (0, 5)):
        edges = 100 + off + F(1, 4), 300 + off + F(3, 4)
        far = 200 + 2 * off + near - 1
        prior = {200 - near + F(1, 2): F(1, 2), far + F(1, 2): F(1, 2)}
        yield Grid(400), (F(1, 4), F(1, 2), F(3, 4)), prior, edges, F(1, 10)


def _attaining_nodes() -> Iterator[_NodeCase]:
    """Edges that attain the slack, and two nodes for each: nearly all of the prior one rank from the node's target, on
    which is the rest; and as far from it as the data's target, and a rank more, with the rest on that.

    The first reaches lem:empirical, the second lem:prior too.
    """
    for relative in (F(1, 2), F(1, 3), F(2, 3), F(1, 4), F(3, 5)):
        d, z, rest = relative.denominator, F(1, 10**6), F(1, 1000)
        found = witness(relative, lem_error(relative))
        assert found is not None, f"no data attain the slack at {relative}"
        n, lo, hi, below, above = found
        hi, above = hi + F(20 * d, n), above + 20 * d  # more room, with the same floors
        levels = lo, lo + relative * (hi - lo), hi
        rank, target = math.floor(levels[1] * n), below + math.floor(relative * (above - below))
        assert below < target < rank < above and 2 * target - rank - 1 > below
        for near, far in ((target, target - 1), (rank, 2 * target - rank - 1)):
            prior = {far + F(3, 4): 1 - rest, near + F(3, 4): rest}
            yield Grid(n), levels, prior, (below + F(1, 2), above + F(1, 2)), z


def _node_tails(
    data: Grid, levels: tuple[Fraction, ...], prior: Prior, edges: tuple[Position, Position], z: Fraction
) -> Iterator[tuple[int, float, float, float, tuple[float, float]]]:
    """gamma, exact tail, weighted edge error, slack, and the logs of the restricted and of the original Psi."""
    lo, q, hi = levels
    relative, view = (q - lo) / (hi - lo), Restricted(data, *edges)
    error = (1 - relative) * gap(data, lo, edges[0]) + relative * gap(data, hi, edges[1])
    restricted = adapt(prior, *edges, "edge")
    law, target = mechanism(view, relative, restricted, z), math.floor(relative * view.size)
    inner = sum(mass * z ** abs(view.below(o) - target) for o, mass in restricted.items())
    logs = float(log_ball(inner)), float(log_ball(psi(data, q, prior, z)))
    for gamma in range(1, data.size + 1):
        tail = sum(p for o, p in law.items() if gap(data, q, o) >= gamma)
        yield gamma, float(tail), float(error), float(lem_error(relative)), logs
