"""Sentences that hold methods against each other have a computation beside them; those of the README are computed."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from datetime import date, timedelta
from fractions import Fraction
from pathlib import Path

import polars as pl
import pytest

from pqlab.data import worldnews_weekly
from pqlab.data.fetch import local
from pqlab.data.worldnews import HEADLINES_FILE
from pqlab.experiments.findings import against, curves, paper_sized
from pqlab.experiments.static import even_quantiles
from proofs_checks.engine.claims import Claim, load_claims

ROOT = Path(__file__).resolve().parents[2]
PAGES = (
    "06_public_private",
    "08_sequential",
    "08b_sequential_epsilon",
    "13_learning_distributions",
    "14_public_private_shift",
)
SECTIONS = sorted((ROOT / "proofs_checks").glob("section_5_*/claims.toml"))
METHOD = re.compile(r"PubProx|PubPrev|PubFit|DPLearned|NonPrivate|Cauchy|Uniform|uniform prior|public quantiles", re.I)
COMPARED = re.compile(r"\b(?:ahead|level|behind|best|never|always|beats?|better|worse)\b", re.I)
COMPUTED = re.compile(r"\bobserve\(|\bassert \w|FINDINGS\.md")  # in the section of a page, or the paragraph of a README


def sentences(text: str) -> Iterator[str]:
    """Sentences that name a method and compare it."""
    for sentence in re.split(r"(?<=[.;!?])\s+", text):
        if METHOD.search(sentence) and COMPARED.search(sentence):
            yield " ".join(sentence.split())


def bare_in_page(text: str) -> list[str]:
    """Comparing sentences of a page whose section computes nothing; a section ends at the next heading."""
    bare = []
    for section in re.split(r"(?m)^(?=##+ )", text):
        prose = re.sub(r"(?ms)^```.*?^```$", "", section)
        cells = "\n".join(re.findall(r"(?ms)^```\{code-cell\}.*?^```$", section))
        asked = re.match(r"##+ (?:Exercises|Further reading)", section)  # what readers are to compute
        if not asked and not COMPUTED.search(cells) and "FINDINGS.md" not in prose:
            bare += list(sentences(prose))
    return bare


def bare_in_readme(text: str) -> list[str]:
    """Comparing sentences of a README in paragraphs without a link to the computed findings."""
    return [line for part in text.split("\n\n") if "FINDINGS.md" not in part for line in sentences(part)]


def bare_rows(claims: dict[str, Claim]) -> list[str]:
    """Rows of Section 5 whose note compares methods, and which no check of a module `figures` reads off the tables."""
    labels = {label for path in SECTIONS for label in tomllib.loads(path.read_text(encoding="utf-8"))}
    compared = [label for label in claims if label in labels and list(sentences(claims[label].get("note", "")))]
    return [label for label in compared if not any("figures:" in key for key in claims[label]["checks"])]


@pytest.mark.parametrize("name", PAGES)
def test_comparisons_on_pages_have_a_computation_in_their_section(name: str) -> None:
    assert bare_in_page((ROOT / "notebooks" / f"{name}.md").read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("path", sorted((ROOT / "results").glob("*/README.md")), ids=lambda path: path.parent.name)
def test_comparisons_beside_tables_link_to_the_findings(path: Path) -> None:
    assert bare_in_readme(path.read_text(encoding="utf-8")) == []


def test_comparisons_in_rows_have_a_check_that_reads_the_tables() -> None:
    claims = load_claims()
    assert bare_rows(claims) == []
    assert "fig:timeplots" in bare_rows({label: {**claim, "checks": []} for label, claim in claims.items()})


def test_a_sentence_without_a_computation_is_found() -> None:
    claim = "PubProx is never behind the\nhalf-Cauchy."
    assert bare_in_page(f"# Page\n\n## One\n\n{claim}\n\n## Two\n\n```{{code-cell}} ipython3\nassert True\n```\n")
    assert not bare_in_page(f"## One\n\n{claim}\n\n```{{code-cell}} ipython3\nassert True\n```\n")
    assert bare_in_readme(f"See FINDINGS.md.\n\n{claim}") and not bare_in_readme(f"{claim} See FINDINGS.md.")
    assert not list(sentences("PubProx learns. The best of all days is Monday."))


def test_what_the_readme_of_the_sequential_tables_says_of_single_quantiles() -> None:
    table = pl.read_csv(ROOT / "results" / "sequential" / "online-logepsplots.csv")
    single = table.filter(pl.col("m") != 9)
    assert single.height == 600 and set(single["m"]) == {1} and set(single["data"]) == {"synthetic_noisy"}
    assert even_quantiles(1) == [Fraction(1, 2)]


def test_what_the_readme_of_the_sequential_tables_says_of_the_days_of_citibike() -> None:
    folder = ROOT / "results" / "sequential"
    first, last = re.findall(r"\d{4}-\d{2}-\d{2}", (folder / "README.md").read_text(encoding="utf-8"))
    for name in ("timeplots", "online-logepsplots"):
        days = pl.read_csv(folder / f"{name}.csv").filter(data="citibike")["last_day"].max()
        assert date.fromisoformat(first) + timedelta(days=int(str(days))) == date.fromisoformat(last)


@pytest.mark.skipif(local(HEADLINES_FILE) is None, reason="the headlines are not in the data folder")
def test_what_is_said_of_the_weeks_of_headlines() -> None:
    """On `08b_sequential_epsilon`, in `results/sequential` and in the row: 422 weeks, nearly all of 175 headlines."""
    sequence = worldnews_weekly()
    sizes = [len(x) for x in sequence.datasets]
    assert (len(sizes), sizes.count(175), sorted(sizes)[1]) == (422, 408, 125)
    assert (sequence.days[0], sequence.days[-1]) == (date(2008, 6, 2), date(2016, 6, 27))


def test_what_the_readme_of_the_sequential_tables_says_of_the_break() -> None:
    after = paper_sized("timeplots").filter(pl.col("first_day") >= 1640, pl.col("day_block") >= 0, data="citibike")
    found = curves(after, "first_day")
    for robust, plain in (("prox", "prox_plain"), ("prev", "prev_plain")):
        means = [sum(mean for mean, _ in found[method].values()) for method in (robust, plain)]
        assert means[0] < means[1], robust
    for static in ("uniform", "cauchy"):
        assert against(found["prox"], found[static])[1:] == ([], []), static
    assert against(found["prox"], found["half_cauchy"])[1:] == ([1697.0, 1719.0], [])
