"""The book in a real browser: links, formulas, search, folding, narrow and dark screens, keyboard, contrast, console.

The site is built from the committed outputs and served to this machine; the browser reaches nothing else. Without
Chromium the tests are left out, and with CI=true that is a failure.
"""

from __future__ import annotations

import functools
import http.server
import os
import re
import shutil
import threading
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin, urlparse

import pytest

from pqlab.pages import course
from pqlab.pages.book import ROOT, build_site

BROWSER = shutil.which("chromium")
if os.environ.get("CI") == "true" and BROWSER is None:
    raise RuntimeError("Chromium is missing: run `make system`")

LARGEST_SITE = 30_000_000  # bytes
LESSONS = course.lessons(ROOT / "notebooks")


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("book") / "site"
    build_site(folder)
    return folder


@pytest.fixture(scope="session")
def address(site: Path) -> Iterator[str]:
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: Any) -> None: ...

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="session")
def driver() -> Iterator[Any]:
    if BROWSER is None:
        pytest.skip("Chromium is missing: run `make system`")
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    for flag in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--window-size=1280,900",
                 "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"):  # fmt: skip
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = webdriver.Chrome(options=options)
    yield browser
    browser.quit()


def wait(driver: Any, script: str, seconds: float = 20) -> Any:
    from selenium.webdriver.support.ui import WebDriverWait

    return WebDriverWait(driver, seconds).until(lambda one: one.execute_script(script))


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
    assert "gives the new values" in text and "The probabilities multiply" not in text


# --- the browser ----------------------------------------------------------------------------------------------------


def test_formulas_are_set(driver: Any, address: str) -> None:
    driver.get(address + "pages/01_exponential_mechanism.html")
    assert wait(driver, "return document.querySelectorAll('mjx-container').length") > 50
    assert driver.execute_script("return document.querySelectorAll('mjx-merror, [data-mjx-error]').length") == 0


def test_the_search_finds_a_page(driver: Any, address: str) -> None:
    driver.get(address + "search.html?q=censored")
    assert wait(driver, "return document.querySelectorAll('#search-results li a').length") >= 1
    links = driver.execute_script("return [...document.querySelectorAll('#search-results li a')].map(a => a.href)")
    assert any("05_convexity" in link for link in links)


def test_checks_are_folded_and_open_on_demand(driver: Any, address: str) -> None:
    driver.get(address + "pages/00_tour.html")
    folded = "return [...document.querySelectorAll('details.hide')].filter(d => !d.open).length"
    before = driver.execute_script(folded)
    assert before >= 5
    driver.execute_script("document.querySelector('details.hide summary').click()")
    assert driver.execute_script(folded) == before - 1


def test_one_goes_on_and_back(driver: Any, address: str) -> None:
    driver.get(address + f"pages/{LESSONS[0].name}.html")
    driver.execute_script("document.querySelector('a.next-page').click()")
    assert wait(driver, f"return location.href.includes('{LESSONS[1].name}')")
    driver.execute_script("document.querySelector('a.prev-page').click()")
    assert wait(driver, f"return location.href.includes('{LESSONS[0].name}')")


def test_claims_are_filtered(driver: Any, address: str) -> None:
    driver.get(address + "claims.html")
    seen = "return [...document.querySelectorAll('.pq-claims tbody tr')].filter(r => !r.hidden).length"
    whole = driver.execute_script(seen)
    driver.find_element("id", "claims-text").send_keys("Cauchy")
    part = driver.execute_script(seen)
    assert 0 < part < whole
    driver.execute_script("""const s = document.querySelector('#claims-verdict'); s.value = 'false as stated';
                             s.dispatchEvent(new Event('input'));""")
    assert 0 < driver.execute_script(seen) < part


def test_a_quiz_answers(driver: Any, address: str) -> None:
    driver.get(address + "quiz.html")
    driver.execute_script("document.querySelector('.pq-quiz input[data-right=true]').click()")
    assert driver.execute_script("return document.querySelector('.pq-quiz p').textContent").startswith("Right. ")
    driver.execute_script("document.querySelector('.pq-quiz input[data-right=false]').click()")
    assert driver.execute_script("return document.querySelector('.pq-quiz p').textContent").startswith("No. ")


@pytest.mark.parametrize("name", ["index", "claims", "api", "lecturers", "pages/00_tour", "pages/03_many_quantiles"])
def test_a_phone_shows_all_without_scrolling_sideways(name: str, driver: Any, address: str) -> None:
    driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": 390, "height": 800, "deviceScaleFactor": 2, "mobile": True}
    )
    try:
        driver.get(address + name + ".html")
        wait(driver, "return document.readyState === 'complete'")
        width = driver.execute_script("return document.documentElement.scrollWidth")
    finally:
        driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert width <= 392


def test_the_keyboard_reaches_the_content(driver: Any, address: str) -> None:
    from selenium.webdriver.common.keys import Keys

    driver.get(address + "index.html")
    reached = []
    for _ in range(30):
        driver.switch_to.active_element.send_keys(Keys.TAB)
        reached.append(driver.execute_script("return document.activeElement.getAttribute('href') || ''"))
    assert any("analysts" in target for target in reached), reached


ACCESSIBLE = ["index", "analysts", "lecturers", "claims", "quiz", "glossary", "pages/00_tour", "pages/09_privacy"]


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", ACCESSIBLE)
def test_a_page_is_accessible(name: str, theme: str, driver: Any, address: str) -> None:
    """Contrast, names of controls, languages, landmarks: no serious finding of axe, and no word on the console."""
    from axe_core_python.selenium import Axe

    driver.get_log("browser")
    driver.get(address + name + ".html")
    driver.execute_script(f"document.body.dataset.theme = '{theme}'")
    wait(driver, "return document.readyState === 'complete'")
    found = Axe().run(driver)["violations"]
    serious = {
        one["id"]: [node["target"] for node in one["nodes"]][:3]
        for one in found
        if one["impact"] in ("serious", "critical")
    }
    assert serious == {}
    assert [line["message"] for line in driver.get_log("browser") if line["level"] == "SEVERE"] == []
