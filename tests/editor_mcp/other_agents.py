"""Other agents, installed by `scripts/get-agent.sh`, at work by `editor-mcp` with a scripted model on loopback.

Not here: the model (`scripted_agent.py`), the editor (`tests/clients/neovim_plugin`).
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.editor_mcp.scripted_agent import PORT
from tests.tidy.source import ROOT

MODEL = f"http://127.0.0.1:{PORT}"
TASK = "make them larger"
Step = dict[str, Any]


@dataclass(frozen=True, slots=True)
class OtherAgent:
    """One agent: `client` is what it calls itself, `tool` its name for a tool of ours, `line` its command line and
    `environment` what it needs beside HOME, once `settle` has written its settings into that folder. `edits` are the
    calls with which it changes texts of a file by itself.
    """

    name: str
    client: str
    tool: str
    line: Callable[[Path, Path], Sequence[str]]
    edits: Callable[[Path, Sequence[tuple[str, str]]], Sequence[Step]]
    settle: Callable[[Path, Path], None] = lambda home, state: None
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def program(self) -> Path:
        """Where the agent is; nowhere if it was not installed."""
        return Path(os.environ.get(f"CODEAGENT_{self.name.upper()}", "nowhere"))

    def missing(self) -> str:
        """Return why it cannot be run here; '' if it can."""
        if not self.program.is_file():
            return f"CODEAGENT_{self.name.upper()} is no program; scripts/get-agent.sh {self.name} gets one"
        if os.geteuid() != 0 or shutil.which("unshare") is None:
            return "only the superuser can give a program a network of its own"
        return ""

    def calls(self, tool: str, **arguments: Any) -> Step:
        """A step of the model that calls a tool of ours."""
        return {"tool": self.tool.format(tool), "arguments": arguments}

    def prepare(self, folder: Path, steps: Sequence[Step]) -> None:
        """Write the agent's settings, its model's script, and `agent.sh`, which starts it in `folder`/ws, in a network
        that has loopback alone.
        """
        home, script = folder / "agent_home", folder / "script_of_agent.json"
        home.mkdir()
        script.write_text(json.dumps(list(steps)))
        self.settle(home, folder / "state")
        given = {"HOME": home, "PYTHONPATH": ROOT, **self.environment}
        words = [f"{name}={value}" for name, value in given.items()]
        agent = [sys.executable, "-m", "tests.editor_mcp.scripted_agent", script, *self.line(self.program, home)]
        line = ["exec", "env", "-i", "PATH=$PATH", *words, "unshare", "-n", *agent, f"'{TASK}'"]
        (folder / "agent.sh").write_text(f"cd {folder}/ws && {' '.join(map(str, line))}\n")


def seen(folder: Path) -> list[str]:
    """What the model was told: the task, then the answer of each call."""
    lines = (folder / "script_of_agent.seen").read_text().splitlines()
    return [json.loads(line)["content"] for line in lines]


def _editor(state: Path) -> tuple[list[str], dict[str, str]]:
    """The command of the editor's MCP server and its environment."""
    ours = [sys.executable, "-m", "codeagent_lsp.cli", "editor-mcp"]
    return ours, {"CODEAGENT_STATE_DIR": str(state), "PYTHONPATH": str(ROOT)}


def _opencode(home: Path, state: Path) -> None:
    command, environment = _editor(state)
    options = {"baseURL": f"{MODEL}/v1", "apiKey": "none"}
    config = {
        "autoupdate": False,
        "share": "disabled",
        "model": "scripted/scripted",
        "small_model": "scripted/scripted",
        "provider": {
            "scripted": {"npm": "@ai-sdk/openai-compatible", "options": options, "models": {"scripted": {}}},
        },
        "mcp": {"editor": {"type": "local", "command": command, "enabled": True, "environment": environment}},
    }
    place = home / ".config/opencode/opencode.json"
    place.parent.mkdir(parents=True)
    place.write_text(json.dumps(config))


def _claude(home: Path, state: Path) -> None:
    command, environment = _editor(state)
    server = {"command": command[0], "args": command[1:], "env": environment}
    (home / "mcp.json").write_text(json.dumps({"mcpServers": {"editor": server}}))


def _codex(home: Path, state: Path) -> None:
    command, environment = _editor(state)
    lines = [
        'model = "scripted"',
        'model_provider = "scripted"',
        "[model_providers.scripted]",
        'name = "scripted"',
        f'base_url = "{MODEL}/v1"',
        'wire_api = "responses"',
        "[mcp_servers.editor]",
        f"command = {json.dumps(command[0])}",
        f"args = {json.dumps(command[1:])}",
        "required = true",
        "tool_timeout_sec = 600",
        "[mcp_servers.editor.env]",
        *(f"{name} = {json.dumps(value)}" for name, value in environment.items()),
    ]
    (home / ".codex").mkdir()
    (home / ".codex/config.toml").write_text("\n".join(lines) + "\n")


def _gemini(home: Path, state: Path) -> None:
    _settings(home / ".gemini", state, "gemini-api-key")


def _qwen(home: Path, state: Path) -> None:
    _settings(home / ".qwen", state, "openai")


def _settings(folder: Path, state: Path, login: str) -> None:
    """Write the settings of Gemini CLI, of which Qwen Code is a descendant."""
    command, environment = _editor(state)
    server = {"command": command[0], "args": command[1:], "env": environment, "trust": True}
    folder.mkdir()
    security = {"auth": {"selectedType": login}}
    settings = {"mcpServers": {"editor": server}, "security": security, "general": {"enableAutoUpdate": False}}
    (folder / "settings.json").write_text(json.dumps(settings))


def _by_edit(read: str, edit: str, path: str, old: str, new: str, **more: str) -> Callable[..., list[Step]]:
    """Return how an agent edits that has to read first; `more` are other arguments of its tool."""

    def steps(file: Path, edits: Sequence[tuple[str, str]]) -> list[Step]:
        named = {path: str(file)}
        return [
            {"tool": read, "arguments": named},
            *({"tool": edit, "arguments": {**named, old: before, new: after, **more}} for before, after in edits),
        ]

    return steps


def _by_shell(tool: str, argument: str) -> Callable[..., list[Step]]:
    def steps(file: Path, edits: Sequence[tuple[str, str]]) -> list[Step]:
        return [{"tool": tool, "arguments": {argument: f"sed -i 's/{a}$/{b}/' {file}"}} for a, b in edits]

    return steps


OPENCODE = OtherAgent(
    "opencode",
    "opencode",
    "editor_{}",
    lambda program, home: [str(program), "run"],
    _by_edit("read", "edit", "filePath", "oldString", "newString"),
    _opencode,
    {"OPENCODE_DISABLE_MODELS_FETCH": "1"},
)
CLAUDE = OtherAgent(
    "claude",
    "claude-code",
    "mcp__editor__{}",
    lambda program, home: [
        *(str(program), "--model", "scripted", "--strict-mcp-config", "--mcp-config", str(home / "mcp.json")),
        *("--allowedTools", "mcp__editor,Read,Edit", "-p"),
    ],
    _by_edit("Read", "Edit", "file_path", "old_string", "new_string"),
    _claude,
    {
        "ANTHROPIC_BASE_URL": MODEL,
        "ANTHROPIC_API_KEY": "none",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
    },
)
CODEX = OtherAgent(
    "codex",
    "codex-mcp-client",
    "mcp__editor/{}",
    lambda program, home: [
        str(program), "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox",
    ],
    _by_shell("exec_command", "cmd"),
    _codex,
)  # fmt: skip
GEMINI = OtherAgent(
    "gemini",
    "gemini-cli-mcp-client",
    "mcp_editor_{}",
    lambda program, home: [str(program), "--model", "gemini-2.5-pro", "--yolo", "--prompt"],
    _by_edit("read_file", "replace", "file_path", "old_string", "new_string", instruction="Make it larger."),
    _gemini,
    {"GEMINI_API_KEY": "none", "GOOGLE_GEMINI_BASE_URL": MODEL, "GEMINI_CLI_TRUST_WORKSPACE": "true"},
)
QWEN = OtherAgent(
    "qwen",
    "qwen-cli-mcp-client-editor",
    "mcp__editor__{}",
    lambda program, home: [str(program), "--yolo", "--prompt"],
    _by_edit("read_file", "edit", "file_path", "old_string", "new_string"),
    _qwen,
    {"OPENAI_API_KEY": "none", "OPENAI_BASE_URL": f"{MODEL}/v1", "OPENAI_MODEL": "scripted"},
)
EVERY = (OPENCODE, CLAUDE, CODEX, GEMINI, QWEN)
