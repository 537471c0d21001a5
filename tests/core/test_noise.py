"""The noise has exactly the law that it says: thresholds, digits and repeats against high precision, draws by counting.

Statistical tests have fixed seeds; a right sampler fails one with probability below 1e-6 over the seeds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy.stats import chi2

from pq.core import noise as module
from pq.core.noise import DiscreteLaplace, Source, random_uniforms, threshold

EPSILONS = [Fraction(1, 1000), Fraction(1, 10), Fraction(1, 3), Fraction(1), Fraction(27, 10), Fraction(9)]


def seeded(seed: int) -> Source:
    return np.random.default_rng(seed).bytes


def scripted(words: list[int]) -> Source:
    """A source that gives these words, one after another."""
    rest = iter(words)
    return lambda count: b"".join(next(rest).to_bytes(8, "little") for _ in range(count // 8))


@pytest.mark.parametrize("bits", [8, 64, 128, 320])
@pytest.mark.parametrize("plus", [0, 1])
def test_thresholds_are_the_whole_part(bits: int, plus: int) -> None:
    with mpmath.workdps(300):
        for exponent in [*EPSILONS, Fraction(1, 10**12), Fraction(63), Fraction(64), Fraction(200), Fraction(10**300)]:
            power = (
                mpmath.exp(mpmath.mpf(exponent.numerator) / exponent.denominator) if exponent < 10**6 else mpmath.inf
            )
            assert threshold(exponent, plus, bits) == int(mpmath.floor(mpmath.mpf(2) ** bits / (power + plus)))


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_digits_and_leftover_make_a_geometric_number(epsilon: Fraction) -> None:
    """P(G = k) from the digits' probabilities, to 40 digits of (1 - a) a^k."""
    noise = DiscreteLaplace(epsilon)
    with mpmath.workdps(60):
        e = mpmath.mpf(epsilon.numerator) / epsilon.denominator
        ones = [1 / (mpmath.exp(e * 2**i) + 1) for i in range(noise.digits)]
        whole = mpmath.exp(-e * 2**noise.digits)
        for k in [*range(20), 2**noise.digits - 1, 2**noise.digits, 3 * 2**noise.digits + 5]:
            high, low = divmod(k, 2**noise.digits)
            made = whole**high * (1 - whole)
            for i, one in enumerate(ones):
                made *= one if low >> i & 1 else 1 - one
            assert abs(made / ((1 - mpmath.exp(-e)) * mpmath.exp(-e * k)) - 1) < mpmath.mpf(10) ** -40


def test_a_word_on_its_threshold_is_decided_by_later_words() -> None:
    exponent = Fraction(1, 3)
    mark = threshold(exponent, 1, 64)
    following = threshold(exponent, 1, 128) - (mark << 64)
    last = threshold(exponent, 1, 192) - (threshold(exponent, 1, 128) << 64)
    cases = [
        ([mark - 1], True),
        ([mark + 1], False),
        ([mark, following - 1], True),
        ([mark, following + 1], False),
        ([mark, following, last - 1], True),
        ([mark, following, last + 1], False),
    ]
    for words, happens in cases:
        assert module._coins((exponent,), 1, 1, scripted(words)).tolist() == [[happens]]


def test_the_leftover_repeats() -> None:
    """At epsilon = 80 there are no digits; words of zero go on until they differ from e^-80 2^128."""
    noise = DiscreteLaplace(Fraction(80))
    mark = threshold(Fraction(80), 0, 128)
    assert noise.digits == 0 and 0 < mark < 2**64
    drawn = noise.draw(1, scripted([0, 5, mark - 1, 0, mark + 1]))  # first number: once more than zero; second: zero
    assert drawn.tolist() == [1]


def law(noise: DiscreteLaplace, k: int) -> float:
    return float(np.exp(noise.log_mass(k)))


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_log_masses_tails_and_variance(epsilon: Fraction) -> None:
    noise = DiscreteLaplace(epsilon)
    with mpmath.workdps(50):
        a = mpmath.exp(-mpmath.mpf(epsilon.numerator) / epsilon.denominator)
        for k in (0, 1, -1, 7, -300, 10**6):
            exact = mpmath.log((1 - a) / (1 + a)) + abs(k) * mpmath.log(a)
            assert float(noise.log_mass(k)) == pytest.approx(float(exact), rel=1e-13)
        for k in (1, 2, 50):
            assert noise.log_tail(k) == pytest.approx(float(mpmath.log(a**k / (1 + a))), rel=1e-13)
        assert noise.variance == pytest.approx(float(2 * a / (1 - a) ** 2), rel=1e-12)
    far = math.ceil(60 / epsilon)
    assert float(np.sum(np.exp(noise.log_mass(np.arange(-far, far + 1))))) == pytest.approx(1.0, abs=1e-11)


def statistic(noise: DiscreteLaplace, draws: np.ndarray) -> tuple[float, int]:
    """Chi-square of draws against the law, on numbers that are expected at least 20 times, and its degrees."""
    expected = {k: len(draws) * law(noise, k) for k in range(-(10**4), 10**4) if len(draws) * law(noise, k) >= 20.0}
    cells = np.array([*expected.values(), len(draws) - sum(expected.values())])
    counts = np.array([np.sum(draws == k) for k in expected])
    counts = np.append(counts, len(draws) - counts.sum())
    return float(np.sum((counts - cells) ** 2 / cells)), len(cells) - 1


def fits(noise: DiscreteLaplace, draws: np.ndarray) -> bool:
    value, degrees = statistic(noise, draws)
    return value < chi2.isf(1e-7, degrees)


def float_logarithm(noise: DiscreteLaplace, count: int, source: Source) -> np.ndarray:
    """The usual shortcut, one-sided in zero: a magnitude from a logarithm and a sign, so that zero comes out twice."""
    u, v = np.array(random_uniforms(count, source)), np.array(random_uniforms(count, source))
    return np.where(u < 0.5, -1, 1) * np.floor(-np.log(v) / noise.rate).astype(int)


def a_little_too_wide(noise: DiscreteLaplace, count: int, source: Source) -> np.ndarray:
    return DiscreteLaplace(Fraction(noise.epsilon) * Fraction(49, 50)).draw(count, source)


def one_digit_short(noise: DiscreteLaplace, count: int, source: Source) -> np.ndarray:
    numbers = noise._geometric(2 * count, source) & ~(1 << 2)
    return numbers[:count] - numbers[count:]


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(3)])
def test_draws_have_the_law(epsilon: Fraction) -> None:
    """Fails with probability 1e-7 for each epsilon over the seeds."""
    noise = DiscreteLaplace(epsilon)
    assert fits(noise, noise.draw(10**6, seeded(1)))


@pytest.mark.parametrize("mutant", [float_logarithm, a_little_too_wide, one_digit_short])
def test_wrong_samplers_are_caught(mutant: Callable[[DiscreteLaplace, int, Source], np.ndarray]) -> None:
    noise = DiscreteLaplace(Fraction(1))
    assert not fits(noise, mutant(noise, 10**6, seeded(1)))


def test_odd_budgets() -> None:
    assert DiscreteLaplace(math.inf).draw(3).tolist() == [0, 0, 0]
    assert DiscreteLaplace(math.inf).log_mass([0, 1]).tolist() == [0.0, -math.inf]
    assert DiscreteLaplace(Fraction(10**300)).draw(2, seeded(0)).tolist() == [0, 0]
    assert DiscreteLaplace(Fraction(10**300)).variance == 0.0
    wide = DiscreteLaplace(Fraction(1, 2**40)).draw(20000, seeded(2)).astype(float)
    assert np.std(wide) == pytest.approx(math.sqrt(2.0) * 2.0**40, rel=0.05)  # off by seven standard errors: 1e-11
    for epsilon in (Fraction(0), Fraction(-1), Fraction(1, 2**41), math.nan):
        with pytest.raises(ValueError, match="epsilon"):
            DiscreteLaplace(epsilon)


def test_uniforms_are_odd_multiples() -> None:
    drawn = random_uniforms(1000, seeded(0))
    assert all((u * 2.0**53) % 2.0 == 1.0 for u in drawn)
    assert random_uniforms(2, scripted([0, 2**64 - 1])) == [2.0**-53, 1.0 - 2.0**-53]
