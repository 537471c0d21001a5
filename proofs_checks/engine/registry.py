"""A claim is a row of `claims.toml` and a function beside it: `check` joins them, and nothing is listed twice.

Every module of a section's folder is imported; what its decorators say is the registry.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import Any

FOLDER = Path(__file__).parents[1]
SECTIONS = tuple(sorted(path.name for path in FOLDER.glob("section_*") if path.is_dir()))

_CHECKS: dict[str, Check] = {}


@dataclass(frozen=True)
class Check:
    """A function that must pass, the rows it serves, the code it must call, and the variants it must reject."""

    function: Callable[..., str]
    labels: tuple[str, ...]
    code: tuple[Any, ...]
    rejects: tuple[Any, ...]

    @property
    def key(self) -> str:
        """ "section.module:function"."""
        return f"{self.function.__module__.removeprefix('proofs_checks.')}:{self.function.__name__}"

    def survivors(self) -> list[int]:
        """Positions of the mutants that no assertion rejects, those that break the check otherwise among them."""
        alive = []
        for position, mutant in enumerate(self.rejects):
            try:
                self.function(mutant)
            except AssertionError:
                continue
            except Exception:
                alive.append(position)
            else:
                alive.append(position)
        return alive


def check(*labels: str, rejects: Iterable[Any], code: Any = ()) -> Callable[[Callable[..., str]], Callable[..., str]]:
    """Register a check of the rows with these labels.

    labels: rows of `claims.toml`, of this section or another.
    rejects: broken variants of the check's first argument, each of which must fail.
    code: a function or class, or several, that the check calls.

    Raises:
        ValueError: no label, or no mutant, or a second check of the same name in the module.
    """

    def register(function: Callable[..., str]) -> Callable[..., str]:
        found = Check(function, labels, code if isinstance(code, tuple) else (code,), tuple(rejects))
        if not found.labels or not found.rejects or found.key in _CHECKS:
            raise ValueError(f"{found.key} needs a row, a mutant and a name of its own")
        _CHECKS[found.key] = found
        return function

    return register


def all_checks() -> dict[str, Check]:
    """Every check by its key, section by section."""
    for section in SECTIONS:
        for module in sorted(found.name for found in pkgutil.iter_modules([str(FOLDER / section)])):
            importlib.import_module(f"proofs_checks.{section}.{module}")
    return dict(sorted(_CHECKS.items(), key=lambda item: item[0].split(":")[0]))


def checks_of(label: str) -> list[Check]:
    """The checks that serve a row."""
    return [found for found in all_checks().values() if label in found.labels]


def name_of(code: Any) -> str:
    """The dotted name of a function or class."""
    return f"{code.__module__}.{code.__qualname__}"


def bodies(code: Any) -> set[CodeType]:
    """What runs when a function is called, or a class is used: the code of the function, or of each method."""
    members = list(vars(code).values()) if inspect.isclass(code) else [code]
    members = [getattr(member, "fget", None) or getattr(member, "__func__", None) or member for member in members]
    functions = [inspect.unwrap(member) for member in members if callable(member)]
    return {function.__code__ for function in functions if inspect.isfunction(function)}
