"""Steps of the proof of thm:pubpri for several quantiles, and details of the experiments."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from pq import Laplace, Uniform, log_psi
from proofs_checks.engine.registry import check
from proofs_checks.tools.laplace import stable_float

F = Fraction


def loss_limit(m: int, reach: float, scale: float, psi: float) -> float:
    """2B/sigma_min + log(2 m sigma_max/psi)."""
    return reach + math.log(2 * m * scale / psi)


@check(
    "thm:pubpri/loss-bound",
    rejects=[
        lambda m, reach, scale, psi: loss_limit(1, reach, scale, psi),
        *(lambda m, reach, scale, psi, by=by: loss_limit(m, by * reach, scale, psi) for by in (0.25, 0.99, 1.01)),
        *(lambda m, reach, scale, psi, by=by: loss_limit(m, reach, by * scale, psi) for by in (0.99, 1.01)),
        lambda m, reach, scale, psi: loss_limit(1, reach, scale, psi) + math.log(m) / 2,
    ],
)
def check_many_losses(subject: Callable[..., float] = loss_limit) -> str:
    """U of m quantiles <= max_i U_i + log m <= 2B/sigma_min + log(2 m sigma_max/psi_z)."""
    rng = np.random.default_rng(89)
    for _ in range(300):
        m, b = int(rng.integers(1, 10)), 10 ** rng.uniform(-2, 2)
        low = b * 10 ** rng.uniform(-1.5, 0)
        high = low * 10 ** rng.uniform(0, 2)
        data = np.sort(rng.uniform(-b, b, m + 5))
        psi = np.diff(data).min()
        scales = rng.uniform(low, high, m)
        places = rng.uniform(-b, b, m)
        triples = zip(places, scales, range(m), strict=True)
        losses = [stable_float(c / s, 1 / s, data[i], data[i + 1]) for c, s, i in triples]
        total = float(np.logaddexp.reduce(losses))
        assert total <= max(losses) + math.log(m) + 1e-9
        assert total <= subject(m, 2 * b / low, high, psi), (m, b, low)
    for m, b, scale in itertools.product((1, 9), (1e-6, 1.0, 30.0), (1.0, 4.0)):  # ranks of one narrow interval at B,
        psi = 1e-6 * min(b, scale)  # priors of one scale at -B
        loss = stable_float(-b / scale, 1 / scale, b - psi, b) + math.log(m)
        assert loss <= subject(m, 2 * b / scale, scale, psi) <= loss + 1e-5, (m, b, scale)
    return (
        "U of m quantiles <= 2B/sigma_min + log(2 m sigma_max/psi): 300 cases, attained by narrow intervals at an end"
    )


def _times(percent: int) -> Callable[..., Fraction]:
    """The integrals a little off."""
    return lambda laws, mine, best: F(percent, 100) * telescoped(laws, mine, best)


def _one_integral(place: int, percent: int) -> Callable[..., Fraction]:
    """One of the two integrals a little off."""

    def integrals(laws: Any, mine: Any, best: Any) -> Fraction:
        parts = [telescoped(laws[k : k + 2], mine, best) for k in range(2)]
        return sum(parts, F(0)) + F(percent - 100, 100) * parts[place]

    return integrals


def _one_loss(laws: Any, mine: Any, best: Any) -> Fraction:
    """The integrals with one of the two losses."""
    return sum(
        (u * abs(p - r) for one, two in pairwise(laws) for u, p, r in zip(best, one, two, strict=True)),
        F(0),
    )


Laws = Sequence[Sequence[Fraction]]


def telescoped(laws: Laws, mine: Sequence[Fraction], best: Sequence[Fraction]) -> Fraction:
    """Sums of both losses against |rho - rho'| and |rho' - rho'_psi|."""
    both = [a + b for a, b in zip(mine, best, strict=True)]
    return sum(
        (u * abs(p - r) for one, two in itertools.pairwise(laws) for u, p, r in zip(both, one, two, strict=True)), F(0)
    )


@check(
    "thm:pubpri/decomposition",
    rejects=[
        _one_loss,
        lambda laws, mine, best: F(0),
        *(_times(by) for by in (99, 101)),
        *(_one_integral(place, by) for place in (0, 1) for by in (0, 99, 101)),
    ],
)
def check_decomposition(subject: Callable[..., Fraction] = telescoped) -> str:
    """E_D U(mu') <= E_D U(mu*) + the two integrals + the error on the last law, exactly on finite laws."""
    rng = np.random.default_rng(97)
    for trial in range(300):
        laws = [[F(int(v), 60) for v in rng.multinomial(60, np.full(4, 0.25))] for _ in range(3)]
        mine, best = ([F(int(v), 10) for v in rng.integers(0, 11, 4)] for _ in range(2))
        if trial < 2:  # all of the change is between the first two laws, or between the last two
            laws = [[F(1), F(0), F(0), F(0)], *[[F(int(k == trial)), F(int(k != trial)), F(0), F(0)] for k in (1, 2)]]
            mine, best = [F(1), F(0), F(0), F(0)], [F(0), F(1), F(0), F(0)]
        excess = [sum(p * (a - b) for p, a, b in zip(law, mine, best, strict=True)) for law in laws]
        assert excess[0] <= subject(laws, mine, best) + excess[2], trial
        assert trial > 1 or excess[0] == subject(laws, mine, best) + excess[2], (
            "attained where one of them is always right"
        )
        first = sum((abs(a - b) * abs(p - r) for a, b, p, r in zip(mine, best, *laws[:2], strict=True)), F(0))
        sharper = first + telescoped(laws[1:], mine, best) + excess[2]
        assert excess[0] <= sharper <= telescoped(laws, mine, best) + excess[2], "with the difference in the first"
    return "thm:pubpri, decomposition: excess <= both integrals + error of the descent (300 exact cases)"


@check(
    "thm:pubpri/rejection",
    rejects=[
        lambda p, steps: p,
        lambda p, steps: p**steps,
        *(lambda p, steps, by=by: F(by, 100) * steps * p for by in (99, 101)),
    ],
)
def check_rejection(subject: Callable[[Fraction, int], Fraction] = lambda p, steps: steps * p) -> str:
    """Given that no block is narrow the blocks are independent draws of the conditional law; Pr(some is) <= T p."""
    law = {0: F(1, 10), 1: F(3, 10), 2: F(6, 10)}  # 0 is narrow
    for steps in (1, 2, 4):
        draws = {
            blocks: math.prod((law[b] for b in blocks), start=F(1)) for blocks in itertools.product(law, repeat=steps)
        }
        good = {blocks: p for blocks, p in draws.items() if 0 not in blocks}
        kept = sum(good.values())
        assert 1 - kept <= subject(law[0], steps), steps
        for blocks, p in good.items():
            assert p / kept == math.prod((law[b] / (1 - law[0]) for b in blocks), start=F(1))
    for p in (F(1, 10**6), F(1, 100)):
        assert 1 - (1 - p) ** 50 <= subject(p, 50)
    assert subject(F(1, 10**6), 50) <= F(1001, 1000) * (1 - (1 - F(1, 10**6)) ** 50), "no less for rare ones"
    for n, steps, kappa, beta in itertools.product((2, 5, 30), (1, 40), (F(1), F(7, 2)), (F(1, 20), F(1, 2))):
        psi = beta / (2 * kappa * n**2 * steps)  # the row's; of uniform records on a length of 1/kappa, in fractions:
        narrow = 1 - (1 - (n - 1) * kappa * psi) ** n
        assert narrow <= kappa * n**2 * psi, "thm:pubpri/separation"
        assert 1 - (1 - narrow) ** steps <= subject(kappa * n**2 * psi, steps) <= beta / 2 * F(1001, 1000), (n, steps)
    return "blocks given that none is narrow: independent draws of the conditional law; Pr(some narrow) <= T p (exact)"


@check("text:order-statistic-distance", rejects=[lambda part, whole: part == whole, lambda part, whole: part > whole])
def check_variation(subject: Callable[[Fraction, Fraction], bool] = lambda part, whole: part <= whole) -> str:
    """TV_q <= TV(D^n, D'^n), with room: laws that differ in the upper tail only, n = 3, lower two order statistics."""
    first = {1: F(1, 4), 2: F(1, 4), 3: F(1, 4), 4: F(1, 4), 5: F(0)}
    for moved in (F(k, 40) for k in range(1, 11)):
        second = {**first, 4: first[4] - moved, 5: moved}
        seen: dict[tuple[int, int], Fraction] = {}
        whole = F(0)
        for draw in itertools.product(first, repeat=3):
            gap = math.prod((first[v] for v in draw), start=F(1)) - math.prod((second[v] for v in draw), start=F(1))
            whole += abs(gap) / 2
            low, high, _ = sorted(draw)
            seen[low, high] = seen.get((low, high), F(0)) + gap
        part = sum(abs(v) for v in seen.values()) / 2
        assert subject(part, whole), (part, whole)
        assert part < whole / 3
    return f"TV_q <= TV(D^n, D'^n); all of an upper quarter moved: {float(part):.3f} against {float(whole):.3f} (exact)"


def draws_beside_a_fifth(far: float, left: float) -> list[np.ndarray]:
    """200 seeded columns of a thousand records: a fifth uniform in (-0.1, 0.1), the others in (far, far + 1), a part of
    which is mirrored to the left."""
    rng, columns = np.random.default_rng(101), []
    for _ in range(200):
        which, side, place = rng.random((3, 1000))
        outer = (place + far) * np.where(side < left, -1, 1)
        columns.append(np.sort(np.where(which < 0.2, 0.2 * place - 0.1, outer)))
    return columns


@check("text:order-statistic-distance", code=log_psi, rejects=[0.0, 0.25, 0.45])
def check_dissimilar_laws(subject: float = 0.5) -> str:
    """Two laws that have a fifth in common, in the middle, and the rest at 1 to 2 or at 3 to 4 on either side: TV_q of
    the median is below 1e-9, and the prior that is best for one of them is as good for the other. Another law, the rest
    of which lies on one side, makes the prior of the first useless.

    subject: the part of the rest that lies on the left.
    """
    n, rest = 1000, F(4, 5)
    tails = [
        sum((math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n // 2, n + 1)), F(0))
        for p in (rest * F(subject), rest * (1 - F(subject)))  # of x_500, or of x_501, among the rest
    ]
    assert sum(tails) < F(1, 10**9), "TV_q, as the row says"
    priors = [Laplace(0.0, scale) for scale in (0.0125, 0.05, 0.2, 0.8)]
    laws = [draws_beside_a_fifth(far, subject) for far in (1.0, 3.0)]
    losses = [[float(np.mean([-log_psi(x, 0.5, prior) for x in law])) for prior in priors] for law in laws]
    best = int(np.argmin(losses[0]))
    assert losses[1][best] == min(losses[1]) and math.isclose(losses[0][best], losses[1][best], rel_tol=1e-12)
    aside = draws_beside_a_fifth(1.0, 0.0)
    moved = [float(np.mean([-log_psi(x, 0.5, prior) for x in aside])) for prior in priors]
    assert moved[best] > min(moved) + 10, "as the row says: the median is elsewhere"
    return f"laws 4/5 apart with the same median intervals: one best prior, loss {losses[0][best]:.2f} under either"


def width_limit(m: int, reach: float, scale: float, width: float) -> float:
    """2B/sigma_min + log m + max(log 2, log(2 sigma_max/psi))."""
    return reach + math.log(m) + max(math.log(2), math.log(2 * scale / width))


def loss_of(data: Any, ranks: Sequence[int], priors: Sequence[Laplace]) -> float:
    """U of the package for quantiles of these ranks: the log-sum-exp of their losses."""
    pairs = zip(ranks, priors, strict=True)
    losses = [-log_psi(data, min((rank + 0.5) / len(data), 1.0), prior) for rank, prior in pairs]
    return float(np.logaddexp.reduce(losses))


@check(
    "thm:pubpri/loss-bound",
    code=(Laplace, log_psi),
    rejects=[
        loss_limit,
        lambda m, reach, scale, width: reach + math.log(2 * m),
        lambda m, reach, scale, width: reach + max(math.log(2), math.log(2 * m * scale / width)),
        lambda m, reach, scale, width: width_limit(1, reach, scale, width),
        *(lambda m, reach, scale, width, by=by: width_limit(m, by * reach, scale, width) for by in (0.99, 1.01)),
        *(lambda m, reach, scale, width, by=by: width_limit(m, reach, by * scale, width) for by in (0.99, 1.01)),
        *(
            lambda m, reach, scale, width, by=by: (
                reach + math.log(m) + max(by * math.log(2), math.log(2 * scale / width))
            )
            for by in (0.99, 1.01)
        ),
    ],
)
def check_end_ranks(subject: Callable[[int, float, float, float], float] = width_limit) -> str:
    """U <= 2B/sigma_min + log(2 m sigma_max/psi) fails at rank 0, where the interval is a tail that may weigh a half;
    with the larger last logarithm it holds for all ranks, and is attained by tails and by narrow intervals."""
    rng = np.random.default_rng(211)
    for _ in range(100):
        m, n, b = int(rng.integers(1, 5)), int(rng.integers(2, 6)), 10 ** rng.uniform(-1, 1)
        low = b * 10 ** rng.uniform(-1.5, 0.5)
        high = low * 10 ** rng.uniform(0, 1.5)
        data = np.sort(rng.uniform(-b, b, n)) if rng.random() < 0.5 else np.linspace(-b, b, n)
        priors = [Laplace(b * rng.choice([-1, 1, rng.uniform(-1, 1)]), rng.uniform(low, high)) for _ in range(m)]
        found = loss_of(data, [rng.choice([0, n]), *rng.integers(0, n + 1, m - 1)], priors)
        assert found <= subject(m, 2 * b / low, high, np.diff(data).min()) + 1e-9, (m, n, b, low, high)
    for m, b, low, times in itertools.product((1, 4), (1.0, 3.0), (0.1, 0.9), (1.0, 2.0)):
        reach, most = 2 * b / low, low * times  # most <= psi = 2 b
        tail = loss_of([-b, b], [0] * m, [Laplace(b, low)] * m)
        other = loss_of([-b, b], [2] * m, [Laplace(-b, low)] * m)
        assert abs(subject(m, reach, most, 2 * b) - tail) <= 1e-9 and abs(other - tail) <= 1e-9, (m, b, low)
        narrow = loss_of([b - 1e-6 * low, b], [1] * m, [Laplace(-b, low)] * m)
        assert abs(subject(m, reach, low, 1e-6 * low) - narrow) <= 1e-5, (m, b, low)
    two = loss_of([-1.0, 1.0], [0], [Laplace(1.0, 0.1)]), loss_limit(1, 20.0, 0.1, 2.0)
    assert [round(value, 2) for value in two] == [20.69, 17.70], "as the row says"
    return "U with tails: at most 2B/sigma_min + log m + max(log 2, log(2 sigma_max/psi)), attained at ranks 0, n"


@check(
    "text:q-dependent-range",
    code=Uniform,
    rejects=[lambda right, high: True, lambda right, high: right > high, lambda right, high: right < high],
)
def check_range_of_uniform(subject: Callable[[float, float], bool] = lambda right, high: right <= high) -> str:
    """A narrower range helps the uniform prior as long as the optimal interval lies inside it, and ruins it if not."""
    import pq

    data = np.array([100.0, 300.0, 500.0, 700.0, 900.0])
    for q, high in ((0.2, 600.0), (0.4, 600.0), (0.6, 700.0), (0.8, 950.0), (0.8, 650.0)):
        rank = pq.rank(q, 5)
        narrow, wide = (pq.log_psi(data, q, pq.Uniform(0, top)) for top in (high, 1e4))
        assert (narrow > wide) == subject(data[rank], high), (q, high)
    assert narrow == -math.inf and math.isclose(wide, math.log(0.02)), "as the row says of the last"
    return "a q-dependent range helps the uniform prior as long as it holds the optimal interval, and not at 650"


def mean_score(data: Sequence[int], rank: int, z: Fraction, low: int, high: int) -> Fraction:
    """Mean of z^gap, z = e^(-eps/2), over the places from low to high; z = 0 leaves the optimal interval."""
    cuts = [low, *(x for x in data if low < x < high), high]
    scores = (z ** abs(sum(x < right for x in data) - rank) * (right - left) for left, right in pairwise(cuts))
    return sum(scores, F(0)) / (high - low)


@check(
    "text:q-dependent-range",
    rejects=[
        lambda outside, whole: True,
        lambda outside, whole: outside == 0,
        lambda outside, whole: outside < 1,
        lambda outside, whole: outside < whole,
    ],
)
def check_range_at_epsilon(
    subject: Callable[[Fraction, Fraction], bool] = lambda outside, whole: outside <= whole,
) -> str:
    """Psi^(q,eps) of the uniform prior falls by no narrower range whose rest scores at most as much as the whole range,
    and by every other: exact, for seven columns and many ends on both sides. Without eps the rest scores 0 if it misses
    the optimal interval."""
    import pq

    columns = (
        (100, 300, 500, 700, 900),
        (9000, 9100, 9200),
        (1, 2, 3, 4),
        (10, 9990),
        (50,),
        (4000, 5000, 9999),
        (5025,),
    )
    for data, z in itertools.product(columns, (F(0), F(1, 10), F(1, 2), F(9, 10))):
        places = sorted({*data, *(x + 50 for x in data), 9950, 10_000})  # of 50 to 10,000 around 5025: level
        wide = [mean_score(data, rank, z, 0, 10_050) for rank in range(len(data) + 1)]
        for (rank, whole), low, high in itertools.product(enumerate(wide), (0, 50, data[0], data[-1] - 1), places):
            if low < high:
                cut = [ends for ends in ((0, low), (high, 10_050)) if ends[0] < ends[1]]
                rest = sum(((b - a) * mean_score(data, rank, z, a, b) for a, b in cut), F(0))
                outside, narrow = rest / sum(b - a for a, b in cut), mean_score(data, rank, z, low, high)
                assert (narrow >= whole) == subject(outside, whole), (data, z, rank, low, high)
                if z == 0 and rank < len(data) and low <= (data[rank - 1] if rank else 0) and data[rank] <= high:
                    assert outside == 0, "the optimal interval is kept"
    three, epsilon = np.array([9000.0, 9100.0, 9200.0]), 2 * math.log(10)
    found = [pq.log_psi(three, 0.67, pq.Uniform(0, top), epsilon) for top in (9200.0, 9300.0)]
    assert [round(math.exp(value), 4) for value in found] == [0.0217, 0.0226], "as the row says"
    exact = [mean_score((9000, 9100, 9200), 2, F(1, 10), 0, top) for top in (9200, 9300)]
    assert all(math.isclose(math.exp(one), two) for one, two in zip(found, exact, strict=True))
    return "a narrower range helps at eps iff what it leaves out scores no more than the whole; 9200 against 9300: not"
