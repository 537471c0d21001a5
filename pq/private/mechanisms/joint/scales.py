"""How many outputs are drawn may depend on the records: few of them at a place of any scale, or many (Section 3.2).

Outputs between which others are read off a curve are few where the budget is small, so that they are found wherever the
records are. If the records fill what the prior allows, many more would be found, and a column that is not smooth has
less error then. Nothing public tells; the normalisers do. So the number of outputs is one of them: a mixture
(`pq.private.mechanisms.joint.mixture`) of

- few outputs with the prior as base measure, or one that is even in one of `PARTS` overlapping parts of the prior's
  mass. Found anywhere, they pay once for the place of all of them, instead of once for each;
- many outputs with the prior as base measure, which weigh `NATS` for each one that they are more. Where the records are
  in a small part of what the prior allows their normaliser is smaller than that.

Privacy, law and density: those of any mixture.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache

from pq.core.curves import joint_support, prior_table
from pq.core.priors import Uniform
from pq.private.mechanisms.joint.mixture import JointMixture
from pq.private.mechanisms.joint.plan import JointPlan

PARTS = 4, 16, 64, 256  # divisors of 512; each part overlaps half of the next
NATS = 4.1  # that an output more is worth


@lru_cache(maxsize=8)
def any_number(few: JointPlan, many: JointPlan) -> JointMixture:
    """The mixture of few outputs, at places of any scale, and many; plans under one prior of bounded support, which
    differ in their quantiles only. Kept, for it depends on public facts alone.

    >>> plans = [JointPlan.of(q, epsilon=1, priors=Uniform(0, 1)) for q in ([0.5], [0.25, 0.5, 0.75])]
    >>> mixture = any_number(*plans)
    >>> len(mixture.plans), mixture.most
    (678, 3)
    """
    table = prior_table(few.priors[:1], [0.5])
    low, high = joint_support(few.priors[:1])
    ends = [low, *table[1::2].tolist(), high]  # of 512 parts of equal mass
    members, weights = [few], [1.0]
    for parts in PARTS:
        half = (len(ends) - 1) // (2 * parts)
        own = [Uniform(a, b) for a, b in zip(ends[::half], ends[2 * half :: half], strict=False) if a < b]
        members += [replace(few, priors=(prior,) * few.size) for prior in own]
        weights += [1.0 / len(own) for _ in own]
    more = (1.0 + len(PARTS)) * math.exp(NATS * (many.size - few.size))
    return JointMixture((*members, many), (*weights, more))
