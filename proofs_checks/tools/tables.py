"""Stored tables and the score of a difference between trials."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

RESULTS = Path(__file__).parents[2] / "results"


def score(differences: np.ndarray) -> float:
    """Mean over standard error, 0 if nothing differs."""
    spread = float(np.std(differences, ddof=1))
    return float(np.mean(differences)) / spread * math.sqrt(len(differences)) if spread else 0.0
