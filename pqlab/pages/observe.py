"""What a page found in its default run is observed of other runs, not demanded of them."""

from __future__ import annotations

from typing import Any


def observe(finding: str, holds: Any) -> None:
    """Print whether this run shows a finding of the page's text; never raises.

    finding: a sentence about the default parameters, without full stop. holds: a truth value of this run; what has
    none, such as not-a-number or an array of several, counts as no.

    >>> observe("the public prior has the smaller error", 3.1 < 4.2)
    as in the text: the public prior has the smaller error
    >>> observe("the public prior has the smaller error", float("nan") < 4.2)
    not so in this run: the public prior has the smaller error
    """
    try:
        shown = bool(holds) and bool(holds == holds)  # not-a-number is true, and is not itself
    except ValueError:
        shown = False
    print(f"{'as in the text' if shown else 'not so in this run'}: {finding}")
