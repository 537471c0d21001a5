"""What a frozen dataclass of public facts tells when it is pickled."""

from __future__ import annotations

from typing import Any


class Facts:
    """A frozen dataclass whose pickle holds its fields alone: what has been derived from them so far, and so whatever a
    release has looked at, is nobody's business."""

    __dataclass_fields__: Any

    def __getstate__(self) -> dict[str, Any]:
        return {name: vars(self)[name] for name in self.__dataclass_fields__}
