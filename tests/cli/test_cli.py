"""The `pq` command: strict reruns of notebooks, private releases from CSV files, the table of claims."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

import pq
from pq import cli
from pq.cli.release import parse_prior
from pqlab.commands import claims as cli_claims
from pqlab.commands import run as cli_run
from pqlab.pages import notebook
from pqlab.pages.parameters import ParameterError, code_for, declared, parse_all

HEADER = """\
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
"""
PARAMETERS = """
```{code-cell} ipython3
:tags: [parameters]

epsilon = 1.0
quantiles = [0.25, 0.5]
levels = (1, 2)
rounds = 3
fast = True
name = "adult"
profile = "quick"
grid: float | None = None
```
"""
REST = """
```{code-cell} ipython3
:tags: [validate]

assert epsilon > 0, "epsilon must be positive"
```

```{code-cell} ipython3
:tags: [result]

print(repr((epsilon, quantiles, levels, rounds, fast, name, profile, grid)))
```

```{code-cell} ipython3
:tags: [figure]

import base64

from IPython.display import Image, display

dot = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
if fast:
    display(Image(base64.b64decode(dot)))
```
"""


def pq_command(*arguments: str, stdin: bytes | None = None) -> Result:
    return CliRunner().invoke(cli.main, list(arguments), input=stdin)


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small notebook in a folder of its own, which is the current one."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "07_small.md"
    path.write_text(HEADER + PARAMETERS + REST, encoding="utf-8")
    return path


REFUSALS = {
    "a misspelt name": (["-p", "epsilom", "2"], "no parameter is named 'epsilom'"),
    "a name that is nearly one": (["-p", "epsilom", "2"], "(did you mean 'epsilon'?)"),
    "a name in other letters": (["-p", "Epsilon", "2"], "no parameter is named 'Epsilon'"),
    "text for a float": (["-p", "epsilon", "much"], "parameter 'epsilon' takes float"),
    "a bool for a float": (["-p", "epsilon", "True"], "parameter 'epsilon' takes float"),
    "NaN for a float": (["-p", "epsilon", "nan"], "parameter 'epsilon' takes float"),
    "an expression": (["-p", "epsilon", "__import__('os').getpid()"], "parameter 'epsilon' takes float"),
    "None for a float": (["-p", "epsilon", "None"], "parameter 'epsilon' takes float"),
    "an int beyond floats": (["-p", "epsilon", "1" + "0" * 400], "beyond the range of a float"),
    "a float beyond floats": (["-p", "epsilon", "1e400"], "beyond the range of a float"),
    "one in a list": (["-p", "quantiles", "[1e400, 0.1]"], "beyond the range of a float"),
    "a sum of lists": (["-p", "quantiles", "[1] + 1"], "parameter 'quantiles' takes list of float"),
    "a float for an int": (["-p", "rounds", "2.0"], "parameter 'rounds' takes int"),
    "a bool for an int": (["-p", "rounds", "True"], "parameter 'rounds' takes int"),
    "an int for a bool": (["-p", "fast", "0"], "parameter 'fast' takes bool"),
    "text for a bool": (["-p", "fast", "no"], "parameter 'fast' takes bool"),
    "bare numbers for a list": (["-p", "quantiles", "0.1,0.9"], "parameter 'quantiles' takes list of float"),
    "text in a list": (["-p", "quantiles", "['0.1']"], "parameter 'quantiles' takes list of float"),
    "a bool in a list": (["-p", "quantiles", "[0.1, True]"], "parameter 'quantiles' takes list of float"),
    "half a list": (["-p", "quantiles", "[0.1, 0.9"], "parameter 'quantiles' takes list of float"),
    "a list for a tuple": (["-p", "levels", "[1, 2]"], "parameter 'levels' takes tuple of int"),
    "a float in a tuple of int": (["-p", "levels", "(1, 2.5)"], "parameter 'levels' takes tuple of int"),
    "text for float or None": (["-p", "grid", "fine"], "parameter 'grid' takes float or None"),
    "a name given twice": (["-p", "epsilon", "1", "-p", "epsilon", "2"], "parameter 'epsilon' is given twice"),
    "a profile given twice": (["-p", "profile", "paper", "--profile", "paper"], "parameter 'profile' is given twice"),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_a_wrong_parameter_is_refused_before_anything_runs(case: str, page: Path) -> None:
    arguments, complaint = REFUSALS[case]
    answer = pq_command("run", str(page), *arguments)
    assert answer.exit_code == 2
    assert complaint in answer.output
    if "twice" not in case:
        assert "the notebook declares: epsilon, quantiles, levels, rounds, fast, name, profile, grid" in answer.output
    assert [path.name for path in page.parent.iterdir()] == [page.name]


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        (":tags: [parameters]", ":tags: [parameter]", "0 cells tagged 'parameters'"),
        (":tags: [parameters]\n", "", "0 cells tagged 'parameters'"),
        (":tags: [validate]", ":tags: [parameters]", "2 cells tagged 'parameters'"),
        ("rounds = 3", "rounds = len('abc')", "no plain literal"),
        ("rounds = 3", "print(3)", "more than 'name = literal'"),
        ("rounds = 3", "rounds = other = 3", "more than 'name = literal'"),
        ("rounds = 3", "rounds: int = 3.5", "is not int"),
        ("rounds = 3", "rounds = ", "not Python code"),
    ],
)
def test_a_notebook_without_clear_parameters_is_refused(old: str, new: str, complaint: str, page: Path) -> None:
    page.write_text(page.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    answer = pq_command("run", str(page), "-p", "epsilon", "2")
    assert answer.exit_code == 2
    assert complaint in answer.output
    assert not (page.parent / "runs").exists()


def test_a_profile_that_is_not_declared_is_refused(page: Path) -> None:
    page.write_text(page.read_text(encoding="utf-8").replace('profile = "quick"\n', ""), encoding="utf-8")
    answer = pq_command("run", str(page), "--profile", "paper")
    assert answer.exit_code == 2
    assert "no parameter is named 'profile'" in answer.output


def test_what_is_no_notebook_is_refused(page: Path) -> None:
    (page.parent / "text.ipynb").write_text("no notebook", encoding="utf-8")
    for name, complaint in {"absent": "no such notebook", "text.ipynb": "cannot be read as a notebook"}.items():
        answer = pq_command("run", name)
        assert answer.exit_code == 2
        assert complaint in answer.output
    assert not (page.parent / "runs").exists()


def test_a_run_gets_typed_values_and_keeps_earlier_runs(page: Path) -> None:
    earlier = page.parent / "elsewhere" / "07_small-001"
    earlier.mkdir(parents=True)
    pairs = {
        "epsilon": "2",
        "quantiles": "[0.1, 1]",
        "levels": "(4,)",
        "fast": "true",
        "name": 'it\'s "so"',
        "grid": "0.5",
    }
    given = [word for pair in pairs.items() for word in ("-p", *pair)]
    answer = pq_command("run", "07_small.md", *given, "--profile", "paper", "-o", "elsewhere")
    assert answer.exit_code == 0, answer.output
    shown = repr((2.0, [0.1, 1.0], (4,), 3, True, 'it\'s "so"', "paper", 0.5))
    run = page.parent / "elsewhere" / "07_small-002"
    assert answer.stdout.splitlines() == [
        shown,
        f"figure:   {Path('elsewhere') / run.name / 'figure-1.png'}",
        f"notebook: {Path('elsewhere') / run.name / '07_small.ipynb'}",
    ]
    assert answer.stderr == ""  # a bar is for a terminal, not for a log file
    assert sorted(path.name for path in run.iterdir()) == ["07_small.ipynb", "figure-1.png"]
    assert list(earlier.iterdir()) == []
    done = notebook.load(run / "07_small.ipynb")
    assert [tag for cell in notebook.code_cells(done)[:2] for tag in notebook.tags(cell)] == [
        "parameters",
        "injected-parameters",
    ]


def test_a_failing_cell_fails_the_run_with_its_traceback(page: Path) -> None:
    answer = pq_command("run", str(page), "-p", "epsilon", "-1")
    assert answer.exit_code == 1
    assert "AssertionError: epsilon must be positive" in answer.output
    assert (page.parent / "runs" / "07_small-001" / "07_small.ipynb").exists()


@pytest.mark.parametrize("kind", ["a killed kernel", "no folder to write in"])
def test_what_breaks_off_a_run_is_said_in_a_sentence(kind: str, page: Path) -> None:
    (page.parent / "file").write_text("", encoding="utf-8")
    if kind == "a killed kernel":
        text = page.read_text(encoding="utf-8").replace(
            "print(repr(", "import os; os.kill(os.getpid(), 9); print(repr("
        )
        page.write_text(text, encoding="utf-8")
        answer, complaint = pq_command("run", str(page)), "the kernel ended before the page did"
    else:
        answer, complaint = pq_command("run", str(page), "-o", "file/below"), "file/below cannot be written"
    assert (answer.exit_code, type(answer.exception)) == (1, SystemExit)
    assert complaint in answer.stderr
    assert "Traceback" not in answer.output


def test_a_page_runs_in_this_interpreter_whatever_kernels_there_are(
    page: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kernel of the same name that is found first would be another environment's."""
    planted = page.parent / "share" / "kernels" / "python3"
    planted.mkdir(parents=True)
    argv = ["/bin/false", "-f", "{connection_file}"]
    (planted / "kernel.json").write_text(json.dumps({"argv": argv, "display_name": "x", "language": "python"}))
    monkeypatch.setenv("JUPYTER_PATH", str(page.parent / "share"))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    text = page.read_text(encoding="utf-8").replace("print(repr(", "import sys; print(sys.executable, repr(")
    page.write_text(text, encoding="utf-8")
    answer = pq_command("run", str(page))
    assert answer.exit_code == 0, answer.output
    assert answer.stdout.startswith(sys.executable)
    assert os.environ["JUPYTER_PATH"] == str(page.parent / "share")


def test_pages_are_listed_with_their_parameters() -> None:
    lines = pq_command("run", "--list").output.splitlines()
    assert [line.split(":")[0] for line in lines if not line.startswith(" ")] == list(cli_run.pages())
    start = next(k for k, line in enumerate(lines) if line.startswith("03_many_quantiles: "))
    assert any(line.startswith("    epsilons = [1.0, 0.1]: ") for line in lines[start : start + 8])
    answer = pq_command("run")
    assert answer.exit_code == 2
    assert "pq run --list" in answer.output


def test_a_run_without_its_figure_is_no_success(page: Path) -> None:
    answer = pq_command("run", str(page), "-p", "fast", "false")
    assert answer.exit_code == 1
    assert "tagged 'figure' and drew none" in answer.output


def test_a_page_of_the_project_is_found_from_any_folder(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its bare name, and never one that somebody has put into the current folder or above it."""
    text, project, planted = (
        page.read_text(encoding="utf-8"),
        page.parent / "project",
        page.parent / "here" / "notebooks",
    )
    for folder, name in ((project / "notebooks", "00_first"), (planted, "00_first"), (planted, "01_planted")):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.md").write_text(text, encoding="utf-8")
    (planted / "deep").mkdir()
    monkeypatch.chdir(planted / "deep")
    monkeypatch.setattr(cli_run, "project_folder", lambda: project)
    assert cli_run.find("00_first") == project / "notebooks" / "00_first.md"
    assert cli_run.find("../00_first.md").resolve() == planted / "00_first.md"
    for name, complaint in (("01_planted", "there are: 00_first"), ("0_first", "did you mean 00_first?")):
        with pytest.raises(notebook.NotebookError, match=complaint.replace("?", r"\?")):
            cli_run.find(name)


literals = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.lists(inner, max_size=3).map(tuple),
    max_leaves=6,
)


@given(literals)
def test_a_declared_literal_fits_itself_and_survives_the_cell(value: Any) -> None:
    parameter = declared(f"value = {value!r}")["value"]
    assert parameter.default == value
    text = value if isinstance(value, str) else repr(value)
    again = parameter.parse(text)
    space: dict[str, Any] = {}
    exec(code_for({"value": again}), space)
    assert space["value"] == value
    if "float" not in str(parameter.shape):
        assert repr(again) == repr(value)


@given(literals, literals)
def test_a_value_is_accepted_only_with_a_declared_type(default: Any, value: Any) -> None:
    """Scalars only: for each pair of types the answer is known outright."""
    if isinstance(default, (list, tuple, str)) or isinstance(value, (list, tuple, str)) or default is None:
        return
    fits = type(value) is type(default) or (type(default) is float and type(value) is int and abs(value) < 2**1000)
    parameter = declared(f"value = {default!r}")["value"]
    try:
        parameter.parse(repr(value))
        accepted = True
    except ParameterError:
        accepted = False
    assert accepted == fits


def test_infinity_is_a_float_and_annotations_widen() -> None:
    parameters = declared(
        "epsilon = 1.0\nseed: int | None = None\nrows: list[int] = []\nshape: tuple[int, ...] = ()\nany = []"
    )
    values = [("epsilon", "inf"), ("seed", "4"), ("rows", "[1]"), ("shape", "(1,)"), ("any", "['a', [1]]")]
    expected = {"epsilon": float("inf"), "seed": 4, "rows": [1], "shape": (1,), "any": ["a", [1]]}
    assert parse_all(parameters, values) == expected
    for name, text in (("seed", "1.5"), ("rows", "[0.5]"), ("shape", "[1]")):
        with pytest.raises(ParameterError, match=name):
            parse_all(parameters, [(name, text)])
    with pytest.raises(ParameterError, match="not understood"):
        declared("x: complex = 1")


# --- release -------------------------------------------------------------------------------------------------------


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """1, 2, ..., 999 in a column `age`, in some order, among cells that are no numbers and rows that are too short."""
    path = tmp_path / "people.csv"
    ages = [str(1 + (i * 7) % 999) for i in range(999)]
    rows = [f"{i},{age}" for i, age in enumerate([*ages, "?", "", "nan", "1_0", "n/a"])]
    path.write_bytes(("\ufeffid, age\n" + "\n".join(rows) + "\n77\n\n78,\xff\n").encode("latin-1", errors="ignore"))
    return path


ARGUMENTS = ["--column", "age", "--quantiles", "0.75,0.25,0.5", "--prior", "uniform(0, 1000)", "--grid", "1"]


def test_release_prints_the_quantiles_in_the_callers_order(table: Path) -> None:
    """At epsilon 1e5 a grid point one rank off has at most exp(-1e4) of the mass: the order statistics are certain."""
    answer = pq_command("release", str(table), *ARGUMENTS, "--epsilon", "1e5", "--lines")
    assert answer.exit_code == 0, answer.output
    rows = [line.split() for line in answer.output.splitlines() if line[:1].isspace()]
    found = {float(row[0]): float(row[1]) for row in rows}
    assert list(found) == [0.75, 0.25, 0.5]
    assert all(abs(found[q] - 1000 * q) <= 1 for q in found)


def test_release_reads_standard_input_and_prints_json(table: Path) -> None:
    arguments = [*ARGUMENTS, "--prior", "Cauchy(500, scale=50)", "--prior", "normal(500, 200)"]
    answer = pq_command("release", "-", *arguments, "--epsilon", "1e5", "--json", "--lines", stdin=table.read_bytes())
    assert answer.exit_code == 0, answer.output
    released = json.loads(answer.output)
    assert released["quantiles"] == [0.75, 0.25, 0.5]
    assert released["epsilon"] == 1e5
    assert released["adjacency"] == "add-remove"
    assert all(abs(value - 1000 * q) <= 1 for q, value in zip(released["quantiles"], released["values"], strict=True))


@pytest.mark.parametrize(
    "content",
    [
        "age\n",
        "age\n?\n",
        "age\n1\n",
        "age\n" + "5\n" * 50,
        "age\ninf\n-inf\n1e400\n",
        'age\n"' + "9" * 200_000 + '"\n4\0\n',
    ],
)
def test_odd_data_change_nothing_but_the_values(content: str, tmp_path: Path) -> None:
    path = tmp_path / "odd.csv"
    path.write_text(content, encoding="utf-8")
    answer = pq_command("release", str(path), *ARGUMENTS, "--epsilon", "1", "--json")
    assert answer.exit_code == 0, answer.output
    assert answer.stderr == ""
    assert len(json.loads(answer.stdout)["values"]) == 3


@pytest.mark.parametrize(
    ("option", "value", "complaint"),
    [
        ("--epsilon", "0", "epsilon"),
        ("--epsilon", "nan", "epsilon"),
        ("--quantiles", "0.5,1.5", "quantiles"),
        ("--quantiles", "half", "quantiles 'half' are not numbers"),
        ("--prior", "cauchy", "not of the form"),
        ("--prior", "gamma(1, 2)", "no known family"),
        ("--prior", "cauchy(0, open)", "no number: open"),
        ("--prior", "cauchy(0, True)", "no number: True"),
        ("--prior", "cauchy(0, -1)", "scale"),
        ("--prior", "cauchy(0)", "refused"),
        ("--grid", "-1", "grid"),
        ("--arity", "1", "arity"),
        ("--adjacency", "swap", "adjacency"),
    ],
)
def test_a_wrong_public_argument_is_refused_before_the_file_is_read(
    option: str, value: str, complaint: str, table: Path
) -> None:
    arguments = [*ARGUMENTS, "--epsilon", "1"]
    if option in arguments:
        arguments[arguments.index(option) + 1] = value
    else:
        arguments += [option, value]
    arguments[arguments.index("--column") + 1] = "absent"  # would be the complaint if the file were read first
    answer = pq_command("release", str(table), *arguments)
    assert answer.exit_code == 2
    assert complaint in answer.output
    assert "absent" not in answer.output


def test_an_error_does_not_show_the_first_record(tmp_path: Path) -> None:
    path = tmp_path / "headless.csv"
    path.write_text("39, State-gov, 77516\n50, Private, 83311\n", encoding="utf-8")
    answer = pq_command("release", str(path), *ARGUMENTS, "--epsilon", "1")
    assert answer.exit_code == 2
    assert "no column named 'age'" in answer.output
    assert "State-gov" not in answer.output
    assert "77516" not in answer.output


def test_a_prior_is_a_call_of_a_family() -> None:
    assert parse_prior(" Cauchy(40, 20)") == pq.Cauchy(40.0, 20.0)
    assert parse_prior("laplace(loc=-4, scale=.5)") == pq.Laplace(-4.0, 0.5)
    assert parse_prior("halfcauchy(3)") == pq.HalfCauchy(3.0)
    with pytest.raises(ValueError, match="not of the form"):
        parse_prior("pq.Cauchy(0, 1)")
    with pytest.raises(ValueError, match="no number"):
        parse_prior("cauchy(*[0, 1])")
    with pytest.raises(ValueError, match="refused"):
        parse_prior("cauchy(place=0, scale=1)")


# --- claims and the command itself ---------------------------------------------------------------------------------

CLAIMS = """\
["lem:one"]
title = "First"
paper = "A gap is small."
verdict = "holds"
grade = "proved"
["thm:two"]
title = "Second"
paper = "A sum is large."
verdict = "holds corrected"
grade = "proved"
counterexample = "m = 1"
"""


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "proofs_checks" / "section_1").mkdir(parents=True)
    (tmp_path / "proofs_checks" / "section_1" / "claims.toml").write_text(CLAIMS, encoding="utf-8")
    monkeypatch.setattr(cli_claims, "project_folder", lambda: tmp_path)
    return tmp_path


@pytest.mark.usefixtures("checkout")
def test_claims_are_listed_counted_and_filtered() -> None:
    answer = pq_command("claims")
    assert answer.exit_code == 0, answer.output
    assert "2 of 2 statements" in answer.output
    assert "by verdict: 1 holds, 1 holds corrected" in answer.output
    assert "by grade: 2 proved" in answer.output
    for arguments, there, gone in (
        (["--verdict", "holds"], "lem:one", "thm:two"),
        (["--search", "A SUM"], "thm:two", "lem:one"),
    ):
        shown = pq_command("claims", *arguments).output
        assert "1 of 2 statements" in shown
        assert there in shown
        assert gone not in shown
    assert pq_command("claims", "--grade", "statistical").exit_code == 1
    assert pq_command("claims", "--grade", "guessed").exit_code == 2


@pytest.mark.usefixtures("checkout")
def test_a_claim_is_shown_in_full() -> None:
    assert "counterexample m = 1" in pq_command("claims", "thm:two").output
    assert pq_command("claims", "thm:three").exit_code == 2


def test_claims_are_printed_whatever_letters_a_terminal_knows() -> None:
    command = [sys.executable, "-m", "pq.cli", "claims", "--search", "epsilon"]
    environment = os.environ | {"PYTHONIOENCODING": "cp1252"}
    answer = subprocess.run(command, capture_output=True, check=False, env=environment)
    assert (answer.returncode, answer.stderr) == (0, b"")
    assert b"Regret and ?" in answer.stdout


def test_absent_or_broken_claims_are_an_error(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (checkout / "proofs_checks" / "section_1" / "claims.toml").write_text("[", encoding="utf-8")
    assert "not valid TOML" in pq_command("claims").output
    monkeypatch.setattr(cli_claims, "project_folder", lambda: None)
    answer = pq_command("claims")
    assert answer.exit_code == 1
    assert "checkout of the project" in answer.output


def test_each_listed_command_can_be_called() -> None:
    names = cli.main.list_commands(None)  # type: ignore[arg-type]
    assert {"claims", "release", "run"} <= set(names)
    shown = pq_command("--help").output
    for name in names:
        assert f"  {name} " in shown
        assert pq_command(name, "--help").exit_code == 0
    assert pq_command("nonsense").exit_code == 2


def test_the_installed_command_tells_the_version() -> None:
    command = Path(sys.executable).with_name("pq.exe" if os.name == "nt" else "pq")
    answer = subprocess.run([command, "--version"], capture_output=True, text=True, check=True)
    assert answer.stdout == "pq, version 0.1.0\n"


def test_remarks_stand_below_the_table_and_in_json(tmp_path: Path) -> None:
    """On standard output alone; --yes leaves them out, --quiet prints the values alone."""
    path = tmp_path / "x.csv"
    path.write_text("x\n" + "\n".join(str(k / 100) for k in range(10_000)) + "\n")
    asked = ["release", str(path), "--column", "x", "--quantiles", "0.5", "--prior", "between(0,10,least=0,most=11)"]
    plain = pq_command(*asked, "--epsilon", "20")
    remarks = [line for line in plain.stdout.splitlines() if line.startswith("Remark: ")]
    assert plain.exit_code == 0 and plain.stderr == "" and len(remarks) == 2
    assert "epsilon is 20" in remarks[0] and "upper end, 11," in remarks[1]
    facts = json.loads(pq_command(*asked, "--epsilon", "20", "--json").stdout)
    assert [f"Remark: {remark}." for remark in facts["remarks"]] == remarks
    for silent in (["--yes"], ["--quiet"], ["--yes", "--quiet"]):
        assert "Remark" not in pq_command(*asked, "--epsilon", "20", *silent).stdout
    assert json.loads(pq_command(*asked, "--epsilon", "20", "--json", "--yes").stdout)["remarks"] == []
    assert "Remark" not in pq_command(*asked[:-1], "uniform(0, 100)", "--epsilon", "1").stdout


def test_a_declared_integer_has_a_grid_proposed_and_a_cell_of_text_has_not(tmp_path: Path) -> None:
    import polars as pl

    table = pl.DataFrame({"x": list(range(100))})
    table.write_csv(tmp_path / "x.csv")
    table.write_parquet(tmp_path / "x.parquet")
    for name, proposed in (("x.csv", False), ("x.parquet", True)):
        for grid in ([], ["--grid", "1"]):
            answer = pq_command(
                "release", str(tmp_path / name), "--column", "x", "--quantiles", "0.5", "--prior", "uniform(0,100)",
                "--epsilon", "1", *grid,
            )  # fmt: skip
            assert ("whole numbers" in answer.stdout) == (proposed and not grid)


def test_a_standard_input_that_is_closed_is_no_traceback() -> None:
    """A shell's `<&-`: then Python has no `sys.stdin`."""
    command = [
        sys.executable,
        "-c",
        "from pq.cli import main; main()",
        "release",
        "-",
        "--column",
        "x",
        "--quantiles",
        "0.5",
        "--epsilon",
        "1",
    ]
    shell = ["/bin/sh", "-c", 'exec "$0" "$@" <&-', *command, "--prior", "cauchy(0, 1)"]
    answer = subprocess.run(shell, capture_output=True, text=True, check=False)
    assert answer.returncode == 2 and not answer.stdout
    assert "standard input is closed" in answer.stderr and "Traceback" not in answer.stderr


@pytest.mark.parametrize("text", ["1if", "cauchy(1if, 1)", "1()", "cauchy(1 is 1, 1)", r"cauchy('\d', 1)"])
def test_what_python_thinks_of_a_prior_is_not_said(text: str, recwarn: pytest.WarningsRecorder) -> None:
    with pytest.raises(ValueError, match="prior"):
        parse_prior(text)
    assert not recwarn.list
