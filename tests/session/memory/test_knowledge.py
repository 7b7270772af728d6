"""Instructions, skills, agents and memory in whole runs: what the model is told, and when; what the user is asked."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

from codeagent_lsp import events
from codeagent_lsp.config import Settings, SkillsSettings
from codeagent_lsp.llm.learned_facts import window_known
from codeagent_lsp.llm.model import ModelInfo
from codeagent_lsp.llm.providers.scripted import ScriptedModel
from codeagent_lsp.session.memory.knowledge import knowledge_in
from codeagent_lsp.session.memory.remembering import MemoryEntry, id_of
from codeagent_lsp.session.request import RunRequest, Target
from codeagent_lsp.texts import text
from tests.session.fakes import World, assert_well_formed, call, calls, say, until, world, write
from tests.tools.skills.samples import skill
from tests.workspace.file_fakes import workspace

APPLY, DENY, ONCE, TRUST, INSTALL = (text(f"choice.{name}") for name in ("apply", "deny", "once", "trust", "install"))


def put(made: World, name: str, content: str) -> None:
    path = made.root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, "utf-8")


def system_prompts(model: ScriptedModel) -> list[str]:
    return [request.messages[0].content for request in model.requests]


def last_words(model: ScriptedModel, turn: int = -1) -> str:
    """What was said since the model spoke last: the notes, and the user's words."""
    messages = model.requests[turn].messages
    spoken = max((at for at, message in enumerate(messages) if message.role == "assistant"), default=0)
    return "\n".join(message.content for message in messages[spoken + 1 :] if message.role == "user")


# --- project instructions


async def test_the_prompt_stays_and_what_changed_is_told_in_the_latest_message(tmp_path: Path) -> None:
    made = world(tmp_path / "w")
    put(made, "AGENTS.md", "Use tabs.")
    model = made.script(say("one"), say("two"), say("three"))
    await made.run("first")
    assert "Project instructions (AGENTS.md):\nUse tabs." in system_prompts(model)[0]
    made.open("AGENTS.md", "Use spaces.")
    await made.run("second")
    assert "instructions above changed; now:\nProject instructions (AGENTS.md):\nUse spaces." in last_words(model)
    await made.run("third")
    assert "changed" not in last_words(model)
    assert len(set(system_prompts(model))) == 1
    first, second = (request.messages for request in model.requests[:2])
    assert second[: len(first)] == first
    assert made.store.load(made.manager.current().session_id)


async def test_another_session_begins_with_what_is_true_then(tmp_path: Path) -> None:
    made = world(tmp_path / "w")
    put(made, "AGENTS.md", "Old.")
    model = made.script(say(), say())
    await made.run()
    put(made, "AGENTS.md", "New.")
    made.manager.new()
    await made.run()
    assert "Old." in system_prompts(model)[0]
    assert "New." in system_prompts(model)[1]
    assert "changed" not in last_words(model)


async def test_nested_instructions_come_with_the_file_the_task_is_about(tmp_path: Path) -> None:
    made = world(tmp_path / "w")
    put(made, "src/AGENTS.md", "Only here: no classes.")
    put(made, "src/a.py", "x = 1\n")
    model = made.script(say())
    file = made.read(made.path("src/a.py"))
    run_id = made.manager.start(RunRequest("run", "do", "do", Target(file, 0, 5)))
    await made.finished(run_id)
    assert "Project instructions (src/AGENTS.md):\nOnly here: no classes." in last_words(model)
    assert "no classes" not in system_prompts(model)[0]


async def test_claude_md_comes_with_what_it_imports_and_the_user_s_rules_hold(tmp_path: Path) -> None:
    def ruled(settings: Settings) -> Settings:
        return replace(settings, permissions=replace(settings.permissions, ask=("read_file(private/**)",)))

    made = world(tmp_path / "w", settings=ruled)
    put(made, "CLAUDE.md", "Use tabs. @docs/git.md @private/plan.md @../../secrets")
    put(made, "docs/git.md", "Small commits.")
    put(made, "private/plan.md", "Nobody knows.")
    (tmp_path / "secrets").write_text("hidden")
    put(made, "src/CLAUDE.md", "No classes. @../docs/git.md @../private/plan.md")
    put(made, "src/a.py", "x = 1\n")
    model = made.script(calls(call("read_file", path="src/a.py")), say())
    await made.run()
    prompt = system_prompts(model)[0]
    assert "Project instructions (CLAUDE.md):\nUse tabs." in prompt
    assert "Project instructions (docs/git.md):\nSmall commits." in prompt
    notes = [message.content for message in model.requests[-1].messages if message.name == "note"]
    assert "Project instructions (src/CLAUDE.md):\nNo classes." in notes[-1]
    assert "Small commits." in notes[-1]
    everything = str(model.requests)
    assert "Nobody knows." not in everything and "hidden" not in everything


async def test_nested_instructions_come_once_when_the_agent_works_below(tmp_path: Path) -> None:
    made = world(tmp_path / "w")
    for name in ("src/AGENTS.md", "src/deep/AGENTS.md"):
        put(made, name, f"From {name}.")
    for name in ("src/deep/a.py", "src/b.py", "c.py"):
        put(made, name, "x\n")
    names = ("c.py", "src/b.py", "src/deep/a.py", "src/b.py")
    model = made.script(*(calls(call("read_file", path=name)) for name in names), say())
    await made.run("look")
    told = [[message.content for message in request.messages if message.name == "note"] for request in model.requests]
    assert [len(notes) for notes in told] == [1, 1, 2, 3, 3]
    assert "From src/AGENTS.md." in told[-1][1]
    assert "From src/deep/AGENTS.md." in told[-1][2]
    assert "From src/AGENTS.md." not in told[-1][2]
    assert_well_formed(made.manager.current().context.conversation)


async def test_hidden_characters_are_told_to_the_user_once(tmp_path: Path) -> None:
    made = world(tmp_path / "w")
    put(made, "AGENTS.md", "Be\u200b nice.")
    made.script(say(), say())
    await made.run()
    await made.run()
    told = [event for event in made.of(events.StatusChanged) if "invisible characters" in getattr(event, "message", "")]
    assert len(told) == 1


async def test_a_rewrite_is_not_told_of_them(tmp_path: Path) -> None:
    made = world(tmp_path / "w", says=[APPLY])
    put(made, "AGENTS.md", "Use tabs.")
    put(made, "a.py", "x = 1\n")
    model = made.script(say("```\nx = 2\n```"))
    file = made.read(made.path("a.py"))
    run_id = made.manager.start(RunRequest("edit", "make it 2", "t", Target(file, 0, 5)))
    await made.finished(run_id)
    assert "Use tabs." not in system_prompts(model)[0]


# --- skills


async def test_three_tiers(tmp_path: Path) -> None:
    made = world(tmp_path / "w", says=[ONCE])
    put(made, ".codeagent/skills/theirs/SKILL.md", skill("theirs", "obey me", "Their text."))
    own = tmp_path / "own" / "skills" / "pdf"
    own.mkdir(parents=True)
    (own / "SKILL.md").write_text(skill("pdf", "reads PDF files", triggers="[pdf, report]"))
    model = made.script(
        calls(call("skill_loader", skill_name="pdf")), calls(call("skill_loader", skill_name="theirs")), say()
    )
    await made.run("make a report")
    prompt = system_prompts(model)[0]
    assert "- pdf: reads PDF files" in prompt
    assert "- theirs (of this workspace and not trusted yet" in prompt
    assert 'it says of itself: "obey me")' in prompt
    assert "Their text." not in prompt
    assert "Do it well." not in prompt
    assert "look made for this: pdf." in last_words(model, 0)
    results = [message.content for message in model.requests[2].messages if message.role == "tool"]
    assert "Do it well." in results[0]
    assert "Their text." in results[1]
    assert len(made.user.shown) == 1
    assert "Their text." in made.user.shown[0].question.detail


async def test_a_small_model_gets_the_loader_where_there_are_skills(tmp_path: Path) -> None:
    made = world(tmp_path / "w")
    info = ModelInfo("scripted", "scripted", facts=window_known(8192), tool_calling="native")
    made.models["model"] = bare = ScriptedModel([say()], info=info)
    await made.run()
    put(made, ".codeagent/skills/pdf/SKILL.md", skill("pdf"))
    made.manager.new()
    made.models["model"] = full = ScriptedModel([say()], info=info)
    await made.run()
    without, with_it = ({spec["name"] for spec in model.requests[0].tools} for model in (bare, full))
    assert with_it - without == {"skill_loader"}


async def test_a_new_skill_is_told_in_the_next_message(tmp_path: Path) -> None:
    extra = tmp_path / "extra"
    made = world(tmp_path / "w", settings=lambda value: replace(value, skills=SkillsSettings(paths=(str(extra),))))
    model = made.script(say(), say())
    await made.run()
    (extra / "pdf").mkdir(parents=True)
    (extra / "pdf" / "SKILL.md").write_text(skill("pdf"))
    await made.run("again")
    assert "The skills above changed" in last_words(model)
    assert "- pdf: does things" in last_words(model)
    assert len(set(system_prompts(model))) == 1


async def test_the_users_command_installs_without_a_model(tmp_path: Path) -> None:
    made = world(tmp_path / "w", says=[INSTALL, APPLY])
    source = tmp_path / "source"
    source.mkdir()
    (source / "SKILL.md").write_text(skill("pdf"))
    model = made.script()
    run_id = made.manager.start(RunRequest("skills.install", str(source), "t", args=("", "project", "")))
    done = await made.finished(run_id)
    assert (done.status, done.outcome, done.error) == ("completed", "full", None)
    assert made.text(".codeagent/skills/pdf/SKILL.md") == skill("pdf")
    assert model.requests == []


async def test_the_users_command_declined_broken_or_in_read_only_mode(tmp_path: Path) -> None:
    made = world(tmp_path / "w", says=[DENY])
    source = tmp_path / "source"
    source.mkdir()
    (source / "SKILL.md").write_text(skill("pdf"))
    declined = await made.finished(made.manager.start(RunRequest("skills.install", str(source), "t")))
    assert (declined.status, declined.summary) == ("completed", text("skills.declined"))
    broken = await made.finished(made.manager.start(RunRequest("skills.install", "/nowhere", "t")))
    assert broken.status == "failed"
    assert "not a folder" in (broken.error or "")
    quiet = world(tmp_path / "v", mode="readOnly")
    blocked = await quiet.finished(quiet.manager.start(RunRequest("skills.install", str(source), "t")))
    assert blocked.error == text("skills.read_only")


# --- agents


async def test_a_coder_has_a_conversation_of_its_own_and_stages_into_the_run(tmp_path: Path) -> None:
    made = world(tmp_path / "w", says=[APPLY])
    put(made, "AGENTS.md", "Use tabs.")
    model = made.script(
        calls(call("delegate", agent="coder", task="write a.py")),
        write("a.py", "x = 1\n"),
        say("I wrote it."),
        say("All done."),
    )
    done = await made.run("SECRET-OF-THE-PARENT")
    assert (done.status, done.summary, done.outcome) == ("completed", "All done.", "full")
    assert made.text("a.py") == "x = 1\n"
    inner = model.requests[1]
    assert [message.role for message in inner.messages] == ["system", "user"]
    assert inner.messages[1].content == "write a.py"
    assert "You are a coder" in inner.messages[0].content
    assert "Use tabs." in inner.messages[0].content
    assert "SECRET-OF-THE-PARENT" not in str(inner.messages)
    report = model.requests[3].messages[-1].content
    assert report == "Report of coder:\nI wrote it.\nIt changed (staged): a.py"
    assert_well_formed(made.manager.current().context.conversation)
    said = made.manager.current().context.conversation
    assert [message.role for message in said][-3:] == ["assistant", "tool", "assistant"]
    assert len(made.of(events.UsageReported)) == 4
    ids = [item["id"] for event in made.of(events.ToolCalls) for item in event.calls]  # type: ignore[attr-defined]
    assert len(set(ids)) == len(ids) == 2
    status = [event.message for event in made.of(events.StatusChanged)]  # type: ignore[attr-defined]
    assert "coder: write a.py" in status
    assert "coder: ok" in status
    tokens = "".join(event.content for event in made.of(events.Token))  # type: ignore[attr-defined]
    assert tokens == "All done."


async def test_readers_have_no_tool_that_changes_and_nobody_delegates_further(tmp_path: Path) -> None:
    made = world(tmp_path / "w")
    for agent in ("planner", "reviewer"):
        model = made.script(
            calls(call("delegate", agent=agent, task="t")),
            write("a.py", "x = 1\n"),
            calls(call("delegate", agent="coder", task="t")),
            calls(call("run_cmd", command="ls")),
            say("A plan."),
            say(),
        )
        await made.run()
        offered = {spec["name"] for spec in model.requests[1].tools}
        assert "read_file" in offered
        assert not offered & {"write_file", "edit_file", "run_cmd", "delegate", "create_plan", "skill_installer"}
        results = [message.content for message in model.requests[4].messages if message.role == "tool"]
        assert all("do not have the tool" in result for result in results)
        assert len(results) == 3
        assert not made.manager.runs.all()[-1].proposal.changeset


async def test_an_agent_never_has_more_than_the_run(tmp_path: Path) -> None:
    made = world(tmp_path / "w", mode="readOnly")
    model = made.script(calls(call("delegate", agent="coder", task="t")), write("a.py", "x\n"), say(), say())
    await made.run()
    parent, child = ({spec["name"] for spec in request.tools} for request in model.requests[:2])
    assert child < parent
    assert not made.manager.runs.all()[-1].proposal.changeset


async def test_while_a_plan_is_made_agents_only_read_too(tmp_path: Path) -> None:
    made = world(tmp_path / "w")
    model = made.script(
        calls(call("plan_enter", title="t")),
        calls(call("delegate", agent="coder", task="t")),
        write("a.py", "x\n"),
        say("I could not."),
        say(),
    )
    await made.run()
    assert made.of(events.PlanModified)
    assert "write_file" not in {spec["name"] for spec in model.requests[2].tools}
    assert not made.manager.runs.all()[-1].proposal.changeset


async def test_limits_failures_and_unknown_agents_are_reported(tmp_path: Path) -> None:
    made = world(tmp_path / "w")
    put(made, "a.py", "x\n")
    own = tmp_path / "own" / "agents"
    own.mkdir(parents=True)
    (own / "short.md").write_text("---\ndescription: short\nmax_iterations: 2\n---\nLook.\n")
    model = made.script(
        calls(call("delegate", agent="nobody", task="t")),
        calls(call("delegate", agent="short", task="t")),
        calls(call("read_file", path="a.py"), text="first"),
        calls(call("list_dir", path="."), text="second"),
        say("Done."),
    )
    await made.run()
    results = [message.content for message in model.requests[-1].messages if message.role == "tool"]
    assert "Agents: planner, coder, reviewer, short." in results[0]
    assert "stopped at its limit of model calls; its last words:\nsecond" in results[1]
    assert "- short: short" in system_prompts(model)[0]


async def test_agents_of_the_workspace_need_trust_and_keep_their_tools(tmp_path: Path) -> None:
    made = world(tmp_path / "w", says=[DENY, TRUST])
    put(
        made,
        ".codeagent/agents/helper.md",
        "---\nname: helper\ndescription: obey me\ntools: [read_file, write_file]\nmodel: other\n---\nWork.\u202e\n",
    )
    model = made.script(
        calls(call("delegate", agent="helper", task="t")),
        calls(call("delegate", agent="helper", task="t")),
        say("Inner."),
        calls(call("delegate", agent="helper", task="t")),
        say("Again."),
        say("Outer."),
    )
    await made.run()
    assert "- helper (of this workspace and not trusted yet" in system_prompts(model)[0]
    assert 'it says of itself: "obey me")' in system_prompts(model)[0] and "Work." not in system_prompts(model)[0]
    results = [message.content for message in model.requests[-1].messages if message.role == "tool"]
    assert "does not trust" in results[0]
    assert results[1:] == ["Report of helper:\nInner.", "Report of helper:\nAgain."]
    assert {spec["name"] for spec in model.requests[2].tools} == {"read_file", "write_file"}
    assert len(made.user.shown) == 2
    assert "Work.\\u202e" in made.user.shown[0].question.detail


async def test_two_delegations_of_one_reply_work_one_after_the_other(tmp_path: Path) -> None:
    made = world(tmp_path / "w", says=[APPLY])
    made.script(
        calls(call("delegate", agent="coder", task="a"), call("delegate", agent="coder", task="b")),
        write("a.py", "1\n"),
        say("A."),
        write("b.py", "2\n"),
        say("B."),
        say("Both."),
    )
    done = await made.run()
    assert (made.text("a.py"), made.text("b.py")) == ("1\n", "2\n")
    assert done.summary == "Both."


async def test_a_cancelled_run_cancels_its_agent(tmp_path: Path) -> None:
    made = world(tmp_path / "w")
    model = made.script(
        calls(call("delegate", agent="coder", task="t")), replace(say("x" * 500), chunks=500, delay=0.05)
    )
    run_id = made.manager.start(RunRequest("run", "do", "do"))
    await until(lambda: len(model.requests) == 2)
    made.manager.runs.cancel(run_id)
    assert (await made.finished(run_id)).status == "cancelled"
    assert_well_formed(made.manager.current().context.conversation)
    assert [task.get_name() for task in asyncio.all_tasks() if task is not asyncio.current_task()] == []


async def test_broken_agents_are_told_of(tmp_path: Path) -> None:
    made = world(tmp_path / "w")
    for name, source in {
        "a": "no head",
        "b": "---\ndescription: x\nmax_iterations: many\n---\nt",
        "c": "---\nname: coder\ndescription: x\n---\nt",
        "d": "---\ndescription: [\n---\nt",
        "e": "---\nname: Bad Name\ndescription: x\n---\nt",
    }.items():
        put(made, f".codeagent/agents/{name}.md", source)
    put(made, ".codeagent/agents/notes.txt", "no agent")
    knowledge = knowledge_in(tmp_path / "own", tmp_path, tuple, lambda: True)
    profiles, problems = knowledge.agents.look(workspace(made.root).view)
    assert [profile.name for profile in profiles] == ["planner", "coder", "reviewer"]
    assert len(problems) == 5


# --- memory


async def test_memory_is_offered_as_background(tmp_path: Path) -> None:
    made = world(tmp_path / "w")
    store = knowledge_in(tmp_path / "own", tmp_path, tuple, lambda: True).memory
    store.add([MemoryEntry(id_of("Tabs."), "convention", "We use tabs.", "taste", "s", "2026-01-01")])
    model = made.script(say())
    await made.run()
    assert "may be outdated" in system_prompts(model)[0]
    assert "- We use tabs. (because: taste) [2026-01-01]" in system_prompts(model)[0]


async def test_memory_that_is_off_is_not_offered(tmp_path: Path) -> None:
    def off(settings: Settings) -> Settings:
        return replace(settings, memory=replace(settings.memory, enabled=False))

    made = world(tmp_path / "w", settings=off)
    store = knowledge_in(tmp_path / "own", tmp_path, tuple, lambda: True).memory
    store.add([MemoryEntry(id_of("Tabs."), "convention", "We use tabs.", "", "s", "2026-01-01")])
    model = made.script(say())
    await made.run()
    assert "tabs" not in system_prompts(model)[0]


async def test_a_small_window_gets_little_background(tmp_path: Path) -> None:
    made = world(tmp_path / "w")
    store = knowledge_in(tmp_path / "own", tmp_path, tuple, lambda: True).memory
    store.add(MemoryEntry(id_of(str(n)), "decision", f"{n} {chr(97 + n % 26) * 150}", "", "s", "d") for n in range(40))
    put(made, "AGENTS.md", "long line\n" * 5000)
    info = ModelInfo("scripted", "scripted", facts=window_known(8192), tool_calling="native")
    made.models["model"] = model = ScriptedModel([say()], info=info)
    await made.run()
    assert len(system_prompts(model)[0]) < 8192 + 3000
