"""The registry of claims read, checked and reported: `make checks`."""

from __future__ import annotations

import argparse
import sys
import textwrap
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

from proofs_checks.engine.claims import GRADES, VERDICTS, Claim, load_claims
from proofs_checks.engine.registry import Check, all_checks
from proofs_checks.engine.watch import watched


@dataclass(frozen=True)
class Outcome:
    """What one check said, how long it took, and how its mutants fared."""

    key: str
    line: str
    passed: bool
    mutants: int
    alive: int
    seconds: float


def run(key: str) -> Outcome:
    """Run one registered check and its mutants."""
    return outcome_of(all_checks()[key])


def outcome_of(check: Check) -> Outcome:
    """Run a check, which fails too if it never calls the code that it names, and then its mutants."""
    start = time.perf_counter()
    try:
        line, missing = watched(check)
        passed = not missing
        line = line if passed else f"never calls {', '.join(missing)}"
    except Exception as error:
        line, passed = f"{type(error).__name__}: {error}", False
    alive = len(check.survivors()) if passed else 0
    return Outcome(check.key, line, passed, len(check.rejects), alive, time.perf_counter() - start)


def checks_named(claims: dict[str, Claim]) -> list[str]:
    """Every check that a claim names, once, in the order of the registry."""
    return list(dict.fromkeys(key for claim in claims.values() for key in claim["checks"]))


def counts_table(claims: dict[str, Claim]) -> str:
    """How many statements have each verdict and grade, as a Markdown table; the README holds it."""
    grades = [grade for grade in GRADES if any(claim["grade"] == grade for claim in claims.values())]
    lines = [f"| verdict | {' | '.join(grades)} | all |", "|---" * (len(grades) + 2) + "|"]
    for verdict in VERDICTS:
        row = [sum(c["verdict"] == verdict and c["grade"] == grade for c in claims.values()) for grade in grades]
        lines.append(f"| {verdict} | {' | '.join(map(str, row))} | {sum(row)} |")
    return "\n".join(lines)


def section_key(section: str) -> tuple[int, str]:
    """Sections of the text first, then the appendix, then statements that are not the paper's."""
    return (0 if section[:1].isdigit() else 1 if section[:1].isupper() else 2), section


def wrapped(text: str) -> list[str]:
    """Indented lines of a readable length."""
    return textwrap.wrap(text, 118, initial_indent="    ", subsequent_indent="         ")


def describe(label: str, claim: Claim, outcomes: dict[str, Outcome], told: set[str]) -> list[str]:
    """The lines of one claim; a check speaks at the first claim that it serves."""
    lines = [f"{label}: {claim['title']}", f"    {claim['verdict']} ({claim['grade']})"]
    told_in_full = claim["verdict"] != "definition" or claim.get("checks")
    parts = [("says", "paper"), ("counterexample", "counterexample"), ("instead", "corrected")]
    for word, key in [*parts, ("note", "note")] if claim["verdict"] == "not decided" else parts:
        if claim.get(key) and told_in_full:
            lines += wrapped(f"{word}: {claim[key]}")
    for key in claim.get("checks", []):
        outcome = outcomes[key]
        if outcome.passed and key in told:
            lines.append(f"    [as above] {key}")
            continue
        told.add(key)
        mark = "ok" if outcome.passed and not outcome.alive else "FAILED"
        rejected = f"{outcome.mutants - outcome.alive} of {outcome.mutants} mutants rejected"
        lines += wrapped(f"[{mark}] {outcome.line}")
        lines.append(f"         {key}, {rejected}, {outcome.seconds:.1f} s")
    return lines


def main(arguments: list[str] | None = None) -> int:
    """Print the report; 1 if a check fails or a mutant survives."""
    parser = argparse.ArgumentParser(prog="python -m proofs_checks", description="Check the paper's statements.")
    parser.add_argument("labels", nargs="*", help="only statements whose label contains one of these")
    parser.add_argument("--counts", action="store_true", help="print the README's table of counts only")
    parser.add_argument("--workers", type=int, default=2, help="processes (default: 2)")
    options = parser.parse_args(arguments)
    if options.counts:
        print(counts_table(load_claims()))
        return 0
    claims = {
        label: claim
        for label, claim in load_claims().items()
        if not options.labels or any(part in label for part in options.labels)
    }
    start = time.perf_counter()
    with ProcessPoolExecutor(options.workers) as pool:
        outcomes = {outcome.key: outcome for outcome in pool.map(run, checks_named(claims))}
    section, told = None, set[str]()
    for label, claim in sorted(claims.items(), key=lambda item: section_key(item[1]["section"])):
        if claim["section"] != section:
            section = claim["section"]
            print(f"\n== {'Ours, not in the paper' if section == 'ours' else f'Section {section}'} ==")
        print("\n".join(describe(label, claim, outcomes, told)))
    return summarise(claims, list(outcomes.values()), time.perf_counter() - start)


def summarise(claims: dict[str, Claim], outcomes: list[Outcome], seconds: float) -> int:
    """The counts at the end, and the exit code."""
    print()
    for name, order in (("verdict", VERDICTS), ("grade", GRADES)):
        counts = Counter(str(claim[name]) for claim in claims.values())
        print(f"by {name}: " + ", ".join(f"{counts[key]} {key}" for key in order if counts[key]))
    failed = [outcome.key for outcome in outcomes if not outcome.passed]
    weak = [outcome.key for outcome in outcomes if outcome.alive]
    mutants = sum(outcome.mutants for outcome in outcomes)
    rejected = mutants - sum(outcome.alive for outcome in outcomes)
    print(
        f"{len(claims)} statements, {len(outcomes)} checks, {rejected} of {mutants} mutants rejected, {seconds:.0f} s"
    )
    if failed:
        print("FAILED: " + ", ".join(failed))
    if weak:
        print("MUTANTS SURVIVE: " + ", ".join(weak))
    return 1 if failed or weak else 0


if __name__ == "__main__":
    sys.exit(main())
