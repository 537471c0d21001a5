"""README's way from a file to a page, walked command by command in an empty folder, by what people install."""

from __future__ import annotations

import csv
import json
import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from from_wheel import run

from test_workshop import ROOT

RECORDS, KEYS, QUANTILES = 20_000, ("sales", "research", "production", "board"), (0.25, 0.5, 0.75, 0.9)
FAR = 400  # ranks; the law of a release of the walk puts less than e^-50 beyond


def walk_of(readme: str) -> list[list[str]]:
    """The commands between the marks, each as its arguments."""
    block = re.search(r"<!-- walk: .*? -->\n```sh\n(.*?)```\n<!-- end of walk -->", readme, flags=re.DOTALL)
    assert block is not None
    return [shlex.split(line) for line in block[1].replace("\\\n", " ").splitlines()]


def make_salaries(path: Path) -> dict[str, list[Any]]:
    """A table with blanks, thousands marks and dates; what each department earns, and all that was written."""
    rng = np.random.default_rng(15)
    pay, days = rng.lognormal(10.8, 0.5, RECORDS), rng.integers(13_000, 20_000, RECORDS)
    where, blank = rng.integers(len(KEYS), size=RECORDS), rng.random(RECORDS) < 0.02
    earned: dict[str, list[Any]] = {key: [] for key in KEYS} | {"cells": []}
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "department", "salary", "since"])
        for i in range(RECORDS):
            name, cell = f"p{i:05d}x", "" if blank[i] else f"{pay[i]:,.2f}"
            writer.writerow([name, KEYS[where[i]], cell, str(np.datetime64(int(days[i]), "D"))])
            earned["cells"] += [name, *([cell] if cell else [])]
            earned[KEYS[where[i]]] += [] if blank[i] else [round(float(pay[i]), 2)]
    return earned


def shown_records(page: str, cells: list[str]) -> set[str]:
    """The cells of the table that stand in a page as words of their own."""
    return set(cells) & set(re.findall(r"p\d{5}x|\d[\d,]*\.\d\d(?!\d)", page))


def facts_of(page: str) -> Any:
    (text,) = re.findall(r'<script[^>]*id="release"[^>]*>(.*?)</script>', page, flags=re.DOTALL)
    return json.loads(text)


def near(values: list[float], column: list[float]) -> bool:
    """Whether values are quantiles of a column up to a number of ranks."""
    ranks = np.searchsorted(np.sort(column), values)
    return bool(np.all(np.abs(ranks - len(column) * np.array(QUANTILES)) < FAR))


@pytest.fixture(scope="module")
def walked(installed: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, list[Any]], list[str]]:
    folder = tmp_path_factory.mktemp("walk")
    earned = make_salaries(folder / "salaries.csv")
    commands = walk_of((ROOT / "README.md").read_text(encoding="utf-8"))
    assert {command[0] for command in commands} == {"pq"}
    answers = [run(installed, folder, *command[1:]) for command in commands]
    assert len(answers) == 10
    for answer in answers:
        assert answer.returncode == 0, answer.stderr
    return folder, earned, [answer.stdout for answer in answers]


Walked = tuple[Path, dict[str, list[Any]], list[str]]


def test_the_walk_tells_what_it_is_for(walked: Walked) -> None:
    _, earned, told = walked
    unread = RECORDS - sum(len(earned[key]) for key in KEYS)
    assert f"unread  {RECORDS}\n" in told[0] and "--thousands" in told[0]
    assert f"unread  {unread}\n" in told[1]
    assert "Largest of them, on average" in told[2] and "Forecast of a release at epsilon 0." in told[3]
    assert re.search(r"0\.5  \d{4}-\d\d-\d\d\n", told[6])


def test_the_ledger_holds_the_three_releases(walked: Walked, installed: Path) -> None:
    folder, _, told = walked
    assert run(installed, folder, "ledger", "show", "staff.ledger", "--quiet").stdout.strip() == "1/4"
    assert all(purpose in told[8] for purpose in ("all salaries", "median entry", "by department"))
    assert len(json.loads(told[9])["event"]) > 0


def test_values_are_near_and_stand_beside_intervals(walked: Walked) -> None:
    _, earned, told = walked
    rows = [line.split() for line in told[5].splitlines()[2:6]]
    assert [float(row[0]) for row in rows] == list(QUANTILES)
    assert near([float(row[1]) for row in rows], [pay for key in KEYS for pay in earned[key]])
    for _, value, low, _, high in rows:
        assert float(low.replace(",", "")) <= float(value) <= float(high.replace(",", ""))


def test_pages_hold_what_was_released_and_nothing_private(walked: Walked) -> None:
    folder, earned, told = walked
    overall, grouped = ((folder / name).read_text(encoding="utf-8") for name in ("salaries.html", "departments.html"))
    printed = [float(line.split()[1]) for line in told[5].splitlines()[2:6]]
    assert np.allclose(facts_of(overall)["values"], printed, rtol=1e-9)
    for line in told[7].splitlines()[2:6]:
        key, *values = line.split()
        assert near([float(value) for value in values], earned[key])
        assert key in grouped and all(value[:8] in grouped for value in values)
    for page in (overall, grouped):  # with cents and thousands marks, which no number of a page has by chance
        assert not shown_records(page, earned["cells"])
        assert shown_records(f"{page}<p>{earned['cells'][1]}</p>", earned["cells"])


def test_what_does_not_fit_is_refused_before_the_data_are_read(walked: Walked, installed: Path) -> None:
    folder, _, _ = walked
    (folder / "broken.csv").write_text('id,department,salary,since\n"open,1\n', encoding="utf-8")
    release = ["release", "broken.csv", "--column", "salary", "--quantiles", "0.5", "--prior", "cauchy(0, 1)"]
    refused = run(installed, folder, *release, "--ledger", "staff.ledger", "--epsilon", "0.5")
    assert refused.returncode == 1 and "epsilon 0.5 does not fit: 0.25 of 1.5 remain" in refused.stderr
    assert (
        run(installed, folder, *release, "--ledger", "staff.ledger", "--epsilon", "0.1").returncode == 2
    )  # now it is read
    assert run(installed, folder, "ledger", "show", "staff.ledger", "--quiet").stdout.strip() == "1/4"
