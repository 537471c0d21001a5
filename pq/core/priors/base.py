"""What every prior is: a public measure that answers how much mass an interval has, and draws from an interval.

A prior sees no data. It is an immutable value: equal by its parameters, hashable, picklable, with a plain description
for results. A family of priors is one file, and making its class registers it: to describe it, to read it from a
description or from the command line, to know its twin in `scipy.stats` and its machine code, nothing else is edited.
"""

from __future__ import annotations

import inspect
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from pq.core.priors.arguments import finite_number, floats
from pq.core.priors.kernel import Kernel, Row, give_kind
from pq.core.priors.numerics import FLOAT_SHARE, LARGEST, RAREST, Array, Masks, bisect_floats, numbers_only

if TYPE_CHECKING:
    from pq.core.priors.mixture import Mixture

BLOCK = 8192  # intervals at a time: temporaries stay in the cache
FAMILIES: dict[str, type[Prior]] = {}
UNSAID: Any = object()
LOG_FLOAT_SHARE = math.log(FLOAT_SHARE)


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

    A family is a frozen dataclass of its parameters that says `twin`, the name of the same law in `scipy.stats`, and
    `kernel`, its machine code, each of them None where there is none; a part that is left out is a `TypeError` when the
    class is made. It gives the private methods on flat float64 arrays; the public ones broadcast like numpy, take
    anything that turns into float64, return a `float` for scalar arguments, never warn, and never answer NaN. A class
    that derives from a family is a variation of it: it has the family's name, twin and parameters.

    A family is code that is handed records as ends of intervals. That the masses of one of your own add up, are the
    same in every call, and that it neither raises nor tells what it was asked, is a public promise of yours;
    `from_scipy` needs none, for it asks a distribution at public points only.

    Guarantees: `_log_mass` of a family here has the additivity of a measure: an interval that is cut has the mass of
    its pieces, up to a relative error of 1e-12 in the logarithms (1e-11 of `OrderStatistic`). A drawn float stands for
    all numbers from the float before it up to itself, wherever these have more than 2^-20 of the interval's mass, which
    is above e^-2^30: so no end of an interval that is a float moves mass from one float to another, however narrow the
    prior is.
    """

    family: ClassVar[str]
    twin: ClassVar[str | None]
    kernel: ClassVar[Kernel | None]

    def __init_subclass__(cls, *, twin: str | None = UNSAID, kernel: Kernel | None = UNSAID) -> None:
        super().__init_subclass__()
        if issubclass(cls, tuple(FAMILIES.values())):
            return
        missing = [name for name, part in inspect.getmembers(cls) if getattr(part, "__isabstractmethod__", False)]
        missing += [name for name, said in (("twin", twin), ("kernel", kernel)) if said is UNSAID]
        if kernel not in (None, UNSAID) and cls._row is Prior._row:
            missing.append("_row")
        if missing:
            raise TypeError(f"the family of priors {cls.__name__} lacks {', '.join(missing)}")
        other = FAMILIES.get(cls.__name__)
        if other is not None and other.__module__ != cls.__module__:
            raise TypeError(f"there is a family of priors {cls.__name__} already, in {other.__module__}")
        cls.family, cls.twin, cls.kernel = cls.__name__, twin, kernel
        FAMILIES[cls.__name__] = cls
        if kernel is not None:
            give_kind(cls)

    @abstractmethod
    def __post_init__(self) -> None:
        """Check the parameters: each is a finite number in its range, or the constructor raises naming it."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Through the constructor, whatever was kept for speed: a pickle brings no parameter that was not checked."""
        return type(self), tuple(getattr(self, name) for name in parameters_of(type(self)))

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

    def _row(self) -> Row | None:
        """The two parameters of the family's machine code; None where they are beyond its range."""
        return None

    def _components(self) -> list[tuple[float, Prior]]:
        """Weights and priors, of which this one is the weighted mean; itself alone where it has no parts."""
        return [(1.0, self)]

    @classmethod
    def _from_twin(cls, parameters: dict[str, float]) -> Prior | None:
        """The prior that is the twin with these parameters; None where the family has no such member."""
        return cls(**parameters)

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

        >>> import pq
        >>> pq.Laplace(0, 1).log_mass(800, 801)
        -801.151822
        >>> pq.Uniform(0, 1).log_mass([0.0, 0.5, 2.0], [0.25, 1e9, 3.0])
        array([-1.38629436, -0.69314718,        -inf])
        """
        (a, b), shape = _flat(floats(lower, "lower"), floats(upper, "upper"))
        with np.errstate(all="ignore"):
            return _shaped(_in_blocks(self._checked_log_mass, a, b), shape)

    def log_density(self, o: Any) -> Any:
        """Log density at `o` with respect to Lebesgue measure.

        o: points of any shape, in the unit of the data. Returns a float or an array of the same shape, in nats per unit
        of the data; -inf outside the support and for NaN. Raises `TypeError` where `o` holds no real numbers.

        >>> import pq
        >>> pq.Uniform(0, 2).log_density(1.5)
        -0.693147
        """
        (flat,), shape = _flat(floats(o, "o"))
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

        >>> import pq
        >>> pq.Cauchy(0, 1).quantile_between(0, np.inf, [0.0, 0.5])
        array([0., 1.])
        >>> pq.Uniform(0, 1).quantile_between(5, 6, 0.5)
        5.0
        """
        (a, b, u), shape = _flat(floats(lower, "lower"), floats(upper, "upper"), floats(uniform, "uniform"))
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

        >>> import pq
        >>> 800 <= pq.Laplace(0, 1).sample_between(800, 801, np.random.default_rng(0)) <= 801
        True
        """
        if not isinstance(rng, np.random.Generator):
            raise TypeError(f"rng must be a numpy.random.Generator, got {type(rng).__name__}")
        a, b = floats(lower, "lower"), floats(upper, "upper")
        return self.quantile_between(a, b, rng.random(np.broadcast_shapes(a.shape, b.shape)))

    def mix(self, robust: Prior, weight: float) -> Mixture:
        """This prior made robust: (1 - weight) of it and `weight` of another (`cor:quantile`; the weight is lambda).

        robust: a heavier-tailed prior that is trusted. weight: in [0, 1], on `robust`. Raises `TypeError` or
        `ValueError` naming the argument.

        >>> import pq
        >>> pq.Laplace(40, 2).mix(pq.Cauchy(40, 20), 0.1).weights
        (0.9, 0.1)
        """
        if not isinstance(robust, Prior):
            raise TypeError(f"robust must be a prior, got {type(robust).__name__}")
        share = finite_number(weight, "weight")
        if not 0.0 <= share <= 1.0:
            raise ValueError(f"weight must lie in [0, 1], got {share}")
        from pq.core.priors.mixture import Mixture

        return Mixture((self, robust), (1.0 - share, share))

    def to_dict(self) -> dict[str, Any]:
        """Family and parameters, ready for JSON; `from_dict` is the inverse, but for laws of one's own (`from_scipy`).

        >>> import pq
        >>> pq.Cauchy(0, 1).to_dict()
        {'family': 'Cauchy', 'loc': 0.0, 'scale': 1.0}
        """
        return {"family": self.family} | {name: _plain(getattr(self, name)) for name in parameters_of(type(self))}

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
        log_masses = self._log_mass(lower, upper)
        has_mass = log_masses > -np.inf  # not where it is NaN
        k = np.flatnonzero(~has_mass & (lower < upper))
        if k.size:
            out[k] = self._nearest_end(lower[k], upper[k])
        k = np.flatnonzero(has_mass)
        if k.size:
            (a, b), (low, high) = (lower[k], upper[k]), self.support
            points = self._quantile(a, b, u[k], 1.0 - u[k])
            if (lost := np.flatnonzero(np.isnan(points))).size:  # beyond the range of the family's formula
                ends, share = (a[lost], b[lost]), u[k][lost]
                points[lost] = self._bisected(*ends, share, 1.0 - share, np.zeros(lost.size))
            points = np.clip(points, np.maximum(a, max(low, -LARGEST)), np.minimum(b, min(high, LARGEST)))
            out[k] = self._on_floats(a, b, u[k], points, log_masses[k])
        return out

    def _on_floats(self, lower: Array, upper: Array, u: Array, points: Array, log_masses: Array) -> Array:
        """Points near which single floats have much of an interval's mass, exactly: the least float up to which the
        interval has a share u. The others as they are, for which rounding decides nothing that anybody could see (no
        release draws where the mass is below e^-2^30)."""
        start = np.nextafter(np.nextafter(points, -np.inf), -np.inf)
        near = self._log_mass(np.maximum(lower, start), np.minimum(upper, np.nextafter(points, np.inf)))
        k = np.flatnonzero((near - log_masses > LOG_FLOAT_SHARE) & (u > 0.0) & (log_masses > RAREST))
        if k.size:
            found = self._bisected(lower[k], upper[k], u[k], 1.0 - u[k], points[k])
            points[k] = np.clip(found, np.nextafter(lower[k], np.inf), np.minimum(upper[k], LARGEST))
        return points

    def _checked_log_mass(self, lower: Array, upper: Array) -> Array:
        """What is no number counts as no mass: that is fixed before any data."""
        masses = self._log_mass(lower, upper)
        total = masses.dot(masses)  # the cheapest way to look for NaN
        return masses if total == total else numbers_only(masses)

    def _bisected(self, lower: Array, upper: Array, u: Array, v: Array, guess: Array) -> Array:
        """The point at share u = 1 - v of each interval's mass by bisection over the floats; `guess` saves time."""
        log_total, log_u, log_v, low_half = self._log_mass(lower, upper), np.log(u), np.log(v), u < 0.5

        def left_of(x: Array) -> Masks:
            share = self._log_mass(np.where(low_half, lower, x), np.where(low_half, x, upper)) - log_total
            return np.where(low_half, share < log_u, share > log_v)

        return np.where(u == 0.0, lower, bisect_floats(left_of, lower, upper, guess))

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


def parameters_of(family: type[Prior]) -> dict[str, type]:
    """Names of a family's parameters and what they are, in the order of its constructor."""
    signature = inspect.signature(family)
    return {name: parameter.annotation for name, parameter in signature.parameters.items()}


def spelled_families() -> dict[str, type[Prior]]:
    """The families whose parameters are numbers, by the names that the command line knows them under.

    >>> "halfcauchy" in spelled_families(), "mixture" in spelled_families()
    (True, False)
    """
    numbers = ("float", float)
    return {
        name.lower(): family
        for name, family in FAMILIES.items()
        if all(kind in numbers for kind in parameters_of(family).values())
    }


def spelling(family: type[Prior]) -> str:
    """How a family is written on the command line.

    >>> spelling(FAMILIES["Cauchy"])
    'cauchy(loc, scale)'
    """
    return f"{family.family.lower()}({', '.join(parameters_of(family))})"


def set_parameters(of: Prior, /, **values: Any) -> None:
    """Store checked parameters in a frozen dataclass."""
    for name, value in values.items():
        object.__setattr__(of, name, value)
