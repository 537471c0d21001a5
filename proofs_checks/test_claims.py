"""The registry of claims is alive: complete, consistent, and each of its checks passes and rejects its mutants."""

from __future__ import annotations

import inspect
import re
import tomllib
from fractions import Fraction
from pathlib import Path

import pytest

from pq import bounds
from proofs_checks.engine.claims import GRADES, VERDICTS, load_claims, load_rows
from proofs_checks.engine.registry import FOLDER, SECTIONS, Check, all_checks, check, name_of
from proofs_checks.engine.report import outcome_of
from proofs_checks.engine.watch import watched
from proofs_checks.tools.exact import Grid

CLAIMS = load_claims()
ROWS = load_rows()
CHECKS = all_checks()
HALF = Fraction(1, 2)
NOTEBOOKS = Path(__file__).parent.parent / "notebooks"
KEYS = {
    "title",
    "section",
    "paper",
    "corrected",
    "verdict",
    "grade",
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
    assert set(ROWS[label]) <= KEYS, set(ROWS[label]) - KEYS
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


@pytest.mark.parametrize("label", STATEMENTS)
def test_code_cites_its_label(label: str) -> None:
    codes = [code for check in CHECKS.values() if label in check.labels for code in check.code]
    assert any(label in inspect.getsource(code) for code in codes), f"none of {list(map(name_of, codes))} cites {label}"


@pytest.mark.parametrize("label", [label for label in CLAIMS if CLAIMS[label].get("notebook")])
def test_notebook_anchor_exists(label: str) -> None:
    name, _, anchor = CLAIMS[label]["notebook"].partition("#")
    text = (NOTEBOOKS / f"{name}.md").read_text(encoding="utf-8")
    slugs = {
        re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-")
        for heading in re.findall(r"(?m)^#+ (.+)$", text)
    }
    assert not anchor or f"({anchor})=" in text or anchor in slugs


@pytest.mark.parametrize("key", CHECKS)
def test_check_passes_and_rejects_its_mutants(key: str) -> None:
    line, missing = watched(CHECKS[key])
    assert not missing, f"{key} never calls {missing}"
    assert isinstance(line, str)
    assert line
    assert not CHECKS[key].survivors()


def test_a_check_that_never_calls_its_code_is_refused() -> None:
    idle = Check(lambda subject=0: "fine", ("lem:quantile",), (bounds.lem_quantile,), (1,))
    outcome = outcome_of(idle)
    assert not outcome.passed
    assert outcome.line == "never calls pq.core.bounds.quantiles.lem_quantile"
    busy = Check(lambda subject=0: str(bounds.lem_quantile(-1.0, 1.0, 0.5)), ("lem:quantile",), idle.code, (1,))
    assert watched(busy)[1] == []


def test_a_method_of_a_class_is_a_call_of_the_class() -> None:
    use = Check(lambda subject=0: str(Grid(3).below(HALF)), ("alg:quantiles",), (Grid,), (1,))
    assert watched(use) == ("0", [])


@pytest.mark.parametrize(
    ("labels", "rejects"), [((), [1]), (("lem:quantile",), [])], ids=["serves no row", "rejects nothing"]
)
def test_a_check_needs_a_row_and_a_mutant(labels: tuple[str, ...], rejects: list[int]) -> None:
    with pytest.raises(ValueError, match="needs a row, a mutant"):
        check(*labels, rejects=rejects)(lambda subject=0: "fine")


def test_a_mutant_that_breaks_the_check_otherwise_is_not_rejected() -> None:
    def divide(subject: int = 1) -> str:
        assert 1 / subject > 0
        return "fine"

    assert Check(divide, ("lem:quantile",), (), (0, -1)).survivors() == [0]


def test_a_failing_check_is_reported_with_its_reason() -> None:
    def fail(subject: int = 1) -> str:
        raise AssertionError("two is not three")

    outcome = outcome_of(Check(fail, ("lem:quantile",), (), (1,)))
    assert not outcome.passed
    assert outcome.line == "AssertionError: two is not three"


def test_every_section_has_rows_and_every_row_belongs_to_one() -> None:
    assert len(SECTIONS) == 10
    assert sum(len(tomllib.loads((FOLDER / name / "claims.toml").read_text())) for name in SECTIONS) == len(ROWS)
