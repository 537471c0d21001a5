"""What the text reads off its figures, against our experiments: a small one here, and the stored tables of long runs.

Differences are taken trial by trial and given in standard errors; three of them, where nothing else is said, decide.
"""

from __future__ import annotations

import csv
import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np

import pq
from proofs_checks.exact import Algorithm, Grid, Prior

F = Fraction
RESULTS = Path(__file__).parent.parent / "results"
Point = tuple[str, str, str, float, float]  # source, variant, method, epsilon, mixture


def score(differences: np.ndarray) -> float:
    """Mean over standard error, 0 if nothing differs."""
    spread = float(np.std(differences, ddof=1))
    return float(np.mean(differences)) / spread * math.sqrt(len(differences)) if spread else 0.0


# ---- fig:mplots ------------------------------------------------------------------------------------------------------

METHODS = {
    "original": lambda m: {"arity": 2, "budget_power": 0.0, "adaptation": "conditional"},
    "edge": lambda m: {"arity": pq.kary_arity(m), "budget_power": 1.5, "adaptation": "edge"},
    "conditional": lambda m: {"arity": pq.kary_arity(m), "budget_power": 1.5, "adaptation": "conditional"},
}


@cache
def first_figure() -> dict[tuple[str, float, str], np.ndarray]:
    """Largest gaps, mean over m = 9 and 29, of 24 trials with 1000 records each."""
    ages = pq.datasets.adult("train", "age").to_array()
    found: dict[tuple[str, float, str], np.ndarray] = {}
    for data, prior in (("gaussian", pq.Uniform(-10, 10)), ("age", pq.Uniform(10, 120))):
        for epsilon in (1.0, 0.1):
            for name, method in METHODS.items():
                gaps = np.zeros(24)
                for trial in range(24):
                    rng = np.random.default_rng([139, trial])
                    x = rng.normal(size=1000) if data == "gaussian" else rng.choice(ages, 1000, replace=False)
                    for m in (9, 29):
                        quantiles = [i / (m + 1) for i in range(1, m + 1)]
                        keywords = {"epsilon": epsilon, "priors": prior, "calibration": "paper", **method(m)}
                        released = pq.release(x, quantiles, rng=[trial, m], mechanism="tree", **keywords)  # type: ignore[arg-type]
                        gaps[trial] += pq.max_gap(x, quantiles, released.values) / 2
                found[data, epsilon, name] = gaps
    return found


def check_first_figure(subject: tuple[str, str] = ("original", "edge")) -> str:
    """fig:mplots: the original is better at epsilon = 1, and within a quarter of the gap at epsilon = 0.1."""
    gaps = first_figure()
    better, other = subject
    scores = {key: score(gaps[*key, better] - gaps[*key, other]) for key in (("gaussian", 1.0), ("age", 1.0))}
    assert all(value < -3 for value in scores.values()), scores
    for data in ("gaussian", "age"):
        one, two = (gaps[data, 0.1, name].mean() for name in subject)
        assert abs(one - two) < 0.25 * two, (data, one, two)
    text = ", ".join(f"{data} {value:.0f}" for (data, _), value in scores.items())
    return f"fig:mplots: the original less K-ary with edges at epsilon = 1 ({text} standard errors), like it at 0.1"


def without_ties(adaptation: str, n: int = 4) -> Fraction:
    """Mean largest gap of three quantiles, K = 3, with a wide flat prior: half outside either end of n records."""
    cells = {k: F(10 if k in (0, n) else 1, n + 19) for k in range(n + 1)}
    priors: tuple[Prior, ...] = tuple({k + F(i, 4): mass for k, mass in cells.items()} for i in (1, 2, 3))
    quarters = (F(1, 4), F(1, 2), F(3, 4))
    algorithm = Algorithm(quarters, priors, (F(1, 10),) * 3, arity=3, adaptation=adaptation)
    data = Grid(n)
    return sum((p * max(algorithm.gaps(data, o)) for o, p in algorithm.law(data).items()), F(0))


def check_conditional_better(subject: tuple[str, str] = ("edge", "conditional")) -> str:
    """Counterexample to 'conditional adaptation is only better with repetitions': exact means."""
    worse, better = subject
    for n in (3, 4, 5):
        assert without_ties(better, n) < without_ties(worse, n), n
    one, two = (float(without_ties(name)) for name in subject)
    return f"different records, n = 4, m = K = 3: mean largest gap {two:.4f} conditional, {one:.4f} edge (exact)"


# ---- public data -----------------------------------------------------------------------------------------------------


@cache
def stored(name: str) -> dict[Point, np.ndarray]:
    """Gaps of the trials of a stored table."""
    found: dict[Point, np.ndarray] = {}
    with (RESULTS / "public_private" / f"{name}.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(line for line in file if not line.startswith("#")):
            key = row["source"], row["variant"], row["method"], float(row["epsilon"]), float(row["mixture"])
            found[key] = np.array([float(v) for v in row["max_gap"].split()])
    return found


def check_adult(subject: str = "public_quantiles") -> str:
    """fig:pubpri-logepsplots: public quantiles is best at small epsilon, and PubFit the nearest to it."""
    table = stored("adult")
    near = []
    for source in ("adult_age", "adult_hours"):
        best, fit = (table[source, "paper", method, 0.001, 0.0] for method in (subject, "pubfit"))
        for other in ("pubfit", "public_cauchy", "half_cauchy", "uniform"):
            gaps = table[source, "paper", other, 0.001, 0.0]
            assert score(gaps - best) > 3, (source, other)
            assert other == "pubfit" or score(gaps - fit) > 3, (source, other)
        near.append(f"{np.mean(fit - best):.1f}")
    return (
        f"Adult at epsilon = 0.001: public quantiles first, PubFit next ({' and '.join(near)} records), all else behind"
    )


def check_adult_large(subject: tuple[str, ...] = ("adult_age",)) -> str:
    """At epsilon = 10 public quantiles is worse than PubFit on ages; on hours it is so on one level only."""
    table = stored("adult")
    for source in ("adult_age", "adult_hours"):
        difference = table[source, "paper", "public_quantiles", 10.0, 0.0] - table[source, "paper", "pubfit", 10.0, 0.0]
        assert (score(difference) > 3) == (source in subject), (source, score(difference))
        level = table[source, "level", "public_quantiles", 10.0, 0.0] - table[source, "level", "pubfit", 10.0, 0.0]
        assert score(level) > 3, source
    return (
        "Adult at epsilon = 10: PubFit beats public quantiles on ages; on hours only if no tree splits the tied records"
    )


def lost(method: str, source: str) -> np.ndarray:
    """What a method loses from no shift to a full one, trial by trial."""
    table = stored("goodreads11k" if source.startswith("goodreads") else "movies")
    return table[source, "paper", method, 1.0, 1.0] - table[source, "paper", method, 1.0, 0.0]


def check_shift(subject: str = "pubfit_robust") -> str:
    """fig:mixplots, on a scrape of books: public quantiles loses most; the robust fit less than the plain one."""
    pages, rating = "goodreads11k_pages", "goodreads11k_rating"
    for source in (pages, rating):
        assert score(lost("public_quantiles", source)) > 3
        assert score(lost("public_quantiles", source) - lost(subject, source)) > 2.5, source
    assert score(lost("pubfit", pages) - lost(subject, pages)) > 2
    table = stored("goodreads11k")
    worst = score(table[pages, "paper", subject, 1.0, 1.0] - table[pages, "paper", "uniform", 1.0, 1.0])
    assert worst < 3, "much worse than the default"
    means = [f"{np.mean(lost(m, pages)):.1f}" for m in ("public_quantiles", "pubfit", "pubfit_robust", "public_cauchy")]
    return f"books, pages, full shift: public quantiles, PubFit, robust PubFit, public Cauchy lose {', '.join(means)}"


def check_shift_least(subject: Callable[[str], float] | None = None) -> str:
    """'PubFit (robust) deteriorates least': not on films, where public Cauchy loses less."""
    film = "movies_length"
    value = score(lost("public_cauchy", film) - lost("pubfit_robust", film)) if subject is None else subject(film)
    assert value < -3, value
    return f"films, length: public Cauchy loses less than robust PubFit ({value:.0f} standard errors)"


def check_ratings(subject: str = "pubfit") -> str:
    """'For book ratings PubFit is best among the remaining methods, without much change with distribution shift'."""
    rating, table = "goodreads11k_rating", stored("goodreads11k")
    for mixture in (0.0, 0.5, 1.0):
        fit = table[rating, "paper", subject, 1.0, mixture]
        for other in ("public_cauchy", "half_cauchy", "uniform"):
            assert score(table[rating, "paper", other, 1.0, mixture] - fit) > 3, (mixture, other)
    change = lost(subject, rating)
    assert abs(score(change)) < 3, score(change)
    return (
        f"books, ratings: PubFit ahead of Cauchy and uniform priors whatever the shift, which costs {change.mean():.1f}"
    )


def check_pages(subject: tuple[float, float] = (0.0, 0.5)) -> str:
    """'Both PubFit methods and public Cauchy do as well as public quantiles when most data is History': not with all of
    it, on a scrape of books; with half of it."""
    table, behind = stored("goodreads11k"), []
    worse = subject[0]
    for method in ("pubfit", "pubfit_robust", "public_cauchy"):
        for mixture in subject:
            one, two = (table["goodreads11k_pages", "paper", m, 1.0, mixture] for m in (method, "public_quantiles"))
            assert (score(one - two) > 3) == (mixture == worse), (method, mixture)
            assert mixture == worse or abs(score(one - two)) < 3, (method, mixture)
            behind += [float(np.mean(one - two))] * (mixture == worse)
    return f"books, pages, no shift: behind public quantiles by {', '.join(f'{v:.1f}' for v in behind)}; level at half"


# ---- sequential ------------------------------------------------------------------------------------------------------

DATA = "synthetic_noisy", "citibike"
Curve = dict[float, tuple[float, float]]  # mean and standard error of a method, by budget or by first day of a block


@cache
def over_time(data: str, method: str) -> Curve:
    """Error in each of the hundred stretches of days of `fig:timeplots`."""
    return _curve("timeplots", data, method, "first_day")


@cache
def by_budget(data: str, method: str, column: str = "max_gap") -> Curve:
    """Error over all days, by epsilon, with nine quantiles."""
    return _curve(
        "worldnews-logepsplots" if data == "worldnews" else "online-logepsplots", data, method, "epsilon", column
    )


def _curve(table: str, data: str, method: str, along: str, column: str = "max_gap") -> Curve:
    with (RESULTS / "sequential" / f"{table}.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if (row["data"], row["method"], row["m"]) == (data, method, "9")]
    kept = [row for row in rows if (int(row["day_block"]) >= 0) == (along == "first_day")]
    assert kept, (data, method)
    return {float(row[along]): (float(row[column]), float(row[f"{column}_error"])) for row in kept}


def ahead(worse: Curve, better: Curve) -> tuple[list[float], list[float]]:
    """Where one curve lies below another by three standard errors, and where it lies as much above."""
    scores = {x: (worse[x][0] - better[x][0]) / (math.hypot(worse[x][1], better[x][1]) + 1e-12) for x in better}
    return [x for x, z in scores.items() if z > 3], [x for x, z in scores.items() if z < -3]


def check_over_time(subject: tuple[str, str, str] = ("prev", "prox", "prev_plain")) -> str:
    """fig:timeplots, CitiBike: robust versions almost always better, above all PubPrev's; plain PubPrev is no better
    than Uniform after the break; non-private learning is better than all."""
    city, (prev, prox, plain) = "citibike", subject
    below = []
    for robust, other in ((prev, "prev_plain"), (prox, "prox_plain")):
        one, two = over_time(city, robust), over_time(city, other)
        assert len(ahead(one, two)[0]) <= 1, robust
        below.append(sum(one[day][0] < two[day][0] for day in one))
    assert below[0] >= 90 and below[1] >= 70, below
    uniform, after = over_time(city, "uniform"), [day for day in over_time(city, plain) if day >= 1600]
    difference = float(np.mean([over_time(city, plain)[day][0] - uniform[day][0] for day in after]))
    assert difference > 0, difference
    for data, method in itertools.product((city, "synthetic"), (prev, prox)):
        assert len(ahead(over_time(data, method), over_time(data, "open"))[0]) >= 90, (data, method)
    return (
        f"CitiBike: robust PubPrev ahead of plain in {below[0]} of 100 stretches, PubProx in {below[1]}; "
        f"after day 1600 plain PubPrev less Uniform is {difference:.0f}"
    )


def check_mixing(subject: Callable[[str], str] = lambda method: f"{method}_plain") -> str:
    """'Mixing nearly always improves performance for these methods': on Synthetic PubPrev's, not PubProx's."""
    data = "synthetic_noisy"
    better, worse = ahead(by_budget(data, subject("prev")), by_budget(data, "prev"))
    assert len(better) >= 8 and not worse, (better, worse)
    plain, mixed = by_budget(data, subject("prox")), by_budget(data, "prox")
    lower = [epsilon for epsilon in mixed if epsilon <= 0.1 and plain[epsilon][0] < mixed[epsilon][0]]
    assert len(lower) == 9, lower
    return "Synthetic: mixing helps PubPrev at eight budgets or more; PubProx without it is ahead at all nine up to 0.1"


def check_by_budget(subject: str = "prox") -> str:
    """fig:online-logepsplots: PubProx is the best private method at budgets to 0.1, and never worse than PubPrev."""
    for data in DATA:
        others = ["uniform", "cauchy", "prev", "dp"] + ["half_cauchy"] * (data == "citibike")
        for other in others:
            better, worse = ahead(by_budget(data, other), by_budget(data, subject))
            assert set(better) >= {epsilon for epsilon in by_budget(data, other) if epsilon <= 0.1}, (data, other)
            assert not [epsilon for epsilon in worse if epsilon < 0.3], (data, other)
        assert not ahead(by_budget(data, "prev"), by_budget(data, subject))[1]
    least = [1 - by_budget(data, subject)[0.001][0] / by_budget(data, "uniform")[0.001][0] for data in DATA]
    return "PubProx ahead of all up to epsilon 0.1; at 0.001 below Uniform by {:.0%} and {:.0%}".format(*least)


def check_improvement(subject: tuple[str, ...] = ("prev", "prox")) -> str:
    """'All except perhaps Synthetic demonstrate significant improvement over Uniform, especially at small epsilon'."""
    gains: dict[str, float] = {}
    for data in ("citibike", "worldnews"):
        for method in subject:
            uniform, ours = by_budget(data, "uniform"), by_budget(data, method)
            assert set(ahead(uniform, ours)[0]) >= {epsilon for epsilon in ours if epsilon <= 0.1}, (data, method)
            share = {epsilon: 1 - ours[epsilon][0] / uniform[epsilon][0] for epsilon in ours}
            assert share[0.001] > 0.25 > 0.1 > share[10.0], (data, method)
            gains[f"{data} {method}"] = share[0.001]
    return "below Uniform at epsilon 0.001: " + ", ".join(f"{name} {gain:.0%}" for name, gain in gains.items())


def check_heavy_tails(subject: str = "cauchy") -> str:
    """'The strength of the Cauchy and half-Cauchy priors as unbounded substitutes for the Uniform': never behind it."""
    wins = {}
    for data in ("synthetic_noisy", "citibike", "worldnews"):
        better, worse = ahead(by_budget(data, "uniform"), by_budget(data, subject))
        assert set(better) >= {epsilon for epsilon in by_budget(data, subject) if epsilon <= 0.3}, data
        assert not worse, (data, worse)
        wins[data] = len(better)
    assert not ahead(by_budget("citibike", "uniform"), by_budget("citibike", "half_cauchy"))[1]
    return "static Cauchy ahead of Uniform at " + ", ".join(f"{n} of 15 budgets ({d})" for d, n in wins.items())


def check_headlines(subject: str = "prox") -> str:
    """fig:worldnews-logepsplots, on weekly headlines: PubProx is best in the median, and in the mean too."""
    for column in ("max_gap", "median_gap"):
        for other in ("uniform", "cauchy", "prev"):
            better, worse = ahead(by_budget("worldnews", other, column), by_budget("worldnews", subject, column))
            assert set(better) >= {e for e in by_budget("worldnews", other) if e <= 0.1}, (column, other)
            assert not [e for e in worse if e < 1], (column, other)
    return (
        "weekly headlines: PubProx ahead of Uniform, Cauchy and PubPrev up to epsilon 0.1, in the mean as in the median"
    )


def check_stationary(subject: str = "dp") -> str:
    """'DP-FTRL is too noisy to learn, except with a lot of stationary data': our table of 100,000 synthetic days."""
    learner, static = over_time("synthetic", subject), over_time("synthetic", "cauchy")
    differences = {day: mean - static[day][0] for day, (mean, _) in learner.items()}
    early = [value for day, value in differences.items() if day < 10_000]
    late = [value for day, value in differences.items() if day >= 90_000]
    assert np.mean(early) > 3, np.mean(early)
    assert np.mean(late) < -3, np.mean(late)
    return (
        f"100,000 days: DP-FTRL less static Cauchy {np.mean(early):.1f} records early, {np.mean(late):.1f} at the end"
    )
