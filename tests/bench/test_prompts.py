"""The bench of prompts: how a request is taken apart, what the strong model does, a work through the real program."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.bench import prompts as bench
from tests.bench.chat_requests import Asked
from tests.bench.prompts import PARTS, measured, parts_of, play, recorded, run_ours, told
from tests.bench.prompts_tasks import PROJECT, WORKS, StrongModel, Work, committed, lay, opencode, ours, works_in

WORDS = "Correct with_tax."
FAULT = next(work for work in WORKS if work.name == "fault")
TOOL = {"type": "function", "function": {"name": "read_file"}}


def request(*messages: tuple[str, str], number: int = 1, tools: tuple[Any, ...] = (TOOL,)) -> Asked:
    sent = [{"role": role, "content": content} for role, content in messages]
    return Asked(number, {"messages": sent, "tools": list(tools)})


def in_folder(work: Work, folder: Path) -> Path:
    lay(work, folder)
    return folder


def test_a_first_request_is_taken_apart_by_its_headings() -> None:
    system = "Be brief.\nRepo map: all of it.\na.py\n  def a()\n"
    user = f"The whole file a.py, as it is now:\n1|def a():\n2|    map of it\n\n## Situation\nbranch main\n\n{WORDS}\n"
    asked = request(("system", system), ("user", user))
    parts = parts_of(asked, WORDS)
    assert set(parts) == set(PARTS)
    assert sum(parts.values()) == asked.characters
    assert parts["tools"] == len(asked.pieces[0])
    assert parts["rules"] == len("Be brief.__")
    assert parts["map"] == len("Repo map: all of it.__a.py__  def a()__")
    assert parts["files"] == len("The whole file a.py, as it is now:__1|def a():__2|    map of it____")
    assert parts["situation"] == len("## Situation__branch main____")
    assert parts["request"] == len(f"{WORDS}__")


def test_a_part_without_a_heading_is_no_map() -> None:
    parts = parts_of(request(("system", "Draw no map of anything."), ("user", f"Today is Monday.\n{WORDS}")), WORDS)
    assert (parts["map"], parts["files"]) == (0, 0)
    assert parts["rules"] == len("Draw no map of anything.")
    assert parts["situation"] == len("Today is Monday.__")


def test_other_requests_are_counted_apart(tmp_path: Path) -> None:
    model = StrongModel(FAULT, ours, tmp_path)
    title = request(("user", f"A title for: {FAULT.words}"), tools=())
    first = request(("system", "s"), ("user", FAULT.words), number=2)
    assert model(title).text == "A task about the kiosk"
    assert [name for name, _ in model(first).calls] == ["read_file", "read_file"]
    played = measured("ours", FAULT, [title, first], model, done=False, said=True)
    assert (played.before, played.others, list(played.prompts)) == (1, 1, [first.characters])
    assert played.total == title.characters + first.characters
    assert "no    yes" in told([played])


def test_a_file_that_is_shown_is_not_read_again(tmp_path: Path) -> None:
    text = "\n".join(f"{at}|{line}" for at, line in enumerate(FAULT.files["kiosk/prices.py"].splitlines(), 1))
    reply = StrongModel(FAULT, ours, tmp_path)(request(("user", f"{text}\n{FAULT.words}")))
    assert list(reply.calls) == [("read_file", {"path": "tests/test_prices.py"})]


@pytest.mark.parametrize("work", WORKS, ids=lambda work: work.name)
def test_both_agents_are_given_the_same_steps(work: Work, tmp_path: Path) -> None:
    ask = request(("user", work.words))
    mine, theirs = (StrongModel(work, translation, tmp_path) for translation in (ours, opencode))
    for _ in range(len(work.steps)):
        assert len(mine(ask).calls) == len(theirs(ask).calls) > 0
    assert mine(ask).text == theirs(ask).text == work.answer


def test_a_work_is_done_when_its_files_are_as_wanted(tmp_path: Path) -> None:
    project = in_folder(FAULT, tmp_path)
    assert not FAULT.done_in(project)
    (project / "kiosk" / "prices.py").write_text(PROJECT["kiosk/prices.py"])
    assert FAULT.done_in(project)
    assert WORKS[0].done_in(project), "nothing is to be changed"
    (project / "kiosk" / "cart.py").write_text("")
    assert not WORKS[0].done_in(project)


def test_every_repository_gives_works(tmp_path: Path) -> None:
    project = in_folder(WORKS[0], tmp_path)
    (project / "picture").write_bytes(b"\xff\xfe")
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@localhost"]
    for arguments in (["add", "-A"], ["commit", "-qm", "more"]):
        subprocess.run([*git, *arguments], cwd=project, check=True)
    files = committed(project)
    assert files == PROJECT
    question, comment = works_in(files)
    assert "kiosk/bakery.py" in question.words
    assert comment.wanted["kiosk/bakery.py"].startswith("# bakery\n")


def test_another_agent_needs_a_network_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["prompts", "--opencode", "opencode"])
    monkeypatch.setattr(bench, "alone", lambda: False)
    with pytest.raises(SystemExit, match="network of its own"):
        bench.main()


def test_the_recorded_figures_are_of_these_works() -> None:
    assert [each.work for each in recorded()] == [work.name for work in WORKS]
    assert all(set(each.parts) == set(PARTS) and each.prompts for each in recorded())


@pytest.mark.slow
def test_a_work_through_the_real_program(tmp_path: Path) -> None:
    played = play("ours", FAULT, run_ours, ours, tmp_path)
    assert played.done, played
    assert played.said, played
    assert len(played.prompts) >= 2
    found = [part for part in PARTS if played.parts[part] > 0]
    assert found == list(PARTS), "the headings of the prompt are known here"
