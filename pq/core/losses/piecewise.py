"""The epsilon-dependent loss over piecewise-constant priors, and its sensitivity (Appendix B.2)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pq.core.bounds.regret import lem_refined_sensitivity

__all__ = ["gradient_sensitivity", "log_scores", "piecewise_constant"]

FloatArray = npt.NDArray[np.float64]


def log_scores(
    sorted_x: npt.ArrayLike, edges: npt.ArrayLike, targets: npt.ArrayLike, epsilons: npt.ArrayLike
) -> FloatArray:
    """Logs of the mean scores of the exponential mechanism on each cell of a partition (Appendix B.2, `s_{t,i[j]}`).

    A mean score is that over cell j of `exp(-epsilon_i * gap_i(x, o) / 2)`, where `gap_i(x, o)` is the distance from
    the target to the number of records below o; an exact integral.

    sorted_x: (n,) records in ascending order, n may be 0, records outside the partition count by their rank. edges:
    (d+1,) public, finite, strictly ascending. targets: (m,) target ranks (`floor(q n)`, or `q n`). epsilons: (m,)
    budgets of the m mechanisms, in nats, not negative.

    Returns (m, d) logs, each at most 0 and finite. Raises `ValueError` naming edges if they are not finite and strictly
    ascending, or epsilons if one is negative.

    >>> log_scores([1.0], [0.0, 1.0, 2.0], [0], [2.0]).tolist()
    [[0.0, -1.0]]
    """
    bounds = np.asarray(edges, dtype=np.float64)
    if bounds.ndim != 1 or bounds.size < 2 or not np.all(np.isfinite(bounds)) or not np.all(np.diff(bounds) > 0):
        raise ValueError("edges must be at least two finite, strictly ascending numbers")
    rates = 0.5 * np.atleast_1d(np.asarray(epsilons, dtype=np.float64))
    if not np.all(rates >= 0):
        raise ValueError("epsilons must not be negative")
    records = np.asarray(sorted_x, dtype=np.float64)
    goals = np.atleast_1d(np.asarray(targets, dtype=np.float64))
    inner = records[(records > bounds[0]) & (records < bounds[-1])]
    cuts = np.union1d(bounds, inner)
    ranks = np.searchsorted(records, cuts[:-1], side="right")  # records below any o in the piece that starts at a cut
    cells = np.searchsorted(bounds, cuts[:-1], side="right") - 1
    starts = np.searchsorted(cells, np.arange(bounds.size - 1))
    share = np.log(np.diff(cuts)) - np.log(np.diff(bounds))[cells]
    with np.errstate(all="ignore"):
        terms = share - rates[:, None] * np.abs(ranks - goals[:, None])
        return np.minimum(np.logaddexp.reduceat(terms, starts, axis=1), 0.0)


def piecewise_constant(weights: npt.ArrayLike, log_score: npt.ArrayLike) -> tuple[float, FloatArray]:
    """Epsilon-dependent loss of piecewise-constant priors on one data set, and its gradient (Appendix B.2).

    It is `U(W) = log sum_i 1 / <s_i, W_i>`, convex on the product of simplices.

    weights: (m, d) masses that prior i gives to the cells, positive somewhere on each row. log_score: (m, d) as from
    `log_scores`. Returns `(value, gradient)`: a float, at least 0 for one quantile, and (m, d), every entry at most 0.
    Guarantees that, if every weight is at least `gamma / d`, the absolute values of the gradient sum to at most `d /
    gamma` (`lem:lipschitz`), and no underflow however small the scores.

    >>> value, gradient = piecewise_constant([[0.5, 0.5]], [[0.0, 0.0]])
    >>> float(value), gradient.tolist()
    (0.0, [[-1.0, -1.0]])
    """
    masses, logs = np.asarray(weights, dtype=np.float64), np.asarray(log_score, dtype=np.float64)
    with np.errstate(all="ignore"):
        top = np.max(np.where(masses > 0, logs, -np.inf), axis=1, keepdims=True)
        scores = np.exp(logs - top)  # a cell of weight zero may exceed one: its gradient is huge but exact
        product = np.sum(np.where(masses > 0, scores * masses, 0.0), axis=1, keepdims=True)
        losses = -(top + np.log(product))[:, 0]
        peak = np.max(losses)
        parts = np.exp(losses - peak)
        total = np.sum(parts)
        gradient = -(parts / total)[:, None] * scores / product
    return float(peak + np.log(total)), gradient


def gradient_sensitivity(epsilons: npt.ArrayLike, cells: int, robustness: float) -> float:
    """How far, in Euclidean norm, one record moves the gradient of `piecewise_constant` (`lem:refined-sensitivity`).

    The form is the sharper one of `pq.bounds.lem_refined_sensitivity`, over weights that are all at least `robustness /
    cells`. It holds when a record is added, removed or replaced.

    epsilons: (m,) budgets of the mechanisms, not negative. cells: number d of cells, at least 1. robustness: gamma, in
    (0, 1]. Raises `ValueError` naming the argument that is outside its range.

    >>> round(gradient_sensitivity([0.01], 10, 0.5), 6)
    0.070711
    """
    budgets = np.atleast_1d(np.asarray(epsilons, dtype=np.float64))
    if budgets.size == 0 or not np.all(budgets >= 0):
        raise ValueError("epsilons must be at least one number, none negative")
    largest = float(np.max(budgets))
    # No budget, no change; the bound is asked all the same, so that it looks at the other arguments.
    bound = lem_refined_sensitivity(largest or 1.0, cells, robustness, quantiles=budgets.size)
    return bound if largest > 0 else 0.0
