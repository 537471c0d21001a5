"""Broken factorisations, sensitivities and errors that the checks of private prefix sums must reject."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from pq import learners
from proofs_checks import prefix_sums

F = Fraction

MUTANTS: dict[str, list[Callable[..., Any]]] = {
    "prefix_sums:check_square_root_factors": [
        lambda steps: [F(1)] * steps,
        lambda steps: [F(math.comb(2 * k, k), 4**k) if k < 90 else F(1, 18) for k in range(steps)],
    ],
    "prefix_sums:check_square_root_sensitivity": [
        lambda steps: 1.0,
        lambda steps: math.sqrt(steps.bit_length()),
        lambda steps: learners.square_root_sensitivity(max(1, steps - 1)),
    ],
    "prefix_sums:check_square_root_error": [
        lambda steps: prefix_sums.tree_error(steps, refined=True),
        lambda steps: prefix_sums.square_root_error(steps) * F(101, 100),
        lambda steps: F(steps),
    ],
}
