"""Shares of the corrected bounds that are too small: simulations must notice each of them."""

from __future__ import annotations

from typing import Any

MUTANTS: dict[str, list[Any]] = {
    "simulated:check_one": [0.5, 0.1],
    "simulated:check_one_interval": [0.5, 0.1],
    "simulated:check_mixture": [0.7, 0.3],
    "simulated:check_restricted": [0.3, 0.1],
    "simulated:check_original": [0.3, 0.1],
    "simulated:check_level_shares": [0.3, 0.1],
    "simulated:check_cauchy_tree": [0.3, 0.1],
    "simulated_learning:check_dpftrl": [0.4, 0.1],
    "simulated_learning:check_quantile_regret": [0.03, 0.01],
    "simulated_learning:check_public_fit": [0.03, 0.01],
    "simulated_learning:check_batch": [0.08, 0.03],
    "simulated_learning:check_sequential": [0.1, 0.03],
}
