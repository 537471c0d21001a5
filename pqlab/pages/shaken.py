"""Another processor's last bits: elementary functions moved by a unit in the last place, sums taken in another order.

Processors and libraries agree on sums, products and roots of two numbers to the last bit, but not on exponentials and
their kin, and not on the order in which many numbers are added.  `install` changes both for the running interpreter, as
if it ran on a machine that differs: a shaken function is still a function (the same argument gives the same result), of
the same accuracy but for one unit.  It reaches what looks a function up by its module when it calls it, `np.exp`,
`math.log`, `scipy.special.erf`, in pages, package and libraries alike, and the machine code that is compiled
afterwards.  It does not reach operators (`**`, `@`) and methods (`.sum()`).

This file imports nothing of `pq`, so that what `pq` takes from scipy is shaken before.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import scipy.special

_NUMPY = (
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sinh", "cosh", "tanh", "sin", "cos", "tan", "arctan",
    "arctan2", "power", "logaddexp",
)  # fmt: skip
_MATH = (
    "exp", "expm1", "log", "log2", "log10", "log1p", "tanh", "sin", "cos", "tan", "atan", "atan2", "pow", "erf", "erfc",
    "lgamma",
)  # fmt: skip
_SCIPY = ("erf", "erfc", "erfcx", "ndtr", "ndtri", "log_ndtr", "gammaln", "betainc", "betaincc")
_OF_TWO = ("arctan2", "power", "logaddexp", "atan2", "pow")
_SUMS = ("sum", "mean", "var", "std")
_WHOLE = 1024.0  # exp of 0, log of 1, tanh of 40: functions are exact or saturated there, on every processor
_frexp, _ldexp, _isfinite, _floor = math.frexp, math.ldexp, math.isfinite, math.floor


class Shaken:
    """A function of real numbers whose results are moved by -1, 0 or 1 unit in the last place.

    function: of numpy, scipy.special or math. salt: an integer; which way a result is moved depends on it and on the
    result. Small whole numbers stay. All else about the function is as it was.
    """

    def __init__(self, function: Callable[..., Any], salt: int) -> None:
        self._function, self._salt = function, salt
        self._compiled: Any = None

    def __call__(self, *args: Any, **options: Any) -> Any:
        result = self._function(*args, **options)
        if type(result) is float:
            return moved(result, self._salt)
        if type(result) is np.float64:
            return np.float64(moved(float(result), self._salt))
        if type(result) is np.ndarray and result.dtype == np.float64:
            result[...] = moved_array(result, self._salt)  # in place: it may be the caller's own `out`
        return result

    def __getattr__(self, name: str) -> Any:
        if name == "_function":  # not yet there: a copy is being made
            raise AttributeError(name)
        return getattr(self._function, name)

    @property
    def _numba_type_(self) -> Any:
        """What the compiler puts in this function's place."""
        import numba

        if self._compiled is None:
            function, salt, move = self._function, self._salt, numba.njit(moved)
            make = numba.vectorize if isinstance(function, np.ufunc) else numba.njit
            if function.__name__ in _OF_TWO:
                of_two = make(lambda x, y: move(function(x, y), salt))
                self._compiled = numba.njit(lambda x, y: of_two(x, y))
            else:
                of_one = make(lambda x: move(function(x), salt))
                self._compiled = numba.njit(lambda x: of_one(x))
        return numba.typeof(self._compiled)


def moved(x: float, salt: int) -> float:
    """Move a number as `Shaken` does.

    >>> moved(1.0, 5), {(moved(x, 5) - x) / math.ulp(x) for x in (0.3, 0.4, 0.55, 0.7, 0.8)} <= {-1, 0, 1}
    (1.0, True)
    """
    if not _isfinite(x) or (abs(x) < _WHOLE and x == _floor(x)):
        return x
    mantissa, exponent = _frexp(x)
    # Low halves only, so that Python's integers, numpy's and the compiler's agree without overflow.
    key = (int(mantissa * 9007199254740992.0) + exponent + salt) & 0x7FFFFFFF
    return x + (((key * 1103515245 + 12345) >> 20) % 3 - 1) * _ldexp(1.0, exponent - 53)


def moved_array(x: Any, salt: int) -> Any:
    """Move the numbers of an array (...), each as `moved` does."""
    finite = np.where(np.isfinite(x), x, 0.0)
    mantissa, exponent = np.frexp(finite)
    key = ((mantissa * 9007199254740992.0).astype(np.int64) + exponent + salt) & 0x7FFFFFFF
    steps = ((key * 1103515245 + 12345) >> 20) % 3 - 1
    stays = (np.abs(finite) < _WHOLE) & (finite == np.floor(finite))
    return np.where(stays, x, x + steps * np.ldexp(1.0, exponent - 53))


class Reordered:
    """A sum, or what is made of one, over the same numbers in another order; exact sums stay as they are.

    function: takes an array and an axis. axis: its default. seed: gives the order, one for each length.
    """

    def __init__(self, function: Callable[..., Any], axis: int | None, seed: int) -> None:
        self._function, self._axis, self._seed = function, axis, seed

    def __call__(self, a: Any, axis: Any = ..., *args: Any, **options: Any) -> Any:
        axis = self._axis if axis is ... else axis
        if type(a) is np.ndarray and a.dtype == np.float64 and a.ndim and options.get("where", True) is True:
            chosen = range(a.ndim) if axis is None else (axis,) if isinstance(axis, int) else axis
            for one in chosen:
                a = np.take(a, order(a.shape[one], self._seed), axis=one)
        return self._function(a, axis, *args, **options)

    def __getattr__(self, name: str) -> Any:
        if name == "_function":
            raise AttributeError(name)
        return getattr(self._function, name)

    @property
    def _numba_type_(self) -> Any:
        """Machine code adds one after the other, on every processor."""
        from numba.core.registry import cpu_target

        return cpu_target.typing_context.resolve_value_type(self._function)


class Plus(Reordered):
    """`numpy.add`: it adds two arrays as always, and its `reduce` takes the numbers in another order."""

    def __call__(self, *args: Any, **options: Any) -> Any:
        return self._function(*args, **options)

    @property
    def reduce(self) -> Reordered:
        return Reordered(self._function.reduce, 0, self._seed)  # type: ignore[attr-defined]


def order(length: int, seed: int) -> Any:
    """The order in which sums of so many numbers are taken."""
    return np.random.default_rng([seed, length]).permutation(length)


def _changes(seed: int) -> Iterator[tuple[Any, str, Any]]:
    """Module, name and new function of all that is shaken."""
    for place, (module, names) in enumerate(((np, _NUMPY), (math, _MATH), (scipy.special, _SCIPY))):
        for index, name in enumerate(names):
            yield module, name, Shaken(getattr(module, name), 1_000_003 * seed + 1009 * place + 31 * index)
    for name in _SUMS:
        yield np, name, Reordered(getattr(np, name), None, seed)
    yield np, "add", Plus(np.add, 0, seed)


def install(seed: int) -> None:
    """Shake this interpreter from now on; 0 leaves it alone.

    Set `NUMBA_CACHE_DIR` to a folder of the seed's own before: the machine code that is kept is shaken too.
    """
    if seed:
        import numba

        numba.njit(moved)(0.5, seed)  # the compiler has then seen the functions that it knows
        for module, name, function in list(_changes(seed)):
            setattr(module, name, function)


@contextmanager
def shaken(seed: int) -> Iterator[None]:
    """Shake this interpreter within a block; machine code that is compiled there stays shaken, but is not kept on disk.

    >>> with shaken(1):
    ...     other = np.exp(np.linspace(0.1, 0.9, 9))
    >>> bool(np.any(other != np.exp(np.linspace(0.1, 0.9, 9))))
    True
    """
    import numba

    before = [(module, name, getattr(module, name)) for module, name, _ in _changes(seed)]
    settings: Any = numba.config
    folder = settings.CACHE_DIR
    with TemporaryDirectory() as settings.CACHE_DIR:
        install(seed)
        try:
            yield
        finally:
            settings.CACHE_DIR = folder
            for module, name, function in before:
                setattr(module, name, function)
