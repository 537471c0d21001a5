"""From notebooks to pages of the book: the same cells, said in the book's own directives.

A notebook reads well in Jupyter as it is; what the book adds (boxes for statements, exercises with folded solutions,
links for names of pages and labels) is derived from tags and names, so that there is one source. Of two known systems
for editions, one marks solutions by comments in the code of a cell and grades with a tool of its own, the other keeps
a master copy in a server's folders; here an edition is a filter on tags, which needs neither.
"""

from __future__ import annotations

import copy
import html
import re
from collections.abc import Iterable, Mapping
from typing import Any

from docutils.nodes import make_id

from pqlab.pages.notebook import Notebook, tags

EDITIONS = ("student", "instructor")
FOLDED = {"check", "fold", "validate"}
KINDS = {"Theorem": "theorem", "Lemma": "lemma", "Corollary": "corollary", "Definition": "definition"}


def edition_of(notebook: Notebook, edition: str) -> Notebook:
    """A copy for students, without the cells tagged `solution`, or for instructors, with them.

    Raises:
        ValueError: there is no such edition.
    """
    if edition not in EDITIONS:
        raise ValueError(f"edition must be one of {', '.join(EDITIONS)}, got {edition!r}")
    page = copy.deepcopy(notebook)
    if edition == "student":
        page.cells = [cell for cell in page.cells if "solution" not in tags(cell)]
    return page


class Staging:
    """Makes pages of the book from notebooks.

    names: of all pages. numbers: the paper's own number of each label. claims: rows by label, as `load_claims` gives
    them. code_pages: dotted public names that the API reference has.
    """

    def __init__(
        self, names: Iterable[str], numbers: Mapping[str, str], claims: Mapping[str, Any], public: Iterable[str]
    ) -> None:
        self.names = {name.partition("_")[0]: name for name in names}
        self.numbers = numbers
        self.claims = claims
        self.public = {name.rpartition(".")[2]: name for name in public}

    def page(self, notebook: Notebook, name: str, edition: str) -> Notebook:
        """The page of the book, in an edition."""
        page = edition_of(notebook, edition)
        boxed: set[str] = set()
        exercises = 0
        for cell in page.cells:
            if cell.cell_type == "code":
                _fold(cell)
                continue
            if "exercise" in tags(cell):
                exercises += 1
                text = _exercise(self.linked(cell.source), f"{name}-{exercises}")
            elif "solution" in tags(cell):
                text = _solution(self.linked(cell.source))
            else:
                text = "\n\n".join(self._section(part, name, boxed) for part in re.split(r"\n(?=##+ )", cell.source))
            cell.source, cell.metadata = text, {}
        return page

    def _section(self, text: str, name: str, boxed: set[str]) -> str:
        """A section of a page, and at its end a box for each statement that none has been made for."""
        if "**You will learn**" in text or text.startswith("## Further reading"):
            return self.linked(text)
        found = dict.fromkeys(re.findall(r"`((?:thm|lem|cor):[\w-]+)`", text))
        new = [label for label in found if label in self.numbers and label not in boxed]
        boxed |= {*new}
        return "\n\n".join([self.linked(text), *(self.box(label, f"{name}-{make_id(label)}") for label in new)])

    def linked(self, text: str) -> str:
        """The text with names of pages and labels as links; formulas and code blocks stay as they are."""
        parts = re.split(r"(```.*?```|\$\$.*?\$\$|\$[^$\n]+\$)", text, flags=re.DOTALL)
        for k in range(0, len(parts), 2):
            part = re.sub(r"\[([^]]+)\]\(\.\./results/[^)]*\)", r"\1", parts[k])
            part = part.replace("../book/", "../")
            part = re.sub(r"`(\d\d[a-z]?_\w+|\d\d[a-z]?)`", self._page_link, part)
            parts[k] = re.sub(r"`((?:thm|lem|cor|def|eq|alg|fig):[\w-]+)`", self._label_link, part)
        return "".join(parts)

    def _page_link(self, match: re.Match[str]) -> str:
        word = match[1]
        name = self.names.get(word.partition("_")[0])
        return f"[{word.replace('_', ' ') if '_' in word else word}]({name}.ipynb)" if name else match[0]

    def _label_link(self, match: re.Match[str]) -> str:
        label = match[1]
        if label not in self.claims:
            return match[0]
        return f'<a href="../claims.html#{make_id(label)}"><code>{label}</code></a>'

    def box(self, label: str, identity: str) -> str:
        """A box with the paper's statement, what became of it, and links to its row and to the code."""
        number = self.numbers[label]
        row = self.claims.get(label)
        if row is None:
            return ""
        kind, _, place = number.partition(" ")
        lines = [f":::{{prf:{KINDS[kind]}}} {place}: {_plain(row['title'])}", f":label: {identity}", ":nonumber:", ""]
        lines += [f"*As printed.* {_plain(row['paper'])}", ""]
        if row.get("corrected"):
            lines += [f"*What holds.* {_plain(row['corrected'])}", ""]
        code = ", ".join(self.code_link(name) for name in row["code"])
        see = f'<a href="../claims.html#{make_id(label)}">{row["verdict"]}, {row["grade"]}</a>'
        lines += [f"Verdict: {see}." + (f" Code: {code}." if code else ""), ":::"]
        return "\n".join(lines)

    def code_link(self, name: str, up: str = "../") -> str:
        """A link to the reference of a function that a check runs, or its name where it is not public."""
        short = name.rpartition(".")[2]
        if short in self.public:
            return f'<a href="{up}api.html#{self.public[short]}"><code>{self.public[short]}</code></a>'
        return f"<code>{html.escape(name)}</code>"

    def claims_table(self, headings: Mapping[str, Mapping[str, str]]) -> str:
        """All claims as an HTML table that a script filters.

        headings: by page the identifiers of its sections, by the slugs that claims use.
        """
        rows = []
        for label, row in self.claims.items():
            number = f" ({self.numbers[label]})" if label in self.numbers else ""
            lines = [f"<b><code>{html.escape(label)}</code></b>{number} {html.escape(row['title'])}"]
            lines.append(html.escape(row["paper"]))
            for word, key in (("Instead", "corrected"), ("Counterexample", "counterexample"), ("Note", "note")):
                if row.get(key):
                    lines.append(f"<i>{word}:</i> {html.escape(row[key])}")
            code = " ".join(self.code_link(name, "") for name in row["code"])
            checks = " ".join(f"<code>{html.escape(key)}</code>" for key in row["checks"])
            rows.append(
                f'<tr id="{make_id(label)}" data-verdict="{row["verdict"]}" data-grade="{row["grade"]}">'
                f"<td>{html.escape(row['section'])}</td><td>{'<br>'.join(lines)}</td><td>{row['verdict']}</td>"
                f"<td>{row['grade']}</td><td>{_see(row.get('notebook'), headings)}</td><td>{code} {checks}</td></tr>"
            )
        head = "".join(
            f'<th scope="col">{name}</th>'
            for name in ("section", "statement", "verdict", "grade", "see", "code and checks")
        )
        return (
            f'<table class="pq-claims"><thead><tr>{head}</tr></thead><tbody>\n' + "\n".join(rows) + "\n</tbody></table>"
        )


def section_ids(notebook: Notebook) -> dict[str, str]:
    """The identifier that the book gives each section, by the slug that claims use for it."""
    found = {}
    for cell in notebook.cells:
        for heading in re.findall(r"(?m)^#+ (.+)$", cell.source) if cell.cell_type == "markdown" else ():
            slug = re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-")
            found[slug] = make_id(re.sub(r"[`*$]", "", heading))
    return found


def _see(target: str | None, headings: Mapping[str, Mapping[str, str]]) -> str:
    if not target:
        return ""
    name, _, slug = target.partition("#")
    place = headings[name].get(slug, "") if slug else ""
    return f'<a href="pages/{name}.html{"#" + place if place else ""}">{name.partition("_")[0]}</a>'


def _plain(text: str) -> str:
    """Text of a row, which is no Markdown, as Markdown that shows it."""
    return re.sub(r"([\\`*_{}\[\]<>#$|~])", r"\\\1", text)


def _fold(cell: Any) -> None:
    marks = tags(cell)
    folded = FOLDED & {*marks}
    if folded:
        marks.append("hide-input")
    if "solution" in marks:
        marks.append("hide-cell")
    word = "the check" if "check" in folded else "what the parameters may be" if "validate" in folded else "the code"
    prompts = {"code_prompt_show": f"Show {word}", "code_prompt_hide": f"Hide {word}"}
    cell.metadata = {"tags": marks, "mystnb": prompts}
    for output in cell.outputs:
        data = output.get("data", {})
        if "<table" in data.get("text/html", ""):  # too long for a page that has the filter elsewhere
            data.pop("text/html")
            data["text/plain"] = 'The whole table, with a filter, is the page "Claims" of this book.'
        if "image/svg+xml" in data:
            data.pop("text/plain", None)


def _exercise(text: str, label: str) -> str:
    """An exercise with its number on the page, which a solution and a teacher call it by."""
    number, body = label.rpartition("-")[2], re.sub(r"^\*\*\d+\.\*\*\s*", "", text)
    return f":::{{exercise}} {number}\n:label: {label}\n:nonumber:\n\n{body}\n:::"


def _solution(text: str) -> str:
    body = re.sub(r"<details><summary>Solution</summary>|</details>", "", text).strip()
    return f":::{{dropdown}} Solution\n\n{body}\n:::"
