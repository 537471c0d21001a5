"""Settings of the book. It is built from a staged copy of this folder and of the executed pages, and runs nothing."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from docutils import nodes

project = "pq: private quantiles with the help of predictions"
author = "The pq developers"
html_show_copyright = False
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_exercise",
    "sphinx_proof",
    "sphinx-mathjax-offline",
]
html_theme = "furo"
html_title = "pq"
html_static_path = ["_static"]
html_css_files = ["pq.css"]
html_js_files = ["pq.js"]
html_show_sourcelink = False
html_copy_source = False
pygments_style = "xcode"  # of enough contrast on tinted boxes too
nb_execution_mode = "off"
nb_merge_streams = True
myst_enable_extensions = ["amsmath", "attrs_inline", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
autodoc_member_order = "bysource"
autodoc_typehints = "none"
templates_path: list[str] = []
exclude_patterns = ["_build"]
suppress_warnings = ["docutils", "mystnb.unknown_mime_type", "myst.header"]
language = "en"

# Single backticks of the compact docstrings are code.
default_role = "code"


def describe_pictures(app: Any, tree: Any) -> None:
    """Give each picture the description that its own file holds; one without is left to the tests to find."""
    for image in tree.findall(nodes.image):
        path = Path(app.srcdir) / image["uri"]
        if not path.exists():
            path = Path(image["uri"])
        if path.suffix == ".svg" and path.exists() and not image.get("alt"):
            title = ElementTree.parse(path).getroot().find("{http://www.w3.org/2000/svg}title")
            image["alt"] = "" if title is None else (title.text or "")


def plain_docstrings(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Docstrings say `name: meaning` in turn, over several lines: a paragraph for each, and doctests as they are."""
    text = re.sub(r"(?m)\n(\w[\w, ]*: )", r"\n\n\1", "\n".join(lines))
    parts = []
    for part in re.split(r"\n\s*\n", text):
        words = " ".join(line.strip() for line in part.splitlines())
        parts.append(part if ">>>" in part else words.replace("*", r"\*").replace("|", r"\|"))
    lines[:] = "\n\n".join(parts).split("\n")


def setup(app: Any) -> None:
    """Hooks of the book's own."""
    app.connect("doctree-read", describe_pictures)
    app.connect("autodoc-process-docstring", plain_docstrings)
