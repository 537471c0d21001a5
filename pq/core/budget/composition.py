"""Privacy of many releases about the same people: one accounting, for releases, sequences and ledgers (Section 5.3).

Each mechanism of a plan that spends `epsilon_i` has more than `epsilon_i`-differential privacy: its privacy loss on any
pair of neighbours lies in an interval of width `epsilon_i` (*bounded range*; Durfee and Rogers 2019), since the utility
of every output moves by something between `-D` and `D` and the score is `epsilon_i / (2 D)` times the utility. A
mechanism of range `epsilon_i` is `epsilon_i^2 / 8`-zCDP, by Hoeffding's lemma (Cesar and Rogers 2021), a quarter of
what pure privacy alone gives. Such costs add up along a path of a plan and over releases, adaptive ones too. A path's
budgets sum to epsilon, so that its squares sum to at most `epsilon^2`: a whole release costs at most `epsilon^2 / 8`.

What is only known to be epsilon-private costs `epsilon^2 / 2`, and what is (epsilon, delta)-private that and its delta
(Bun and Steinke 2016). A total of rho is (epsilon, delta)-differential privacy for every delta at the epsilon that
`zcdp_epsilon` gives; for many releases that grows like a square root instead of linearly.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from pq.core.choices import check_choice
from pq.core.exact import LARGEST_BUDGET, briefly, decimal_fraction
from pq.core.plan import Plan

PrivacyKind = Literal["range", "pure"]
_SQUARES = {"range": Fraction(1, 8), "pure": Fraction(1, 2)}  # rho over epsilon^2
_ROUNDING = 1e-12  # more than the conversion is off, relative
_LEAST = 1e-300  # below, floats have fewer digits than the conversion needs
_HUGE, _FARTHEST = 1e300, 690.0  # of slopes, and of the log of alpha - 1, where it is sought


@dataclass(frozen=True)
class Cost:
    """What something costs a person: it is (epsilon, delta)-private, and rho-zCDP but for the same delta.

    epsilon: exact, in nats. delta: exact, 0 for pure privacy. rho: exact, in nats. Costs of mechanisms on the same
    people add up in all three, also if later ones are chosen by what earlier ones gave.

    >>> Cost.of(0.5, "range") + Cost.of(1)
    Cost(epsilon=Fraction(3, 2), delta=Fraction(0, 1), rho=Fraction(17, 32))
    """

    epsilon: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)
    rho: Fraction = Fraction(0)

    @classmethod
    def of(cls, epsilon: Any, kind: PrivacyKind = "pure", *, delta: Any = 0, rho: Any = None) -> Cost:
        """The cost of one mechanism.

        epsilon: positive and at most 1e300. kind: "range" for one exponential mechanism, or several on one path of a
        plan, whose ranges sum to epsilon; "pure" for what is only known to be epsilon-private. delta: in [0, 1). rho:
        if a smaller one than the kind's is known. Raises `TypeError` or `ValueError` naming the argument.
        """
        check_choice(kind, PrivacyKind, "kind")
        budget, chance = decimal_fraction(epsilon, "epsilon"), decimal_fraction(delta, "delta")
        if budget <= 0:
            raise ValueError(f"epsilon must be positive, got {briefly(epsilon)}")
        if budget > LARGEST_BUDGET:
            raise ValueError(f"epsilon must be at most {float(LARGEST_BUDGET):g}")
        if not 0 <= chance < 1:
            raise ValueError(f"delta must lie in [0, 1), got {briefly(delta)}")
        least = budget**2 * _SQUARES[kind]
        if rho is not None:
            known = decimal_fraction(rho, "rho")
            if known <= 0:
                raise ValueError(f"rho must be positive, got {briefly(rho)}")
            least = min(least, known)
        return cls(budget, chance, least)

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.epsilon + other.epsilon, self.delta + other.delta, self.rho + other.rho)

    def __mul__(self, times: int) -> Cost:
        return Cost(self.epsilon * times, self.delta * times, self.rho * times)

    def epsilon_at(self, delta: Any = 0) -> Fraction | float:
        """The least epsilon known for which this is (epsilon, delta)-private: the sum or what `zcdp_epsilon` gives.

        delta: in [0, 1). Infinite where it does not even cover the deltas that were spent.

        >>> round(float((Cost.of(0.1, "range") * 365).epsilon_at(1e-6)), 3)
        4.958
        """
        chance = decimal_fraction(delta, "delta")
        if not 0 <= chance < 1:
            raise ValueError(f"delta must lie in [0, 1), got {briefly(delta)}")
        if chance < self.delta:
            return math.inf
        left = float(chance - self.delta) * (1.0 - 1e-15)
        if left < _LEAST or not 0 < self.rho <= LARGEST_BUDGET:  # nothing that floats could convert
            return self.epsilon
        return min(self.epsilon, Fraction(zcdp_epsilon(self.rho, left)))

    def fits(self, epsilon: Fraction, delta: Fraction) -> bool:
        """Whether this is known to be (epsilon, delta)-private."""
        return self.delta <= delta and (self.epsilon <= epsilon or self.epsilon_at(delta) <= epsilon)


def plan_zcdp(plan: Plan) -> Fraction:
    """The zCDP cost rho of one release by a plan, in nats, exact: the largest sum of `epsilon_i^2 / 8` over a path.

    Under "replace" two paths are touched below the root, at half the budget each; that costs no more. A record that
    goes on to both sides of a tie with half its weight costs each side a quarter; that costs no more either. It is the
    cost of a *record*: a person who owns up to k records, for whom the plan's epsilon was divided by k, pays at most
    k^2 times that.
    Raises `ValueError` for an infinite budget.

    >>> import pq
    >>> plan_zcdp(pq.plan([0.5], epsilon=1)), plan_zcdp(pq.plan([0.25, 0.5, 0.75], epsilon=1))
    (Fraction(1, 8), Fraction(1, 16))
    """
    if not isinstance(plan.epsilon, Fraction):
        raise ValueError("plan must have a finite budget")
    return max(
        sum((Fraction(node.epsilon) ** 2 / len(node.indices) / 8 for node in path), Fraction(0))
        for path in plan.paths()
    )


def pure_total(epsilons: Iterable[Any]) -> Fraction:
    """Total epsilon of releases about the same people under pure differential privacy: the sum, exact.

    >>> pure_total([0.1] * 10)
    Fraction(1, 1)
    """
    budgets = [decimal_fraction(epsilon, "epsilons") for epsilon in epsilons]
    if any(budget < 0 for budget in budgets):
        raise ValueError("epsilons must not be negative")
    return sum(budgets, Fraction(0))


def zcdp_delta(rho: float | Fraction, epsilon: float) -> float:
    """The least delta that this conversion gives a rho-zCDP mechanism at `epsilon` (Canonne, Kamath and Steinke 2020).

    rho: total cost in nats, positive. epsilon: at least 0. Returns delta in [0, 1]: the least over alpha > 1 of
    `exp((alpha - 1)(alpha rho - epsilon)) / (alpha - 1) * (1 - 1 / alpha)^alpha`.

    >>> round(zcdp_delta(0.1, 1.5), 8)
    0.00035081
    """
    import scipy  # late, as in pq.core.priors.numerics

    rho = _float_above(rho, "rho")
    if not epsilon >= 0:
        raise ValueError(f"epsilon must not be negative, got {briefly(epsilon)}")
    epsilon = float(min(epsilon, sys.float_info.max))

    def slope(log_excess: float) -> float:
        """Of the logarithm of what is minimised, by t = alpha - 1; it increases with t."""
        excess = math.exp(log_excess)
        found = 2.0 * (rho * excess) + (rho - epsilon) - math.log1p(1.0 / excess)
        return min(max(found, -_HUGE), _HUGE)  # the search subtracts

    if slope(-_FARTHEST) >= 0.0:
        return 1.0
    least = _FARTHEST
    if slope(_FARTHEST) > 0.0:
        least = scipy.optimize.brentq(slope, -_FARTHEST, _FARTHEST, xtol=1e-13, maxiter=1000)
    t = math.exp(least)
    # log(t / (1 + t)^(1 + t) * t^t), without the difference of large numbers
    rest = t * least - (1.0 + t) * math.log1p(t) if t < 1.0 else -least - (1.0 + t) * math.log1p(1.0 / t)
    return math.exp(min(t * ((rho - epsilon) + t * rho) + rest, 0.0))


def zcdp_epsilon(rho: float | Fraction, delta: float) -> float:
    """The least epsilon at which rho-zCDP is known to give (epsilon, delta)-privacy, rounded up; see `zcdp_delta`.

    rho: total cost in nats, positive. delta: in (0, 1). Returns epsilon, at most `rho + 2 sqrt(rho log(1 / delta))`.

    >>> zcdp_epsilon(0.125, 1e-6) < 0.125 + 2 * (0.125 * math.log(1e6)) ** 0.5
    True
    """
    rho = max(_float_above(rho, "rho"), _LEAST)
    if not 0 < delta < 1:
        raise ValueError(f"delta must lie strictly between 0 and 1, got {briefly(delta)}")
    most = (rho + 2.0 * math.sqrt(rho) * math.sqrt(-math.log(delta))) * (1.0 + _ROUNDING)
    if zcdp_delta(rho, 0.0) <= delta:
        return 0.0
    low, high = 0.0, most  # delta is covered at `high`, always
    while high - low > _ROUNDING * high:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if zcdp_delta(rho, middle) <= delta else (middle, high)
    return high * (1.0 + _ROUNDING)


def releases_epsilon(plan: Plan, releases: int, delta: float) -> tuple[float, float]:
    """Total epsilon of `releases` releases by one plan about the same people: (pure, concentrated at `delta`).

    Either may be claimed; the smaller is better. Pure privacy has delta 0. Both are for people who own one record; with
    `max_contributions` k the pure total is k times as large and the rho behind the other k^2 times.

    >>> import pq
    >>> pure, concentrated = releases_epsilon(pq.plan([0.5], epsilon=0.1), 365, delta=1e-6)
    >>> round(pure, 3), round(concentrated, 3)
    (36.5, 4.958)
    """
    if isinstance(releases, bool) or not isinstance(releases, int) or releases < 1:
        raise ValueError(f"releases must be a positive integer, got {releases!r}")
    rho = plan_zcdp(plan) * releases
    return float(Fraction(plan.epsilon) * releases), zcdp_epsilon(rho, delta)


def _float_above(value: float | Fraction, name: str) -> float:
    """A positive number as a float that is at least as large."""
    number = float(value) if value < sys.float_info.max else math.inf
    if not 0 <= number < math.inf or not value > 0:
        raise ValueError(f"{name} must be positive and finite, got {briefly(value)}")
    return math.nextafter(number, math.inf) if isinstance(value, Fraction) else number
