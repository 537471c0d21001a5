"""Machine code on disk costs time and never a release: no folder, a full disk, damaged files; and who waits for it."""

from __future__ import annotations

import hashlib
import os
import pickle
import pty
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import pq
from pq.core.machine import engine, keep
from pq.core.machine.engine import COMPILE_SECONDS, Engine
from pq.private.columns import selection
from pq.private.fast import lanes
from pq.private.mechanisms.joint import CHAIN

ROOT = Path(__file__).resolve().parents[2]

KERNELS = tuple(
    f"pq.{name}"
    for name in (
        "core.machine.coins", "core.machine.loss", "private.fast.walk", "private.fast.losses", "private.fast.changes",
        "private.fast.buckets", "private.mechanisms.joint.machine",
    )
)  # fmt: skip

# One kernel of machine code, the smallest, and a release.
PROGRAM = """
import sys
import numpy as np
import pq
from pq.core.machine.engine import LOAD_SECONDS, Engine

loss = Engine("pq.core.machine.loss", "laplace_losses")
alone = "numba" not in sys.modules
assert not alone or not loss.ready(0.0) and "numba" not in sys.modules  # what is short loads no compiler
found = loss.ready(LOAD_SECONDS)
assert loss.ready(1e9)
out = np.empty((3, 1))
loss(*(np.array([number]) for number in (0.5, 1.0, 0.0, 2.0, 2.0)), out)
value = pq.release([1.0, 2.0, 3.0], 0.5, epsilon=1, priors=pq.Cauchy(0, 1), rng=0).values[0]
print(found, out[0, 0].round(9), round(value, 9))
"""
FULL_DISK = """
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
"""


def run(folder: Path | str, program: str = PROGRAM, **variables: str) -> list[str]:
    """What the program prints in a fresh process that may keep code in that folder only."""
    environment = {name: value for name, value in os.environ.items() if name not in ("HOME", "XDG_CACHE_HOME")}
    environment |= {
        "PYTHONPATH": str(ROOT),
        "PYTHONDONTWRITEBYTECODE": "1",
        "NUMBA_CACHE_DIR": str(folder),
        "NUMBA_CACHE_LOCATOR_CLASSES": "UserProvidedCacheLocator",
        **variables,
    }
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout.split()


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """A folder with kept code, and what a process prints that has loaded it."""
    folder = tmp_path_factory.mktemp("kept")
    first, second = run(folder), run(folder)
    assert (first[0], second[0]) == ("False", "True")
    assert first[1:] == second[1:]
    return folder, second


def test_no_folder_and_a_full_disk_cost_time_alone(shelf: tuple[Path, list[str]], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    expected = ["False", *shelf[1][1:]]
    assert run(tmp_path / "file" / "below") == expected
    assert run(tmp_path / "new", FULL_DISK + PROGRAM) == expected
    assert not [path for path in tmp_path.rglob("*.nb*") if path.stat().st_size]


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _flip(path: Path) -> None:
    """One bit, in the middle: a pickle that can be read, with other machine code."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _scramble(path: Path) -> None:
    path.write_bytes(np.random.default_rng(0).bytes(1000))


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    ("damage", "kind"), [(_cut, "nbc"), (_flip, "nbc"), (_folder, "nbc"), (_empty, "nbi"), (_scramble, "nbi")]
)
def test_damaged_files_are_not_run_and_are_mended(
    damage: Callable[[Path], None], kind: str, shelf: tuple[Path, list[str]], tmp_path: Path
) -> None:
    shutil.copytree(shelf[0], tmp_path / "kept")
    (path,) = (tmp_path / "kept").rglob(f"*laplace_losses*.{kind}")
    damage(path)
    assert run(tmp_path / "kept") == ["False", *shelf[1][1:]]
    assert run(tmp_path / "kept")[0] == str(damage is not _folder)


def test_a_seal_refuses_a_flipped_bit() -> None:
    """A changed string of machine code is as good a pickle as the right one."""
    body = pickle.dumps(("machine code",))
    flipped = body.replace(b"code", b"node")
    assert pickle.loads(flipped) == ("machine node",)
    with pytest.raises(ValueError, match="damaged"):
        object.__new__(keep._Sealed).rebuild(None, (hashlib.sha256(body).digest(), flipped))


OTHER_SOURCES = """
from pq.core.machine import keep
keep.SOURCES = 1
keep._digest = lambda: 1
"""


def test_code_that_took_the_place_of_another_is_not_run(shelf: tuple[Path, list[str]], tmp_path: Path) -> None:
    """Two processes that keep code of different sources at a time may give it one file, under the key of either."""
    shutil.copytree(shelf[0], tmp_path / "kept")
    assert run(tmp_path / "kept", OTHER_SOURCES + PROGRAM)[0] == "False"
    one, other = sorted((tmp_path / "kept").rglob("*laplace_losses*.nbc"))
    content = one.read_bytes()
    one.write_bytes(other.read_bytes())
    assert run(tmp_path / "kept")[0] == "False"
    other.write_bytes(content)
    assert run(tmp_path / "kept")[0] == "True"  # the first was mended
    assert run(tmp_path / "kept", OTHER_SOURCES + PROGRAM)[0] == "False"


def test_code_is_not_kept_once_its_sources_have_changed(shelf: tuple[Path, list[str]], tmp_path: Path) -> None:
    """What is imported later is not what the digest is of: that would be kept as code of the sources before."""
    later = "from pq.core.machine import keep\nkeep._digest = lambda: 2\n"
    assert run(shelf[0], later + PROGRAM) == ["False", *shelf[1][1:]]
    run(tmp_path, later + PROGRAM)
    assert not list(tmp_path.rglob("*.nb*"))


def test_code_with_other_last_bits_is_other_code(shelf: tuple[Path, list[str]], tmp_path: Path) -> None:
    """A function that was imported before keeps its folder, where unshaken processes look."""
    shutil.copytree(shelf[0], tmp_path / "kept")
    moved = "import pq.core.machine.loss\nfrom pqlab.pages.shaken import install\ninstall(3)\n"
    assert run(tmp_path / "kept", moved + PROGRAM)[0] == "False"
    assert run(tmp_path / "kept", moved + PROGRAM)[0] == "True"
    assert run(tmp_path / "kept") == shelf[1]


TWINS = (
    "import math\nfrom pq.core.machine.keep import compiled\n\n\ndef inner_of(factor):\n    @compiled\n"
    + "    def inner(x):\n        total = x\n"
    + "".join(f"        total += math.sin(total * {k} + x) + math.exp(-total * total)\n" for k in range(1, 60))
    + "        return factor + 0.0 * total\n\n    return inner\n"
)
TWIN = """
from numba import float64, int64
import shared
from pq.core.machine.keep import kept

inner = shared.inner_of({factor})


@kept(int64(float64[::1], float64[::1]))
def kernel(sources):
    def run(x, out):
        sources
        out[0], out[1], out[2] = inner(x[0]), inner(x[1]), inner(x[2])
        return 0

    return run
"""
CALLED = """
import sys
import numpy as np
sys.path.insert(0, {folder!r})
found = []
for name in {names!r}:
    kernel = __import__(name).kernel
    out = np.zeros(3)
    loaded = kernel.load()
    kernel(np.ones(3), out)
    found.append(f"{{name}}:{{loaded}}:{{out[2]:g}}")
print(*found)
"""


def test_code_of_two_processes_calls_its_own_functions(tmp_path: Path) -> None:
    """Inner functions of one name, compiled by a process each, are told apart in the process that loads both."""
    (tmp_path / "shared.py").write_text(TWINS, encoding="utf-8")
    for name, factor in (("one", 1.0), ("two", 2.0)):
        (tmp_path / f"{name}.py").write_text(TWIN.format(factor=factor), encoding="utf-8")
    for name, value in (("one", 1), ("two", 2)):
        program = CALLED.format(folder=str(tmp_path), names=[name])
        assert run(tmp_path / "kept", program) == [f"{name}:False:{value}"]
    both = CALLED.format(folder=str(tmp_path), names=["one", "two"])
    assert run(tmp_path / "kept", both) == ["one:True:1", "two:True:2"]


FORKED = """
import os
from numba.core.bytecode import FunctionIdentity
from pq.core.machine import keep
ours, theirs = os.pipe()
child = os.fork()
number = next(FunctionIdentity._unique_ids)
if child == 0:
    os.write(theirs, str(number).encode())
    os._exit(0)
os.waitpid(child, 0)
print(number == int(os.read(ours, 99)), number > 2**40)
"""


def test_a_fork_counts_its_functions_anew(tmp_path: Path) -> None:
    """A random number is below 2^40 once in a million runs."""
    assert run(tmp_path, FORKED) == ["False", "True"]


def test_whatever_is_compiled_is_a_part_of_the_digest() -> None:
    """Functions of the package in machine code, and those that they were made from."""
    files = {path for _, path in keep.sources_of_code()}
    for kernel in KERNELS:
        import_module(kernel)
    made = [
        Path(function.py_func.__code__.co_filename)
        for name, module in list(sys.modules.items())
        if name.startswith("pq.")
        for function in vars(module).values()
        if hasattr(function, "py_func")
    ]
    assert len(made) > 60 and set(made) <= files


class Fake:
    """A kernel that is not on disk, and counts how often it is compiled."""

    def __init__(self, made: Any) -> None:
        self.made, self.compiled = made, 0

    def load(self) -> bool:
        return False

    def make(self, *, tell: bool) -> bool:
        self.compiled += 1
        if isinstance(self.made, Exception):
            raise self.made
        return tell


@pytest.mark.parametrize("made", [True, OSError("full"), RuntimeError("no compiler"), MemoryError()])
def test_code_is_compiled_when_the_formulas_have_taken_as_long(made: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = Fake(made)
    monkeypatch.setitem(sys.modules, "fake_kernels", SimpleNamespace(kernel=fake))
    monkeypatch.setattr(engine, "find_spec", lambda name: None)
    one = Engine("fake_kernels", "kernel")
    assert [one.ready(COMPILE_SECONDS / 4) for _ in range(3)] == [False] * 3
    assert fake.compiled == 0
    assert [one.ready(COMPILE_SECONDS / 4) for _ in range(3)] == [made is True] * 3
    assert fake.compiled == 1
    large = Engine("fake_kernels", "kernel")
    assert large.ready(2 * COMPILE_SECONDS) == (made is True)


def test_a_release_that_draws_again_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """How many parts of an unsorted column are tried depends on the data; what is loaded afterwards must not."""
    monkeypatch.setitem(sys.modules, "fake_kernels", SimpleNamespace(kernel=Fake(True)))
    monkeypatch.setattr(engine, "find_spec", lambda name: None)
    one, asked = Engine("fake_kernels", "kernel"), COMPILE_SECONDS / 2
    with engine.first_answers():
        assert [one.ready(asked) for _ in range(9)] == [False] * 9
    assert one.ready(asked)
    assert all(kernel.ready(1e9) for kernel in selection.ENGINES)
    rng, rents = np.random.default_rng(0), []
    normal = rng.normal(size=1 << 16)
    for values in (np.sort(normal), normal, np.where(rng.random(normal.size) < 0.5, 0.0, normal)):
        monkeypatch.setattr(lanes, "WALK", Engine("fake_kernels", "missing"))
        pq.release(values, [0.4, 0.6], epsilon=1, priors=pq.Cauchy(0, 1), mechanism="tree", rng=0)
        rents.append(lanes.WALK._rent)
    assert rents[0] == rents[1] == rents[2] > 0.0


@pytest.mark.parametrize("is_there", [False, True])
@pytest.mark.parametrize("mechanism", ["tree", "joint", "cells"])
def test_the_choice_of_an_engine_knows_no_data(mechanism: str, is_there: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of records, their order, missing ones and ties do not come into it, nor whether an engine is asked for
    at all, since asking may load it; trials and quantiles do."""
    asked: list[tuple[str, float]] = []
    kernels = (*selection.ENGINES, lanes.WALK, CHAIN)
    assert not is_there or all(kernel.ready(1e9) for kernel in kernels)

    def is_ready(self: Engine, seconds: float) -> bool:
        asked.append((self.name, seconds))
        return is_there

    monkeypatch.setattr(Engine, "_is_ready", is_ready)
    monkeypatch.setattr(selection, "FEWEST", 64)
    x = np.random.default_rng(0).normal(size=500)
    options: dict[str, Any] = {"epsilon": 1, "priors": pq.Cauchy(0, 1), "mechanism": mechanism, "rng": 0}
    told = []
    for column in (x, [], [1.0], [np.nan] * 300, np.zeros(300), np.sort(x), x[:63], np.where(x > 0, np.nan, x)):
        pq.release(column, [0.2, 0.5, 0.5], **options)
        pq.simulate(column, [0.2, 0.5, 0.5], trials=20, **options)
        told.append(asked[:])
        asked.clear()
    assert all(one == told[0] for one in told)
    assert ("count_buckets", 0.0) in told[0]
    one, *_, many = (seconds for name, seconds in told[0] if name.startswith("walk"))
    assert mechanism == "cells" or many == pytest.approx(20 * one)


def test_the_formulas_answer_as_the_machine_code_does(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(0).normal(size=200)
    options: dict[str, Any] = {"epsilon": 1, "priors": pq.Cauchy(0, 1), "mechanism": "tree", "trials": 40, "rng": 3}
    assert lanes.WALK.ready(2 * COMPILE_SECONDS)
    quick = pq.simulate(x, [0.1, 0.5, 0.9], **options)
    monkeypatch.setattr(Engine, "ready", lambda self, seconds: False)
    np.testing.assert_allclose(pq.simulate(x, [0.1, 0.5, 0.9], **options), quick, rtol=1e-9, atol=1e-9)


WAITS = """
from pq.core.machine.engine import Engine
assert Engine("pq.core.machine.loss", "laplace_losses").ready(1e9)
"""


def test_a_person_who_waits_is_told_and_nobody_else(shelf: tuple[Path, list[str]], tmp_path: Path) -> None:
    def told(folder: Path) -> str:
        ours, theirs = pty.openpty()
        environment = os.environ | {
            "PYTHONPATH": str(ROOT),
            "NUMBA_CACHE_DIR": str(folder),
            "NUMBA_CACHE_LOCATOR_CLASSES": "UserProvidedCacheLocator",
        }
        subprocess.run([sys.executable, "-c", WAITS], env=environment, stderr=theirs, check=True, cwd=ROOT)
        os.write(theirs, b".")  # so that there is something to read
        text = os.read(ours, 10_000).decode()
        os.close(ours)
        os.close(theirs)
        return text

    assert told(tmp_path).count("compiling an inner loop") == 1
    assert told(shelf[0]) == "."
    assert run(tmp_path / "other", WAITS) == []
