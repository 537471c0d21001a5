"""Mechanisms, one file each, and which of them a request gets."""

from pq.core.choices import check_name
from pq.core.request import Request
from pq.private.mechanisms import cells as cells
from pq.private.mechanisms import joint as joint
from pq.private.mechanisms import lattice as lattice
from pq.private.mechanisms import mixed as mixed
from pq.private.mechanisms import tree as tree
from pq.private.mechanisms.choice import chosen
from pq.private.mechanisms.protocol import MECHANISMS, Mechanism, Outcome

__all__ = ["MECHANISMS", "Mechanism", "Outcome", "mechanism_for"]


def mechanism_for(request: Request) -> Mechanism:
    """The mechanism that a request asks for; "auto" is a choice from public facts. Raises `ValueError` naming it."""
    name = chosen(request) if request.mechanism == "auto" else request.mechanism
    check_name(name, ("auto", *MECHANISMS), "mechanism")
    return MECHANISMS[name](request)
