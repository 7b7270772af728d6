"""The written plan as a value."""

from __future__ import annotations

import pytest

from codeagent_lsp.tools.plan.plan import MOST_CHARACTERS, PlanDocument


def test_a_document_under_its_title() -> None:
    assert PlanDocument("Move the cache").markdown == "# Move the cache\n"
    assert PlanDocument("T").replaced("text\n").markdown == "# T\n\ntext\n"
    assert PlanDocument("T").replaced("# T\n\ntext").body == "text"


def test_more_at_the_end() -> None:
    assert PlanDocument("T").appended("a").appended("b\n").body == "a\n\nb"


def test_a_section_is_added_and_then_replaced_where_it_stands() -> None:
    document = PlanDocument("T", "intro").with_section("Approach", "first").with_section("## Risks", "some")
    assert document.body == "intro\n\n## Approach\n\nfirst\n\n## Risks\n\nsome"
    again = document.with_section("approach", "second\n\n### detail\n\nmore")
    assert again.body == "intro\n\n## approach\n\nsecond\n\n### detail\n\nmore\n\n## Risks\n\nsome"
    assert again.with_section("Approach", "x").body == "intro\n\n## Approach\n\nx\n\n## Risks\n\nsome"


STEPS = "1. one\n2. two"
NEW = "1. three"


@pytest.mark.parametrize(
    "content",
    [
        "## Approach\n\n{}",
        "# Approach\n{}",
        "### approach:\n\n{}",
        "**Approach**\n{}",
        "## Approach\n\n## Steps\n\n{}",
        "# Steps\n\n{}\n\n## Risks of them\n\nnone",
        "```sh\n# a comment\n```\n\n{}",
        "~~~\n## no heading\n```\n# nor this\n~~~\n{}",
    ],
)
@pytest.mark.parametrize("name", ["Approach", "## Approach", "approach", "Approach:"])
def test_a_section_written_again_has_one_heading_and_nothing_of_before(content: str, name: str) -> None:
    document = PlanDocument("T", "intro").with_section("Approach", content.format(STEPS)).with_section("End", "last")
    again = document.with_section(name, content.format(NEW))
    assert [line.lower().strip("# :") for line in again.body.splitlines()].count("approach") == 1
    assert "one" not in again.body.replace("none", "") and NEW in again.body
    assert again.body.startswith("intro\n\n## ") and again.body.endswith("\n\n## End\n\nlast")
    assert again.with_section(name, content.format(NEW)) == again


def test_sections_that_were_appended_twice_or_deeper_or_in_another_language_become_one() -> None:
    twice = (
        PlanDocument("T").appended(f"## Steps\n\n{STEPS}").appended("## Other\n\nx").appended(f"## Steps\n\n{STEPS}")
    )
    assert twice.with_section("Steps", NEW).body == f"## Steps\n\n{NEW}\n\n## Other\n\nx"
    deep = PlanDocument("T", f"## Approach\n\n### Steps\n\n{STEPS}\n\n### Why\n\ny")
    assert deep.with_section("Steps", NEW).body == f"## Approach\n\n### Steps\n\n{NEW}\n\n### Why\n\ny"
    chinese = PlanDocument("T", "## 已查看的文件\n\n- `a.py`")
    assert chinese.with_section("Explored files", "- `b.py`").body == "## Explored files\n\n- `b.py`"


def test_every_change_needs_a_new_approval() -> None:
    approved = PlanDocument("T", "a", approved=True)
    for changed in (approved.replaced("b"), approved.appended("b"), approved.with_section("s", "b")):
        assert not changed.approved


@pytest.mark.parametrize(("language", "heading"), [("en", "Explored files"), ("zh-cn", "已查看的文件")])
def test_explored_files_are_listed_unless_the_document_does_it_itself(language: str, heading: str) -> None:
    document = PlanDocument("T").with_explored(["a.py", "b.py", "a.py"], language)
    assert document.body == f"## {heading}\n\n- `a.py`\n- `b.py`"
    assert document.with_explored(["c.py"], "en") == document.with_explored(["c.py"], "zh-cn") == document
    assert PlanDocument("T").with_explored([], language) == PlanDocument("T")


def test_it_comes_back_from_its_text() -> None:
    document = PlanDocument("T", "a\n\n## b\n\nc")
    assert PlanDocument.parse(document.markdown) == document
    assert PlanDocument.parse(PlanDocument("T").markdown) == PlanDocument("T")


def test_it_does_not_grow_for_ever() -> None:
    assert len(PlanDocument("T").appended("x" * 2 * MOST_CHARACTERS).body) == MOST_CHARACTERS
