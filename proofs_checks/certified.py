"""Counterexamples to statements about learning, in balls: what a rounding error could hide is ruled out.

In each check the printed statement is the mutant; what it is checked for is the corrected one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from flint import arb

from proofs_checks.exact import ball

F = Fraction
HALF = F(1, 2)


def log(value: arb | int | Fraction) -> arb:
    """Natural logarithm of a positive number, in a ball."""
    return (value if isinstance(value, arb) else ball(value)).log()


def normal(x: arb) -> arb:
    """Standard normal distribution function."""
    return (-x / arb(2).sqrt()).erfc() / 2


def gaussian_delta(epsilon: arb, multiplier: arb) -> arb:
    """Exact delta of Gaussian noise that is a multiple of the sensitivity."""
    half, shift = 1 / (2 * multiplier), epsilon * multiplier
    return normal(half - shift) - epsilon.exp() * normal(-half - shift)


def corrected_noise(epsilon: arb, odds: arb) -> arb:
    """Multiplier of ours, odds = log(1/delta)."""
    return ((odds + epsilon).sqrt() + odds.sqrt()) / (arb(2).sqrt() * epsilon)


def printed_noise(epsilon: arb, odds: arb) -> arb:
    """Multiplier as printed."""
    return (2 * odds).sqrt() / epsilon


def joint(multiplier: arb) -> arb:
    """Multiplier of both runs of thm:sequential together, for a record that turns v's gradient round and moves phi's.

    Records R - 2w, R - w, R; one more below them moves the optimal interval from (R - 2w, R - w] to (R - w, R], and
    theta/phi = R - w is an end of both.  There the derivative in theta is 1 and -1, and that in phi is -c - h coth(h
    phi) and c - h coth(h phi), c the middle and h = w/2: they differ by 2 and by 2 (R - w), where the noise is made for
    2 and for 2 (R + sigma_max).  Here R = 1000 sigma_max and w = sigma_max/100.
    """
    radius, width = F(1000), F(1, 100)
    h = ball(width / 2)
    steep = h * h.cosh() / h.sinh()
    moved = (ball(radius - width / 2) - steep) - (-ball(radius - width * F(3, 2)) - steep)
    share = moved / (2 * ball(radius + 1))
    return multiplier / (1 + share**2).sqrt()


def check_noise(subject: Callable[[arb, arb], arb] = corrected_noise) -> str:
    """thm:dpftrl/privacy and thm:sequential/privacy at delta' = 10^-6: one run at eps' = 10, two runs at eps' = 50."""
    delta = ball(F(1, 10**6))
    for epsilon in (F(1), F(10), F(20)):
        one = gaussian_delta(ball(epsilon), subject(ball(epsilon), log(10**6)))
        assert one < delta, (epsilon, one)
    for epsilon in (F(1), F(50)):
        both = subject(ball(epsilon / 2), log(2 * 10**6)) / arb(2).sqrt()  # at most, whatever the record does
        assert gaussian_delta(ball(epsilon), both) < delta, epsilon
        assert both < joint(subject(ball(epsilon / 2), log(2 * 10**6)))
    # the noise in the printed regret is that of one Lipschitz constant, half of the sensitivity: eps' = 1 is too much
    halved = joint(printed_noise(ball(HALF), log(2 * 10**6)) / 2)
    assert gaussian_delta(arb(1), halved) > delta
    one = gaussian_delta(arb(10), printed_noise(arb(10), log(10**6)))
    two = gaussian_delta(arb(50), joint(printed_noise(arb(25), log(2 * 10**6))))
    assert one > delta
    assert two > delta
    return (
        f"printed sigma, delta' = 1e-6: delta {float(one):.3g} (one run at 10), {float(two):.3g} (two at 50), in balls"
    )


def one_step_regret(reach: Fraction, half: Fraction) -> arb:
    """Regret of one step from zero weights: data at a distance of `reach` scales, an interval of 2 `half` scales."""
    h = ball(half)
    return ball(reach) - log(h.sinh() / (1 - (-h).exp()))


def corrected_step(d: int, f: Fraction, scale: Fraction, epsilon: Fraction, beta: Fraction) -> arb:
    """thm:sequential as corrected at T = 1, m = 1, B = 1, one scale: no noise enters."""
    return arb(2).sqrt() * ball(f * d / scale)


def printed_step(d: int, f: Fraction, scale: Fraction, epsilon: Fraction, beta: Fraction) -> arb:
    """thm:sequential as printed, delta' = 10^-6."""
    noise = 8 / ball(epsilon) * (2 * d * log(1 / beta) * log(2 * 10**6)).sqrt()
    return ball((f + 1 + scale) / scale) * (d * (4 + noise)).sqrt()


def simplified_step(d: int, f: Fraction, scale: Fraction, epsilon: Fraction, beta: Fraction) -> arb:
    """The simplified regret for small eps', printed, with the corrected d^(5/4) for d^(3/4): the 1 is dropped."""
    inside = (2 * log(1 / beta) * log(2 * 10**6)).sqrt() / ball(epsilon)
    return 4 / ball(scale) * (ball(f) * ball(d) ** ball(F(5, 4)) + 1 + ball(scale)) * inside.sqrt()


def check_sequential_step(subject: Callable[..., arb] = corrected_step) -> str:
    """thm:sequential at T = 1: d = 6000 features of size 100, scale 1/100; beta' close to 1 for the simplified form."""
    cases = (
        (6000, F(100), F(1, 100), F(1), F(1, 10)),
        (400, F(100), F(1, 100), F(8), HALF),
        (1, F(1), F(1), F(1), 1 - F(1, 10**7)),
    )
    for case in cases:
        regret = one_step_regret(case[0] * case[1] / case[2], F(1, 100))
        assert regret < subject(*case), case
    regret = one_step_regret(6000 * F(100) * 100, F(1, 100))
    assert regret > printed_step(*cases[0])
    assert one_step_regret(F(1), F(1, 100)) > simplified_step(*cases[2])
    return f"T = 1, d = 6000: regret {float(regret):.4g}, printed bound {float(printed_step(*cases[0])):.4g} (balls)"


def data_range(b: Fraction, radius: Fraction, scale: Fraction) -> Fraction:
    """Corrected: R + sigma_max."""
    return radius + scale


def check_range(subject: Callable[[Fraction, Fraction, Fraction], Fraction] = data_range) -> str:
    """|d U/d phi| outside an interval (R - w, R] at theta = 0, phi = 1/sigma: R - w/2 - (w/2) coth(w/(2 sigma))."""
    for b, radius, scale in ((F(1), F(100), F(1)), (F(50), F(2), F(1, 10))):
        width = F(1, 10**4)
        h = ball(width / 2 / scale)
        slope = ball(radius - width / 2) - ball(width / 2) * h.cosh() / h.sinh()
        assert slope < ball(subject(b, radius, scale)), (b, radius, scale)
        assert slope > ball(radius - scale - width)
    return "data in [-R, R]: the derivative in phi reaches R - sigma_max, whatever B is (balls)"


# ---- thm:pubpri ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fit:
    """Bound and step size for theta of thm:pubpri: m = 1, one scale sigma, data in [-B, B], TV_q = 0, beta' = 1/20."""

    bound: Callable[[int, int, Fraction, Fraction, Fraction], arb]
    step: Callable[[int, Fraction, Fraction], arb]


def corrected_bound(size: int, n: int, b: Fraction, sigma: Fraction, kappa: Fraction) -> arb:
    """As corrected; nothing in it has a unit."""
    steps = size // n
    largest = ball(2 * b / sigma) + log(4 * kappa * n**2 * steps * sigma * 20)
    root = (2 * log(80) / steps).sqrt()
    return ball(b / sigma) / arb(steps).sqrt() + largest * root + (largest + ball(F(3, 2))) / (20 * steps)


def printed_bound(size: int, n: int, b: Fraction, sigma: Fraction, kappa: Fraction) -> arb:
    """As printed."""
    part = F(n + 1, size)
    inside = ball(2 * kappa * (n + 1) * size * 20) * (2 * ball(sigma)).sqrt()
    spread = ball(4 * b / sigma) + log(4 * kappa * (n + 1) * size * sigma * 20)
    descent = ball(b + 4 * b * sigma + sigma**2) * ball(part).sqrt()
    return (
        descent
        + 2 * spread * (2 * ball(part) * log(80)).sqrt()
        + ball(part / 20) * (3 + ball(4 * b / sigma) + 4 * log(inside))
    )


CORRECTED = Fit(corrected_bound, lambda steps, b, sigma: ball(b / sigma) / arb(steps).sqrt())
PRINTED = Fit(printed_bound, lambda steps, b, sigma: ball(b) / arb(steps).sqrt())
MIXED = Fit(corrected_bound, PRINTED.step)


def check_fit(subject: Fit = CORRECTED) -> str:
    """Data within sigma/10 of 5 sigma, B = 10 sigma, n = 2, N = 10^8: descent from 0 moves at most T times its step.

    Each loss at theta is at least 5 - 1/10 - theta, less log sinh u, and at the best location at most 1/10 less it.
    """
    size, n = 10**8, 2
    for sigma in (F(1, 10**9), F(1)):
        b, kappa = 10 * sigma, F(5) / sigma
        excess = ball(F(48, 10)) - (size // n) * subject.step(size // n, b, sigma)
        assert excess < subject.bound(size, n, b, sigma, kappa), f"sigma = {sigma}: excess {float(excess):.3f}"
        other = subject.bound(size, n, 1000 * b, 1000 * sigma, kappa / 1000)
        assert abs(other - subject.bound(size, n, b, sigma, kappa)) < ball(F(1, 10**30)), "changes with the unit"
    sigma = F(1, 10**9)
    paper = printed_bound(size, n, 10 * sigma, sigma, 5 / sigma)
    assert ball(F(479, 100)) > paper
    assert ball(F(1, 10**3)) > (size // n) * PRINTED.step(size // n, 10 * sigma, sigma)
    return f"thm:pubpri as printed, sigma = 10^-9: excess above 4.79, bound {float(paper):.3f} (balls)"


def integral(scale: arb, low: arb, high: arb, width: arb) -> arb:
    """Of log(scale/y) over the density 2 (w - y)/w^2 of the distance of two uniform records on (0, w)."""

    def primitive(y: arb) -> arb:
        if y == 0:
            return arb(0)
        flat = width * y - y * y / 2
        return flat * (scale / y).log() + width * y - y * y / 4

    return 2 / width**2 * (primitive(high) - primitive(low))


def check_narrow(subject: int = 2) -> str:
    """thm:pubpri/lost-square: both losses are at least log(2 sigma/psi_z), so log(1/psi_z) is needed twice."""
    short = 0
    for width, share in ((HALF, F(3, 10)), (F(1, 10**6), F(1, 20)), (F(1), F(1, 20))):
        w, cut, sigma = ball(width), ball(width * share), ball(width * 10**6)
        rare = 2 * ball(share) - ball(share) ** 2
        both = 2 * rare / (1 - rare) * integral(2 * sigma, cut, w, w) + 2 * integral(2 * sigma, arb(0), cut, w)
        first = 2 * rare * (ball(F(4, 10**6)) + (4 * sigma**2 / cut).log())
        once = integral(arb(1), arb(0), cut, w)
        assert both < first + subject * once, (width, share)
        short += bool(both > first + once)
    assert short == 3
    return "second integral of thm:pubpri: above the printed line for three laws of two uniform records (balls)"


# ---- cor:quantile-regret ---------------------------------------------------------------------------------------------


def corrected_cells(steps: int, x: int) -> arb:
    """d of item 2 for V (b - a)^3 / psi = 1: sqrt(sqrt(T/X))."""
    return ball(F(steps, x)).sqrt().sqrt()


def printed_cells(steps: int, x: int) -> arb:
    """As printed: sqrt(sqrt(X T))."""
    return arb(x * steps).sqrt().sqrt()


def check_settings(subject: Callable[[int, int], arb] = corrected_cells) -> str:
    """Item 2 of cor:quantile-regret: T/d + d sqrt(X T) against the claim X^(1/4) T^(3/4), as X grows."""
    shares: Mapping[int, arb] = {
        x: (10**28 / subject(10**28, x) + subject(10**28, x) * arb(x * 10**28).sqrt())
        / (arb(x).sqrt().sqrt() * ball(10**21))
        for x in (1, 10**4, 10**8)
    }
    assert all(share < 3 for share in shares.values()), {x: float(share) for x, share in shares.items()}
    worst = (printed_cells(10**28, 10**8) * arb(10**36).sqrt()) / (arb(100) * ball(10**21))
    assert worst > 9999
    return f"cor:quantile-regret, item 2: with the printed d {float(worst):.0f} times the claim at X = 10^8 (balls)"
