"""The report in a real browser: light and dark, wide and narrow, by keyboard, printed, and without its script."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from codeagent_lsp.batch.command import write_report
from codeagent_lsp.tools.web.scraping import browser_of
from tests.batch.reports import hostile, many, result, unsolved

BROWSER = browser_of(os.environ.get("PATH", ""))
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        BROWSER is None or importlib.util.find_spec("playwright") is None, reason="no Chromium or no playwright here"
    ),
]

# The texts of a page whose contrast with what is behind them is below WCAG's 4.5, by its formula of relative luminance.
PALE = """() => {
  const parts = (color) => color.match(/[\\d.]+/g).map(Number);
  const channel = (value) => (value /= 255) <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  const light = ([red, green, blue]) => 0.2126 * channel(red) + 0.7152 * channel(green) + 0.0722 * channel(blue);
  const behind = (element) => {
    for (; element; element = element.parentElement) {
      const color = parts(getComputedStyle(element).backgroundColor);
      if (color.length < 4 || color[3] === 1) return color;
    }
    return [255, 255, 255];
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const found = [];
  let seen = 0;
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    const silent = ["SCRIPT", "STYLE", "title", "desc", "OPTION"].includes(element.tagName);
    const hidden = silent || !element.checkVisibility();
    if (hidden || !walker.currentNode.data.trim()) continue;
    const style = getComputedStyle(element);
    const both = [light(parts(element instanceof SVGElement ? style.fill : style.color)), light(behind(element))];
    const contrast = (Math.max(...both) + 0.05) / (Math.min(...both) + 0.05);
    seen += 1;
    if (contrast < 4.5) found.push(`${contrast.toFixed(2)} ${walker.currentNode.data}`);
  }
  return [seen, found];
}"""

# What lies beyond the right edge of the window.
CUT = """[...document.querySelectorAll("main *")]
  .filter((each) => each.checkVisibility() && !each.closest(".unseen, svg, thead"))
  .filter((each) => each.getBoundingClientRect().right > innerWidth + 1)
  .map((each) => each.outerHTML.slice(0, 80))"""


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright  # not everywhere installed

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=BROWSER, chromium_sandbox=os.geteuid() != 0, args=["--disable-gpu"], timeout=120_000
        )
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of a report of many tasks, some of them hostile or with very long words."""
    folder = tmp_path_factory.mktemp("batch")
    results = [*many(30), result("n-o-check", checked=False), hostile("hostile"), hostile()]
    results += [unsolved("w" * 100, error="e" * 10_000, task="t" * 5000, cost=None, files=("f" * 300,) * 60)]
    for item in results[:5]:
        (folder / item.id).mkdir()
        (folder / item.id / "changes.patch").write_text("patch")
    return write_report(folder, results, "en")[0].as_uri()


@contextmanager
def opened(chromium: Any, address: str, width: int = 1280, **options: Any) -> Iterator[Any]:
    """The page in a window of this width; in the end nothing was asked for elsewhere and nothing complained."""
    context = chromium.new_context(viewport={"width": width, "height": 900}, **options)
    try:
        page = context.new_page()
        said: list[str] = []
        asked: list[str] = []

        def refuse(dialog: Any) -> None:
            said.append(dialog.message)
            dialog.dismiss()

        page.on("dialog", refuse)
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(address)
        yield page
        assert said == []
        assert set(asked) <= {address, "data:,"}
    finally:
        context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 800, 400, 320])
def test_it_can_be_read(chromium: Any, report: str, width: int, scheme: str) -> None:
    with opened(chromium, report, width, color_scheme=scheme) as page:
        page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        seen, pale = page.evaluate(PALE)
        assert seen > 300 and pale == []
        back = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (back == "rgb(245, 246, 248)") == (scheme == "light")
        assert page.evaluate(CUT) == []


def test_a_contrast_that_is_too_low_is_found(chromium: Any, report: str) -> None:
    with opened(chromium, report) as page:
        page.evaluate("document.querySelector('h1').style.color = '#999'")
        assert [line.split(" ", 1)[1] for line in page.evaluate(PALE)[1]] == ["Report of a batch"]


def test_sorted_and_filtered_by_keyboard(chromium: Any, report: str) -> None:
    with opened(chromium, report) as page:
        costs = "[...document.querySelectorAll('#tasks tbody tr')].map((row) => Number(row.cells[4].dataset.value))"
        page.get_by_role("button", name="Cost").focus()
        page.keyboard.press("Enter")
        assert page.evaluate(costs) == sorted(page.evaluate(costs))
        assert (
            page.locator("#tasks").get_by_role("columnheader", name="Cost", exact=True).get_attribute("aria-sort")
            == "ascending"
        )
        page.keyboard.press("Space")
        assert page.evaluate(costs) == sorted(page.evaluate(costs), reverse=True)
        page.get_by_label("Show").select_option("done")
        assert page.locator("#tasks tbody tr:visible").count() == page.locator("tr[data-outcome=done]").count() > 0
        page.get_by_label("Show").select_option("open")
        page.get_by_label("Find").fill("HOSTILE")
        assert page.locator("#tasks tbody tr:visible").count() == 1
        assert page.get_by_role("status").inner_text() == "1 of 34 tasks are shown."


def test_what_a_screen_reader_is_told(chromium: Any, report: str) -> None:
    for width in (1280, 400):  # narrow, the rows look like cards
        with opened(chromium, report, width) as page:
            table = page.get_by_role("table", name="Tasks", exact=True)
            assert table.get_by_role("row").count() == 35
            assert table.get_by_role("columnheader").count() == 7
            assert table.get_by_role("rowheader", name="task-0000").count() == 1
            assert page.get_by_role("img").count() == 4
            assert page.get_by_role("img", name="Cost of a task").count() == 1
            assert page.get_by_role("link", name="patch task-0000", exact=True).count() == 1
            assert page.get_by_role("heading", level=1).count() == 1


def test_a_link_opens_the_file_of_its_task(chromium: Any, report: str) -> None:
    with opened(chromium, report) as page:
        target = page.get_by_role("link", name="patch task-0000", exact=True).get_attribute("href")
        assert page.evaluate("(target) => new URL(target, location).href", target) == report.replace(
            "report.html", "task-0000/changes.patch"
        )


def test_without_its_script(chromium: Any, report: str) -> None:
    with opened(chromium, report, java_script_enabled=False) as page:
        assert page.locator("#tasks tbody tr:visible").count() == 34
        assert not page.locator("#tools").is_visible()
        page.locator("summary").first.click()
        assert page.locator("details[open]").count() == 1


def test_printed_it_is_dark_on_white(chromium: Any, report: str) -> None:
    with opened(chromium, report, color_scheme="dark") as page:
        page.emulate_media(media="print")
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert page.evaluate(PALE)[1] == []
        assert not page.locator("#tools").is_visible()


@pytest.mark.volume
def test_two_thousand_tasks_are_quickly_there(chromium: Any, tmp_path: Path) -> None:
    with opened(chromium, write_report(tmp_path, many(2000), "zh-cn")[0].as_uri()) as page:
        milliseconds = page.evaluate(
            "() => { const begun = performance.now(); document.querySelector('thead button').click(); "
            "document.body.offsetHeight; return performance.now() - begun; }"
        )
        assert milliseconds < 5000
        assert page.locator("#shown").inner_text() == "显示 2000 / 2000 个任务。"
