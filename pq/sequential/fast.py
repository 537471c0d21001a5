"""`pq.release` again, quickly, for many small data sets: the same outputs from the same uniforms (`alg:quantiles`).

A sequence makes thousands of releases of a hundred records each, where `pq.release` spends its time on the handling of
small arrays. Here the log masses of all cells under all priors are one array operation, and what happens at the two
ends of a node's interval is scalar arithmetic. The law is that of `pq.exponential`; the tests compare the outputs of
the two, uniform by uniform. Whatever is unusual (grids, other adaptations or arities, numbers beyond the range of the
simple formulas) is left to `pq.release`, with the same uniforms, so that the law does not depend on which path is
taken.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from pq.column import sorted_values
from pq.plan import Node, Plan
from pq.priors import Cauchy, HalfCauchy, Laplace, Mixture, Prior, Uniform
from pq.release import Release, Request, _result, _run

FloatArray = npt.NDArray[np.float64]

_LOG_2 = math.log(2.0)
_BELOW_ONE = math.nextafter(1.0, 0.0)
_MODERATE = 1e100  # records, locations and scales within it, the latter also above its inverse: nothing overflows


class OneLaw(Protocol):
    """One prior in scalar arithmetic: the log mass of (a, b], and the point at a share of it."""

    def log_mass(self, a: float, b: float) -> float: ...
    def quantile(self, a: float, b: float, u: float) -> float: ...


@dataclass(slots=True)
class LaplaceLaw:
    """See `pq.Laplace`; ends of intervals may be infinite."""

    loc: float
    scale: float

    def log_mass(self, a: float, b: float) -> float:
        width = (b - a) / self.scale
        if not width > 0.0:
            return -math.inf
        near, far = (a - self.loc) / self.scale, (b - self.loc) / self.scale
        if near >= 0.0 or far <= 0.0:
            return math.log(-math.expm1(-width)) - max(near, -far) - _LOG_2
        mass = -0.5 * (math.expm1(near) + math.expm1(-far))
        return math.log(mass) if mass < 0.5 else math.log1p(-0.5 * (math.exp(near) + math.exp(-far)))

    def quantile(self, a: float, b: float, u: float) -> float:
        near, far = (a - self.loc) / self.scale, (b - self.loc) / self.scale
        width = (b - a) / self.scale
        if near >= 0.0:
            return a + self.scale * _exponential(width, u)
        if far <= 0.0:
            return b - self.scale * _exponential(width, 1.0 - u)
        left, right = -math.expm1(near), -math.expm1(-far)  # twice the masses on either side of the location
        total = left + right
        if u * total < left:
            return self.loc + self.scale * math.log(math.exp(near) + u * total)
        return self.loc - self.scale * math.log(math.exp(-far) + (1.0 - u) * total)


def _exponential(width: float, u: float) -> float:
    """The point at share u of the unit exponential law on [0, width]."""
    if width < 1e-17:
        return u * width
    return -math.log1p(u * math.expm1(-width)) if u < 0.5 else -math.log((1.0 - u) + u * math.exp(-width))


@dataclass(slots=True)
class CauchyLaw:
    """See `pq.Cauchy`, and `pq.HalfCauchy` if folded."""

    loc: float
    scale: float
    folded: bool = False

    def log_mass(self, a: float, b: float) -> float:
        a = max(a, self.loc) if self.folded else a
        if not b > a:
            return -math.inf
        return math.log(self._angle(a, b) * (2.0 if self.folded else 1.0) / math.pi)

    def _angle(self, a: float, b: float) -> float:
        near, far = (a - self.loc) / self.scale, (b - self.loc) / self.scale
        if math.isinf(a) or math.isinf(b):
            return math.pi if math.isinf(a) and math.isinf(b) else math.atan2(1.0, near if math.isinf(b) else -far)
        return math.atan2((b - a) / self.scale, 1.0 + near * far)

    def quantile(self, a: float, b: float, u: float) -> float:
        a = max(a, self.loc) if self.folded else a
        near, far = (a - self.loc) / self.scale, (b - self.loc) / self.scale
        total, start, unit, v = self._angle(a, b), a, self.scale, 1.0 - u
        if near + far < 0.0:  # mirror, so that angles are measured from the nearer end of the line
            near, far, start, unit, u, v = -far, -near, b, -self.scale, v, u
        if near > -1.0 and u * total < 0.5 * math.atan2(1.0, near):  # an offset from the near end keeps its digits
            tangent = math.tan(u * total)
            return start + unit * (1.0 + near * near) * tangent / (1.0 - near * tangent)
        angle = math.atan2(1.0, far) + v * total
        if angle < 0.5 * math.pi:
            return self.loc + unit / math.tan(angle)
        return self.loc - unit / math.tan(math.atan2(1.0, -near) + u * total)


@dataclass(slots=True)
class UniformLaw:
    """See `pq.Uniform`."""

    low: float
    high: float

    def log_mass(self, a: float, b: float) -> float:
        width = min(b, self.high) - max(a, self.low)
        return math.log(width / (self.high - self.low)) if width > 0.0 else -math.inf

    def quantile(self, a: float, b: float, u: float) -> float:
        a, b = max(a, self.low), min(b, self.high)
        return a + u * (b - a) if u < 0.5 else b - (1.0 - u) * (b - a)


@dataclass(slots=True)
class MixedLaw:
    """See `pq.Mixture`, of two: a uniform chooses the component first, and what remains of it the point."""

    one: OneLaw
    other: OneLaw
    log_weight: float
    log_other_weight: float

    def _terms(self, a: float, b: float) -> tuple[float, float, float]:
        """The larger of the two log masses, and both masses divided by it."""
        mine = self.one.log_mass(a, b) + self.log_weight
        rest = self.other.log_mass(a, b) + self.log_other_weight
        return (mine, 1.0, math.exp(rest - mine)) if mine >= rest else (rest, math.exp(mine - rest), 1.0)

    def log_mass(self, a: float, b: float) -> float:
        if not b > a:
            return -math.inf
        top, mine, rest = self._terms(a, b)
        return top + math.log(mine + rest)

    def quantile(self, a: float, b: float, u: float) -> float:
        _, mine, rest = self._terms(a, b)
        scaled = u * (mine + rest)
        if scaled < mine or rest == 0.0:
            return self.one.quantile(a, b, min(scaled / mine, _BELOW_ONE))
        return self.other.quantile(a, b, min((scaled - mine) / rest, _BELOW_ONE))


_LAWS: dict[type[Prior], Callable[[Any], OneLaw]] = {
    Laplace: lambda prior: LaplaceLaw(prior.loc, prior.scale),
    Cauchy: lambda prior: CauchyLaw(prior.loc, prior.scale),
    HalfCauchy: lambda prior: CauchyLaw(prior.loc, prior.scale, folded=True),
    Uniform: lambda prior: UniformLaw(prior.low, prior.high),
}


def law_of(prior: Prior) -> OneLaw | None:
    """The scalar form of a prior, None if it has none here."""
    if isinstance(prior, Mixture):
        laws = [_LAWS[type(part)](part) for part in prior.priors if type(part) in _LAWS]
        if len(laws) == len(prior.priors) == 2 and min(prior.weights) > 0.0:
            return MixedLaw(laws[0], laws[1], *map(math.log, prior.weights))
        return None
    make = _LAWS.get(type(prior))
    return None if make is None else make(prior)


def laplace_log_mass(edges: FloatArray, loc: FloatArray, scale: FloatArray) -> FloatArray:
    """Log masses (..., c) of the cells between edges (c + 1,) under Laplace laws (...,)."""
    z = (edges - loc[..., None]) / scale[..., None]
    near = np.maximum(z[..., :-1], -z[..., 1:])  # distance of the nearer end, negative where the location is inside
    out: FloatArray = np.log(-np.expm1(-np.diff(edges) / scale[..., None]))
    out -= np.maximum(near, 0.0)
    out -= _LOG_2
    inside = np.nonzero(near < 0.0)
    left, right = z[..., :-1][inside], z[..., 1:][inside]
    rest, mass = 0.5 * (np.exp(left) + np.exp(-right)), -0.5 * (np.expm1(left) + np.expm1(-right))
    out[inside] = np.where(mass < 0.5, np.log(mass), np.log1p(-rest))
    return out


def mixed_log_mass(edges: FloatArray, loc: FloatArray, scale: FloatArray, robust: Any, weight: float) -> FloatArray:
    """Log masses (..., c) of the cells under Laplace laws with a robust law mixed in; its own log masses are (c,)."""
    mine = laplace_log_mass(edges, loc, scale)
    return mine if robust is None else np.logaddexp(mine + math.log(1.0 - weight), robust + math.log(weight))


def cell_log_masses(edges: FloatArray, priors: Sequence[Prior]) -> FloatArray:
    """Log masses (m, c) of the cells under each prior; equal priors are evaluated once, Laplace laws all together."""
    rows = np.empty((len(priors), len(edges) - 1))
    kinds: dict[Any, list[int]] = {}
    for i, prior in enumerate(priors):
        kinds.setdefault(_kind(prior), []).append(i)
    for kind, members in kinds.items():
        if isinstance(kind, Prior):
            rows[members] = kind.log_mass(edges[:-1], edges[1:])
            continue
        robust, weight = kind
        laplaces: Any = [priors[i] if robust is None else priors[i].priors[0] for i in members]  # type: ignore[attr-defined]
        loc, scale = np.array([law.loc for law in laplaces]), np.array([law.scale for law in laplaces])
        other = None if robust is None else robust.log_mass(edges[:-1], edges[1:])
        rows[members] = mixed_log_mass(edges, loc, scale, other, weight)
    return rows


def _kind(prior: Prior) -> Any:
    """What a prior shares with those that are evaluated together with it: (robust part, its weight), else itself."""
    if type(prior) is Laplace:
        return None, 0.0
    if type(prior) is Mixture and len(prior.priors) == 2 and type(prior.priors[0]) is Laplace:
        return prior.priors[1], prior.weights[1]
    return prior


class Walker:
    """A binary plan, prepared for many walks."""

    def __init__(self, plan: Plan) -> None:
        self.root, self.floored = plan.root, plan.calibration == "paper"
        self.mechanisms = [(m.rate, m.relative.numerator, m.relative.denominator) for m in plan.mechanisms]

    def outputs(
        self, edges: FloatArray, log_mass: FloatArray, laws: Sequence[OneLaw], uniforms: Sequence[Sequence[float]]
    ) -> list[float]:
        """The output of each distinct quantile.

        edges: (n + 2,) minus infinity, the sorted records, infinity. log_mass: (m, n + 1) of the cells. laws: (m,).
        uniforms: (m, 2) in (0, 1). Raises `ArithmeticError` or `ValueError` where the numbers are beyond these
        formulas; the caller suppresses floating-point warnings.
        """
        ends, n = edges.tolist(), len(edges) - 2
        ranks = np.arange(n + 1.0)
        out = [0.0] * len(laws)
        pending: list[tuple[Node, int, int, float, float]] = [(self.root, 0, n, -math.inf, math.inf)]
        while pending:
            node, first, last, low, high = pending.pop()
            (i,) = node.indices
            law, (rate, above, below), size = laws[i], self.mechanisms[i], last - first
            target = float(above * size // below) if self.floored else above * size / below
            weights = np.abs(ranks[: size + 1] - target)
            weights *= -rate
            weights += log_mass[i, first : last + 1]
            if low > -math.inf or first == last:
                weights[0] = law.log_mass(low, high if first == last else ends[first + 1]) - rate * target
            if high < math.inf and first < last:
                weights[-1] = law.log_mass(ends[last], high) - rate * abs(size - target)
            cell = first + _pick(weights, uniforms[i][0])
            a = low if cell == first else ends[cell]
            b = high if cell == last else ends[cell + 1]
            o = min(max(law.quantile(a, b, uniforms[i][1]), math.nextafter(a, math.inf), low), high)
            if not math.isfinite(o):
                raise ValueError("beyond the range of the formulas")
            out[i] = o
            if node.children:
                after = cell if o < ends[cell + 1] else int(np.searchsorted(edges, o, side="right")) - 1
                parts = (first, cell, low, o), (after, last, o, high)
                pending += [(child, *part) for child, part in zip(node.children, parts, strict=True) if child]
        return out


def _pick(log_weights: FloatArray, uniform: float) -> int:
    top = float(log_weights.max())
    if not math.isfinite(top):
        raise ValueError("no cell has weight")
    log_weights -= top
    running = np.exp(log_weights, out=log_weights).cumsum()
    index = int(running.searchsorted(uniform * float(running[-1]), side="right"))
    return index if index < len(running) else int(running.searchsorted(running[-1], side="left"))


def records_of(x: Any, on_nan: str) -> FloatArray:
    """`pq.column.sorted_values`, with a short way for an array that is already what that would give."""
    if type(x) is np.ndarray and x.dtype == np.float64 and x.ndim == 1 and len(x):
        moderate = x[0] > -_MODERATE and x[-1] < _MODERATE  # false for NaN
        if moderate and bool((x[1:] >= x[:-1]).all()):
            return x
    return sorted_values(x, on_nan)


def draw_uniforms(m: int, rng: np.random.Generator) -> list[list[float]]:
    """Uniforms (m, 2) strictly inside (0, 1), as `pq.release` draws them."""
    drawn: list[list[float]] = (rng.integers(1, 2**53, (m, 2)) * 2.0**-53).tolist()
    return drawn


def release_one(request: Request, x: Any, rng: np.random.Generator, walker: Walker | None = None) -> Release:
    """What `pq.release` gives for a checked request: the same values from the same state of the generator.

    walker: of the request's plan, if there is one already.
    """
    uniforms = draw_uniforms(len(request.plan.distinct), rng)
    with np.errstate(all="ignore"):
        outputs = None
        if request.step is None and request.adaptation == "conditional" and request.plan.arity == 2:
            outputs = _try(request, records_of(x, request.on_nan), uniforms, walker or Walker(request.plan))
        if outputs is None:
            outputs = _run(request, request.column(x), uniforms)
        values = np.array([outputs[i] for i in request.plan.positions])
    values.flags.writeable = False
    return _result(request, values)


def _try(request: Request, records: FloatArray, uniforms: list[list[float]], walker: Walker) -> list[float] | None:
    laws = [law_of(prior) for prior in request.priors]
    moderate = len(records) == 0 or max(-records[0], records[-1]) < _MODERATE
    if None in laws or not moderate or math.isinf(request.plan.epsilon):
        return None
    edges = np.concatenate([[-np.inf], records, [np.inf]])
    try:
        return walker.outputs(edges, cell_log_masses(edges, request.priors), laws, uniforms)  # type: ignore[arg-type]
    except (ArithmeticError, ValueError):
        return None
