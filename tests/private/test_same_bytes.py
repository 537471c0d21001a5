"""Apart from released values, the same bytes whatever the data: results, plans, priors, errors, output, exit codes."""

from __future__ import annotations

import hashlib
import itertools
import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import pq
from pq.private import prepare as prepared
from pq.private.columns import selection

# What one process does with one column: it releases, and prints a digest of all that can be reached from the result and
# from the public objects, but for the released values themselves.
PROGRAM = """
import dataclasses, hashlib, pickle, sys
import numpy as np, pq
from pq.private.prepare import prepare

def reach(thing, seen):
    if id(thing) in seen:
        return []
    seen.add(id(thing))
    if isinstance(thing, np.ndarray):
        return [("array", thing.dtype.str, thing.shape, thing.flags.writeable, thing.tobytes())]
    if isinstance(thing, (tuple, list)):
        return [(type(thing).__name__, len(thing))] + [fact for part in thing for fact in reach(part, seen)]
    if isinstance(thing, dict):
        return [("dict", tuple(map(str, thing)))] + [fact for part in thing.values() for fact in reach(part, seen)]
    if hasattr(thing, "__dict__") and not isinstance(thing, type):
        return [(type(thing).__name__, tuple(vars(thing)))] + reach(vars(thing), seen)
    return [repr(thing)]

columns = {
    "finite": np.random.default_rng(0).normal(size=200),
    "infinite": np.array([1.0, np.inf, -np.inf, 2.0]),
    "empty": np.array([]),
    "missing": np.full(50, np.nan),
    "ties": np.full(1000, 0.25),
    "huge": np.array([1e300, -1e308, 1.7e308]),
    "objects": [None, "3", object(), 10**400, 2],
    "one": [0.0],
}
prior = eval(sys.argv[2])
options = eval(sys.argv[3])
quantiles = [0.25, 0.5, 0.9]
result = pq.release(columns[sys.argv[1]], quantiles, priors=prior, **options)
facts = {name: value for name, value in vars(result).items() if name not in ("values", "total", "outcome")}
facts["shape"] = result.values.shape, result.values.dtype.str, result.values.flags.writeable
facts["maker"] = vars(prepare(quantiles, priors=prior, **options))
facts["pickles"] = [pickle.dumps(facts[name]) for name in ("plan", "priors")] + [pickle.dumps(prior)]
facts["size"] = len(pickle.dumps(dataclasses.replace(result, values=np.zeros(3), total=None, outcome={})))
said = repr(reach(facts, set())).encode()
print(hashlib.sha256(said).hexdigest())
"""
WAYS = [
    ("pq.Cauchy(0, 1)", "dict(epsilon=1)"),
    ("pq.Uniform(0, 1)", "dict(epsilon=1, grid=0.25)"),
    ("pq.Laplace(0, 1e-3)", "dict(epsilon=1e-3, adaptation='edge')"),
]
COLUMNS = ["finite", "infinite", "missing", "ties", "objects"]


@pytest.mark.parametrize(("prior", "options"), WAYS)
def test_fresh_processes_say_the_same_of_every_column(prior: str, options: str) -> None:
    said = set()
    for name in COLUMNS:
        done = subprocess.run([sys.executable, "-c", PROGRAM, name, prior, options], capture_output=True, check=False)
        said.add((done.stdout, done.stderr, done.returncode))
    ((digest, errors, code),) = said
    assert len(digest) == 65 and errors == b"" and code == 0


@pytest.mark.parametrize("mechanism", ["tree", "margin", "joint", "mixed"])
def test_a_fresh_process_has_loaded_the_same_whatever_the_column(mechanism: str) -> None:
    """A tree makes numbers unique between records that are apart; the first call of `np.unique` imports a module."""
    code = (
        "import sys, pq; x = eval(sys.argv[1])\n"
        "pq.release(x, [0.5], epsilon=50, priors=pq.{prior}, grid=1, mechanism=sys.argv[2], rng=1)\n"
        "print(*sorted(sys.modules))"
    )
    for prior in ("Uniform(0, 10)", "LogNormal(0, 1)"):
        said = []
        for column in ("[]", "[]", "[5.0] * 40", "[0.1, 9.9]", "[float('inf')] * 3", "[1e300, -1e300]"):
            program = [sys.executable, "-c", code.replace("{prior}", prior), column, mechanism]
            done = subprocess.run(program, capture_output=True, text=True, check=False)
            said.append((done.stdout, done.stderr, done.returncode))
        ((modules, errors, status),) = {*said[1:]}  # the first of a new machine may also fill caches
        assert "pq.private.release" in modules.split() and errors == "" and status == 0


# A process with a compiler, which has children that release one column each and say what they have loaded.
FORKS = """
import os, sys
import numba, numpy as np, pq
from pq.private.columns.selection import FEWEST

x = np.random.default_rng(0).normal(size=FEWEST)
for column in (x, x[:-1], np.sort(x)):
    child = os.fork()
    if child == 0:
        pq.release(column, [0.25, 0.5], epsilon=1, priors=pq.Normal(0, 3), mechanism="tree")
        print(*sorted(sys.modules), flush=True)
        os._exit(0)
    os.waitpid(child, 0)
"""


def test_a_process_with_a_compiler_has_loaded_the_same_whatever_the_column() -> None:
    """Code on disk is loaded by few records, and by sorted ones, as by many in any order."""
    assert all(kernel.ready(1e9) for kernel in selection.ENGINES)  # is on disk
    done = subprocess.run([sys.executable, "-c", FORKS], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    said = done.stdout.splitlines()
    assert len(said) == 3 and "pq.private.fast.buckets" in said[0].split()
    assert len(set(said)) == 1


def state_of(maker: Any) -> str:
    """All names and arrays that a mechanism and its plan hold."""
    parts = [sorted(vars(thing)) for thing in (maker, maker.plan, maker.request)]
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def test_columns_leave_no_trace_in_what_is_shared() -> None:
    """One process, one mechanism for all columns: what it holds is the same after each."""
    options: dict[str, Any] = {"epsilon": 1, "grid": None}
    pq.release([1.0], [0.5], priors=pq.Cauchy(0, 1), **options)
    maker = prepared.prepare([0.5], priors=pq.Cauchy(0, 1), **options)
    before = state_of(maker)
    for x in ([np.inf, 1.0], [], [np.nan], [1e308] * 3, list(range(1000))):
        pq.release(x, [0.5], priors=pq.Cauchy(0, 1), **options)
        assert state_of(maker) == before


@pytest.mark.parametrize("prior", ["members", "scales", "numbers"])
def test_what_is_kept_of_a_mixture_has_the_same_bytes_after_every_column(prior: str) -> None:
    """Members that a release has looked at know more of themselves than others; their pickles do not."""
    priors, mechanism = {
        "members": (
            pq.JointPrior.location_scale([pq.Laplace(i, 0.2) for i in (-1, 0, 1)], range(-3, 4), [0.5, 5]),
            "auto",
        ),
        "scales": (pq.Uniform(-3, 3), "joint"),
        "numbers": (pq.LogUniform(), "mixed"),
    }[prior]
    options: dict[str, Any] = {"epsilon": 0.5, "priors": priors, "mechanism": mechanism}
    pq.release([], [0.25, 0.5, 0.75], **options)
    maker, seen = prepared.prepare([0.25, 0.5, 0.75], **options), set()
    for x in ([], [np.inf] * 5, np.random.default_rng(0).normal(2.0, 0.1, 300), [0.25] * 300):
        pq.release(x, [0.25, 0.5, 0.75], **options)
        assert prepared.prepare([0.25, 0.5, 0.75], **options) is maker
        seen.add(pickle.dumps(maker))
    assert len(seen) == 1


def test_arrays_of_shared_plans_cannot_be_written_to() -> None:
    result = pq.release([1.0, 2.0], [0.25, 0.5], epsilon=1, priors=pq.Cauchy(0, 1), mechanism="tree")
    assert result.plan is not None and result.plan.arrays is not None
    arrays = itertools.chain(result.plan.arrays, [result.values, result.quantiles, result.plan.quantile_values])
    for array in arrays:
        with pytest.raises(ValueError, match="read-only"):
            array.flat[0] = 7
