"""What the user's words point at comes with the task, as it is now; what cannot be found or shown is told."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from codeagent_lsp import events
from codeagent_lsp.llm.learned_facts import Facts, combine
from codeagent_lsp.llm.model import ModelInfo
from codeagent_lsp.llm.providers.scripted import ScriptedModel, ScriptedReply
from codeagent_lsp.session.request import MOST_MENTIONS, RunKind, RunRequest, Target
from codeagent_lsp.shadow.shell import Finished
from codeagent_lsp.texts import text
from codeagent_lsp.tools.diagnostics.difference import Diagnostic
from tests.session.fakes import World, call, calls, say, until, world
from tests.tools.git import repos
from tests.tools.shells import FakeEnvironments

CART = "class Cart:\n    def total(self):\n        return 0\n\n    def clear(self):\n        self.items = []\n"
PNG = b"\x89PNG\r\n\x1a\n" + bytes(64)


@dataclass
class Told:
    """What the model was given, and what the user was told."""

    text: str
    notes: list[str]
    status: str
    error: str


def put(made: World, name: str, content: str | bytes) -> None:
    path = made.root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)


async def ask(made: World, words: str, kind: RunKind = "run") -> Told:
    model = made.script(say("Well."))
    done = await made.finished(made.manager.start(RunRequest(kind, words, words)))
    given = model.requests[0].messages if model.requests else ()
    notes = [event.message for event in made.of(events.StatusChanged) if isinstance(event, events.StatusChanged)]
    return Told("\n".join(each.content for each in given if each.role == "user"), notes, done.status, str(done.error))


async def test_a_symbol_of_the_unsaved_text(tmp_path: Path) -> None:
    made = world(tmp_path / "w")
    put(made, "src/cart.py", "old = 1\n")
    made.open("src/cart.py", CART)
    told = await ask(made, "What does @src/cart.py#Cart.total do?")
    assert "Cart.total in src/cart.py:\n2|    def total(self):\n3|        return 0" in told.text
    assert "What does @src/cart.py#Cart.total do?" in told.text


@pytest.mark.parametrize("words", ["@src/cart.py:2-3", "@src/cart.py#L2-L3", "@cart.py:2-3", '@"src/cart.py"#L2-3'])
async def test_lines(tmp_path: Path, words: str) -> None:
    made = world(tmp_path / "w")
    put(made, "src/cart.py", CART)
    told = await ask(made, f"What about {words}?")
    assert "src/cart.py, lines 2-3, as they are now:\n2|    def total(self):\n3|        return 0\n(lines" in told.text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("看看@src/cart.py:2-3里", "lines 2-3"),
        ("@src/cart.py#Cart.clear的作用", "Cart.clear in src/cart.py"),
        ("@src/cart.py:2:9", "lines 2-2"),
        ("@文档/说明.md里写了什么", "第一行"),
        ("@src里有什么", "In src:"),
        ("src/cart.py里的问题在哪", "def total"),
        ("fix @src/cart.py’s total", "def total"),
    ],
)
async def test_languages_without_blanks(tmp_path: Path, words: str, shown: str) -> None:
    made = world(tmp_path / "w")
    put(made, "src/cart.py", CART)
    put(made, "文档/说明.md", "第一行\n")
    told = await ask(made, words, "ask")
    assert shown in told.text
    assert not [note for note in told.notes if "Not found" in note]


async def test_a_whole_file_comes_once(tmp_path: Path) -> None:
    made = world(tmp_path / "w")
    put(made, "src/cart.py", CART)
    put(made, "lib/src/cart.py", "other = 1\n")
    for words in ("What about @lib/src/cart.py?", "What about @src/cart.py?"):  # the second one is ambiguous as words
        told = await ask(made, words)
        assert told.text.count("other = 1" if "lib" in words else "def total") == 1, words


async def test_a_folder(tmp_path: Path) -> None:
    made = world(tmp_path / "w")
    put(made, "src/cart.py", CART)
    assert "In src:\nsrc/cart.py" in (await ask(made, "What is in @src/?")).text


@pytest.mark.slow
async def test_the_diff(tmp_path: Path) -> None:
    made = world(tmp_path / "w")
    put(made, "cart.py", CART)
    repos.start(made.root, b__py="x = 1\n")
    assert "There is nothing to show for @diff." in (await ask(made, "Review @diff")).notes
    made.open("cart.py", CART.replace("return 0", "return 1"))
    assert "+        return 1" in (await ask(made, "Review @diff.")).text


async def test_the_diagnostics(tmp_path: Path) -> None:
    made = world(tmp_path / "w")
    put(made, "cart.py", CART)
    made.open("cart.py", CART)

    class Shown:
        async def of(self, path: str) -> tuple[Diagnostic, ...]:
            return (Diagnostic(path, 3, 9, "error", "0 is no total", "lint", "T1"),)

    services = made.manager._services
    made.manager._services = replace(services, workspace=replace(services.workspace, diagnostics=Shown()))
    assert "cart.py:3:9 error T1 0 is no total (lint)" in (await ask(made, "Mend @diagnostics")).text


async def test_the_output_of_the_last_command(tmp_path: Path) -> None:
    made = world(
        tmp_path / "w",
        calls(call("run_cmd", command="make")),
        say("No."),
        environments=FakeEnvironments([Finished(2, "boom\n")]),
    )
    await made.run()
    told = await ask(made, "Why @terminal-output ?")
    assert "The output of the last command (@terminal-output):\nboom" in told.text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "note"),
    [
        ("@nothing.py", "Not found, so it stays a word: @nothing.py"),
        ("@src/nothing", "Not found, so it stays a word: @src/nothing"),
        ("@cart.py#nothing", "Not found, so it stays a word: @cart.py#nothing"),
        ("@cart.py:99", "Not found, so it stays a word: @cart.py:99"),
        ("@selection", "There is nothing to show for @selection."),
        ("@terminal-output", "There is nothing to show for @terminal-output."),
        ("@.env", "Not shown to the model, as reading it needs your approval: @.env"),
        ("@../outside.py", "Not found, so it stays a word: @../outside.py"),
        ("@link.py", "Not found, so it stays a word: @link.py"),
        ("@data.bin", "Not shown to the model: @data.bin. data.bin: The file is binary, not text."),
        ("@pipe.txt", "Not shown to the model: @pipe.txt. pipe.txt is a pipe, not a file of text."),
        ("@long.txt", "Not shown to the model: @long.txt. long.txt has 2,000,000 bytes, more than the limit of"),
    ],
)
async def test_what_cannot_be_shown_is_told(tmp_path: Path, words: str, note: str) -> None:
    made = world(tmp_path / "w")
    put(made, "cart.py", CART)
    put(made, ".env", "KEY=none\n")
    put(made, "data.bin", bytes(range(256)) * 10)
    put(made, "long.txt", b"x" * 2_000_000)
    os.mkfifo(made.root / "pipe.txt")
    (tmp_path / "outside.py").write_text("secret = 1\n")
    (made.root / "link.py").symlink_to(tmp_path / "outside.py")
    told = await ask(made, f"What about {words}")
    assert [line for line in told.notes if line.startswith(note)]
    assert "KEY=" not in told.text and "secret = 1" not in told.text
    assert told.status == "completed"


async def test_a_word_with_a_sign_is_a_word(tmp_path: Path) -> None:
    made = world(tmp_path / "w")
    put(made, "cart.py", CART)
    words = "Why @property, @dataclass, @pytest.mark.slow and @app.route('/x')? Mail me: a@b.org, git@host.org:x/y"
    assert (await ask(made, words)).notes == []


async def test_a_file_that_is_ignored_comes_when_it_is_named(tmp_path: Path) -> None:
    made = world(tmp_path / "w")
    put(made, ".codeagentignore", "notes.txt\n")
    put(made, "notes.txt", "mine alone\n")
    assert "mine alone" not in (await ask(made, "What about notes.txt")).text, "it is no file of the workspace"
    assert "mine alone" in (await ask(made, "What about @notes.txt")).text


@pytest.mark.slow
async def test_small_windows_get_what_fits(tmp_path: Path) -> None:
    made = world(tmp_path / "w")
    put(made, "long.py", "".join(f"x{number} = {number}\n" for number in range(20_000)))
    put(made, "other.py", "y = 1\ny = 2\n")
    told = await ask(made, "What about @long.py:1-19000 and @other.py:1-2")
    assert len(told.text) < 60_000
    assert "more characters)" in told.text
    assert any("only its beginning is shown to the model: @long.py:1-19000" in note for note in told.notes)
    assert any("has no room left: @other.py:1-2" in note for note in told.notes)


async def test_a_medium_file_in_a_small_window(tmp_path: Path) -> None:
    """Larger than what the starting context takes, it was dropped without a word."""
    made = world(tmp_path / "w")
    put(made, "long.py", "".join(f"x{number} = {number}\n" for number in range(700)))
    facts = combine([("server", Facts(context_window=8192))])
    info = ModelInfo("m", "scripted", facts=facts, tool_calling="native")
    model = made.models["model"] = ScriptedModel([say("Well.")], info=info)
    await made.run("What about @long.py?")
    given = "\n".join(each.content for each in model.requests[0].messages)
    assert "The beginning of the file long.py, as it is now:\n" in given and "x1 = 1" in given
    notes = [str(vars(event)) for event in made.of(events.StatusChanged)]
    assert any("only its beginning is shown to the model: @long.py" in note for note in notes)


async def test_a_file_that_stands_above_is_not_repeated(tmp_path: Path) -> None:
    made = world(tmp_path / "w")
    put(made, "cart.py", CART + "# more\n" * 100)
    assert "def total" in (await ask(made, "What about @cart.py?")).text
    again = (await ask(made, "And again @cart.py?")).text
    assert again.count("def total") == 1 and "The whole file cart.py stands above, unchanged." in again


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["edit", "fix", "refactor", "document", "explain", "test"])
async def test_quick_actions_see_what_is_mentioned(tmp_path: Path, kind: RunKind) -> None:
    made = world(tmp_path / "w")
    put(made, "cart.py", CART)
    put(made, "a.png", PNG)
    put(made, "style.md", "Short names only.\n")
    made.open("cart.py", CART)
    file = made.read(str(made.root / "cart.py"))
    model = made.script(say("Well."))
    words = "as @style.md and @style.md:1 say" + (", like @a.png" if kind == "edit" else "")
    await made.finished(made.manager.start(RunRequest(kind, words, words, Target(file, 0, len(CART)))))
    given = "\n".join(each.content for each in model.requests[0].messages)
    assert "The whole file style.md, as it is now:\n1|Short names only." in given
    assert "style.md, lines 1-1" in given
    notes = [str(vars(event)) for event in made.of(events.StatusChanged)]
    assert (kind == "edit") == any("takes no pictures" in note and "@a.png" in note for note in notes)


async def test_attachments_without_words_are_asked_about(tmp_path: Path) -> None:
    made = world(
        tmp_path / "w",
        ScriptedReply("```\nx = 2\n```", expect="style.md, lines 1-1"),
        says=["double it", text("choice.apply")],
    )
    put(made, "style.md", "Short names only.\n")
    file = made.read(made.open("a.py", "x = 1\n"))
    request = RunRequest("edit", "@style.md:1", "edit", Target(file, 0, 6), wordless=True)
    run_id = made.manager.start(request)
    await until(lambda: made.user.shown)
    assert made.user.shown[0].question.title == text("ask.instruction")
    await made.finished(run_id)


async def test_what_the_user_gives_a_command_is_looked_up_where_its_text_has_it_as_code(tmp_path: Path) -> None:
    made = world(tmp_path / "w", says=(text("choice.trust"),))
    put(made, ".claude/commands/fix.md", "Fix `$ARGUMENTS`, not `@b.py:1`.")
    put(made, "a.py", "a = 1\n")
    put(made, "b.py", "b = 2\n")
    told = await ask(made, "/fix @a.py:1")
    assert "Fix `@a.py:1`, not `@b.py:1`." in told.text
    assert [f"{name}.py, lines 1-1, as they are now" in told.text for name in "ab"] == [True, False]


async def test_a_name_that_several_files_have_is_told_as_such(tmp_path: Path) -> None:
    made = world(tmp_path / "w")
    for name in ("a/same.py", "b/same.py"):
        put(made, name, "x = 1\n")
    told = await ask(made, "What does @same.py do?")
    assert [line for line in told.notes if line.startswith("More than one file")] and "x = 1" not in told.text
    assert "x = 1" in (await ask(made, "What does @a/same.py do?")).text


@pytest.mark.parametrize(("on_disk", "typed"), [("caf\u00e9.py", "cafe\u0301.py"), ("cafe\u0301.py", "caf\u00e9.py")])
async def test_letters_with_marks_are_the_same_however_they_are_written(
    tmp_path: Path, on_disk: str, typed: str
) -> None:
    made = world(tmp_path / "w")
    put(made, f"src/{on_disk}", "x = 1\n")
    for name in (typed, f"src/{typed}"):
        assert "x = 1" in (await ask(made, f"What does @{name} do?")).text


async def test_one_mention_too_many_is_told(tmp_path: Path) -> None:
    made = world(tmp_path / "w")
    put(made, "cart.py", CART)
    told = await ask(made, " ".join(f"@cart.py:{number}" for number in range(1, MOST_MENTIONS + 3)))
    assert any(f"Only the first {MOST_MENTIONS}" in note for note in told.notes)


def seeing(made: World, vision: bool | None) -> ScriptedModel:
    facts = combine([("server", Facts(context_window=32_768, vision=vision))])
    model = ScriptedModel([say("A screenshot.")], info=ModelInfo("m", "scripted", facts=facts, tool_calling="native"))
    made.models["model"] = model
    return model


async def test_a_picture_for_a_model_that_sees(tmp_path: Path) -> None:
    made = world(tmp_path / "w")
    put(made, "shots/a b.png", PNG)
    model = seeing(made, True)
    done = await made.run('What does @"shots/a b.png" show?')
    assert done.status == "completed"
    (message,) = [message for message in model.requests[0].messages if message.images]
    assert (message.role, message.images[0].media_type) == ("user", "image/png")
    assert "What does" in message.content


@pytest.mark.parametrize("vision", [False, None])
async def test_a_picture_is_refused_where_the_model_does_not_see(tmp_path: Path, vision: bool | None) -> None:
    made = world(tmp_path / "w")
    put(made, "a.png", PNG)
    model = seeing(made, vision)
    done = await made.run("What does @a.png show?")
    assert (done.status, model.requests) == ("failed", [])
    assert "does not see pictures" in str(done.error)


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [("a.jpg", PNG, "image/png"), ("a.PNG", b"RIFF\x10\0\0\0WEBPVP8 ", "image/webp"), ("a.png", b"<html>", "")],
)
async def test_a_picture_is_what_its_content_says(tmp_path: Path, name: str, content: bytes, kind: str) -> None:
    made = world(tmp_path / "w")
    put(made, name, content)
    model = seeing(made, True)
    done = await made.run(f"What does @{name} show?")
    if kind:
        (message,) = [message for message in model.requests[0].messages if message.images]
        assert message.images[0].media_type == kind
    else:
        assert "is not a PNG, JPEG or WebP picture" in str(done.error)
        assert not model.requests


async def test_a_picture_that_is_too_large(tmp_path: Path) -> None:
    made = world(tmp_path / "w")
    put(made, "a.png", PNG + bytes(5 << 20))
    seeing(made, True)
    assert "The picture a.png cannot be used" in str((await made.run("What does @a.png show?")).error)
