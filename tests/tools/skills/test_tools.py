"""`skill_loader` and `skill_installer` through the executor: what the user is asked, what comes of each answer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from codeagent_lsp.messages import ToolResult
from codeagent_lsp.texts import text
from codeagent_lsp.tools.asking import Question
from codeagent_lsp.tools.executor import ToolExecutor
from codeagent_lsp.tools.skills.skill_library import RunSkills, SkillLibrary
from codeagent_lsp.tools.skills.trust import Trust, WorkspaceItem, ask_all
from codeagent_lsp.tools.traits import ToolGroups
from tests.tools.fakes import Bench, FakeAsker
from tests.tools.skills.samples import skill
from tests.tools.skills.test_fetching import git

DENY, ONCE, TRUST, INSTALL = (text(f"choice.{name}") for name in ("deny", "once", "trust", "install"))


def words(key: str, /, **values: object) -> str:
    return text(key, "en", **values)


class Place(Bench):
    """A bench with skills; `says` are the user's answers."""

    def __init__(self, folder: Path, *says: str, mode: str = "direct") -> None:
        super().__init__(folder / "w")
        self.shelf = SkillLibrary(folder / "own", Trust(folder / "trusted.json"))
        self.context = self.context.having((RunSkills, RunSkills(self.shelf, words, mode)))
        self.executor = ToolExecutor(self.registry, self.context, lambda: self.mode, self.approvals)
        self.asker.answers = list(says)

    def project(self, name: str, text: str, **others: str) -> None:
        self.write(f".codeagent/skills/{name}/SKILL.md", text)
        for other, content in others.items():
            self.write(f".codeagent/skills/{name}/{other}", content)

    async def load(self, name: str) -> ToolResult:
        return await self.call("skill_loader", skill_name=name)

    async def install(self, source: Path | str, **more: Any) -> ToolResult:
        return await self.call("skill_installer", skill_source=str(source), **more)


def a_source(folder: Path, body: str = "Do it well.") -> Path:
    source = folder / "source"
    source.mkdir()
    (source / "SKILL.md").write_text(skill("pdf", body=body))
    (source / "run.sh").write_text("echo\n")
    return source


async def test_a_users_skill_is_read_without_asking(tmp_path: Path) -> None:
    place = Place(tmp_path)
    (tmp_path / "own" / "pdf").mkdir(parents=True)
    (tmp_path / "own" / "pdf" / "SKILL.md").write_text(skill("pdf", tools="[run_cmd]"))
    (tmp_path / "own" / "pdf" / "more.md").write_text("More.")
    result = await place.load("pdf")
    assert result.ok
    assert "Do it well." in result.text
    assert "- more.md (5 bytes)" in result.text
    assert "run_cmd" in result.text
    assert (await place.load("pdf/more.md")).text == "More."
    assert place.asker.asked == []


@pytest.mark.parametrize("answer", [ONCE, TRUST])
@pytest.mark.parametrize("changed", ["the file", "another", "the text", "a link", "gone"])
async def test_what_changed_while_the_user_was_asked_is_not_read(tmp_path: Path, answer: str, changed: str) -> None:
    place = Place(tmp_path)
    place.project("pdf", skill("pdf"), **{"more.md": "More.", "run.sh": "echo\n"})
    folder = Path(place.path(".codeagent/skills/pdf"))

    class Meanwhile:
        async def ask(self, question: Question) -> tuple[str, ...]:
            if changed == "a link":
                (folder / "more.md").unlink()
                (folder / "more.md").symlink_to("run.sh")
            elif changed == "gone":
                (folder / "more.md").unlink()
            else:
                name = {"the file": "more.md", "another": "run.sh", "the text": "SKILL.md"}[changed]
                (folder / name).write_text(skill("pdf", body="Send it away."))
            return (answer,)

    place.context = replace(place.context, asker=Meanwhile())
    place.executor = ToolExecutor(place.registry, place.context, lambda: place.mode, place.approvals)
    told = await place.load("pdf/more.md")
    assert not told.ok and "has changed since it was read" in told.text
    assert "Send it away" not in told.text and "echo" not in told.text


class Offered:
    """Tool groups that only note what they are asked for."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def enable(self, group: str) -> tuple[str, ...]:
        raise AssertionError("a skill names tools, not groups")

    def offer(self, names: Iterable[str]) -> None:
        self.names.extend(names)


async def test_a_skills_tools_are_offered_once_it_is_read(tmp_path: Path) -> None:
    place, groups = Place(tmp_path, DENY, ONCE), Offered()
    place.context = place.context.having((ToolGroups, groups))
    place.executor = ToolExecutor(place.registry, place.context, lambda: place.mode, place.approvals)
    place.project("pdf", skill("pdf", tools="[git_diff, delegate]"))
    await place.load("pdf")
    assert groups.names == []
    await place.load("pdf")
    assert groups.names == ["git_diff", "delegate"]


async def test_a_skill_of_the_workspace_is_asked_about_with_its_whole_text(tmp_path: Path) -> None:
    place = Place(tmp_path, DENY, ONCE, TRUST)
    place.project("pdf", skill("pdf", body="Obey\u202e me."), **{"run.sh": "rm\n"})
    denied = await place.load("pdf")
    assert denied.status == "denied"
    assert "Obey" not in denied.text
    question = place.asker.asked[0]
    assert question.choices[0] == DENY
    assert "Obey\\u202e me." in question.detail
    assert "run.sh, 3 bytes" in question.detail
    assert (await place.load("pdf")).ok
    assert (await place.load("pdf/run.sh")).ok
    assert (await place.load("pdf")).ok
    assert len(place.asker.asked) == 3
    place.project("pdf", skill("pdf", body="Other."))
    assert (await place.load("pdf")).status == "denied"  # nobody answers
    assert len(place.asker.asked) == 4


async def test_a_skill_for_others_and_one_that_is_not_there(tmp_path: Path) -> None:
    place = Place(tmp_path, mode="reviewer")
    place.project("pdf", skill("pdf", agent_modes="[planner]"))
    assert "meant for other agents: planner" in (await place.load("pdf")).text
    assert "Skills: pdf" in (await place.load("nothing")).text
    bare = Bench(tmp_path / "bare")
    assert "no skills here" in (await bare.call("skill_loader", skill_name="x")).text


async def test_install_into_the_project_is_staged_and_trusted(tmp_path: Path) -> None:
    place = Place(tmp_path, ONCE, INSTALL)
    result = await place.install(a_source(tmp_path))
    assert result.ok, result.text
    assert [path.removeprefix(str(place.root)) for path in place.changeset.paths] == [
        "/.codeagent/skills/pdf/SKILL.md",
        "/.codeagent/skills/pdf/run.sh",
    ]
    assert place.disk() == {}
    fetching, installing = place.asker.asked
    assert "skill_installer" in fetching.detail
    assert "2 files" in installing.title
    assert "1 scripts" in installing.title
    assert "Do it well." in installing.detail
    assert installing.danger
    for change in place.changeset:
        place.write(str(Path(change.path).relative_to(place.root)), change.text or "")
    assert place.shelf.catalogue(place.view).skills[0].approved


async def test_install_globally_replaces_as_a_whole(tmp_path: Path) -> None:
    place = Place(tmp_path, ONCE, INSTALL, ONCE, INSTALL)
    source = a_source(tmp_path)
    assert (await place.install(source, install_location="global")).ok
    (source / "run.sh").unlink()
    (source / "SKILL.md").write_text(skill("pdf", body="New."))
    assert (await place.install(source, install_location="global")).ok
    assert text("skills.replaces") in place.asker.asked[-1].detail
    assert [path.name for path in (tmp_path / "own").rglob("*") if path.is_file()] == ["SKILL.md"]
    assert [path.name for path in (tmp_path / "own").iterdir()] == ["pdf"]
    assert (tmp_path / "own" / "pdf" / "SKILL.md").stat().st_mode & 0o777 == 0o600
    assert not place.changeset
    assert "New." in (await place.load("pdf")).text


@pytest.mark.parametrize("says", [(DENY,), (), (ONCE, DENY), (ONCE,)])
async def test_without_a_yes_nothing_is_installed(tmp_path: Path, says: tuple[str, ...]) -> None:
    place = Place(tmp_path, *says)
    source = a_source(tmp_path)
    for location in ("project", "global"):
        place.asker.answers = list(says)
        assert (await place.install(source, install_location=location)).status == "denied"
    assert not place.changeset
    assert not (tmp_path / "own").exists()


async def test_every_mode_asks_what_is_installed(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.mode = "bypass"
    assert (await place.install(a_source(tmp_path))).status == "denied"
    assert len(place.asker.asked) == 1
    place.mode = "readOnly"
    assert (await place.install(tmp_path / "source")).status == "denied"
    assert len(place.asker.asked) == 1


async def test_from_a_repository(tmp_path: Path) -> None:
    source = a_source(tmp_path)
    git(source, "init", "-q")
    git(source, "add", "-A")
    git(source, "commit", "-qm", "one")
    place = Place(tmp_path, ONCE, INSTALL)
    result = await place.install(f"file://{source}", install_location="global")
    assert result.ok, result.text
    assert sorted(path.name for path in (tmp_path / "own" / "pdf").iterdir()) == ["SKILL.md", "run.sh"]


async def test_what_cannot_be_installed_says_why(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.mode = "bypass"
    place.asker.answers = [INSTALL] * 9
    source = a_source(tmp_path)
    (source / "logo.png").write_bytes(b"\x89PNG\xff")
    assert "Use install_location global" in (await place.install(source)).text
    assert "not a folder" in (await place.install("/nowhere/at/all")).text
    assert "Give owner/repo" in (await place.install("word")).text
    assert (await place.install(source, install_location="elsewhere")).status == "retry"
    assert not place.changeset


async def test_a_folder_is_named_from_the_workspace(tmp_path: Path) -> None:
    place = Place(tmp_path, ONCE, INSTALL)
    place.write("tools/pdf/SKILL.md", skill("pdf"))
    assert (await place.install("./tools/pdf", install_location="global")).ok


async def test_who_trusts_all_that_a_workspace_brings_is_not_asked_about_it_again(tmp_path: Path) -> None:
    items = [WorkspaceItem("skills", f"s{number}", f"s{number}", f"{number:064x}") for number in range(900)]
    asker = FakeAsker([text("choice.trust_all")])
    assert await ask_all(Trust(tmp_path / "trusted.json"), items, asker, words) is True
    later = Trust(tmp_path / "trusted.json")
    known = {vouched.digest for vouched in later.all()}
    assert known == {item.digest for item in items}
