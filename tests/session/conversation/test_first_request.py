"""The first request to a capable model: its size, one map with lines, the situation, named files, what follows."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import AsyncIterator
from datetime import datetime
from itertools import pairwise
from pathlib import Path

import pytest

from codeagent_lsp.agent.context.gather import headed_or_parts, names_in_code
from codeagent_lsp.agent.prompt import OVERVIEW, PIECES, TASK_MAP
from codeagent_lsp.errors import ToolFailed
from codeagent_lsp.llm.learned_facts import window_known
from codeagent_lsp.llm.model import ModelInfo, ModelRequest
from codeagent_lsp.llm.providers.scripted import ScriptedModel, ScriptedReply
from codeagent_lsp.llm.wire import chat_messages, tool_list
from codeagent_lsp.session.conversation import situation
from codeagent_lsp.session.conversation.situation import git_state
from codeagent_lsp.session.request import RunRequest, Target
from codeagent_lsp.tools.git.calls import Repository
from codeagent_lsp.workspace.files.file_view import FileText
from tests.index.rig import SHOP as SHOP_FILES
from tests.session.fakes import World, call, calls, say, world
from tests.session.indexed import RealIndexing, indexing

STRONG = ModelInfo("strong", "openai", facts=window_known(200_000), tool_calling="native")
TASK = "The checkout of a cart adds the wrong tax, it should use the rate of the country"


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def repository(root: Path, *more: tuple[str, ...]) -> None:
    """Make a repository with one commit of all that is there."""
    git = ["git", "-c", "user.name=n", "-c", "user.email=e@example.org", "-C", str(root)]
    for words in (("init", "-q", "-b", "topic/x"), ("add", "-A"), ("commit", "-qm", "first"), *more):
        subprocess.run([*git, *words], check=True)


@pytest.fixture
async def index(tmp_path: Path) -> AsyncIterator[RealIndexing]:
    many = {
        f"lib/part{n}/module_with_a_long_name_{n}.py": "".join(
            f"def handle_the_tax_of_country_{n}_{m}(cart, items, country, rate_of_the_country=19):\n    return cart\n"
            for m in range(12)
        )
        for n in range(60)
    }
    write(tmp_path / "w", {**SHOP_FILES, **many})
    async with indexing(tmp_path / "w") as made:
        yield made


def strong(made: World, *replies: ScriptedReply) -> ScriptedModel:
    model = ScriptedModel(replies or [say("Seen."), say("Seen.")], info=STRONG)
    made.models["model"] = model
    return model


def sent(request: ModelRequest) -> str:
    """The request as it goes to a server, as far as it is a prompt."""
    tools, messages = tool_list(request.tools), chat_messages(request.messages)
    return json.dumps({"tools": tools, "messages": messages}, ensure_ascii=False, separators=(",", ":"))


def note(model: ScriptedModel, number: int = 0) -> str:
    return "\n\n".join(message.content for message in model.requests[number].messages if message.name == "note")


@pytest.mark.slow
async def test_it_has_at_most_16000_characters_with_one_map_and_line_numbers(
    tmp_path: Path, index: RealIndexing
) -> None:
    made = world(tmp_path / "w", indexing=index)
    model = strong(made)
    await made.run(TASK)
    whole = sent(model.requests[0])
    assert 12_000 < len(whole) <= 16_000
    assert OVERVIEW not in whole and whole.count("module_with_a_long_name_7.py") <= 1
    shown = note(model).partition(f"{TASK_MAP}\n")[2].partition("\n\n")[0]
    assert "\n  4: class Cart\n" in shown and "\n  8:   def checkout" in shown


async def test_the_situation_is_told(tmp_path: Path) -> None:
    root = tmp_path / "w"
    write(root, {"pyproject.toml": "[tool.pytest.ini_options]\n", "uv.lock": "", "a.py": "x = 1\n", "b.py": "y = 1\n"})
    write(root, {"tests/test_a.py": "def test_a():\n    pass\n"})
    repository(root)
    write(root, {"b.py": "y = 2222\n", "new.py": ""})
    made = world(root)
    made.open("a.py", "x = 2\n")
    made.open("tests/test_a.py", "def test_a():\n    pass\n")
    model = strong(made, say("Fine."))
    file = made.read(made.path("a.py"))
    request = RunRequest("run", "Look at it", "Look at it", Target(file, 4, 4))
    await made.finished(made.manager.start(request))
    told = note(model).partition("Situation:\n")[2].splitlines()
    assert told[0] == f"Today is {datetime.now():%Y-%m-%d}."
    assert told[1] == "Current file: a.py, cursor in line 1"
    assert told[2] == "Open files: a.py (unsaved), tests/test_a.py"
    assert told[3] == "Git: branch topic/x; changed: b.py; untracked: new.py"
    assert told[4] == "Project: interpreter python3, uv, tests: pytest"


async def test_a_file_of_another_time_alone_is_not_changed(tmp_path: Path) -> None:
    write(tmp_path, {"a.txt": "a\n", "b.txt": "b\n"})
    repository(tmp_path)
    write(tmp_path, {"a.txt": "a\n", "b.txt": "c\n"})
    for name in ("a.txt", "b.txt"):
        os.utime(tmp_path / name, (1, 1))
    assert (await git_state(Repository(str(tmp_path)))).changed == ("b.txt",)


async def test_the_state_of_git_runs_no_filter(tmp_path: Path) -> None:
    write(tmp_path, {"a.txt": "a\n", ".gitattributes": "*.txt filter=evil\n"})
    repository(tmp_path, ("config", "filter.evil.clean", f"touch {tmp_path}/ran; cat"))
    write(tmp_path, {"a.txt": "changed\n"})
    state = await git_state(Repository(str(tmp_path)))
    assert state.changed == ("a.txt",) and not (tmp_path / "ran").exists()


async def test_a_git_that_is_late_is_told_with_its_own_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {"a.txt": "a\n"})
    repository(tmp_path)
    monkeypatch.setattr(situation, "GIT_SECONDS", 0)
    with pytest.raises(ToolFailed, match="git took longer than 0 s"):
        await git_state(Repository(str(tmp_path)))


@pytest.mark.slow
async def test_a_question_that_follows_gets_no_new_material(tmp_path: Path, index: RealIndexing) -> None:
    made = world(tmp_path / "w", indexing=index)
    model = strong(made, say("In checkout."), say("Yes."), say("There."), say("There."))
    await made.run("Where does the checkout of a cart add the tax?")
    await made.run("did I accept?")
    assert TASK_MAP not in note(model, 1).partition("Situation:")[2] and len(note(model, 1)) - len(note(model)) < 400
    ask = RunRequest("ask", "and why did I accept?", "why")
    await made.finished(made.manager.start(ask))
    assert PIECES not in note(model, 2)
    await made.run("What about send_invoice?")
    assert TASK_MAP in note(model, 3).rpartition("Situation:")[0].rpartition("Situation:")[2]


async def test_the_set_of_tools_stays_and_a_call_switches_its_group_on(tmp_path: Path) -> None:
    made = world(tmp_path / "w")
    write(made.root, {"a.py": "def area():\n    return 1\n"})
    replies = [
        calls(call("use_tool", name="ast_parse", arguments={"path": "a.py"})),
        calls(call("ast_find_symbols", name="area")),
        calls(call("enable_tools", group="git")),
        calls(call("use_tool", name="ast_parse", arguments={})),
        calls(call("no_such_tool", path="a.py")),
        say("Seen."),
    ]
    model = strong(made, *replies)
    assert (await made.run("Look at area")).status == "completed"
    requests = model.requests
    assert len({tuple(json.dumps(tool["name"]) for tool in request.tools) for request in requests}) == 1
    assert all(after.messages[: len(before.messages)] == before.messages for before, after in pairwise(requests))
    results = [message.content for message in requests[-1].messages if message.role == "tool"]
    assert "area" in results[0] and "a.py" in results[1]
    assert results[2].startswith("git_diff: ") and '"staged"' in results[2]
    assert "path" in results[3] and "no tool 'no_such_tool'" in results[4]


async def test_other_tools_stand_by_name_and_mode_decides(tmp_path: Path) -> None:
    made = world(tmp_path / "w", mode="readOnly")
    model = strong(made, say("Seen."))
    await made.run("Where is it?")
    names = {tool["name"] for tool in model.requests[0].tools}
    listing = next(tool["description"] for tool in model.requests[0].tools if tool["name"] == "use_tool")
    assert "edit_file" not in names and "move_file" not in listing and "find_definition(symbol, path?)" in listing


def text(name: str, content: str) -> FileText:
    return FileText(f"/w/{name}", content, "disk")


def test_a_named_file_is_whole_up_to_400_lines() -> None:
    shown = headed_or_parts("look at a.py")("a.py", text("a.py", "x = 1\n" * 400))
    assert shown.startswith("The whole file a.py") and shown.count("\n") == 400


def test_of_a_longer_one_the_outline_and_the_lines_that_matter() -> None:
    code = "".join(f"def step_{n}(value):\n    return value + {n}\n\n\n" for n in range(400))
    shown = headed_or_parts("step_250 in long.py is wrong")("long.py", text("long.py", code))
    assert shown.startswith("Parts of long.py, which has 1600 lines")
    assert "1-2: def step_0(value)" in shown and "(and 320 more)" in shown
    assert "1001|def step_250(value):" in shown and "step_300" not in shown and len(shown) < 6_000


def test_of_a_long_text_the_lines_with_its_words_or_its_head() -> None:
    changelog = "".join(f"## {n}\n\n- fixed a thing\n" for n in range(600)) + "- resolver_cache was dropped\n"
    file = text("CHANGES.md", changelog)
    shown = headed_or_parts("Add to CHANGES.md that resolver_cache is back")("CHANGES.md", file)
    assert "1801|- resolver_cache was dropped" in shown and len(shown) < 2_000
    shown = headed_or_parts("Look")("CHANGES.md", file)
    assert "1|## 0" in shown and len(shown) < 500


@pytest.mark.parametrize(
    ("words", "names"),
    [
        ("did I accept?", set()),
        ("And why is that so? Please explain.", set()),
        ("what of send_invoice and `Cart`", {"send_invoice", "Cart"}),
        ("see TaskQueue in task_queue.py", {"TaskQueue", "task_queue"}),
        ("为什么 parseLine 失败", {"parseLine"}),
    ],
)
def test_names_of_code(words: str, names: set[str]) -> None:
    assert names_in_code(words) == names
