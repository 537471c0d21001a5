"""Mechanisms, one file each, and which of them a request gets."""

from dataclasses import replace

from pq.core.choices import check_name
from pq.core.priors import Prior
from pq.core.request import Request
from pq.private.mechanisms import cells as cells
from pq.private.mechanisms import joint as joint
from pq.private.mechanisms import lattice as lattice
from pq.private.mechanisms import mixed as mixed
from pq.private.mechanisms import tree as tree
from pq.private.mechanisms.choice import chosen
from pq.private.mechanisms.protocol import MECHANISMS, Mechanism, Outcome

__all__ = ["MECHANISMS", "Mechanism", "Outcome", "mechanism_for", "with_priors"]


def mechanism_for(request: Request) -> Mechanism:
    """The mechanism that a request asks for; "auto" is a choice from public facts. Raises `ValueError` naming it."""
    name = chosen(request) if request.mechanism == "auto" else request.mechanism
    check_name(name, ("auto", *MECHANISMS), "mechanism")
    return MECHANISMS[name](request)


def with_priors(maker: Mechanism, priors: tuple[Prior, ...]) -> Mechanism:
    """The mechanism that the same request asks for with other priors, one for each distinct quantile; the same one if
    they are no others."""
    if priors == maker.request.priors:
        return maker
    request = replace(maker.request, priors=priors)
    return mechanism_for(request) if request.mechanism == "auto" else maker.with_priors(request)
