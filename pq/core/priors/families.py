"""Priors: the distributions over outputs that steer a release (`eq:basic`, `cor:quantile`).

A prior is public. It sees no data: it answers how much measure it gives to an interval, and draws from an interval.
Every prior is an immutable value: equal by its parameters, hashable, picklable, with a plain description for results.
"""

from __future__ import annotations

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from numbers import Real
from typing import Any

import numpy as np

from pq.core.priors import special as _special
from pq.core.priors.special import Array

BLOCK = 8192  # intervals at a time: temporaries stay in the cache
LARGEST = float(np.finfo(np.float64).max)


def _real(value: Any, name: str) -> float:
    """A finite real argument as a float; raises naming the argument."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if not _is_real(value):
        raise TypeError(f"{name} must be a real number, got {type(value).__name__}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ValueError(f"{name} must be finite, got {value}")
    return number + 0.0  # one zero


def _scale(value: Any, name: str = "scale") -> float:
    number = _real(value, name)
    if number <= 0.0:
        raise ValueError(f"{name} must be positive, got {value}")
    return number


def _reals(values: Any, name: str) -> tuple[float, ...]:
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise TypeError(f"{name} must be a sequence of real numbers, got {type(values).__name__}")
    return tuple(_real(value, f"{name}[{i}]") for i, value in enumerate(values))


def _weights(values: Any, count: int, of: str) -> tuple[float, ...]:
    """Non-negative weights, divided by their sum; weights that add up to one already stay as they are."""
    weights = _reals(values, "weights")
    if len(weights) != count:
        raise ValueError(f"weights must have one entry for each of the {count} {of}, got {len(weights)}")
    if min(weights, default=0.0) < 0.0:
        raise ValueError("weights must not be negative")
    largest = max(weights, default=0.0)
    if largest <= 0.0:
        raise ValueError("weights must have a positive sum")
    if largest > 1e300:  # the sum could overflow
        weights = tuple(weight / largest for weight in weights)
    total = math.fsum(weights)
    return weights if abs(total - 1.0) <= 4e-16 else tuple(weight / total for weight in weights)


def _floats(values: Any, name: str) -> Array:
    """An array argument as float64; raises for text, booleans and other things that are no real numbers."""
    if type(values) is np.ndarray and values.dtype == np.float64:
        return values
    try:
        array = np.asarray(values)
        if array.dtype.kind in "fiu" or (array.dtype.kind == "O" and all(map(_is_real, array.flat))):
            return array.astype(np.float64)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{name} must be an array of float64 numbers: {error}") from None
    raise TypeError(f"{name} must hold real numbers, got {array.dtype}")


def _is_real(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool | np.bool_)


def _flat(*arrays: Array) -> tuple[list[Array], tuple[int, ...]]:
    """Arrays broadcast against each other and flattened, and their common shape."""
    shape = arrays[0].shape
    if any(array.shape != shape for array in arrays):
        arrays = tuple(np.broadcast_arrays(*arrays))
        shape = arrays[0].shape
    return [array if array.ndim == 1 else array.reshape(-1) for array in arrays], shape


def _shaped(values: Array, shape: tuple[int, ...]) -> Any:
    return values.reshape(shape) if shape else float(values[0])


def _in_blocks(kernel: Callable[..., Array], *arrays: Array) -> Array:
    size = arrays[0].size
    if size <= BLOCK:
        return kernel(*arrays)
    out = np.empty(size)
    for i in range(0, size, BLOCK):
        out[i : i + BLOCK] = kernel(*(array[i : i + BLOCK] for array in arrays))
    return out


class Prior(ABC):
    """A probability measure on the real line without atoms: the protocol that every prior follows.

    A subclass gives the private methods on flat float64 arrays; the public ones broadcast like numpy, take anything
    that turns into float64, return a `float` for scalar arguments and never warn.
    """

    @property
    @abstractmethod
    def support(self) -> tuple[float, float]:
        """Ends (low, high) of the smallest closed interval that has all the mass; they may be infinite."""

    @abstractmethod
    def _log_mass(self, lower: Array, upper: Array) -> Array: ...

    @abstractmethod
    def _log_density(self, o: Array) -> Array: ...

    @abstractmethod
    def _quantile(self, lower: Array, upper: Array, u: Array, v: Array) -> Array:
        """The point at share u = 1 - v of the mass of each interval; all have mass. May overshoot by rounding."""

    def _cores(self) -> list[tuple[float, float]]:
        """Closed intervals that hold the bulk of the mass: an interval without any mass is compared to them."""
        return [self.support]

    def log_mass(self, lower: Any, upper: Any) -> Any:
        """Log of the measure of (lower, upper] (`lem:quantile`, `eq:basic`).

        lower, upper: ends, any shapes that broadcast, in the unit of the data; infinite ends are fine.
        Returns a float or an array of the common shape, at most 0; -inf for an interval that is empty, inverted, NaN,
        or has no mass. Raises `TypeError` naming the argument that holds no real numbers.
        Accuracy: relative error of the returned log below 1e-12 everywhere, in tails with mass e^-800, for widths down
        to the least float, and where the mass is so near one that the log is -1e-300.

        >>> Laplace(0, 1).log_mass(800, 801)
        -801.151822
        >>> Uniform(0, 1).log_mass([0.0, 0.5, 2.0], [0.25, 1e9, 3.0])
        array([-1.38629436, -0.69314718,        -inf])
        """
        (a, b), shape = _flat(_floats(lower, "lower"), _floats(upper, "upper"))
        with np.errstate(all="ignore"):
            return _shaped(_in_blocks(self._log_mass, a, b), shape)

    def log_density(self, o: Any) -> Any:
        """Log density at `o` with respect to Lebesgue measure.

        o: points of any shape, in the unit of the data. Returns a float or an array of the same shape, in nats per unit
        of the data; -inf outside the support and for NaN. Raises `TypeError` where `o` holds no real numbers.

        >>> Uniform(0, 2).log_density(1.5)
        -0.693147
        """
        (flat,), shape = _flat(_floats(o, "o"))
        with np.errstate(all="ignore"):
            density = self._log_density(flat)
            return _shaped(np.where(np.isnan(density), -np.inf, density), shape)

    def quantile_between(self, lower: Any, upper: Any, uniform: Any) -> Any:
        """Inverse distribution function of the prior restricted to (lower, upper].

        lower, upper: ends, lower <= upper. uniform: shares in [0, 1). The three broadcast.
        Returns points in [lower, upper], finite wherever a finite float lies there, for intervals in any tail;
        increasing in `uniform` (for `Normal` and scipy priors up to the rounding of an iteration; a `Mixture` first
        takes a component by `uniform`: increasing within each). Where the prior has no mass, returns the end that is
        nearest to its support, whatever `uniform`. Raises `TypeError` or `ValueError` naming the argument.

        >>> Cauchy(0, 1).quantile_between(0, math.inf, [0.0, 0.5])
        array([0., 1.])
        >>> Uniform(0, 1).quantile_between(5, 6, 0.5)
        5.0
        """
        (a, b, u), shape = _flat(_floats(lower, "lower"), _floats(upper, "upper"), _floats(uniform, "uniform"))
        if np.isnan(a).any() or np.isnan(b).any():
            raise ValueError("lower and upper must not be NaN")
        if (a > b).any():
            raise ValueError("lower must not be above upper")
        if not ((u >= 0.0) & (u < 1.0)).all():
            raise ValueError("uniform must lie in [0, 1)")
        with np.errstate(all="ignore"):
            return _shaped(_in_blocks(self._draw, a, b, u), shape)

    def sample_between(self, lower: Any, upper: Any, rng: np.random.Generator) -> Any:
        """Independent draws from the prior restricted to each interval (lower, upper].

        lower, upper: ends, lower <= upper, any shapes that broadcast. rng: a `numpy.random.Generator`; one uniform for
        each draw. Returns and raises as `quantile_between`.

        >>> 800 <= Laplace(0, 1).sample_between(800, 801, np.random.default_rng(0)) <= 801
        True
        """
        if not isinstance(rng, np.random.Generator):
            raise TypeError(f"rng must be a numpy.random.Generator, got {type(rng).__name__}")
        a, b = _floats(lower, "lower"), _floats(upper, "upper")
        return self.quantile_between(a, b, rng.random(np.broadcast_shapes(a.shape, b.shape)))

    def mix(self, robust: Prior, weight: float) -> Mixture:
        """This prior made robust: (1 - weight) of it and `weight` of another (`cor:quantile`; the weight is lambda).

        robust: a heavier-tailed prior that is trusted. weight: in [0, 1], on `robust`. Raises `TypeError` or
        `ValueError` naming the argument.

        >>> Laplace(40, 2).mix(Cauchy(40, 20), 0.1).weights
        (0.9, 0.1)
        """
        if not isinstance(robust, Prior):
            raise TypeError(f"robust must be a prior, got {type(robust).__name__}")
        share = _real(weight, "weight")
        if not 0.0 <= share <= 1.0:
            raise ValueError(f"weight must lie in [0, 1], got {weight}")
        return Mixture((self, robust), (1.0 - share, share))

    def to_dict(self) -> dict[str, Any]:
        """Family and parameters as plain Python values, ready for JSON; `Prior.from_dict` is the inverse.

        >>> Cauchy(0, 1).to_dict()
        {'family': 'Cauchy', 'loc': 0.0, 'scale': 1.0}
        """
        values = {name: _plain(getattr(self, name)) for name in self.__dataclass_fields__}  # type: ignore[attr-defined]
        return {"family": type(self).__name__} | values

    @staticmethod
    def from_dict(description: Mapping[str, Any]) -> Prior:
        """The prior that `to_dict` described. Raises `TypeError` or `ValueError` naming what is wrong.

        >>> Prior.from_dict({"family": "Cauchy", "loc": 0.0, "scale": 1.0})
        Cauchy(loc=0.0, scale=1.0)
        """
        if not isinstance(description, Mapping):
            raise TypeError(f"description must be a mapping, got {type(description).__name__}")
        parameters = {key: value for key, value in description.items() if key != "family"}
        family = description.get("family")
        if family not in FAMILIES:
            raise ValueError(f"family must be one of {', '.join(FAMILIES)}, got {family!r}")
        return FAMILIES[family]._from_plain(parameters)

    @classmethod
    def _from_plain(cls, parameters: dict[str, Any]) -> Prior:
        return cls(**parameters)

    def _draw(self, lower: Array, upper: Array, u: Array) -> Array:
        out = lower.copy()
        has_mass = self._log_mass(lower, upper) > -np.inf
        k = np.flatnonzero(~has_mass & (lower < upper))
        if k.size:
            out[k] = self._nearest_end(lower[k], upper[k])
        k = np.flatnonzero(has_mass)
        if k.size:
            (a, b), (low, high) = (lower[k], upper[k]), self.support
            points = self._quantile(a, b, u[k], 1.0 - u[k])
            out[k] = np.clip(points, np.maximum(a, max(low, -LARGEST)), np.minimum(b, min(high, LARGEST)))
        return out

    def _nearest_end(self, lower: Array, upper: Array) -> Array:
        """For each interval that no core meets, its end that is nearer to a core (the lower one of two as near)."""
        lows, highs = (np.sort(ends) for ends in np.transpose(self._cores()))
        left = np.concatenate([[-np.inf], highs])[np.searchsorted(highs, lower, side="right")]
        right = np.concatenate([lows, [np.inf]])[np.searchsorted(lows, upper, side="left")]
        above = (right - upper < lower - left) | np.isinf(lower)
        return np.where(above & np.isfinite(upper), upper, lower)


def _plain(value: Any) -> Any:
    if isinstance(value, Prior):
        return value.to_dict()
    return [_plain(entry) for entry in value] if isinstance(value, tuple) else value


def _set(prior: Prior, **values: Any) -> None:
    """Store checked parameters in a frozen dataclass."""
    for name, value in values.items():
        object.__setattr__(prior, name, value)


@dataclass(frozen=True)
class Uniform(Prior):
    """The uniform law on [low, high]: the prior of the original mechanism, for data known to lie in a bounded interval.

    low, high: finite, low < high, in the unit of the data. Raises `TypeError` or `ValueError` naming the argument.

    >>> Uniform(0, 100).log_mass(20, 30)
    -2.302585
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        _set(self, low=_real(self.low, "low"), high=_real(self.high, "high"))
        if self.low >= self.high:
            raise ValueError(f"low must be below high, got {self.low} and {self.high}")

    @property
    def support(self) -> tuple[float, float]:
        return self.low, self.high

    def _log_mass(self, lower: Array, upper: Array) -> Array:
        return _special.uniform_log_mass(lower, upper, self.low, self.high)

    def _log_density(self, o: Array) -> Array:
        height = -float(_special.log_ratio(self.high, self.low, 1.0))
        return np.where((o >= self.low) & (o <= self.high), height, -np.inf)

    def _quantile(self, lower: Array, upper: Array, u: Array, v: Array) -> Array:
        return _special.between(np.maximum(lower, self.low), np.minimum(upper, self.high), u)


@dataclass(frozen=True)
class _LocationScale(Prior):
    """A law that is symmetric about `loc`, with all the line as its support."""

    loc: float
    scale: float

    def __post_init__(self) -> None:
        _set(self, loc=_real(self.loc, "loc"), scale=_scale(self.scale))

    @property
    def support(self) -> tuple[float, float]:
        return -math.inf, math.inf

    def _cores(self) -> list[tuple[float, float]]:
        return [(self.loc, self.loc)]


@dataclass(frozen=True)
class Cauchy(_LocationScale):
    """The Cauchy law: heavy tails make the price of a wrong location logarithmic in its error (`cor:cauchy`).

    loc: where the data is expected. scale: half the width of the expected range, positive; both in the unit of the
    data. Raises `TypeError` or `ValueError` naming the argument.

    >>> Cauchy(0, 1).log_mass(1e9, 1e9 + 1)
    -42.591262
    """

    def _log_mass(self, lower: Array, upper: Array) -> Array:
        return _special.cauchy_log_mass(lower, upper, self.loc, self.scale)

    def _log_density(self, o: Array) -> Array:
        return _cauchy_log_density(o, self.loc, self.scale)

    def _quantile(self, lower: Array, upper: Array, u: Array, v: Array) -> Array:
        return _special.location_scale_quantile(_special.cauchy_kernel, lower, upper, u, v, self.loc, self.scale)


def _cauchy_log_density(o: Array, loc: float, scale: float) -> Array:
    z = np.abs(_special.ratio(o, loc, scale))
    log_tail = np.where(z > 1e8, 2.0 * _special.log_ratio(o, loc, scale), np.log1p(z * z))
    return -_special.LOG_PI - math.log(scale) - log_tail


@dataclass(frozen=True)
class HalfCauchy(Prior):
    """The Cauchy law folded to the right of `loc`: for data with a lower bound (`sec:applications`).

    scale: the median's distance from `loc`, positive. loc: the lower bound; both in the unit of the data. Raises
    `TypeError` or `ValueError` naming the argument.

    >>> HalfCauchy(2).log_mass(0, 2)
    -0.693147
    """

    scale: float
    loc: float = 0.0

    def __post_init__(self) -> None:
        _set(self, scale=_scale(self.scale), loc=_real(self.loc, "loc"))

    @property
    def support(self) -> tuple[float, float]:
        return self.loc, math.inf

    def _log_mass(self, lower: Array, upper: Array) -> Array:
        return _special.cauchy_log_mass(np.maximum(lower, self.loc), upper, self.loc, self.scale, folded=True)

    def _log_density(self, o: Array) -> Array:
        return np.where(o >= self.loc, _special.LOG_2 + _cauchy_log_density(o, self.loc, self.scale), -np.inf)

    def _quantile(self, lower: Array, upper: Array, u: Array, v: Array) -> Array:
        lower = np.maximum(lower, self.loc)
        return _special.location_scale_quantile(_special.cauchy_kernel, lower, upper, u, v, self.loc, self.scale)


@dataclass(frozen=True)
class Laplace(_LocationScale):
    """The Laplace law: its log mass is convex in the parameters, so it is the prior to learn (`eq:closed-form`).

    loc: where the data is expected. scale: mean distance from it, positive; both in the unit of the data. Raises
    `TypeError` or `ValueError` naming the argument.

    >>> Laplace(0, 1).log_mass(0, 1e-20)
    -46.744849
    """

    def _log_mass(self, lower: Array, upper: Array) -> Array:
        return _special.laplace_log_mass(lower, upper, self.loc, self.scale)

    def _log_density(self, o: Array) -> Array:
        return -np.abs(_special.ratio(o, self.loc, self.scale)) - math.log(self.scale) - _special.LOG_2

    def _quantile(self, lower: Array, upper: Array, u: Array, v: Array) -> Array:
        return _special.location_scale_quantile(_special.laplace_kernel, lower, upper, u, v, self.loc, self.scale)


@dataclass(frozen=True)
class Normal(_LocationScale):
    """The normal law: light tails, so a wrong location costs the square of its error (`sec:applications`).

    loc: the mean. scale: the standard deviation, positive; both in the unit of the data. Raises `TypeError` or
    `ValueError` naming the argument.

    >>> Normal(0, 1).log_mass(40, math.inf)
    -804.608442
    """

    def _log_mass(self, lower: Array, upper: Array) -> Array:
        return _special.normal_log_mass(lower, upper, self.loc, self.scale)

    def _log_density(self, o: Array) -> Array:
        z = _special.ratio(o, self.loc, self.scale)
        return -0.5 * z * z - math.log(self.scale) - _special.LOG_SQRT_2_PI

    def _quantile(self, lower: Array, upper: Array, u: Array, v: Array) -> Array:
        return _special.location_scale_quantile(_special.normal_kernel, lower, upper, u, v, self.loc, self.scale)


@dataclass(frozen=True, repr=False)
class PiecewiseConstant(Prior):
    """A density that is constant on each bin: priors that can be learned with low regret (`thm:quantile-regret`).

    edges: (k + 1,) strictly increasing and finite, in the unit of the data. weights: (k,) probabilities of the bins,
    not negative; they are divided by their sum, which must be positive. Raises `TypeError` or `ValueError` naming the
    argument.

    >>> PiecewiseConstant([0, 1, 10], [3, 1])
    PiecewiseConstant(edges=(0.0, 1.0, 10.0), weights=(0.75, 0.25))
    """

    edges: tuple[float, ...]
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        edges = _reals(self.edges, "edges")
        if len(edges) < 2:
            raise ValueError(f"edges must have at least two entries, got {len(edges)}")
        if not all(a < b for a, b in pairwise(edges)):
            raise ValueError("edges must be strictly increasing")
        _set(self, edges=edges, weights=_weights(self.weights, len(edges) - 1, "bins"))

    def __repr__(self) -> str:
        if len(self.weights) > 16:
            return f"PiecewiseConstant(<{len(self.weights)} bins on [{self.edges[0]}, {self.edges[-1]}]>)"
        return f"PiecewiseConstant(edges={self.edges}, weights={self.weights})"

    def __getstate__(self) -> dict[str, Any]:
        return {"edges": self.edges, "weights": self.weights}

    @cached_property
    def _bins(self) -> _special.Bins:
        return _special.Bins(self.edges, self.weights)

    @property
    def support(self) -> tuple[float, float]:
        return self._cores()[0][0], self._cores()[-1][1]

    def _cores(self) -> list[tuple[float, float]]:
        return [(self.edges[i], self.edges[i + 1]) for i, weight in enumerate(self.weights) if weight > 0.0]

    def _log_mass(self, lower: Array, upper: Array) -> Array:
        return self._bins.log_mass(lower, upper)

    def _log_density(self, o: Array) -> Array:
        _, bins = self._bins.span(o, o)
        inside = (o >= self.edges[0]) & (o <= self.edges[-1])
        return np.where(inside, self._bins.log_weights[bins] - self._bins.log_widths[bins], -np.inf)

    def _quantile(self, lower: Array, upper: Array, u: Array, v: Array) -> Array:
        return self._bins.quantile(lower, upper, u)


@dataclass(frozen=True)
class Mixture(Prior):
    """A weighted mean of priors, which may be mixtures: keeps most of what each is good for (`cor:quantile`).

    priors: (k,) priors. weights: (k,) not negative; they are divided by their sum, which must be positive. Raises
    `TypeError` or `ValueError` naming the argument.

    >>> Mixture([Laplace(0, 1), Cauchy(0, 1)], [3, 1])
    Mixture(priors=(Laplace(loc=0.0, scale=1.0), Cauchy(loc=0.0, scale=1.0)), weights=(0.75, 0.25))
    """

    priors: tuple[Prior, ...]
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        if isinstance(self.priors, Prior) or not isinstance(self.priors, Iterable):
            raise TypeError(f"priors must be a sequence of priors, got {type(self.priors).__name__}")
        priors = tuple(self.priors)
        for i, prior in enumerate(priors):
            if not isinstance(prior, Prior):
                raise TypeError(f"priors[{i}] must be a prior, got {type(prior).__name__}")
        if not priors:
            raise ValueError("priors must not be empty")
        _set(self, priors=priors, weights=_weights(self.weights, len(priors), "priors"))

    @classmethod
    def _from_plain(cls, parameters: dict[str, Any]) -> Prior:
        priors = [Prior.from_dict(prior) for prior in parameters.pop("priors", ())]
        return cls(priors=tuple(priors), **parameters)

    @property
    def _parts(self) -> list[tuple[float, Prior]]:
        return [(w, prior) for w, prior in zip(self.weights, self.priors, strict=True) if w > 0.0]

    @property
    def support(self) -> tuple[float, float]:
        lows, highs = zip(*(prior.support for _, prior in self._parts), strict=True)
        return min(lows), max(highs)

    def _cores(self) -> list[tuple[float, float]]:
        return [core for _, prior in self._parts for core in prior._cores()]

    def _log_terms(self, lower: Array, upper: Array) -> list[Array]:
        return [prior._log_mass(lower, upper) + math.log(w) for w, prior in self._parts]

    def _log_mass(self, lower: Array, upper: Array) -> Array:
        terms = self._log_terms(lower, upper)
        out = terms[0]
        for term in terms[1:]:
            out = np.logaddexp(out, term)
        k = np.flatnonzero(out > -_special.LOG_2)
        if k.size:
            ends = np.full(k.size, np.inf)
            rest = np.zeros(k.size)
            for w, prior in self._parts:
                rest += w * (np.exp(prior._log_mass(-ends, lower[k])) + np.exp(prior._log_mass(upper[k], ends)))
            out[k] = np.log1p(-rest) + 0.0
        return out

    def _log_density(self, o: Array) -> Array:
        return np.logaddexp.reduce([prior._log_density(o) + math.log(w) for w, prior in self._parts])

    def _quantile(self, lower: Array, upper: Array, u: Array, v: Array) -> Array:
        """A component by u, in proportion to its mass in the interval, and what remains of u for the place in it."""
        terms = np.array(self._log_terms(lower, upper))
        shares = np.exp(terms - np.max(terms, axis=0))
        ends = np.cumsum(shares, axis=0)
        scaled = u * ends[-1]
        chosen = np.minimum(np.sum(ends <= scaled, axis=0), np.sum(ends < ends[-1], axis=0))
        out = np.empty(u.shape)
        for i, (_, prior) in enumerate(self._parts):
            k = np.flatnonzero(chosen == i)
            if k.size:
                start = ends[i - 1, k] if i else 0.0
                rest = np.clip((scaled[k] - start) / shares[i, k], 0.0, np.nextafter(1.0, 0.0))
                out[k] = prior._draw(lower[k], upper[k], rest)
        return out


@dataclass(frozen=True, repr=False)
class ScipyPrior(Prior):
    """A continuous distribution of `scipy.stats`, made by `from_scipy`.

    Its accuracy is that of the distribution's own `logcdf`, `logsf` and `logpdf`; where a difference of the first two
    would lose digits, the density is integrated. Equal by name and parameters; a distribution that is not one of
    `scipy.stats`'s own is equal only to itself.
    """

    distribution: str
    parameters: tuple[tuple[str, float], ...]
    frozen: Any = field(compare=False)
    custom: Any = None

    def __repr__(self) -> str:
        return f"from_scipy({self.distribution}({', '.join(f'{name}={value}' for name, value in self.parameters)}))"

    def to_dict(self) -> dict[str, Any]:
        name = self.distribution if self.custom is None else f"custom {self.distribution}"
        return {"family": "ScipyPrior", "distribution": name, "parameters": dict(self.parameters)}

    @classmethod
    def _from_plain(cls, parameters: dict[str, Any]) -> Prior:
        import scipy.stats

        name = str(parameters.get("distribution"))
        distribution = getattr(scipy.stats, name, None)
        if not isinstance(distribution, scipy.stats.rv_continuous):
            raise ValueError(f"distribution must be the name of a continuous one in scipy.stats, got {name!r}")
        return from_scipy(distribution(**parameters.get("parameters", {})))

    @property
    def support(self) -> tuple[float, float]:
        low, high = self.frozen.support()
        return float(low), float(high)

    def _cores(self) -> list[tuple[float, float]]:
        median = float(self.frozen.median())
        return [(median, median)]

    def _log_mass(self, lower: Array, upper: Array) -> Array:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _special.distribution_log_mass(lower, upper, self.frozen)

    def _log_density(self, o: Array) -> Array:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return np.asarray(self.frozen.logpdf(o), dtype=np.float64)

    def _quantile(self, lower: Array, upper: Array, u: Array, v: Array) -> Array:
        low, high = self.support
        start, stop = np.maximum(lower, max(low, -LARGEST)), np.minimum(upper, min(high, LARGEST))
        log_total, log_u, log_v = self._log_mass(start, stop), np.log(u), np.log(v)

        def left_of(x: Array) -> _special.Masks:
            low_half = u < 0.5
            share = self._log_mass(np.where(low_half, start, x), np.where(low_half, x, stop)) - log_total
            return np.where(low_half, share < log_u, share > log_v)

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an inverse that gives up is only a slow guess
            total, below, above = np.exp(log_total), self.frozen.cdf(start), self.frozen.sf(stop)
            on_left = below + u * total < above + v * total
            guess = np.where(on_left, self.frozen.ppf(below + u * total), self.frozen.isf(above + v * total))
        return np.where(u == 0.0, start, _special.bisect_floats(left_of, start, stop, guess))


def from_scipy(frozen: Any) -> Prior:
    """A frozen continuous distribution of `scipy.stats` as a prior.

    frozen: such as `scipy.stats.gamma(2.0, scale=3.0)`, with scalar parameters. The families that this module has
    (`uniform`, `cauchy`, `halfcauchy`, `laplace`, `norm`) come back as those; others as a `ScipyPrior`. Raises
    `TypeError` for a discrete or multivariate distribution or one that is not frozen, `ValueError` for parameters
    outside its domain.

    >>> import scipy.stats
    >>> from_scipy(scipy.stats.norm(40, 10))
    Normal(loc=40.0, scale=10.0)
    >>> from_scipy(scipy.stats.gamma(2, scale=3)).log_mass(0, math.inf)
    0.0
    """
    import scipy.stats

    distribution = getattr(frozen, "dist", None)
    if isinstance(distribution, scipy.stats.rv_discrete):
        raise TypeError("frozen must be a continuous distribution; a discrete one has atoms and no density")
    if isinstance(frozen, scipy.stats.rv_continuous):
        raise TypeError(
            f"frozen must be a frozen distribution: give its parameters, as in scipy.stats.{frozen.name}(...)"
        )
    if not isinstance(distribution, scipy.stats.rv_continuous):
        raise TypeError(f"frozen must be a frozen continuous scipy.stats distribution, got {type(frozen).__name__}")
    family, parameters = str(distribution.name), _scipy_parameters(frozen)
    loc, scale = dict(parameters)["loc"], dict(parameters)["scale"]
    stock: Any = getattr(scipy.stats, family, None)
    if type(distribution) is not type(stock) or (distribution.a, distribution.b) != (stock.a, stock.b):
        return ScipyPrior(family, parameters, frozen, custom=frozen)
    match family:
        case "uniform":
            return Uniform(loc, loc + scale)
        case "cauchy":
            return Cauchy(loc, scale)
        case "halfcauchy":
            return HalfCauchy(scale, loc)
        case "laplace":
            return Laplace(loc, scale)
        case "norm":
            return Normal(loc, scale)
    return ScipyPrior(family, parameters, frozen)


def _scipy_parameters(frozen: Any) -> tuple[tuple[str, float], ...]:
    """Names and values of all parameters of a frozen distribution; raises where they are outside its domain."""
    shapes = frozen.dist.shapes
    names = [*(shapes.replace(",", " ").split() if shapes else ()), "loc", "scale"]
    given = {"loc": 0.0, "scale": 1.0} | dict(zip(names, frozen.args, strict=False)) | frozen.kwds
    parameters = tuple((name, _real(given[name], f"frozen: {name}")) for name in names)
    _scale(given["scale"], "frozen: scale")
    if np.isnan(frozen.support()).any():
        raise ValueError(f"frozen must have parameters in the domain of {frozen.dist.name}, got {dict(parameters)}")
    return parameters


FAMILIES: dict[str, type[Prior]] = {
    cls.__name__: cls for cls in (Uniform, Cauchy, HalfCauchy, Laplace, Normal, PiecewiseConstant, Mixture, ScipyPrior)
}
