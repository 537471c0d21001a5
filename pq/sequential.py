"""Sequential release; see `pq.private.sequential`."""

from pq.private.sequential import *  # noqa: F403
from pq.private.sequential import __all__ as __all__
