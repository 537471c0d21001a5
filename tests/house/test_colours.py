"""Colours of methods tell curves apart for every reader: a computation, by a published model of colour vision.

Machado, Oliveira and Fernandes (2009), full severity, in linear light; distances in CIELAB.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from pq.show import plots
from pqlab.experiments import public_private, static
from pqlab.experiments.sequential_tasks import METHODS

EYES = {
    "usual": np.eye(3),
    "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritan": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
TOGETHER = {
    "public data": tuple(public_private.METHODS),
    "day after day": tuple(METHODS),
    "the tree": tuple(static.METHODS),
    "families": ("uniform", "normal", "laplace", "cauchy", "half_cauchy"),
    "mechanisms": ("tree", "joint", "cells", "margin", "mixed", "auto"),
}
LEAST = 10.0  # a distance of 2 to 3 is just seen by a trained eye, side by side


def lab(colour: str, eye: str) -> Any:
    """A colour as an eye sees it, in CIELAB (D65)."""
    light = np.array([c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)])
    seen = np.clip(np.array(EYES[eye]) @ light, 0, 1)
    matrix = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    x, y, z = (
        value ** (1 / 3) if value > 0.008856 else 7.787 * value + 16 / 116
        for value in matrix @ seen / [0.9505, 1, 1.089]
    )
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def nearest(colours: set[str], eye: str) -> float:
    return min(float(np.linalg.norm(lab(a, eye) - lab(b, eye))) for a, b in itertools.combinations(sorted(colours), 2))


@pytest.mark.parametrize("eye", EYES)
@pytest.mark.parametrize("picture", TOGETHER)
def test_curves_of_one_picture_differ_for_every_eye(picture: str, eye: str) -> None:
    bases = {plots.style_of(method)["color"] for method in TOGETHER[picture]}
    assert nearest(bases, eye) > LEAST


@pytest.mark.parametrize("eye", EYES)
def test_the_palette_differs_for_every_eye(eye: str) -> None:
    assert nearest({*plots.COLOURS, "black"}, eye) > LEAST


def test_red_and_green_would_be_refused() -> None:
    assert nearest({"#c00000", "#3f6f00"}, "deutan") < LEAST < nearest({"#c00000", "#3f6f00"}, "usual")


@pytest.mark.parametrize("picture", TOGETHER)
def test_methods_of_one_picture_have_styles_of_their_own(picture: str) -> None:
    styles = [tuple(plots.style_of(method).values()) for method in TOGETHER[picture]]
    assert len({*styles}) == len(styles)
