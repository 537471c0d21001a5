"""The course: the order of its pages, who needs which, and its lectures, from `notebooks/course.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

FILE = "course.toml"


class CourseError(ValueError):
    """The table of contents does not fit itself or the pages."""


@dataclass(frozen=True)
class Lesson:
    """A page in the course.

    lecture: 1 to 10; 0 for reading at home. section: of the paper. needs: names of pages to read before. learn: a line.
    """

    name: str
    lecture: int
    section: str
    needs: tuple[str, ...]
    learn: str
    seconds: int


def lessons(folder: Path) -> list[Lesson]:
    """The pages in their order.

    folder: of the notebooks.

    Raises:
        CourseError: a page is missing or twice, or comes before one that it needs.
    """
    table = tomllib.loads((folder / FILE).read_text(encoding="utf-8"))
    found = [Lesson(**(row | {"needs": tuple(row["needs"])})) for row in table["page"]]
    names = [lesson.name for lesson in found]
    odd = sorted({*names} ^ {path.stem for path in folder.glob("[0-9][0-9]*_*.md")})
    if odd or len(names) != len({*names}):
        raise CourseError(f"{FILE} and the folder do not hold the same pages, each once: {', '.join(odd)}")
    for place, lesson in enumerate(found):
        late = {*lesson.needs} - {*names[:place]}
        if late:
            raise CourseError(f"{lesson.name} needs {', '.join(sorted(late))}, which comes later")
    return found


def readme_table(course: Iterable[Lesson]) -> str:
    """The rows of README's table of notebooks."""
    return "\n".join(
        f"| [{one.name}](notebooks/{one.name}.ipynb) | {one.section} | {one.learn} | {one.seconds} |" for one in course
    )


def levels(course: Sequence[Lesson]) -> dict[str, int]:
    """How many pages must be read before each at least, along the longest way."""
    depth: dict[str, int] = {}
    for one in course:
        depth[one.name] = max((depth[before] + 1 for before in one.needs), default=0)
    return depth


def graph(course: Sequence[Lesson]) -> str:
    """The dependencies of the pages as SVG: arrows from a page down to those that need it.

    Each page is a link; needs that follow from others are not drawn.
    """
    depth = levels(course)
    rows: dict[int, list[str]] = {}
    for one in course:
        rows.setdefault(depth[one.name], []).append(one.name)
    place = {name: (rows[depth[name]].index(name) * 300 + 20, depth[name] * 64 + 10) for name in depth}
    before: dict[str, set[str]] = {}
    for one in course:
        before[one.name] = {*one.needs}.union(*(before[name] for name in one.needs))
    parts = []
    for one in course:
        for name in one.needs:
            if not any(name in before[other] for other in one.needs):
                (x, y), (u, v) = place[name], place[one.name]
                bend = f"M{x + 130},{y + 32} C{x + 130},{y + 52} {u + 130},{v - 20} {u + 130},{v - 3}"
                parts.append(f'<path d="{bend}" fill="none" stroke="currentColor" marker-end="url(#arrow)"/>')
    for name, (x, y) in place.items():
        label = name.replace("_", " ")
        parts.append(
            f'<a href="pages/{name}.html"><rect x="{x}" y="{y}" width="260" height="32" rx="5"/>'
            f'<text x="{x + 130}" y="{y + 21}">{label}</text></a>'
        )
    width, height = max(x for x, _ in place.values()) + 280, max(y for _, y in place.values()) + 50
    head = (
        f'<svg class="pq-graph" viewBox="0 0 {width} {height}" role="group" aria-label="Which page needs which">'
        '<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0,0 L8,4 L0,8 z" fill="currentColor"/></marker></defs>'
    )
    return head + "".join(parts) + "</svg>"


if __name__ == "__main__":
    print(readme_table(lessons(Path("notebooks"))))
