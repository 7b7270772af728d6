"""The files that define hooks: what is read, left out and covered by the digest; what answers mean."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from codeagent_lsp.call_forms import CallForms
from codeagent_lsp.tools.catalogue import BUILTIN
from codeagent_lsp.tools.commands.command_tools import RunCmd
from codeagent_lsp.tools.hooks.hook_files import Hook, HookFile, HookLibrary
from codeagent_lsp.tools.hooks.hook_protocol import MOST_CHARS, as_json, command_line, names_of, subjects, tool_input
from codeagent_lsp.tools.permissions.shell_policy import covering_rule, judge
from codeagent_lsp.tools.skills.trust import Trust
from codeagent_lsp.tools.traits import ToolTraits
from tests.clock import processor_seconds
from tests.tools.fakes import Bench


def traits(name: str) -> ToolTraits:
    """Those of a built-in tool, or of one of another server."""
    return next((cls.traits for cls in BUILTIN if cls.traits.name == name), ToolTraits(name, "", "read"))


def group(command: str, matcher: Any = None, **more: Any) -> dict[str, Any]:
    inner = {"hooks": [{"type": "command", "command": command, **more}]}
    return inner if matcher is None else {"matcher": matcher, **inner}


def hooks(**events: Any) -> str:
    return json.dumps({"hooks": events})


class Shelf:
    def __init__(self, folder: Path) -> None:
        self.bench = Bench(folder / "w")
        self.own = folder / "own" / "hooks.json"
        self.own.parent.mkdir()
        self.shelf = HookLibrary((self.own, folder / ".claude" / "settings.json"), Trust(folder / "trusted.json"))

    def put(self, text: str, name: str = ".claude/settings.json") -> None:
        self.bench.write(name, text)

    def files(self) -> tuple[HookFile, ...]:
        return self.shelf.files(self.bench.view)

    @property
    def only(self) -> HookFile:
        (file,) = self.files()
        return file


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path)


def test_nothing_is_no_hook(shelf: Shelf) -> None:
    assert shelf.files() == ()
    shelf.put('{"permissions": {"allow": ["Bash"]}}')
    shelf.put(hooks(), ".codeagent/hooks.json")
    assert shelf.files() == ()
    shelf.put('{"PreToolUse": []}', ".codeagent/hooks.json")
    assert shelf.only.left_out == ("hooks",), "a file for hooks alone has them under their name"


def test_files_of_the_workspace_and_of_the_user(shelf: Shelf) -> None:
    shelf.put(hooks(PreToolUse=[group("a", "Bash")], PostToolUse=[group("b", "Edit|Write", timeout=5)]))
    shelf.put(hooks(UserPromptSubmit=[group("c")], Stop=[group("d")]), ".codeagent/hooks.json")
    shelf.own.write_text(hooks(RunEnd=[group("e")]))
    found = {hook for file in shelf.files() for hook in file.hooks}
    assert found == {
        Hook("PreToolUse", "a", ("Bash",)),
        Hook("PostToolUse", "b", ("Edit", "Write"), 5.0),
        Hook("UserPromptSubmit", "c"),
        Hook("PreProposal", "d"),
        Hook("RunEnd", "e"),
    }
    assert [file.foreign for file in shelf.files()] == [False, False, True]


@pytest.mark.parametrize(
    ("matcher", "yes", "no"),
    [
        (None, "edit_file grep", ""),
        ("", "edit_file grep", ""),
        ("*", "edit_file grep files.read", ""),
        ("Edit|Write", "edit_file write_file apply_patch batch_edit edit_by_ast rename_symbol", "grep run_cmd"),
        ("MultiEdit", "batch_edit", "edit_file edit_by_ast"),
        ("^(Edit|Write)$", "edit_file write_file", "grep"),
        ("^Edit$|^Write$", "edit_file write_file", "grep"),
        (" Edit | Write ", "edit_file", "grep"),
        ("edit_file", "edit_file edit_by_ast", "write_file"),
        ("mcp__files__.*", "files.read", "grep other.read"),
        ("Web.*", "web_search web_scrape", "grep"),
        ("edit", "", "edit_file"),
    ],
)
def test_which_tools_a_hook_is_for(shelf: Shelf, matcher: Any, yes: str, no: str) -> None:
    shelf.put(hooks(PreToolUse=[group("x", matcher)]))
    file = shelf.only
    for names, right in ((yes, True), (no, False)):
        for name in names.split():
            assert bool(file.of("PreToolUse", names_of(traits(name)))) == right, name


@pytest.mark.parametrize(
    ("matcher", "sources"),
    [
        (None, "startup resume"),
        ("", "startup resume"),
        ("*", "startup resume"),
        ("startup", "startup"),
        ("resume", "resume"),
        ("startup|resume|clear|compact", "startup resume"),
        ("^(startup|clear)$", "startup"),
    ],
)
def test_which_beginnings_a_hook_is_for(shelf: Shelf, matcher: Any, sources: str) -> None:
    shelf.put(hooks(SessionStart=[group("x", matcher)]))
    found = [source for source in ("startup", "resume", "clear") if shelf.only.of("SessionStart", (source,))]
    assert [source for source in found if source != "clear"] == sources.split()


@pytest.mark.parametrize(
    ("text", "left_out"),
    [
        (hooks(SessionStart=[group("x", "compact")]), ("SessionStart",)),
        (hooks(SessionStart=[group("x", "clear|compact")]), ("SessionStart",)),
        (hooks(SessionEnd=[group("x")]), ("SessionEnd",)),
        (hooks(PreToolUse=[group("x", "(a+)+$")]), ("PreToolUse",)),
        (hooks(PreToolUse=[group("x", 7)]), ("PreToolUse",)),
        (hooks(PreToolUse=[group("  ")]), ("PreToolUse",)),
        (hooks(PreToolUse=[{"hooks": [{"type": "prompt", "prompt": "x"}]}]), ("PreToolUse",)),
        (hooks(PreToolUse=[{"hooks": ["x", None]}]), ("PreToolUse",)),
        (hooks(PreToolUse="x"), ("PreToolUse",)),
        (hooks(PreToolUse=group("x")), ("PreToolUse",)),
        (hooks(PreToolUse=[{"type": "command", "command": "x"}]), ("PreToolUse",)),
        (hooks(PreToolUse=[{"hooks": {"type": "command", "command": "x"}}]), ("PreToolUse",)),
        ('{"hooks": {"PreToolUse": [[]]}}', ("PreToolUse",)),
        ('{"hooks": "x"}', ("hooks",)),
        ('{"hooks": ["x"]}', ("hooks",)),
        ('{"hooks": []}', None),
        (hooks(PreToolUse=[]), None),
    ],
)
def test_what_is_not_understood(shelf: Shelf, text: str, left_out: tuple[str, ...] | None) -> None:
    shelf.put(text)
    if left_out is None:
        assert shelf.files() == ()
    else:
        assert (shelf.only.hooks, shelf.only.left_out) == ((), left_out)


@pytest.mark.parametrize("name", [".claude/settings.json", ".codeagent/hooks.json"])
@pytest.mark.parametrize("text", ["{", "[]", "\ud800", "[" * 100_000, '{"a": "' + "x" * 300_000 + '"}'])
def test_a_broken_file_is_told(shelf: Shelf, text: str, name: str) -> None:
    """A guard may have been in it."""
    shelf.bench.write(name, text.encode("utf-8", "surrogatepass"))
    assert shelf.only.left_out == ("the file: not a JSON object",)


def test_a_link_out_of_the_workspace_is_told(shelf: Shelf, tmp_path: Path) -> None:
    (tmp_path / "elsewhere.json").write_text(hooks(PreToolUse=[group("x")]))
    path = Path(shelf.bench.path(".claude/settings.json"))
    path.parent.mkdir(exist_ok=True)
    path.symlink_to(tmp_path / "elsewhere.json")
    assert (shelf.only.hooks, shelf.only.left_out) == ((), ("the file: not a JSON object",))


@pytest.mark.parametrize(
    ("condition", "tool", "about", "met"),
    [
        ("", "run_cmd", ("ls",), True),
        ("Bash(git *)", "run_cmd", ("git push", "git push"), True),
        ("Bash(git *)", "run_cmd", ("cd a && git push", "cd a", "git push"), True),
        ("Bash(git:*)", "run_cmd", ("git",), True),
        ("Bash(git *)", "run_cmd", ("legit push",), False),
        ("Bash(git *)", "write_file", ("git push",), False),
        ("Bash", "run_beside", ("ls",), True),
        ("Edit(*.ts)", "apply_patch", ("/w/src/a.ts", "src/a.ts"), True),
        ("Edit(src/**)", "edit_file", ("/w/src/a/b.ts", "src/a/b.ts"), True),
        ("Edit(*.ts)", "edit_file", ("/w/a.py", "a.py"), False),
        ("Write(.env)", "write_file", ("/w/.env", ".env"), True),
        ("Write(*)", "write_file", (), True),
    ],
)
def test_conditions(shelf: Shelf, condition: str, tool: str, about: tuple[str, ...], met: bool) -> None:
    entry = {"type": "command", "command": "x", **({"if": condition} if condition else {})}
    shelf.put(hooks(PreToolUse=[{"hooks": [entry]}]))
    (hook,) = shelf.only.hooks
    assert hook.is_met(names_of(traits(tool)), about) is met


def test_a_condition_that_is_not_understood(shelf: Shelf) -> None:
    for condition in (7, "Bash(x", "a b(c)"):
        shelf.put(hooks(PreToolUse=[{"hooks": [{"type": "command", "command": "x", "if": condition}]}]))
        assert (shelf.only.hooks, shelf.only.left_out) == ((), ("PreToolUse",)), condition


@pytest.mark.parametrize("by", ["workspace", "user"])
def test_all_hooks_are_switched_off(shelf: Shelf, by: str) -> None:
    """The workspace does so for its own only: the user's guards are the user's."""
    off = json.dumps({"disableAllHooks": True})
    shelf.own.write_text(hooks(PreToolUse=[group("own")]))
    theirs = shelf.own.parent.parent / ".claude" / "settings.json"
    theirs.parent.mkdir(exist_ok=True)
    theirs.write_text(off if by == "user" else hooks(PreToolUse=[group("theirs")]))
    shelf.bench.write(".claude/settings.json", hooks(PreToolUse=[group("project")]))
    shelf.bench.write(".codeagent/hooks.json", hooks(PreToolUse=[group("ours")]))
    if by == "workspace":
        shelf.bench.write(".claude/settings.local.json", off)
    left = [hook.command for file in shelf.files() for hook in file.hooks]
    assert left == (["own", "theirs", "ours"] if by == "workspace" else ["own", "ours"])


@pytest.mark.parametrize(
    ("timeout", "seconds"), [(3, 3.0), (0, 60.0), (-1, 60.0), ("x", 60.0), (True, 60.0), (9e9, 600.0), (900, 600.0)]
)
def test_time_limits(shelf: Shelf, timeout: Any, seconds: float) -> None:
    shelf.put(hooks(PreToolUse=[group("x", timeout=timeout)]))
    assert shelf.only.hooks[0].seconds == seconds


def test_there_is_a_most(shelf: Shelf) -> None:
    shelf.put(hooks(PreToolUse=[group(f"x{number}") for number in range(60)]))
    assert (len(shelf.only.hooks), shelf.only.left_out) == (50, ("PreToolUse",))


# --- the digest


def test_the_digest_covers_the_hooks_alone(shelf: Shelf) -> None:
    shelf.put(hooks(PreToolUse=[group("x", "Bash")]))
    first = shelf.only.digest
    shelf.put(json.dumps({"model": "other", "hooks": {"PreToolUse": [group("x", "Bash")]}}))
    assert shelf.only.digest == first
    for changed in (group("y", "Bash"), group("x", "Edit"), group("x", "Bash", timeout=3)):
        shelf.put(hooks(PreToolUse=[changed]))
        assert shelf.only.digest != first


@pytest.mark.parametrize(
    "command",
    [
        "sh .claude/check.sh",
        '"$CLAUDE_PROJECT_DIR"/.claude/check.sh',
        "$CLAUDE_PROJECT_DIR/.claude/check.sh --fast",
        "${CODEAGENT_PROJECT_DIR}/.claude/check.sh",
        "cat x | ./.claude/check.sh",
        "jq -r .x | xargs bash -e .claude/check.sh",
        "A=1 python3.11 -u .claude/check.sh",
        "true && . .claude/check.sh",
        "if test -e x; then scripts/check.sh; fi",
        "node scripts/check.sh",
        "cd src\nscripts/check.sh",
        "make x || (scripts/check.sh)",
    ],
)
def test_the_digest_covers_scripts(shelf: Shelf, command: str) -> None:
    shelf.put(hooks(PreToolUse=[group(command)]))
    name = "scripts/check.sh" if "scripts/" in command else ".claude/check.sh"
    digests = [shelf.only.digest]
    path = shelf.bench.write(name, "exit 0\n")
    digests.append(shelf.only.digest)
    shelf.bench.write(name, "exit 2\n")
    digests.append(shelf.only.digest)
    shelf.bench.open(name, "exit 3\n")  # unsaved
    digests.append(shelf.only.digest)
    shelf.bench.staging.write({path: "exit 4\n"}, [shelf.bench.view.read(path)])  # by the agent
    digests.append(shelf.only.digest)
    assert len(set(digests)) == 5


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "script"),
    [
        ("bash -c 'cd \"$CLAUDE_PROJECT_DIR\" && ./scripts/check'", "scripts/check"),
        ('"${CLAUDE_PROJECT_DIR:-.}"/scripts/check', "scripts/check"),
        ('"${CLAUDE_PROJECT_DIR%/}/scripts/check"', "scripts/check"),
        ("cd scripts && ./check", "scripts/check"),
        ("$PWD/scripts/check", "scripts/check"),
        ('"$(git rev-parse --show-toplevel)"/scripts/check.sh', "scripts/check.sh"),
        ("`pwd`/scripts/check.sh", "scripts/check.sh"),
        ("timeout 10 scripts/check", "scripts/check"),
        ("timeout -k 1 10 python3 scripts/check.py", "scripts/check.py"),
        ("python -m scripts.check", "scripts/check.py"),
        ("python -m checks", "checks/__main__.py"),
        ("python checks", "checks/__main__.py"),
        ("python -W ignore scripts/check.py", "scripts/check.py"),
        ("poetry run python scripts/check.py", "scripts/check.py"),
        ("npx -y tsx scripts/check.ts", "scripts/check.ts"),
        ("node --import tsx scripts/check.ts", "scripts/check.ts"),
        ("bash < scripts/check.txt", "scripts/check.txt"),
        ("cat scripts/check.txt | bash", "scripts/check.txt"),
        ('eval "$(cat scripts/check.txt)"', "scripts/check.txt"),
        ('out="$(scripts/check.sh)"; echo "$out"', "scripts/check.sh"),
        ("F=scripts/check.sh; sh $F", "scripts/check.sh"),
        ("find . -name '*.py' -exec python scripts/check.py {} +", "scripts/check.py"),
        ("make -s lint", "Makefile"),
        ("npm run --silent lint", "package.json"),
        ("sh 'scripts/检查 一.sh'; 检查/check.sh", "检查/check.sh"),
        ("sh 'scripts/检查 一.sh'", "scripts/检查 一.sh"),
        ('"$CLAUDE_PROJECT_DIR/my hooks/check"', "my hooks/check"),
        (r"sh my\ hooks/check.sh", "my hooks/check.sh"),
        ("sh 'app/[id]/check.sh'", "app/[id]/check.sh"),
        ('for f in tools/*.sh; do sh "$f"; done', "tools/a.sh"),
        ("run-parts .claude/hooks.d", ".claude/hooks.d/a"),
        ("python3 -c 'from tools.check import x'", "tools/check.py"),
        ("PYTHONPATH=tools:lib python3 -c 'import check'", "tools/check.py"),
        ("PYTHONPATH=lib:tools python3 -c 'import check'", "tools/check.py"),
        ("PATH=bin:$PATH check.sh", "bin/check.sh"),
        ('PATH="$PATH:./bin" check.sh', "bin/check.sh"),
        ('export PATH="$CLAUDE_PROJECT_DIR/bin:$PATH"; check.sh', "bin/check.sh"),
        ("env PATH=${PWD}/bin check.sh", "bin/check.sh"),
        ("PERL5LIB=lib:bin sh -c check.sh", "bin/check.sh"),
        ("ruff check a.py; python3 tools/check.py", "tools/check.py"),
        ("npx prettier --plugin=./tools/plug.mjs --write .", "tools/plug.mjs"),
        ("npx eslint -c config/eslint.mjs .", "config/eslint.mjs"),
        ("bundle exec rubocop -r ./lib/cop.rb", "lib/cop.rb"),
        ("uv run --with black python tools/i.py", "tools/i.py"),
        ("find . -name black -exec python3 tools/i.py {} +", "tools/i.py"),
        ("python3 tools/black", "tools/black"),
        ("node scripts/check", "scripts/check.js"),
        ("node -e \"require('./scripts/check')\"", "scripts/check.js"),
        ("npm --prefix frontend run lint", "frontend/package.json"),
        ("make -f build/lint.mk check", "build/lint.mk"),
        ("awk -f tools/check.awk a.py", "tools/check.awk"),
        ("PATH+=:bin; check.sh", "bin/check.sh"),
        ('PATH+=":$PWD/bin"; check.sh', "bin/check.sh"),
        ("PATH=$(pwd)/bin:$PATH check.sh", "bin/check.sh"),
        ("PATH=`pwd`/bin check.sh", "bin/check.sh"),
        ('PATH="$(git rev-parse --show-toplevel)/bin" check.sh', "bin/check.sh"),
        ("path=(bin $path); check.sh", "bin/check.sh"),
        ("fish_add_path bin; check.sh", "bin/check.sh"),
        ("B=bin; PATH=$B:$PATH check.sh", "bin/check.sh"),
        ("read PATH <<< bin; check.sh", "bin/check.sh"),
        ('PATH=b""in check.sh', "bin/check.sh"),
        ("PATH=\\./bin check.sh", "bin/check.sh"),
        ('NODE_OPTIONS="--require ./tools/pre.js" eslint x', "tools/pre.js"),
        ("NODE_OPTIONS='-r ./tools/pre.js' node -v", "tools/pre.js"),
        ("BASH_ENV=tools/rc bash -c true", "tools/rc"),
        ("LD_PRELOAD=./tools/x.so ls", "tools/x.so"),
        ("PERL5OPT=-MCheck PERL5LIB=lib perl -e 1", "lib/Check.pm"),
        ("perl -Ilib -MMy::Check -e 1", "lib/My/Check.pm"),
        ("ruby -I lib -rcheck -e 1", "lib/check.rb"),
        ("RUBYOPT=-r./lib/check.rb ruby -e 1", "lib/check.rb"),
        ("node -r./tools/pre.js -e 1", "tools/pre.js"),
        ("GIT_EXTERNAL_DIFF=tools/check git diff", "tools/check"),
        ("JAVA_TOOL_OPTIONS=-javaagent:tools/x.jar java", "tools/x.jar"),
        ("ruff check --config tools/ruff.cfg .", "tools/ruff.cfg"),
        ("pytest -q", "conftest.py"),
    ],
)
def test_a_script_is_found_however_it_is_named(shelf: Shelf, command: str, script: str) -> None:
    shelf.put(hooks(PreToolUse=[group(command)]))
    before = shelf.only.digest
    path = shelf.bench.write(script, "1\n")
    first = shelf.only.digest
    shelf.bench.write(script, "2\n")
    assert len({before, first, shelf.only.digest}) == 3
    shelf.bench.open(script, "3\n")
    shelf.bench.staging.write({path: "4\n"}, [shelf.bench.view.read(path)])
    staged = shelf.only.digest
    shelf.bench.staging.write({path: "5\n"}, [shelf.bench.view.read(path)])
    assert staged != shelf.only.digest, "the agent has changed it"


@pytest.mark.parametrize(
    ("name", "text", "inner"),
    [
        (".claude/check.sh", ". ./lib/common.sh", "lib/common.sh"),
        (".claude/check.sh", '. "$(dirname "$0")/common.sh"', ".claude/common.sh"),
        (".claude/check.sh", 'source "$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/common"', ".claude/common"),
        (".claude/check.sh", 'HERE="${0%/*}"\n. "$HERE/common"', ".claude/common"),
        (".claude/check.sh", 'exec python3 "$CLAUDE_PROJECT_DIR/tools/check.py"', "tools/check.py"),
        (".claude/check.sh", "make lint", "Makefile"),
        (".claude/check.py", "import json, common as c", ".claude/common.py"),
        (".claude/check.py", "from common import (a,", ".claude/common.py"),
        (".claude/check.py", "from .rules import tabs", ".claude/rules/tabs.py"),
        (".claude/check.py", "import rules.tabs", ".claude/rules/__init__.py"),
        (".claude/check.py", 'subprocess.run(["sh", "tools/check"])', "tools/check"),
        (".claude/check.mjs", "import { x } from './common'", ".claude/common.mjs"),
        (".claude/check.cjs", "const x = require('../lib')", "lib/index.cjs"),
        (".claude/run", "#!/usr/bin/env python3\nimport common", ".claude/common.py"),
    ],
)
def test_what_a_script_runs_is_covered_too(shelf: Shelf, name: str, text: str, inner: str) -> None:
    shelf.put(hooks(PreToolUse=[group(f'"$CLAUDE_PROJECT_DIR"/{name}')]))
    shelf.bench.write(name, text)
    before = shelf.only.digest
    shelf.bench.write(inner, "1\n")
    first = shelf.only.digest
    shelf.bench.write(inner, ". ./deeper.sh\n")
    second = shelf.only.digest
    assert len({before, first, second}) == 3
    shelf.bench.write("deeper.sh", "1\n")
    assert inner.endswith((".py", ".mjs", ".cjs")) or shelf.only.digest != second


def test_a_script_behind_a_link_is_covered(shelf: Shelf, tmp_path: Path) -> None:
    shelf.put(hooks(PreToolUse=[group("sh .claude/inside.sh"), group("sh .claude/outside.sh")]))
    for name in ("tools/a.sh", "tools/b.sh"):
        shelf.bench.write(name, "1\n")
    (tmp_path / "far.sh").write_text("1\n")
    folder = Path(shelf.bench.path(".claude"))
    (folder / "inside.sh").symlink_to("../tools/a.sh")
    (folder / "outside.sh").symlink_to(tmp_path / "far.sh")
    digests = [shelf.only.digest]
    shelf.bench.write("tools/a.sh", "2\n")
    digests.append(shelf.only.digest)
    (tmp_path / "far.sh").write_text("2\n")
    digests.append(shelf.only.digest)
    (folder / "inside.sh").unlink()
    (folder / "inside.sh").symlink_to("../tools/b.sh")
    digests.append(shelf.only.digest)
    assert len(set(digests)) == 4


def test_a_script_that_is_too_long_is_covered(shelf: Shelf) -> None:
    shelf.put(hooks(PreToolUse=[group("sh check.sh")]))
    path = Path(shelf.bench.write("check.sh", "#" * (2 << 20)))
    first = shelf.only.digest
    with path.open("r+") as file:
        file.write("!")
    assert shelf.only.digest != first


@pytest.mark.slow
@pytest.mark.parametrize("part", ["@/", "sh ", "sh\t", "${", "./a ", "from a import b\n", "-m ", "cd \t", "' "])
def test_hostile_scripts_take_no_time(shelf: Shelf, part: str) -> None:
    """Linear in the length of a script, and at most so much of them is looked at."""
    shelf.put(hooks(PreToolUse=[group("sh check.sh; python check.py")]))
    for name in ("check.sh", "check.py"):
        shelf.bench.write(name, part * (300_000 // len(part)))
    with processor_seconds(10):  # quadratic: minutes
        assert shelf.files()


def test_odd_files_and_circles_are_survived(shelf: Shelf) -> None:
    shelf.put(hooks(PreToolUse=[group("sh a.sh; sh .claude/pipe.sh; sh .claude/loop.sh; sh \0.sh; sh " + "x" * 5000)]))
    shelf.bench.write("a.sh", ". ./b.sh\n" + "y " * 50_000)
    shelf.bench.write("b.sh", ". ./a.sh\n")
    os.mkfifo(shelf.bench.path(".claude/pipe.sh"))
    Path(shelf.bench.path(".claude/loop.sh")).symlink_to("loop.sh")
    first = shelf.only.digest
    shelf.bench.write("b.sh", "exit 0\n")
    assert shelf.only.digest != first


@pytest.mark.parametrize(
    "command",
    [
        "grep -q TODO a.py",
        "ruff check a.py",
        "cat < a.py | wc",
        "xargs sed -i x a.py",
        ".claude/check.py",
        "python3 -m py_compile a.py",
        "npx prettier --write a.py",
        "uv run ruff format a.py && uvx black a.py",
        "python -m json.tool a.py",
    ],
)
def test_the_digest_leaves_out_what_is_only_read(shelf: Shelf, command: str) -> None:
    shelf.put(hooks(PreToolUse=[group(command)]))
    shelf.bench.write(".claude/check.py", 'import json\nprint(open("a.py").read(), Path("a.py"))\n')
    first = shelf.only.digest
    shelf.bench.write("a.py", "x = 1\n")
    assert shelf.only.digest == first


def test_hooks_that_the_agent_writes_are_none(shelf: Shelf) -> None:
    shelf.put(hooks(PreToolUse=[group("x")]))
    path = shelf.bench.path(".claude/settings.json")
    staged = hooks(PreToolUse=[group("evil")])
    shelf.bench.staging.write({path: staged}, [shelf.bench.view.read(path)])
    assert [hook.command for hook in shelf.only.hooks] == ["x"]


# --- what a hook is told


def test_arguments_in_both_spellings(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "w")
    forms = CallForms(arguments={"old_string": "old_str", "file_path": "path"})
    told = tool_input({"path": "a.py", "old_str": "x"}, forms, bench.view.roots)
    assert told == {"path": "a.py", "old_str": "x", "old_string": "x", "file_path": bench.path("a.py")}


@pytest.mark.parametrize(
    ("given", "about"),
    [
        ({"file_path": "{w}/a.py"}, ("{w}/a.py", "a.py")),
        ({"path": "/elsewhere/a.py"}, ("/elsewhere/a.py",)),
        ({"command": "cd a && (git push)"}, ("cd a && (git push)", "cd a", "a", "git push", "push")),
        ({"pattern": "x"}, ()),
        (None, ()),
    ],
)
def test_what_a_condition_is_about(tmp_path: Path, given: Any, about: tuple[str, ...]) -> None:
    bench = Bench(tmp_path / "w")
    here = str(bench.view.roots.folders[0])
    told = json.loads(json.dumps({"tool_input": given}).replace("{w}", here))
    assert subjects(told, bench.view.roots) == tuple(each.replace("{w}", here) for each in about)


@pytest.mark.parametrize(
    "line",
    [
        "timeout 5 git status", "GIT_DIR='x y' git status", "env -i git status", "nice -n 5 git status",
        "bash -c 'git status'", "eval git status", "find . -exec git status ;", ">out git status", "\\git status",
        "'git' status", "ls; /usr/bin/git status", "echo $(git status)", "time -p git \\\n status",
    ],
)  # fmt: skip
def test_a_command_behind_others_meets_the_condition(shelf: Shelf, tmp_path: Path, line: str) -> None:
    entry = {"type": "command", "command": "x", "if": "Bash(git *)"}
    shelf.put(hooks(PreToolUse=[{"hooks": [entry]}]))
    (hook,) = shelf.only.hooks
    about = subjects({"tool_input": {"command": line}}, Bench(tmp_path / "w").view.roots)
    assert hook.is_met(names_of(RunCmd.traits), about)


def test_long_events_are_cut() -> None:
    event = {"tool_input": {"content": "x" * (2 * MOST_CHARS), "n": 1}, "list": ["y" * 20_000] * 200}
    written = as_json(event)
    assert len(written) < MOST_CHARS
    assert json.loads(written)["tool_input"]["n"] == 1


@pytest.mark.parametrize(
    "line",
    [
        "x=push; git $x",
        "git $'push'",
        "for i in push; do git $i; done",
        "a=git; p=push; $a ${p} origin",
        "git ${x:-push}",
        "$(echo git) push",
        "git pu\\sh",
        "printf 'git push' | sh",
        "xargs git push < refs",
        "git >log push",
        "git 2>&1 push origin",
        "git <in push",
    ],
)
def test_a_guard_reads_a_line_as_a_deny_rule_does(shelf: Shelf, tmp_path: Path, line: str) -> None:
    entry = {"type": "command", "command": "x", "if": "Bash(git push*)"}
    shelf.put(hooks(PreToolUse=[{"hooks": [entry]}]))
    (hook,) = shelf.only.hooks
    told = {"tool_input": {"command": line}}
    assert covering_rule(["git push*"], line) is not None
    assert hook.is_met(names_of(RunCmd.traits), subjects(told, Bench(tmp_path / "w").view.roots), command_line(told))
    assert not hook.is_met(names_of(RunCmd.traits), ("git status",), "git status")


@pytest.mark.parametrize(
    "line",
    [
        "alias g=git; g push",
        "make -f - <<< $'a:\\n\\tgit push'",
        "git pus?",
        "/usr/bin/g?t push",
        "git ${x}push",
        "read x <<< push; git $x",
        "printf -v x push; git $x",
        "x=pu; x+=sh; git $x",
    ],
)
def test_a_guard_runs_where_what_a_line_runs_cannot_be_seen(shelf: Shelf, tmp_path: Path, line: str) -> None:
    entry = {"type": "command", "command": "x", "if": "Bash(git push*)"}
    shelf.put(hooks(PreToolUse=[{"hooks": [entry]}]))
    (hook,) = shelf.only.hooks
    told = {"tool_input": {"command": line}}
    assert judge(line, allow=("*",), deny=("git push*",)).unread
    assert hook.is_met(names_of(RunCmd.traits), subjects(told, Bench(tmp_path / "w").view.roots), command_line(told))
    for harmless in ("make test", "ls *.py", "for f in *.py; do python $f; done", "git diff HEAD~1 > p"):
        assert not hook.is_met(names_of(RunCmd.traits), (harmless,), harmless)
