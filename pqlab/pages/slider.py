"""Curves that a slider changes, computed beforehand: they move in JupyterLab, and in the book without a server."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

WIDTH, HEIGHT, LEFT, BOTTOM = 640, 300, 60, 45
DASHES = ("", "7 4", "2 3", "9 3 2 3")
_SCRIPT = """
(() => {{
const here = document.getElementById("{name}"), frames = {frames};
const input = here.querySelector("input"), paths = here.querySelectorAll("path.curve");
input.addEventListener("input", () => {{
  const frame = frames[input.value];
  paths.forEach((path, k) => path.setAttribute("d", frame[1][k]));
  here.querySelector("output").textContent = frame[0];
}});
}})();
"""


def show_slider(
    values: Sequence[float], x: Any, curves: Mapping[str, Any], *, of: str, along: str, height: str, description: str
) -> None:
    """Show curves for each value of a quantity, one value at a time.

    values: (k,) of the slider. x: (n,) increasing. curves: label -> (k, n) finite heights. of, along, height: names of
    the quantity and of the axes, with units. description: what moving it shows, in a sentence.
    """
    from IPython.display import display

    html = slider_html(values, x, curves, of=of, along=along, height=height, description=description)
    display({"text/html": html, "text/plain": description}, raw=True)


def slider_html(
    values: Sequence[float], x: Any, curves: Mapping[str, Any], *, of: str, along: str, height: str, description: str
) -> str:
    """The same as one piece of HTML, the same text every time; without scripts it shows the value in the middle."""
    name = "s" + hashlib.sha256(description.encode()).hexdigest()[:8]
    top = max(float(np.max(rows)) for rows in curves.values()) * 1.05
    frames: list[tuple[str, list[str]]] = [
        (f"{of} = {value:g}", [_path(x, np.asarray(rows)[k], top) for rows in curves.values()])
        for k, value in enumerate(values)
    ]
    middle = len(values) // 2
    strokes = zip(curves, frames[middle][1], DASHES, strict=False)
    drawn = "".join(
        f'<path class="curve" d="{d}" fill="none" stroke="currentColor" stroke-width="2" stroke-dasharray="{dash}"/>'
        for _, d, dash in strokes
    )
    keys = "".join(_key(k, label, dash) for k, (label, dash) in enumerate(zip(curves, DASHES, strict=False)))
    right, floor = WIDTH - 10, HEIGHT - BOTTOM
    axes = (
        f'<path d="M{LEFT},10 V{floor} H{right}" fill="none" stroke="currentColor"/>'
        f'<text x="{LEFT}" y="{HEIGHT - 25}">{x[0]:.4g}</text>'
        f'<text x="{right}" y="{HEIGHT - 25}" text-anchor="end">{x[-1]:.4g}</text>'
        f'<text x="{LEFT - 6}" y="{floor}" text-anchor="end">0</text>'
        f'<text x="{LEFT - 6}" y="20" text-anchor="end">{top:.3g}</text>'
        f'<text x="{(LEFT + right) // 2}" y="{HEIGHT - 6}" text-anchor="middle">{escape(along)}</text>'
        f'<text transform="translate(14,{floor // 2 + 5}) rotate(-90)" text-anchor="middle">{escape(height)}</text>'
    )
    picture = (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(description)}" style="max-width:{WIDTH}px;'
        f'width:100%" font-size="12" font-family="sans-serif" fill="currentColor">{axes}{drawn}{keys}</svg>'
    )
    control = (
        f'<label>{escape(of)} <input type="range" min="0" max="{len(values) - 1}" value="{middle}"></label> '
        f"<output>{escape(frames[middle][0])}</output>"
    )
    script = _SCRIPT.format(name=name, frames=json.dumps(frames))
    return f'<div id="{name}" class="pq-slider">{control}<br>{picture}<script>{script}</script></div>'


def _path(x: Any, y: Any, top: float) -> str:
    """A curve in whole pixels."""
    across = LEFT + (np.asarray(x) - x[0]) / (x[-1] - x[0]) * (WIDTH - 10 - LEFT)
    up = (HEIGHT - BOTTOM) - np.asarray(y) / top * (HEIGHT - BOTTOM - 10)
    return "M" + " ".join(f"{round(float(u))},{round(float(v))}" for u, v in zip(across, up, strict=True))


def _key(place: int, label: str, dash: str) -> str:
    y = 20 + 18 * place
    line = f'<path d="M{WIDTH - 150},{y} h30" stroke="currentColor" stroke-width="2" stroke-dasharray="{dash}"/>'
    return line + f'<text x="{WIDTH - 112}" y="{y + 4}">{escape(label)}</text>'
