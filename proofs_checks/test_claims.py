"""The registry of claims is alive: complete, consistent, and each of its checks passes and rejects its mutants."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

from proofs_checks.report import GRADES, VERDICTS, checks_of, find_check, load_claims, load_mutants, survivors

CLAIMS = load_claims()
CHECKS = checks_of(CLAIMS)
NOTEBOOKS = Path(__file__).parent.parent / "notebooks"
KEYS = {
    "title",
    "section",
    "paper",
    "corrected",
    "verdict",
    "grade",
    "code",
    "checks",
    "notebook",
    "counterexample",
    "note",
}

# Every label of the paper: statements, which code must cite, then sections and figures.
STATEMENTS = [
    "alg:dpftrl",
    "alg:quantiles",
    "cor:cauchy",
    "cor:cauchy-robust",
    "cor:multi-cauchy",
    "cor:multiple",
    "cor:quantile",
    "cor:quantile-regret",
    "def:consistency",
    "def:robustness",
    "eq:basic",
    "eq:censored",
    "eq:closed-form",
    "eq:empirical-probability",
    "eq:expectation-bound",
    "eq:gap",
    "eq:l2sensitivity",
    "eq:laplace-bound",
    "eq:quantile",
    "lem:empirical",
    "lem:empirical-quantiles",
    "lem:error",
    "lem:lipschitz",
    "lem:prior",
    "lem:quantile",
    "lem:refined-sensitivity",
    "lem:shuffle",
    "thm:binary",
    "thm:dpftrl",
    "thm:impossibility",
    "thm:kary",
    "thm:kary-main",
    "thm:o2b",
    "thm:pubpri",
    "thm:quantile-regret",
    "thm:sequential",
]
PLACES = [
    "app:advantages",
    "app:algorithm",
    "app:applications",
    "fig:mixplots",
    "fig:mplots",
    "fig:online-logepsplots",
    "fig:pubpri-logepsplots",
    "fig:timeplots",
    "fig:worldnews-logepsplots",
    "sec:advantages",
    "sec:algorithm",
    "sec:applications",
    "sec:formulation",
    "sec:o2b",
    "sec:online-details",
    "sec:overlap",
    "sec:pubpri-details",
    "sec:refined-sensitivity",
    "sec:robustness",
    "sec:single",
]


def test_every_label_of_the_paper_has_a_row() -> None:
    assert not {*STATEMENTS, *PLACES} - set(CLAIMS)


def test_rows_that_are_referred_to_exist() -> None:
    text = " ".join(
        claim.get(key, "") for claim in CLAIMS.values() for key in ("paper", "corrected", "counterexample", "note")
    )
    labels = set(re.findall(r"\b(?:thm|lem|cor|text|step|ours|eq|fig|sec|alg|def|app):[\w./-]*\w", text))
    assert len(labels) > 50 and labels <= set(CLAIMS), labels - set(CLAIMS)


@pytest.mark.parametrize("label", CLAIMS)
def test_row_is_whole(label: str) -> None:
    claim = CLAIMS[label]
    assert set(claim) <= KEYS, set(claim) - KEYS
    assert {"title", "section", "paper", "verdict", "grade"} <= set(claim)
    assert claim["verdict"] in VERDICTS
    assert claim["grade"] in GRADES
    if claim["verdict"] in ("holds", "holds corrected", "false as stated"):
        assert claim.get("checks"), "a verdict needs a check"
        assert claim["grade"] != "none"
    if claim["verdict"] in ("holds corrected", "false as stated"):
        assert claim.get("corrected"), "what is true instead?"
        assert claim.get("counterexample"), "what contradicts the printed statement?"
    if claim["verdict"] == "false as stated":
        assert claim["grade"] in ("proved", "high precision"), "a counterexample is exact, or nearly"
    if claim["verdict"] == "not decided":
        assert claim.get("note"), "what is missing?"
    if label in STATEMENTS:
        assert claim.get("code"), "what implements it?"


@pytest.mark.parametrize("label", [label for label in CLAIMS if CLAIMS[label].get("code")])
def test_code_exists_and_cites_its_label(label: str) -> None:
    sources = [source_of(name) for name in CLAIMS[label]["code"]]
    if label in STATEMENTS:
        assert any(label in source for source in sources), f"none of {CLAIMS[label]['code']} cites {label}"


def source_of(dotted: str) -> str:
    """The source of a module, class, function or method; a table's is its module's."""
    parts = dotted.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        module = found
        for name in parts[cut:]:
            found = getattr(found, name)
        described = inspect.ismodule(found) or inspect.isclass(found) or inspect.isfunction(found)
        return inspect.getsource(found if described else module)
    raise AssertionError(f"{dotted} does not import")


@pytest.mark.parametrize("label", [label for label in CLAIMS if CLAIMS[label].get("notebook")])
def test_notebook_anchor_exists(label: str) -> None:
    name, _, anchor = CLAIMS[label]["notebook"].partition("#")
    text = (NOTEBOOKS / f"{name}.md").read_text(encoding="utf-8")
    slugs = {
        re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-")
        for heading in re.findall(r"(?m)^#+ (.+)$", text)
    }
    assert not anchor or f"({anchor})=" in text or anchor in slugs


def test_mutants_belong_to_checks_of_the_registry() -> None:
    assert not set(load_mutants()) - set(CHECKS)


@pytest.mark.parametrize("key", CHECKS)
def test_check_passes_and_rejects_its_mutants(key: str) -> None:
    line = find_check(key)()
    assert isinstance(line, str)
    assert line
    assert load_mutants().get(key), f"{key} has no mutants"
    assert not survivors(key)
