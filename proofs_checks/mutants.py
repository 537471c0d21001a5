"""Every broken variant that a check must reject, by "module:check_function"."""

from __future__ import annotations

from typing import Any

from proofs_checks import mutants_learning, mutants_prefix, mutants_quantiles, mutants_simulated, mutants_steps

MUTANTS: dict[str, list[Any]] = {
    **mutants_quantiles.MUTANTS,
    **mutants_learning.MUTANTS,
    **mutants_prefix.MUTANTS,
    **mutants_steps.MUTANTS,
    **mutants_simulated.MUTANTS,
}
