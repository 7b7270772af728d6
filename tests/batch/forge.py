"""A forge on loopback for the templates of CI: git over HTTP, and as much of GitHub's and GitLab's API as they call."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

TOKEN = "-".join(("a", "token", "of", "the", "forge"))
GITHUB, GITLAB = "/api/v3/repos/team/project", "/api/v4/projects/7"
Call = tuple[str, str, Any]


@dataclass
class Forge:
    """A bare repository below `root`, requests for changes, and comments. `calls` are those that write."""

    root: Path
    url: str = ""
    writers: tuple[str, ...] = ("maintainer", "42")
    calls: list[Call] = field(default_factory=list)
    requests: list[dict[str, Any]] = field(default_factory=list)
    comments: list[dict[str, Any]] = field(default_factory=list)
    forbidden: tuple[str, ...] = ()  # paths that answer 403
    drafts: bool = True

    @property
    def repository(self) -> Path:
        return self.root / "team" / "project.git"

    def git(self, *words: str) -> str:
        """What git says in the repository."""
        done = subprocess.run(["git", "-C", self.repository, *words], capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def answer(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        """Answer a call of the API."""
        plain = path.partition("?")[0]
        name = plain.removeprefix(GITHUB).removeprefix(GITLAB)
        if method != "GET":
            self.calls.append((method, plain, body))
        if name in self.forbidden:
            return 403, {"message": "not permitted @admin"}
        if name.startswith(("/collaborators/", "/members/all/")):
            return self._member(name.split("/")[-2 if name.endswith("/permission") else -1])
        if "merge_requests" in name or "pulls" in name:
            return self._request(method, name, path, body)
        return self._comment(method, name, body)

    def _member(self, user: str) -> tuple[int, Any]:
        may = user in self.writers
        if not may and user != "reader":
            return 404, {}
        return 200, {
            "permission": "write" if may else "read",
            "access_level": 30 if may else 20,
            "state": "active",
        }

    def _request(self, method: str, name: str, path: str, body: Any) -> tuple[int, Any]:
        if method == "GET":
            query = parse_qs(urlsplit(path).query)
            wanted = {"".join(query.get("source_branch", ())), "".join(query.get("head", ())).removeprefix("team:")}
            return 200, [each for each in self.requests if each["asked"] in wanted]
        if method != "POST":
            self.requests[int(name.rpartition("/")[2]) - 1] |= body
            return 200, self.requests[int(name.rpartition("/")[2]) - 1]
        if body.get("draft") and not self.drafts:
            return 422, {"message": "no drafts here"}
        number = len(self.requests) + 1
        url = f"{self.url}/team/project/changes/{number}"
        asked = body.get("head") or body["source_branch"]
        self.requests.append({"number": number, "iid": number, "html_url": url, "web_url": url, "asked": asked, **body})
        return 201, self.requests[-1]

    def _comment(self, method: str, name: str, body: Any) -> tuple[int, Any]:
        if method == "GET":
            return 200, self.comments
        if method != "POST":
            self.comments[int(name.rpartition("/")[2]) - 1] |= body
            return 200, {}
        author = {"user": {"type": "Bot"}, "author": {"username": "project_7_bot"}}
        self.comments.append({"id": len(self.comments) + 1, **author, **body})
        return 201, self.comments[-1]


@contextmanager
def forge(root: Path) -> Iterator[Forge]:
    """A forge with an empty repository."""
    made = Forge(root)
    made.repository.mkdir(parents=True)
    made.git("init", "-q", "--bare", "-b", "main")
    made.git("config", "http.receivepack", "true")
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(made))
    made.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield made
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _served(made: Forge, method: str, address: str, headers: Message, content: bytes) -> tuple[int, bytes, str]:
    """Let git serve its repository, to who has the token."""
    given = base64.b64decode((headers["Authorization"] or "").removeprefix("Basic ")).decode()
    if given not in (f"x-access-token:{TOKEN}", f"oauth2:{TOKEN}"):
        return 401, b"", "text/plain"
    path, _, query = address.partition("?")
    environment = {
        "GIT_PROJECT_ROOT": str(made.root),
        "GIT_HTTP_EXPORT_ALL": "1",
        "REMOTE_USER": "bot",
        "PATH_INFO": path,
        "QUERY_STRING": query,
        "REQUEST_METHOD": method,
        "CONTENT_TYPE": headers.get("Content-Type", ""),
        "CONTENT_LENGTH": str(len(content)),
        "HTTP_CONTENT_ENCODING": headers.get("Content-Encoding", ""),
    }
    command = ["git", "http-backend"]
    done = subprocess.run(command, input=content, capture_output=True, env={**os.environ, **environment}, check=True)
    head, _, answer = done.stdout.partition(b"\r\n\r\n")
    kinds = [line.split(b": ")[1] for line in head.split(b"\r\n") if line.startswith(b"Content-Type")]
    return 200, answer, kinds[0].decode()


def _handler(made: Forge) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if not self.path.startswith("/api/"):
                return self._send(*_served(made, self.command, self.path, self.headers, content))
            if self.headers["Authorization"] != f"Bearer {TOKEN}":
                return self._send(401, b"{}")
            status, value = made.answer(self.command, self.path, json.loads(content) if content else None)
            return self._send(status, json.dumps(value).encode())

        def do_POST(self) -> None:
            self.do_GET()

        def do_PATCH(self) -> None:
            self.do_GET()

        def do_PUT(self) -> None:
            self.do_GET()

        def _send(self, status: int, content: bytes, kind: str = "application/json") -> None:
            self.send_response(status)
            if status == 401:
                self.send_header("WWW-Authenticate", "Basic")
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            return

    return Handler
