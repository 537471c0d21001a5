"""Distributions of `scipy.stats`, and whatever behaves like one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pq.core.priors.arguments import positive, real
from pq.core.priors.base import FAMILIES, Prior, set_parameters
from pq.core.priors.numerics import Array
from pq.core.priors.panels import Panels
from pq.core.priors.tabulate import tabulated
from pq.core.quiet import quiet


@dataclass(frozen=True, repr=False)
class ScipyPrior(Prior, twin=None, kernel=None):
    """A continuous distribution of `scipy.stats`, made by `from_scipy`.

    The distribution is asked once, at public points, and made a law on panels (`pq.core.priors.panels`): masses add up
    whatever it answers. Their accuracy is that of its `logcdf`, `logsf` and `logpdf` where these agree and are smooth.
    Equal by name and parameters; a distribution that is not one of `scipy.stats`'s own is equal only to itself.
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
            raise ValueError(
                "distribution must be the name of a continuous one in scipy.stats; one's own is code, which no "
                f"description holds, got {name!r}"
            )
        return from_scipy(distribution(**parameters.get("parameters", {})))

    def __post_init__(self) -> None:
        low, high = (float(end) for end in self.frozen.support())
        with quiet():
            panels = tabulated(self.frozen, low, high)
        set_parameters(self, _panels=panels, _support=(low, high))

    def __reduce__(self) -> tuple[Any, ...]:
        return from_scipy, (self.frozen,)

    @property
    def _table(self) -> Panels:
        return vars(self)["_panels"]

    @property
    def support(self) -> tuple[float, float]:
        return vars(self)["_support"]

    def _cores(self) -> list[tuple[float, float]]:
        median = float(self._quantile(*(np.array([x]) for x in (-np.inf, np.inf, 0.5, 0.5)))[0])
        return [(median, median)]

    def _log_mass(self, lower: Array, upper: Array) -> Array:
        return self._table.log_mass(lower, upper)

    def _log_density(self, o: Array) -> Array:
        return self._table.log_density(o)

    def _quantile(self, lower: Array, upper: Array, u: Array, v: Array) -> Array:
        edges = self._table.edges
        start, stop = np.maximum(lower, edges[0]), np.minimum(upper, edges[-1])
        return self._bisected(start, stop, u, v, self._table.guess(start, stop, u, v))


def from_scipy(frozen: Any) -> Prior:
    """A frozen continuous distribution of `scipy.stats` as a prior.

    frozen: such as `scipy.stats.gamma(2.0, scale=3.0)`, with scalar parameters. The laws that are families here
    (such as `cauchy` and `norm`) come back as those; others as a `ScipyPrior`, which asks the distribution some 60,000
    times when it is made: a blink for most, a minute for `levy_stable` and `studentized_range`. One of
    a class of one's own is code, of which `to_dict` tells name and parameters only: `Prior.from_dict` raises
    `ValueError` naming distribution for it, and a pickle takes its place. Raises `TypeError` for
    a discrete or multivariate distribution or one that is not frozen, `ValueError` for parameters outside its domain
    and for a distribution without mass.

    >>> import scipy.stats
    >>> from_scipy(scipy.stats.norm(40, 10))
    Normal(loc=40.0, scale=10.0)
    >>> from_scipy(scipy.stats.gamma(2, scale=3)).log_mass(0, np.inf)
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
    stock: Any = getattr(scipy.stats, family, None)
    if type(distribution) is not type(stock) or (distribution.a, distribution.b) != (stock.a, stock.b):
        return ScipyPrior(family, parameters, frozen, custom=frozen)
    twin = next((cls for cls in FAMILIES.values() if cls.twin == family), None)
    prior = twin._from_twin(dict(parameters)) if twin is not None else None
    return ScipyPrior(family, parameters, frozen) if prior is None else prior


def _scipy_parameters(frozen: Any) -> tuple[tuple[str, float], ...]:
    """Names and values of all parameters of a frozen distribution; raises where they are outside its domain."""
    shapes = frozen.dist.shapes
    names = [*(shapes.replace(",", " ").split() if shapes else ()), "loc", "scale"]
    given = {"loc": 0.0, "scale": 1.0} | dict(zip(names, frozen.args, strict=False)) | frozen.kwds
    parameters = tuple((name, real(given[name], f"frozen: {name}")) for name in names)
    positive(given["scale"], "frozen: scale")
    with np.errstate(all="ignore"):  # an end beyond the floats is infinite
        ends = frozen.support()
    if np.isnan(ends).any():
        raise ValueError(f"frozen must have parameters in the domain of {frozen.dist.name}, got {dict(parameters)}")
    return parameters
