"""Numbers for reading: as many digits as say something, never more."""

from __future__ import annotations

import math
from decimal import ROUND_HALF_EVEN, Decimal, localcontext

import numpy as np
import numpy.typing as npt

MOST_DECIMALS = 12
FULL = 1e15  # from here on numbers are shown in six digits

Floats = npt.NDArray[np.float64]


def decimals_worth(grid: float | None, numbers: Floats, ends: Floats | None) -> int:
    """Decimals that are worth showing: those of the grid, or two digits of a typical interval's width."""
    if grid is not None:
        exponent = Decimal(str(grid)).normalize().as_tuple().exponent
        return min(MOST_DECIMALS, max(0, -int(exponent)))
    with np.errstate(all="ignore"):
        widths = np.atleast_1d(np.ptp(numbers) / 100) if ends is None else ends[:, 1] - ends[:, 0]
    known = widths[np.isfinite(widths) & (widths > 0)]
    typical = float(np.median(known)) if known.size else max(1e-3 * float(np.abs(numbers).max()), 1e-12)
    return min(MOST_DECIMALS, max(0, 1 - math.floor(math.log10(typical))))


def number_text(value: float, places: int, rounding: str = ROUND_HALF_EVEN) -> str:
    """A number for reading: commas between thousands, so many decimals, infinities by their sign.

    >>> number_text(41234.567, 1), number_text(-math.inf, 0), number_text(0.29, 1, "ROUND_CEILING")
    ('41,234.6', '−∞', '0.3')
    """
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if not abs(value) < FULL:
        return f"{value:.6g}".replace("-", "−")
    with localcontext(prec=60):
        rounded = Decimal(value).quantize(Decimal(1).scaleb(-places), rounding=rounding)
    return f"{rounded + 0:,f}".replace("-", "−")  # plus nothing: no minus before a zero
