"""Pages of one file: templates filled in with texts and numbers, all of them escaped; nothing is fetched."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from pq.show.plots import BLUE, ORANGE, PURPLE

if TYPE_CHECKING:
    from jinja2 import Environment


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined  # not every release is shown on a page

    environment = Environment(
        loader=PackageLoader("pq.show"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.policies["json.dumps_kwargs"] = {"sort_keys": False}
    return environment


def render(template: str, /, **facts: Any) -> str:
    """A page by the name of its template; a text in the facts can neither add an element nor leave a script."""
    colours = {"blue": BLUE, "sky": PURPLE, "orange": ORANGE}
    return _environment().get_template(template).render(colours=colours, **facts)
