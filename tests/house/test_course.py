"""The course keeps its rules: one order, ranges that refuse, findings that never raise, editions, numbers, folding."""

from __future__ import annotations

import copy
import io
import json
import re
import tomllib
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from test_notebooks import TOY

from pqlab.pages import book, build, course, notebook, ranges, stage, sweep
from pqlab.pages.book import ROOT, quizzes, title_of
from pqlab.pages.exercise import grade
from pqlab.pages.observe import observe
from pqlab.pages.slider import slider_html

FOLDER = ROOT / "notebooks"
LESSONS = course.lessons(FOLDER)
PAGES = {one.name: notebook.load(FOLDER / f"{one.name}.md") for one in LESSONS}
MOST_OPEN_LINES = 250
ACCEPTING = TOY.replace(
    "assert scale > 0",
    "from pqlab.pages.ranges import accept, real_number\n\naccept(globals(), scale=real_number(0.5, 4))",
)


def said(function: Any, *arguments: Any) -> str:
    with redirect_stdout(io.StringIO()) as text:
        function(*arguments)
    return text.getvalue()


# --- the order ------------------------------------------------------------------------------------------------------


def test_readme_follows_the_table_of_contents() -> None:
    assert course.readme_table(LESSONS) in (ROOT / "README.md").read_text(encoding="utf-8")


def test_ten_lectures_and_privacy_second() -> None:
    assert {one.lecture for one in LESSONS} - {0} == {*range(1, 11)}
    assert [one.name for one in LESSONS].index("09_privacy") == 1


FAULTS = {
    "needs 02_b, which comes later": [("01_a", ["02_b"]), ("02_b", [])],
    "do not hold the same pages": [("01_a", [])],
    "each once": [("01_a", []), ("02_b", []), ("01_a", [])],
}


@pytest.mark.parametrize("complaint", FAULTS)
def test_a_table_that_does_not_fit_is_refused(complaint: str, tmp_path: Path) -> None:
    rows = [
        f'[[page]]\nname = "{name}"\nlecture = 1\nsection = "1"\nneeds = {needs}\nlearn = "x"\nseconds = 1\n'
        for name, needs in FAULTS[complaint]
    ]
    (tmp_path / course.FILE).write_text("\n".join(rows).replace("'", '"'), encoding="utf-8")
    for name in ("01_a", "02_b"):
        (tmp_path / f"{name}.md").write_text(TOY, encoding="utf-8")
    with pytest.raises(course.CourseError, match=complaint):
        course.lessons(tmp_path)


def test_the_graph_has_an_arrow_for_each_need_that_no_other_implies() -> None:
    drawn = course.graph(LESSONS)
    assert drawn.count("<a ") == len(LESSONS)
    assert len(LESSONS) - 2 <= drawn.count("marker-end") <= sum(len(one.needs) for one in LESSONS)


# --- each page ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PAGES)
def test_a_page_declares_ranges_and_keeps_its_form(name: str) -> None:
    page = PAGES[name]
    assert set(notebook.read_ranges(page)) == set(notebook.read_parameters(page))
    text = "\n".join(cell.source for cell in page.cells if cell.cell_type == "markdown")
    for part in ("**You will learn**", "**You need**", "## Exercises", "## Further reading"):
        assert text.count(part) == 1, part
    assert "Numbers and findings in the text are those of the parameters below" in text
    assert text.index("## Exercises") < text.index("## Further reading") and "<details>" in text
    kept = {"check", "fold", "validate", "parameters", "solution"}
    shown = [cell.source for cell in notebook.code_cells(page) if not kept & {*notebook.tags(cell)}]
    assert sum(bool(line.strip()) for source in shown for line in source.splitlines()) <= MOST_OPEN_LINES


@pytest.mark.parametrize("name", PAGES)
def test_solutions_are_tagged_and_pictures_described(name: str) -> None:
    for cell in PAGES[name].cells:
        if cell.cell_type == "markdown":
            assert ("<details><summary>Solution" in cell.source) == ("solution" in notebook.tags(cell))
        else:
            assert "plt.show(" not in cell.source
    page = notebook.load(FOLDER / f"{name}.ipynb")
    for cell in notebook.code_cells(page):
        for kind, picture in notebook.images(cell):
            assert kind == "svg" and b"<title>" in picture and picture.count(b"<title>") == 1


def test_numbers_of_statements_are_the_paper_s() -> None:
    numbers = tomllib.loads((ROOT / "book" / "numbers.toml").read_text(encoding="utf-8"))
    assert len({*numbers.values()}) == len(numbers)
    seen = 0
    for name, page in PAGES.items():
        text = "\n".join(cell.source for cell in page.cells if cell.cell_type == "markdown")
        for number, label in re.findall(
            r"((?:Theorem|Lemma|Corollary|Definition) [A-E\d]\.\d)(?: \(|, )`([\w:-]+)`", text
        ):
            assert numbers[label] == number, (name, label)
            seen += 1
    assert seen >= 20


def test_no_finding_of_the_stored_pages_is_contradicted() -> None:
    for name in PAGES:
        page = notebook.load(FOLDER / f"{name}.ipynb")
        texts = "\n".join(
            text for cell in notebook.code_cells(page) for o in cell.outputs for text in notebook.texts(o)
        )
        assert "not so in this run" not in texts, name


# --- ranges and findings --------------------------------------------------------------------------------------------

ANYTHING = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.floats() | st.text())


@given(ANYTHING)
def test_ranges_judge_whatever_they_are_given(value: Any) -> None:
    made = (
        ranges.whole(1, 5),
        ranges.real_number(0.1, 2),
        ranges.increasing(0, 1),
        ranges.one_of("a", 1),
        ranges.text(),
    )
    verdicts = [one.allows(value) for one in made]
    assert verdicts[0] == (type(value) is int and 1 <= value <= 5)
    assert verdicts[1] == (type(value) in (int, float) and 0.1 <= value <= 2)
    assert verdicts[4] == isinstance(value, str)
    for one in made:
        assert all(one.allows(corner) for corner in one.corners)


@given(ANYTHING)
def test_a_finding_and_a_grade_never_raise(value: Any) -> None:
    assert said(observe, "x", value).endswith(": x\n")
    kind = type(value).__name__
    expected = "not answered yet\n" if value is None else f"not yet: this is a {kind}, and cannot be compared\n"
    assert said(grade, value, lambda a: a["x"] > 1) == expected


def test_a_page_out_of_range_starts_no_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pq import cli
    from pqlab.commands import run

    source = tmp_path / "00_toy.md"
    source.write_text(ACCEPTING, encoding="utf-8")
    monkeypatch.setattr(run, "execute_with", lambda *_: pytest.fail("a kernel was asked for"))
    monkeypatch.chdir(tmp_path)
    for given_, complaint in ((["scale", "9"], "a number from 0.5 to 4"), (["scal", "1"], "did you mean 'scale'?")):
        answer = CliRunner().invoke(cli.main, ["run", str(source), "-p", *given_])
        assert answer.exit_code == 2 and complaint in answer.output
        assert not (tmp_path / "runs").exists()


def outside(allowed: ranges.Range) -> str | None:
    """A value just out of range, as one types it; None where any text will do."""
    last = allowed.corners[-1]
    if isinstance(last, list):
        return "[]"
    if isinstance(last, str):
        return None if allowed.holds("no such value") else "no such value"
    return str(last + 1)


@pytest.mark.parametrize("name", PAGES)
def test_no_page_starts_a_kernel_for_what_it_cannot_mean(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each parameter of each page, misspelt and out of range, by the command itself."""
    from pq import cli
    from pqlab.commands import run

    monkeypatch.setattr(run, "execute_with", lambda *_: pytest.fail("a kernel was asked for"))
    monkeypatch.setattr(run, "pages", lambda: {name: FOLDER / f"{name}.md"})
    monkeypatch.chdir(tmp_path)
    for parameter, allowed in notebook.read_ranges(PAGES[name]).items():
        for word, value, complaint in (
            (f"{parameter}x", "1", f"did you mean '{parameter}'?"),
            (parameter, outside(allowed), "must be "),
        ):
            if value is not None:
                answer = CliRunner().invoke(cli.main, ["run", name, "-p", word, value])
                assert answer.exit_code == 2 and complaint in answer.output, (word, value, answer.output)
    assert not [*tmp_path.iterdir()]


def test_ranges_that_do_not_fit_their_parameters_are_refused() -> None:
    page = notebook.nbformat.from_dict(notebook.load(FOLDER / "00_tour.md"))
    for old, new, complaint in (
        ("n=whole(50", "m=whole(50", "do not belong together: m, n"),
        ("n=whole(50, 16281", "n=whole(5000, 16281", "defaults out of range: n"),
        ("n=whole(50, 16281", "n=print(50, 16281", "is no range"),
        ("globals()", "locals()", "must call accept"),
    ):
        broken = copy.deepcopy(page)
        (cell,) = (one for one in broken.cells if "validate" in notebook.tags(one))
        assert old in cell.source
        cell.source = cell.source.replace(old, new)
        assert any(complaint in problem for problem in notebook.check(broken)), complaint


# --- the sweep ------------------------------------------------------------------------------------------------------


def test_the_sweep_goes_to_every_corner() -> None:
    chosen = [FOLDER / f"{one.name}.md" for one in LESSONS]
    runs = sweep.all_runs(chosen)
    assert len(runs) >= 120 and {run.runner for run in runs} == {"cells", "papermill", "refused"}
    assert {run.source for run in runs} == {*chosen}
    for source in chosen:
        tried = [run.values for run in sweep.runs_of(source)]
        for name, one in notebook.read_ranges(notebook.load(source)).items():
            if not one.sized:
                wanted = [c for c in one.corners if not {(name, str(c))} & (sweep.NEEDS_DOWNLOAD | sweep.LONG)]
                assert all(any(values.get(name) == corner for values in tried) for corner in wanted), name
    smoke = sweep.smoke_runs(chosen)
    assert len(smoke) == sweep.SMOKE_RUNS and smoke == sweep.smoke_runs(chosen)


def test_a_sweep_goes_on_where_it_stopped(tmp_path: Path) -> None:
    """What went through is not run again, until the page changes; what failed or was left is."""
    source, log = tmp_path / "00_toy.md", tmp_path / "log"
    short = ACCEPTING[: ACCEPTING.index("```{code-cell} ipython3\n:tags: [figure]")]
    source.write_text(short, encoding="utf-8")
    runs = list(sweep.runs_of(source))
    sweep.Log(log).note(runs[0], 1.0)
    again = sweep.Log(log)
    assert [again.key(run) in again.done for run in runs] == [run.values == runs[0].values for run in runs]
    source.write_text(short + "\nMore words.\n", encoding="utf-8")
    assert not any(again.key(run) in again.done for run in runs)
    answer = CliRunner().invoke(
        sweep.main, ["--folder", str(tmp_path), "--log", str(log), "--minutes", "0", "--workers", "1"]
    )
    assert (
        answer.exit_code == 1 and f"0 of {len(runs) + 2} runs went through, {len(runs) + 2} are left" in answer.output
    )


def test_a_page_that_asserts_a_finding_is_caught_by_the_sweep(tmp_path: Path) -> None:
    source = tmp_path / "00_toy.md"
    short = ACCEPTING[: ACCEPTING.index("```{code-cell} ipython3\n:tags: [figure]")]
    for finding, caught in (("observe('grows', scale > 1)", False), ("assert scale > 1, 'grows'", True)):
        text = short + f"```{{code-cell}} ipython3\nfrom pqlab.pages.observe import observe\n{finding}\n```\n"
        source.write_text(text, encoding="utf-8")
        troubles = {str(run.values): sweep.perform(run) for run in sweep.runs_of(source)}
        assert any("AssertionError: code cell 3: grows" in trouble for trouble in troubles.values()) == caught
        assert caught or not any(troubles.values())


# --- editions -------------------------------------------------------------------------------------------------------


def test_the_editions_differ_by_solutions_only() -> None:
    for name, page in PAGES.items():
        student, instructor = (stage.edition_of(page, edition) for edition in stage.EDITIONS)
        assert instructor == page
        text = "\n".join(cell.source for cell in student.cells if cell.cell_type == "markdown")
        assert "<details>" not in text and "## Exercises" in text, name
        assert len(student.cells) < len(page.cells)
    with pytest.raises(ValueError, match="edition"):
        stage.edition_of(PAGES["00_tour"], "teacher")


@pytest.mark.parametrize("name", ["16_privacy_in_practice", "07_private_online_learning"])
def test_the_students_edition_runs_and_waits_for_answers(name: str) -> None:
    page = stage.edition_of(PAGES[name], "student")
    for cell in notebook.code_cells(page):
        if "parameters" in notebook.tags(cell):
            cell.source += "\n" + "\n".join(f"{k} = {v!r}" for k, v in sweep.small(PAGES[name]).items())
    done = build.execute(notebook.with_stable_ids(page))
    texts = "\n".join(text for cell in notebook.code_cells(done) for o in cell.outputs for text in notebook.texts(o))
    assert "not answered yet" in texts and "\nright" not in texts


def test_the_instructors_answers_are_right() -> None:
    asked = 0
    for name, page in PAGES.items():
        if any("student" in notebook.tags(cell) for cell in notebook.code_cells(page)):
            stored = notebook.load(FOLDER / f"{name}.ipynb")
            texts = [text for cell in notebook.code_cells(stored) for o in cell.outputs for text in notebook.texts(o)]
            assert "not answered yet\n" in texts and "right\n" in texts, name
            asked += 1
    assert asked >= 8


def test_each_question_of_a_quiz_has_one_right_answer() -> None:
    questions = json.loads((ROOT / "book" / "quizzes.json").read_text(encoding="utf-8"))
    assert {*questions} <= {*PAGES} and len(questions) >= 10
    for one in (one for found in questions.values() for one in found):
        assert sum(answer["correct"] for answer in one["answers"]) == 1
        assert all(answer["feedback"] for answer in one["answers"])
    made = quizzes(questions, {name: title_of(page) for name, page in PAGES.items()})
    assert made.count("<fieldset") == sum(map(len, questions.values()))


def test_a_staged_page_says_its_statements_in_boxes() -> None:
    row = {"title": "Gap", "paper": "Gap ≤ x_1", "corrected": "", "verdict": "holds", "grade": "proved", "checks": []}
    claims = {"lem:quantile": row | {"code": ["pq.core.lem_quantile"]}}
    numbers = {"lem:quantile": "Lemma A.1"}
    staging = stage.Staging(["01_one"], numbers, claims, ["pq.bounds.lem_quantile"])
    cell = nbformat.v4.new_markdown_cell("By `lem:quantile` and page `01`, $a_{`lem:quantile`}$.")
    page = nbformat.v4.new_notebook(cells=[cell])
    text = staging.page(page, "01_one", "student").cells[0].source
    assert ":::{prf:lemma} A.1: Gap" in text and "Gap ≤ x\\_1" in text
    assert 'href="../api.html#pq.bounds.lem_quantile"' in text and 'href="../claims.html#lem-quantile"' in text
    assert "[01](01_one.ipynb)" in text and "$a_{`lem:quantile`}$" in text


def test_a_box_stands_in_the_section_that_names_its_statement() -> None:
    row = {
        "title": "Gap",
        "paper": "x",
        "corrected": "",
        "verdict": "holds",
        "grade": "proved",
        "checks": [],
        "code": [],
    }
    staging = stage.Staging(["01_one"], {"lem:quantile": "Lemma A.1"}, {"lem:quantile": row}, [])
    cell = nbformat.v4.new_markdown_cell("By `lem:quantile`.\n\n## Another matter\n\nMore, by `lem:quantile`.")
    text = staging.page(nbformat.v4.new_notebook(cells=[cell]), "01_one", "student").cells[0].source
    assert text.count(":::{prf:lemma}") == 1 and text.index(":::{prf:lemma}") < text.index("## Another matter")


def test_the_instructors_site_folds_solutions() -> None:
    staging = stage.Staging(PAGES, {}, {}, [])
    page = staging.page(PAGES["09_privacy"], "09_privacy", "instructor")
    text = "\n".join(cell.source for cell in page.cells if cell.cell_type == "markdown")
    assert text.count(":::{dropdown} Solution") >= 2 and "<details>" not in text
    assert any("hide-cell" in notebook.tags(cell) for cell in notebook.code_cells(page))


def test_the_notebooks_of_a_class_have_quizzes_and_no_solutions(tmp_path: Path) -> None:
    answer = CliRunner().invoke(book.main, ["notebooks", str(tmp_path)])
    assert answer.exit_code == 0, answer.output
    made = {path.stem: notebook.load(path) for path in tmp_path.glob("*.ipynb")}
    assert made.keys() == PAGES.keys()
    for page in made.values():
        assert not any("solution" in notebook.tags(cell) for cell in page.cells)
    quiz = made["16_privacy_in_practice"].cells[-1].source
    assert quiz.startswith("from jupyterquiz import display_quiz")
    space: dict[str, Any] = {}
    said(exec, quiz, space)
    assert "display_quiz" in space


def test_a_slider_holds_every_frame_and_is_the_same_text_twice() -> None:
    def made() -> str:
        heights = {"one": np.outer([1, 2, 3], [1, 0, 2]), "two": np.ones((3, 3))}
        words = {"of": "size", "along": "place", "height": "height", "description": "It <moves>"}
        return slider_html([0.1, 0.2, 0.3], np.array([0.0, 1.0, 3.0]), heights, **words)

    text = made()
    assert text == made()
    assert 'max="2" value="1"' in text and "<output>size = 0.2</output>" in text
    frames = json.loads(re.findall(r"frames = (\[.*\]);", text)[0])
    assert [frame[0] for frame in frames] == ["size = 0.1", "size = 0.2", "size = 0.3"]
    assert all(f'd="{curve}"' in text for curve in frames[1][1])
    heights = [[int(point.split(",")[1]) for point in frame[1][0][1:].split()] for frame in frames]
    assert heights[0][1] == heights[2][1] > heights[0][0] > heights[2][0]  # zero stays; higher is further up
    assert "It &lt;moves&gt;" in text and "<moves>" not in text
    assert '<label>size <input type="range"' in text and 'aria-valuetext="size = 0.2"' in text


def test_a_slider_has_logarithmic_axes_and_no_more_curves_than_lines() -> None:
    words = {"of": "size", "along": "place", "height": "height", "description": "x"}
    decades = np.array([1.0, 10.0, 100.0])
    text = slider_html([1], decades, {"one": decades[None]}, logarithmic="xy", **words)
    (curve,) = re.findall(r'class="curve" d="M([^"]+)"', text)
    (a, b, c) = [tuple(map(int, point.split(","))) for point in curve.split()]
    steps = [(b[k] - a[k], c[k] - b[k]) for k in (0, 1)]  # alike but for rounding to pixels
    assert all(abs(one - other) <= 1 for one, other in steps) and steps[0][0] > 100 and steps[1][0] < -80
    assert "place, logarithmic" in text and all(text.count(f">{mark}</text>") == 2 for mark in (1, 10, 100))
    for flat, kind in ((0.0, ""), (1.0, "y")):  # heights that are all alike are drawn, too
        assert "nan" not in slider_html([1], decades, {"one": np.full((1, 3), flat)}, logarithmic=kind, **words)
    many = np.geomspace(1, 1e5, 81)  # of which some lie half way between two pixels, but for the last bit
    drawn = [
        slider_html([1], x, {"one": np.ones((1, 81))}, logarithmic="x", **words)
        for x in (many, np.nextafter(many, 0), np.nextafter(many, 1e9))
    ]
    assert drawn[0] == drawn[1] == drawn[2]
    with pytest.raises(ValueError, match="at most 4, got 5"):
        slider_html([1], decades, {str(k): decades[None] for k in range(5)}, **words)
