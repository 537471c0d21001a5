"""`python -m pqlab.pages.book build`: the static site from the committed outputs, without running anything.

The site is staged (`pqlab.pages.stage`), then made by Sphinx; `serve` shows it on this machine.
"""

from __future__ import annotations

import functools
import http.server
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from html import escape
from pathlib import Path
from pprint import pformat
from typing import Any

import click
import nbformat

from pqlab.pages import course
from pqlab.pages.notebook import Notebook, load
from pqlab.pages.stage import EDITIONS, Staging, edition_of, section_ids

ROOT = Path(__file__).parents[2]
MODULES = ("pq", "pq.bounds", "pq.losses", "pq.learners", "pq.sequential")


def public_names() -> dict[str, list[str]]:
    """The public names of each module, those that are modules themselves apart."""
    import importlib
    import inspect

    found = {}
    for name in MODULES:
        module = importlib.import_module(name)
        found[name] = [one for one in sorted(module.__all__) if not inspect.ismodule(getattr(module, one))]
    return found


def stage(folder: Path, edition: str) -> None:
    """Write all sources of the book into a fresh folder."""
    from proofs_checks.engine.claims import load_claims

    notebooks = ROOT / "notebooks"
    lessons = course.lessons(notebooks)
    pages = {one.name: load(notebooks / f"{one.name}.ipynb") for one in lessons}
    numbers = tomllib.loads((ROOT / "book" / "numbers.toml").read_text(encoding="utf-8"))
    names = public_names()
    staging = Staging(pages, numbers, load_claims(), [f"{m}.{n}" for m, found in names.items() for n in found])
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / "book", folder)
    (folder / "pages").mkdir()
    for name, page in pages.items():
        nbformat.write(staging.page(page, name, edition), folder / "pages" / f"{name}.ipynb")
    headings = {name: section_ids(page) for name, page in pages.items()}
    fill(folder / "claims.md", {"table": staging.claims_table(headings)})
    fill(folder / "lecturers.md", {"graph": course.graph(lessons), "syllabus": syllabus(lessons, pages)})
    fill(folder / "students.md", {"pages": syllabus(lessons, pages)})
    fill(folder / "symbols.md", {"table": symbols((ROOT / "pq" / "NOTATION.md").read_text(encoding="utf-8"), staging)})
    fill(folder / "api.md", {"modules": reference(names)})
    questions = json.loads((ROOT / "book" / "quizzes.json").read_text(encoding="utf-8"))
    fill(folder / "quiz.md", {"quizzes": quizzes(questions, {name: title_of(page) for name, page in pages.items()})})
    fill(folder / "index.md", {"toctree": "\n".join(f"pages/{name}" for name in pages)})


def fill(path: Path, parts: dict[str, str]) -> None:
    """Put generated parts into a page, in place of `@name@`.

    Raises:
        ValueError: the page has no such place.
    """
    text = path.read_text(encoding="utf-8")
    for name, part in parts.items():
        if f"@{name}@" not in text:
            raise ValueError(f"{path.name} has no place for {name}")
        text = text.replace(f"@{name}@", part)
    path.write_text(text, encoding="utf-8")


def title_of(page: Notebook) -> str:
    """The first heading of a page."""
    return str(next(cell.source for cell in page.cells if cell.cell_type == "markdown").splitlines()[0].lstrip("# "))


def syllabus(lessons: Sequence[course.Lesson], pages: dict[str, Any]) -> str:
    """The pages by lecture as a Markdown table."""
    lines = ["| lecture | page | you learn | you need | section |", "|---|---|---|---|---|"]
    for one in sorted(lessons, key=lambda one: (one.lecture == 0, one.lecture)):
        needs = ", ".join(f"[{name.partition('_')[0]}](pages/{name}.ipynb)" for name in one.needs) or "nothing"
        title = f"[{one.name.partition('_')[0]}: {title_of(pages[one.name])}](pages/{one.name}.ipynb)"
        lines.append(f"| {one.lecture or 'at home'} | {title} | {one.learn} | {needs} | {one.section} |")
    return "\n".join(lines)


def symbols(notation: str, staging: Staging) -> str:
    """The table of symbols, its labels as links."""
    table = notation[notation.index("|") :]
    return re.sub(r"\(\.\./claims", "(claims", staging.linked(table).replace("../claims.html", "claims.html"))


def quizzes(questions: dict[str, Any], titles: dict[str, str]) -> str:
    """The questions of each page as forms that answer at once, from the same file as those in the notebooks."""
    parts = []
    for name in (name for name in titles if name in questions):
        parts.append(f"## {name.partition('_')[0]}: [{titles[name]}](pages/{name}.ipynb)\n")
        for k, one in enumerate(questions[name]):
            choices = "".join(
                f'<label><input type="radio" name="{name}-{k}" data-right="{str(a["correct"]).lower()}" '
                f'data-feedback="{escape(a["feedback"])}"> {escape(a["answer"])}</label>'
                for a in one["answers"]
            )
            legend = f"<legend>{escape(one['question'])}</legend>"
            form = f"<fieldset class='pq-quiz'>{legend}{choices}<p role='status'></p></fieldset>"
            parts.append(f"```{{raw}} html\n{form}\n```\n")
    return "\n".join(parts)


def reference(names: dict[str, list[str]]) -> str:
    """The API reference as directives that read docstrings."""
    parts = []
    for module, found in names.items():
        parts.append(f"## {module}\n")
        directives = "\n".join(_directive(module, name) for name in found)
        parts.append(f"```{{eval-rst}}\n{directives}\n```\n")
    return "\n".join(parts)


def _directive(module: str, name: str) -> str:
    import importlib
    import inspect

    thing = getattr(importlib.import_module(module), name)
    if inspect.isclass(thing):
        return f".. autoclass:: {module}.{name}\n   :members:\n"
    return f".. autofunction:: {module}.{name}\n"


def build_site(target: Path, edition: str = "student") -> None:
    """Stage and build the site into a folder, whose former content goes.

    Raises:
        CalledProcessError: Sphinx failed; its words are on stderr.
    """
    source = target.parent / f"{target.name}-source"
    stage(source, edition)
    shutil.rmtree(target, ignore_errors=True)
    options = ["-q", "--keep-going", "-d", str(target.parent / f"{target.name}-doctrees")]
    quiet = os.environ | {"PYTHONWARNINGS": "ignore"}  # what extensions say to their makers
    subprocess.run(
        [sys.executable, "-m", "sphinx", *options, "-b", "html", str(source), str(target)], check=True, env=quiet
    )
    finish(target)


# Bundles of MathJax that no page loads; the one that pages do load finds its fonts and extensions beside itself.
UNUSED = ("tex-chtml-*.js", "tex-mml-*.js", "tex-svg*.js", "mml-*.js", "node-main.js", "output/svg*")


def finish(site: Path) -> None:
    """Take away what no page asks for, and mend what pages get wrong for who cannot see them."""
    unused = [site / ".doctrees", site / ".buildinfo", site / "objects.inv"]
    unused += [path for pattern in UNUSED for path in (site / "_static" / "mathjax").glob(pattern)]
    for path in unused:
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    for path in site.rglob("*.html"):
        path.write_text(mended(path.read_text(encoding="utf-8")), encoding="utf-8")


def mended(page: str) -> str:
    """A page without what themes and directives leave undone: a heading's level, identifiers that occur twice, and the
    numbers of statements and exercises, which stand in brackets.

    >>> mended('<p role="heading" id="a"></p><p id="a"></p>')
    '<p role="heading" aria-level="2" id="a"></p><p></p>'
    >>> mended('<span class="caption-number">Lemma </span> (A.1: Gap)</p>')
    '<span class="caption-number">Lemma A.1</span> (Gap)</p>'
    >>> mended('<p class="admonition-title">Exercise (2)</p>')
    '<p class="admonition-title">Exercise 2</p>'
    """
    page = re.sub(r'(<span class="caption-number">\w+ )</span> \(([A-E\d]\.\d): ', r"\1\2</span> (", page)
    page = re.sub(r'(<p class="admonition-title">Exercise )\((\d+)\)', r"\1\2", page)
    seen: set[str] = set()

    def once(match: re.Match[str]) -> str:
        found = "" if match[1] in seen else match[0]
        seen.add(match[1])
        return found

    return re.sub(r' id="([^"]+)"', once, page.replace('role="heading"', 'role="heading" aria-level="2"'))


@click.group()
def main() -> None:
    """Build the book, look at it, or write an edition of the notebooks."""


@main.command("build")
@click.argument("target", type=click.Path(path_type=Path), default=Path("build/book"))
@click.option("--edition", type=click.Choice(EDITIONS), default="student", show_default=True, envvar="EDITION")
def _build_command(target: Path, edition: str) -> None:
    """Build the site into TARGET."""
    build_site(target, edition)
    size = sum(path.stat().st_size for path in target.rglob("*") if path.is_file())
    click.echo(f"{target / 'index.html'}: {edition}'s edition, {size / 1e6:.1f} MB")


@main.command("serve")
@click.argument("site", type=click.Path(path_type=Path, exists=True, file_okay=False), default=Path("build/book"))
@click.option("--port", type=int, default=8000, show_default=True)
def _serve(site: Path, port: int) -> None:
    """Serve the site to this machine only, until interrupted."""
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", port), handler) as server:
        click.echo(f"http://127.0.0.1:{server.server_address[1]}/")
        server.serve_forever()


@main.command("notebooks")
@click.argument("target", type=click.Path(path_type=Path))
@click.option("--edition", type=click.Choice(EDITIONS), default="student", show_default=True, envvar="EDITION")
def _notebooks(target: Path, edition: str) -> None:
    """Write the notebooks of an edition into TARGET, for a class to work in."""
    target.mkdir(parents=True, exist_ok=True)
    questions = json.loads((ROOT / "book" / "quizzes.json").read_text(encoding="utf-8"))
    for one in course.lessons(ROOT / "notebooks"):
        page = edition_of(load(ROOT / "notebooks" / f"{one.name}.md"), edition)
        if one.name in questions:
            code = f"from jupyterquiz import display_quiz\n\ndisplay_quiz({pformat(questions[one.name], width=110)})"
            page.cells += [nbformat.v4.new_markdown_cell("## Quiz"), nbformat.v4.new_code_cell(code)]
        nbformat.write(page, target / f"{one.name}.ipynb")
        click.echo(str(target / f"{one.name}.ipynb"))


if __name__ == "__main__":
    main()
