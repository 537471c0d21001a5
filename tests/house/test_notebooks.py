"""The committed notebooks are sound, and the tools that say so would notice if they were not."""

from __future__ import annotations

import copy
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest
from click.testing import CliRunner

from pqlab.pages import build as notebook_build
from pqlab.pages import notebook

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "notebooks"
SOURCES = sorted(FOLDER.glob("*.md"))

TOY = """\
---
jupytext:
  text_representation:
    extension: .md
    format_name: myst
kernelspec:
  display_name: Python 3
  language: python
  name: python3
---

# A toy

```{code-cell} ipython3
:tags: [parameters]

scale = 2.0
```

```{code-cell} ipython3
:tags: [validate]

assert scale > 0
```

```{code-cell} ipython3
:tags: [figure]

import matplotlib.pyplot as plt

fig, ax = plt.subplots(figsize=(1, 1))
ax.plot([0, scale])
plt.show()
```

```{code-cell} ipython3
:tags: [result]

print("one")
print("two")
scale * 3
```
"""


@pytest.mark.skipif(not FOLDER.exists(), reason="the checkout has no notebooks folder")
def test_the_folder_holds_the_course() -> None:
    assert len(notebook.sources(FOLDER)) >= 4
    assert [source.name for source in notebook.sources(FOLDER)] == [source.name for source in SOURCES]


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.stem)
def test_a_committed_notebook_is_sound(source: Path) -> None:
    assert notebook.check_pair(source) == []


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source of a sound page, with the page beside it."""
    source = tmp_path_factory.mktemp("toy") / "00_toy.md"
    source.write_text(TOY, encoding="utf-8")
    notebook_build.build(source)
    return source


def test_a_built_page_is_sound_and_tells_nothing_of_its_making(toy: Path) -> None:
    assert notebook.check_pair(toy) == []
    page = notebook.load(toy.with_suffix(".ipynb"))
    assert page.metadata == {"kernelspec": notebook.KERNEL, "language_info": {"name": "python"}}
    assert all(set(cell.metadata) <= {"tags", "jupyter"} for cell in page.cells)
    ((kind, figure),) = (image for cell in notebook.code_cells(page) for image in notebook.images(cell))
    assert kind == "png" and figure.startswith(b"\x89PNG")
    assert figure.endswith(b"IEND\xaeB`\x82")
    assert b"tEXt" not in figure
    assert b"matplotlib" not in figure.lower()


def test_a_second_build_gives_the_same_bytes(toy: Path) -> None:
    first = toy.with_suffix(".ipynb").read_bytes()
    assert first.endswith(b"}\n")
    notebook_build.build(toy)
    assert toy.with_suffix(".ipynb").read_bytes() == first


PROBE = """\
given = set(globals())
import os, sys, warnings
import matplotlib as mpl
print(sorted(name for name in given if not name.startswith("_")))
print(__debug__, sys.flags.inspect, sys.flags.dev_mode, sys.warnoptions, mpl.rcParams["lines.linewidth"])
print(sorted(set(os.environ) & set("NO_COLOR COLUMNS POLARS_FMT_MAX_ROWS PYTHONPATH PYTHONSTARTUP".split())))
"""


def test_a_kernel_hears_nothing_of_what_the_shell_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that a startup script gives is no parameter, and PYTHONOPTIMIZE leaves the pages' assertions out."""
    (tmp_path / "profile_default" / "startup").mkdir(parents=True)
    for script in ("start.py", "profile_default/startup/0.py"):
        (tmp_path / script).write_text("helper = 3\nprint('hello')\n", encoding="utf-8")
    (tmp_path / "matplotlibrc").write_text("lines.linewidth: 9\n", encoding="utf-8")
    places = {"PYTHONSTARTUP": "start.py", "IPYTHONDIR": "", "MATPLOTLIBRC": "matplotlibrc"}
    said = {"PYTHONOPTIMIZE": "1", "PYTHONINSPECT": "1", "PYTHONDEVMODE": "1", "PYTHONWARNINGS": "error"}
    said |= {"NO_COLOR": "1", "COLUMNS": "20", "POLARS_FMT_MAX_ROWS": "1", "PYTHONPATH": str(ROOT)}
    for name, value in (said | {name: str(tmp_path / place) for name, place in places.items()}).items():
        monkeypatch.setenv(name, value)
    page = notebook_build.execute(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(PROBE)]))
    (output,) = page.cells[0].outputs
    assert output.text == "['In', 'Out', 'exit', 'get_ipython', 'open', 'quit']\nTrue 0 False [] 1.5\n['PYTHONPATH']\n"
    assert notebook_build.os.environ["PYTHONSTARTUP"] == str(tmp_path / "start.py")


SOURCE_FAULTS = {
    "kernelspec is 'my-env'": ("name: python3", "name: my-env"),
    "kernelspec is None": ("kernelspec:\n  display_name: Python 3\n  language: python\n  name: python3\n", ""),
    "0 cells tagged 'parameters'": (":tags: [parameters]", ":tags: [parameter]"),
    "2 cells tagged 'parameters'": (":tags: [result]", ":tags: [parameters]"),
    "more than 'name = literal'": ("scale = 2.0", "import math\n\nscale = 2.0"),
    "is no plain literal": ("scale = 2.0", "scale = 1.0 + 1.0"),
    "declares 'scale' twice": ("scale = 2.0", "scale = 2.0\nscale = 3.0"),
    "is not tagged 'validate'": (":tags: [validate]\n", ""),
    "code cell 3 overrules the parameter 'scale'": ("import matplotlib.pyplot as plt", "scale = 1.0"),
    "code cell 4 overrules the parameter 'scale'": ('print("one")', 'for scale in (1, 2):\n    print("one")'),
    "code cell 4 is exempted": (":tags: [result]", ":tags: [result, nbval-ignore-output]"),
    "code cell 3 is exempted": ("import matplotlib.pyplot as plt", "# NBVAL_SKIP"),
    "code cell 2 is exempted": (":tags: [validate]", ":tags: [validate, raises-exception]"),
    "code cell 3 ends in ';'": ("plt.show()", "ax.plot([0, 1]);"),
    "code cell 2 is empty": ("assert scale > 0\n", ""),
}


@pytest.mark.parametrize("complaint", SOURCE_FAULTS)
def test_a_faulty_source_is_refused_before_it_runs(complaint: str, tmp_path: Path) -> None:
    old, new = SOURCE_FAULTS[complaint]
    assert old in TOY
    source = tmp_path / "00_toy.md"
    source.write_text(TOY.replace(old, new), encoding="utf-8")
    assert any(complaint in problem for problem in notebook.check(notebook.load(source)))
    answer = CliRunner().invoke(notebook.main, ["build", "--folder", str(tmp_path)])
    assert answer.exit_code == 1
    assert complaint in answer.output
    assert not source.with_suffix(".ipynb").exists()


def test_a_parameter_may_be_normalised_from_itself() -> None:
    assert notebook._overruled("scale = float(scale)\nrows = [scale for scale in (1, 2)]", {"scale"}) == set()


def _stream(name: str, text: str) -> Any:
    return nbformat.v4.new_output("stream", name=name, text=text)


def _set_result(text: str) -> Callable[[Any], None]:
    def change(page: Any) -> None:
        page.cells[-1].outputs = [_stream("stdout", text)]

    return change


def _unexecute(page: Any) -> None:
    for cell in notebook.code_cells(page):
        cell.outputs, cell.execution_count = [], None


def _change_source(page: Any) -> None:
    page.cells[-1].source += "\n"


def _change_prose(page: Any) -> None:
    page.cells[0].source = "# Another toy"


def _change_tags(page: Any) -> None:
    page.cells[-1].metadata["tags"] = []


def _skip_a_count(page: Any) -> None:
    page.cells[-1].execution_count = 9


def _warn(page: Any) -> None:
    page.cells[-1].outputs.append(_stream("stderr", "RuntimeWarning: divide by zero"))


def _fail(page: Any) -> None:
    page.cells[-1].outputs.append(nbformat.v4.new_output("error", ename="KeyError", evalue="'x'", traceback=[]))


def _drop_figure(page: Any) -> None:
    page.cells[3].outputs = [_stream("stdout", "the data are missing")]


def _drop_result(page: Any) -> None:
    page.cells[-1].outputs = []


def _rename_kernel(page: Any) -> None:
    page.metadata.kernelspec.name = "my-env"


def _grow(page: Any) -> None:
    page.cells[-1].outputs = [_stream("stdout", "x" * notebook.LARGEST_FILE)]


PAGE_FAULTS: list[tuple[str, Callable[[Any], None]]] = [
    ("have not all been executed", _unexecute),
    ("have not all been executed", _skip_a_count),
    ("no output at all", _unexecute),
    ("made from another text", _change_source),
    ("made from another text", _change_prose),
    ("made from another text", _change_tags),
    ("wrote to stderr: RuntimeWarning", _warn),
    ("failed with KeyError", _fail),
    ("tagged 'figure' and drew none", _drop_figure),
    ("tagged 'result' and shows none", _drop_result),
    ("another kernelspec", _rename_kernel),
    ("larger than", _grow),
    ("shows a machine path", _set_result("saved to /" + "home/ann/figure.png")),
    ("shows a machine path", _set_result("python3.11/site-packages/numpy")),
    ("shows a memory address", _set_result("<Line2D at 0x7f3a5c0b1d90>")),
    ("shows a clock or a timing", _set_result("started 2024-05-01 12:00")),
    ("shows a clock or a timing", _set_result("took 0:00:12")),
    ("shows a clock or a timing", _set_result("5.1 ms ± 3 µs per loop")),
]


@pytest.mark.parametrize(("complaint", "change"), PAGE_FAULTS)
def test_a_page_that_does_not_fit_its_source_is_refused(
    complaint: str, change: Callable[[Any], None], toy: Path, tmp_path: Path
) -> None:
    page = copy.deepcopy(notebook.load(toy.with_suffix(".ipynb")))
    change(page)
    (tmp_path / toy.name).write_text(TOY, encoding="utf-8")
    nbformat.write(page, tmp_path / "00_toy.ipynb")
    assert any(complaint in problem for problem in notebook.check_pair(tmp_path / toy.name))
    answer = CliRunner().invoke(notebook.main, ["check", "--folder", str(tmp_path)])
    assert answer.exit_code == 1
    assert complaint in answer.output


def test_honest_numbers_and_dates_are_no_traces_of_a_machine() -> None:
    output = _stream("stdout", "2013-01-01  640x480  rate 3/4  0x1F  and/or/tmp  12:30")
    text = "\n".join(notebook.texts(output))
    assert not [what for what, pattern in notebook.UNSTABLE.items() if pattern.search(text)]


def test_a_missing_page_or_source_is_noticed(tmp_path: Path) -> None:
    runner = CliRunner()
    assert runner.invoke(notebook.main, ["check", "--folder", str(tmp_path)]).exit_code == 1
    (tmp_path / "00_toy.md").write_text(TOY, encoding="utf-8")
    assert "00_toy.ipynb is missing" in runner.invoke(notebook.main, ["check", "--folder", str(tmp_path)]).output
    assert "named: 01_none" in runner.invoke(notebook.main, ["check", "01_none", "--folder", str(tmp_path)]).output
    (tmp_path / "01_orphan.ipynb").write_text("{}", encoding="utf-8")
    assert "no source for: 01_orphan" in runner.invoke(notebook.main, ["check", "--folder", str(tmp_path)]).output


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("assert scale > 0", "import warnings\n\nwarnings.warn('careful')", "wrote to stderr"),
        ("assert scale > 0", "1 / 0", "ZeroDivisionError"),
    ],
)
def test_a_warning_or_a_failure_stops_the_build(old: str, new: str, complaint: str, tmp_path: Path) -> None:
    source = tmp_path / "00_toy.md"
    short = TOY[: TOY.index("```{code-cell} ipython3\n:tags: [figure]")]  # without the slow import
    source.write_text(short.replace(old, new), encoding="utf-8")
    with pytest.raises(notebook.NotebookError, match=complaint):
        notebook_build.build(source)
    assert not source.with_suffix(".ipynb").exists()


def test_strict_nbval_compares_numbers_and_not_pictures(toy: Path, tmp_path: Path) -> None:
    """A changed number fails, a changed picture does not; an unexecuted page passes, so that `check` must refuse it."""
    page = notebook.load(toy.with_suffix(".ipynb"))
    changed, unexecuted = copy.deepcopy(page), copy.deepcopy(page)
    changed.cells[-1].outputs[-1].data["text/plain"] = "6.1"
    changed.cells[3].outputs[0].data["image/png"] = "iVBORw0KGgo="
    _unexecute(unexecuted)
    del unexecuted.cells[3:]  # without the slow import
    for name, each in {"changed": changed, "unexecuted": unexecuted}.items():
        nbformat.write(each, tmp_path / f"{name}.ipynb")
    options = ["--nbval", "--nbval-current-env", "-p", "no:cacheprovider", f"--junitxml={tmp_path / 'report.xml'}"]
    configuration = ["-c", str(ROOT / "pyproject.toml"), f"--rootdir={tmp_path}"]
    answer = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *configuration, *options, str(tmp_path)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert answer.returncode == 1, answer.stdout + answer.stderr
    cases = ElementTree.parse(tmp_path / "report.xml").getroot().iter("testcase")
    failed = {f"{case.get('classname')} {case.get('name')}" for case in cases if case.find("failure") is not None}
    assert len(failed) == 1, answer.stdout
    assert "changed" in failed.pop()
    assert "6.1" in answer.stdout
    assert "1 failed, 5 passed" in answer.stdout
    assert "the code cells have not all been executed once, in order" in notebook.check_outputs(unexecuted)
