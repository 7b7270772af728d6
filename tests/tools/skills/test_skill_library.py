"""Which skills there are, from where, and what becomes of broken and unknown ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from codeagent_lsp.errors import ToolFailed
from codeagent_lsp.tools.skills import skill_folders
from codeagent_lsp.tools.skills.trust import Trust
from tests.tools.skills.samples import Shelves, skill


def test_nothing_is_no_problem(tmp_path: Path) -> None:
    assert Shelves(tmp_path).look().skills == ()
    assert Shelves(tmp_path).look().problems == ()


def test_all_places(tmp_path: Path) -> None:
    made = Shelves(tmp_path, [str(tmp_path / "more"), str(tmp_path / "single" / "alone"), "/nowhere/at/all"])
    made.project("pdf", skill("pdf", triggers="[PDF, 'page count']", tools="read_file, grep", agent_modes="[ask]"))
    made.user("own", skill("mine"))
    made.user("third", skill(), tmp_path / "more")
    made.user("alone", skill(), tmp_path / "single")
    found = made.skills()
    assert {name: item.place for name, item in found.items()} == {
        "pdf": "project",
        "mine": "user",
        "third": "user",
        "alone": "user",
    }
    pdf = found["pdf"]
    assert (pdf.triggers, pdf.tools, pdf.agent_modes) == (("PDF", "page count"), ("read_file", "grep"), ("ask",))
    assert pdf.body.strip() == "Do it well."
    assert pdf.serves("ask")
    assert not pdf.serves("direct")
    assert found["mine"].serves("anything")


def test_the_users_skill_keeps_its_name(tmp_path: Path) -> None:
    made = Shelves(tmp_path)
    made.project("evil", skill("deploy", "the workspace's"))
    made.user("deploy", skill("deploy", "mine"))
    assert made.skills()["deploy"].description == "mine"
    assert made.reasons() == [f"the name deploy is taken by {tmp_path / 'own' / 'deploy'}."]


def test_a_skill_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    made = Shelves(tmp_path)
    made.project("large", skill("large", body="Do it.\n" * 2_000_000))
    made.project("folder/SKILL.md", skill("folder"))
    (tmp_path / "elsewhere.md").write_text(skill("linked"))
    (tmp_path / "w/.codeagent/skills/linked").mkdir()
    (tmp_path / "w/.codeagent/skills/linked/SKILL.md").symlink_to(tmp_path / "elsewhere.md")
    (tmp_path / "w/.codeagent/skills/none").mkdir()
    assert made.reasons() == ["SKILL.md is not read: it is too large, a link or no plain file."] * 3
    assert not made.skills()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("no head at all", "it has no head"),
        ("---\nname: x\n---\nbody", "no `description`"),
        ("---\ndescription: x\n---\n\n", "no text after"),
        ("---\ndescription: x\nname: Bad Name\n---\nbody", "small letters"),
        ("---\ndescription: x\nname: ../../x\n---\nbody", "small letters"),
        ("---\ndescription: [x\n---\nbody", "line 2"),
        ("---\ndescription: x\n", "never ends"),
        (b"---\n\xff\x00\n", "not UTF-8"),
    ],
)
def test_a_broken_skill_is_told_of_and_the_others_stay(tmp_path: Path, text: str | bytes, reason: str) -> None:
    made = Shelves(tmp_path)
    made.project("good", skill())
    made.files.write(".codeagent/skills/broken/SKILL.md", text)
    assert list(made.skills()) == ["good"]
    assert len(made.reasons()) == 1
    assert reason in made.reasons()[0]
    with pytest.raises(ToolFailed, match="cannot be used"):
        made.look().get("broken")


def test_an_unknown_name_gets_the_known_ones(tmp_path: Path) -> None:
    made = Shelves(tmp_path)
    made.project("one", skill())
    with pytest.raises(ToolFailed, match=r"no skill 'two'\. Skills: one\."):
        made.look().get("two")


def test_an_unsaved_buffer_is_the_truth_and_what_a_run_staged_is_not(tmp_path: Path) -> None:
    made = Shelves(tmp_path)
    made.project("one", skill(description="on the disk"))
    made.files.stage(".codeagent/skills/one/SKILL.md", skill(description="staged"))
    assert made.skills()["one"].description == "on the disk"
    made.files.open(".codeagent/skills/one/SKILL.md", skill(description="typed"))
    made.files.open(".codeagent/skills/new/SKILL.md", skill(description="not saved yet"))
    assert {name: item.description for name, item in made.skills().items()} == {"one": "typed", "new": "not saved yet"}


def test_trust_holds_for_exactly_this_content(tmp_path: Path) -> None:
    made = Shelves(tmp_path)
    made.project("one", skill(), **{"run.sh": "echo 1\n"})
    first = made.skills()["one"]
    assert not first.approved
    made.trust.add(first.digest, "one")
    assert made.skills()["one"].approved
    assert Trust(tmp_path / "state" / "trusted.json").covers(first.digest)  # another process sees it
    assert not list((tmp_path / "w").rglob("trusted.json"))
    for name, text in {"run.sh": "echo 2\n", "more.sh": "x\n"}.items():
        made.files.write(f".codeagent/skills/one/{name}", text)
        assert not made.skills()["one"].approved
        made.trust.add(made.skills()["one"].digest, "one")
    made.files.write(".codeagentignore", "more.sh\n")
    made.files.write(".codeagent/skills/one/more.sh", "hidden from walks, not from the hash\n")
    assert not made.skills()["one"].approved
    made.user("two", skill())
    assert made.skills()["two"].approved


def test_trust_is_listed_and_taken_back(tmp_path: Path) -> None:
    trust = Trust(tmp_path / "trusted.json")
    for digest in ("a", "b", "c"):
        trust.add(digest, f"skill {digest}")
    assert [(item.digest, item.name) for item in trust.all()] == [(name, f"skill {name}") for name in "abc"]
    assert all(item.since > 1e9 for item in trust.all())
    assert trust.revoke("b") == 1
    assert trust.revoke("b") == trust.revoke("unknown") == 0
    assert [digest for digest in "abc" if trust.covers(digest)] == ["a", "c"]
    assert Trust(tmp_path / "trusted.json").revoke() == 2  # another process takes all of it back
    assert Trust(tmp_path / "trusted.json").all() == ()
    assert trust.revoke() == 2  # what this process keeps for itself
    assert not any(map(trust.covers, "abc"))


def test_odd_rows_of_trust_are_listed_all_the_same(tmp_path: Path) -> None:
    file = tmp_path / "trusted.json"
    file.write_text('{"a": 1, "b": {"name": 2, "since": "x"}}')
    assert [(item.digest, item.since) for item in Trust(file).all()] == [("a", 0.0), ("b", 0.0)]
    assert Trust(file).revoke("a") == 1
    assert not Trust(file).covers("a")


def test_trust_survives_a_damaged_file_and_a_disk_that_refuses(tmp_path: Path) -> None:
    file = tmp_path / "trusted.json"
    file.write_text("{broken")
    trust = Trust(file)
    assert not trust.covers("a")
    trust.add("a", "name")
    assert Trust(file).covers("a")
    blocked = Trust(file / "below" / "a-file")
    blocked.add("b", "name")
    assert blocked.covers("b")


def test_links_lead_nowhere(tmp_path: Path) -> None:
    made = Shelves(tmp_path)
    (tmp_path / "secret").write_text("secret")
    made.project("one", skill())
    (tmp_path / "w" / ".codeagent" / "skills" / "one" / "link").symlink_to(tmp_path / "secret")
    outside = tmp_path / "outside"
    made.user("x", skill("outside"), outside)
    (tmp_path / "w" / ".codeagent" / "skills" / "two").symlink_to(outside / "x")
    assert made.skills() == {}
    assert made.reasons() == ["link is a link."]


def test_too_much_is_refused(tmp_path: Path) -> None:
    made = Shelves(tmp_path)
    made.project("deep", skill(), **{"a/b/c/d/e/f/g.md": "x"})
    made.project("many", skill(), **{f"{number}.md": "x" for number in range(skill_folders.MAX_FILES + 1)})
    made.project("large", skill(), **{"big.txt": "x" * (skill_folders.MAX_BYTES + 1)})
    assert made.skills() == {}
    assert sorted(reason.split(" ")[1] for reason in made.reasons()) == ["cannot", "holds", "is"]


def test_other_files_can_be_read_and_only_those(tmp_path: Path) -> None:
    made = Shelves(tmp_path)
    made.project("one", skill(), **{"docs/more.md": "More.", "raw.bin": "x"})
    made.files.write(".codeagent/skills/one/raw.bin", b"\xff\x00")
    made.user("two", skill()).with_name("own.md").write_text("Own.")
    found = made.skills()
    view = made.files.view
    assert dict(found["one"].files) == {"docs/more.md": 5, "raw.bin": 2}
    assert made.shelf.content(view, found["one"], "docs/more.md") == "More."
    assert made.shelf.content(view, found["two"], "own.md") == "Own."
    for name in ("../one/docs/more.md", "SKILL.md", "/etc/passwd", "missing"):
        with pytest.raises(ToolFailed, match="no file"):
            made.shelf.content(view, found["one"], name)
    with pytest.raises(ToolFailed, match="no text"):
        made.shelf.content(view, found["one"], "raw.bin")


def test_hidden_characters_in_a_skill_are_shown(tmp_path: Path) -> None:
    made = Shelves(tmp_path)
    made.project("one", skill(description="nice\u202e", body="Do\u200b it."))
    assert made.skills()["one"].description == "nice\\u202e"
    assert "Do\\u200b it." in made.skills()["one"].body
