"""What a skill can be installed from, and what is refused before anything is fetched."""

from __future__ import annotations

import pytest

from codeagent_lsp.errors import ToolRetry
from codeagent_lsp.tools.skills.sources import GITHUB, SkillSource, parse


@pytest.mark.parametrize(
    ("words", "source"),
    [
        ("some/repo", SkillSource(f"{GITHUB}/some/repo")),
        (" some/repo.git ", SkillSource(f"{GITHUB}/some/repo")),
        ("some/repo/skill", SkillSource(f"{GITHUB}/some/repo", skill="skill")),
        ("some/repo/skills/pdf", SkillSource(f"{GITHUB}/some/repo", skill="skills/pdf")),
        ("https://example.org/team/repo.git", SkillSource("https://example.org/team/repo.git")),
        ("https://Example.org:8443/r", SkillSource("https://example.org:8443/r")),
        (f"{GITHUB}/some/repo/", SkillSource(f"{GITHUB}/some/repo")),
        (
            f"{GITHUB}/some/repo/tree/main/skills/pdf",
            SkillSource(f"{GITHUB}/some/repo", inner="skills/pdf", branch="main"),
        ),
        (f"{GITHUB}/some/repo/blob/v1/pdf/SKILL.md", SkillSource(f"{GITHUB}/some/repo", inner="pdf", branch="v1")),
        ("https://skills.sh/some/repo", SkillSource(f"{GITHUB}/some/repo")),
        ("https://www.skills.sh/some/repo/pdf", SkillSource(f"{GITHUB}/some/repo", skill="pdf")),
        ("file:///srv/repo.git", SkillSource("file:///srv/repo.git")),
        ("/srv/skills", SkillSource(folder="/srv/skills")),
        ("./skills", SkillSource(folder="./skills")),
        ("~/skills", SkillSource(folder="~/skills")),
    ],
)
def test_sources(words: str, source: SkillSource) -> None:
    assert parse(words) == source


@pytest.mark.parametrize(
    "words",
    [
        "",
        "word",
        "-oProxyCommand=x/y",
        "--upload-pack=x",
        "a/b;rm",
        "http://example.org/r",
        "ssh://git@example.org/r",
        "git@example.org:a/b",
        "git://example.org/r",
        "ext::sh -c x",
        "https://user:word@example.org/r",
        "https://example.org",
        "https://example.org/a/../b",
        "https://example.org/a/%2e%2e/b",
        "https://example.org/a?x=1",
        "https://example.org/a#x",
        "https://example.org\\@evil.org/a",
        "https://[::1/a",
        "https://skills.sh/only",
        "https://skills.sh/a/b/c/d",
        "file://host/share",
        "a/b\u200b",
        "a/b\nc/d",
    ],
)
def test_refused(words: str) -> None:
    with pytest.raises(ToolRetry):
        parse(words)


@pytest.mark.parametrize("branch", ["-x", "a..b", "a b", "a@{1}", "--upload-pack=x", "a;b"])
def test_branches_are_names(branch: str) -> None:
    with pytest.raises(ToolRetry, match="no name of a branch"):
        parse("a/b", branch)
    assert parse("a/b", "release/1.0").branch == "release/1.0"


def test_what_is_shown_is_one_visible_line() -> None:
    assert SkillSource("https://example.org/r", inner="in", branch="b").shown == "https://example.org/r in (b)"
    assert len(SkillSource(folder="/" + "x" * 500).shown) <= 200
