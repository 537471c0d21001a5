"""Linear maps and scales beside the box that gradient descent runs in: one lies in the other, and is smaller."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import z3
from flint import arb

from proofs_checks.engine.registry import check
from proofs_checks.tools.exact import ball
from proofs_checks.tools.gaussian import log_of
from proofs_checks.tools.solver import follows

F = Fraction
HALF = Fraction(1, 2)

Box = Callable[[Any, Any, Any], tuple[Any, Any, Any]]


def product_box(bound: Any, least: Any, most: Any) -> tuple[Any, Any, Any]:
    """Reach of v, and the range of phi, for maps of coordinates in [-bound, bound] and scales from least to most."""
    return bound / least, 1 / most, 1 / least


def _box_of_reach(reach: Callable[[Any, Any, Any], Any]) -> Box:
    return lambda *known: (reach(*known), *product_box(*known)[1:])


@check(
    "thm:sequential/parameter-box",
    rejects=[
        _box_of_reach(lambda bound, least, most: bound / most),
        _box_of_reach(lambda bound, least, most: bound),
        *(_box_of_reach(lambda bound, least, most, by=by: by * bound / least) for by in (F(99, 100), F(101, 100))),
        lambda bound, least, most: (bound / least, 1 / most, F(99, 100) / least),
        lambda bound, least, most: (bound / least, F(101, 100) / most, 1 / least),
    ],
)
def check_box_holds(subject: Box = product_box) -> str:
    """(w, sigma) to (w/sigma, 1/sigma) goes into the box of (v, phi), the least that there is, and gives the same
    priors, so a maximum over (w, sigma) is at most that over the box; which holds locations out of reach of w, unless
    there is one scale only."""
    w, f, sigma, bound, least, most = z3.Reals("w f sigma B least most")
    known = (-bound <= w, w <= bound, least > 0, least <= sigma, sigma <= most)
    v, phi = z3.Reals("v phi")
    image = (v * sigma == w, phi * sigma == 1)
    # the ends of the box, as z3 numbers that the box defines
    ends = z3.Reals("reach low high")
    reach, low, high = subject(F(7), F(2), F(5))
    assert (reach, low, high) == (F(7, 2), F(1, 5), F(1, 2)), "an image of a corner (B, sigma) lies at each end"
    of_box = (ends[0] * least == bound, ends[1] * most == 1, ends[2] * least == 1)
    follows(*known, *image, *of_box, goal=z3.And(-ends[0] <= v, v <= ends[0]))
    follows(*known, *image, *of_box, goal=z3.And(ends[1] <= phi, phi <= ends[2]))
    follows(*known, *image, goal=v * f == (w * f) * phi)
    follows(*known, *of_box, least < most, bound > 0, goal=ends[0] > bound * ends[1])  # reach over the least phi
    for reached, narrow, wide in ((F(1), HALF, F(1)), (F(3), F(1, 10), F(4))):
        reach, low, _ = subject(reached, narrow, wide)
        assert reach / low > reached, "no location of a map"
    at = F(3), F(2), F(2)
    reach, low, high = subject(*at)
    assert (low, high) == (HALF, HALF) and reach / low == at[0], "with one scale it holds the images and no more"
    return "the image of (w, sigma) lies in the box of (v, phi) (z3), with the same locations; the box holds more"


def outside_slope(phi: arb, distance: arb, half: arb) -> arb:
    """Slope in phi of U at a location at this distance from the middle of an interval, outside: it grows with phi."""
    return distance - half * (half * phi).coth()


def least_of_box() -> arb:
    """Best loss of the box v <= 2, phi in [1, 2], f = 1/2, interval (0.99, 1.01].

    theta = v/2 is at most 1, the middle at phi = 1 and below it at every larger phi, and U falls up to the middle: so
    theta = 1. The mass there is concave in phi while 1/phi lies inside, with slope 0 at 1 + log(101/99)/2.
    """
    low, high = F(99, 100), F(101, 100)
    phi = 1 + log_of(high / low) / 2
    assert 1 < phi < ball(1 / low), "the location 1/phi lies inside"
    near, far = (1 - ball(high) * phi).exp(), (ball(low) * phi - 1).exp()
    assert abs(ball(high) * near - ball(low) * far) < ball(F(1, 10**60)), "the slope of the mass, twice"
    assert outside_slope(ball(1 / low), ball(1), ball((high - low) / 2)) > 0, "it rises where 1/phi leaves the interval"
    return -(1 - (near + far) / 2).log()


@check(
    "thm:sequential/parameter-box",
    rejects=[(F(1), HALF, F(1)), (F(3, 2), F(1), F(9, 10)), (F(2), F(21, 20), HALF)],
)
def check_parameter_box(subject: tuple[Fraction, Fraction, Fraction] = (F(2), F(1), HALF)) -> str:
    """The best loss of the box is less than that of (w, sigma) by 0.3, so that no equality holds: with balls.

    d = 1, f = 1/2, B = 1, sigma in [1/2, 1], optimal interval (0.99, 1.01]: locations w f reach 1/2, v f/phi reaches 1.
    subject: v and phi of a point of the box, and the largest location of a map.
    """
    v, phi, location = subject
    low, high, half = F(99, 100), F(101, 100), ball(F(1, 100))
    assert location == F(1) * HALF < low, "all locations of maps are below the interval, where a larger one is better"
    # U = phi (1 - location) - log sinh(phi / 100) is convex in phi and still falls at 2, the largest of 1 / sigma
    assert outside_slope(ball(F(2)), ball(1 - location), half) < 0
    true = ball(2 * (1 - location)) - (2 * half).sinh().log()
    assert abs(v) <= 2 and 1 <= phi <= 2 and low <= v * HALF / phi <= high, "in the box, with its location inside"
    near, far = (ball(phi * end - v * HALF) for end in (high, low))
    box = -(1 - ((-near).exp() + far.exp()) / 2).log()
    assert true > box + ball(F(3, 10)), (true, box)
    least = least_of_box()
    assert ball(F(4605, 1000)) < least <= box, "no point of the box has less"
    shown = [float(value.mid()) for value in (true, least)]
    assert [round(value, 2) for value in shown] == [4.91, 4.61], "as the row says"
    return f"best loss over (w, sigma) {shown[0]:.3f}, in the box {shown[1]:.3f}: '=' in the proof must be '<='"
