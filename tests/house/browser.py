"""A real browser for the tests that look at pages: headless Chromium of the system, driven by selenium, with axe.

Without one such a test is left out, aloud; where CI=true it fails. Nothing is ever fetched: the driver is the system's.
"""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from axe_core_python.selenium import Axe
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.keys import Keys

PROGRAMS = ("chromium", "chromedriver")
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
         "--disable-dev-shm-usage", "--disable-component-update", "--disable-sync", "--no-first-run",
         "--no-default-browser-check", "--disable-extensions", "--hide-scrollbars")  # fmt: skip
WCAG_AA = {"runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]}}
LOCAL = re.compile(r"(file|data|blob|about|chrome|devtools):")  # addresses that no host answers
FOCUS = """
const one = document.activeElement, style = getComputedStyle(one);
return {tag: one.tagName.toLowerCase(), text: one.textContent.trim().slice(0, 80), id: one.id,
        href: one.getAttribute("href"),
        outline: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0};
"""


def missing_programs() -> list[str]:
    """What a look at a page needs and this machine has not."""
    return [name for name in PROGRAMS if shutil.which(name) is None]


def leave_out(reason: str) -> None:
    """End a test that this machine cannot run: left out, or failed where CI=true."""
    (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(f"LEFT OUT: {reason}")


class Page:
    """The browser's one window, on one page at a time."""

    def __init__(self, driver: webdriver.Chrome) -> None:
        self.driver = driver
        self._messages: list[str] = []
        self._requests: list[str] = []

    def open(self, path: Path | str, fragment: str = "") -> Page:
        """Open a file, afresh: a computer's window, in light colours, on a screen; what was logged before is gone."""
        address = Path(path).resolve().as_uri() if Path(str(path)).exists() else str(path)
        self.cdp("Emulation.setEmulatedMedia", media="", features=[])
        self.dark(False)
        self.resize(1280, 900)
        self.driver.get("about:blank")
        self._drain()
        self._messages.clear()
        self._requests.clear()
        self.driver.get(address + (f"#{fragment}" if fragment else ""))
        return self

    def cdp(self, command: str, **arguments: Any) -> Any:
        """A command of the browser's own protocol."""
        return self.driver.execute_cdp_cmd(command, arguments)

    def js(self, script: str, *arguments: Any) -> Any:
        """What a script returns."""
        return self.driver.execute_script(script, *arguments)

    def resize(self, width: int, height: int = 800) -> None:
        """Another window, in CSS pixels; one of less than 600 is a phone's."""
        self.cdp(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )

    def dark(self, on: bool = True) -> None:
        """What colours the reader prefers."""
        feature = {"name": "prefers-color-scheme", "value": "dark" if on else "light"}
        self.cdp("Emulation.setEmulatedMedia", media="", features=[feature])

    def paper(self) -> None:
        """As it would be printed."""
        self.cdp("Emulation.setEmulatedMedia", media="print", features=[])

    def pdf(self) -> bytes:
        """The page on sheets of A4."""
        sheet = {"paperWidth": 8.27, "paperHeight": 11.69, "printBackground": False}
        return base64.b64decode(self.cdp("Page.printToPDF", **sheet)["data"])

    def overflow(self) -> int:
        """By how many pixels the page is wider than its window: more than none, and one must scroll sideways."""
        return int(self.js("return document.documentElement.scrollWidth - document.documentElement.clientWidth"))

    def axe(self, context: str | None = None) -> list[str]:
        """What breaks WCAG at level AA, one line for each element; empty where nothing does."""
        found = Axe().run(self.driver, context, WCAG_AA)
        assert found["passes"], "axe looked at nothing"
        return [
            f"{rule['id']}: {' '.join(map(str, node['target']))}: {node['failureSummary']}"
            for rule in found["violations"]
            for node in rule["nodes"]
        ]

    def console_errors(self) -> list[str]:
        """Errors and warnings on the console since the page was opened, refused loads among them."""
        self._drain()
        return list(self._messages)

    def requests(self) -> list[str]:
        """Addresses that were asked for since the page was opened, those of this computer's own files left out."""
        self._drain()
        return [address for address in self._requests if not LOCAL.match(address)]

    def _drain(self) -> None:
        self._messages += [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] != "INFO"]
        for entry in self.driver.get_log("performance"):
            event = json.loads(entry["message"])["message"]
            if event["method"] == "Network.requestWillBeSent":
                self._requests.append(event["params"]["request"]["url"])

    def tab(self) -> dict[str, Any]:
        """Press the tabulator; what then has the focus: tag, text, id, href, and whether an outline shows it."""
        self.driver.switch_to.active_element.send_keys(Keys.TAB)
        return dict(self.js(FOCUS))

    def text(self, selector: str) -> str:
        """What one element shows."""
        return str(self.driver.find_element("css selector", selector).text)

    def style(self, selector: str, name: str) -> str:
        """A computed property of one element."""
        return str(self.js(f"return getComputedStyle(document.querySelector(arguments[0])).{name}", selector))

    def screenshot(self, path: Path) -> Path:
        """A picture of the whole page as it is now."""
        shot = self.cdp("Page.captureScreenshot", captureBeyondViewport=True, format="png")
        path.write_bytes(base64.b64decode(shot["data"]))
        return path


@contextmanager
def chromium(profile: Path) -> Iterator[Page]:
    """A browser with a fresh profile; it is gone afterwards."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which(PROGRAMS[0]) or ""
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(shutil.which(PROGRAMS[1])))
    try:
        driver.set_page_load_timeout(60)
        driver.set_script_timeout(60)
        yield Page(driver)
    finally:
        driver.quit()


def eventually(holds: Any, seconds: float = 10.0) -> bool:
    """Whether something comes true in time: pages may take a moment."""
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True
