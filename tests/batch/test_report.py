"""The report of a batch: what it says, and that nothing from outside is more than text in it."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest
from markdown_it import MarkdownIt

from codeagent_lsp.batch.command import write_report
from codeagent_lsp.batch.report import (
    DECIMAL,
    SECONDS,
    bins,
    code,
    duration,
    percent,
    report_summary,
    short_count,
)
from codeagent_lsp.batch.report_page import task_row
from codeagent_lsp.batch.results import TaskResult
from codeagent_lsp.errors import UsageError
from tests.batch.reports import HOSTILE, hostile, many, result, unsolved

LANGUAGES = ("en", "zh-cn")
VOID = {"meta", "link", "input"}


class Page(HTMLParser):
    """The tags of a page, and its text; a tag that is closed in the wrong place fails."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words = ""
        self._open: list[str] = []
        self.feed(html)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] not in ("script", "style"):
            self.words += f"{data} "

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def written(folder: Path, results: Sequence[TaskResult], language: str = "en") -> tuple[Page, str]:
    """The page and the summary of these results."""
    html, markdown = (path.read_text("utf-8") for path in write_report(folder, results, language))
    return Page(html), markdown


def test_the_figures_that_are_seen_first(tmp_path: Path) -> None:
    results = [result("a"), result("b", checked=False, seconds=50.0), unsolved("c", cost=0.5, seconds=130.0)]
    page, markdown = written(tmp_path, results)
    for words in ("2 of 3", "67 %; 1 of them without a check", "$0.54", "61.5 k", "50 s"):
        assert words in page.words
        assert words in markdown
    assert "60 k read, 50 % of them from the cache; 1.5 k written" in page.words
    assert "$0.27 for each that is solved" in page.words
    assert "some-model, begun 2027-01-15 08:00 UTC, 2 min 10 s in all" in page.words


def test_outcomes_with_what_they_cost(tmp_path: Path) -> None:
    results = [result("a"), unsolved("b"), unsolved("c"), unsolved("d", reason="timeout", cost=None)]
    page, markdown = written(tmp_path, results)
    assert "| Solved | 1 | 25 % | $0.02 | 30 s |" in markdown
    assert "| The check failed | 2 | 50 % | $0.04 | 30 s |" in markdown
    assert "| Its time was over | 1 | 25 % | not known | 30 s |" in markdown
    assert "1 of 4 solved by their checks, 0 done without a check, 3 not solved." in page.words


def test_an_unknown_cost_is_never_nothing(tmp_path: Path) -> None:
    page, markdown = written(tmp_path, [result("a", cost=None), unsolved("b", cost=None)])
    assert "$0" not in page.words + markdown
    assert "Cost: **not known**" in markdown and "No prices are known of this model." in page.words
    page, markdown = written(tmp_path, [result("a", cost=None), result("b")])
    assert "**$0.02 (not known for 1 of 2)**" in markdown and "not known for 1 of 2" in page.words


def test_a_task_that_used_no_model_cost_nothing_that_is_unknown(tmp_path: Path) -> None:
    none = {"cost": None, "prompt_tokens": 0, "completion_tokens": 0, "status": ""}
    _, markdown = written(tmp_path, [result("a"), unsolved("b", reason="setup", **none)])
    assert "- Cost: **$0.02**\n" in markdown and "not known" not in markdown


@pytest.mark.slow
@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(
    "results",
    [[], [result()], [unsolved()], [result("a", cost=0.0, seconds=0.0, started=0.0)], many(40)],
    ids=["none", "one", "not-solved", "zeros", "many"],
)
def test_any_batch_makes_a_page(tmp_path: Path, results: list[TaskResult], language: str) -> None:
    page, markdown = written(tmp_path, results, language)
    assert page.all("html") == [{"lang": "zh-CN" if language == "zh-cn" else "en"}]
    rows = [row for row in page.all("tr") if "data-outcome" in row]
    assert len(rows) == len(results)
    outcomes = [head for head in page.all("th") if head == {"scope": "row"}]
    assert len(outcomes) == len({row["data-outcome"] for row in rows})
    assert markdown.startswith("## ")


@pytest.mark.slow
def test_two_thousand_tasks(tmp_path: Path) -> None:
    html, markdown = (path.read_text("utf-8") for path in write_report(tmp_path, many(2000), "en"))
    assert html.count('<tr role="row" data-outcome') == 2000
    assert markdown.count("\n| `task-") == 200 and markdown.endswith("… and 1800 more.\n")
    assert len(html) < 4_000_000


@pytest.mark.slow
def test_the_summary_fits_into_a_comment_however_long_its_texts_are() -> None:
    results = [unsolved(f"{number:03d}{'i' * 97}", error="\u202e漢" * 500, files=("a",)) for number in range(200)]
    assert len(report_summary(results, "en")) < 65_536  # GitHub's limit


def test_those_not_solved_come_first(tmp_path: Path) -> None:
    page, markdown = written(tmp_path, [result("a"), unsolved("z"), unsolved("y"), result("b")])
    order = [head["data-value"] for head in page.all("th") if head.get("role") == "rowheader"]
    assert order == ["y", "z", "a", "b"]
    assert re.findall(r"^\| `(\w)`", markdown, re.MULTILINE) == order


@pytest.mark.parametrize("language", LANGUAGES)
def test_nothing_from_outside_is_more_than_text_on_the_page(tmp_path: Path, language: str) -> None:
    page, _ = written(tmp_path, [hostile(), result()], language)
    plain, _ = written(tmp_path, [unsolved("x", task="x", error="x\ny", files=("x", "y")), result()], language)
    assert [tag for tag, _ in page.tags] == [tag for tag, _ in plain.tags]
    assert {name for _, attributes in page.tags for name in attributes} == {
        name for _, attributes in plain.tags for name in attributes
    }
    for unseen in ("\x1b", "\u202e", "\u200b", "\x00", "\ud800"):
        assert unseen not in page.words
        assert f"<U+{ord(unseen):04X}>" in page.words


def test_a_policy_that_allows_its_own_style_and_script_alone(tmp_path: Path) -> None:
    page, _ = written(tmp_path, [result()])
    (policy,) = [meta["content"] for meta in page.all("meta") if "http-equiv" in meta]
    assert policy and policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy and "http" not in policy and "*" not in policy
    sources = [attributes[name] for _, attributes in page.tags for name in ("src", "href") if name in attributes]
    assert sources == ["data:,"]
    assert not [attributes for _, attributes in page.tags if any(name.startswith("on") for name in attributes)]


def test_a_long_error_can_be_opened_and_ends(tmp_path: Path) -> None:
    html = task_row(tmp_path, unsolved(error="word " * 2000), "en")
    assert "<details><summary>word word" in html and "… and 8,000 more characters" in html
    assert len(html) < 4000


def test_links_to_the_files_that_are_there(tmp_path: Path) -> None:
    name = "a#b?c\"d' %2e&"
    (tmp_path / name).mkdir()
    for file in ("changes.patch", "session.jsonl.gz"):
        (tmp_path / name / file).touch()
    page, _ = written(tmp_path, [result(name)])
    targets = [unquote(link["href"] or "") for link in page.all("a")]
    assert targets == [f"{name}/changes.patch", f"{name}/session.jsonl.gz"]
    assert all(set(link["href"] or "").isdisjoint("#?\"' &") for link in page.all("a"))


@pytest.mark.parametrize("name", ["..", ".", "", "../other", "a/../../other", "a\\b", "a\0b"])
def test_an_id_leads_nowhere_else(tmp_path: Path, name: str) -> None:
    (tmp_path / "changes.patch").touch()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "changes.patch").touch()
    (tmp_path / "batch").mkdir()
    page, _ = written(tmp_path / "batch", [result(name)])
    assert page.all("a") == []


def test_charts_say_in_words_what_they_draw(tmp_path: Path) -> None:
    write_report(tmp_path, many(60), "en")
    html = (tmp_path / "report.html").read_text("utf-8")
    charts = [ElementTree.fromstring(svg) for svg in re.findall(r'<svg class="chart.*?</svg>', html, re.DOTALL)]
    assert len(charts) == 4
    for chart in charts:
        title, desc = (chart.find(name) for name in ("title", "desc"))
        assert title is not None and desc is not None and title.text and desc.text
        assert chart.get("aria-labelledby") == f"{title.get('id')} {desc.get('id')}"
    counted = sum(int(number) for number in re.findall(r": (\d+) task", charts[1].findtext("desc") or ""))
    assert counted == 60


def test_nothing_from_outside_is_more_than_text_in_the_summary(tmp_path: Path) -> None:
    _, markdown = written(tmp_path, [hostile(), hostile("`"), hostile("\\"), hostile("``` \\| ```"), result()])
    assert "\u202e" not in markdown and "\x1b" not in markdown
    html = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).render(markdown)
    assert html.count("<tr>") == 3 + 1 + 5
    assert set(re.findall(r"</?(\w+)", html)) == {
        *("h2", "ul", "li", "strong", "table", "thead", "tbody", "tr", "th", "td", "code")
    }
    outside = re.sub(r"<code>.*?</code>", "", html)
    for sign in ("@", "#", "http", "evil", "`", "[", "\\"):
        assert sign not in outside


@pytest.mark.parametrize("value", ["`", "``", "a`b``c", "\\", "a\\", "|", "\\|", "a\nb", " x ", HOSTILE])
def test_a_code_span_is_one(value: str) -> None:
    html = (
        MarkdownIt("commonmark", {"html": True})
        .enable("table")
        .render(f"| h | i |\n| - | - |\n| {code(value)} | x |\n")
    )
    assert html.count("<td>") == 2 and html.count("<code>") == 1
    assert re.search(r"<td><code>[^<]*</code></td>", html)
    assert code("") == code(" \n") == ""


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be written"):
        write_report(tmp_path / "none", [result()], "en")


def test_a_reason_of_a_later_version_is_a_failure(tmp_path: Path) -> None:
    _, markdown = written(tmp_path, [unsolved(reason="unheard of")])
    assert "✗ The run failed" in markdown


@pytest.mark.parametrize(
    ("values", "edges"),
    [
        ([], []),
        ([0.0, 0.0], [0, 1]),
        ([10.0], [0, 2, 4, 6, 8, 10]),
        ([1.0, 3.4], [0, 0.5, 1, 1.5, 2, 2.5, 3, 3.5]),
        ([0.3, 1.0, 90.0], [0, 0.5, 1, 2, 5, 10, 20, 50, 100]),
        ([0.0, 5.0], [0, 1, 2, 3, 4, 5]),
    ],
)
def test_the_bars_of_a_distribution(values: list[float], edges: list[float]) -> None:
    found = bins([(value, True) for value in values], DECIMAL)
    assert [item.low for item in found] + [item.high for item in found[-1:]] == pytest.approx(edges)
    assert sum(item.count for item in found) == sum(item.solved for item in found) == len(values)


@pytest.mark.parametrize("high", [1e-9, 0.07, 3.0, 1e5, 1e9, 1e15])
@pytest.mark.parametrize("low", [0.0, 1e-9, 0.01, 1.0])
def test_any_values_have_few_bars(low: float, high: float) -> None:
    for steps in (DECIMAL, SECONDS):
        found = bins([(low, False), (high, True)], steps)
        assert 1 <= len(found) <= 20
        assert sum(item.count for item in found) == 2
        assert all(item.low < item.high for item in found)


def test_figures_in_words() -> None:
    assert [duration(value) for value in (None, 0.04, 9.96, 59.6, 130, 3600, 3840)] == [
        *("–", "0 s", "10 s", "1 min", "2 min 10 s", "1 h", "1 h 4 min")
    ]
    assert [short_count(value) for value in (0, 999, 1000, 12_345, 999_600, 4.2e9)] == [
        *("0", "999", "1 k", "12.3 k", "1 M", "4.2 G")
    ]
    assert [percent(*pair) for pair in ((0, 3), (1, 1000), (999, 1000), (3, 3), (0, 0))] == [
        *("0 %", "1 %", "99 %", "100 %", "0 %")
    ]
