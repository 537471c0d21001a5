"""Curves that a slider changes, computed beforehand: they move in the book without a server, and in JupyterLab when
their cell has been run or the page is trusted."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, NotRequired, TypedDict, Unpack

import numpy as np

WIDTH, HEIGHT, LEFT, BOTTOM = 640, 300, 60, 45
RIGHT, FLOOR, CEILING = WIDTH - 25, HEIGHT - BOTTOM, 30
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
            low = math.floor(math.log10(least))
            return cls(10.0**low, 10.0 ** max(low + 1, math.ceil(math.log10(most))), True)
        return cls(0.0, 1.05 * most or 1.0)

    def marks(self) -> dict[str, float]:
        """Numbers to write at an axis, with their places from 0 to 1: its ends, and powers of ten where it has them."""
        if not self.logarithmic:
            return {f"{self.low:.3g}": 0.0, f"{self.high:.3g}": 1.0}
        first, last = (math.ceil(round(math.log10(end), 9)) for end in (self.low, self.high))
        return {f"{n:.6g}": float(self.share(n)) for n in (*(10.0**power for power in range(first, last)), self.high)}

    def share(self, values: Any) -> Any:
        """How far along the axis values lie, from 0 to 1."""
        at, low, high = (np.log10(v) if self.logarithmic else np.asarray(v) for v in (values, self.low, self.high))
        return (at - low) / (high - low)


class SliderWords(TypedDict):
    """What a slider says of itself.

    of, along, height: names of the quantity and of the axes, with units. description: what moving it shows, in a
    sentence. logarithmic: which axes are: "", "x", "y" or "xy"; none by default.
    """

    of: str
    along: str
    height: str
    description: str
    logarithmic: NotRequired[str]


def show_slider(values: Sequence[float], x: Any, curves: Mapping[str, Any], **words: Unpack[SliderWords]) -> None:
    """Show curves for each value of a quantity, one value at a time.

    values: (k,) of the slider. x: (n,) increasing. curves: label -> (k, n) finite heights, at most four. words: see
    `SliderWords`.
    """
    from IPython.display import display

    text = slider_html(values, x, curves, **words)
    display({"text/html": text, "text/plain": words["description"]}, raw=True)


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
    """Two lines, numbers at their marks, and what they are."""
    below = (
        f'<text x="{_pixel(LEFT + at * (RIGHT - LEFT))}" y="{HEIGHT - 27}" text-anchor="middle">{number}</text>'
        for number, at in across.marks().items()
    )
    beside = (
        f'<text x="{LEFT - 6}" y="{_pixel(FLOOR - at * (FLOOR - CEILING)) + 4}" text-anchor="end">{number}</text>'
        for number, at in up.marks().items()
    )
    return (
        f'<path d="M{LEFT},{CEILING} V{FLOOR} H{RIGHT}" fill="none" stroke="currentColor"/>{"".join([*below, *beside])}'
        f'<text x="{(LEFT + RIGHT) // 2}" y="{HEIGHT - 6}" text-anchor="middle">{_named(along, across)}</text>'
        f'<text transform="translate(14,{FLOOR // 2 + 5}) rotate(-90)" text-anchor="middle">{_named(height, up)}</text>'
    )


def _named(words: str, scale: Scale) -> str:
    return escape(words) + (", logarithmic" if scale.logarithmic else "")


def _path(across: Any, up: Any) -> str:
    """A curve in whole pixels."""
    places = zip(LEFT + across * (RIGHT - LEFT), FLOOR - up * (FLOOR - CEILING), strict=True)
    return "M" + " ".join(f"{_pixel(u)},{_pixel(v)}" for u, v in places)


def _pixel(place: float) -> int:
    """The nearest one; half way the next, whatever the last bit of a logarithm, in which processors differ."""
    return math.floor(place + 0.5 + 1e-6)


def _key(place: int, label: str, dash: str) -> str:
    """What a kind of line means, above the curves, where none is hidden."""
    x = LEFT + place * (RIGHT - LEFT) // len(DASHES)
    line = f'<path d="M{x},12 h30" stroke="currentColor" stroke-width="2" stroke-dasharray="{dash}"/>'
    return line + f'<text x="{x + 36}" y="16">{escape(label)}</text>'
