"""A small editor without any code of ours: raw JSON-RPC, buffers in memory, files on disk untouched by edits.

It applies WorkspaceEdits as a careful stock client does; `choose` answers prompts and `answers` replaces any
answer. What it saw is kept in `prompts`, `shown`, `edits` and `client.messages`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from codeagent_lsp.workspace.files.uris import from_path, to_path
from codeagent_lsp.workspace.text.document import Change, Document
from codeagent_lsp.workspace.text.position import Encoding
from tests.server.rawclient import RawClient
from tests.server.warm import MAIN, PREFIX

SERVER = (*PREFIX, "serve")

STOCK: dict[str, Any] = {
    "workspace": {
        "applyEdit": True,
        "workspaceEdit": {"documentChanges": True, "resourceOperations": ["create", "rename", "delete"]},
    },
    "window": {"workDoneProgress": True, "showDocument": {"support": True}},
    "textDocument": {"codeAction": {"codeActionLiteralSupport": {"codeActionKind": {"valueSet": []}}}},
}

Choose = Callable[[dict[str, Any]], str | None]


class StockEditor:
    """Starts the server on a folder. `choose` picks the title that answers a prompt, None closes it."""

    def __init__(
        self,
        workspace: Path,
        state: Path,
        *,
        script: Sequence[Mapping[str, Any]] = (),
        capabilities: Mapping[str, Any] = STOCK,
        settings: Mapping[str, Any] | None = None,
        choose: Choose = lambda params: "Apply",
        env: Mapping[str, str] | None = None,
        client: Mapping[str, Any] | None = None,
        before_apply: Callable[[StockEditor], None] = lambda editor: None,
        answers: Mapping[str, Callable[[Any], Any]] | None = None,
        locale: str | None = None,
        warm: bool = True,
        main: str = MAIN,
    ) -> None:
        self.workspace = workspace
        self.buffers: dict[str, Document] = {}
        self.prompts: list[dict[str, Any]] = []
        self.shown: list[str] = []
        self.edits: list[dict[str, Any]] = []
        self.before_apply = before_apply
        self.choose = choose
        self.encoding: Encoding = "utf-16"
        self.takes_later_versions = (client or {}).get("name") == "Neovim"
        own: dict[str, Callable[[Any], Any]] = {
            "window/workDoneProgress/create": lambda params: None,
            "window/showMessageRequest": self._prompt,
            "window/showDocument": self._show,
            "workspace/applyEdit": self._apply,
            "workspace/configuration": lambda params: [None for _ in params["items"]],
            "client/registerCapability": lambda params: None,
            "workspace/codeLens/refresh": lambda params: None,
        }
        # Tests write into the workspace as the user would; those about other programs follow it.
        options = {"foreign": {"watch": "off"}, **(settings or {})}
        if script:
            place = state / "script.json"
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(json.dumps(list(script)))
            options["model"] = {"provider": "scripted", "name": str(place), **options.get("model", {})}
        self.client = RawClient(
            SERVER,
            cwd=workspace,
            answers={**own, **(answers or {})},
            env={"CODEAGENT_STATE_DIR": str(state), **(env or {})},
            warm=warm,
            main=main,
        )
        named = {} if client == {} else {"clientInfo": dict(client or {"name": "stock"})}
        self.capabilities = self.client.initialize(
            rootUri=from_path(str(workspace)),
            workspaceFolders=[{"uri": from_path(str(workspace)), "name": workspace.name}],
            capabilities=capabilities,
            initializationOptions=options,
            **named,
            **({"locale": locale} if locale else {}),
        )["capabilities"]
        self.encoding = self.capabilities["positionEncoding"]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *reason: object) -> None:
        self.client.kill()

    def open(self, path: Path, text: str | None = None) -> str:
        """Open a file, with other text than on disk if given; its uri."""
        uri = from_path(str(path))
        content = path.read_text() if text is None else text
        self._open(uri, content)
        return uri

    def type(self, uri: str, start: tuple[int, int], end: tuple[int, int], text: str) -> None:
        """What the user types."""
        known = self.buffers[uri]
        version = (known.version or 0) + 1
        self.buffers[uri] = known.apply(Change(text, start, end), self.encoding, version=version)
        span = {"start": _position(start), "end": _position(end)}
        self._changed(uri, [{"range": span, "text": text}])

    def text(self, path: Path) -> str:
        """What the user sees of a file: the buffer, else the disk."""
        document = self.buffers.get(from_path(str(path)))
        return path.read_text() if document is None else document.text

    def command(self, name: str, /, **arguments: Any) -> Any:
        """The result of a command."""
        return self.client.result("workspace/executeCommand", {"command": name, "arguments": [arguments]})

    def run(self, name: str, /, seconds: float = 30.0, **arguments: Any) -> dict[str, Any]:
        """Start a run by a command and wait for its end; the `end` value of its progress."""
        run_id = self.command(name, **arguments)["runId"]
        return self.ended(run_id, seconds)

    def ended(self, run_id: str, seconds: float = 30.0) -> dict[str, Any]:
        """Wait for the end of a run's progress."""
        token = f"codeagent-{run_id}"

        def is_end(message: dict[str, Any]) -> bool:
            params = message.get("params") or {}
            return message.get("method") == "$/progress" and params["token"] == token and _kind(params) == "end"

        value: dict[str, Any] = self.client.wait(is_end, seconds)["params"]["value"]
        return value

    def told(self, part: str, seconds: float = 10.0) -> str:
        """The next message to the user that has `part` in it."""

        def is_it(message: dict[str, Any]) -> bool:
            return message.get("method") == "window/showMessage" and part in message["params"]["message"]

        words: str = self.client.wait(is_it, seconds)["params"]["message"]
        return words

    def refusal(self, name: str, *arguments: Any) -> str:
        """The error message of a command that must fail."""
        params = {"command": name, "arguments": list(arguments)}
        answer = self.client.request("workspace/executeCommand", params)
        assert "error" in answer, answer
        message: str = answer["error"]["message"]
        return message

    def notifications(self, method: str) -> list[dict[str, Any]]:
        """Params of the notifications of a method that nobody waited for."""
        return [message["params"] for message in list(self.client.messages) if message.get("method") == method]

    def wait_until(self, condition: Callable[[], bool], seconds: float = 10.0) -> None:
        """Wait until a condition about this editor holds."""
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                raise TimeoutError(f"condition never held; {self.client.tail()}")
            time.sleep(0.01)

    def close(self) -> int:
        """Shut down as the protocol asks; the exit code."""
        self.client.result("shutdown")
        self.client.notify("exit")
        return self.client.process.wait(10)

    def _prompt(self, params: dict[str, Any]) -> dict[str, str] | None:
        self.prompts.append(params)
        title = self.choose(params)
        return None if title is None else {"title": title}

    def _show(self, params: dict[str, Any]) -> dict[str, bool]:
        self.shown.append(params["uri"])
        return {"success": True}

    def _apply(self, params: dict[str, Any]) -> dict[str, Any]:
        self.edits.append(params)
        self.before_apply(self)
        plain = params["edit"].get("changes", {}).items()
        older = [{"textDocument": {"uri": uri}, "edits": edits} for uri, edits in plain]
        for change in params["edit"].get("documentChanges", older):
            kind = change.get("kind")
            if kind == "create":
                self._create(change["uri"])
            elif kind == "delete":
                self._delete(change["uri"])
            elif kind == "rename":
                self._rename(change["oldUri"], change["newUri"])
            elif not self._edit(change):
                return {"applied": False, "failureReason": "stale version"}
        return {"applied": True}

    def _create(self, uri: str) -> None:
        path = Path(to_path(uri) or "")
        assert not path.exists(), "asked to create what exists"
        path.touch()

    def _delete(self, uri: str) -> None:
        Path(to_path(uri) or "").unlink()
        if self.buffers.pop(uri, None) is not None:
            self.client.notify("textDocument/didClose", {"textDocument": {"uri": uri}})

    def _rename(self, old: str, new: str) -> None:
        Path(to_path(old) or "").rename(to_path(new) or "")
        known = self.buffers.pop(old, None)
        if known is not None:
            self.client.notify("textDocument/didClose", {"textDocument": {"uri": old}})
            self._open(new, known.text)

    def _edit(self, change: dict[str, Any]) -> bool:
        uri, version = change["textDocument"]["uri"], change["textDocument"].get("version")
        if uri not in self.buffers:
            self._open(uri, Path(to_path(uri) or "").read_text())
        known = self.buffers[uri]
        takes_it = version is None or version == known.version
        if not takes_it and not (self.takes_later_versions and version > (known.version or 0)):
            return False
        for edit in reversed(change["edits"]):
            start, end = edit["range"]["start"], edit["range"]["end"]
            known = known.apply(
                Change(edit["newText"], (start["line"], start["character"]), (end["line"], end["character"])),
                self.encoding,
                version=(self.buffers[uri].version or 0) + 1,
            )
        self.buffers[uri] = known
        self._changed(uri, [{"text": known.text}])
        return True

    def _open(self, uri: str, content: str) -> None:
        self.buffers[uri] = Document(uri, content, 0, "python")
        item = {"uri": uri, "languageId": "python", "version": 0, "text": content}
        self.client.notify("textDocument/didOpen", {"textDocument": item})

    def _changed(self, uri: str, changes: list[dict[str, Any]]) -> None:
        identifier = {"uri": uri, "version": self.buffers[uri].version}
        self.client.notify("textDocument/didChange", {"textDocument": identifier, "contentChanges": changes})


def _position(place: tuple[int, int]) -> dict[str, int]:
    return {"line": place[0], "character": place[1]}


def _kind(params: dict[str, Any]) -> str:
    value = params.get("value")
    return str(value.get("kind", "")) if isinstance(value, dict) else ""
