"""How accurate a release will be, before any budget is spent: by simulation on columns that public knowledge makes
likely, and the least budget for a wanted accuracy (Section 3).

No private record is seen here. What a forecast says of the data holds as far as the priors or the public data do.
"""

from __future__ import annotations

import inspect
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from pq.core.arrays import KeptReadOnly, read_only
from pq.core.choices import nearest
from pq.core.exact import Number, budget_float, budget_text, whole_number
from pq.core.kind import NUMBER, SIMPLE_KINDS, Duration, kind_named, shown
from pq.core.priors.arguments import finite_number, positive
from pq.core.priors.differing import differing
from pq.core.request import Request
from pq.core.scores import Array
from pq.private.columns.frames import column_of
from pq.private.mechanisms import Mechanism
from pq.private.prepare import prepare
from pq.private.randomness import Source
from pq.truth.evaluate import gap
from pq.truth.likely import Law, drawn_law, ends_of_quantiles, likely_column, public_law

OPTIONS = tuple(inspect.signature(Request.of).parameters)[1:]
MOST_RECORDS, MOST_DRAWN, FEWEST_COLUMNS = 250_000, 2 * 10**6, 8  # of a column, of all columns, columns
FAR = 0.1  # of the records: a release that is as far off says little about them
MANY = 0.9  # share of the releases that stay within `error_90`
LADDER = [float(f"{10 ** (j / 50):.3g}") for j in range(-200, 151)]  # budgets to try; each is 5% more than the last

PRIOR_REMARK = (
    "This holds if the records are spread as the {what} say{s}. No private record was looked at: where the {what} {are}"
    " wrong, the error can be many times as large."
)
PUBLIC_REMARK = (
    "This holds if the private records are spread as the public ones are, and the less they are, the less it does."
)
FAR_REMARK = "At this epsilon chance decides much: the values tell more about the prior than about the records."
MANY_REMARK = (
    "Simulated with {most:,} records. For {size:,} the errors in the column's unit are smaller; those in ranks are"
    " about the same, but for cells larger."
)
GRID_REMARK = (
    "The records are taken for multiples of the grid's step. Rounding others adds up to {half} and about {ranks:.3g} "
    "records to the error."
)


@dataclass(frozen=True, eq=False)
class Forecast(KeptReadOnly):
    """How far off a release will be; made from public facts alone, so that it is nobody's secret.

    quantiles: (m,). epsilon: total budget. size: records that a simulated column has. trials: simulated releases.
    mechanism: its name. steps: what it does in turn, and the epsilon that each step spends. max_gap: mean over the
    releases of the largest distance in ranks between a value and its quantile; max_gap_error: its standard error. gap:
    (m,) mean distance in ranks, for each quantile. error: (m,) distance in the data's unit that half of the releases
    keep within; error_90: that nine in ten do; durations where the column holds dates or times. kind: what the column
    holds. remarks: what the forecast depends on, in sentences.
    """

    quantiles: np.ndarray[Any, np.dtype[np.float64]]
    epsilon: float
    size: int
    trials: int
    mechanism: str
    steps: tuple[tuple[str, float], ...]
    max_gap: float
    max_gap_error: float
    gap: np.ndarray[Any, np.dtype[np.float64]]
    error: np.ndarray[Any, Any]
    error_90: np.ndarray[Any, Any]
    kind: str
    remarks: tuple[str, ...]

    def __post_init__(self) -> None:
        for name in ("quantiles", "gap", "error", "error_90"):
            object.__setattr__(self, name, read_only(np.array(getattr(self, name))))

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain numbers, text and lists, ready for JSON; durations in seconds."""
        plain = {name: getattr(self, name) for name in self.__dataclass_fields__}
        for name in ("quantiles", "gap"):
            plain[name] = plain[name].tolist()
        for name in ("error", "error_90"):
            plain[name] = _unit(self.kind).to_numbers(plain[name]).tolist()
        return plain | {"steps": [[what, spent] for what, spent in self.steps], "remarks": list(self.remarks)}

    def __str__(self) -> str:
        near, far = ([_text(v) for v in shown(values)] for values in (self.error, self.error_90))
        wide = max(map(len, [*near, *far, "half within", "9 in 10 within"]))
        spend = budget_text(self.epsilon)
        head = f"Forecast of a release at epsilon {spend} from {self.size:,} records: {self.mechanism}"
        rows = [f"{'quantile':>8}  {'ranks off':>10}  {'half within':>{wide}}  {'9 in 10 within':>{wide}}"]
        for q, off, one, other in zip(self.quantiles, self.gap, near, far, strict=True):
            rows.append(f"{q:>8.6g}  {off:>10.3g}  {one:>{wide}}  {other:>{wide}}")
        whole = sum(spent for _, spent in self.steps)
        spent = ", ".join(what if math.isinf(whole) else f"{what} {part / whole:.3g}" for what, part in self.steps)
        largest = f"Largest of them, on average: {self.max_gap:.3g} ranks (standard error {self.max_gap_error:.2g})"
        return "\n".join([head, *rows, largest, f"Shares of epsilon: {spent}", *self.remarks])


def forecast(
    quantiles: Any,
    *,
    epsilon: Number,
    priors: Any,
    size_guess: float | None = None,
    public: Any = None,
    kind: str | None = None,
    trials: int = 200,
    rng: Any = None,
    **options: Any,
) -> Forecast:
    """How accurate a release would be (`alg:quantiles`): by simulation, spending nothing and seeing no private record.

    quantiles, epsilon, priors: as for `pq.release`. size_guess: rough number of records, which the release must be told
        too; may be left out where `public_total` is given.
    public: records that are public and like the private ones, whatever `pq.release` takes; None: columns are drawn from
        the prior, or, if there are several, from the curve through their medians; under a `pq.JointPrior` each from
        what one member says, by chance.
    kind: what the column holds, "number", "date", "timestamp", "time" or "duration"; None: what `public` does.
    trials: releases to simulate, at least 2. rng: a numpy Generator or a seed. options: the other arguments of
        `pq.release`, except for ledger and purpose.

    Returns a `Forecast`. Raises `ValueError` or `TypeError` naming the argument at fault.

    >>> import pq
    >>> found = forecast([0.25, 0.5, 0.75], epsilon=1, priors=pq.Normal(40, 10), size_guess=1000, rng=0)
    >>> found.mechanism, 1 < found.max_gap < 10, bool(all(found.error < 1))
    ('joint', True, True)
    """
    maker = prepared(quantiles, epsilon=epsilon, priors=priors, size_guess=size_guess, **options)
    return Rehearsal(maker, public=public, kind=kind, trials=trials, rng=rng).forecast(maker)


def epsilon_for(
    quantiles: Any,
    *,
    max_gap: float,
    priors: Any,
    size_guess: float | None = None,
    public: Any = None,
    trials: int = 200,
    rng: Any = None,
    **options: Any,
) -> float:
    """The least epsilon whose forecast has a mean largest gap of at most `max_gap`, to 5%, from 0.0001 on.

    max_gap: ranks, positive. The other arguments: as for `forecast`. All budgets meet the same columns and seeds, so
    that chance does not decide between them. Raises as `forecast`, and `ValueError` naming max_gap where even epsilon =
    1000 is not enough: between tied records without a grid, or on a grid that is too coarse, no budget is.

    >>> import pq
    >>> 0.5 < epsilon_for([0.5], max_gap=2, priors=pq.Normal(40, 10), size_guess=1000, rng=0) < 2
    True
    """
    wanted = positive(finite_number(max_gap, "max_gap"), "max_gap")
    facts = {"priors": priors, "size_guess": size_guess} | options
    maker = prepared(quantiles, epsilon=LADDER[-1], **facts)
    rehearsal = Rehearsal(maker, public=public, kind=None, trials=trials, rng=rng)

    def reached(step: int) -> float:
        return float(np.mean(rehearsal.largest(prepared(quantiles, epsilon=LADDER[step], **facts))))

    low, high, best = 0, len(LADDER), math.nan  # the first that is enough lies in low..high
    while low < high:
        middle = (low + high) // 2
        best = reached(middle)
        low, high = (low, middle) if best <= wanted else (middle + 1, high)
    if low == len(LADDER):
        raise ValueError(
            f"max_gap={max_gap:g} cannot be had: at epsilon={LADDER[-1]:g} the forecast is {best:.3g} ranks"
        )
    return LADDER[low]


def prepared(quantiles: Any, **options: Any) -> Mechanism:
    """The mechanism for public arguments that include a number of records; raises naming the one at fault."""
    wrong = next((name for name in options if name not in OPTIONS), None)
    if wrong is not None:
        raise TypeError(f"there is no argument {wrong!r} of a forecast{nearest(wrong, OPTIONS)}")
    if options.get("size_guess") is None and options.get("public_total") is None:
        raise ValueError("size_guess must be given: a rough number of records")
    return prepare(quantiles, **options)


class Rehearsal:
    """Columns that public facts make likely, on which mechanisms for one request are tried: all on the same ones.

    maker: a mechanism for the request, of whatever budget. The other arguments: as for `forecast`.
    """

    def __init__(self, maker: Mechanism, *, public: Any, kind: str | None, trials: Any, rng: Any) -> None:
        request = self.request = maker.request
        count = whole_number(trials, "trials", least=2)
        generator = np.random.default_rng(Source(rng).uniforms(4).view(np.uint64))
        public = None if public is None else column_of(public)
        self.kind = str(kind_named(kind)) if kind is not None else str(NUMBER if public is None else public.kind)
        self.from_public = public is not None
        given: Law | None = None if public is None else public_law(public, smooth=request.step is None)
        told = request.size_guess if request.public_total is None else request.public_total
        self.told = max(1, round(told or 0))
        self.size = min(self.told, MOST_RECORDS)
        columns = min(count, max(MOST_DRAWN // self.size, FEWEST_COLUMNS))
        self.repeats = -(-count // columns)
        self.columns = [
            likely_column(given or drawn_law(request, generator), request, self.size, generator, rounded=given is None)
            for _ in range(columns)
        ]
        self.seeds = generator.integers(2**63, size=columns).tolist()

    def forecast(self, maker: Mechanism) -> Forecast:
        """What the mechanism does on all columns."""
        draws = self.draws(maker)
        gaps = np.array([self.gaps(column, values) for column, values in zip(self.columns, draws, strict=True)])
        largest = np.mean(np.max(gaps, axis=2), axis=1)
        ends = [ends_of_quantiles(column, maker.request) for column in self.columns]
        with np.errstate(all="ignore"):
            off = [np.maximum(np.maximum(a - v, v - b), 0.0) for v, (a, b) in zip(draws, ends, strict=True)]
        near, far = np.quantile(np.concatenate(off), [0.5, MANY], axis=0)
        max_gap, people = float(np.mean(largest)), maker.request.max_contributions
        return Forecast(
            quantiles=np.array([float(q) for q in maker.request.quantiles]),
            epsilon=budget_float(maker.request.epsilon),
            size=self.size,
            trials=self.repeats * len(self.columns),
            mechanism=maker.name,
            steps=tuple((what, float(budget * people)) for what, budget in maker.steps),
            max_gap=max_gap,
            max_gap_error=float(np.std(largest, ddof=1) / math.sqrt(len(largest))),
            gap=np.mean(gaps, axis=(0, 1)),
            error=_unit(self.kind).from_numbers(near),
            error_90=_unit(self.kind).from_numbers(far),
            kind=self.kind,
            remarks=tuple(self.remarks(max_gap)),
        )

    def draws(self, maker: Mechanism) -> list[Array]:
        """Values (repeats, m) of releases of each column."""
        order = list(maker.request.positions)
        with np.errstate(all="ignore"):
            return [
                maker.simulate(maker.column(column, None), Source(seed), self.repeats)[:, order]
                for column, seed in zip(self.columns, self.seeds, strict=True)
            ]

    def gaps(self, column: Array, values: Array) -> Array:
        """Ranks (repeats, m) between values of releases and their targets."""
        quantiles = self.request.quantiles * len(values)
        return np.asarray(gap(column, quantiles, values.ravel()), dtype=np.float64).reshape(values.shape)

    def largest(self, maker: Mechanism) -> Array:
        """Largest gaps (trials,) of the mechanism."""
        pairs = zip(self.columns, self.draws(maker), strict=True)
        return np.concatenate([np.max(self.gaps(column, values), axis=1) for column, values in pairs])

    def remarks(self, max_gap: float) -> list[str]:
        """What a forecast of this rehearsal depends on."""
        several = len(differing(self.request.priors)) > 1
        words = {
            "what": "priors" if several else "prior",
            "s": "" if several else "s",
            "are": "are" if several else "is",
        }
        remarks = [PUBLIC_REMARK if self.from_public else PRIOR_REMARK.format(**words)]
        if max_gap > FAR * self.size:
            remarks.append(FAR_REMARK)
        if self.told > self.size:
            remarks.append(MANY_REMARK.format(most=self.size, size=self.told))
        if self.request.step is not None and not self.from_public:
            half = _unit(self.kind).from_numbers([float(self.request.step) / 2.0])
            remarks.append(GRID_REMARK.format(half=_text(shown(half)[0]), ranks=self.ranks_of_half_a_step()))
        return remarks

    def ranks_of_half_a_step(self) -> float:
        """Records within half a step of where the quantiles are, at most, on average over columns."""
        half, counts = float(self.request.step or 0) / 2.0, []
        for column in self.columns:
            around = np.stack(ends_of_quantiles(column, self.request)).mean(axis=0)
            ends = [np.searchsorted(column, around + side * half) for side in (-1, 1)]
            counts.append(float(np.max(ends[1] - ends[0])) / 2.0)
        return float(np.mean(counts))


def _unit(kind: str) -> Any:
    """The kind of a distance between two values of a kind."""
    return NUMBER if kind == str(SIMPLE_KINDS[0]) else Duration()


def _text(value: str) -> str:
    """A number in three digits; a duration as it is, to the second where that is enough."""
    try:
        return f"{float(value):.3g}"
    except ValueError:
        return value.partition(".")[0] if value.count(":") == 2 and not value.startswith("0:00:0") else value
