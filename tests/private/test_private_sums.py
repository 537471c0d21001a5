"""Noise on private sums: from the operating system, at its step, never the same in two continuations of one state."""

from __future__ import annotations

import copy
import math
import os
import pickle
import threading
from typing import Any

import numpy as np
import pytest
import scipy.stats

from pq.learners import DPFTRL, SquareRootAggregator, TreeAggregator
from pq.private import noise
from pq.private.noise import Normals

# Newer Pythons warn of forks beside threads, which is what is tested.
pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


def refined(*arguments: Any) -> TreeAggregator:
    return TreeAggregator(*arguments, refined=True)


MAKERS = [TreeAggregator, refined, SquareRootAggregator]


def in_fork(action: Any) -> Any:
    """What an action gives in a forked process."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(write, pickle.dumps(action()))
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        found = pickle.loads(pipe.read())
    os.waitpid(pid, 0)
    return found


def test_system_noise_is_standard_normal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kolmogorov's test of 100,000 draws from recorded bytes: fixed, so that it fails always or never; and the moments
    that a mutant with a wrong angle or radius would miss."""
    stream = np.random.default_rng(5)
    monkeypatch.setattr(os, "urandom", lambda count: stream.bytes(count))
    drawn = Normals().draw((100_001,))
    assert scipy.stats.kstest(drawn, "norm").pvalue > 0.01
    assert abs(float(np.mean(drawn**4)) - 3) < 0.1
    half = len(drawn) // 2
    assert abs(float(np.corrcoef(drawn[:half], drawn[half : 2 * half])[0, 1])) < 0.02
    assert abs(float(np.corrcoef(drawn[:half] ** 2, drawn[half : 2 * half] ** 2)[0, 1])) < 0.02
    wrong = np.abs(drawn)
    assert scipy.stats.kstest(wrong, "norm").pvalue < 1e-12


@pytest.mark.parametrize("byte", [0, 255])
def test_extreme_bytes_give_finite_noise_with_a_long_tail(byte: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "urandom", lambda count: bytes([byte]) * count)
    drawn = Normals().draw((3,))
    assert np.isfinite(drawn).all() and np.max(np.abs(drawn)) < 14
    if byte == 0:
        assert np.max(np.abs(drawn)) == pytest.approx(math.sqrt(2 * 129 * math.log(2)))


@pytest.mark.parametrize("shape", [(), (1,), (2, 3), (0,), (0, 4)])
def test_noise_has_the_shape_that_is_asked_for(shape: tuple[int, ...]) -> None:
    assert Normals().draw(shape).shape == shape


@pytest.mark.parametrize("make", MAKERS)
def test_what_comes_is_drawn_when_it_comes(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """No step draws more than its own nodes or its own row, so that no state holds noise of a later step."""
    drawn: list[int] = []
    whole = Normals.draw
    monkeypatch.setattr(Normals, "draw", lambda self, shape: drawn.append(1) or whole(self, shape))
    sums = make(100, 1.0, (2,))
    for t in range(1, 101):
        before = len(drawn)
        sums.add([0.0, 0.0])
        nodes = {TreeAggregator: 1, SquareRootAggregator: 1}.get(make, 1 + (t & -t).bit_length() - 1)
        assert len(drawn) - before == nodes


@pytest.mark.parametrize("seeded", [False, True])
@pytest.mark.parametrize("make", MAKERS)
def test_copies_pickles_and_forks_share_no_noise_to_come(make: Any, seeded: bool) -> None:
    """After four steps of zeros each continuation adds four more; without noise they would agree in all digits."""
    for steps in (1, 4, 70):
        sums = make(300, 1.0, (), np.random.default_rng(0) if seeded else None)
        for _ in range(steps):
            sums.add(0.0)

        def rest(one: Any) -> list[float]:
            return [one.add(0.0) for _ in range(4)]

        continued = [
            in_fork(lambda s=sums: rest(s)),
            in_fork(lambda s=sums: rest(s)),
            rest(copy.deepcopy(sums)),
            rest(pickle.loads(pickle.dumps(sums))),
            rest(sums),
        ]
        fresh = np.diff(np.array(continued), axis=1)  # what released noise adds to all of them
        for column in np.array(continued).T:
            assert len(set(column.tolist())) == len(continued)
        assert len({tuple(row) for row in fresh.tolist()}) == len(continued)


def test_noise_drawn_in_blocks_is_shared_and_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mutant: the white noise of the next 64 steps is drawn at once, as one might for speed."""

    class Ahead(SquareRootAggregator):
        def _noise(self) -> Any:
            if not hasattr(self, "_block"):
                self._block = [super(Ahead, self)._noise() for _ in range(64)]
            return self._block[self._count - 1]

    sums = Ahead(100, 1.0, ())
    sums.add(0.0)
    other = copy.deepcopy(sums)
    assert sums.add(0.0) == other.add(0.0)


@pytest.mark.parametrize("make", MAKERS)
def test_threads_take_different_steps(make: Any) -> None:
    """Each of eight threads adds fifty ones: sums less their noise-free part never repeat, and every step is taken."""
    sums, found = make(400, 1e-3, ()), []

    def add() -> None:
        found.extend(sums.add(1.0) for _ in range(50))

    threads = [threading.Thread(target=add) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sums.count == 400 and len(set(found)) == 400
    assert np.allclose(np.sort(found), np.arange(1, 401), atol=0.05)


@pytest.mark.parametrize("steps", [1, 2, 3, 5, 31, 64, 100])
def test_filtered_noise_is_the_product_with_the_square_root(steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Against the dense matrix and rows from a generator, in all digits that rounding leaves."""
    monkeypatch.setattr(noise, "ROUNDING_BITS", 45)
    sums = SquareRootAggregator(steps, 1.0, (3,), np.random.default_rng(0))
    found = np.array([sums.add(np.zeros(3)) for _ in range(steps)])
    white = np.random.default_rng(0).standard_normal((steps, 3))
    root = [
        [math.comb(2 * (i - j), i - j) / 4 ** (i - j) if i >= j else 0.0 for j in range(steps)] for i in range(steps)
    ]
    np.testing.assert_allclose(found, np.array(root) @ white, atol=1e-11)


def test_a_learner_without_a_generator_never_repeats() -> None:
    one, other = (DPFTRL(np.zeros(2), steps=9, step=0.5, noise_std=2.0) for _ in range(2))
    for learner in (one, other):
        learner.update([0.0, 0.0])
    assert one.point.tolist() != other.point.tolist()
    with pytest.raises(ValueError, match="rng"):
        DPFTRL(np.zeros(2), steps=9, step=0.5, noise_std=2.0, rng=7)  # type: ignore[arg-type]
