"""Atoms of an exact prior as narrow pieces of a prior of the package, so that both have the same law."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

import pq
from proofs_checks.tools.exact import Data, Grid, Position, Prior

WIDTH = Fraction(1, 64)  # a power of two: pieces about multiples of it have exact ends
LOG_WIDTH = math.log(WIDTH)


def spread(prior: Prior) -> pq.Mixture:
    """Each atom spread over an interval of WIDTH about it."""
    places = [(float(o - WIDTH / 2), float(o + WIDTH / 2)) for o in prior]
    return pq.Mixture([pq.Uniform(*ends) for ends in places], [float(mass) for mass in prior.values()])


def column(data: Data) -> np.ndarray:
    """The records as floats."""
    values = range(1, data.size + 1) if isinstance(data, Grid) else data.values
    return np.array([float(value) for value in values])


def log_width(outputs: tuple[Position, ...]) -> float:
    """log of the volume over which the atom of these outputs is spread: a repeated one is an edge, an atom."""
    return LOG_WIDTH * len(set(outputs))
