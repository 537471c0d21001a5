"""A prover that fails loudly."""

from __future__ import annotations

from typing import Any

import z3


def prove(statement: z3.BoolRef, what: str) -> None:
    """Fail unless z3 shows the statement for all values of its variables."""
    solver = z3.Solver()
    solver.set("timeout", 60_000)
    solver.add(z3.Not(statement))
    outcome = solver.check()
    if outcome == z3.sat:
        raise AssertionError(f"{what}: counterexample {solver.model()}")
    assert outcome == z3.unsat, f"{what}: z3 could not decide"


def absolute(value: z3.ArithRef) -> z3.ArithRef:
    """|value| as a z3 term."""
    return z3.If(value >= 0, value, -value)


def maximum(first: z3.ArithRef, second: z3.ArithRef) -> z3.ArithRef:
    """The larger of two z3 terms."""
    return z3.If(first >= second, first, second)


def follows(*facts: Any, goal: Any, timeout: int = 20_000) -> None:
    """Assert that z3 refutes the negation of ``goal`` under ``facts`` over the reals."""
    solver = z3.Solver()
    solver.set("timeout", timeout)
    solver.add(*facts, z3.Not(goal))
    outcome = solver.check()
    assert outcome == z3.unsat, f"{outcome}: {solver.model() if outcome == z3.sat else goal}"
