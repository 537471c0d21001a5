"""Curves that a slider changes, computed beforehand: they move in JupyterLab, and in the book without a server."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

WIDTH, HEIGHT, LEFT, BOTTOM = 640, 300, 60, 45
RIGHT, FLOOR, CEILING = WIDTH - 10, HEIGHT - BOTTOM, 10
DASHES = ("", "7 4", "2 3", "9 3 2 3")  # and no colours, so that all readers and both backgrounds tell curves apart
_SCRIPT = """
(() => {{
const here = document.getElementById("{name}"), frames = {frames};
const input = here.querySelector("input"), paths = here.querySelectorAll("path.curve");
input.addEventListener("input", () => {{
  const frame = frames[input.value];
  paths.forEach((path, k) => path.setAttribute("d", frame[1][k]));
  here.querySelector("output").textContent = frame[0];
  input.setAttribute("aria-valuetext", frame[0]);
}});
}})();
"""


@dataclass(frozen=True)
class Scale:
    """An axis: the numbers at its ends, and whether it is logarithmic."""

    low: float
    high: float
    logarithmic: bool = False

    @classmethod
    def of_heights(cls, rows: Sequence[Any], logarithmic: bool) -> Scale:
        """From zero to just above all heights, or between the powers of ten around them."""
        least, most = (float(end(np.concatenate([np.ravel(row) for row in rows]))) for end in (np.min, np.max))
        if logarithmic:
            return cls(10.0 ** math.floor(math.log10(least)), 10.0 ** math.ceil(math.log10(most)), True)
        return cls(0.0, 1.05 * most)

    def share(self, values: Any) -> Any:
        """How far along the axis values lie, from 0 to 1."""
        at, low, high = (np.log10(v) if self.logarithmic else np.asarray(v) for v in (values, self.low, self.high))
        return (at - low) / (high - low)


def show_slider(
    values: Sequence[float],
    x: Any,
    curves: Mapping[str, Any],
    *,
    of: str,
    along: str,
    height: str,
    description: str,
    logarithmic: str = "",
) -> None:
    """Show curves for each value of a quantity, one value at a time.

    values: (k,) of the slider. x: (n,) increasing. curves: label -> (k, n) finite heights, at most four. of, along,
    height: names of the quantity and of the axes, with units. description: what moving it shows, in a sentence.
    logarithmic: which axes are: "", "x", "y" or "xy".
    """
    from IPython.display import display

    words = {"of": of, "along": along, "height": height, "description": description, "logarithmic": logarithmic}
    display({"text/html": slider_html(values, x, curves, **words), "text/plain": description}, raw=True)


def slider_html(
    values: Sequence[float],
    x: Any,
    curves: Mapping[str, Any],
    *,
    of: str,
    along: str,
    height: str,
    description: str,
    logarithmic: str = "",
) -> str:
    """The same as one piece of HTML, the same text every time; without scripts it shows the value in the middle.

    Raises:
        ValueError: there are more curves than kinds of lines.
    """
    if len(curves) > len(DASHES):
        raise ValueError(f"curves must be at most {len(DASHES)}, got {len(curves)}")
    name = "s" + hashlib.sha256(description.encode()).hexdigest()[:8]
    across = Scale(float(x[0]), float(x[-1]), "x" in logarithmic)
    up = Scale.of_heights([*curves.values()], "y" in logarithmic)
    frames: list[tuple[str, list[str]]] = [
        (f"{of} = {value:g}", [_path(across.share(x), up.share(np.asarray(rows)[k])) for rows in curves.values()])
        for k, value in enumerate(values)
    ]
    middle = len(values) // 2
    words, paths = frames[middle]
    drawn = "".join(
        f'<path class="curve" d="{d}" fill="none" stroke="currentColor" stroke-width="2" stroke-dasharray="{dash}"/>'
        for d, dash in zip(paths, DASHES, strict=False)
    )
    keys = "".join(_key(k, label, dash) for k, (label, dash) in enumerate(zip(curves, DASHES, strict=False)))
    picture = (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(description)}" style="max-width:{WIDTH}px;'
        f'width:100%" font-size="12" font-family="sans-serif" fill="currentColor">'
        f"{_axes(across, up, along, height)}{drawn}{keys}</svg>"
    )
    control = (
        f'<label>{escape(of)} <input type="range" min="0" max="{len(values) - 1}" value="{middle}" '
        f'aria-valuetext="{escape(words)}"></label> <output>{escape(words)}</output>'
    )
    script = _SCRIPT.format(name=name, frames=json.dumps(frames))
    return f'<div id="{name}" class="pq-slider">{control}<br>{picture}<script>{script}</script></div>'


def _axes(across: Scale, up: Scale, along: str, height: str) -> str:
    """Two lines, the numbers at their ends, and what they are."""
    return (
        f'<path d="M{LEFT},{CEILING} V{FLOOR} H{RIGHT}" fill="none" stroke="currentColor"/>'
        f'<text x="{LEFT}" y="{HEIGHT - 25}">{across.low:.4g}</text>'
        f'<text x="{RIGHT}" y="{HEIGHT - 25}" text-anchor="end">{across.high:.4g}</text>'
        f'<text x="{LEFT - 6}" y="{FLOOR}" text-anchor="end">{up.low:.3g}</text>'
        f'<text x="{LEFT - 6}" y="20" text-anchor="end">{up.high:.3g}</text>'
        f'<text x="{(LEFT + RIGHT) // 2}" y="{HEIGHT - 6}" text-anchor="middle">{_named(along, across)}</text>'
        f'<text transform="translate(14,{FLOOR // 2 + 5}) rotate(-90)" text-anchor="middle">{_named(height, up)}</text>'
    )


def _named(words: str, scale: Scale) -> str:
    return escape(words) + (", logarithmic" if scale.logarithmic else "")


def _path(across: Any, up: Any) -> str:
    """A curve in whole pixels."""
    places = zip(LEFT + across * (RIGHT - LEFT), FLOOR - up * (FLOOR - CEILING), strict=True)
    return "M" + " ".join(f"{round(float(u))},{round(float(v))}" for u, v in places)


def _key(place: int, label: str, dash: str) -> str:
    y = 20 + 18 * place
    line = f'<path d="M{WIDTH - 150},{y} h30" stroke="currentColor" stroke-width="2" stroke-dasharray="{dash}"/>'
    return line + f'<text x="{WIDTH - 112}" y="{y + 4}">{escape(label)}</text>'
