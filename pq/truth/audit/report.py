"""Exact privacy loss between neighbouring columns, and how large it gets in the worst case that a search finds (Section
3)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pq.truth.audit.bins import Line
from pq.truth.audit.mechanism import Audited, Lossy
from pq.truth.audit.search import BINS, Found, Search

TOLERANCE = 1e-7  # relative, for rounding


@dataclass(frozen=True, eq=False)
class AuditReport:
    """The largest privacy loss that a search found, with its witness.

    loss: largest |loss| in nats. x, neighbour, values: the two columns and the output that have it. priors: those of
    the release, and prior: their name, if the search chose them. pairs: evaluated pairs of neighbours. histogram:
    counts of |loss| / epsilon between the `BINS` of `pq.truth.audit.search`. ceiling: bound of |loss| / epsilon by
    `pq.truth.audit.ceiling`, None for other mechanisms. outcome: all that came out, where that is more than the values,
    as `pq.privacy_loss` takes it. settings: what was audited.
    """

    epsilon: float
    adjacency: str
    loss: float
    x: Any
    neighbour: Any
    values: Any
    pairs: int
    histogram: Any
    prior: str | None = None
    priors: Any = None
    ceiling: float | None = None
    outcome: dict[str, Any] | None = None
    seed: int | None = None
    settings: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, found: Found, **facts: Any) -> AuditReport:
        """The report on a search."""
        return cls(
            loss=found.loss,
            x=found.x,
            neighbour=found.neighbour,
            values=found.values,
            pairs=found.pairs,
            histogram=found.histogram,
            **facts,
        )

    @property
    def ratio(self) -> float:
        """Largest |loss| / epsilon."""
        return self.loss / self.epsilon

    @property
    def passed(self) -> bool:
        """Whether no loss was above epsilon, but for rounding."""
        return self.ratio <= 1.0 + TOLERANCE

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain numbers, text and lists, ready for JSON (but for an infinite loss)."""
        return {
            **self.settings,
            "epsilon": self.epsilon,
            "adjacency": self.adjacency,
            "ratio": self.ratio,
            "loss": self.loss,
            "passed": self.passed,
            "pairs": self.pairs,
            "ceiling": self.ceiling,
            "prior": self.prior,
            "seed": self.seed,
            "x": np.asarray(self.x).tolist(),
            "neighbour": np.asarray(self.neighbour).tolist(),
            "values": np.asarray(self.values).tolist(),
            **({} if self.outcome is None else {"outcome": self.outcome}),
            "histogram": np.asarray(self.histogram).tolist(),
        }

    def __str__(self) -> str:
        rows = [(name, str(value)) for name, value in self.settings.items() if value is not None]
        rows += [
            ("epsilon", f"{self.epsilon:g}"),
            ("adjacency", self.adjacency),
            ("evaluated pairs", f"{self.pairs:,}"),
            ("largest |loss| / epsilon", f"{self.ratio:.7f}"),
        ]
        if self.ceiling is not None:
            rows.append(("at most possible by analysis", f"{self.ceiling:.7f}"))
        rows.append(("verdict", "within epsilon" if self.passed else "ABOVE EPSILON"))
        if self.prior is not None:
            rows.append(("worst prior", self.prior))
        rows += [("x", _short(self.x)), ("neighbour", _short(self.neighbour)), ("output", _short(self.values))]
        width = max(len(name) for name, _ in rows)
        return "\n".join(f"{name.ljust(width)}  {value}" for name, value in rows)

    def draw(self, ratios: Any, witness: Any) -> None:
        """Draw on two matplotlib axes: how the ratios of all evaluated pairs are spread, and the worst pair with its
        output."""
        counts = np.asarray(self.histogram)
        right = max(1.1, float(BINS[np.flatnonzero(counts)[-1]]) * 1.1) if counts.any() else 1.1
        edges = np.minimum(BINS, max(right, 1.2))
        ratios.bar(edges[:-1], counts, width=np.diff(edges), align="edge", color="C0")
        ratios.axvline(1.0, color="C3", label="epsilon")
        if math.isfinite(self.ratio):
            ratios.axvline(self.ratio, color="0.2", linestyle=":", label=f"largest: {self.ratio:.4f}")
        ratios.set(yscale="symlog", xlabel="|loss| / epsilon", ylabel="evaluated pairs")
        ratios.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2)  # above: no place inside is free of bars
        rows = (("x", self.x, "C0", "|"), ("neighbour", self.neighbour, "C1", "|"), ("output", self.values, "C3", "^"))
        for height, (_, places, color, marker) in zip((2, 1, 0), rows, strict=True):
            # by rank: worst cases have places at very different distances
            witness.scatter(
                _ranked(places, _joint(rows)), np.full(len(places), height), color=color, marker=marker, s=120
            )
        witness.set_yticks([2, 1, 0], [name for name, *_ in rows])
        witness.set(ylim=(-0.7, 2.7), xlabel="order of places")


def _joint(rows: Any) -> Any:
    return np.unique(np.concatenate([np.asarray(row[1], dtype=np.float64) for row in rows]))


def _ranked(places: Any, among: Any) -> Any:
    return np.searchsorted(among, np.asarray(places, dtype=np.float64))


def _short(values: Any) -> str:
    texts = [f"{value:.9g}" for value in np.asarray(values)]
    return ", ".join(texts if len(texts) <= 12 else [*texts[:6], "...", *texts[-5:]]) or "(empty)"


def audit(
    mechanism: Audited | Lossy,
    outputs: int,
    *,
    epsilon: float,
    adjacency: str,
    line: Line,
    pairs: int = 100_000,
    records: int = 8,
    population: int = 256,
    seed: int = 0,
    start: tuple[Any, Any, Any] | None = None,
    progress: Callable[[int], Any] | None = None,
) -> AuditReport:
    """Search for the largest privacy loss of any mechanism that offers a log density.

    mechanism: see `pq.truth.audit.mechanism.Audited`; `Scalar` there wraps a plain function. outputs: length of its
    output. epsilon: what it claims. adjacency: "add-remove" or "replace". line: where records and outputs may be.
    pairs: pairs of neighbours to evaluate, at least. records: most records that neighbours share. population:
    candidates that climb at once. seed: of the search. start: an (x, neighbour, values) to begin with. progress: told
    of every batch's number of pairs.

    Returns an `AuditReport`. A ratio above 1 disproves the claim; one at most 1 does not prove it.

    >>> from pq.truth.audit.mechanism import Scalar
    >>> noisy_count = Scalar(lambda x, o: -0.75 * abs(o[0] - len(x)))  # Laplace noise, too little of it
    >>> line = Line.between(0.0, 10.0)
    >>> report = audit(noisy_count, 1, epsilon=0.5, adjacency="add-remove", line=line, pairs=1000, population=32)
    >>> round(report.ratio, 6), report.passed
    (1.5, False)
    """
    search = Search(
        mechanism,
        outputs,
        epsilon=epsilon,
        adjacency=adjacency,
        line=line,
        rng=np.random.default_rng(seed),
        records=records,
        population=population,
        start=start,
    )
    search.run(pairs - search.pairs, progress)
    return AuditReport.of(search.found(), epsilon=float(epsilon), adjacency=adjacency, seed=seed)
