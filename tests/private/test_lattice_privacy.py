"""Exact losses of margin laws over all neighbours on small lattices, and broken variants that they must show."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest

import pq
from pq.core.margin import zcdp_cost
from pq.core.scores import Target
from pq.core.sensitivity import rate, sensitivity
from pq.private.columns.cells import Lattice, Points
from pq.private.mechanisms.independent import Law
from pq.private.mechanisms.lattice import remainder, tie_tree
from pq.private.mechanisms.lattice.flip import log_chances
from pq.private.mechanisms.lattice.law import MarginLaw
from pq.private.mechanisms.lattice.record_distance import record_margins

Column = tuple[int, ...]
LogLaw = Callable[[Column], Any]
TOLERANCE = 1e-9  # relative, for rounding
HALF = Fraction(1, 2)
PARTS = 16  # of a record


def pairs_of_neighbours(values: int, most: int, adjacency: str) -> Iterator[tuple[Column, Column]]:
    """All pairs of columns of up to `most` records on 0, 1, ..."""
    for size in range(most + 1):
        for column in itertools.combinations_with_replacement(range(values), size):
            if adjacency == "add-remove" and size < most:
                yield from ((column, tuple(sorted((*column, v)))) for v in range(values))
            if adjacency == "replace":
                for k, v in itertools.product(range(size), range(values)):
                    yield column, tuple(sorted((*column[:k], *column[k + 1 :], v)))


def worst_loss(law: LogLaw, values: int, most: int, adjacency: str = "add-remove") -> float:
    """Largest |loss| over all neighbours and outputs."""
    known: dict[Column, Any] = {}
    worst = 0.0
    for pair in pairs_of_neighbours(values, most, adjacency):
        for column in pair:
            if column not in known:
                known[column] = law(column)
        worst = max(worst, float(np.max(np.abs(known[pair[0]] - known[pair[1]]))))
    return worst


def root(
    values: int,
    q: Fraction,
    epsilon: Fraction,
    *,
    adjacency: str = "add-remove",
    total: Any = None,
    faster: int = 1,
    prior: pq.Prior | None = None,
    **options: Any,
) -> LogLaw:
    """The law at the root; total: a number, or a function of the column for a variant that must not pass."""
    calibration = "sharp" if total is None else "shifted"
    step = rate(epsilon, sensitivity(q, 1, adjacency, calibration)) * faster
    over = prior or pq.Uniform(-0.5, values - 0.5)
    shares = options.get("shares") or (None,)

    def log_law(column: Column) -> Any:
        lattice = Lattice.of(np.array(column, dtype=np.float64), Fraction(1), unit=PARTS)
        view = lattice.view(-math.inf, math.inf, 0, 0)
        public = total(column) if callable(total) else total
        target = Target.of(q, view.n, calibration, None if public is None else PARTS * public)
        law = MarginLaw(lattice, view, -math.inf, math.inf, over, target, step, **options)
        return np.array([law.log_probability(float(o), s) for o in range(values) for s in shares])

    return log_law


CASES: list[dict[str, Any]] = [
    {"q": HALF, "epsilon": Fraction(1), "flip": True},
    {"q": HALF, "epsilon": Fraction(1), "flip": False},
    {"q": Fraction(9, 10), "epsilon": Fraction(1), "flip": True},
    {"q": Fraction(1, 5), "epsilon": Fraction(2), "flip": False},
    {"q": Fraction(9, 10), "epsilon": Fraction(1), "flip": True, "total": 3},
    {"q": Fraction(1, 3), "epsilon": Fraction(1), "flip": False, "total": 7},
    {"q": HALF, "epsilon": Fraction(1), "flip": True, "adjacency": "replace"},
    {"q": Fraction(4, 5), "epsilon": Fraction(1), "flip": True, "adjacency": "replace"},
    {"q": HALF, "epsilon": Fraction(1), "flip": True, "shares": (0.0, 0.5, 1.0), "cap": PARTS},
    {"q": Fraction(1, 5), "epsilon": Fraction(2), "flip": True, "shares": tie_tree.SHARES, "cap": 0},
    {"q": Fraction(2, 3), "epsilon": Fraction(1), "flip": False, "shares": (0.0, 1.0), "cap": 2 * PARTS},
    {
        "q": HALF,
        "epsilon": Fraction(1),
        "flip": True,
        "prior": pq.PiecewiseConstant((-0.5, 1.5, 2.5, 3.5), (0.7, 0.1, 0.2)),
    },
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_losses_are_within_epsilon_and_reach_it(case: dict[str, Any]) -> None:
    """All columns of up to six records on four values and their neighbours."""
    epsilon = float(case["epsilon"])
    worst = worst_loss(root(4, **case), 4, 6, case.get("adjacency", "add-remove"))
    near = {2: 0.89, len(tie_tree.SHARES): 0.7}  # of epsilon, on columns as small as these, by the number of shares
    assert near.get(len(case.get("shares", ())), 0.9) * epsilon < worst <= epsilon * (1.0 + TOLERANCE)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_half_the_sensitivity_is_seen(case: dict[str, Any]) -> None:
    worst = worst_loss(root(4, faster=2, **case), 4, 6, case.get("adjacency", "add-remove"))
    assert worst > (1.4 if case.get("shares") == tie_tree.SHARES else 1.5) * float(case["epsilon"])


def test_open_ends_of_the_data_are_seen() -> None:
    """Ends must come from public facts: a law whose last candidate is the largest record loses without bound."""

    def open_at_extremes(column: Column) -> Any:
        prior = pq.Uniform(min(column, default=0) - 0.5, max(column, default=3) + 0.5)
        return root(4, HALF, Fraction(1), prior=prior)(column)

    with np.errstate(invalid="ignore"):
        assert worst_loss(lambda column: np.maximum(open_at_extremes(column), -50.0), 4, 4) > 10.0

    def open_where_held(column: Column) -> Any:
        """All outputs are possible, but the margins of the outermost records have open ends."""
        up_to, below = (np.searchsorted(column, np.arange(4), side=side) for side in ("right", "left"))
        above, under = up_to - len(column) / 2, len(column) / 2 - below
        above = np.where(np.arange(4) >= max(column, default=3), np.inf, above)
        under = np.where(np.arange(4) <= min(column, default=0), np.inf, under)
        utility = np.minimum(np.minimum(above, under), 99.0)
        return log_chances(utility, np.ones(4))

    assert worst_loss(open_where_held, 4, 5) > 1.2


def test_a_total_made_from_the_data_is_seen() -> None:
    """The number of records in place of a public number: at q = 0.99 that loses 1.98 epsilon, on a grid or off it."""
    q = Fraction(99, 100)
    wrong = worst_loss(root(3, q, Fraction(1), total=len), 3, 6)
    assert wrong > 1.9
    assert worst_loss(root(3, q, Fraction(1), total=4), 3, 6) <= 1.0 + TOLERANCE

    def continuous(total: Any) -> LogLaw:
        step = rate(Fraction(1), sensitivity(q, 1, "add-remove", "shifted"))

        def log_law(column: Column) -> Any:
            points = Points(np.array(column, dtype=np.float64))
            target = Target.of(q, len(column), "shifted", total(column) if callable(total) else total)
            view = points.view(-math.inf, math.inf)
            law = Law(points, view, -math.inf, math.inf, pq.Uniform(-1e-6, 1.0), target, step, False)
            return np.array([law.log_probability(o) for o in (-5e-7, 0.5)])

        return log_law

    assert worst_loss(continuous(1000), 3, 6) <= 1.0 + TOLERANCE
    few, more = (0,) * 200, (*(0,) * 200, 1)
    right, broken = (float(np.max(np.abs(law(few) - law(more)))) for law in (continuous(100), continuous(len)))
    assert 0.99 < right <= 1.0 + TOLERANCE
    assert math.isclose(broken, 1.98, abs_tol=1e-6)


def test_permute_and_flip_has_no_bounded_range() -> None:
    """Losses epsilon and -log(2 - e^-epsilon): a divergence that epsilon^2 / 8 denies and epsilon^2 / 2 allows."""
    for epsilon in (Fraction(1, 2), Fraction(1), Fraction(2)):
        law = root(2, HALF, epsilon)
        both, one = law((0, 1)), law((1,))
        assert np.allclose(both - one, [float(epsilon), -math.log(2.0 - math.exp(-epsilon))], rtol=1e-12)
        divergence = float(np.exp(both) @ (both - one))  # of order one
        assert float(zcdp_cost(epsilon, flips=False)) < divergence < float(zcdp_cost(epsilon, flips=True))
        bounded = root(2, HALF, epsilon, flip=False)
        losses = bounded((0, 1)) - bounded((1,))
        assert float(losses.max() - losses.min()) <= float(epsilon) * (1.0 + TOLERANCE)
    assert math.isclose((1.0 + math.log(2.0 - math.exp(-1.0))), 1.49, abs_tol=0.005)


def test_tree_with_split_ties(monkeypatch: pytest.MonkeyPatch) -> None:
    """A root that splits its tie and two leaves: no outcome loses more than epsilon, and all probabilities add up."""
    plan = pq.plan([Fraction(1, 4), HALF, Fraction(3, 4)], epsilon=1)

    def log_law(flip: bool, shares: tuple[float, ...] = (0.0, 0.5, 1.0)) -> LogLaw:
        asked = tie_tree.TieTree(plan, (pq.Uniform(-0.5, 2.5),) * 3, flip, shares=shares)

        def law(column: Column) -> Any:
            lattice = Lattice.of(np.array(column, dtype=np.float64), Fraction(1), unit=asked.unit)
            outputs = itertools.combinations_with_replacement((0.0, 1.0, 2.0), 3)
            return np.array(
                [
                    asked.log_probability(lattice, [(low, 0.5), (mid, share), (high, 0.5)])
                    for (low, mid, high), share in itertools.product(outputs, shares)
                ]
            )

        return law

    assert math.isclose(float(np.sum(np.exp(log_law(True)((0, 1, 1, 1, 2))))), 1.0, rel_tol=1e-12)
    for flip in (True, False):
        assert 0.8 < worst_loss(log_law(flip), 3, 5) <= 1.0 + TOLERANCE
        assert 0.7 < worst_loss(log_law(flip, tie_tree.SHARES), 3, 3) <= 1.0 + TOLERANCE
    split = tie_tree.split_ties
    monkeypatch.setattr(  # whole records to both sides
        tie_tree,
        "split_ties",
        lambda interval, outputs, _, unit: [(*p[:2], unit, unit) for p in split(interval, outputs, [0.5], unit)],
    )
    assert worst_loss(log_law(False), 3, 5) > 1.05


@pytest.mark.parametrize(("q", "total"), [(HALF, 0), (Fraction(4, 5), 4), (Fraction(1, 5), 4), (Fraction(9, 10), 20)])
def test_margins_in_records(q: Fraction, total: int) -> None:
    """They are signed distances by search over all counts, and the law by them is private."""

    def utility(column: Column) -> Any:
        up_to, below = (np.searchsorted(column, np.arange(4), side=side) for side in ("right", "left"))
        return record_margins(below, up_to, len(column), q, total)

    def log_law(column: Column, nats: float = 0.5) -> Any:
        return log_chances(nats * utility(column), np.ones(4))

    assert 0.9 < worst_loss(log_law, 4, 6) <= 1.0 + TOLERANCE
    assert worst_loss(lambda column: log_law(column, 1.0), 4, 6) > 1.5
    for column in ((0, 0, 1, 2, 2, 3), (1,), (2, 2, 2)):
        expected = searched(column, q, q * (1 - q) * total)
        assert np.array_equal(utility(column), expected)


def searched(column: Column, q: Fraction, tolerance: Fraction) -> list[float]:
    """Signed distances by the definition: over all counts below and above up to ninety."""

    def signed(f: int, g: int, holds: Callable[[int, int], bool]) -> float:
        inside = holds(f, g)
        counts = itertools.product(range(90), repeat=2)
        least = min(abs(f - a) + abs(g - b) for a, b in counts if holds(a, b) != inside)
        return least - 0.5 if inside else 0.5 - least

    result = []
    for o in range(4):
        up_to, below = sum(v <= o for v in column), sum(v < o for v in column)
        low = signed(up_to, len(column) - up_to, lambda f, g: (1 - q) * f - q * g >= tolerance)
        high = signed(below, len(column) - below, lambda f, g: q * g - (1 - q) * f >= tolerance)
        result.append(min([low] * (o != 3) + [high] * (o != 0)))
    return result


@pytest.mark.parametrize(
    ("values", "epsilon", "shift"),
    [(2, 0.3, 0), (4, 1.0, 0), (6, 1.0, 0), (5, 1.0, 3), (5, 1.0, -2), (8, 2.0, 1), (7, 1.5, 0)],
)
def test_the_law_by_remainders(values: int, epsilon: float, shift: int) -> None:
    """Private up to the last digit, and no more private than that."""
    law = partial(by_remainders, values=values, epsilon=epsilon, shift=shift)
    assert 0.99 * epsilon < worst_loss(law, values, 5) <= epsilon * (1.0 + TOLERANCE)
    for column, _ in pairs_of_neighbours(values, 4, "add-remove"):
        assert math.isclose(float(np.sum(np.exp(law(column)))), 1.0, rel_tol=1e-12)


def by_remainders(column: Column, values: int, epsilon: float, shift: int) -> Any:
    counts = np.bincount(np.array(column, dtype=np.int64), minlength=values)
    return np.log(remainder.remainder_law(counts, shift, epsilon))


def test_remainders_need_their_floor(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the least floor that wrong candidates alone would need, and with more candidates, too much is lost."""
    for values, epsilon in ((6, 1.0), (7, 1.5), (12, 2.0)):
        least = math.exp(-2.0 * epsilon) / 2.0
        found = remainder.remainder_floor(values, epsilon)
        assert found is not None and found > least
        with monkeypatch.context() as patched:
            patched.setattr(remainder, "remainder_floor", lambda *_, least=least: least)
            assert (
                worst_loss(partial(by_remainders, values=values, epsilon=epsilon, shift=0), values, 2) > 1.001 * epsilon
            )
    assert remainder.remainder_floor(8, 1.0) is None
    with pytest.raises(ValueError, match="epsilon"):
        remainder.remainder_law(np.ones(8, dtype=np.int64), 0, 1.0)
    with monkeypatch.context() as patched:
        patched.setattr(remainder, "remainder_floor", lambda *_: 0.1)
        assert worst_loss(partial(by_remainders, values=8, epsilon=1.0, shift=0), 8, 3) > 1.1
