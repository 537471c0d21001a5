"""A prior is one file: what a family has to say, and that a family from elsewhere is known everywhere; values that
stay as they are."""

from __future__ import annotations

import copy
import dataclasses
import math
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats
from click.testing import CliRunner

import pq
from pq.cli.release import parse_prior, release
from pq.core.machine import keep
from pq.core.priors import (
    FAMILIES,
    Laplace,
    LogNormal,
    Normal,
    PiecewiseConstant,
    Prior,
    base,
    spelled_families,
    spelling,
)
from pq.core.priors.base import parameters_of
from pq.core.priors.kernel import Kernel, kinds
from pq.private.fast.encode import encode

INF = math.inf

# --- One file ---------------------------------------------------------------------------------------------------------

LOGISTIC = '''
"""The logistic law, its spelling, twin and machine code: all that there is about it."""

import math
from dataclasses import dataclass

import numpy as np

from pq.core.priors import Prior
from pq.core.priors.arguments import positive, real
from pq.core.priors.base import set_parameters
from pq.core.priors.kernel import Kernel, inside, moderate


def tail(z: float) -> float:
    return 1.0 / (1.0 + math.exp(z))


def mass(loc: float, scale: float, a: float, b: float) -> float:
    if not b > a:
        return 0.0
    x, y = (a - loc) / scale, (b - loc) / scale
    if x < 0.0 < y:
        return 1.0 - tail(-x) - tail(y)
    if y <= 0.0:
        x, y = -y, -x
    return tail(x) * tail(-y) * -math.expm1(x - y)


def log_mass(loc: float, scale: float, a: float, b: float) -> float:
    found = mass(loc, scale, a, b)
    return math.log(found) if found > 1e-280 else (math.nan if b > a else -math.inf)


def point(loc: float, scale: float, a: float, b: float, u: float) -> float:
    x, y = (a - loc) / scale, (b - loc) / scale
    below = tail(-x) + u * mass(loc, scale, a, b)
    above = tail(y) + (1.0 - u) * mass(loc, scale, a, b)
    return inside(loc + scale * (math.log(below) - math.log(above)), a, b)


@dataclass(frozen=True)
class Logistic(Prior, twin="logistic", kernel=Kernel(mass, log_mass, point)):
    loc: float
    scale: float

    def __post_init__(self):
        set_parameters(self, loc=real(self.loc, "loc"), scale=positive(self.scale))

    @property
    def support(self):
        return -math.inf, math.inf

    def _row(self):
        return moderate(self.loc, self.scale)

    def _log_mass(self, lower, upper):
        x, y = (lower - self.loc) / self.scale, (upper - self.loc) / self.scale
        flip = x + y < 0.0
        x, y = np.where(flip, -y, x), np.where(flip, -x, y)
        one = -np.logaddexp(0.0, x) - np.logaddexp(0.0, -y) + np.log(-np.expm1(x - y))
        return np.where(upper > lower, one, -np.inf)

    def _log_density(self, o):
        z = np.abs(o - self.loc) / self.scale
        return -z - 2.0 * np.log1p(np.exp(-z)) - math.log(self.scale)

    def _quantile(self, lower, upper, u, v):
        return self._bisected(lower, upper, u, v, 0.5 * np.maximum(lower, -1e300) + 0.5 * np.minimum(upper, 1e300))
'''

USED = """
import json, pickle, sys
import numpy as np, scipy.stats
import logistic, pq
from pq.cli.release import parse_prior
from pq.private.fast import lanes
from pq.private.fast.encode import encode

assert lanes.WALK.ready(1e9)
prior = parse_prior("logistic(40, scale=3)")
assert prior == logistic.Logistic(40.0, 3.0) == pq.from_scipy(scipy.stats.logistic(40, 3))
assert pq.Prior.from_dict(json.loads(json.dumps(prior.to_dict()))) == prior == pickle.loads(pickle.dumps(prior))
x = np.sort(np.random.default_rng(0).normal(38, 8, 300))

def outputs(chosen):
    return pq.simulate(x, [0.1, 0.5, 0.75], trials=50, epsilon=1, priors=chosen, mechanism="tree", rng=1)

class Variation(logistic.Logistic):
    "The same law; a variation has no machine code."

chosen = prior, prior.mix(pq.Cauchy(40, 30), 0.2)
plain = Variation(40, 3), Variation(40, 3).mix(pq.Cauchy(40, 30), 0.2)
assert all(encode([one]) is not None for one in chosen) and all(encode([one]) is None for one in plain)
quick, slow = [outputs(one) for one in chosen], [outputs(one) for one in plain]
assert 0.0 < np.abs(np.subtract(quick, slow)).max() < 1e-9  # the last bits differ: these were two engines
from pq.core.machine import keep
from pq.private.fast import walk
sources = [cell.cell_contents for cell in walk.walk_lanes.py_func.__closure__]
print("done", sources == [keep.SOURCES], *sources)
"""


def run_elsewhere(folder: Path, code: str, law: str = LOGISTIC) -> str:
    (folder / "logistic.py").write_text(law)
    root = Path(pq.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:0] = [{str(root)!r}, {str(folder)!r}]\n{code}"],
        capture_output=True,
        text=True,
        env={"NUMBA_CACHE_DIR": str(folder / "cache"), "PATH": "", "HOME": str(folder)},
        timeout=570,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_new_family_in_one_file_is_known_everywhere(tmp_path: Path) -> None:
    """Released from, read, spelled, taken from its twin, and run as machine code with the outputs of the formulas."""
    done, in_package, sources = run_elsewhere(tmp_path, USED).split()
    assert (done, in_package) == ("done", "False")  # its source is a part of the key of the machine code
    digest = (
        "import logistic; from pq.private.fast import laws; from pq.core.machine import keep; print(keep._digest())"
    )
    assert run_elsewhere(tmp_path, digest).split() == [sources]
    assert run_elsewhere(tmp_path, digest, LOGISTIC.replace("1e-280", "1e-270")).split() != [sources]


def test_machine_code_of_the_package_depends_on_every_kernel() -> None:
    folder = Path(keep.__file__).parents[1] / "priors"
    for family in kinds():
        assert family.__module__.startswith("pq.") is (folder / f"{family.__module__.split('.')[-1]}.py").exists()


def test_the_digest_follows_a_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("core/machine", "core/priors", "private/fast"):
        (tmp_path / folder).mkdir(parents=True)
    law = tmp_path / "core/priors/law.py"
    monkeypatch.setattr(keep, "_PACKAGE", tmp_path)
    law.write_text("1")
    one = keep._digest()
    law.write_text("2")
    assert keep._digest() != one


def test_priors_bring_neither_compiler_nor_scipy() -> None:
    package = str(Path(pq.__file__).parent)
    code = (
        f"import sys, types; root = types.ModuleType('pq'); root.__path__ = [{package!r}]; sys.modules['pq'] = root\n"
        "import pq.core.priors as p; assert p.Laplace(0, 1).mix(p.Cauchy(0, 1), 0.1).log_mass(0, 1) < 0\n"
        "p.PiecewiseConstant([0, 1], [1])\n"
        "print([m for m in sys.modules if m.split('.')[0] in ('scipy', 'numba')])\n"
        "made = [p.Normal(0, 1), p.LogNormal(0, 1), p.OrderStatistic(p.Uniform(0, 1), 3, 2)][{which}]\n"
        "print('scipy.special' in sys.modules)"
    )
    for which in range(3):  # what a law imports is there before it is asked anything
        done = subprocess.run(
            [sys.executable, "-c", code.replace("{which}", str(which))], capture_output=True, text=True, timeout=60
        )
        assert (done.stdout.split(), done.returncode) == (["[]", "True"], 0), done.stderr


# --- Forgetting a part ------------------------------------------------------------------------------------------------

PARTS = ("__post_init__", "support", "_log_mass", "_log_density", "_quantile")


def define(missing: str | None = None, **keywords: Any) -> None:
    parts = {name: getattr(Laplace, name) for name in PARTS if name != missing}
    type("Forgetful", (Prior,), parts | {"__module__": __name__}, **keywords)


@pytest.mark.parametrize("part", PARTS)
def test_a_family_without_a_part_is_refused(part: str) -> None:
    with pytest.raises(TypeError, match=f"Forgetful lacks {part}"):
        define(part, twin=None, kernel=None)
    assert "Forgetful" not in FAMILIES


@pytest.mark.parametrize(
    ("keywords", "missing"),
    [
        ({"kernel": None}, "twin"),
        ({"twin": None}, "kernel"),
        ({}, "twin, kernel"),
        ({"twin": None, "kernel": Kernel(math.pow, math.pow, math.pow)}, "_row"),
    ],
)
def test_a_family_says_what_it_has_not(keywords: dict[str, Any], missing: str) -> None:
    with pytest.raises(TypeError, match=f"Forgetful lacks {missing}$"):
        define(**keywords)
    assert "Forgetful" not in FAMILIES


def test_two_families_of_one_name_are_refused() -> None:
    parts = {name: getattr(Laplace, name) for name in PARTS}
    with pytest.raises(TypeError, match="Laplace already"):
        type("Laplace", (Prior,), parts | {"__module__": __name__}, twin=None, kernel=None)
    assert FAMILIES["Laplace"] is Laplace


class Late:
    """The parts of a family that answers what is no number."""

    def __post_init__(self) -> None: ...

    support = Laplace.support
    _cores = Laplace._cores
    _row = Laplace._row
    _log_density = Laplace._log_density
    _quantile = Laplace._quantile

    def _log_mass(self, lower: Any, upper: Any) -> Any:
        return np.where(lower > 5.0, np.nan, Laplace._log_mass(self, lower, upper))  # type: ignore[arg-type]


def test_a_family_that_comes_late_is_left_to_the_formulas(monkeypatch: pytest.MonkeyPatch) -> None:
    """Machine code knows the families from before; and what a stranger's law answers counts only as a number."""
    import pq.private.fast.laws

    monkeypatch.setattr(base, "FAMILIES", dict(FAMILIES))
    fields = {"__annotations__": {"loc": float, "scale": float}, "__module__": __name__}
    made = type("Later", (Late, Prior), fields, twin=None, kernel=Laplace.kernel)
    prior = dataclasses.dataclass(frozen=True)(made)(0.0, 1.0)
    assert "Later" in base.FAMILIES and encode([prior]) is None and encode([Laplace(0, 1)]) is not None
    assert prior.log_mass([0.0, 6.0], [1.0, 7.0])[1] == -INF
    assert prior.log_mass(0.0, 1.0) == Laplace(0, 1).log_mass(0.0, 1.0)
    assert np.isfinite(pq.release([1.0, 2.0, 9.0], [0.5], epsilon=1, priors=prior, mechanism="tree").values).all()


# --- Spelling ---------------------------------------------------------------------------------------------------------


def test_every_family_of_numbers_is_spelled() -> None:
    assert set(spelled_families()) == {
        "cauchy", "halfcauchy", "laplace", "lognormal", "loguniform", "normal", "uniform"
    }  # fmt: skip
    help_text = " ".join(CliRunner().invoke(release, ["--help"], terminal_width=9999).output.split())
    for name, family in spelled_families().items():
        numbers = [1, 2] if parameters_of(family) else []
        prior = parse_prior(f"{name.upper()}({', '.join(map(str, numbers))})")
        assert type(prior) is family and prior == family(*numbers)
        assert spelling(family) in help_text
        parameters = ", ".join(f"{key}={value}" for key, value in prior.to_dict().items() if key != "family")
        assert parse_prior(f"{name}({parameters})") == prior
    with pytest.raises(ValueError, match="lognormal, loguniform, normal"):
        parse_prior("mixture(1, 2)")


@pytest.mark.parametrize("name", [name for name, family in FAMILIES.items() if family.twin is not None])
def test_twins_have_the_same_masses(name: str) -> None:
    prior = FAMILIES[name](0.5, 2.0)
    shapes = {
        "Uniform": {"loc": 0.5, "scale": 1.5},
        "HalfCauchy": {"loc": 2.0, "scale": 0.5},
        "LogNormal": {"s": 2.0, "scale": math.exp(0.5)},
    }.get(name, {"loc": 0.5, "scale": 2.0})
    twin = getattr(scipy.stats, str(FAMILIES[name].twin))(**shapes)
    edges = np.array([-3.0, 0.6, 0.9, 1.7, 2.5, 40.0])
    assert np.exp(prior.log_mass(edges[:-1], edges[1:])) == pytest.approx(np.diff(twin.cdf(edges)), abs=1e-14)
    given = pq.from_scipy(twin)
    assert type(given) is type(prior)
    assert list(vars(given).values()) == pytest.approx(list(vars(prior).values()))


def test_a_moved_lognormal_law_is_none_of_the_family() -> None:
    moved = pq.from_scipy(scipy.stats.lognorm(0.5, loc=3.0, scale=2.0))
    assert not isinstance(moved, LogNormal)
    assert moved.log_mass(3.0, 5.0) == pytest.approx(math.log(0.5))


# --- Only numbers, and nothing that data could change ----------------------------------------------------------------

SAMPLES: list[Prior] = [
    *(family(*[1.0, 2.0][: len(parameters_of(family))]) for family in spelled_families().values()),
    PiecewiseConstant([0, 1, 3], [1, 2]),
    Laplace(0, 1).mix(Normal(3, 1), 0.2),
    pq.from_scipy(scipy.stats.gamma(2.0)),
    pq.OrderStatistic(Laplace(0, 1), 9, 3),
]
NOT_FINITE = [math.nan, INF, -INF]


def with_parameter(prior: Prior, name: str, value: Any) -> bytes:
    """A pickle in which one parameter is another value: as if somebody had written it by hand."""
    broken = object.__new__(type(prior))
    vars(broken).update(vars(prior) | {name: value})
    return pickle.dumps(broken)


@pytest.mark.parametrize("value", NOT_FINITE)
@pytest.mark.parametrize("prior", SAMPLES[:8], ids=lambda prior: type(prior).__name__)
def test_no_way_leads_to_a_parameter_that_is_no_number(prior: Prior, value: float) -> None:
    """Constructor, description, replacement, pickle: each refuses, naming the parameter."""
    for name in (field.name for field in dataclasses.fields(prior)):  # type: ignore[arg-type]
        bad: Any = value
        if isinstance(getattr(prior, name), tuple):
            bad = (*getattr(prior, name)[:-1], value)
        for way in (
            lambda: dataclasses.replace(prior, **{name: bad}),  # type: ignore[type-var] # noqa: B023
            lambda: Prior.from_dict(prior.to_dict() | {name: bad}),  # noqa: B023
            lambda: pickle.loads(with_parameter(prior, name, bad)),  # noqa: B023
            lambda: copy.copy(pickle.loads(with_parameter(prior, name, bad))),  # noqa: B023
        ):
            with pytest.raises((ValueError, TypeError), match=f"{name}|description"):
                way()


def unchecked(family: type[Prior], **parameters: Any) -> Prior:
    """A prior whose constructor was bypassed."""
    prior = object.__new__(family)
    vars(prior).update(parameters)
    return prior


def test_masses_are_numbers_whatever_the_parameters() -> None:
    """A constructor that is bypassed: what is no number counts as no mass, in both engines."""
    edges = np.array([-INF, -1e308, -1.0, 0.0, 5e-324, 1.0, 1e308, INF])
    for family in (pq.Laplace, pq.Cauchy, pq.Normal):
        for loc, scale in [(INF, 1.0), (0.0, INF), (math.nan, 1.0), (0.0, math.nan), (INF, INF), (0.0, 0.0)]:
            prior = unchecked(family, loc=loc, scale=scale)
            masses = prior.log_mass(edges[:-1], edges[1:])
            assert (masses <= 0.0).all(), (prior, masses)
            assert prior._row() is None


@pytest.mark.parametrize("prior", SAMPLES, ids=lambda prior: type(prior).__name__)
def test_use_leaves_no_trace(prior: Prior) -> None:
    """The same bytes before and after; what is kept for speed was there from the beginning and cannot be written."""
    before, kept = pickle.dumps(prior), set(vars(prior))
    rng = np.random.default_rng(0)
    prior.log_mass([-INF, 0.0, 1e300], [0.3, INF, INF])
    prior.log_density([0.5, INF])
    prior.sample_between(-INF, INF, rng)
    pq.simulate([1.0, INF, math.nan], [0.5], trials=3, epsilon=1, priors=prior, mechanism="tree", rng=rng)
    assert pickle.dumps(prior) == before and set(vars(prior)) == kept
    assert pickle.loads(before) == prior
    for value in vars(prior).values():
        arrays = list(vars(value).values()) if hasattr(value, "__dict__") else [value]
        assert not any(array.flags.writeable for array in arrays if isinstance(array, np.ndarray))
