"""The book, built from the committed outputs: its links, pictures and editions, and how a browser sees it: formulas,
search, folding, narrow and dark screens, keyboard, contrast, console. Nothing is fetched from another host."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urljoin, urlparse

import pytest
from selenium.webdriver.common.keys import Keys

from browser import Page, eventually
from pqlab.pages import course
from pqlab.pages.book import ROOT, build_site

LARGEST_SITE = 30_000_000  # bytes
LESSONS = course.lessons(ROOT / "notebooks")
pytestmark = pytest.mark.xdist_group("book")


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("book") / "site"
    build_site(folder)
    return folder


class References(HTMLParser):
    """The identifiers of a page, and all that it refers to."""

    def __init__(self) -> None:
        super().__init__()
        self.identifiers: set[str] = set()
        self.targets: list[str] = []
        self.without_text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.identifiers |= {value for name in ("id", "name") if (value := found.get(name))}
        self.targets += [value for name in ("href", "src") if (value := found.get(name))]
        if tag == "img" and not found.get("alt"):
            self.without_text.append(str(found.get("src")))


def references(path: Path) -> References:
    parser = References()
    parser.feed(path.read_text(encoding="utf-8"))
    return parser


# --- the files ------------------------------------------------------------------------------------------------------


def test_the_site_is_small_and_complete(site: Path) -> None:
    assert sum(path.stat().st_size for path in site.rglob("*") if path.is_file()) < LARGEST_SITE
    for name in ("index", "analysts", "students", "researchers", "lecturers", "claims", "symbols", "glossary", "api"):
        assert (site / f"{name}.html").exists(), name
    assert all((site / "pages" / f"{one.name}.html").exists() for one in LESSONS)


def test_every_internal_link_leads_somewhere(site: Path) -> None:
    pages = {path.relative_to(site).as_posix(): references(path) for path in site.rglob("*.html")}
    broken = []
    for name, page in pages.items():
        for target in page.targets:
            parsed = urlparse(target)
            if parsed.scheme or target.startswith("//"):
                continue
            place, fragment = urldefrag(urljoin(name, target))
            place = unquote(place.partition("?")[0]) or name
            lost = fragment and place in pages and unquote(fragment) not in pages[place].identifiers
            if lost or not (site / place).exists():
                broken.append(f"{name}: {target}")
    assert broken == []


def test_nothing_is_fetched_from_elsewhere(site: Path) -> None:
    for path in site.rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        fetched = re.findall(r"<(?:script|img|iframe|source)[^>]+src=\"((?:https?:)?//[^\"]+)\"", text)
        fetched += re.findall(r"<link[^>]+rel=\"(?:stylesheet|preload)\"[^>]+href=\"((?:https?:)?//[^\"]+)\"", text)
        assert fetched == [], path.name


def test_each_picture_says_what_it_shows(site: Path) -> None:
    assert [name for path in site.rglob("*.html") for name in references(path).without_text] == []


def test_the_public_site_holds_no_solutions(site: Path) -> None:
    """The students' edition: exercises, and of their solutions neither words nor code."""
    text = "".join(path.read_text(encoding="utf-8") for path in (site / "pages").glob("*.html"))
    assert text.count('class="exercise') >= 30
    assert "Solution" not in text
    assert "gives the new optimal interval" in text and "The probabilities multiply" not in text


# --- the browser ----------------------------------------------------------------------------------------------------


def count(page: Page, selector: str, condition: str = "true") -> int:
    """How many elements there are for which a condition on `one` holds."""
    script = f"return [...document.querySelectorAll(arguments[0])].filter(one => {condition}).length"
    return int(page.js(script, selector))


def test_formulas_are_set(page: Page, site: Path) -> None:
    page.open(site / "pages" / "01_exponential_mechanism.html")
    assert eventually(lambda: count(page, "mjx-container") > 50)
    assert count(page, "mjx-merror, [data-mjx-error]") == 0
    assert page.requests() == [] and page.console_errors() == []


def test_the_search_finds_a_page(page: Page, site: Path) -> None:
    page.open((site / "search.html").as_uri() + "?q=censored")
    assert eventually(lambda: count(page, "#search-results li a", "one.href.includes('05_convexity')") > 0)
    assert page.requests() == []


def test_checks_are_folded_and_open_on_demand(page: Page, site: Path) -> None:
    page.open(site / "pages" / "00_tour.html")
    folded = count(page, "details.hide", "!one.open")
    assert folded >= 5
    page.js("document.querySelector('details.hide summary').click()")
    assert count(page, "details.hide", "!one.open") == folded - 1


def test_one_goes_on_and_back(page: Page, site: Path) -> None:
    page.open(site / "pages" / f"{LESSONS[0].name}.html")
    for link, lesson in ((".next-page", LESSONS[1]), (".prev-page", LESSONS[0])):
        page.js(f"document.querySelector('{link}').click()")
        assert eventually(lambda lesson=lesson: lesson.name in page.driver.current_url)


def test_claims_are_filtered(page: Page, site: Path) -> None:
    page.open(site / "claims.html")
    rows = ".pq-claims tbody tr"
    whole = count(page, rows, "!one.hidden")
    page.driver.find_element("id", "claims-text").send_keys("Cauchy")
    part = count(page, rows, "!one.hidden")
    assert 0 < part < whole
    page.js("""const s = document.querySelector("#claims-verdict"); s.value = "false as stated";
               s.dispatchEvent(new Event("input"));""")
    assert 0 < count(page, rows, "!one.hidden") < part
    assert page.text("#claims-count").startswith(f"{count(page, rows, '!one.hidden')} of {whole}")


SLIDERS = [one.name for one in LESSONS if "show_slider(" in (ROOT / "notebooks" / f"{one.name}.md").read_text()]


def test_there_are_sliders_for_four_matters() -> None:
    assert len(SLIDERS) >= 4


@pytest.mark.parametrize("name", SLIDERS)
def test_a_slider_moves_curves_by_keyboard_without_a_server(name: str, page: Page, site: Path) -> None:
    page.open(site / "pages" / f"{name}.html")
    curves = "return [...document.querySelectorAll('.pq-slider path.curve')].map(one => one.getAttribute('d')).join()"
    control = page.driver.find_element("css selector", ".pq-slider input")
    assert page.text(".pq-slider label")
    page.js("arguments[0].focus()", control)
    seen = [(page.js(curves), page.text(".pq-slider output"))]
    for _ in range(2):
        control.send_keys(Keys.ARROW_LEFT)
        seen.append((page.js(curves), page.text(".pq-slider output")))
        assert control.get_attribute("aria-valuetext") == seen[-1][1]
    assert len({*seen}) == len({curve for curve, _ in seen}) == len({words for _, words in seen}) == 3
    assert page.axe(".pq-slider") == []
    assert page.requests() == [] and page.console_errors() == []


def test_no_page_asks_any_host_for_anything(page: Page, site: Path) -> None:
    """Every page, opened in the browser and left until all is loaded."""
    asked = {}
    for path in sorted(path for path in site.rglob("*.html") if "_static" not in path.parts):
        page.open(path)
        assert eventually(lambda: page.js("return document.readyState") == "complete")
        asked[path.name] = page.requests()
    assert len(asked) >= len(LESSONS) + 10
    assert {name: found for name, found in asked.items() if found} == {}


def test_a_quiz_answers(page: Page, site: Path) -> None:
    page.open(site / "quiz.html")
    for right, word in (("true", "Right. "), ("false", "No. ")):
        page.js(f"document.querySelector('.pq-quiz input[data-right={right}]').click()")
        assert page.text(".pq-quiz p").startswith(word)


@pytest.mark.parametrize(
    "name", ["index", "claims", "api", "lecturers", "symbols", "pages/00_tour", "pages/03_many_quantiles"]
)
def test_a_phone_shows_all_without_scrolling_sideways(name: str, page: Page, site: Path) -> None:
    page.open(site / f"{name}.html")
    page.resize(390)
    assert eventually(lambda: page.overflow() <= 0), page.overflow()


def test_the_keyboard_reaches_the_cards(page: Page, site: Path) -> None:
    page.open(site / "index.html")
    reached = [page.tab() for _ in range(60)]
    links = [one for one in reached if one["href"] == "analysts.html"]  # in the margin, on the card, as the next page
    assert len(links) >= 3 and all(one["outline"] for one in links)


ACCESSIBLE = [
    "index",
    "analysts",
    "lecturers",
    "claims",
    "quiz",
    "glossary",
    "pages/00_tour",
    "pages/01_exponential_mechanism",
]


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("name", ACCESSIBLE)
def test_a_page_is_accessible(name: str, dark: bool, page: Page, site: Path) -> None:
    """Contrast, names of controls, languages: nothing that axe finds, and no word on the console."""
    page.open(site / f"{name}.html")
    page.dark(dark)
    assert page.axe() == []
    assert page.console_errors() == [] and page.requests() == []
