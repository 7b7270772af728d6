"""The transcript: everything that was said, and nothing in it is live."""

from __future__ import annotations

import html
import random
import re
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from typing import Any, get_args

import pytest
from markdown_it import MarkdownIt

from codeagent_lsp import events
from codeagent_lsp.session.transcript import block, inert, render, replay_events


def said(content: str) -> events.Event:
    return events.MessageAdded(message={"role": "assistant", "content": content})


def test_a_whole_run() -> None:
    text = render(
        [
            events.RunStarted(task="Fix the\nbug", title="Fix"),
            said("I look."),
            events.ToolCalls(calls=({"name": "read_file", "arguments": {"path": "a`b.py"}},)),
            events.ToolFinished(tool="read_file", success=False, error="no\nsuch file"),
            events.ApprovalRequested(title="Apply?"),
            events.ApprovalResolved(answer="Yes"),
            events.QuestionAnswered(answer=None),
            events.ChangesApplied(outcome="partial", files_changed=("a",)),
            events.ChangesApplied(outcome="full", files_changed=("a", "b"), undo=True),
            events.ChangesDiscarded(files_changed=("c",)),
            events.RunCompleted(status="stopped", summary="limit"),
            events.RunCompleted(status="failed", error="The model is gone."),
        ]
    )
    for part in (
        "## Fix\n\n> Fix the\n> bug\n",
        "I look.\n\n",
        "- `read_file a'b.py`\n",
        "  - read_file failed: no such file\n",
        "**Apply?**",
        "> Yes",
        "> (no answer)",
        "*Applied only in part: 1 file.*",
        "*Undone: 2 files.*",
        "*Discarded: 1 file.*",
        "*Stopped. limit*",
        "**The model is gone.**",
    ):
        assert part in text


@pytest.mark.parametrize("status", set(get_args(events.RunStatus)) - {"completed", "waiting"})
@pytest.mark.parametrize("outcome", get_args(events.Outcome))
@pytest.mark.parametrize("verdict", [*get_args(events.Verdict), None])
def test_it_speaks_chinese_whatever_has_happened(status: Any, outcome: Any, verdict: Any) -> None:
    told = render(
        [
            events.ChangesApplied(outcome=outcome, verdict=verdict, files_changed=("a",)),
            events.RunCompleted(status=status),
            events.ToolFinished(tool="t", success=False, error="1"),
        ],
        "zh-cn",
    )
    assert not re.search("[A-Za-z]{2}", told)


def test_a_plan_in_the_transcript() -> None:
    text = render(
        [
            events.PlanCreated(goal="Move\nit", steps=({"step_id": "1", "title": "look\nfirst"}, {"step_id": "2"})),
            events.StepStarted(step_id="1", description="look first"),
            events.StepError(step_id="1", error="no\nmodel"),
            events.ReplanWarning(reason="no model"),
            events.PlanModified(rolled_back_to="1"),
            events.PlanModified(document="# secret"),
        ]
    )
    for part in (
        "**Move it**\n\n1. look first\n2. \n",
        "### 1. look first\n",
        "*Step 1 failed: no model*",
        "*The rest of the plan was changed.*",
        "*Rolled back to before step 1.*",
    ):
        assert part in text
    assert "secret" not in text


def test_events_that_add_nothing() -> None:
    user = events.MessageAdded(message={"role": "user", "content": "x"})
    for event in (events.Token(content="x"), user, events.RunCompleted(), events.ToolFinished(success=True)):
        assert block(event) == ""


LIVE = {
    "image": "![x](http://evil.example/p.png?d=1)",
    "image by reference": "![x][r]\n\n[r]: http://evil.example/p.png",
    "image in a link": "[![x](http://evil.example/p.png)](http://a.example)",
    "nested alternative": "![a [b] c](http://evil.example/p)",
    "alternative over lines": "![a\nb](http://evil.example/p)",
    "command link": "[click](command:workbench.action.terminal.new)",
    "command in brackets": "[click](<command:foo bar>)",
    "command on the next line": "[click](\ncommand:foo)",
    "upper case": "[click](COMMAND:foo)",
    "entity": "[click](&#99;ommand:foo)",
    "escape": "[click](command\\:foo)",
    "file": "[click](file:///etc/passwd)",
    "script": "[click](javascript:alert(1))",
    "data": "[click](data:text/html,x)",
    "editor": "[click](vscode://ext/run)",
    "definition": "[click][r]\n\n[r]: command:foo",
    "definition over lines": "[click][r]\n\n[r]:\n  command:foo",
    "definition in a quote": "[r]\n\n> [r]: command:foo",
    "blanks before a command": "[click]( command:foo) and [click](\tcommand:foo)",
    "html with its attributes on the next line": "<p\nonclick=x>text</p> <p class\nonclick=x>",
    "autolink": "<command:foo>",
    "html image": "<img src=http://evil.example/p>",
    "html over lines": "<img\nsrc='http://evil.example/p'>",
    "html after a backslash": "\\<img src='http://evil.example/p'>",
    "html link": "<a href='command:foo'>x</a>",
    "style": "<style>body{background:url(http://evil.example)}</style>",
    "frame": "<iframe src=//evil.example></iframe>",
    "attribute": "<div style='background:url(//evil.example)'>x</div>",
    "fence in a list": "- ```\n  ```\n![x](http://evil.example/p)",
    "fence in html": "<div>\n```\n\n![x](http://evil.example/p)",
    "fence in a quote": "> ```\n\n![x](http://evil.example/p)\n```\n![y](http://evil.example/p)",
    "fence with a tick in its info": "``` a`b\n![x](http://evil.example/p)",
    "fence closed by a longer one": "```\ncode\n````\n![x](http://evil.example/p)",
    "fence at a lone carriage return": "```\rcode\r```\r![x](http://evil.example/p)",
}
SHAPES = ("![", "](command:", "](COMMAND:", "](<", "](\n", "](&", "](file:", "](javascript:", "](data:", "](vscode:")
MORE_SHAPES = ("]: command:", "]:\n", "<img", "<a h", "<style", "<iframe", "<div s", "<command:", "](command\\")
OVER_BLANKS = ("]( c", "](\tc", "<p\n", "<p class\n")


@pytest.mark.parametrize("name", LIVE)
def test_nothing_stays_live(name: str) -> None:
    shown = inert(LIVE[name])
    assert not [shape for shape in (*SHAPES, *MORE_SHAPES, *OVER_BLANKS) if shape in shown]
    assert not [shape for shape in (*SHAPES, *MORE_SHAPES, *OVER_BLANKS) if shape in block(said(LIVE[name]))]


ADDRESSES = (
    *(
        "command:x",
        "&#99;ommand:x",
        "command&#58;x",
        "javascript&colon;x",
        "javascript\\:x",
        "a.b:c",
        "//evil.example/x",
    ),
    *("vscode://x", "file:///etc/passwd", "data:text/html,x", "&NewLine;command:x", "http:command"),
    *("COMMAND:X", "\\\\evil\\x", "mailto:x", "java&Tab;script:x", "?command:x", "http&#58;//x/../command:x"),
)
PLACES = (
    *("[x](§)", "[x]( §)", "[x](\n§)", "[x](<§>)", "[x]( <§> )", '[x](§\n"t")', "[x](./§)", "[x](&#32;§)", "<§>"),
    *("[y]: §\n\n[y]", "[y]:\n   <§>\n\n[y]", '[y]: § "t"\n\n[y]', "> [y]:\n> §\n\n[y]", "1. [y]: <§>\n\n[y]"),
    *("[a\nb]: §\n\n[a b]", "[![a](b)](§)", "# [x](§)", "| [x](§) |\n|---|\n| [y](<§>) |", "a\r[y]: §\r\r[y]"),
    *("```\n[x](§)\n``` x\n[y](§)\n```\n[z](§)", "- ```\n  ```\n[y](§)", "<a href='§'>x</a>", "<a\n\nhref=§>x</a>"),
)
SWALLOWING = ("textarea", "title", "plaintext", "xmp", "template", "noscript", "select", "dialog", "style", "script")


@pytest.mark.parametrize("place", PLACES)
def test_no_address_leads_elsewhere_than_to_the_web_or_a_file(place: str) -> None:
    parser = MarkdownIt("commonmark", {"html": True}).enable("table")
    parser.validateLink = lambda url: True  # type: ignore[method-assign]
    for address in ADDRESSES:
        shown = parser.render(inert(place.replace("§", address)))
        found = [html.unescape(href) for href in re.findall(r"<a\s[^>]*?href=[\"']?([^\"'>]*)", shown)]
        assert not [href for href in found if re.match(r"//|(?!https?://)[\w+.-]+:", href)], (address, shown)


@pytest.mark.parametrize("name", SWALLOWING)
def test_no_element_hides_what_follows(name: str) -> None:
    for before in ("", "- ", "> ", "text ", "```\nx\n```\n"):
        assert f"<{name}" not in inert(f"{before}<{name}>\n\nwhat is asked")
        assert f"<{name.upper()}" not in inert(f"{before}<{name.upper()}\n>what is asked")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("```\ncode", "```\n<img src=x>\n```"),
        ("~~~", "~~~\n[x](command:y)\n~~~"),
        ("<pre>", "```\n<img src=x>\n```"),
        ("text\n````\n```", "```\n<p onclick=x>\n```"),
    ],
)
def test_what_one_event_leaves_open_makes_nothing_of_the_next_one_live(before: str, after: str) -> None:
    assert _live(block(said(before)) + block(said(after))) == []


def test_a_tag_in_a_tag_is_none() -> None:
    assert _live(inert("<div>\n<p<b onclick=x>\n</div>")) == [] and _live("<div>\n<p<b onclick=x>\n</div>") != []


PIECES = (
    *(
        "```",
        "~~~\n",
        "`",
        "<!--",
        "-->",
        "<p",
        "<div>",
        "<pre>",
        "</pre>",
        "[x](",
        "command:y)",
        "[x](command:y)",
        "[y]: ",
    ),
    *(
        "![",
        "](http://e/i)",
        "<img src=x>",
        "\n",
        "\n\n",
        " ",
        "    ",
        "- ",
        "> ",
        "[y]",
        "onclick=a>",
        "<a",
        "<![CDATA[",
    ),
    *("<script", "\r", "\t", "<?", "|", "1. ", "text", "\\", "<style>", "&#58;", "<textarea>"),
)


@pytest.mark.slow
def test_no_sequence_of_events_is_live() -> None:
    chance = random.Random(7)
    for _ in range(400):
        words = ["".join(chance.choices(PIECES, k=chance.randint(1, 6))) for _ in range(8)]
        made = [
            said(words[0]),
            events.RunStarted(task=words[1], title=words[1]),
            events.Stdout(content=words[2]),
            events.StepError(step_id=words[3], error=words[3]),
            events.ToolCalls(calls=({"name": "x", "arguments": {"command": words[4]}},)),
            events.ToolFinished(success=False, error=words[5]),
            events.QuestionAnswered(answer=words[6]),
            events.RunCompleted(status="stopped", summary=words[7]),
        ]
        text = render(chance.sample(made, 4))
        assert _live(text) == [], text


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.live: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = {name for name, value in attrs if value is not None} - {"href", "start", "class"}
        address = dict(attrs).get("href") or ""
        if names or re.match(r"//|(?!https?://)[\w+.-]+:", address) or tag in ("script", "style", "textarea"):
            self.live.append(tag)


def _live(markdown: str) -> list[str]:
    """The tags with which a renderer would load or run something, or lead elsewhere."""
    tags = _Tags()
    tags.feed(_renderer().render(markdown))
    tags.close()
    return tags.live


@cache
def _renderer() -> MarkdownIt:
    """One that lets every address through; made once, as that takes as long as a page."""
    parser = MarkdownIt("commonmark", {"html": True}).enable("table")
    parser.validateLink = lambda url: True  # type: ignore[method-assign]
    return parser


@pytest.mark.parametrize(
    "harmless",
    [
        "Use `Vec<u8>` and `Map<String, List<int>>`, then a[0](x) and b[1] : c.",
        "See [the docs](https://docs.example/a?b=c) and <https://docs.example>.",
        "See [app.py](src/app.py) and [below](#part).",
        "```rust\n#![allow(dead_code)]\nlet x = a[0](y);\n```\n\nDone!",
        "```html\n<img src='a.png'>\n```\n",
        "~~~md\n![x](y)\n~~~\n",
        "````md\n```\n![x](http://a.example)\n```\n````\n",
        "if a < b and c == d: x[1] != 2",
        "| a | b |\n|---|---|\n| 1 | **2** |\n",
        "a\r\nb\rc\n\n",
        "",
    ],
)
def test_what_is_harmless_is_left_alone(harmless: str) -> None:
    assert inert(harmless) == harmless


def test_titles_and_questions_are_inert_too() -> None:
    bad = "![x](http://evil.example)"
    for event in (
        events.RunStarted(task=bad, title=bad),
        events.QuestionAsked(title=bad),
        events.QuestionAnswered(answer=bad),
        events.RunCompleted(status="failed", error=bad),
        events.ToolFinished(success=False, output=bad),
        events.RunCompleted(status="stopped", summary=bad),
    ):
        assert "![" not in block(event)


def test_an_answer_after_calls_is_a_paragraph_of_its_own() -> None:
    calls = events.ToolCalls(calls=({"id": "1", "name": "grep", "arguments": {"pattern": "x"}},))
    answer = events.MessageAdded(message={"role": "assistant", "content": "It is there."})
    assert "`\n\nIt is there.\n" in render([calls, answer])


def test_a_session_is_told_again_with_its_answers_and_the_undecided_changes() -> None:
    def of(run: str, seq: int, event: events.Event) -> events.Event:
        return replace(event, session_id="s", run_id=run, seq=seq, ts=1.0)

    def answer(words: str) -> events.Event:
        return events.MessageAdded(message={"role": "assistant", "content": words})

    change = {"path": "/a.py", "base": "1", "text": "2"}
    stream = [
        of("r", 1, events.RunStarted(task="Do it", title="Do it")),
        of("r", 2, events.MessageAdded(message={"role": "user", "content": "never shown"})),
        of("r", 3, answer("Done.")),
        of("r", 3, answer("(I was stopped before I could answer.)")),
        of("r", 4, events.FileChanged(path="/a.py", change=change)),
        of("r", 5, events.FileChanged(path="/b.py", change=change)),
        of("r", 6, events.FileChanged(path="/b.py", change=None)),
        of("r", 7, events.ToolFinished(tool="run_cmd", output="x" * 100_000)),
    ]
    told, more = replay_events(stream)
    assert not more
    assert [data["type"] for data in told] == ["run_started", "token", "file_change", "tool_result"]
    assert (told[0]["task"], told[1]["content"], told[2]["change"]) == ("Do it", "Done.", change)
    assert len(told[3]["output"]) < 21_000
    long = [of(f"r{number}", number, answer("y" * 19_000)) for number in range(400)]
    told, more = replay_events(long)
    assert more and told[-1]["run_id"] == "r399" and len(str(told)) < 4_100_000
