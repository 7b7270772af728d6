"""Plays a scenario in a real Emacs with a stock client, set up by the words of `docs/editors.md`, on a scripted model.

Not here: a screen (`test_screen.py` looks at one).
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typing_extensions import override

from tests.clients.neovim.support import ROOT, environment
from tests.clients.scenarios import Scenarios, left_behind, plan_of, put

DOCUMENT = ROOT / "docs" / "editors.md"
RIG = Path(__file__).with_name("rig.el")
LISP = Path("/usr/share/emacs/site-lisp/elpa")
CLIENTS = ("eglot", "lsp-mode")
EXAMPLE = ':baseUrl "http://127.0.0.1:8080/v1"'
SECONDS = 120.0
ENDING = "el"

# How a user starts each client in a buffer, and how it says that the server is there.
START = {"eglot": "(unless (eglot-current-server) (call-interactively #'eglot))", "lsp-mode": "(lsp)"}
READY = {
    "eglot": "(eglot-current-server)",
    "lsp-mode": "(eq 'initialized (lsp--workspace-status (lsp-find-workspace 'codeagent (buffer-file-name))))",
}


def find_emacs() -> str | None:
    """The Emacs on PATH; None when there is none."""
    return shutil.which("emacs")


def has_client(client: str) -> bool:
    """Whether this Emacs has a client, of its own or as a package of Debian's."""
    emacs = find_emacs()
    if emacs is None:
        return False
    asked = [emacs, "-Q", "--batch", *packages(), "--eval", f"(kill-emacs (if (locate-library {client!r}) 0 1))"]
    asked[-1] = asked[-1].replace("'", '"')
    return subprocess.run(asked, capture_output=True, timeout=20, check=False).returncode == 0


def configuration(client: str) -> str:
    """The Lisp that `docs/editors.md` gives for a client: the block below the line that begins with its name."""
    found = re.search(rf"^\*\*{client}\*\*.*?```elisp\n(.*?)```", DOCUMENT.read_text(), re.MULTILINE | re.DOTALL)
    assert found, f"docs/editors.md has no configuration for {client}"
    return found[1]


@dataclass(frozen=True)
class Played:
    """What a scenario left: `found` is what it returned, `prompts` and `told` what the user was shown."""

    workspace: Path
    found: dict[str, Any]
    prompts: list[dict[str, Any]]
    told: list[str]

    def disk(self, name: str) -> str:
        """The text of a file on disk afterwards."""
        return (self.workspace / name).read_text()

    def asked(self) -> list[list[str]]:
        """The titles of each prompt, in order."""
        return [prompt["titles"] for prompt in self.prompts]


def play(
    folder: Path,
    client: str,
    scenario: str,
    *,
    files: Mapping[str, str],
    script: Sequence[Mapping[str, Any]],
    inline: str = "",
) -> Played:
    """Run Lisp with `rig.el` in an Emacs of its own and give what it returned. Fails when a process is left behind.
    `inline` is the setting `model.inline`.
    """
    init = prepare(folder, client, files=files, script=script, inline=inline)
    plan = {"workspace": str(folder / "ws"), "configuration": str(init), **plan_of(folder, "", scenario, ending=ENDING)}
    done = subprocess.run(
        _start(folder, "rig-play", plan),
        cwd=folder,
        env=variables_of(folder),
        capture_output=True,
        timeout=SECONDS,
        check=False,
    )
    said = (done.stdout + done.stderr).decode(errors="replace")
    assert (folder / "record.json").exists(), said
    assert not left_behind(folder / "state"), "the server outlived the editor"
    return _played(folder / "ws", folder / "record.json", said)


class Emacs(Scenarios[Played]):
    """An Emacs with one of its clients."""

    ending = ENDING
    seconds = SECONDS

    def __init__(self, folder: Path, client: str) -> None:
        super().__init__(folder)
        self.client = client

    @override
    def start(self, folder: Path, script: Sequence[Mapping[str, Any]]) -> tuple[list[str], Mapping[str, str]]:
        init = prepare(folder, self.client, files={}, script=script)
        plan = {"workspace": str(folder / "ws"), "configuration": str(init), "folder": str(folder)}
        return _start(folder, "rig-play-all", plan), variables_of(folder)

    @override
    def read(self, workspace: Path, record: Path, said: str) -> Played:
        return _played(workspace, record, said)


def _start(folder: Path, how: str, plan: Mapping[str, str]) -> list[str]:
    (folder / "plan.json").write_text(json.dumps(plan))
    emacs = find_emacs()
    assert emacs is not None
    return [emacs, "-Q", "--batch", *packages(), "-l", str(RIG), "--eval", f'({how} "{folder / "plan.json"}")']


def _played(workspace: Path, path: Path, said: str) -> Played:
    record = json.loads(path.read_text())
    assert "problem" not in record, f"{record}\n{said}"
    return Played(workspace, record["found"] or {}, record["prompts"], record["told"])


def prepare(
    folder: Path, client: str, *, files: Mapping[str, str], script: Sequence[Mapping[str, Any]], inline: str = ""
) -> Path:
    """A workspace, a script for the model, `codeagent-lsp` on PATH and an init file; the path of the last."""
    for name in ("ws/.git", "state", "home", "bin"):
        (folder / name).mkdir(parents=True)
    put(folder / "ws", files)
    (folder / "script.json").write_text(json.dumps(list(script)))
    program = folder / "bin" / "codeagent-lsp"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m codeagent_lsp.cli "$@"\n')
    program.chmod(0o755)
    written = configuration(client)
    assert EXAMPLE in written, "the configuration shows how to name a model"
    model = f':provider "scripted" :name "{folder / "script.json"}"' + (f' :inline "{inline}"' if inline else "")
    init = folder / "init.el"
    init.write_text(
        ";;; -*- lexical-binding: t -*-\n"
        f"{written.replace(EXAMPLE, model)}\n"
        f"(setq rig-start (lambda () {START[client]}) rig-ready (lambda () {READY[client]}))\n"
        "(setq python-indent-guess-indent-offset nil lsp-response-timeout 40 jsonrpc-default-request-timeout 40)\n"
        f"(require '{client})\n"
    )
    return init


def variables_of(folder: Path) -> dict[str, str]:
    """The environment of an Emacs whose files all lie in a folder."""
    variables = environment(folder / "home", folder / "state")
    return {**variables, "PATH": f"{folder / 'bin'}:{variables['PATH']}", "LANG": "C.UTF-8"}


def packages() -> list[str]:
    """Options that let an Emacs without site files use Debian's packages, as one with them does."""
    return ["--eval", f'(setq package-directory-list (list "{LISP}"))', "-f", "package-activate-all"]


MARKS = [
    pytest.mark.emacs,
    pytest.mark.slow,
    pytest.mark.skipif(find_emacs() is None, reason="no Emacs here; Debian: emacs-nox elpa-eglot elpa-lsp-mode"),
]
